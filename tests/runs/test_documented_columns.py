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
from tests.analysts import OpenAnalyst
from tests.script import COUNT, call, finish

from longthread.store import runs
from longthread.store.driver import Driver

pytestmark = pytest.mark.one_backend


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
        await (
            await analyst.ask(
                "How many?", thread_id="t", protocol="json", max_steps=steps, user_id=analyst.settings.user
            )
        ).wait()
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
        return finish("Three.")

    analyst = await open_analyst([look], source=shop)
    await (await analyst.ask("How many?", user_id=analyst.settings.user)).wait()
    assert seen == [("active", None)]
    assert rows.one("SELECT status FROM sessions") == "completed"


WRONG = call("run_sql", sql="SELECT nope FROM customers")


async def test_the_last_error_is_that_of_a_run_that_did_not_get_on(
    open_analyst: OpenAnalyst, shop: str, rows: Rows
) -> None:
    analyst = await open_analyst([WRONG, "so far", WRONG, COUNT, "so far", WRONG, finish("3")], source=shop)
    for steps, error in ((1, "run_sql"), (2, None), (9, None)):
        await (await analyst.ask("How many?", thread_id="t", max_steps=steps, user_id=analyst.settings.user)).wait()
        state = await analyst.threads.state("t", user_id=analyst.settings.user)
        assert (state["last_error"] or {}).get("action") == error
        assert rows.one("SELECT CAST(state_data AS TEXT) FROM conversations") == json.loads(json.dumps(state))
    assert len(state["error_history"]) == 3


@pytest.mark.parametrize("words", ["好的，继续执行", "yes, please go on"])
async def test_a_state_goes_on_with_the_question_in_whatever_words(
    open_analyst: OpenAnalyst, shop: str, rows: Rows, words: str
) -> None:
    analyst = await open_analyst([COUNT, "so far", finish("3"), finish("Hello")], source=shop)
    await (await analyst.ask("How many?", thread_id="t", max_steps=1, user_id=analyst.settings.user)).wait()
    handle = await analyst.ask(words, thread_id="t", user_id=analyst.settings.user)
    await handle.wait()
    assert handle.run.continues is not None
    assert rows.one("SELECT CAST(state_data AS TEXT) FROM conversations")["question"] == "How many?"
    again = await analyst.ask(words, thread_id="t", user_id=analyst.settings.user)
    await again.wait()
    assert again.run.continues is None
    assert rows.one("SELECT CAST(state_data AS TEXT) FROM conversations")["question"] == words


async def test_tool_categories_are_those_of_the_tools_that_ran(
    open_analyst: OpenAnalyst, shop: str, rows: Rows
) -> None:
    script = [
        finish("Hello"),
        COUNT,
        finish("3"),
        call("nothing"),
        "{",
        call("recall_memory", query="x"),
        WRONG,
        finish("3"),
    ]
    analyst = await open_analyst(script, source=shop)
    found = []
    for question in ("Hello", "How many?", "And?"):
        await (await analyst.ask(question, thread_id="t", protocol="json", user_id=analyst.settings.user)).wait()
        found.append(rows.one("SELECT CAST(tool_categories AS TEXT) FROM conversations"))
        assert list((await analyst.threads.find("t", user_id=analyst.settings.user)).tool_categories) == found[-1]
    assert found == [[], ["database"], ["database", "memory"]]


async def test_a_summary_counts_the_messages_as_the_state_does(
    open_analyst: OpenAnalyst, shop: str, rows: Rows
) -> None:
    analyst = await open_analyst([COUNT, finish("3")] * 12, source=shop, memory_max_messages_per_thread=40)
    for _ in range(12):
        await (await analyst.ask("How many?", thread_id="t", user_id=analyst.settings.user)).wait()
        await analyst.settle()
    state = rows.one("SELECT CAST(state_data AS TEXT) FROM conversations")
    assert len(state["messages"]) == 24
    assert state["compressed_message_count"] == 12
    assert rows.one("SELECT message_count FROM conversation_summaries") == 24, "as document 004 has it: with results"
