"""Parquet, through DuckDB. Columns of integers, decimals, doubles or booleans have that type; all others are text."""

from __future__ import annotations

import json
import math
import shutil
import tempfile
from collections.abc import Iterable, Sequence
from decimal import Decimal
from pathlib import Path
from typing import BinaryIO

import duckdb

from longthread.errors import InvalidInput
from longthread.tools.analysis.cell import fits, number_text
from longthread.tools.analysis.export.cells import ExportCell
from longthread.tools.analysis.quoting import UniqueNames, literal, quote_identifier

_LARGEST = 2**63
_DIGITS = 38
"""Digits of the widest decimal."""
_LINE = 512_000_000
"""Bytes of one row as JSON."""


def write_parquet(columns: Sequence[str], rows: Iterable[Sequence[ExportCell]], to: BinaryIO) -> int:
    """Writes the rows under unique column names. Raises InvalidInput for a result without columns."""
    if not columns:
        raise InvalidInput(reason="The result has no columns, and a Parquet file has one at least. Write it as CSV.")
    with tempfile.TemporaryDirectory(prefix="longthread-export-") as folder:
        lines, made = Path(folder) / "rows.jsonl", Path(folder) / "rows.parquet"
        found = [_ColumnTypes() for _ in columns]
        count = 0
        with lines.open("w", encoding="utf-8", errors="replace") as file:
            for row in rows:
                count += 1
                for one, value in zip(found, row, strict=True):
                    one.add(value)
                line = {f"c{n}": _json_value(value) for n, value in enumerate(row)}
                file.write(json.dumps(line, ensure_ascii=False, allow_nan=False) + "\n")
        names = UniqueNames()
        _convert(lines, made, [names.take(column or "column") for column in columns], [one.type for one in found])
        with made.open("rb") as file_:
            shutil.copyfileobj(file_, to)
    return count


def _convert(lines: Path, made: Path, names: Sequence[str], types: Sequence[str]) -> None:
    given = ", ".join(f"c{n}: {literal(type_)}" for n, type_ in enumerate(types))
    chosen = ", ".join(f"c{n} AS {quote_identifier(name)}" for n, name in enumerate(names))
    reader = f"read_json({literal(str(lines))}, format = 'newline_delimited', columns = {{{given}}}, "
    reader += f"maximum_object_size = {min(_LINE, max(16_777_216, lines.stat().st_size + 1))})"
    with duckdb.connect(":memory:") as connection:
        connection.execute(f"COPY (SELECT {chosen} FROM {reader}) TO {literal(str(made))} (FORMAT parquet)")


def _json_value(value: ExportCell) -> str | int | float | None:
    """A value as JSON; a number that no double holds is a text."""
    exact = isinstance(value, Decimal) or (isinstance(value, float) and not math.isfinite(value))
    return number_text(value) if exact else value  # type: ignore[arg-type, return-value]


class _ColumnTypes:
    """The types of one column's values."""

    def __init__(self) -> None:
        self._kinds: set[type] = set()
        self._whole = self._behind = 0
        """The most digits before and after the point."""
        self._fit = True
        """Whether doubles hold the exact numbers."""

    def add(self, value: ExportCell) -> None:
        if isinstance(value, int | Decimal):
            self._fit = self._fit and fits(value, rounded=True)
        if isinstance(value, int) and not -_LARGEST <= value < _LARGEST:
            self._kinds.add(str)
        elif isinstance(value, Decimal):
            self._add_decimal(value)
        elif value is not None:
            self._kinds.add(type(value))

    def _add_decimal(self, value: Decimal) -> None:
        _, digits, exponent = value.as_tuple()
        self._kinds.add(Decimal if isinstance(exponent, int) else str)
        if isinstance(exponent, int):
            self._whole = max(self._whole, len(digits) + exponent, 0)
            self._behind = max(self._behind, -exponent)

    @property
    def type(self) -> str:
        """The DuckDB type for all values."""
        kinds = self._kinds
        if kinds == {bool}:
            return "BOOLEAN"
        if kinds == {int}:
            return "BIGINT"
        width = max(1, self._whole + self._behind)
        if kinds == {Decimal}:
            return f"DECIMAL({width}, {self._behind})" if width <= _DIGITS else "VARCHAR"
        return "DOUBLE" if kinds and kinds <= {int, float, Decimal} and self._fit else "VARCHAR"
