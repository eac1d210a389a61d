"""Where the runs of a command are executed: in this process, on a store, or by a server."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Protocol

from longthread.cli.options import find_thread
from longthread.cli.server_choice import chosen_server
from longthread.cli.terminal import ShownRun, Terminal, finish_summary
from longthread.model.run import Decision, Event
from longthread.model.run import Protocol as ModelProtocol
from longthread.settings import Settings
from longthread.store import run_events, runs

if TYPE_CHECKING:
    from longthread.runs.analyst import Analyst


@dataclass(frozen=True, slots=True)
class AskOptions:
    """How a question is asked. Once the thread has a source, none need be named."""

    thread_id: str | None = None
    source: str | None = None
    model: str | None = None
    protocol: ModelProtocol = "auto"
    max_steps: int | None = None
    agent: str | None = None


class RunHost(Protocol):
    """Runs of one user: asked for, continued, decided about and stopped. Each raises what the store's raises."""

    async def find_thread(self, given: str) -> str:
        """The id of the thread that a person means."""

    async def find_thread_to_ask(self, given: str | None, *, may_be_new: bool) -> str | None:
        """The same for a question, which may begin a thread; None: none was named."""

    async def ask(self, question: str, how: AskOptions) -> ShownRun:
        """Put a question on a thread."""

    async def resume(self, thread_id: str, how: AskOptions) -> ShownRun:
        """Go on with a thread's unfinished run."""

    async def list_pending(self, thread_id: str) -> Sequence[Mapping[str, Any]]:
        """The calls of a thread that wait for a decision, as they are shown to people."""

    async def say_why_none_waits(self, thread_id: str) -> str:
        """What a person can do if no call waits; empty if nothing."""

    async def decide(
        self, thread_id: str, decisions: Mapping[str, Decision], *, source: str | None = None, model: str | None = None
    ) -> ShownRun | None:
        """Decide about calls, by their ids. None while other calls wait."""

    async def list_waiting_below(self, thread_id: str) -> Sequence[str]:
        """The threads below a thread with calls that wait."""

    async def stop(self, thread_id: str) -> Sequence[Event]:
        """Stop a thread's run. Returns the event that ended it; none where the thread was deleted meanwhile."""

    async def finish(self, terminal: Terminal) -> None:
        """Let what this process has begun be finished."""


@asynccontextmanager
async def open_run_host(settings: Settings, *, creates: bool) -> AsyncIterator[RunHost]:
    """Open the server that was chosen, or the store that the settings name.

    Args:
        creates: a store that is not there is made.
    """
    if (login := chosen_server()) is not None:
        # Here and not above: a command on a store needs no client.
        from longthread.cli.remote.client import ServerClient
        from longthread.cli.remote.run_calls import ServerRunHost

        async with ServerClient(login) as client:
            yield ServerRunHost(client)
        return
    # Here and not above: LangChain takes seconds to load, and most commands need none of it.
    from longthread.runs.analyst import Analyst

    async with Analyst.open(settings, creates=creates) as analyst:
        yield StoreRunHost(analyst)


class StoreRunHost:
    """Runs that this process executes."""

    def __init__(self, analyst: Analyst) -> None:
        self._analyst = analyst
        self._user = analyst.settings.user

    async def find_thread(self, given: str) -> str:
        return str(await find_thread(self._analyst.store, given, user=self._user))

    async def find_thread_to_ask(self, given: str | None, *, may_be_new: bool) -> str | None:
        else_new = self._analyst.settings.source is not None
        return await find_thread(self._analyst.store, given, user=self._user, may_be_new=may_be_new, else_new=else_new)

    async def ask(self, question: str, how: AskOptions) -> ShownRun:
        return await self._analyst.ask(question, user_id=self._user, **asdict(how))

    async def resume(self, thread_id: str, how: AskOptions) -> ShownRun:
        return await self._analyst.runs.resume(
            thread_id, user_id=self._user, source=how.source, model=how.model, max_steps=how.max_steps
        )

    async def list_pending(self, thread_id: str) -> Sequence[Mapping[str, Any]]:
        found = await self._analyst.approvals.pending(thread_id, user_id=self._user)
        return [each.request() for each in found]

    async def say_why_none_waits(self, thread_id: str) -> str:
        return await self._analyst.approvals.why_none_waits(thread_id, user_id=self._user)

    async def decide(
        self, thread_id: str, decisions: Mapping[str, Decision], *, source: str | None = None, model: str | None = None
    ) -> ShownRun | None:
        return await self._analyst.approvals.decide(
            thread_id, decisions, user_id=self._user, source=source, model=model
        )

    async def list_waiting_below(self, thread_id: str) -> Sequence[str]:
        return await self._analyst.approvals.waiting_below(thread_id, user_id=self._user)

    async def stop(self, thread_id: str) -> Sequence[Event]:
        await self._analyst.runs.stop(thread_id, user_id=self._user)
        async with self._analyst.store.reading() as tx:
            run = await runs.last_run(tx, thread_id)
            if run is None:
                return ()  # deleted meanwhile
            last = await run_events.last_event(tx, thread_id, run.id)
            return await run_events.events_after(tx, thread_id, run.id, last - 1)

    async def finish(self, terminal: Terminal) -> None:
        await finish_summary(self._analyst, terminal)
