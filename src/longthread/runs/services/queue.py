"""The questions that wait on a user's threads."""

from __future__ import annotations

from longthread.errors import QuestionNotFound
from longthread.runs.services.shared import RunServices
from longthread.store import log
from longthread.store.questions import queue
from longthread.store.questions.queue import QueuedQuestion


class Queue:
    """Lists and removes queued questions, and finds the runs that they become. `Runs.submit` adds them."""

    def __init__(self, services: RunServices) -> None:
        self._store = services.store
        self._hub = services.hub

    async def of_thread(self, thread_id: str, *, user_id: str) -> list[QueuedQuestion]:
        """Return the questions that wait on a thread, the next one first.

        Raises:
            ThreadNotFound: there is no such thread, or it is another user's.
        """
        async with self._store.reading() as tx:
            await log.find_row(tx, thread_id, user_id=user_id)
            return await queue.of_thread(tx, thread_id)

    async def find(self, thread_id: str, question_id: str, *, user_id: str) -> QueuedQuestion | str:
        """Return a question while it waits, then the id of the run that it has become.

        Raises:
            QuestionNotFound: it was removed, or there never was one.
            ThreadNotFound: there is no such thread, or it is another user's.
        """
        async with self._store.reading() as tx:
            await log.find_row(tx, thread_id, user_id=user_id)
            found = await queue.find(tx, thread_id, question_id) or await queue.run_of(tx, thread_id, question_id)
        if found is None:
            raise QuestionNotFound(thread=thread_id, question=question_id)
        return found

    async def remove(self, thread_id: str, question_id: str, *, user_id: str) -> None:
        """Delete a question that waits: it is never asked, also if its client sends it again under its key.

        Raises:
            QuestionNotFound: it does not wait (any more).
            ThreadNotFound: there is no such thread, or it is another user's.
        """
        async with self._store.writing() as tx:
            await log.position(tx, thread_id)
            await log.find_row(tx, thread_id, user_id=user_id)
            if not await queue.remove(tx, thread_id, question_id):
                raise QuestionNotFound(thread=thread_id, question=question_id)
        self._hub.question_changed(question_id)
        self._hub.list_changed(user_id)

    async def clear(self, thread_id: str, *, user_id: str) -> None:
        """Delete all questions that wait on a thread.

        Raises:
            ThreadNotFound: there is no such thread, or it is another user's.
        """
        async with self._store.writing() as tx:
            await log.position(tx, thread_id)
            await log.find_row(tx, thread_id, user_id=user_id)
            found = await queue.of_thread(tx, thread_id)
            for each in found:
                await queue.remove(tx, thread_id, each.id)
        for each in found:
            self._hub.question_changed(each.id)
