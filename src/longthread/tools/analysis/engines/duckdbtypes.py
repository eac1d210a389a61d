"""How to read values of DuckDB's types without loss."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from longthread.tools.analysis.cell import iso
from longthread.tools.analysis.quoting import quoted

_PLAIN = frozenset(
    {"sqlnull", "null", "boolean", "tinyint", "smallint", "integer", "bigint", "hugeint", "utinyint", "usmallint"}
    | {"uinteger", "ubigint", "uhugeint", "double", "decimal", "varchar", "blob"}
)
"""Types that Python's own hold without loss."""
_TEMPORAL = ("date", "time")


@dataclass(frozen=True)
class DuckdbType:
    """`type` is the type to cast to, if `cast`; `read` converts the result."""

    type: str
    cast: bool = False
    read: Callable[[Any], Any] | None = None


def shape_of(type_: Any) -> DuckdbType:
    """How to read a type (an object of DuckDB's)."""
    kind = str(type_.id)
    if kind in _PLAIN:
        return DuckdbType(str(type_))
    if kind == "float":
        return DuckdbType("VARCHAR", cast=True, read=float)  # as a double it would get digits that it does not have
    if kind == "bignum":
        return DuckdbType("VARCHAR", cast=True, read=Decimal)  # Python makes no whole number of so many digits
    if kind in ("list", "array"):
        return _list(shape_of(type_.children[0][1]))
    if kind == "struct":
        return _struct([(str(name), shape_of(child)) for name, child in type_.children])
    if kind == "map":
        return _map(*(shape_of(child) for _, child in type_.children))
    return DuckdbType("VARCHAR", cast=True, read=iso if kind.startswith(_TEMPORAL) else None)


def shaped(rows: Iterable[Sequence[Any]], shapes: Sequence[DuckdbType]) -> Iterator[Sequence[Any]]:
    """Converts the values of rows."""
    if not any(shape.read for shape in shapes):
        yield from rows
        return
    for row in rows:
        yield [_read(shape, value) for shape, value in zip(shapes, row, strict=True)]


def written(value: bytes) -> str:
    r"""A binary value as DuckDB writes it: `a\x00\xFF`."""
    return "".join(chr(byte) if 32 <= byte < 127 and byte not in b"\"'\\" else f"\\x{byte:02X}" for byte in value)


def _read(shape: DuckdbType, value: Any) -> Any:
    return value if shape.read is None or value is None else shape.read(value)


def _list(item: DuckdbType) -> DuckdbType:
    def read(values: Sequence[Any]) -> list[Any]:
        return [_read(item, value) for value in values]

    return DuckdbType(f"{item.type}[]", item.cast, read if item.read else None)


def _struct(fields: Sequence[tuple[str, DuckdbType]]) -> DuckdbType:
    if not all(name for name, _ in fields):  # a row, whose fields have places only
        return DuckdbType("VARCHAR", cast=True)

    def read(values: dict[str, Any]) -> dict[str, Any]:
        return {name: _read(shape, values[name]) for name, shape in fields}

    inner = ", ".join(f"{quoted(name)} {shape.type}" for name, shape in fields)
    needed = any(shape.read for _, shape in fields)
    return DuckdbType(f"STRUCT({inner})", any(shape.cast for _, shape in fields), read if needed else None)


def _map(key: DuckdbType, item: DuckdbType) -> DuckdbType:
    def read(values: dict[Any, Any]) -> dict[Any, Any]:
        return {_read(key, name): _read(item, value) for name, value in values.items()}

    needed = key.read or item.read
    return DuckdbType(f"MAP({key.type}, {item.type})", key.cast or item.cast, read if needed else None)
