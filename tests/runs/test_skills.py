"""Skills in runs: what the model is told of them, when it loads them, and that a run has what it had."""

from __future__ import annotations

import json
from typing import Any

import pytest
from tests.analysts import OpenAnalyst
from tests.runs.test_agents import last_run
from tests.script import call, finish

from longthread import Catalog
from longthread.errors import CatalogInvalid
from longthread.model.run import Step
from longthread.runs.analyst import Analyst
from longthread.runs.inspect import sent
from longthread.runs.services.runs import Runs
from longthread.store import log, runs
from longthread.testing import ScriptedChatModel

pytestmark = pytest.mark.one_backend

LONG = "Count the stages. " * 80
SKILLS: list[dict[str, Any]] = [
    {
        "kind": "skill",
        "name": "launching",
        "description": "Knows about launches.",
        "trigger_keywords": ["launch", "发射"],
        "tools": ["mean"],
        "config": {"instructions": "Say T minus ten."},
    },
    {
        "kind": "skill",
        "name": "staging",
        "description": "Knows about stages.",
        "config": {"instructions": LONG, "files": {"references/stages.md": "# 级\nTwo."}},
    },
    {"kind": "skill", "name": "manners", "config": {"instructions": "Be polite."}},
]
MEAN = {
    "kind": "tool",
    "name": "mean",
    "type": "code",
    "schema": {"name": "mean", "parameters": {"type": "object", "properties": {"a": {"type": "number"}}}},
    "implementation": {"runtime": "python", "code": "def execute(a=1):\n    return a\n"},
}
AGENT = {"kind": "agent", "name": "pilot", "system_prompt": "You fly.", "skills": ["launching", "staging", "manners"]}
NAMES = ["mean", "load_skill"]


async def open_pilot(open_analyst: OpenAnalyst, model: ScriptedChatModel, **settings: Any) -> tuple[Analyst, Catalog]:
    analyst = await open_analyst(model, **settings)
    catalog = Catalog(analyst.store)
    await catalog.apply([MEAN, *SKILLS, AGENT])
    return analyst, catalog


async def ask(analyst: Analyst, question: str, thread_id: str | None = None, **given: Any) -> str:
    handle = await analyst.ask(question, thread_id=thread_id, agent="pilot", user_id=analyst.settings.user, **given)
    end = await handle.wait()
    assert end.type == "finished", end.data
    return handle.thread_id


def prompts(model: ScriptedChatModel) -> list[str]:
    return [str(each.messages[0].text) for each in model.calls]


async def steps(analyst: Analyst, thread_id: str) -> list[Step]:
    async with analyst.store.reading() as tx:
        found = await runs.last_run(tx, thread_id)
        assert found is not None
        return list(await runs.steps_of(tx, found))


async def test_a_skill_is_named_and_the_model_loads_it(open_analyst: OpenAnalyst) -> None:
    model = ScriptedChatModel(
        [
            call("load_skill", name="staging"),
            call("load_skill", name="staging", file="references/stages.md"),
            finish("Two."),
        ]
    )
    analyst, catalog = await open_pilot(open_analyst, model)
    thread_id = await ask(analyst, "How many stages?")
    first, *others = prompts(model)
    assert first.startswith("You fly.\n\n# manners\n\nBe polite.\n\n# Skills\n\n")
    assert first.endswith("- launching: Knows about launches.\n- staging: Knows about stages.")
    assert others == [first, first]
    assert [[tool["function"]["name"] for tool in each.tools] for each in model.calls] == [NAMES] * 3
    async with analyst.store.reading() as tx:
        thread = await log.find_thread(tx, thread_id, user_id="default")
        entries = await log.branch(tx, thread_id, thread.tip, limit=10)
    body, file = (json.loads(each.text)["data"] for each in entries if each.role == "tool")
    files = [{"path": "references/stages.md", "bytes": 10}]
    assert body == {"skill": "staging", "instructions": LONG.strip(), "files": files}
    assert file == {"skill": "staging", "file": "references/stages.md", "text": "# 级\nTwo."}
    run = await last_run(analyst, thread_id)
    ids = {name: (await catalog.find("skill", name)).id for name in ("launching", "staging", "manners")}
    assert run.agent is not None
    assert (run.agent.parts["skill"], run.agent.opened_skills) == (dict.fromkeys(ids.values(), 1), ())


@pytest.mark.parametrize("question", ["When is the next Launch?", "下一次发射是什么时候"])
async def test_a_keyword_opens_a_skill_for_the_rest_of_the_conversation(
    open_analyst: OpenAnalyst, question: str
) -> None:
    model = ScriptedChatModel([finish("Hello."), finish("Soon."), finish("Yes."), finish("Hello.")])
    analyst, catalog = await open_pilot(open_analyst, model)
    thread_id = await ask(analyst, "Hi")
    for said in (question, "Are you sure?"):
        await ask(analyst, said, thread_id)
    before, opened, after = prompts(model)
    assert "T minus" not in before
    assert opened == after == f"{before}\n\n# launching\n\nSay T minus ten."
    run = await last_run(analyst, thread_id)
    assert run.agent is not None
    assert run.agent.opened_skills == ((await catalog.find("skill", "launching")).id,)
    await ask(analyst, "Hi")  # another conversation
    assert prompts(model)[-1] == before


async def test_what_each_call_saw_can_be_told_again(open_analyst: OpenAnalyst) -> None:
    model = ScriptedChatModel([call("load_skill", name="staging"), finish("Two."), finish("Soon.")])
    analyst, catalog = await open_pilot(open_analyst, model)
    thread_id = await ask(analyst, "How many stages?")
    earlier = await steps(analyst, thread_id)
    await catalog.apply([SKILLS[0] | {"config": {"instructions": "Say go."}}, SKILLS[1] | {"config": {}}])
    await ask(analyst, "And the launch?", thread_id)
    assert prompts(model)[-1].endswith("# launching\n\nSay go.")
    seen = [step for step in [*earlier, *await steps(analyst, thread_id)] if step.kind == "model"]
    for step, given in zip(seen, model.calls, strict=True):
        async with analyst.store.reading() as tx:
            again = await sent(tx, step)
        assert [str(each.text) for each in again.messages] == [str(each.text) for each in given.messages]
        assert [tool.name for tool in again.tools] == NAMES


async def test_a_run_that_is_taken_over_has_the_skills_that_it_had(
    open_analyst: OpenAnalyst, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = ScriptedChatModel([finish("Hello."), call("load_skill", name="staging"), finish("Soon.")])
    analyst, catalog = await open_pilot(open_analyst, model)
    thread_id = await ask(analyst, "Tell me of a launch.")
    opened = prompts(model)[0]
    monkeypatch.setattr(Runs, "_execute", lambda self, started, assignment: started)
    begun: Any = await analyst.ask("And stages?", thread_id=thread_id, user_id=analyst.settings.user)
    changed = [each | {"trigger_keywords": [], "config": {"instructions": "New."}} for each in SKILLS]
    await catalog.apply([AGENT | {"skills": []}, *changed])
    monkeypatch.undo()
    monkeypatch.setattr("longthread.runs.start.may_be_alive", lambda _: False)
    handle = await analyst.runs.resume(thread_id, user_id=analyst.settings.user)
    assert (await handle.wait()).type == "finished"
    assert prompts(model) == [opened] * 3
    assert "T minus" in opened
    [loaded] = [step for step in await steps(analyst, thread_id) if step.kind == "tool"]
    assert loaded.observation is not None
    assert loaded.observation["data"]["instructions"] == LONG.strip()
    assert (await last_run(analyst, thread_id)).agent == begun.run.agent


async def test_a_paused_run_goes_on_with_what_its_question_opened(open_analyst: OpenAnalyst) -> None:
    model = ScriptedChatModel([call("mean", a=1), finish("So far."), finish("Soon.")])
    analyst, _ = await open_pilot(open_analyst, model)
    handle = await analyst.ask("A launch?", agent="pilot", max_steps=1, user_id=analyst.settings.user)
    assert (await handle.wait()).type == "paused"
    goes_on = await analyst.runs.resume(handle.thread_id, user_id=analyst.settings.user)
    assert (await goes_on.wait()).type == "finished"
    assert all("T minus" in prompt for prompt in prompts(model)[:1] + prompts(model)[-1:])


async def test_a_skill_that_has_left_the_view_is_loaded_again(open_analyst: OpenAnalyst) -> None:
    """It is condensed like other results, and loading it is a call like others."""
    loads = call("load_skill", name="staging")
    model = ScriptedChatModel([loads, finish("Two."), *[finish("Yes. " * 400)] * 4, loads, finish("Two.")])
    analyst, _ = await open_pilot(open_analyst, model, memory_context_window=8000, memory_full_recent_count=2)
    thread_id = await ask(analyst, "How many stages?")
    for _ in range(4):
        await ask(analyst, "Sure? " * 200, thread_id)
    await ask(analyst, "How many stages?", thread_id)
    whole = [LONG.strip() in "".join(str(message.text) for message in each.messages[1:]) for each in model.calls]
    assert whole[1]
    assert not whole[-2]
    assert whole[-1]


async def test_recall_finds_what_was_said_and_no_skill(open_analyst: OpenAnalyst) -> None:
    model = ScriptedChatModel(
        [
            call("load_skill", name="staging"),
            finish("Two."),
            call("recall_memory", query="count stages"),
            finish("Two."),
        ]
    )
    analyst, catalog = await open_pilot(open_analyst, model)
    await catalog.apply([AGENT | {"skills": ["staging", "memory"]}])
    thread_id = await ask(analyst, "How many stages?")
    await ask(analyst, "What did I ask?", thread_id)
    [found] = [step.observation for step in await steps(analyst, thread_id) if step.kind == "tool"]
    assert found is not None
    assert "How many stages?" in [each["text"] for each in found["data"]["found"]]
    assert "Count the stages" not in json.dumps(found)


async def test_the_name_of_the_tool_is_ours(open_analyst: OpenAnalyst) -> None:
    model = ScriptedChatModel([call("load_skill", name="xyz"), finish("No.")])
    analyst, catalog = await open_pilot(open_analyst, model)
    with pytest.raises(CatalogInvalid, match="load_skill is a name of Longthread's own"):
        await catalog.apply([MEAN | {"name": "x", "schema": {"name": "load_skill"}}])
    thread_id = await ask(analyst, "Hi")
    [step] = [step for step in await steps(analyst, thread_id) if step.kind == "tool"]
    assert step.observation is not None
    assert "There is no skill xyz. There are: launching, manners, staging" in step.observation["error"]["message"]


async def test_an_agent_without_such_skills_has_no_such_tool(open_analyst: OpenAnalyst) -> None:
    model = ScriptedChatModel([finish("Hello.")])
    analyst, catalog = await open_pilot(open_analyst, model)
    await catalog.apply([AGENT | {"skills": ["manners", "memory"]}])
    await ask(analyst, "Hi")
    assert "load_skill" not in [tool["function"]["name"] for tool in model.calls[0].tools]
    assert prompts(model) == ["You fly.\n\n# manners\n\nBe polite."]


async def test_a_model_without_tool_calls_loads_skills_too(open_analyst: OpenAnalyst) -> None:
    model = ScriptedChatModel([call("load_skill", name="staging"), finish("Two.")], profile={"tool_calling": False})
    analyst, _ = await open_pilot(open_analyst, model)
    await ask(analyst, "有几级?", protocol="json")
    assert "load_skill" in prompts(model)[0]
    assert LONG.strip() in str(model.calls[1].messages[-1].text)
