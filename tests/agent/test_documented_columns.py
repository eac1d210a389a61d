"""What the columns of the documents' names hold after something was run: nothing here is written by hand."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from datetime import datetime
from typing import Any

import psycopg
import pytest
from tests.agent.conftest import OpenAnalyst
from tests.agent.script import COUNT, finish

from longthread.store import runs
from longthread.store.driver import Driver


class Rows:
    """Reads the store's database as a report does."""

    def __init__(self, address: str, dialect: str) -> None:
        self._address, self._dialect = address, dialect

    def __call__(self, sql: str, *values: Any) -> list[tuple[Any, ...]]:
        if self._dialect == "sqlite":
            with closing(sqlite3.connect(self._address)) as connection:
                return connection.execute(sql, values).fetchall()
        with psycopg.connect(self._address) as server:
            return server.execute(sql.replace("?", "%s").encode(), values or None).fetchall()

    def one(self, sql: str, *values: Any) -> Any:
        """The one value that there is, JSON and times read."""
        [(value,)] = self(sql, *values)
        if isinstance(value, str) and value[:1] in {"[", "{"}:
            return json.loads(value)
        return datetime.fromisoformat(value) if isinstance(value, str) and value[10:11] == "T" else value


@pytest.fixture
def rows(store: Driver, store_address: str) -> Iterator[Rows]:
    yield Rows(store_address, store.dialect)


async def test_a_session_stands_as_its_last_run_does(open_analyst: OpenAnalyst, shop: str, rows: Rows) -> None:
    analyst = await open_analyst([COUNT, "so far", "{ no", "{ no", "{ no", COUNT, finish("3")], source=shop)
    stood = []
    for steps in (1, 9, 9):
        await (await analyst.ask("How many?", thread_id="t", protocol="json", max_steps=steps)).wait()
        stood.append(rows("SELECT status, ended_at IS NOT NULL FROM sessions WHERE id = 't'")[0])
        ended = rows.one("SELECT ended_at FROM sessions")
        async with analyst.store.reading() as tx:
            run = await runs.last_run(tx, "t")
        assert run is not None
        assert ended is None or ended == run.ended_at
    assert stood == [("paused", False), ("failed", True), ("completed", True)]


async def test_a_session_is_active_while_its_run_is_and_paused_while_it_waits(
    open_analyst: OpenAnalyst, shop: str, rows: Rows
) -> None:
    seen: list[Any] = []

    def look(messages: Any) -> Any:
        seen.append(rows("SELECT status, ended_at FROM sessions")[0])
        return finish("3")

    analyst = await open_analyst([look], source=shop)
    await (await analyst.ask("How many?")).wait()
    assert seen == [("active", None)]
    assert rows.one("SELECT status FROM sessions") == "completed"
