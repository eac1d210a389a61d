"""Lists of messages as they were given: what of them is the same as before, and that they are stored as they were."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.messages import BaseMessage, HumanMessage
from langgraph.checkpoint.base import empty_checkpoint

from longthread.langgraph.saver.async_saver import AsyncLongthreadSaver
from longthread.langgraph.saver.message_list import RECENT, MessageList, private
from longthread.store.driver import Driver

pytestmark = pytest.mark.one_backend


def messages(count: int, first: int = 0) -> list[BaseMessage]:
    return [HumanMessage(f"m{n}", id=f"i{n}") for n in range(first, first + count)]


def kept_of(found: list[BaseMessage]) -> MessageList:
    """A list that holds the very objects, and says what they say."""
    kept = MessageList(private(message, seq, seq - 1) for seq, message in enumerate(found, 1))
    kept.hold(found)
    return kept


def grown(kept: MessageList, given: list[BaseMessage]) -> None:
    """What a put does when it has been committed."""
    known = len(kept)
    kept.extend(private(message, seq, seq - 1) for seq, message in enumerate(given[known:], known + 1))
    kept.hold(given)


def test_two_lists_that_go_on_from_one_do_not_mix() -> None:
    shared, here, there = messages(RECENT + 50), messages(80, 1000), messages(80, 2000)
    kept = kept_of(shared)
    one, other = shared + here, shared + there
    assert kept.equal(one) == kept.equal(other) == len(shared)
    grown(kept, one)
    assert kept.equal(one) == len(one)
    assert kept.equal(other) == len(shared)
    kept.hold(other)
    assert kept.equal(one) == len(one)


def test_a_changed_message_is_noticed_when_a_copy_of_it_is_given() -> None:
    found = messages(RECENT + 20)
    kept = kept_of(found)
    found[3].content = "changed"
    assert kept.equal(found) == len(found)  # as docs/langgraph.md says
    found[3] = found[3].model_copy()
    assert kept.equal(found) == 3


def test_one_of_the_last_messages_is_looked_at_even_where_it_stands() -> None:
    found = messages(RECENT + 20)
    kept = kept_of(found)
    found[20].content = "changed"
    assert kept.equal(found) == 20


def test_what_is_no_longer_held_is_looked_at_whole() -> None:
    found = messages(RECENT + 20)
    kept = kept_of(found)
    found[3].content = "changed"
    kept.hold([])
    assert kept.equal(found) == 3


@given(st.data())
def test_as_many_are_equal_as_say_the_same_whatever_is_held(data: st.DataObject) -> None:
    pool = messages(3 * RECENT)
    given_ = pool[: data.draw(st.integers(0, 2 * RECENT))]
    kept = kept_of(given_)
    for number in range(data.draw(st.integers(1, 6))):
        if data.draw(st.booleans()) and given_:
            given_ = given_[: data.draw(st.integers(0, len(given_)))]
        if data.draw(st.booleans()) and given_:
            place = data.draw(st.integers(0, len(given_) - 1))
            given_ = [*given_[:place], given_[place].model_copy(update={"content": f"e{number}"}), *given_[place + 1 :]]
        given_ = given_ + messages(data.draw(st.integers(0, RECENT + 5)), 1000 * (number + 1))
        says = [(message.id, message.content) for message in given_]
        same = [(kept.at(n).fields["id"], kept.at(n).fields["content"]) for n in range(len(kept))]
        differ = (n for n, (one, other) in enumerate(zip(says, same, strict=False)) if one != other)
        count = kept.equal(given_)
        assert count == next(differ, min(len(says), len(same)))
        kept = kept if count == len(kept) else kept.first(count)
        grown(kept, given_)
        given_ = given_.copy()


@pytest.mark.parametrize("named", [True, False])
@pytest.mark.parametrize("before", [0, 5, RECENT + 10])
async def test_a_list_that_is_changed_while_a_put_waits_is_stored_as_it_was_given(
    store: Driver, named: bool, before: int
) -> None:
    saver = AsyncLongthreadSaver(store)
    config: Any = {"configurable": {"thread_id": "t1", "checkpoint_ns": ""}}
    found = messages(before)
    version = None
    if before:
        version = saver.get_next_version(None, None)
        first = empty_checkpoint() | {"channel_values": {"messages": found}, "channel_versions": {"messages": version}}
        config = await saver.aput(config, first, {}, {"messages": version})
        found = found.copy()
    found += [HumanMessage("new", id="n" if named else None)]
    version = saver.get_next_version(version, None)
    after = empty_checkpoint() | {"channel_values": {"messages": found}, "channel_versions": {"messages": version}}
    async with saver._locks.of("t1"):
        waiting = asyncio.create_task(saver.aput(config, after, {}, {"messages": version}))
        await asyncio.sleep(0.01)
        found.clear()
    config = await waiting
    read = await AsyncLongthreadSaver(store).aget_tuple(config)
    assert read is not None
    texts = [message.content for message in read.checkpoint["channel_values"]["messages"]]
    assert texts == [*(f"m{n}" for n in range(before)), "new"]
