"""Task writes that wait for the transaction of the next checkpoint."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress

from longthread.langgraph.saver import inflight
from longthread.langgraph.saver.inflight import LastPut, Puts
from longthread.langgraph.saver.put_request import WritesRequest
from longthread.loop_bridge import until_done
from longthread.store.completion import to_the_end

Key = tuple[str, str, str | None]
"""A thread, a namespace, and the checkpoint whose tasks have written."""
TOGETHER = 64
"""So many tasks' writes are stored in one transaction."""
PUTS = 3
"""Writes wait for so many puts at most: other branches of the namespace may be put to without end."""


class Pending:
    """One task's writes, while a put may take them along."""

    def __init__(self, given: WritesRequest) -> None:
        self.given = given
        self.ended: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        """Its result tells whether they were stored."""

    def settle(self, *, stored: bool) -> None:
        with suppress(asyncio.InvalidStateError):
            self.ended.set_result(stored)

    def refuse(self, error: Exception) -> None:
        self.ended.set_exception(error)


class PendingWrites:
    """Writes that were handed in and are not being stored yet.

    LangGraph hands in a task's writes and the next checkpoint in the same turn of the event loop, each in a task of the
    loop's own. So writes wait for the end of the turn, and one transaction stores both. If the checkpoint that they
    were written on is still being put, or waits for the put of an earlier one, they wait too: without it they are of no
    use, and LangGraph hands in the next one when it is stored. Without a checkpoint (another task still runs, or one
    was interrupted) they wait for the thread's lock, and whoever has it first stores the writes of all that wait: many
    tasks of one step end at once.
    """

    def __init__(self, of_saver: Puts) -> None:
        # Ordered sets: where many tasks end at once, each is looked for.
        self._waiting: dict[Key, dict[Pending, None]] = {}
        self._puts = of_saver

    async def are_stored(
        self,
        key: Key,
        given: WritesRequest,
        lock: asyncio.Lock,
        store: Callable[[Sequence[Pending]], Awaitable[None]],
    ) -> bool:
        """Wait until the writes are stored: by a put that takes them, or with others by `store`, which settles them.

        Returns whether they are: if not, whoever took them could not store them. Raises the error of storing them.
        """
        pending = Pending(given)
        self._waiting.setdefault(key, {})[pending] = None
        stored = False
        try:
            await self._for_a_put(key, pending)
            if pending in self._waiting.get(key, ()):
                async with lock:
                    if batch := self._batch(key, pending):
                        await store(batch)
        finally:
            if not self._is_withdrawn(key, pending):
                stored = await to_the_end(pending.ended)
        return stored

    async def _for_a_put(self, key: Key, pending: Pending) -> None:
        """Wait as long as LangGraph takes to hand in the checkpoint behind these writes, if only a put has to end."""
        put = self._put_before(key)
        await asyncio.sleep(0)
        put = put or self._put_before(key)  # a short one is over by now
        for _ in range(PUTS):
            if put is None or pending.ended.done() or pending.given.task.ends_run:
                return
            await until_done(put.ended)
            await until_done(pending.ended, inflight.NEXT_SECONDS)
            put = self._put_before(key)

    def _put_before(self, key: Key) -> LastPut | None:
        last = self._puts.last((key[0], key[1]))
        return last if last is not None and last.is_before(key[2]) else None

    def take(self, key: Key) -> list[Pending]:
        """Remove and return the writes that wait for a checkpoint's child. The caller settles them."""
        return list(self._waiting.pop(key, ()))

    def _batch(self, key: Key, pending: Pending) -> list[Pending]:
        """Remove and return these writes, with those of other tasks; nothing if they do not wait any more."""
        waiting = self._waiting.get(key, {})
        if pending not in waiting:
            return []
        tasks, batch = {pending.given.task.id}, [pending]
        for each in waiting:
            task_id = each.given.task.id
            if task_id not in tasks:
                tasks.add(task_id)
                batch.append(each)
            if len(batch) == TOGETHER:
                break
        for each in batch:
            self._remove(key, each)
        return batch

    def _is_withdrawn(self, key: Key, pending: Pending) -> bool:
        if pending not in self._waiting.get(key, ()):
            return False
        self._remove(key, pending)
        return True

    def _remove(self, key: Key, pending: Pending) -> None:
        waiting = self._waiting[key]
        del waiting[pending]
        if not waiting:
            del self._waiting[key]
