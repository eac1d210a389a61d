"""Messages become entries and come back equal."""

from __future__ import annotations

import string
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

from longthread.agent.messages import draft_of, message_of
from longthread.store import log
from longthread.store.driver import Driver

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
CALLS = st.lists(
    st.builds(
        lambda i, n, a: {"id": i, "name": n, "args": a, "type": "tool_call"},
        IDS,
        IDS,
        st.dictionaries(st.text(max_size=5), JSON, max_size=3),
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
    again = message_of(draft_of(message))
    assert again == message
    assert type(again) is type(message)


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
