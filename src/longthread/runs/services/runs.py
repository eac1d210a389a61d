"""The runs of a store: ask, resume and stop."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack, ExitStack, suppress
from dataclasses import dataclass, replace
from typing import Any

from longthread.access.grants import GrantedRights
from longthread.access.projects import find_project, project_of
from longthread.context.forks import ClientBranch, Fork, last_run_of
from longthread.errors import (
    InvalidInput,
    LeaseLost,
    LongthreadError,
    NothingToResume,
    NothingToStop,
    ProjectNotFound,
    QuestionNotFound,
    QuestionTooLong,
    RunWaiting,
)
from longthread.llm.connections import ModelCache, ModelFactory, ProviderKeys
from longthread.llm.models import DEMO, RunModels, summarizer_of
from longthread.loop_bridge import to_the_end
from longthread.memory.summary.summaries import Summarizer
from longthread.model.ids import new_id
from longthread.model.language import is_chinese
from longthread.model.run import Protocol, Run, RunAsker
from longthread.model.semantics import SemanticLayer
from longthread.model.thread import Scope, Thread
from longthread.runs.agents import Assignment, DelegationScope, SubAgents, granted_role, scope_of
from longthread.runs.budgets import expect_to_begin
from longthread.runs.end_run import stop_run
from longthread.runs.execute import execute
from longthread.runs.rights import AskerRights, RunRights, narrow_role, payer_of
from longthread.runs.run_context import RunContext
from longthread.runs.run_setup import run_context
from longthread.runs.services.queue import URGENT, RunLimits, begin_or_queue
from longthread.runs.services.sources import Sources
from longthread.runs.services.threads import Threads, Titles
from longthread.runs.shared import RunHandle, RunServices, report
from longthread.runs.start import RunRequest, StartedRun, begin, take_over
from longthread.runs.worker import Hold, Slots
from longthread.store import log, runs, wait_list
from longthread.store.wait_list import QuestionKey, QueuedQuestion, StartableQuestion, WhenBusy
from longthread.tools.analysis.source import Source
from longthread.tools.catalog.role import AgentRole, role_of_run
from longthread.tools.mcp import Servers
from longthread.tools.semantic.query_metric import semantic_layer
from longthread.tools.tool_type import ToolParts
from longthread.tools.types.code import Interpreters

_SOURCE_SECONDS = 1.0
"""So long the queue waits for the schema of a question's source."""


@dataclass(frozen=True, slots=True)
class _Put:
    """How a question was put: see `Runs.ask` and `Runs.submit`."""

    thread_id: str | None
    user_id: str
    source: str | None
    model: str | None
    protocol: Protocol
    max_steps: int | None
    agent: str | None
    scope: DelegationScope | None
    place: ClientBranch | Fork | None
    key: QuestionKey | None
    when_busy: WhenBusy | None = None
    continues: bool | None = None
    asker: RunAsker | None = None


@dataclass(frozen=True, slots=True)
class _Wanted:
    """What a run is to work with: see `Runs.ask`."""

    role: AgentRole
    models: RunModels
    source: str | None
    thread: Thread | str | None
    user_id: str
    scope: DelegationScope
    asker: RunAsker | None
    rights: GrantedRights


class Runs:
    """Starts, resumes and stops runs."""

    def __init__(
        self,
        services: RunServices,
        threads: Threads,
        sources: Sources,
        models: ModelFactory,
        keys: ProviderKeys,
        titles: Titles,
    ) -> None:
        self._services = services
        self._store = services.store
        self._settings = services.settings
        self._threads = threads
        self._sources = sources
        self._models = ModelCache(services.settings, models)
        self._keys = keys
        self._titles = titles
        self.rights = AskerRights(services.store, services.settings, keys)
        self._interpreters = Interpreters(cpython=services.settings.code_cpython)
        self._servers = Servers()
        self._running: dict[str, RunHandle] = {}
        self.slots = Slots(services.settings.max_runs)

    async def ask(
        self,
        question: str,
        *,
        user_id: str,
        thread_id: str | None = None,
        source: str | None = None,
        model: str | None = None,
        protocol: Protocol = "auto",
        max_steps: int | None = None,
        agent: str | None = None,
        scope: DelegationScope | None = None,
        place: ClientBranch | Fork | None = None,
        key: QuestionKey | None = None,
        asker: RunAsker | None = None,
    ) -> RunHandle:
        """Put a question on a thread (a new one by default). When this returns, the question is in the log.

        Args:
            source: what to ask, as `open_source` takes it, or the name of one in the catalog; by default the agent's,
                else the thread's, else the settings'.
            model: `provider:model` or `demo`; by default the agent's model, else the settings'.
            max_steps: model calls before the run pauses.
            agent: an agent of the catalog, by its name or id; by default the thread's, else the analyst.
            scope: limits of a run that another agent asked for.
            place: where the question goes, if not to the end: where a client puts it that holds the conversation
                itself, or a fork.
            key: a client's, stored with the question. `find_asked` finds the run by it for a day.
            asker: who asks, where people log in: the run has that user's rights, and the limits of the API key.

        Raises:
            AccessEnded, NotGranted: the asker may not ask, or not use the source, the model or the thread's agent.
            InvalidInput: the question is empty or too long, there is no source, or the thread is another agent's.
            SourceError: the source cannot be opened. Nothing was written.
            DefinitionNotFound: there is no such agent.
            ToolInvalid: the agent needs a tool that cannot be used.
            RunInProgress: the thread's run is being executed; RunRepeated where it answers this question.
            KeyReused: the key stands for another request.
        """
        put = _Put(thread_id, user_id, source, model, protocol, max_steps, agent, scope, place, key, asker=asker)
        begun = await self._put(question, put)
        assert not isinstance(begun, QueuedQuestion)  # only `submit` queues
        return begun

    async def submit(
        self,
        question: str,
        *,
        when_busy: WhenBusy,
        user_id: str,
        thread_id: str | None = None,
        source: str | None = None,
        model: str | None = None,
        protocol: Protocol = "auto",
        max_steps: int | None = None,
        agent: str | None = None,
        key: QuestionKey | None = None,
        continues: bool | None = None,
        asker: RunAsker | None = None,
    ) -> RunHandle | QueuedQuestion:
        """As `ask`, but a question that cannot begin now waits in the queue until a server begins it: the user or this
        process has as many runs as they may, or the thread is busy.

        Args:
            when_busy: what becomes of a question while the thread's run is under way. `reject`: it is refused.
                `enqueue`: it waits for its turn. `interrupt`: it stops the run, and is the next one. `rollback`: the
                same, and the run with its question is left as another branch.
            continues: whether the message goes on with the thread's unfinished run; None: its wording says so, as does
                that of a question that waits.

        Raises:
            QueueFull: the user's queue is.
            QuestionsWait: `reject`, and other questions wait on the thread.
            RunInProgress: `reject`, and the thread's run is being executed.
            and what `ask` raises.
        """
        how = (protocol, max_steps, agent, None, None, key, when_busy, continues, asker)
        put = _Put(thread_id, user_id, source, model, *how)
        begun = await self._put(question, put)
        if isinstance(begun, QueuedQuestion):
            self.slots.queued = True
            if when_busy in URGENT:
                self._services.worker.wake()  # to stop the run under way
            self.wake_queue()
            self._services.hub.list_changed(user_id)
        return begun

    async def fingerprint_now(self, turn: StartableQuestion) -> str | None:
        """Return the present fingerprint of a queued question's source: its schema may have changed meanwhile. None if
        it asks none, or if the source does not open in a second."""
        async with self._store.reading() as tx:
            found = await wait_list.find(tx, turn.thread_id, turn.id)
        if found is None or found.plan.source is None:
            return None
        try:
            async with asyncio.timeout(_SOURCE_SECONDS):
                rights = await self.rights.of(found.plan.asker, user_id=turn.user_id)
                return await self._sources.fingerprint(found.plan.source, user_id=turn.user_id, rights=rights)
        except (LongthreadError, TimeoutError):  # the run says what is wrong with it
            return None

    def wake_queue(self) -> None:
        """Let the servers look whether a queued question can begin, if any waits."""
        if self.slots.queued:
            self._services.worker.wake_claims()
            self._services.hub.wake_workers()

    async def find_asked(self, key: QuestionKey, *, user_id: str) -> Run | QueuedQuestion | None:
        """Return the run of the user's question with this key, or the question while it waits; None if there is none.

        Raises:
            KeyReused: the key stands for another request.
            QuestionNotFound: the question was removed from the queue, and is not to be asked.
        """
        async with self._store.reading() as tx:
            found = await wait_list.find_key(tx, user_id, key)
            if found is None:
                return None
            thread_id, asked = found
            run_id = await wait_list.run_of(tx, thread_id, asked) or asked
            known = await runs.find_run(tx, thread_id, run_id) or await wait_list.find(tx, thread_id, asked)
        if known is None:
            raise QuestionNotFound(thread=thread_id, question=asked)
        return known

    async def resume(
        self,
        thread_id: str,
        *,
        user_id: str,
        model: str | None = None,
        max_steps: int | None = None,
        source: str | None = None,
        scope: DelegationScope | None = None,
        claim: Hold | None = None,
        has_slot: bool = False,
        place: ClientBranch | None = None,
        asker: RunAsker | None = None,
    ) -> RunHandle:
        """Continue a thread's unfinished run: where its process died or, if it was paused or failed, as if the user had
        said "continue".

        Args:
            scope: limits of a run that another agent asked for.
            claim: the run's hold, if it is this worker's already.
            has_slot: whether the caller has taken the slot of the claimed run. If this fails, the slot is still theirs.
            place: the request of a client, by which a paused run is continued.
            asker: who resumes it, where people log in. A claimed run keeps its own.

        Raises:
            AccessEnded, NotGranted: the asker may not ask any more, or not use what the run works with.
            NothingToResume: the branch's last run is finished, or there is none.
            RunInProgress: it is being executed.
            RunWaiting: it waits for decisions; see `Approvals.decide`.
            LeaseLost: the claimed run has ended.
        """
        async with self._store.reading() as tx:
            thread = await log.find_thread(tx, thread_id, user_id=user_id)
            run = await last_run_of(tx, thread)
            role = await role_of_run(tx, run.agent) if run is not None and run.status == "running" else None
        if run is None or run.status == "finished" or (scope and run.status != "running"):
            raise NothingToResume(thread=thread_id)
        if run.status == "waiting":
            raise RunWaiting(thread=thread_id, run=run.id)
        if role is None and claim is not None:
            raise LeaseLost(thread=thread_id, run=claim.lease.run_id)
        if role is None:
            return await self.ask(
                "继续" if is_chinese(run.question) else "continue",
                thread_id=thread_id,
                model=model or run.model,
                max_steps=max_steps,
                source=source,
                protocol=run.protocol,
                user_id=user_id,
                place=place,
                asker=asker,
            )
        asker = run.asker if claim is not None else asker
        rights = await self.rights.of(asker, user_id=user_id)
        rights.expect_use("agent", role.agent.id, role.agent.name)
        scope = scope or await scope_of(self._store, self._settings, thread, run)
        payer = payer_of(user_id, asker, self._settings)
        models = self._models.models(model or run.model, role.agent.config, await self._keys.of(payer))
        await self.rights.expect_model(rights, models.name, user_id=payer)

        async def take(own: Source | None, room: bool) -> StartedRun:
            services = self._services
            to: dict[str, Any] = {"model": models.name, "asker": asker}
            return await take_over(self._store, thread, services.window_cache, services.worker, claim, **to)

        wanted = _Wanted(role, models, source, thread, user_id, scope, asker, rights)
        handle = await self._start(take, wanted, has_slot=has_slot)
        assert not isinstance(handle, QueuedQuestion)
        return handle

    async def stop(self, thread_id: str, *, user_id: str, run_id: str | None = None, by: str | None = None) -> None:
        """Stop the thread's run: it ends as paused, and its log stays. If it waits for a person, the calls are not
        made.

        If another process executes it, that one obeys within seconds.

        Args:
            run_id: the run to stop; by default the last one now. One that begins meanwhile goes on.
            by: who stops it; by default the user.

        Raises:
            NothingToStop: there is none, or it has ended.
        """
        async with self._store.reading() as tx:
            thread = await log.find_thread(tx, thread_id, user_id=user_id)
            last = await runs.last_run(tx, thread_id)
        run_id = run_id or (last.id if last is not None else "")
        handle = self._running.get(thread_id)
        here = handle is not None and handle.run.id == run_id
        if handle is not None and here:
            await handle.stop()
        with suppress(*([NothingToStop] if here else [])):
            run = await stop_run(self._store, thread, run_id, self._services.window_cache, by=by or user_id)
            if run is not None:
                self._services.hub.note_change(thread_id, run.id)
                self.wake_queue()
            else:
                self._services.hub.wake_workers()
            self._services.hub.list_changed(user_id)

    @property
    def live(self) -> int:
        """How many runs this process executes."""
        return len(self._running)

    async def summarizer(self, thread_id: str) -> Summarizer | None:
        """Return what writes a thread's summary: the model of its last run. None if there is none, or a model that only
        answers. Raises as `resume` does for an agent or a model that cannot be used."""
        async with self._store.reading() as tx:
            run = await runs.last_run(tx, thread_id)
            role = await role_of_run(tx, run.agent) if run is not None else None
            owner = await log.owner(tx, thread_id)
        if run is None or role is None:
            return None
        payer = payer_of(owner, run.asker, self._settings)
        models = self._models.models(run.model, role.agent.config, await self._keys.of(payer))
        if run.protocol == "auto" and models.name != DEMO:
            await self._services.context_windows.protocol_of(models.model)
        return self._summarizer_of(models, run)

    def _summarizer_of(self, models: RunModels, run: Run) -> Summarizer | None:
        auto = run.protocol == "auto"
        protocol = self._services.context_windows.known_protocol_of(models.model) if auto else run.protocol
        return summarizer_of(models.name, models.model, protocol or "auto")

    async def models_of(self, name: str, *, user_id: str) -> RunModels:
        """Return the models of a run that names one. Raises ModelUnavailable, StoreError."""
        return self._models.models(name, {}, await self._keys.of(user_id))

    def make_model(self) -> None:
        """Make the settings' model, which loads its modules. Raises ModelUnavailable."""
        self._models.models(None, {})

    async def stop_all(self) -> None:
        """Stop the runs of this process; they can be resumed."""
        for handle in list(self._running.values()):
            await handle.stop()

    async def leave(self, seconds: float, hurry: asyncio.Event) -> None:
        """Wait until the draining executions have left their runs; break them off after `seconds`, or on `hurry`."""
        hurried = asyncio.ensure_future(hurry.wait())
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                while self._running and not hurried.done():
                    tasks = [handle.task for handle in self._running.values()]
                    await asyncio.wait({*tasks, hurried}, return_when=asyncio.FIRST_COMPLETED)
        hurried.cancel()
        self._services.worker.break_off()
        await asyncio.gather(*(handle.task for handle in self._running.values()), return_exceptions=True)

    async def close(self) -> None:
        """Close the models' connections, and end the processes that tools have started."""
        async with AsyncExitStack() as stack:  # one that fails to close leaves none of the others open
            for each in (self._servers, self._interpreters, self._models):
                stack.push_async_callback(each.close)

    def _check_question(self, question: str) -> str:
        if not question.strip():
            raise InvalidInput(reason="The question is empty. Type one.")
        longest = self._settings.max_question
        if len(question) > longest:
            raise QuestionTooLong(size=f"{len(question):,}", limit=f"{longest:,}")
        return question.encode("utf-8", "replace").decode("utf-8").replace("\x00", "\ufffd")

    async def _put(self, question: str, put: _Put) -> RunHandle | QueuedQuestion:
        """Open what the question's run needs, and begin it or, if `put` says what to do then, queue the question."""
        question = self._check_question(question)
        thread = await self._threads.find_existing(put.thread_id, user_id=put.user_id)
        rights = await self.rights.of(put.asker, user_id=put.user_id)
        role = await granted_role(self._store, rights, put.agent, thread)
        config, scope = role.agent.config, put.scope
        model, protocol = put.model, put.protocol
        if scope is None:
            scope = await scope_of(self._store, self._settings, thread)
        elif not config.get("model"):
            model, protocol = scope.model, scope.protocol
        payer = payer_of(put.user_id, put.asker, self._settings)
        models, caller = self._models.models(model, config, await self._keys.of(payer)), scope.caller
        await self.rights.expect_model(rights, models.name, user_id=payer)
        if caller is None:  # another agent's question is part of a run
            await expect_to_begin(self._store, put.asker, rights.principal.key, self._settings, models.name)
        if protocol == "auto" and models.name != DEMO:
            probed = await self._services.context_windows.protocol_of(models.model)
            # A server may take tools no more: left to us, the call is made again without them.
            protocol = probed if probed in ("json", "sql") else protocol

        async def begun(own: Source | None, room: bool) -> StartedRun | QueuedQuestion:
            request = RunRequest(
                thread_id=put.thread_id or new_id(),
                user_id=put.user_id,
                question=question,
                source=own.spec if own else None,
                fingerprint=await own.fingerprint() if own else None,
                model=models.name,
                protocol=protocol,
                max_steps=put.max_steps or config.get("max_steps") or self._settings.max_steps,
                agent=narrow_role(role, rights).role.make_run(question),
                caller=caller,
                place=put.place,
                key=put.key,
                continues=put.continues,
                asker=put.asker,
            )
            cache, worker = self._services.window_cache, self._services.worker
            if put.when_busy is None:
                return await begin(self._store, request, cache, worker)
            busy, limits = put.when_busy, self.limits
            return await begin_or_queue(self._store, request, cache, worker, when_busy=busy, room=room, limits=limits)

        about = (put.source, thread or put.thread_id, put.user_id, scope, put.asker, rights)
        return await self._start(begun, _Wanted(role, models, *about))

    @property
    def limits(self) -> RunLimits:
        """What a user may have at once."""
        return RunLimits(self._settings.max_runs_per_user, self._settings.max_queued)

    async def _start(
        self,
        begun: Callable[[Source | None, bool], Awaitable[StartedRun | QueuedQuestion]],
        wanted: _Wanted,
        has_slot: bool = False,
    ) -> RunHandle | QueuedQuestion:
        """Open what a run needs, begin it or take it over, and execute it. `begun` begins it or takes it over; its
        argument says whether there is room."""
        narrow, models, scope = narrow_role(wanted.role, wanted.rights), wanted.models, wanted.scope
        role = narrow.role
        opening = (wanted.source, wanted.thread, wanted.user_id, scope, wanted.rights)
        async with self._sources.for_run(role, *opening) as sources:
            agent_tools = await role.tools(ToolParts(sources.open_named, self._interpreters, self._servers))
            agent_tools = replace(agent_tools, missing=[*agent_tools.missing, *narrow.lost])
            window = await self._services.context_windows.of(*models.all)
            rights = self._watch(wanted, role, sources.own)
            metrics = await semantic_layer(self._store, sources.own) if sources.own else SemanticLayer()
            project = await self._instructions_of(wanted.user_id)
            with ExitStack() as undoing:
                room = self.slots.has_room
                if not has_slot:
                    self.slots.take()
                    undoing.callback(self.slots.give)
                started = await self._services.worker.past_the_dead(lambda: begun(sources.own, room))
                if isinstance(started, QueuedQuestion):
                    await sources.close()
                    return started
                undoing.callback(self._services.worker.drop, started.hold)  # no task executes it: give it back
                parts = (role, models, sources, agent_tools, scope, window, rights, metrics, project)
                handle = self._execute(started, Assignment(*parts))
                undoing.pop_all()
            return handle

    async def _instructions_of(self, user_id: str) -> str:
        """Return the instructions of the project whose conversations are this user's; empty for a person."""
        project_id = project_of(user_id)
        if project_id is None:
            return ""
        async with self._store.reading() as tx:
            try:
                return (await find_project(tx, project_id)).instructions
            except ProjectNotFound:  # it is deleted just now
                return ""

    def _watch(self, wanted: _Wanted, role: AgentRole, own: Source | None) -> RunRights:
        """Return the rights of a run, which it reads again while it works."""
        return RunRights(
            self.rights,
            wanted.asker,
            wanted.rights,
            role,
            wanted.models.name,
            wanted.user_id,
            payer_of(wanted.user_id, wanted.asker, self._settings),
            self._sources.expect_granted,
            source=own.spec if own is not None else None,
            read_at=time.monotonic(),
        )

    def _execute(self, started: StartedRun, assignment: Assignment) -> RunHandle:
        context = run_context(self._services, started, assignment)
        own = assignment.sources.own
        scope = assignment.scope.for_sub_agents(started.run, own.spec if own else None)
        whose = started.thread.user_id, scope, assignment.rights.asker
        sub_agents = SubAgents(self, self._services, started.hold, *whose)
        added = sub_agents.tools(assignment.role.sub_agents, context.tools)
        context.tools = {**context.tools, **{tool.name: tool for tool in added}}
        # Here as well as at the end: a closed process may not have done it.
        self._prune(context, started, self._summarizer_of(assignment.models, started.run))
        work = self._work(context, started, assignment, sub_agents)
        task = asyncio.get_running_loop().create_task(work, name=f"run {started.run.id}")
        task.add_done_callback(report)
        context.stream.open(started.run)
        self._services.hub.list_changed(started.thread.user_id)

        def close(_: object) -> None:
            context.stream.close()
            self.slots.give()
            self.wake_queue()
            self._services.hub.list_changed(started.thread.user_id)

        task.add_done_callback(close)
        handle = RunHandle(started.run, task, self._store, self._services.hub, after=started.shown)
        self._running[handle.thread_id] = handle
        started.hold.stop = handle.cancel
        return handle

    async def _work(
        self, context: RunContext, started: StartedRun, assignment: Assignment, sub_agents: SubAgents
    ) -> None:
        services, thread, models = self._services, started.thread, assignment.models
        try:
            if await execute(context, models, started.known, user_id=thread.user_id) == "finished":
                first, last = context.window.spots[0].entry, context.window.spots[-1].entry
                self._titles.keep_up(thread, started.run, first, last.shown_text, models.name, models.model)
        finally:
            if started.hold.draining:
                await to_the_end(services.worker.release(started.hold))
            services.worker.drop(started.hold)
            await sub_agents.stop()
            services.window_cache.keep(
                thread, context.window.spots, started.run.id, context.view.past, context.knowledge.mark
            )
            services.factors[models.name] = context.model.factor
            await assignment.sources.close()
            services.recaller.keep_up(Scope(thread.user_id, thread.id))
            self._prune(context, started, self._summarizer_of(models, started.run))
            services.memories.keep_up(thread.user_id)
            # A client that saw the end may have started the thread's next run already.
            handle = self._running.get(thread.id)
            if handle is not None and handle.task is asyncio.current_task():
                del self._running[thread.id]

    def _prune(self, context: RunContext, started: StartedRun, summarizer: Summarizer | None) -> None:
        self._services.pruner.keep_up(
            Scope(started.thread.user_id, started.thread.id),
            count=started.behind(context.window.spots),
            view=context.view.past.segments if context.view.past else (),
            kept=started.cached.summary,
            stale=started.cached.stale,
            summarizer=summarizer,
        )
