"""Which chat model a name means, and what that model can do."""

from __future__ import annotations

import importlib.util
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from langchain.chat_models import init_chat_model
from langchain.chat_models.base import _BUILTIN_PROVIDERS
from langchain_core.exceptions import ModelError
from langchain_core.language_models import BaseChatModel
from pydantic import SecretStr

from longthread.errors import ModelUnavailable
from longthread.extras import install_command
from longthread.llm.failures import status_of
from longthread.settings import Settings

DEMO = "demo"
"""The name of the model that needs no key and no network."""
DEFAULT_WINDOW = 32_000
"""Tokens of context that are safe to assume of a model nothing is known about."""

REPLY_LIMITS = ("max_tokens", "max_completion_tokens", "max_output_tokens", "num_predict")
"""What the classes of chat models call the most tokens of a reply."""

_PROVIDERS = frozenset(_BUILTIN_PROVIDERS)
_EXTRAS = {"anthropic": "anthropic", "google_genai": "google", "ollama": "ollama"}
_KEYS = {"openai": "OPENAI_API_KEY", "anthropic": "ANTHROPIC_API_KEY", "google_genai": "GOOGLE_API_KEY"}
_MAX_TOKENS = {"google_genai": "max_output_tokens", "ollama": "num_predict"}
_FAMILIES = {"gpt-": "openai", "o1": "openai", "o3": "openai", "claude": "anthropic", "gemini": "google_genai"}
_HINTS = {
    401: "Check the key: LLM_API_KEY with a base URL, else the provider's own, such as OPENAI_API_KEY.",
    403: "The key does not allow this model: use another key or another model.",
    404: "Check the model's name, and that LLM_BASE_URL ends as the server wants it (mostly `/v1`).",
    429: "The provider's limit is reached: wait, or use another model.",
}
_KNOWN = "openai, anthropic, google_genai, ollama, mistralai, groq, deepseek"
_TRANSIENT = frozenset({408, 409, 429})
"""Statuses below 500 of requests that may succeed when they are sent again as they were."""
_NO_KEY = "not-needed"  # sent to servers of one's own, whose clients insist on some key
_TOOLS_REFUSED = re.compile(
    r"not support (?:tool|function)|(?:tool|function)[ _-]?(?:call|calling|use|choice|s)?\b.{0,40}not supported"
    r"|support tool use|requires --enable-auto-tool-choice|requires --jinja",
    re.IGNORECASE | re.DOTALL,
)


@dataclass(frozen=True, slots=True)
class RunModels:
    """The model of a run, the one that takes over when it fails, and how often to try each again."""

    name: str
    model: BaseChatModel
    fallback: BaseChatModel | None = None
    retries: int = 0

    @property
    def all(self) -> list[BaseChatModel]:
        """Those that may be asked."""
        return [self.model] if self.fallback is None else [self.model, self.fallback]


def model_name(name: str | None, settings: Settings) -> str:
    """The model that is meant: `name`, else the configured one, else the demo model."""
    return name or settings.model or DEMO


def resolve_model(name: str | None, settings: Settings) -> BaseChatModel:
    """The chat model for `name`: `demo`, `provider:model`, or a bare model name.

    With a base URL configured, a name without a provider's prefix is a model of that OpenAI-compatible server, and so
    is `openai:…`. The model does not retry by itself: the run does.

    Raises:
        ModelUnavailable: its package or its key is missing, or the name says too little.
    """
    name = model_name(name, settings)
    if name == DEMO:
        # Here and not above: its word lists take time to load, and a run with a real model never needs them.
        from longthread.demo.chat import DemoChatModel

        return DemoChatModel()
    provider, model = _split(name, settings)
    options = _options(name, provider, settings)
    try:
        made: BaseChatModel = init_chat_model(model, model_provider=provider, **options)
    except ImportError as error:
        raise ModelUnavailable(model=name, reason=_missing_package(provider, error)) from error
    except Exception as error:  # each provider's class raises what it likes while it is made
        raise ModelUnavailable(model=name, reason=_first_line(error)) from error
    return made


def _missing_package(provider: str, error: ImportError) -> str:
    extra = _EXTRAS.get(provider)
    if extra is not None and not _installed(provider):
        return f"Its package is not installed: `{install_command(extra)}`."
    return _first_line(error)


def _installed(provider: str) -> bool:
    """Whether the provider's package is there; a module of a missing package is not looked for."""
    package = _BUILTIN_PROVIDERS[provider][0].partition(".")[0]
    return importlib.util.find_spec(package) is not None


def _first_line(error: BaseException) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return f"{(lines or [type(error).__name__])[0].rstrip('.')}."


def context_window(model: BaseChatModel, settings: Settings | None = None) -> int:
    """How many tokens fit into one call: MEMORY_CONTEXT_WINDOW, else what is known of the model, else 32,000."""
    if settings is not None and settings.memory_context_window > 0:
        return settings.memory_context_window
    known = _profile(model).get("max_input_tokens")
    return known if isinstance(known, int) and known > 0 else DEFAULT_WINDOW


def name_of(model: BaseChatModel) -> str:
    """What a chat model is called."""
    named = (getattr(model, name, None) for name in ("model_name", "model", "model_id"))
    return next((name for name in named if isinstance(name, str) and name), model._llm_type)


def reply_limit(model: BaseChatModel, settings: Settings) -> int:
    """The most tokens that a model's replies may have: as it was made, else LLM_MAX_TOKENS."""
    limits = (getattr(model, name, None) for name in REPLY_LIMITS)
    return first_limit([_beside(model).get("max_tokens"), *limits]) or settings.max_tokens


def limited_reply(model: BaseChatModel, tokens: int) -> dict[str, Any]:
    """Settings of a call by which a model's reply has so many tokens at most; none where it has no limit."""
    if _beside(model):
        return {"extra_body": {**_beside(model), "max_tokens": tokens}}
    return {"max_tokens": tokens} if first_limit([getattr(model, "max_tokens", None)]) else {}


def _beside(model: BaseChatModel) -> dict[str, Any]:
    """What a server is told beside what OpenAI knows, where that limits its replies: many know `max_tokens` alone."""
    told: dict[str, Any] = getattr(model, "extra_body", None) or {}
    return told if "max_tokens" in told else {}


def first_limit(limits: Iterable[Any]) -> int | None:
    """The first of these that is one."""
    return next((limit for limit in limits if isinstance(limit, int) and limit > 0), None)


def supports_tools(model: BaseChatModel) -> bool:
    """Whether native tool calls are worth a try: all models but those known not to have them."""
    return _profile(model).get("tool_calling") is not False


def refuses_tools(error: BaseException) -> bool:
    """Whether a provider's error says that this model, or this server, has no tool calling."""
    status = getattr(error, "status_code", None)
    return (status is None or status >= 400) and bool(_TOOLS_REFUSED.search(str(error)))


def retryable(error: BaseException) -> bool:
    """Whether the same call may succeed later: not when the provider refused what was sent, such as a wrong key."""
    if not isinstance(error, Exception):
        return False
    status = status_of(error)
    if status is not None:
        return status >= 500 or status in _TRANSIENT or status < 400
    return error.is_retryable if isinstance(error, ModelError) else True


def failure_reason(error: BaseException, settings: Settings) -> str:
    """A provider's error as a sentence or two: what it said, and what to do."""
    kinds = " ".join(kind.__name__ for kind in type(error).__mro__)
    if "Timeout" in kinds:
        return f"No answer within {settings.timeout:g} s. Raise LLM_TIMEOUT, or use a faster model."
    if "ConnectionError" in kinds or "ConnectError" in kinds:
        where = settings.base_url or "the provider"
        return f"The connection to {where} failed or broke. Is the server running, and LLM_BASE_URL right?"
    hint = _HINTS.get(status_of(error) or 0, "")
    return f"{_said(error)} {hint}".strip()


def _said(error: BaseException) -> str:
    """The provider's own words, without the SDK's wrapping."""
    body = getattr(error, "body", None)
    said = body.get("message") if isinstance(body, Mapping) else None
    return f"{said.strip().rstrip('.')}." if isinstance(said, str) and said.strip() else _first_line(error)


def _profile(model: BaseChatModel) -> Mapping[str, Any]:
    return model.profile or {}


def _split(name: str, settings: Settings) -> tuple[str, str]:
    """Provider and model. A colon may belong to the model: `qwen2.5:7b` names no provider."""
    head, colon, tail = name.partition(":")
    provider = head.replace("-", "_").lower()
    if colon and provider in _PROVIDERS:
        if not tail:
            raise ModelUnavailable(model=name, reason=f"After `{head}:` comes the name of a model.")
        return provider, tail
    if settings.base_url:
        return "openai", name
    family = next((family for family in _FAMILIES if name.startswith(family)), None)
    if family:
        return _FAMILIES[family], name
    server = "set LLM_BASE_URL, as in http://localhost:11434/v1"
    if colon:
        reason = (
            f"There is no provider `{head}`. Known are {_KNOWN} and more. For a server's model of this name, {server}."
        )
    else:
        reason = (
            "Name the provider too, as in `openai:gpt-5` or `anthropic:claude-sonnet-4-5`; "
            f"for an OpenAI-compatible server (Ollama, vLLM, LM Studio) {server}."
        )
    raise ModelUnavailable(model=name, reason=reason)


def _is_own_server(provider: str, settings: Settings) -> bool:
    return provider == "openai" and settings.base_url is not None


def _options(name: str, provider: str, settings: Settings) -> dict[str, Any]:
    """What the provider's class is made with."""
    options: dict[str, Any] = {"max_retries": 0, "timeout": settings.timeout}
    if settings.temperature is not None:
        options["temperature"] = settings.temperature
    if provider == "ollama":
        options = {"client_kwargs": {"timeout": options.pop("timeout")}, **options}
        del options["max_retries"]
    if _is_own_server(provider, settings):
        options |= _server_options(settings)
    else:
        options[_MAX_TOKENS.get(provider, "max_tokens")] = settings.max_tokens
    key = _key(name, provider, settings)
    if key is not None:
        options["api_key"] = key
    return options


def _server_options(settings: Settings) -> dict[str, Any]:
    """Options for an OpenAI-compatible server, which knows less than OpenAI does.

    It speaks chat completions and not the newer Responses API; several (Ollama) know `max_tokens` alone and pass over
    `max_completion_tokens` in silence. The usage of a stream must be asked for.
    """
    options: dict[str, Any] = {
        "base_url": settings.base_url,
        "stream_usage": settings.stream_usage,
        "use_responses_api": False,
    }
    host = urlsplit(settings.base_url or "").hostname or ""
    if host.endswith((".openai.com", ".openai.azure.com")):
        return options | {"max_tokens": settings.max_tokens}
    return options | {"extra_body": {"max_tokens": settings.max_tokens}}


def _key(name: str, provider: str, settings: Settings) -> SecretStr | None:
    """The key to send. A provider's own key goes to that provider alone, never to another base URL."""
    if _is_own_server(provider, settings):
        return settings.api_key or SecretStr(_NO_KEY)
    own = {
        "openai": settings.openai_api_key,
        "anthropic": settings.anthropic_api_key,
        "google_genai": settings.google_api_key,
    }
    key = own.get(provider) or (settings.api_key if provider != "ollama" and not settings.base_url else None)
    if key is None and provider in _KEYS and _installed(provider):
        raise ModelUnavailable(
            model=name, reason=f"It needs a key: set {_KEYS[provider]} in the environment or in .env."
        )
    return key
