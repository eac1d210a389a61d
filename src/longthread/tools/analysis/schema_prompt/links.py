"""Keys that a database does not declare: columns whose names say that they refer to a table, and whose values prove it.

Files and many exported databases have none, and a model that must guess how tables join guesses wrong.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass

from longthread.errors import SqlFailed, SqlRefused
from longthread.tools.analysis.engine import SourceConnection
from longthread.tools.analysis.limits import Interrupted, Watch
from longthread.tools.analysis.quoting import quote_identifier
from longthread.tools.analysis.schema import Column, ForeignKey, Schema, Table
from longthread.tools.analysis.schema_linking import split_name, stem

LINK_SECONDS = 2.0
"""Time to prove the links of a source; links that have no turn are not shown."""
_ROWS = 200_000
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
        if (table.estimated_rows or 0) > _ROWS:
            return False
        name = quote_identifier(column.name, self._dialect)
        rows = f"(SELECT {name} FROM {table.sql} LIMIT {_ROWS + 1}) AS looked_at"
        row = self._connection.query(f"SELECT count(*), count(DISTINCT {name}) FROM {rows}").first()
        return row is not None and 0 < int(row[0]) <= _ROWS and row[0] == row[1]

    def is_within(self, table: Table, column: Column, target: Table, key: Column, *, may_be_empty: bool) -> bool:
        """Whether each value of a column stands in the key."""
        name, wanted = quote_identifier(column.name, self._dialect), quote_identifier(key.name, self._dialect)
        values = f"(SELECT DISTINCT {name} AS one FROM {table.sql} WHERE {name} IS NOT NULL LIMIT {_VALUES}) AS own"
        query = f"SELECT count(*), count(k.{wanted}) FROM {values} LEFT JOIN {target.sql} AS k ON k.{wanted} = own.one"
        row = self._connection.query(query).first()
        return row is not None and row[0] == row[1] and (may_be_empty or int(row[0]) > 0)
