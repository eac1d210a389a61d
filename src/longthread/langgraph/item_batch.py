"""LangGraph's batch operations on our item store: validated, read in one snapshot, then written in one transaction."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from langgraph.store.base import (
    GetOp,
    InvalidNamespaceError,
    Item,
    ListNamespacesOp,
    MatchCondition,
    Op,
    PutOp,
    Result,
    SearchItem,
    SearchOp,
    validate_op_namespace,
)

from longthread.errors import InvalidInput, ItemNotStorable
from longthread.langgraph.backend import Backend
from longthread.langgraph.filters import matches_filter
from longthread.langgraph.item_index import IndexedItem, ItemIndex, RankedItems, by_meaning, by_words
from longthread.memory.embedder import Vectors
from longthread.memory.index.terms import TERMS_FORM
from longthread.store import items
from longthread.store.driver import Transaction
from longthread.store.items import SEPARATOR, ItemPlace, ItemScope, text_of
from longthread.store.vectors import require_vectors

MOST_MINUTES = 1_000 * 365 * 24 * 60
"""A time to live of a thousand years: later times cannot be written down."""
PAGE = 256
"""Items that are read at a time."""
BATCH = 64
"""Items that are indexed at a time."""
MADE_UP = 1024
"""Items whose index a question brings up to date, where it is of another kind; the rest is for the next question."""
AT_ONCE = 64
"""Transactions at a time. More wait for those, and not for a connection, for which they would not long."""
_MOVES = 0.01
"""A time to live is not renewed for less than this part of it: each renewal is a write."""


def validate_operation(op: Op) -> None:
    """Validate an operation.

    Raises:
        InvalidNamespaceError: a namespace is no tuple of texts, or a part of one is empty, or has a dot in it.
        InvalidInput: a value is no dict, or a number is out of its range.
    """
    for namespace in _namespaces(op):
        expect_tuple(namespace)
    validate_op_namespace(op)
    if isinstance(op, PutOp):
        _expect_dict(op)
        expect_minutes(op.ttl, f"The ttl of item {op.key!r}")
    elif isinstance(op, SearchOp | ListNamespacesOp):
        _expect_count(op.limit, "limit")
        _expect_count(op.offset, "offset")
        if isinstance(op, ListNamespacesOp) and op.max_depth is not None:
            _expect_count(op.max_depth, "max_depth")


def expect_minutes(given: Any, name: str) -> None:
    """Raise InvalidInput unless `given` is a number of minutes or None."""
    is_number = isinstance(given, int | float) and not isinstance(given, bool)
    if given is not None and not (is_number and 0 <= given <= MOST_MINUTES):
        raise InvalidInput(
            reason=f"{name} is {given!r}; allowed is a number of minutes from 0 to {MOST_MINUTES:,}, or None for ever."
        )


def expect_config(given: Any, name: str) -> None:
    """Raise InvalidInput unless `given` is a dict or None."""
    if not isinstance(given, Mapping | None):
        raise InvalidInput(
            reason=f"The {name} of a LongthreadStore is of type {type(given).__name__}. Give a dict as LangGraph "
            "defines it, or None."
        )


def expect_tuple(namespace: Any) -> None:
    """Raise InvalidNamespaceError unless `namespace` is a tuple or a list, whatever its items are."""
    # A text would be read as the tuple of its characters.
    if not isinstance(namespace, tuple | list):
        raise InvalidNamespaceError(
            f"The namespace {namespace!r} is of type {type(namespace).__name__}. Give a tuple of texts, such as "
            '("users", "ada"), or ("users",) with its comma.'
        )


def _namespaces(op: Op) -> list[Any]:
    if isinstance(op, GetOp | PutOp):
        return [op.namespace]
    if isinstance(op, SearchOp):
        return [op.namespace_prefix]
    if isinstance(op, ListNamespacesOp):
        return [condition.path for condition in op.match_conditions or ()]
    return []


def _expect_dict(op: PutOp) -> None:
    if not isinstance(op.value, Mapping | None):
        kind = type(op.value).__name__
        raise InvalidInput(
            reason=f"The value of item {op.key!r} is of type {kind}, and items are dicts. Put it into one, such as "
            f'{{"value": …}}; None deletes an item.'
        )


def _expect_count(given: Any, name: str) -> None:
    if not isinstance(given, int) or isinstance(given, bool) or given < 0:
        raise InvalidInput(reason=f"{name} is {given!r}; give a whole number from 0 on.")


@dataclass(slots=True)
class _Read:
    """One snapshot: its time, and the items whose time to live is extended."""

    tx: Transaction
    now: datetime
    vectors: Mapping[str, Vectors | None]
    refreshed: list[items.Item] = field(default_factory=list)


class Batches:
    """Runs LangGraph's operations: all reads before all writes, as its own stores do."""

    def __init__(self, backing: Backend, index: ItemIndex, *, omit_expired: bool) -> None:
        self._store = backing.store
        self._user_id = backing.user_id
        self._index = index
        self._omits = omit_expired
        self._turns = asyncio.Semaphore(AT_ONCE)
        self._has_vectors = index.vector_model is None

    async def run(self, ops: Sequence[Op]) -> list[Result]:
        """Return the results in the order of `ops`.

        Raises:
            InvalidInput: a value is no dict, or a number is out of its range.
            InvalidNamespaceError: a namespace is no tuple of texts, or a part of one is empty, or has a dot in it.
            StoreError: the index has an embedder, and the store cannot have vectors (see `require_vectors`).
            TypeError: a value is not JSON.
            ValueError: an operation, or a filter's operator, is unknown.
        """
        for op in ops:
            validate_operation(op)
        if not self._has_vectors:
            await require_vectors(self._store)
            self._has_vectors = True
        puts = {(SEPARATOR.join(op.namespace), op.key): op for op in ops if isinstance(op, PutOp)}
        found: list[Result] = [None] * len(ops)
        if any(not isinstance(op, PutOp) for op in ops):
            async with self._reading(ops) as read:
                for n, op in enumerate(ops):
                    found[n] = await self._answer_op(read, op)
            await self._refresh(read)
        if puts:
            await self._write(puts)
        return found

    async def sweep(self) -> int:
        """Delete expired items; return their number."""
        now, count = datetime.now(UTC), 0
        while True:
            async with self._store.writing() as tx:
                places = await items.list_expired(tx, self._user_id, now, limit=PAGE)
                count += await items.delete_expired(tx, self._user_id, places, now)
            if len(places) < PAGE:
                return count

    @asynccontextmanager
    async def _reading(self, ops: Sequence[Op]) -> AsyncIterator[_Read]:
        questions = [op for op in ops if isinstance(op, SearchOp) and op.query]
        for op in questions:
            await self._make_up(self._scope(op.namespace_prefix))
        vectors = {op.query: await self._index.vector(op.query) for op in questions if op.query}
        async with self._turns, self._store.reading() as tx:
            yield _Read(tx, datetime.now(UTC), vectors)

    async def _answer_op(self, read: _Read, op: Op) -> Result:
        if isinstance(op, GetOp):
            return await self._get(read, op)
        if isinstance(op, SearchOp):
            return await self._search(read, op)
        if isinstance(op, ListNamespacesOp):
            return await self._namespaces(read, op)
        if not isinstance(op, PutOp):
            raise ValueError(f"Unknown operation type: {type(op)}")
        return None

    async def _get(self, read: _Read, op: GetOp) -> Item | None:
        place = SEPARATOR.join(op.namespace), op.key
        found = await items.find(read.tx, self._user_id, place, alive_at=self._alive_at(read.now))
        if found is None:
            return None
        if op.refresh_ttl:
            read.refreshed.append(found)
        return Item(**_describe_item(found))

    async def _search(self, read: _Read, op: SearchOp) -> list[SearchItem]:
        """Return the items that match the query, best first, then the others, newest first."""
        start, end = op.offset, op.offset + op.limit
        scope = self._scope(op.namespace_prefix, read.now)
        found: list[tuple[items.Item, float | None]] = []
        ranked = await self._rank_items(read, scope, op, end) if op.query else []
        for at in range(0, len(ranked), PAGE):
            some = ranked[at : at + PAGE]
            places = [place for _, place in some]
            there = await items.find_all(read.tx, self._user_id, places, alive_at=scope.alive_at)
            known = [(there[place], score) for score, place in some if place in there]
            found += [(item, score) for item, score in known if self._passes(item, op)]
            if len(found) >= end:
                break
        if len(found) < end:
            seen = {place for _, place in ranked}
            found += [(item, None) async for item in self._others(read, scope, op, seen, end - len(found))]
        shown = found[start:end]
        if op.refresh_ttl:
            read.refreshed += [item for item, _ in shown]
        return [SearchItem(**_describe_item(item), score=score) for item, score in shown]

    async def _rank_items(self, read: _Read, scope: ItemScope, op: SearchOp, end: int) -> RankedItems:
        assert op.query is not None
        vector = read.vectors[op.query]
        if vector is None or self._index.vector_model is None:
            return await by_words(read.tx, scope, op.query)
        # A filter or the expiry may remove any of them.
        limit = None if op.filter or self._omits else end
        return await by_meaning(read.tx, scope, self._index.vector_model, vector, self._index.measure, limit)

    async def _others(
        self, read: _Read, scope: ItemScope, op: SearchOp, seen: set[ItemPlace], count: int
    ) -> AsyncIterator[items.Item]:
        after: items.Item | None = None
        size = PAGE if op.filter or seen else min(PAGE, count)
        while count:
            some = await items.page(read.tx, scope, after, limit=size)
            for item in some:
                if count and item.place not in seen and self._passes(item, op):
                    count -= 1
                    yield item
            if len(some) < size:
                return
            after = some[-1]

    def _passes(self, item: items.Item, op: SearchOp) -> bool:
        return not op.filter or matches_filter(json.loads(item.value), op.filter)

    async def _namespaces(self, read: _Read, op: ListNamespacesOp) -> list[tuple[str, ...]]:
        known = await items.namespaces(read.tx, self._scope((), read.now))
        parts = [tuple(name.split(SEPARATOR)) if name else () for name in known]
        chosen = {each for each in parts if all(_agrees(each, wanted) for wanted in op.match_conditions or ())}
        ordered = sorted({each[: op.max_depth] for each in chosen} if op.max_depth is not None else chosen)
        return ordered[op.offset : op.offset + op.limit]

    async def _refresh(self, read: _Read) -> None:
        due = {item.place: item for item in read.refreshed if _is_due(item, read.now)}
        if due:
            async with self._turns, self._store.writing() as tx:
                await items.refresh(tx, self._user_id, due.values(), read.now)

    async def _write(self, puts: Mapping[ItemPlace, PutOp]) -> None:
        kept = {place: op for place, op in puts.items() if op.value is not None}
        values = {place: json_of(op.key, op.value or {}) for place, op in kept.items()}
        wanted = [IndexedItem(place[1], json.loads(values[place]), _fields(op)) for place, op in kept.items()]
        made = dict(zip(kept, await self._index.make_indexes(wanted), strict=True))
        now = datetime.now(UTC)
        async with self._turns, self._store.writing() as tx:
            for place, op in sorted(puts.items(), key=lambda each: each[0]):
                if op.value is None:
                    await items.delete(tx, self._user_id, place)
                    continue
                expires = text_of(now + timedelta(minutes=op.ttl)) if op.ttl is not None else None
                at = text_of(now)
                item = items.Item(*place, values[place], json.dumps(_fields(op)), at, at, expires, op.ttl)
                await items.put(tx, self._user_id, item, made[place])

    async def _make_up(self, scope: ItemScope) -> None:
        """Index items again whose index has another form, or another configuration."""
        for _ in range(MADE_UP // BATCH):
            async with self._turns, self._store.reading() as tx:
                some = await items.stale(tx, scope, form=TERMS_FORM, embedded=self._index.vector_model, limit=BATCH)
            if not some:
                return
            wanted = [IndexedItem(item.key, json.loads(item.value), json.loads(item.fields)) for item in some]
            made = await self._index.make_indexes(wanted)
            async with self._turns, self._store.writing() as tx:
                for item, index in sorted(zip(some, made, strict=True), key=lambda each: each[0].place):
                    await items.reindex(tx, self._user_id, item, index)
            if any(index.embedded != (self._index.vector_model or "") for index in made):
                return  # the embedder does not work

    def _scope(self, prefix: Sequence[str], now: datetime | None = None) -> ItemScope:
        return ItemScope(self._user_id, SEPARATOR.join(prefix), self._alive_at(now) if now else "")

    def _alive_at(self, now: datetime) -> str:
        return text_of(now) if self._omits else ""


def _describe_item(item: items.Item) -> dict[str, Any]:
    return {
        "namespace": tuple(item.namespace.split(SEPARATOR)) if item.namespace else (),
        "key": item.key,
        "value": json.loads(item.value),
        "created_at": datetime.fromisoformat(item.created_at),
        "updated_at": datetime.fromisoformat(item.updated_at),
    }


def _fields(op: PutOp) -> list[str] | bool | None:
    return False if op.index is False else list(op.index) if op.index is not None else None


def json_of(key: str, value: Mapping[str, Any]) -> str:
    """Return an item's value as it is stored. Raises ItemNotStorable: it is no JSON."""
    try:
        text = json.dumps(dict(value), ensure_ascii=False, separators=(",", ":"))
    except (TypeError, ValueError, RecursionError) as error:
        raise ItemNotStorable(key=repr(key), reason=str(error)) from error
    # Lone surrogates are not valid text, but JSON can hold them.
    return json.dumps(dict(value)) if any("\ud800" <= character <= "\udfff" for character in text) else text


def _is_due(item: items.Item, now: datetime) -> bool:
    if item.ttl is None or item.expires_at is None:
        return False
    later = now + timedelta(minutes=item.ttl)
    return later - datetime.fromisoformat(item.expires_at) > timedelta(minutes=item.ttl) * _MOVES


def _agrees(namespace: tuple[str, ...], wanted: MatchCondition) -> bool:
    """Whether a namespace begins or ends with a path; `*` matches any one part."""
    path, count = wanted.path, len(wanted.path)
    if len(namespace) < count:
        return False
    if wanted.match_type == "prefix":
        parts = namespace[:count]
    elif wanted.match_type == "suffix":
        parts = namespace[len(namespace) - count :]
    else:
        raise ValueError(f"Unsupported match type: {wanted.match_type}")
    return all(part in ("*", own) for own, part in zip(parts, path, strict=True))
