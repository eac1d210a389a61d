"""Lists of messages that are given away: what a caller does to them, or keeps of them, is never seen by the next."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage, ToolMessage
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer

from longthread.langgraph.saver.message_list import CHUNK, MessageList, private

SERDE = JsonPlusSerializer()


def messages(turns: int = 1) -> list[BaseMessage]:
    """Turns of four messages, with every kind of field that must be copied."""
    found: list[BaseMessage] = []
    for n in range(turns):
        usage = {"input_tokens": n, "output_tokens": 1, "total_tokens": n + 1}
        call = {"name": "look", "args": {"n": n}, "id": f"c{n}", "type": "tool_call"}
        deep = {"name": "look", "args": {"where": {"n": [n]}}, "id": f"d{n}", "type": "tool_call"}
        found += [
            HumanMessage([{"type": "text", "text": f"问题 {n}"}], id=f"h{n}", additional_kwargs={"a": {"b": n}}),
            AIMessage("", id=f"a{n}", tool_calls=[call], usage_metadata=usage, response_metadata={"model": "m"}),
            ToolMessage("41", id=f"t{n}", tool_call_id=f"c{n}", artifact=[n]),
            AIMessage(f"{n}", id=f"b{n}", tool_calls=[deep, call], name="x"),
        ]
    return found


def kept_of(given: list[BaseMessage]) -> MessageList:
    return MessageList(private(message, seq, seq - 1) for seq, message in enumerate(given, 1))


def ids(found: list[BaseMessage]) -> list[int]:
    return list(map(id, found))


def set_field(found: list[BaseMessage]) -> None:
    found[2].content = "42"


def set_inside(found: list[BaseMessage]) -> None:
    found[0].content[0]["text"] = "other"  # type: ignore[index]


def set_in_call(found: list[BaseMessage]) -> None:
    found[1].tool_calls[0]["args"]["n"] = 7  # type: ignore[attr-defined]


def set_deep_in_call(found: list[BaseMessage]) -> None:
    found[3].tool_calls[0]["args"]["where"]["n"].append(7)  # type: ignore[attr-defined]


def fill_what_was_empty(found: list[BaseMessage]) -> None:
    found[2].additional_kwargs["seen"] = True
    found[3].invalid_tool_calls.append({"name": "y"})  # type: ignore[attr-defined]


def put_another_container(found: list[BaseMessage]) -> None:
    found[1].usage_metadata = {}  # type: ignore[attr-defined]


def add_what_is_not_declared(found: list[BaseMessage]) -> None:
    found[0].seen = True  # type: ignore[attr-defined]


def make_another_kind(found: list[BaseMessage]) -> None:
    found[0].__class__ = SystemMessage


def add_to_the_fields(found: list[BaseMessage]) -> None:
    found[0].__dict__["seen"] = True


def take_a_field_away(found: list[BaseMessage]) -> None:
    del found[0].__dict__["name"]


def change_the_list(found: list[BaseMessage]) -> None:
    found.reverse()
    found.pop()


CHANGES = [
    set_field,
    set_inside,
    set_in_call,
    set_deep_in_call,
    fill_what_was_empty,
    put_another_container,
    add_what_is_not_declared,
    make_another_kind,
    add_to_the_fields,
    take_a_field_away,
    change_the_list,
]


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("turns", [1, CHUNK // 4, 20])
def test_what_was_changed_is_given_as_it_was(change: Callable[[list[BaseMessage]], None], turns: int) -> None:
    kept = kept_of(messages(turns))
    change(copies(kept, 4 * turns))
    assert _whole(copies(kept, 4 * turns)) == _whole(messages(turns))
    assert _whole(copies(kept, 3)) == _whole(messages(turns)[:3])


def test_what_is_no_json_and_was_changed_is_given_as_it_was() -> None:
    call = {"name": "look", "args": {"seen": {1}, "by": {1: [1]}}, "id": "c", "type": "tool_call"}
    given = AIMessage("", id="a", tool_calls=[call])
    kept = kept_of([*messages(), given])
    for args in (given.tool_calls[0]["args"], copies(kept, 5)[4].tool_calls[0]["args"]):  # type: ignore[attr-defined]
        args["seen"].add(2)
        args["by"][1].append(2)
    found = copies(kept, 5)[4].tool_calls[0]["args"]  # type: ignore[attr-defined]
    assert found == {"seen": {1}, "by": {1: [1]}}


@pytest.mark.parametrize("number", range(4))
@pytest.mark.parametrize(
    "part",
    [
        lambda message: message,
        lambda message: message.__dict__,
        lambda message: message.additional_kwargs,
        lambda message: message.response_metadata,
        lambda message: message.content,
        lambda message: message.tool_calls,
        lambda message: message.tool_calls[0],
        lambda message: message.tool_calls[0]["args"],
        lambda message: message.usage_metadata,
        lambda message: message.artifact,
    ],
)
def test_what_somebody_keeps_is_not_given_to_another(part: Callable[[Any], Any], number: int) -> None:
    kept = kept_of(messages())
    try:
        mine = part(copies(kept, 4)[number])
    except (AttributeError, IndexError):
        return  # this kind of message has no such part
    found = copies(kept, 4)
    if isinstance(mine, BaseMessage):
        mine.content = "changed"
    elif isinstance(mine, dict):
        mine["content"] = "changed"
    elif isinstance(mine, list):
        mine.append("changed")
    assert _whole(found) == _whole(messages())


@given(st.data())
def test_all_that_is_given_is_what_was_kept(data: st.DataObject) -> None:
    """Whatever is changed, kept or dropped in between, of whatever length."""
    given_ = messages(2)
    kept = kept_of(given_)
    held: list[Any] = []
    for _ in range(data.draw(st.integers(1, 8))):
        count = data.draw(st.integers(0, len(given_)))
        found = copies(kept, count)
        assert _whole(found) == _whole(given_[:count])
        taken = {id(message) for given in held for message in given}
        assert taken.isdisjoint(ids(found))
        if count >= 4 and data.draw(st.booleans()):
            data.draw(st.sampled_from(CHANGES))(found)
        if data.draw(st.booleans()):
            held.append(found)
        if held and data.draw(st.booleans()):
            held.pop(data.draw(st.integers(0, len(held) - 1)))
        del found


def test_what_two_messages_share_is_not_shared_by_their_copies() -> None:
    shared: dict[str, Any] = {"a": [1]}
    first = private(HumanMessage("m", id="m", additional_kwargs={"x": shared, "y": shared}), 1, 0)
    kept = MessageList(first.at_place(seq, seq - 1) for seq in range(1, CHUNK + 3))
    found = copies(kept, len(kept))
    for message in found:
        message.additional_kwargs["x"]["a"].append(2)
    assert [message.additional_kwargs for message in found] == [{"x": {"a": [1, 2]}, "y": {"a": [1]}}] * len(kept)
    assert copies(kept, 1)[0].additional_kwargs == {"x": {"a": [1]}, "y": {"a": [1]}}


def copies(kept: MessageList, count: int) -> list[BaseMessage]:
    return asyncio.run(kept.held_copies(count, SERDE))


async def test_others_have_their_turn_while_a_long_list_is_copied() -> None:
    given_ = messages(CHUNK)
    kept = kept_of(given_)
    turns = 0

    async def count_turns() -> None:
        nonlocal turns
        while True:
            await asyncio.sleep(0)
            turns += 1

    other = asyncio.create_task(count_turns())
    found = await kept.held_copies(len(given_), SERDE)
    other.cancel()
    assert turns >= len(given_) // CHUNK - 1
    assert _whole(found) == _whole(given_)
    assert kept.equal(found) == len(given_)


async def test_of_two_that_copy_at_once_each_has_its_own() -> None:
    given_ = messages(CHUNK)
    kept = kept_of(given_)
    one, other = await asyncio.gather(*(kept.held_copies(len(given_), SERDE) for _ in range(2)))
    assert set(ids(one)).isdisjoint(ids(other))
    assert kept.equal(one) == kept.equal(other) == len(given_)
    one[0].content = "changed"
    assert kept.equal(other) == len(given_)


def _whole(found: list[BaseMessage]) -> list[Any]:
    """All that messages say."""
    return [(type(message), message.__dict__, message.__pydantic_extra__ or None) for message in found]
