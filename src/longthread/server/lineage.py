"""A conversation among others: its agent, its parent, those below it, and where its messages have siblings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass

from longthread.errors import ThreadNotFound
from longthread.model.entry import Entry
from longthread.model.memory import ANALYST
from longthread.model.run import Run
from longthread.model.thread import Thread, active_ranges, is_active
from longthread.runs.worker import may_be_alive
from longthread.server.answers import AgentName, AgentVersion, DelegatedRun, Lineage, Siblings
from longthread.store import approvals, branches, catalog, log, runs
from longthread.store.branches import Sibling, branch_points
from longthread.store.driver import Transaction


async def lineage(tx: Transaction, thread: Thread) -> Lineage:
    """The thread's agent, its parent thread, and the threads below it where calls wait for approval."""
    parent = None
    if thread.parent_id:
        with suppress(ThreadNotFound):  # a copied thread may lack its parent
            parent = await log.find_thread(tx, thread.parent_id, user_id=thread.user_id)
    waiting = (await approvals.below(tx, user_id=thread.user_id)).get(thread.id, [])
    below = [await log.find_thread(tx, each, user_id=thread.user_id) for each in waiting]
    return {
        "agent": await _agent(tx, thread),
        "parent": {"id": parent.id, "label": parent.title or ""} if parent else None,
        "waiting_below": [
            {"id": each.id, "label": each.title or "", "agent": (await _agent(tx, each))["name"]} for each in below
        ],
    }


async def describe_delegated(tx: Transaction, run: Run) -> DelegatedRun:
    """A run that another agent's run asked for, with its call and its thread."""
    agent = await ran(tx, run)
    return {
        "thread_id": run.thread_id,
        "run_id": run.id,
        "call_id": run.answers.call_id if run.answers else None,
        "agent": agent["name"] if agent else None,
        "status": await runs.current_status(tx, run, alive=may_be_alive),
    }


async def ran(tx: Transaction, run: Run) -> AgentVersion | None:
    """The agent of a run, by its name at that time; None in a run older than agent versions."""
    if run.agent is None:
        return None
    name = await catalog.name_then(tx, "agent", run.agent.id, run.agent.version)
    return {"id": run.agent.id, "name": name, "version": run.agent.version}


async def _agent(tx: Transaction, thread: Thread) -> AgentName:
    """The agent of a conversation, by its present name; a deleted one by its name in the last run."""
    id_ = thread.agent_id or ANALYST
    for stored in await catalog.some(tx, "agent", ids=[id_]):
        return {"id": id_, "name": stored.definition.name}
    last = await runs.last_run(tx, thread.id)
    then = await ran(tx, last) if last else None
    return {"id": id_, "name": then["name"] if then else id_}


@dataclass(frozen=True, slots=True)
class Forks:
    """The siblings of messages on the branch of a thread. See `forks_of`."""

    thread: Thread
    firsts: Mapping[int, Entry]
    following: Mapping[int, Sequence[Sibling]]
    ranges: Sequence[tuple[int, int]]
    last: Run | None

    def siblings(self, message: Entry) -> Siblings:
        """Return the message, and the messages that stand in its place on other branches."""
        first = self.firsts[message.seq]
        asks = first.role == "user"
        found = [each for each in self.following.get(first.parent_seq, ()) if (each.role == "user") == asks]
        is_cut_off = first.parent_seq == 0 and self.thread.first_seq > 1  # others of the root are no siblings then
        if is_cut_off or all(each.seq != first.seq for each in found):
            return {"ids": [first.id], "shown": 0}
        return self._of(found)

    def answers(self, message: Entry) -> Siblings | None:
        """The answers of a question; None for another message."""
        return self._of(self._answers(message)) if message.role == "user" else None

    def run_of(self, message: Entry) -> str | None:
        """The run that a message is of. A question's is the one whose answer the history shows."""
        if message.role != "user" or message.run_id is None:
            return message.run_id
        shown = next((each.run_id for each in self._answers(message) if self._is_shown(each)), None)
        if shown is None and message.seq == self.thread.tip and self.last is not None:
            return self.last.id
        return shown or message.run_id

    def _answers(self, message: Entry) -> list[Sibling]:
        return [each for each in self.following.get(message.seq, ()) if each.role != "user"]

    def _is_shown(self, sibling: Sibling) -> bool:
        return is_active(sibling.seq, self.ranges)

    def _of(self, found: Sequence[Sibling]) -> Siblings:
        shown = next((place for place, each in enumerate(found) if self._is_shown(each)), None)
        return {"ids": [each.id for each in found], "shown": shown}


async def forks_of(
    tx: Transaction, thread: Thread, messages: Sequence[Entry], firsts: Mapping[int, Entry], last: Run | None
) -> Forks:
    """Read the siblings of messages. `firsts` has, by the seq of each, the first entry after the message before it;
    `last` is the branch's last run."""
    places = {entry.seq for entry in messages} | {firsts[entry.seq].parent_seq for entry in messages}
    following = await branches.following(tx, thread.id, places)
    ranges = active_ranges(thread.tip, await branch_points(tx, thread.id))
    return Forks(thread, firsts, following, ranges, last)
