"""What the columns of a source hold: the values of text columns that have few, and the range of dates."""

from __future__ import annotations

import re
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from itertools import islice

from longthread.errors import SqlFailed, SqlRefused
from longthread.tools.analysis.engine import SourceConnection
from longthread.tools.analysis.quoting import quoted
from longthread.tools.analysis.schema import Column, ForeignKey, Schema, Table
from longthread.tools.analysis.schema_prompt.links import LINK_SECONDS, read_links
from longthread.tools.analysis.watch import Interrupted, Watch

_VALUE_SECONDS = 3.0
"""Time for all columns of a source; those that have no turn are shown without values."""
READ_SECONDS = _VALUE_SECONDS + LINK_SECONDS
_VERY_FEW, _FEW = 4, 8
"""Distinct values up to which a column's are listed: always, and if each stands in two rows on average, as those of
names and keys do not."""
_CHARACTERS = 30
"""Characters of a listed value: longer ones are prose, and no value is listed."""
_ALL_CHARACTERS = 120
"""Characters of all values of a column."""
_ROWS = 20_000
"""Rows of a table that are looked at."""
_DATE = re.compile(r"\d{4}-\d{2}(?:-\d{2})?(?:[ T].*)?")
_DAY = 10
"""Characters of a date without its time."""


@dataclass(slots=True)
class SourceValues:
    """Values, ranges, and keys that are not declared, by table and column."""

    values: dict[str, dict[str, list[str]]] = field(default_factory=dict)
    ranges: dict[str, dict[str, list[str]]] = field(default_factory=dict)
    links: Mapping[str, Mapping[str, ForeignKey]] = field(default_factory=dict)

    def note_of(self, table: str, column: str) -> str:
        """Return what a column holds, as a comment says it; empty if it is not known."""
        if few := self.values.get(table, {}).get(column):
            return ", ".join("'" + value.replace("'", "''") + "'" for value in few)
        if bounds := self.ranges.get(table, {}).get(column):
            return f"{bounds[0]} to {bounds[1]}"
        return ""


def read_values(connection: SourceConnection, schema: Schema, dialect: str) -> SourceValues:
    """Read what the columns hold and refer to. Blocking, for `READ_SECONDS` at most."""
    read = SourceValues(links=read_links(connection, schema, dialect))
    _read_columns(connection, schema, dialect, read)
    return read


def _read_columns(connection: SourceConnection, schema: Schema, dialect: str, read: SourceValues) -> None:
    """Read as many columns as the time allows: small tables have their turn first."""
    until = time.monotonic() + _VALUE_SECONDS
    with Watch(connection.interrupt, _VALUE_SECONDS) as watch:
        for table in sorted(schema.tables.values(), key=lambda each: each.estimated_rows or 0):
            for column in table.columns:
                if watch.expired or time.monotonic() > until:
                    return
                try:
                    _read_column(connection, table, column, dialect, read)
                except Interrupted:
                    if not watch.expired:
                        raise
                    return
                except (SqlFailed, SqlRefused):
                    continue  # a type without equality, or a view that is broken


def _read_column(connection: SourceConnection, table: Table, column: Column, dialect: str, read: SourceValues) -> None:
    if column.labels or column.primary_key or column.shape not in ("text", "date"):
        return
    name, rows = quoted(column.name, dialect), f"(SELECT * FROM {table.sql} LIMIT {_ROWS}) AS looked_at"
    if column.shape == "text":
        query = f"SELECT {name}, count(*) FROM {rows} WHERE {name} IS NOT NULL GROUP BY {name} LIMIT {_FEW + 1}"
        counted = [(str(row[0]), int(row[1])) for row in islice(connection.query(query), _FEW + 1)]
        values = [value for value, _ in counted]
        repeated = len(values) <= _VERY_FEW or sum(count for _, count in counted) >= 2 * len(values)
        if _is_few(values) and repeated:
            read.values.setdefault(table.label, {})[column.name] = sorted(values)
        if not values or not all(_DATE.fullmatch(value) for value in values):
            return
    row = connection.query(f"SELECT min({name}), max({name}) FROM {rows}").first()
    bounds = [str(bound)[:_DAY] for bound in row] if row is not None and row[0] is not None else []
    if len(set(bounds)) > 1:
        read.values.get(table.label, {}).pop(column.name, None)
        read.ranges.setdefault(table.label, {})[column.name] = bounds


def _is_few(values: Iterable[str]) -> bool:
    listed = list(values)
    return (
        0 < len(listed) <= _FEW
        and all(value.strip() and len(value) <= _CHARACTERS and "\n" not in value for value in listed)
        and sum(map(len, listed)) <= _ALL_CHARACTERS
    )
