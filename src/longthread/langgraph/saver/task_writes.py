"""Tasks' writes: stored before their step is over, or with the next checkpoint, in its transaction."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass

from langgraph.checkpoint.serde.base import SerializerProtocol

from longthread.errors import ThreadConflict, ValueDamaged
from longthread.langgraph.internals import INTERRUPT, NULL_TASK_ID, WHOLE_VALUES, DeltaSnapshot
from longthread.langgraph.saver import inflight
from longthread.langgraph.saver.inflight import LastPut, Puts
from longthread.langgraph.saver.load import load_value
from longthread.langgraph.saver.put_request import WritesRequest
from longthread.langgraph.saver.record import TASK_BYTES, StoredCheckpoint, TaskWrites
from longthread.langgraph.saver.thread_cache import CachedThread
from longthread.loop_bridge import to_the_end, until_done
from longthread.store import checkpoints
from longthread.store.checkpoints import NewestCheckpoint, PutPlace
from longthread.store.driver import Transaction
from longthread.store.rows import Decoding

_UPDATE = f"~{INTERRUPT}"
"""What the path of a task begins with that an update of the state from outside stands for."""
Key = tuple[str, str, str | None]
"""A thread, a namespace, and the checkpoint whose tasks have written."""
TOGETHER = 64
"""So many tasks' writes are stored in one transaction."""
PUTS = 3
"""Writes wait for so many puts at most: other branches of the namespace may be put to without end."""


@dataclass(frozen=True, slots=True)
class WritesPut:
    """One put of tasks' writes, within its transaction.

    `goes_on`: the run continues the newest checkpoint and replays no older one: another writer of the same task is then
    its rival. `seen` are the channels whose task writes here the run knows.
    """

    tx: Transaction
    place: PutPlace
    memory: CachedThread
    serde: SerializerProtocol
    ns: str
    checkpoint_id: str
    goes_on: bool
    seen: frozenset[str] = frozenset()

    async def put(self, tasks: Sequence[TaskWrites]) -> Callable[[], None]:
        """Store them, and return the cache update for after the commit; ThreadConflict if a rival was faster."""
        grown = await self._grow_checkpoint(tasks)
        body = grown.body(passing=True) if grown is not None else b""
        if grown is None or len(body) > TASK_BYTES or self.place.head is None:
            return await self._put_in_rows(tasks)
        thread_id = self.place.thread.id
        await checkpoints.update_body(self.tx, thread_id, self.ns, self.place.head, body, grown.writes)
        return lambda: self.memory.newest.put(self.ns, grown)

    async def _grow_checkpoint(self, tasks: Sequence[TaskWrites]) -> StoredCheckpoint | None:
        """Return the checkpoint with the tasks in its body, if this process put it and knows all of it."""
        grown = None if self.place.tasks else self._newest()
        for task in tasks:
            if grown is None:
                return None
            there = grown.tasks.get(task.id)
            rest = await self._rest(there, task)
            if rest is not None and there is not None and there.is_replaced_by(rest):
                return None  # into a row: the cache compares bodies by their number of writes
            grown = grown.with_task(rest) if rest is not None else grown
        return grown

    async def _put_in_rows(self, tasks: Sequence[TaskWrites]) -> Callable[[], None]:
        thread_id, ns, name = self.place.thread.id, self.ns, (self.ns, self.checkpoint_id)
        asked = [task.id for task in tasks] if self.place.tasks else []
        rows = await checkpoints.writes_of_tasks(self.tx, thread_id, ns, self.checkpoint_id, asked)
        stored: list[TaskWrites] = []
        for task in tasks:
            there = TaskWrites.from_row(rows[task.id], thread_id) if task.id in rows else None
            rest = await self._rest(await self._merge_writes(task.id, there), task)
            if rest is None:
                continue
            if there is None:
                await checkpoints.put_writes(self.tx, thread_id, rest.row(ns, self.checkpoint_id))
                stored.append(rest)
            else:
                there.merge(rest)
                await checkpoints.replace_writes(self.tx, thread_id, there.row(ns, self.checkpoint_id))
                stored.append(there)
        return lambda: self.memory.keep_tasks(name, stored)

    def _newest(self) -> StoredCheckpoint | None:
        """Return the checkpoint, if it is the newest, and this process put it and knows its whole body."""
        newest, head = self.memory.newest.get(self.ns), self.place.head
        if (
            newest is None
            or newest.id != self.checkpoint_id
            or NewestCheckpoint(newest.n, newest.id, newest.writes) != head
        ):
            return None
        return newest

    async def _merge_writes(self, task_id: str, in_row: TaskWrites | None) -> TaskWrites | None:
        head = self.place.head
        if head is None or head.id != self.checkpoint_id or not head.writes:
            return in_row
        stored = self._newest()
        if stored is None:
            row = await checkpoints.find(self.tx, self.place.thread.id, self.ns, head.id)
            stored = StoredCheckpoint.from_row(row, self.serde) if row is not None else None
        taken_in = stored.tasks.get(task_id) if stored is not None else None
        if taken_in is None or in_row is None:
            return taken_in or in_row
        merged = TaskWrites(taken_in.id, taken_in.path, dict(taken_in.items))
        merged.merge(in_row)
        return merged

    async def _rest(self, there: TaskWrites | None, task: TaskWrites) -> TaskWrites | None:
        """Return what to write, without values that the next checkpoint holds; ThreadConflict if a rival wrote here."""
        # A command's writes without a task are handed in again with its new ones.
        if not self.goes_on or task.id == NULL_TASK_ID or there is None:
            return task
        with Decoding(self.place.thread.id, "what a task has written to checkpoint", self.checkpoint_id, ValueDamaged):
            contradicted = there.find_contradictions(task, self.serde)
        if not contradicted:
            return task
        written = there.channels(contradicted)
        if task.path.startswith(_UPDATE):
            if not await self._are_made_of_writes(written | task.channels(contradicted)):
                return task
            # Two that also write the same channels are rivals, wherever those are stored.
            if self._knows_of(written | (there.channels() & task.channels())):
                return task.besides(there, contradicted, self.seen)
        raise ThreadConflict(thread=self.place.thread.id)

    def _knows_of(self, written: set[str]) -> bool:
        """Whether an update of the newest state saw the writes that it contradicts.

        They are of a finished task or of a failed update. LangGraph puts the whole value of each channel that it saw
        written into the update's own checkpoint. If the earlier update is only late, its checkpoint is refused.
        """
        is_newest = self.place.head is not None and self.place.head.id == self.checkpoint_id
        return WHOLE_VALUES and is_newest and written <= self.seen

    async def _are_made_of_writes(self, channels: set[str]) -> bool:
        """Whether the next checkpoint may need one of these channels' writes, and not hold its value.

        If not, its checkpoint distinguishes an update from a rival's. The writes may be of a failed update: LangGraph
        hands in what an update writes before it is applied.
        """
        row = await checkpoints.find(self.tx, self.place.thread.id, self.ns, self.checkpoint_id)
        stored = StoredCheckpoint.from_row(row, self.serde) if row is not None else None
        if row is None or stored is None or not channels <= stored.cells.keys():
            return True
        cells = [await load_value(self.tx, row, channel, stored.cells[channel]) for channel in channels]
        with Decoding(row.thread_id, "checkpoint", row.id, ValueDamaged):
            return any(isinstance(self.serde.loads_typed((cell.kind, cell.body)), DeltaSnapshot) for cell in cells)


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
    was interrupted) they wait for the thread's lock, and the first holder of the lock stores the writes of all that
    wait: many tasks of one step end at once.
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

        Return whether they are: if not, the put or task that took them could not store them. Raises the error of
        storing them.
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
        """Wait as long as LangGraph takes to hand in the checkpoint after these writes, if only a put has to end."""
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
