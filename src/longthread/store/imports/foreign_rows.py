"""Rows and values of another program's tables."""

from __future__ import annotations

import json
import re
import struct
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from longthread.store.driver import Row
from longthread.store.imports.foreign import Foreign, import_errors
from longthread.store.queries import Sql

_UNSTORABLE = re.compile(r"[\ud800-\udfff\x00]")
_BEGINNING = "1970-01-01T00:00:00.000000+00:00"
"""The time of what has none."""


def has(foreign: Foreign, name: str, *columns: str) -> bool:
    return name in foreign.tables and set(columns) <= foreign.tables[name].by_name.keys()


async def rows(foreign: Foreign, name: str, *, order: str = "", **where: str) -> list[Row]:
    """Return a table's rows, ordered by `order` if that column exists; `where` filters columns by text. Times are ISO
    8601 in UTC; JSON and arrays are text. Raises `StoreError` if the database fails or a value is no text."""
    columns = ", ".join(f'{column.read} AS "{column.name}"' for column in foreign.tables[name].columns)
    with import_errors():
        return await foreign.tx.fetch(
            Sql(f'SELECT {columns} FROM "{name}"{_where(foreign, name, where)}{_by(foreign, name, order)}'), **where
        )


async def values(foreign: Foreign, name: str, column: str, *, order: str = "") -> list[str]:
    """Return a column's distinct values as text, without NULL, in the order of another column."""
    table = foreign.tables[name]
    if order in table.by_name:
        by = f'GROUP BY "{column}" ORDER BY min("{order}"), CAST("{column}" AS TEXT)'
    else:
        by = f'GROUP BY "{column}" ORDER BY CAST("{column}" AS TEXT)'
    with import_errors():
        found = await foreign.tx.fetch(
            Sql(f'SELECT CAST("{column}" AS TEXT) AS value FROM "{name}" WHERE "{column}" IS NOT NULL {by}')
        )
    return [row["value"] for row in found]


async def count(foreign: Foreign, name: str) -> int:
    with import_errors():
        [row] = await foreign.tx.fetch(Sql(f'SELECT count(*) AS rows FROM "{name}"'))
    return int(row["rows"])


def _where(foreign: Foreign, name: str, where: dict[str, str]) -> str:
    # In the column's own type, so that its index is used.
    conditions = [f'"{each}" = {foreign.tables[name].by_name[each].write}' for each in where]
    return f" WHERE {' AND '.join(conditions)}" if conditions else ""


def _by(foreign: Foreign, name: str, order: str) -> str:
    if order not in foreign.tables[name].by_name:
        return ""
    # Rows of equal time, those of one transaction, in the order of writing.
    return f' ORDER BY "{order}"' + (", ctid" if foreign.dialect == "postgres" else "")


def storable(value: Any) -> Any:
    """Replace what no database takes as text: NULs and halves of surrogate pairs."""
    if isinstance(value, str):
        return value if value.isascii() and "\x00" not in value else _UNSTORABLE.sub("\ufffd", value)
    if isinstance(value, list):
        return [storable(item) for item in value]
    if isinstance(value, dict):
        return {storable(key): storable(item) for key, item in value.items()}
    return value


def decoded(text: Any) -> Any:
    """Parse a JSON column, also if it was encoded twice; NaN and infinities become text. Raises `ValueError`."""
    if text is None or not isinstance(text, str | bytes):
        return text
    try:
        value = json.loads(text, parse_constant=str)
        return json.loads(value, parse_constant=str) if isinstance(value, str) and value[:1] in ("{", "[") else value
    except RecursionError:
        raise ValueError("it is nested too deeply") from None


def moment(value: Any, default: str | None = None) -> str:
    """Return a time as stored; without a zone it is UTC. What is no time is `default`, or the epoch."""
    found = moment_or_none(value)
    return found if found is not None else default or _BEGINNING


def moment_or_none(value: Any) -> str | None:
    """Return a time as `moment` does; None for what is no time."""
    try:
        if isinstance(value, int | float) and not isinstance(value, bool):
            seconds = value / 1000 if value > 10**11 else value
            found = datetime.fromtimestamp(seconds, UTC)
        else:
            found = datetime.fromisoformat(str(value).strip())
        found = found if found.tzinfo else found.replace(tzinfo=UTC)
        return found.astimezone(UTC).isoformat(timespec="microseconds")
    except (ValueError, OverflowError, OSError):
        return None


def floats(value: Any) -> bytes | None:
    """Return a vector as stored. PostgreSQL sends two 16-bit counts, then big-endian numbers."""
    if isinstance(value, memoryview | bytearray):
        value = bytes(value)
    if not isinstance(value, bytes) or len(value) < 8:
        return None
    numbers: Sequence[float] = struct.unpack_from(f">{(len(value) - 4) // 4}f", value, 4)
    return struct.pack(f"<{len(numbers)}f", *numbers)
