"""Requests to a provider: JSON goes out, server-sent events or JSON come back, each failure is a typed error."""

from __future__ import annotations

import asyncio
import json
import ssl
from collections.abc import AsyncGenerator, AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager, suppress
from functools import lru_cache
from http.cookiejar import CookieJar, DefaultCookiePolicy
from typing import Any
from urllib.parse import unquote, unquote_plus, urlsplit

import httpx

from longthread.errors import ModelUnavailable
from longthread.llm.failures import (
    ConnectionBroken,
    ContextOverflow,
    ProviderError,
    ReplyTooLong,
    ServerFailed,
    StreamTruncated,
    TimedOut,
    error_of,
    hide_secrets,
    names_secret,
    overflow_of,
    without_secrets,
)
from longthread.telemetry import current_span

DONE = "[DONE]"
"""The data of the event that OpenAI's streams end with."""
_SAID = 1_000
"""Characters of a reply that is no JSON to quote."""
_PUBLIC = frozenset({"anthropic-version", "content-type"})
"""Headers whose values are no secrets."""
_STREAM = "text/event-stream"
_DECODER = json.JSONDecoder(parse_constant=str)
"""Made once: that takes as long as to parse a chunk."""
# The types of errors within a stream, and the HTTP status of each.
_STATUSES = {
    "invalid_request_error": 400,
    "authentication_error": 401,
    "permission_error": 403,
    "not_found_error": 404,
    "request_too_large": 413,
    "rate_limit_error": 429,
    "rate_limit_exceeded": 429,
    "insufficient_quota": 429,
    "timeout_error": 504,
    "overloaded_error": 529,
}


_LIMITS = httpx.Limits(max_connections=None, max_keepalive_connections=32, keepalive_expiry=60)
"""Servers and proxies mostly close a connection that is not used for a minute or more."""
_MB = 1024 * 1024
_ANSWER_SECONDS = 900.0
"""How long an answer may take that is not streamed, whatever comes meanwhile."""
_DRAIN_SECONDS = 0.25
"""How long the end of a stream may take after its last event: a connection is used again only if it was read whole."""


class Endpoint:
    """A provider's endpoint. Connections stay open between calls, until it is closed.

    Args:
        timeout: seconds, for the connection, and for each piece of a reply.
        most: bytes of a reply, whatever is in it.
    """

    def __init__(
        self, url: str, headers: Mapping[str, str] | None = None, timeout: float = 60.0, most: int = 64 * _MB
    ) -> None:
        self.url = url
        self.headers = headers or {}
        self.timeout = timeout
        self.most = most
        self._secrets = _secrets(url, self.headers)
        self._shared: httpx.AsyncClient | None = None
        self._loop: asyncio.AbstractEventLoop | None = None

    @property
    def address(self) -> str:
        """The URL without secrets."""
        parts = urlsplit(self.url)
        port = f":{parts.port}" if parts.port else ""
        return f"{parts.scheme}://{parts.hostname}{port}{parts.path}"

    def events(self, body: Mapping[str, Any]) -> AsyncGenerator[dict[str, Any]]:
        """Yield the data of each event of a streamed reply, until the provider's `[DONE]` or the end.

        A server that does not stream sends one object: it comes as one event, under `whole`. Raises ProviderError: the
        provider refuses, cannot be reached, or breaks off.
        """
        return self._events(_Content(body))

    async def _events(self, content: _Content) -> AsyncGenerator[dict[str, Any]]:
        began = False
        try:
            async with self._post(self._client(), content) as response:
                if _STREAM not in response.headers.get("content-type", ""):
                    yield {"whole": _check_event(self._read(await self._whole(response)))}
                    return
                pieces = self._limit_reply(response)
                async for data in _event_data(pieces):
                    if data.strip() == DONE:
                        await _drain(pieces)
                        yield {"done": True}
                        return
                    began = True
                    yield _check_event(self._read(data))
        except ProviderError as error:
            raise without_secrets(error, self._secrets) from error.__cause__
        except httpx.HTTPError as error:
            raise without_secrets(_classify_http_error(error, self.address, began=began), self._secrets) from error

    async def answer(self, body: Mapping[str, Any]) -> Any:
        """Return the JSON of a reply that is not streamed. Raises ProviderError as `events` does.

        The connection is closed after it: embedders are asked on several event loops, and no code closes them.
        """
        try:
            async with (
                asyncio.timeout(_ANSWER_SECONDS),
                self._new_client() as client,
                self._post(client, _Content(body)) as response,
            ):
                return self._read(await self._whole(response))
        except TimeoutError as error:
            raise TimedOut(f"No whole answer within {_ANSWER_SECONDS:g} s.") from error
        except ProviderError as error:
            raise without_secrets(error, self._secrets) from error.__cause__
        except httpx.HTTPError as error:
            raise without_secrets(_classify_http_error(error, self.address, began=False), self._secrets) from error

    async def close(self) -> None:
        """Close the connections. A later call opens others."""
        if self._shared is not None and self._loop is asyncio.get_running_loop():
            await self._shared.aclose()
        self._shared = None

    @asynccontextmanager
    async def _post(self, client: httpx.AsyncClient, content: _Content) -> AsyncIterator[httpx.Response]:
        headers = {"content-type": "application/json", "content-length": str(content.length), **self.headers}
        headers |= current_span().headers
        async with client.stream("POST", self.url, content=content, headers=headers) as response:
            if not response.is_success:
                said = (await _beginning(response)).decode("utf-8", "replace")
                raise refusal(response.status_code, hide_secrets(said, self._secrets), response.headers)
            yield response

    async def _limit_reply(self, response: httpx.Response) -> AsyncIterator[bytes]:
        """Yield the pieces of a reply. Raises ReplyTooLong."""
        size = 0
        async for piece in response.aiter_bytes():
            size += len(piece)
            if size > self.most:
                told = f"{self.most / _MB:g} MB"
                raise ReplyTooLong(
                    f"The reply is larger than {told}, and was broken off. LLM_MAX_REPLY_MB allows more."
                )
            yield piece

    async def _whole(self, response: httpx.Response) -> bytes:
        return b"".join([piece async for piece in self._limit_reply(response)])

    def _read(self, text: str | bytes) -> Any:
        try:
            return read_json(text)
        except ServerFailed:
            text = text if isinstance(text, str) else text.decode("utf-8", "replace")
            return read_json(
                hide_secrets(text, self._secrets)
            )  # raises: it quotes the beginning, with no half of a key

    def _client(self) -> httpx.AsyncClient:
        """Return the client of this event loop: connections cannot be shared between loops."""
        loop = asyncio.get_running_loop()
        if self._shared is None or self._loop is not loop:
            self._shared, self._loop = self._new_client(), loop
        return self._shared

    def _new_client(self) -> httpx.AsyncClient:
        # Calls of several users share a client: a cookie of one would go with the calls of the others.
        no_cookies = CookieJar(DefaultCookiePolicy(allowed_domains=[]))
        return httpx.AsyncClient(verify=certificates(), timeout=self.timeout, limits=_LIMITS, cookies=no_cookies)


def _secrets(url: str, headers: Mapping[str, str]) -> frozenset[str]:
    """Return what only the provider may see: what headers hold but names of versions, a password, and a key in the
    query, each also as the address writes it."""
    sent = [value.removeprefix("Bearer ").strip() for name, value in headers.items() if name.lower() not in _PUBLIC]
    parts = urlsplit(url)
    pairs = [pair.partition("=") for pair in parts.query.split("&")]
    written = [parts.password or "", *(value for name, _, value in pairs if names_secret(unquote_plus(name)))]
    return frozenset(filter(None, [*sent, *written, *map(unquote_plus, written), *map(unquote, written)]))


def header_value(name: str, key: str) -> str:
    """Return a key as a header can hold it. Raises ModelUnavailable: no key has such characters; `name` is the
    model's."""
    key = key.strip()
    if not (key.isascii() and key.isprintable()):
        raise ModelUnavailable(model=name, reason="Its key has letters that no key has: was something else pasted?")
    return key


@lru_cache(maxsize=1)
def certificates() -> ssl.SSLContext:
    """Load the trusted certificates once: that takes longer than the rest of a call."""
    return httpx.create_ssl_context()


@contextmanager
def decoding() -> Iterator[None]:
    """Raise ServerFailed for a reply of other types than its protocol says."""
    try:
        yield
    except (AttributeError, LookupError, TypeError, ValueError) as error:
        raise ServerFailed(f"The server's reply is not in the form of its protocol: {error}") from error


class _Content(httpx.AsyncByteStream):
    """The JSON of a request. No object holds it once it is sent: the reply may stream for minutes."""

    def __init__(self, body: Mapping[str, Any]) -> None:
        self._content = json.dumps(body, ensure_ascii=False).encode("utf-8", "replace")
        self.length = len(self._content)

    async def __aiter__(self) -> AsyncIterator[bytes]:
        content, self._content = self._content, b""
        yield content


async def _beginning(response: httpx.Response) -> bytes:
    """Return what an error says, as far as anybody reads it."""
    said = b""
    async for piece in response.aiter_bytes():
        said += piece
        if len(said) > _MB:
            break
    return said[:_MB]


async def _drain(pieces: AsyncIterator[bytes]) -> None:
    with suppress(TimeoutError, httpx.HTTPError):  # the connection is then closed instead
        async with asyncio.timeout(_DRAIN_SECONDS):
            async for _ in pieces:
                pass


async def _event_data(pieces: AsyncIterator[bytes]) -> AsyncIterator[str]:
    """Yield the data of server-sent events. Only line feeds end lines: JSON may hold what Python calls a line break."""
    rest, data = b"", list[bytes]()
    async for piece in pieces:
        *lines, rest = (rest + piece).split(b"\n") if b"\n" in piece else (rest + piece,)
        for line in lines:
            if line.rstrip(b"\r"):
                data += _data_of(line)
            elif data:
                yield b"\n".join(data).decode("utf-8", "replace")
                data = []
    data += _data_of(rest)
    if data:
        yield b"\n".join(data).decode("utf-8", "replace")


def _data_of(line: bytes) -> Iterator[bytes]:
    if line.startswith(b"data:"):
        yield line.removeprefix(b"data:").removeprefix(b" ").rstrip(b"\r")


def read_json(text: str | bytes) -> Any:
    """Parse what a provider sent; NaN and infinities become texts. Raises ServerFailed: it is no JSON."""
    try:
        return _DECODER.decode(text) if isinstance(text, str) else json.loads(text, parse_constant=str)
    except (ValueError, RecursionError) as error:
        shown = text if isinstance(text, str) else text.decode("utf-8", "replace")
        raise ServerFailed(f"The server sent what is no JSON: {shown.strip()[:_SAID]}") from error


def _check_event(event: Any) -> dict[str, Any]:
    if not isinstance(event, dict):
        raise ServerFailed(f"The server sent an event that is no object: {str(event)[:_SAID]}")
    if error := event.get("error"):
        message, body = _read_error(event)
        raise classify_error(error_of(_status_in(error), message, body))
    return event


def refusal(status: int, text: str, headers: Mapping[str, str]) -> ProviderError:
    try:
        message, body = _read_error(json.loads(text))
    except (ValueError, RecursionError):
        message, body = text.strip()[:_SAID], None
    return classify_error(error_of(status, message or f"The provider answered with status {status}.", body, headers))


def classify_error(error: ProviderError) -> ProviderError:
    """Return the error as `ContextOverflow` if it is about the size of the request."""
    if overflow_of(error) is None:
        return error
    return ContextOverflow(str(error), status_code=error.status_code, retry_after=error.retry_after, body=error.body)


def _read_error(body: Any) -> tuple[str, Any]:
    """Return the message of an error (OpenAI, Anthropic, Google, Ollama, vLLM) and the object that holds it."""
    body = body[0] if isinstance(body, list) and body else body
    if not isinstance(body, dict):
        return str(body), body
    error = body.get("error", body)
    if not isinstance(error, dict):
        return str(error), {"message": str(error)}
    message = next((error[key] for key in ("message", "detail", "error", "msg") if error.get(key)), None)
    return (message if isinstance(message, str) else json.dumps(message or error, ensure_ascii=False)), error


def _status_in(error: Any) -> int | None:
    told = error if isinstance(error, dict) else {}
    for key in ("code", "status", "status_code"):
        value = told.get(key)
        if isinstance(value, int) and 400 <= value < 600:
            return value
    return _STATUSES.get(str(told.get("type"))) or _STATUSES.get(str(told.get("code")))


def _classify_http_error(error: httpx.HTTPError, address: str, *, began: bool) -> ProviderError:
    said = str(error) or type(error).__name__
    if isinstance(error, httpx.TimeoutException):
        return TimedOut(said)
    kind, what = (StreamTruncated, "The reply broke off") if began else (ConnectionBroken, "Connection error")
    return kind(f"{what}: {said}", address=address)
