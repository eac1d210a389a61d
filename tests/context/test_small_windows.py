"""No conversation dies of its size: in a small window, what goes with the messages gives way to them."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import AIMessage
from tests.analysts import OpenAnalyst
from tests.script import call, events_of, finish

from longthread import Catalog
from longthread.model.run import Step
from longthread.runs.analyst import Analyst
from longthread.runs.inspect import sent
from longthread.store import runs
from longthread.testing import ScriptedChatModel

pytestmark = pytest.mark.one_backend

SMALL = (4_096, 5_500, 7_000, 8_192, 8_900)


@pytest.fixture
def wide(tmp_path: Path) -> str:
    """A database with more to know than a small window holds."""
    path = tmp_path / "wide.sqlite"
    connection = sqlite3.connect(path)
    for table in range(12):
        columns = ", ".join(f"measurement_{table}_{n} TEXT" for n in range(40))
        connection.execute(f"CREATE TABLE observations_{table} (id INTEGER PRIMARY KEY, {columns})")
        connection.execute(f"INSERT INTO observations_{table} (id, measurement_{table}_0) VALUES (1, '数据 {table}')")
    connection.commit()
    connection.close()
    return str(path)


async def model_steps(analyst: Analyst, thread_id: str) -> list[Step]:
    async with analyst.store.reading() as tx:
        return [step for step in await runs.steps_from(tx, thread_id, 0) if step.kind == "model"]


@pytest.mark.sampled(3)
@pytest.mark.parametrize("window", SMALL)
async def test_known_facts_give_way_and_every_question_is_answered(
    open_analyst: OpenAnalyst, wide: str, window: int
) -> None:
    look = [call("list_tables"), *(call("describe_table", table=f"observations_{n}") for n in range(4))]
    model = ScriptedChatModel([*look, finish("Looked."), *(finish(f"answer {name}") for name in "abc")])
    analyst = await open_analyst(model, memory_context_window=window)
    thread_id = None
    for n in range(4):
        handle = await analyst.ask(f"Question {n}?", source=wide, thread_id=thread_id, user_id=analyst.settings.user)
        thread_id = handle.thread_id
        assert (await handle.wait()).type == "finished"
    told = "\n".join(message.text for message in model.calls[-1].messages)
    assert "observations_3" in told or window < 5_000
    for step in await model_steps(analyst, str(thread_id)):
        assert step.usage["budget"] >= 256


async def test_a_run_that_failed_for_its_size_goes_on_in_a_window_that_is_large_enough(
    open_analyst: OpenAnalyst, wide: str
) -> None:
    analyst = await open_analyst([], memory_context_window=600)
    handle = await analyst.ask("What is there?", source=wide, user_id=analyst.settings.user)
    end = await handle.wait()
    assert end.data["error"]["type"] == "window_too_small"
    assert "MEMORY_CONTEXT_WINDOW" in end.data["error"]["message"]
    analyst = await open_analyst([finish("Much.")], memory_context_window=4_096)
    assert (
        await (await analyst.runs.resume(handle.thread_id, user_id=analyst.settings.user)).wait()
    ).type == "finished"


async def test_a_long_question_that_is_continued_is_cut(open_analyst: OpenAnalyst, wide: str) -> None:
    analyst = await open_analyst([call("list_tables"), "so far", finish("Done.")], memory_context_window=3_000)
    handle = await analyst.ask("有多少次观测？" * 600, source=wide, max_steps=1, user_id=analyst.settings.user)
    assert (await handle.wait()).type == "paused"
    end = await (await analyst.runs.resume(handle.thread_id, user_id=analyst.settings.user)).wait()
    assert (end.type, end.data["answer"]) == ("finished", "Done.")


async def test_a_tokenizer_that_takes_twice_as_much_leaves_room(open_analyst: OpenAnalyst, wide: str) -> None:
    usage: Any = {"input_tokens": 5_000, "output_tokens": 1, "total_tokens": 5_001}
    replies = [AIMessage("So.", usage_metadata=usage), finish("So."), finish("So.")]
    model = ScriptedChatModel(replies)
    analyst = await open_analyst(model, memory_context_window=6_100)
    thread_id = None
    for n in range(3):
        handle = await analyst.ask(f"Question {n}?", source=wide, thread_id=thread_id, user_id=analyst.settings.user)
        thread_id = handle.thread_id
        assert (await handle.wait()).type == "finished"
    first, *_, last = await model_steps(analyst, str(thread_id))
    assert first.usage["budget"] >= 256 and last.usage["budget"] >= 256
    # What is told of the tools has given way: the factor has raised what they cost.
    told = [[len(tool["function"]["description"]) for tool in made.tools] for made in (model.calls[0], model.calls[-1])]
    assert max(told[0]) > 80 >= max(told[1])


def huge_agent(tools: int) -> list[dict[str, Any]]:
    """An agent whose instructions, and whose tools' descriptions, are longer than a small window."""
    names = [f"measure_{n}" for n in range(tools)]
    parameter = {"type": "string", "description": "What is measured, in words. " * 10}
    made = [
        {
            "kind": "tool",
            "name": name,
            "type": "code",
            "schema": {
                "name": name,
                "description": "Measures one thing. " * 20,
                "parameters": {"type": "object", "properties": {"description": parameter}},
            },
            "implementation": {"runtime": "python", "code": "def execute(description=''):\n    return description\n"},
        }
        for name in names
    ]
    skill = {"kind": "skill", "name": "measuring", "tools": names, "config": {"instructions": "Measure."}}
    agent = {
        "kind": "agent",
        "name": "meter",
        "system_prompt": "You measure. " + "Measure twice. " * 4_000 + "Say what you measured.",
        "skills": ["measuring"],
    }
    return [*made, skill, agent]


@pytest.mark.parametrize("protocol", ["auto", "json"])
async def test_an_agent_that_is_too_large_for_its_window_is_told_in_short(
    open_analyst: OpenAnalyst, protocol: Any
) -> None:
    model = ScriptedChatModel([call("measure_3", description="a rope"), finish("A rope.")])
    analyst = await open_analyst(model, memory_context_window=4_096)
    await Catalog(analyst.store).apply(huge_agent(8))
    handle = await analyst.ask("Measure it.", agent="meter", protocol=protocol, user_id=analyst.settings.user)
    events = await events_of(handle)
    assert events[-1].type == "finished", events[-1].data
    [warning] = [event.data["message"] for event in events if event.type == "warning"]
    assert "4,096 tokens" in warning and "MEMORY_CONTEXT_WINDOW" in warning
    prompt = model.calls[0].messages[0].text
    assert prompt.startswith("You measure. ") and "characters left out" in prompt
    assert "Say what you measured." in prompt
    [measured] = [event.data["observation"] for event in events if event.type == "step_finished"]
    assert measured["data"]["result"] == "a rope"
    if protocol == "auto":
        [tool] = [each["function"] for each in model.calls[0].tools if each["function"]["name"] == "measure_3"]
        assert tool["parameters"]["properties"] == {"description": {"type": "string"}}
        assert len(tool["description"]) == 80
    async with analyst.store.reading() as tx:
        step = (await model_steps(analyst, handle.thread_id))[0]
        assert (await sent(tx, step)).messages[0].text == prompt
