"""Delta channels: their messages after what was written to them, read for a checkpoint that is loaded or to be stored.

LangGraph hands over a `DeltaChannel`'s list only now and then, as a snapshot, and else what tasks have written to it.
The list is the last snapshot's with the writes since: each adds messages, replaces some by their ids, or removes them.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any
from uuid import NAMESPACE_OID, uuid5

from langchain_core.messages import BaseMessage, RemoveMessage, convert_to_messages
from langgraph.checkpoint.base import DeltaChannelHistory
from langgraph.checkpoint.serde.base import SerializerProtocol
from langgraph.graph.message import REMOVE_ALL_MESSAGES
from langgraph.types import Overwrite

from longthread.errors import ValueDamaged
from longthread.langgraph.internals import DeltaSnapshot
from longthread.langgraph.saver.channel_values import ChannelValue
from longthread.langgraph.saver.load import load_value, merged_tasks, source_of
from longthread.langgraph.saver.message_list import CachedMessage, MessageList
from longthread.langgraph.saver.put_request import PutRequest
from longthread.langgraph.saver.record import DELTA_COUNTERS, StoredCheckpoint, TaskWrites, in_order
from longthread.langgraph.saver.thread_cache import CONVERSATION, CachedThread
from longthread.messages.fields import alike
from longthread.store import checkpoints
from longthread.store.checkpoints import CheckpointRow, WriteRow
from longthread.store.driver import Transaction
from longthread.store.rows import Decoding

_OVERWRITE = "__overwrite__"  # LangGraph's key of an Overwrite that came as JSON
_NAMES_OF_KIND = frozenset(("role", "type"))
_NOT_CONVERTED = (NotImplementedError, ValueError, TypeError, LookupError, AttributeError)
_PAGE = 64
_MESSAGES = CONVERSATION[1]


@dataclass(frozen=True, slots=True)
class DeltaWrite:
    """A write to a delta channel. `place` names it for good: the checkpoint, the task, and the write's index."""

    place: str
    value: Any

    @property
    def resets(self) -> bool:
        return isinstance(self.value, Overwrite) or (isinstance(self.value, dict) and self.value.keys() == {_OVERWRITE})

    @property
    def content(self) -> Any:
        """What is written, without the `Overwrite` around it."""
        if not self.resets:
            return self.value
        return self.value.value if isinstance(self.value, Overwrite) else self.value[_OVERWRITE]

    def items(self) -> list[Any]:
        """Return what is written, without what retention has deleted."""
        value = self.content
        is_many = isinstance(value, list) or (self.resets and isinstance(value, tuple))
        return [each for each in (value if is_many else [value]) if each is not None]

    def messages(self) -> list[BaseMessage] | None:
        """Return its messages; what LangGraph would make one of gets an id by its place. None: something is none."""
        found: list[BaseMessage] = []
        for number, item in enumerate(self.items()):
            message = as_message(item)
            if message is None:
                return None
            found.append(message if message.id else with_id(message, self.place, number))
        return found

    def add_ids(self) -> Any:
        """Return the value with ids: what is no message yet becomes one, so that it has one id in every read."""
        items, messages = self.items(), self.messages()
        is_whole = not isinstance(self.value, list) or len(items) == len(self.value)
        if messages is None or (is_whole and all(map(_has_id, items))):
            return self.value
        if self.resets:
            return Overwrite(messages)
        return messages if isinstance(self.value, list) or not messages else messages[0]


def with_id(message: BaseMessage, place: str, number: int) -> BaseMessage:
    """Copy a message without an id, with one that its place decides."""
    return message.model_copy(update={"id": str(uuid5(NAMESPACE_OID, f"{place}:{number}"))})


def holds_messages(writes: Iterable[DeltaWrite]) -> bool:
    """Whether one of these writes holds a message as such: the channel's reducer then takes them."""
    return any(isinstance(item, BaseMessage) for write in writes for item in write.items())


def apply_writes(base: Sequence[BaseMessage], writes: Iterable[DeltaWrite]) -> list[BaseMessage] | None:
    """Return the list after these writes; None if one of them is not made of messages."""
    found: dict[str, BaseMessage] = {str(message.id): message for message in base}
    for write in writes:
        messages = write.messages()
        if messages is None:
            return None
        if write.resets:
            found = {}
        for message in messages:
            if not isinstance(message, RemoveMessage):
                found[str(message.id)] = message
            elif message.id == REMOVE_ALL_MESSAGES:
                found = {}
            else:
                found.pop(str(message.id), None)
    return list(found.values())


def find_appended(known: MessageList, writes: Sequence[DeltaWrite]) -> list[BaseMessage] | None:
    """Return what the writes append to a list; None if they do anything else."""
    found: dict[str, BaseMessage] = {}
    for write in writes:
        messages = None if write.resets else write.messages()
        if messages is None:
            return None
        for message in messages:
            if isinstance(message, RemoveMessage) or message.id in found or known.place_of(message.id) is not None:
                return None
            found[str(message.id)] = message
    return list(found.values())


@dataclass(slots=True)
class SnapshotNames:
    """Ids for a snapshot's messages that have none: their ids in the log, or new ones by their places."""

    known: MessageList | None
    place: str
    by_object: dict[int, str] = field(default_factory=dict)
    """The id of each message object that had none."""

    def name_messages(self, messages: Sequence[BaseMessage]) -> list[BaseMessage]:
        found: list[BaseMessage] = []
        last = 0
        for number, message in enumerate(messages):
            if message.id:
                found.append(message)
                continue
            at = self._next_like(message, last)
            named = with_id(message, self.place, number) if at is None else self._as(message, at)
            last = last if at is None else at + 1
            self.by_object[id(message)] = str(named.id)
            found.append(named)
        return found

    def _next_like(self, message: BaseMessage, start: int) -> int | None:
        if self.known is None:
            return None
        places = range(start, len(self.known))
        return next((at for at in places if _is_but_for_id(self.known.at(at), message)), None)

    def _as(self, message: BaseMessage, at: int) -> BaseMessage:
        assert self.known is not None
        return message.model_copy(update={"id": self.known.at(at).fields["id"]})


def _is_but_for_id(known: CachedMessage, message: BaseMessage) -> bool:
    if known.odd is not None or known.type is not type(message):
        return False
    return alike(known.fields, {**message.__dict__, "id": known.fields["id"]})


def as_message(item: Any) -> BaseMessage | None:
    """Return what LangGraph makes of an item of a list of messages; None if that is none."""
    if isinstance(item, BaseMessage):
        return item
    if isinstance(item, dict) and _NAMES_OF_KIND.isdisjoint(item):
        return None
    if isinstance(item, str | tuple | list | dict):
        with suppress(*_NOT_CONVERTED):
            return convert_to_messages([item])[0]
    return None


def _has_id(item: Any) -> bool:
    return isinstance(item, BaseMessage) and bool(item.id)


async def ancestors(tx: Transaction, row: CheckpointRow) -> AsyncIterator[tuple[CheckpointRow, list[WriteRow]]]:
    """Yield the checkpoint's ancestors, nearest first, each with its tasks' rows."""
    rows: dict[str, CheckpointRow] = {}
    writes: dict[str, list[WriteRow]] = {}
    seen = {row.id}
    while (parent_id := row.parent_id) is not None and parent_id not in seen:
        if parent_id not in rows:
            # An ancestor nearly always comes just before: many are read at once.
            page = await checkpoints.before(tx, row.thread_id, row.ns, row.n, limit=_PAGE)
            if parent_id not in {each.id for each in page}:
                found = await checkpoints.find(tx, row.thread_id, row.ns, parent_id)
                page = [found] if found is not None else []
            rows = {each.id: each for each in page}
            writes = await _writes(tx, page)
        if parent_id not in rows:
            return
        row = rows[parent_id]
        seen.add(row.id)
        yield row, writes.get(row.id, [])


async def _writes(tx: Transaction, page: Sequence[CheckpointRow]) -> dict[str, list[WriteRow]]:
    found: dict[str, list[WriteRow]] = {}
    if page:
        ids = [row.id for row in page]
        for write in await checkpoints.writes(tx, page[0].thread_id, page[0].ns, min(ids), max(ids)):
            found.setdefault(write.checkpoint_id, []).append(write)
    return found


@dataclass(slots=True)
class _Channel:
    """What a delta channel is made of: a value, and what was written later, newest first, each with its place."""

    writes: list[tuple[str, str, ChannelValue]]
    seed: ChannelValue | None = None


async def channel_history(
    tx: Transaction, row: CheckpointRow, channels: Sequence[str], serde: SerializerProtocol, first_seq: int
) -> Mapping[str, DeltaChannelHistory]:
    """Return the writes to channels up to this checkpoint since each last had a value.

    Messages before `first_seq` were deleted by retention. What LangGraph makes messages of, such as `("user", "…")`,
    has its id from the log in a channel of messages.
    """
    histories: dict[str, DeltaChannelHistory] = {}
    for channel, (seed, tasks, writes) in (await _read(tx, row, channels, serde, first_seq)).items():
        has_messages = holds_messages([DeltaWrite("", _content(value)) for value in seed]) or holds_messages(writes)
        values = [write.add_ids() if has_messages else write.value for write in writes]
        histories[channel] = {"writes": [(task, channel, each) for task, each in zip(tasks, values, strict=True)]}
        if seed:
            histories[channel]["seed"] = seed[0]
    return histories


async def messages_at(
    tx: Transaction, row: CheckpointRow, channel: str, serde: SerializerProtocol, first_seq: int
) -> list[BaseMessage] | None:
    """Return the messages of a delta channel at a checkpoint where it has no value; None if it holds anything else."""
    seed, _, writes = (await _read(tx, row, [channel], serde, first_seq))[channel]
    content = _content(seed[0]) if seed else []
    base = DeltaWrite(f"{row.id}:{channel}", content).messages() if isinstance(content, list) else None
    return apply_writes(base, writes) if base is not None else None


async def delta_messages(
    tx: Transaction, row: CheckpointRow, channel: str, serde: SerializerProtocol, first_seq: int
) -> list[BaseMessage] | None:
    """Return the messages of a channel at a checkpoint if it is a delta channel of messages, else None."""
    cell = StoredCheckpoint.from_row(row, serde).cells.get(channel)
    if cell is None:
        is_delta = channel in row.about.get(DELTA_COUNTERS, ())
        return await messages_at(tx, row, channel, serde, first_seq) if is_delta else None
    whole = await load_value(tx, row, channel, cell)
    source = await source_of(tx, row.thread_id, [whole], first_seq, serde)
    with Decoding(row.thread_id, "checkpoint", row.id, ValueDamaged):
        value = whole.value(serde, source)
    if not isinstance(value, DeltaSnapshot) or not isinstance(value.value, list):
        return None
    return DeltaWrite(f"{row.id}:{channel}", value.value).messages()


_Parts = tuple[list[Any], list[str], list[DeltaWrite]]
"""A channel's value, if it had one; and oldest first, who wrote later and what."""


async def _read(
    tx: Transaction, row: CheckpointRow, channels: Sequence[str], serde: SerializerProtocol, first_seq: int
) -> dict[str, _Parts]:
    found = await _find_channels(tx, row, channels, serde)
    cells = [cell for each in found.values() for *_, cell in each.writes]
    cells += [each.seed for each in found.values() if each.seed is not None]
    source = await source_of(tx, row.thread_id, cells, first_seq, serde)
    parts: dict[str, _Parts] = {}
    with Decoding(row.thread_id, "a checkpoint before", row.id, ValueDamaged):
        for channel, each in found.items():
            seed = [] if each.seed is None else [each.seed.value(serde, source)]
            oldest_first = list(reversed(each.writes))
            writes = [DeltaWrite(place, cell.value(serde, source)) for _, place, cell in oldest_first]
            parts[channel] = seed, [task_id for task_id, *_ in oldest_first], writes
    return parts


async def _find_channels(
    tx: Transaction, row: CheckpointRow, channels: Sequence[str], serde: SerializerProtocol
) -> dict[str, _Channel]:
    found = {channel: _Channel([]) for channel in channels}
    open_ = set(channels)
    async for ancestor, rows in ancestors(tx, row):
        stored = StoredCheckpoint.from_row(ancestor, serde)
        tasks = merged_tasks(stored, rows, ancestor.thread_id).values()
        for task_id, index, channel, cell in reversed(in_order(tasks)):
            if channel in open_:
                found[channel].writes.append((task_id, place_of(ancestor.id, task_id, index), cell))
        for channel in sorted(open_ & stored.cells.keys()):
            found[channel].seed = await load_value(tx, ancestor, channel, stored.cells[channel])
            open_.discard(channel)
        if not open_:
            break
    return found


def place_of(checkpoint_id: str, task_id: str, index: int) -> str:
    """Name a write for good."""
    return f"{checkpoint_id}:{task_id}:{index}"


def _content(value: Any) -> Any:
    return value.value if isinstance(value, DeltaSnapshot) else value


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

    def list_channels(self, given: PutRequest) -> list[str]:
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
                found[channel] = DeltaList(names.name_messages(content))
        return found

    async def after(self, row: CheckpointRow, channels: Sequence[str], tasks: Iterable[TaskWrites]) -> _Changed:
        """Return the lists that the parent's tasks have changed. `row` is the checkpoint's, yet to be stored."""
        found: _Changed = {}
        written = await self._read_writes(str(row.parent_id), channels, tasks)
        for channel, writes in written.items():
            known = self.memory.delta_list((self.ns, channel), str(row.parent_id))
            if not holds_messages(writes) and known is None and (self.ns, channel) != CONVERSATION:
                continue
            rest = find_appended(known, writes) if known is not None else None
            if rest is not None:
                found[channel] = DeltaList(rest, known)
            elif (whole := await self._whole(row, channel, known, writes)) is not None:
                found[channel] = DeltaList(whole)
        return found

    async def _whole(
        self, row: CheckpointRow, channel: str, known: MessageList | None, writes: Sequence[DeltaWrite]
    ) -> list[BaseMessage] | None:
        if known is not None:
            return apply_writes([known.at(place).show() for place in range(len(known))], writes)
        if any(write.messages() is None for write in writes):
            return None
        return await messages_at(self.tx, row, channel, self.serde, self.memory.first_seq)

    async def _read_writes(
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
