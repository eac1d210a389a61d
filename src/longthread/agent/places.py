"""Where the messages of a list stand in the log: found there, or written."""

from __future__ import annotations

import copy
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from langchain_core.messages import BaseMessage

from longthread.agent.messages import draft_of, message_of
from longthread.errors import ThreadConflict
from longthread.model.entry import Draft, Entry
from longthread.model.thread import Thread
from longthread.store import log
from longthread.store.driver import Transaction

LISTS = 64
"""Lists of messages whose places are remembered; the one not used for the longest time goes first."""


@dataclass(frozen=True, slots=True)
class Place:
    """A message's entry. `message` is a copy of our own: its owner may change theirs."""

    message: BaseMessage
    seq: int
    parent_seq: int

    def holds(self, message: BaseMessage) -> bool:
        """Whether the message is still what the entry says."""
        try:
            return bool(self.message == message)
        except ValueError:
            # An array in it compares item by item: the log compares what is stored of it.
            return False


@dataclass(frozen=True, slots=True)
class ListName:
    """A channel that holds a list of messages."""

    thread_id: str
    ns: str
    channel: str


class Places:
    """The places of the lists that were stored last, by message id: what is here need not be looked up.

    Each list replaces the one before it, and so holds no more than its channel does.
    """

    def __init__(self) -> None:
        self._lists: OrderedDict[ListName, tuple[datetime | None, Mapping[str, Place]]] = OrderedDict()

    def find(self, name: ListName, thread: Thread) -> Mapping[str, Place]:
        """The list's places; empty when they were those of a deleted thread of the same id."""
        since, places = self._lists.get(name, (None, {}))
        return places if since in (None, thread.created_at) else {}

    def keep(self, name: ListName, since: datetime | None, places: Sequence[Place]) -> None:
        """Remember a list. `since` is when its thread was made: None when the caller makes sure it is the same."""
        self._lists[name] = (since, {place.message.id or "": place for place in places})
        self._lists.move_to_end(name)
        while len(self._lists) > LISTS:
            self._lists.popitem(last=False)

    def forget(self, thread_id: str) -> None:
        """Drop what is remembered of a thread."""
        for name in [name for name in self._lists if name.thread_id == thread_id]:
            del self._lists[name]


def place_of(message: BaseMessage, entry: Entry) -> Place:
    """The place of a message that is `entry`."""
    return Place(copy.deepcopy(message), entry.seq, entry.parent_seq)


async def places_on_branch(tx: Transaction, thread: Thread, *, limit: int) -> dict[str, Place]:
    """The places of the last messages of the thread's branch."""
    entries = await log.branch(tx, thread.id, thread.tip, limit=limit)
    return {log.sent_id(entry): Place(message_of(entry), entry.seq, entry.parent_seq) for entry in entries}


@dataclass(slots=True)
class Placing:
    """Gives the messages of one list their places, in the transaction that stores the list.

    A message that the log has keeps its entry, and others are added behind the message before them. The list that is
    the thread's conversation (`leads`) moves the tip to its last message, and the tip's branch then reads like the
    list, save for messages that the list leaves out: they stay in the log and on the branch. So a message behind an
    edited one is written again, as the edit's descendant; the entries on the branch from before the edit stay.

    With `run_id`, the conversation may only grow at the tip: whoever holds a run's lease is its only writer.
    """

    tx: Transaction
    thread: Thread
    known: Mapping[str, Place]
    leads: bool
    run_id: str | None = None

    async def place(self, messages: Sequence[BaseMessage]) -> list[Place]:
        """The place of each message.

        Raises:
            ThreadConflict: the conversation was extended by somebody else than the run.
        """
        placed: list[Place] = []
        tip = self.thread.tip
        for message in messages:
            before = placed[-1].seq if placed else None
            place = await self._find(message, before)
            if place is None:
                place = await self._add(message, before, tip)
                tip = place.seq
            placed.append(place)
        if self.leads and placed:
            self._expect_tip(tip, placed[-1].seq)
            await log.set_tip(self.tx, self.thread.id, placed[-1].seq)
        return placed

    async def _find(self, message: BaseMessage, before: int | None) -> Place | None:
        known = self.known.get(message.id or "")
        if known and known.holds(message) and await self._fits(known, before):
            return known
        draft = draft_of(message)
        entry = (await log.find_entries(self.tx, self.thread.id, [draft.id])).get(draft.id)
        if entry is None or not entry.says_the_same_as(draft):
            return None
        found = place_of(message, entry)
        return found if await self._fits(found, before) else None

    async def _fits(self, place: Place, before: int | None) -> bool:
        """Whether a branch leads from the message before to this place."""
        if not self.leads or before is None or place.parent_seq == before:
            return True
        return place.seq > before and await log.descends(self.tx, self.thread.id, place.seq, before)

    async def _add(self, message: BaseMessage, before: int | None, tip: int) -> Place:
        draft = draft_of(message, run_id=self.run_id)
        parent = before if before is not None else await self._parent_of_first(draft)
        if self.leads:
            self._expect_tip(tip, parent)
        [entry] = await log.add(self.tx, self.thread.id, [draft], parent=parent)
        return place_of(message, entry)

    async def _parent_of_first(self, draft: Draft) -> int:
        """Where a list begins whose first message is new: beside the entry that it is an edit of, or at the root."""
        if draft.id in self.known:
            return self.known[draft.id].parent_seq
        edited = await log.find_entries(self.tx, self.thread.id, [draft.id])
        return edited[draft.id].parent_seq if edited else 0

    def _expect_tip(self, tip: int, seq: int) -> None:
        if self.run_id is not None and seq != tip:
            raise ThreadConflict(thread=self.thread.id)
