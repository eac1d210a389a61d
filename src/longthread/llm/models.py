"""Which chat model a name means, what that model can do, and how it writes summaries.

Facts by name are here too: context windows, and what the core's wires cannot ask a model.
"""

from __future__ import annotations

import importlib.util
import re
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, cast
from urllib.parse import urlsplit, urlunsplit

from pydantic import SecretStr

from longthread.errors import ModelNotUsable, ModelUnavailable
from longthread.extras import DEMO_PACKAGE, install_command
from longthread.llm.chat import FIELDS, CallOptions, ChatModel, reply_of
from longthread.llm.failures import (
    BadRequest,
    ConnectionBroken,
    TimedOut,
    asked_in_room,
    constructor_errors,
    first_line,
    status_of,
)
from longthread.llm.providers import LOCAL_SERVERS, OWN, ROWS, address_of, is_near, key_for, split_name, window_of
from longthread.messages.message import Message
from longthread.model.run import Protocol
from longthread.plugins import CORE, Offer, plugins
from longthread.settings import Settings
from longthread.telemetry import describe_model, describe_usage, span

if TYPE_CHECKING:
    from longthread.memory.summary.summaries import Summarizer

_RESPONSES_ONLY = re.compile(r"codex|^(?:gpt-5(?:\.\d+)?-pro|o[13]-pro|computer-use|gpt-5\.6-sol|o\d.*-deep-research)")


def needs_responses(model: str) -> bool:
    """Return whether OpenAI offers a model only through Responses, which the core does not speak."""
    return bool(_RESPONSES_ONLY.search(model))


DEMO = "demo"
"""The name of the model that needs no key and no network."""
DEFAULT_WINDOW = 32_000
"""Tokens of context that are safe to assume for an unknown model."""

_NOT_CONNECTED = (
    "Its server is not connected: connect it on the page (Connect a model, beside the question), or set LLM_BASE_URL."
)
_HINTS = {
    401: "Check the key: LLM_API_KEY with a base URL, else the provider's own, such as OPENAI_API_KEY.",
    403: "The key does not allow this model: use another key or another model.",
    404: "Check the model's name, and that LLM_BASE_URL ends as the server wants it (mostly `/v1`).",
    429: "The provider's limit is reached: wait, or use another model.",
}
NOT_OWN: Mapping[str, str] = MappingProxyType({})
_TRANSIENT = frozenset({408, 409, 425, 429})
"""Statuses below 500 after which the same request may succeed."""
_TOOLS_REFUSED = re.compile(
    r"not support (?:tool|function)|(?:tool|function)[ _-]?(?:call|calling|use|choice|s)?\b.{0,40}not supported"
    r"|support tool use|requires --enable-auto-tool-choice|requires --jinja",
    re.IGNORECASE | re.DOTALL,
)


@dataclass(frozen=True, slots=True)
class RunModels:
    """The model of a run, its fallback, and how often to retry each. `settings` are the settings that they were made
    with; `own` names the fields of the agent's config that override some of them."""

    name: str
    model: ChatModel
    settings: Settings
    own: Mapping[str, str]
    fallback: ChatModel | None = None
    fallback_name: str = ""
    retries: int = 0

    @property
    def all(self) -> list[ChatModel]:
        return [self.model] if self.fallback is None else [self.model, self.fallback]


def model_name(name: str | None, settings: Settings) -> str:
    """Return `name`, else the configured model, else the demo model."""
    return name or settings.model or DEMO


def resolve_model(name: str | None, settings: Settings) -> ChatModel:
    """Return the chat model for `name`: `demo`, `provider:model`, or a bare model name.

    `ollama:…`, `lmstudio:…`, `llamacpp:…` and `vllm:…` are models of a server on this machine, at its usual port.
    With a base URL configured, a name without a provider's prefix is a model of that OpenAI-compatible server, and so
    is `openai:…`. These and `anthropic:…` are the core's own, and so are the providers in `ROWS` for which LangChain
    has no package here. Others are LangChain's, or a plugin's. The model does not retry: the run does.

    Raises:
        ModelUnavailable: its package or its key is missing, or the name is incomplete.
    """
    name = model_name(name, settings)
    offer = find_model(name)
    if offer is None and name == DEMO:
        failure = plugins().find_failure(DEMO_PACKAGE)
        missing = f"Its package is not installed: `{install_command(DEMO_PACKAGE)}`."
        raise ModelNotUsable(model=name, reason=str(failure or missing))
    if offer is None or offer.plugin == CORE:
        factory = provider_model if offer is None else offer.load()
        return cast(ChatModel, factory(name, settings))
    with constructor_errors(lambda error: ModelUnavailable(model=name, reason=first_line(error))):
        return cast(ChatModel, offer.make(FIELDS, name, settings))


def find_model(name: str) -> Offer | None:
    """Return what offers a model: by its name, or by the provider that its name begins with."""
    offers = plugins()
    head, colon, _ = name.partition(":")
    provider = head.strip().lower().replace("-", "_")
    return offers.find("models", name) or (offers.find("models", provider) if colon else None)


def provider_model(name: str, settings: Settings) -> ChatModel:
    """Return a model of a provider that the core knows, of a configured server, or of LangChain. Raises
    ModelUnavailable."""
    provider, model = split_name(name, settings)
    row = ROWS.get(provider)
    if provider in LOCAL_SERVERS and not _is_installed(provider):
        return _openai_model(name, model, f"http://127.0.0.1:{LOCAL_SERVERS[provider]}/v1", None, settings)
    if provider == "openai" and settings.base_url:
        return _openai_model(name, model, settings.base_url, key_for(settings.base_url, settings), settings)
    if provider == OWN or (row is not None and not row.addresses and row.port is None):
        raise ModelUnavailable(model=name, reason=_NOT_CONNECTED)
    key = _key(name, provider, settings)
    if provider == "anthropic" and key is not None:
        return _anthropic_model(name, model, key, settings)
    if provider == "openai" and not needs_responses(model):
        return _openai_model(name, model, address_of(provider, settings), key, settings)
    if row is not None and provider != "openai" and not _is_installed(provider):
        url = address_of(provider, settings) + row.api_path
        return _openai_model(name, model, url, key, settings, reports_usage=row.reports_usage)
    return _langchain_model(name, provider, model, key, settings)


def _openai_model(
    name: str, model: str, url: str, key: SecretStr | None, settings: Settings, *, reports_usage: bool = True
) -> ChatModel:
    """Return a model of OpenAI or a compatible server: several take only `max_tokens`, and silently ignore
    `max_completion_tokens`."""
    from longthread.llm import openai
    from longthread.llm.http import Endpoint

    is_openai = (urlsplit(url).hostname or "").endswith((".openai.com", ".openai.azure.com"))
    headers = openai.bearer(name, key.get_secret_value() if key else openai.NO_KEY)
    return openai.OpenAIModel(
        model,
        Endpoint(_join_path(url, openai.PATH), headers, settings.timeout, settings.max_reply_mb * 1024 * 1024),
        max_tokens=settings.max_tokens,
        temperature=settings.temperature,
        limit_name="max_completion_tokens" if is_openai else "max_tokens",
        reports_usage=reports_usage and (settings.stream_usage or is_openai),
        is_openai=is_openai,
        is_near=is_near(url),
        window=window_of(model),
    )


def _anthropic_model(name: str, model: str, key: SecretStr, settings: Settings) -> ChatModel:
    from longthread.llm import anthropic
    from longthread.llm.http import Endpoint, header_value

    url = _join_path(address_of("anthropic", settings), anthropic.PATH)
    headers = {"x-api-key": header_value(name, key.get_secret_value()), "anthropic-version": anthropic.VERSION}
    endpoint = Endpoint(url, headers, settings.timeout, settings.max_reply_mb * 1024 * 1024)
    return anthropic.AnthropicModel(model, endpoint, settings.max_tokens, settings.temperature, window_of(model))


def _langchain_model(name: str, provider: str, model: str, key: SecretStr | None, settings: Settings) -> ChatModel:
    def make_unavailable(error: Exception) -> ModelUnavailable:
        reason = _missing_package(error) if isinstance(error, ImportError) else first_line(error)
        return ModelUnavailable(model=name, reason=reason)

    with constructor_errors(make_unavailable):
        from longthread.llm.langchain import langchain_model

        return langchain_model(model, provider, _options(provider, settings), key, settings)


def _missing_package(error: ImportError) -> str:
    if importlib.util.find_spec("langchain") is not None:
        return first_line(error)  # which names the provider's own package
    return f"Its package is not installed: `{install_command('langchain')}`."


def _is_installed(provider: str) -> bool:
    """Return whether LangChain has its package for a provider. Without one, the core speaks to it."""
    return all(importlib.util.find_spec(package) is not None for package in ("langchain", f"langchain_{provider}"))


def context_window(model: ChatModel, settings: Settings | None = None) -> int:
    """Return the tokens of one call: MEMORY_CONTEXT_WINDOW, else what is known of the model, else 32,000."""
    if settings is not None and settings.memory_context_window > 0:
        return settings.memory_context_window
    return model.window or DEFAULT_WINDOW


def reply_limit(model: ChatModel, settings: Settings) -> int:
    """Return the most tokens of a reply: the model's own limit, else LLM_MAX_TOKENS."""
    return model.max_tokens or settings.max_tokens


def supports_tools(model: ChatModel) -> bool:
    """Return whether to try native tool calls: True unless the model is known not to have them."""
    return model.tool_calling is not False


def refuses_tools(error: BaseException) -> bool:
    """Return whether an error says that this model or server has no tool calls."""
    status = getattr(error, "status_code", None)
    return (status is None or status >= 400) and bool(_TOOLS_REFUSED.search(str(error)))


def _join_path(base_url: str, path: str) -> str:
    """The address of a path below a base, which may have a query, as for a key."""
    parts = urlsplit(base_url)
    return urlunsplit(parts._replace(path=parts.path.rstrip("/") + path))


def retryable(error: BaseException) -> bool:
    """Return whether the same call may succeed later; not if the request was refused, such as for a wrong key."""
    if not isinstance(error, Exception):
        return False
    status = status_of(error)
    if status is not None:
        return status >= 500 or status in _TRANSIENT or status < 400
    return not isinstance(error, BadRequest)


def failure_reason(error: BaseException, settings: Settings, own: Mapping[str, str] = NOT_OWN) -> str:
    """Explain a provider's error in a sentence or two: what it said, and what to do.

    `settings` are those of the call, and `own` the fields of its agent's config that override some of them.
    """
    if isinstance(error, TimedOut):
        raised = setting_name("timeout", "LLM_TIMEOUT", own)
        return f"No answer within {settings.timeout:g} s. Raise {raised}, or use a faster model."
    if isinstance(error, ConnectionBroken):
        named = f", and {variable} right" if (variable := _base_url_of(error.address, settings)) else ""
        return f"The connection to {error.address or 'the provider'} failed or broke. Is the server running{named}?"
    hint = _HINTS.get(status_of(error) or 0, "")
    return f"{_read_message(error)} {hint}".strip()


def _base_url_of(address: str, settings: Settings) -> str:
    """The variable that an address comes from; empty for an address of ours."""
    from longthread.llm.http import Endpoint

    urls = {"LLM_BASE_URL": settings.base_url}
    urls |= {row.address_variable: row.own_address(settings) for row in ROWS.values()}
    return next((name for name, url in urls.items() if url and address.startswith(Endpoint(url).address)), "")


def setting_name(setting: str, variable: str, own: Mapping[str, str]) -> str:
    """Say where the value of a setting comes from: the agent's config, else a variable."""
    return f"`{own[setting]}` of the agent" if setting in own else variable


def _read_message(error: BaseException) -> str:
    body = getattr(error, "body", None)
    said = body.get("message") if isinstance(body, Mapping) else None
    return f"{said.strip().rstrip('.')}." if isinstance(said, str) and said.strip() else first_line(error)


def _options(provider: str, settings: Settings) -> dict[str, Any]:
    options: dict[str, Any] = {"max_retries": 0, "timeout": settings.timeout}
    if settings.temperature is not None:
        options["temperature"] = settings.temperature
    if provider == "ollama":
        options = {"client_kwargs": {"timeout": options.pop("timeout")}, **options}
        del options["max_retries"]
    row = ROWS.get(provider)
    options["max_tokens" if row is None else row.limit_option] = settings.max_tokens
    if provider == "openai":
        options["base_url"] = address_of(provider, settings)  # else its package asks the environment
    return options


def _key(name: str, provider: str, settings: Settings) -> SecretStr | None:
    """Return the key that was given for the provider's address. Raises ModelUnavailable: it needs one."""
    address = address_of(provider, settings)
    key = key_for(address, settings)
    row = ROWS.get(provider)
    if key is None and row is not None and row.addresses and (row.key_variable or not _is_installed(provider)):
        variable = row.key_variable or "LLM_API_KEY, beside LONGTHREAD_MODEL,"
        reason = f"It needs a key: enter it on the page, or set {variable} in the environment or in .env."
        if settings.api_key is not None:
            reason += " LLM_API_KEY only goes to LLM_BASE_URL, or else to the provider of LONGTHREAD_MODEL."
        raise ModelUnavailable(model=name, reason=reason)
    return key


class ModelSummarizer:
    """Writes with a chat model. A reply has at most `max_tokens` if given, else the model's own limit."""

    def __init__(
        self, name: str, model: ChatModel, *, topics_only: bool = False, max_tokens: int | None = None
    ) -> None:
        self.name = name
        self.topics_only = topics_only
        self._model = model
        self._options = CallOptions(max_tokens=max_tokens)

    async def write(self, instructions: str, text: str) -> str:
        """Return the model's reply to the text, cut if it is too long for it. Raises whatever the provider raises."""

        async def ask(shown: str) -> str:
            messages = [Message("system", instructions), Message("user", shown)]
            about = describe_model(self.name, asked=self._model.name, address=self._model.address)
            with span("chat", self._model.name, about) as begun:
                reply = await reply_of(self._model, messages, options=self._options)
                usage = reply.usage_metadata or {}
                begun.note(describe_usage(usage.get("input_tokens"), usage.get("output_tokens")))
            return reply.text

        return await asked_in_room(ask, text)


def summarizer_of(name: str, model: ChatModel, protocol: Protocol) -> Summarizer | None:
    """Return the model as a summarizer; None for the demo model, which only answers questions.

    A small model, which speaks *sql*, only names topics: it wrote of a count of all customers that they are in Germany.
    The digest has each query with its rows."""
    return None if name == DEMO else ModelSummarizer(name, model, topics_only=protocol == "sql")
