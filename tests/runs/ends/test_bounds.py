"""A run ends in time, and its replies do, with what was shown."""

from __future__ import annotations

from typing import Any

import pytest
from tests.analysts import OpenAnalyst
from tests.llm.test_reply_bounds import Endless
from tests.runs.test_workers import Gated
from tests.script import finish

from longthread.llm.chat import Chunk
from longthread.messages.message import Message, tool_call
from longthread.runs.analyst import Analyst
from longthread.settings import Settings
from longthread.store import run_events, runs

pytestmark = pytest.mark.one_backend

USER = "default"


async def test_a_reply_without_an_end_fails_the_run_and_keeps_what_was_shown(tmp_path: Any, store_address: str) -> None:
    settings = Settings.load(env_file=None, data_dir=tmp_path, database=store_address, source="demo", retry_attempts=3)
    model = Endless(Chunk("blah " * 100), 10)
    async with Analyst.open(settings, models=lambda name, _: model) as analyst:
        told = await (await analyst.ask("How many?", thread_id="t", user_id=USER)).wait()
    assert told.type == "failed"
    assert "did not end its reply" in told.data["error"]["message"]
    assert "LLM_MAX_TOKENS is 10" in told.data["error"]["message"]
    assert told.data["unfinished"].startswith("blah blah")


async def test_a_run_takes_so_many_seconds_and_continues(open_analyst: OpenAnalyst, shop: str) -> None:
    model = Gated([finish("Three.")])
    analyst = await open_analyst(model, run_timeout=0.5)
    told = await (await analyst.ask("How many?", thread_id="t", source=shop, user_id=USER)).wait()
    assert (told.type, told.data["error"]["type"]) == ("failed", "run_time_up")
    assert "0.5 seconds (LONGTHREAD_RUN_TIMEOUT)" in told.data["error"]["message"]
    (model.metadata or {})["gate"].set()
    again = await open_analyst(model)
    assert (await (await again.runs.resume("t", user_id=USER)).wait()).data["answer"] == "Three."


@pytest.mark.parametrize("language", ["How many?", "有多少？"])
async def test_of_too_many_calls_the_first_ones_are_made(open_analyst: OpenAnalyst, shop: str, language: str) -> None:
    calls = [tool_call("run_sql", {"sql": f"SELECT {n}"}, f"c{n}") for n in range(60)]
    analyst = await open_analyst([Message("assistant", "", tool_calls=calls), finish("Done.")], max_tool_calls=5)
    handle = await analyst.ask(language, thread_id="t", source=shop, user_id=USER)
    assert (await handle.wait()).data["answer"] == "Done."
    async with analyst.store.reading() as tx:
        made = [step.args for step in await runs.steps_from(tx, "t", 0) if step.kind == "tool"]
        warned = [e.data for e in await run_events.events_after(tx, "t", handle.run.id, 0) if e.type == "warning"]
    assert [each["sql"] for each in made] == [f"SELECT {n}" for n in range(5)]
    assert any("60 calls, of which the first 5 are made: LLM_MAX_TOOL_CALLS" in each["message"] for each in warned)
