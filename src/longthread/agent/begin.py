"""Begin a run: in one transaction the user's message is in the log, and the run is ours."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from longthread.agent.owner import may_be_alive, new_owner
from longthread.errors import NothingToResume
from longthread.model.entry import Draft, Entry, ToolCall
from longthread.model.event import Event
from longthread.model.facts import Facts
from longthread.model.fold import facts_of
from longthread.model.ids import new_id
from longthread.model.run import Protocol, Run, Step, asks_to_continue
from longthread.model.thread import Thread, title_of
from longthread.store import log, runs
from longthread.store.driver import Driver, Transaction
from longthread.store.runs import Lease, Plan

HOT_WINDOW = 200
"""Messages of a thread that a run holds in its state (document 004, MEMORY_MAX_MESSAGES_PER_THREAD)."""


@dataclass(frozen=True, slots=True)
class Ask:
    """A user's message and how it is to be worked on. `source` and `fingerprint` are those of the opened source."""

    thread_id: str
    user_id: str
    question: str
    source: str
    fingerprint: str
    model: str
    protocol: Protocol
    max_steps: int


@dataclass(frozen=True, slots=True)
class Begun:
    """A run that is ours to execute.

    `entries` are the thread's hot window, `facts` what was known before the run, `question_id` the entry that started
    it, `last_event` the number of the last event it has told and `shown` that of the last one before this execution,
    `earlier` the steps it made in a process that died.
    """

    run: Run
    lease: Lease
    entries: Sequence[Entry]
    facts: Facts
    question_id: str
    last_event: int
    shown: int = 0
    earlier: Sequence[Step] = ()


async def begin(store: Driver, ask: Ask) -> Begun:
    """Store the user's message and start a run on it. When this returns, both survive anything.

    Raises:
        RunInProgress: the thread's run is being executed.
        ThreadNotFound: the thread is another user's.
    """
    async with store.writing() as tx:
        title = title_of(ask.question)
        thread = await log.create_thread(tx, ask.thread_id, user_id=ask.user_id, title=title, source=ask.source)
        if thread.source != ask.source:
            await log.set_source(tx, thread.id, ask.source)
        before = await runs.last_run(tx, thread.id)
        continued = _continued(before, ask)
        plan = Plan(
            run_id=new_id(),
            question=continued.question if continued else ask.question,
            source=ask.source,
            model=ask.model,
            protocol=ask.protocol,
            max_steps=ask.max_steps,
            continues=continued.id if continued else None,
        )
        lease = await runs.begin(tx, thread.id, plan, owner=new_owner(), alive=may_be_alive)
        question = _question(ask, plan)
        window = await log.branch(tx, thread.id, thread.tip, limit=HOT_WINDOW)
        closing = await _closing(tx, window, before, plan.run_id)
        added = await log.extend(tx, thread.id, [*closing, question], expect=thread.tip)
        facts = await _facts(tx, thread, [*window, *added])
        run = await runs.find_run(tx, thread.id, plan.run_id)
        assert run is not None
        await runs.append_events(tx, [_started(run)])
    return Begun(run, lease, _whole_units([*window, *added]), facts, question.id, last_event=1)


async def take_over(store: Driver, thread: Thread) -> Begun:
    """Take over the thread's last run, whose process died in the middle of it. It goes on just there.

    Raises:
        NothingToResume: the last run has ended.
        RunInProgress: its process is still at work.
    """
    async with store.writing() as tx:
        await log.position(tx, thread.id)
        run = await runs.last_run(tx, thread.id)
        if run is None or run.status != "running":
            raise NothingToResume(thread=thread.id)
        lease = await runs.take_over(tx, run, owner=new_owner(), alive=may_be_alive)
        thread = await log.find_thread(tx, thread.id, user_id=thread.user_id)
        window, started = await _window_with_start(tx, thread, run)
        facts = await _facts(tx, thread, [entry for entry in window if entry.seq <= started.seq])
        earlier = [step for step in await runs.steps_from(tx, thread.id, run.first_step) if step.call_id]
        told = await runs.last_event(tx, thread.id, run.id)
    return Begun(run, lease, _whole_units(window), facts, started.id, last_event=told, shown=told, earlier=earlier)


async def _window_with_start(tx: Transaction, thread: Thread, run: Run) -> tuple[list[Entry], Entry]:
    """The hot window, made as long as it must be to hold the entry that started the run."""
    limit = HOT_WINDOW
    while True:
        window = await log.branch(tx, thread.id, thread.tip, limit=limit)
        started = next((entry for entry in window if entry.metadata.get("run") == run.id), None)
        if started is not None:
            return window, started
        if len(window) < limit:
            raise NothingToResume(thread=thread.id)
        limit *= 2


def _started(run: Run) -> Event:
    names = ("question", "source", "model", "protocol", "max_steps", "continues")
    data = {name: getattr(run, name) for name in names}
    return Event(run.thread_id, run.id, 1, "started", data, datetime.now(UTC))


def _continued(before: Run | None, ask: Ask) -> Run | None:
    """The run that "continue" goes on with: only an unfinished one can be."""
    goes_on = before is not None and before.status != "finished" and asks_to_continue(ask.question)
    return before if goes_on else None


def _question(ask: Ask, plan: Plan) -> Draft:
    note = {
        "kind": "question",
        "run": plan.run_id,
        "source": ask.source,
        "fingerprint": ask.fingerprint,
        "max_steps": ask.max_steps,
    }
    payload = json.dumps({"additional_kwargs": {"longthread": note}}, ensure_ascii=False, separators=(",", ":"))
    return Draft(
        id=new_id(), role="user", text=ask.question, payload=payload.encode(), run_id=plan.run_id, metadata=note
    )


def _open_calls(window: Sequence[Entry]) -> dict[str, ToolCall]:
    """The calls of a window that have no result, by id."""
    calls: dict[str, ToolCall] = {}
    for entry in window:
        calls |= {call.id: call for call in entry.tool_calls}
        calls.pop(entry.tool_call_id or "", None)
    return calls


async def _closing(tx: Transaction, window: Sequence[Entry], before: Run | None, run_id: str) -> list[Draft]:
    """Results for calls that a broken-off run left open: what the steps hold, or that it was interrupted."""
    calls = _open_calls(window)
    if not calls or before is None:
        return []
    steps = {step.call_id: step for step in await runs.steps_from(tx, before.thread_id, before.first_step)}
    drafts: list[Draft] = []
    for call in calls.values():
        step = steps.get(call.id)
        observation = step.observation if step and step.status == "done" else None
        text = json.dumps(observation or _INTERRUPTED, ensure_ascii=False, separators=(",", ":"))
        drafts.append(Draft(id=new_id(), role="tool", text=text, tool_call_id=call.id, name=call.name, run_id=run_id))
    return drafts


_INTERRUPTED = {
    "ok": False,
    "error": {"type": "interrupted", "message": "The run was stopped before this call was finished."},
}


async def _facts(tx: Transaction, thread: Thread, window: Sequence[Entry]) -> Facts:
    """The facts after the window's last entry, from the saved ones where they reach into the window."""
    saved = await runs.saved_fold(tx, thread.id)
    seqs = [entry.seq for entry in window]
    if saved and saved[0] in seqs:
        return facts_of(Facts.from_json(saved[1]), window[seqs.index(saved[0]) + 1 :])
    if window and window[0].parent_seq == 0:
        return facts_of(Facts(), window)
    whole = await log.branch(tx, thread.id, seqs[-1], limit=thread.entry_count + len(window)) if window else []
    return facts_of(Facts(), whole)


async def save_facts(store: Driver, thread_id: str, *, user_id: str) -> None:
    """Keep what the thread's entries have taught, so that the next run starts from it.

    Not while a call has no result: what comes in later would be folded without its call.
    """
    async with store.writing() as tx:
        await log.position(tx, thread_id)
        thread = await log.find_thread(tx, thread_id, user_id=user_id)
        window = await log.branch(tx, thread_id, thread.tip, limit=HOT_WINDOW)
        if _open_calls(window):
            return
        facts = await _facts(tx, thread, window)
        await runs.save_fold(tx, thread_id, thread.tip, facts.to_json())


def _whole_units(window: Sequence[Entry]) -> list[Entry]:
    """The window from its first user message on: no answer or result in it lacks its question."""
    first = next((n for n, entry in enumerate(window) if entry.role == "user"), 0)
    return list(window[first:])
