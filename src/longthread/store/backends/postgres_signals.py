"""Signals between the processes that share a PostgreSQL database, by LISTEN and NOTIFY."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any

import psycopg
from psycopg import AsyncConnection

from longthread.errors import StoreError
from longthread.model.ids import new_id
from longthread.store.backends.postgres_transaction import reason_of
from longthread.store.driver import Transaction

CHANNEL = "longthread"
PAYLOAD_BYTES = 7_900
"""Of one notification; PostgreSQL takes fewer than 8,000."""
TEST_SECONDS = 5.0
"""How long a listener waits to hear itself."""
RECONNECT_SECONDS = 1.0
"""Between two attempts to listen."""
_DEAF_SECONDS = 60.0
"""Between two attempts where notifications do not arrive, as through a pooler in transaction mode."""

_logger = logging.getLogger(__name__)


class PostgresSignals:
    """One connection listens; a notification is one statement on another.

    NOTIFY takes a lock of the whole database at commit: words are collected, and sent in few transactions of their own.
    """

    def __init__(self, conninfo: str, alone: Callable[[], AbstractAsyncContextManager[Transaction]]) -> None:
        self._conninfo = conninfo
        self._alone = alone

    async def send(self, words: Sequence[str]) -> None:
        async with self._alone() as tx:
            await tx.fetch("notify", channel=CHANNEL, payloads=json.dumps(list(_pack_words(words))))

    async def listen(self, heard: Callable[[Sequence[str]], None], connected: Callable[[bool], None]) -> None:
        while True:
            pause = RECONNECT_SECONDS
            try:
                async with self._listening() as connection:
                    if await self._hears(connection):
                        connected(True)
                        async for note in connection.notifies():
                            heard(note.payload.split())
                    else:
                        pause = _DEAF_SECONDS
                        _logger.info("No notification of the database arrives: other processes are looked at instead.")
            except (psycopg.Error, OSError, StoreError) as error:
                _logger.warning("The database's notifications are cut off; trying again: %s", reason_of(error))
            connected(False)
            await asyncio.sleep(pause)

    @asynccontextmanager
    async def _listening(self) -> AsyncIterator[AsyncConnection[Any]]:
        connection = await AsyncConnection.connect(self._conninfo, autocommit=True, prepare_threshold=None)
        try:
            await connection.execute(f"LISTEN {CHANNEL}")
            yield connection
        finally:
            await connection.close()

    async def _hears(self, connection: AsyncConnection[Any]) -> bool:
        """Whether what is sent to this connection's channel arrives."""
        word = new_id()
        await self.send([word])
        async for note in connection.notifies(timeout=TEST_SECONDS):
            if word in note.payload.split():
                return True
        return False


def _pack_words(words: Sequence[str]) -> Iterator[str]:
    """Yield the words in as few payloads as there must be."""
    payload: list[str] = []
    size = 0
    for word in words:
        own = len(word.encode()) + 1
        if payload and size + own > PAYLOAD_BYTES:
            yield " ".join(payload)
            payload, size = [], 0
        payload.append(word)
        size += own
    if payload:
        yield " ".join(payload)
