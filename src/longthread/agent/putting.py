"""A checkpoint on its way into the store: its lists of messages into the log, its other values into cells."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from langchain_core.messages import BaseMessage, RemoveMessage
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import (
    ChannelVersions,
    Checkpoint,
    CheckpointMetadata,
    get_serializable_checkpoint_metadata,
)
from langgraph.checkpoint.serde.base import SerializerProtocol

from longthread.agent.cells import Cell, Inline, cell_of, cell_of_runs
from longthread.agent.kept import Kept, Message
from longthread.agent.messages import alike
from longthread.agent.places import Growth, Placed, Placing
from longthread.agent.reading import kept_on_branch
from longthread.agent.record import Stored, Task, blob_of, is_large, stub
from longthread.agent.remembered import CONVERSATION, Memory, Name
from longthread.store import checkpoints
from longthread.store.checkpoints import CheckpointRow, Head


@dataclass(slots=True)
class Putting:
    """One put, inside of its transaction. Nothing is remembered of it before `remember`, when it has been committed."""

    growth: Growth
    memory: Memory
    serde: SerializerProtocol
    ns: str
    head: Head | None
    placed: dict[Name, tuple[Kept | None, Placed]] = field(default_factory=dict)
    given: dict[Name, Sequence[BaseMessage]] = field(default_factory=dict)
    stored: Stored | None = None
    parent: Stored | None = None
    parent_n: int | None = None
    settled: list[str] = field(default_factory=list)
    taken: dict[str, Task] = field(default_factory=dict)

    async def put(
        self, config: RunnableConfig, checkpoint: Checkpoint, metadata: CheckpointMetadata, new: ChannelVersions
    ) -> None:
        """Store the checkpoint, and the entries that are new with it.

        Raises:
            ThreadConflict: the conversation was extended by somebody else than the run.
        """
        parent_id = config["configurable"].get("checkpoint_id")
        base = await self._base(parent_id)
        await self._place_lists(checkpoint["channel_values"], new)
        self._settle_parent(parent_id)
        number = 1 if self.head is None else self.head.n + (self.head.id != checkpoint["id"])
        stored = Stored.of(checkpoint, number, self._cells(checkpoint, new, base, number), self.serde)
        await self.growth.flush()
        thread_id, text = self.growth.thread.id, _metadata(config, metadata)
        row = CheckpointRow(thread_id, self.ns, number, stored.id, parent_id, text, stored.body())
        if not await checkpoints.put(self.growth.tx, row, self.parent_n):
            await self._put_again(stored, row)
        await checkpoints.put_blobs(self.growth.tx, thread_id, self.ns, stored.n, _blobs(stored, stored.cells))
        if self.parent is not None:
            await self._store(self.parent)
        self.stored = stored

    def remember(self) -> None:
        """Note what has been stored."""
        for name, (base, placed) in self.placed.items():
            current = self.memory.lists.get(name)
            kept = placed.kept(current if current is base else None)
            kept.hold(self.given[name])
            self.memory.keep(name, kept)
        if self.parent is not None:
            self.memory.tasks.pop((self.ns, self.parent.id), None)
        stored = self.stored
        if stored is not None:
            for channel, cell in stored.cells.items():
                if cell.stored_by is not None and not cell.has_inline:
                    stored.cells[channel] = stub(cell.stored_by)
            self.memory.keep_newest(self.ns, stored)

    async def _base(self, parent_id: str | None) -> Mapping[str, tuple[Any, Cell]]:
        """The values of the checkpoint that this one goes on from, with their versions."""
        base = self._newest(parent_id)
        if base is None and parent_id is not None:
            row = await checkpoints.find(self.growth.tx, self.growth.thread.id, self.ns, parent_id)
            base = Stored.from_row(row, self.serde) if row is not None else None
        self.parent_n = base.n if base is not None else None
        return {} if base is None else {name: (base.versions.get(name), cell) for name, cell in base.cells.items()}

    def _newest(self, parent_id: str | None) -> Stored | None:
        """The checkpoint that this one goes on from, if it is the newest and was put by this process."""
        newest = self.memory.newest.get(self.ns)
        is_it = newest is not None and self.head is not None and newest.id == self.head.id == parent_id
        return newest if is_it else None

    async def _place_lists(self, values: Mapping[str, Any], new: ChannelVersions) -> None:
        # The conversation first: entries that other channels share with it then stand where it has them.
        names = [(self.ns, channel) for channel in new if _is_messages(values.get(channel))]
        for name in sorted(names, key=lambda name: name != CONVERSATION):
            messages, leads = values[name[1]], name == CONVERSATION
            kept = self.memory.lists.get(name)
            known = kept if kept is not None or leads else self.memory.lists.get(CONVERSATION)
            if known is None:
                thread = self.growth.thread
                known = await kept_on_branch(self.growth.tx, thread.id, thread.tip, len(messages))
            count = known.equal(messages)
            if all(message.id for message in messages[count:]):
                self.given[name] = list(messages)
                self.placed[name] = kept, await Placing(self.growth, known, leads).place(messages, count)

    def _cells(
        self, checkpoint: Checkpoint, new: ChannelVersions, base: Mapping[str, tuple[Any, Cell]], number: int
    ) -> dict[str, Cell]:
        finder = self.memory.finder(self.growth.new)
        values, cells = checkpoint["channel_values"], dict[str, Cell]()
        for channel in {**checkpoint["channel_versions"], **values}:
            version, cell = base.get(channel, (None, None))
            if cell is not None and channel not in new and version == checkpoint["channel_versions"].get(channel):
                cells[channel] = cell
            elif channel in values:
                placed = self.placed.get((self.ns, channel))
                cell = cell_of_runs(placed[1].runs, self.serde) if placed else None
                cells[channel] = cell or cell_of(values[channel], self.serde, finder)
                if is_large(cells[channel]):
                    cells[channel].stored_by = number
        return cells

    async def _put_again(self, stored: Stored, row: CheckpointRow) -> None:
        """Store a checkpoint that was stored before, in its place."""
        there = await checkpoints.find(self.growth.tx, row.thread_id, self.ns, stored.id)
        assert there is not None
        for cell in stored.cells.values():
            if cell.stored_by == stored.n:
                cell.stored_by = there.n
        stored.n = there.n
        again = replace(row, n=there.n, body=stored.body())
        await checkpoints.replace_checkpoint(self.growth.tx, again, self.parent_n)

    def _settle_parent(self, parent_id: str | None) -> None:
        """Take what the tasks of the checkpoint that this one goes on from have written into that one, and refer to the
        messages that the log has by now. Only where this process has put it, and nothing else goes on from it."""
        parent = self._newest(parent_id)
        if parent is None:
            return
        # Those known now, and no others: a task may be noted meanwhile, and what it wrote stays where it is.
        tasks = self.taken = dict(self.memory.tasks.get((self.ns, parent.id), {}))
        written = [cell for each in (tasks, parent.tasks) for task in each.values() for cell in task.cells()]
        settled = [cell.settle(self._seq_of) for cell in written]
        self.settled = [channel for channel, cell in parent.cells.items() if cell.settle(self._seq_of)]
        if tasks or self.settled or any(settled):
            self.parent = parent

    async def _store(self, parent: Stored) -> None:
        tx, thread_id = self.growth.tx, self.growth.thread.id
        apart = {name: cell for name in self.settled if (cell := parent.cells[name]).stored_by is not None}
        inline = [name for name, cell in apart.items() if not is_large(cell)]
        for name in inline:
            parent.cells[name].stored_by = None
        head, before = Head(parent.n, parent.id), parent.writes
        for task in self.taken.values():
            parent = parent.with_task(task)
        if not await checkpoints.update_body(tx, thread_id, self.ns, head, parent.body(), before, parent.writes):
            return  # it is not what is remembered of it, and stays as it is
        await checkpoints.delete_tasks(tx, thread_id, self.ns, parent.id, self.taken)
        await checkpoints.delete_blobs(tx, thread_id, self.ns, parent.n, inline)
        await checkpoints.put_blobs(tx, thread_id, self.ns, parent.n, _blobs(parent, apart))

    def _seq_of(self, inline: Inline) -> int | None:
        """The entry that an inline message has become: its own id may have been given to it since."""
        message, fields = inline.message, inline.fields
        if message is None or fields is None or not message.id:
            return None
        found = self.growth.new.get(message.id) or self._known(message.id)
        if found is None or found.odd is not None or found.type is not type(message):
            return None
        return found.seq if alike(found.fields, {**fields, "id": message.id}) else None

    def _known(self, message_id: str) -> Message | None:
        for kept in self.memory.lists.values():
            place = kept.place_of(message_id)
            if place is not None and kept.messages[place].seq >= self.memory.first_seq:
                return kept.messages[place]
        return None


def _is_messages(value: Any) -> bool:
    kinds = set(map(type, value)) if isinstance(value, list) else ()
    return bool(kinds) and all(issubclass(kind, BaseMessage) and kind is not RemoveMessage for kind in kinds)


def _blobs(stored: Stored, cells: Mapping[str, Cell]) -> dict[str, bytes]:
    """Those of the values that the checkpoint itself stores apart."""
    return {channel: blob_of(cell) for channel, cell in cells.items() if cell.stored_by == stored.n}


def _metadata(config: RunnableConfig, metadata: CheckpointMetadata) -> str:
    found = get_serializable_checkpoint_metadata(config, metadata)
    text = json.dumps(found, ensure_ascii=False, separators=(",", ":"), default=str)
    try:
        text.encode()
    except UnicodeEncodeError:
        return json.dumps(found, separators=(",", ":"), default=str)
    return text
