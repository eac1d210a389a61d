"""Which agent answers on a thread, with what; and sub-agents: each is a tool, and a call of it a run of its own.

A run that an agent asks for has limits: its depth, its caller, and the model calls left.

A run stores which call it answers. After a crash the repeated call finds its run, and waits for it or takes it over; no
run is started twice.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from hashlib import sha256
from typing import TYPE_CHECKING, Any

from longthread.access.grants import GrantedRights
from longthread.errors import (
    AgentOff,
    AgentOfThread,
    DefinitionAmbiguous,
    DefinitionNotFound,
    InvalidInput,
    LongthreadError,
    NotGranted,
    NothingToResume,
    RunInProgress,
    ThreadNotFound,
)
from longthread.llm.models import RunModels
from longthread.loop_bridge import to_the_end
from longthread.model.catalog import Agent
from longthread.model.memory import ANALYST
from longthread.model.run import Protocol, Run, RunAsker
from longthread.model.semantics import SemanticLayer
from longthread.model.thread import Thread
from longthread.runs.rights import RunRights, granted_names
from longthread.runs.shared import RunHandle, RunServices
from longthread.runs.worker import Hold, may_be_alive
from longthread.settings import Settings
from longthread.store import listing, log, runs
from longthread.store.driver import Driver, Transaction
from longthread.store.runs import Lease
from longthread.tools.arguments import Arguments
from longthread.tools.catalog.role import ANALYST_ROLE, AgentRole, AgentTools, role_named
from longthread.tools.sources import RunSources
from longthread.tools.tool import Observation, Tool, make_failure, make_success, spell_in_pinyin

if TYPE_CHECKING:
    from longthread.runs.services.runs import Runs


@dataclass(frozen=True, slots=True)
class Assignment:
    """What a run works with. `window` is the smaller context window of its models, in tokens; `rights` are those of
    who asked; `metrics` are those of its source; `project` are the instructions of the thread's project."""

    role: AgentRole
    models: RunModels
    sources: RunSources
    agent_tools: AgentTools
    scope: DelegationScope
    window: int
    rights: RunRights
    metrics: SemanticLayer = field(default_factory=SemanticLayer)
    project: str = ""


async def role_for(store: Driver, agent: str | None, thread: Thread | None) -> AgentRole:
    """Return the role of the agent with this name or id; by default the thread's agent, else the analyst.

    Raises:
        DefinitionNotFound: there is no such agent.
        AgentOfThread: the thread is with another agent.
    """
    if agent is None:
        return await _role_of(store, thread) if thread and thread.agent_id else ANALYST_ROLE
    role = await role_named(store, agent)
    if thread is not None and thread.entry_count and (thread.agent_id or ANALYST) != role.agent.id:
        owner = await _role_of(store, thread)
        raise AgentOfThread(thread=thread.id, name=owner.agent.name)
    return ANALYST_ROLE if role.is_analyst else role


async def granted_role(store: Driver, rights: GrantedRights, agent: str | None, thread: Thread | None) -> AgentRole:
    """As `role_for`, for an agent that the asker may use. Raises also NotGranted: the thread's agent is not granted any
    more. A named agent that is not granted is not found, as one that there is not."""
    try:
        role = await role_for(store, agent, thread)
    except (AgentOff, AgentOfThread, DefinitionAmbiguous, DefinitionNotFound):
        if agent is not None and not rights.is_unbounded:
            (await granted_names(store, rights)).one("agent", agent)  # its error names granted agents alone
        raise
    if rights.may_use("agent", role.agent.id, role.agent.name):
        return role
    if agent is not None:
        (await granted_names(store, rights)).one("agent", agent)
    raise NotGranted(use="use", kind="agent", name=role.agent.name)


async def _role_of(store: Driver, thread: Thread) -> AgentRole:
    try:
        return await role_named(store, thread.agent_id or ANALYST)
    except DefinitionNotFound as error:
        if error.kind != "agent":
            raise
        there = "The conversation is with it: apply its definition, with this as its `id`."
        raise DefinitionNotFound(kind="agent", name=thread.agent_id or ANALYST, nearest=there) from error


class Allowance:
    """Model calls that all runs below one share, in any thread and at any depth."""

    def __init__(self, size: int, used: int = 0) -> None:
        self.size = size
        self.left = max(0, size - used)

    def take(self) -> bool:
        """Take one call; False when none is left."""
        if not self.left:
            return False
        self.left -= 1
        return True


@dataclass(frozen=True, slots=True)
class DelegatingCall:
    lease: Lease
    call_id: str


@dataclass(frozen=True, slots=True)
class DelegationScope:
    """The limits of a run. `depth` is how many threads its thread is below. `own` pays for its model calls (None:
    only its own steps count), `below` for those of its sub-agents. `source`, `model` and `protocol` are the
    caller's, for an agent that names none."""

    depth: int
    below: Allowance
    own: Allowance | None = None
    caller: DelegatingCall | None = None
    source: str | None = None
    model: str | None = None
    protocol: Protocol = "auto"

    def for_call(self, caller: DelegatingCall) -> DelegationScope:
        return replace(self, caller=caller)

    def for_sub_agents(self, run: Run, source: str | None) -> DelegationScope:
        """Return the scope of this run's sub-agents; `source` is the run's own, without its password."""
        return DelegationScope(self.depth + 1, self.below, self.below, None, source, run.model, run.protocol)


async def scope_of(
    store: Driver, settings: Settings, thread: Thread | None, goes_on: Run | None = None
) -> DelegationScope:
    """Return the scope of a run that no agent asked for; `goes_on` is one that has begun already."""
    depth, used = 0, 0
    if thread is not None and (thread.parent_id is not None or goes_on is not None):
        async with store.reading() as tx:
            depth = await listing.depth(tx, thread.id)
            if goes_on is not None:
                used = await used_below(tx, thread.id, goes_on.id, levels=settings.max_delegation_depth)
    return DelegationScope(depth, Allowance(settings.max_delegated_steps, used))


async def used_below(tx: Transaction, thread_id: str, run_id: str, *, levels: int) -> int:
    """Count the model calls of the runs below a run, at most `levels` deep."""
    if not levels:
        return 0
    used = 0
    for run in await runs.answers(tx, thread_id, run_id):
        used += sum(step.kind == "model" for step in await runs.steps_of(tx, run))
        used += await used_below(tx, run.thread_id, run.id, levels=levels - 1)
    return used


LONGEST = 64_000
"""Characters of an answer for the caller, as of other tools' results."""
_LONGEST_NAME = 64
_NOT_IN_A_NAME = re.compile(r"[^A-Za-z0-9_-]+")
_LABELS = re.compile(r"\s*\[(q\d+(?:\s*,\s*q\d+)*)\]")
_PARAMETERS = {
    "type": "object",
    "properties": {
        "task": {
            "type": "string",
            "minLength": 1,
            "description": "What to do, with all that the agent must know: it does not see this conversation.",
        },
        "thread_id": {
            "type": "string",
            "description": "To go on with an earlier conversation with it: the thread_id that it answered with.",
        },
    },
    "required": ["task"],
    "additionalProperties": False,
}


class SubAgents:
    """The agents that one run may ask. `scope` limits their runs, without the call that each answers."""

    def __init__(
        self,
        runs_: Runs,
        services: RunServices,
        hold: Hold,
        user_id: str,
        scope: DelegationScope,
        asker: RunAsker | None = None,
    ) -> None:
        self._runs = runs_
        self._asker = asker
        self._services = services
        self._hold = hold
        self._lease = hold.lease
        self._user = user_id
        self._scope = scope
        self._running: dict[str, RunHandle] = {}

    def tools(self, agents: Sequence[Agent], taken: Collection[str]) -> list[Tool]:
        """Return a tool for each agent, with a name that is not taken; none at the greatest depth."""
        if self._scope.depth > self._services.settings.max_delegation_depth:
            return []
        return [self._tool(agent, name) for agent, name in zip(agents, tool_names(agents, taken), strict=True)]

    async def stop(self) -> None:
        for handle in list(self._running.values()):
            await handle.stop()

    def _tool(self, agent: Agent, name: str) -> Tool:
        arguments = Arguments(_PARAMETERS, tool=name)

        async def answer(args: Mapping[str, Any], call_id: str) -> Observation:
            try:
                given = arguments.validate(args)
                run = await self._wait_for_end(agent, given["task"], given.get("thread_id"), call_id)
            except LongthreadError as error:
                return make_failure(error)
            return _build_observation(agent, name, run, self._scope)

        async def call(args: Mapping[str, Any]) -> Observation:
            raise RuntimeError(f"{name} is called by its run")

        about = (agent.description or "").strip() or "Another agent."
        described = f"{agent.name}: an agent. Gives it a task, and returns its answer. {about}"
        return Tool(name, described, _PARAMETERS, call, retry_safe=True, answer=answer, category="agent")

    async def _wait_for_end(self, agent: Agent, task: str, thread_id: str | None, call_id: str) -> Run:
        """Return the run that answers a call once it has ended or waits for a person, in whichever process."""
        begun = False
        while True:
            async with self._services.store.reading() as tx:
                found = [run for run in await runs.answers(tx, *_of(self._lease)) if _answers(run, call_id)]
                held = bool(found) and await runs.is_held(tx, found[-1], alive=may_be_alive)
            if found and found[-1].status != "running":  # it has ended, or waits for a person
                return found[-1]
            if self._hold.draining:
                raise asyncio.CancelledError  # the call stays open: the process that continues this run makes it again
            if begun and not found:
                raise InvalidInput(reason=f"The conversation with {agent.name} was deleted before it had answered.")
            if held:
                await self._services.hub.wait_for_halt(found[-1].thread_id, found[-1].id)
                continue
            begun = True
            await to_the_end(self._start(agent, task, thread_id, call_id, found[-1] if found else None))
            await self._wait(call_id)

    async def _start(self, agent: Agent, task: str, thread_id: str | None, call_id: str, run: Run | None) -> None:
        """Start the run that answers a call, or take it over if its process died."""
        scope = self._scope.for_call(DelegatingCall(self._lease, call_id))
        if run is None:
            await self._expect_own(agent, thread_id)
            who: dict[str, Any] = {"user_id": self._user, "asker": self._asker}
            handle = await self._runs.ask(task, thread_id=thread_id, agent=agent.id, scope=scope, **who)
        else:
            try:
                handle = await self._runs.resume(run.thread_id, user_id=self._user, scope=scope, asker=self._asker)
            except (RunInProgress, NothingToResume):  # another process was faster
                return
        self._running[call_id] = handle

    async def _wait(self, call_id: str) -> None:
        handle = self._running.get(call_id)
        if handle is None:
            return
        try:
            await asyncio.wait({handle.task})
        except asyncio.CancelledError:
            await handle.stop()
            raise
        finally:
            del self._running[call_id]

    async def _expect_own(self, agent: Agent, thread_id: str | None) -> None:
        """Raise InvalidInput if this thread has not asked the agent in that one, or no model call is left."""
        below = self._scope.below
        if not below.left:
            raise InvalidInput(reason=_used_up(below.size))
        if thread_id is None:
            return
        async with self._services.store.reading() as tx:
            try:
                thread = await log.find_thread(tx, thread_id, user_id=self._user)
            except ThreadNotFound:
                thread = None
        if thread is None or (thread.parent_id, thread.agent_id or ANALYST) != (self._lease.thread_id, agent.id):
            raise InvalidInput(
                reason=f"This conversation has had none with {agent.name} under the id {thread_id}. "
                "Leave thread_id out to begin one."
            )


def tool_names(agents: Sequence[Agent], taken: Collection[str]) -> list[str]:
    """Return a unique tool name for each agent: `ask_`, its name in letters (Chinese in pinyin), and a hash of its
    id if that name is incomplete, too long or taken."""
    used, names = set(taken), list[str]()
    for agent in agents:
        written = spell_in_pinyin(agent.name)
        said = _NOT_IN_A_NAME.sub("_", written).strip("_")
        name = f"ask_{said}"
        whole = said and written.isascii()
        if not whole or len(name) > _LONGEST_NAME or name in used:
            mark = sha256(agent.id.encode()).hexdigest()[:8]
            name = f"{name[: _LONGEST_NAME - 9].rstrip('_')}_{mark}"
        used.add(name)
        names.append(name)
    return names


def _of(lease: Lease) -> tuple[str, str]:
    return lease.thread_id, lease.run_id


def _answers(run: Run, call_id: str) -> bool:
    return run.answers is not None and run.answers.call_id == call_id


def _build_observation(agent: Agent, tool: str, run: Run, scope: DelegationScope) -> Observation:
    outcome, thread_id, queries = run.outcome, run.thread_id, run.outcome.get("queries") or ()
    if run.status == "finished":
        answer = _without_labels(str(outcome.get("answer") or ""), queries)
        data: dict[str, Any] = {"agent": agent.name, "thread_id": thread_id, "answer": answer[:LONGEST]}
        if len(answer) > LONGEST:
            data["notes"] = [f"The answer has {len(answer)} characters; this is how it begins."]
        return make_success(data)
    if run.status == "failed":
        reason = str((outcome.get("error") or {}).get("message") or "it is not known why.")
        return _not_done("agent_failed", f"{agent.name} failed: {reason[:LONGEST]}", thread_id)
    if run.status == "waiting":
        said = (
            f"{agent.name} waits for a person to decide about a call, in its conversation {thread_id}. Tell the user. "
        )
        said += f"When that is done, it goes on; call {tool} with this thread_id then, to hear what has come of it."
        return _not_done("agent_waits", said, thread_id)
    so_far = _without_labels(str(outcome.get("summary") or ""), queries)[:LONGEST]
    said = f"{agent.name} was paused before it had an answer: {_why(str(outcome.get('reason')))}."
    if scope.below.left:
        said += f" To let it go on, call {tool} with this thread_id and the task: continue."
    else:
        said += f" {_used_up(scope.below.size)}"
    return _not_done("agent_paused", f"{said}\n\n{so_far}".strip(), thread_id)


def _not_done(type_: str, message: str, thread_id: str) -> Observation:
    return {"ok": False, "error": {"type": type_, "message": message, "thread_id": thread_id}}


def _why(reason: str) -> str:
    said = {"max_steps": "its steps are used up", "stopped": "it was stopped", "interrupted": "its process died"}
    said["budget_spent"] = "the user's budget is spent"
    return said.get(reason, reason)


def _used_up(size: int) -> str:
    return f"All {size} model calls that other agents may make for one question are used up: answer with what is known."


def _without_labels(answer: str, queries: Sequence[Mapping[str, Any]]) -> str:
    """Drop the labels of an answer's queries: in the caller's conversation they name others."""
    own = {str(query.get("query")) for query in queries}
    return _LABELS.sub(lambda found: "" if own & set(re.split(r"\s*,\s*", found[1])) else found[0], answer)
