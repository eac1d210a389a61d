"""Keys that a database does not declare: columns whose names say that they refer to a table, and whose values prove it.

Files and many exported databases have none, and a model that must guess how tables join guesses wrong.
"""

from __future__ import annotations

import time
from collections.abc import Iterator

from longthread.errors import SqlFailed, SqlRefused
from longthread.tools.analysis.engine import SourceConnection
from longthread.tools.analysis.quoting import quoted
from longthread.tools.analysis.schema import Column, ForeignKey, Schema, Table
from longthread.tools.analysis.schema_linking import split_name, stem
from longthread.tools.analysis.watch import Interrupted, Watch

LINK_SECONDS = 2.0
"""Time to prove the links of a source; those that have no turn are not shown."""
_ROWS = 200_000
"""Rows of a table up to which it is asked whether a column tells its rows apart."""
_VALUES = 2_000
"""Different values of a column that must stand in the other one."""
_SHORT_KEY = 3
"""Letters of a key such as `uid` and `mid`, whose first letter stands for the table."""
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


def _candidates(schema: Schema) -> Iterator[tuple[Table, Column, Table, Column, bool]]:
    """Yield what a name says to refer to what, first and with True what names the table."""
    tables = [table for table in schema.tables.values() if table.kind == "table"]
    columns = [
        (table, column)
        for table in tables
        for column in table.columns
        if column.shape in ("integer", "text") and not _is_declared(table, column)
    ]
    for matches in (_names_table, _names_own_key, _names_key):
        for table, column in columns:
            if matches is not _names_table and _is_own_key(table, column):
                continue  # others refer to it
            for target in tables:
                for key in target.columns if target is not table else ():
                    if matches(column, target, key):
                        yield table, column, target, key, matches is not _names_key


def _is_declared(table: Table, column: Column) -> bool:
    return table.primary_key == (column.name,) or any(column.name in key.columns for key in table.foreign_keys)


def _names_table(column: Column, target: Table, key: Column) -> bool:
    """`user_id` names the table `users`, whose key is `id`, `uid` or `user_id`."""
    *words, last = _words(column.name)
    if last != "id" or not words or words != [*map(stem, split_name(target.label.rpartition(".")[2]).split())]:
        return False
    name = key.name.lower()
    return name == column.name.lower() or name == "id" or (len(name) <= _SHORT_KEY and name == f"{words[0][0]}id")


def _names_own_key(column: Column, target: Table, key: Column) -> bool:
    return _is_own_key(target, key) and _names_key(column, target, key)


def _is_own_key(table: Table, key: Column) -> bool:
    """Whether a key is called like its table: `author.aid`, `state.state_name`, `sbCustomer.sbCustId`."""
    name, own = key.name.lower(), split_name(table.label.rpartition(".")[2])
    if len(name) <= _SHORT_KEY:
        return name.endswith("id") and own.startswith(name[0]) and " " not in own
    words = [word for word in _words(key.name) if len(word) >= _WORD and word != "id"]
    return any(each.startswith(word) for word in words for each in own.split())


def _names_key(column: Column, target: Table, key: Column) -> bool:
    """`aid` is the key of another table by its whole name, and `sbTxCustId` is `sbCustId` by its last two words."""
    words, others = _words(column.name), _words(key.name)
    if words == others:  # equal numbers are chance, unless they are called keys
        return words != ["id"] and (words[-1] in _KEYS or words[-1].endswith("id") or column.shape == "text")
    return len(others) > 1 and words[-1] == "id" and words[-2:] == others[-2:] and set(others) <= set(words)


def _words(name: str) -> list[str]:
    *words, last = split_name(name).split() or [""]
    return [*map(stem, words), last if last == "id" else stem(last)]


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
        name = quoted(column.name, self._dialect)
        rows = f"(SELECT {name} FROM {table.sql} LIMIT {_ROWS + 1}) AS looked_at"
        row = self._connection.query(f"SELECT count(*), count(DISTINCT {name}) FROM {rows}").first()
        return row is not None and 0 < int(row[0]) <= _ROWS and row[0] == row[1]

    def is_within(self, table: Table, column: Column, target: Table, key: Column, *, may_be_empty: bool) -> bool:
        """Whether each value of a column stands in the key."""
        name, wanted = quoted(column.name, self._dialect), quoted(key.name, self._dialect)
        values = f"(SELECT DISTINCT {name} AS one FROM {table.sql} WHERE {name} IS NOT NULL LIMIT {_VALUES}) AS own"
        query = f"SELECT count(*), count(k.{wanted}) FROM {values} LEFT JOIN {target.sql} AS k ON k.{wanted} = own.one"
        row = self._connection.query(query).first()
        return row is not None and row[0] == row[1] and (may_be_empty or int(row[0]) > 0)
