"""Items: the application's values by namespace and key, and their search index."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from longthread.store.driver import Row, Transaction, one
from longthread.store.vectors import numbers_of, vector_text

VectorMeasure = Literal["cosine", "l2", "inner_product"]
ItemPlace = tuple[str, str]
"""An item's namespace, with parts joined by dots, and its key."""

SEPARATOR = "."
_BEHIND = "/"  # the character behind the separator: what is between the two begins with a namespace and the separator
_LAST = chr(0x10FFFF) * 2
_LATEST = "9999"
_MORE = 16
"""Additional candidates: the databases' arithmetic differs in the last digit."""
_ALL = 2**31


@dataclass(frozen=True, slots=True)
class ItemScope:
    """A user's items whose namespace begins with `prefix`; with `alive_at`, a time as text, those not expired then."""

    user_id: str
    prefix: str = ""
    alive_at: str = ""

    @property
    def values(self) -> dict[str, Any]:
        first, last = (self.prefix + SEPARATOR, self.prefix + _BEHIND) if self.prefix else ("", _LAST)
        return {"user_id": self.user_id, "namespace": self.prefix, "first": first, "last": last}


@dataclass(frozen=True, slots=True)
class Item:
    """A stored item. `value` and `fields` are JSON; `ttl` is in minutes."""

    namespace: str
    key: str
    value: str
    fields: str
    created_at: str
    updated_at: str
    expires_at: str | None = None
    ttl: float | None = None
    embedded: str = ""

    @property
    def place(self) -> ItemPlace:
        return self.namespace, self.key


@dataclass(frozen=True, slots=True)
class Index:
    """An item's index: hashed terms with their counts, and vectors by field. `form` is the form of the terms,
    `embedded` the model and fields of the vectors; None: no vectors yet."""

    form: int
    terms: Mapping[int, int] = field(default_factory=dict)
    vectors: Mapping[str, NDArray[np.float32]] = field(default_factory=dict)
    embedded: str = ""


@dataclass(frozen=True, slots=True)
class Posting:
    """An item's count of a term; `words` counts all of its terms."""

    place: ItemPlace
    term: int
    count: int
    words: int


def text_of(moment: datetime) -> str:
    """Return a time as stored."""
    return moment.astimezone(UTC).isoformat(timespec="microseconds")


async def find(tx: Transaction, user_id: str, place: ItemPlace, *, alive_at: str = "") -> Item | None:
    row = await one(tx, "select_item", user_id=user_id, namespace=place[0], key=place[1], alive_at=alive_at)
    return _item(row) if row is not None else None


async def find_all(
    tx: Transaction, user_id: str, places: Sequence[ItemPlace], *, alive_at: str = ""
) -> dict[ItemPlace, Item]:
    """Return those of the items that exist."""
    given = json.dumps(places, ensure_ascii=False)
    rows = await tx.fetch("select_items_at", user_id=user_id, places=given, alive_at=alive_at)
    return {item.place: item for item in map(_item, rows)}


async def page(tx: Transaction, scope: ItemScope, after: Item | None, *, limit: int) -> list[Item]:
    """Return the next items after `after`, newest first."""
    behind = {
        "updated_at": after.updated_at if after else _LATEST,
        "after_namespace": after.namespace if after else "",
        "after_key": after.key if after else "",
    }
    rows = await tx.fetch("select_items", **scope.values, **behind, alive_at=scope.alive_at, limit=limit)
    return [_item(row) for row in rows]


async def namespaces(tx: Transaction, scope: ItemScope) -> list[str]:
    """Return a user's namespaces that hold items."""
    rows = await tx.fetch("select_item_namespaces", user_id=scope.user_id, alive_at=scope.alive_at)
    return [row["namespace"] for row in rows]


async def put(tx: Transaction, user_id: str, item: Item, index: Index) -> None:
    """Insert or replace an item and its index. One that is there keeps the time of its creation."""
    await tx.run(
        "upsert_item",
        **_at(user_id, item.place),
        value=item.value,
        fields=item.fields,
        created_at=item.created_at,
        updated_at=item.updated_at,
        expires_at=item.expires_at,
        ttl_minutes=item.ttl,
        form=index.form,
        words=sum(index.terms.values()),
        embedded=index.embedded,
    )
    await _write_index(tx, user_id, item.place, index)


async def reindex(tx: Transaction, user_id: str, item: Item, index: Index) -> None:
    """Replace an item's index, unless the item has changed meanwhile."""
    changed = {"form": index.form, "words": sum(index.terms.values()), "embedded": index.embedded}
    if await tx.run("index_item", **_at(user_id, item.place), updated_at=item.updated_at, **changed):
        await _write_index(tx, user_id, item.place, index)


async def delete(tx: Transaction, user_id: str, place: ItemPlace) -> None:
    """Delete an item, if it exists."""
    await tx.run("delete_item", **_at(user_id, place))


async def refresh(tx: Transaction, user_id: str, found: Iterable[Item], now: datetime) -> None:
    """Restart the time to live of items that were read."""
    for item in sorted(found, key=lambda each: each.place):
        if item.ttl is not None:
            later = text_of(now + timedelta(minutes=item.ttl))
            await tx.run("refresh_item", **_at(user_id, item.place), expires_at=later)


async def list_expired(tx: Transaction, user_id: str, now: datetime, *, limit: int) -> list[ItemPlace]:
    """Return up to `limit` expired items."""
    rows = await tx.fetch("select_expired_items", user_id=user_id, now=text_of(now), limit=limit)
    return [(row["namespace"], row["key"]) for row in rows]


async def delete_expired(tx: Transaction, user_id: str, places: Iterable[ItemPlace], now: datetime) -> int:
    """Delete those of the items that are still expired; return how many."""
    rows = [await tx.run("delete_expired_item", **_at(user_id, place), now=text_of(now)) for place in sorted(places)]
    return sum(rows)


async def stale(tx: Transaction, scope: ItemScope, *, form: int, embedded: str | None, limit: int) -> list[Item]:
    """Return items whose terms have another form, or, with `embedded`, whose vectors have another index."""
    rows = await tx.fetch("select_stale_items", **scope.values, form=form, embedded=embedded, limit=limit)
    return [_item(row) for row in rows]


async def postings(tx: Transaction, scope: ItemScope, terms: Iterable[int]) -> list[Posting]:
    """Return the postings of these terms."""
    rows = await tx.fetch("select_item_terms", **scope.values, terms=json.dumps(sorted(terms)))
    return [Posting((r["namespace"], r["key"]), int(r["term"]), int(r["count"]), int(r["words"])) for r in rows]


async def number(tx: Transaction, user_id: str) -> int:
    """Return how many items a user has."""
    [row] = await tx.fetch("count_items_of_user", user_id=user_id)
    return int(row["items"])


async def extent(tx: Transaction, scope: ItemScope) -> tuple[int, int]:
    """Return the numbers of searchable items and of their words."""
    [row] = await tx.fetch("count_items", **scope.values)
    return int(row["items"]), int(row["words"])


async def near(
    tx: Transaction,
    scope: ItemScope,
    embedded: str,
    vector: NDArray[np.float32],
    measure: VectorMeasure,
    limit: int | None,
) -> list[tuple[ItemPlace, NDArray[np.float32]]]:
    """Return candidate vectors: all, or enough to contain the nearest `limit` items."""
    asked = {"embedded": embedded, "dims": len(vector), "numbers": vector_text(vector), "measure": measure}
    most = _ALL if limit is None else limit + _MORE
    rows = await tx.fetch("select_item_vectors", **scope.values, **asked, limit=most)
    return [((row["namespace"], row["key"]), numbers_of(row)) for row in rows]


async def _write_index(tx: Transaction, user_id: str, place: ItemPlace, index: Index) -> None:
    at = _at(user_id, place)
    await tx.run("delete_item_terms", **at)
    await tx.run("delete_item_vectors", **at)
    await tx.run_all("insert_item_term", [{**at, "term": term, "count": n} for term, n in sorted(index.terms.items())])
    vectors = [
        {**at, "field": name, "embedding": vector.astype("<f4").tobytes(), "numbers": vector_text(vector)}
        for name, vector in index.vectors.items()
    ]
    await tx.run_all("insert_item_vector", vectors)


def _at(user_id: str, place: ItemPlace) -> dict[str, Any]:
    return {"user_id": user_id, "namespace": place[0], "key": place[1]}


def _item(row: Row) -> Item:
    return Item(
        namespace=row["namespace"],
        key=row["key"],
        value=row["value"],
        fields=row["fields"],
        created_at=row["created_at"],
        updated_at=row["updated_at"],
        expires_at=row["expires_at"],
        ttl=row["ttl_minutes"],
        embedded=row["embedded"],
    )
