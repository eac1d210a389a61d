"""Import another program's database: detect its kind and read it in one snapshot, without changes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from langgraph.checkpoint.serde.base import SerializerProtocol

from longthread.errors import CheckpointUnreadable, NothingToImport
from longthread.langgraph.saver.async_saver import AsyncLongthreadSaver
from longthread.langgraph.transfer import stock_items
from longthread.langgraph.transfer.import_checkpoints import USER_KEYS, CheckpointImport
from longthread.langgraph.transfer.import_checkpoints import CheckpointProgress as Checkpoints
from longthread.langgraph.transfer.stock_savers import StockCheckpoints, open_stock
from longthread.store.driver import Driver, Row
from longthread.store.transfer.foreign import Foreign, ImportReport, ImportSource, open_foreign, shown_address
from longthread.store.transfer.import_writer import ImportWriter
from longthread.store.transfer.kinds import (
    DatabaseKinds,
    ids_beside,
    is_empty,
    is_longthread,
    kinds_of,
    left_tables,
    read_beside,
    unreadable,
)

ImportProgress = Callable[[int, int, str], None]
"""How many are done, of how many, and which was the last."""


class Import:
    """The import of one database.

    Args:
        address: a SQLite file or a `postgresql://` URL.
        user: the owner of threads that name no user.
        takes_over: give all threads to that user.
        user_keys: keys of the metadata of LangGraph's checkpoints that name a thread's user.
        serde: the serializer that wrote LangGraph's checkpoints, and that writes them here.
    """

    def __init__(
        self,
        address: str,
        *,
        user: str,
        takes_over: bool = False,
        user_keys: Sequence[str] = USER_KEYS,
        serde: SerializerProtocol | None = None,
    ) -> None:
        self._address = address
        self._user = user
        self._takes_over = takes_over
        self._user_keys = () if takes_over else user_keys
        self._serde = serde

    async def look(self, progress: ImportProgress) -> tuple[DatabaseKinds, ImportReport]:
        """Report what the database holds, what can be imported and what cannot; write nothing.

        Raises:
            NothingToImport: nothing can be imported; the message says why.
            ExtraMissing: a package that reads it is not installed.
            StoreError: the database failed.
        """
        async with open_foreign(self._address, NothingToImport) as foreign:
            kinds = await self._kinds(foreign)
            report = ImportReport()
            await _Taking(foreign, report, None, progress).all(kinds)
            if kinds.checkpoints or kinds.items:
                await self._look_at_checkpoints(report, progress)
            await self._finish(foreign, kinds, report)
        return kinds, report

    async def check(self) -> DatabaseKinds:
        """Check that there is something to import, before a store is created; raises as `look` does."""
        async with open_foreign(self._address, NothingToImport) as foreign:
            kinds = await self._kinds(foreign)
        if kinds.checkpoints:
            async with open_stock(self._address, self._serde):
                pass
        return kinds

    async def into(self, store: Driver, progress: ImportProgress) -> tuple[DatabaseKinds, ImportReport]:
        """Import everything, each conversation whole or not at all; raises as `look` does.

        Existing data is not changed, and what was imported before a failure stays: run an interrupted import again.
        """
        async with open_foreign(self._address, NothingToImport) as foreign:
            kinds = await self._kinds(foreign)
            report = ImportReport()
            writing = await ImportWriter.into(store, self._user, takes_over=self._takes_over)
            if kinds.checkpoints or kinds.items:  # before the tables next to them
                await self._take_checkpoints(store, report, progress)
            await _Taking(foreign, report, writing, progress).all(kinds)
            await self._finish(foreign, kinds, report)
        return kinds, report

    async def _kinds(self, foreign: Foreign) -> DatabaseKinds:
        where = shown_address(self._address)
        if is_longthread(foreign):
            reason = f"it is a Longthread store. Copy it with `longthread db copy {where} TO`."
            raise NothingToImport(where=where, reason=reason)
        kinds = kinds_of(foreign)
        if not kinds.names:
            names = [table.name for table in foreign.tables.all]
            said = f"the tables {', '.join(names[:8])}, and none of them is known." if names else "no tables."
            raise NothingToImport(where=where, reason=f"it has {said}")
        if closed := sorted(kinds.tables & await unreadable(foreign)):
            reason = f"this user may not read {', '.join(closed)}. Grant SELECT on it, or import as another user."
            raise NothingToImport(where=where, reason=reason)
        if await is_empty(foreign, kinds):
            reason = f"it has the tables for {' and '.join(kinds.names)}, and no rows in them."
            raise NothingToImport(where=where, reason=reason)
        return kinds

    async def _look_at_checkpoints(self, report: ImportReport, progress: ImportProgress) -> None:
        async with open_stock(self._address, self._serde) as stock:
            threads = await stock.threads()
            total, done = await self._count(stock, threads, report), 0
            for thread_id in threads:
                for named in (await stock.users(thread_id, self._user_keys))[:1]:
                    report.users[named] += 1
                for address in await stock.checkpoints(thread_id):
                    progress(done := done + 1, total, thread_id)
                    try:
                        await stock.read(thread_id, address)
                    except CheckpointUnreadable as error:
                        report.left.append(str(error))
            async for _ in stock_items.batches(stock.foreign, report.left):
                pass  # what cannot be read is noted

    async def _count(self, stock: StockCheckpoints, threads: Mapping[str, int], report: ImportReport) -> int:
        """Note what there is, and return how many checkpoints and items."""
        checkpoints, items = sum(threads.values()), await stock_items.count(stock.foreign)
        there = {"LangGraph threads": len(threads), "checkpoints": checkpoints, "items": items}
        report.there.update({name: number for name, number in there.items() if number})
        return checkpoints + items

    async def _take_checkpoints(self, store: Driver, report: ImportReport, progress: ImportProgress) -> None:
        here: set[str] = set()

        def tell(at: Checkpoints) -> None:
            progress(at.done, at.total, at.thread_id)
            if at.kind == "item":
                report.here["items"] += 1
                return
            report.here["checkpoints"] += 1
            here.add(at.thread_id)

        saver = AsyncLongthreadSaver(store, user_id=self._user, serde=self._serde)
        async with open_stock(self._address, self._serde) as stock:
            threads = await stock.threads()
            total = await self._count(stock, threads, report)
            taking = CheckpointImport(stock, saver, self._user_keys, total=total, progress=tell)
            imported = await taking.take_all(threads)
        report.left += taking.left
        if not taking.left:
            if threads:
                report.already["checkpoints"] = imported.already
            if imported.items:
                report.already["items"] = imported.items_already
            report.users.update(imported.users)
            report.notes.update(imported.notes)
        if here:
            report.here["LangGraph threads"] = len(here)

    async def _finish(self, foreign: Foreign, kinds: DatabaseKinds, report: ImportReport) -> None:
        for name, rows in (await left_tables(foreign, kinds)).items():
            report.notes[f"the table {name} ({rows:,} rows) is left: it is of none of these kinds"] += 1


class _Taking:
    """Imports what the readers find; without a `writing`, only counts it."""

    def __init__(
        self, foreign: Foreign, report: ImportReport, writing: ImportWriter | None, progress: ImportProgress
    ) -> None:
        self._foreign = foreign
        self._report = report
        self._writing = writing
        self._progress = progress

    async def all(self, kinds: DatabaseKinds) -> None:
        for source in kinds.sources:
            await self._source(source)
        if kinds.beside:
            await self._beside()

    async def _source(self, source: ImportSource) -> None:
        late = []
        async for table, row in source.yield_shared(self._foreign, self._report):
            if row.get("session_id") is not None:
                late.append((table, row))  # when its conversation is here
            else:
                await self._write_shared(table, row)
        ids = await source.ids(self._foreign)
        self._report.there[source.noun] += len(ids)
        for place, thread_id in enumerate(ids):
            self._progress(place, len(ids), thread_id)
            await self._conversation(source, thread_id)
        self._progress(len(ids), len(ids), "")
        for table, row in late:
            await self._write_shared(table, row)

    async def _conversation(self, source: ImportSource, thread_id: str) -> None:
        conversation = await source.conversation(self._foreign, thread_id, self._report)
        if conversation is None:
            return
        self._report.there["entries"] += len(conversation.entries)
        if self._writing is None:
            self._report.users[conversation.user_id or ""] += 1
            return
        self._report.users[self._writing.owner(conversation)] += 1
        written = await self._writing.conversation(conversation, self._report)
        if written is None or not await self._writing.is_here(conversation):
            return
        self._report.here.update({source.noun: 1, "entries": len(conversation.entries)})
        self._report.here.update(conversation.holds)
        self._report.already[source.noun] += written in ("already", "gone on")

    async def _write_shared(self, table: str, row: Row) -> None:
        if self._writing is None:
            return
        written = await self._writing.write_shared(table, row, self._report)
        if written is None:
            return
        self._report.here[table] += 1
        self._report.already[table] += written == "already"
        self._report.here["vectors of memories"] += any(row.get(name) for name in ("embedding", "numbers"))

    async def _beside(self) -> None:
        ids = await ids_beside(self._foreign)
        for place, thread_id in enumerate(ids):
            self._progress(place, len(ids), thread_id)
            taken = await read_beside(self._foreign, thread_id, self._report)
            if taken is None or self._writing is None:
                continue
            if (written := await self._writing.beside(taken, self._report)) is not None:
                self._report.here.update(taken.holds)
                if written == "already":
                    self._report.already.update(taken.holds)
        self._progress(len(ids), len(ids), "")
