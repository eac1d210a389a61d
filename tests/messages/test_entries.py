"""Messages become the entries that LangChain's codec makes of the same messages, byte for byte, and come back."""

from __future__ import annotations

import json
import string
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.messages import AIMessage, BaseMessage, ChatMessage, HumanMessage, SystemMessage, ToolMessage

from longthread.errors import MessageNotStorable, RowDamaged
from longthread.langgraph import message_codec as langchain_codec
from longthread.messages.entries import draft_of, message_of
from longthread.messages.fields import BLANK
from longthread.messages.langchain import from_langchain, to_langchain
from longthread.messages.message import Message, invalid_tool_call, tool_call
from longthread.model.entry import Draft, ToolCall
from longthread.store.rows import dump

TEXT = st.text(max_size=8) | st.text(st.sampled_from("a\x00\ud800中"), max_size=4)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)
IDS = st.text(string.ascii_letters + "\x00", min_size=1, max_size=6)
BLOCKS = st.lists(
    TEXT
    | st.builds(lambda t: {"type": "text", "text": t}, TEXT)
    | st.builds(lambda t, s: {"type": "thinking", "thinking": t, "signature": s}, TEXT, TEXT)
    | st.builds(lambda d: {"type": "unknown", "any": d}, JSON),
    max_size=3,
)
NOTES = st.just({}) | st.builds(
    lambda raw, latency, more: {"longthread": {"kind": "answer", "raw": raw, "latency_ms": latency, **more}},
    TEXT,
    st.integers(0, 2**70),
    st.dictionaries(st.text(max_size=3), JSON, max_size=1),
)
KWARGS = st.builds(lambda one, note: one | note, st.dictionaries(st.text(max_size=3), JSON, max_size=1), NOTES)
OBJECTS = st.dictionaries(st.text(max_size=3), JSON, max_size=2)
USAGE = st.none() | st.builds(
    lambda i, o, more: {"input_tokens": i, "output_tokens": o, "total_tokens": i + o, **more},
    st.integers(0, 99),
    st.integers(0, 99),
    st.just({}) | st.just({"input_token_details": {"cache_read": 1}}),
)
CALLS = st.lists(st.builds(tool_call, IDS, OBJECTS, IDS | st.none()), max_size=2)
UNREAD = st.lists(st.builds(invalid_tool_call, IDS, TEXT, IDS, TEXT | st.none()), max_size=1)
SHARED = {"id": IDS, "name": IDS | st.none(), "additional_kwargs": KWARGS, "response_metadata": OBJECTS}
MESSAGES = st.one_of(
    st.builds(Message, st.sampled_from(["user", "system"]), TEXT | BLOCKS, **SHARED),
    st.builds(
        Message,
        st.just("assistant"),
        TEXT | BLOCKS,
        **SHARED,
        tool_calls=CALLS,
        invalid_tool_calls=UNREAD,
        usage_metadata=USAGE,
    ),
    st.builds(
        Message,
        st.just("tool"),
        TEXT | BLOCKS,
        **SHARED,
        tool_call_id=IDS,
        artifact=JSON,
        status=st.sampled_from(["success", "error"]),
    ),
)


def written(draft: Draft) -> Draft:
    """A draft with its calls as their column gives them back."""
    calls = json.loads(dump([call.to_json() for call in draft.tool_calls]))
    return replace(draft, tool_calls=tuple(map(ToolCall.from_json, calls)))


@given(MESSAGES)
def test_a_message_comes_back_equal(message: Message) -> None:
    assert message_of(written(draft_of(message))) == message


@given(MESSAGES)
def test_it_is_written_as_langchains_codec_writes_it(message: Message) -> None:
    assert draft_of(message) == langchain_codec.draft_of(to_langchain(message))


@given(MESSAGES)
def test_what_langchains_codec_wrote_is_read_and_written_again_to_the_byte(message: Message) -> None:
    stored = langchain_codec.draft_of(to_langchain(message))
    again = draft_of(message_of(written(stored)))
    assert again == stored
    assert again.payload == stored.payload


@given(MESSAGES)
def test_what_we_wrote_is_read_by_langchains_codec(message: Message) -> None:
    assert langchain_codec.message_of(written(draft_of(message))) == to_langchain(message)


@given(MESSAGES)
def test_a_message_goes_to_langchain_and_back(message: Message) -> None:
    assert from_langchain(to_langchain(message)) == message


@pytest.mark.parametrize("made", [SystemMessage("x"), HumanMessage("x"), AIMessage("x")])
def test_a_message_that_says_nothing_has_langchains_defaults_in_its_order(made: BaseMessage) -> None:
    blank = BLANK[from_langchain(made).role] | {"content": "x"}
    assert list(blank.items()) == list(made.__dict__.items())


def test_a_result_that_says_nothing_has_langchains_defaults_in_its_order() -> None:
    assert list(BLANK["tool"].items()) == list(ToolMessage("", tool_call_id="").__dict__.items())


def test_fields_that_a_message_has_no_attribute_for_are_kept() -> None:
    made = HumanMessage("x", id="1", example=True)
    draft = langchain_codec.draft_of(made)
    message = message_of(draft)
    assert message.extra == {"example": True}
    assert draft_of(message) == draft
    assert to_langchain(message) == made


@pytest.mark.parametrize("extra", [{"": 1}, {"n": 1}])
def test_a_field_with_the_name_of_what_is_told_in_short_is_packed(extra: dict[str, Any]) -> None:
    message = Message("user", "x", id="1", extra=extra)
    assert message_of(draft_of(message)) == message


def test_what_only_an_application_writes_is_read_as_its_columns_say() -> None:
    odd = HumanMessage([{"type": "text", "text": "seen"}], id="1", additional_kwargs={"v": {1, 2}})
    message = message_of(langchain_codec.draft_of(odd))
    assert (message.role, message.text, message.id) == ("user", "seen", "1")
    critic = message_of(langchain_codec.draft_of(ChatMessage("no", role="critic", id="2")))
    assert (critic.role, critic.text, critic.extra) == ("user", "no", {"role": "critic"})


def test_what_is_no_json_is_refused() -> None:
    with pytest.raises(MessageNotStorable):
        draft_of(Message("tool", "x", tool_call_id="c", artifact={1, 2}))


@pytest.mark.parametrize("payload", [b"{", b"[1]", b"\x00json:AIMessage\x00{", b"{},{}"])
def test_a_damaged_payload_is_told(payload: bytes) -> None:
    with pytest.raises(RowDamaged):
        message_of(Draft(id="1", role="assistant", text="x", payload=payload))


def test_thinking_and_signatures_come_back_to_the_byte() -> None:
    thinking = {"type": "thinking", "thinking": "1 ≤ 2\n", "signature": "Eq+/\u200b=="}
    message = Message("assistant", [thinking, {"type": "redacted_thinking", "data": "x"}], id="1")
    assert json.dumps(message_of(draft_of(message)).content) == json.dumps(message.content)
