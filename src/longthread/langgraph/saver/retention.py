"""Finds the checkpoints of a thread that may be deleted, and what the remaining ones need."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Mapping
from datetime import UTC, datetime

from langgraph.checkpoint.serde.base import SerializerProtocol
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer

from longthread.langgraph.saver.channel_values import ChannelValue
from longthread.langgraph.saver.delta_history import ancestors
from longthread.langgraph.saver.load import filled, merged_tasks
from longthread.langgraph.saver.record import DELTA_COUNTERS, StoredCheckpoint, in_order
from longthread.store import checkpoints
from longthread.store.checkpoints import CheckpointRow, WriteRow
from longthread.store.decoding import Decoding
from longthread.store.driver import Transaction
from longthread.store.maintenance.prunable import Staying, Surplus

_PAGE = 64


class CheckpointKeeper:
    def __init__(self, serde: SerializerProtocol | None = None) -> None:
        self._serde = serde or JsonPlusSerializer()

    async def surplus(self, tx: Transaction, thread_id: str, *, keep: int | None, before: str | None) -> Surplus:
        """Find deletable checkpoints: older than the newest `keep` of each namespace (None: none) and than `before`.
        Those that a remaining delta channel needs stay. A subgraph's checkpoint goes with the root's that called it."""
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
            for n, channel in await self._unwanted(tx, thread_id, ns, kept)
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
                    cells.append(await filled(tx, row, channel, cell))
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

    async def _unwanted(self, tx: Transaction, thread_id: str, ns: str, kept: Staying) -> list[tuple[int, str]]:
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
