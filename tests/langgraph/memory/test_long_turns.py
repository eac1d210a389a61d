"""A turn with very many steps keeps the state short, and its question and its to-do list in view."""

from __future__ import annotations

from typing import Any

import pytest
from deepagents import create_deep_agent
from langchain.agents import create_agent
from langchain.agents.middleware import AgentMiddleware, TodoListMiddleware
from langchain_core.messages import AIMessage, BaseMessage
from tests.langgraph.test_middleware import SUMMARIES, on
from tests.script import call

from longthread.langgraph import LongthreadSaver, MemoryMiddleware
from longthread.langgraph.memory.long_term import LongTermMemory
from longthread.store import log
from longthread.testing import ScriptedChatModel
from longthread_evals.view_watch import orphans

pytestmark = pytest.mark.one_backend

MOST = 20
"""Messages that the state may have."""
STEPS = 30


class States(AgentMiddleware[Any, Any, Any]):
    """Notes how many messages the state has before each call of the model."""

    def __init__(self) -> None:
        super().__init__()
        self.sizes: list[int] = []

    def before_model(self, state: Any, runtime: Any) -> None:
        self.sizes.append(len(state["messages"]))


class Worker:
    """The model's side: looks `STEPS` times, then answers. `views` are what it was shown."""

    def __init__(self, *first: Any) -> None:
        self.first = list(first)
        self.views: list[list[BaseMessage]] = []
        self.left = STEPS

    def __call__(self, messages: list[BaseMessage]) -> Any:
        if str(messages[0].text).startswith((*SUMMARIES, "You keep the index")):
            return "It looked at many things."
        self.views.append(messages)
        if self.first:
            return self.first.pop(0)
        self.left -= 1
        return call("look", n=self.left) if self.left >= 0 else "done"


def look(n: int) -> str:
    """Look."""
    return f"found {n} " + "data " * 30


def memory_of(saver: LongthreadSaver, *, window: int = 8_000) -> MemoryMiddleware:
    return MemoryMiddleware(saver, patience=3600, context_window=window, max_messages_per_thread=MOST)


async def looked(saver: LongthreadSaver) -> int:
    async with saver.backing.store.reading() as tx:
        thread = await log.find_thread(tx, "t", user_id="default")
        entries = await log.branch(tx, "t", thread.tip, limit=10_000)
    return sum(entry.text.startswith("found") for entry in entries)


def check(worker: Worker, states: States, asked: str) -> None:
    assert len(worker.views) >= STEPS
    assert max(states.sizes) <= 2 * MOST + 4
    for view in worker.views:
        assert asked in [message.text for message in view]
        assert orphans(view) == 0


@pytest.mark.parametrize("awaits", [True, False])
def test_the_state_stays_short_within_a_turn(store_address: str, awaits: bool) -> None:
    with LongthreadSaver.from_conn_string(store_address) as saver:
        worker, states = Worker(), States()
        agent: Any = create_agent(
            ScriptedChatModel(worker), [look], checkpointer=saver, middleware=[memory_of(saver), states]
        )
        at: Any = {**on(), "recursion_limit": 1000}
        for number in range(2):
            worker.left, worker.views, states.sizes = STEPS, [], []
            asked = {"messages": [("user", f"look at everything, time {number}")]}
            if awaits:
                saver.backing.home.call("turn", agent.ainvoke, asked, at)
            else:
                agent.invoke(asked, at)
            check(worker, states, f"look at everything, time {number}")
        assert saver.backing.home.call("looked", looked, saver) == 2 * STEPS
        state = agent.invoke({"messages": [("user", "and now?")]}, at)
        assert "look at everything, time 0" not in [message.text for message in state["messages"]]
        assert [message.text for message in state["messages"]][-2:] == ["and now?", "done"]


async def test_a_turn_that_is_stored_at_its_end_waits_for_no_summary_of_itself(
    store_address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """LangGraph hands in its messages when it is over: before, they would be lost if they left the state."""
    asked_at: list[int] = []
    catch_up = LongTermMemory.catch_up

    async def noted(memory: LongTermMemory, thread_id: str, **asked: Any) -> Any:
        asked_at.append(len(worker.views))
        return await catch_up(memory, thread_id, **asked)

    monkeypatch.setattr(LongTermMemory, "catch_up", noted)
    async with LongthreadSaver.from_conn_string(store_address) as saver:
        worker, states = Worker(), States()
        agent: Any = create_agent(
            ScriptedChatModel(worker), [look], checkpointer=saver, middleware=[memory_of(saver), states]
        )
        at: Any = {**on(), "recursion_limit": 1000}
        await agent.ainvoke({"messages": [("user", "look at everything")]}, at, durability="exit")
        assert asked_at == []
        assert max(states.sizes) == 2 * STEPS + 1
        for view in worker.views:
            assert "look at everything" in [message.text for message in view]
            assert orphans(view) == 0
        assert await looked(saver) == STEPS
        worker.views.clear()
        await agent.ainvoke({"messages": [("user", "and now?")]}, at, durability="exit")
        assert set(asked_at) <= {0}  # its question waits at most for what was before it
        state = await agent.ainvoke({"messages": [("user", "and then?")]}, at, durability="exit")
        assert len(state["messages"]) <= 2 * MOST + 4


async def test_the_state_of_a_deep_agent_stays_short_within_a_turn(store_address: str) -> None:
    async with LongthreadSaver.from_conn_string(store_address) as saver:
        worker, states = Worker(), States()
        memory = MemoryMiddleware(saver, patience=3600, context_window=24_000, max_messages_per_thread=MOST)
        agent: Any = create_deep_agent(
            model=ScriptedChatModel(worker), tools=[look], checkpointer=saver, middleware=[memory, states]
        )
        at: Any = {**on(), "recursion_limit": 1000}
        await agent.ainvoke({"messages": [("user", "look at everything")]}, at)
        check(worker, states, "look at everything")
        assert await looked(saver) == STEPS


@pytest.mark.parametrize("kind", ["agent", "deep agent"])
async def test_the_to_do_list_stays_in_view(store_address: str, kind: str) -> None:
    todos = [{"content": "read the 报告", "status": "in_progress"}, {"content": "answer", "status": "pending"}]
    written = call("write_todos", todos=todos)
    async with LongthreadSaver.from_conn_string(store_address) as saver:
        worker = Worker(written)
        if kind == "agent":
            middleware: Any = [TodoListMiddleware(), memory_of(saver)]
            agent: Any = create_agent(ScriptedChatModel(worker), [look], checkpointer=saver, middleware=middleware)
        else:
            memory = memory_of(saver, window=24_000)
            agent = create_deep_agent(
                model=ScriptedChatModel(worker),
                tools=[look],
                checkpointer=saver,
                middleware=[TodoListMiddleware(), memory],
            )
        await agent.ainvoke({"messages": [("user", "look at everything")]}, {**on(), "recursion_limit": 1000})
        noted = 0
        for view in worker.views[1:]:
            calls = [each for message in view if isinstance(message, AIMessage) for each in message.tool_calls]
            notes = [message.text for message in view if message.text.startswith("The to-do list")]
            assert bool(notes) != any(each["name"] == "write_todos" for each in calls)
            noted += len(notes)
            assert all("[in_progress] read the 报告\n- [pending] answer" in note for note in notes)
        assert noted > 0
