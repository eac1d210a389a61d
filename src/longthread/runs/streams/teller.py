"""Writes the pending text of all runs of a process together: one transaction for many, a few times a second."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

from longthread.errors import StoreError
from longthread.store import runs
from longthread.store.driver import Driver

if TYPE_CHECKING:
    from longthread.runs.streams.events import EventStream  # which tells the teller of its text

TICK_SECONDS = 0.1
"""How long text waits at most, so that it is written with that of other runs."""
_LONGEST_PAUSE = 2.0
"""Seconds between two attempts while the store fails, at most."""

_logger = logging.getLogger(__name__)


class Teller:
    """Stores the text of this process's runs, and then has it told. What cannot be stored is tried again.

    A run that writes by itself takes its text along: it is left out, and so is one whose thread somebody has locked.
    """

    def __init__(self, store: Driver) -> None:
        self._store = store
        self._waiting: set[EventStream] = set()
        self._work: asyncio.Task[None] | None = None

    def want(self, stream: EventStream) -> None:
        """A run has text that is not stored."""
        self._waiting.add(stream)
        if self._work is None or self._work.done():
            self._work = asyncio.get_running_loop().create_task(self._write_all(), name="teller")

    async def close(self) -> None:
        """End the background work. Each run that has ended has stored its text."""
        if self._work is not None:
            self._work.cancel()
            with suppress(asyncio.CancelledError):
                await self._work

    async def _write_all(self) -> None:
        """Write while any run has text."""
        pause = TICK_SECONDS
        while self._waiting:
            await asyncio.sleep(pause)
            self._waiting = {stream for stream in self._waiting if stream.has_text}
            try:
                await self._write([stream for stream in self._waiting if not stream.is_writing])
                pause = TICK_SECONDS
            except StoreError as error:
                pause = min(2 * pause, _LONGEST_PAUSE)
                _logger.warning("The text of %d runs waits: it could not be stored: %s", len(self._waiting), error)

    async def _write(self, streams: Sequence[EventStream]) -> None:
        """Store the text of runs whose lease is held, and tell it."""
        if not streams:
            return
        paused: list[EventStream] = []
        try:
            for stream in streams:
                await stream.pause()
                paused.append(stream)
            async with self._store.writing() as tx:
                ours = await runs.check_all(tx, [stream.lease for stream in streams])
                held = [stream for stream in streams if stream.lease.run_id in ours]
                await runs.save_texts(tx, [text for stream in held for text in stream.texts()])
            for stream in held:
                stream.tell_texts()
        finally:
            for stream in paused:
                stream.go_on()
