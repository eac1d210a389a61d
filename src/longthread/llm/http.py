"""Requests to a provider: JSON goes out, server-sent events or JSON come back, each failure is a typed error."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager, suppress
from typing import Any
from urllib.parse import urlsplit

import aiohttp
from yarl import URL

from longthread.errors import ModelUnavailable
from longthread.llm.failures import (
    ConnectionBroken,
    ContextOverflow,
    ProviderError,
    ServerFailed,
    StreamTruncated,
    TimedOut,
    error_of,
)
from longthread.llm.overflow import overflow_of
from longthread.network import HostOptions

DONE = "[DONE]"
"""The data of the event that OpenAI's streams end with."""
_SAID = 1_000
"""Characters of a reply that is no JSON to quote."""
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


_IDLE_SECONDS = 60
"""Servers and proxies mostly close a connection that is not used for a minute or more."""
_DRAIN_SECONDS = 0.25
"""How long the end of a stream may take after its last event: a connection is used again only if it was read whole."""


class Endpoint:
    """A provider's endpoint. Connections stay open between calls, until it is closed.

    Args:
        timeout: seconds, for the connection, and for each piece of a reply.
    """

    def __init__(self, url: str, headers: Mapping[str, str] | None = None, timeout: float = 60.0) -> None:
        self.url = url
        self.headers = headers or {}
        self.timeout = timeout
        self._options = HostOptions()
        # Connections cannot be shared between event loops.
        self._sessions: dict[asyncio.AbstractEventLoop, aiohttp.ClientSession] = {}

    @property
    def address(self) -> str:
        """The URL without secrets."""
        parts = urlsplit(self.url)
        port = f":{parts.port}" if parts.port else ""
        return f"{parts.scheme}://{parts.hostname}{port}{parts.path}"

    async def events(self, body: Mapping[str, Any]) -> AsyncGenerator[dict[str, Any]]:
        """Yield the data of each event of a streamed reply, until the provider's `[DONE]` or the end.

        A server that does not stream sends one object: it comes as one event, under `whole`. Raises ProviderError: the
        provider refuses, cannot be reached, or breaks off.
        """
        began = False
        try:
            async with self._post(await self._session(), body) as response:
                if _STREAM not in response.headers.get("content-type", ""):
                    yield {"whole": _told(read_json(await response.read()))}
                    return
                parser = EventParser()
                while piece := await response.content.readany():
                    for data in parser.feed(piece):
                        if data.strip() == DONE:
                            await _drain(response)
                            yield {"done": True}
                            return
                        began = True
                        yield _told(read_json(data))
                for data in parser.rest():
                    yield {"done": True} if data.strip() == DONE else _told(read_json(data))
        except (aiohttp.ClientError, OSError) as error:
            raise _broken(error, began=began) from None  # some have a status, which is none of the provider's

    async def answer(self, body: Mapping[str, Any]) -> Any:
        """Return the JSON of a reply that is not streamed. Raises ProviderError as `events` does.

        The connection is closed after it: embedders are asked on several event loops, and nobody closes them.
        """
        try:
            session = self._new_session()
            try:
                async with self._post(session, body) as response:
                    return read_json(await response.read())
            finally:
                await _close(session)
        except (aiohttp.ClientError, OSError) as error:
            raise _broken(error, began=False) from None

    async def close(self) -> None:
        """Close the connections of this event loop, and forget those of loops that have ended. A later call opens
        others."""
        await self._forget_ended()
        if (session := self._sessions.pop(asyncio.get_running_loop(), None)) is not None:
            await _close(session)

    @asynccontextmanager
    async def _post(
        self, session: aiohttp.ClientSession, body: Mapping[str, Any]
    ) -> AsyncIterator[aiohttp.ClientResponse]:
        headers = {"content-type": "application/json", **self.headers}
        url = URL(self.url)
        if url.user is not None:  # which is who asks, then
            headers.pop("authorization", None)
        host = self._options.of(url.scheme, url.host or "", url.port)
        await asyncio.sleep(0)  # a connection that the server has closed meanwhile is found closed
        async with session.post(url, data=_encoded(body), headers=headers, allow_redirects=False, **host) as response:
            if not 200 <= response.status < 300:
                raise refusal(response.status, await response.read(), response.headers)
            yield response

    async def _session(self) -> aiohttp.ClientSession:
        """Return the session of this event loop."""
        loop = asyncio.get_running_loop()
        if loop not in self._sessions:
            await self._forget_ended()
            self._sessions[loop] = self._new_session()
        return self._sessions[loop]

    async def _forget_ended(self) -> None:
        for loop in [each for each in self._sessions if each.is_closed()]:
            await _close(self._sessions.pop(loop))

    def _new_session(self) -> aiohttp.ClientSession:
        return aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=0, keepalive_timeout=_IDLE_SECONDS),
            timeout=aiohttp.ClientTimeout(total=None, connect=self.timeout, sock_read=self.timeout),
            # Calls of several users share a session: a cookie of one would go with the calls of the others.
            cookie_jar=aiohttp.DummyCookieJar(),
        )


def header_value(name: str, key: str) -> str:
    """Return a key as a header can hold it. Raises ModelUnavailable: no key has such characters; `name` is the
    model's."""
    key = key.strip()
    if not (key.isascii() and key.isprintable()):
        raise ModelUnavailable(model=name, reason="Its key has letters that no key has: was something else pasted?")
    return key


@contextmanager
def decoding() -> Iterator[None]:
    """Raise ServerFailed for a reply of other types than its protocol says."""
    try:
        yield
    except (AttributeError, LookupError, TypeError, ValueError) as error:
        raise ServerFailed(f"The server's reply is not in the form of its protocol: {error}") from error


def _encoded(body: Mapping[str, Any]) -> bytes:
    return json.dumps(body, ensure_ascii=False).encode("utf-8", "replace")


async def _close(session: aiohttp.ClientSession) -> None:
    await session.close()
    await asyncio.sleep(0)  # sockets are closed in the loop's next turn


async def _drain(response: aiohttp.ClientResponse) -> None:
    with suppress(TimeoutError, aiohttp.ClientError):  # the connection is then closed instead
        async with asyncio.timeout(_DRAIN_SECONDS):
            while await response.content.readany():
                pass


class EventParser:
    """Reads server-sent events piece by piece. Only line feeds end lines: JSON may hold what Python calls a line
    break."""

    def __init__(self) -> None:
        self._rest = b""
        self._data: list[bytes] = []

    def feed(self, piece: bytes) -> Iterator[str]:
        """Yield the data of each event that has ended."""
        if b"\n" not in piece:
            self._rest += piece
            return
        *lines, self._rest = (self._rest + piece).split(b"\n")
        for line in lines:
            if line.rstrip(b"\r"):
                self._take(line)
            elif self._data:
                yield self._event()

    def rest(self) -> Iterator[str]:
        """Yield the data of an event that the end of the stream ends."""
        self._take(self._rest)
        if self._data:
            yield self._event()

    def _take(self, line: bytes) -> None:
        if line.startswith(b"data:"):
            self._data.append(line.removeprefix(b"data:").removeprefix(b" ").rstrip(b"\r"))

    def _event(self) -> str:
        data, self._data = self._data, []
        return b"\n".join(data).decode("utf-8", "replace")


def read_json(text: str | bytes) -> Any:
    """Parse what a provider sent; NaN and infinities become texts. Raises ServerFailed: it is no JSON."""
    try:
        return _DECODER.decode(text) if isinstance(text, str) else json.loads(text, parse_constant=str)
    except (ValueError, RecursionError) as error:
        shown = text if isinstance(text, str) else text.decode("utf-8", "replace")
        raise ServerFailed(f"The server sent what is no JSON: {shown.strip()[:_SAID]}") from error


def _told(event: Any) -> dict[str, Any]:
    if not isinstance(event, dict):
        raise ServerFailed(f"The server sent an event that is no object: {str(event)[:_SAID]}")
    if error := event.get("error"):
        message, body = _said(event)
        raise typed(error_of(_status_in(error), message, body))
    return event


def refusal(status: int, raw: bytes, headers: Mapping[str, str]) -> ProviderError:
    text = raw.decode("utf-8", "replace")
    try:
        message, body = _said(json.loads(text))
    except (ValueError, RecursionError):
        message, body = text.strip()[:_SAID], None
    return typed(error_of(status, message or f"The provider answered with status {status}.", body, headers))


def typed(error: ProviderError) -> ProviderError:
    """Return the error as `ContextOverflow` if it is about the size of the request."""
    if overflow_of(error) is None:
        return error
    return ContextOverflow(str(error), status_code=error.status_code, retry_after=error.retry_after, body=error.body)


def _said(body: Any) -> tuple[str, Any]:
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


def _broken(error: aiohttp.ClientError | OSError, *, began: bool) -> ProviderError:
    said = str(error) or type(error).__name__
    if isinstance(error, TimeoutError):
        return TimedOut(said)
    return StreamTruncated(f"The reply broke off: {said}") if began else ConnectionBroken(f"Connection error: {said}")
