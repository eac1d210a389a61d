"""Memory and recall that were built before any saver was open find the agent's, whatever wraps it."""

from __future__ import annotations

import json
from collections.abc import Callable
from types import MethodType
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain_core.messages import HumanMessage
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.checkpoint.memory import InMemorySaver

from longthread.langgraph import LongthreadSaver, LongthreadStore, MemoryMiddleware, recall_tool
from longthread.store.driver import Driver
from longthread.testing import ScriptedChatModel

pytestmark = pytest.mark.one_backend

METHODS = ("aget_tuple", "aput", "aput_writes", "alist", "get_next_version", "aget_delta_channel_history")
AT: Any = {"configurable": {"thread_id": "t"}}


class Holding(BaseCheckpointSaver[Any]):
    """Holds it in an attribute, and passes nothing on but calls."""

    def __init__(self, inner: Any) -> None:
        super().__init__(serde=inner.serde)
        self.parts = {"inner": [inner]}
        for name in METHODS:
            setattr(self, name, self._through(name))

    def _through(self, name: str) -> Callable[..., Any]:
        return getattr(self.parts["inner"][0], name)  # type: ignore[no-any-return]


class Closed(BaseCheckpointSaver[Any]):
    """Holds nothing: each method is a function over it."""

    def __init__(self, inner: Any) -> None:
        super().__init__(serde=inner.serde)
        for name in METHODS:
            method: Any = getattr(inner, name)
            setattr(self, name, MethodType(lambda _, *a, _inner=None, _call=method, **k: _call(*a, **k), self))
        self.list = MethodType(lambda _, *a, **k: inner.list(*a, **k), self)  # type: ignore[method-assign]


class Adapter(Holding):
    """Passes on what it does not have, as the adapter of `langgraph-api` does."""

    def __getattr__(self, name: str) -> Any:
        return getattr(self.__dict__["parts"]["inner"][0], name)


WRAPPERS: dict[str, Callable[[Any], Any]] = {
    "an adapter": Adapter,
    "an attribute": Holding,
    "a closure": Closed,
    "twice": lambda inner: Holding(Adapter(Closed(inner))),
}


def _answer(messages: list[Any]) -> Any:
    if messages[-1].type == "human" and messages[-1].text.startswith("recall"):
        return {"action": "recall_memory", "args": {"query": "飞机 plane"}}
    return "fine"


def _agent(checkpointer: Any, store: Any = None) -> Any:
    memory = MemoryMiddleware(context_window=2_000, max_messages_per_thread=4)
    tools = [recall_tool()]
    return create_agent(ScriptedChatModel(_answer), tools, checkpointer=checkpointer, store=store, middleware=[memory])


async def _found(agent: Any) -> Any:
    state = await agent.ainvoke({"messages": [HumanMessage("recall it")]}, AT)
    return json.loads(next(each.text for each in state["messages"] if each.type == "tool"))


@pytest.mark.parametrize("wrapper", WRAPPERS)
async def test_the_saver_is_found_behind_a_wrapper(wrapper: str, store: Driver) -> None:
    agent = _agent(WRAPPERS[wrapper](LongthreadSaver(store)))
    await agent.ainvoke({"messages": [HumanMessage("the plane is late, 飞机")]}, AT)
    for number in range(8):
        state = await agent.ainvoke({"messages": [HumanMessage(f"question {number}")]}, AT)
    assert len(state["messages"]) < 14
    assert (await _found(agent))["data"]["found"][0]["text"] == "the plane is late, 飞机"


@pytest.mark.one_backend
async def test_without_a_log_recall_says_so_and_the_agent_answers(store: Driver) -> None:
    agent = _agent(InMemorySaver())
    found = await _found(agent)
    assert not found["ok"]
    assert "LongthreadSaver" in found["error"]["message"]
    behind_a_store = await _found(_agent(InMemorySaver(), LongthreadStore(store)))
    assert behind_a_store["ok"]
