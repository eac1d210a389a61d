"""Whether the SQL that a source is taught names tables and columns that the source has."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

from longthread.errors import ColumnNotFound, SourceError, SqlRefused
from longthread.tools.analysis.resolver import Resolver
from longthread.tools.analysis.schema import Schema
from longthread.tools.analysis.source import Source


def has_sql(given: Mapping[str, Any]) -> bool:
    """Return whether a term or an example that is given has SQL."""
    return any(item.get("sql") for kind in ("terms", "examples") for item in given.get(kind) or ())


async def find_wrong_sql(source: Source, given: Mapping[str, Any]) -> list[str]:
    """Return what the SQL of the `terms` and `examples` that are given names and the source does not have. Nothing is
    run. The catalog refuses what does not only read. Raises SourceError: the schema cannot be read."""
    taught = [(each["name"], each.get("sql"), True) for each in given.get("terms") or ()]
    taught += [(each["question"], each.get("sql"), False) for each in given.get("examples") or ()]
    schema = await source.schema()
    problems = []
    for name, sql, may_be_part in taught:
        if sql and (error := await asyncio.to_thread(_check, source, schema, sql, may_be_part=may_be_part)) is not None:
            problems.append(f"the SQL of {name}: {error}")
    return problems


def _check(source: Source, schema: Schema, sql: str, *, may_be_part: bool) -> SourceError | None:
    try:
        source.prepare(sql, schema)
    except SqlRefused:
        return _check_part(source, schema, sql) if may_be_part else None
    except SourceError as error:
        return error
    return None


def _check_part(source: Source, schema: Schema, sql: str) -> ColumnNotFound | None:
    """Check a part of a statement, such as `sum(amount)`, which may be of any tables: of all, or of one."""
    tables = [table.sql for table in schema.tables.values()]
    missing: ColumnNotFound | None = None
    for of in (", ".join(tables), *tables):
        try:
            tree = source.judge(f"SELECT {sql} FROM {of}", schema).tree
            Resolver(schema, source.dialect, source.functions).check(tree)
        except ColumnNotFound as error:
            missing = missing or error
        except SourceError:  # the database decides
            return None
        else:
            return None
    return missing
