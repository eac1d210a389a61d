"""Lists of messages that are lent: what a caller does to them, or keeps of them, is never seen by the next."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage, ToolMessage
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer

from longthread.agent import kept as module
from longthread.agent.kept import STRETCH, Kept, private

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


def kept_of(given: list[BaseMessage]) -> Kept:
    return Kept(private(message, seq, seq - 1) for seq, message in enumerate(given, 1))


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


def test_what_nobody_has_any_more_is_lent_again() -> None:
    kept = kept_of(messages())
    first = ids(kept.lend(4, SERDE))
    assert ids(kept.lend(4, SERDE)) == first
    kept.extend(private(message, 5 + n, 4 + n) for n, message in enumerate(messages()))
    assert ids(longer := kept.lend(8, SERDE))[:4] == first
    assert longer == messages() * 2


def test_of_what_somebody_has_still_the_lists_before_are_lent_again() -> None:
    """So it is where a result is replaced by the next: the old one is there until the new one is."""
    kept = kept_of(messages())
    first = kept.lend(4, SERDE)
    second = kept.lend(4, SERDE)
    both = {*ids(first), *ids(second)}
    assert len(both) == 8
    old = ids(first)
    del first
    assert ids(kept.lend(4, SERDE)) == old
    assert kept.spare == 8
    kept.call_in()
    assert kept.spare == 0


def test_of_several_that_nobody_has_the_last_is_lent_again() -> None:
    kept = kept_of(messages())
    first = kept.lend(4, SERDE)
    second = kept.lend(4, SERDE)
    last = ids(second)
    del first, second
    assert ids(kept.lend(4, SERDE)) == last
    assert ids(kept.lend(4, SERDE)) == last
    assert kept.spare == 8


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("turns", [1, STRETCH])
def test_what_was_changed_is_lent_as_it_was(change: Callable[[list[BaseMessage]], None], turns: int) -> None:
    kept = kept_of(messages(turns))
    change(kept.lend(4 * turns, SERDE))
    assert _whole(kept.lend(4 * turns, SERDE)) == _whole(messages(turns))
    assert _whole(kept.lend(3, SERDE)) == _whole(messages(turns)[:3])


def test_what_is_no_json_and_was_changed_is_lent_as_it_was() -> None:
    call = {"name": "look", "args": {"seen": {1}, "by": {1: [1]}}, "id": "c", "type": "tool_call"}
    given = AIMessage("", id="a", tool_calls=[call])
    kept = kept_of([*messages(), given])
    for args in (given.tool_calls[0]["args"], kept.lend(5, SERDE)[4].tool_calls[0]["args"]):  # type: ignore[attr-defined]
        args["seen"].add(2)
        args["by"][1].append(2)
    found = kept.lend(5, SERDE)[4].tool_calls[0]["args"]  # type: ignore[attr-defined]
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
def test_what_somebody_keeps_is_not_lent_to_another(part: Callable[[Any], Any], number: int) -> None:
    kept = kept_of(messages())
    try:
        mine = part(kept.lend(4, SERDE)[number])
    except (AttributeError, IndexError):
        return  # this kind of message has no such part
    found = kept.lend(4, SERDE)
    if isinstance(mine, BaseMessage):
        mine.content = "changed"
    elif isinstance(mine, dict):
        mine["content"] = "changed"
    elif isinstance(mine, list):
        mine.append("changed")
    assert _whole(found) == _whole(messages())


def test_what_can_still_be_reached_weakly_is_not_lent_to_another() -> None:
    kept = kept_of(messages())
    reference = weakref.ref(kept.lend(4, SERDE)[1])
    found = kept.lend(4, SERDE)
    assert all(message is not reference() for message in found)


def test_where_references_are_not_counted_nothing_is_lent_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_COUNTED", False)
    kept = kept_of(messages())
    kept.lend(4, SERDE)
    assert _whole(kept.lend(4, SERDE)) == _whole(messages())


@given(st.data())
def test_every_loan_is_what_was_kept(data: st.DataObject) -> None:
    """Whatever is changed, kept or dropped between loans, of whatever length."""
    given_ = messages(2)
    kept = kept_of(given_)
    held: list[Any] = []
    for _ in range(data.draw(st.integers(1, 8))):
        count = data.draw(st.integers(0, len(given_)))
        found = kept.lend(count, SERDE)
        assert _whole(found) == _whole(given_[:count])
        taken = {id(message) for loan in held for message in loan}
        assert taken.isdisjoint(ids(found))
        if count >= 4 and data.draw(st.booleans()):
            data.draw(st.sampled_from(CHANGES))(found)
        if data.draw(st.booleans()):
            held.append(found)
        if held and data.draw(st.booleans()):
            held.pop(data.draw(st.integers(0, len(held) - 1)))
        del found


def _whole(found: list[BaseMessage]) -> list[Any]:
    """All that messages say."""
    return [(type(message), message.__dict__, message.__pydantic_extra__ or None) for message in found]
