"""Agents of the catalog in runs: their prompts, the tools of their skills, their versions, their memories."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.analysts import OpenAnalyst
from tests.script import COUNT, call, finish

from longthread import Catalog
from longthread.errors import AgentOff, AgentOfThread, DefinitionNotFound, InvalidInput, ToolInvalid
from longthread.model.catalog import ASSISTANT, MEMORY
from longthread.model.memory import ANALYST
from longthread.model.run import AgentRun, Protocol, Run
from longthread.runs.analyst import Analyst
from longthread.runs.services.runs import Runs
from longthread.settings import Settings
from longthread.store import listing, log, runs
from longthread.store.memories import Owner
from longthread.store.queries import Sql
from longthread.testing import ScriptedChatModel

pytestmark = pytest.mark.one_backend

CUSTOMERS = {
    "kind": "tool",
    "name": "customers of",
    "type": "query",
    "schema": {
        "name": "customers_of",
        "description": "The customers of a country.",
        "parameters": {
            "type": "object",
            "properties": {"country": {"type": "string"}, "limit": {"type": "integer"}},
            "required": ["country", "limit"],
        },
    },
    "implementation": {
        "database": "shop",
        "sql_template": "SELECT name FROM customers WHERE country = {{country}} ORDER BY name LIMIT {{limit}}",
    },
}
SKILL = {
    "kind": "skill",
    "name": "customers",
    "tools": [{"tool": "customers of", "required": True, "default_params": {"limit": 1}}],
    "config": {"instructions": "Name customers in full."},
}
AGENT: dict[str, Any] = {
    "kind": "agent",
    "name": "clerk",
    "system_prompt": "You are a clerk.",
    "config": {"temperature": 0.5, "max_steps": 3},
    "skills": ["customers"],
}


async def define(analyst: Analyst, shop: str, *more: dict[str, Any]) -> Catalog:
    catalog = Catalog(analyst.store, user="ada")
    source = {"kind": "source", "name": "shop", "address": shop}
    named = {(each["kind"], each["name"]): each for each in (source, CUSTOMERS, SKILL, AGENT, *more)}
    await catalog.apply(named.values())
    return catalog


async def last_run(analyst: Analyst, thread_id: str) -> Run:
    async with analyst.store.reading() as tx:
        found = await runs.last_run(tx, thread_id)
    assert found is not None
    return found


def prompt(model: ScriptedChatModel) -> str:
    return str(model.calls[-1].messages[0].text)


async def test_an_agent_runs_with_the_tools_of_its_skills(open_analyst: OpenAnalyst, shop: str) -> None:
    model = ScriptedChatModel([call("customers_of", country="UK"), finish("Ada.")])
    analyst = await open_analyst(model)
    catalog = await define(analyst, shop)
    handle = await analyst.ask("Who is from the UK?", agent="clerk", user_id=analyst.settings.user)
    assert (await handle.wait()).type == "finished"
    assert prompt(model) == "You are a clerk.\n\n# customers\n\nName customers in full."
    [tool] = model.calls[-1].tools
    assert tool["function"]["name"] == "customers_of"
    assert tool["function"]["parameters"]["required"] == ["country"]
    assert tool["function"]["parameters"]["properties"]["limit"] == {"type": "integer", "default": 1}
    run = await last_run(analyst, handle.thread_id)
    async with analyst.store.reading() as tx:
        [step] = [step for step in await runs.steps_of(tx, run) if step.kind == "tool"]
        thread = await log.find_thread(tx, handle.thread_id, user_id="default")
    assert step.observation is not None
    assert step.observation["data"]["rows"] == [["Ada"]] or step.observation["data"]["rows"] == [{"name": "Ada"}]
    clerk = await catalog.agent("clerk")
    assert (run.source, run.max_steps, thread.agent_id) == (None, 3, clerk.id)
    parts = {kind: {(await catalog.find(kind, name)).id: 1} for kind, name in PARTS}  # type: ignore[arg-type]
    assert run.agent == AgentRun(clerk.id, 1, parts)


PARTS = (("skill", "customers"), ("tool", "customers of"), ("source", "shop"))


async def test_the_next_question_goes_to_the_threads_agent_as_it_is_then(open_analyst: OpenAnalyst, shop: str) -> None:
    model = ScriptedChatModel([finish("One."), finish("Two.")])
    analyst = await open_analyst(model)
    await define(analyst, shop)
    first = await analyst.ask("1?", agent="clerk", user_id=analyst.settings.user)
    await first.wait()
    await define(analyst, shop, AGENT | {"system_prompt": "You are another clerk."})
    second = await analyst.ask("2?", thread_id=first.thread_id, user_id=analyst.settings.user)
    await second.wait()
    assert prompt(model).startswith("You are another clerk.")
    async with analyst.store.reading() as tx:
        versions = [await runs.find_run(tx, first.thread_id, each.run.id) for each in (first, second)]
    assert [run.agent.version for run in versions if run and run.agent] == [1, 2]


async def test_a_run_that_is_taken_over_goes_on_with_the_versions_that_it_began_with(
    open_analyst: OpenAnalyst, shop: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = ScriptedChatModel([finish("Done.")])
    analyst = await open_analyst(model)
    catalog = await define(analyst, shop)
    monkeypatch.setattr(Runs, "_execute", lambda self, started, assignment: started)
    begun: Any = await analyst.ask("1?", agent="clerk", user_id=analyst.settings.user)
    await catalog.apply([AGENT | {"system_prompt": "New.", "skills": []}])
    await catalog.delete("skill", "customers")
    monkeypatch.undo()
    monkeypatch.setattr("longthread.runs.start.may_be_alive", lambda _: False)
    handle = await analyst.runs.resume(begun.run.thread_id, user_id=analyst.settings.user)
    assert (await handle.wait()).type == "finished"
    assert prompt(model).startswith("You are a clerk.\n\n# customers")
    assert [tool["function"]["name"] for tool in model.calls[-1].tools] == ["customers_of"]
    assert (await last_run(analyst, handle.thread_id)).agent == begun.run.agent


async def test_the_assistant_remembers_and_needs_no_source(open_analyst: OpenAnalyst) -> None:
    model = ScriptedChatModel([call("remember", content="The user likes tea."), finish("Noted."), finish("Tea.")])
    analyst = await open_analyst(model)
    handle = await analyst.ask("I like tea.", agent="assistant", user_id=analyst.settings.user)
    assert (await handle.wait()).type == "finished"
    names = [tool["function"]["name"] for tool in model.calls[-1].tools]
    assert names == ["recall_memory", "remember", "forget"]
    [memory] = await analyst.memories.list_(Owner("default", ASSISTANT))
    assert (memory.content, memory.thread_id) == ("The user likes tea.", handle.thread_id)
    assert await analyst.memories.list_(Owner("default", ANALYST)) == []
    other = await analyst.ask("What do I like, tea?", agent="assistant", user_id=analyst.settings.user)
    await other.wait()
    assert "The user likes tea." in json.dumps([str(each.content) for each in model.calls[-1].messages])
    run = await last_run(analyst, other.thread_id)
    assert run.agent == AgentRun(ASSISTANT, 1, {"skill": {MEMORY: 1}})


async def test_an_agent_with_data_asks_its_source_or_the_one_that_is_named(
    open_analyst: OpenAnalyst, shop: str
) -> None:
    model = ScriptedChatModel([COUNT, finish("3 [q1]."), COUNT, finish("3 [q1].")])
    analyst = await open_analyst(model)
    await define(analyst, shop, AGENT | {"skills": ["data"], "config": {"source": "shop"}})
    handle = await analyst.ask("How many customers?", agent="clerk", user_id=analyst.settings.user)
    assert (await handle.wait()).data["answer"] == "3 [q1]."
    assert "sqlite dialect" in prompt(model)
    assert (await last_run(analyst, handle.thread_id)).source == shop
    await define(analyst, shop, AGENT | {"skills": ["data"], "config": {}})
    with pytest.raises(InvalidInput, match="no source to ask"):
        await analyst.ask("How many customers?", agent="clerk", user_id=analyst.settings.user)
    named = await analyst.ask("How many customers?", agent="clerk", source="shop", user_id=analyst.settings.user)
    assert (await named.wait()).type == "finished"


async def test_the_analyst_asks_a_source_by_its_name(open_analyst: OpenAnalyst, shop: str) -> None:
    analyst = await open_analyst([COUNT, finish("3 [q1].")])
    await define(analyst, shop)
    handle = await analyst.ask("How many customers?", source="shop", agent="analyst", user_id=analyst.settings.user)
    assert (await handle.wait()).type == "finished"
    run = await last_run(analyst, handle.thread_id)
    assert (run.source, run.agent) == (shop, AgentRun(ANALYST, 1))


async def test_a_conversation_stays_its_agents(open_analyst: OpenAnalyst, shop: str) -> None:
    analyst = await open_analyst([finish("One."), finish("Two.")])
    await define(analyst, shop, AGENT | {"name": "other"})
    mine = await analyst.ask("1?", agent="clerk", user_id=analyst.settings.user)
    await mine.wait()
    for name in ("other", "analyst"):
        with pytest.raises(AgentOfThread, match="is the agent clerk's"):
            await analyst.ask("2?", thread_id=mine.thread_id, agent=name, user_id=analyst.settings.user)
    theirs = await analyst.ask("1?", source=shop, user_id=analyst.settings.user)
    await theirs.wait()
    with pytest.raises(AgentOfThread, match="is the agent analyst's"):
        await analyst.ask("2?", thread_id=theirs.thread_id, agent="clerk", user_id=analyst.settings.user)


async def test_what_cannot_run_is_told_before_anything_is_written(open_analyst: OpenAnalyst, shop: str) -> None:
    analyst = await open_analyst([])
    catalog = await define(analyst, shop)
    with pytest.raises(DefinitionNotFound, match="no agent clark. Did you mean clerk"):
        await analyst.ask("?", agent="clark", user_id=analyst.settings.user)
    with pytest.raises(InvalidInput, match="asks no source of its own"):
        await analyst.ask("?", agent="clerk", source=shop, user_id=analyst.settings.user)
    await catalog.apply([CUSTOMERS | {"is_active": False}])
    with pytest.raises(ToolInvalid, match="customers of cannot be used: it is switched off"):
        await analyst.ask("?", agent="clerk", user_id=analyst.settings.user)
    await catalog.apply([AGENT | {"is_active": False}])
    with pytest.raises(AgentOff, match="clerk is switched off"):
        await analyst.ask("?", agent="clerk", user_id=analyst.settings.user)
    async with analyst.store.reading() as tx:
        assert await listing.list_threads(tx, user_id="default") == []


async def test_a_tool_that_is_not_required_is_left_out(open_analyst: OpenAnalyst, shop: str) -> None:
    model = ScriptedChatModel([finish("No tools.")])
    analyst = await open_analyst(model)
    await define(analyst, shop, CUSTOMERS | {"is_active": False}, SKILL | {"tools": ["customers of", "forget"]})
    handle = await analyst.ask("?", agent="clerk", user_id=analyst.settings.user)
    assert (await handle.wait()).type == "finished"
    assert [tool["function"]["name"] for tool in model.calls[-1].tools] == ["forget"]


async def test_a_tool_that_wants_approval_waits_with_all_of_its_arguments(open_analyst: OpenAnalyst, shop: str) -> None:
    analyst = await open_analyst([call("customers_of", country="UK"), finish("Ada.")])
    await define(analyst, shop, CUSTOMERS | {"implementation": CUSTOMERS["implementation"] | {"approve": True}})  # type: ignore[operator]
    handle = await analyst.ask("Who is from the UK?", agent="clerk", user_id=analyst.settings.user)
    assert (await handle.wait()).type == "waiting"
    [asked] = await analyst.approvals.pending(handle.thread_id, user_id=analyst.settings.user)
    assert asked.args == {"country": "UK", "limit": 1}
    # Meanwhile the tool was changed: the run goes on with what it waits for.
    await define(analyst, shop, CUSTOMERS | {"is_active": False})
    goes_on = await analyst.approvals.decide(
        handle.thread_id, {asked.call_id: {"type": "approve"}}, user_id=analyst.settings.user
    )
    assert goes_on is not None and (await goes_on.wait()).type == "finished"


async def test_a_change_by_another_program_is_noted_when_it_runs(open_analyst: OpenAnalyst, shop: str) -> None:
    analyst = await open_analyst([finish("One.")])
    catalog = await define(analyst, shop)
    async with analyst.store.writing() as tx:
        await tx.run(Sql("UPDATE agents SET system_prompt = 'By hand.' WHERE name = 'clerk'"))
    handle = await analyst.ask("1?", agent="clerk", user_id=analyst.settings.user)
    await handle.wait()
    run = await last_run(analyst, handle.thread_id)
    assert run.agent is not None
    version = await catalog.version("agent", "clerk", run.agent.version)
    assert (version.version, version.body and version.body["system_prompt"]) == (2, "By hand.")


async def test_a_built_in_tool_has_the_skills_defaults(open_analyst: OpenAnalyst, shop: str) -> None:
    model = ScriptedChatModel([call("sample_rows", table="customers"), finish("One.")])
    analyst = await open_analyst(model)
    tools = [{"tool": "sample_rows", "default_params": {"limit": 1}}]
    await define(analyst, shop, SKILL | {"tools": tools}, AGENT | {"config": {"source": "shop"}})
    handle = await analyst.ask("?", agent="clerk", user_id=analyst.settings.user)
    assert (await handle.wait()).type == "finished"
    run = await last_run(analyst, handle.thread_id)
    async with analyst.store.reading() as tx:
        [step] = [step for step in await runs.steps_of(tx, run) if step.kind == "tool"]
    assert step.observation is not None
    assert len(step.observation["data"]["rows"]) == 1
    assert model.calls[0].tools[0]["function"]["parameters"]["properties"]["limit"]["default"] == 1


async def test_an_agent_without_tools_talks(open_analyst: OpenAnalyst) -> None:
    analyst = await open_analyst(["Hello."])
    await Catalog(analyst.store).apply([AGENT | {"skills": []}])
    handle = await analyst.ask("Hi", agent="clerk", user_id=analyst.settings.user)
    assert (await handle.wait()).data["answer"] == "Hello."


async def test_a_conversation_whose_agent_is_not_there_says_what_to_do(open_analyst: OpenAnalyst) -> None:
    analyst = await open_analyst([finish("One.")])
    await Catalog(analyst.store).apply([AGENT | {"skills": []}])
    handle = await analyst.ask("1?", agent="clerk", user_id=analyst.settings.user)
    await handle.wait()
    async with analyst.store.writing() as tx:
        await log.set_agent(tx, handle.thread_id, MEMORY)
    with pytest.raises(DefinitionNotFound, match=f"no agent {MEMORY}. The conversation is with it"):
        await analyst.ask("2?", thread_id=handle.thread_id, user_id=analyst.settings.user)


@pytest.mark.parametrize("protocol", ["native", "json"])
async def test_the_demo_model_says_what_it_cannot_do(store_address: str, tmp_path: Path, protocol: Protocol) -> None:
    settings = Settings.load(env_file=None, data_dir=tmp_path, database=store_address, model="demo")
    async with Analyst.open(settings) as analyst:
        for question, said in (("Hello", "I am the demo model"), ("你好", "我是演示模型")):
            handle = await analyst.ask(question, agent="assistant", protocol=protocol, user_id=analyst.settings.user)
            event = await handle.wait()
            assert (event.type, said in event.data["answer"]) == ("finished", True)
