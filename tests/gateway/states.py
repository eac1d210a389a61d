"""What tests of conversation states share: an open database, its relation, and a clock."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from datetime import UTC, datetime, timedelta
from typing import Any

import psycopg
import pytest

from longthread.store import log

_COLUMNS = (
    *("scid", "client_type", "authoritative_history", "last_signature"),
    *("created_at", "updated_at", "expires_at", "access_count"),
)


class Clock:
    """The time of the store, which passes when told."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self._ahead = timedelta()
        monkeypatch.setattr(log, "now", self.now)

    def now(self) -> str:
        return (datetime.now(UTC) + self._ahead).isoformat(timespec="microseconds")

    def sleep(self, seconds: float) -> None:
        self._ahead += timedelta(seconds=seconds)


def relation(address: str, scid: str) -> dict[str, Any] | None:
    """A row of the relation `conversation_state`, as other programs see it."""
    sql = f"SELECT {', '.join(_COLUMNS)} FROM conversation_state WHERE scid = "
    if "://" in address:
        with psycopg.connect(address) as server:
            server.execute("SET TIME ZONE 'UTC'")
            row = server.execute(f"{sql}%s".encode(), [scid]).fetchone()
    else:
        with closing(sqlite3.connect(address)) as file:
            row = file.execute(f"{sql}?", [scid]).fetchone()
    if row is None:
        return None
    found = dict(zip(_COLUMNS, row, strict=True))
    for name in _COLUMNS:
        if isinstance(found[name], datetime):
            found[name] = found[name].isoformat(timespec="microseconds")
    if isinstance(found["authoritative_history"], str):
        found["authoritative_history"] = json.loads(found["authoritative_history"])
    return found


def rows(address: str, sql: str) -> list[tuple[Any, ...]]:
    """The rows of a statement in another connection, committed."""
    if "://" in address:
        with psycopg.connect(address) as server:
            cursor = server.execute(sql.encode())
            return cursor.fetchall() if cursor.description else []
    with closing(sqlite3.connect(address)) as file, file:
        return file.execute(sql).fetchall()
