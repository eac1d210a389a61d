"""Runs that a server executes, as a terminal shows them."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from longthread.cli.remote.client import ServerAnswer, ServerClient, at
from longthread.cli.remote.logins import is_loopback
from longthread.cli.remote.run_stream import EventReader, read_outcome
from longthread.cli.run_host import AskOptions
from longthread.cli.terminal import Terminal
from longthread.errors import (
    InvalidInput,
    NothingToStop,
    OptionNotOnServer,
    RunNotExecuted,
    ServerUnreachable,
    ThreadNotFound,
)
from longthread.model.ids import new_id
from longthread.model.run import HALTS, Decision, Event

_TAKEN_OVER_SECONDS = 30.0
"""How long a run may have no process, until another one goes on with it."""
_AGAIN_SECONDS = 1.0


class ServerRun:
    """A run of a server, from its event `after` on."""

    def __init__(self, client: ServerClient, thread_id: str, run_id: str, *, after: int = 0) -> None:
        self.thread_id = thread_id
        self.model = ""
        self._client = client
        self._run_id = run_id
        self._after = after

    async def events(self) -> AsyncIterator[Event]:
        """Yield the run's events up to the one that ends it, or the one that it waits.

        Raises:
            RunNotExecuted: its process is gone, and no other one goes on with it.
        """
        reader = EventReader(self.thread_id, self._run_id, has_started=bool(self._after))
        place, seen = str(self._after or ""), time.monotonic()
        path = at(self.thread_id, "runs", self._run_id, "events")
        last: Event | None = None
        while last is None:
            try:
                async with aclosing(self._client.events(path, after=place)) as stream:
                    async for new_place, sent in stream:
                        event = reader.read(new_place, sent)
                        place, seen = new_place or place, time.monotonic()
                        if event is not None and event.type in HALTS:
                            last = event  # it comes when the connection is closed: the caller may leave with it
                            break
                        if event is not None:
                            yield event
            except RunNotExecuted:
                if time.monotonic() - seen > _TAKEN_OVER_SECONDS:
                    raise
                await asyncio.sleep(_AGAIN_SECONDS)
        yield last

    async def stop(self) -> None:
        """Stop the run."""
        await self._client.send("POST", at(self.thread_id, "stop"), query={"run_id": self._run_id})


class ServerRunHost:
    """The runs of the user that a server knows the key of."""

    def __init__(self, client: ServerClient) -> None:
        self._client = client

    async def find_thread(self, given: str) -> str:
        """The id of the thread that a person means."""
        return str(await self._client.find_thread(given))

    async def find_thread_to_ask(self, given: str | None, *, may_be_new: bool) -> str | None:
        """The same for a question. Where the server has a source of its own, it may begin a thread."""
        try:
            return await self._client.find_thread(given, may_be_new=may_be_new)
        except ThreadNotFound:
            if given == "last" or (await self._client.get("/api/sources"))["default"] is None:
                raise
            return given

    async def ask(self, question: str, how: AskOptions) -> ServerRun:
        """Put a question on a thread. It is asked once, whatever becomes of the connection."""
        self._expect_source_there(how.source)
        body = {"question": question, **_without_none(how)}
        key = {"Idempotency-Key": new_id()}
        try:
            begun = await self._client.send("POST", "/api/chat", body, headers=key)
        except ServerUnreachable:  # it may have been asked: under its key it is not asked twice
            await asyncio.sleep(_AGAIN_SECONDS)
            begun = await self._client.send("POST", "/api/chat", body, headers=key)
        return ServerRun(self._client, begun["thread_id"], begun["run_id"])

    async def resume(self, thread_id: str, how: AskOptions) -> ServerRun:
        """Go on with a thread's unfinished run. An interrupted one keeps its id: what it did before is not shown."""
        self._expect_source_there(how.source)
        last = await self._read_last_run(thread_id)
        body = _without_none(replace(how, protocol="auto"))
        del body["protocol"]
        begun = await self._client.send("POST", at(thread_id, "resume"), body)
        return self._continue(last, begun)

    async def list_pending(self, thread_id: str) -> Sequence[Mapping[str, Any]]:
        """The calls of a thread that wait for a decision."""
        pending: list[ServerAnswer] = (await self._client.get(at(thread_id, "approvals")))["pending"]
        return pending

    async def say_why_none_waits(self, thread_id: str) -> str:
        """What a person can do if no call waits; empty if nothing."""
        found = await self._client.get("/api/chat/history", thread_id=thread_id, limit=1)
        run = found["run"] or {}
        if run.get("status") == "interrupted" and run.get("approvals"):
            return f"Its run was interrupted when its process died: `longthread resume {thread_id}` goes on with it."
        return ""

    async def decide(
        self, thread_id: str, decisions: Mapping[str, Decision], *, source: str | None = None, model: str | None = None
    ) -> ServerRun | None:
        """Decide about calls, by their ids. None while other calls wait."""
        for option, value in (("--source", source), ("--model", model)):
            if value is not None:
                raise OptionNotOnServer(option=option)
        last = await self._read_last_run(thread_id)
        body = {"decisions": {call_id: _describe_decision(each) for call_id, each in decisions.items()}}
        answer = await self._client.send("POST", at(thread_id, "approvals"), body)
        return self._continue(last, answer) if "events" in answer else None

    async def list_waiting_below(self, thread_id: str) -> Sequence[str]:
        """The threads below a thread with calls that wait."""
        found = await self._client.get("/api/chat/history", thread_id=thread_id, limit=1)
        return [each["id"] for each in found["waiting_below"]]

    async def stop(self, thread_id: str) -> Sequence[Event]:
        """Stop a thread's run. Returns the event that ended it; none while another process of the server stops it."""
        last = await self._read_last_run(thread_id)
        if last.get("status") not in {"running", "waiting", "interrupted"}:
            raise NothingToStop(thread=thread_id)
        run = (await self._client.send("POST", at(thread_id, "stop")))["run"]
        made = read_outcome({"status": run["status"], **run["outcome"]}) if run else None
        if made is None:
            return ()
        return [Event(thread_id, run["id"], run["last_event_seq"], *made, datetime.now(UTC))]

    async def finish(self, terminal: Terminal) -> None:
        """Nothing is left to do: the server writes its summaries itself."""

    async def _read_last_run(self, thread_id: str) -> ServerAnswer:
        found = await self._client.get("/api/chat/history", thread_id=thread_id, limit=1)
        return found["run"] or {}

    def _continue(self, last: ServerAnswer, begun: ServerAnswer) -> ServerRun:
        """Return the run that goes on, after what it has done before."""
        after = last["last_event_seq"] if last.get("id") == begun["run_id"] else 0
        return ServerRun(self._client, begun["thread_id"], begun["run_id"], after=after)

    def _expect_source_there(self, source: str | None) -> None:
        """Raise InvalidInput where a source is a file of this machine, which another one cannot read."""
        host = urlsplit(self._client.login.address).hostname or ""
        if source is None or is_loopback(host) or not Path(source).exists():
            return
        where = self._client.login.address
        reason = f"{source} is a file of this machine, which {where} cannot read. Upload it there, or give --local."
        raise InvalidInput(reason=reason)


def _without_none(how: AskOptions) -> ServerAnswer:
    given = {name: getattr(how, name) for name in ("thread_id", "source", "model", "protocol", "max_steps", "agent")}
    return {name: value for name, value in given.items() if value is not None}


def _describe_decision(decision: Decision) -> ServerAnswer:
    if decision.type == "edit":
        return {"type": "edit", "edited_action": {"args": dict(decision.args)}}
    if decision.type == "reject":
        return {"type": "reject", "message": decision.message}
    return {"type": "approve"}
