"""Parquet, through DuckDB. A column of whole numbers, numbers or truths has that type; any other is text."""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import BinaryIO

import duckdb

from longthread.tools.analysis.export.table import Cell
from longthread.tools.analysis.naming import literal, quoted

_LARGEST = 2**63
_LINE = 512_000_000
"""Bytes of one row as JSON."""


def write_parquet(columns: Sequence[str], rows: Iterable[Sequence[Cell]], to: BinaryIO) -> int:
    """Writes the rows; columns of the same name get numbers, since Parquet has each name once."""
    with tempfile.TemporaryDirectory(prefix="longthread-export-") as folder:
        lines, made = Path(folder) / "rows.jsonl", Path(folder) / "rows.parquet"
        kinds: list[set[type]] = [set() for _ in columns]
        count = 0
        with lines.open("w", encoding="utf-8", errors="replace") as file:
            for row in rows:
                count += 1
                for kind, value in zip(kinds, row, strict=True):
                    kind.add(type(value) if not _is_huge(value) else str)
                file.write(json.dumps({f"c{n}": value for n, value in enumerate(row)}, ensure_ascii=False) + "\n")
        types = [_type(kind - {type(None)}) for kind in kinds]
        _convert(lines, made, once(columns), types)
        with made.open("rb") as file_:
            shutil.copyfileobj(file_, to)
    return count


def _convert(lines: Path, made: Path, names: Sequence[str], types: Sequence[str]) -> None:
    given = ", ".join(f"c{n}: {literal(type_)}" for n, type_ in enumerate(types))
    chosen = ", ".join(f"c{n} AS {quoted(name)}" for n, name in enumerate(names))
    reader = f"read_json({literal(str(lines))}, format = 'newline_delimited', columns = {{{given}}}, "
    reader += f"maximum_object_size = {min(_LINE, max(16_777_216, lines.stat().st_size + 1))})"
    with duckdb.connect(":memory:") as connection:
        connection.execute(f"COPY (SELECT {chosen} FROM {reader}) TO {literal(str(made))} (FORMAT parquet)")


def _is_huge(value: Cell) -> bool:
    return isinstance(value, int) and not -_LARGEST <= value < _LARGEST


def _type(kinds: set[type]) -> str:
    if kinds == {bool}:
        return "BOOLEAN"
    if kinds == {int}:
        return "BIGINT"
    return "DOUBLE" if kinds and kinds <= {int, float} else "VARCHAR"


def once(columns: Sequence[str]) -> list[str]:
    """The names, each once whatever its case: a later one gets a number."""
    names: list[str] = []
    taken: set[str] = set()
    for column in columns:
        name, number = column or "column", 1
        while name.casefold() in taken:
            number += 1
            name = f"{column or 'column'}_{number}"
        taken.add(name.casefold())
        names.append(name)
    return names
