"""The index of nodes from entries and calls: exports and copies do not have it.

A thread whose beginning retention has deleted cannot be indexed again: its nodes stand for all that went before.
"""

from __future__ import annotations

import json
import logging
from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from longthread.errors import RowDamaged, StoreError, ThreadNotFound
from longthread.gateway.dialects import DIALECTS
from longthread.gateway.dialects.dialect import Dialect
from longthread.gateway.parts import Part, digests, name_node, node_of, root_of, visible_parts
from longthread.gateway.restore import ALONE, alone_nodes
from longthread.gateway.tree import UNANSWERED
from longthread.model.entry import Entry
from longthread.model.wire import is_wire, unpack
from longthread.store import gateway as calls
from longthread.store import incarnation, log
from longthread.store.driver import Driver, Transaction
from longthread.store.gateway import GatewayCall
from longthread.store.rows import UNREADABLE, make_damage_error

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
