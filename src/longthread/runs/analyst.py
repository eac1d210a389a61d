"""The analyst: ask a database in natural language, in a lasting conversation; and other agents of the catalog."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from functools import partial
from typing import Any

from longthread.context.business_terms import questions_of, taught
from longthread.context.system_prompt import system_prompt
from longthread.context.window import PreviousCall
from longthread.context.window_cache import WindowCache
from longthread.errors import (
    AgentOfThread,
    DefinitionNotFound,
    InvalidInput,
    NothingToResume,
    NothingToStop,
    QuestionTooLong,
    RunWaiting,
    SourceMissing,
    ThreadNotFound,
)
from longthread.llm.context_windows import ContextWindows
from longthread.llm.embedders import embedder_of
from longthread.llm.model_cache import ModelCache, ModelFactory
from longthread.llm.models import RunModels, reply_limit, resolve_model
from longthread.llm.summarizer import summarizer_of
from longthread.memory.background import Background
from longthread.memory.forget import Forgotten, delete_thread
from longthread.memory.memories import Memories
from longthread.memory.pruner import Pruner
from longthread.memory.search.recall import Recaller
from longthread.memory.summary.pruning import PruningPolicy
from longthread.model.fold import state_of
from longthread.model.ids import new_id
from longthread.model.language import is_chinese
from longthread.model.memory import ANALYST
from longthread.model.run import Protocol
from longthread.model.thread import Thread
from longthread.runs.approval_service import Deciding
from longthread.runs.assignment import Assignment
from longthread.runs.builtin_tools import fitting_memories, own_tools
from longthread.runs.cancel import call_off
from longthread.runs.delegation import Delegates
from longthread.runs.delegation_scope import DelegationScope, standing_of
from longthread.runs.events import EventStream, Notifier
from longthread.runs.execute import execute
from longthread.runs.handle import RunHandle, report
from longthread.runs.process import may_be_alive
from longthread.runs.run_context import RunContext
from longthread.runs.start import RunRequest, StartedRun, begin, take_over
from longthread.settings import Settings
from longthread.store import log, runs, summaries
from longthread.store.driver import Driver
from longthread.store.index.recall import Scope
from longthread.store.maintenance.scrub import scrub
from longthread.store.memories import Owner
from longthread.store.open import open_store
from longthread.store.runs import Lease
from longthread.tools.analysis.address import same_source
from longthread.tools.analysis.isolation.forkserver import FORK_SERVER
from longthread.tools.analysis.source import Source
from longthread.tools.analysis.toolbox import analysis_tools
from longthread.tools.catalog.address import filled
from longthread.tools.catalog.catalog import Catalog, address_again, named_address
from longthread.tools.catalog.role import ANALYST_ROLE, AgentRole, role_named, role_of_run
from longthread.tools.code import Interpreters
from longthread.tools.mcp import Servers
from longthread.tools.registry import ToolParts
from longthread.tools.skills import load_skill_tool
from longthread.tools.sources import Opener, RunSources
from longthread.view.correction import corrected
from longthread.view.tokens import family_of

_logger = logging.getLogger(__name__)


class Analyst(Deciding):
    """Asks and resumes runs on one store. Safe to share between tasks; close it when done."""

    def __init__(self, store: Driver, settings: Settings, *, models: ModelFactory = resolve_model) -> None:
        self.store = store
        self.settings = settings
        self.bell = Notifier()
        self._opener = Opener(settings)
        self._shelf = ModelCache(settings, models)
        self.recaller = Recaller(store, embedder_of(settings))
        self.pruner = Pruner(store, PruningPolicy.of(settings), self.recaller)
        self.memories = Memories(store, self.recaller.asker)
        self._hot = WindowCache(settings.memory_max_messages_per_thread)
        self._interpreters = Interpreters(cpython=settings.code_cpython)
        self._servers = Servers()
        self._background = Background()
        self._windows = ContextWindows(store, settings)
        self._running: dict[str, RunHandle] = {}
        self._given: dict[str, str] = {}
        self._factors: dict[str, float] = {}

    @classmethod
    @asynccontextmanager
    async def open(
        cls, settings: Settings, *, models: ModelFactory = resolve_model, creates: bool = True
    ) -> AsyncIterator[Analyst]:
        """An analyst on the store that the settings name, which is made when it is not there.

        Raises:
            StoreUnavailable: it cannot be opened, or there is none and none may be made (`creates`).
        """
        async with open_store(settings.database, creates=creates, read_only=settings.read_only) as store:
            if settings.sql_isolated:
                FORK_SERVER.start()  # it is ready by the time the first source is asked
            analyst = cls(store, settings, models=models)
            try:
                yield analyst
            finally:
                await analyst.close()

    async def close(self) -> None:
        """Stop the runs of this process; they can be resumed."""
        for handle in list(self._running.values()):
            await handle.stop()
        await self.pruner.close()
        await self.recaller.close()
        await self.memories.close()
        await self._background.close()
        await self._interpreters.close()
        await self._servers.close()

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
        standing: DelegationScope | None = None,
    ) -> RunHandle:
        """Put a question on a thread (a new one by default). When this returns, the question is in the log.

        Args:
            source: what to ask, as `open_source` takes it, or the name of one in the catalog; by default the agent's,
                else the thread's, else the settings'.
            model: `provider:model` or `demo`; by default the agent's model, else the settings'.
            max_steps: model calls before the run pauses.
            agent: an agent of the catalog, by its name or id; by default the thread's, else the analyst.
            standing: where a run stands that answers another agent's call.

        Raises:
            InvalidInput: the question is empty or too long, there is no source, or the thread is another agent's.
            SourceError: the source cannot be opened. Nothing was written.
            DefinitionNotFound: there is no such agent.
            ToolInvalid: the agent needs a tool that cannot be used.
            RunInProgress: the thread's run is being executed.
        """
        question = self._checked(question)
        thread = await self._thread_of(thread_id, user_id)
        role = await self._role(agent, thread)
        config = role.agent.config
        if standing is None:
            standing = await standing_of(self.store, self.settings, thread)
        elif not config.get("model"):
            model, protocol = standing.model, standing.protocol
        models = self._shelf.models(model, config)
        async with self._sources(role, source, thread or thread_id, user_id, standing) as sources:
            own = sources.own
            agent_tools = await role.tools(ToolParts(sources.named, self._interpreters, self._servers))
            asked = RunRequest(
                thread_id=thread_id or new_id(),
                user_id=user_id,
                question=question,
                source=own.spec if own else None,
                fingerprint=await own.fingerprint() if own else None,
                model=models.name,
                protocol=protocol,
                max_steps=max_steps or config.get("max_steps") or self.settings.max_steps,
                agent=role.asked(question),
                caller=standing.caller,
            )
            begun = await begin(self.store, asked, self._hot)
            window = await self._windows.of(*models.all)
            return self._execute(begun, Assignment(role, models, sources, agent_tools, standing, window), user_id)

    async def resume(
        self,
        thread_id: str,
        *,
        user_id: str,
        model: str | None = None,
        max_steps: int | None = None,
        source: str | None = None,
        standing: DelegationScope | None = None,
        claim: Lease | None = None,
    ) -> RunHandle:
        """Go on with a thread's unfinished run: where its process died, or, when it was paused or failed, as if the
        user had said "continue".

        Args:
            claim: the lease of the run, where who calls has taken it already.

        Raises:
            NothingToResume: the thread's last run is finished, or there is none.
            RunInProgress: it is being executed.
            RunWaiting: it waits for decisions; see `decide`.
        """
        async with self.store.reading() as tx:
            thread = await log.find_thread(tx, thread_id, user_id=user_id)
            run = await runs.last_run(tx, thread_id)
        if run is None or run.status == "finished" or (standing and run.status != "running"):
            raise NothingToResume(thread=thread_id)
        if run.status == "waiting":
            raise RunWaiting(thread=thread_id, run=run.id)
        if run.status != "running":
            word = "继续" if is_chinese(run.question) else "continue"
            return await self.ask(
                word,
                thread_id=thread_id,
                model=model or run.model,
                max_steps=max_steps,
                source=source,
                protocol=run.protocol,
                user_id=user_id,
            )
        standing = standing or await standing_of(self.store, self.settings, thread, run)
        async with self.store.reading() as tx:
            role = await role_of_run(tx, run.agent)
        models = self._shelf.models(model or run.model, role.agent.config)
        async with self._sources(role, source, thread, user_id, standing) as sources:
            agent_tools = await role.tools(ToolParts(sources.named, self._interpreters, self._servers))
            begun = await take_over(self.store, thread, self._hot, claim, model=models.name)
            window = await self._windows.of(*models.all)
            return self._execute(begun, Assignment(role, models, sources, agent_tools, standing, window), user_id)

    async def stop(self, thread_id: str, *, user_id: str) -> None:
        """Stop the thread's run: it ends as paused, and what it has done is kept. One that waits for a person is called
        off: the calls that wait are not made.

        Raises:
            NothingToStop: there is none, or its process died.
            RunElsewhere: another process executes it.
        """
        thread = await self.thread(thread_id, user_id=user_id)
        handle = self._running.get(thread_id)
        if handle is not None:
            await handle.stop()
        with suppress(*([NothingToStop] if handle is not None else [])):
            self.bell.ring((await call_off(self.store, thread, self._hot, by=user_id)).id)

    async def forget_thread(self, thread_id: str, *, user_id: str) -> Forgotten:
        """Delete a thread and those below it with all that is kept of them, here too. The place in the store's files is
        cleared in the background.

        Raises:
            ThreadNotFound: there is no such thread, or it is another user's.
            RunInProgress: a run on it is being executed.
        """
        gone = await delete_thread(self.store, thread_id, user_id=user_id, alive=may_be_alive)
        for each in gone.ids:
            self._hot.forget(each)

        async def clear() -> None:
            for problem in await scrub(self.store, gone.rows):
                _logger.info("After the deletion of a thread: %s", problem)

        self._background.start(f"clear {new_id()}", clear, failing="A deleted thread could not be cleared")
        return gone

    async def settle(self) -> None:
        """Wait for what goes on in the background."""
        await self.recaller.settle()
        await self.memories.settle()
        await self._background.settle()

    async def thread(self, thread_id: str, *, user_id: str) -> Thread:
        """A thread's metadata."""
        async with self.store.reading() as tx:
            return await log.find_thread(tx, thread_id, user_id=user_id)

    async def state(self, thread_id: str, *, user_id: str) -> dict[str, Any]:
        """The thread's state with document 000's fields, computed from all entries of its active branch."""
        async with self.store.reading() as tx:
            thread = await log.find_thread(tx, thread_id, user_id=user_id)
            entries = await log.branch(tx, thread_id, thread.tip, limit=max(1, thread.entry_count))
            compressed = await summaries.compressed(tx, thread_id)
        return state_of(entries, compressed)

    def _checked(self, question: str) -> str:
        if not question.strip():
            raise InvalidInput(reason="The question is empty. Type one.")
        if len(question) > self.settings.max_question:
            raise QuestionTooLong(size=f"{len(question):,}", limit=f"{self.settings.max_question:,}")
        return question.encode("utf-8", "replace").decode("utf-8").replace("\x00", "\ufffd")

    async def _thread_of(self, thread_id: str | None, user_id: str) -> Thread | None:
        if thread_id is not None:
            with suppress(ThreadNotFound):  # it is a new one, or whoever makes it is told that it cannot be
                return await self.thread(thread_id, user_id=user_id)
        return None

    async def _named(self, thread_id: str, user_id: str) -> Thread | None:
        """A thread by its id. None: it is not there, and the settings' source is for all that begin."""
        if self.settings.source:
            return await self._thread_of(thread_id, user_id)
        return await self.thread(thread_id, user_id=user_id)

    async def _role(self, agent: str | None, thread: Thread | None) -> AgentRole:
        """The role of the agent that is asked: the one that is named, else the thread's, else the analyst."""
        if agent is None:
            return await self._role_of(thread) if thread and thread.agent_id else ANALYST_ROLE
        role = await role_named(self.store, agent)
        if thread is not None and thread.entry_count and (thread.agent_id or ANALYST) != role.agent.id:
            owner = await self._role_of(thread)
            raise AgentOfThread(thread=thread.id, name=owner.agent.name)
        return ANALYST_ROLE if role.is_analyst else role

    async def _role_of(self, thread: Thread) -> AgentRole:
        """The role of the agent that a conversation is with."""
        try:
            return await role_named(self.store, thread.agent_id or ANALYST)
        except DefinitionNotFound as error:
            if error.kind != "agent":
                raise
            there = "The conversation is with it: apply its definition, with this as its `id`."
            raise DefinitionNotFound(kind="agent", name=thread.agent_id or ANALYST, nearest=there) from error

    @asynccontextmanager
    async def _sources(
        self, role: AgentRole, spec: str | None, thread: Thread | str | None, user_id: str, standing: DelegationScope
    ) -> AsyncIterator[RunSources]:
        """What a run asks, or hands on. Closed when the block fails; else by who executes the run."""
        if spec is not None and not role.asks_data and not role.sub_agents:
            raise InvalidInput(reason=f"The agent {role.agent.name} asks no source of its own. Leave --source out.")
        own = address = None
        if spec is None and (role.asks_data or role.sub_agents):
            if role.source is not None:
                address = filled(role.source.address)
            elif standing.source is not None:
                address = await self._again(standing.source)
        if address is not None:
            own = await self._opener.open(address, user_id)
        elif role.asks_data or spec or (role.sub_agents and isinstance(thread, Thread) and thread.source):
            own = await self.source_of(spec, thread, user_id)

        async def opening(name: str) -> Source:
            return await self._opener.open(await Catalog(self.store).address(name), user_id)

        async with AsyncExitStack() as stack:
            sources = RunSources(own, opening)
            stack.push_async_callback(sources.close)
            yield sources
            stack.pop_all()

    async def source_of(self, spec: str | None, thread: Thread | str | None, user_id: str) -> Source:
        """The source to ask, opened for a user: as it is named, else the thread's, else the settings'. Whoever gets
        it closes it. Raises SourceError, InvalidInput when there is none, ThreadNotFound when only a thread that is not
        there would name one."""
        given = spec
        if spec is None and thread is not None:
            found = await self._named(thread, user_id) if isinstance(thread, str) else thread
            spec = await self._again(found.source) if found and found.source else None
        spec = spec or self.settings.source
        if not spec:
            raise SourceMissing()
        address = await named_address(self.store, spec)
        opened = await self._opener.open(address, user_id)
        # Not what the catalog says: that may be another tomorrow, and is asked again.
        if given is not None and address == given.strip():
            self._given[opened.spec] = address
        return opened

    async def _again(self, spec: str) -> str:
        """A thread's source with its password, which no thread keeps: as it was given, here or in the settings, or else
        as the catalog has it now."""
        configured = self.settings.source
        if configured is not None and same_source(spec, configured):
            return configured
        return self._given.get(spec) or await address_again(self.store, spec)

    def _execute(self, begun: StartedRun, staff: Assignment, user_id: str) -> RunHandle:
        context = self._context(begun, staff, user_id)
        delegates = self._delegates(begun, staff, context, user_id)
        models = staff.models
        # Here as well as at the end: what a process that was closed has left undone goes on.
        self._prune(context, begun, models, user_id)

        async def work() -> None:
            try:
                await execute(context, models, begun.known)
            finally:
                await delegates.stop()
                kept = (begun.run.id, context.past, context.mark)
                self._hot.keep(begun.thread, context.window.spots, *kept)
                self._factors[models.name] = context.factor
                await staff.sources.close()
                self.recaller.keep_up(Scope(user_id, begun.run.thread_id))
                self._prune(context, begun, models, user_id)
                self.memories.keep_up(user_id)
                # A client that saw the end may have started the thread's next run already.
                if self._running.get(begun.run.thread_id) is handle:
                    del self._running[begun.run.thread_id]

        task = asyncio.get_running_loop().create_task(work(), name=f"run {begun.run.id}")
        task.add_done_callback(report)
        handle = RunHandle(begun.run, task, self.store, self.bell, after=begun.shown)
        self._running[begun.run.thread_id] = handle
        return handle

    def _prune(self, context: RunContext, begun: StartedRun, models: RunModels, user_id: str) -> None:
        self.pruner.keep_up(
            Scope(user_id, begun.run.thread_id),
            count=begun.behind(context.window.spots),
            view=context.past.segments if context.past else (),
            kept=begun.hot.summary,
            stale=begun.hot.stale,
            summarizer=summarizer_of(models.name, models.model),
        )

    def _context(self, begun: StartedRun, staff: Assignment, user_id: str) -> RunContext:
        models, role, source, window = staff.models, staff.role, staff.sources.own, staff.window
        told = role.disclose(begun.run.agent, window=window)
        asked = source if role.asks_data else None
        context = RunContext(
            store=self.store,
            lease=begun.lease,
            stream=EventStream(self.store, begun.lease, self.bell, last=begun.last_event),
            run=begun.run,
            tools={},
            prompt=partial(
                system_prompt,
                instructions=None if role.is_analyst else told.prompt,
                dialect=asked.dialect if asked else None,
                # The day on which the run began: whoever takes it over tells the same.
                today=begun.run.started_at.astimezone(self.settings.zone),
                continues=begun.run.question if begun.run.continues else None,
            ),
            known=begun.known.facts if asked else None,
            settings=self.settings,
            tokens=window,
            output=max(reply_limit(model, self.settings) for model in models.all),
            windows=self._windows,
            window=begun.window,
            protocol=begun.run.protocol,
            queries=max([begun.known.facts.queries, *(_label(step.observation) for step in begun.earlier)]),
            family=family_of(models.name),
            factor=self._factor(models.name, begun.past),
            past=begun.past,
            summary=begun.hot.summary.summary if begun.hot.summary else "",
            digest=begun.hot.summary.digest if begun.hot.summary else {},
            topics=begun.hot.summary.topics if begun.hot.summary else (),
            mark=begun.hot.mark,
            earlier={step.call_id: step for step in begun.earlier if step.call_id},
            approvals=begun.approvals,
            categories=set(begun.thread.tool_categories),
            allowance=staff.standing.own,
            missing=staff.agent_tools.missing,
            source_notes=_source_notes(begun, source),
        )
        owner = Owner(user_id, role.agent.id)
        if role.remembers:
            context.fitting = partial(fitting_memories, self.memories, owner, begun.run.question)
        if asked is not None:
            questions = questions_of(begun.window, begun.run.question)
            context.teaching = lambda: taught(self.store, asked, questions)
        looked_for = begun.run.continues or begun.run.question
        own = own_tools(self, begun, context, owner)
        tools = [*(analysis_tools(source, looked_for) if source else ()), *own]
        tools = [*role.built_in(tools), *staff.agent_tools.tools]
        tools += [load_skill_tool(told.loadable, window=window)] if told.loadable else []
        context.tools = {tool.name: tool for tool in tools}
        return context

    def _delegates(self, begun: StartedRun, staff: Assignment, context: RunContext, user_id: str) -> Delegates:
        """The agents that a run may ask, and their tools in its context."""
        source = staff.sources.own.spec if staff.sources.own else None
        delegates = Delegates(self, begun.lease, user_id, staff.standing.below_it(begun.run, source))
        tools = delegates.tools(staff.role.sub_agents, context.tools)
        context.tools = {**context.tools, **{tool.name: tool for tool in tools}}
        return delegates

    def _factor(self, model: str, past: PreviousCall | None) -> float:
        """What a model's estimates are raised by: as its calls here have taught, or the thread's last one elsewhere."""
        factor = self._factors.get(model, 1.0)
        return corrected(factor, past.estimated, past.reported) if past is not None and past.model == model else factor


def _source_notes(begun: StartedRun, source: Source | None) -> list[str]:
    """What is to be told of a source, in the first run of a thread on it."""
    if source is None or begun.last_event > 1 or begun.known.facts.tables:
        return []
    return source.notes


def _label(observation: Any) -> int:
    data = observation.get("data") if observation else None
    return int(str(data.get("query", "q0"))[1:]) if isinstance(data, dict) else 0
