"""LangChain's chat models, by name (`init_chat_model`) or from an application, as ours."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Iterable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import replace
from functools import partial
from typing import Any, TypeVar
from urllib.parse import urlsplit

from langchain.chat_models import init_chat_model
from langchain.embeddings import init_embeddings
from langchain_core.embeddings import Embeddings
from langchain_core.exceptions import ModelError
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessageChunk
from pydantic import SecretStr

from longthread.errors.base import convert_errors
from longthread.llm.chat import PLAIN, CallOptions, Chunk, ToolSpec
from longthread.llm.failures import (
    AuthenticationFailed,
    BadRequest,
    ConnectionBroken,
    ProviderError,
    ServerFailed,
    StreamTruncated,
    TimedOut,
    error_of,
    names_secret,
    retry_after,
    status_of,
    without_secrets,
)
from longthread.llm.http import Endpoint, classify_error
from longthread.llm.providers import address_of, keys_for_others
from longthread.messages.chat_completions import tool_specs
from longthread.messages.fields import as_json
from longthread.messages.langchain import all_to_langchain, from_langchain
from longthread.messages.message import CallPieces, Message, read_calls
from longthread.settings import Settings

LIMITS = ("max_tokens", "max_completion_tokens", "max_output_tokens", "num_predict")
"""The fields of chat models for the most tokens of a reply."""
_NAMES = ("model_name", "model", "model_id")
_ADDRESSES = (
    *("openai_api_base", "azure_endpoint", "anthropic_api_url", "groq_api_base"),
    *("api_base", "base_url", "endpoint", "endpoint_url"),
)
"""The fields of chat models for the address of their server."""
_SILENT = frozenset({"thinking", "reasoning"})
_Made = TypeVar("_Made")


def langchain_model(
    model: str, provider: str, options: Mapping[str, Any], key: SecretStr | None, settings: Settings
) -> LangChainModel:
    """Return the model of this name from the provider's package. Raises as `_with_own_key` does."""
    make = partial(init_chat_model, model, model_provider=provider, **options)
    return LangChainModel(_with_own_key(make, provider, key, settings))


def langchain_embeddings(model: str, provider: str, key: SecretStr | None, settings: Settings) -> Embeddings:
    """Return the embedding model of this name from the provider's package. Raises as `_with_own_key` does."""
    return _with_own_key(partial(init_embeddings, model, provider=provider), provider, key, settings)


def _with_own_key(make: Callable[..., _Made], provider: str, key: SecretStr | None, settings: Settings) -> _Made:
    """Make a provider's model with its key. A class may look for keys in the environment: those of others stay unsent.

    Raises:
        ImportError: its package is not installed.
        AuthenticationFailed: it has a key that was given for another provider.
        Exception: whatever its class raises.
    """
    made = make() if key is None else make(api_key=key.get_secret_value())
    own = set() if key is None else {key.get_secret_value()}
    if _secrets_of(made) & (keys_for_others(address_of(provider, settings), settings) - own):
        reason = f"It would send {provider} a key that was given for another provider: set a key of {provider}'s own."
        raise AuthenticationFailed(reason)
    return made


def _secrets_of(made: object) -> set[str]:
    """What an object of LangChain's holds as a secret, or as a plain text under the name of one: its key."""
    held = {name: getattr(made, name, None) for name in getattr(type(made), "model_fields", ())}
    told = {each.get_secret_value() for each in held.values() if isinstance(each, SecretStr)}
    told |= {each for name, each in held.items() if isinstance(each, str) and names_secret(name)}
    return {each.strip() for each in told}


class LangChainModel:
    def __init__(self, model: BaseChatModel) -> None:
        self.langchain = model

    @property
    def name(self) -> str:
        named = (getattr(self.langchain, name, None) for name in _NAMES)
        return next((name for name in named if isinstance(name, str) and name), self.langchain._llm_type)

    @property
    def address(self) -> str:
        """Its server's address, if its class has one; else the class of its provider."""
        for name in _ADDRESSES:
            url = getattr(self.langchain, name, None)
            if isinstance(url, str) and urlsplit(url).hostname:
                return Endpoint(url).address.rstrip("/")
        return self.langchain._llm_type

    @property
    def window(self) -> int | None:
        known = (self.langchain.profile or {}).get("max_input_tokens")
        return known if isinstance(known, int) and known > 0 else None

    @property
    def tool_calling(self) -> bool | None:
        return (self.langchain.profile or {}).get("tool_calling")

    @property
    def max_tokens(self) -> int | None:
        limits = [self._beside.get("max_tokens"), *(getattr(self.langchain, name, None) for name in LIMITS)]
        return next((limit for limit in limits if isinstance(limit, int) and limit > 0), None)

    @property
    def _beside(self) -> Mapping[str, Any]:
        return getattr(self.langchain, "extra_body", None) or {}

    @property
    def secrets(self) -> set[str]:
        return _secrets_of(self.langchain)

    async def stream(
        self, messages: Sequence[Message], tools: Sequence[ToolSpec] = (), options: CallOptions = PLAIN
    ) -> AsyncGenerator[Chunk]:
        whole: Any = None
        with convert_errors(self._translate_error, keep=ProviderError):
            model = self._bind_tools(tools, options)
            async with aclosing(model.astream(all_to_langchain(messages), **self._options(options))) as chunks:
                async for chunk in chunks:
                    whole = chunk if whole is None else whole + chunk
                    piece = Chunk(str(chunk.text), _thinking(chunk))
                    if piece.text or piece.thinking:
                        yield piece
        if whole is None:
            raise StreamTruncated("The reply ended before it began.")
        yield Chunk(message=message_of(whole))

    async def close(self) -> None:
        """LangChain's classes look after their connections themselves."""

    def _translate_error(self, error: Exception) -> ProviderError:
        return without_secrets(translate_error(error), self.secrets)

    def _bind_tools(self, tools: Sequence[ToolSpec], options: CallOptions) -> Any:
        if not tools:
            return self.langchain
        try:
            return self.langchain.bind_tools(tool_specs(tools), tool_choice=options.tool_choice)
        except NotImplementedError as error:
            raise BadRequest(f"{self.name} does not support tools.", status_code=400) from error

    def _options(self, options: CallOptions) -> dict[str, Any]:
        stop = {"stop": list(options.stop)} if options.stop else {}
        limit = options.max_tokens
        if not limit or self.max_tokens is None:
            return stop
        if "max_tokens" in self._beside:
            return stop | {"extra_body": {**self._beside, "max_tokens": limit}}
        return stop | ({"max_tokens": limit} if isinstance(getattr(self.langchain, "max_tokens", None), int) else {})


def message_of(whole: Any) -> Message:
    """Convert a reply that was joined from its chunks.

    Its calls are parsed again from their raw arguments: LangChain completes half a JSON, and half a query gives a wrong
    answer that looks right.
    """
    chunks = whole.tool_call_chunks if isinstance(whole, AIMessageChunk) else ()
    message = from_langchain(whole)
    told = message.response_metadata
    reason = next((told[key] for key in ("finish_reason", "stop_reason", "done_reason") if told.get(key)), None)
    fields: dict[str, Any] = {
        "content": as_json(message.content),
        "additional_kwargs": as_json(message.additional_kwargs),
        "response_metadata": as_json(told | ({"finish_reason": reason} if reason else {})),
        "usage_metadata": _plain(message.usage_metadata) if message.usage_metadata else None,
    }
    if chunks:
        fields["tool_calls"], fields["invalid_tool_calls"] = read_calls(
            [CallPieces(chunk["id"], chunk["name"] or "", [chunk["args"] or ""]) for chunk in chunks]
        )
    return replace(message, **fields)


def _plain(value: Mapping[str, Any]) -> dict[str, Any]:
    return {key: dict(each) if isinstance(each, Mapping) else each for key, each in value.items()}


def _thinking(chunk: Any) -> str:
    blocks: Iterable[Any] = chunk.content if isinstance(chunk.content, list) else ()
    told = (block.get(block["type"]) for block in blocks if isinstance(block, dict) and block.get("type") in _SILENT)
    return "".join(each for each in told if isinstance(each, str))


def translate_error(error: Exception) -> ProviderError:
    """Convert what a provider's client raised to one of our errors."""
    body = getattr(error, "body", None)
    said = body.get("message") if isinstance(body, Mapping) else None
    message = said if isinstance(said, str) and said.strip() else str(error) or type(error).__name__
    if (status := status_of(error)) is not None:
        headers = getattr(getattr(error, "response", None), "headers", None) or {}
        found = error_of(status, message, body, headers)
    else:
        found = _kind(error)(message, body=body, retry_after=retry_after({}))
    found.__cause__ = error
    return classify_error(found)


def _kind(error: Exception) -> type[ProviderError]:
    """Classify an error without a status by the names of its classes."""
    names = " ".join(kind.__name__ for kind in type(error).__mro__)
    if "Timeout" in names:
        return TimedOut
    if any(name in names for name in ("ConnectionError", "ConnectError", "ProtocolError", "ReadError")):
        return ConnectionBroken
    return BadRequest if isinstance(error, ModelError) and not error.is_retryable else ServerFailed
