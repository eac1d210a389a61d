"""One stream for all that a client watches: the user's conversations, waiting approvals, and several runs."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncIterator, Collection, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Any, NamedTuple, Self

from fastapi import APIRouter, Header, Query
from fastapi.responses import StreamingResponse
from pydantic import Field

from longthread.access.principal import Principal
from longthread.errors import InvalidInput, PositionUnknown, RunNotFound, ThreadNotFound
from longthread.runs.hub import Hub, RunPlace
from longthread.server.openapi import EVENTS, problems
from longthread.server.page import AskedLanguage
from longthread.server.requests import EVENT_STREAM, NO_STORE
from longthread.server.routes.conversations import list_conversations
from longthread.server.state import PrincipalDep, ProjectCaller, Served, ServedDep, acting_user
from longthread.server.stream import (
    HEARTBEAT_SECONDS,
    RETRY_MS,
    Encoders,
    Position,
    RunReader,
    UserList,
    encode_interrupted,
)
from longthread.store import runs

MOST_RUNS = 50
"""Of one stream."""
_WAITING_FRAMES = 16
"""Frames that wait for a slow client. More are read again from the store."""

RUN_PATTERN = r"^[^\x00]+/[^/:\x00]+(:([0-9]{1,15}(\.[0-9]{1,6})?)?)?$"
"""A run that a client watches, as `AskedRun` reads it."""
_ASKED = re.compile(r"(?P<thread>.+)/(?P<run>[^/:]+)(?::(?P<read>[0-9.]*))?", re.DOTALL)
_LIST = re.compile(r"[0-9A-Za-z-]{1,40}\.[0-9]{1,15}|")


@dataclass(frozen=True, slots=True)
class AskedRun:
    """A run that a client watches, and how far it has read."""

    place: RunPlace
    read: Position

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read `thread/run` or `thread/run:position`. Raises InvalidInput."""
        found = _ASKED.fullmatch(text)
        if found is None:
            raise InvalidInput(reason="`run` is a thread's id, a slash and a run's id, with or without :POSITION.")
        return cls((found["thread"], found["run"]), Position.parse(found["read"]))


class Positions(NamedTuple):
    """How far a client has read of everything: of the list, and of each run, in the order of the request.

    As an `id:` they are joined by commas, such as `k3v9a0x1.12,7,6.2`.
    """

    listed: str
    runs: tuple[Position, ...]

    @classmethod
    def parse(cls, text: str | None, asked: Sequence[AskedRun]) -> Positions:
        """Read an `id:`; without one, the runs' positions are those of the request. Raises InvalidInput, or
        PositionUnknown for the `id` of a stream of other runs."""
        if not text:
            return cls("", tuple(run.read for run in asked))
        listed, *read = text.split(",")
        if len(read) != len(asked) or _LIST.fullmatch(listed) is None:
            raise PositionUnknown
        return cls(listed, tuple(Position.parse(each) for each in read))

    def __str__(self) -> str:
        return ",".join([self.listed, *map(str, self.runs)])

    def at(self, index: int, position: Position) -> Positions:
        """The positions when run number `index` has been read up to there."""
        return self._replace(runs=(*self.runs[:index], position, *self.runs[index + 1 :]))


class _Frame(NamedTuple):
    """What a source has for the client. `run` is the number of its run, None for the list."""

    run: int | None
    position: Position | str | None
    name: str
    data: str


class UserStream:
    """One client's stream. Each event's `id` holds the positions of all sources, so that all go on where it was cut."""

    def __init__(
        self,
        hub: Hub,
        encoders: Encoders,
        listed: UserList,
        runs: Sequence[RunPlace],
        gone: Collection[RunPlace],
        positions: Positions,
        closing: asyncio.Event,
    ) -> None:
        self._hub = hub
        self._encoders = encoders
        self._list = listed
        self._runs = runs
        self._gone = gone
        self._positions = positions
        self._closing = closing
        self._frames: asyncio.Queue[_Frame] = asyncio.Queue(_WAITING_FRAMES)
        self._came = asyncio.Event()

    async def __aiter__(self) -> AsyncIterator[str]:
        yield f"retry: {RETRY_MS}\n\n"
        sources = [self._read_list(), *(self._read_run(index, run) for index, run in enumerate(self._runs))]
        reading = asyncio.gather(*sources)  # until the server closes
        try:
            while not (reading.done() and self._frames.empty()):
                if self._frames.empty() and not await self._upcoming(reading):
                    yield ": beat\n\n"
                while not self._frames.empty():
                    yield self._write_frame(self._frames.get_nowait())
            reading.result()
        finally:
            reading.cancel()
            await asyncio.gather(reading, return_exceptions=True)

    async def _upcoming(self, reading: asyncio.Future[Any]) -> bool:
        """Wait for a frame, or for the end of all reading; False if neither came for long."""
        self._came.clear()
        came = asyncio.ensure_future(self._came.wait())
        try:
            done, _ = await asyncio.wait(
                {came, reading}, timeout=HEARTBEAT_SECONDS, return_when=asyncio.FIRST_COMPLETED
            )
        finally:
            came.cancel()
        return bool(done)

    async def _put(self, run: int | None, position: Position | str | None, name: str, data: str) -> None:
        await self._frames.put(_Frame(run, position, name, data))
        self._came.set()

    def _write_frame(self, frame: _Frame) -> str:
        if frame.run is None:
            self._positions = self._positions._replace(listed=str(frame.position))
        elif isinstance(frame.position, Position):
            self._positions = self._positions.at(frame.run, frame.position)
        return f"id: {self._positions}\nevent: {frame.name}\ndata: {frame.data}\n\n"

    async def _read_list(self) -> None:
        """Read the list until the server closes."""
        position = self._positions.listed
        while not self._closing.is_set():
            for change in await self._list.after(position):
                if change.number is not None:
                    position = f"{self._list.mark}.{change.number}"
                await self._put(None, position, change.name, change.data)
            await self._list.wait()

    async def _read_run(self, index: int, place: RunPlace) -> None:
        """Read a run until it ends or waits for a person."""
        named = json.dumps({"thread_id": place[0], "run_id": place[1]}, ensure_ascii=False, separators=(",", ":"))
        if place in self._gone:
            await self._put(index, None, "gone", named)
            return
        head = f'{named[:-1]},"event":'
        read = self._positions.runs[index]
        with RunReader(self._hub, self._encoders, place, read, lambda: not self._closing.is_set()) as reader:
            while made := await reader.read():
                for position, data in made:
                    await self._put(index, position, "run", f"{head}{data}}}")
            if not reader.halts and not self._closing.is_set():
                await self._put(index, None, "run", f"{head}{encode_interrupted()}}}")


router = APIRouter(prefix="/api", tags=["events"])

AskedText = Annotated[str, Field(pattern=RUN_PATTERN)]


@router.get("/events", response_class=StreamingResponse, responses=problems(PositionUnknown, reads=True) | EVENTS)
async def user_events(
    served: ServedDep,
    user: ProjectCaller,
    principal: PrincipalDep,
    run: Annotated[list[AskedText], Query(max_length=MOST_RUNS)] = [],  # noqa: B006 - FastAPI copies it
    after: str = "",
    last_event_id: Annotated[str, Header()] = "",
    lang: AskedLanguage = "en",
) -> StreamingResponse:
    """The changes of the user's conversations, the waiting approvals, and the events of each `run` (`THREAD/RUN`, with
    `:POSITION` if some was read), over server-sent events; all from the start or after the `id` last read."""
    asked = [AskedRun.parse(each) for each in run]
    positions = Positions.parse(last_event_id or after, asked)
    places = [each.place for each in asked]
    gone = {place for place in places if not await _is_there(served, principal, place)}
    listed = served.lists.of(user, partial(list_conversations, served, user))
    stream = UserStream(served.analyst.hub, served.encoders[lang], listed, places, gone, positions, served.closing)
    return StreamingResponse(aiter(stream), media_type=EVENT_STREAM, headers=NO_STORE)


async def _is_there(served: Served, principal: Principal, place: RunPlace) -> bool:
    """Whether the caller, or a project of the caller's, has such a run."""
    user = await acting_user(served, principal, place[0])
    async with served.analyst.store.reading() as tx:
        try:
            await runs.run_of_user(tx, *place, user_id=user)
        except (ThreadNotFound, RunNotFound):
            return False
        return True
