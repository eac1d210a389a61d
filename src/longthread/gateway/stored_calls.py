"""Calls of the gateway as the log has them: what one sent up and got back, and the index of nodes made of them.

A thread whose beginning retention has deleted cannot be indexed again: its nodes stand for all that went before.
"""

from __future__ import annotations

import json
import logging
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from longthread.errors import InvalidInput, RowDamaged, StoreError, ThreadNotFound
from longthread.gateway.dialects import DIALECTS
from longthread.gateway.dialects.dialect import Dialect
from longthread.gateway.parts import Part, anchor_hidden, digests, name_node, node_of, root_of, visible_parts
from longthread.gateway.raw_json import element_texts
from longthread.gateway.restore import ALONE, alone_nodes
from longthread.gateway.tree import UNANSWERED, hidden_in_log
from longthread.model.content import is_wire, unpack
from longthread.model.entry import Entry, Role
from longthread.store import gateway as calls
from longthread.store import incarnation, log
from longthread.store.driver import Driver, Transaction
from longthread.store.gateway import GatewayCall, HiddenPart
from longthread.store.rows import UNREADABLE, make_damage_error

CLIENT = "client"
"""Where a hidden part came from that the client sent itself."""


@dataclass(frozen=True, slots=True)
class SentPart:
    """A part of a message.

    Attributes:
        kind: `text`, `call`, `result`, `other`, or `hidden`.
        sent: whether it went up. Of a reply, whether it came.
        origin: of a hidden part that went up, the call whose reply it is, or `client`.
        block: its JSON, parsed.
    """

    kind: str
    sent: bool
    block: Any
    origin: int | str | None = None

    def to_json(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in self.__slots__}


@dataclass(frozen=True, slots=True)
class SentMessage:
    """An entry as a call sent it, or as its reply has it."""

    seq: int
    role: str
    parts: Sequence[SentPart]

    def to_json(self) -> dict[str, Any]:
        return {"seq": self.seq, "role": self.role, "parts": [part.to_json() for part in self.parts]}


@dataclass(frozen=True, slots=True)
class InspectedGatewayCall:
    """A call of the gateway.

    Attributes:
        last: the number of the thread's last call.
        frame: the request's fields other than its messages.
        is_whole: whether all that it sent is still known: retention may have deleted some.
    """

    call: GatewayCall
    last: int
    client: str
    frame: Mapping[str, Any]
    messages: Sequence[SentMessage]
    reply: Sequence[SentMessage]
    is_whole: bool


async def look_at_call(tx: Transaction, thread_id: str, number: int | None) -> InspectedGatewayCall | None:
    """Return a call by its number, a negative one from the end, or the last; None if the thread has none. Raises
    InvalidInput: it has others."""
    last = (await calls.position(tx, thread_id)).n
    if not last:
        return None
    n = last if number is None else number if number > 0 else last + 1 + number
    call = await calls.find_call(tx, thread_id, n)
    if call is None:
        raise InvalidInput(
            reason=f"There is no call {number}: the thread's last one is {last}. Those of deleted entries are deleted."
        )
    dialect = DIALECTS[call.dialect]
    sent = await _sent(tx, dialect, call)
    frame = await calls.find_frame(tx, thread_id, call.frame)
    entries = await log.branch(tx, thread_id, call.asked_seq, limit=call.asked_seq) if call.asked_seq else []
    is_first = not entries or await log.is_first(tx, thread_id, entries[0].seq)
    replied = await log.entries_between(tx, thread_id, call.reply_seq or 1, call.reply_end or 0)
    client = await calls.client_of(tx, thread_id)
    return InspectedGatewayCall(
        call,
        last,
        client[0] if client else "unknown",
        {name: json.loads(text, strict=False) for name, text in frame.items()},
        _messages(dialect, entries, sent or [], call.asked),
        list(_describe_reply(dialect, replied)),
        is_whole=is_first and sent is not None,
    )


_Sent = list[tuple[HiddenPart, int | str]]
"""Hidden parts that went up, each with its origin."""


async def _sent(tx: Transaction, dialect: Dialect, call: GatewayCall) -> _Sent | None:
    """Return the hidden parts that a call sent; None if some of them are deleted."""
    own: _Sent = [(each, CLIENT) for each in call.hidden]
    if not call.base:
        return own
    base = await calls.find_call(tx, call.thread_id, call.base)
    carried = await hidden_in_log(tx, dialect, base) if base else None
    if base is None or carried is None:
        return None
    there = await calls.calls_until(tx, call.thread_id, call.base)
    return [(each, _origin(there, base, each[0])) for each in carried] + own


def _origin(there: Mapping[int, GatewayCall], base: GatewayCall, at: int) -> int | str:
    """Return the call whose reply holds a part, among the calls that `base` continues, or `client`."""
    n = base.n
    while n in there:
        call = there[n]
        if call.asked <= at < max(call.ends, call.asked + 1):
            return n
        n = call.base
    return CLIENT


def _messages(dialect: Dialect, entries: Sequence[Entry], sent: _Sent, asked: int) -> list[SentMessage]:
    """Return entries as they went up. `asked` counts the visible parts of the branch up to their end."""
    entries = [entry for entry in entries if is_wire(entry.payload)]
    blocks = [_blocks(entry) for entry in entries]
    every = [
        part._replace(item=number)
        for number, entry in enumerate(entries)
        for part in dialect.read_blocks(entry.role, blocks[number])
    ]
    visible = visible_parts(every)
    start = asked - len(visible)
    own = {(each.at, each.key): each.part for each in anchor_hidden(every, start)}
    found: list[list[SentPart]] = [[] for _ in entries]
    for number, part in enumerate(visible, start):
        before = [_take_hidden(dialect, part.role, each, own) for each in sent if each[0][:2] == (number, False)]
        behind = [_take_hidden(dialect, part.role, each, own) for each in sent if each[0][:2] == (number, True)]
        found[part.item] += [*before, SentPart(part.kind, True, blocks[part.item][part.place]), *behind]
    for part in own.values():
        found[part.item].append(SentPart("hidden", False, blocks[part.item][part.place]))
    return [SentMessage(entry.seq, entry.role, parts) for entry, parts in zip(entries, found, strict=True)]


def _take_hidden(
    dialect: Dialect, role: Role, sent: tuple[HiddenPart, int | str], own: dict[tuple[int, bytes], Part]
) -> SentPart:
    """Return a hidden part that went up, and take it out of the entries' `own`."""
    (at, _, raw), origin = sent
    block = json.loads(raw, strict=False)
    for part in dialect.read_blocks(role, [block]):
        own.pop((at, part.hidden or b""), None)
    return SentPart("hidden", True, block, origin)


def _describe_reply(dialect: Dialect, entries: Sequence[Entry]) -> Iterator[SentMessage]:
    for entry in entries:
        if is_wire(entry.payload):
            blocks = _blocks(entry)
            parts = {part.place: part for part in dialect.read_blocks(entry.role, blocks)}
            kinds = [_kind(parts.get(place)) for place in range(len(blocks))]
            shown = [SentPart(kind, True, block) for kind, block in zip(kinds, blocks, strict=True)]
            yield SentMessage(entry.seq, entry.role, shown)


def _kind(part: Part | None) -> str:
    return part.kind if part is not None and part.visible is not None else "hidden"


def _blocks(entry: Entry) -> list[Any]:
    return [value for value, _ in element_texts(unpack(entry.payload or b"", entry.text)[1])]


NodeRow = tuple[int, int, int, int]
"""The seq of an entry, a place, a node and a call."""
_AT_ONCE = 50
"""Entries that are read together: requests go on in between."""
_LAST = 2**62
_log = logging.getLogger(__name__)


async def rebuild_missing(store: Driver) -> int:
    """Index the calls whose nodes are missing, and return of how many threads. Threads that cannot be read are logged.
    Raises StoreError: the store cannot be read or written to."""
    async with store.reading() as tx:
        missing = await calls.threads_without_nodes(tx)
    done = 0
    for thread_id, user_id in missing:
        done += await rebuild(store, thread_id, user_id)
    return done


async def rebuild_in_background(store: Driver) -> None:
    """Index what is missing; a store that fails is logged."""
    try:
        if count := await rebuild_missing(store):
            _log.info("indexed %d conversations of the gateway", count)
    except StoreError as error:
        _log.warning("conversations of the gateway are not indexed, and nothing is restored in them: %s", error)


async def rebuild(store: Driver, thread_id: str, user_id: str) -> bool:
    """Index a thread's calls; return False for one that is gone or cannot be read."""
    try:
        async with store.reading() as tx:
            there = await incarnation.find(tx, thread_id)
            found = await _rows(tx, thread_id, user_id)
        async with store.writing() as tx:
            await log.position(tx, thread_id)
            if await incarnation.find(tx, thread_id) != there:
                return False  # another thread has its id now
            await calls.add_nodes(tx, thread_id, found)
    except ThreadNotFound:
        return False
    except RowDamaged as error:
        _log.warning("thread %s cannot be indexed for the gateway: %s", thread_id, error)
        return False
    return True


async def _rows(tx: Transaction, thread_id: str, user_id: str) -> list[NodeRow]:
    every = await calls.calls_until(tx, thread_id, _LAST)
    index = _Index(user_id, await calls.owner_of(tx, thread_id), every, _Writers(every.values()))
    end = max((max(call.asked_seq, call.reply_end or 0) for call in every.values()), default=0)
    for first in range(1, end + 1, _AT_ONCE):
        for entry in await log.entries_between(tx, thread_id, first, min(end, first + _AT_ONCE - 1)):
            if is_wire(entry.payload) and (entry.parent_seq or await log.is_first(tx, thread_id, entry.seq)):
                index.add(entry)
    for call in every.values():
        index.name(call)
    return index.rows


class _Writers:
    """Which call wrote an entry: what it asked, or its reply."""

    def __init__(self, every: Iterable[GatewayCall]) -> None:
        self._ends: list[int] = []
        self._found: list[tuple[int, int]] = []
        last = 0
        for call in every:
            for end, node_call, replied in (
                (call.asked_seq, call.previous, 0),
                (call.reply_end or 0, call.n, call.n),
            ):
                if end > last:
                    self._ends.append(end)
                    self._found.append((node_call, replied))
                    last = end

    def find(self, seq: int) -> tuple[int, int]:
        """Return the last call whose reply is in the prefix that ends with an entry, and the call whose reply the entry
        is, or 0."""
        return self._found[bisect_left(self._ends, seq)]


@dataclass
class _Index:
    """The nodes of a thread, entry by entry, each after its parent."""

    user_id: str
    owner: str | None
    calls: Mapping[int, GatewayCall]
    writers: _Writers
    rows: list[NodeRow] = field(default_factory=list)
    _digests: dict[int, tuple[bytes, bool]] = field(default_factory=dict)
    """By entry the digest at its end, and whether its branch has a visible part by then."""
    _ids: dict[int, list[str]] = field(default_factory=dict)
    """By call the provider's ids of its reply's items."""
    _reply: list[Part] = field(default_factory=list)
    """The parts of the reply that is being read."""

    def add(self, entry: Entry) -> None:
        dialect, blocks, every = _read(entry)
        parts = visible_parts(every)
        call, replied = self.writers.find(entry.seq)
        if replied:
            self._add_reply(self.calls[replied], dialect, entry.seq, every)
        if entry.parent_seq:
            before, has_visible = self._digests.get(entry.parent_seq, (b"", False))
        else:
            before, has_visible = root_of(self.user_id, dialect.name, self.owner), False
        if not before:
            return  # what went before is no conversation of the gateway's, or deleted
        digest = [before, *digests(before, parts)][-1]
        has_visible = has_visible or bool(parts)
        self._digests[entry.seq] = (digest, has_visible)
        if has_visible and (parts or not replied):  # a reply that is hidden whole is no prefix
            self.rows.append((entry.seq, 0, node_of(digest), call))
        if replied:
            self._ids.setdefault(replied, []).extend(dialect.item_ids(blocks))

    def _add_reply(self, call: GatewayCall, dialect: Dialect, seq: int, parts: Sequence[Part]) -> None:
        """Add the nodes by which a reply is found by itself, with its last entry."""
        if seq == call.reply_seq:
            self._reply.clear()
        self._reply += parts
        if seq == call.reply_end:
            found = alone_nodes(dialect, call, root_of(self.user_id, call.dialect, self.owner), self._reply)
            self.rows += [(seq, ALONE - number, node, call.n) for number, node in enumerate(found)]

    def name(self, call: GatewayCall) -> None:
        """Add what else a call is found by: the provider's ids, and the end of a request without a whole reply."""
        asked = self._digests.get(call.asked_seq)
        if not call.is_answered and asked and asked[1]:
            self.rows.append((call.asked_seq, UNANSWERED, node_of(asked[0]), call.n))
        if call.response_id is None or call.reply_end is None:
            return
        root = root_of(self.user_id, call.dialect, self.owner)
        names = [("response", call.response_id), *(("item", id_) for id_ in self._ids.get(call.n, ()))]
        for place, (kind, id_) in enumerate(names, start=1):
            self.rows.append((call.reply_end, place, name_node(root, kind, id_), call.n))


def _read(entry: Entry) -> tuple[Dialect, Sequence[Any], list[Part]]:
    """Return an entry's dialect, its blocks, and its parts. Raises RowDamaged."""
    try:
        name, text = unpack(entry.payload or b"", entry.text)
        dialect, blocks = DIALECTS[name], json.loads(text, strict=False)
        return dialect, blocks, dialect.read_blocks(entry.role, blocks)
    except UNREADABLE as error:
        raise make_damage_error(f"entry {entry.seq} of thread {entry.thread_id}", error) from error
