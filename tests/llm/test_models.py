from __future__ import annotations

import asyncio
import importlib.util
import re
from pathlib import Path
from typing import Any

import httpx
import pytest
from langchain.chat_models.base import _BUILTIN_PROVIDERS
from langchain_core.exceptions import ModelError
from langchain_core.language_models import BaseChatModel

from longthread.errors import ModelUnavailable
from longthread.llm import providers
from longthread.llm.anthropic import AnthropicModel
from longthread.llm.chat import CallOptions, ChatModel, reply_of
from longthread.llm.connections import ModelCache
from longthread.llm.failures import AuthenticationFailed, ConnectionBroken, ProviderError, RateLimited, TimedOut
from longthread.llm.json_protocol import Malformed, check_calls
from longthread.llm.langchain import LangChainModel, translate_error
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
from longthread.llm.openai import OpenAIModel
from longthread.messages.message import Message
from longthread.settings import Settings, variables
from longthread.testing import Dropped, ProviderEmulator, Refused, ScriptedChatModel, ScriptedModel, Slow, broken_call
from longthread.tools.tool import Tool
from longthread_demo.chat import DemoModel

QUESTION = [Message("user", "q")]


async def _call(args: Any) -> dict[str, Any]:
    return {"ok": True}


ADD = Tool("add", "Add two numbers.", {"type": "object"}, _call)


@pytest.fixture(autouse=True)
def clean(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """No key and no address of the machine that runs the tests."""
    for name in (*(name for names in variables().values() for name in names), "OPENAI_BASE_URL", "OPENAI_API_BASE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.chdir(tmp_path)


def _settings(**overrides: Any) -> Settings:
    return Settings.load(env_file=None, **overrides)


def _openai(model: ChatModel) -> OpenAIModel:
    assert isinstance(model, OpenAIModel)
    return model


async def _said(model: ChatModel) -> str:
    return (await reply_of(model, QUESTION)).text


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
    assert model.name == expected
    assert model.endpoint.timeout == 60.0
    assert model.address == (base_url or "https://api.openai.com/v1")


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
    named = providers._KNOWN.split(", ")
    assert set(named) <= providers.PROVIDERS
    assert set(_BUILTIN_PROVIDERS) <= providers.PROVIDERS


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("openai:gpt-5", OpenAIModel),
        ("openai:gpt-5-pro", LangChainModel),
        ("gpt-5.1-codex", LangChainModel),
        ("anthropic:claude-sonnet-4-5", AnthropicModel),
        ("claude-sonnet-4-5", AnthropicModel),
        ("Anthropic:claude-sonnet-4-5", AnthropicModel),
        ("demo", DemoModel),
    ],
)
def test_openai_and_anthropic_are_the_cores_and_what_has_the_responses_alone_is_langchains(
    name: str, kind: type[Any]
) -> None:
    model = resolve_model(name, _settings(openai_api_key="k", anthropic_api_key="k"))
    assert isinstance(model, kind)
    assert model.name == name.rpartition(":")[2]


async def test_an_anthropic_endpoint_of_ones_own_is_asked_with_the_anthropic_key() -> None:
    with ProviderEmulator(["ok"], api_key="own") as provider:
        settings = _settings(anthropic_base_url=f"{provider.anthropic_url}/", anthropic_api_key="own", temperature=1.5)
        model = resolve_model("anthropic:claude-x", settings)
        assert await _said(model) == "ok"
    [request] = provider.requests
    assert request.headers["anthropic-version"] == "2023-06-01"
    assert (request.body["max_tokens"], request.body["temperature"]) == (2000, 1.0)
    assert context_window(model) == 200_000


@pytest.mark.parametrize("key", ["sk-中文", "a\nb", "a b\x00"])
def test_a_key_that_no_header_holds_is_told(key: str) -> None:
    for name in ("openai:gpt-5", "anthropic:claude-x"):
        with pytest.raises(ModelUnavailable, match="letters that no key has"):
            resolve_model(name, _settings(openai_api_key=key, anthropic_api_key=key))


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


def test_the_common_key_only_goes_to_the_provider_of_the_configured_model() -> None:
    settings = _settings(model="openai:gpt-5", fallback_model="anthropic:claude-x", api_key="common")
    assert _sent_key(resolve_model(None, settings)) == "common"
    for name in ("anthropic:claude-x", "google_genai:gemini"):
        with pytest.raises(ModelUnavailable, match="LLM_API_KEY only goes to"):
            resolve_model(name, settings)
    for own in ("groq:llama3", "ollama:qwen3", "anthropic:claude-x"):
        with pytest.raises(ModelUnavailable, match="set OPENAI_API_KEY"):
            resolve_model("openai:gpt-5", _settings(model=own, api_key="common"))


def test_openais_key_goes_where_its_own_address_says() -> None:
    there = {"openai_base_url": "https://eu.example/v1", "openai_api_key": "own"}
    model = _openai(resolve_model("openai:gpt-5", _settings(**there)))
    assert (model.endpoint.url, _sent_key(model)) == ("https://eu.example/v1/chat/completions", "own")
    # What has the Responses alone is LangChain's.
    codex = resolve_model("openai:gpt-5-codex", _settings(**there))
    assert isinstance(codex, LangChainModel) and codex.address == "https://eu.example/v1"
    # A server of one's own that is the same one gets it; another does not.
    assert _sent_key(resolve_model("m", _settings(**there, base_url="https://eu.example/other"))) == "own"
    for other in ("http://eu.example/v1", "https://eu.example:8443/v1", "https://api.openai.com/v1"):
        assert _sent_key(resolve_model("m", _settings(**there, base_url=other))) == "not-needed"
    vendors = _settings(openai_api_key="own", base_url="https://api.openai.com/v1")
    assert _sent_key(resolve_model("m", vendors)) == "own"


def test_a_package_that_finds_anothers_key_in_the_environment_is_not_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-of-openai")
    monkeypatch.setenv("OPENAI_API_VERSION", "2024-10-21")
    monkeypatch.setenv("AZURE_OPENAI_ENDPOINT", "https://mine.example/")
    with pytest.raises(ModelUnavailable, match="a key that was given for another provider"):
        resolve_model("azure_openai:m", Settings.load(env_file=None))
    monkeypatch.setenv("AZURE_OPENAI_API_KEY", "sk-of-azure")
    assert resolve_model("azure_openai:m", Settings.load(env_file=None)).name == "m"


def _sent_key(model: ChatModel) -> str:
    return _openai(model).endpoint.headers["authorization"].removeprefix("Bearer ")


@pytest.mark.skipif(importlib.util.find_spec("langchain_ollama") is not None, reason="the package is installed")
@pytest.mark.parametrize(("name", "port"), [("ollama:qwen3:4b", 11434), ("lmstudio:a/b", 1234), ("vllm:m", 8000)])
def test_a_model_of_a_server_on_this_machine_gets_no_key(name: str, port: int) -> None:
    model = resolve_model(name, _settings(api_key="k", openai_api_key="k"))
    assert _openai(model).endpoint.url == f"http://127.0.0.1:{port}/v1/chat/completions"
    assert _sent_key(model) == "not-needed"


@pytest.mark.skipif(importlib.util.find_spec("langchain_upstage") is not None, reason="the package is installed")
def test_a_missing_package_of_another_provider_names_the_package() -> None:
    with pytest.raises(ModelUnavailable, match="pip install langchain-upstage"):
        resolve_model("upstage:solar", _settings())


def test_what_a_provider_does_not_accept_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*args: Any, **kwargs: Any) -> BaseChatModel:
        raise ValueError("1 validation error\nfor the model")

    monkeypatch.setattr("longthread.llm.langchain.init_chat_model", refuse)
    with pytest.raises(ModelUnavailable, match=r"1 validation error\. Or use"):
        resolve_model("cohere:command", _settings(api_key="k"))


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("groq:c", {"max_tokens": 77, "timeout": 60.0, "max_retries": 0}),
        ("google-genai:g", {"max_output_tokens": 77, "timeout": 60.0, "max_retries": 0, "api_key": "g"}),
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

    monkeypatch.setattr("longthread.llm.langchain.init_chat_model", record)
    monkeypatch.setattr("longthread.llm.models._is_installed", lambda provider: True)
    resolve_model(
        name,
        _settings(
            base_url="http://localhost:1/v1", api_key="b", anthropic_api_key="a", google_api_key="g", max_tokens=77
        ),
    )
    provider, _, model = name.partition(":")
    assert made == [(model, expected | {"model_provider": provider.replace("-", "_")})]


# Over the socket.


async def test_a_compatible_server_gets_max_tokens_and_a_temperature() -> None:
    with ProviderEmulator(["ok"]) as provider:
        settings = _settings(base_url=provider.base_url, max_tokens=77, temperature=0.5)
        assert await _said(resolve_model("llama3", settings)) == "ok"
    [request] = provider.requests
    assert request.body["model"] == "llama3"
    assert request.body["max_tokens"] == 77
    assert request.body["temperature"] == 0.5
    assert "max_completion_tokens" not in request.body
    assert request.headers["authorization"] == "Bearer not-needed"


async def test_a_server_nearby_is_sent_the_temperature_0_unless_another_is_configured() -> None:
    with ProviderEmulator(["ok"]) as provider:
        await _said(resolve_model("llama3", _settings(base_url=provider.base_url)))
    assert provider.requests[0].body["temperature"] == 0.0


@pytest.mark.parametrize("url", ["https://api.deepseek.com/v1", "https://api.openai.com/v1", "https://1.1.1.1/v1"])
def test_a_server_elsewhere_is_sent_no_temperature_unless_one_is_configured(url: str) -> None:
    model = resolve_model("openai:m", _settings(base_url=url, openai_api_key="k"))
    assert "temperature" not in _openai(model)._body(QUESTION, (), CallOptions())


@pytest.mark.parametrize("url", ["http://192.168.1.5:8000/v1", "http://ollama:11434/v1", "http://gpu.local/v1"])
def test_a_server_of_the_own_network_is_nearby(url: str) -> None:
    model = resolve_model("openai:m", _settings(base_url=url, openai_api_key="k"))
    assert _openai(model)._body(QUESTION, (), CallOptions(temperature=0.5))["temperature"] == 0.5


@pytest.mark.parametrize("host", ["https://eu.api.openai.com/v1", "https://me.openai.azure.com/openai/v1", None])
def test_openai_itself_gets_max_completion_tokens(host: str | None) -> None:
    model = resolve_model("openai:gpt-5", _settings(base_url=host, openai_api_key="k", max_tokens=77))
    body = _openai(model)._body(QUESTION, (), CallOptions())
    assert body["max_completion_tokens"] == 77
    assert "max_tokens" not in body


async def test_models_that_prefer_the_responses_api_use_chat_completions_on_a_compatible_server() -> None:
    with ProviderEmulator(["ok"]) as provider:
        await _said(resolve_model("openai:gpt-5-codex", _settings(base_url=f"{provider.base_url}/")))
    assert provider.requests[0].path == "/v1/chat/completions"


async def test_a_stream_reports_its_usage() -> None:
    async with ProviderEmulator(["some text in pieces"]) as provider:
        model = resolve_model("llama3", _settings(base_url=provider.base_url))
        message = await reply_of(model, QUESTION)
    assert message.text == "some text in pieces"
    assert message.usage_metadata is not None and message.usage_metadata["total_tokens"] > 0
    assert provider.requests[0].body["stream_options"] == {"include_usage": True}


async def test_a_server_that_refuses_stream_options_need_not_see_them() -> None:
    with ProviderEmulator(["ok"]) as provider:
        assert await _said(resolve_model("llama3", _settings(base_url=provider.base_url, stream_usage=False))) == "ok"
    assert "stream_options" not in provider.requests[0].body


async def test_the_model_itself_does_not_retry() -> None:
    with ProviderEmulator([Refused(429), "ok"]) as provider, pytest.raises(RateLimited):
        await _said(resolve_model("llama3", _settings(base_url=provider.base_url)))
    assert len(provider.requests) == 1


async def test_the_timeout_is_kept() -> None:
    async with ProviderEmulator([Slow("late", seconds=30)]) as provider:
        with pytest.raises(TimedOut):
            await _said(resolve_model("llama3", _settings(base_url=provider.base_url, timeout=0.2)))


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
async def test_a_call_with_half_its_arguments_is_found(reply: Any, broken: bool) -> None:
    async with ProviderEmulator([reply]) as provider:
        model = resolve_model("llama3", _settings(base_url=provider.base_url))
        found = check_calls(await reply_of(model, QUESTION, [ADD]))
    assert isinstance(found, Malformed) is broken
    if broken:
        assert "add" in str(found)
    else:
        assert found is None


# What a model can do.


def test_the_window_comes_from_the_setting_then_the_profile_then_a_safe_default() -> None:
    known = LangChainModel(ScriptedChatModel(["x"], profile={"max_input_tokens": 128_000}))
    unknown = ScriptedModel(["x"])
    assert context_window(known, _settings(memory_context_window=5_000)) == 5_000
    assert context_window(known, _settings()) == 128_000
    assert context_window(known) == 128_000
    assert context_window(unknown, _settings()) == DEFAULT_WINDOW
    assert context_window(resolve_model("openai:gpt-4o", _settings(openai_api_key="k"))) == 128_000


def test_tools_are_tried_unless_the_profile_says_no() -> None:
    for known, expected in ((None, True), (True, True), (False, False)):
        profile: Any = {} if known is None else {"tool_calling": known}
        assert supports_tools(ScriptedModel(["x"], tool_calling=known)) is expected
        assert supports_tools(LangChainModel(ScriptedChatModel(["x"], profile=profile))) is expected


async def test_a_server_that_refuses_tools_is_recognised_over_the_socket() -> None:
    with ProviderEmulator(["ok"], refuse_tools=True) as provider:
        model = resolve_model("gemma:2b", _settings(base_url=provider.base_url))
        with pytest.raises(ProviderError) as caught:
            await reply_of(model, QUESTION, [ADD])
        assert refuses_tools(caught.value)
        assert await _said(model) == "ok"


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


async def _error(script: list[Any], **overrides: Any) -> tuple[BaseException, Settings]:
    with ProviderEmulator(script) as provider:
        settings = _settings(base_url=provider.base_url, **overrides)
        with pytest.raises(ProviderError) as caught:
            await _said(resolve_model("llama3", settings))
    return caught.value, settings


@pytest.mark.parametrize(
    ("status", "hint"), [(401, "LLM_API_KEY"), (403, "another key"), (404, "model's name"), (429, "wait"), (500, "")]
)
async def test_a_refusal_keeps_the_providers_words_and_adds_what_to_do(status: int, hint: str) -> None:
    reason = failure_reason(*await _error([Refused(status, "The provider says no")]))
    assert reason.startswith("The provider says no.")
    assert hint in reason
    assert "Error code" not in reason


async def test_a_timeout_names_the_limit() -> None:
    assert "within 0.2 s" in failure_reason(*await _error([Slow("late", seconds=30)], timeout=0.2))


async def test_a_timeout_names_what_the_agent_sets() -> None:
    cache = ModelCache(_settings(timeout=60), lambda *_: ScriptedModel([]))
    plain, own = cache.models("test:x", {}), cache.models("test:x", {"timeout_seconds": 1.5, "max_tokens": 300})
    assert failure_reason(TimedOut(""), plain.settings, plain.own).startswith(
        "No answer within 60 s. Raise LLM_TIMEOUT,"
    )
    reason = failure_reason(TimedOut(""), own.settings, own.own)
    assert reason.startswith("No answer within 1.5 s. Raise `timeout_seconds` of the agent,")
    assert (own.settings.max_tokens, own.own["max_tokens"]) == (300, "max_tokens")
    assert "timeout" not in plain.own


async def test_a_broken_connection_names_the_address_that_was_asked() -> None:
    settings = _settings(base_url="http://localhost:9/v1", anthropic_base_url="http://localhost:8")
    broken = ConnectionBroken("", address="http://localhost:8/v1/messages")
    assert failure_reason(broken, settings).endswith("Is the server running, and ANTHROPIC_BASE_URL right?")
    ollama = ConnectionBroken("", address="http://127.0.0.1:11434/v1/chat/completions")
    reason = failure_reason(ollama, settings)
    assert "127.0.0.1:11434" in reason
    assert "BASE_URL" not in reason


async def test_a_broken_connection_names_the_address() -> None:
    error, settings = await _error([Dropped("x" * 100)])
    assert str(settings.base_url) in failure_reason(error, settings)
    with pytest.raises(ProviderError) as caught:  # nothing listens there any more
        await _said(resolve_model("llama3", settings))
    assert str(settings.base_url) in failure_reason(caught.value, settings)


@pytest.mark.parametrize("status", [400, 401, 403, 404, 408, 409, 422, 429, 500, 503, 529])
async def test_a_refused_request_is_not_sent_again_and_one_that_came_too_early_is(status: int) -> None:
    expected = status in {408, 409, 429, 500, 503, 529}
    error, _ = await _error([Refused(status)])
    assert retryable(error) is expected
    wrapped = RuntimeError("the client's own")
    wrapped.__cause__ = error
    assert retryable(wrapped) is expected


async def test_timeouts_broken_connections_and_unknown_errors_are_tried_again() -> None:
    assert retryable((await _error([Slow("late", seconds=30)], timeout=0.2))[0])
    assert retryable((await _error([Dropped("x" * 100)]))[0])
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
    assert not retryable(translate_error(ModelError("the context is full")))


async def test_a_wrong_key_may_not_be_tried_again() -> None:
    error, _ = await _error([Refused(401)])
    assert type(error) is AuthenticationFailed
    assert not retryable(error)


def test_any_other_error_is_told_in_its_first_line() -> None:
    assert failure_reason(ValueError("bad thing\nmore"), _settings()) == "bad thing."
    assert failure_reason(KeyError(), _settings()) == "KeyError."


def test_demo_needs_neither_key_nor_network() -> None:
    model = resolve_model(None, _settings())
    assert isinstance(model, DemoModel)
    assert supports_tools(model)
    assert context_window(model) >= DEFAULT_WINDOW
