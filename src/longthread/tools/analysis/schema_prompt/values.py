"""What the columns of a source hold: the values of text columns that have few, and the range of dates.

Both are those of all rows, or nothing is said: a model takes a part for the whole.
"""

from __future__ import annotations

import re
import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

from longthread.errors import SqlFailed, SqlRefused
from longthread.tools.analysis.engine import SourceConnection
from longthread.tools.analysis.limits import Interrupted, Watch
from longthread.tools.analysis.quoting import quote_identifier
from longthread.tools.analysis.schema import Column, ForeignKey, Schema, Table
from longthread.tools.analysis.schema_prompt.links import LINK_SECONDS, read_links

_VALUE_SECONDS = 3.0
"""Time for all columns of a source; columns that have no turn are shown without values."""
_STATEMENT_SECONDS = 1.0
"""Time for one question about a column, so that a large table does not take that of the others."""
_SIZING = 0.3
"""Share of the time for counting the tables whose size the database does not estimate."""
READ_SECONDS = _VALUE_SECONDS + LINK_SECONDS + 1
"""Time for both, and for the last statement of each to heed its interrupt."""
_VERY_FEW, _FEW = 4, 8
"""Distinct values up to which a column's are listed: always, and if each stands in two rows on average, as those of
names and keys do not."""
_CHARACTERS = 30
"""Characters of a listed value: longer ones are prose, and no value is listed."""
_ALL_CHARACTERS = 120
"""Characters of all values of a column."""
_ROWS = 20_000
"""Rows of a table that are looked at first: what they rule out is not asked of all rows."""
_DATE = re.compile(r"\d{4}-\d{2}(?:-\d{2})?(?:[ T].*)?")
_DAY = 10
"""Characters of a date without its time."""


@dataclass(slots=True)
class SourceValues:
    """Values, ranges, and keys that are not declared, by table and column. `is_complete`: each column was queried in
    time, so that no more can be said of any."""

    values: dict[str, dict[str, list[str]]] = field(default_factory=dict)
    ranges: dict[str, dict[str, list[str]]] = field(default_factory=dict)
    links: Mapping[str, Mapping[str, ForeignKey]] = field(default_factory=dict)
    is_complete: bool = True

    def note_of(self, table: str, column: str) -> str:
        """Return what a column holds, as a comment says it; empty if it is not known."""
        if few := self.values.get(table, {}).get(column):
            return ", ".join("'" + value.replace("'", "''") + "'" for value in few)
        return " to ".join(self.ranges.get(table, {}).get(column, ()))


def read_values(connection: SourceConnection, schema: Schema, dialect: str) -> SourceValues:
    """Read what the columns hold and refer to. Blocking, for `READ_SECONDS` at most."""
    read = SourceValues(links=read_links(connection, schema, dialect))
    reader = _Reader(connection, dialect, read)
    for table in reader.rank([table for table in schema.tables.values() if any(map(_may_tell, table.columns))]):
        for column in filter(_may_tell, table.columns):
            try:
                reader.read_column(table, column)
            except _TooLong:
                read.is_complete = False
            except (SqlFailed, SqlRefused):
                continue  # a type without equality, or a view that is broken
    return read


def _may_tell(column: Column) -> bool:
    return not column.labels and not column.primary_key and column.shape in ("text", "date")


class _TooLong(Exception):
    """A statement did not end in its time, or had none."""


class _Reader:
    """Asks for the columns of one source, in `_VALUE_SECONDS` from the beginning."""

    def __init__(self, connection: SourceConnection, dialect: str, read: SourceValues) -> None:
        self._connection = connection
        self._dialect = dialect
        self._read = read
        self._begin = time.monotonic()
        self._sizes: dict[str, int] = {}
        """Rows of tables; at most `_ROWS` and one are counted."""
        self._was_late = False

    def rank(self, tables: Sequence[Table]) -> list[Table]:
        """Return tables in the order of their turns: the smallest first, and views last, whose cost is unknown."""
        sizes: dict[str, float] = {}
        for table in sorted(tables, key=_is_view):
            if table.estimated_rows is not None:
                sizes[table.label] = table.estimated_rows
            elif time.monotonic() < self._begin + _SIZING * _VALUE_SECONDS:
                try:
                    sizes[table.label] = self._count(table)
                except (_TooLong, SqlFailed, SqlRefused):
                    continue
        return sorted(tables, key=lambda table: (_is_view(table), sizes.get(table.label, float("inf"))))

    def read_column(self, table: Table, column: Column) -> None:
        """Read a column's values or range. Raises _TooLong, SqlFailed, SqlRefused."""
        name = quote_identifier(column.name, self._dialect)
        counted = self._look(table, name) if column.shape == "text" else []
        values = [value for value, _ in counted]
        is_date = column.shape == "date"
        if (is_date or (values and all(map(_DATE.fullmatch, values)))) and (
            bounds := self._bounds(table, name, is_date=is_date)
        ):
            ranges = self._read.ranges.setdefault(table.label, {})
            if bounds not in ranges.values():  # the columns before tell it
                ranges[column.name] = bounds
            return
        if is_date or (values and not _is_few(values)):
            return
        if self._count(table) > _ROWS:
            query = f"SELECT DISTINCT {name} FROM {table.sql} WHERE {name} IS NOT NULL LIMIT {_FEW + 1}"
            values = [str(row[0]) for row in self._ask(query)]
        repeated = len(values) <= _VERY_FEW or sum(count for _, count in counted) >= 2 * len(values)
        if _is_few(values) and repeated:
            self._read.values.setdefault(table.label, {})[column.name] = sorted(values)

    def _look(self, table: Table, name: str) -> list[tuple[str, int]]:
        """Return some values of the first rows with their counts: all, if they are few."""
        rows = f"(SELECT {name} FROM {table.sql} LIMIT {_ROWS}) AS looked_at"
        query = f"SELECT {name}, count(*) FROM {rows} WHERE {name} IS NOT NULL GROUP BY {name} LIMIT {_FEW + 1}"
        return [(str(row[0]), int(row[1])) for row in self._ask(query)]

    def _bounds(self, table: Table, name: str, *, is_date: bool) -> list[str]:
        """Return the least and the greatest value of all rows, or the one day that both are; nothing, unless both are
        dates or a short value of a date's type. Of texts they show the format; of dates they are as short as tells
        them apart, since each digit is a token. An index answers each by itself."""
        row = self._ask(f"SELECT (SELECT min({name}) FROM {table.sql}), (SELECT max({name}) FROM {table.sql})")[0]
        bounds = [] if row[0] is None else [str(bound) for bound in row]
        if all(map(_DATE.fullmatch, bounds)):
            bounds = list(dict.fromkeys(bound[:_DAY] for bound in bounds))
            return _shorten_range(bounds) if is_date else bounds if len(bounds) > 1 else []
        return bounds if is_date and not any(map(_DATE.fullmatch, bounds)) and _is_few(set(bounds)) else []

    def _count(self, table: Table) -> int:
        if table.label not in self._sizes:
            rows = f"(SELECT 1 AS one FROM {table.sql} LIMIT {_ROWS + 1}) AS looked_at"
            self._sizes[table.label] = int(self._ask(f"SELECT count(*) FROM {rows}")[0][0])
        return self._sizes[table.label]

    def _ask(self, query: str) -> list[Sequence[Any]]:
        """Return the few rows of a statement. Raises _TooLong, SqlFailed, SqlRefused."""
        seconds = min(_STATEMENT_SECONDS, self._begin + _VALUE_SECONDS - time.monotonic())
        if seconds <= 0:
            raise _TooLong
        with Watch(self._connection.interrupt, seconds) as watch:
            try:
                rows = list(islice(self._connection.query(query), _FEW + 1))
            except Interrupted:
                # The interrupt of the last statement may come late; one from without comes again.
                if not watch.expired and not self._was_late:
                    raise
                self._was_late = watch.expired
                raise _TooLong from None
        self._was_late = False
        return rows


def _shorten_range(days: Sequence[str]) -> list[str]:
    """Return the years of two days, or their months if they are of one year; days of one month as they are."""
    for length in (len("2024"), len("2024-05")):
        if len(shortened := list(dict.fromkeys(day[:length] for day in days))) > 1:
            return shortened
    return list(days)


def _is_view(table: Table) -> bool:
    return table.kind == "view"


def _is_few(values: Collection[str]) -> bool:
    return (
        0 < len(values) <= _FEW
        and all(value.strip() and len(value) <= _CHARACTERS and "\n" not in value for value in values)
        and sum(map(len, values)) <= _ALL_CHARACTERS
    )
