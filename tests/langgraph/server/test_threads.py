"""The threads of a saver's user, by `saver.threads`."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from langchain_core.messages import HumanMessage
from langgraph.graph import START, MessagesState, StateGraph

from longthread.errors import CalledOnItsLoop, InvalidInput, ThreadNotFound
from longthread.langgraph import LongthreadSaver
from longthread.langgraph.backend import Backend
from longthread.langgraph.user_threads import SharedRecaller
from longthread.memory.forget import delete_thread
from longthread.store import log
from longthread.store.open import open_store

pytestmark = pytest.mark.one_backend

SAID = {"one": "The rocket starts on Monday", "two": "火箭星期一发射", "three": "Nothing of the kind"}


def _say(saver: LongthreadSaver, thread_id: str, text: str) -> None:
    builder = StateGraph(MessagesState)
    builder.add_node("answer", lambda state: {"messages": [("ai", "Yes.")]})
    builder.add_edge(START, "answer")
    graph: Any = builder.compile(checkpointer=saver)
    graph.invoke({"messages": [HumanMessage(text)]}, {"configurable": {"thread_id": thread_id}})


def _ids(found: Any) -> list[str]:
    return [getattr(each, "thread", each).id for each in found]


def test_they_are_listed_found_and_deleted_for_one_user(store_address: str) -> None:
    with LongthreadSaver.from_conn_string(store_address) as opened:
        saver, other = opened.for_user("ada"), opened.for_user("bob")
        for thread_id, text in SAID.items():
            _say(saver, thread_id, text)
        _say(other, "his", "A rocket of his own")
        assert _ids(saver.threads.list()) == ["three", "two", "one"]
        first = saver.threads.list(limit=2)
        assert _ids(saver.threads.list(before=first[-1])) == ["one"]
        assert _ids(saver.threads.search("rockets Monday")) == ["one"]
        assert _ids(saver.threads.search("火箭")) == _ids(saver.threads.search("火箭\0\ud800")) == ["two"]
        assert "星期一" in saver.threads.search("火箭")[0].text
        assert _ids(other.threads.search("rocket")) == ["his"]
        assert saver.threads.search("") == saver.threads.search("a word that nobody said") == []
        found = saver.threads.get("one")
        assert found is not None and (found.title, found.entry_count) == (SAID["one"], 2)
        assert saver.threads.get("his") is None
        saver.threads.delete("his")
        assert _ids(other.threads.list()) == ["his"]
        saver.threads.delete("one")
        saver.threads.delete("one")
        assert saver.threads.get("one") is None
        assert saver.get_tuple({"configurable": {"thread_id": "one"}}) is None
        assert saver.threads.search("Monday") == []


def test_a_long_thread_hides_no_other(store_address: str) -> None:
    with LongthreadSaver.from_conn_string(store_address) as saver:
        for number in range(4):
            _say(saver, f"short {number}", "A rocket, among other things that were said")
        for _ in range(30):
            _say(saver, "long", "rocket")
        found = saver.threads.search("rocket", limit=5)
        assert _ids(found)[0] == "long"
        assert sorted(_ids(found)) == ["long", *(f"short {number}" for number in range(4))]


def test_a_thread_that_is_deleted_while_it_is_found_is_left_out(
    store_address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    entries = SharedRecaller.entries

    async def delete_then(self: SharedRecaller, backing: Backend, text: str, count: int) -> Any:
        found = await entries(self, backing, text, count)
        await delete_thread(backing.store, "two", user_id=backing.user_id)
        return found

    with LongthreadSaver.from_conn_string(store_address) as saver:
        for thread_id in ("one", "two"):
            _say(saver, thread_id, "A rocket")
        monkeypatch.setattr(SharedRecaller, "entries", delete_then)
        assert _ids(saver.threads.search("rocket")) == ["one"]


async def test_a_title_that_was_given_is_found(store_address: str) -> None:
    async with open_store(store_address) as store:
        async with store.writing() as tx:
            await log.create_thread(tx, "t", user_id="ada", title="Holidays in Xi'an")
        saver = LongthreadSaver(store, user_id="ada")
        assert [each.text for each in await saver.threads.asearch("HOLIDAYS")] == ["Holidays in Xi'an"]
        assert _ids(await saver.threads.alist()) == ["t"]
        with pytest.raises(CalledOnItsLoop):
            saver.threads.list()


def test_a_thread_expires_and_no_other(store_address: str) -> None:
    with LongthreadSaver.from_conn_string(store_address) as opened:
        saver, other = opened.for_user("ada"), opened.for_user("bob")
        for thread_id, text in SAID.items():
            _say(saver, thread_id, text)
        _say(other, "his", "A rocket of his own")
        assert saver.threads.set_ttl("one", 60).expires_at is not None
        saver.threads.set_ttl("two", 0)
        other.threads.set_ttl("his", 0)
        saver.threads.set_ttl("three", 0)
        assert saver.threads.set_ttl("three", None).expires_at is None
        assert saver.threads.sweep_ttl() == 1
        assert _ids(saver.threads.list()) == ["three", "one"]
        assert saver.threads.search("火箭") == []
        assert _ids(other.threads.list()) == ["his"]
        with pytest.raises(ThreadNotFound):
            saver.threads.set_ttl("his", 5)
        with pytest.raises(InvalidInput, match="minutes"):
            saver.threads.set_ttl("one", -1)


async def test_retention_is_of_one_user_s_threads(store_address: str) -> None:
    at: Any = {"configurable": {"thread_id": "one"}}
    async with LongthreadSaver.from_conn_string(store_address) as opened:
        saver, other = opened.for_user("ada"), opened.for_user("bob")
        builder = StateGraph(MessagesState)
        builder.add_node("answer", lambda state: {"messages": [("ai", "Yes.")]})
        builder.add_edge(START, "answer")
        for owner, thread_id in ((saver, "one"), (saver, "two"), (other, "his")):
            config: Any = {"configurable": {"thread_id": thread_id}}
            await builder.compile(checkpointer=owner).ainvoke({"messages": [HumanMessage("Hello")]}, config)
        count = len([each async for each in saver.alist(at)])
        assert (await saver.threads.aprune()).rows.get("checkpoints") is None
        assert len([each async for each in saver.alist(at)]) == count > 1
        await saver.threads.aprune(checkpoints=1)
        assert len([each async for each in saver.alist(at)]) == 1
        assert len([each async for each in other.alist({"configurable": {"thread_id": "his"}})]) == count
        assert (await saver.threads.aprune(idle=timedelta())).threads == 2
        assert await saver.threads.alist() == []
        assert _ids(await other.threads.alist()) == ["his"]


@pytest.mark.parametrize(
    "asked",
    [{"idle": timedelta(-1)}, {"idle": 30}, {"checkpoints": 0}, {"window": -1}, {"messages_older_than": "90d"}],
)
@pytest.mark.one_backend
def test_a_bad_age_is_refused(store_address: str, asked: Any) -> None:
    with LongthreadSaver.from_conn_string(store_address) as saver:
        with pytest.raises(InvalidInput):
            saver.threads.prune(**asked)
        with pytest.raises(InvalidInput):
            saver.threads.list(limit=0)
