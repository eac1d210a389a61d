"""The results of queries, beyond the rows that the model saw: page by page, in an order. NULL comes last."""

from __future__ import annotations

import asyncio
import heapq
import json
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal, InvalidOperation
from typing import Any, BinaryIO

from longthread.access.grants import EVERYTHING, GrantedRights
from longthread.errors import ColumnNotFound, EntryNotFound, RunNotFound
from longthread.model.catalog import QUERIES
from longthread.model.run import Run, Step
from longthread.model.thread import Thread
from longthread.runs.services.sources import Sources
from longthread.store import log, runs
from longthread.store.driver import Driver
from longthread.tools.analysis.column_format import ColumnFormat, format_of_json
from longthread.tools.analysis.engine import SourceConnection
from longthread.tools.analysis.export import TableFormat, write
from longthread.tools.analysis.limits import Limits
from longthread.tools.analysis.result import (
    Binary,
    Result,
    count_rest,
    evenly,
    fits,
    hexadecimal,
    is_whole,
    plain,
    shaped_row,
)
from longthread.tools.analysis.source import Source


@dataclass(frozen=True, slots=True)
class PageRequest:
    """Which rows: `limit` from place `offset` on, by the column `sort`, if given. Rows that are equal in it stay in the
    query's order."""

    offset: int = 0
    limit: int = 100
    sort: str | None = None
    descending: bool = False

    def place(self, columns: Sequence[str]) -> int | None:
        """Return the place of the column to sort by. Raises ColumnNotFound."""
        if self.sort is None:
            return None
        if self.sort not in columns:
            raise ColumnNotFound(column=self.sort[:100], nearest=f"The result has {', '.join(columns)[:500]}.")
        return list(columns).index(self.sort)


def page_of(columns: Sequence[str], rows: Sequence[Sequence[Any]], wanted: PageRequest) -> Result:
    """Return a page of rows that are cells already. Raises ColumnNotFound."""
    place = wanted.place(columns)
    ordered = list(rows)
    if place is not None:
        keys = [_rank(value) for value in _as_numbers([row[place] for row in rows])]
        ordered = [rows[at] for at in _select_first(range(len(rows)), lambda at: keys[at], wanted, len(rows))]
    chosen = [list(row) for row in ordered[wanted.offset : wanted.offset + wanted.limit]]
    return Result(list(columns), chosen, counted=len(rows))


def read_page(connection: SourceConnection, sql: str, limits: Limits, wanted: PageRequest) -> Result:
    """Run a prepared statement and return a page of its rows. It reads as far as the page, and counts on; sorted, it
    reads all rows, and keeps those up to the page's end. Raises ColumnNotFound, SourceError."""
    rows = connection.query(sql)
    result = Result(rows.columns)
    try:
        place = wanted.place(rows.columns)
        if place is None:
            for row in rows:
                result.counted += 1
                if result.counted > wanted.offset:
                    _add(result, row, limits, rows.binary)
                if len(result.rows) >= wanted.limit:
                    count_rest(connection.interrupt, rows, result, limits)
                    break
        else:
            all_rows = _count_rows(rows, result)
            last = wanted.offset + wanted.limit
            ordered = _select_first(all_rows, lambda row: _rank(plain(row[place], rows.binary)), wanted, last)
            for row in ordered[wanted.offset :]:
                _add(result, row, limits, rows.binary)
    finally:
        rows.close()
    result.rows = evenly(result.rows, rows.quotients)
    return result


def _add(result: Result, row: Sequence[Any], limits: Limits, binary: Binary = hexadecimal) -> None:
    shaped, cut = shaped_row(row, limits.cell_characters, None, binary)
    result.rows.append(shaped)
    result.cut_cells += cut


def _count_rows(rows: Iterable[Sequence[Any]], result: Result) -> Iterator[Sequence[Any]]:
    for row in rows:
        result.counted += 1
        yield row


def _select_first(items: Iterable[Any], rank: Any, wanted: PageRequest, most: int) -> list[Any]:
    """Return the first `most` items in order; those without a value come last."""
    if wanted.descending:
        return heapq.nlargest(most, items, key=lambda item: ((found := rank(item)) is not None, found or ()))
    return heapq.nsmallest(most, items, key=lambda item: ((found := rank(item)) is None, found or ()))


def _rank(value: Any) -> tuple[Any, ...] | None:
    """Return what a value is sorted by; None for NULL. Values of several types are sorted by type first."""
    if value is None:
        return None
    if isinstance(value, bool | int | float | Decimal):
        return (1,) if _is_nan(value) else (0, value)
    if isinstance(value, str):
        return 2, value.casefold(), value
    return 3, json.dumps(value, ensure_ascii=False, default=str)


def _is_nan(value: float | Decimal) -> bool:
    return value.is_nan() if isinstance(value, Decimal) else math.isnan(value)


def _as_numbers(column: Sequence[Any]) -> Sequence[Any]:
    """Return a column as numbers, where its cells are texts because a double would change one of them."""
    try:
        numbers = [None if cell is None else Decimal(cell) for cell in column if cell is None or isinstance(cell, str)]
    except InvalidOperation:
        return column
    is_exact = len(numbers) == len(column) and any(each is not None and not fits(each) for each in numbers)
    return numbers if is_exact else column


@dataclass(frozen=True, slots=True)
class ResultPage:
    """A page of a step's result. `rerun`: the query was run again, so that the rows may be others than the model saw.
    Not `whole`: there are more rows in the database, and it cannot be asked for them. `total` counts all, None where
    they were not counted to the end."""

    step: Step
    sql: str
    result: Result
    total: int | None
    whole: bool
    rerun: bool


@dataclass(frozen=True, slots=True)
class KeptResult:
    """What a step keeps of a result."""

    thread: Thread
    run: Run
    step: Step
    data: Mapping[str, Any]

    @property
    def sql(self) -> str:
        return str(self.data.get("sql", ""))

    @property
    def columns(self) -> Sequence[str]:
        return list(self.data["columns"])

    @property
    def rows(self) -> Sequence[Sequence[Any]]:
        return list(self.data["rows"])

    @property
    def whole(self) -> bool:
        return is_whole(self.data)

    @property
    def formats(self) -> dict[str, ColumnFormat]:
        """The formats of columns that the source gave."""
        return {name: format_of_json(each) for name, each in (self.data.get("formats") or {}).items()}

    @property
    def can_run(self) -> bool:
        """Whether the query can be run again: that of a tool in the catalog has values of its own."""
        return self.step.action in QUERIES and bool(self.sql)

    @property
    def runs_again(self) -> bool:
        """Whether all rows are only in the database."""
        return not self.whole and self.can_run


@dataclass(frozen=True, slots=True)
class FileRequest:
    """A file of a result. `formats` are those of columns by name, instead of the source's. `shown`: in a CSV file cells
    are as the page shows them."""

    format: TableFormat
    formats: Mapping[str, ColumnFormat] = field(default_factory=dict)
    shown: bool = False


class Results:
    """Pages of results, and whole ones as files. A step keeps the first rows; for others its query is run again,
    through the guard, by the rules that hold now."""

    def __init__(self, store: Driver, sources: Sources) -> None:
        self._store = store
        self._sources = sources

    async def page(
        self, thread_id: str, index: int, wanted: PageRequest, *, user_id: str, rights: GrantedRights = EVERYTHING
    ) -> ResultPage:
        """Return a page of the result of a step.

        Raises:
            EntryNotFound: the step has no result with rows.
            ColumnNotFound: there is no column to sort by.
            SourceError, SourceMissing: the query cannot be run again.
            ThreadNotFound: there is no such thread, or it is another user's.
        """
        kept = await self.find_kept(thread_id, index, user_id)
        if kept.whole or not kept.can_run:
            result = await asyncio.to_thread(page_of, kept.columns, kept.rows, wanted)
            total = result.total if kept.whole else kept.data.get("total")
            return ResultPage(kept.step, kept.sql, result, total, whole=kept.whole, rerun=False)
        async with await self.open_source(kept, user_id, rights) as source:
            _, sql = await asyncio.to_thread(source.prepare, kept.sql, await source.schema())
            limits = source.limits
            result = await source.work(lambda connection: read_page(connection, sql, limits, wanted))
        return ResultPage(kept.step, kept.sql, result, result.total, whole=True, rerun=True)

    async def write(
        self,
        thread_id: str,
        index: int,
        to: BinaryIO,
        wanted: FileRequest,
        *,
        user_id: str,
        rights: GrantedRights = EVERYTHING,
    ) -> KeptResult:
        """Write all rows of the result of a step to a file: the rows that it keeps, or those of the query, run again.
        Return the result that the step keeps.

        Raises:
            ResultTooLong: a sheet cannot hold the rows.
            and what `page` raises, but for a column.
        """
        kept = await self.find_kept(thread_id, index, user_id)
        if not kept.runs_again:
            await asyncio.to_thread(write_file, wanted, kept.formats, kept.columns, kept.rows, to)
            return kept
        async with await self.open_source(kept, user_id, rights) as source:
            _, sql = await asyncio.to_thread(source.prepare, kept.sql, await source.schema())

            def work(connection: SourceConnection) -> None:
                rows = connection.query(sql)
                try:
                    write_file(wanted, kept.formats, rows.columns, rows, to, rows.binary)
                finally:
                    rows.close()

            await source.work(work)
        return kept

    async def find_kept(self, thread_id: str, index: int, user_id: str) -> KeptResult:
        """Return what a step keeps of a result. Raises ThreadNotFound, or EntryNotFound: it has none."""
        async with self._store.reading() as tx:
            thread = await log.find_thread(tx, thread_id, user_id=user_id)
            for step in await runs.steps_between(tx, thread_id, index, index + 1):
                data = (step.observation or {}).get("data")
                if step.kind == "tool" and isinstance(data, Mapping) and {"columns", "rows", "sql"} <= data.keys():
                    run = await runs.find_run(tx, thread_id, step.run_id)
                    if run is None:
                        raise RunNotFound(thread=thread_id, run=step.run_id)
                    return KeptResult(thread, run, step, data)
        raise EntryNotFound(thread=thread_id, entry=f"with a result at step {index}")

    async def open_source(self, kept: KeptResult, user_id: str, rights: GrantedRights = EVERYTHING) -> Source:
        """Open the source that the run asked, for the caller to close: the thread may ask another one now. Raises also
        NotGranted."""
        thread = replace(kept.thread, source=kept.run.source)
        return await self._sources.open(None, thread, user_id=user_id, rights=rights)


def write_file(
    wanted: FileRequest,
    told: Mapping[str, ColumnFormat],
    columns: Sequence[str],
    rows: Iterable[Sequence[Any]],
    to: BinaryIO,
    binary: Binary = hexadecimal,
) -> None:
    """Write rows to a file. The source's formats hold where the request names none. Raises ResultTooLong."""
    formats = {**told, **wanted.formats}
    write(wanted.format, columns, rows, to, binary=binary, marked=True, formats=formats, shown=wanted.shown)
