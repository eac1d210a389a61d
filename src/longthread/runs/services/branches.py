"""The branches of a thread: a person edits a question, asks again, or goes back to another branch."""

from __future__ import annotations

from dataclasses import dataclass, replace

from longthread.context.forks import Fork, question_of
from longthread.errors import NotSupported
from longthread.model.entry import Entry
from longthread.model.thread import Thread
from longthread.runs.handle import RunHandle
from longthread.runs.services.runs import Runs
from longthread.runs.services.shared import RunServices, expect_idle
from longthread.runs.services.sources import Sources
from longthread.store import branches, checkpoints, log, runs
from longthread.store.driver import Transaction
from longthread.store.questions.keys import QuestionKey


@dataclass(frozen=True, slots=True)
class ForkOptions:
    """Options of the run at a fork; None: as `Runs.ask` chooses them. `key` is a client's, as there."""

    source: str | None = None
    model: str | None = None
    max_steps: int | None = None
    key: QuestionKey | None = None


class ThreadBranches:
    """Makes branches and chooses among them. Nothing is overwritten: what was there stays as another branch."""

    def __init__(self, services: RunServices, sources: Sources, asking: Runs) -> None:
        self._sources = sources
        self._store = services.store
        self._hub = services.hub
        self._runs = asking

    async def edit(
        self, thread_id: str, entry_id: str, question: str, *, user_id: str, options: ForkOptions | None = None
    ) -> RunHandle:
        """Ask another question in the place of one of the thread: the new one is its sibling, and asks the same source
        unless the options name one. When this returns, it is in the log.

        Raises:
            EntryNotFound: the thread has no such entry.
            NotAQuestion: it is no question.
            ThreadNotFound: there is no such thread, or it is another user's.
            and what `Runs.ask` raises.
        """
        async with self._store.reading() as tx:
            thread = await log.find_thread(tx, thread_id, user_id=user_id)
            source = await _source_of(tx, thread, await log.find_entry(tx, thread_id, entry_id))
        return await self._begin(thread_id, question, Fork(entry_id), user_id, await self._asking(options, source))

    async def again(
        self, thread_id: str, entry_id: str, *, user_id: str, options: ForkOptions | None = None
    ) -> RunHandle:
        """Have a question answered again: its own entry, or the one that an answer belongs to. The new answer is a
        sibling of those that are there.

        Raises:
            EntryNotFound: the thread has no such entry.
            NotAQuestion: it is no question, and answers none.
            ThreadNotFound: there is no such thread, or it is another user's.
            and what `Runs.ask` raises.
        """
        async with self._store.reading() as tx:
            thread = await log.find_thread(tx, thread_id, user_id=user_id)
            asked = await question_of(tx, thread_id, entry_id)
            source = await _source_of(tx, thread, asked)
        fork = Fork(asked.id, again=True)
        return await self._begin(thread_id, asked.shown_text, fork, user_id, await self._asking(options, source))

    async def choose(self, thread_id: str, entry_id: str, *, user_id: str) -> Entry:
        """Make the branch with an entry the active one, and return its end. What was chosen below is chosen again.

        Raises:
            RunInProgress: a run works on the active branch; RunWaiting: it waits for decisions.
            NotSupported: the thread is a LangGraph application's, which chooses by checkpoints.
            EntryNotFound: the thread has no such entry.
            ThreadNotFound: there is no such thread, or it is another user's.
        """
        async with self._store.writing() as tx:
            await log.position(tx, thread_id)
            thread = await log.find_thread(tx, thread_id, user_id=user_id)
            entry = await log.find_entry(tx, thread_id, entry_id)
            await expect_idle(tx, thread_id)
            if await checkpoints.namespaces(tx, thread_id):
                raise NotSupported(what="Another branch", reason="the application chooses it, by its checkpoints.")
            tip = await branches.choose(tx, thread, entry.seq)
            end = (await log.entries_at(tx, thread_id, [tip]))[tip]
            if source := await _source_of(tx, thread, end):  # what comes next on this branch asks it
                await log.set_source(tx, thread_id, source)
        self._hub.list_changed(user_id)
        return end

    async def _asking(self, options: ForkOptions | None, source: str | None) -> ForkOptions:
        """Return the options; where they name no source, with this one."""
        chosen = options or ForkOptions()
        if chosen.source is not None or source is None:
            return chosen
        return replace(chosen, source=await self._sources.with_password(source))

    async def _begin(self, thread_id: str, question: str, fork: Fork, user_id: str, chosen: ForkOptions) -> RunHandle:
        return await self._runs.ask(
            question,
            thread_id=thread_id,
            user_id=user_id,
            source=chosen.source,
            model=chosen.model,
            max_steps=chosen.max_steps,
            key=chosen.key,
            place=fork,
        )


async def _source_of(tx: Transaction, thread: Thread, entry: Entry) -> str | None:
    """Return the source that the run of an entry asked, if the thread asks another one now."""
    if entry.run_id is None:
        return None
    run = await runs.find_run(tx, thread.id, entry.run_id)
    return None if run is None or run.source == thread.source else run.source
