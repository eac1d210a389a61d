"""Each query of a turn finds its rows by an index, on both backends: none looks through a table."""

from __future__ import annotations

import contextlib
import re
import sqlite3
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import psycopg
from tests.context.test_window_cache import ask, seeded
from tests.langgraph.counting import Counting
from tests.script import COUNT, call, finish

from longthread.runs.analyst import Analyst
from longthread.settings import Settings
from longthread.store.open import open_store
from longthread.store.queries import queries, translate_placeholders
from longthread.testing import ScriptedChatModel


async def test_each_query_of_a_turn_uses_an_index(store_address: str, backend: str, tmp_path: Path, shop: str) -> None:
    async with open_store(store_address) as store:
        counting = Counting(store)
        script = [call("list_tables"), [COUNT, COUNT], finish("3 [q1]")] * 2 + [COUNT, "Not yet.", COUNT, finish("3")]
        settings = Settings.load(env_file=None, data_dir=tmp_path / "data", model="test:scripted")
        model = ScriptedChatModel(script)
        analyst = Analyst(counting, settings, models=lambda name, _: model)
        await seeded(store, "t", 20)
        for _ in range(2):
            await ask(analyst, "t", shop)
        paused = await analyst.ask("More?", thread_id="t", source=shop, max_steps=1, user_id=analyst.settings.user)
        async for _ in paused.events():
            pass
        await (await analyst.runs.resume("t", max_steps=3, user_id=analyst.settings.user)).wait()
    assert len(counting.values) > 20
    explain = _postgres if backend == "postgres" else _sqlite
    with explain(store_address) as plan_of:
        plans = {name: plan_of(queries(backend)[name], values) for name, values in counting.values.items()}
    scans = {name: plan for name, plan in plans.items() if _scans(plan) and name != "select_workers"}
    assert scans == {}


def _scans(plan: list[str]) -> list[str]:
    """The steps of a plan that look through a table. What a query has put together itself, or was given as a JSON list
    (`VIRTUAL TABLE`), may be looked through."""
    return [
        step
        for step in plan
        if "Seq Scan" in step
        or (step.startswith("SCAN") and not re.search("USING|VIRTUAL TABLE", step) and step[5:] not in _OWN)
    ]


_OWN = {"told", "counted", "up", "named", "CONSTANT ROW"}


@contextlib.contextmanager
def _sqlite(address: str) -> Iterator[Any]:
    with contextlib.closing(sqlite3.connect(address)) as connection:

        def plan_of(sql: str, values: Mapping[str, Any]) -> list[str]:
            return [row[3] for row in connection.execute(f"EXPLAIN QUERY PLAN {sql}", values)]

        yield plan_of


@contextlib.contextmanager
def _postgres(address: str) -> Iterator[Any]:
    with psycopg.connect(address) as connection:
        # In a table of a few rows a scan is cheapest: what counts is that there is another way.
        connection.execute("SET enable_seqscan = off")

        def plan_of(sql: str, values: Mapping[str, Any]) -> list[str]:
            explained = connection.execute(f"EXPLAIN {translate_placeholders(sql)}".encode(), values)
            return [row[0].strip() for row in explained]

        yield plan_of
