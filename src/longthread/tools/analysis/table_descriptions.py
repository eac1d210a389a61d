"""Descriptions of tables for a model: a list, or one table in full. Both are limited, and continue on request.

`table_name` marks a description that facts are learned from; a part of one has `table` instead.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from itertools import accumulate
from typing import Any

from longthread.errors import ColumnNotFound
from longthread.tools.analysis.cell import cut
from longthread.tools.analysis.limits import Limits
from longthread.tools.analysis.profile import Profile
from longthread.tools.analysis.quoting import quoted
from longthread.tools.analysis.schema import Column, Schema, Table, close_names

BESIDE = 1_000
"""Bytes of an observation that are reserved beside its parts."""
_LABELS = 100
"""Labels of one column, at most."""
_SHORT = 5, 40
"""Values of a column, and characters of each, in the short form."""
_BARE = 20
"""Characters of a column's type and comment in the shortest form."""
_PART = 8
"""Fraction of an observation for a page of a comment, or for a list of keys."""


def size_of(value: Any) -> int:
    """The bytes of a value as JSON."""
    return len(json.dumps(value, ensure_ascii=False, default=str).encode())


def count_in(values: Iterable[Any], room: int) -> int:
    """The number of leading values that fit into `room` bytes of JSON."""
    return sum(1 for total in accumulate(size_of(value) + 2 for value in values) if total <= room)


def listed(
    tables: Sequence[Table], rows: Mapping[str, tuple[int | None, bool]], limits: Limits
) -> dict[str, dict[str, Any]]:
    """Entries of a list of tables: the first ones that fit into one observation."""
    texts = {table.label: _about(table, rows, limits) for table in tables}
    # Each is named twice: in the list and in `about`.
    shown = count_in(([label, label, about] for label, about in texts.items()), limits.bytes - 4 * BESIDE)
    return dict(list(texts.items())[:shown])


def named_columns(tables: Sequence[Table], room: int) -> dict[str, list[str]]:
    """The column names of tables; empty if they need more than `room` bytes."""
    names = {table.label: [column.name for column in table.columns] for table in tables}
    return names if size_of(names) <= room else {}


def _about(table: Table, rows: Mapping[str, tuple[int | None, bool]], limits: Limits) -> dict[str, Any]:
    count, approximate = rows.get(table.label, (table.estimated_rows, table.estimated_rows is not None))
    texts: dict[str, Any] = {"rows": count, "kind": table.kind}
    if approximate:
        texts["approximate"] = True
    if table.comment:
        texts["comment"] = cut(table.comment, limits.sample_cell_characters)
    return texts


def description(
    schema: Schema, table: Table, columns: Sequence[Column], found: Profile, limits: Limits, begin: int = 0
) -> dict[str, Any]:
    """Describes a table's `columns` from place `begin` on: shorter if they do not fit, and then fewer."""
    named = "table_name" if begin == 0 else "table"
    head: dict[str, Any] = {named: table.label, "kind": table.kind, "rows": found.rows}
    if "." in table.label and table.sql in (quoted(table.label), quoted(table.label, "mysql")):
        head["sql_name"] = table.sql  # a dot that parts no schema and table
    keys = _keys(schema, table, limits) if begin == 0 else {}
    comment = _comment(table.comment, 0, limits) if begin == 0 else {}
    whole = [_column(column, found, limits) for column in columns]
    room = limits.bytes - 2 * BESIDE - size_of([head, keys, comment])
    forms = (whole, [_in_short(each, *_SHORT) for each in whole], [_in_short(each, 0, _BARE) for each in whole])
    texts = next((each for each in forms if count_in(each, room) == len(whole)), forms[1])
    shown = max(1, count_in(texts, room)) if texts else 0
    of: dict[str, Any] = {"columns": texts[:shown], "columns_shown": f"{shown} of {len(table.columns)}"}
    if begin + shown < len(table.columns):
        of["next"] = begin + shown
    if texts is not whole:
        of["in_short"] = "There is no room for all that is known of each column: `column` shows one."
    return {**head, **of, **keys, **comment, **_statistics(found, columns)}


def _in_short(about: dict[str, Any], values: int, characters: int) -> dict[str, Any]:
    """A column's description with fewer values and cut texts; without values there is no range either."""
    texts = {name: cut(each, characters) if isinstance(each, str) else each for name, each in about.items()}
    for name in ("values", "labels"):
        if name in about:
            texts[name] = [cut(each, characters) if isinstance(each, str) else each for each in about[name][:values]]
    left_out = () if values else ("values", "labels", "labels_shown", "min", "max", "note")
    return {name: each for name, each in texts.items() if name not in left_out} | {"name": about["name"]}


def column_of(
    schema: Schema, table: Table, column: Column, found: Profile, limits: Limits, begin: int
) -> dict[str, Any]:
    """One column, with its comment from character `begin` on, and its keys."""
    about = _column(column, found, limits) | _comment(column.comment, begin, limits)
    return {"table": table.label, "column": about, **_keys(schema, table, limits, column.name)}


def comment_of(table: Table, begin: int, limits: Limits) -> dict[str, Any]:
    """A table's comment from character `begin` on."""
    return {"table": table.label, **_comment(table.comment, begin, limits)}


def column_named(table: Table, name: str) -> Column:
    """Finds a column in any case. Raises ColumnNotFound: there is none, or it is ambiguous."""
    exact = [column for column in table.columns if column.name == name]
    found = exact or [column for column in table.columns if column.name.casefold() == name.casefold()]
    if len(found) == 1:
        return found[0]
    names = [column.name for column in table.columns]
    close = close_names(name, names) or names[:10]
    raise ColumnNotFound(column=name[:200], nearest=f"The nearest columns of {table.label} are: {', '.join(close)}.")


def _keys(schema: Schema, table: Table, limits: Limits, column: str | None = None) -> dict[str, Any]:
    """The keys of a table or column, and those that refer to it, as far as they fit."""
    own = [
        {"columns": list(key.columns), "table": key.table, "references": list(key.references)}
        for key in table.foreign_keys
        if column is None or column in key.columns
    ]
    others = [
        {"table": other.label, "columns": list(key.columns), "references": list(key.references)}
        for other, key in schema.referenced_by(table)
        if column is None or column in key.references
    ]
    primary = {"primary_key": list(table.primary_key)} if column is None else {}
    return {**primary, **_in_part("foreign_keys", own, limits), **_in_part("referenced_by", others, limits)}


def _in_part(name: str, keys: list[dict[str, Any]], limits: Limits) -> dict[str, Any]:
    shown = count_in(keys, limits.bytes // _PART)
    more = {f"{name}_shown": f"{shown} of {len(keys)}"} if shown < len(keys) else {}
    return {name: keys[:shown], **more}


def _comment(comment: str | None, begin: int, limits: Limits) -> dict[str, Any]:
    """A page of a comment, with its place if that is not all."""
    if not comment:
        return {}
    end = min(len(comment), begin + limits.bytes // _PART)
    if (begin, end) == (0, len(comment)):
        return {"comment": comment}
    shown = f"characters {min(begin, end):,} to {end:,} of {len(comment):,}"
    more = {"comment_next": end} if end < len(comment) else {}
    return {"comment": comment[begin:end], "comment_shown": shown, **more}


def _statistics(found: Profile, columns: Sequence[Column]) -> dict[str, Any]:
    """Notes on statistics from a sample, or of some columns only."""
    texts: dict[str, Any] = {}
    if found.rows_approximate or found.sampled_rows is not None:
        texts["approximate"] = True
    if found.sampled_rows is not None:
        texts["statistics"] = f"from the first {found.sampled_rows} rows"
    if not found.complete:
        texts["statistics_shown"] = f"{len(found.columns)} of {len(columns)} columns, in the time there was"
    return texts


def _column(column: Column, found: Profile, limits: Limits) -> dict[str, Any]:
    about: dict[str, Any] = {
        "name": column.name,
        "type": cut(column.type, limits.cell_characters),
        "nullable": column.nullable,
        "primary_key": column.primary_key,
    }
    if column.comment:
        about["comment"] = cut(column.comment, limits.cell_characters)
    if column.labels:
        about["labels"] = [cut(label, limits.sample_cell_characters) for label in column.labels[:_LABELS]]
        if len(column.labels) > _LABELS:
            about["labels_shown"] = f"{_LABELS} of {len(column.labels)}"
    return about | found.columns.get(column.name, {})
