"""Export threads and items to the database of LangGraph's own savers and stores.

The checkpoints of a thread are read in one snapshot, with versions as those savers have them. These count up in texts,
and a random part tells the versions of different branches apart: PostgresSaver stores a value once for its channel and
version. Longthread counts in numbers, which repeat on each branch.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

from langchain_core.messages import BaseMessage
from langgraph.checkpoint.base import BaseCheckpointSaver, CheckpointTuple
from langgraph.checkpoint.serde.base import SerializerProtocol

from longthread.errors import ExportIncomplete, LongthreadError, RowDamaged
from longthread.langgraph.saver.async_saver import AsyncLongthreadSaver
from longthread.langgraph.saver.load import CheckpointReader, merged_tasks
from longthread.langgraph.saver.record import StoredCheckpoint
from longthread.langgraph.saver.saver import on_home
from longthread.langgraph.saver.thread_cache import CachedThread
from longthread.langgraph.transfer.import_checkpoints import (
    CheckpointProgress,
    CheckpointTally,
    StoredVersions,
    copy_checkpoint,
)
from longthread.langgraph.transfer.stock_items import ItemTally
from longthread.langgraph.transfer.stock_savers import CheckpointAddress, reader_of
from longthread.langgraph.transfer.stock_target import StockTarget, export_items
from longthread.store import checkpoints, items
from longthread.store.checkpoints import Locked
from longthread.store.driver import Driver, Transaction
from longthread.store.transfer.threads import count_checkpoints, list_checkpoint_users, sent_ids

_Texts = Mapping[tuple[str, Any], str]
"""The text of a channel's version at a checkpoint."""


@dataclass(slots=True)
class TextVersions:
    """The versions of one thread. Ask for its checkpoints oldest first: the same ones give the same texts."""

    _known: dict[tuple[str, str], _Texts] = field(default_factory=dict)
    """By namespace and checkpoint."""

    def of(self, found: CheckpointTuple) -> CheckpointTuple:
        """Return a checkpoint with versions as texts."""
        checkpoint = found.checkpoint
        at = found.config["configurable"]
        parent = (found.parent_config or {}).get("configurable", {}).get("checkpoint_id", "")
        before = self._known.get((at["checkpoint_ns"], parent), {})
        texts: dict[tuple[str, Any], str] = {}

        def text(channel: str, version: Any) -> Any:
            if not isinstance(version, int | float):
                return version
            known = before.get((channel, version)) or _text(channel, version, checkpoint["id"])
            return texts.setdefault((channel, version), known)

        versions = {channel: text(channel, version) for channel, version in checkpoint["channel_versions"].items()}
        seen = {
            node: {channel: text(channel, version) for channel, version in channels.items()}
            for node, channels in checkpoint["versions_seen"].items()
        }
        self._known[at["checkpoint_ns"], checkpoint["id"]] = texts
        return found._replace(checkpoint={**checkpoint, "channel_versions": versions, "versions_seen": seen})


def _text(channel: str, version: float, checkpoint_id: str) -> str:
    own = int.from_bytes(hashlib.blake2b(f"{checkpoint_id} {channel}".encode(), digest_size=6).digest()) % 10**14
    return f"{int(version):032}.0.{own:014}"


@dataclass(slots=True)
class ThreadSource:
    """One thread in one snapshot."""

    tx: Transaction
    thread: Locked
    saver: AsyncLongthreadSaver
    memory: CachedThread
    versions: TextVersions = field(default_factory=TextVersions)

    async def addresses(self) -> list[CheckpointAddress]:
        """List the checkpoints of all namespaces, oldest first."""
        rows = await self.tx.fetch("count_checkpoint_writes", thread_id=self.thread.id, user_id=self.saver._user_id)
        found = [CheckpointAddress(row["ns"], row["id"], int(row["writes"]), row["parent"]) for row in rows]
        found.sort(key=lambda address: (address.id, address.ns))
        for address in {address.ns: address for address in found}.values():
            # The longest list of messages comes first: the lists of earlier checkpoints are prefixes of it.
            with suppress(RowDamaged):  # which is reported when it is its turn
                await self._read(address, remembers=True)
        return found

    async def read(self, address: CheckpointAddress) -> tuple[CheckpointTuple, Mapping[str, str]]:
        """Return a checkpoint and its writes, as LangGraph's own savers hold them, and the paths of its tasks. Read
        all, oldest first: see `TextVersions`.

        Raises:
            RowDamaged: it cannot be read.
        """
        found, paths = await self._read(address)
        return self.versions.of(found), paths

    async def _read(
        self, address: CheckpointAddress, *, remembers: bool = False
    ) -> tuple[CheckpointTuple, Mapping[str, str]]:
        at = self.thread.id, address.ns, address.id
        row = await checkpoints.find(self.tx, *at)
        assert row is not None  # it is in this snapshot
        rows = await checkpoints.writes(self.tx, *at)
        asked = self.tx, self.thread.id, self.memory, self.saver.serde, self.thread.first_seq
        found = await CheckpointReader(*asked, remembers=remembers).read(row, rows)
        tasks = merged_tasks(StoredCheckpoint.from_row(row, self.saver.serde), rows, self.thread.id)
        return found, {task.id: task.path for task in tasks.values()}


@asynccontextmanager
async def thread_source(saver: AsyncLongthreadSaver, thread_id: str) -> AsyncIterator[ThreadSource | None]:
    """Read one thread of the saver's user; None if it is gone."""
    async with saver._store.reading() as tx:
        thread = await checkpoints.lock(tx, thread_id, user_id=saver._user_id)
        if thread is None:
            yield None
        else:
            yield ThreadSource(tx, thread, saver, CachedThread(thread.incarnation, thread.first_seq))


def message_ids(value: Any) -> Iterator[str]:
    """Yield the ids of the messages in a value, however deep."""
    if isinstance(value, BaseMessage):
        if value.id:
            yield value.id
    elif isinstance(value, dict):
        for each in value.values():
            yield from message_ids(each)
    elif isinstance(value, list | tuple | set):
        for each in value:
            yield from message_ids(each)


ExportProgress = Callable[[CheckpointProgress], None]


@dataclass(frozen=True, slots=True)
class Exported:
    """The result of an export. `already` and `items_already` count what was there before; `notes` says what has no
    place in such a database."""

    threads: int
    checkpoints: int
    writes: int
    already: int
    items: int
    items_already: int
    notes: Sequence[str] = ()


async def export_langgraph(
    address: str,
    saver: AsyncLongthreadSaver,
    *,
    serde: SerializerProtocol | None = None,
    replaces: bool = False,
    progress: ExportProgress | None = None,
) -> Exported:
    """Write the checkpoints and items of the saver's user to the database of LangGraph's own savers and stores.

    SqliteSaver or PostgresSaver, SqliteStore or PostgresStore then go on with them. Each thread is written as it is at
    one moment. A thread that is there is not changed, unless it is the beginning of this one: run an interrupted export
    again to finish it. At the end both sides are counted.

    Args:
        address: `sqlite:///FILE`, a SQLite file, or a `postgresql://` URL. Missing tables, and a file, are made.
        serde: the serializer that the program there uses; by default the saver's.
        replaces: replace threads and items that are there and differ.

    Raises:
        NotAnExportTarget: the database is none for that; the message says why.
        ExtraMissing: the package of the stock saver is not installed.
        ExportIncomplete: something could not be read or written, or differs there; `left` names each.
        StoreError: a database failed. What was exported before is there.
    """
    return await on_home(saver, _export_all, address, saver, serde, replaces, progress)


async def _export_all(
    address: str,
    saver: AsyncLongthreadSaver,
    serde: SerializerProtocol | None,
    replaces: bool,
    progress: ExportProgress | None,
) -> Exported:
    target = await StockTarget.of(address, serde or saver.serde)
    async with saver._store.reading() as tx:
        counts = await count_checkpoints(tx, saver._user_id)
        number = await items.number(tx, saver._user_id)
    total = sum(each.checkpoints for each in counts) + number
    export = _Export(saver, target, replaces, total=total, progress=progress)
    wanted = [each.thread_id for each in counts if each.checkpoints]
    await export.threads(wanted)
    written = ItemTally()
    if number:
        written = await export_items(saver, target, replaces, export.failures, export.tell_item)
    if without := sum(1 for each in counts if not each.checkpoints and each.entries > 0):
        export.notes.append(f"{without} threads have messages and no checkpoints; no graph made them")
    if left := export.left:
        raise ExportIncomplete(where=target.redacted_address, reason=left[0], left=left)
    done = export.done_threads, export.checkpoints, export.writes, export.already
    return Exported(*done, written.there, written.already, tuple(export.notes))


@dataclass(slots=True)
class _Export(CheckpointTally):
    saver: AsyncLongthreadSaver
    target: StockTarget
    replaces: bool
    done_threads: int = 0

    async def threads(self, thread_ids: list[str]) -> None:
        if not thread_ids:
            return
        there = await self.target.checkpoints(thread_ids)
        written: dict[str, list[CheckpointAddress]] = {}
        async with self.target.saver() as stock:
            for thread_id in thread_ids:
                async with thread_source(self.saver, thread_id) as source:
                    if source is not None:
                        written[thread_id] = await self._thread(stock, source, there.get(thread_id, []))
        there = await self.target.checkpoints(list(written))
        for thread_id, addresses in written.items():
            known = {address.key: address.writes for address in there.get(thread_id, [])}
            missing = [address for address in addresses if known.get(address.key, -1) < address.writes]
            self.failures += [f"checkpoint {each.id} of thread {thread_id} is not there whole." for each in missing]

    async def _thread(
        self, stock: BaseCheckpointSaver[str], source: ThreadSource, there: Sequence[CheckpointAddress]
    ) -> list[CheckpointAddress]:
        """Write what is missing of a thread, oldest first; return its checkpoints that are there now."""
        thread_id = source.thread.id
        wanted = await source.addresses()
        self.done_threads += 1
        if there and not _is_beginning(there, wanted):
            if not self.replaces:
                self.failures.append(f"thread {thread_id} is there already, and is not the beginning of the one here.")
                return []
            await stock.adelete_thread(thread_id)
            there = []
        for address in wanted[: len(there)]:
            self.already += 1
            self.tell_checkpoint(thread_id, address)
        exported = {
            message for address in wanted[: len(there)] for message in message_ids(await _tuple(source, address))
        }
        whole = await self._write(stock, source, wanted[len(there) :], exported)
        if left := len(set(await sent_ids(source.tx, thread_id)) - exported):
            self.notes.append(f"thread {thread_id}: {left} messages are in no checkpoint")
        return [*wanted[: len(there)], *whole]

    async def _write(
        self,
        stock: BaseCheckpointSaver[str],
        source: ThreadSource,
        wanted: Sequence[CheckpointAddress],
        exported: set[str],
    ) -> list[CheckpointAddress]:
        stored: StoredVersions = set()
        written = []
        thread_id = source.thread.id
        for address in wanted:
            try:
                found, paths = await source.read(address)
                exported.update(message_ids(found))
                await copy_checkpoint(found, paths, stock, stored)
            except RowDamaged as error:
                self.failures.append(f"checkpoint {address.id} of thread {thread_id}: {error}")
            except LongthreadError:
                raise
            except (TypeError, ValueError) as error:
                advice = "Give the serde that the program there uses"
                self.failures.append(f"checkpoint {address.id} of thread {thread_id}: {error}. {advice}.")
            else:
                written.append(address)
                self.tell_checkpoint(thread_id, address)
        return written


async def _tuple(source: ThreadSource, address: CheckpointAddress) -> object:
    try:
        return (await source.read(address))[0]
    except RowDamaged:
        return None  # it was written when it could be read


def _is_beginning(there: Sequence[CheckpointAddress], wanted: Sequence[CheckpointAddress]) -> bool:
    """Whether what is there are the first checkpoints of what is wanted. Its last one may have got more writes here."""
    if [each.key for each in there] != [each.key for each in wanted[: len(there)]]:
        return False
    return all(known.writes <= here.writes for known, here in zip(there, wanted, strict=False))


@dataclass(slots=True)
class ExportReport:
    """What is there now, by kind; what is to be said of it; and what is not there, and why."""

    written: Counter[str] = field(default_factory=Counter)
    notes: list[str] = field(default_factory=list)
    left: list[str] = field(default_factory=list)


async def export_users(
    store: Driver,
    address: str,
    progress: Callable[[int, int, str], None],
    *,
    user: str | None,
    replaces: bool,
    serde: SerializerProtocol | None,
) -> ExportReport:
    """Export what this user has, or what all users have; raises as `export_langgraph` does, but for what is left.

    Objects of the application's classes are copied as packed bytes: none of its code is needed.
    """
    report, threads = ExportReport(Counter(threads=0, checkpoints=0, items=0)), set[str]()

    def tell(at: CheckpointProgress) -> None:
        progress(at.done, at.total, at.thread_id)
        report.written[f"{at.kind}s"] += 1
        if at.kind == "checkpoint":
            threads.add(at.thread_id)

    packed, _ = reader_of(serde)
    async with store.reading() as tx:
        users = [user] if user is not None else await list_checkpoint_users(tx)
    for each in users:
        saver = AsyncLongthreadSaver(store, user_id=each, serde=packed)
        try:
            done = await export_langgraph(address, saver, serde=packed, replaces=replaces, progress=tell)
        except ExportIncomplete as error:
            report.left += error.left
        else:
            report.notes += done.notes
    if len(users) > 1:
        report.notes.append(f"the threads of {len(users)} users are in one database now, which knows no users")
    report.written["threads"] = len(threads)
    return report
