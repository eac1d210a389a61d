"""A fork of the conversation: a question is edited, or answered again. What was there stays, as another branch."""

from __future__ import annotations

from dataclasses import dataclass

from longthread.errors import NotAQuestion
from longthread.model.entry import Entry
from longthread.model.run import Run
from longthread.model.thread import Thread
from longthread.store import branches, log, runs
from longthread.store.driver import Transaction

_CHUNK = 50
"""Entries that are read at a time."""


@dataclass(frozen=True, slots=True)
class Fork:
    """Where a run begins: at the question `entry_id`, which gets a sibling, or with `again` another answer."""

    entry_id: str
    again: bool = False


async def question_of(tx: Transaction, thread_id: str, entry_id: str) -> Entry:
    """Return the question that a message answers, or the message itself if it asks.

    Raises:
        EntryNotFound: the thread has no such entry.
        NotAQuestion: there is no question before it.
    """
    entry = await log.find_entry(tx, thread_id, entry_id)
    at = entry.seq
    while at:
        entries = await log.branch(tx, thread_id, at, limit=_CHUNK, seen_from=entry.seq)
        if asked := next((each for each in reversed(entries) if each.role == "user"), None):
            return asked
        at = entries[0].parent_seq
    raise NotAQuestion(thread=thread_id, entry=entry_id)


async def go_to(tx: Transaction, thread: Thread, fork: Fork) -> tuple[Thread, Entry | None]:
    """Make the branch up to the fork the thread's active one, in the transaction that begins the run there. Return the
    thread, and the question that is answered again.

    Raises:
        EntryNotFound: the thread has no such entry.
        NotAQuestion: it is no question.
    """
    entry = await log.find_entry(tx, thread.id, fork.entry_id)
    if entry.role != "user":
        raise NotAQuestion(thread=thread.id, entry=fork.entry_id)
    end = entry.seq if fork.again else entry.parent_seq
    await branches.leave(tx, thread, end)
    await log.set_tip(tx, thread.id, end)
    return await log.find_thread(tx, thread.id, user_id=thread.user_id), entry if fork.again else None


async def last_run_of(tx: Transaction, thread: Thread) -> Run | None:
    """Return the run that the thread's active branch ends with."""
    end = (await log.entries_at(tx, thread.id, [thread.tip])).get(thread.tip)
    return await run_of_branch(tx, await runs.last_run(tx, thread.id), end)


async def ended_with(tx: Transaction, thread: Thread) -> Run | None:
    """Return the run of the entry `thread.tip`, which ends a branch that is not the active one."""
    end = (await log.entries_at(tx, thread.id, [thread.tip])).get(thread.tip)
    return await runs.find_run(tx, thread.id, end.run_id) if end is not None and end.run_id is not None else None


async def run_of_branch(tx: Transaction, last: Run | None, end: Entry | None) -> Run | None:
    """Return the run that the branch up to `end` ends with. The thread's `last` run may be on another branch."""
    if last is None or end is None or end.run_id in {None, last.id}:
        return last
    if last.status in {"running", "waiting"} or last.question_seq == end.seq:
        return last  # it has said nothing yet
    return await runs.find_run(tx, last.thread_id, str(end.run_id))
