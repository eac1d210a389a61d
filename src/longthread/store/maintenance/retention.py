"""Retention plans: nothing that a thread's window, a run or a remaining checkpoint still needs is deleted. Expired
threads are deleted at once, or in the background of a server."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from longthread.errors import RowDamaged, StoreError
from longthread.store import checkpoints, incarnation, log, runs, summaries
from longthread.store.driver import Driver, Row, Transaction, one
from longthread.store.leases import IsAlive, find_running, is_held
from longthread.store.rows import moment_of, of_thread


@dataclass(frozen=True, slots=True)
class RowDeletion:
    """Rows to delete: a `DELETE FROM` query's name, and its values besides the thread's id."""

    query: str
    values: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Staying:
    """A namespace's checkpoints that stay: from number `first` to the newest."""

    first: int
    newest: int
    newest_id: str


@dataclass(frozen=True, slots=True)
class Surplus:
    """Deletable checkpoints: those before `Staying` in a namespace, all of the namespaces `over`, and unshared large
    values by namespace, number and channel."""

    staying: Mapping[str, Staying]
    over: tuple[str, ...]
    blobs: tuple[tuple[str, int, str], ...]


class Checkpoints(Protocol):
    """The retention's interface to the checkpointer."""

    async def surplus(self, tx: Transaction, thread_id: str, *, keep: int | None, before: str | None) -> Surplus:
        """Return what may be deleted of a thread, if the newest `keep` of each namespace (None: all), those made since
        `before`, and what these need stay."""
        ...

    async def first_entry(self, tx: Transaction, thread_id: str, staying: Mapping[str, Staying]) -> int | None:
        """Return the first entry that the remaining checkpoints refer to."""
        ...


Deletions = tuple[RowDeletion, ...]


async def deletions_of(
    tx: Transaction, thread_id: str, surplus: Surplus, *, few: int | None = None
) -> tuple[Deletions, Deletions, bool]:
    """Return a surplus's row deletions, those to run after them, and whether more remain: `few` limits the checkpoints
    per namespace. An emptied namespace reuses its numbers."""
    rows = [
        RowDeletion(query, {"ns": ns})
        for ns in surplus.over
        for query in ("prune_ns", "prune_ns_writes", "prune_ns_blobs")
    ]
    after: list[RowDeletion] = []
    if surplus.over and (now := await incarnation.find(tx, thread_id)) is not None:
        after.append(RowDeletion("renew_thread", {"incarnation": incarnation.renew_incarnation(now)}))
    more = False
    for ns, kept in surplus.staying.items():
        if await _behind(tx, thread_id, ns, kept.first, 0) is None:
            continue
        stop = None if few is None else await _behind(tx, thread_id, ns, kept.first, few)
        more = more or stop is not None
        n = kept.first if stop is None else stop
        rows.append(RowDeletion("prune_writes", {"ns": ns, "n": n, "newest": kept.newest_id}))
        rows.append(RowDeletion("prune_checkpoints", {"ns": ns, "n": n}))
        after.append(RowDeletion("forget_lost_parents", {"ns": ns}))
    if not more:  # else others still have them
        rows += [RowDeletion("prune_blob", {"ns": ns, "n": n, "channel": channel}) for ns, n, channel in surplus.blobs]
    return tuple(rows), tuple(after), more


async def delete_surplus(tx: Transaction, thread_id: str, surplus: Surplus) -> None:
    rows, after, _ = await deletions_of(tx, thread_id, surplus)
    for deletion in (*rows, *after):
        await tx.run(deletion.query, thread_id=thread_id, **deletion.values)


async def _behind(tx: Transaction, thread_id: str, ns: str, n: int, few: int) -> int | None:
    """Return the checkpoint after the namespace's first `few`, if its number is below `n`."""
    row = await one(tx, "select_checkpoint_after", thread_id=thread_id, ns=ns, n=n, few=few)
    return int(row["n"]) if row else None


ENTRIES_AT_ONCE = 2000
RUNS_AT_ONCE = 200
CHECKPOINTS_AT_ONCE = 2000
"""Limit of one transaction on one thread."""
_OF_ENTRIES = (
    "prune_entries",
    "prune_message_metadata",
    "prune_branch_tips",
    "prune_recall_segments",
    "prune_recall_postings",
    "prune_vectors",
    "prune_signatures",
    "prune_topics",
    "prune_topic_spans",
    "prune_gateway_nodes",
    "prune_gateway_frames",
    "prune_gateway_calls",
)
"""An entry's index is deleted with it."""
_PART = 200
_OBSERVATION = "observation"


@dataclass(frozen=True, slots=True)
class RetentionPolicy:
    """What to keep. Times are stored text in UTC; None keeps everything.

    Args:
        now: threads that have expired by then are deleted.
        idle_before: threads last active before are deleted.
        entries_before: entries written before are deleted from a thread's start, up to its window.
        runs_before: runs that ended before are deleted with their steps and events.
        checkpoints: how many newest checkpoints stay in each namespace; None: all.
        checkpoints_before: only checkpoints made before are deleted.
        window: entries at the end of the conversation that stay, of any age.
        with_memories: what was remembered from a deleted thread is deleted too.
    """

    now: str | None = None
    idle_before: str | None = None
    entries_before: str | None = None
    runs_before: str | None = None
    checkpoints: int | None = 1
    checkpoints_before: str | None = None
    window: int = 200
    with_memories: bool = False


@dataclass(frozen=True, slots=True)
class RetentionPlan:
    """What to delete of a thread: all of it and of the threads `below`, or some rows. `after` runs when they are
    deleted; `more`: another plan must follow."""

    whole: bool = False
    below: tuple[str, ...] = ()
    rows: tuple[RowDeletion, ...] = ()
    after: tuple[RowDeletion, ...] = ()
    first_seq: int = 0
    more: bool = False


KEEP = RetentionPlan()


@dataclass(frozen=True, slots=True)
class Retention:
    """Makes plans. `checkpoints` is asked about threads that have some; `alive`: whether an owner may be at work."""

    policy: RetentionPolicy
    checkpoints: Checkpoints
    alive: IsAlive

    async def plan(self, tx: Transaction, thread_id: str, *, at_once: bool = True) -> RetentionPlan | None:
        """Return the plan; None if a run is being executed. Without `at_once`, it fits one transaction."""
        row = await one(tx, "select_retention", id=thread_id)
        if row is None:
            return KEEP
        with of_thread(thread_id):
            thread = {**row, **{name: int(row[name]) for name in ("tip", "entry_count", "first_seq")}}
        live = await one(tx, "select_live_run", thread_id=thread_id)
        if live is not None and is_held(live, self.alive):
            return None
        whole = await plan_whole(tx, thread_id, thread, self.policy, self.alive)
        if whole is not KEEP:
            return whole
        planning = _Planning(tx, thread_id, thread, self.policy, self.checkpoints, at_once)
        return await planning.plan(None if live is None else live["started_at"])


async def plan_whole(
    tx: Transaction, thread_id: str, thread: Row, policy: RetentionPolicy, alive: IsAlive
) -> RetentionPlan | None:
    """Return the plan to delete a thread that is over with those below it, or KEEP; None if a run below it is being
    executed. The caller has seen that it executes none itself."""
    with of_thread(thread_id):
        is_over = _is_over(thread, policy)
    # A descendant is deleted with its ancestor, and not before.
    if not is_over or await one(tx, "select_thread_above", id=thread_id) is not None:
        return KEEP
    below = await log.threads_below(tx, thread_id, user_id=thread["user_id"])
    for each in below:
        await tx.fetch("select_position", id=each)  # locks it
        if await find_running(tx, each, alive=alive):
            return None
    if _is_over({**thread, "updated_at": max([thread["updated_at"], *below.values()])}, policy):
        return RetentionPlan(whole=True, below=tuple(below))
    return KEEP


def _is_over(thread: Row, policy: RetentionPolicy) -> bool:
    idle = policy.idle_before is not None and thread["updated_at"] < policy.idle_before
    expires = thread["expires_at"]
    return idle or (expires is not None and policy.now is not None and moment_of(expires) <= moment_of(policy.now))


@dataclass(slots=True)
class _Planning:
    """Makes the plan for one thread, in a snapshot or under its lock."""

    tx: Transaction
    thread_id: str
    thread: Row
    policy: RetentionPolicy
    checkpoints: Checkpoints
    at_once: bool

    async def plan(self, unfinished_since: str | None) -> RetentionPlan:
        """Plan checkpoints, then runs, then entries: nothing goes before what needs it."""
        first = int(self.thread["first_seq"])
        of_checkpoints, staying = await self._surplus()
        if of_checkpoints.more:
            return of_checkpoints
        cut = await self._cut(unfinished_since, staying)
        of_runs = await self._runs(cut)
        if of_runs.more:
            return replace(of_runs, rows=(*of_checkpoints.rows, *of_runs.rows), after=of_checkpoints.after)
        end = cut if self.at_once else min(cut, first + ENTRIES_AT_ONCE)
        entries = tuple(RowDeletion(query, {"cut": end}) for query in _OF_ENTRIES) if end > first else ()
        stale = await self._stale_summary(end) if end > first else ()
        rows = (*of_checkpoints.rows, *of_runs.rows, *entries, *stale)
        recount = (RowDeletion("recount_topics", {}),) if entries else ()
        # Only once: it looks at every vector that stays.
        tag = (RowDeletion("tag_vectors", {"first": end, "last": 2**62}),) if entries and end == cut else ()
        after = (*of_checkpoints.after, *recount, *tag)
        return RetentionPlan(rows=rows, after=after, first_seq=end, more=end < cut)

    async def _surplus(self) -> tuple[RetentionPlan, Mapping[str, Staying]]:
        """Plan the checkpoints; return the plan and the checkpoints that stay."""
        keep, before = self.policy.checkpoints, self.policy.checkpoints_before
        found = Surplus({}, (), ())
        if await checkpoints.namespaces(self.tx, self.thread_id):
            found = await self.checkpoints.surplus(self.tx, self.thread_id, keep=keep, before=before)
        few = None if self.at_once else CHECKPOINTS_AT_ONCE
        rows, after, more = await deletions_of(self.tx, self.thread_id, found, few=few)
        return RetentionPlan(rows=rows, after=after, first_seq=int(self.thread["first_seq"]), more=more), found.staying

    async def _cut(self, unfinished_since: str | None, staying: Mapping[str, Staying]) -> int:
        """Return the first entry that stays: a question on the conversation's branch, or the first entry."""
        first, tip = int(self.thread["first_seq"]), int(self.thread["tip"])
        before = self.policy.entries_before
        if before is None:
            return first
        since = min(before, unfinished_since or before)
        newer = await one(self.tx, "select_first_entry_since", thread_id=self.thread_id, from_seq=first, since=since)
        limit = int(newer["seq"] if newer else self.thread["entry_count"] + 1)
        needed = None
        if staying and limit > first:
            needed = await self.checkpoints.first_entry(self.tx, self.thread_id, staying)
        limit = limit if needed is None else min(limit, needed)
        if tip:
            # Its last entry stays anyway: a conversation is never without its last question.
            window = await log.branch(self.tx, self.thread_id, tip, limit=max(1, self.policy.window))
            return await self._question_at_or_before(min(limit, window[0].seq), tip) or first
        return limit

    async def _stale_summary(self, end: int) -> tuple[RowDeletion, ...]:
        """Plan to delete an abandoned branch's summary with its mark's entry: later, nothing identifies it."""
        found = await summaries.find_thread(self.tx, self.thread_id)
        mark = found.kept.last_seq if found is not None and found.kept is not None else 0
        if found is None or not found.first_seq <= mark < end:
            return ()
        if await summaries.is_behind(self.tx, self.thread_id, mark=mark, tip=found.tip, first_seq=found.first_seq):
            return ()
        gone = ("delete_summary", "delete_topics_of_thread", "delete_topic_spans")
        return tuple(RowDeletion(query, {}) for query in gone)

    async def _question_at_or_before(self, limit: int, tip: int) -> int | None:
        at = tip
        while at:
            part = await log.branch(self.tx, self.thread_id, at, limit=_PART)
            for entry in reversed(part):
                if entry.seq <= limit and entry.role == "user" and entry.kind != _OBSERVATION:
                    return entry.seq
            at = part[0].parent_seq
        return None

    async def _runs(self, cut: int) -> RetentionPlan:
        at = await one(self.tx, "select_entry_time", thread_id=self.thread_id, seq=cut)
        ended_before = self.policy.runs_before or ""
        cut_at = at["created_at"] if at and cut > self.thread["first_seq"] else ""
        given = {"thread_id": self.thread_id, "ended_before": ended_before, "cut": cut, "cut_at": cut_at}
        kept = await one(self.tx, "select_first_kept_run", **given)
        if kept is None or await self._run_after(kept["id"], 0) is None:
            return KEEP
        stop = kept if self.at_once else await self._run_after(kept["id"], RUNS_AT_ONCE) or kept
        before = {"first_run": stop["id"]}
        steps = {"first_step": stop["first_step"]}
        named = await self.tx.fetch("select_prompts_named", thread_id=self.thread_id, **before, **steps)
        kept_prompts = runs.prompts_of([row["names"] for row in named])
        rows = (
            RowDeletion("prune_events", before),
            RowDeletion("prune_approvals", before),
            RowDeletion("prune_prompts", {"kept": json.dumps(sorted(kept_prompts))}),
            RowDeletion("prune_steps", steps),
            RowDeletion("prune_runs", before),
        )
        return RetentionPlan(rows=rows, first_seq=int(self.thread["first_seq"]), more=stop["id"] != kept["id"])

    async def _run_after(self, run_id: str, few: int) -> Row | None:
        """Return the run after the thread's first `few`, if it is before `run_id`."""
        return await one(self.tx, "select_run_after", thread_id=self.thread_id, first_run=run_id, few=few)


_log = logging.getLogger(__name__)


@dataclass(slots=True)
class Expired:
    """How many threads were deleted, with those below them. `busy` ones stay because a run is under way, and `damaged`
    ones because they cannot be read, each with the reason."""

    threads: int = 0
    busy: int = 0
    damaged: dict[str, str] = field(default_factory=dict)


async def expire(store: Driver, *, user_id: str | None = None, with_memories: bool = False) -> Expired:
    """Delete the threads whose `expires_at` is past, of one user or of all, each in a transaction of its own.

    What was remembered from them stays, unless `with_memories`. It looks at no other threads. A thread below another
    one stays with that. Raises `StoreError`: earlier deletions are committed.
    """
    found = Expired()
    policy = RetentionPolicy(now=log.now(), with_memories=with_memories)
    async with store.reading() as tx:
        ids = [row["id"] for row in await tx.fetch("select_expired_threads", now=policy.now, user_id=user_id)]
    for thread_id in ids:
        try:
            async with store.writing() as tx:
                plan = await _plan(tx, thread_id, policy)
                if plan is not None and plan.whole:
                    [thread] = await tx.fetch("select_retention", id=thread_id)
                    await log.delete_thread(tx, thread_id, user_id=thread["user_id"], with_memories=with_memories)
        except RowDamaged as error:
            found.damaged[thread_id] = error.reason
            continue
        found.busy += plan is None
        found.threads += 1 + len(plan.below) if plan is not None and plan.whole else 0
    return found


async def _plan(tx: Transaction, thread_id: str, policy: RetentionPolicy) -> RetentionPlan | None:
    # Lock first, then look: a run that begins now waits, and one that has begun is seen.
    if not await tx.fetch("select_position", id=thread_id):
        return KEEP
    if await find_running(tx, thread_id, alive=may_be_alive):
        return None
    thread = await one(tx, "select_retention", id=thread_id)
    return KEEP if thread is None else await plan_whole(tx, thread_id, thread, policy, may_be_alive)


def may_be_alive(owner: str) -> bool:
    """Believe a lease: one of a dead process ends within seconds, and the next pass deletes its thread."""
    return True


async def expire_states(driver: Driver, interval: float) -> None:
    """Delete expired threads every `interval` seconds, until it is cancelled. A pass that fails is logged."""
    while True:
        try:
            found = await expire(driver)
            if found.threads:
                _log.info("deleted %d expired conversations", found.threads)
        except StoreError as error:
            _log.warning("expired conversations stay until the next pass: %s", error)
        await asyncio.sleep(interval)
