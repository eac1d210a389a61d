"""The writes of earlier checkpoints' tasks to a channel: LangGraph rebuilds its delta channels from them."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from langchain_core.messages import BaseMessage
from langgraph.checkpoint.base import DeltaChannelHistory
from langgraph.checkpoint.serde.base import SerializerProtocol

from longthread.errors import ValueDamaged
from longthread.langgraph.internals import DeltaSnapshot
from longthread.langgraph.saver.channel_values import ChannelValue
from longthread.langgraph.saver.delta_messages import DeltaWrite, applied, holds_messages
from longthread.langgraph.saver.load import filled, merged_tasks, source_of
from longthread.langgraph.saver.record import DELTA_COUNTERS, StoredCheckpoint, in_order
from longthread.store import checkpoints
from longthread.store.checkpoints import CheckpointRow, WriteRow
from longthread.store.decoding import Decoding
from longthread.store.driver import Transaction

_PAGE = 64


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
        values = [write.identified() if has_messages else write.value for write in writes]
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
    return applied(base, writes) if base is not None else None


async def delta_messages(
    tx: Transaction, row: CheckpointRow, channel: str, serde: SerializerProtocol, first_seq: int
) -> list[BaseMessage] | None:
    """Return the messages of a channel at a checkpoint if it is a delta channel of messages, else None."""
    cell = StoredCheckpoint.from_row(row, serde).cells.get(channel)
    if cell is None:
        is_delta = channel in row.about.get(DELTA_COUNTERS, ())
        return await messages_at(tx, row, channel, serde, first_seq) if is_delta else None
    whole = await filled(tx, row, channel, cell)
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
    found = await _found(tx, row, channels, serde)
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


async def _found(
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
            found[channel].seed = await filled(tx, ancestor, channel, stored.cells[channel])
            open_.discard(channel)
        if not open_:
            break
    return found


def place_of(checkpoint_id: str, task_id: str, index: int) -> str:
    """Name a write for good."""
    return f"{checkpoint_id}:{task_id}:{index}"


def _content(value: Any) -> Any:
    return value.value if isinstance(value, DeltaSnapshot) else value
