"""Begin a run: one transaction stores the user's message and takes the run's lease."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from longthread.context.forks import ClientBranch, Fork, follow, go_to, run_of_branch
from longthread.context.source_facts import KnownFacts, load_facts
from longthread.context.window import PreviousCall, Window, WindowMessage, spots_of
from longthread.context.window_cache import CachedWindow, WindowCache
from longthread.errors import NothingToResume, RunWaiting, ThreadNotFound
from longthread.messages.entries import draft_of
from longthread.messages.message import Message
from longthread.model.catalog import BUILTIN
from longthread.model.entry import Draft, Entry
from longthread.model.fold import CONTINUES
from longthread.model.ids import new_id, new_id_after
from longthread.model.language import agrees, asks_to_continue
from longthread.model.memory import ANALYST
from longthread.model.run import AgentRun, Answers, Approval, Protocol, Run, RunAsker, Step, start_of
from longthread.model.thread import Thread, title_of
from longthread.runs.agents import DelegatingCall
from longthread.runs.end_run import closing_of, interrupted_of
from longthread.runs.services.threads import follow_question
from longthread.runs.tool_calls import describe_superseded
from longthread.runs.views import past_of
from longthread.runs.worker import Hold, RunWorker, may_be_alive
from longthread.store import branches, log, run_events, runs, wait_list
from longthread.store.driver import Driver, Transaction
from longthread.store.leases import Lease
from longthread.store.runs import NewRun
from longthread.store.wait_list import QuestionKey

_ANALYST = AgentRun(ANALYST, BUILTIN["agent", ANALYST].version)


@dataclass(frozen=True, slots=True)
class RunRequest:
    """A user's message and how to work on it. `source` and `fingerprint` are those of the opened source; None if the
    agent has none. `caller` is the agent's call that asks, if any. `place` is where the question goes, if not to the
    conversation's end: where a client that holds the conversation itself puts it, or a fork. `key` is a client's, under
    which it may send the question again. `rolls_back` is a run that the question replaces, if that is still the
    thread's last one. `continues` says whether the message goes on with an unfinished run; None: its wording does.
    `asker` is whose rights the run has; None: it may use all, as without a login."""

    thread_id: str
    user_id: str
    question: str
    source: str | None
    fingerprint: str | None
    model: str
    protocol: Protocol
    max_steps: int
    agent: AgentRun = _ANALYST
    caller: DelegatingCall | None = None
    place: ClientBranch | Fork | None = None
    key: QuestionKey | None = None
    rolls_back: str | None = None
    continues: bool | None = None
    asker: RunAsker | None = None


@dataclass(frozen=True, slots=True)
class StartedRun:
    """A run that this process executes.

    `window` are the thread's last messages, up to the one that starts the run or, after a crash, up to the last one
    stored. `known` are the facts from before the run. `last_event` is the number of the run's last event, and `shown`
    that of the last one before this execution. `earlier` are its steps in a process that died. `past` is the thread's
    last model call, `cached` the window as it was found, with the thread's summary.
    """

    thread: Thread
    run: Run
    hold: Hold
    window: Window
    known: KnownFacts
    cached: CachedWindow
    last_event: int
    shown: int = 0
    earlier: Sequence[Step] = ()
    past: PreviousCall | None = None
    approvals: Mapping[str, Approval] = field(default_factory=dict)

    def behind(self, spots: Sequence[WindowMessage]) -> int:
        """Count the messages after the summary's mark; at least all of the window, if that does not reach back to the
        mark."""
        if spots[0].entry.parent_seq <= self.cached.mark:
            return len(spots)
        return spots[-1].entry.seq - max(self.cached.mark, self.thread.first_seq - 1)


@dataclass(frozen=True, slots=True)
class BegunRun:
    """A run that is stored when its transaction commits."""

    thread: Thread
    run: Run
    lease: Lease
    window: Window
    known: KnownFacts
    cached: CachedWindow
    past: PreviousCall | None

    def held(self, worker: RunWorker) -> StartedRun:
        """Return the run as this worker executes it, after the commit."""
        hold = worker.hold(self.lease)
        return StartedRun(
            self.thread, self.run, hold, self.window, self.known, self.cached, last_event=1, past=self.past
        )


async def begin(store: Driver, ask: RunRequest, cache: WindowCache, worker: RunWorker) -> StartedRun:
    """Store the user's message and start a run on it. When this returns, both survive a crash. Calls that waited for a
    decision are superseded.

    Raises:
        RunWaiting: the run waits for decisions, and the message only asks to continue, or is another agent's.
        RunInProgress: the thread's run is being executed.
        RunRepeated: a client's question is stored already.
        KeyReused: the key stands for another request.
        ThreadNotFound: the thread is another user's.
        LeaseLost: the agent that asks has lost its run to another process.
    """
    owner = await worker.id()
    async with store.writing() as tx:
        if ask.caller is not None:
            await runs.check(tx, ask.caller.lease)
        thread = await find_or_create(tx, ask)
        begun = await begin_on(tx, thread, ask, cache, owner)
    return begun.held(worker)


async def begin_on(tx: Transaction, thread: Thread, ask: RunRequest, cache: WindowCache, owner: str) -> BegunRun:
    """As `begin`, in a transaction that has locked the thread."""
    if ask.source is not None and thread.source != ask.source:
        await log.set_source(tx, thread.id, ask.source)
    left = thread.tip
    thread, again = await _activate_branch(tx, thread, ask.place)
    if isinstance(ask.place, Fork) and again is None and thread.tip == 0:
        thread = await follow_question(tx, thread, ask.place.entry_id, ask.question)
    before = await runs.last_run(tx, thread.id)
    if before is not None and before.id == ask.rolls_back:
        thread = await _rolled_back(tx, thread, before, cache)
    # Another question from a person supersedes the calls that wait; an agent cannot do that.
    goes_on = ask.caller is not None or asks_to_continue(ask.question)
    if before is not None and before.status == "waiting" and goes_on:
        raise RunWaiting(thread=thread.id, run=before.id)
    run_id = new_id_after(before.id if before else None)
    ask = replace(ask, agent=ask.agent.after(before.agent if before else None))
    found = await cache.read(tx, thread)
    window = [spot.entry for spot in found.spots]
    here = await _run_here(tx, before, window, moved=thread.tip != left)
    closing = await closing_of(tx, window, before, run_id, by=ask.user_id, why=describe_superseded())
    if before is not None and here is not None and here.id == before.id and before.status == "running" and not again:
        closing += [reply] if (reply := await interrupted_of(tx, before)) is not None else []
    asked = again.seq if again else thread.entry_count + len(closing) + 1
    continued = await _continued_before(tx, again) if again else _find_continued(here, ask)
    plan = _plan(ask, run_id, continued, asked)
    lease = await runs.begin(tx, thread.id, plan, owner=owner, alive=may_be_alive, tells=True)
    drafts = [*closing, *([] if again else [_question(ask, plan)])]
    added = await log.append(tx, thread.id, drafts, tip=thread.tip, size=thread.entry_count)
    facts = await load_facts(tx, thread, window, added)
    past = (cache.past(thread, here.id) or await past_of(tx, here)) if here and not again else None
    if ask.key is not None:
        await wait_list.save_key(tx, ask.user_id, ask.key, thread_id=thread.id, run_id=run_id)
    run = await runs.find_run(tx, thread.id, plan.run_id)
    assert run is not None
    spots = _whole_units([*found.spots, *spots_of(added)])
    return BegunRun(thread, run, lease, Window(spots, len(spots) - 1), facts, found, past)


async def take_over(
    store: Driver,
    thread: Thread,
    cache: WindowCache,
    worker: RunWorker,
    claim: Hold | None = None,
    *,
    model: str,
    asker: RunAsker | None = None,
) -> StartedRun:
    """Take over the thread's last run where its process died, or continue one that is ours already (`claim`). The run
    is this model's from now on, and has the rights of `asker`.

    Raises:
        NothingToResume: the last run has ended.
        RunInProgress: its process is still at work.
        RunWaiting: it waits for decisions.
        LeaseLost: the claimed run is no longer ours.
    """
    owner = await worker.id()
    async with store.writing() as tx:
        await log.position(tx, thread.id)
        run = await runs.last_run(tx, thread.id)
        if run is not None and run.status == "waiting":
            raise RunWaiting(thread=thread.id, run=run.id)
        if run is None or run.status != "running":
            raise NothingToResume(thread=thread.id)
        if claim is None:
            lease = await runs.take_over(tx, run, owner=owner, alive=may_be_alive)
        else:
            lease = claim.lease
            await runs.check(tx, lease)
        await runs.go_on(tx, lease, model)
        if asker != run.asker:
            await runs.set_asker(tx, run, asker)
        run = replace(run, model=model, asker=asker)
        thread = await log.find_thread(tx, thread.id, user_id=thread.user_id)
        found = await cache.read(tx, thread)
        spots, place = await _spots_with_start(tx, thread, run, found, cache.limit)
        facts = await load_facts(tx, thread, [spot.entry for spot in spots[: place + 1]], [])
        earlier = [step for step in await runs.steps_of(tx, run) if step.call_id]
        told = await run_events.last_event(tx, thread.id, run.id)
        decided = {call.call_id: call for call in await wait_list.of_run(tx, thread.id, run.id) if call.decision}
        past = await past_of(tx, run)
    whole = _whole_units(spots)
    window = Window(whole, place - (len(spots) - len(whole)))
    history: dict[str, Any] = {"earlier": earlier, "past": past, "approvals": decided}
    return StartedRun(thread, run, worker.hold(lease), window, facts, found, last_event=told, shown=told, **history)


async def find_or_create(tx: Transaction, ask: RunRequest) -> Thread:
    """Return the question's thread, created if there is none, and lock it until the transaction ends.

    Raises:
        ThreadNotFound: it is another user's.
    """
    try:
        await log.position(tx, ask.thread_id)
        thread = await log.find_thread(tx, ask.thread_id, user_id=ask.user_id)
    except ThreadNotFound:
        title = title_of(ask.question)
        # Another user's id is not found either: the error must not reveal that it exists.
        parent = ask.caller.lease.thread_id if ask.caller is not None else None
        about = {"title": title, "source": ask.source, "parent": parent}
        thread = await log.create_thread(tx, ask.thread_id, user_id=ask.user_id, **about)
    if ask.agent.id != ANALYST and thread.agent_id is None:
        await log.set_agent(tx, thread.id, ask.agent.id)
    return thread


async def _activate_branch(
    tx: Transaction, thread: Thread, place: ClientBranch | Fork | None
) -> tuple[Thread, Entry | None]:
    """Make the branch that a question goes to the active one. Returns the thread, and the question that is answered
    again."""
    if isinstance(place, Fork):
        return await go_to(tx, thread, place)
    return thread if place is None else await follow(tx, thread, place), None


async def _run_here(tx: Transaction, before: Run | None, window: Sequence[Entry], *, moved: bool) -> Run | None:
    """Return the run that the branch ends with. `moved`: the thread's last run `before` may be of another branch."""
    end = window[-1] if window else None
    return None if moved and (end is None or end.run_id is None) else await run_of_branch(tx, before, end)


async def _rolled_back(tx: Transaction, thread: Thread, run: Run, cache: WindowCache) -> Thread:
    """Return the thread as it was before the question of its last run: what followed stays, as another branch."""
    found = await cache.read(tx, thread)
    try:
        spots, place = await _spots_with_start(tx, thread, run, found, cache.limit)
    except NothingToResume:
        return thread  # retention has deleted the question, or a client has left its branch
    before = spots[place].entry.parent_seq
    before = before if before >= thread.first_seq else 0
    await branches.leave(tx, thread, before)
    await log.set_tip(tx, thread.id, before)
    return await log.find_thread(tx, thread.id, user_id=thread.user_id)


async def _spots_with_start(
    tx: Transaction, thread: Thread, run: Run, cached: CachedWindow, limit: int
) -> tuple[list[WindowMessage], int]:
    """Return the thread's last messages, enough to hold the entry that started the run, and the index of that."""
    spots = cached.spots
    while True:
        place = start_of([spot.entry for spot in spots], run)
        if place is not None:
            return spots, place
        if not thread.tip or (spots and spots[0].entry.parent_seq == 0):
            raise NothingToResume(thread=thread.id)
        limit *= 2
        spots = spots_of(await log.branch(tx, thread.id, thread.tip, limit=limit))


def _plan(ask: RunRequest, run_id: str, continued: Run | None, asked: int) -> NewRun:
    """Return the new run; `asked` is the seq that the user's message gets."""
    return NewRun(
        run_id=run_id,
        question=continued.question if continued else ask.question,
        question_seq=continued.question_seq if continued else asked,
        source=ask.source,
        model=ask.model,
        protocol=ask.protocol,
        max_steps=ask.max_steps,
        continues=continued.id if continued else None,
        agent=ask.agent,
        answers=Answers(ask.caller.lease.run_id, ask.caller.call_id) if ask.caller is not None else None,
        asker=ask.asker,
    )


def _find_continued(before: Run | None, ask: RunRequest) -> Run | None:
    """Return the run that the message continues: an unfinished one, or with a mere "yes" one whose pause has asked
    whether to go on. A client's own word (`continues`) is before the wording."""
    if before is None or before.status == "finished":
        return None
    asked = before.status == "paused" and before.outcome.get("reason") in ("max_steps", "repeated", "budget_spent")
    says_so = asks_to_continue(ask.question) or (asked and agrees(ask.question))
    return before if (says_so if ask.continues is None else ask.continues) else None


async def _continued_before(tx: Transaction, again: Entry) -> Run | None:
    """Return the run that a message continues which is answered again."""
    answered = await runs.find_run(tx, again.thread_id, str(again.run_id)) if again.metadata.get(CONTINUES) else None
    return await runs.find_run(tx, again.thread_id, answered.continues) if answered and answered.continues else None


def _question(ask: RunRequest, plan: NewRun) -> Draft:
    source = {"source": ask.source, "fingerprint": ask.fingerprint} if ask.source is not None else {}
    note: dict[str, Any] = {"run": plan.run_id, **source, "max_steps": ask.max_steps}
    note |= {CONTINUES: True} if plan.continues is not None else {}
    entry_id = ask.place.entry_id if isinstance(ask.place, ClientBranch) else new_id()
    message = Message("user", ask.question, id=entry_id).add_note(kind="question", **note)
    draft = draft_of(message, run_id=plan.run_id)
    if not isinstance(ask.place, ClientBranch) or ask.place.sent_id is None:
        return draft
    return replace(draft, metadata={**draft.metadata, log.MESSAGE_ID: ask.place.sent_id})


def _whole_units(spots: Sequence[WindowMessage]) -> list[WindowMessage]:
    """Return the window from its first user message on, so that no answer or result lacks its question."""
    first = next((n for n, spot in enumerate(spots) if spot.entry.role == "user"), 0)
    return list(spots[first:])
