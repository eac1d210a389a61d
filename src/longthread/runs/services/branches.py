"""The branches of a thread: a person edits a question or a query, asks again, or goes back to another branch."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

from longthread.access.grants import EVERYTHING, GrantedRights
from longthread.context.forks import Fork, go_to, question_of
from longthread.context.source_facts import load_facts
from longthread.errors import EntryNotFound, NotSupported, RunInProgress, RunWaiting
from longthread.messages.entries import draft_of
from longthread.messages.message import Message, tool_call
from longthread.model.entry import Draft, Entry
from longthread.model.ids import new_id, new_id_after
from longthread.model.run import RunAsker, Step
from longthread.model.thread import Thread
from longthread.runs.services.results import KeptResult, Results
from longthread.runs.services.runs import Runs
from longthread.runs.services.sources import Sources
from longthread.runs.shared import RunHandle, RunServices, expect_idle
from longthread.runs.worker import may_be_alive
from longthread.store import branches, checkpoints, log, runs
from longthread.store.driver import Transaction
from longthread.store.runs import NewRun
from longthread.store.wait_list import QuestionKey
from longthread.tools.analysis.toolbox import run_query

_RUN_SQL = "run_sql"
_NOTE = "The user edited this query and ran it. It is not a call of yours."


@dataclass(frozen=True, slots=True)
class ForkOptions:
    """Options of the run at a fork; None: as `Runs.ask` chooses them. `key` is a client's and `asker` who asks, as
    there."""

    source: str | None = None
    model: str | None = None
    max_steps: int | None = None
    key: QuestionKey | None = None
    asker: RunAsker | None = None


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
        sibling of the existing ones.

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
            asker=chosen.asker,
        )


async def _source_of(tx: Transaction, thread: Thread, entry: Entry) -> str | None:
    """Return the source that the run of an entry asked, if the thread asks another one now."""
    if entry.run_id is None:
        return None
    run = await runs.find_run(tx, thread.id, entry.run_id)
    return None if run is None or run.source == thread.source else run.source


class QueryEdits:
    """Runs queries that people have edited. No model is asked: the run of such a query holds one call."""

    def __init__(self, services: RunServices, results: Results) -> None:
        self._store = services.store
        self._hub = services.hub
        self._worker = services.worker
        self._results = results

    async def run(
        self, thread_id: str, index: int, sql: str, *, user_id: str, rights: GrantedRights = EVERYTHING
    ) -> Step:
        """Run an edited query in the place of a step's, and return the new step. The question stays, and its branch
        with this query and result is the active one.

        Raises:
            SourceError, SourceMissing: the query is refused or fails. Nothing is written.
            EntryNotFound: the step ran no query.
            RunInProgress: a run works on the thread; RunWaiting: it waits for decisions.
            ThreadNotFound: there is no such thread, or it is another user's.
        """
        kept, data, started = await self._run(thread_id, index, sql, user_id, rights)
        owner = await self._worker.id()
        async with self._store.writing() as tx:
            step = await _store_result(tx, kept, data, started, by=user_id, owner=owner)
        self._hub.list_changed(user_id)
        return step

    async def preview(
        self, thread_id: str, index: int, sql: str, *, user_id: str, rights: GrantedRights = EVERYTHING
    ) -> Step:
        """Run an edited query, and return a step as it would be. Nothing is written, and it has the number and the
        label of the query in whose place it is.

        Raises:
            SourceError, SourceMissing: the query is refused or fails.
            EntryNotFound: the step ran no query.
            ThreadNotFound: there is no such thread, or it is another user's.
        """
        kept, data, started = await self._run(thread_id, index, sql, user_id, rights)
        observation = {"ok": True, "data": {"query": kept.data.get("query"), **data}}
        shown = replace(kept.step, action=_RUN_SQL, args={"sql": data["sql"]}, call_id=new_id(), entry_id=None)
        return replace(shown, started_at=started, elapsed_ms=int(data["elapsed_ms"]), observation=observation)

    async def _run(
        self, thread_id: str, index: int, sql: str, user_id: str, rights: GrantedRights
    ) -> tuple[KeptResult, dict[str, Any], datetime]:
        """What the step keeps, the data of the edited query's observation, and when it was run."""
        kept = await self._results.find_kept(thread_id, index, user_id)
        if not kept.can_run or kept.step.entry_id is None:
            raise EntryNotFound(thread=thread_id, entry=f"with a query at step {index}")
        started = datetime.now(UTC)
        async with await self._results.open_source(kept, user_id, rights) as source:
            return kept, await run_query(source, sql), started


async def _store_result(
    tx: Transaction, kept: KeptResult, data: Mapping[str, Any], started: datetime, *, by: str, owner: str
) -> Step:
    """Store the call and its result after the question, as a run that has ended."""
    thread_id = kept.thread.id
    await log.position(tx, thread_id)
    thread = await log.find_thread(tx, thread_id, user_id=kept.thread.user_id)
    before = await runs.last_run(tx, thread_id)
    if before is not None and before.status in {"running", "waiting"}:
        kind = RunWaiting if before.status == "waiting" else RunInProgress
        raise kind(thread=thread_id, run=before.id)
    asked = await question_of(tx, thread_id, str(kept.step.entry_id))
    thread, _ = await go_to(tx, thread, Fork(asked.id, again=True))
    label = f"q{(await load_facts(tx, thread, [], [])).facts.queries + 1}"
    observation = {"ok": True, "data": {"query": label, **data}, "edited": {"by": by, "note": _NOTE}}
    run_id, call_id = new_id_after(before.id if before else None), new_id()
    plan = NewRun(run_id, kept.run.question, kept.run.source, "", "auto", 1, question_seq=asked.seq)
    lease = await runs.begin(tx, thread_id, plan, owner=owner, alive=may_be_alive)
    drafts = _drafts(str(data["sql"]), observation, call_id, run_id, edits=kept.step.call_id, by=by)
    if kept.run.source is not None and kept.run.source != thread.source:
        await log.set_source(tx, thread_id, kept.run.source)
    entries = await log.append(tx, thread_id, drafts, tip=thread.tip, size=thread.entry_count)
    held = await runs.check(tx, lease)
    made = Step(thread_id, 0, run_id, "tool", "done", started, action=_RUN_SQL, args={"sql": data["sql"]})
    made = replace(made, call_id=call_id, elapsed_ms=int(data["elapsed_ms"]), entry_seq=entries[-1].seq)
    place = await runs.add_step(tx, lease, made, held=held)
    told = {"query": label, "sql": data["sql"], "columns": data["columns"], "shown": data["shown"]}
    usage = {"input_tokens": 0, "output_tokens": 0}
    outcome = {"answer": "", "citations": [], "queries": [told], "usage": usage, "edited_by": by}
    await runs.end(tx, lease, "finished", outcome, held=held)
    return replace(made, index=place, observation=observation, entry_id=entries[-1].id)


def _drafts(
    sql: str, observation: Mapping[str, Any], call_id: str, run_id: str, *, edits: str | None, by: str
) -> list[Draft]:
    """Return the call and its result. `edits` is the call in whose place it is."""
    note: dict[str, Any] = {"edited_by": by} | ({"edits": edits} if edits else {})
    call = Message("assistant", "", id=new_id(), tool_calls=[tool_call(_RUN_SQL, {"sql": sql}, call_id)])
    call = call.add_note(**note)
    text = json.dumps(observation, ensure_ascii=False, separators=(",", ":"), default=str)
    result = Message("tool", text, tool_call_id=call_id, name=_RUN_SQL, id=new_id())
    return [draft_of(each, run_id=run_id) for each in (call, result)]
