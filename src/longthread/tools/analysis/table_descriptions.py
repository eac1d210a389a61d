"""Descriptions of tables for a model: a list, or one table in full. Both are limited, and continue on request.

`table_name` marks a description that facts are learned from; a part of one has `table` instead. A description has the
statistics of a table's values: counts, ranges and frequent values, limited in time and rows.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from typing import Any

from longthread.errors import ColumnNotFound, SqlFailed, SqlRefused
from longthread.tools.analysis.dialects.dialect import find_dialect
from longthread.tools.analysis.engine import SourceConnection
from longthread.tools.analysis.limits import Interrupted, Limits, Watch
from longthread.tools.analysis.quoting import quote_identifier
from longthread.tools.analysis.result import as_numbers, cut, json_cell, render_cell
from longthread.tools.analysis.schema import Column, Schema, Table, close_names

_FEW = 100
"""Distinct values up to which a column's frequent values are listed; of integers, `_SHOWN`."""
_SHOWN = 20
_DATE = re.compile(r"\d{4}-\d{2}-\d{2}(?:[ T]\d{2}:\d{2}(?::\d{2}(?:\.\d+)?)?(?:Z|[+-]\d{2}:?\d{2})?)?")
_NUMBER = re.compile(
    r"[-+(]?\s*(?:[$€£¥₹]|[A-Z]{3}\s)?\s*"
    r"(?:0|[1-9]\d*|[1-9]\d{0,2}(?:[,.'\s]\d{3})+)(?:[.,]\d+)?(?:[eE][-+]?\d+)?\s*(?:[%$€£¥₹元]|\s[A-Z]{3})?\)?"
)
"""A number as people write it: with thousands, a decimal comma, a currency; no leading zeros."""
_LOOKED_AT = 1_000
"""Values of a text column that are checked for numbers."""
_SKIPPED = frozenset({"binary", "other"})
BESIDE = 1_000
"""Bytes of an observation that are reserved in addition to its parts."""
_LABELS = 100
"""Labels of one column, at most."""
_SHORT = 5, 40
"""Values of a column, and characters of each, in the short form."""
_BARE = 20
"""Characters of a column's type and comment in the shortest form."""
_PART = 8
"""Fraction of an observation for a page of a comment, or for a list of keys."""


@dataclass
class Profile:
    """Statistics by column name."""

    columns: dict[str, dict[str, Any]] = field(default_factory=dict)
    rows: int | None = None
    rows_approximate: bool = False
    sampled_rows: int | None = None
    """Rows of the sample, if not all rows were read."""
    complete: bool = True
    """Whether all columns were done in time."""


def profile(
    connection: SourceConnection, table: Table, columns: tuple[Column, ...], limits: Limits, dialect: str
) -> Profile:
    """The statistics of `columns`, as many as the time allows."""
    found = Profile()
    until = time.monotonic() + limits.statistics_seconds
    found.rows, found.rows_approximate = count_rows(connection, table, limits.statistics_seconds / 2)
    most = max(1_000, limits.statistics_cells // max(1, len(columns)))
    relation = table.sql
    if found.rows is None or found.rows > most or found.rows_approximate:
        relation, found.sampled_rows = f"(SELECT * FROM {table.sql} LIMIT {most}) AS sample", most
    with Watch(connection.interrupt, max(0.1, until - time.monotonic())) as watch:
        for column in columns:
            if watch.expired:
                found.complete = False
                break
            try:
                found.columns[column.name] = _column_statistics(connection, relation, column, limits, dialect)
            except Interrupted:
                if not watch.expired:
                    raise
                found.complete = False
                break
            except (SqlFailed, SqlRefused):
                # A type without order or equality, or a view that is broken, or reads what no query may.
                continue
    return found


def count_rows(connection: SourceConnection, table: Table, seconds: float) -> tuple[int | None, bool]:
    """The number of rows (None if counting takes too long), and whether it is the database's estimate."""
    if table.estimated_rows is not None and table.estimated_rows > 1_000_000:
        return table.estimated_rows, True
    with Watch(connection.interrupt, seconds) as watch:
        try:
            row = connection.query(f"SELECT count(*) FROM {table.sql}").first()
            return (int(row[0]), False) if row else (None, False)
        except (SqlFailed, SqlRefused):
            return None, False
        except Interrupted:
            if not watch.expired:
                raise
    return table.estimated_rows, table.estimated_rows is not None


def _column_statistics(
    connection: SourceConnection, relation: str, column: Column, limits: Limits, dialect: str
) -> dict[str, Any]:
    if column.shape in _SKIPPED:
        return {}
    name = quote_identifier(column.name, dialect)
    # PostgreSQL has no least truth, and no least label of a domain.
    ordered = column.shape != "boolean" and not column.is_enumerated
    bounds = f", min({name}), max({name})" if ordered else ", NULL, NULL"
    row = connection.query(f"SELECT count(DISTINCT {name}){bounds} FROM {relation}").first()
    if row is None:
        return {}
    distinct, least, most = int(row[0]), row[1], row[2]
    statistics: dict[str, Any] = {"distinct": distinct}
    if distinct and _has_range(column, least, most):
        statistics["min"] = json_cell(least, limits.sample_cell_characters)[0]
        statistics["max"] = json_cell(most, limits.sample_cell_characters)[0]
    is_key = column.primary_key and column.shape == "integer"
    most_listed = {"text": _FEW, "boolean": _FEW, "integer": _SHOWN}.get(column.shape, 0)
    if 0 < distinct <= most_listed and not is_key:
        rows = connection.query(
            f"SELECT {name} FROM {relation} WHERE {name} IS NOT NULL "
            f"GROUP BY {name} ORDER BY count(*) DESC, {name} LIMIT {_SHOWN}"
        )
        statistics["values"] = as_numbers([render_cell(row[0], limits.sample_cell_characters)[0] for row in rows])
    if distinct and column.shape == "text":
        statistics |= _numbers(connection, relation, name, find_dialect(dialect).text_type)
    return statistics


def _numbers(connection: SourceConnection, relation: str, name: str, text: str) -> dict[str, str]:
    """A note on a text column whose values are mostly numbers."""
    query = f"SELECT substr(CAST({name} AS {text}), 1, 40) FROM {relation} WHERE {name} IS NOT NULL LIMIT {_LOOKED_AT}"
    values = [str(row[0]).strip() for row in connection.query(query)]
    others = [value for value in values if not _NUMBER.fullmatch(value)]
    numbers = len(values) - len(others)
    if numbers <= len(others):
        return {}
    note = f"{numbers} of {len(values)} values are numbers, kept as text: cast them to calculate or to compare."
    marks = sorted({mark for value in values if value not in others for mark in re.findall(r"[^\d.eE+-]", value)})
    if marks:
        note += f" Some are written with {' '.join(json.dumps(mark, ensure_ascii=False) for mark in marks)}."
    if others:
        note += f" Others are {', '.join(json.dumps(value, ensure_ascii=False) for value in sorted(set(others))[:3])}."
    return {"note": note}


def _has_range(column: Column, least: Any, most: Any) -> bool:
    """Numbers and dates have a range; dates are often stored as text."""
    if column.shape in ("integer", "number", "date"):
        return True
    return all(isinstance(bound, str) and _DATE.fullmatch(bound) for bound in (least, most))


def size_of(value: Any) -> int:
    """The bytes of a value as JSON."""
    return len(json.dumps(value, ensure_ascii=False, default=str).encode())


def count_in(values: Iterable[Any], room: int) -> int:
    """The number of leading values that fit into `room` bytes of JSON."""
    return sum(1 for total in accumulate(size_of(value) + 2 for value in values) if total <= room)


def describe_tables(
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
    schema: Schema,
    table: Table,
    columns: Sequence[Column],
    found: Profile,
    limits: Limits,
    begin: int = 0,
    dialect: str = "",
) -> dict[str, Any]:
    """Describes a table's `columns` from place `begin` on: shorter if they do not fit, and then fewer."""
    named = "table_name" if begin == 0 else "table"
    head: dict[str, Any] = {named: table.label, "kind": table.kind, "rows": found.rows}
    if "." in table.label and table.sql == quote_identifier(table.label, dialect):
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
    """Return the keys of a table or column, and the keys that refer to it, as far as they fit."""
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
