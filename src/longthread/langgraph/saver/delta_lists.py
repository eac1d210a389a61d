"""Finds the messages of the delta channels of a checkpoint that is to be stored."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from langchain_core.messages import BaseMessage
from langgraph.checkpoint.serde.base import SerializerProtocol

from longthread.errors import ValueDamaged
from longthread.langgraph.internals import DeltaSnapshot
from longthread.langgraph.saver.delta_history import messages_at, place_of
from longthread.langgraph.saver.delta_messages import DeltaWrite, SnapshotNames, appended, applied, holds_messages
from longthread.langgraph.saver.load import source_of
from longthread.langgraph.saver.message_list import MessageList
from longthread.langgraph.saver.put_request import PutRequest
from longthread.langgraph.saver.record import DELTA_COUNTERS, TaskWrites, in_order
from longthread.langgraph.saver.thread_cache import CONVERSATION, CachedThread
from longthread.store.checkpoints import CheckpointRow
from longthread.store.decoding import Decoding
from longthread.store.driver import Transaction

_MESSAGES = CONVERSATION[1]


@dataclass(frozen=True, slots=True)
class DeltaList:
    """A delta channel's messages. With a `known` list, that is followed by `rest`; else `rest` is all of it."""

    rest: list[BaseMessage]
    known: MessageList | None = None


@dataclass(slots=True)
class DeltaLists:
    """Reads what was written to a checkpoint's delta channels since each last had a value.

    The writes that a checkpoint's delta channels hold are those on its ancestors: LangGraph hands over a snapshot
    wherever that would be wrong, as after a failed task or in a fork. So the list of a checkpoint is its parent's with
    the writes on the parent. What a reducer of the application's leaves out besides stays in the log's list until the
    next snapshot.
    """

    tx: Transaction
    memory: CachedThread
    serde: SerializerProtocol
    thread_id: str
    ns: str
    ids: dict[int, str] = field(default_factory=dict)
    """The id of each object of a snapshot that had none."""

    def named(self, given: PutRequest) -> list[str]:
        """Return the delta channels that the checkpoint has no value of."""
        if DELTA_COUNTERS not in given.metadata:
            return []
        counters = json.loads(given.metadata).get(DELTA_COUNTERS)
        return [name for name in counters or () if name not in given.values]

    def snapshots(self, given: PutRequest) -> dict[str, DeltaList]:
        """Return the lists of messages among the snapshots that the checkpoint brings."""
        found: dict[str, DeltaList] = {}
        for channel in given.new:
            value = given.values.get(channel)
            content = value.value if isinstance(value, DeltaSnapshot) else None
            if isinstance(content, list) and content and all(isinstance(each, BaseMessage) for each in content):
                names = SnapshotNames(self.memory.lists.get((self.ns, channel)), f"{given.id}:{channel}", self.ids)
                found[channel] = DeltaList(names.named(content))
        return found

    async def after(self, row: CheckpointRow, channels: Sequence[str], tasks: Iterable[TaskWrites]) -> _Changed:
        """Return the lists that the parent's tasks have changed. `row` is the checkpoint's, yet to be stored."""
        found: _Changed = {}
        written = await self._written(str(row.parent_id), channels, tasks)
        for channel, writes in written.items():
            known = self.memory.delta_list((self.ns, channel), str(row.parent_id))
            if not holds_messages(writes) and known is None and (self.ns, channel) != CONVERSATION:
                continue
            rest = appended(known, writes) if known is not None else None
            if rest is not None:
                found[channel] = DeltaList(rest, known)
            elif (whole := await self._whole(row, channel, known, writes)) is not None:
                found[channel] = DeltaList(whole)
        return found

    async def _whole(
        self, row: CheckpointRow, channel: str, known: MessageList | None, writes: Sequence[DeltaWrite]
    ) -> list[BaseMessage] | None:
        if known is not None:
            return applied([known.at(place).shown() for place in range(len(known))], writes)
        if any(write.messages() is None for write in writes):
            return None
        return await messages_at(self.tx, row, channel, self.serde, self.memory.first_seq)

    async def _written(
        self, parent_id: str, channels: Sequence[str], tasks: Iterable[TaskWrites]
    ) -> dict[str, list[DeltaWrite]]:
        cells = [
            (channel, place_of(parent_id, task_id, index), cell)
            for task_id, index, channel, cell in in_order(tasks)
            if channel in channels
        ]
        asked = self.thread_id, [cell for *_, cell in cells], self.memory.first_seq, self.serde
        source = await source_of(self.tx, *asked)
        found: dict[str, list[DeltaWrite]] = {}
        with Decoding(self.thread_id, "what a task has written to checkpoint", parent_id, ValueDamaged):
            for channel, place, cell in cells:
                found.setdefault(channel, []).append(DeltaWrite(place, cell.value(self.serde, source)))
        return found


_Changed = dict[str, DeltaList]
