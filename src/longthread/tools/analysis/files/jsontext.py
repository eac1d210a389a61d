"""JSON and JSON Lines as DuckDB tables."""

from __future__ import annotations

from pathlib import Path

import duckdb

from longthread.tools.analysis.files.delimited import DelimitedTable
from longthread.tools.analysis.limits import Limits
from longthread.tools.analysis.quoting import literal, quoted


def json_table(root: duckdb.DuckDBPyConnection, path: Path, limits: Limits, *, load: bool) -> DelimitedTable:
    """Reads a UTF-8 file. A single object with one list of objects (an API's answer) is a table of that list."""
    sample = -1 if load else 100_000
    call = f"read_json({literal(str(path))}, sample_size = {sample}, maximum_object_size = {limits.value_bytes})"
    columns = root.execute(f"DESCRIBE FROM {call}").fetchall()
    lists = [str(row[0]) for row in columns if str(row[1]).startswith("STRUCT(") and str(row[1]).endswith(")[]")]
    reads = None if load else path
    if load and len(lists) == 1:
        row = root.execute(f"SELECT count(*) FROM (FROM {call} LIMIT 2)").fetchone()
        if row is not None and row[0] == 1:
            others = [str(column[0]) for column in columns if str(column[0]) != lists[0]]
            note = f'The rows are those of the list "{lists[0]}"'
            note += f"; beside it the file holds {', '.join(others[:10])}." if others else "."
            unnested = f"(SELECT unnest({quoted(lists[0])}, max_depth := 2) FROM {call})"
            return DelimitedTable(unnested, [(None, note)], reads)
    return DelimitedTable(call, [], reads)
