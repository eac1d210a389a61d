"""What a saver remembers of threads is counted as long as it is remembered."""

from __future__ import annotations

from langchain_core.messages import HumanMessage

from longthread.agent.kept import Kept, private
from longthread.agent.remembered import CONVERSATION, Memory, Remembered


def grow(memory: Memory, count: int) -> None:
    memory.keep(CONVERSATION, Kept(private(HumanMessage("m", id=f"i{n}"), n, n - 1) for n in range(1, count + 1)))


def test_a_thread_that_is_forgotten_while_something_is_stored_there_counts_no_more() -> None:
    remembered = Remembered()
    memory, other = remembered.of("t"), remembered.of("other")
    for each, count in ((memory, 5), (other, 3)):
        grow(each, count)
        remembered.trim(each)
    assert remembered._size == 8
    remembered.forget("t")
    grow(memory, 6)
    remembered.trim(memory)
    assert remembered._size == 3
    again = remembered.of("t")
    grow(again, 2)
    remembered.trim(again)
    assert remembered._size == 5
