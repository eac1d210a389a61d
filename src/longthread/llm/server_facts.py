"""What servers and providers tell: whether they answer, their models, and a model's context window.

Ollama, llama.cpp and LM Studio tell the window at paths of their own, vLLM and others in their list of models. They
are asked where the model is asked, with the same headers: no key goes elsewhere.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit, urlunsplit

import httpx
from pydantic import SecretStr

from longthread.errors import InvalidInput, KeyRefused, ProviderUnreachable
from longthread.llm import anthropic, openai
from longthread.llm.chat import ChatModel
from longthread.llm.http import certificates
from longthread.llm.providers import LOCAL_SERVERS, OWN, ROWS, is_near, read_provider

LARGEST = 4 * 2**20
"""Bytes of an answer."""
NEAR_SECONDS, FAR_SECONDS = 1.0, 3.0
"""How long one read of an answer may take, on this network and elsewhere; a whole answer may take twice that."""
_SMALLEST_WINDOW, _LARGEST_WINDOW = 128, 100_000_000
"""Tokens that a window may have; any other number is something else."""
_UNLOADED = 4_096
"""Tokens that Ollama and LM Studio take for a model without a configured window."""
_FIELDS = ("max_model_len", "context_length", "context_window", "max_context_length")
"""The window in lists of models: vLLM and SGLang, OpenRouter and Together, Groq, Mistral."""
_NUM_CTX = re.compile(r"^num_ctx\s+(\d{1,9})\s*$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class ServerWindow:
    """The context window of a model in `tokens`, as its `server` tells. A model that is not in memory (`is_loaded`)
    gets so many if nothing else is set: its server is asked again when it is."""

    tokens: int
    is_loaded: bool = True
    server: str = ""


@dataclass(frozen=True, slots=True)
class ServerFacts:
    """What an address answers. `status` is that of its list of models; None: nothing answers there. `models` are the
    names in that list; None: it has none. `server` is the kind of server, if it is one of a known kind."""

    address: str
    status: int | None
    models: tuple[str, ...] | None = None
    window: ServerWindow | None = None
    server: str = ""


@dataclass(frozen=True, slots=True)
class _Place:
    """The parts of a model's URL, its path as far as all the server's own paths share it, and the headers."""

    model: str
    url: str
    list_path: str
    headers: Mapping[str, str]
    is_near: bool

    def at(self, path: str) -> str:
        parts = urlsplit(self.url)
        return urlunsplit(parts._replace(path=parts.path + path))


async def ask_server(model: ChatModel) -> ServerFacts | None:
    """Return what a model's server tells; None: the model has no address that could be asked. Servers elsewhere are
    asked for their list alone."""
    place = _place_of(model)
    if place is None:
        return None
    seconds = NEAR_SECONDS if place.is_near else FAR_SECONDS
    async with httpx.AsyncClient(timeout=seconds, verify=certificates()) as client:
        own = (_of_ollama, _of_llama_cpp, _of_lm_studio) if place.is_near else ()
        listed = asyncio.create_task(_list_of(client, place, 2 * seconds))
        windows = await asyncio.gather(*(_in_time(ask(client, place), 2 * seconds) for ask in own))
        status, items = await listed
    told = [each for each in windows if isinstance(each, ServerWindow)]
    server = next((each if isinstance(each, str) else each.server for each in windows if each is not None), "")
    if (tokens := _in_list(items, place.model)) is not None:
        told.append(ServerWindow(tokens, server=server))
    # A server that tells two means the smaller; one that is not loaded yet knows less.
    window = min(told, key=lambda each: (not each.is_loaded, each.tokens), default=None)
    names = None if items is None else tuple(name for item in items if isinstance(name := item.get("id"), str))
    return ServerFacts(model.address, status, names, window, server)


def is_listed(name: str, models: tuple[str, ...]) -> bool:
    """Return whether a list names a model; Ollama adds `:latest` to a name without a tag."""
    return bool({name, f"{name}:latest"} & set(models))


def _place_of(model: ChatModel) -> _Place | None:
    list_path, headers = "/models", dict[str, str]()
    if isinstance(model, openai.OpenAIModel):
        url, headers = model.endpoint.url, dict(model.endpoint.headers)
    elif isinstance(model, anthropic.AnthropicModel):
        url, headers, list_path = model.endpoint.url, dict(model.endpoint.headers), "/v1/models"
    elif urlsplit(model.address).hostname and is_near(model.address):
        url = model.address
    else:
        return None
    parts = urlsplit(url)
    path = parts.path.removesuffix(anthropic.PATH).removesuffix(openai.PATH).rstrip("/")
    if path.endswith("/v1"):
        path, list_path = path.removesuffix("/v1"), f"/v1{list_path}"
    return _Place(model.name, urlunsplit(parts._replace(path=path)), list_path, headers, is_near(url))


async def ask_json(
    client: httpx.AsyncClient, url: str, headers: Mapping[str, str], body: Mapping[str, Any] | None = None
) -> Any:
    """Return the JSON of an answer of at most `LARGEST` bytes, or the status of a refusal, an int. Raises ValueError:
    it is no JSON, or longer; httpx.HTTPError."""
    method = "GET" if body is None else "POST"
    async with client.stream(method, url, headers=dict(headers), json=body) as response:
        if not response.is_success:
            return response.status_code
        content = b""
        async for piece in response.aiter_bytes():
            content += piece
            if len(content) > LARGEST:
                raise ValueError("The answer is too long.")
    return json.loads(content)


async def _in_time(asking: Any, seconds: float) -> Any:
    try:
        async with asyncio.timeout(seconds):
            return await asking
    except (httpx.HTTPError, ValueError, RecursionError, TimeoutError):
        return None


async def _list_of(client: httpx.AsyncClient, place: _Place, seconds: float) -> tuple[int | None, list[Any] | None]:
    """Return the status of the list of models and its items; a server may have none."""
    try:
        async with asyncio.timeout(seconds):
            answer = await ask_json(client, place.at(place.list_path), place.headers)
    except (ValueError, RecursionError):
        return 200, None
    except (httpx.HTTPError, TimeoutError):
        return None, None
    if isinstance(answer, int):
        return answer, None
    return 200, _items(answer, "data")


def _items(answer: Any, name: str) -> list[Any] | None:
    """Return the objects of a list in an answer; None: it has no such list."""
    items = answer.get(name) if isinstance(answer, dict) else None
    return [item for item in items if isinstance(item, dict)] if isinstance(items, list) else None


def _tokens(value: Any) -> int | None:
    whole = isinstance(value, int) and not isinstance(value, bool)
    return value if whole and _SMALLEST_WINDOW <= value <= _LARGEST_WINDOW else None


def _in_list(items: list[Any] | None, name: str) -> int | None:
    """Return the window that a list of models tells of one; a server of a single model takes any name for it."""
    item = _find_named(items or [], name) or (items[0] if items and len(items) == 1 else {})
    meta = item.get("meta")
    found = [_tokens(meta.get("n_ctx"))] if isinstance(meta, dict) else []
    return min(filter(None, [*found, *(_tokens(item.get(field)) for field in _FIELDS)]), default=None)


def _find_named(items: list[Any], name: str) -> dict[str, Any] | None:
    wanted = {name, f"{name}:latest"}
    return next((item for item in items if wanted & {item.get("id"), item.get("name"), item.get("model")}), None)


async def _of_ollama(client: httpx.AsyncClient, place: _Place) -> ServerWindow | str | None:
    """Return the window of the model that is in memory, else the one that its Modelfile sets; the name of the server
    where it knows none."""
    running = _items(await ask_json(client, place.at("/api/ps"), place.headers), "models")
    if running is None:
        return None
    if tokens := _tokens((_find_named(running, place.model) or {}).get("context_length")):
        return ServerWindow(tokens, server="Ollama")
    shown = await ask_json(client, place.at("/api/show"), place.headers, {"model": place.model})
    if not isinstance(shown, dict):
        return "Ollama"
    about = shown.get("model_info")
    facts = about.items() if isinstance(about, dict) else ()
    trained = next((_tokens(value) for name, value in facts if str(name).endswith(".context_length")), None)
    set_here = _NUM_CTX.search(str(shown.get("parameters") or ""))
    given = _tokens(int(set_here[1])) if set_here else None
    tokens = min(filter(None, [given or _UNLOADED, trained]))
    return ServerWindow(tokens, is_loaded=given is not None, server="Ollama")


async def _of_llama_cpp(client: httpx.AsyncClient, place: _Place) -> ServerWindow | None:
    answer = await ask_json(client, place.at("/props"), place.headers)
    settings = answer.get("default_generation_settings") if isinstance(answer, dict) else None
    tokens = _tokens(settings.get("n_ctx")) if isinstance(settings, dict) else None
    return None if tokens is None else ServerWindow(tokens, server="llama.cpp")


async def _of_lm_studio(client: httpx.AsyncClient, place: _Place) -> ServerWindow | str | None:
    items = _items(await ask_json(client, place.at("/api/v0/models"), place.headers), "data")
    if items is None or not any("max_context_length" in item for item in items):
        return None
    item = _find_named(items, place.model) or {}
    if tokens := _tokens(item.get("loaded_context_length")):
        return ServerWindow(tokens, server="LM Studio")
    if item.get("state") == "loaded" or not (trained := _tokens(item.get("max_context_length"))):
        return "LM Studio"
    return ServerWindow(min(_UNLOADED, trained), is_loaded=False, server="LM Studio")


PROVIDER_SECONDS = 5.0
LOCAL_SECONDS = 0.5
"""How long a read of a list may take."""
WHOLE_SECONDS = 15.0
"""How long a provider's whole list may take to come."""
_MOST_MODELS = 1000
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
    so this checks the key, too. No token is used. Of a vendor's models, only the models for chat are returned. An API
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
    url, row = read_address(given), ROWS.get(provider)
    if urlsplit(url).path.endswith(_ENDINGS) or (row is not None and row.addresses):
        places = [url]
    else:
        places = [url + row.api_path] if row is not None and row.api_path else [url, f"{url}/v1"]
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
    row = ROWS.get(provider)
    url, headers = f"{url}{row.list_path if row is not None else '/models'}", dict[str, str]()
    if key is not None:
        expect_key(provider, key)
        headers = _key_headers(provider, key.get_secret_value())
    try:
        # httpx's limit is of one read, and there may be many. No proxy reaches this machine or network.
        async with (
            httpx.AsyncClient(timeout=PROVIDER_SECONDS, trust_env=not is_near(url)) as client,
            asyncio.timeout(WHOLE_SECONDS),
        ):
            listed = await _list_models(client, url, headers)
    except (httpx.HTTPError, httpx.InvalidURL, ValueError, RecursionError, TimeoutError) as error:
        raise ProviderUnreachable(provider=provider, reason=_reason(error)) from error
    if isinstance(listed, int):
        if listed in {401, 403} or (listed == 400 and provider in ROWS):  # Google says 400 of a wrong key
            raise KeyRefused(provider=provider, reason=f"it answers {listed}.")
        return listed
    return _asked_as(provider, listed)


def _key_headers(provider: str, secret: str) -> dict[str, str]:
    row = ROWS.get(provider)
    headers = {row.key_header: secret} if row is not None and row.key_header else {"authorization": f"Bearer {secret}"}
    return headers | ({"anthropic-version": anthropic.VERSION} if provider == "anthropic" else {})


def _asked_as(provider: str, names: Sequence[str]) -> list[str]:
    """Return the names by which models are asked. All models of a server of one's own are; `own` without a name is the
    one of LLM_BASE_URL."""
    if provider == OWN:
        return [f"openai:{name}" if read_provider(name) else name for name in names]
    row = ROWS.get(provider)
    if row is None:
        return [f"{provider}/{name}" for name in names]
    names = [name.removeprefix(row.list_prefix) for name in names]
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
            listed = await _list_models(client, f"{url}/models", {})
    except (httpx.HTTPError, ValueError, RecursionError, TimeoutError):
        return None
    if isinstance(listed, int) or not listed:
        return None
    return LocalServer(kind, url, tuple(f"{kind}:{name}" for name in listed if _NO_CHAT.search(name) is None))


async def _list_models(client: httpx.AsyncClient, url: str, headers: Mapping[str, str]) -> list[str] | int:
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
    told = [item.get("id", item.get("name")) for item in items[:_MOST_MODELS] if isinstance(item, dict)]
    names = (name for name in told if isinstance(name, str))
    return sorted({name for name in names if 0 < len(name) <= 150 and name.isprintable()})


def _reason(error: Exception) -> str:
    """What happened, without what the request held."""
    return _SILENT if isinstance(error, httpx.HTTPError | TimeoutError) else "It answers something else."
