"""What the columns of a source hold: the values of text columns that have few, the range of dates, and keys that the
database does not declare.

Values and ranges are those of all rows, or nothing is said: a model takes a part for the whole. Files and many exported
databases declare no keys, and a model that must guess how tables join guesses wrong: a column is a key if its name says
that it refers to a table, and its values prove it.
"""

from __future__ import annotations

import re
import time
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

from longthread.errors import SqlFailed, SqlRefused
from longthread.tools.analysis.engine import SourceConnection
from longthread.tools.analysis.limits import Interrupted, Watch
from longthread.tools.analysis.quoting import quote_identifier
from longthread.tools.analysis.schema import Column, ForeignKey, Schema, Table
from longthread.tools.analysis.schema_linking import split_name, stem

LINK_SECONDS = 2.0
"""Time to prove the links of a source; links that have no turn are not shown."""
_COUNTED_ROWS = 200_000
"""Rows of a table up to which it is asked whether a column tells its rows apart."""
_VALUES = 2_000
"""Different values of a column that must stand in the other one."""
_SHORT_KEY = 3
"""Letters of a key such as `uid` and `mid`, whose first letter stands for the table."""
_MANY_TABLES = 40
"""A name that stands in more tables names none of them."""
_WORD = 3
"""Letters of a word that can name a table."""
_KEYS = frozenset({"id", "key", "code", "no", "nr", "number"})
_Found = dict[str, dict[str, ForeignKey]]


def read_links(connection: SourceConnection, schema: Schema, dialect: str) -> _Found:
    """Return the undeclared keys by table and column, as many as `LINK_SECONDS` allow. Blocking."""
    found: _Found = {}
    proof = _Proof(connection, dialect)
    until = time.monotonic() + LINK_SECONDS
    with Watch(connection.interrupt, LINK_SECONDS) as watch:
        for table, column, target, key, is_named in _candidates(schema):
            if watch.expired or time.monotonic() > until:
                break
            if column.name in found.get(table.label, {}) or _refers_back(found, table, column, target, key):
                continue
            try:
                if proof.is_key(target, key) and proof.is_within(table, column, target, key, may_be_empty=is_named):
                    link = ForeignKey((column.name,), target.label, (key.name,))
                    found.setdefault(table.label, {})[column.name] = link
            except Interrupted:
                if not watch.expired:
                    raise
                break
            except (SqlFailed, SqlRefused):
                continue  # a type without equality, or a view that is broken
    return found


def _refers_back(found: _Found, table: Table, column: Column, target: Table, key: Column) -> bool:
    back = found.get(target.label, {}).get(key.name)
    return back is not None and (back.table, back.references) == (table.label, (column.name,))


@dataclass(frozen=True, slots=True)
class _Named:
    """A column with the words of its name, and of its table's."""

    table: Table
    column: Column
    words: tuple[str, ...]
    table_words: tuple[str, ...]

    @property
    def is_own_key(self) -> bool:
        """Whether it is called like its table: `author.aid`, `state.state_name`, `sbCustomer.sbCustId`."""
        name = self.column.name.lower()
        if len(name) <= _SHORT_KEY:
            return name.endswith("id") and len(self.table_words) == 1 and self.table_words[0].startswith(name[0])
        words = [word for word in self.words if len(word) >= _WORD and word != "id"]
        return any(each.startswith(word) for word in words for each in self.table_words)

    @property
    def may_be_equal(self) -> bool:
        """Whether an equal name says something: equal numbers are chance, unless they are called keys."""
        is_called_key = self.words[-1] in _KEYS or self.words[-1].endswith("id")
        return self.words != ("id",) and (is_called_key or self.column.shape == "text")


def _candidates(schema: Schema) -> Iterator[tuple[Table, Column, Table, Column, bool]]:
    """Yield what a name says to refer to what, first and with True what names the table."""
    named = [
        _Named(table, column, _words(column.name), _table_words(table))
        for table in schema.tables.values()
        if table.kind == "table"
        for column in table.columns
        if column.shape in ("integer", "text") and column.name
    ]
    referring = [each for each in named if not _is_declared(each.table, each.column)]
    tables, keys, ends = _Index(), _Index(), _Index()
    for each in named:
        tables.add(each.table_words, each)
        if each.may_be_equal:
            keys.add(each.words, each)
        if len(each.words) > 1 and each.words[-1] == "id":
            ends.add(each.words[-2:], each)
    for one in referring:
        if one.words[-1] == "id" and len(one.words) > 1:
            for other in tables.of(one.words[:-1], one.table):
                if _is_key_of_table(one, other):
                    yield one.table, one.column, other.table, other.column, True
    others = [one for one in referring if not one.is_own_key]  # to which the others refer
    for is_own in (True, False):
        for one in others:
            matches = [*keys.of(one.words, one.table)] if one.may_be_equal else []
            matches += [each for each in ends.of(one.words[-2:], one.table) if set(each.words) < set(one.words)]
            for other in matches:
                if other.is_own_key == is_own:
                    yield one.table, one.column, other.table, other.column, is_own


def _is_key_of_table(one: _Named, other: _Named) -> bool:
    """Whether a key that `user_id` may name is called `id`, `uid` or `user_id`."""
    name = other.column.name.lower()
    return name in (one.column.name.lower(), "id") or (len(name) <= _SHORT_KEY and name == f"{one.words[0][0]}id")


def _is_declared(table: Table, column: Column) -> bool:
    return table.primary_key == (column.name,) or any(column.name in key.columns for key in table.foreign_keys)


def _words(name: str) -> tuple[str, ...]:
    return tuple(word if word == "id" else stem(word) for word in split_name(name).split() or [name])


def _table_words(table: Table) -> tuple[str, ...]:
    return tuple(map(stem, split_name(table.label.rpartition(".")[2]).split()))


class _Index:
    """Columns by words. What stands in many tables, as `created_at`, names none of them."""

    def __init__(self) -> None:
        self._columns: defaultdict[tuple[str, ...], list[_Named]] = defaultdict(list)

    def add(self, words: tuple[str, ...], column: _Named) -> None:
        self._columns[words].append(column)

    def of(self, words: tuple[str, ...], table: Table) -> list[_Named]:
        """Return the columns of other tables."""
        columns = self._columns.get(words, [])
        if len({each.table.label for each in columns}) > _MANY_TABLES:
            return []
        return [each for each in columns if each.table is not table]


class _Proof:
    """Asks the database; a column is asked for once."""

    def __init__(self, connection: SourceConnection, dialect: str) -> None:
        self._connection = connection
        self._dialect = dialect
        self._keys: dict[tuple[str, str], bool] = {}

    def is_key(self, table: Table, column: Column) -> bool:
        """Whether each row has a value of its own in a column."""
        known = self._keys.get((table.label, column.name))
        if known is None:
            known = table.primary_key == (column.name,) or self._tells_rows_apart(table, column)
            self._keys[table.label, column.name] = known
        return known

    def _tells_rows_apart(self, table: Table, column: Column) -> bool:
        if (table.estimated_rows or 0) > _COUNTED_ROWS:
            return False
        name = quote_identifier(column.name, self._dialect)
        rows = f"(SELECT {name} FROM {table.sql} LIMIT {_COUNTED_ROWS + 1}) AS looked_at"
        row = self._connection.query(f"SELECT count(*), count(DISTINCT {name}) FROM {rows}").first()
        return row is not None and 0 < int(row[0]) <= _COUNTED_ROWS and row[0] == row[1]

    def is_within(self, table: Table, column: Column, target: Table, key: Column, *, may_be_empty: bool) -> bool:
        """Whether each value of a column stands in the key."""
        name, wanted = quote_identifier(column.name, self._dialect), quote_identifier(key.name, self._dialect)
        values = f"(SELECT DISTINCT {name} AS one FROM {table.sql} WHERE {name} IS NOT NULL LIMIT {_VALUES}) AS own"
        query = f"SELECT count(*), count(k.{wanted}) FROM {values} LEFT JOIN {target.sql} AS k ON k.{wanted} = own.one"
        row = self._connection.query(query).first()
        return row is not None and row[0] == row[1] and (may_be_empty or int(row[0]) > 0)


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
_FIRST_ROWS = 20_000
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
        """Rows of tables; at most `_FIRST_ROWS` and one are counted."""
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
        if self._count(table) > _FIRST_ROWS:
            query = f"SELECT DISTINCT {name} FROM {table.sql} WHERE {name} IS NOT NULL LIMIT {_FEW + 1}"
            values = [str(row[0]) for row in self._ask(query)]
        repeated = len(values) <= _VERY_FEW or sum(count for _, count in counted) >= 2 * len(values)
        if _is_few(values) and repeated:
            self._read.values.setdefault(table.label, {})[column.name] = sorted(values)

    def _look(self, table: Table, name: str) -> list[tuple[str, int]]:
        """Return some values of the first rows with their counts: all, if they are few."""
        rows = f"(SELECT {name} FROM {table.sql} LIMIT {_FIRST_ROWS}) AS looked_at"
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
            rows = f"(SELECT 1 AS one FROM {table.sql} LIMIT {_FIRST_ROWS + 1}) AS looked_at"
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
