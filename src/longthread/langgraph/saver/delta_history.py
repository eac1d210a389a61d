"""The writes of earlier checkpoints' tasks to a channel: LangGraph rebuilds its delta channels from them."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass

from langgraph.checkpoint.base import DeltaChannelHistory
from langgraph.checkpoint.serde.base import SerializerProtocol

from longthread.errors import ValueDamaged
from longthread.langgraph.saver.channel_values import ChannelValue
from longthread.langgraph.saver.load import LogMessages, filled, merged_tasks, source_of
from longthread.langgraph.saver.record import StoredCheckpoint, in_order
from longthread.store import checkpoints
from longthread.store.checkpoints import CheckpointRow, WriteRow
from longthread.store.decoding import Decoding
from longthread.store.driver import Transaction

_PAGE = 64
DELTA_COUNTERS = "counters_since_delta_snapshot"
"""Key of a checkpoint's metadata that names the delta channels that are made of what earlier tasks have written."""


async def has_delta_messages(tx: Transaction, thread_id: str) -> bool:
    """Whether the thread's newest checkpoint has its messages in a delta channel."""
    row = await checkpoints.find(tx, thread_id, "", None)
    return row is not None and "messages" in (row.about.get(DELTA_COUNTERS) or ())


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
    writes: list[tuple[str, ChannelValue]]
    seed: ChannelValue | None = None


async def channel_history(
    tx: Transaction, row: CheckpointRow, channels: Sequence[str], serde: SerializerProtocol, first_seq: int
) -> Mapping[str, DeltaChannelHistory]:
    """Return the writes to channels up to this checkpoint since each last had a value.
    Messages before `first_seq` were deleted by retention."""
    found = {channel: _Channel([]) for channel in channels}
    open_ = set(channels)
    async for ancestor, rows in ancestors(tx, row):
        stored = StoredCheckpoint.from_row(ancestor, serde)
        for task_id, _, channel, cell in reversed(in_order(merged_tasks(stored, rows, ancestor.thread_id).values())):
            if channel in open_:
                found[channel].writes.append((task_id, cell))
        for channel in sorted(open_ & stored.cells.keys()):
            found[channel].seed = await filled(tx, ancestor, channel, stored.cells[channel])
            open_.discard(channel)
        if not open_:
            break
    cells = [cell for each in found.values() for _, cell in each.writes]
    cells += [each.seed for each in found.values() if each.seed is not None]
    source = await source_of(tx, row.thread_id, cells, first_seq, serde)
    with Decoding(row.thread_id, "a checkpoint before", row.id, ValueDamaged):
        return _histories(found, serde, source)


def _histories(
    found: Mapping[str, _Channel], serde: SerializerProtocol, source: LogMessages
) -> dict[str, DeltaChannelHistory]:
    histories: dict[str, DeltaChannelHistory] = {}
    for channel, each in found.items():
        writes = [(task_id, channel, cell.value(serde, source)) for task_id, cell in reversed(each.writes)]
        histories[channel] = {"writes": writes}
        if each.seed is not None:
            histories[channel]["seed"] = each.seed.value(serde, source)
    return histories
