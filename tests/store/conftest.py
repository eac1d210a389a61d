"""A store's database as others see it: by a plain connection, or as a user who owns nothing."""

from __future__ import annotations

import os
import sqlite3
import subprocess
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import psycopg
import pytest
from tests.contract.base import USER

from longthread.store.driver import Driver

Plain = Callable[..., list[tuple[Any, ...]]]
"""`plain(sql, values)`: the rows of a statement, committed. Values are marked by `?`."""

AsNobody = Callable[..., str]
"""`as_nobody(file, *command)`: what is said where nobody opens a store, or carries out a command on it."""


@pytest.fixture
def as_nobody(warmed: Path) -> AsNobody:
    """Runs `tests.store.unprivileged`."""

    def run(path: Path, *command: str) -> str:
        return subprocess.run(
            [warmed / "python", "-m", "tests.store.unprivileged", path, *command],
            capture_output=True,
            text=True,
            check=True,
            env=os.environ | {"LONGTHREAD_USER": USER},
        ).stdout

    return run


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
