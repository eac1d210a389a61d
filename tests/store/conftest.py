"""A store's database as any other program sees it: a plain connection, with nothing of Longthread's on it."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from typing import Any

import psycopg
import pytest

from longthread.store.driver import Driver

Plain = Callable[..., list[tuple[Any, ...]]]
"""`plain(sql, values)`: the rows of a statement, committed. Values are marked by `?`."""


@pytest.fixture
def plain(store: Driver, store_address: str) -> Iterator[Plain]:
    """Runs SQL in the database of `store`."""
    if store.dialect == "sqlite":
        with closing(sqlite3.connect(store_address, isolation_level=None)) as connection:
            connection.execute("PRAGMA foreign_keys = ON")
            yield lambda sql, values=(): connection.execute(sql, values).fetchall()
    else:
        with psycopg.connect(store_address, autocommit=True) as server:

            def run(sql: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
                cursor = server.execute(sql.replace("?", "%s").encode(), values or None)
                return cursor.fetchall() if cursor.description else []

            yield run
