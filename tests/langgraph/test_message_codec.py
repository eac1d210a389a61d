"""Messages become entries and come back equal."""

from __future__ import annotations

import json
import string
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.messages import (
    AIMessage,
    BaseMessage,
    ChatMessage,
    HumanMessage,
    SystemMessage,
    ToolMessage,
)

from longthread.errors import MessageNotStorable
from longthread.langgraph.message_codec import draft_of, message_of
from longthread.model.entry import Draft, Entry, ToolCall
from longthread.store import log
from longthread.store.driver import Driver
from longthread.store.rows import dump

pytestmark = pytest.mark.one_backend

JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)
BLOCKS = st.lists(
    st.one_of(
        st.builds(lambda t: {"type": "text", "text": t}, st.text()),
        st.builds(lambda t, s: {"type": "thinking", "thinking": t, "signature": s}, st.text(), st.text()),
        st.builds(lambda d: {"type": "redacted_thinking", "data": d}, st.text()),
        st.builds(lambda d: {"type": "unknown_block", "anything": d}, JSON),
    ),
    min_size=1,
    max_size=4,
)
IDS = st.text(string.ascii_letters + string.digits, min_size=1, max_size=12)
ARGUMENTS = JSON | st.recursive(
    st.dates() | st.uuids() | st.binary(max_size=3) | st.frozensets(st.integers(0, 9), max_size=3) | st.booleans(),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.integers(0, 2) | st.sampled_from(["0", "1", None]), inner, max_size=3)
    ),
    max_leaves=4,
)
CALLS = st.lists(
    st.builds(
        lambda i, n, a: {"id": i, "name": n, "args": a, "type": "tool_call"},
        IDS,
        IDS,
        st.dictionaries(st.text(max_size=5), ARGUMENTS, max_size=3),
    ),
    max_size=3,
)
MESSAGES: st.SearchStrategy[BaseMessage] = st.one_of(
    st.builds(lambda c, i, k: HumanMessage(c, id=i, additional_kwargs=k), st.text() | BLOCKS, IDS, st.just({})),
    st.builds(lambda c, i: SystemMessage(c, id=i), st.text(), IDS),
    st.builds(
        lambda c, i, calls, r: AIMessage(c, id=i, tool_calls=calls, response_metadata={"raw": r}),
        st.text() | BLOCKS,
        IDS,
        CALLS,
        JSON,
    ),
    st.builds(lambda c, i, t, n: ToolMessage(c, id=i, tool_call_id=t, name=n), st.text() | BLOCKS, IDS, IDS, IDS),
)


@given(MESSAGES)
def test_a_message_comes_back_equal(message: BaseMessage) -> None:
    again = message_of(written(draft_of(message)))
    assert again == message
    assert type(again) is type(message)


def written(draft: Draft) -> Draft:
    """A draft with its calls as their column gives them back."""
    calls = json.loads(dump([call.to_json() for call in draft.tool_calls]))
    return replace(draft, tool_calls=tuple(map(ToolCall.from_json, calls)))


@given(MESSAGES)
def test_a_draft_is_the_same_each_time(message: BaseMessage) -> None:
    assert draft_of(message) == draft_of(message_of(draft_of(message)))


@pytest.mark.parametrize(
    "message",
    [
        ChatMessage(content="hi", role="critic", id="1"),
        ToolMessage("x", tool_call_id="c", artifact={1, 2}, id="2"),
        ToolMessage("x", tool_call_id="c", status="error", id="3"),
        AIMessage("x", id="4", usage_metadata={"input_tokens": 1, "output_tokens": 2, "total_tokens": 3}),
        AIMessage("x", id="5", invalid_tool_calls=[
            {"name": "a", "args": "{", "id": "i", "error": "e", "type": "invalid_tool_call"}]),
        AIMessage("x", id="6", tool_calls=[{"name": "a", "args": {}, "id": None}]),
        HumanMessage("x", id="7", additional_kwargs={1: [2, 3]}),
    ],
)  # fmt: skip
def test_what_json_cannot_hold_is_kept_too(message: Any) -> None:
    assert message_of(draft_of(message)) == message


ODD = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.binary(max_size=4)
    | st.text(max_size=4)
    | st.text(st.sampled_from("a\ud800\udfff\x00\uffff\u00ff"), max_size=4),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.text(max_size=3) | st.sampled_from(["\ud800", 1, 2**70, b"k"]), inner, max_size=3)
    ),
    max_leaves=6,
)


@given(ODD, st.sampled_from(["", "a\ud800b", "\uffff1"]))
def test_whatever_python_holds_comes_back_as_it_is(value: Any, text: str) -> None:
    again = message_of(draft_of(HumanMessage(text, id="1", additional_kwargs={"v": value})))
    assert repr((again.content, again.additional_kwargs)) == repr((text, {"v": value}))


@pytest.mark.parametrize(
    "kwargs",
    [
        {"v": ["a\ud800b", float("nan")]},
        {"v": "a\ud800b", "w": b"\x00"},
        {"\udfff": 1, 2: 3},
        {"v": [float("nan"), 2**64, -(2**63) - 1]},
    ],
)
def test_halves_of_pairs_and_large_numbers_are_exact_beside_what_json_cannot_hold(kwargs: Any) -> None:
    again = message_of(draft_of(AIMessage("a\udfffb", id="1", additional_kwargs=kwargs)))
    assert again.content == "a\udfffb"
    assert repr(again.additional_kwargs) == repr(kwargs)


def test_what_cannot_be_written_down_is_refused_with_a_reason() -> None:
    with pytest.raises(MessageNotStorable, match="Message 1 holds a value that cannot be written down: .*"):
        draft_of(ToolMessage("x", tool_call_id="c", id="1", artifact=(n for n in "a")))


USAGES = st.fixed_dictionaries(
    {"input_tokens": st.integers(0, 9), "output_tokens": st.integers(0, 9), "total_tokens": st.integers(0, 9)}
)
NOTES = st.dictionaries(
    st.sampled_from(["kind", "raw", "latency_ms", "thought", "message_id"]),
    st.text(max_size=3) | st.sampled_from([0, 7, None, True, ["", " "], " answer\n", "answer", "Answer: answer."]),
)


@given(NOTES, st.none() | USAGES, st.sampled_from(["", "answer", "a\ud800"]), st.booleans())
def test_notes_come_back_in_their_order(note: Any, usage: Any, text: str, more: bool) -> None:
    kwargs = {"a": 1, "longthread": note} if more else {"longthread": note}
    message = AIMessage(text, id="1", additional_kwargs=kwargs, usage_metadata=usage)
    again = message_of(draft_of(message))
    assert again == message
    assert repr(again) == repr(message)


def test_what_the_columns_say_is_not_said_in_the_payload_too() -> None:
    note = {"raw": "It is 4. ", "thought": "", "latency_ms": 21, "kind": "answer"}
    usage = {"input_tokens": 1200, "output_tokens": 60, "total_tokens": 1260}
    message = AIMessage("It is 4.", id="1", additional_kwargs={"longthread": note}, usage_metadata=usage)
    draft = draft_of(message)
    assert draft.payload == b'{"":{"n":[[0,["", " "]],[2,21]],"u":[1200,60,1260]}}'.replace(b", ", b",")
    assert draft.metadata == {"thought": "", "kind": "answer"}
    assert draft.latency_ms == 21
    assert message_of(draft) == message


def test_a_message_that_was_stored_in_full_is_the_same_message() -> None:
    note = {"kind": "answer", "latency_ms": 3}
    usage = {"input_tokens": 1, "output_tokens": 2, "total_tokens": 3}
    message = AIMessage("x", id="1", additional_kwargs={"longthread": note}, usage_metadata=usage)
    payload = {"additional_kwargs": {"longthread": note}, "usage_metadata": usage}
    before = Entry("1", "assistant", "x", payload=json.dumps(payload, separators=(",", ":")).encode(), metadata=note)
    assert before.says_the_same_as(draft_of(message))
    assert not before.says_the_same_as(replace(draft_of(message), metadata={"kind": "summary"}))
    assert message_of(before) == message


def test_plain_messages_have_no_payload() -> None:
    assert draft_of(HumanMessage("你好", id="1")).payload is None
    assert draft_of(ToolMessage("x", tool_call_id="c", id="2")).payload is None


@pytest.mark.parametrize(
    "message", [HumanMessage("edited", id="m"), ChatMessage(content="edited", role="critic", id="m")]
)
async def test_an_edited_message_keeps_its_id(store: Driver, message: BaseMessage) -> None:
    async with store.writing() as tx:
        await log.create_thread(tx, "t", user_id="u")
        await log.extend(tx, "t", [draft_of(HumanMessage("x", id="m"))])
        [entry] = await log.extend(tx, "t", [draft_of(message)], parent=0)
    assert entry.id != "m"
    assert message_of(entry) == message


def test_a_message_does_not_say_which_other_messages_id_it_has() -> None:
    message = HumanMessage("x", id="1", additional_kwargs={"longthread": {"message_id": "2", "kind": "question"}})
    assert draft_of(message).metadata == {"kind": "question"}
    assert message_of(draft_of(message)) == message
