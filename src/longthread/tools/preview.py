"""What a source holds, at a glance: tables with the types of their columns, and first rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from longthread.errors import SqlTimeout
from longthread.tools.analysis.schema import Column, Table
from longthread.tools.analysis.source import Source
from longthread.tools.analysis.toolbox import sample

TABLES, ROWS = 20, 5
"""How many tables are shown with rows, and how many rows of each."""


@dataclass(frozen=True, slots=True)
class TablePreview:
    """A table. `rows` are its first ones; `problem` says why they cannot be read."""

    table: Table
    rows: Sequence[Sequence[Any]] = ()
    problem: str | None = None

    @property
    def columns(self) -> Sequence[Column]:
        return self.table.columns


async def preview(source: Source) -> list[TablePreview]:
    """Return the first tables of a source. Once one of them takes too long, no rows of others are read. Raises
    SourceError: it cannot be read at all."""
    made: list[TablePreview] = []
    slow: str | None = None
    for table in list((await source.schema()).tables.values())[:TABLES]:
        if slow is not None:
            made.append(TablePreview(table, problem=slow))
            continue
        observed = await sample(source, table.label, ROWS)
        if observed["ok"]:
            made.append(TablePreview(table, observed["data"]["rows"]))
            continue
        made.append(TablePreview(table, problem=observed["error"]["message"]))
        slow = made[-1].problem if observed["error"]["type"] == SqlTimeout.code else None
    return made
