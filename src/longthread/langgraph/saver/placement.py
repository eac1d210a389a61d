"""Finds the places of a list's messages in the log, and appends new ones."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from langchain_core.messages import BaseMessage, HumanMessage

from longthread.langgraph.message_codec import MessageForm, draft_of, is_own, unpack
from longthread.langgraph.saver.message_list import Alignment, CachedMessage, MessageList, SeqRange, add_run, private
from longthread.memory.index.entry_text import content_of
from longthread.messages.fields import is_packed
from longthread.model.entry import Draft, Entry
from longthread.model.thread import title_of
from longthread.store import checkpoints, log, memories, summaries
from longthread.store.checkpoints import Locked
from longthread.store.driver import Transaction
from longthread.store.rows import entry_row

FEW = 16
"""So many messages are taken for new without looking."""


@dataclass(frozen=True, slots=True)
class TakenMessage:
    """A copy of a message and its draft: LangGraph may change the message while it is stored."""

    message: CachedMessage
    draft: Draft

    @classmethod
    def of(cls, message: BaseMessage, form: MessageForm) -> TakenMessage:
        taken = private(message, 0, 0, form.serde)
        return cls(taken, form.draft_of(taken.show()))

    def packed_as_in(self, entry: Entry | None, form: MessageForm) -> TakenMessage:
        """Return it with the payload of an entry that has the same message: what a cipher makes differs each time."""
        payload = entry.payload if entry is not None else None
        if not payload or not is_own(form.serde) or not is_packed(payload):
            return self
        same = self.message.is_like(unpack(payload, form.serde))
        return replace(self, draft=replace(self.draft, payload=payload)) if same else self


@dataclass(slots=True)
class LogGrowth:
    """A thread's log within a transaction: its tip, its number of entries, and rows to be written in one statement."""

    tx: Transaction
    thread: Locked
    form: MessageForm
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
    _last: CachedMessage | None = None

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
            return self._append(taken, draft, parent)
        await self.flush()
        [entry] = await log.add(self.tx, self.thread.id, [draft], parent=parent)
        self.size = max(self.size, entry.seq)
        made = self.new[taken.message.fields["id"] or ""] = taken.message.at_place(entry.seq, parent)
        return made

    async def replace(self, taken: TakenMessage, place: int, parent: int) -> CachedMessage:
        """Append a later version of a message after `parent`, in the place of entry `place`."""
        draft = log.version_of(taken.draft, parent_seq=parent, replaces=place)
        # Nothing of before can follow an entry that is new.
        there = (await self.find([draft.id])).get(draft.id) if parent <= self.thread.size else None
        if there is None:
            return self._append(taken, draft, parent, place)
        made = self.new[taken.message.fields["id"] or ""] = taken.message.at_place(there.seq, parent, place)
        return made

    def _append(self, taken: TakenMessage, draft: Draft, parent: int, replaces: int = 0) -> CachedMessage:
        gap, self.size = self.gap, self.size + 1
        at = {"parent_seq": parent, "seq": self.size, "replaces": replaces}
        self.rows.append(entry_row(self.thread.id, draft, **at, at=log.now()))
        self._ids.add(draft.id)
        self._last = taken.message.at_place(self.size, parent, replaces, gap)
        self.new[taken.message.fields["id"] or ""] = self._last
        return self._last

    @property
    def gap(self) -> int:
        """How many of the log's last entries are later versions, as far as that is known."""
        last = self._last
        return last.gap + 1 if last is not None and last.seq == self.size and last.replaces else 0

    def goes_on_from(self, known: MessageList) -> None:
        """Note a list's last entry: the next one may follow it."""
        if self._last is None and self.size in known.seqs:
            self._last = known.at(known.seqs.index(self.size))

    def name(self, messages: Sequence[BaseMessage]) -> None:
        """Title an untitled thread by the first question among these messages."""
        if self.thread.untitled and self.title is None:
            asked = (self.form.text_of(message) for message in messages if isinstance(message, HumanMessage))
            self.title = next((title_of(text) for text in asked if text.strip()), None)

    async def outdate(self, before: Draft, now: Draft, place: int) -> None:
        """Take back what was made of a message's earlier words: the title, a summary, and memories."""
        if content_of(before) == content_of(now) and self.form.has_text:
            return
        title, question = title_of(before.text), title_of(now.text)
        if before.role == "user" and title and title != question:
            await log.replace_title(self.tx, self.thread.id, title, question)
        if before.role == "system" and place < self.thread.first_seq:
            return  # no summary tells of the prompt
        await summaries.outdate(self.tx, self.thread.id, place)
        if before.role == "system":
            return
        await memories.forget_said(self.tx, self.thread.id, [place])

    async def flush(self) -> None:
        if self.rows:
            await checkpoints.add_entries(self.tx, self.rows)
            self.rows = []
        if (self.tip, self.size) != (self.thread.tip, self.thread.size):
            self.thread = await checkpoints.grow(self.tx, self.thread, self.tip, self.size, title=self.title)


@dataclass(slots=True)
class PlacedList:
    """A list whose messages all have a place: the first `count` of `base`, some of them changed, then `more`."""

    base: MessageList
    count: int
    more: list[CachedMessage]
    changes: Mapping[int, CachedMessage] = field(default_factory=dict)
    _made: MessageList | None = None

    def keep(self, base: MessageList | None) -> MessageList:
        """Return the list for the cache: `base` itself, extended, if it has not changed."""
        if base is self.base and len(base) == self.count and not self.changes:
            base.extend(self.more)
            return base
        return self._copy()

    @property
    def runs(self) -> list[SeqRange]:
        if self.changes:
            return self._copy().runs
        runs = self.base.runs_of(self.count)
        for message in self.more:
            add_run(runs, message)
        return runs

    def _copy(self) -> MessageList:
        if self._made is None:
            self._made = self.base.first(self.count, self.changes)
            self._made.extend(self.more)
        return self._made


@dataclass(slots=True)
class ListPlacement:
    """Gives the messages of one list their places, in the transaction that stores the list.

    A message of the log keeps its entry; others are appended after the message before them. The list of the thread's
    conversation (`leads`) moves the tip to its last entry. The tip's branch then reads like the list; messages that
    the list leaves out stay in the log and on the branch. A message that has changed under its id is one new entry at
    the branch's end, which takes the place of the message's first one: what follows that is not written again. `known`
    is the thread's list that was stored or read last.
    """

    growth: LogGrowth
    known: MessageList
    leads: bool
    goes_on: bool = False
    """Whether the list goes on from the conversation's newest checkpoint."""
    end: int = 0
    """The entry that the next new one follows."""

    async def place(self, messages: Sequence[BaseMessage], there: Alignment, rest: Sequence[BaseMessage]) -> PlacedList:
        """Place each message of a list. `there` are its known messages, and the `rest` follows them."""
        self.growth.goes_on_from(self.known)
        changes = await (
            self._replace_changed(messages, there) if self.leads else self._append_changed(messages, there)
        )
        front = there.in_front
        more = [changes.get(n) or self.known.at(place) for n, place in enumerate(there.places[front:], front)]
        more += await self._rest(rest)
        if self.leads and self.end:
            self.growth.tip = self.end
            self.growth.name([messages[n] for n in changes] + list(rest))
        return PlacedList(self.known, front, more, {n: change for n, change in changes.items() if n < front})

    async def _replace_changed(self, messages: Sequence[BaseMessage], there: Alignment) -> dict[int, CachedMessage]:
        """Append versions of changed messages. If the list leaves out its last messages, also append versions of
        messages that changed after its new end."""
        self.end = self.known.end(there.behind)  # with the messages that the list leaves out: the branch has them too
        if changes := await self._gone_back(messages, there):
            same = (self.known.seqs[place] for n, place in enumerate(there.places) if n not in changes)
            self.end = max([*same, *(change.seq for change in changes.values())])
            return changes
        last, new = there.last, set(there.changed_places.values())
        if last is not None and last.place < self.end and there.leaves_out_before(self.end):
            self.end = last.place
            new.update(place for place in range(there.behind) if self.known.seqs[place] > self.end)
        elif self.growth.tip > self.end and await self._is_shown_by_tip():
            self.end = self.growth.tip
        listed = {place: n for n, place in enumerate(there.places)} if new else {}
        for place in sorted(new):
            old, n = self.known.at(place), listed.get(place)
            taken = TakenMessage.of(messages[n] if n is not None else old.show(), self.growth.form)
            await self.growth.outdate(draft_of(old.show()), draft_of(taken.message.show()), old.place)
            made = await self.growth.replace(taken, old.place, self.end)
            self.end = made.seq
            if n is not None:
                changes[n] = made
        return changes

    async def _is_shown_by_tip(self) -> bool:
        """Return whether the tip, which is after the list's last entry, is still the end: for versions of what was left
        out.

        Else these would be undone. What the list has must be in its present version.
        """
        tx, thread_id, tip = self.growth.tx, self.growth.thread.id, self.growth.tip
        changed = await log.changed_between(tx, thread_id, self.end, tip)
        if not changed.isdisjoint(self.known.at(place).place for place in range(len(self.known))):
            return False
        return self.goes_on and any(place <= self.end for place in changed)

    async def _gone_back(self, messages: Sequence[BaseMessage], there: Alignment) -> dict[int, CachedMessage]:
        """Find changed messages that are again what they were before the last entries: the tip goes back to that."""
        changed = there.changed_places
        if not changed or not there.in_front == there.count == len(messages):
            return {}
        places = there.places
        end = max((self.known.seqs[place] for n, place in enumerate(places) if n not in changed), default=0)
        last = {n: self.known.at(places[n]) for n in changed}
        if not all(each.replaces and each.seq > end for each in last.values()):
            return {}
        found: dict[int, CachedMessage] = {}
        versions: list[tuple[int, int]] = []
        replaced: dict[int, tuple[Draft, Draft]] = {}
        for n, known in last.items():
            taken = TakenMessage.of(messages[n], self.growth.form)
            before = await log.versions_before(self.growth.tx, self.growth.thread.id, known.place, known.seq)
            same = next((each for each in before if self._is_same(each, taken)), None)
            if same is None:
                return {}
            found[n] = taken.message.at_place(same.seq, same.parent_seq, same.replaces)
            replaced[n] = draft_of(known.show()), draft_of(taken.message.show())
            versions += [(each.seq, same.seq) for each in before]
        end = max(end, max(each.seq for each in found.values()))
        if any(same < seq <= end for seq, same in versions):
            return {}
        for n, (old, now) in replaced.items():
            await self.growth.outdate(old, now, last[n].place)
        return found

    async def _append_changed(self, messages: Sequence[BaseMessage], there: Alignment) -> dict[int, CachedMessage]:
        """Append what has changed in another list than the conversation's, which may name entries in any order."""
        places, changed = there.places, there.changed_places
        found = await self._look_up([messages[n] for n in changed])
        changes: dict[int, CachedMessage] = {}
        for n in changed:
            taken, entry = found[id(messages[n])]
            self.end = (changes.get(n - 1) or self.known.at(places[n - 1])).seq if n else 0
            changes[n] = await self._fitting(taken, entry) or await self._add(taken, entry)
        last = there.last
        if last is not None:
            self.end = (changes.get(there.count - 1) or last).seq
        return changes

    async def _rest(self, messages: Sequence[BaseMessage]) -> list[CachedMessage]:
        found: list[CachedMessage] = []
        there = await self._look_up([message for message in messages if self._same(message) is None])
        for message in messages:
            place = await self._find_known(message)
            if place is None:
                taken, entry = there.get(id(message)) or await self._look_again(message)
                place = await self._fitting(taken, entry)
                if place is None:
                    place = await self._add(taken, entry)
            found.append(place)
            self.end = place.seq
        return found

    async def _look_up(self, messages: Sequence[BaseMessage]) -> dict[int, tuple[TakenMessage, Entry | None]]:
        taken = {id(message): TakenMessage.of(message, self.growth.form) for message in messages}
        found = await self.growth.find([each.draft.id for each in taken.values()]) if taken else {}
        return {key: self._with_entry(each, found.get(each.draft.id)) for key, each in taken.items()}

    async def _look_again(self, message: BaseMessage) -> tuple[TakenMessage, Entry | None]:
        """Find the entry of a known message that does not follow the one before it."""
        taken = TakenMessage.of(message, self.growth.form)
        return self._with_entry(taken, (await self.growth.find([taken.draft.id])).get(taken.draft.id))

    def _with_entry(self, taken: TakenMessage, entry: Entry | None) -> tuple[TakenMessage, Entry | None]:
        return taken.packed_as_in(entry, self.growth.form), entry

    def _is_same(self, entry: Entry, taken: TakenMessage) -> bool:
        return entry.says_the_same_as(taken.packed_as_in(entry, self.growth.form).draft)

    def _same(self, message: BaseMessage) -> CachedMessage | None:
        """Return the known message of this id, if it has not changed."""
        place = self.known.place_of(message.id)
        known = self.known.at(place) if place is not None else self.growth.new.get(message.id or "")
        return known if known is not None and known.is_like(message) else None

    async def _find_known(self, message: BaseMessage) -> CachedMessage | None:
        known = self._same(message)
        fits = known is not None and await self._fits(known.seq, known.parent_seq, known.replaces)
        return known if fits else None

    async def _fitting(self, taken: TakenMessage, entry: Entry | None) -> CachedMessage | None:
        if entry is None or not entry.says_the_same_as(taken.draft):
            return None
        fits = await self._fits(entry.seq, entry.parent_seq, entry.replaces)
        return taken.message.at_place(entry.seq, entry.parent_seq) if fits else None

    async def _fits(self, seq: int, parent_seq: int, replaces: int) -> bool:
        """Whether a branch leads from the message before to this place."""
        if not self.leads:
            return True
        if replaces:
            return False  # it has the place of a message that came before
        if not self.end or parent_seq == self.end:
            return True
        if seq <= self.end:
            return False
        await self.growth.flush()
        return await log.descends(self.growth.tx, self.growth.thread.id, seq, self.end)

    async def _add(self, taken: TakenMessage, entry: Entry | None) -> CachedMessage:
        if entry is not None and not self._is_same(entry, taken) and await self._is_before(entry):
            # It had left the list and comes back with other words: what the branch says of it is this.
            await self.growth.outdate(entry, taken.draft, entry.replaces or entry.seq)
            return await self.growth.replace(taken, entry.replaces or entry.seq, self.end)
        # A new first message has the parent of the entry that it edits, or is at the root.
        parent = self.end or (entry.parent_seq if entry is not None and not entry.replaces else 0)
        return await self.growth.add(taken, parent, is_free=entry is None)

    async def _is_before(self, entry: Entry) -> bool:
        """Whether an entry is on the branch that the next new one of the conversation goes on."""
        if not self.leads or not self.end or entry.seq > self.end:
            return False
        await self.growth.flush()
        return await log.descends(self.growth.tx, self.growth.thread.id, self.end, entry.seq)
