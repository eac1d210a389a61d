"""JSON and JSON Lines as DuckDB tables: fields of objects as columns, lists of objects as tables of their own."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import cast

import duckdb
from duckdb.sqltypes import DuckDBPyType

from longthread.tools.analysis.files.delimited import DelimitedTable
from longthread.tools.analysis.files.notes import Note
from longthread.tools.analysis.limits import Limits
from longthread.tools.analysis.quoting import UniqueNames, literal, quote_identifier

_DEEPEST = 5
"""Objects within objects that become columns and tables."""
_MOST_COLUMNS = 500
_MOST_TABLES = 20


@dataclass(frozen=True)
class _Value:
    """A value of each row: its column's name, its expression and its type."""

    name: str
    sql: str
    type: DuckDBPyType

    @property
    def holds_objects(self) -> bool:
        """Whether it is a list of objects."""
        return self.type.id == "list" and _within(self.type)[0][1].id == "struct"


def _within(kind: DuckDBPyType) -> list[tuple[str, DuckDBPyType]]:
    """The fields of an object's type, or the type of a list's values."""
    return [(name, cast(DuckDBPyType, child)) for name, child in kind.children]


def json_table(root: duckdb.DuckDBPyConnection, path: Path, limits: Limits, *, load: bool) -> DelimitedTable:
    """Reads a UTF-8 file. A single object with one list of objects (an API's answer) is a table of that list. Lists of
    objects in the rows are `children`, if all rows are loaded."""
    sample = -1 if load else 100_000
    call = f"read_json({literal(str(path))}, sample_size = {sample}, maximum_object_size = {limits.value_bytes})"
    columns = root.execute(f"DESCRIBE FROM {call}").fetchall()
    lists = [str(row[0]) for row in columns if str(row[1]).startswith("STRUCT(") and str(row[1]).endswith(")[]")]
    if not load:
        return replace(_table(root, call, "", 0), reads=path, children=())
    if len(lists) == 1:
        row = root.execute(f"SELECT count(*) FROM (FROM {call} LIMIT 2)").fetchone()
        if row is not None and row[0] == 1:
            others = [str(column[0]) for column in columns if str(column[0]) != lists[0]]
            beside = f"; beside it the file holds {', '.join(others[:10])}" if others else ""
            told = f'The rows are those of the list "{lists[0]}"{beside}.'
            rows_note = Note(told, "rows_of_list", list=lists[0], others=", ".join(others[:10]))
            made = _table(root, f"(SELECT unnest({quote_identifier(lists[0])}, max_depth := 2) FROM {call})", "", 0)
            return replace(made, notes=[(None, rows_note), *made.notes])
    return _table(root, call, "", 0)


def _table(root: duckdb.DuckDBPyConnection, relation: str, parent: str, depth: int) -> DelimitedTable:
    """The table of a relation's rows. `parent` is the column that already names the row above."""
    found = root.sql(f"FROM {relation}")
    top = [_Value(name, quote_identifier(name), kind) for name, kind in zip(found.columns, found.types, strict=True)]
    values = [value for one in top for value in _fields(one, depth)]
    if len(values) > _MOST_COLUMNS:
        too_many = Note("Its objects have too many fields to be columns.", "too_many_fields")
        return DelimitedTable(relation, [(None, too_many)])
    names = UniqueNames()
    values = [replace(value, name=names.take(value.name)) for value in values]
    lists = [value for value in values if value.holds_objects and depth < _DEEPEST][:_MOST_TABLES]
    plain = [value for value in values if value not in lists]
    if not lists:
        return DelimitedTable(_select_values(plain, relation), [])
    key = _key(root, relation, [value for value in plain if value.name != parent])
    if key is None:
        key = _Value(names.take("row_number"), "row_number() OVER ()", found.types[0])
        plain = [key, *plain]
    notes: list[tuple[str | None, Note]] = []
    children: list[tuple[str, DelimitedTable]] = []
    above = f"parent_{key.name}"
    for value in lists:
        rows = f"(SELECT {key.sql} AS {quote_identifier(above)}, unnest({value.sql}) AS item FROM {relation})"
        item = f"(SELECT {quote_identifier(above)}, unnest(item) FROM {rows})"
        children.append((value.name, _table(root, item, above, depth + 1)))
        told = f'Its lists "{value.name}" are a table of their own, whose {above} is {key.name} here.'
        notes.append((None, Note(told, "list_table", list=value.name, above=above, key=key.name)))
    return DelimitedTable(_select_values(plain, relation), notes, children=tuple(children))


def _select_values(values: list[_Value], relation: str) -> str:
    return f"(SELECT {', '.join(f'{value.sql} AS {quote_identifier(value.name)}' for value in values)} FROM {relation})"


def _fields(value: _Value, depth: int) -> Iterator[_Value]:
    """A value itself, or the fields of an object, each named with it: `user_name`."""
    if value.type.id != "struct" or depth >= _DEEPEST:
        yield value
        return
    for name, kind in _within(value.type):
        field = _Value(f"{value.name}_{name}", f"struct_extract({value.sql}, {literal(name)})", kind)
        yield from _fields(field, depth + 1)


def _key(root: duckdb.DuckDBPyConnection, relation: str, values: list[_Value]) -> _Value | None:
    """The first value called an id that each row has, and no other row."""
    for value in values:
        if not value.name.lower().endswith("id") or value.type.id in ("list", "struct", "map"):
            continue
        row = root.execute(f"SELECT count(*) = count(DISTINCT {value.sql}) FROM {relation}").fetchone()
        if row is not None and row[0]:
            return value
    return None
