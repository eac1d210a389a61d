"""A queued question's stream: comments while it waits, then the events of its run."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import suppress

from ag_ui.core import CustomEvent

from longthread.errors import QuestionNotFound, ThreadNotFound
from longthread.server.events import REMOVED
from longthread.server.state import Served
from longthread.server.stream import HEARTBEAT_SECONDS, RETRY_MS, Position, RunStream, frame
from longthread.store import runs
from longthread.store.questions.queue import QueuedQuestion

LOOK_SECONDS = 1.0
"""How often a question is looked at, where other processes signal no changes."""


class QueuedStream:
    """One client's stream of a question, to the end of its run. It ends early when the question is removed, and when
    the server closes."""

    def __init__(self, served: Served, question: QueuedQuestion, *, user: str, read: Position) -> None:
        self._served = served
        self._question = question
        self._user = user
        self._read = read

    async def __aiter__(self) -> AsyncIterator[str]:
        served, thread_id, question_id = self._served, self._question.thread_id, self._question.id
        yield f"retry: {RETRY_MS}\n\n"
        changes = served.analyst.hub.question_changes(question_id)
        while not served.closing.is_set():
            bell = changes.bell  # what changes from here on rings it
            try:
                found = await served.analyst.queue.find(thread_id, question_id, user_id=self._user)
            except (QuestionNotFound, ThreadNotFound):
                yield frame(CustomEvent(name=REMOVED, value={"queued_id": question_id}).model_dump_json(by_alias=True))
                return
            if isinstance(found, str):
                async for part in self._run(found):
                    yield part
                return
            yield f": {found.position}\n\n"
            with suppress(TimeoutError):
                async with asyncio.timeout(HEARTBEAT_SECONDS if served.analyst.hub.hears else LOOK_SECONDS):
                    await bell.wait()

    async def _run(self, run_id: str) -> AsyncIterator[str]:
        served = self._served
        async with served.analyst.store.reading() as tx:
            run = await runs.find_run(tx, self._question.thread_id, run_id)
        if run is not None:  # it may be deleted by now
            async for part in aiter(
                RunStream(served.analyst.hub, served.encoders, run, read=self._read, closing=served.closing)
            ):
                yield part
