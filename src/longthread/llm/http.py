"""Requests to a provider: JSON goes out, server-sent events or JSON come back, and whatever fails is a typed error."""

from __future__ import annotations

import json
import ssl
from collections.abc import AsyncGenerator, AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any
from urllib.parse import urlsplit

import httpx

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

DONE = "[DONE]"
"""The data of the event that OpenAI's streams end with."""
_SAID = 1_000
"""Characters of a reply that is no JSON which are told."""
_STREAM = "text/event-stream"
# What an error in the middle of a stream is called, and the status that it would have had.
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


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Where a provider takes requests. `timeout` is in seconds: for the connection, and for each piece of a reply."""

    url: str
    headers: Mapping[str, str] = field(default_factory=dict)
    timeout: float = 60.0

    @property
    def address(self) -> str:
        """The URL without what may be secret in it."""
        parts = urlsplit(self.url)
        port = f":{parts.port}" if parts.port else ""
        return f"{parts.scheme}://{parts.hostname}{port}{parts.path}"

    async def events(self, body: Mapping[str, Any]) -> AsyncGenerator[dict[str, Any]]:
        """The data of each event of a streamed reply, until the provider's `[DONE]` or the end.

        The one object of a server that does not stream comes as one event, under `whole`.

        Raises:
            ProviderError: the provider refuses, is not there, or breaks off.
        """
        began = False
        try:
            async with self._sent(body) as response:
                if _STREAM not in response.headers.get("content-type", ""):
                    yield {"whole": _told(read_json(await response.aread()))}
                    return
                async for data in _event_data(response.aiter_bytes()):
                    if data.strip() == DONE:
                        yield {"done": True}
                        return
                    began = True
                    yield _told(read_json(data))
        except httpx.HTTPError as error:
            raise _broken(error, began=began) from error

    async def answer(self, body: Mapping[str, Any]) -> Any:
        """The JSON of a reply that is not streamed.

        Raises:
            ProviderError: as `events` does.
        """
        try:
            async with self._sent(body) as response:
                return read_json(await response.aread())
        except httpx.HTTPError as error:
            raise _broken(error, began=False) from error

    @asynccontextmanager
    async def _sent(self, body: Mapping[str, Any]) -> AsyncIterator[httpx.Response]:
        # A client for each call: one that is kept would belong to one event loop, and nobody would close it.
        content = json.dumps(body, ensure_ascii=False).encode("utf-8", "replace")
        headers = {"content-type": "application/json", **self.headers}
        async with (
            httpx.AsyncClient(verify=_certificates(), timeout=self.timeout) as client,
            client.stream("POST", self.url, content=content, headers=headers) as response,
        ):
            if not response.is_success:
                raise refusal(response.status_code, await response.aread(), response.headers)
            yield response


def header_value(name: str, key: str) -> str:
    """A key as a header can hold it.

    Raises:
        ModelUnavailable: it has letters that no key has; `name` is the model's.
    """
    key = key.strip()
    if not (key.isascii() and key.isprintable()):
        raise ModelUnavailable(model=name, reason="Its key has letters that no key has: was something else pasted?")
    return key


@lru_cache(maxsize=1)
def _certificates() -> ssl.SSLContext:
    """Those that are trusted. To read them takes longer than all the rest of a call."""
    return httpx.create_ssl_context()


async def _event_data(pieces: AsyncIterator[bytes]) -> AsyncIterator[str]:
    """The data of server-sent events. Lines end at line feeds alone: JSON may hold what Python calls a line break."""
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
    """The value that a provider sent; NaN and infinities, which are no JSON, are texts.

    Raises:
        ServerFailed: it sent something else.
    """
    try:
        return json.loads(text, parse_constant=str)
    except (ValueError, RecursionError) as error:
        shown = text if isinstance(text, str) else text.decode("utf-8", "replace")
        raise ServerFailed(f"The server sent what is no JSON: {shown.strip()[:_SAID]}") from error


def _told(event: Any) -> dict[str, Any]:
    """An event that is no error."""
    if not isinstance(event, dict):
        raise ServerFailed(f"The server sent an event that is no object: {str(event)[:_SAID]}")
    if error := event.get("error"):
        message, body = _said(event)
        raise typed(error_of(_status_in(error), message, body))
    return event


def refusal(status: int, raw: bytes, headers: Mapping[str, str]) -> ProviderError:
    """The error that a reply other than a success stands for."""
    text = raw.decode("utf-8", "replace")
    try:
        message, body = _said(json.loads(text))
    except (ValueError, RecursionError):
        message, body = text.strip()[:_SAID], None
    return typed(error_of(status, message or f"The provider answered with status {status}.", body, headers))


def typed(error: ProviderError) -> ProviderError:
    """The same error, or `ContextOverflow` where it is about the size of what was sent."""
    if overflow_of(error) is None:
        return error
    return ContextOverflow(str(error), status_code=error.status_code, retry_after=error.retry_after, body=error.body)


def _said(body: Any) -> tuple[str, Any]:
    """The words of an error, in the forms of OpenAI, Anthropic, Google, Ollama and vLLM, and the object they are in."""
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


def _broken(error: httpx.HTTPError, *, began: bool) -> ProviderError:
    said = str(error) or type(error).__name__
    if isinstance(error, httpx.TimeoutException):
        return TimedOut(said)
    return StreamTruncated(f"The reply broke off: {said}") if began else ConnectionBroken(f"Connection error: {said}")
