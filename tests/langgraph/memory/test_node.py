"""`memory_node`: memory for a plain graph."""

from __future__ import annotations

from typing import Any

import pytest
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, SystemMessage
from langchain_core.runnables import RunnableLambda
from langchain_core.tools import tool
from langgraph.graph import START, StateGraph

from longthread.errors import InvalidInput
from longthread.langgraph import LongthreadSaver, MemoryMessagesState, memory_node, recall_tool
from longthread.store import log, summaries
from longthread.testing import ScriptedChatModel

pytestmark = pytest.mark.one_backend

AT: Any = {"configurable": {"thread_id": "t"}}
TURNS = 40


class State(MemoryMessagesState):
    todos: list[dict[str, str]]


class Seen:
    """What a model saw, call by call."""

    def __init__(self) -> None:
        self.calls: list[list[AnyMessage]] = []

    def model(self) -> ScriptedChatModel:
        return ScriptedChatModel(self._reply)

    def _reply(self, messages: list[AnyMessage]) -> str:
        self.calls.append(messages)
        return f"I see {len(messages)} messages."


def _builder(memory: Any, model: Any) -> Any:
    def answer(state: State) -> Any:
        return {"messages": [model.invoke(memory.messages(state))]}

    async def aanswer(state: State) -> Any:
        return {"messages": [await model.ainvoke(memory.messages(state))]}

    builder = StateGraph(State)
    builder.add_node("memory", memory)
    builder.add_node("model", RunnableLambda(answer, aanswer))
    builder.add_edge(START, "memory")
    builder.add_edge("memory", "model")
    return builder


OPTIONS: Any = {"context_window": 2_000, "max_messages_per_thread": 20}


FULL: Any = OPTIONS | {"max_messages_per_thread": 200}
"""The state keeps all, and the view does not."""


def _said(n: int) -> Any:
    return {"messages": [HumanMessage(f"Note {n}: {'a long story ' * 12} 第{n}条")]}


def test_views_fit_and_the_state_stays_short(store_address: str) -> None:
    seen = Seen()
    model, summarizer = seen.model(), ScriptedChatModel(lambda _: "A summary of notes.")
    with LongthreadSaver.from_conn_string(store_address) as saver:
        memory = memory_node(saver, model=model, summarizer=summarizer, system_prompt="Be kind.", **OPTIONS)
        graph = _builder(memory, model).compile(checkpointer=saver)
        for n in range(TURNS):
            state = graph.invoke(_said(n), AT)
            memory.settle()
        assert len(state["messages"]) <= 2 * 20 + 1
        assert max(map(len, seen.calls)) < 2 * TURNS
        last = seen.calls[-1]
        assert isinstance(last[0], SystemMessage) and last[0].text == "Be kind."
        assert any("A summary of notes." in each.text for each in last)
        assert last[-1].text == _said(TURNS - 1)["messages"][0].text
        # Nothing of a view is written: the log has what was said, and no more.
        found = saver.threads.get("t")
        assert found is not None and found.entry_count == 2 * TURNS


async def test_it_is_awaited_as_well(store_address: str) -> None:
    seen = Seen()
    model, summarizer = seen.model(), ScriptedChatModel(lambda _: "Eine Zusammenfassung.")
    async with LongthreadSaver.from_conn_string(store_address) as saver:
        memory = memory_node(model=model, summarizer=summarizer, **OPTIONS)
        graph = _builder(memory, model).compile(checkpointer=saver)
        for n in range(TURNS):
            state = await graph.ainvoke(_said(n), AT)
            await saver.backing.home.settle()
        assert len(state["messages"]) <= 2 * 20 + 1
        async with saver.backing.store.reading() as tx:
            assert await log.count_entries(tx, "t") == 2 * TURNS
            kept = await summaries.find(tx, "t")
        assert kept is not None and kept.summary.startswith("Eine Zusammenfassung.")
        assert any("Eine Zusammenfassung." in each.text for each in seen.calls[-1])


def test_a_resumed_run_sees_the_same_view(store_address: str) -> None:
    """The model fails once: the run goes on behind the node, in another process's graph."""
    seen = Seen()
    model = seen.model()
    with LongthreadSaver.from_conn_string(store_address) as saver:
        memory = memory_node(saver, model=model, **FULL)
        graph = _builder(memory, model).compile(checkpointer=saver)
        for n in range(20):
            graph.invoke(_said(n), AT)

        def fail(messages: Any) -> str:
            seen.calls.append(messages)
            raise RuntimeError("the provider is down")

        failing = ScriptedChatModel(fail)
        with pytest.raises(RuntimeError):
            _builder(memory, failing).compile(checkpointer=saver).invoke(_said(20), AT)
        before = seen.calls[-1]
        again = memory_node(model=model, **FULL)
        state = _builder(again, model).compile(checkpointer=saver).invoke(None, AT)
        assert [each.model_dump() for each in seen.calls[-1]] == [each.model_dump() for each in before]
        assert len(state["messages"]) == 42


def test_a_list_of_tasks_stays_in_view_and_tools_are_counted(store_address: str) -> None:
    @tool
    def lookup(word: str) -> str:
        """Look a word up."""
        return word

    seen = Seen()
    model = seen.model()
    with LongthreadSaver.from_conn_string(store_address) as saver:
        bound = model.bind_tools([lookup, recall_tool(saver)])
        memory = memory_node(saver, model=bound, enable_summary=False, **OPTIONS)
        graph = _builder(memory, bound).compile(checkpointer=saver)
        todos = [{"content": "买牛奶", "status": "pending"}]
        graph.invoke(_said(0) | {"todos": todos}, AT)
        for n in range(1, 20):
            graph.invoke(_said(n), AT)
        assert any("买牛奶" in each.text for each in seen.calls[-1])
        alone = memory_node(saver, model=model, enable_summary=False, **OPTIONS)
        values = graph.get_state(AT).values
        assert alone.invoke(values)["memory_room"] > values["memory_room"]


def test_another_node_may_add_messages_before_the_model(store_address: str) -> None:
    seen = Seen()
    model = seen.model()
    with LongthreadSaver.from_conn_string(store_address) as saver:
        memory = memory_node(saver, model=model, **OPTIONS)
        state: Any = {"messages": [HumanMessage("One", id="1"), AIMessage("Two", id="2")]}
        state |= memory.invoke(state)
        state["messages"] = [*state["messages"], HumanMessage("Three", id="3")]
        assert [each.text for each in memory.messages(state)] == ["One", "Two", "Three"]


@pytest.mark.one_backend
def test_what_is_no_model_is_refused(store_address: str) -> None:
    with LongthreadSaver.from_conn_string(store_address) as saver:
        for given in (None, "gpt", object()):
            with pytest.raises(InvalidInput, match="chat model"):
                memory_node(saver, model=given)
        with pytest.raises(TypeError, match="no argument"):
            memory_node(saver, model=ScriptedChatModel(["x"]), context_windw=1)  # type: ignore[call-arg]
