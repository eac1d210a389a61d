"""`longthread threads chart`."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from longthread.runs.analyst import Analyst
from longthread.settings import Settings
from longthread.store import log
from longthread.testing import ScriptedChatModel

pytestmark = pytest.mark.one_backend

Run = Callable[..., Any]
SCRIPT = [
    {
        "thought": "",
        "action": "run_sql",
        "args": {"sql": "SELECT country, COUNT(*) AS n FROM rockets GROUP BY country"},
    },
    {"thought": "", "action": "chart", "args": {"mark": "bar", "x": "country", "y": "n", "title": "火箭"}},
    {"thought": "", "action": "chart", "args": {"mark": "arc", "color": "country", "y": "n"}},
    {"finish": "There."},
]


def test_a_chart_is_written_with_its_rows(run: Run, store_address: str, tmp_path: Path) -> None:
    made: list[str] = []

    async def ask() -> None:
        given = {"database": store_address, "data_dir": tmp_path / "data", "sql_isolated": False}
        settings = Settings.load(env_file=None, **given)
        async with Analyst.open(settings, models=lambda name, _: ScriptedChatModel(SCRIPT)) as analyst:
            handle = await analyst.ask(
                "Chart the rockets", source="demo", model="test:scripted", user_id=analyst.settings.user
            )
            assert (await handle.wait()).type == "finished"
            made.append(handle.thread_id)
            async with analyst.store.writing() as tx:
                await log.create_thread(tx, "words", user_id="default", title="Only words")

    asyncio.run(ask())
    assert str(run("threads", "chart", "words", code=2).exception).endswith("The conversation has no chart.")
    [thread] = made
    last = json.loads(run("threads", "chart", thread).stdout)
    assert last["mark"]["type"] == "arc"
    run("threads", "chart", thread, "1", "--to", "first.vl.json")
    first = json.loads((tmp_path / "first.vl.json").read_text("utf-8"))
    assert (first["title"], first["data"]["name"]) == ("火箭", "q1")
    assert {"country", "n"} == set(first["data"]["values"][0])
    assert "has 2, counted" in str(run("threads", "chart", thread, "3", code=2).exception)
