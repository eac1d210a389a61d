"""A statement on its way to a source: judged, its names looked up, bounded to what its user may read."""

from __future__ import annotations

from longthread.tools.analysis.guard import Guard
from longthread.tools.analysis.resolver import Resolver
from longthread.tools.analysis.schema import Schema
from longthread.tools.analysis.source import Source


def prepared(sql: str, source: Source, schema: Schema, run: str | None = None) -> tuple[str, str]:
    """The statement, and what is run for it. Blocking: parsing a long one takes a noticeable time.

    `run` is the same statement with places for its values: it is run in the stead of the one that says them.

    Raises SqlRefused, TableNotFound, ColumnNotFound.
    """
    judged = Guard(source.dialect).judge(sql, functions=source.functions, tables=schema.tables, defined=source.defined)
    Resolver(schema, source.dialect, source.functions).check(judged.tree)
    return judged.text, source.bounded(judged.text if run is None else run)
