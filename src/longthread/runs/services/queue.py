"""Questions that wait, for a busy thread or for room: each becomes a run when its turn comes."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import UTC, datetime

from longthread.context.forks import ClientBranch
from longthread.context.window_cache import WindowCache
from longthread.errors import QuestionNotFound, QuestionsWait
from longthread.metrics import QUEUE_SECONDS
from longthread.model.ids import new_id
from longthread.model.thread import Thread
from longthread.runs.shared import RunServices
from longthread.runs.start import RunRequest, StartedRun, begin_on, find_or_create
from longthread.runs.worker import RunWorker, may_be_alive
from longthread.store import leases, log, runs, wait_list
from longthread.store.driver import Driver, Transaction
from longthread.store.leases import LiveRun
from longthread.store.wait_list import QuestionPlan, QueuedQuestion, StartableQuestion, WhenBusy

URGENT = frozenset({"interrupt", "rollback"})
"""What stops the run under way, and comes before what waits."""


@dataclass(frozen=True, slots=True)
class RunLimits:
    """What a user may have at once: live runs, on all servers, and queued questions. `runs` None: as many as servers
    execute."""

    runs: int | None
    queued: int


async def begin_or_queue(
    store: Driver,
    ask: RunRequest,
    cache: WindowCache,
    worker: RunWorker,
    *,
    when_busy: WhenBusy,
    room: bool,
    limits: RunLimits,
) -> StartedRun | QueuedQuestion:
    """Start a run on a question, or queue it, in one transaction. When this returns, the question survives a crash.

    A thread is busy while its run is executed or to be claimed, or questions wait on it. A run that waits for a person
    is superseded, as by `begin`: who asks has seen its calls. Those whose questions waited before have not, and they
    go on waiting.

    Args:
        room: whether this process may execute one more run.

    Raises:
        QueueFull: the user's queue is.
        QuestionsWait: `reject`, and questions wait on the thread.
        RunInProgress, KeyReused, ThreadNotFound: as `begin`.
    """
    owner = await worker.id()
    async with store.writing() as tx:
        if limits.runs is not None:
            await wait_list.lock_user(tx, ask.user_id)
        thread = await find_or_create(tx, ask)
        live = await leases.live(tx, thread.id, alive=may_be_alive)
        if live is not None and when_busy == "rollback":
            ask = replace(ask, rolls_back=live.id)
        waits = await _waits(tx, thread, live, when_busy)
        if not waits and (live is None or live.is_left):
            waits = not room or not await _has_room(tx, ask, limits)
        if waits:
            return await _add(tx, thread, ask, first=when_busy in URGENT, limits=limits)
        begun = await begin_on(tx, thread, ask, cache, owner)
    return begun.held(worker)


async def begin_queued(
    store: Driver,
    turn: StartableQuestion,
    cache: WindowCache,
    worker: RunWorker,
    limits: RunLimits,
    *,
    fingerprint: str | None = None,
) -> StartedRun | None:
    """Make a queued question a run of this worker; None if its turn is over: another process has begun it, or something
    else began on its thread.

    Args:
        fingerprint: the source's present one; by default the one of when the question was asked.

    Raises:
        ThreadNotFound: the thread was deleted.
    """
    owner = await worker.id()
    async with store.writing() as tx:
        if limits.runs is not None:
            await wait_list.lock_user(tx, turn.user_id)
        await log.position(tx, turn.thread_id)
        next_one = next(iter(await wait_list.of_thread(tx, turn.thread_id)), None)
        if next_one is None or next_one.id != turn.id:
            return None
        live = await leases.live(tx, turn.thread_id, alive=may_be_alive)
        if live is not None and not live.is_left:
            return None
        if limits.runs is not None and (await wait_list.load(tx, turn.user_id)).live >= limits.runs:
            return None
        await wait_list.remove(tx, turn.thread_id, turn.id)
        ask = _request_of(next_one, turn.user_id, fingerprint)
        begun = await begin_on(tx, await find_or_create(tx, ask), ask, cache, owner)
    QUEUE_SECONDS.note(seconds=max(0.0, (datetime.now(UTC) - next_one.queued_at).total_seconds()))
    return begun.held(worker)


async def _waits(tx: Transaction, thread: Thread, live: LiveRun | None, when_busy: WhenBusy) -> bool:
    """Whether a question must wait for its thread. One that is urgent stops the run under way."""
    executed = live is not None and not live.waits and live.held
    if live is not None and executed and when_busy in URGENT:
        run = await runs.find_run(tx, thread.id, live.id)
        assert run is not None
        await runs.request_stop(tx, run, by=thread.user_id)
        return True
    if when_busy in URGENT:
        return False
    waiting = await wait_list.of_thread(tx, thread.id)
    if when_busy == "reject":
        if waiting and not executed:
            raise QuestionsWait(thread=thread.id, run=waiting[0].id)
        return False  # if it is executed, the run cannot begin
    goes_on = live is not None and not live.waits and live.claimable  # here, or in whatever process claims it
    return bool(waiting) or executed or goes_on


async def _has_room(tx: Transaction, ask: RunRequest, limits: RunLimits) -> bool:
    """Whether the user may have one more run. Questions that waited for it come first."""
    return limits.runs is None or sum(await wait_list.load(tx, ask.user_id)) < limits.runs


async def _add(tx: Transaction, thread: Thread, ask: RunRequest, *, first: bool, limits: RunLimits) -> QueuedQuestion:
    plan = QuestionPlan(
        ask.question,
        ask.source,
        ask.fingerprint,
        ask.model,
        ask.protocol,
        ask.max_steps,
        ask.agent,
        ask.rolls_back,
        ask.asker,
    )
    queued_id = new_id()
    if ask.key is not None:  # before the questions are counted: one that waits already is not refused
        await wait_list.save_key(tx, ask.user_id, ask.key, thread_id=thread.id, run_id=queued_id)
    return await wait_list.add(tx, thread.id, queued_id, plan, user_id=thread.user_id, first=first, most=limits.queued)


def _request_of(queued: QueuedQuestion, user_id: str, fingerprint: str | None) -> RunRequest:
    plan = queued.plan
    asked = RunRequest(
        thread_id=queued.thread_id,
        user_id=user_id,
        question=plan.question,
        source=plan.source,
        fingerprint=fingerprint or plan.fingerprint,
        model=plan.model,
        protocol=plan.protocol,
        max_steps=plan.max_steps,
        place=ClientBranch(queued.id),  # the entry gets the question's id: its run is found by that
        rolls_back=plan.rolls_back,
        asker=plan.asker,
    )
    return asked if plan.agent is None else replace(asked, agent=plan.agent)


class Queue:
    """Lists and removes queued questions, and finds the runs that they become. `Runs.submit` adds them."""

    def __init__(self, services: RunServices) -> None:
        self._store = services.store
        self._hub = services.hub

    async def of_thread(self, thread_id: str, *, user_id: str) -> list[QueuedQuestion]:
        """Return the questions that wait on a thread, the next one first.

        Raises:
            ThreadNotFound: there is no such thread, or it is another user's.
        """
        async with self._store.reading() as tx:
            await log.find_row(tx, thread_id, user_id=user_id)
            return await wait_list.of_thread(tx, thread_id)

    async def find(self, thread_id: str, question_id: str, *, user_id: str) -> QueuedQuestion | str:
        """Return a question while it waits, then the id of the run that it has become.

        Raises:
            QuestionNotFound: it was removed, or there never was one.
            ThreadNotFound: there is no such thread, or it is another user's.
        """
        async with self._store.reading() as tx:
            await log.find_row(tx, thread_id, user_id=user_id)
            waiting = await wait_list.find(tx, thread_id, question_id)
            found = waiting or await wait_list.run_of(tx, thread_id, question_id)
        if found is None:
            raise QuestionNotFound(thread=thread_id, question=question_id)
        return found

    async def remove(self, thread_id: str, question_id: str, *, user_id: str) -> None:
        """Delete a question that waits: it is never asked, also if its client sends it again under its key.

        Raises:
            QuestionNotFound: it does not wait (any more).
            ThreadNotFound: there is no such thread, or it is another user's.
        """
        async with self._store.writing() as tx:
            await log.position(tx, thread_id)
            await log.find_row(tx, thread_id, user_id=user_id)
            if not await wait_list.remove(tx, thread_id, question_id):
                raise QuestionNotFound(thread=thread_id, question=question_id)
        self._hub.question_changed(question_id)
        self._hub.list_changed(user_id)

    async def clear(self, thread_id: str, *, user_id: str) -> None:
        """Delete all questions that wait on a thread.

        Raises:
            ThreadNotFound: there is no such thread, or it is another user's.
        """
        async with self._store.writing() as tx:
            await log.position(tx, thread_id)
            await log.find_row(tx, thread_id, user_id=user_id)
            found = await wait_list.of_thread(tx, thread_id)
            for each in found:
                await wait_list.remove(tx, thread_id, each.id)
        for each in found:
            self._hub.question_changed(each.id)
