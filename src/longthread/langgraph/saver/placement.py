"""Finds the places of a list's messages in the log, and appends new ones."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from langchain_core.messages import BaseMessage, HumanMessage

from longthread.langgraph.message_codec import draft_of
from longthread.langgraph.saver.message_list import CachedMessage, MessageList, SeqRange, add_run, private
from longthread.model.entry import Draft, Entry
from longthread.model.thread import title_of
from longthread.store import checkpoints, log
from longthread.store.checkpoints import Locked
from longthread.store.driver import Transaction
from longthread.store.log_rows import entry_row

FEW = 16
"""So many messages are taken for new without looking."""


@dataclass(frozen=True, slots=True)
class TakenMessage:
    """A copy of a message and its draft: LangGraph may change the message while it is stored."""

    message: CachedMessage
    draft: Draft

    @classmethod
    def of(cls, message: BaseMessage) -> TakenMessage:
        taken = private(message, 0, 0)
        return cls(taken, draft_of(taken.shown()))


@dataclass(slots=True)
class LogGrowth:
    """A thread's log within a transaction: its tip, its number of entries, and rows to be written in one statement."""

    tx: Transaction
    thread: Locked
    guesses: bool = False
    """Whether new messages are taken for new, and the transaction fails if they are not: see `Transaction.expect`."""
    tip: int = field(init=False)
    size: int = field(init=False)
    rows: list[Mapping[str, Any]] = field(default_factory=list)
    new: dict[str, CachedMessage] = field(default_factory=dict)
    """The messages that were not in the log before, by id."""
    title: str | None = None
    """What the thread is to be listed as, where nothing says that yet."""
    _ids: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.tip, self.size = self.thread.tip, self.thread.size

    async def find(self, ids: Sequence[str]) -> dict[str, Entry]:
        """Return the stored entries with these ids; none that were added here."""
        if self.guesses and len(ids) <= FEW:
            await log.expect_no_entries(self.tx, self.thread.id, ids)
            return {}
        return await log.find_entries(self.tx, self.thread.id, ids)

    async def add(self, taken: TakenMessage, parent: int, *, is_free: bool) -> CachedMessage:
        """Append an entry after `parent`. `is_free`: no entry has the draft's id."""
        draft = taken.draft
        if is_free and draft.id not in self._ids:
            self.size += 1
            seq = self.size
            self.rows.append(entry_row(self.thread.id, draft, parent_seq=parent, seq=seq, at=log.now()))
            self._ids.add(draft.id)
        else:
            await self.flush()
            [entry] = await log.add(self.tx, self.thread.id, [draft], parent=parent)
            seq, self.size = entry.seq, max(self.size, entry.seq)
        made = self.new[taken.message.fields["id"] or ""] = taken.message.at_place(seq, parent)
        return made

    def name(self, messages: Sequence[BaseMessage]) -> None:
        """Title an untitled thread by the first question among these messages."""
        if self.thread.untitled and self.title is None:
            asked = (draft_of(message).text for message in messages if isinstance(message, HumanMessage))
            self.title = next((title_of(text) for text in asked if text.strip()), None)

    async def flush(self) -> None:
        if self.rows:
            await checkpoints.add_entries(self.tx, self.rows)
            self.rows = []
        if (self.tip, self.size) != (self.thread.tip, self.thread.size):
            self.thread = await checkpoints.grow(self.tx, self.thread, self.tip, self.size, title=self.title)


@dataclass(slots=True)
class PlacedList:
    """A list whose messages all have a place: the first `count` of `base`, then `more`."""

    base: MessageList
    count: int
    more: list[CachedMessage]

    def kept(self, base: MessageList | None) -> MessageList:
        """Return the list for the cache: `base` itself, extended, if it has not changed."""
        if base is self.base and len(base) == self.count:
            base.extend(self.more)
            return base
        kept = self.base.first(self.count)
        kept.extend(self.more)
        return kept

    @property
    def runs(self) -> list[SeqRange]:
        runs = self.base.runs_of(self.count)
        for message in self.more:
            add_run(runs, message.seq, message.seq)
        return runs


@dataclass(slots=True)
class ListPlacement:
    """Gives the messages of one list their places, in the transaction that stores the list.

    A message of the log keeps its entry; others are appended after the message before them. The list of the thread's
    conversation (`leads`) moves the tip to its last message. The tip's branch then reads like the list; messages that
    the list leaves out stay in the log and on the branch. So a message after an edited one is written again, as the
    edit's descendant. `known` is the thread's list that was stored or read last.
    """

    growth: LogGrowth
    known: MessageList
    leads: bool

    async def place(self, rest: Sequence[BaseMessage], count: int) -> PlacedList:
        """Place each message: the first `count` of the known list, then `rest`."""
        more: list[CachedMessage] = []
        before = self.known.at(count - 1) if count else None
        there = await self._look_up(rest)
        for message in rest:
            place = await self._known(message, before)
            if place is None:
                taken, entry = there.get(id(message)) or await self._look_again(message)
                place = await self._fitting(taken, entry, before)
                if place is None:
                    place = await self._add(taken, entry, before)
            more.append(place)
            before = place
        if self.leads and before is not None:
            self.growth.tip = before.seq
            self.growth.name(rest)
        return PlacedList(self.known, count, more)

    async def _look_up(self, messages: Sequence[BaseMessage]) -> dict[int, tuple[TakenMessage, Entry | None]]:
        unknown = [message for message in messages if self._same(message) is None]
        taken = {id(message): TakenMessage.of(message) for message in unknown}
        found = await self.growth.find([each.draft.id for each in taken.values()]) if taken else {}
        return {key: (each, found.get(each.draft.id)) for key, each in taken.items()}

    async def _look_again(self, message: BaseMessage) -> tuple[TakenMessage, Entry | None]:
        """Find the entry of a known message that does not follow the one before it."""
        taken = TakenMessage.of(message)
        return taken, (await self.growth.find([taken.draft.id])).get(taken.draft.id)

    def _same(self, message: BaseMessage) -> CachedMessage | None:
        """Return the known message of this id, if it has not changed."""
        place = self.known.place_of(message.id)
        known = self.known.at(place) if place is not None else self.growth.new.get(message.id or "")
        return known if known is not None and known.is_like(message) else None

    async def _known(self, message: BaseMessage, before: CachedMessage | None) -> CachedMessage | None:
        known = self._same(message)
        return known if known is not None and await self._fits(known.seq, known.parent_seq, before) else None

    async def _fitting(
        self, taken: TakenMessage, entry: Entry | None, before: CachedMessage | None
    ) -> CachedMessage | None:
        if entry is None or not entry.says_the_same_as(taken.draft):
            return None
        fits = await self._fits(entry.seq, entry.parent_seq, before)
        return taken.message.at_place(entry.seq, entry.parent_seq) if fits else None

    async def _fits(self, seq: int, parent_seq: int, before: CachedMessage | None) -> bool:
        """Whether a branch leads from the message before to this place."""
        if not self.leads or before is None or parent_seq == before.seq:
            return True
        if seq <= before.seq:
            return False
        await self.growth.flush()
        return await log.descends(self.growth.tx, self.growth.thread.id, seq, before.seq)

    async def _add(self, taken: TakenMessage, entry: Entry | None, before: CachedMessage | None) -> CachedMessage:
        parent = before.seq if before is not None else self._parent_of_first(taken, entry)
        return await self.growth.add(taken, parent, is_free=entry is None)

    def _parent_of_first(self, taken: TakenMessage, entry: Entry | None) -> int:
        """Return the parent of a new first message: that of the entry it edits, or the root."""
        place = self.known.place_of(taken.message.fields["id"])
        if place is not None:
            return self.known.at(place).parent_seq
        return entry.parent_seq if entry is not None else 0
