"""The row form of a checkpoint, of its metadata and of its tasks' writes."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import orjson
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import (
    WRITES_IDX_MAP,
    CheckpointMetadata,
    get_serializable_checkpoint_metadata,
    writes_sort_key,
)
from langgraph.checkpoint.serde.base import SerializerProtocol

from longthread.langgraph.message_codec import is_own, read_through
from longthread.langgraph.saver.channel_values import ChannelValue, InlineMessage, SeqFinder, cell_of
from longthread.messages.fields import dump_json, load_json, pack_body, unpack_body
from longthread.store.checkpoints import CheckpointRow, WriteRow
from longthread.store.rows import Decoding

DELTA_COUNTERS = "counters_since_delta_snapshot"
"""Key of a checkpoint's metadata that names the delta channels that are made of what earlier tasks have written."""
_PLAIN = frozenset(("source", "step", "parents", "run_id", DELTA_COUNTERS))
"""What LangGraph writes, and what a store is searched by: ids and numbers."""
_SEALED = "longthread_sealed"
"""The rest, as the serializer packed it: its kind, and its bytes in base64."""
_FLAT = frozenset((str, int, bool, type(None)))
_ENCODER = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), default=str)
_NAMES = frozenset(("v", "ts", "channel_versions", "versions_seen", "updated_channels"))
"""What of a checkpoint names channels, nodes and versions, and holds nothing of the state."""
_JSON = ""
"""Kind of a slim checkpoint that is JSON and needed no serializer."""
TASK_BYTES = 8192
"""What tasks have written is in the body of their checkpoint as long as that is no larger."""
INLINE_BYTES = 256
"""A value up to so large is in each checkpoint that has it; a larger one is stored once, apart."""


def dump_metadata(config: RunnableConfig, metadata: CheckpointMetadata, serde: SerializerProtocol) -> str:
    """Return a checkpoint's metadata as JSON. Where an application's own serializer writes everything else, it also
    writes what the application has put there."""
    found: dict[str, Any] = {**get_serializable_checkpoint_metadata(config, metadata)}
    if is_own(serde):
        found = _seal_metadata(found, serde)
    if all(map(_is_flat, found.values())):
        with suppress(TypeError):  # what the other encoder knows: a large number, half of a surrogate pair
            return orjson.dumps(found).decode()
    return _encode_metadata(found)


def metadata_of(row: CheckpointRow, serde: SerializerProtocol) -> dict[str, Any]:
    """Raises RowDamaged, or SerializerNeeded."""
    found = row.about
    sealed = found.pop(_SEALED, None)
    if sealed is not None:
        found |= read_through(serde, sealed[0], base64.b64decode(sealed[1]), is_sealed=True)
    return found


def _seal_metadata(found: Mapping[str, Any], serde: SerializerProtocol) -> dict[str, Any]:
    plain = {key: value for key, value in found.items() if key in _PLAIN}
    rest = {key: value for key, value in found.items() if key not in _PLAIN}
    if rest:
        kind, body = serde.dumps_typed(
            json.loads(_encode_metadata(rest))
        )  # what comes back is JSON, as without a serializer
        plain[_SEALED] = [kind, base64.b64encode(body).decode()]
    return plain


def _encode_metadata(found: Mapping[str, Any]) -> str:
    text = _ENCODER.encode(found)
    try:
        text.encode()
    except UnicodeEncodeError:
        return json.dumps(found, separators=(",", ":"), default=str)
    return text


def _is_flat(value: Any) -> bool:
    """Whether every encoder writes the value alike."""
    return type(value) in _FLAT or (type(value) is dict and _FLAT.issuperset(map(type, value.values())))


@dataclass(slots=True)
class TaskWrites:
    """One task's writes by index: a later write replaces a negative index; otherwise the first one stays."""

    id: str
    path: str
    items: dict[int, tuple[str, ChannelValue]] = field(default_factory=dict)

    @classmethod
    def of(
        cls, task_id: str, path: str, writes: Sequence[tuple[str, Any]], serde: SerializerProtocol, finder: SeqFinder
    ) -> TaskWrites:
        task = cls(task_id, path)
        for number, (channel, value) in enumerate(writes):
            task._add(WRITES_IDX_MAP.get(channel, number), channel, cell_of(value, serde, finder))
        return task

    @property
    def ends_run(self) -> bool:
        """Whether it failed or asks somebody: its step then has no checkpoint after it."""
        return any(index < 0 for index in self.items)

    def merge(self, later: TaskWrites) -> None:
        for index, (channel, cell) in later.items.items():
            self._add(index, channel, cell)

    def _add(self, index: int, channel: str, cell: ChannelValue) -> None:
        if index < 0 or index not in self.items:
            self.items[index] = channel, cell

    def find_contradictions(self, other: TaskWrites, serde: SerializerProtocol) -> set[int]:
        """Return the indexes where `other` has another value and the first one stays."""
        both = [index for index in self.items.keys() & other.items.keys() if index >= 0]
        return {index for index in both if self.items[index][1].differs(other.items[index][1], serde)}

    def channels(self, indexes: Iterable[int] | None = None) -> set[str]:
        return {self.items[index][0] for index in (self.items if indexes is None else indexes)}

    def besides(self, there: TaskWrites, contradicted: Set[int], known: Set[str]) -> TaskWrites | None:
        """Return the writes to unknown channels, to be stored along with what is there."""
        free = max([*self.items, *there.items]) + 1
        items = {
            index if index not in contradicted else free + index: item
            for index, item in self.items.items()
            if item[0] not in known
        }
        return TaskWrites(self.id, self.path, items) if items else None

    def is_replaced_by(self, other: TaskWrites) -> bool:
        """Whether merging `other` would replace a write."""
        return any(index < 0 for index in self.items.keys() & other.items.keys())

    def settle(self, seq_of: Callable[[InlineMessage], int | None]) -> TaskWrites:
        """Replace inline messages that the log holds now by references; return itself if there is none."""
        items = {index: (channel, cell.settle(seq_of)) for index, (channel, cell) in self.items.items()}
        same = all(items[index][1] is cell for index, (_, cell) in self.items.items())
        return self if same else TaskWrites(self.id, self.path, items)

    def row(self, ns: str, checkpoint_id: str) -> WriteRow:
        parts: list[bytes] = []
        items = self._items(parts)
        return WriteRow(ns, checkpoint_id, self.id, self.path, len(items), pack_body(items, parts))

    @classmethod
    def from_row(cls, row: WriteRow, thread_id: str) -> TaskWrites:
        """Decode a task's row; RowDamaged if that fails."""
        with Decoding(thread_id, "what a task has written to checkpoint", row.checkpoint_id):
            items, parts = unpack_body(row.body)
            return cls(row.task_id, row.task_path, _read_items(items, _Taker(parts)))

    def to_json(self, parts: list[bytes]) -> list[Any]:
        return [self.id, self.path, self._items(parts)]

    def _items(self, parts: list[bytes]) -> list[Any]:
        return [[index, channel, cell.to_json(parts)] for index, (channel, cell) in self.items.items()]


def _read_items(items: Iterable[Any], take: _Taker) -> dict[int, tuple[str, ChannelValue]]:
    return {index: (channel, ChannelValue.from_json(data, take)) for index, channel, data in items}


def in_order(tasks: Iterable[TaskWrites]) -> list[tuple[str, int, str, ChannelValue]]:
    """Return writes in the order in which a run applies them: task id, index, channel and value."""
    writes = [
        (writes_sort_key(task.path, task.id, index), channel, cell)
        for task in tasks
        for index, (channel, cell) in task.items.items()
    ]
    writes.sort(key=lambda write: write[0])
    return [(task_id, index, channel, cell) for (_, task_id, index), channel, cell in writes]


@dataclass(slots=True)
class StoredCheckpoint:
    """A checkpoint. `slim` is its serialized rest besides values; `versions` are those of its channels.
    `tasks` are those in its body. A separately stored cell that is not needed is a stub."""

    n: int
    id: str
    slim: tuple[str, bytes]
    versions: Mapping[str, Any]
    cells: dict[str, ChannelValue]
    tasks: dict[str, TaskWrites] = field(default_factory=dict)

    def checkpoint(self, serde: SerializerProtocol) -> dict[str, Any]:
        kind, body = self.slim
        found: dict[str, Any] = json.loads(body) if kind == _JSON else read_through(serde, kind, body)
        return {**found, "id": self.id}

    def body(self, *, passing: bool = False) -> bytes:
        """Serialize its row's body; separately stored values are named. `passing`: the next put mostly replaces it."""
        kind, slim = self.slim
        parts = [slim]
        head: dict[str, Any] = {"slim": [kind, len(slim)]}
        head["cells"] = {
            channel: {"n": cell.stored_by} if cell.stored_by is not None else cell.to_json(parts)
            for channel, cell in self.cells.items()
        }
        if self.tasks:
            head["tasks"] = [task.to_json(parts) for task in self.tasks.values()]
        return pack_body(head, parts, passing=passing)

    def with_task(self, task: TaskWrites) -> StoredCheckpoint:
        there = self.tasks.get(task.id)
        merged = TaskWrites(task.id, there.path, dict(there.items)) if there is not None else task
        if there is not None:
            merged.merge(task)
        return self._with(self.cells, {**self.tasks, task.id: merged})

    def settle(self, seq_of: Callable[[InlineMessage], int | None]) -> StoredCheckpoint:
        """Replace inline messages that the log holds now by references; return itself if there is none."""
        tasks = {name: task.settle(seq_of) for name, task in self.tasks.items()}
        cells = {name: cell.settle(seq_of) for name, cell in self.cells.items()}
        same = all(tasks[name] is task for name, task in self.tasks.items())
        if same and all(cells[name] is cell for name, cell in self.cells.items()):
            return self
        return self._with(cells, tasks)

    def _with(self, cells: dict[str, ChannelValue], tasks: dict[str, TaskWrites]) -> StoredCheckpoint:
        return StoredCheckpoint(self.n, self.id, self.slim, self.versions, cells, tasks)

    @property
    def writes(self) -> int:
        """The number of task writes in its body. Unless the thread is renewed, nothing in the newest body
        is replaced: bodies with equal numbers are equal."""
        return sum(len(task.items) for task in self.tasks.values()) if self.tasks else 0

    @classmethod
    def from_row(cls, row: CheckpointRow, serde: SerializerProtocol) -> StoredCheckpoint:
        """Decode a checkpoint's row, with stubs for separate values; RowDamaged if that fails."""
        with Decoding(row.thread_id, "checkpoint", row.id):
            head, parts = unpack_body(row.body)
            take = _Taker(parts)
            kind, length = head["slim"]
            slim = kind, take(length)
            cells = {channel: _read_cell(data, take) for channel, data in head["cells"].items()}
            tasks = [
                TaskWrites(task_id, path, _read_items(items, take)) for task_id, path, items in head.get("tasks", ())
            ]
            stored = cls(row.n, row.id, slim, {}, cells, {task.id: task for task in tasks})
            stored.versions = stored.checkpoint(serde)["channel_versions"]
            return stored


def stub(stored_by: int) -> ChannelValue:
    return ChannelValue("", b"", None, stored_by)


def is_large(cell: ChannelValue) -> bool:
    """Whether to store a value separately. With inline messages the limit is higher: they mostly become references."""
    return cell.size > (INLINE_BYTES if not cell.has_inline else TASK_BYTES)


def blob_of(cell: ChannelValue) -> bytes:
    parts: list[bytes] = []
    return pack_body(cell.to_json(parts), parts)


def cell_of_blob(body: bytes, stored_by: int) -> ChannelValue:
    data, parts = unpack_body(body)
    cell = ChannelValue.from_json(data, _Taker(parts))
    cell.stored_by = stored_by
    return cell


def _read_cell(data: Any, take: _Taker) -> ChannelValue:
    return stub(data["n"]) if isinstance(data, dict) else ChannelValue.from_json(data, take)


def slim_of(checkpoint: Mapping[str, Any], serde: SerializerProtocol) -> tuple[str, bytes]:
    slim = {key: value for key, value in checkpoint.items() if key not in ("channel_values", "id")}
    if is_own(serde) and not slim.keys() <= _NAMES:
        return serde.dumps_typed(slim)
    try:
        text = dump_json(slim)
        if load_json(text) == slim:
            return _JSON, text
    except (TypeError, ValueError):
        pass  # it holds what only the serializer knows
    return serde.dumps_typed(slim)


class _Taker:
    def __init__(self, parts: memoryview) -> None:
        self._parts = parts
        self._at = 0

    def __call__(self, length: int) -> bytes:
        piece = bytes(self._parts[self._at : self._at + length])
        self._at += length
        if len(piece) != length:
            raise ValueError("it ends early")
        return piece
