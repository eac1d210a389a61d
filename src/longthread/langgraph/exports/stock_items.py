"""Export items to LangGraph's own stores, SqliteStore and PostgresStore."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from longthread.langgraph.exports.stock_target import StockTarget
from longthread.langgraph.imports.stock_items import TABLE, name_of
from longthread.langgraph.items.item_batch import PAGE
from longthread.langgraph.saver.async_saver import AsyncLongthreadSaver
from longthread.store import items
from longthread.store.driver import one
from longthread.store.imports.foreign import Foreign, change_foreign, export_errors
from longthread.store.items import Item, ItemScope
from longthread.store.queries import Sql
from longthread.store.tables import StoreTable
from longthread.store.transfer.rows import update_row, write_rows


@dataclass(slots=True)
class WrittenItems:
    """How many items are there now, and how many of them were before."""

    written: int = 0
    already: int = 0


async def count(saver: AsyncLongthreadSaver) -> int:
    async with saver._store.reading() as tx:
        return await items.number(tx, saver._user_id)


async def export(
    saver: AsyncLongthreadSaver,
    target: StockTarget,
    replaces: bool,
    failures: list[str],
    tell: Callable[[str], None],
) -> WrittenItems:
    """Write the user's items with their times, in one transaction. Vectors are not written: the other store makes its
    own when an item is put."""
    await target.make_items()
    done, after = WrittenItems(), None
    with export_errors():
        async with saver._store.reading() as tx, change_foreign(target.address) as foreign:
            while some := await items.page(tx, ItemScope(saver._user_id), after, limit=PAGE):
                for item in some:
                    await _write(foreign, item, replaces, done, failures)
                    tell(item.namespace)
                after = some[-1]
    return done


async def _write(foreign: Foreign, item: Item, replaces: bool, done: WrittenItems, failures: list[str]) -> None:
    table = foreign.tables[TABLE]
    found = await one(foreign.tx, _asked(table), prefix=item.namespace, key=item.key)
    row = _row(foreign, item)
    if found is None:
        await write_rows(foreign.tx, table, [row])
    elif json.loads(found["value"]) == json.loads(item.value):
        done.already += 1
    elif replaces:
        await update_row(foreign.tx, table, row)
    else:
        failures.append(f"{name_of(item)} is there already, with another value.")
        return
    done.written += 1


def _asked(table: StoreTable) -> Sql:
    return Sql(
        f'SELECT {table.by_name["value"].read} AS value FROM "{TABLE}" WHERE "prefix" = :prefix AND "key" = :key'
    )


def _row(foreign: Foreign, item: Item) -> Mapping[str, Any]:
    time = _sqlite_time if foreign.dialect == "sqlite" else str
    row: dict[str, Any] = {
        "prefix": item.namespace,
        "key": item.key,
        "value": item.value,
        "created_at": time(item.created_at),
        "updated_at": time(item.updated_at),
    }
    if "expires_at" in foreign.tables[TABLE].by_name:
        minutes = item.ttl if item.ttl is None or foreign.dialect == "sqlite" else max(1, round(item.ttl))
        row |= {"expires_at": time(item.expires_at) if item.expires_at else None, "ttl_minutes": minutes}
    return row


def _sqlite_time(moment: str) -> str:
    """Return a time as SqliteStore writes it: it compares texts with SQLite's CURRENT_TIMESTAMP."""
    return datetime.fromisoformat(moment).astimezone(UTC).strftime("%Y-%m-%d %H:%M:%S.%f")
