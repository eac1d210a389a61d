"""Finds the checkpoints of a thread that may be deleted, and deletes them: these, or those of given runs."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Literal

from langchain_core.messages import BaseMessage
from langgraph.checkpoint.serde.base import SerializerProtocol
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer

from longthread.errors import RowDamaged, ValueDamaged
from longthread.langgraph.message_codec import draft_of
from longthread.langgraph.saver.channel_values import ChannelValue
from longthread.langgraph.saver.delta import ancestors, delta_messages
from longthread.langgraph.saver.load import list_of, load_value, merged_tasks
from longthread.langgraph.saver.record import DELTA_COUNTERS, StoredCheckpoint, in_order
from longthread.langgraph.saver.thread_cache import CONVERSATION
from longthread.store import checkpoints, log
from longthread.store.checkpoints import CheckpointRow, Locked, WriteRow
from longthread.store.driver import Transaction
from longthread.store.maintenance.retention import Staying, Surplus, delete_surplus
from longthread.store.rows import Decoding

_PAGE = 64
Strategy = Literal["keep_latest", "delete"]
_DELETE_PAGE = 256
_MOST_NAMED = 5


class CheckpointKeeper:
    def __init__(self, serde: SerializerProtocol | None = None) -> None:
        self._serde = serde or JsonPlusSerializer()

    async def surplus(self, tx: Transaction, thread_id: str, *, keep: int | None, before: str | None) -> Surplus:
        """Find deletable checkpoints: older than the newest `keep` of each namespace (None: none) and than `before`.
        Checkpoints that a remaining delta channel needs stay. A subgraph's checkpoint goes with the root's that called
        it."""
        staying: dict[str, Staying] = {}
        over: list[str] = []
        for ns in await checkpoints.namespaces(tx, thread_id):
            newest = await checkpoints.find(tx, thread_id, ns, None)
            if newest is None:
                continue  # Writes whose first checkpoint is still to come.
            if keep is None:
                staying[ns] = Staying(0, newest.n, newest.id)
            elif await self._is_over(tx, newest, staying.get("")):
                over.append(ns)
            else:
                staying[ns] = Staying(await self._first(tx, newest, keep, before), newest.n, newest.id)
        blobs = [
            (ns, n, channel)
            for ns, kept in staying.items()
            for n, channel in await self._find_unwanted(tx, thread_id, ns, kept)
        ]
        return Surplus(staying, tuple(over), tuple(blobs))

    async def first_entry(self, tx: Transaction, thread_id: str, staying: Mapping[str, Staying]) -> int | None:
        """Return the first entry that the remaining checkpoints refer to."""
        first: int | None = None
        for ns, kept in staying.items():
            async for row, writes in _rows(tx, thread_id, ns, kept):
                stored = StoredCheckpoint.from_row(row, self._serde)
                cells = [cell for *_, cell in in_order(merged_tasks(stored, writes, thread_id).values())]
                for channel, cell in stored.cells.items():
                    cells.append(await load_value(tx, row, channel, cell))
                first = min([*([] if first is None else [first]), *_seqs(cells)], default=None)
        return first

    async def _is_over(self, tx: Transaction, newest: CheckpointRow, root: Staying | None) -> bool:
        with Decoding(newest.thread_id, "the metadata of checkpoint", newest.id):
            parent_id = newest.about.get("parents", {}).get("")
        if ":" not in newest.ns or parent_id is None or root is None:
            return False
        # A subgraph's checkpoint may be stored before the root's that called it.
        parent = await checkpoints.find(tx, newest.thread_id, "", parent_id)
        return parent is not None and parent.n < root.first

    async def _first(self, tx: Transaction, newest: CheckpointRow, keep: int, before: str | None) -> int:
        first, count = newest.n, 0
        async for row in _down(tx, newest.thread_id, newest.ns):
            if count >= keep and (before is None or self._time(row) < datetime.fromisoformat(before)):
                break
            count += 1
            first = min(first, row.n, await self._first_needed(tx, row))
        return first

    def _time(self, row: CheckpointRow) -> datetime:
        with Decoding(row.thread_id, "the time of checkpoint", row.id):
            moment = datetime.fromisoformat(StoredCheckpoint.from_row(row, self._serde).checkpoint(self._serde)["ts"])
        return moment if moment.tzinfo else moment.replace(tzinfo=UTC)

    async def _first_needed(self, tx: Transaction, row: CheckpointRow) -> int:
        """Return the first checkpoint that this one's delta channels need."""
        open_ = set(row.about.get(DELTA_COUNTERS, ())) - StoredCheckpoint.from_row(row, self._serde).cells.keys()
        first = row.n
        if open_:
            async for ancestor, _ in ancestors(tx, row):
                first = min(first, ancestor.n)
                open_ -= StoredCheckpoint.from_row(ancestor, self._serde).cells.keys()
                if not open_:
                    break
        return first

    async def _find_unwanted(self, tx: Transaction, thread_id: str, ns: str, kept: Staying) -> list[tuple[int, str]]:
        there = await tx.fetch("select_blob_names", thread_id=thread_id, ns=ns)
        unwanted = {(int(row["n"]), str(row["channel"])) for row in there if row["n"] < kept.first}
        if unwanted:
            async for row in _down(tx, thread_id, ns):
                if row.n < kept.first:
                    break
                cells = StoredCheckpoint.from_row(row, self._serde).cells
                unwanted -= {(cell.stored_by, channel) for channel, cell in cells.items() if cell.stored_by is not None}
        return sorted(unwanted)


async def _down(tx: Transaction, thread_id: str, ns: str) -> AsyncIterator[CheckpointRow]:
    last: int | None = None
    while page := await checkpoints.before(tx, thread_id, ns, last, limit=1 if last is None else _PAGE):
        for row in page:
            yield row
        last = page[-1].n


async def _rows(
    tx: Transaction, thread_id: str, ns: str, kept: Staying
) -> AsyncIterator[tuple[CheckpointRow, list[WriteRow]]]:
    async for row in _down(tx, thread_id, ns):
        if row.n < kept.first:
            return
        yield row, await checkpoints.writes(tx, thread_id, ns, row.id)


def _seqs(cells: Iterable[ChannelValue]) -> list[int]:
    return [first for cell in cells for first, _ in cell.runs()]


@dataclass(slots=True)
class DamagedThreads:
    """Threads that are skipped because something of them cannot be read, while others are done."""

    errors: dict[str, RowDamaged] = field(default_factory=dict)

    @contextmanager
    def left(self, thread_id: str) -> Iterator[None]:
        """Collect the damage that the block finds in a thread."""
        try:
            yield
        except RowDamaged as error:  # of this thread alone: a database that is damaged itself is not written to
            self.errors.setdefault(thread_id, error)

    def tell(self) -> None:
        """Raise RowDamaged if threads were skipped: it describes one, and names the others."""
        if not self.errors:
            return
        first = next(iter(self.errors.values()))
        # The message says for both kinds what to do.
        error = next((each for each in self.errors.values() if isinstance(each, ValueDamaged)), first)
        others = [name for name, each in self.errors.items() if each is not error]
        if not others:
            raise error
        named = ", ".join(others[:_MOST_NAMED])
        more = f" and {len(others) - _MOST_NAMED} more" if len(others) > _MOST_NAMED else ""
        reason = f"{error.reason} Damaged too: thread{'s' * (len(others) > 1)} {named}{more}."
        raise type(error)(reason=reason) from error


async def prune(tx: Transaction, thread: Locked, strategy: Strategy, serde: SerializerProtocol) -> None:
    """Delete a thread's checkpoints, but for the newest of each namespace if the strategy is `keep_latest`.

    Earlier ones stay if those need them for their delta channels. A subgraph's checkpoint goes with the root's that
    called it. The messages stay in the log.
    """
    if strategy == "keep_latest":
        surplus = await CheckpointKeeper(serde).surplus(tx, thread.id, keep=1, before=None)
        await delete_surplus(tx, thread.id, surplus)
        return
    namespaces = await checkpoints.namespaces(tx, thread.id)
    for ns in namespaces:
        await checkpoints.delete_namespace(tx, thread.id, ns)
    if namespaces:
        await checkpoints.renew(tx, thread)


async def delete_for_runs(tx: Transaction, thread: Locked, run_ids: Iterable[str], serde: SerializerProtocol) -> None:
    """Delete the runs' checkpoints from a thread, and move its tip back to where it was before them."""
    thread_id = thread.id
    rows = [row for run_id in run_ids for row in await checkpoints.of_run(tx, thread_id, run_id)]
    if not rows:
        return
    end = await _end(tx, thread, serde)
    await checkpoints.delete(tx, rows)
    await checkpoints.renew(tx, thread)
    for ns in sorted({row.ns for row in rows}):
        await _tidy(tx, thread_id, ns, serde)
    before = await _end(tx, thread, serde)
    tip, _ = await log.position(tx, thread_id)
    if end == tip and before is not None and before != tip:
        await log.set_tip(tx, thread_id, before)


async def _end(tx: Transaction, thread: Locked, serde: SerializerProtocol) -> int | None:
    """Return the entry of the last message at the newest checkpoint; None if it has none."""
    ns, channel = CONVERSATION
    row = await checkpoints.find(tx, thread.id, ns, None)
    if row is None:
        return None
    cell = StoredCheckpoint.from_row(row, serde).cells.get(channel)
    runs = list_of(await load_value(tx, row, channel, cell)) if cell is not None else None
    if runs is not None:
        return max((last for _, last, _ in runs), default=None)
    messages = await delta_messages(tx, row, channel, serde, thread.first_seq)
    return await _on_branch(tx, thread, messages[-1]) if messages else None


async def _on_branch(tx: Transaction, thread: Locked, message: BaseMessage) -> int | None:
    """Return the last entry of the active branch that holds this message."""
    at, text = thread.tip, draft_of(message).text
    while at >= thread.first_seq and (page := await log.branch(tx, thread.id, at, limit=_DELETE_PAGE)):
        for entry in reversed(page):
            if log.sent_id(entry) == message.id and entry.text in (text, ""):  # "": sealed
                return entry.seq
        at = page[0].parent_seq
    return None


async def _tidy(tx: Transaction, thread_id: str, ns: str, serde: SerializerProtocol) -> None:
    wanted: set[tuple[int, str]] = set()
    last: CheckpointRow | None = None
    while rows := await checkpoints.before(tx, thread_id, ns, last.n if last else None, limit=_DELETE_PAGE):
        wanted.update(_apart(rows, serde))
        last = rows[-1]
    await checkpoints.tidy(tx, thread_id, ns, wanted)


def _apart(rows: Iterable[CheckpointRow], serde: SerializerProtocol) -> Iterable[tuple[int, str]]:
    """Yield the separately stored values of checkpoints, by number and channel."""
    for row in rows:
        for channel, cell in StoredCheckpoint.from_row(row, serde).cells.items():
            if cell.stored_by is not None:
                yield cell.stored_by, channel
