"""Stores a checkpoint: its lists of messages in the log, its other values in cells."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from langchain_core.messages import BaseMessage
from langgraph.checkpoint.serde.base import SerializerProtocol

from longthread.errors import NotAsExpected
from longthread.langgraph.saver.channel_values import ChannelValue, InlineMessage, cell_of, cell_of_runs
from longthread.langgraph.saver.delta import DeltaList, DeltaLists
from longthread.langgraph.saver.load import branch_messages, list_of, load_value, messages_at, since
from longthread.langgraph.saver.message_list import Alignment, CachedMessage, MessageList
from longthread.langgraph.saver.placement import ListPlacement, LogGrowth, PlacedList
from longthread.langgraph.saver.put_request import PutRequest
from longthread.langgraph.saver.record import StoredCheckpoint, TaskWrites, blob_of, is_large, stub
from longthread.langgraph.saver.thread_cache import CONVERSATION, CachedThread, CheckpointName
from longthread.messages.fields import alike
from longthread.store import checkpoints
from longthread.store.checkpoints import CheckpointRow, NewestCheckpoint, PutPlace
from longthread.store.driver import CHANGED


@dataclass(slots=True)
class CheckpointPut:
    """One put within its transaction. Call `remember` after the commit: nothing is cached before."""

    growth: LogGrowth
    memory: CachedThread
    serde: SerializerProtocol
    ns: str
    place: PutPlace
    tasks: Sequence[TaskWrites] = ()
    """What tasks of the checkpoint that this one goes on from have written, to be stored with it."""
    placed: dict[CheckpointName, tuple[MessageList | None, PlacedList]] = field(default_factory=dict)
    given: dict[CheckpointName, tuple[list[BaseMessage], int]] = field(default_factory=dict)
    """Lists that were handed over whole, and how often the known list had been doubted when they were compared."""
    unwritten: list[tuple[CheckpointName, str]] = field(default_factory=list)
    """Delta channels that have the same messages as at their checkpoint's parent, each with the parent's id."""
    ids: dict[int, str] = field(default_factory=dict)
    """The ids of a snapshot's messages that had none, by `id()`."""
    stored: StoredCheckpoint | None = None
    parent_n: int | None = None
    goes_on: bool = False
    """Whether the checkpoint goes on from the newest one."""
    _rows: list[TaskWrites] | None = None

    async def put(self, given: PutRequest) -> None:
        """Store the checkpoint and its new entries; ThreadConflict if another writer extended the conversation."""
        parent_id = given.parent_id
        base = await self._parent(parent_id)
        self.goes_on = self.head is not None and self.head.id == parent_id
        number = 1 if self.head is None else self.head.n + (self.head.id != given.id)
        await self._place_lists(given, base)
        await self._place_delta_lists(given, base, number)
        settled = await self._settle_parent(parent_id)
        cells = self._cells(given, settled.stored if settled is not None else base, number)
        stored = StoredCheckpoint(number, given.id, given.slim, given.versions, cells)
        await self.growth.flush()
        thread_id = self.growth.thread.id
        body = stored.body(passing=True)  # The next put adds what the tasks write. A run's last one stays as it is.
        row = CheckpointRow(thread_id, self.ns, number, stored.id, parent_id, given.metadata, body)
        if self.place.there is None:
            await checkpoints.put(self.growth.tx, row, self.parent_n)
        else:
            await self._put_again(stored, row, self.place.there)
        await checkpoints.put_blobs(self.growth.tx, thread_id, self.ns, stored.n, _blobs(stored, stored.cells))
        if settled is not None:
            await self._store_settled(settled)
        self.stored = stored

    @property
    def head(self) -> NewestCheckpoint | None:
        return self.place.head

    def remember(self) -> None:
        self.memory.thread, self.memory.incarnation = self.growth.thread, self.growth.thread.incarnation
        for name, (base, placed) in self.placed.items():
            current = self.memory.lists.get(name)
            kept = placed.keep(current if current is base else None)
            given, doubts = self.given.get(name, ((), 0))
            # Of a list that was not known, nothing tells whether it has changed since.
            is_as_compared = base is not None and base.doubts == doubts
            kept.hold(given if is_as_compared else ())
            self.memory.lists.put(name, kept)
        if self.head is not None:
            self.memory.tasks.pop((self.ns, self.head.id))
        stored = self.stored
        if stored is not None:
            self._remember_delta(stored.id)
            for channel, cell in stored.cells.items():
                if cell.stored_by is not None and not cell.has_inline:
                    stored.cells[channel] = stub(cell.stored_by)
            self.memory.newest.put(self.ns, stored)

    def _remember_delta(self, checkpoint_id: str) -> None:
        for name, parent_id in self.unwritten:
            if (kept := self.memory.delta_list(name, parent_id)) is not None:
                self.memory.delta.put(name, (checkpoint_id, kept, len(kept)))
        for name in self.placed.keys() - self.given.keys():
            if (kept := self.memory.lists.get(name)) is not None:
                self.memory.delta.put(name, (checkpoint_id, kept, len(kept)))

    async def _parent(self, parent_id: str | None) -> StoredCheckpoint | None:
        parent = self._newest(parent_id)
        if parent is None and parent_id is not None:
            row = await checkpoints.find(self.growth.tx, self.growth.thread.id, self.ns, parent_id)
            parent = StoredCheckpoint.from_row(row, self.serde) if row is not None else None
        self.parent_n = parent.n if parent is not None else None
        return parent

    def _newest(self, parent_id: str | None) -> StoredCheckpoint | None:
        """Return the parent, if it is the newest and this process put it."""
        newest, head = self.memory.newest.get(self.ns), self.head
        if newest is None or head is None:
            return None
        return newest if (newest.n, newest.id, newest.id) == (head.n, head.id, parent_id) else None

    async def _place_lists(self, given: PutRequest, parent: StoredCheckpoint | None) -> None:
        lists = given.lists
        # The conversation goes first: other channels then refer to its entries.
        for name in sorted(((self.ns, channel) for channel in lists), key=lambda name: name != CONVERSATION):
            messages, leads = lists[name[1]], name == CONVERSATION
            kept = self.memory.lists.get(name)
            known = kept if kept is not None or leads else self.memory.lists.get(CONVERSATION)
            doubts = kept.doubts if kept is not None else 0
            there = await self._align_list(known, messages, name[1], parent)
            if all(message.id for message in messages[there.count :]):
                self.given[name] = messages, doubts
                placing = ListPlacement(self.growth, there.known, leads, self.goes_on)
                self.placed[name] = kept, await placing.place(messages, there, messages[there.count :])

    async def _align_list(
        self, known: MessageList | None, messages: Sequence[BaseMessage], channel: str, parent: StoredCheckpoint | None
    ) -> Alignment:
        """Compare a list with the known one or, if that may be another checkpoint's, with the parent's."""
        there = Alignment.of(known, messages) if known is not None else None
        if there is not None and (there.is_whole or parent is None or parent is self._newest(parent.id)):
            return there
        before = await self._before(known, channel, parent)
        if there is None and before is None:
            thread = self.growth.thread
            before = await branch_messages(self.growth.tx, thread.id, thread.tip, len(messages), self.serde)
        return (
            there if there is not None and before in (None, known) else Alignment.of(before or MessageList(), messages)
        )

    async def _before(
        self, known: MessageList | None, channel: str, parent: StoredCheckpoint | None
    ) -> MessageList | None:
        """Return the parent's list: of the known one as much as is the same; None if it has none."""
        cell, thread = parent.cells.get(channel) if parent is not None else None, self.growth.thread
        if parent is None or cell is None:
            return None
        row = CheckpointRow(thread.id, self.ns, parent.n, parent.id, None, "", b"")
        runs = since(list_of(await load_value(self.growth.tx, row, channel, cell)) or (), thread.first_seq)
        if not runs:
            return None
        count = known.starts_with(runs) if known is not None else None
        if known is None or count is None:
            return await messages_at(self.growth.tx, thread.id, runs, self.serde)
        return known if count == len(known) else known.first(count)

    async def _place_delta_lists(self, given: PutRequest, parent: StoredCheckpoint | None, number: int) -> None:
        thread_id = self.growth.thread.id
        delta = DeltaLists(self.growth.tx, self.memory, self.serde, thread_id, self.ns, self.ids)
        lists, open_ = delta.snapshots(given), delta.list_channels(given)
        if parent is not None and open_:
            tasks = await self._written_on(parent)
            row = CheckpointRow(thread_id, self.ns, number, given.id, parent.id, "", b"")
            lists |= await delta.after(row, open_, tasks)
            written = {channel for task in tasks for channel in task.channels()}
            self.unwritten = [((self.ns, channel), parent.id) for channel in open_ if channel not in written]
        for channel in sorted(lists, key=lambda channel: (self.ns, channel) != CONVERSATION):
            await self._place_delta_list((self.ns, channel), lists[channel])

    async def _place_delta_list(self, name: CheckpointName, found: DeltaList) -> None:
        kept = self.memory.lists.get(name)
        known = found.known if found.known is not None else kept
        if known is None:
            thread = self.growth.thread
            known = await branch_messages(self.growth.tx, thread.id, thread.tip, len(found.rest), self.serde)
        there = Alignment.of(known, found.rest) if found.known is None else Alignment.whole(known)
        rest = found.rest[there.count :] if found.known is None else found.rest
        placing = ListPlacement(self.growth, known, name == CONVERSATION, self.goes_on)
        base = found.known if found.known is not None else kept
        self.placed[name] = base, await placing.place(found.rest, there, rest)

    async def _written_on(self, parent: StoredCheckpoint) -> list[TaskWrites]:
        """Return what all tasks of the parent have written."""
        tasks: dict[str, TaskWrites] = {}
        for task in (*(await self._body_of(parent)).tasks.values(), *await self._tasks(parent), *self.tasks):
            there = tasks.get(task.id)
            tasks[task.id] = task
            if there is not None:
                tasks[task.id] = TaskWrites(task.id, task.path, dict(there.items))
                tasks[task.id].merge(task)
        return list(tasks.values())

    async def _body_of(self, parent: StoredCheckpoint) -> StoredCheckpoint:
        """Return the parent with the tasks that its body has now: another process may have stored some there."""
        if self.head is None or self.head.id != parent.id or self.head.writes == parent.writes:
            return parent
        row = await checkpoints.find(self.growth.tx, self.growth.thread.id, self.ns, parent.id)
        return StoredCheckpoint.from_row(row, self.serde) if row is not None else parent

    def _cells(self, given: PutRequest, parent: StoredCheckpoint | None, number: int) -> dict[str, ChannelValue]:
        """Build the checkpoint's values; unchanged ones are the parent's."""
        cells = dict[str, ChannelValue]()
        for channel in {**given.versions, **given.values}:
            cell = parent.cells.get(channel) if parent is not None and channel not in given.new else None
            if parent is not None and cell is not None and parent.versions.get(channel) == given.versions.get(channel):
                in_body = cell.stored_by is None and is_large(cell)  # as of a checkpoint that was put again
                cells[channel] = replace(cell, stored_by=number) if in_body else cell
            elif channel in given.values:
                cells[channel] = self._cell(given, channel)
                if is_large(cells[channel]):
                    cells[channel].stored_by = number
        return cells

    def _cell(self, given: PutRequest, channel: str) -> ChannelValue:
        if placed := self.placed.get((self.ns, channel)):
            return cell_of_runs(placed[1].runs, self.serde)
        if channel in given.cells:
            cell = given.cells[channel].settle(self._seq_of)
            return ChannelValue(cell.kind, cell.body, cell.hole, cell.stored_by)
        value = given.lists.get(channel, given.values[channel])
        return cell_of(value, self.serde, self.memory.finder(self.growth.new))

    async def _put_again(self, stored: StoredCheckpoint, row: CheckpointRow, n: int) -> None:
        """Replace a checkpoint that was stored before. Its tasks' later writes stay.

        Its values go into its body: later checkpoints may refer to the values that it stored separately. References to
        earlier checkpoints' values stay references.
        """
        for channel, cell in stored.cells.items():
            if cell.stored_by is not None and cell.stored_by >= n:
                is_stub = cell == stub(cell.stored_by)  # of itself, or of a later one that it goes on from now
                whole = await load_value(self.growth.tx, row, channel, cell) if is_stub else cell
                stored.cells[channel] = replace(whole, stored_by=None)
        stored.n = n
        await self._take_out_tasks(row)
        await checkpoints.replace_checkpoint(self.growth.tx, replace(row, n=n, body=stored.body()), self.parent_n)
        self.growth.thread = await checkpoints.renew(self.growth.tx, self.growth.thread)

    async def _take_out_tasks(self, row: CheckpointRow) -> None:
        """Move the tasks in a checkpoint's body back to rows: its new body has none."""
        tx, thread_id, at = self.growth.tx, row.thread_id, (row.ns, row.id)
        there = await checkpoints.find(tx, thread_id, *at)
        in_body = StoredCheckpoint.from_row(there, self.serde).tasks if there is not None else {}
        in_rows = {each.task_id: each for each in await checkpoints.writes(tx, thread_id, *at)} if in_body else {}
        for task in in_body.values():
            if task.id in in_rows:
                task.merge(TaskWrites.from_row(in_rows[task.id], thread_id))
            store = checkpoints.replace_writes if task.id in in_rows else checkpoints.put_writes
            await store(tx, thread_id, task.row(*at))

    async def _settle_parent(self, parent_id: str | None) -> _Settled | None:
        """Return the parent with its tasks' writes and with references to new entries.
        Only if this process put it and nothing else continues from it."""
        parent, head = self._newest(parent_id), self.head
        if parent is None or head is None or head.writes != parent.writes or self._has_more_of(parent):
            if self.tasks:
                raise NotAsExpected(reason=CHANGED)
            return None
        taken = await self._tasks(parent)
        stored = parent.settle(self._seq_of)
        if stored is parent and not taken and not self.tasks:
            return None
        for task in (*taken, *self.tasks):
            stored = stored.with_task(task.settle(self._seq_of))
        changed = {name: cell for name, cell in stored.cells.items() if cell is not parent.cells[name]}
        apart = {name: cell for name, cell in changed.items() if cell.stored_by is not None}
        inline = {name: replace(cell, stored_by=None) for name, cell in apart.items() if not is_large(cell)}
        if inline:
            stored = replace(stored, cells=stored.cells | inline)
        large = {name: cell for name, cell in apart.items() if name not in inline}
        return _Settled(stored, [task.id for task in taken], list(inline), large)

    def _has_more_of(self, parent: StoredCheckpoint) -> bool:
        """Whether a task has written before; further writes of it are checked when stored alone."""
        return len({*parent.tasks, *(task.id for task in self.tasks)}) < len(parent.tasks) + len(self.tasks)

    async def _store_settled(self, settled: _Settled) -> None:
        tx, thread_id, stored, head = self.growth.tx, self.growth.thread.id, settled.stored, self.head
        assert head is not None  # it is the parent
        await checkpoints.update_body(tx, thread_id, self.ns, head, stored.body(), stored.writes)
        await checkpoints.delete_tasks(tx, thread_id, self.ns, stored.id, settled.taken)
        await checkpoints.delete_blobs(tx, thread_id, self.ns, stored.n, settled.inline)
        await checkpoints.put_blobs(tx, thread_id, self.ns, stored.n, _blobs(stored, settled.large))

    async def _tasks(self, parent: StoredCheckpoint) -> list[TaskWrites]:
        """Return the rows of the parent's tasks, by any process; the cached one where it is equal, for its messages."""
        if not self.place.tasks:
            return []
        if self._rows is not None:
            return self._rows
        known = self.memory.tasks.get((self.ns, parent.id)) or {}
        rows = await checkpoints.writes(self.growth.tx, self.growth.thread.id, self.ns, parent.id)
        self._rows = [
            known[row.task_id]
            if row.task_id in known and known[row.task_id].row(self.ns, parent.id) == row
            else TaskWrites.from_row(row, self.growth.thread.id)
            for row in rows
        ]
        return self._rows

    def _seq_of(self, inline: InlineMessage) -> int | None:
        """Return the entry of an inline message, whose id may have been assigned since."""
        message, fields = inline.message, inline.fields
        message_id = (message.id or self.ids.get(id(message))) if message is not None else None
        if message is None or fields is None or not message_id or fields["id"] not in (None, "", message_id):
            return None
        found = self.growth.new.get(message_id) or self._find_known(message_id)
        if found is None or found.odd is not None or found.type is not type(message):
            return None
        return found.seq if alike(found.fields, {**fields, "id": message_id}) else None

    def _find_known(self, message_id: str) -> CachedMessage | None:
        for _, kept in self.memory.lists.items():
            place = kept.place_of(message_id)
            if place is not None and kept.seqs[place] >= self.memory.first_seq:
                return kept.at(place)
        return None


@dataclass(frozen=True, slots=True)
class _Settled:
    """A parent to be stored again: `taken` are the tasks whose rows go, `inline` the values that are small now, and
    `large` the values that are stored separately again."""

    stored: StoredCheckpoint
    taken: Sequence[str]
    inline: Sequence[str]
    large: Mapping[str, ChannelValue]


def _blobs(stored: StoredCheckpoint, cells: Mapping[str, ChannelValue]) -> dict[str, bytes]:
    return {channel: blob_of(cell) for channel, cell in cells.items() if cell.stored_by == stored.n}
