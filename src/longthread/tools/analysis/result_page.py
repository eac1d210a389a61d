"""A page of a result, in the query's order or by a column. NULL comes last."""

from __future__ import annotations

import heapq
import json
import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from typing import Any

from longthread.errors import ColumnNotFound
from longthread.tools.analysis.engine import SourceConnection
from longthread.tools.analysis.limits import Limits
from longthread.tools.analysis.result import Binary, Result, count_rest, evenly, fits, hexadecimal, plain, shaped_row


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
