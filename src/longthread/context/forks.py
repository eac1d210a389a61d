"""Forks of the conversation: a question is edited or answered again, or a client sends another branch.

What was there stays in the log, as another branch.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from longthread.errors import NotAQuestion, RunRepeated
from longthread.messages.fields import storable
from longthread.model.entry import SHOWN_KINDS, Draft, Entry
from longthread.model.fold import CONTINUES
from longthread.model.run import Run
from longthread.model.thread import Thread
from longthread.store import branches, log, runs
from longthread.store.driver import Transaction

_CHUNK = 50
"""Entries that are read at a time."""
_BRANCH_CHUNK = 500
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


@dataclass(frozen=True, slots=True)
class Told:
    """A message as a client shows it: its text, under the client's id."""

    id: str
    role: Literal["user", "assistant"]
    text: str


@dataclass(frozen=True, slots=True)
class ClientBranch:
    """Where a client puts a question: after the messages `before`, all that it shows of the conversation; None: at the
    conversation's end.

    The question's entry gets the id `entry_id`, so that the same request is known when it comes again. `sent_id` is the
    client's id of the question, if it has one.
    """

    entry_id: str
    sent_id: str | None = None
    before: Sequence[Told] | None = None


async def follow(tx: Transaction, thread: Thread, place: ClientBranch) -> Thread:
    """Make the messages that the client shows the thread's active branch, in the transaction that stores the question.

    What equals our messages stays. From the first message that differs, the client's messages become entries of a new
    branch. Returns the thread with its tip. Raises RunRepeated: the question is stored already.
    """
    for entry in (await log.find_entries(tx, thread.id, [place.entry_id])).values():
        raise RunRepeated(thread=thread.id, run=str(entry.run_id))
    if place.before is None:
        return thread
    branch = await whole_branch(tx, thread)
    end, rest = match_branch(branch, _align_messages(thread, branch, place.before))
    if end != thread.tip:
        await branches.leave(tx, thread, end)
        await log.set_tip(tx, thread.id, end)
    if rest:
        await log.extend(
            tx, thread.id, [Draft(storable(each.id), each.role, storable(each.text)) for each in rest], parent=end
        )
    return await log.find_thread(tx, thread.id, user_id=thread.user_id)


async def whole_branch(tx: Transaction, thread: Thread, *, tip: int | None = None) -> list[Entry]:
    """Return all entries of the branch that ends in `tip`, by default the active one, oldest first."""
    found: list[list[Entry]] = []
    at = end = thread.tip if tip is None else tip
    while at:
        entries = await log.branch(tx, thread.id, at, limit=_BRANCH_CHUNK, seen_from=end)
        found.append(entries)
        at = entries[0].parent_seq
    return [entry for entries in reversed(found) for entry in entries]


def is_shown(entry: Entry) -> bool:
    """Return whether a client shows an entry as a message with text."""
    if entry.kind is not None:
        return entry.kind in SHOWN_KINDS
    return entry.role == "user" or (entry.role == "assistant" and bool(entry.text) and not entry.tool_calls)


def match_branch(branch: Sequence[Entry], told: Sequence[Told]) -> tuple[int, list[Told]]:
    """Return the seq after which the client goes on, and its messages that follow and are not ours.

    The seq is the end of the branch if the client shows all of it.
    """
    shown = [entry for entry in branch if is_shown(entry)]
    hidden = {log.sent_id(entry) for entry in branch if not is_shown(entry)}
    place, last = 0, 0
    for number, each in enumerate(told):
        while place < len(shown) and shown[place].metadata.get(CONTINUES) is True and not _is(shown[place], each):
            place += 1  # “continue”, which no client has said as a message
        if place < len(shown) and _is(shown[place], each):
            last, place = shown[place].seq, place + 1
        elif each.role == "assistant" and each.id.partition(".")[0] in hidden:
            continue  # a thought that was withdrawn
        else:
            return _end(branch, shown, place, last), list(told[number:])
    return _end(branch, shown, place, last), []


def _end(branch: Sequence[Entry], shown: Sequence[Entry], place: int, last: int) -> int:
    goes_on = all(entry.metadata.get(CONTINUES) is True for entry in shown[place:])
    return branch[-1].seq if branch and goes_on else last


def _is(entry: Entry, told: Told) -> bool:
    """Return whether a client's message is ours. A client that left in the middle of an answer has its beginning."""
    if entry.role != told.role:
        return False
    ours, theirs = entry.shown_text.strip(), told.text.strip()
    part = entry.role == "assistant" and told.id.partition(".")[0] == log.sent_id(entry) and bool(theirs)
    return ours == theirs or (part and ours.startswith(theirs))


def _align_messages(thread: Thread, branch: Sequence[Entry], told: Sequence[Told]) -> Sequence[Told]:
    """Return the client's messages from our first one on, if retention has deleted those before it."""
    first = next((entry for entry in branch if is_shown(entry)), None)
    if thread.first_seq == 1 or first is None:
        return told
    return next((told[number:] for number, each in enumerate(told) if _is(first, each)), told)
