from __future__ import annotations

import json
import re
import time
from dataclasses import replace
from typing import Any

import httpx
import openai
import pytest
from langchain.agents import create_agent
from langchain.chat_models import init_chat_model
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, AIMessageChunk, HumanMessage
from langchain_core.tools import tool

from longthread.llm.json_protocol import Malformed, check_calls
from longthread.llm.langchain import message_of
from longthread.messages.message import Message
from longthread.testing import Dropped, ProviderEmulator, ProviderRules, Refused, Slow, StreamError, broken_call

QUESTION: list[Any] = [{"role": "user", "content": "q"}]
CALL = {"thought": "sum them", "action": "add", "args": {"a": 1, "b": 2}}
TOOL: Any = {
    "type": "function",
    "function": {
        "name": "add",
        "description": "Add.",
        "parameters": {"type": "object", "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}}},
    },
}


@tool
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


def _sdk(provider: ProviderEmulator, **options: Any) -> openai.OpenAI:
    return openai.OpenAI(base_url=provider.base_url, api_key="k", max_retries=0, **options)


def _langchain(provider: ProviderEmulator, **options: Any) -> BaseChatModel:
    settings = {"base_url": provider.base_url, "api_key": "k", "max_retries": 0, **options}
    return init_chat_model("openai:emulated", **settings)


# The openai SDK.


def test_a_plain_completion() -> None:
    with ProviderEmulator(["There are 59. 中文"]) as provider, _sdk(provider) as client:
        reply = client.chat.completions.create(model="m", messages=QUESTION)
    assert reply.choices[0].message.content == "There are 59. 中文"
    assert reply.choices[0].finish_reason == "stop"
    assert reply.model == "m"
    assert reply.usage is not None
    assert reply.usage.total_tokens == reply.usage.prompt_tokens + reply.usage.completion_tokens
    [request] = provider.requests
    assert (request.method, request.path) == ("POST", "/v1/chat/completions")
    assert request.headers["authorization"] == "Bearer k"
    assert request.body["messages"] == QUESTION


@pytest.mark.parametrize("include_usage", [True, False])
def test_a_stream(include_usage: bool) -> None:
    options: Any = {"stream_options": {"include_usage": True}} if include_usage else {}
    with ProviderEmulator(["a longer text in pieces"]) as provider, _sdk(provider) as client:
        stream = client.chat.completions.create(model="m", messages=QUESTION, stream=True, **options)
        chunks = list(stream)
    texts = [chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices]
    assert "".join(texts) == "a longer text in pieces"
    assert sum(map(bool, texts)) > 1
    assert [bool(chunk.usage) for chunk in chunks].count(True) == include_usage
    assert {choice.finish_reason for chunk in chunks for choice in chunk.choices} == {None, "stop"}


def test_tool_calls_streamed_and_not() -> None:
    with ProviderEmulator([[CALL, CALL], [CALL, CALL]]) as provider, _sdk(provider) as client:
        whole = client.chat.completions.create(model="m", messages=QUESTION, tools=[TOOL])
        with client.chat.completions.stream(model="m", messages=QUESTION, tools=[TOOL]) as stream:
            streamed = stream.get_final_completion()
    assert provider.requests[0].tool_names == ["add"]
    for choice in (whole.choices[0], streamed.choices[0]):
        assert choice.finish_reason == "tool_calls"
        assert choice.message.content == "sum them"
        calls: Any = choice.message.tool_calls
        assert [(call.function.name, call.function.arguments) for call in calls] == [("add", '{"a": 1, "b": 2}')] * 2
        assert len({call.id for call in calls}) == 2


def test_models_are_listed() -> None:
    with ProviderEmulator(models=["small", "large"]) as provider, _sdk(provider) as client:
        assert [model.id for model in client.models.list()] == ["small", "large"]


@pytest.mark.parametrize(
    ("status", "error"),
    [(400, openai.BadRequestError), (429, openai.RateLimitError), (503, openai.InternalServerError)],
)
def test_refusals_have_the_vendors_shape(status: int, error: type[openai.APIStatusError]) -> None:
    refused = Refused(status, "not now", code="busy", retry_after=0.5)
    with ProviderEmulator([refused]) as provider, _sdk(provider) as client, pytest.raises(error) as caught:
        client.chat.completions.create(model="m", messages=QUESTION)
    assert caught.value.status_code == status
    assert caught.value.code == "busy"
    assert "not now" in str(caught.value)
    assert caught.value.response.headers["retry-after"] == "0.5"


def test_the_sdk_retries_until_the_script_gives_in() -> None:
    script = [Refused(429, retry_after=0.01), Refused(500, retry_after=0.01), "ok"]
    with ProviderEmulator(script) as provider, _sdk(provider).with_options(max_retries=2) as client:
        reply = client.chat.completions.create(model="m", messages=QUESTION)
    assert reply.choices[0].message.content == "ok"
    assert len(provider.requests) == 3


def test_a_wrong_key_is_refused_and_uses_nothing() -> None:
    with ProviderEmulator(["ok"], api_key="right") as provider:
        with _sdk(provider) as client, pytest.raises(openai.AuthenticationError):
            client.chat.completions.create(model="m", messages=QUESTION)
        assert provider.used == 0
        with openai.OpenAI(base_url=provider.base_url, api_key="right") as client:
            assert client.chat.completions.create(model="m", messages=QUESTION).choices[0].message.content == "ok"


def test_tools_are_refused_as_ollama_does() -> None:
    with ProviderEmulator(["ok"], refuse_tools=True) as provider, _sdk(provider) as client:
        with pytest.raises(openai.BadRequestError, match="does not support tools"):
            client.chat.completions.create(model="m", messages=QUESTION, tools=[TOOL])
        assert client.chat.completions.create(model="m", messages=QUESTION).choices[0].message.content == "ok"


def test_a_slow_reply_times_out() -> None:
    with ProviderEmulator([Slow("late", seconds=30)]) as provider, _sdk(provider, timeout=0.2) as client:
        begin = time.monotonic()
        with pytest.raises(openai.APITimeoutError):
            client.chat.completions.create(model="m", messages=QUESTION)
    assert time.monotonic() - begin < 10


def test_slow_pieces_arrive_one_by_one() -> None:
    script = [Slow("12345678" * 4, between=0.05)]
    with ProviderEmulator(script) as provider, _sdk(provider) as client:
        begin = time.monotonic()
        first = last = 0.0
        for chunk in client.chat.completions.create(model="m", messages=QUESTION, stream=True):
            first = first or time.monotonic() - begin
            last = time.monotonic() - begin if chunk.choices else last
    assert last - first > 0.1


def test_a_dropped_stream_breaks_after_its_pieces() -> None:
    texts: list[str] = []
    with ProviderEmulator([Dropped("12345678" * 4, pieces=3)]) as provider, _sdk(provider) as client:
        stream = client.chat.completions.create(model="m", messages=QUESTION, stream=True)
        with pytest.raises(openai.APIConnectionError):
            texts.extend(chunk.choices[0].delta.content or "" for chunk in stream)
    assert texts == ["", "12345678", "12345678"]


def test_a_dropped_body_breaks_in_the_middle() -> None:
    script = [Dropped("x" * 1000)]
    with ProviderEmulator(script) as provider, _sdk(provider) as client, pytest.raises(openai.APIConnectionError):
        client.chat.completions.create(model="m", messages=QUESTION)


def test_an_exhausted_script_and_an_exception_are_told_to_the_client() -> None:
    with ProviderEmulator([ValueError("boom")]) as provider, _sdk(provider) as client:
        with pytest.raises(openai.InternalServerError, match="boom"):
            client.chat.completions.create(model="m", messages=QUESTION)
        with pytest.raises(openai.InternalServerError, match="all used"):
            client.chat.completions.create(model="m", messages=QUESTION)


async def test_async_clients_and_the_async_context() -> None:
    async with (
        ProviderEmulator(["ok"]) as provider,
        openai.AsyncOpenAI(base_url=provider.base_url, api_key="k") as client,
    ):
        reply = await client.chat.completions.create(model="m", messages=QUESTION)
    assert reply.choices[0].message.content == "ok"


def test_the_address_is_known_only_while_it_runs() -> None:
    provider = ProviderEmulator(["ok"])
    with pytest.raises(RuntimeError, match="not running"):
        _ = provider.base_url
    with provider:
        address = provider.base_url
        assert httpx.get(f"{address}/models").status_code == 200
    with pytest.raises(httpx.ConnectError):
        httpx.get(f"{address}/models")


# langchain-openai.


def _gather(model: Any) -> AIMessageChunk:
    chunks = list(model.stream("q"))
    total = chunks[0]
    for chunk in chunks[1:]:
        total += chunk
    assert isinstance(total, AIMessageChunk)
    return total


def test_langchain_gets_the_same_streamed_and_not() -> None:
    with ProviderEmulator([CALL, CALL]) as provider:
        model = _langchain(provider, stream_usage=True).bind_tools([TOOL])
        whole, streamed = model.invoke("q"), _gather(model)
    assert whole.tool_calls[0]["args"] == {"a": 1, "b": 2}
    assert whole.tool_calls == streamed.tool_calls
    assert whole.content == streamed.content == "sum them"
    assert whole.usage_metadata is not None
    assert streamed.usage_metadata is not None
    assert whole.usage_metadata["total_tokens"] == streamed.usage_metadata["total_tokens"]
    assert check_calls(message_of(streamed)) is None


async def test_langchain_drives_an_agent_over_the_socket() -> None:
    async with ProviderEmulator([CALL, {"finish": "It is 3."}]) as provider:
        result = await create_agent(_langchain(provider), [add]).ainvoke({"messages": [HumanMessage("1 + 2?")]})
    assert result["messages"][-1].content == "It is 3."
    roles = [message["role"] for message in provider.requests[1].body["messages"]]
    assert roles == ["user", "assistant", "tool"]


def test_a_function_sees_what_langchain_sent() -> None:
    def echo(messages: list[Message]) -> str:
        return f"{messages[-1].role}: {messages[-1].text}"

    with ProviderEmulator(echo) as provider:
        model = _langchain(provider)
        assert [model.invoke(text).content for text in ("a", "b")] == ["user: a", "user: b"]


def test_a_call_with_broken_arguments_may_come_back_into_the_history() -> None:
    with ProviderEmulator([broken_call("add", '{"a": 1, "b": '), "ok"]) as provider:
        model = _langchain(provider)
        broken = model.invoke("q")
        assert broken.tool_calls == []
        assert broken.invalid_tool_calls[0]["args"] == '{"a": 1, "b": '
        assert isinstance(check_calls(message_of(broken)), Malformed)
        history = [HumanMessage("q"), broken, {"role": "tool", "content": "no", "tool_call_id": "call_broken"}]
        assert model.invoke(history).content == "ok"


@pytest.mark.parametrize(
    ("results", "status"),
    [
        (["call_a", "call_b"], 200),
        (["call_b", "call_a"], 200),
        ([], 400),
        (["call_a"], 400),
        (["call_a", "call_a"], 400),
        (["call_a", "call_b", "call_b"], 400),
    ],
)
def test_calls_without_results_and_results_without_calls_are_refused(results: list[str], status: int) -> None:
    calls = [
        {"id": each, "type": "function", "function": {"name": "add", "arguments": text}}
        for each, text in (("call_a", '{"a": 1}'), ("call_b", '{"a": '))
    ]
    answers = [{"role": "tool", "tool_call_id": each, "content": "3"} for each in results]
    asked = [{"role": "user", "content": "1 + 2?"}, {"role": "assistant", "content": None, "tool_calls": calls}]
    with ProviderEmulator(["ok"]) as provider, _sdk(provider) as client:
        for messages in ([*asked, *answers], [*asked, *answers, {"role": "user", "content": "And?"}]):
            if status == 200:
                assert client.chat.completions.create(model="m", messages=asked + answers).model == "m"  # type: ignore
                break
            with pytest.raises(openai.BadRequestError, match="tool_calls"):
                client.chat.completions.create(model="m", messages=messages)  # type: ignore[arg-type]


def test_streamed_half_arguments_are_completed_by_langchain_and_found_by_the_check() -> None:
    with ProviderEmulator([broken_call("add", '{"a": 1, "b": ')]) as provider:
        streamed = _gather(_langchain(provider))
    assert streamed.tool_calls[0]["args"] == {"a": 1}
    assert isinstance(check_calls(message_of(streamed)), Malformed)


def test_a_call_cut_at_the_token_limit_is_found() -> None:
    cut = replace(broken_call("run_sql", '{"sql": "SELECT 1'), response_metadata={"finish_reason": "length"})
    with ProviderEmulator([cut]) as provider:
        streamed = _gather(_langchain(provider))
    message = AIMessage(content="", tool_calls=streamed.tool_calls, response_metadata=streamed.response_metadata)
    problem = check_calls(message_of(message))
    assert isinstance(problem, Malformed)
    assert "token limit" in problem.reason


@pytest.mark.parametrize("streaming", [True, False])
def test_langchain_times_out(streaming: bool) -> None:
    with ProviderEmulator([Slow("late", seconds=30)]) as provider:
        model = _langchain(provider, timeout=0.2, streaming=streaming)
        with pytest.raises(openai.APITimeoutError):
            model.invoke("q")


def test_reasoning_is_on_the_wire_as_compatible_servers_send_it() -> None:
    message = AIMessage(content="3", additional_kwargs={"reasoning_content": "1 and 2"})
    with ProviderEmulator([message, message]) as provider, _sdk(provider) as client:
        whole = client.chat.completions.create(model="m", messages=QUESTION)
        stream = list(client.chat.completions.create(model="m", messages=QUESTION, stream=True))
    assert whole.choices[0].message.model_extra == {"reasoning_content": "1 and 2"}
    assert any((chunk.choices[0].delta.model_extra or {}).get("reasoning_content") == "1 and 2" for chunk in stream)


# The wire, whatever the dialect.

CHAT, ANTHROPIC, RESPONSES = "/v1/chat/completions", "/v1/messages", "/v1/responses"
PATHS = [CHAT, ANTHROPIC, RESPONSES]


def _ask(**more: Any) -> dict[str, Any]:
    return {"model": "m", "max_tokens": 9, "messages": QUESTION, "input": QUESTION, **more}


async def _post(provider: ProviderEmulator, path: str, encoding: str = "gzip", **body: Any) -> httpx.Response:
    async with httpx.AsyncClient(transport=httpx.ASGITransport(provider.app), base_url="http://emulator") as client:
        return await client.post(path, content=json.dumps(_ask(**body)), headers={"accept-encoding": encoding})


def _data(reply: httpx.Response) -> list[dict[str, Any]]:
    lines = [line[6:] for line in reply.text.splitlines() if line.startswith("data: ")]
    return [json.loads(line) for line in lines if line != "[DONE]"]


@pytest.mark.parametrize("path", PATHS)
async def test_every_reply_names_its_request(path: str) -> None:
    provider = ProviderEmulator(["ok", Refused(529, "Overloaded"), "ok", ValueError("boom")])
    replies = [await _post(provider, path, stream=n == 0) for n in range(4)]
    header = "request-id" if path == ANTHROPIC else "x-request-id"
    assert [each.status_code for each in replies] == [200, 529, 200, 500]
    assert len({each.headers[header] for each in replies}) == 4
    if path == ANTHROPIC:
        assert replies[1].json() == {
            "type": "error",
            "error": {"type": "overloaded_error", "message": "Overloaded"},
            "request_id": replies[1].headers[header],
        }


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("stream", [True, False])
async def test_chunks_and_compression_change_no_byte(path: str, stream: bool) -> None:
    def told(reply: httpx.Response) -> str:
        return re.sub(r"(msg_|chatcmpl-|resp_)\w+", "id", reply.text)

    rules = ProviderRules(reasoning=False)
    plain = await _post(ProviderEmulator(["你好, " * 9], rules=rules), path, stream=stream)
    for how in ({"chunk_bytes": 1}, {"chunk_bytes": 7, "gzip": True}, {"gzip": True}):
        reply = await _post(ProviderEmulator(["你好, " * 9], rules=rules, **how), path, stream=stream)
        assert told(reply) == told(plain)
        assert reply.headers.get("content-encoding") == ("gzip" if how.get("gzip") else None)
    reply = await _post(ProviderEmulator(["ok"], gzip=True), path, "identity", stream=stream)
    assert "content-encoding" not in reply.headers


def test_single_bytes_arrive_over_a_socket() -> None:
    with ProviderEmulator(["你好"], chunk_bytes=1) as provider, _sdk(provider) as client:
        chunks = client.chat.completions.create(model="m", messages=QUESTION, stream=True)
        assert "".join(chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices) == "你好"


@pytest.mark.parametrize("path", PATHS)
async def test_an_error_ends_a_stream(path: str) -> None:
    provider = ProviderEmulator([StreamError("some longer text", pieces=3)], loop=True)
    events = _data(await _post(provider, path, stream=True))
    assert len(events) == 4
    told = events[-1].get("error", events[-1])
    assert told["message"] == "Overloaded"
    reply = await _post(provider, path)
    assert reply.status_code == 529


@pytest.mark.parametrize("path", PATHS)
async def test_a_stream_may_break_before_its_last_event(path: str) -> None:
    whole = (await _post(ProviderEmulator(["text"]), path, stream=True)).text.split("\n\n")
    provider = ProviderEmulator([StreamError("text", pieces=-1), Dropped("text", pieces=-1)])
    broken = (await _post(provider, path, stream=True)).text.split("\n\n")
    assert len(broken) == len(whole)
    assert "Overloaded" in broken[-2]
    with provider, httpx.stream("POST", provider.anthropic_url + path, json=_ask(stream=True)) as reply:
        got = ""
        with pytest.raises(httpx.RemoteProtocolError):
            for text in reply.iter_text():
                got += text
    assert len(got.split("\n\n")) == len(whole) - 1


async def test_models_are_listed_in_the_form_of_the_vendor_that_is_asked() -> None:
    provider = ProviderEmulator(models=["small", "large/x"])
    transport = httpx.ASGITransport(provider.app)
    async with httpx.AsyncClient(transport=transport, base_url="http://emulator") as client:
        openais = (await client.get("/v1/models")).json()
        headers = {"anthropic-version": "2023-06-01"}
        anthropics = (await client.get("/v1/models", headers=headers)).json()
        one = (await client.get("/v1/models/large/x", headers=headers)).json()
        missing = await client.get("/v1/models/other", headers=headers)
    assert [(each["object"], each["id"]) for each in openais["data"]] == [("model", "small"), ("model", "large/x")]
    assert [(each["type"], each["id"]) for each in anthropics["data"]] == [("model", "small"), ("model", "large/x")]
    assert (anthropics["first_id"], anthropics["last_id"], anthropics["has_more"]) == ("small", "large/x", False)
    assert one == anthropics["data"][1]
    assert (missing.status_code, missing.json()["error"]["type"]) == (404, "not_found_error")


@pytest.mark.parametrize("path", PATHS)
async def test_what_is_no_json_object_is_refused(path: str) -> None:
    provider = ProviderEmulator(["ok"])
    async with httpx.AsyncClient(transport=httpx.ASGITransport(provider.app), base_url="http://emulator") as client:
        replies = [await client.post(path, content=content) for content in (b"{", b"[1]")]
        nowhere = await client.get("/v1/nowhere?beta=true")
        shapeless = [await client.post(path, json={key: [{}, 1]}) for key in ("messages", "input")]
    assert [each.status_code for each in replies] == [400, 400]
    assert 400 in [each.status_code for each in shapeless]
    [lookup] = provider.lookups
    assert (lookup.path, lookup.query, lookup.raw) == ("/v1/nowhere", "beta=true", b"")
    assert [each.raw for each in provider.requests[:2]] == [b"{", b"[1]"]
    assert (nowhere.status_code, nowhere.json()["error"]["message"]) == (404, "Not found: GET /v1/nowhere")


@pytest.mark.parametrize("path", PATHS)
async def test_without_a_script_replies_repeat_what_was_said(path: str) -> None:
    provider = ProviderEmulator(None)
    parameters = {"type": "object"}
    tool = {"type": "function", "name": "add", "parameters": parameters, "input_schema": parameters}
    offered = {"tools": [TOOL if path == CHAT else tool]}

    async def said(text: str, **more: Any) -> str:
        asked = [{"role": "user", "content": text}]
        return (await _post(provider, path, messages=asked, input=asked, **more)).text

    call = 'Please use the tool add with {"a": 1, "b": [2]}, now.'
    assert "You said: 你好" in await said("你好")
    assert "You said: Please" in await said(call)  # no tools
    assert "You said: use the tool sub" in await said("use the tool sub with {}", **offered)
    assert "You said: use the tool add" in await said("use the tool add with {", **offered)
    called = await said(call, **offered)
    assert '"add"' in called and "You said" not in called
    assert '\\"b\\": [2]' in called or '"b": [2]' in called
    nested = json.dumps({"prompt": "use the tool add with {} and use the tool add with {}"})
    assert (await said(f"use the tool add with {nested}", **offered)).count('"add"') == called.count('"add"')
    assert "\\ud800" in await said("\ud800")
