"""A query that a person has edited: it runs through the guard, and its result is another branch of the question."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from longthread.context.forks import Fork, go_to, question_of
from longthread.context.source_facts import known
from longthread.errors import EntryNotFound, RunInProgress, RunWaiting
from longthread.messages.entries import draft_of
from longthread.messages.message import Message, tool_call
from longthread.model.entry import NOTE, Draft
from longthread.model.ids import new_id, new_id_after
from longthread.model.run import Step
from longthread.runs.process import may_be_alive
from longthread.runs.services.results import KeptResult, Results
from longthread.runs.services.shared import RunServices
from longthread.store import log, runs
from longthread.store.driver import Transaction
from longthread.store.runs import NewRun
from longthread.tools.analysis.toolbox import run_query

_RUN_SQL = "run_sql"
_NOTE = "The user edited this query and ran it. It is not a call of yours."


class QueryEdits:
    """Runs queries that people have edited. No model is asked: the run of such a query holds one call."""

    def __init__(self, services: RunServices, results: Results) -> None:
        self._store = services.store
        self._hub = services.hub
        self._worker = services.worker
        self._results = results

    async def run(self, thread_id: str, index: int, sql: str, *, user_id: str) -> Step:
        """Run an edited query in the place of a step's, and return the new step. The question stays, and its branch
        with this query and result is the active one.

        Raises:
            SourceError, SourceMissing: the query is refused or fails. Nothing is written.
            EntryNotFound: the step ran no query.
            RunInProgress: a run works on the thread; RunWaiting: it waits for decisions.
            ThreadNotFound: there is no such thread, or it is another user's.
        """
        kept, data, started = await self._run(thread_id, index, sql, user_id)
        owner = await self._worker.id()
        async with self._store.writing() as tx:
            step = await _stored(tx, kept, data, started, by=user_id, owner=owner)
        self._hub.list_changed(user_id)
        return step

    async def preview(self, thread_id: str, index: int, sql: str, *, user_id: str) -> Step:
        """Run an edited query, and return a step as it would be. Nothing is written, and it has the number and the
        label of the query in whose place it is.

        Raises:
            SourceError, SourceMissing: the query is refused or fails.
            EntryNotFound: the step ran no query.
            ThreadNotFound: there is no such thread, or it is another user's.
        """
        kept, data, started = await self._run(thread_id, index, sql, user_id)
        observation = {"ok": True, "data": {"query": kept.data.get("query"), **data}}
        shown = replace(kept.step, action=_RUN_SQL, args={"sql": data["sql"]}, call_id=new_id(), entry_id=None)
        return replace(shown, started_at=started, elapsed_ms=int(data["elapsed_ms"]), observation=observation)

    async def _run(
        self, thread_id: str, index: int, sql: str, user_id: str
    ) -> tuple[KeptResult, dict[str, Any], datetime]:
        """What the step keeps, the data of the edited query's observation, and when it was run."""
        kept = await self._results.kept(thread_id, index, user_id)
        if not kept.can_run or kept.step.entry_id is None:
            raise EntryNotFound(thread=thread_id, entry=f"with a query at step {index}")
        started = datetime.now(UTC)
        async with await self._results.open_source(kept, user_id) as source:
            return kept, await run_query(source, sql), started


async def _stored(
    tx: Transaction, kept: KeptResult, data: Mapping[str, Any], started: datetime, *, by: str, owner: str
) -> Step:
    """Store the call and its result behind the question, as a run that has ended."""
    thread_id = kept.thread.id
    await log.position(tx, thread_id)
    thread = await log.find_thread(tx, thread_id, user_id=kept.thread.user_id)
    before = await runs.last_run(tx, thread_id)
    if before is not None and before.status in {"running", "waiting"}:
        kind = RunWaiting if before.status == "waiting" else RunInProgress
        raise kind(thread=thread_id, run=before.id)
    asked = await question_of(tx, thread_id, str(kept.step.entry_id))
    thread, _ = await go_to(tx, thread, Fork(asked.id, again=True))
    label = f"q{(await known(tx, thread, [], [])).facts.queries + 1}"
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
    note = {"edited_by": by} | ({"edits": edits} if edits else {})
    call = Message("assistant", "", id=new_id(), tool_calls=[tool_call(_RUN_SQL, {"sql": sql}, call_id)])
    call = replace(call, additional_kwargs={NOTE: note})
    text = json.dumps(observation, ensure_ascii=False, separators=(",", ":"), default=str)
    result = Message("tool", text, tool_call_id=call_id, name=_RUN_SQL, id=new_id())
    return [draft_of(each, run_id=run_id) for each in (call, result)]
