"""What servers send that is a little different from what OpenAI and Anthropic document."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any

import pytest

from longthread.llm.anthropic import AnthropicModel
from longthread.llm.chat import reply_of
from longthread.llm.failures import (
    ContextOverflow,
    Overloaded,
    ProviderError,
    RateLimited,
    ServerFailed,
    StreamTruncated,
    retry_after,
)
from longthread.llm.http import Endpoint, refusal
from longthread.llm.openai import OpenAIModel
from longthread.messages import anthropic, chat_completions
from longthread.messages.message import Message


def completion(chunks: Sequence[Mapping[str, Any]]) -> Message:
    reply = chat_completions.CompletionReply("m")
    for chunk in chunks:
        list(reply.add(chunk))
    return reply.message()


def deltas(*given: Mapping[str, Any]) -> Message:
    return completion([{"choices": [{"delta": delta}]} for delta in given])


def piece(arguments: Any = "", name: str | None = None, **more: Any) -> dict[str, Any]:
    return {"tool_calls": [{**more, "function": {"name": name, "arguments": arguments}}]}


@pytest.mark.parametrize(
    "sent",
    [
        [piece('{"a":', "add", index=0, id="c"), piece(" 1}", index=0)],
        [piece('{"a":', "add", index=0, id="c"), piece(" 1}", "add", index=0, id="c")],
        [piece('{"a":', "ad", index=0, id="c"), piece(" 1}", "d", index=0)],
        [piece('{"a": 1}', "add", id="c")],
        [piece({"a": 1}, "add", index=0, id="c")],
        [piece('{"a": 1}', "add", index=None, id="c")],
    ],
)
def test_a_call_is_put_together_however_its_pieces_come(sent: list[dict[str, Any]]) -> None:
    assert deltas(*sent).tool_calls == [{"name": "add", "args": {"a": 1}, "id": "c", "type": "tool_call"}]


def test_two_calls_at_one_place_are_two() -> None:
    said = deltas(piece("{}", "add", index=0, id="a"), piece('{"x":', "sub", index=0, id="b"), piece("1}", index=0))
    assert [(call["name"], call["args"], call["id"]) for call in said.tool_calls] == [
        ("add", {}, "a"),
        ("sub", {"x": 1}, "b"),
    ]


def test_calls_whose_pieces_are_mixed_are_kept_apart() -> None:
    first = {"tool_calls": [piece("", "add", index=n, id=str(n))["tool_calls"][0] for n in (1, 0)]}
    said = deltas(first, piece('{"n": 0}', index=0), piece('{"n": 1}', index=1))
    assert {call["id"]: call["args"] for call in said.tool_calls} == {"0": {"n": 0}, "1": {"n": 1}}


def test_what_a_provider_tells_beside_a_call_is_kept_with_it() -> None:
    signed = {"google": {"thought_signature": "s"}}
    [call] = deltas(piece("{}", "add", index=0, id="c", extra_content=signed)).tool_calls
    assert call["extra_content"] == signed
    [sent] = chat_completions.to_request([Message("assistant", "", tool_calls=[call])], "m")
    assert sent["tool_calls"][0]["extra_content"] == signed


def test_a_refusal_is_what_was_said() -> None:
    assert deltas({"content": None, "refusal": "I can"}, {"refusal": "not."}).text == "I cannot."


def test_content_in_parts_is_text_and_thinking_is_not() -> None:
    thinking = {"type": "thinking", "thinking": [{"type": "text", "text": "hm"}]}
    assert deltas({"content": [thinking]}, {"content": [{"type": "text", "text": "so"}]}).content == "so"


def test_reasoning_details_are_one_for_each_place_and_sealed_ones_are_as_they_came() -> None:
    sent = [
        {"reasoning": "1 ", "reasoning_details": [{"type": "reasoning.text", "text": "1 ", "index": 0}]},
        {"reasoning": "and", "reasoning_details": [{"type": "reasoning.text", "text": "and", "index": 0}]},
        {"reasoning_details": [{"type": "reasoning.text", "signature": "s", "index": 0}]},
        {"reasoning_details": [{"type": "reasoning.encrypted", "data": "x", "index": 1}]},
    ]
    assert deltas(*sent).additional_kwargs == {
        "reasoning": "1 and",
        "reasoning_details": [
            {"type": "reasoning.text", "text": "1 and", "index": 0, "signature": "s"},
            {"type": "reasoning.encrypted", "data": "x", "index": 1},
        ],
    }


@pytest.mark.parametrize(
    ("usage", "expected"),
    [
        ({"prompt_tokens": 3, "completion_tokens": 2}, {"input_tokens": 3, "output_tokens": 2, "total_tokens": 5}),
        ({"prompt_tokens": 3.5}, {"input_tokens": 0, "output_tokens": 0, "total_tokens": 0}),
        ({}, None),
        ("unknown", None),
    ],
)
def test_usage_is_whole_numbers_or_nothing(usage: Any, expected: dict[str, int] | None) -> None:
    assert completion([{"choices": [], "usage": usage}]).usage_metadata == expected


def test_what_was_read_from_a_cache_is_input_too() -> None:
    reply = anthropic.AnthropicReply("m")
    usage = {"input_tokens": 1, "cache_read_input_tokens": 10, "cache_creation_input_tokens": 5, "output_tokens": 1}
    list(reply.add({"type": "message_start", "message": {"usage": usage}}))
    list(reply.add({"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 7}}))
    assert reply.message().usage_metadata == {
        "input_tokens": 16,
        "output_tokens": 7,
        "total_tokens": 23,
        "input_token_details": {"cache_read": 10, "cache_creation": 5},
    }


def test_results_and_the_next_question_are_one_message_of_anthropics() -> None:
    call = {"name": "add", "args": {}, "id": "c", "type": "tool_call"}
    talk = [
        Message("system", "a"),
        Message("system", "b"),
        Message("user", "q"),
        Message("assistant", " ", tool_calls=[call]),
        Message("tool", "", tool_call_id="c", status="error"),
        Message("system", "by the way"),
        Message("user", " "),
    ]
    prompt, sent = anthropic.to_request(talk)
    assert prompt == "a\n\nb"
    assert [each["role"] for each in sent] == ["user", "assistant", "user"]
    assert sent[1]["content"] == [{"type": "tool_use", "id": "c", "name": "add", "input": {}}]
    assert sent[2]["content"] == [
        {"type": "tool_result", "tool_use_id": "c", "content": "", "is_error": True},
        {"type": "text", "text": "by the way"},
        {"type": "text", "text": "(empty)"},
    ]


# A server that sends just this.


@asynccontextmanager
async def server(body: bytes, kind: str = "text/event-stream", pause: bytes = b"") -> AsyncIterator[str]:
    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        head = f"HTTP/1.1 200 OK\r\ncontent-type: {kind}\r\nconnection: close\r\n\r\n"
        for part in (head.encode() + body[:20], body[20:]):
            writer.write(part)
            await writer.drain()
        writer.close()

    async with await asyncio.start_server(answer, "127.0.0.1", 0) as listening:
        yield f"http://127.0.0.1:{listening.sockets[0].getsockname()[1]}"


async def asked(body: bytes, kind: str = "text/event-stream") -> Message:
    async with server(body, kind) as url:
        return await reply_of(OpenAIModel("m", Endpoint(url)), [Message("user", "q")])


def events(*given: Any, end: str = "\n\n") -> bytes:
    told = (each if isinstance(each, str) else json.dumps(each, ensure_ascii=False) for each in given)
    return "".join(f"data: {each}{end}" for each in told).encode()


SAID = {"choices": [{"delta": {"content": "so\u2028it\x85is 中"}}]}
END = {"choices": [{"delta": {}, "finish_reason": "stop"}]}


@pytest.mark.parametrize(
    "body",
    [
        events(SAID, END, "[DONE]"),
        events(SAID, END),
        events(SAID, "[DONE]"),
        events(SAID, END, end="\r\n\r\n"),
        events(SAID, END).replace(b"data: ", b"data:"),
        b": a comment\n\nevent: message\nid: 1\n" + events(SAID, END),
        events(SAID, END).rstrip(),
        b"data: {\ndata: " + json.dumps(SAID, ensure_ascii=False).encode()[1:] + b"\n\n" + events(END),
    ],
)
async def test_a_stream_is_read_however_its_events_are_written(body: bytes) -> None:
    assert (await asked(body)).text == "so\u2028it\x85is 中"


async def test_a_server_that_does_not_stream_is_read_too() -> None:
    whole = {"choices": [{"message": {"content": "so", "tool_calls": []}, "finish_reason": "stop"}], "usage": None}
    assert (await asked(json.dumps(whole).encode(), "application/json")).text == "so"
    told = {"type": "message", "content": [{"type": "text", "text": "so"}], "stop_reason": "end_turn", "usage": {}}
    async with server(json.dumps(told).encode(), "application/json") as url:
        said = await reply_of(AnthropicModel("m", Endpoint(url), 9), [Message("user", "q")])
    assert said.text == "so"


@pytest.mark.parametrize(
    ("body", "kind", "error"),
    [
        (events(SAID), "text/event-stream", StreamTruncated),
        (b"", "text/event-stream", StreamTruncated),
        (events("[DONE]"), "text/event-stream", StreamTruncated),
        (events(SAID, '{"choices": [{"del'), "text/event-stream", ServerFailed),
        (events("7"), "text/event-stream", ServerFailed),
        (events({"choices": [{"delta": "so"}]}), "text/event-stream", ServerFailed),
        (events({"choices": [5]}, END), "text/event-stream", ServerFailed),
        (events({"choices": "so"}), "text/event-stream", ServerFailed),
        (
            events({"choices": [{"delta": {"tool_calls": [{"index": 0, "function": "x"}]}}]}, END),
            "text/event-stream",
            ServerFailed,
        ),
        (events(SAID, {**END, "usage": {"prompt_tokens_details": 5}}), "text/event-stream", ServerFailed),
        (b"<html>a login page</html>", "text/html", ServerFailed),
        (events(SAID, {"error": {"message": "m", "code": 429}}), "text/event-stream", RateLimited),
        (events({"error": {"message": "m", "type": "overloaded_error"}}), "text/event-stream", Overloaded),
        (events({"error": {"message": "m", "code": "context_length_exceeded"}}), "text/event-stream", ContextOverflow),
        (events({"error": "out of memory"}), "text/event-stream", ServerFailed),
        (b'{"error": {"message": "m"}}', "application/json", ServerFailed),
    ],
)
async def test_a_stream_that_goes_wrong_is_told_as_what_it_is(
    body: bytes, kind: str, error: type[ProviderError]
) -> None:
    with pytest.raises(ProviderError) as caught:
        await asked(body, kind)
    assert type(caught.value) is error


@pytest.mark.parametrize(
    "told",
    [
        {"type": "message_start", "message": 5},
        {"type": "content_block_start", "index": 0, "content_block": "so"},
        {"type": "content_block_delta", "index": 0, "delta": "so"},
        {"type": "content_block_start"},
    ],
)
async def test_an_event_of_anthropics_that_is_none_is_a_failure_of_the_server(told: dict[str, Any]) -> None:
    async with server(events(told), "text/event-stream") as url:
        with pytest.raises(ServerFailed, match="not in the form of its protocol"):
            await reply_of(AnthropicModel("m", Endpoint(url), 9), [Message("user", "q")])


@pytest.mark.parametrize(
    ("raw", "said"),
    [
        ({"error": {"message": "no"}}, "no"),
        ({"error": "no"}, "no"),
        ([{"error": {"message": "no", "status": "INVALID"}}], "no"),
        ({"object": "error", "message": "no", "code": 400}, "no"),
        ({"detail": "no"}, "no"),
        ({"type": "error", "error": {"type": "invalid_request_error", "message": "no"}}, "no"),
        ("no", '"no"'),
    ],
)
def test_errors_are_read_in_the_forms_that_servers_have(raw: Any, said: str) -> None:
    error = refusal(400, json.dumps(raw), {})
    assert str(error).strip('"') == said.strip('"')


def test_a_refusal_without_a_word_names_its_status() -> None:
    assert "502" in str(refusal(502, "", {}))
    assert str(refusal(502, "<html>Bad gateway", {})) == "<html>Bad gateway"


@pytest.mark.parametrize(
    ("headers", "expected"),
    [
        ({}, None),
        ({"retry-after": "3"}, 3.0),
        ({"retry-after": "0.5"}, 0.5),
        ({"retry-after-ms": "250", "retry-after": "9"}, 0.25),
        ({"retry-after": "soon"}, None),
        ({"retry-after": "nan"}, None),
        ({"retry-after": "-1"}, None),
        ({"retry-after": "Thu, 01 Jan 1970 00:00:00 GMT"}, 0.0),
    ],
)
def test_when_to_come_again_is_read_in_seconds_or_as_a_date(headers: dict[str, str], expected: float | None) -> None:
    assert retry_after(headers) == expected
