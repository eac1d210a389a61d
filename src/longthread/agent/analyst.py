"""The analyst: ask a database in natural language, in a lasting conversation."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

from langchain_core.language_models import BaseChatModel

from longthread.agent.begin import Ask, Begun, begin, take_over
from longthread.agent.context import RunContext
from longthread.agent.embedders import embedder_of
from longthread.agent.graph import Graphs, Models
from longthread.agent.handle import RunHandle
from longthread.agent.hot import HotWindows
from longthread.agent.models import context_window, model_name, resolve_model
from longthread.agent.owner import may_be_alive
from longthread.agent.prompt import system_prompt
from longthread.agent.recalling import recall_tool
from longthread.agent.remembering import Remembering
from longthread.agent.run import execute
from longthread.agent.stream import Bell, EventStream
from longthread.agent.summarizing import summarizer_of
from longthread.agent.window import Past, Spot
from longthread.errors import InvalidInput, LongthreadError, NothingToResume, QuestionTooLong, StoreError
from longthread.memory.background import Background
from longthread.memory.fitting import fitting
from longthread.memory.forgetting import Forgotten, delete_thread
from longthread.memory.memories import Memories
from longthread.memory.pruner import Pruner
from longthread.memory.pruning import Policy
from longthread.memory.recall import Place, Recaller
from longthread.model.fold import state_of
from longthread.model.ids import new_id
from longthread.model.language import is_chinese
from longthread.model.memory import ANALYST, Memory
from longthread.model.run import Protocol
from longthread.model.thread import Thread
from longthread.settings import Settings
from longthread.store import log, runs, summaries
from longthread.store.driver import Driver
from longthread.store.memories import Owner
from longthread.store.open import open_store
from longthread.store.recall import Scope
from longthread.store.scrubbing import scrub
from longthread.tools.analysis.address import same_source
from longthread.tools.analysis.isolation.nursery import NURSERY
from longthread.tools.analysis.limits import Limits
from longthread.tools.analysis.opening import open_source
from longthread.tools.analysis.policy.document import Policies
from longthread.tools.analysis.source import Source
from longthread.tools.analysis.toolbox import analysis_tools
from longthread.tools.tool import Tool
from longthread.view.correction import corrected
from longthread.view.tokens import family_of

KNOWLEDGE_SHARE = 0.3
"""The part of the context window that known facts may fill."""

MODELS = 16
"""Models that are remembered; the one made first goes first."""

_logger = logging.getLogger(__name__)

ModelFactory = Callable[[str, Settings], BaseChatModel]


class Analyst:
    """Asks and resumes runs on one store. Safe to share between tasks; close it when done."""

    def __init__(self, store: Driver, settings: Settings, *, models: ModelFactory = resolve_model) -> None:
        self.store = store
        self.settings = settings
        self.bell = Bell()
        self._policies = Policies.read(settings.source_policies) if settings.source_policies else None
        self._models = models
        self._made: dict[str, BaseChatModel] = {}
        self._graphs = Graphs()
        self.recaller = Recaller(store, embedder_of(settings))
        self.pruner = Pruner(store, Policy.of(settings), self.recaller)
        self.memories = Memories(store, self.recaller.asker)
        self._hot = HotWindows(settings.memory_max_messages_per_thread)
        self._clearing = Background()
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
        async with open_store(settings.database, creates=creates) as store:
            if settings.sql_isolated:
                NURSERY.start()  # it is ready by the time the first source is asked
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
        await self._clearing.close()

    async def ask(
        self,
        question: str,
        *,
        thread_id: str | None = None,
        source: str | None = None,
        model: str | None = None,
        protocol: Protocol = "auto",
        max_steps: int | None = None,
        user_id: str | None = None,
    ) -> RunHandle:
        """Put a question on a thread (a new one by default). When this returns, the question is in the log.

        Args:
            source: what to ask, as `open_source` takes it; by default the thread's source, else the settings'.
            model: `provider:model` or `demo`; by default the settings' model.
            max_steps: model calls before the run pauses.

        Raises:
            InvalidInput: the question is empty or too long, or there is no source.
            SourceError: the source cannot be opened. Nothing was written.
            RunInProgress: the thread's run is being executed.
        """
        user = user_id or self.settings.user
        question = self._checked(question)
        models = self._models_of(model)
        opened = await self.source_of(source, thread_id, user)
        async with _closed_on_error(opened):
            asked = Ask(
                thread_id=thread_id or new_id(),
                user_id=user,
                question=question,
                source=opened.spec,
                fingerprint=await opened.fingerprint(),
                model=models.name,
                protocol=protocol,
                max_steps=max_steps or self.settings.max_steps,
            )
            return self._execute(await begin(self.store, asked, self._hot), models, opened, user)

    async def resume(
        self,
        thread_id: str,
        *,
        model: str | None = None,
        max_steps: int | None = None,
        source: str | None = None,
        user_id: str | None = None,
    ) -> RunHandle:
        """Go on with a thread's unfinished run: where its process died, or, when it was paused or failed, as if the
        user had said "continue".

        Raises:
            NothingToResume: the thread's last run is finished, or there is none.
            RunInProgress: it is being executed.
        """
        user = user_id or self.settings.user
        async with self.store.reading() as tx:
            thread = await log.find_thread(tx, thread_id, user_id=user)
            run = await runs.last_run(tx, thread_id)
        if run is None or run.status == "finished":
            raise NothingToResume(thread=thread_id)
        if run.status != "running":
            word = "继续" if is_chinese(run.question) else "continue"
            return await self.ask(
                word,
                thread_id=thread_id,
                model=model or run.model,
                max_steps=max_steps,
                source=source,
                protocol=run.protocol,
                user_id=user,
            )
        models = self._models_of(model or run.model)
        opened = await self.source_of(source, thread_id, user)
        async with _closed_on_error(opened):
            return self._execute(await take_over(self.store, thread, self._hot), models, opened, user)

    async def stop(self, thread_id: str, *, user_id: str | None = None) -> None:
        """Stop the thread's run if this process executes it.

        Raises:
            NothingToResume: this process executes none on the thread.
        """
        await self.thread(thread_id, user_id=user_id)
        handle = self._running.get(thread_id)
        if handle is None:
            raise NothingToResume(thread=thread_id)
        await handle.stop()

    async def forget_thread(self, thread_id: str, *, user_id: str | None = None) -> Forgotten:
        """Delete a thread with all that is kept of it, here too. Its place in the store's files is cleared in the
        background.

        Raises:
            ThreadNotFound: there is no such thread, or it is another user's.
            RunInProgress: a run on it is being executed.
        """
        user = user_id or self.settings.user
        gone = await delete_thread(self.store, thread_id, user_id=user, alive=may_be_alive)
        self._hot.forget(thread_id)

        async def clear() -> None:
            try:
                problems = await scrub(self.store, gone.rows)
            except StoreError as error:
                problems = [str(error)]
            for problem in problems:
                _logger.info("After the deletion of a thread: %s", problem)

        self._clearing.start(f"clear {new_id()}", clear)
        return gone

    async def settle(self) -> None:
        """Wait for what goes on in the background."""
        await self.recaller.settle()
        await self.memories.settle()
        await self._clearing.settle()

    async def thread(self, thread_id: str, *, user_id: str | None = None) -> Thread:
        """A thread's metadata."""
        async with self.store.reading() as tx:
            return await log.find_thread(tx, thread_id, user_id=user_id or self.settings.user)

    async def state(self, thread_id: str, *, user_id: str | None = None) -> dict[str, Any]:
        """The thread's state with document 000's fields, computed from all entries of its active branch."""
        async with self.store.reading() as tx:
            thread = await log.find_thread(tx, thread_id, user_id=user_id or self.settings.user)
            entries = await log.branch(tx, thread_id, thread.tip, limit=max(1, thread.entry_count))
            compressed = await summaries.state(tx, thread_id)
        return state_of(entries, compressed)

    def _checked(self, question: str) -> str:
        if not question.strip():
            raise InvalidInput(reason="The question is empty. Type one.")
        if len(question) > self.settings.max_question:
            raise QuestionTooLong(size=f"{len(question):,}", limit=f"{self.settings.max_question:,}")
        return question.encode("utf-8", "replace").decode("utf-8").replace("\x00", "\ufffd")

    def _models_of(self, name: str | None) -> Models:
        chosen = model_name(name, self.settings)
        fallback = self.settings.fallback_model
        return Models(
            name=chosen,
            model=self._model(chosen),
            fallback=self._model(fallback) if fallback and fallback != chosen else None,
            retries=self.settings.retry_attempts,
        )

    def _model(self, name: str) -> BaseChatModel:
        """The model of this name, made once: the settings stay the same, and so does the model."""
        if name not in self._made:
            while len(self._made) >= MODELS:
                del self._made[next(iter(self._made))]
            self._made[name] = self._models(name, self.settings)
        return self._made[name]

    async def source_of(self, spec: str | None, thread_id: str | None, user_id: str) -> Source:
        """The source to ask, opened for a user: as it is named, else the thread's, else the settings'. Whoever gets
        it closes it. Raises SourceError, InvalidInput when there is none."""
        if spec is None and thread_id is not None:
            async with self.store.reading() as tx:
                remembered = (await log.find_thread(tx, thread_id, user_id=user_id)).source
            spec = remembered and self._with_password(remembered)
        spec = spec or self.settings.source
        if not spec:
            raise InvalidInput(reason="There is no source to ask. Give one with --source, or try --source demo.")
        settings = self.settings
        limits = Limits(
            seconds=settings.sql_timeout,
            rows=settings.sql_rows,
            memory_mb=settings.sql_memory_mb,
            isolated=settings.sql_isolated,
        )
        policy = self._policies.of(spec, user_id) if self._policies is not None else None
        opened = await open_source(spec, limits=limits, policy=policy)
        self._given[opened.spec] = spec
        return opened

    def _with_password(self, spec: str) -> str:
        """A thread's source with the password that it was given with, here or in the settings: it is stored nowhere."""
        configured = self.settings.source
        if configured is not None and same_source(spec, configured):
            return configured
        return self._given.get(spec, spec)

    def _execute(self, begun: Begun, models: Models, source: Source, user_id: str) -> RunHandle:
        context = self._context(begun, models, source, user_id)
        # Here as well as at the end: what a process that was closed has left undone goes on.
        self._prune(context, begun, models, user_id)

        async def work() -> None:
            try:
                await execute(context, models, self._graphs, begun.known, user_id=user_id)
            finally:
                kept = (begun.run.id, context.past, context.mark)
                self._hot.keep(begun.thread, context.window.spots, context.prompts, *kept)
                self._factors[models.name] = context.factor
                await source.close()
                self.recaller.keep_up(Scope(user_id, begun.run.thread_id))
                self._prune(context, begun, models, user_id)
                self.memories.keep_up(user_id)
                # A client that saw the end may have started the thread's next run already.
                if self._running.get(begun.run.thread_id) is handle:
                    del self._running[begun.run.thread_id]

        task = asyncio.get_running_loop().create_task(work(), name=f"run {begun.run.id}")
        task.add_done_callback(_report)
        handle = RunHandle(begun.run, task, self.store, self.bell, after=begun.shown)
        self._running[begun.run.thread_id] = handle
        return handle

    def _prune(self, context: RunContext, begun: Begun, models: Models, user_id: str) -> None:
        self.pruner.keep_up(
            Scope(user_id, begun.run.thread_id),
            count=_behind(context.window.spots, begun),
            view=context.past.segments if context.past else (),
            kept=begun.hot.summary,
            stale=begun.hot.stale,
            summarizer=summarizer_of(models.name, models.model),
        )

    def _context(self, begun: Begun, models: Models, source: Source, user_id: str) -> RunContext:
        window = min(context_window(m, self.settings) for m in (models.model, models.fallback) if m is not None)
        context = RunContext(
            store=self.store,
            lease=begun.lease,
            stream=EventStream(self.store, begun.lease, self.bell, last=begun.last_event),
            run=begun.run,
            tools={},
            system_prompt=system_prompt(
                begun.known.facts,
                dialect=source.dialect,
                continues=begun.run.question if begun.run.continues else None,
                budget=int(window * KNOWLEDGE_SHARE),
            ),
            settings=self.settings,
            tokens=window,
            window=begun.window,
            protocol=begun.run.protocol,
            prompts=self._hot.prompts(begun.thread),
            queries=max([begun.known.facts.queries, *(_label(step.observation) for step in begun.earlier)]),
            family=family_of(models.name),
            factor=self._factor(models.name, begun.past),
            past=begun.past,
            summary=begun.hot.summary.summary if begun.hot.summary else "",
            topics=begun.hot.summary.topics if begun.hot.summary else (),
            mark=begun.hot.mark,
            earlier={step.call_id: step for step in begun.earlier if step.call_id},
        )
        context.fitting = lambda: self._fitting(begun.run.question, user_id)
        looked_for = begun.run.continues or begun.run.question
        tools = (*analysis_tools(source, looked_for), *self._own_tools(begun, context, user_id))
        context.tools = {tool.name: tool for tool in tools}
        return context

    async def _fitting(self, question: str, user_id: str) -> tuple[Memory, ...]:
        """The memories that fit a question. A run goes on without them where they cannot be read."""
        try:
            return tuple(await fitting(self.memories, Owner(user_id, ANALYST), question))
        except LongthreadError as error:
            _logger.warning("A run has no memories: %s", error)
            return ()

    def _factor(self, model: str, past: Past | None) -> float:
        """What a model's estimates are raised by: as its calls here have taught, or the thread's last one elsewhere."""
        factor = self._factors.get(model, 1.0)
        return corrected(factor, past.estimated, past.reported) if past is not None and past.model == model else factor

    def _own_tools(self, begun: Begun, context: RunContext, user_id: str) -> Sequence[Tool]:
        """The tools for what was said before: in this conversation, and in the user's others."""
        remembering = Remembering(
            store=self.store,
            memories=self.memories,
            owner=Owner(user_id, ANALYST),
            lease=begun.lease,
            seqs=(begun.window.spots[begun.window.question].entry.seq,),
            dropped=context.drop_memories,
        )
        return (self._recall_tool(begun, user_id, remembering), *remembering.tools())

    def _recall_tool(self, begun: Begun, user_id: str, remembering: Remembering) -> Tool:
        return recall_tool(
            self.recaller,
            Scope(user_id, begun.run.thread_id),
            thread_id=begun.run.thread_id,
            agent_id=None,
            top_k=self.settings.memory_recall_top_k,
            before=Place(begun.run.thread_id, begun.window.spots[begun.window.question].entry.seq),
            look_up=remembering.look_up,
        )


@asynccontextmanager
async def _closed_on_error(source: Source) -> AsyncIterator[None]:
    async with AsyncExitStack() as stack:
        stack.push_async_callback(source.close)
        yield
        stack.pop_all()  # whoever executes the run closes it


def _behind(spots: Sequence[Spot], begun: Begun) -> int:
    """How many messages stand behind the mark; where the window does not reach back to it, no fewer than there are."""
    if spots[0].entry.parent_seq <= begun.hot.mark:
        return len(spots)
    return spots[-1].entry.seq - max(begun.hot.mark, begun.thread.first_seq - 1)


def _label(observation: Any) -> int:
    data = observation.get("data") if observation else None
    return int(str(data.get("query", "q0"))[1:]) if isinstance(data, dict) else 0


def _report(task: asyncio.Task[None]) -> None:
    """A run that could not even tell its end (its lease was lost, the store is gone) is told in the log."""
    if not task.cancelled() and (error := task.exception()) is not None:
        _logger.error("%s ended without a final event: %s", task.get_name(), error)
