"""Chat Completions as parts: what is seen, what is hidden, and what comes back into the right place."""

from __future__ import annotations

import copy
import json
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from longthread.gateway.dialects.completions import Completions
from longthread.gateway.parts import Part, chain
from longthread.gateway.raw_json import members
from longthread.gateway.request import Asked
from longthread.gateway.restore import drop_hidden, restore_hidden
from longthread.gateway.tree import hidden_part

Messages = list[dict[str, Any]]
DIALECT = Completions()
FIELDS = ("reasoning_content", "reasoning", "reasoning_details", "thinking_blocks", "extra_content")

texts = st.text(st.sampled_from('a "\\\n{}[]:,é中😀\ud83d'), max_size=8)
some = st.text(st.sampled_from('a "\\{}é中😀'), min_size=1, max_size=8)


def objects(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    return st.dictionaries(texts, inner, max_size=3)


values = st.recursive(
    st.none() | st.booleans() | st.integers() | texts, lambda inner: st.lists(inner, max_size=2) | objects(inner)
)
details = st.lists(st.fixed_dictionaries({"type": st.just("reasoning.text"), "text": texts}), min_size=1, max_size=2)
signatures = some.map(lambda text: {"google": {"thought_signature": text}})
hidden_fields = st.fixed_dictionaries(
    {},
    optional={
        "reasoning_content": some,
        "reasoning": some,
        "reasoning_details": details,
        "thinking_blocks": details,
        "extra_content": signatures,
    },
)


@st.composite
def calls(draw: st.DrawFn, number: int) -> dict[str, Any]:
    arguments = draw(objects(values).map(json.dumps) | st.just("") | st.just("{no json"))
    own = {"id": f"call_{number}", "type": "function", "function": {"name": "clock", "arguments": arguments}}
    signed = draw(st.none() | signatures)
    return own | ({"extra_content": signed} if signed else {})


@st.composite
def replies(draw: st.DrawFn, number: int = 0) -> dict[str, Any]:
    """An assistant's message that says something."""
    own = [draw(calls(10 * number + each)) for each in range(draw(st.integers(0, 2)))]
    content = draw(some if not own else st.none() | some)
    return {"role": "assistant", "content": content} | draw(hidden_fields) | ({"tool_calls": own} if own else {})


@st.composite
def conversations(draw: st.DrawFn) -> Messages:
    messages: Messages = [{"role": "system", "content": "Be kind."}]
    for number in range(draw(st.integers(1, 3))):
        messages.append({"role": "user", "content": draw(some)})
        messages.append(draw(replies(number)))
        results = [{"role": "tool", "tool_call_id": call["id"]} for call in messages[-1].get("tool_calls", ())]
        messages += [each | {"content": draw(texts)} for each in results]
    return [*messages, {"role": "user", "content": "go on"}]


def read(messages: Messages, **spelling: Any) -> Asked:
    return Asked.read(DIALECT, "ada", json.dumps({"model": "m", "messages": messages}, **spelling).encode())


@st.composite
def respelled(draw: st.DrawFn, messages: Messages) -> Messages:
    """The same to the model: keys in another order, arguments with other spaces, null and "", a text and one block."""
    found = copy.deepcopy(messages)
    for each in found:
        content = each.get("content")
        if content in (None, "", []) and draw(st.booleans()):
            each["content"] = draw(st.sampled_from([None, "", []]))
        elif isinstance(content, str) and content and draw(st.booleans()):
            each["content"] = [{"type": "text", "text": content, "cache_control": {"type": "ephemeral"}}]
        for call in each.get("tool_calls") or ():
            call["function"]["arguments"] = draw(spaced(call["function"]["arguments"]))
    return [dict(draw(st.permutations(list(each.items())))) for each in found]


@st.composite
def spaced(draw: st.DrawFn, arguments: str) -> str:
    try:
        value = json.loads(arguments or "{}")
    except ValueError:
        return arguments
    return json.dumps(value, indent=draw(st.none() | st.just(2)), sort_keys=draw(st.booleans()), ensure_ascii=False)


@st.composite
def forgetful(draw: st.DrawFn, messages: Messages) -> Messages:
    """Any hidden fields are gone, empty or altered."""
    found = copy.deepcopy(messages)
    holders = [each for each in found if each["role"] == "assistant"]
    holders += [call for each in holders for call in each.get("tool_calls", ())]
    for each in holders:
        for name in FIELDS:
            happens = draw(st.sampled_from(["kept", "gone", "null", "altered"])) if name in each else "kept"
            if happens == "gone":
                del each[name]
            elif happens == "null":
                each[name] = None
            elif happens == "altered":
                each[name] = "another" if isinstance(each[name], str) else [each[name]]
    return found


@settings(max_examples=40)
@given(st.data())
def test_whatever_a_client_forgets_or_respells_comes_back(data: st.DataObject) -> None:
    before = data.draw(conversations())
    sent = data.draw(respelled(data.draw(forgetful(before))))
    ours, theirs = read(before), read(sent, indent=data.draw(st.none() | st.just(1)))
    assert theirs.nodes == ours.nodes
    held = [hidden_part(each, ours.blocks(each.part.item)[each.part.place]) for each in ours.hidden_parts]
    found = restore_hidden(theirs, held, len(theirs.nodes))
    assert chain(found.hidden_parts) == chain(ours.hidden_parts)
    assert found.nodes == ours.nodes
    assert hidden_values(json.loads(found.body)["messages"]) == hidden_values(before)
    assert stripped(json.loads(found.body)["messages"]) == stripped(sent)
    bare = drop_hidden(ours, ours.hidden_parts)
    assert stripped(json.loads(bare.body)["messages"]) == json.loads(bare.body)["messages"] == stripped(before)


def hidden_values(messages: Messages) -> list[dict[str, Any]]:
    holders = [holder for each in messages for holder in (each, *(each.get("tool_calls") or ()))]
    return [{name: each[name] for name in FIELDS if each.get(name)} for each in holders]


def stripped(messages: Messages) -> Messages:
    found = [{name: value for name, value in each.items() if name not in FIELDS} for each in messages]
    for each in found:
        if each.get("tool_calls"):
            each["tool_calls"] = stripped(each["tool_calls"])
    return found


@settings(max_examples=40)
@given(conversations(), st.none() | st.just(1))
def test_the_log_reads_a_message_as_the_request_had_it(messages: Messages, indent: int | None) -> None:
    asked = read(messages, indent=indent)
    for number in range(len(asked.items)):
        own = [part for part in asked.parts if part.item == number]
        raws = asked.blocks(number)
        kept = [raws[part.place] for part in own]
        stored = DIALECT.read_blocks(own[0].role if own else "user", [json.loads(raw) for raw in kept])
        assert list(map(plain, stored)) == list(map(plain, own))
        again = DIALECT.write_messages([(own[0].role, kept)]) if own else []
        assert [plain(part) for raw in again for part in parts(raw)] == list(map(plain, own))


def plain(part: Part) -> Part:
    return part._replace(item=0, place=0)


def parts(*messages: Any) -> list[Part]:
    text = "[" + ",".join(each if isinstance(each, str) else json.dumps(each) for each in messages) + "]"
    return DIALECT.parts(json.loads(text, strict=False))


@settings(max_examples=40)
@given(st.data())
def test_a_stream_says_what_the_body_says(data: st.DataObject) -> None:
    """Texts in pieces, calls in pieces, and each piece of a list alone."""
    message = data.draw(replies())
    deltas: list[dict[str, Any]] = [{"role": "assistant", "content": ""}]
    for name in ("reasoning_content", "reasoning", "content"):
        deltas += [{name: piece} for piece in data.draw(cut(message.get(name) or ""))]
    deltas += [{name: message[name]} for name in ("thinking_blocks", "extra_content") if name in message]
    for index, detail in enumerate(message.get("reasoning_details") or ()):
        pieces = data.draw(cut(detail["text"])) or [""]
        deltas += [{"reasoning_details": [detail | {"text": piece, "index": index}]} for piece in pieces]
        detail["index"] = index
    for index, call in enumerate(message.get("tool_calls") or ()):
        deltas.append({"tool_calls": [{"index": index} | call | {"function": {"name": "clock", "arguments": ""}}]})
        for piece in data.draw(cut(call["function"]["arguments"])):
            deltas.append({"tool_calls": [{"index": index, "function": {"arguments": piece}}]})
    if "thinking_blocks" in message:
        message["thinking_blocks"] = joined(message["thinking_blocks"])
    events = [{"id": "1", "choices": [{"index": 0, "delta": delta}]} for delta in deltas]
    events += [{"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}, {"choices": [], "usage": {"a": 1}}]
    body = b"".join(b"data: %s\r\n\r\n" % json.dumps(event).encode() for event in events) + b"data: [DONE]\n\n"
    streamed = DIALECT.read_stream(body)
    whole = DIALECT.reply(json.dumps({"id": "1", "choices": [{"message": message}], "usage": {"a": 1}}).encode())
    assert list(map(plain, streamed.parts)) == list(map(plain, whole.parts))
    assert (streamed.whole, streamed.id, streamed.usage) == (True, "1", {"a": 1})


def joined(blocks: Messages) -> Messages:
    """Thinking that follows thinking without a signature is a piece of it."""
    return [{"type": blocks[0]["type"], "text": "".join(each["text"] for each in blocks)}]


@st.composite
def cut(draw: st.DrawFn, text: str) -> list[str]:
    """A text in pieces, between the halves of a character, too."""
    units = text.encode("utf-16-le", "surrogatepass")
    places = sorted(draw(st.lists(st.integers(0, len(units) // 2), max_size=2)))
    ends = [0, *(2 * place for place in places), len(units)]
    pieces = [units[a:b].decode("utf-16-le", "surrogatepass") for a, b in pairwise(ends)]
    return [piece for piece in pieces if piece]


def called_in(*pieces: dict[str, Any]) -> list[dict[str, Any]]:
    return [{"tool_calls": [piece]} for piece in pieces]


NAMED = {"name": "clock", "arguments": "{}"}


@pytest.mark.parametrize(
    ("deltas", "message"),
    [
        ([{"function_call": {"name": "f", "arguments": ""}}, {"function_call": {"arguments": '{"a":'}},
          {"function_call": {"arguments": "1}"}}], {"function_call": {"name": "f", "arguments": '{"a":1}'}}),
        (called_in({"index": 0, "id": "a", "type": "custom", "custom": {"name": "run", "input": "1"}},
                   {"index": 0, "custom": {"input": "2"}}),
         {"tool_calls": [{"id": "a", "type": "custom", "custom": {"name": "run", "input": "12"}}]}),
        (called_in({"id": "a", "type": "function", "function": NAMED}, {"id": "b", "type": "function",
                                                                        "function": NAMED}),
         {"tool_calls": [{"id": name, "type": "function", "function": NAMED} for name in "ab"]}),
        (called_in({"index": 0, "id": "a", "function": {"name": "clock", "arguments": ""}},
                   {"index": 0, "id": "a", "function": {"name": "clock", "arguments": "{"}},
                   {"index": 0, "id": "", "function": {"name": None, "arguments": "}"}}),
         {"tool_calls": [{"id": "a", "function": NAMED}]}),
        (called_in({"index": 1, "id": "b", "function": NAMED}, {"index": 0, "id": "a", "function": NAMED},
                   {"index": 1, "function": {"arguments": " "}}),
         {"tool_calls": [{"id": "b", "function": {"name": "clock", "arguments": "{} "}}, {"id": "a",
                                                                                          "function": NAMED}]}),
        ([{"content": [{"type": "thinking", "thinking": [{"type": "text", "text": "w"}]}]},
          {"content": [{"type": "thinking", "thinking": [{"type": "text", "text": "hy"}]}]}, {"content": "ye"},
          {"content": "s"}],
         {"content": [{"type": "thinking", "thinking": [{"type": "text", "text": "why"}]},
                      {"type": "text", "text": "yes"}]}),
        ([{"thinking_blocks": [{"type": "thinking", "thinking": "w", "signature": ""}]},
          {"thinking_blocks": [{"type": "thinking", "thinking": "hy", "signature": "s"}]},
          {"thinking_blocks": [{"type": "thinking", "thinking": "more", "signature": "t"}]}],
         {"thinking_blocks": [{"type": "thinking", "thinking": "why", "signature": "s"},
                              {"type": "thinking", "thinking": "more", "signature": "t"}]}),
        ([{"audio": {"id": "a"}}, {"audio": {"transcript": "h", "data": "UklG"}}, {"audio": {"transcript": "i"}}],
         {"audio": {"id": "a"}}),
        ([{"refusal": "n"}, {"refusal": "o", "content": None}], {"refusal": "no"}),
        ([{"content": "yes", "reasoning_content": None, "tool_calls": None}, {}], {"content": "yes"}),
    ],
)  # fmt: skip
def test_streams_of_every_vendor_are_put_together(deltas: Messages, message: dict[str, Any]) -> None:
    events = [{"choices": [{"delta": delta, "finish_reason": None}]} for delta in deltas]
    body = b"".join(b"data: " + json.dumps(event).encode() + b"\n\n" for event in events) + b"data: [DONE]\n\n"
    found = DIALECT.read_stream(body)
    assert list(map(plain, found.parts)) == list(map(plain, parts({"role": "assistant"} | message)))
    assert found.whole


@pytest.mark.parametrize("role", [{}, {"role": None}, {"role": "assistant"}])
def test_a_reply_is_the_assistants_also_where_it_does_not_say_so(role: dict[str, Any]) -> None:
    body = {"choices": [{"message": role | {"content": "yes", "reasoning": "why"}}]}
    found = DIALECT.reply(json.dumps(body).encode())
    assert [(part.role, part.value) for part in found.parts] == [("assistant", None), ("assistant", "yes")]
    assert found.raws == [['{"field":"reasoning","value":"why"}', '"yes"']]


@pytest.mark.parametrize("last", [b'data: {"error":{"message":"overloaded"}}\n\n', b": ping\n\n", b""])
def test_a_stream_that_breaks_off_is_not_whole(last: bytes) -> None:
    body = b'data: {"choices":[{"index":0,"delta":{"content":"data: [DONE] is what ends it"}}]}\n\n' + last
    assert not DIALECT.read_stream(body).whole
    assert not DIALECT.read_stream(body + b'data: {"choices":[],"error":{"code":502}}\n\ndata: [DONE]\n\n').whole


def text_message(content: Any, role: str = "user", **more: Any) -> dict[str, Any]:
    return {"role": role, "content": content} | more


def called(arguments: Any, **more: Any) -> dict[str, Any]:
    own = {"id": "c", "type": "function", "function": {"name": "clock", "arguments": arguments}}
    return {"role": "assistant", "tool_calls": [own | more]}


IMAGE = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (text_message("hi"), text_message([{"type": "text", "text": "hi"}])),
        (text_message("hi"), text_message([{"text": "hi", "type": "text", "cache_control": {"type": "ephemeral"}}])),
        (text_message(None, "assistant"), text_message("", "assistant")),
        (text_message("hi", "assistant", refusal=None, annotations=[]), text_message("hi", "assistant", audio=None)),
        (text_message("hi", "system"), text_message("hi", "developer")),
        (called('{"a": 1.0, "b": [1e2]}'), called('{"b":[100],"a":1}')),
        (called(""), called("{}")),
        (called('{"a":"é"}'), called('{"a":"\\u00e9"}', index=0)),
        (called({"a": 1}), called('{"a":1}')),
        (text_message("12", "tool", tool_call_id="c"), text_message([{"type": "text", "text": "12"}], "tool",
                                                                    tool_call_id="c", name="clock")),
        (text_message(None, "tool", tool_call_id="c"), text_message("", "tool", tool_call_id="c")),
        (text_message(None, "assistant", refusal="no"), text_message([{"type": "refusal", "refusal": "no"}],
                                                                     "assistant")),
        (text_message(None, "assistant", audio={"id": "a", "data": "UklG", "transcript": "hi"}),
         text_message(None, "assistant", audio={"id": "a"})),
    ],
)  # fmt: skip
def test_what_the_model_sees_alike_is_one_part(one: Any, other: Any) -> None:
    first, second = ([(part.role, part.visible) for part in parts(each)] for each in (one, other))
    assert first == second


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (text_message("hi"), text_message("hi ")),
        (text_message("hi"), text_message("hi", "assistant")),
        (text_message("hi", name="Ann"), text_message("hi", name="Bob")),
        (text_message([IMAGE]), text_message([IMAGE | {"image_url": {"url": "data:image/png;base64,BBBB"}}])),
        (called('{"a":1}'), called('{"a":"1"}')),
        (called('{"a":1}'), called('{"a":1}', id="d")),
        (called('{"a":1}'), called('{"a":1')),
        (text_message("1", "tool", tool_call_id="c"), text_message("1", "tool", tool_call_id="d")),
        (text_message("1", "function", name="c"), text_message("1", "function", name="d")),
        (text_message("no", "assistant"), text_message(None, "assistant", refusal="no")),
        ({"role": "assistant", "function_call": {"name": "f", "arguments": "{}"}},
         {"role": "assistant", "function_call": {"name": "g", "arguments": "{}"}}),
        (called("x", type="custom", function=None, custom={"name": "run", "input": "a"}),
         called("x", type="custom", function=None, custom={"name": "run", "input": "b"})),
    ],
)  # fmt: skip
def test_what_the_model_sees_otherwise_is_another_part(one: Any, other: Any) -> None:
    first, second = ([(part.role, part.visible) for part in parts(each)] for each in (one, other))
    assert first != second


def test_thinking_among_the_content_is_hidden_and_comes_back() -> None:
    """Mistral's way."""
    thinking = {"type": "thinking", "thinking": [{"type": "text", "text": "why"}], "closed": True}
    ours = read([text_message("hi"), text_message([thinking, {"type": "text", "text": "yes"}], "assistant")])
    theirs = read([text_message("hi"), text_message("yes", "assistant")])
    assert theirs.nodes == ours.nodes
    held = [hidden_part(each, ours.blocks(each.part.item)[each.part.place]) for each in ours.hidden_parts]
    assert json.loads(restore_hidden(theirs, held, len(theirs.nodes)).body) == json.loads(ours.body)
    bare = drop_hidden(ours, ours.hidden_parts)
    assert json.loads(bare.body)["messages"][1]["content"] == [{"type": "text", "text": "yes"}]


def test_an_empty_reasoning_is_none_but_beside_calls() -> None:
    assert not read([text_message("yes", "assistant", reasoning_content="")]).hidden_parts
    assert not read([called("{}") | {"reasoning_content": None}]).hidden_parts
    assert len(read([called("{}") | {"reasoning_content": ""}]).hidden_parts) == 1


@pytest.mark.parametrize(
    "body",
    [
        '{"messages": [{"role": "robot", "content": "x"}]}',
        '{"messages": [{"role": ["user"], "content": "x"}]}',
        '{"messages": [{"role": "user", "content": 7}]}',
        '{"messages": [{"role": "user", "content": ["x", 7]}]}',
        '{"messages": [{"role": "user", "content": [{"type": "text"}]}]}',
        '{"messages": [{"role": "assistant", "tool_calls": "x"}]}',
        '{"messages": [{"role": "assistant", "tool_calls": [7]}]}',
        '{"messages": [{"role": "assistant", "function_call": 7}]}',
        '{"messages": [7]}',
        '{"messages": {}}',
        '{"prompt": "x"}',
        pytest.param('{"messages": [{"role": "user", "content": [{"x": ' + 100_000 * "[", id="nested"),
        "[]",
        "{",
    ],
)
def test_another_form_is_no_request(body: str) -> None:
    """The provider says what is wrong with it."""
    with pytest.raises(ValueError):
        asked = Asked.read(DIALECT, "ada", body.encode())
        raise AssertionError(asked.parts)


@pytest.mark.parametrize(
    ("fields", "asks"),
    [
        ({}, True),
        ({"thinking": {"type": "enabled", "clear_thinking": False}}, True),
        ({"thinking": None, "reasoning": None, "chat_template_kwargs": None}, True),
        ({"reasoning": {"effort": "high", "exclude": True}}, True),
        ({"reasoning_effort": "low"}, True),
        ({"thinking": {"type": "disabled"}}, False),
        ({"thinking": False}, False),
        ({"enable_thinking": False}, False),
        ({"think": False}, False),
        ({"reasoning": {"enabled": False}}, False),
        ({"reasoning": {"effort": "none"}}, False),
        ({"reasoning_effort": "none"}, False),
        ({"chat_template_kwargs": {"enable_thinking": False}}, False),
        ({"chat_template_kwargs": {"thinking": False}}, False),
    ],
)
def test_hidden_parts_are_asked_for_unless_thinking_is_switched_off(fields: dict[str, Any], asks: bool) -> None:
    text = json.dumps(fields | {"messages": []})
    assert DIALECT.asks_hidden(dict(members(text, lists=frozenset({"messages"})))) is asks


@pytest.mark.parametrize(
    ("message", "is_about_hidden"),
    [
        ("Thought signature is not valid", True),
        ("Corrupted thought signature.", True),
        ("messages.1.content.0: Invalid `signature` in `thinking` block", True),
        ("The encrypted content for item rs_1 could not be verified.", True),
        ("The reasoning_content of the assistant message at index 1 is not what the model said.", True),
        ("The `reasoning_content` in the thinking mode must be passed back to the API.", False),
        ("thinking is enabled but reasoning_content is missing in assistant tool call message at index 2", False),
        ("Function call is missing a thought_signature in functionCall parts.", False),
        ("property 'reasoning_content' is unsupported", False),
        ("Invalid value for temperature", False),
        ("This model's maximum context length is 8192 tokens.", False),
    ],
)
def test_only_invalid_hidden_parts_are_repaired(message: str, is_about_hidden: bool) -> None:
    bodies = [{"error": {"message": message}}, {"error": message}, [{"error": {"message": message}}]]
    for body in bodies[:2]:
        assert (DIALECT.refusal(json.dumps(body).encode()) is not None) is is_about_hidden
    assert DIALECT.refusal(b"<html>") is None
