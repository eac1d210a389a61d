"""Statistics of a table's values: counts, ranges, frequent values. Limited in time and rows."""

from __future__ import annotations

import json
import re
import time
from dataclasses import dataclass, field
from typing import Any

from longthread.errors import SqlFailed, SqlRefused
from longthread.tools.analysis.cell import as_numbers, json_cell, shown
from longthread.tools.analysis.engine import SourceConnection
from longthread.tools.analysis.limits import Interrupted, Limits, Watch
from longthread.tools.analysis.quoting import quoted
from longthread.tools.analysis.schema import Column, Table

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
                found.columns[column.name] = _statistics(connection, relation, column, limits, dialect)
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


def _statistics(
    connection: SourceConnection, relation: str, column: Column, limits: Limits, dialect: str
) -> dict[str, Any]:
    if column.shape in _SKIPPED:
        return {}
    name = quoted(column.name, dialect)
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
        statistics["values"] = as_numbers([shown(row[0], limits.sample_cell_characters)[0] for row in rows])
    if distinct and column.shape == "text":
        statistics |= _numbers(connection, relation, name, "CHAR" if dialect == "mysql" else "TEXT")
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
