"""Stores tasks' writes before their step is over."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from langgraph.checkpoint.serde.base import SerializerProtocol

from longthread.errors import ThreadConflict, ValueDamaged
from longthread.langgraph.internals import INTERRUPT, NULL_TASK_ID, WHOLE_VALUES, DeltaSnapshot
from longthread.langgraph.saver.load import filled
from longthread.langgraph.saver.record import TASK_BYTES, StoredCheckpoint, TaskWrites
from longthread.langgraph.saver.thread_cache import CachedThread
from longthread.store import checkpoints
from longthread.store.checkpoints import NewestCheckpoint, PutPlace
from longthread.store.decoding import Decoding
from longthread.store.driver import Transaction

_UPDATE = f"~{INTERRUPT}"
"""What the path of a task begins with that an update of the state from outside stands for."""


@dataclass(frozen=True, slots=True)
class WritesPut:
    """One put of tasks' writes, within its transaction.

    `goes_on`: the run continues the newest checkpoint and replays no older one: another writer of the same task is then
    its rival. `seen` are the channels of which the run knows task writes here.
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
        grown = await self._grown(tasks)
        body = grown.body(passing=True) if grown is not None else b""
        if grown is None or len(body) > TASK_BYTES or self.place.head is None:
            return await self._put_in_rows(tasks)
        thread_id = self.place.thread.id
        await checkpoints.update_body(self.tx, thread_id, self.ns, self.place.head, body, grown.writes)
        return lambda: self.memory.newest.put(self.ns, grown)

    async def _grown(self, tasks: Sequence[TaskWrites]) -> StoredCheckpoint | None:
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
            rest = await self._rest(await self._merged(task.id, there), task)
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

    async def _merged(self, task_id: str, in_row: TaskWrites | None) -> TaskWrites | None:
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
            contradicted = there.contradicted(task, self.serde)
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

        If not, an update is told from a rival's by its checkpoint. The writes may be of a failed update: LangGraph
        hands in what an update writes before it is applied.
        """
        row = await checkpoints.find(self.tx, self.place.thread.id, self.ns, self.checkpoint_id)
        stored = StoredCheckpoint.from_row(row, self.serde) if row is not None else None
        if row is None or stored is None or not channels <= stored.cells.keys():
            return True
        cells = [await filled(self.tx, row, channel, stored.cells[channel]) for channel in channels]
        with Decoding(row.thread_id, "checkpoint", row.id, ValueDamaged):
            return any(isinstance(self.serde.loads_typed((cell.kind, cell.body)), DeltaSnapshot) for cell in cells)
