"""Where the messages of a history have siblings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from longthread.model.branches import active_ranges, is_active
from longthread.model.entry import Entry
from longthread.model.run import Run
from longthread.model.thread import Thread
from longthread.server.answers import Siblings
from longthread.store import branches
from longthread.store.branches import Sibling, branch_points
from longthread.store.driver import Transaction


@dataclass(frozen=True, slots=True)
class Forks:
    """The siblings of messages on the branch of a thread. See `forks_of`."""

    thread: Thread
    firsts: Mapping[int, Entry]
    following: Mapping[int, Sequence[Sibling]]
    ranges: Sequence[tuple[int, int]]
    last: Run | None

    def siblings(self, message: Entry) -> Siblings:
        """The message, and those that stand in its place on other branches."""
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
    """Read the siblings of messages. `firsts` has, by the seq of each, the first entry behind the message before it;
    `last` is the branch's last run."""
    places = {entry.seq for entry in messages} | {firsts[entry.seq].parent_seq for entry in messages}
    following = await branches.following(tx, thread.id, places)
    ranges = active_ranges(thread.tip, await branch_points(tx, thread.id))
    return Forks(thread, firsts, following, ranges, last)
