"""Which models there are: what providers list for a key, and servers on this machine."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit, urlunsplit

import httpx
from pydantic import SecretStr

from longthread.errors import InvalidInput, KeyRefused, ProviderUnreachable
from longthread.llm import anthropic
from longthread.llm.providers import ADDRESSES, LOCAL_SERVERS, OWN, ROWS, is_near, read_provider
from longthread.llm.server_facts import ask_json

PROVIDER_SECONDS = 5.0
LOCAL_SECONDS = 0.5
"""How long a read of a list may take."""
WHOLE_SECONDS = 15.0
"""How long a provider's whole list may take to come."""
_MOST = 1000
_LISTS: Mapping[str, str] = {"anthropic": "/v1/models?limit=1000", "google_genai": "/models?pageSize=1000"}
"""The paths of lists below the providers' addresses; those of others are `/models`."""
_NO_LIST = frozenset({404, 405, 501})
"""What an API without a list answers."""
_ENDINGS = ("/v1", "/v2", "/v3", "/v4")
_SILENT = "It does not answer."
_NO_CHAT = re.compile(r"embed|whisper|tts|dall-e|image|moderation|transcribe|realtime|audio|sora|babbage|davinci|guard")


@dataclass(frozen=True, slots=True)
class LocalServer:
    """A server with an OpenAI-compatible API on this machine, and the names by which its models are asked."""

    kind: str
    url: str
    models: tuple[str, ...]


async def models_of(provider: str, key: SecretStr | None, url: str) -> list[str]:
    """Return the models that a provider or server lists for a key, which was given for its address, as they are asked;
    so it tells whether the key is right. No token is used. Of a vendor's models, those that are for chat. An API
    may have no list.

    Raises:
        KeyRefused: the provider does not take the key.
        ProviderUnreachable: it does not answer, or not with a list.
    """
    listed = await _ask_list(provider, key, url)
    if isinstance(listed, int):
        if listed in _NO_LIST:
            return []
        raise ProviderUnreachable(provider=provider, reason=f"It answers {listed}.")
    return listed


async def find_models(provider: str, key: SecretStr | None, given: str) -> tuple[str, list[str] | None]:
    """Return the base URL of an API at or below an address that a person gives, and its models; None: it answers, and
    has no list. Raises InvalidInput, KeyRefused, ProviderUnreachable."""
    url = read_address(given)
    if urlsplit(url).path.endswith(_ENDINGS) or provider in ADDRESSES:
        places = [url]
    else:
        places = [f"{url}/openai/v1"] if provider == "azure" else [url, f"{url}/v1"]
    unlisted: ProviderUnreachable | None = None
    for place in places:
        try:
            listed = await _ask_list(provider, key, place)
        except ProviderUnreachable as error:
            if error.reason == _SILENT:
                raise
            unlisted = error
            continue
        if isinstance(listed, list):
            return place, listed
        if listed not in _NO_LIST:
            unlisted = ProviderUnreachable(provider=provider, reason=f"It answers {listed}.")
    if unlisted is not None:
        raise unlisted
    return places[-1], None


def read_address(text: str) -> str:
    """Return the base URL in what a person gives: `gpu:8000`, `http://gpu:8000/v1/`, or the address of a list or of
    questions. Raises InvalidInput."""
    text = text.strip()
    try:
        if "://" not in text:
            text = f"http://{text}" if is_near(f"http://{text}") else f"https://{text}"
        parts = urlsplit(text)
        wrong = parts.scheme not in {"http", "https"} or not parts.hostname or parts.port == 0
        httpx.URL(text)  # which takes fewer names of hosts
    except (ValueError, httpx.InvalidURL):
        wrong = True
    if wrong or not text.isprintable() or " " in text:
        raise InvalidInput(reason="This is no address of a server. Give one such as http://localhost:11434/v1.")
    if parts.username is not None or parts.password is not None or parts.query or parts.fragment:
        raise InvalidInput(
            reason="The address has a user, a password or a query. Give it without, and the key in its own field."
        )
    path = parts.path.rstrip("/")
    for ending in ("/chat/completions", "/models"):
        path = path.removesuffix(ending)
    return urlunsplit(parts._replace(path=path.rstrip("/")))


async def _ask_list(provider: str, key: SecretStr | None, url: str) -> list[str] | int:
    """Return the models that an address lists, or the status of its refusal. Raises as `models_of` does."""
    url, secret = url + _LISTS.get(provider, "/models"), key.get_secret_value() if key is not None else ""
    if provider == "anthropic":
        headers = {"x-api-key": secret, "anthropic-version": anthropic.VERSION}
    else:
        headers = {"x-goog-api-key": secret} if provider == "google_genai" else {"authorization": f"Bearer {secret}"}
    if key is None:
        headers = {}
    else:
        expect_key(provider, key)
    try:
        # httpx's limit is of one read, and there may be many. No proxy reaches this machine or network.
        async with (
            httpx.AsyncClient(timeout=PROVIDER_SECONDS, trust_env=not is_near(url)) as client,
            asyncio.timeout(WHOLE_SECONDS),
        ):
            listed = await _listed(client, url, headers)
    except (httpx.HTTPError, httpx.InvalidURL, ValueError, RecursionError, TimeoutError) as error:
        raise ProviderUnreachable(provider=provider, reason=_reason(error)) from error
    if isinstance(listed, int):
        if listed in {401, 403} or (listed == 400 and provider in ROWS):  # Google says 400 of a wrong key
            raise KeyRefused(provider=provider, reason=f"it answers {listed}.")
        return listed
    return _asked_as(provider, listed)


def _asked_as(provider: str, names: Sequence[str]) -> list[str]:
    """Return the names by which models are asked. All models of a server of one's own are; `own` without a name is the
    one of LLM_BASE_URL."""
    if provider == OWN:
        return [f"openai:{name}" if read_provider(name) else name for name in names]
    if provider not in ROWS:
        return [f"{provider}/{name}" for name in names]
    if provider == "google_genai":
        names = [name.removeprefix("models/") for name in names]
    return [f"{provider}:{name}" for name in names if _NO_CHAT.search(name) is None]


def expect_key(provider: str, key: SecretStr) -> None:
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
    except (httpx.HTTPError, ValueError, RecursionError, TimeoutError):
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
    if isinstance(answer, dict) and items is None and "data" in answer:
        return []  # Ollama without a model
    if not isinstance(items, list):
        raise ValueError("The answer is no list of models.")
    told = [item.get("id", item.get("name")) for item in items[:_MOST] if isinstance(item, dict)]
    names = (name for name in told if isinstance(name, str))
    return sorted({name for name in names if 0 < len(name) <= 150 and name.isprintable()})


def _reason(error: Exception) -> str:
    """What happened, without what the request held."""
    return _SILENT if isinstance(error, httpx.HTTPError | TimeoutError) else "It answers something else."
