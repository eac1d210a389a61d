"""What a model is told of tables: of many in a list, and of one in full."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from longthread.tools.analysis.profile import Profile
from longthread.tools.analysis.schema import Column, Schema, Table


def about(table: Table, rows: Mapping[str, tuple[int | None, bool]]) -> dict[str, Any]:
    count, approximate = rows.get(table.label, (table.estimated_rows, table.estimated_rows is not None))
    told: dict[str, Any] = {"rows": count, "kind": table.kind}
    if approximate:
        told["approximate"] = True
    if table.comment:
        told["comment"] = table.comment
    return told


def description(schema: Schema, table: Table, columns: tuple[Column, ...], found: Profile) -> dict[str, Any]:
    description: dict[str, Any] = {
        "table_name": table.label,
        "kind": table.kind,
        "rows": found.rows,
        "columns": [_column(column, found) for column in columns],
        "columns_shown": f"{len(columns)} of {len(table.columns)}",
        "primary_key": list(table.primary_key),
        "foreign_keys": [
            {"columns": list(key.columns), "table": key.table, "references": list(key.references)}
            for key in table.foreign_keys
        ],
        "referenced_by": [
            {"table": other.label, "columns": list(key.columns), "references": list(key.references)}
            for other, key in schema.referenced_by(table)
        ],
    }
    if table.comment:
        description["comment"] = table.comment
    if found.rows_approximate or found.sampled_rows is not None:
        description["approximate"] = True
    if found.sampled_rows is not None:
        description["statistics"] = f"from the first {found.sampled_rows} rows"
    if not found.complete:
        description["statistics_shown"] = f"{len(found.columns)} of {len(columns)} columns, in the time there was"
    return description


def _column(column: Column, found: Profile) -> dict[str, Any]:
    about: dict[str, Any] = {
        "name": column.name,
        "type": column.type,
        "nullable": column.nullable,
        "primary_key": column.primary_key,
    }
    if column.comment:
        about["comment"] = column.comment
    return about | found.columns.get(column.name, {})
