"""Agents that ask other agents: threads below threads, bounded, each call answered once whatever dies."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pytest
from langchain_core.messages import BaseMessage, HumanMessage, ToolMessage
from tests.analysts import OpenAnalyst
from tests.runs.test_agents import AGENT as CLERK
from tests.runs.test_agents import CUSTOMERS, SKILL
from tests.script import COUNT, call, finish

from longthread import Catalog
from longthread.errors import InvalidInput
from longthread.model.catalog import Agent
from longthread.model.entry import Entry
from longthread.model.memory import ANALYST
from longthread.model.run import Answers, Decision, Run
from longthread.model.thread import Thread
from longthread.runs.agents import LONGEST, tool_names
from longthread.runs.analyst import Analyst
from longthread.runs.shared import RunHandle
from longthread.store import listing, log, runs, wait_list
from longthread.store.memories import Owner
from longthread.testing import ScriptedChatModel

pytestmark = pytest.mark.one_backend

USER = "default"
Reply = Callable[[list[BaseMessage]], Any]


def agent(name: str, *subs: str, **more: Any) -> dict[str, Any]:
    found = {"kind": "agent", "name": name, "system_prompt": f"You are {name}.", "sub_agents": list(subs)}
    return found | {"description": f"Is {name}."} | more


async def define(analyst: Analyst, *items: dict[str, Any]) -> Catalog:
    catalog = Catalog(analyst.store)
    await catalog.apply(items)
    return catalog


def played(parts: Mapping[str, Sequence[Any] | Reply]) -> ScriptedChatModel:
    """A model that says what each agent's part has: replies in order, or a function of the messages."""
    said = dict.fromkeys(parts, 0)

    def reply(messages: list[BaseMessage]) -> Any:
        name = next(name for name in parts if str(messages[0].text).startswith(f"You are {name}."))
        part = parts[name]
        if callable(part):
            return part(messages)
        said[name] += 1
        found = part[said[name] - 1]
        return found(messages) if callable(found) else found

    return ScriptedChatModel(reply)


def result(messages: Sequence[BaseMessage], place: int = -1) -> dict[str, Any]:
    """What the model was told of a call."""
    found: dict[str, Any] = json.loads([str(each.text) for each in messages if isinstance(each, ToolMessage)][place])
    return found


def question(messages: Sequence[BaseMessage]) -> str:
    return [str(each.text) for each in messages if isinstance(each, HumanMessage)][-1]


async def below(analyst: Analyst, thread_id: str) -> list[Thread]:
    async with analyst.store.reading() as tx:
        return await listing.children(tx, thread_id, user_id=USER)


async def run_of(analyst: Analyst, thread_id: str) -> Run:
    async with analyst.store.reading() as tx:
        found = await runs.last_run(tx, thread_id)
    assert found is not None
    return found


async def entries(analyst: Analyst, thread_id: str) -> list[Entry]:
    async with analyst.store.reading() as tx:
        tip, _ = await log.position(tx, thread_id)
        return await log.branch(tx, thread_id, tip)


async def test_a_call_is_a_run_on_a_thread_below(open_analyst: OpenAnalyst) -> None:
    seen: list[Any] = []
    boss = [call("ask_helper", task="Count to 3."), lambda messages: seen.append(result(messages)) or finish("3")]
    model = played({"boss": boss, "helper": [finish("1 2 3")]})
    analyst = await open_analyst(model)
    await define(analyst, agent("boss", "helper"), agent("helper"))
    handle = await analyst.ask("Count", agent="boss", user_id=analyst.settings.user)
    assert (await handle.wait()).data["answer"] == "3"
    [child] = await below(analyst, handle.thread_id)
    assert seen == [{"ok": True, "data": {"agent": "helper", "thread_id": child.id, "answer": "1 2 3"}}]
    assert (child.parent_id, child.title, child.user_id) == (handle.thread_id, "Count to 3.", USER)
    [tool] = model.calls[0].tools
    assert tool["function"]["name"] == "ask_helper"
    assert "Is helper." in tool["function"]["description"]
    run = await run_of(analyst, child.id)
    async with analyst.store.reading() as tx:
        [step] = [s for s in await runs.steps_of(tx, await run_of(analyst, handle.thread_id)) if s.kind == "tool"]
        assert await runs.answers(tx, handle.thread_id, handle.run.id) == [run]
        shown = await listing.list_threads(tx, user_id=USER)
        every = await listing.list_threads(tx, user_id=USER, below=True)
    assert run.answers == Answers(handle.run.id, str(step.call_id))
    assert [thread.id for thread in shown] == [handle.thread_id]
    assert {thread.id for thread in every} == {handle.thread_id, child.id}
    assert [entry.text for entry in await entries(analyst, child.id)] == ["Count to 3.", "1 2 3"]
    mine = (await run_of(analyst, handle.thread_id)).agent
    assert mine is not None and list(mine.parts["agent"].values()) == [1]


async def test_a_conversation_with_an_agent_goes_on_and_is_only_the_callers(open_analyst: OpenAnalyst) -> None:
    seen: list[dict[str, Any]] = []

    def boss(messages: list[BaseMessage]) -> Any:
        done = [each for each in messages if isinstance(each, ToolMessage)]
        if done:
            seen.append(result(messages))
        match len(done):
            case 0:
                return call("ask_helper", task="One")
            case 1:
                return call("ask_helper", task="Two", thread_id=seen[0]["data"]["thread_id"])
            case 2:
                return call("ask_other", task="Three", thread_id=seen[0]["data"]["thread_id"])
            case 3:
                return call("ask_helper", task="Four", thread_id=strange)
            case _:
                return finish("Done")

    model = played({"boss": boss, "helper": [finish("Nobody's"), finish("1"), finish("2")], "other": []})
    analyst = await open_analyst(model)
    await define(analyst, agent("boss", "helper", "other"), agent("helper"), agent("other"))
    alone = await analyst.ask("?", agent="helper", user_id=analyst.settings.user)
    await alone.wait()
    strange = alone.thread_id
    handle = await analyst.ask("Go", agent="boss", user_id=analyst.settings.user)
    await handle.wait()
    [child] = await below(analyst, handle.thread_id)
    assert [entry.text for entry in await entries(analyst, child.id)] == ["One", "1", "Two", "2"]
    assert [each["ok"] for each in seen] == [True, True, False, False]
    assert seen[2]["error"]["message"].startswith(f"This conversation has had none with other under the id {child.id}.")
    assert f"none with helper under the id {strange}" in seen[3]["error"]["message"]
    assert len(await entries(analyst, strange)) == 2


async def test_calls_of_one_reply_run_at_once(open_analyst: OpenAnalyst) -> None:
    begun = {name: asyncio.Event() for name in ("a", "b")}
    boss = [[call("ask_helper", task="a"), call("ask_helper", task="b")], finish("Both")]

    class Meeting(ScriptedChatModel):
        async def _astream(self, messages: list[BaseMessage], *args: Any, **kwargs: Any) -> Any:
            if str(messages[0].text).startswith("You are helper."):
                mine = question(messages)
                begun[mine].set()
                await begun["b" if mine == "a" else "a"].wait()  # each answers when the other has begun
            async for chunk in super()._astream(messages, *args, **kwargs):
                yield chunk

    script = played({"boss": boss, "helper": lambda messages: finish(question(messages).upper())})
    analyst = await open_analyst(Meeting(script._script._replies[0]))
    await define(analyst, agent("boss", "helper"), agent("helper"))
    handle = await analyst.ask("Go", agent="boss", user_id=analyst.settings.user)
    assert (await handle.wait()).type == "finished"
    said = [json.loads(entry.text) for entry in await entries(analyst, handle.thread_id) if entry.role == "tool"]
    assert [each["data"]["answer"] for each in said] == ["A", "B"]
    assert len(await below(analyst, handle.thread_id)) == 2


async def test_agents_ask_no_deeper_than_is_allowed(open_analyst: OpenAnalyst) -> None:
    parts = {
        "a": [call("ask_b", task="Go"), finish("a")],
        "b": [call("ask_c", task="Go"), finish("b")],
        "c": [finish("c")],
    }
    model = played(parts)
    analyst = await open_analyst(model, max_delegation_depth=2)
    await define(analyst, agent("a", "b"), agent("b", "c"), agent("c", "d"), agent("d"))
    handle = await analyst.ask("Go", agent="a", user_id=analyst.settings.user)
    assert (await handle.wait()).type == "finished"
    offered = {str(each.messages[0].text): each.tool_names for each in model.calls}
    assert offered == {"You are a.": ["ask_b"], "You are b.": ["ask_c"], "You are c.": []}
    # Asked by a person, it stands where it stood.
    [b] = await below(analyst, handle.thread_id)
    [c] = await below(analyst, b.id)
    parts["c"].append(finish("again"))
    again = await analyst.ask("And?", thread_id=c.id, user_id=analyst.settings.user)
    await again.wait()
    assert model.calls[-1].tool_names == []
    off = await open_analyst(played({"a": [finish("Alone")]}), max_delegation_depth=0)
    await (await off.ask("Go", agent="a", user_id=off.settings.user)).wait()
    assert len(await below(analyst, handle.thread_id)) == 1


async def test_steps_are_bounded_by_the_agents_own_and_by_what_is_left(open_analyst: OpenAnalyst) -> None:
    told: list[dict[str, Any]] = []

    def boss(messages: list[BaseMessage]) -> Any:
        done = [each for each in messages if isinstance(each, ToolMessage)]
        if done:
            told.append(result(messages))
        return call("ask_helper", task=f"Go {len(done)}") if len(done) < 4 else finish("Enough")

    analyst = await open_analyst(
        played({"boss": boss, "helper": lambda _: call("ask_none", task="x")}), max_delegated_steps=5
    )
    await define(analyst, agent("boss", "helper"), agent("helper", config={"max_steps": 2}))
    # A summary is no step; the script's model cannot write one.
    handle = await analyst.ask("Go", agent="boss", user_id=analyst.settings.user)
    assert (await handle.wait()).type == "finished"
    children = await below(analyst, handle.thread_id)
    async with analyst.store.reading() as tx:
        made = [
            sum(step.kind == "model" and step.action != "summary" for step in await runs.steps_of(tx, run))
            for run in await runs.answers(tx, handle.thread_id, handle.run.id)
        ]
    assert made == [2, 2, 1]
    assert [each["error"]["type"] for each in told] == ["agent_paused"] * 3 + ["invalid_input"]
    assert "its steps are used up. To let it go on, call ask_helper" in told[0]["error"]["message"]
    assert told[0]["error"]["thread_id"] == children[0].id
    assert "All 5 model calls" in told[2]["error"]["message"]
    assert "All 5 model calls" in told[3]["error"]["message"]
    assert len(children) == 3


async def test_an_agent_that_was_paused_goes_on_when_it_is_told_to(open_analyst: OpenAnalyst) -> None:
    def boss(messages: list[BaseMessage]) -> Any:
        done = [each for each in messages if isinstance(each, ToolMessage)]
        if not done:
            return call("ask_helper", task="Work")
        if len(done) == 1:
            return call("ask_helper", task="continue", thread_id=result(messages)["error"]["thread_id"])
        return finish(result(messages)["data"]["answer"])

    analyst = await open_analyst(played({"boss": boss, "helper": [call("none"), finish("Worked")]}))
    await define(analyst, agent("boss", "helper"), agent("helper", config={"max_steps": 1}))
    handle = await analyst.ask("Go", agent="boss", user_id=analyst.settings.user)
    assert (await handle.wait()).data["answer"] == "Worked"
    [child] = await below(analyst, handle.thread_id)
    run = await run_of(analyst, child.id)
    assert run.continues is not None and run.question == "Work"


async def test_a_failed_agent_is_told_and_the_caller_goes_on(open_analyst: OpenAnalyst) -> None:
    told: list[dict[str, Any]] = []
    boss = [call("ask_helper", task="Go"), lambda m: told.append(result(m)) or finish("Without it.")]
    analyst = await open_analyst(played({"boss": boss, "helper": [ValueError("broken")]}), retry_attempts=0)
    await define(analyst, agent("boss", "helper"), agent("helper"))
    handle = await analyst.ask("Go", agent="boss", user_id=analyst.settings.user)
    assert (await handle.wait()).data["answer"] == "Without it."
    [child] = await below(analyst, handle.thread_id)
    assert (told[0]["error"]["type"], told[0]["error"]["thread_id"]) == ("agent_failed", child.id)
    assert told[0]["error"]["message"].startswith("helper failed: ")


async def test_an_agent_without_tools_is_not_told_to_use_one(open_analyst: OpenAnalyst) -> None:
    told: list[dict[str, Any]] = []
    analyst = await open_analyst(played({"helper": [call("none"), lambda m: told.append(result(m)) or finish("So.")]}))
    await define(analyst, agent("helper"))
    assert (await (await analyst.ask("Go", agent="helper", user_id=analyst.settings.user)).wait()).type == "finished"
    assert [each["error"]["message"] for each in told] == ["There is no tool none."]


async def test_an_agent_that_waits_for_a_person_does_not_hold_up_its_caller(
    open_analyst: OpenAnalyst, shop: str
) -> None:
    told: list[dict[str, Any]] = []

    def boss(messages: list[BaseMessage]) -> Any:
        done = [each for each in messages if isinstance(each, ToolMessage)]
        told.extend(map(json.loads, (str(each.text) for each in done[len(told) :])))
        if not done:
            return call("ask_clerk", task="Who?")
        thread_id = told[0]["error"]["thread_id"]
        tasks = ["continue", "Then how many?"]
        if len(done) > len(tasks):
            return finish("Later.")
        return call("ask_clerk", task=tasks[len(done) - 1], thread_id=thread_id)

    model = played({"boss": boss, "a clerk": [call("customers_of", country="UK"), finish("Ada")]})
    analyst = await open_analyst(model)
    tool = CUSTOMERS | {"implementation": CUSTOMERS["implementation"] | {"approve": True}}  # type: ignore[operator]
    await Catalog(analyst.store).apply(
        [{"kind": "source", "name": "shop", "address": shop}, tool, SKILL, CLERK, agent("boss", "clerk")]
    )
    handle = await analyst.ask("Go", agent="boss", user_id=analyst.settings.user)
    assert (await handle.wait()).data["answer"] == "Later."
    [child] = await below(analyst, handle.thread_id)
    assert (told[0]["error"]["type"], told[0]["error"]["thread_id"]) == ("agent_waits", child.id)
    assert [each["error"]["type"] for each in told[1:]] == ["run_waiting"] * 2
    waiting = await run_of(analyst, child.id)
    assert waiting.status == "waiting"
    async with analyst.store.reading() as tx:
        [pending] = await wait_list.pending(tx, child.id, waiting.id)
    decided = await analyst.approvals.decide(child.id, {pending.call_id: Decision()}, user_id=analyst.settings.user)
    assert decided is not None
    assert (await decided.wait()).data["answer"] == "Ada"


async def test_bad_arguments_and_an_agent_that_cannot_run_are_told(open_analyst: OpenAnalyst) -> None:
    told: list[dict[str, Any]] = []

    def boss(messages: list[BaseMessage]) -> Any:
        done = [each for each in messages if isinstance(each, ToolMessage)]
        told.extend(map(json.loads, (str(each.text) for each in done[len(told) :])))
        return [call("ask_data", task="Count"), call("ask_data", task=""), finish("No.")][len(done)]

    analyst = await open_analyst(played({"boss": boss, "data": []}))
    await define(analyst, agent("boss", "data"), agent("data", skills=["data"]))
    handle = await analyst.ask("Go", agent="boss", user_id=analyst.settings.user)
    assert (await handle.wait()).data["answer"] == "No."
    assert "There is no source to ask" in told[0]["error"]["message"]
    assert told[1]["error"]["type"] == "arguments_invalid"
    assert await below(analyst, handle.thread_id) == []


async def test_long_answers_are_bounded(open_analyst: OpenAnalyst) -> None:
    parts = {"boss": [call("ask_helper", task="Go"), finish("Done.")], "helper": [finish("长" * (LONGEST + 5))]}
    analyst = await open_analyst(played(parts))
    await define(analyst, agent("boss", "helper"), agent("helper"))
    handle = await analyst.ask("Go", agent="boss", user_id=analyst.settings.user)
    await handle.wait()
    entry = next(e for e in await entries(analyst, handle.thread_id) if e.role == "tool")
    data = json.loads(entry.text)["data"]
    assert data["answer"] == "长" * LONGEST
    assert data["notes"] == [f"The answer has {LONGEST + 5} characters; this is how it begins."]


async def test_stopping_stops_what_runs_below(open_analyst: OpenAnalyst) -> None:
    reached = asyncio.Event()

    class Waiting(ScriptedChatModel):
        async def _astream(self, messages: list[BaseMessage], *args: Any, **kwargs: Any) -> Any:
            if str(messages[0].text).startswith("You are c."):
                reached.set()
                await asyncio.Event().wait()
            async for chunk in super()._astream(messages, *args, **kwargs):
                yield chunk

    script = played({"a": [call("ask_b", task="Go")], "b": [call("ask_c", task="Go")], "c": []})
    analyst = await open_analyst(Waiting(script._script._replies[0]))
    await define(analyst, agent("a", "b"), agent("b", "c"), agent("c"))
    handle = await analyst.ask("Go", agent="a", user_id=analyst.settings.user)
    await reached.wait()
    await analyst.runs.stop(handle.thread_id, user_id=analyst.settings.user)
    [b] = await below(analyst, handle.thread_id)
    [c] = await below(analyst, b.id)
    ended = [await run_of(analyst, thread_id) for thread_id in (handle.thread_id, b.id, c.id)]
    assert [(run.status, run.outcome["reason"]) for run in ended] == [("paused", "stopped")] * 3
    assert analyst.runs._running == {}


@pytest.mark.parametrize("hurried", [False, True])
async def test_agents_that_a_draining_worker_leaves_go_on_below_their_callers(
    open_analyst: OpenAnalyst, hurried: bool
) -> None:
    reached, gate, hurry = asyncio.Event(), asyncio.Event(), asyncio.Event()

    class Gated(ScriptedChatModel):
        async def _astream(self, messages: list[BaseMessage], *args: Any, **kwargs: Any) -> Any:
            if str(messages[0].text).startswith("You are c."):
                reached.set()
                await gate.wait()
            async for chunk in super()._astream(messages, *args, **kwargs):
                yield chunk

    asking = {"a": [call("ask_b", task="Go")], "b": [call("ask_c", task="Go")], "c": [call("list_memories")]}
    analyst = await open_analyst(Gated(played(asking)._script._replies[0]))
    await define(analyst, agent("a", "b"), agent("b", "c"), agent("c"))
    handle = await analyst.ask("Go", agent="a", user_id=USER)
    await reached.wait()
    draining = asyncio.ensure_future(analyst.drain(60, hurry))
    (hurry if hurried else gate).set()
    await draining
    [b] = await below(analyst, handle.thread_id)
    [c] = await below(analyst, b.id)
    threads = (handle.thread_id, b.id, c.id)
    assert [(await run_of(analyst, each)).status for each in threads] == ["running"] * 3
    other = await open_analyst(played({name: [finish(name)] for name in "abc"}))
    other.claims.start()
    async with asyncio.timeout(60):
        while (await run_of(other, handle.thread_id)).status == "running":  # noqa: ASYNC110 - a row rings no event
            await asyncio.sleep(0.02)
    ended = [await run_of(other, each) for each in threads]
    assert [(run.status, run.outcome["answer"]) for run in ended] == [("finished", name) for name in "abc"]
    assert [each.id for each in await below(other, handle.thread_id)] == [b.id], "none was asked twice"


class _Held(ScriptedChatModel):
    """`a` asks `b`, whose reply waits."""

    async def _astream(self, messages: list[BaseMessage], *args: Any, **kwargs: Any) -> Any:
        if str(messages[0].text).startswith("You are b."):
            (self.metadata or {})["reached"].set()
            await asyncio.Event().wait()
        async for chunk in super()._astream(messages, *args, **kwargs):
            yield chunk


async def _called_elsewhere(open_analyst: OpenAnalyst) -> tuple[Analyst, Analyst, RunHandle, Thread]:
    """A server that executes `a`, and waits for the agent `b`, which another one executes; the run of `a`; and `b`."""
    script, hurry = played({"a": [call("ask_b", task="Go")], "b": []})._script._replies[0], asyncio.Event()

    async def holding() -> tuple[Analyst, asyncio.Event]:
        model, reached = _Held(script), asyncio.Event()
        model.metadata = {"reached": reached}
        return await open_analyst(model), reached

    first, reached = await holding()
    await define(first, agent("a", "b"), agent("b"))
    asked = await first.ask("Go", agent="a", user_id=USER)
    await reached.wait()
    [b] = await below(first, asked.thread_id)
    hurry.set()
    await first.drain(60, hurry)
    elsewhere, reached = await holding()
    await elsewhere.runs.resume(b.id, user_id=USER)
    await reached.wait()
    server = await open_analyst(played({"a": [finish("a")], "b": [finish("b")]}))
    handle = await server.runs.resume(asked.thread_id, user_id=USER)
    async with asyncio.timeout(60):
        while not server.hub._feeds:  # noqa: ASYNC110 - it rings no event that it waits
            await asyncio.sleep(0.02)
    return server, elsewhere, handle, b


async def test_a_caller_goes_on_with_its_agent_that_another_process_left(open_analyst: OpenAnalyst) -> None:
    server, elsewhere, handle, b = await _called_elsewhere(open_analyst)
    server.claims.start()
    hurry = asyncio.Event()
    hurry.set()
    await elsewhere.drain(60, hurry)
    async with asyncio.timeout(60):
        assert (await handle.wait()).data["answer"] == "a"
    assert (await run_of(server, b.id)).outcome["answer"] == "b"


async def test_a_stop_reaches_an_agent_in_another_process(open_analyst: OpenAnalyst) -> None:
    server, elsewhere, handle, b = await _called_elsewhere(open_analyst)
    await server.runs.stop(handle.thread_id, user_id=USER)
    elsewhere.worker.wake()
    async with asyncio.timeout(60):
        while (await run_of(server, b.id)).status == "running":  # noqa: ASYNC110 - a row rings no event
            await asyncio.sleep(0.02)
    ended = [await run_of(server, each) for each in (handle.thread_id, b.id)]
    assert [(run.status, run.outcome["reason"]) for run in ended] == [("paused", "stopped")] * 2


async def test_sources_and_memories(open_analyst: OpenAnalyst, shop: str) -> None:
    boss = [call("ask_data", task="Count the customers"), finish("3")]
    remember = call("remember", content="Counts customers.")
    model = played({"boss": boss, "data": [COUNT, remember, finish("There are 3 [q1].")]})
    analyst = await open_analyst(model)
    catalog = await define(analyst, agent("boss", "data"), agent("data", skills=["data", "memory"]))
    handle = await analyst.ask("How many customers?", agent="boss", source=shop, user_id=analyst.settings.user)
    assert (await handle.wait()).type == "finished"
    [child] = await below(analyst, handle.thread_id)
    assert (await run_of(analyst, child.id)).source == shop
    said = next(e for e in await entries(analyst, handle.thread_id) if e.role == "tool")
    assert json.loads(said.text)["data"]["answer"] == "There are 3."
    data = await catalog.agent("data")
    assert [m.content for m in await analyst.memories.list_(Owner(USER, data.id))] == ["Counts customers."]
    assert await analyst.memories.list_(Owner(USER, (await catalog.agent("boss")).id)) == []
    # What the conversation asks is remembered, for the next question.
    async with analyst.store.reading() as tx:
        assert (await log.find_thread(tx, handle.thread_id, user_id=USER)).source == shop
    assert "dialect" not in str(model.calls[0].messages[0].text)


async def test_the_analyst_is_asked_by_its_name(open_analyst: OpenAnalyst, shop: str) -> None:
    def reply(messages: list[BaseMessage]) -> Any:
        results = sum(isinstance(each, ToolMessage) for each in messages)
        if str(messages[0].text).startswith("You are boss."):
            return [call("ask_analyst", task="Count"), finish("3")][results]
        return [COUNT, finish("3 [q1].")][results]

    analyst = await open_analyst(ScriptedChatModel(reply))
    await define(
        analyst,
        agent("boss", "analyst", config={"source": "shop"}),
        {"kind": "source", "name": "shop", "address": shop},
    )
    handle = await analyst.ask("Go", agent="boss", user_id=analyst.settings.user)
    assert (await handle.wait()).type == "finished"
    [child] = await below(analyst, handle.thread_id)
    run = await run_of(analyst, child.id)
    assert (run.source, run.agent and run.agent.id) == (shop, ANALYST)


def test_names_of_tools() -> None:
    def names(*agents: str, taken: Sequence[str] = ()) -> list[str]:
        return tool_names([Agent(f"id-{n}", name, "") for n, name in enumerate(agents)], taken)

    assert names("researcher", "data analyst", "r-2_d2") == ["ask_researcher", "ask_data_analyst", "ask_r-2_d2"]
    assert names("研究员", "SQL 专家", "财务bot", "女巫") == [
        "ask_yan_jiu_yuan",
        "ask_SQL_zhuan_jia",
        "ask_cai_wu_bot",
        "ask_nv_wu",
    ]
    [alike, chinese] = names("研究员", "研究圆")  # the same syllables
    assert alike == "ask_yan_jiu_yuan" and chinese.startswith("ask_yan_jiu_yuan_")
    [mixed, greek] = names("かな 研究", "Ωmega")
    assert mixed.startswith("ask_yan_jiu_") and greek.startswith("ask_mega_")
    one, other = names("a b", "a-b", taken=["ask_a-b"])
    assert one == "ask_a_b" and other.startswith("ask_a-b_")
    [long] = names("x" * 100)
    same = names("a b", "a.b")
    for name in (chinese, mixed, greek, other, long, *names("研究员" * 33), *same):
        assert len(name) <= 64 and name.isascii() and name.replace("_", "").replace("-", "").isalnum()
    assert len(set(same)) == 2


async def test_an_agent_that_has_nobody_to_hand_a_source_to_takes_none(open_analyst: OpenAnalyst, shop: str) -> None:
    analyst = await open_analyst([])
    await define(analyst, agent("lone"))
    with pytest.raises(InvalidInput, match="asks no source of its own"):
        await analyst.ask("?", agent="lone", source=shop, user_id=analyst.settings.user)
