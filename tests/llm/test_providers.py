"""Each way to a provider, over a real socket: the core's OpenAI and Anthropic, and LangChain's adapter."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Callable
from typing import Any

import pytest
from langchain_openai import ChatOpenAI
from pydantic import SecretStr

from longthread.llm.anthropic import PATH as ANTHROPIC_PATH
from longthread.llm.anthropic import AnthropicModel
from longthread.llm.chat import CallOptions, ChatModel, Chunk, reply_of
from longthread.llm.failures import (
    AuthenticationFailed,
    BadRequest,
    ConnectionBroken,
    ContextOverflow,
    Overloaded,
    ProviderError,
    RateLimited,
    ServerFailed,
    StreamTruncated,
    TimedOut,
    overflow_of,
)
from longthread.llm.http import Endpoint
from longthread.llm.langchain import LangChainModel
from longthread.llm.openai import PATH, OpenAIModel
from longthread.messages.message import Message
from longthread.testing import Dropped, ProviderEmulator, Refused, Slow, StreamError, broken_call
from longthread.tools.tool import Tool

Way = Callable[..., ChatModel]
KEY = "sk-canary-4711-0815"
QUESTION = [Message("system", "Be brief."), Message("user", "1 + 2?")]
CALL = {"thought": "sum them", "action": "add", "args": {"a": 1, "b": 2}}


async def _add(args: Any) -> dict[str, Any]:
    return {"ok": True}


ADD = Tool("add", "Add.", {"type": "object", "properties": {"a": {"type": "integer"}}}, _add)


def openai(provider: ProviderEmulator, *, key: str = "k", timeout: float = 10.0) -> ChatModel:
    endpoint = Endpoint(provider.base_url + PATH, {"authorization": f"Bearer {key}"}, timeout)
    return OpenAIModel("emulated", endpoint, max_tokens=77)


def anthropic(provider: ProviderEmulator, *, key: str = "k", timeout: float = 10.0) -> ChatModel:
    headers = {"x-api-key": key, "anthropic-version": "2023-06-01"}
    return AnthropicModel("emulated", Endpoint(provider.anthropic_url + ANTHROPIC_PATH, headers, timeout), 77)


def langchain(provider: ProviderEmulator, *, key: str = "k", timeout: float = 10.0) -> ChatModel:
    more: Any = {"base_url": provider.base_url, "timeout": timeout, "extra_body": {"max_tokens": 77}}
    return LangChainModel(
        ChatOpenAI(model="emulated", api_key=SecretStr(key), max_retries=0, stream_usage=True, **more)
    )


@pytest.fixture(params=[openai, anthropic, langchain])
def way(request: pytest.FixtureRequest) -> Way:
    found: Way = request.param
    return found


async def failure(model: ChatModel, tools: Any = ()) -> ProviderError:
    with pytest.raises(ProviderError) as caught:
        await reply_of(model, QUESTION, tools)
    return caught.value


async def test_an_answer_comes_in_pieces_and_whole(way: Way) -> None:
    told: list[str] = []

    async def tell(text: str) -> None:
        told.append(text)

    async with ProviderEmulator(["There are 59 of them. 中文\u2028and more"]) as provider:
        message = await reply_of(way(provider), QUESTION, tell=tell)
    assert message.role == "assistant"
    assert message.content == "".join(told) == "There are 59 of them. 中文\u2028and more"
    assert len(told) > 2
    usage = message.usage_metadata
    assert usage is not None
    assert usage["total_tokens"] == usage["input_tokens"] + usage["output_tokens"] > 2
    assert message.response_metadata["finish_reason"] in ("stop", "end_turn")
    [request] = provider.requests
    assert [(each.role, each.text) for each in request.messages] == [("system", "Be brief."), ("user", "1 + 2?")]
    assert request.body["max_tokens"] == 77
    assert request.body["stream"] is True


async def test_several_calls_and_their_results_go_there_and_back(way: Way) -> None:
    async with ProviderEmulator([[CALL, CALL], "It is 3."]) as provider:
        model = way(provider)
        said = await reply_of(model, QUESTION, [ADD])
        assert said.text == "sum them"
        assert [(call["name"], call["args"]) for call in said.tool_calls] == [("add", {"a": 1, "b": 2})] * 2
        assert len({call["id"] for call in said.tool_calls}) == 2
        results = [Message("tool", "3", tool_call_id=call["id"]) for call in said.tool_calls]
        answer = await reply_of(model, [*QUESTION, said, *results, Message("user", "And?")], [ADD])
    assert answer.text == "It is 3."
    second = provider.requests[1]
    assert second.tool_names == ["add"]
    assert [each.role for each in second.messages] == ["system", "user", "assistant", "tool", "tool", "user"]
    sent = second.messages[2]
    assert [(call["id"], call["args"]) for call in sent.tool_calls] == [
        (call["id"], call["args"]) for call in said.tool_calls
    ]


@pytest.mark.parametrize("arguments", ['{"a": 1, "b": ', "not json", "[1]", '{"a": 1, "a": 2}'])
async def test_arguments_that_are_no_object_stay_as_they_came_and_are_no_call(way: Way, arguments: str) -> None:
    async with ProviderEmulator([broken_call("add", arguments)]) as provider:
        said = await reply_of(way(provider), QUESTION, [ADD])
    assert said.tool_calls == []
    [call] = said.invalid_tool_calls
    assert (call["name"], call["args"], call["id"]) == ("add", arguments, "call_broken")


async def test_no_arguments_are_an_empty_object(way: Way) -> None:
    async with ProviderEmulator([broken_call("add", "")]) as provider:
        said = await reply_of(way(provider), QUESTION, [ADD])
    assert [call["args"] for call in said.tool_calls] == [{}]
    assert said.invalid_tool_calls == []


async def test_a_reply_that_was_cut_off_says_so(way: Way) -> None:
    cut = Message("assistant", "and so", response_metadata={"finish_reason": "length"})
    async with ProviderEmulator([cut]) as provider:
        said = await reply_of(way(provider), QUESTION)
    assert said.response_metadata["finish_reason"] in ("length", "max_tokens")


@pytest.mark.parametrize("choice", ["auto", "none", "required", "add"])
async def test_a_tool_can_be_chosen(choice: str) -> None:
    async with ProviderEmulator(["ok"], loop=True) as provider:
        for way in (openai, anthropic):
            await reply_of(way(provider), QUESTION, [ADD], CallOptions(tool_choice=choice, stop=["x"], max_tokens=5))
    first, second = (request.body for request in provider.requests)
    named = choice == "add"
    assert first["tool_choice"] == ({"type": "function", "function": {"name": "add"}} if named else choice)
    kind = {"required": "any", "add": "tool"}.get(choice, choice)
    assert second["tool_choice"] == {"type": kind, **({"name": "add"} if named else {})}
    assert (first["stop"], second["stop_sequences"]) == (["x"], ["x"])
    assert first["max_tokens"] == second["max_tokens"] == 5


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (400, BadRequest),
        (401, AuthenticationFailed),
        (403, AuthenticationFailed),
        (404, BadRequest),
        (408, ServerFailed),
        (409, ServerFailed),
        (422, BadRequest),
        (429, RateLimited),
        (500, ServerFailed),
        (503, Overloaded),
        (529, Overloaded),
    ],
)
async def test_a_refusal_is_typed_and_keeps_the_providers_words(
    way: Way, status: int, kind: type[ProviderError]
) -> None:
    async with ProviderEmulator([Refused(status, "The provider says no", retry_after=2.5)]) as provider:
        error = await failure(way(provider))
    assert type(error) is kind
    assert error.status_code == status
    assert error.retry_after == 2.5
    assert "The provider says no" in str(error)
    assert len(provider.requests) == 1


async def test_a_wrong_key_is_refused(way: Way) -> None:
    async with ProviderEmulator(["ok"], api_key="right") as provider:
        assert type(await failure(way(provider, key="wrong"))) is AuthenticationFailed
        assert (await reply_of(way(provider, key="right"), QUESTION)).text == "ok"


@pytest.mark.parametrize(
    ("message", "limit"),
    [
        ("This model's maximum context length is 8192 tokens. However, you requested 9000.", 8192),
        ("prompt is too long: 210000 tokens > 200000 maximum", 200_000),
    ],
)
async def test_a_call_that_is_too_long_is_told_with_the_window(way: Way, message: str, limit: int) -> None:
    async with ProviderEmulator([Refused(400, message)]) as provider:
        error = await failure(way(provider))
    assert type(error) is ContextOverflow
    found = overflow_of(error)
    assert found is not None
    assert found.limit == limit


async def test_a_server_without_tools_says_so(way: Way) -> None:
    async with ProviderEmulator(["ok"], refuse_tools=True) as provider:
        error = await failure(way(provider), [ADD])
    assert type(error) is BadRequest
    assert "does not support tools" in str(error)


async def test_a_late_reply_is_not_waited_for(way: Way) -> None:
    async with ProviderEmulator([Slow("late", seconds=30)]) as provider:
        assert type(await failure(way(provider, timeout=0.2))) is TimedOut


async def test_a_stream_that_breaks_off_gives_what_came_and_no_message(way: Way) -> None:
    chunks: list[Chunk] = []
    async with ProviderEmulator([Dropped("12345678" * 4, pieces=5)]) as provider:
        with pytest.raises(ConnectionBroken):
            async for chunk in way(provider).stream(QUESTION):
                chunks.append(chunk)
    assert chunks
    assert all(chunk.message is None for chunk in chunks)


async def test_nobody_there_is_a_broken_connection(way: Way) -> None:
    async with ProviderEmulator() as provider:
        model = way(provider)
    error = await failure(model)
    assert type(error) is ConnectionBroken
    assert error.status_code is None


async def test_to_stop_early_ends_the_request(way: Way) -> None:
    async with ProviderEmulator([Slow("12345678" * 500, between=0.05), "ok"]) as provider:
        model = way(provider)
        stream = model.stream(QUESTION)
        assert (await anext(stream)).text
        await stream.aclose()
        task = asyncio.create_task(reply_of(model, QUESTION))
        assert (await task).text == "ok"


async def test_cancellation_passes_through(way: Way) -> None:
    asked = threading.Event()

    def late(messages: list[Message]) -> Slow:
        asked.set()
        return Slow("late", seconds=30)

    async with ProviderEmulator(late) as provider:
        task = asyncio.create_task(reply_of(way(provider), QUESTION))
        await asyncio.to_thread(asked.wait)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task


async def test_a_call_with_foreign_letters_in_its_id_is_taken_by_anthropic() -> None:
    call = {"name": "add", "args": {}, "id": "functions.add:0", "type": "tool_call"}
    talk = [*QUESTION, Message("assistant", "", tool_calls=[call]), Message("tool", "", tool_call_id=call["id"])]
    async with ProviderEmulator(["ok"]) as provider:
        assert (await reply_of(anthropic(provider), talk, [ADD])).text == "ok"


# Thinking.


async def test_anthropics_thinking_is_told_apart_and_sent_back_to_the_byte() -> None:
    thinking = [
        {"type": "thinking", "thinking": "1 ≤ 2, so …", "signature": "Eq+/=="},
        {"type": "thinking", "thinking": "", "signature": "omitted"},
        {"type": "redacted_thinking", "data": "opaque"},
    ]
    call = {"name": "add", "args": {"a": 1}, "id": "toolu_1", "type": "tool_call"}
    script = [Message("assistant", [*thinking, {"type": "text", "text": "sum"}], tool_calls=[call]), "3"]
    told: list[str] = []
    async with ProviderEmulator(script) as provider:
        model = anthropic(provider)
        async for chunk in model.stream(QUESTION, [ADD]):
            told += [chunk.thinking] if chunk.thinking else []
            said = chunk.message
        assert said is not None
        await reply_of(model, [*QUESTION, said, Message("tool", "3", tool_call_id="toolu_1")], [ADD])
    assert "".join(told) == "1 ≤ 2, so …"
    assert said.text == "sum"
    sent = provider.requests[1].body["messages"][1]["content"]
    used = {"type": "tool_use", "id": "toolu_1", "name": "add", "input": {"a": 1}}
    assert sent == [*thinking, {"type": "text", "text": "sum"}, used]


async def test_thinking_of_another_provider_is_not_sent() -> None:
    said = Message("assistant", [{"type": "thinking", "thinking": "hm"}, {"type": "reasoning", "id": "rs_1"}, "so"])
    async with ProviderEmulator(["ok"], loop=True) as provider:
        for way in (openai, anthropic):
            await reply_of(way(provider), [*QUESTION, said, Message("user", "And?")])
    assert provider.requests[0].body["messages"][2] == {"role": "assistant", "content": "so"}
    assert provider.requests[1].body["messages"][1]["content"] == [{"type": "text", "text": "so"}]


@pytest.mark.parametrize("model", ["emulated", "another"])
async def test_reasoning_goes_back_with_its_calls_and_to_its_own_model_alone(model: str) -> None:
    call = {"name": "add", "args": {}, "id": "c", "type": "tool_call"}
    reply = Message("assistant", "so", additional_kwargs={"reasoning_content": "1 and\n2"}, tool_calls=[call])
    async with ProviderEmulator([reply, "3"]) as provider:
        said = await reply_of(openai(provider), QUESTION, [ADD])
        endpoint = Endpoint(provider.base_url + PATH)
        talk = [*QUESTION, said, Message("tool", "3", tool_call_id="c")]
        await reply_of(OpenAIModel(model, endpoint), talk, [ADD])
        assert said.additional_kwargs == {"reasoning_content": "1 and\n2"}
    sent = provider.requests[1].body["messages"][2]
    assert sent.get("reasoning_content") == ("1 and\n2" if model == "emulated" else None)


async def test_openai_itself_is_sent_no_field_that_it_does_not_know() -> None:
    call = {"name": "add", "args": {}, "id": "c", "type": "tool_call", "extra_content": {"google": 1}}
    about = {"model_provider": "openai", "model_name": "m"}
    said = Message("assistant", "", {"reasoning_content": "hm"}, about, tool_calls=[call])
    async with ProviderEmulator(["ok"], loop=True) as provider:
        for own in (True, False):
            model = OpenAIModel("m", Endpoint(provider.base_url + PATH), is_openai=own)
            await reply_of(model, [*QUESTION, said, Message("tool", "3", tool_call_id="c")], [ADD])
    plain, beside = (request.body["messages"][2] for request in provider.requests)
    assert set(plain) == {"role", "content", "tool_calls"}
    assert set(plain["tool_calls"][0]) == {"id", "type", "function"}
    assert beside["reasoning_content"] == "hm"
    assert beside["tool_calls"][0]["extra_content"] == {"google": 1}


async def test_pictures_go_in_each_providers_form() -> None:
    data = "iVBORw0KGgo="
    forms: list[Any] = [
        {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{data}"}},
        {"type": "image", "base64": data, "mime_type": "image/png"},
        {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": data}},
    ]
    async with ProviderEmulator(["ok"], loop=True) as provider:
        for way in (openai, anthropic):
            await reply_of(way(provider), [Message("user", ["see", *forms])])
    first, second = (request.body["messages"][0]["content"] for request in provider.requests)
    assert first == [{"type": "text", "text": "see"}, *[forms[0]] * 3]
    assert second == [{"type": "text", "text": "see"}, *[forms[2]] * 3]


def test_the_address_holds_nothing_secret() -> None:
    endpoint = Endpoint("http://user:secret@Host:81/v1/chat/completions?key=secret")
    assert OpenAIModel("m", endpoint).address == "http://host:81/v1"


async def test_a_reply_without_an_end_is_truncated() -> None:
    async def cut(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        body = b"data: " + json.dumps({"choices": [{"delta": {"content": "half"}}]}).encode() + b"\n\n"
        head = f"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncontent-length: {len(body)}\r\n\r\n"
        writer.write(head.encode() + body)
        await writer.drain()
        writer.close()

    async with await asyncio.start_server(cut, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        error = await failure(OpenAIModel("m", Endpoint(f"http://127.0.0.1:{port}{PATH}")))
    assert type(error) is StreamTruncated


@pytest.mark.parametrize("says", [Refused, lambda *said: StreamError(error=Refused(*said))])
async def test_no_error_tells_the_key_that_a_provider_quotes(way: Way, says: Any) -> None:
    reply = says(401, f"Incorrect API key provided: {KEY}. Compare {KEY[:9]}.", f"wrong:{KEY}")
    async with ProviderEmulator([reply], loop=True) as provider:
        error = await failure(way(provider, key=KEY))
    assert f"Incorrect API key provided: ***. Compare {KEY[:9]}." in str(error)
    assert KEY not in f"{error} {error.body}"


@pytest.mark.parametrize("query", [f"api_key={KEY}&api-version=1", f"key={KEY[:2]}%2D{KEY[3:]}"])
async def test_no_error_tells_a_key_in_the_address_however_deep_it_stands(query: str) -> None:
    deep: Any = f"Where is {KEY}?"
    for _ in range(300):  # what a parser takes, and more than a stack
        deep = [{KEY: deep}]
    body = json.dumps({"error": {"message": f"The key {KEY} of POST /v1?{query} is wrong.", "deep": deep}}).encode()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(f"HTTP/1.1 401 No\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body)
        await writer.drain()
        writer.close()

    async with await asyncio.start_server(serve, "127.0.0.1", 0) as server:
        base = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1"
        error = await failure(OpenAIModel("m", Endpoint(f"{base}{PATH}?{query}")))
    assert isinstance(error, AuthenticationFailed)
    told = f"{error} {json.dumps(error.body)}"
    assert "The key *** of POST /v1?" in told
    assert KEY not in told
    assert query.partition("&")[0] not in told


async def test_no_error_tells_a_key_that_a_class_holds_as_a_text() -> None:
    class Plain(ChatOpenAI):
        service_token: str = ""

    async with ProviderEmulator([Refused(401, f"Bad token {KEY}.", "wrong")], loop=True) as provider:
        more: Any = {"base_url": provider.base_url, "service_token": KEY}
        model = Plain(model="emulated", api_key=SecretStr("k"), max_retries=0, **more)
        error = await failure(LangChainModel(model))
    assert "Bad token ***." in str(error)


@pytest.mark.parametrize("status", ["200 OK", "502 Bad Gateway"])
async def test_what_is_quoted_of_a_reply_ends_with_no_part_of_a_key(status: str) -> None:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        body = f"<html>{'x' * 980}{KEY}".encode()
        writer.write(f"HTTP/1.1 {status}\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body)
        await writer.drain()
        writer.close()

    async with await asyncio.start_server(serve, "127.0.0.1", 0) as server:
        url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        endpoint = Endpoint(url, {"authorization": f"Bearer {KEY}"})
        for model in (OpenAIModel("m", endpoint), AnthropicModel("m", endpoint, 7)):
            error = await failure(model)
            assert str(error).endswith("xxx***")
        with pytest.raises(ProviderError) as caught:
            await endpoint.answer({})
        assert str(caught.value).endswith("xxx***")
        await endpoint.close()
