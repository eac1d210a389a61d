"""Which models there are: what providers list for a key, and servers on this machine."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import httpx
from pydantic import SecretStr

from longthread.errors import KeyRefused, ProviderUnreachable
from longthread.llm import anthropic
from longthread.llm.provider_keys import KeyProvider
from longthread.llm.providers import LOCAL_SERVERS, address_of
from longthread.llm.server_facts import ask_json
from longthread.settings import Settings

PROVIDER_SECONDS = 5.0
LOCAL_SECONDS = 0.5
"""How long a read of a list may take."""
WHOLE_SECONDS = 15.0
"""How long a provider's whole list may take to come."""
_MOST = 1000
_LISTS: Mapping[str, str] = {"anthropic": "/v1/models?limit=1000", "google_genai": "/models?pageSize=1000"}
"""The paths of lists below the providers' addresses; those of others are `/models`."""
_NO_CHAT = re.compile(r"embed|whisper|tts|dall-e|image|moderation|transcribe|realtime|audio|sora|babbage|davinci|guard")


@dataclass(frozen=True, slots=True)
class LocalServer:
    """A server with an OpenAI-compatible API on this machine, and the names by which its models are asked."""

    kind: str
    url: str
    models: tuple[str, ...]


async def models_of(provider: KeyProvider, key: SecretStr, settings: Settings) -> list[str]:
    """Return the chat models that a provider lists for a key, which was given for it, as they are asked; so it tells
    whether the key is right. No token is used.

    Raises:
        KeyRefused: the provider does not take the key.
        ProviderUnreachable: it does not answer, or not with a list.
    """
    url, secret = address_of(provider, settings) + _LISTS.get(provider, "/models"), key.get_secret_value()
    if provider == "anthropic":
        headers = {"x-api-key": secret, "anthropic-version": anthropic.VERSION}
    else:
        headers = {"x-goog-api-key": secret} if provider == "google_genai" else {"authorization": f"Bearer {secret}"}
    expect_key(provider, key)
    try:
        # httpx's limit is of one read, and there may be many.
        async with httpx.AsyncClient(timeout=PROVIDER_SECONDS) as client, asyncio.timeout(WHOLE_SECONDS):
            listed = await _listed(client, url, headers)
    except (httpx.HTTPError, ValueError, TimeoutError) as error:
        raise ProviderUnreachable(provider=provider, reason=_reason(error)) from error
    if isinstance(listed, int):
        if listed in {400, 401, 403}:  # Google says 400 of a wrong key
            raise KeyRefused(provider=provider, reason=f"it answers {listed}.")
        raise ProviderUnreachable(provider=provider, reason=f"It answers {listed}.")
    return [f"{provider}:{name}" for name in listed if _NO_CHAT.search(name) is None]


def expect_key(provider: KeyProvider, key: SecretStr) -> None:
    """Raise KeyRefused if no header can hold the key."""
    secret = key.get_secret_value()
    if not secret.isascii() or not secret.isprintable():
        raise KeyRefused(provider=provider, reason="it has a line break, or other characters that no key has.")


async def local_servers(ports: Mapping[str, int] = LOCAL_SERVERS) -> list[LocalServer]:
    """Return the servers that answer on this machine, where Ollama, LM Studio, llama.cpp and vLLM listen by default."""
    # No proxy reaches this machine's own loopback.
    async with httpx.AsyncClient(timeout=LOCAL_SECONDS, trust_env=False) as client:
        found = await asyncio.gather(*(_local(client, kind, port) for kind, port in ports.items()))
    return [server for server in found if server is not None]


async def _local(client: httpx.AsyncClient, kind: str, port: int) -> LocalServer | None:
    url = f"http://127.0.0.1:{port}/v1"
    try:
        async with asyncio.timeout(2 * LOCAL_SECONDS):
            listed = await _listed(client, f"{url}/models", {})
    except (httpx.HTTPError, ValueError, TimeoutError):
        return None
    if isinstance(listed, int) or not listed:
        return None
    return LocalServer(kind, url, tuple(f"{kind}:{name}" for name in listed if _NO_CHAT.search(name) is None))


async def _listed(client: httpx.AsyncClient, url: str, headers: Mapping[str, str]) -> list[str] | int:
    """Return the names in a list of models, or the status of a refusal. Raises ValueError: it is no list."""
    answer = await ask_json(client, url, headers)
    return answer if isinstance(answer, int) else _names(answer)


def _names(answer: Any) -> list[str]:
    """Return the names in an answer of OpenAI's form, Anthropic's or Google's."""
    items = answer.get("data", answer.get("models")) if isinstance(answer, dict) else None
    if not isinstance(items, list):
        raise ValueError("The answer is no list of models.")
    told = [item.get("id", item.get("name")) for item in items[:_MOST] if isinstance(item, dict)]
    names = [name.removeprefix("models/") for name in told if isinstance(name, str)]
    return sorted({name for name in names if 0 < len(name) <= 150 and name.isprintable()})


def _reason(error: Exception) -> str:
    """What happened, without what the request held."""
    return "It does not answer." if isinstance(error, httpx.HTTPError | TimeoutError) else "It answers something else."
