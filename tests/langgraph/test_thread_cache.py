"""What a saver remembers of threads is counted as long as it is remembered."""

from __future__ import annotations

import pytest
from langchain_core.messages import HumanMessage

from longthread.langgraph.saver import thread_cache as module
from longthread.langgraph.saver.message_list import MessageList, private
from longthread.langgraph.saver.thread_cache import CONVERSATION, CachedThread, ThreadCache
from longthread.store.checkpoints import Locked


def locked(thread_id: str, incarnation: str = "a") -> Locked:
    return Locked(thread_id, tip=0, size=0, first_seq=1, incarnation=incarnation)


def grow(memory: CachedThread, count: int) -> None:
    kept = MessageList(private(HumanMessage("m", id=f"i{n}"), n, n - 1) for n in range(1, count + 1))
    memory.lists.put(CONVERSATION, kept)


def test_a_thread_that_is_forgotten_while_something_is_stored_there_counts_no_more() -> None:
    remembered = ThreadCache()
    memory, other = remembered.of_locked(locked("t")), remembered.of_locked(locked("other"))
    for name, each, count in (("t", memory, 5), ("other", other, 3)):
        grow(each, count)
        remembered.see(name, each)
    assert remembered._threads.size == 8
    remembered.forget("t")
    grow(memory, 6)
    remembered.see("t", memory)
    assert remembered._threads.size == 3
    again = remembered.of_locked(locked("t"))
    grow(again, 2)
    remembered.see("t", again)
    assert remembered._threads.size == 5


def test_threads_that_were_used_least_recently_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MESSAGES", 10)
    remembered = ThreadCache()
    for name in ("first", "second", "first", "third"):
        memory = remembered.of_locked(locked(name))
        grow(memory, 4)
        remembered.see(name, memory)
    assert [bool(remembered.peek(name).lists) for name in ("first", "second", "third")] == [True, False, True]
    assert all(remembered.has_seen(name) for name in ("first", "second", "third"))
