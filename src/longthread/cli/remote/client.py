"""The API of a Longthread server: requests, and the errors of its answers as the errors that commands raise.

No redirect is followed: the key goes to the address that it was given for.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Iterator, Mapping
from contextlib import aclosing, contextmanager
from typing import Any, BinaryIO, Self, TypeVar
from urllib.parse import quote, urlsplit

import httpx

from longthread import __version__, errors
from longthread.cli.remote.logins import ServerLogin
from longthread.errors import (
    InvalidInput,
    LongthreadError,
    ServerAnswerInvalid,
    ServerKeyRefused,
    ServerProblem,
    ServerUnreachable,
    ThreadNotFound,
)

T = TypeVar("T")
ServerAnswer = dict[str, Any]

_CONNECT_SECONDS = 10.0
_READ_SECONDS = 120.0
_SILENT_SECONDS = 45.0
"""The longest silence of a stream. The server sends a comment every 15 seconds."""
_AWAY_SECONDS = 120.0
"""How long a stream may be gone."""
_AGAIN_SECONDS = 1.0
LARGEST_ANSWER = 256 * 2**20
"""Bytes of an answer in JSON, or of one event."""
_PAGE = 200
_MOST_PAGES = 50
"""Pages of conversations that are looked through for the beginning of an id."""


class ServerClient:
    """A client of one server. Use as a context manager."""

    def __init__(self, login: ServerLogin) -> None:
        self.login = login
        headers = {"User-Agent": f"longthread/{__version__}"}
        if login.key:
            headers["Authorization"] = f"Bearer {login.key}"
        self._client = httpx.AsyncClient(
            base_url=login.address,
            headers=headers,
            timeout=httpx.Timeout(_READ_SECONDS, connect=_CONNECT_SECONDS),
            follow_redirects=False,
            trust_env=urlsplit(login.address).scheme == "https",  # a proxy could read what is not encrypted
        )

    async def __aenter__(self) -> Self:
        await self._client.__aenter__()
        return self

    async def __aexit__(self, *raised: Any) -> None:
        await self._client.__aexit__(*raised)

    async def get(self, path: str, **query: Any) -> ServerAnswer:
        """Ask for something. Values of None are left out of the query."""
        return await self.send("GET", path, query=query)

    async def send(
        self,
        method: str,
        path: str,
        body: Mapping[str, Any] | None = None,
        *,
        query: Mapping[str, Any] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> ServerAnswer:
        """Send a request and return the answer; empty for one without a body.

        Raises:
            LongthreadError: the server's problem, as the error that it describes.
            ServerUnreachable, ServerAnswerInvalid, ServerKeyRefused.
        """
        with self._connection_errors():
            async with self._client.stream(method, path, json=body, params=_query(query), headers=headers) as answer:
                data = await self._read(answer)
        if answer.status_code == 204:
            return {}
        found = self._parse(answer, data)
        if answer.is_success:
            return found
        raise self._error(answer.status_code, found)

    async def download(self, path: str, to: BinaryIO, **query: Any) -> None:
        """Write the file that a path answers with."""
        with self._connection_errors():
            async with self._client.stream("GET", path, params=_query(query)) as answer:
                if not answer.is_success:
                    raise self._error(answer.status_code, self._parse(answer, await self._read(answer)))
                async for piece in answer.aiter_bytes():
                    await asyncio.to_thread(to.write, piece)

    async def events(self, path: str, after: str = "") -> AsyncGenerator[tuple[str, ServerAnswer]]:
        """Yield the events of a stream with their ids, those after the id `after`. A connection that breaks is made
        again, and nothing comes twice. The caller leaves after the last event.

        Raises:
            ServerUnreachable: the server is gone for long.
        """
        seen = time.monotonic()
        while True:
            try:
                async with aclosing(self._events_once(path, after)) as events:
                    async for place, event in events:
                        after, seen = place or after, time.monotonic()
                        yield place, event
            except ServerUnreachable:
                if time.monotonic() - seen > _AWAY_SECONDS:
                    raise
            else:
                if time.monotonic() - seen > _AWAY_SECONDS:
                    raise ServerUnreachable(server=self.login.address, reason="the stream of the run ends at once.")
            await asyncio.sleep(_AGAIN_SECONDS)

    async def _events_once(self, path: str, after: str) -> AsyncGenerator[tuple[str, ServerAnswer]]:
        headers = {"Accept": "text/event-stream", **({"Last-Event-ID": after} if after else {})}
        timeout = httpx.Timeout(_SILENT_SECONDS, connect=_CONNECT_SECONDS)
        with self._connection_errors():
            async with self._client.stream("GET", path, headers=headers, timeout=timeout) as answer:
                if not answer.is_success:
                    raise self._error(answer.status_code, self._parse(answer, await self._read(answer)))
                async with aclosing(_read_frames(answer.aiter_bytes(), self._too_large)) as frames:
                    async for place, data in frames:
                        yield place, self._parse(answer, data)

    async def find_thread(self, given: str | None, *, may_be_new: bool = False) -> str | None:
        """The id of the conversation that a person means by an id, the beginning of one, or `last`; as
        `longthread.cli.options.find_thread`.

        Raises:
            ThreadNotFound: there is none like it, and it is not to be made.
            InvalidInput: several begin like that.
        """
        if given is None:
            return None
        if not given.strip():
            reason = "The name of the thread is empty. Give an id, the beginning of one, or last."
            raise InvalidInput(reason=reason)
        if given == "last":
            listed = (await self.get("/api/conversations", limit=1, archived="include"))["conversations"]
            if not listed:
                raise ThreadNotFound(thread=given)
            return str(listed[0]["id"])
        if may_be_new or await self._has_thread(given):
            return given
        return await self._find_beginning(given)

    async def _has_thread(self, thread_id: str) -> bool:
        try:
            await self.get("/api/chat/history", thread_id=thread_id, limit=1)
        except ThreadNotFound:
            return False
        return True

    async def _find_beginning(self, given: str) -> str:
        found, cursor = list[str](), None
        for _ in range(_MOST_PAGES):
            page = await self.get("/api/conversations", limit=_PAGE, cursor=cursor, children="true", archived="include")
            found += [each["id"] for each in page["conversations"] if each["id"].startswith(given)]
            cursor = page["next_cursor"]
            if len(found) > 1:
                raise InvalidInput(reason=f"Several threads begin with {given}. Give more of the id.")
            if cursor is None:
                break
        if not found:
            raise ThreadNotFound(thread=given)
        return found[0]

    @contextmanager
    def _connection_errors(self) -> Iterator[None]:
        try:
            yield
        except httpx.TimeoutException as error:
            reason = f"it did not answer in time ({type(error).__name__})."
            raise ServerUnreachable(server=self.login.address, reason=reason) from None
        except (httpx.HTTPError, httpx.InvalidURL, OSError) as error:
            raise ServerUnreachable(
                server=self.login.address, reason=f"{str(error) or type(error).__name__}."
            ) from None

    async def _read(self, answer: httpx.Response) -> bytes:
        read = bytearray()
        async for piece in answer.aiter_bytes():
            read += piece
            if len(read) > LARGEST_ANSWER:
                raise self._too_large()
        return bytes(read)

    def _too_large(self) -> ServerAnswerInvalid:
        return ServerAnswerInvalid(server=self.login.address, reason=f"an answer has over {LARGEST_ANSWER:,} bytes.")

    def _parse(self, answer: httpx.Response, data: bytes) -> ServerAnswer:
        if answer.is_redirect:
            to = urlsplit(answer.headers.get("location", ""))
            where = f"{to.scheme}://{to.netloc}" if to.netloc else "another path"
            reason = f"it leads on to {where}, where the key is not sent. Log in there, if that is your server."
            raise ServerAnswerInvalid(server=self.login.address, reason=reason)
        try:
            found = json.loads(data)
        except (ValueError, RecursionError):
            found = None
        if not isinstance(found, dict):
            reason = f"the answer to {answer.request.url.path} is no JSON object (status {answer.status_code})."
            raise ServerAnswerInvalid(server=self.login.address, reason=reason)
        return found

    def _error(self, status: int, problem: ServerAnswer) -> LongthreadError:
        if status == 401:
            return ServerKeyRefused(server=self.login.address)
        if "code" not in problem:
            reason = f"status {status} without a problem of Longthread's."
            return ServerAnswerInvalid(server=self.login.address, reason=reason)
        return error_of(str(problem["code"]), problem.get("params"), str(problem.get("detail") or problem["code"]))


def error_of(code: str, params: Any, message: str) -> LongthreadError:
    """Return the error of a code, filled with its values; where they do not fill it, one with the server's message."""
    kinds = [kind for name in errors.__all__ if (kind := getattr(errors, name)).code == code]
    for kind in kinds:
        if isinstance(params, dict) and kind.field_types().keys() == params.keys():
            known: LongthreadError = kind(**params)
            return known
    return ServerProblem(reason=message, exit_code=(kinds[0] if kinds else LongthreadError).exit_code, code=code)


def at(*parts: str | int) -> str:
    """Return the path of something of a conversation, by its id and what follows it."""
    return "/".join(["/api/conversations", *(quote(str(each), safe="") for each in parts)])


def work_on_server(login: ServerLogin, work: Callable[[ServerClient], Awaitable[T]]) -> T:
    """Do what a command has to do on a server."""

    async def run() -> T:
        async with ServerClient(login) as client:
            return await work(client)

    return asyncio.run(run())


def _query(given: Mapping[str, Any] | None) -> dict[str, Any] | None:
    return {name: value for name, value in given.items() if value is not None} if given else None


async def _read_frames(
    pieces: AsyncIterator[bytes], too_large: Callable[[], LongthreadError]
) -> AsyncGenerator[tuple[str, bytes]]:
    """Yield the ids and the data of server-sent events. One that breaks off is none."""
    held = b""
    async for piece in pieces:
        *frames, held = (held + piece).split(b"\n\n")
        if len(held) > LARGEST_ANSWER:
            raise too_large()
        for frame in frames:
            fields = dict[bytes, bytes]()
            for line in frame.split(b"\n"):
                name, _, value = line.partition(b":")
                fields[name] = value.removeprefix(b" ")
            if b"data" in fields:
                yield fields.get(b"id", b"").decode("ascii", "replace"), fields[b"data"]
