"""Which checkpoints a listing finds, and LangGraph's checkpoints built from rows."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, TypeVar, cast

from langchain_core.messages import BaseMessage
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import Checkpoint, CheckpointMetadata, CheckpointTuple
from langgraph.checkpoint.serde.base import SerializerProtocol

from longthread.errors import ValueDamaged
from longthread.langgraph.filters import MetadataFilter
from longthread.langgraph.message_codec import damage_of, is_own, read_message
from longthread.langgraph.saver.channel_values import MESSAGES, ChannelValue, MessageGap, merge_ranges
from longthread.langgraph.saver.message_list import CHUNK, CachedMessage, MessageList, SeqRange
from longthread.langgraph.saver.parent_ids import read_checkpoint_id
from longthread.langgraph.saver.record import StoredCheckpoint, TaskWrites, cell_of_blob, in_order, metadata_of
from longthread.langgraph.saver.thread_cache import CachedThread
from longthread.messages.fields import is_packed, rest_of
from longthread.store import checkpoints
from longthread.store.checkpoints import LAST, CheckpointFilter, CheckpointRow, FoundMetadata, WriteRow
from longthread.store.driver import Driver, Row, Transaction
from longthread.store.log import MESSAGE_ID
from longthread.store.rows import UNREADABLE, Decoding, make_damage_error

_SENT_ID = f'"{MESSAGE_ID}"'


class NotCached(Exception):  # distinct from errors of the product
    """The cache does not hold what was asked."""


@dataclass(slots=True)
class CheckpointReader:
    """Reads one thread's checkpoints in one snapshot.

    `first_seq` is the thread's first entry in that snapshot; `memory` may have newer data. With `remembers`, the lists
    read replace the cached ones, for the run that continues from them. Without `tx`, a read beyond the cache raises
    `NotCached`.
    """

    tx: Transaction | None
    thread_id: str
    memory: CachedThread
    serde: SerializerProtocol
    first_seq: int
    remembers: bool

    async def read(self, row: CheckpointRow, rows: Iterable[WriteRow]) -> CheckpointTuple:
        """Build the checkpoint of a row, with its tasks' later writes."""
        stored = StoredCheckpoint.from_row(row, self.serde)
        writes = in_order(merged_tasks(stored, rows, row.thread_id).values())
        cells = {
            name: cell if cell.stored_by is None else await load_value(self._snapshot, row, name, cell)
            for name, cell in stored.cells.items()
        }
        lists = {name: runs for name, cell in cells.items() if (runs := list_of(cell)) is not None}
        values = {name: cell for name, cell in cells.items() if name not in lists}
        referring = [cell for cell in (*values.values(), *(cell for *_, cell in writes)) if cell.hole is not None]
        asked = self.thread_id, referring, self.first_seq
        source = await source_of(self._snapshot, *asked, self.serde) if referring else LogMessages({}, self.serde)
        channels: dict[str, Any] = {name: await self.messages((row.ns, name), runs) for name, runs in lists.items()}
        with Decoding(row.thread_id, "checkpoint", row.id, ValueDamaged):
            channels |= {name: cell.value(self.serde, source) for name, cell in values.items()}
            pending = [(task_id, name, cell.value(self.serde, source)) for task_id, _, name, cell in writes]
        at = {"thread_id": row.thread_id, "checkpoint_ns": row.ns}
        checkpoint = {**stored.checkpoint(self.serde), "id": row.id, "channel_values": channels}
        return CheckpointTuple(
            config={"configurable": {**at, "checkpoint_id": row.id}},
            checkpoint=cast(Checkpoint, checkpoint),
            metadata=cast(CheckpointMetadata, metadata_of(row, self.serde)),
            parent_config={"configurable": {**at, "checkpoint_id": row.parent_id}} if row.parent_id else None,
            pending_writes=pending,
        )

    async def messages(self, name: tuple[str, str], runs: Sequence[SeqRange]) -> list[BaseMessage]:
        runs = since(runs, self.first_seq)
        kept = self.memory.lists.get(name)
        count = kept.starts_with(runs) if kept is not None else None
        if kept is None or count is None:
            kept = await messages_at(self._snapshot, self.thread_id, runs, self.serde)
            count = len(kept)
            if self.remembers:
                self.memory.lists.put(name, kept)
        with Decoding(self.thread_id, "a message of the channel", name[1], ValueDamaged):
            return await kept.held_copies(count, self.serde) if self.remembers else kept.copies(count, self.serde)

    @property
    def _snapshot(self) -> Transaction:
        if self.tx is None:
            raise NotCached
        return self.tx


@dataclass(slots=True)
class LogMessages:
    by_seq: Mapping[int, CachedMessage]
    serde: SerializerProtocol

    def messages(self, first: int, last: int, *, skips: bool = False) -> list[BaseMessage]:
        """Return new objects for the existing messages with these seqs; if it `skips`, without later versions."""
        there = (self.by_seq[seq] for seq in range(first, last + 1) if seq in self.by_seq)
        found = MessageList(message for message in there if not (skips and message.replaces))
        return found.copies(len(found), self.serde)


async def source_of(
    tx: Transaction, thread_id: str, cells: Iterable[ChannelValue], first_seq: int, serde: SerializerProtocol
) -> LogMessages:
    """Read the messages that values refer to; RowDamaged if one is missing or undecodable.
    Retention has deleted those before `first_seq`."""
    among = merge_ranges(
        (max(first, first_seq), last) for cell in cells for first, last in cell.runs() if last >= first_seq
    )
    found = await messages_of(await _rows(tx, thread_id, among), thread_id, serde) if among else MessageList()
    return LogMessages({seq: found.at(place) for place, seq in enumerate(found.seqs)}, serde)


async def load_value(tx: Transaction, row: CheckpointRow, channel: str, cell: ChannelValue) -> ChannelValue:
    """Return a checkpoint's value, read if it is stored separately; RowDamaged if it is missing or undecodable."""
    if cell.stored_by is None:
        return cell
    body = await checkpoints.blob(tx, row.thread_id, row.ns, cell.stored_by, channel)
    kind = f"the value of {channel} in checkpoint"
    if body is None:
        raise make_damage_error(f"{kind} {row.id} of thread {row.thread_id}", "it is gone")
    with Decoding(row.thread_id, kind, row.id):
        return cell_of_blob(body, cell.stored_by)


def merged_tasks(stored: StoredCheckpoint, rows: Iterable[WriteRow], thread_id: str) -> dict[str, TaskWrites]:
    """Merge the tasks in a checkpoint's body with their later writes."""
    tasks = dict(stored.tasks)
    for row in rows:
        task = TaskWrites.from_row(row, thread_id)
        if task.id in tasks:
            tasks[task.id].merge(task)
        else:
            tasks[task.id] = task
    return tasks


async def messages_at(
    tx: Transaction, thread_id: str, runs: Sequence[SeqRange], serde: SerializerProtocol
) -> MessageList:
    """Read the messages in the order of the runs; RowDamaged if one is missing or undecodable."""
    rows = await _rows(tx, thread_id, merge_ranges((first, last) for first, last, _ in runs))
    if all(skipped <= 0 for *_, skipped in runs) and all(begin > end for (_, end, _), (begin, *_) in pairwise(runs)):
        return await messages_of(rows, thread_id, serde)
    versions = {row["seq"] for row in rows if row["replaces"] is not None}
    seqs = [
        seq for first, last, skipped in runs for seq in range(first, last + 1) if skipped <= 0 or seq not in versions
    ]
    wanted = set(seqs)
    found = await messages_of(rows, thread_id, serde, wanted)
    places = {seq: place for place, seq in enumerate(found.seqs)}
    return MessageList(found.at(places[seq]) for seq in seqs)


async def _rows(tx: Transaction, thread_id: str, among: Sequence[tuple[int, int]]) -> list[Row]:
    """Read the entries of ranges in their order; RowDamaged if one is missing."""
    rows = await checkpoints.messages(tx, thread_id, among)
    if len(rows) != sum(last - first + 1 for first, last in among):
        there = {row["seq"] for row in rows}
        gone = next(seq for first, last in among for seq in range(first, last + 1) if seq not in there)
        raise make_damage_error(f"entry {gone} of thread {thread_id}", "it is gone, and was not deleted by retention")
    return rows


async def branch_messages(
    tx: Transaction, thread_id: str, tip: int, count: int, serde: SerializerProtocol
) -> MessageList:
    """Return the last `count` messages of the branch that ends in `tip`."""
    rows = await checkpoints.messages_of_branch(tx, thread_id, tip, limit=count)
    return await messages_of(rows, thread_id, serde)


def since(runs: Iterable[SeqRange], first_seq: int) -> list[SeqRange]:
    """Return what retention has left of runs."""
    return [(max(first, first_seq), last, skipped) for first, last, skipped in runs if last >= first_seq]


async def messages_of(
    rows: Sequence[Row], thread_id: str, serde: SerializerProtocol, wanted: Container[int] | None = None
) -> MessageList:
    """Decode entries' rows to messages, all or the `wanted` ones.

    Raises:
        RowDamaged: one cannot be decoded.
        ValueDamaged: the same, of a class of the application's.
    """
    gaps = _gaps(rows)
    rows = rows if wanted is None else [row for row in rows if row["seq"] in wanted]
    found = MessageList()
    for first in range(0, len(rows), CHUNK):
        found.extend(_decode_rows(rows[first : first + CHUNK], thread_id, serde, gaps))
        await asyncio.sleep(0)  # many take longer than the loop's other tasks should wait
    return found


def _decode_rows(
    rows: Sequence[Row], thread_id: str, serde: SerializerProtocol, gaps: Mapping[int, int]
) -> list[CachedMessage]:
    try:
        return _messages_of(rows, serde, gaps)
    except UNREADABLE as error:
        for row in rows:
            with Decoding(thread_id, "entry", row["seq"], damage_of(row["payload"])):
                _messages_of([row], serde, gaps)
        raise make_damage_error(f"one of {len(rows)} entries of thread {thread_id}", error) from error


def _gaps(rows: Sequence[Row]) -> dict[int, int]:
    """Count the later versions directly before entries, where there are any, as far as the rows tell."""
    gaps: dict[int, int] = {}
    for seq in sorted(row["seq"] for row in rows if row["replaces"] is not None):
        gaps[seq + 1] = gaps.get(seq, 0) + 1
    return gaps


def _messages_of(rows: Sequence[Row], serde: SerializerProtocol, gaps: Mapping[int, int]) -> list[CachedMessage]:
    calls = iter(_parse_values([row["tool_calls"] for row in rows if row["tool_calls"]]))
    rests = rest_of([row["payload"] for row in rows if row["payload"] and not is_packed(row["payload"])])
    unread = iter(rests)
    found: list[CachedMessage] = []
    for row in rows:
        payload, metadata = row["payload"], row["metadata"]
        packed = payload if payload and is_packed(payload) else None
        rest = next(unread) if payload and packed is None else None
        sent_id = json.loads(metadata).get(MESSAGE_ID) if metadata and _SENT_ID in metadata else None
        made = read_message(row, next(calls) if row["tool_calls"] else (), rest, sent_id, serde)
        at = row["seq"], row["parent_seq"]
        one = CachedMessage(*made, *at) if isinstance(made, tuple) else CachedMessage.of_odd(made, *at, packed)
        one.replaces, one.gap = row["replaces"] or 0, gaps.get(row["seq"], 0)
        found.append(one)
    return found


def _parse_values(texts: Sequence[str]) -> list[Any]:
    """Parse JSON values in one call, which is faster."""
    values: list[Any] = json.loads(f"[{','.join(texts)}]")
    if len(values) != len(texts):
        raise ValueError("it is not one value")
    return values


def list_of(cell: ChannelValue) -> list[SeqRange] | None:
    """Return the runs of a list of nothing but messages of the log; None for any other cell."""
    hole = cell.hole
    if not isinstance(hole, MessageGap) or hole.kind != MESSAGES:
        return None
    return [(first, last, skipped) for _, first, last, skipped in hole.runs]


T = TypeVar("T")
ReadRows = Callable[[Transaction, Sequence[CheckpointRow]], Awaitable[T]]
_PAGE = 64
"""How many checkpoints are read at a time."""


@dataclass(frozen=True, slots=True)
class Listing:
    """What a listing asks for: checkpoints by place, the one of an id, by metadata, and how many at most."""

    where: CheckpointFilter
    checkpoint_id: str | None
    filter: MetadataFilter | None
    limit: int | None
    serde: SerializerProtocol

    @classmethod
    def of(
        cls,
        config: RunnableConfig | None,
        before: RunnableConfig | None,
        filter_: Mapping[str, Any] | None,
        *,
        user_id: str,
        limit: int | None,
        serde: SerializerProtocol,
    ) -> Listing:
        at = config["configurable"] if config else {}
        thread_id, last = at.get("thread_id"), read_checkpoint_id(before) if before else None
        thread_id = str(thread_id) if thread_id is not None else None
        where = CheckpointFilter(user_id, thread_id, at.get("checkpoint_ns"), last or LAST)
        wanted = MetadataFilter.of(filter_) if filter_ else None
        most = limit if limit is not None and limit >= 0 else None
        return cls(where, read_checkpoint_id(config) if config else None, wanted, most, serde)

    async def pages(self, store: Driver, read: ReadRows[list[T]]) -> AsyncIterator[list[T]]:
        """Yield what `read` makes of the checkpoints, newest ids first, page by page, each in a snapshot of its own."""
        # The store cannot search what an application's own serializer has packed.
        is_searched = self.filter is not None and not is_own(self.serde)
        rows = self._filter_pages(store, read, self.filter) if self.filter and is_searched else self._all(store, read)
        async for found in rows:
            yield found

    async def _all(self, store: Driver, read: ReadRows[list[T]]) -> AsyncIterator[list[T]]:
        after: CheckpointRow | None = None
        left = -1 if self.limit is None else self.limit
        size = _PAGE if left < 0 else min(left, _PAGE)
        while left:
            async with store.reading() as tx:
                rows = await self._page(tx, after, size)
                chosen = [row for row in rows if self._has(row) and self._is_wanted(row)]
                found = await read(tx, chosen[:left] if left > 0 else chosen)
            yield found
            left -= len(found) if left > 0 else 0
            if len(rows) < size:
                return
            after = rows[-1]
            size = _PAGE

    async def _filter_pages(
        self, store: Driver, read: ReadRows[list[T]], filter_: MetadataFilter
    ) -> AsyncIterator[list[T]]:
        async with store.reading() as tx:
            there = await checkpoints.with_metadata(tx, self.where, filter_.search)
        chosen = [each for each in there if self._has(each) and filter_.matches(each.about)][: self.limit]
        for at in range(0, len(chosen), _PAGE):
            part = chosen[at : at + _PAGE]
            async with store.reading() as tx:
                rows = [await checkpoints.find(tx, each.thread_id, each.ns, each.id) for each in part]
                found = await read(tx, [row for row in rows if row is not None])  # some may be gone by now
            yield found

    async def _page(self, tx: Transaction, after: CheckpointRow | None, size: int) -> list[CheckpointRow]:
        where, wanted = self.where, self.checkpoint_id
        if not wanted or where.thread_id is None or where.ns is None:
            return await checkpoints.page(tx, where, after, limit=size)
        known = await checkpoints.lock(tx, where.thread_id, user_id=where.user_id) is not None and after is None
        row = await checkpoints.find(tx, where.thread_id, where.ns, wanted) if known else None
        return [row] if row is not None and row.id < where.before else []

    def _is_wanted(self, row: CheckpointRow) -> bool:
        return self.filter is None or self.filter.matches(metadata_of(row, self.serde))

    def _has(self, row: CheckpointRow | FoundMetadata) -> bool:
        return (self.where.ns is None or row.ns == self.where.ns) and self.checkpoint_id in (None, "", row.id)
