"""Import the items of LangGraph's own stores, SqliteStore and PostgresStore."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from longthread.errors import ItemNotStorable
from longthread.langgraph.item_batch import BATCH, MOST_MINUTES, json_of
from longthread.langgraph.item_index import IndexedItem, ItemIndex
from longthread.langgraph.saver.async_saver import AsyncLongthreadSaver
from longthread.store import items
from longthread.store.driver import Row
from longthread.store.items import Index, Item
from longthread.store.transfer.foreign import Foreign, has, import_errors, moment, moment_or_none
from longthread.store.transfer.foreign import count as count_rows
from longthread.store.transfer.threads import read_rows

TABLE = "store"
_EVERYTHING = "null"
"""The fields that are searched: the ones that the store is configured with."""


@dataclass(slots=True)
class ItemTally:
    """How many items are where they are to be, and how many of them were before."""

    there: int = 0
    already: int = 0


def are_there(foreign: Foreign) -> bool:
    return has(foreign, TABLE, "prefix", "key", "value")


async def count(foreign: Foreign) -> int:
    return await count_rows(foreign, TABLE) if are_there(foreign) else 0


async def take(
    foreign: Foreign, saver: AsyncLongthreadSaver, failures: list[str], tell: Callable[[str], None]
) -> ItemTally:
    """Import the items of another program's database for the saver's user, with their times and without their vectors:
    a search makes these if an embedder is configured. An item that has changed here since stays."""
    done = ItemTally()
    async for some in batches(foreign, failures):
        wanted = [IndexedItem(item.key, json.loads(item.value), None) for item in some]
        made = await ItemIndex(None).make_indexes(wanted)
        async with saver._store.writing() as tx:
            there = await items.find_all(tx, saver._user_id, [item.place for item in some])
            for item, index in sorted(zip(some, made, strict=True), key=_place):
                here = there.get(item.place)
                if here is None:
                    await items.put(tx, saver._user_id, item, index)
                elif here.updated_at < item.updated_at and json.loads(here.value) != json.loads(item.value):
                    failures.append(f"{name_of(item)} is here already, with an older value.")
                    continue
                done.there += 1
                done.already += here is not None
        for item in some:
            tell(item.namespace)
    return done


async def batches(foreign: Foreign, failures: list[str]) -> AsyncIterator[Sequence[Item]]:
    """Yield the items of another program's database; what is none is named in `failures`."""
    some: list[Item] = []
    if not are_there(foreign):
        return
    with import_errors():
        async for row in read_rows(foreign.tx, foreign.tables[TABLE]):
            try:
                some.append(_item(row))
            except (ValueError, TypeError, ItemNotStorable) as error:
                failures.append(f"item {row['key']} in {row['prefix']} cannot be read: {error}")
            if len(some) == BATCH:
                yield some
                some = []
    if some:
        yield some


def name_of(item: Item) -> str:
    return f"item {item.key} in {item.namespace or 'the root'}"


def _place(each: tuple[Item, Index]) -> items.ItemPlace:
    return each[0].place


def _item(row: Row) -> Item:
    """Raises ValueError, TypeError or ItemNotStorable: it is damaged, or no item."""
    value: Any = row["value"] if isinstance(row["value"], Mapping) else json.loads(row["value"])
    if not isinstance(value, Mapping):
        raise TypeError("its value is no object")
    created = moment(row.get("created_at"))
    updated = moment(row.get("updated_at"), created)
    ttl = row.get("ttl_minutes")
    expires = moment_or_none(row.get("expires_at")) if row.get("expires_at") is not None else None
    return Item(
        namespace=row["prefix"],
        key=row["key"],
        value=json_of(row["key"], value),
        fields=_EVERYTHING,
        created_at=created,
        updated_at=updated,
        expires_at=expires,
        ttl=float(ttl) if ttl is not None and 0 <= float(ttl) <= MOST_MINUTES else None,
    )
