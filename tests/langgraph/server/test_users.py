"""Users over one open store, in synchronous and asynchronous programs."""

from __future__ import annotations

from typing import Any

import pytest
from langchain.agents import create_agent
from langchain_core.messages import HumanMessage
from langgraph.graph import START, MessagesState, StateGraph

from longthread.errors import InvalidInput, SaverClosed, ThreadTaken
from longthread.langgraph import LongthreadSaver, LongthreadStore, MemoryMiddleware, recall_tool
from longthread.testing import ScriptedChatModel

pytestmark = pytest.mark.one_backend


def _graph(saver: LongthreadSaver) -> Any:
    builder = StateGraph(MessagesState)
    builder.add_node("answer", lambda state: {"messages": [("ai", f"re: {state['messages'][-1].text}")]})
    builder.add_edge(START, "answer")
    return builder.compile(checkpointer=saver)


def _said(text: str) -> Any:
    return {"messages": [HumanMessage(text)]}


def test_each_user_has_threads_and_items_of_their_own(store_address: str) -> None:
    mine: Any = {"configurable": {"thread_id": "ada/1"}}
    with LongthreadSaver.from_conn_string(store_address) as saver:
        ada, bob = saver.for_user("ada"), saver.for_user("鲍勃")
        _graph(ada).invoke(_said("hers"), mine)
        assert [each.text for each in _graph(saver.for_user("ada")).get_state(mine).values["messages"]] == [
            "hers",
            "re: hers",
        ]
        assert bob.get_tuple(mine) is None
        assert list(bob.list(None)) == []
        assert len(list(ada.list(None))) == 3
        assert list(saver.list(None)) == []
        with pytest.raises(ThreadTaken):
            _graph(bob).invoke(_said("his"), mine)
        bob.delete_thread("ada/1")
        assert ada.get_tuple(mine) is not None
        LongthreadStore.of(ada).put(("n",), "k", {"v": 1})
        assert LongthreadStore.of(bob).get(("n",), "k") is None
        for none in ("", None):
            with pytest.raises(InvalidInput, match="name of a user"):
                saver.for_user(none)  # type: ignore[arg-type]
    with pytest.raises(SaverClosed):
        ada.get_tuple(mine)


async def test_a_user_on_the_event_loop(store_address: str) -> None:
    at: Any = {"configurable": {"thread_id": "ada/1"}}
    async with LongthreadSaver.from_conn_string(store_address) as saver:
        await _graph(saver.for_user("ada")).ainvoke(_said("hers"), at)
        assert (await _graph(saver.for_user("ada")).aget_state(at)).values["messages"]
        assert (await _graph(saver.for_user("bob")).aget_state(at)).values == {}


async def test_the_deletion_of_expired_items_may_be_awaited(store_address: str) -> None:
    async with LongthreadStore.from_conn_string(store_address) as store:
        await store.aput(("n",), "k", {"v": 1}, ttl=1e-8)
        await store.aput(("n",), "stays", {"v": 1})
        assert await store.sweep_ttl() == 1
        assert await store.sweep_ttl() == 0
    with LongthreadStore.from_conn_string(store_address) as store:
        store.put(("n",), "k", {"v": 1}, ttl=1e-8)
        assert store.sweep_ttl() == 1
        assert await store.sweep_ttl() == 0
        assert store.get(("n",), "stays") is not None


def test_the_saver_of_a_run_says_whose_memory_is_asked(store_address: str) -> None:
    with LongthreadSaver.from_conn_string(store_address) as saver:
        for name in ("ada", "bob"):
            _graph(saver.for_user(name)).invoke(
                _said(f"The PIN of {name}"), {"configurable": {"thread_id": f"{name}/1"}}
            )
        asked = {"action": "recall_memory", "args": {"query": "PIN", "scope": "user"}}
        for given in (saver, saver.for_user("ada"), None):
            model = ScriptedChatModel([asked, "done"])
            tool = recall_tool(given, scopes=("thread", "user"))
            agent = create_agent(model, [tool], checkpointer=saver.for_user("bob"))
            at: Any = {"configurable": {"thread_id": f"bob/{given!r}"}}
            [result] = [each.text for each in agent.invoke(_said("?"), at)["messages"] if each.type == "tool"]
            assert "PIN of bob" in result and "PIN of ada" not in result


def test_memory_with_the_base_saver_shortens_a_user_s_state(store_address: str) -> None:
    with LongthreadSaver.from_conn_string(store_address) as saver:
        memory = MemoryMiddleware(saver, max_messages_per_thread=6, summary_threshold=2)
        agent = create_agent(
            ScriptedChatModel(lambda messages: "Yes."), middleware=[memory], checkpointer=saver.for_user("ada")
        )
        for number in range(20):
            state = agent.invoke(_said(f"Note {number}"), {"configurable": {"thread_id": "ada/1"}})
        assert len(state["messages"]) <= 14
