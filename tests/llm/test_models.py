from __future__ import annotations

import asyncio
import importlib.util
import re
from pathlib import Path
from typing import Any

import httpx
import openai
import pytest
from langchain.agents import create_agent
from langchain.agents.middleware import ModelRetryMiddleware
from langchain_core.exceptions import ModelError
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, HumanMessage
from langchain_core.tools import tool
from langchain_openai import ChatOpenAI
from pydantic import SecretStr

from longthread.demo.chat import DemoChatModel
from longthread.errors import ModelUnavailable
from longthread.llm import models
from longthread.llm.json_protocol import Malformed, check_calls
from longthread.llm.models import (
    DEFAULT_WINDOW,
    context_window,
    failure_reason,
    model_name,
    refuses_tools,
    resolve_model,
    retryable,
    supports_tools,
)
from longthread.llm.stream_recorder import CallRecorder
from longthread.messages.message import Message
from longthread.runs.request import ChatRequest
from longthread.settings import Settings, variables
from longthread.testing import Dropped, ProviderEmulator, Refused, ScriptedChatModel, Slow, broken_call

TOOL: Any = {"type": "function", "function": {"name": "add", "description": "Add.", "parameters": {"type": "object"}}}


@tool
def add(a: int = 0, b: int = 0) -> int:
    """Add two numbers."""
    return a + b


@pytest.fixture(autouse=True)
def clean(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """No key and no address of the machine that runs the tests."""
    for name in (*(name for names in variables().values() for name in names), "OPENAI_BASE_URL", "OPENAI_API_BASE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.chdir(tmp_path)


def _settings(**overrides: Any) -> Settings:
    return Settings.load(env_file=None, **overrides)


def _openai(model: BaseChatModel) -> ChatOpenAI:
    assert isinstance(model, ChatOpenAI)
    return model


# Names.


def test_the_name_given_beats_the_configured_one_beats_demo() -> None:
    assert model_name("a:b", _settings(model="c:d")) == "a:b"
    assert model_name(None, _settings(model="c:d")) == "c:d"
    assert model_name(None, _settings()) == "demo"


@pytest.mark.parametrize(
    ("name", "base_url", "expected"),
    [
        ("openai:gpt-5", None, "gpt-5"),
        ("gpt-5", None, "gpt-5"),
        ("OpenAI:gpt-5", None, "gpt-5"),
        ("qwen2.5:7b", "http://localhost:1/v1", "qwen2.5:7b"),
        ("openai:qwen2.5:7b", "http://localhost:1/v1", "qwen2.5:7b"),
        ("meta-llama/Llama-3.1-8B", "http://localhost:1/v1", "meta-llama/Llama-3.1-8B"),
    ],
)
def test_names_of_openai_and_compatible_servers(name: str, base_url: str | None, expected: str) -> None:
    model = _openai(resolve_model(name, _settings(base_url=base_url, openai_api_key="k")))
    assert model.model_name == expected
    assert model.max_retries == 0
    assert model.request_timeout == 60.0


@pytest.mark.parametrize("name", ["qwen2.5:7b", "llama3", "nonsense:model", "openai:"])
def test_a_name_that_says_too_little_is_refused_with_the_way_out(name: str) -> None:
    with pytest.raises(ModelUnavailable) as caught:
        resolve_model(name, _settings(openai_api_key="k"))
    assert name in str(caught.value)
    assert "LLM_BASE_URL" in str(caught.value) or "the name of a model" in str(caught.value)


def test_a_provider_that_there_is_not_is_named_with_some_that_there_are() -> None:
    with pytest.raises(ModelUnavailable) as caught:
        resolve_model("foo:bar", _settings())
    said = str(caught.value)
    assert "no provider `foo`" in said
    assert "Name the provider" not in said
    assert {"openai", "anthropic", "ollama"} <= set(re.findall(r"\w+", said))


def test_the_providers_that_are_named_are_known() -> None:
    named = models._KNOWN.split(", ")
    assert set(named) <= models._PROVIDERS


# Keys.


def test_a_missing_key_names_the_variable_and_the_demo_model() -> None:
    with pytest.raises(ModelUnavailable, match=r"openai:gpt-5 cannot be used.*OPENAI_API_KEY.*--model demo"):
        resolve_model("openai:gpt-5", _settings())


def test_the_common_key_serves_when_the_own_one_is_missing() -> None:
    assert _sent_key(resolve_model("openai:gpt-5", _settings(api_key="common"))) == "common"
    assert _sent_key(resolve_model("openai:gpt-5", _settings(api_key="common", openai_api_key="own"))) == "own"


def test_openais_own_key_is_not_sent_to_another_server() -> None:
    here = {"base_url": "http://localhost:1/v1", "openai_api_key": "own"}
    assert _sent_key(resolve_model("openai:m", _settings(**here))) == "not-needed"
    assert _sent_key(resolve_model("openai:m", _settings(**here, api_key="common"))) == "common"


def _sent_key(model: BaseChatModel) -> str:
    key = _openai(model).openai_api_key
    assert isinstance(key, SecretStr)
    return key.get_secret_value()


@pytest.mark.skipif(importlib.util.find_spec("langchain_anthropic") is not None, reason="the package is installed")
def test_a_missing_package_of_an_extra_names_the_extra() -> None:
    with pytest.raises(ModelUnavailable, match=r"pip install 'langchain-anthropic.*--model demo"):
        resolve_model("anthropic:claude-sonnet-4-5", _settings())


@pytest.mark.skipif(importlib.util.find_spec("langchain_upstage") is not None, reason="the package is installed")
def test_a_missing_package_of_another_provider_names_the_package() -> None:
    with pytest.raises(ModelUnavailable, match="pip install langchain-upstage"):
        resolve_model("upstage:solar", _settings())


def test_what_a_provider_does_not_accept_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*args: Any, **kwargs: Any) -> BaseChatModel:
        raise ValueError("1 validation error\nfor the model")

    monkeypatch.setattr("longthread.llm.models.init_chat_model", refuse)
    with pytest.raises(ModelUnavailable, match=r"1 validation error\. Or use"):
        resolve_model("openai:gpt-5", _settings(openai_api_key="k"))


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("anthropic:c", {"max_tokens": 77, "timeout": 60.0, "max_retries": 0, "api_key": SecretStr("a")}),
        ("google-genai:g", {"max_output_tokens": 77, "timeout": 60.0, "max_retries": 0, "api_key": SecretStr("g")}),
        ("ollama:qwen2.5:7b", {"num_predict": 77, "client_kwargs": {"timeout": 60.0}}),
    ],
)
def test_other_providers_get_their_own_options_and_neither_base_url_nor_its_key(
    name: str, expected: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[tuple[str, dict[str, Any]]] = []

    def record(model: str, **options: Any) -> BaseChatModel:
        made.append((model, options))
        return ScriptedChatModel(["x"])

    monkeypatch.setattr("longthread.llm.models.init_chat_model", record)
    resolve_model(
        name,
        _settings(
            base_url="http://localhost:1/v1", api_key="b", anthropic_api_key="a", google_api_key="g", max_tokens=77
        ),
    )
    provider, _, model = name.partition(":")
    assert made == [(model, expected | {"model_provider": provider.replace("-", "_")})]


# Over the socket.


def test_a_compatible_server_gets_max_tokens_and_a_temperature() -> None:
    with ProviderEmulator(["ok"]) as provider:
        settings = _settings(base_url=provider.base_url, max_tokens=77, temperature=0.5)
        assert resolve_model("llama3", settings).invoke("q").content == "ok"
    [request] = provider.requests
    assert request.body["model"] == "llama3"
    assert request.body["max_tokens"] == 77
    assert request.body["temperature"] == 0.5
    assert "max_completion_tokens" not in request.body
    assert request.headers["authorization"] == "Bearer not-needed"


def test_no_temperature_is_sent_unless_asked_for() -> None:
    with ProviderEmulator(["ok"]) as provider:
        resolve_model("llama3", _settings(base_url=provider.base_url)).invoke("q")
    assert "temperature" not in provider.requests[0].body


def test_openai_itself_gets_max_completion_tokens() -> None:
    model = _openai(resolve_model("openai:gpt-5", _settings(base_url="https://eu.api.openai.com/v1", max_tokens=77)))
    assert model._get_request_payload("q")["max_completion_tokens"] == 77
    model = _openai(resolve_model("openai:gpt-5", _settings(openai_api_key="k", max_tokens=77)))
    assert model._get_request_payload("q")["max_completion_tokens"] == 77


def test_models_that_prefer_the_responses_api_use_chat_completions_on_a_compatible_server() -> None:
    with ProviderEmulator(["ok"]) as provider:
        resolve_model("openai:gpt-5-codex", _settings(base_url=provider.base_url)).invoke("q")
    assert provider.requests[0].path == "/v1/chat/completions"


async def test_a_stream_reports_its_usage() -> None:
    async with ProviderEmulator(["some text in pieces"]) as provider:
        model = resolve_model("llama3", _settings(base_url=provider.base_url))
        chunks = [chunk async for chunk in model.astream("q")]
    assert "".join(str(chunk.text) for chunk in chunks) == "some text in pieces"
    assert sum(chunk.usage_metadata["total_tokens"] for chunk in chunks if chunk.usage_metadata) > 0
    assert provider.requests[0].body["stream_options"] == {"include_usage": True}


def test_a_server_that_refuses_stream_options_need_not_see_them() -> None:
    with ProviderEmulator(["ok"]) as provider:
        model = resolve_model("llama3", _settings(base_url=provider.base_url, stream_usage=False))
        assert "".join(str(chunk.text) for chunk in model.stream("q")) == "ok"
    assert "stream_options" not in provider.requests[0].body


def test_the_model_itself_does_not_retry() -> None:
    with ProviderEmulator([Refused(429), "ok"]) as provider:
        model = resolve_model("llama3", _settings(base_url=provider.base_url))
        with pytest.raises(openai.RateLimitError):
            model.invoke("q")
    assert len(provider.requests) == 1


async def test_the_timeout_is_kept() -> None:
    async with ProviderEmulator([Slow("late", seconds=30)]) as provider:
        model = resolve_model("llama3", _settings(base_url=provider.base_url, timeout=0.2))
        async with asyncio.timeout(10):
            with pytest.raises(openai.APITimeoutError):
                await model.ainvoke("q")


@pytest.mark.parametrize("streaming", [True, False])
@pytest.mark.parametrize(
    ("reply", "broken"),
    [
        (broken_call("add", '{"a": 1, "b": '), True),
        (broken_call("add", "not json"), True),
        (broken_call("add", ""), False),
        ([{"action": "add", "args": {"a": 1, "b": 2}}, {"action": "add", "args": {}}], False),
        ("an answer", False),
    ],
)
async def test_a_call_with_half_its_arguments_is_found(reply: Any, broken: bool, streaming: bool) -> None:
    async def told(text: str = "") -> None:
        """What is told of the text is another test's."""

    recorder = CallRecorder(told, told)
    async with ProviderEmulator([reply]) as provider:
        model = resolve_model("llama3", _settings(base_url=provider.base_url))
        model.disable_streaming = not streaming
        message = await ChatRequest(model, "", [Message("user", "q")], [TOOL]).reply(recorder)
        assert provider.requests[0].body.get("stream", False) is streaming
    found = check_calls(message, recorder.written())
    assert isinstance(found, Malformed) is broken
    if broken:
        assert "add" in str(found)
    else:
        assert found is None


# What a model can do.


def test_the_window_comes_from_the_setting_then_the_profile_then_a_safe_default() -> None:
    known = ScriptedChatModel(["x"], profile={"max_input_tokens": 128_000})
    unknown = ScriptedChatModel(["x"])
    assert context_window(known, _settings(memory_context_window=5_000)) == 5_000
    assert context_window(known, _settings()) == 128_000
    assert context_window(known) == 128_000
    assert context_window(unknown, _settings()) == DEFAULT_WINDOW
    assert context_window(resolve_model("openai:gpt-4o", _settings(openai_api_key="k"))) == 128_000


def test_tools_are_tried_unless_the_profile_says_no() -> None:
    assert supports_tools(ScriptedChatModel(["x"]))
    assert supports_tools(ScriptedChatModel(["x"], profile={"tool_calling": True}))
    assert not supports_tools(ScriptedChatModel(["x"], profile={"tool_calling": False}))


def test_a_server_that_refuses_tools_is_recognised_over_the_socket() -> None:
    with ProviderEmulator(["ok"], refuse_tools=True) as provider:
        model = resolve_model("gemma:2b", _settings(base_url=provider.base_url))
        with pytest.raises(openai.BadRequestError) as caught:
            model.bind_tools([TOOL]).invoke("q")
        assert refuses_tools(caught.value)
        assert isinstance(model.invoke("q"), AIMessage)


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        ("registry.ollama.ai/library/gemma:2b does not support tools", True),
        ('"auto" tool choice requires --enable-auto-tool-choice and --tool-call-parser to be set', True),
        ("No endpoints found that support tool use.", True),
        ("tools param requires --jinja flag", True),
        ("deepseek-reasoner does not support Function Calling", True),
        ("`tool calling` is not supported with this model", True),
        ("tool_choice is not supported", True),
        ("This model does not support image input", False),
        ("Rate limit reached. Please try again.", False),
        ("An assistant message with 'tool_calls' must be followed by tool messages", False),
        ("temperature is not supported with this model", False),
    ],
)
def test_refusals_of_tools_are_told_from_other_errors(message: str, expected: bool) -> None:
    assert refuses_tools(RuntimeError(message)) is expected


# What went wrong.


def _error(script: list[Any], **overrides: Any) -> tuple[BaseException, Settings]:
    with ProviderEmulator(script) as provider:
        settings = _settings(base_url=provider.base_url, **overrides)
        with pytest.raises(openai.OpenAIError) as caught:
            resolve_model("llama3", settings).invoke("q")
    return caught.value, settings


@pytest.mark.parametrize(
    ("status", "hint"), [(401, "LLM_API_KEY"), (403, "another key"), (404, "model's name"), (429, "wait"), (500, "")]
)
def test_a_refusal_keeps_the_providers_words_and_adds_what_to_do(status: int, hint: str) -> None:
    reason = failure_reason(*_error([Refused(status, "The provider says no")]))
    assert reason.startswith("The provider says no.")
    assert hint in reason
    assert "Error code" not in reason


def test_a_timeout_names_the_limit() -> None:
    assert "within 0.2 s" in failure_reason(*_error([Slow("late", seconds=30)], timeout=0.2))


def test_a_broken_connection_names_the_address() -> None:
    error, settings = _error([Dropped("x" * 100)])
    assert str(settings.base_url) in failure_reason(error, settings)
    with pytest.raises(openai.APIConnectionError) as caught:  # nothing listens there any more
        resolve_model("llama3", settings).invoke("q")
    assert str(settings.base_url) in failure_reason(caught.value, settings)


@pytest.mark.parametrize("status", [400, 401, 403, 404, 408, 409, 422, 429, 500, 503, 529])
def test_a_refused_request_is_not_sent_again_and_one_that_came_too_early_is(status: int) -> None:
    expected = status in {408, 409, 429, 500, 503, 529}
    error, _ = _error([Refused(status)])
    assert retryable(error) is expected
    wrapped = RuntimeError("the client's own")
    wrapped.__cause__ = error
    assert retryable(wrapped) is expected


def test_timeouts_broken_connections_and_unknown_errors_are_tried_again() -> None:
    assert retryable(_error([Slow("late", seconds=30)], timeout=0.2)[0])
    assert retryable(_error([Dropped("x" * 100)])[0])
    assert retryable(TimeoutError())
    assert retryable(ValueError("anything"))
    assert not retryable(asyncio.CancelledError())


def test_the_status_is_found_where_other_clients_keep_it() -> None:
    response = httpx.Response(401, request=httpx.Request("POST", "http://x"))
    with pytest.raises(httpx.HTTPStatusError) as caught:
        response.raise_for_status()
    assert not retryable(caught.value)

    class Google(Exception):
        code = 403

    class Ollama(Exception):
        status_code = -1

    assert not retryable(Google())
    assert retryable(Ollama())


def test_what_langchain_calls_hopeless_is_not_tried_again() -> None:
    assert not retryable(ModelError("the context is full"))


async def test_a_wrong_key_is_sent_once() -> None:
    async with ProviderEmulator([Refused(401)] * 4) as provider:
        model = resolve_model("llama3", _settings(base_url=provider.base_url))
        retry = ModelRetryMiddleware(max_retries=3, retry_on=retryable, on_failure="error", initial_delay=0)
        with pytest.raises(openai.AuthenticationError):
            await create_agent(model, [], middleware=[retry]).ainvoke({"messages": [HumanMessage("q")]})
        assert len(provider.requests) == 1


def test_any_other_error_is_told_in_its_first_line() -> None:
    assert failure_reason(ValueError("bad thing\nmore"), _settings()) == "bad thing."
    assert failure_reason(KeyError(), _settings()) == "KeyError."


def test_demo_needs_neither_key_nor_network() -> None:
    model = resolve_model(None, _settings())
    assert isinstance(model, DemoChatModel)
    assert supports_tools(model)
    assert context_window(model) >= DEFAULT_WINDOW
