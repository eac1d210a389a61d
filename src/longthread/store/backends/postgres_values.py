"""Conversion of values between PostgreSQL and Python."""

from __future__ import annotations

from typing import Any

from psycopg import AsyncConnection
from psycopg.abc import Buffer
from psycopg.adapt import Loader
from psycopg.rows import DictRow
from psycopg.types.numeric import FloatDumper
from psycopg.types.string import TextLoader


async def configure(connection: AsyncConnection[DictRow]) -> None:
    """Make a connection return the types that SQLite returns: text, numbers and bytes."""
    for name in ("json", "jsonb", "uuid", "timestamp", "timestamptz", "date", "time", "timetz", "interval"):
        connection.adapters.register_loader(name, TextLoader)
    connection.adapters.register_loader("bool", _BoolLoader)
    connection.adapters.register_loader("numeric", _NumericLoader)
    connection.adapters.register_dumper(float, _FloatDumper)


class _BoolLoader(Loader):
    def load(self, data: Buffer) -> int:
        return int(bytes(data) == b"t")


class _NumericLoader(Loader):
    def load(self, data: Buffer) -> int | float:
        text = bytes(data)
        return int(text) if text.lstrip(b"-").isdigit() else float(text)


class _FloatDumper(FloatDumper):
    """Write floats so that they stay floats: PostgreSQL reads plain decimals as numeric."""

    def quote(self, obj: Any) -> Buffer:
        return self._special.get(text := str(obj).encode(), b"'" + text + b"'::float8")
