"""Threads that have something in every table, whatever tables there are."""

from __future__ import annotations

import json
import struct
from collections.abc import Sequence
from typing import Any

from longthread.model.catalog import BUILTIN
from longthread.model.entry import Draft, ToolCall
from longthread.store import log
from longthread.store.driver import Driver, Transaction
from longthread.store.tables import StoreColumn, StoreTable, canonical, read_tables
from longthread.store.transfer.threads import read_rows, write_rows

TEXTS = [
    "",
    "text",
    "数据\n\u2028\\\"'",
    '{"a":1}',
    '{"a": 1}',
    '{"b":1,"a":1.0}',
    "[1,2]",
    "[",
    "𝄞\x01",
    "null",
    "%s :x",
]
_CHECKED: dict[str, Any] = {
    "role": "tool",
    "status": "failed",
    "kind": "tool",
    "client_type": "cursor",
    "type": "api",
    "memory_type": "semantic",
    "protocol": "auto",
    "how": "given",
    "decision": "reject",
    "refresh_every": "week",
}
_OF_ACCESS: dict[tuple[str, str], str] = {
    ("access_users", "role"): "admin",
    ("access_users", "status"): "active",
    ("access_groups", "origin"): "oidc",
    ("access_links", "kind"): "reset",
    ("access_tries", "kind"): "account",
}
_CHECKED_OF_ACCESS = {"budget_unit": "money", "budget_period": "week", "to_kind": "group", "may": "use"}
_AGENT = "0192f0c1-5a0e-7cc3-98c4-dc0c0c07398f"
_TIME = "2026-01-02T03:04:05.678000+00:00"


def value_of(table: StoreTable, column: StoreColumn, thread_id: str) -> Any:
    """A value that the column allows, and that tells where it belongs."""
    if table.name.startswith("access_"):
        allowed = _OF_ACCESS.get((table.name, column.name), _CHECKED_OF_ACCESS.get(column.name))
        if allowed is not None:
            return allowed
        if column.name in ("user_id", "group_id", "project_id"):
            return _AGENT  # they refer to the one row
    if column.name in _CHECKED and column.kind == "text":
        return _CHECKED[column.name]
    if column.name in ("agent_id", "memory_id", "board_id", "link_id") or (
        column.name == "id" and table.thread is None
    ):
        return _AGENT
    if column.name in ("session_id", "asked_in"):
        return thread_id
    if (table.name, column.name) == ("memory_uses", "run_id"):
        return f"runs id {thread_id}"
    if column.name in ("embedding", "numbers"):
        return struct.pack("<1536f", *(number / 7 for number in range(1536)))
    if column.name.endswith("_at") and column.kind == "text":
        return _TIME
    if table.name.startswith("item") and column.name in {"user_id", "namespace", "key"}:
        return column.name  # they refer to one another by these
    if column.form == "json":
        return json.dumps([table.name, column.name])
    words = f"{table.name} {column.name} {thread_id}"
    return {"text": words, "integer": 1, "real": 0.1, "bytes": f"\0{words}".encode()}[column.kind]


_BUILTIN = {id_ for _, id_ in BUILTIN}


async def fill(store: Driver, thread_id: str, *, user_id: str = "u") -> None:
    """Make a thread that has a row in every table there is."""
    async with store.writing() as tx:
        await log.create_thread(tx, thread_id, user_id=user_id, title="title", source="source")
        await log.extend(tx, thread_id, drafts(TEXTS))
        await log.extend(tx, thread_id, drafts(["edited"], start=99), parent=3)
        tables = await read_tables(tx)
        for table in tables.all:
            has_rows = [row async for row in read_rows(tx, table, thread_id) if row.get("id") not in _BUILTIN]
            if not has_rows:
                await write_rows(tx, table, [sample_of(table, thread_id)])


def sample_of(table: StoreTable, thread_id: str) -> dict[str, Any]:
    """A row of a table."""
    row = {column.name: value_of(table, column, thread_id) for column in table.columns}
    return row | ({table.thread: thread_id} if table.thread else {})


def drafts(texts: Sequence[str], start: int = 0) -> list[Draft]:
    """Messages that use every field of an entry."""
    return [
        Draft(
            id=f"m{number}",
            role="assistant",
            text=text,
            tool_calls=(ToolCall("c", "run_sql", {"sql": text}),) if number % 2 else (),
            name=text or None,
            payload=text.encode() + b"\0\xff" if number % 3 else None,
            tokens=number,
            metadata={"kind": text},
        )
        for number, text in enumerate(texts, start)
    ]


async def everything(tx: Transaction, *, derived: bool = False) -> dict[str, list[dict[str, Any]]]:
    """All rows of all tables; of those that follow from others only when they are asked for."""
    found: dict[str, list[dict[str, Any]]] = {}
    tables = await read_tables(tx, whole=derived)
    for table in tables.all if derived else (*tables.of_threads, *tables.shared_tables):
        ids = [row["id"] for row in await tx.fetch("select_thread_ids", after="", user_id=None, limit=10_000)]
        scopes: list[str | None] = [*ids] if table.thread else [None]
        found[table.name] = [
            {column.name: canonical(column, row[column.name]) for column in table.columns}
            for scope in scopes
            async for row in read_rows(tx, table, scope)
        ]
    return found


async def all_of(store: Driver, *, derived: bool = False) -> dict[str, list[dict[str, Any]]]:
    """All rows of all tables of a store; of those that follow from others only when they are asked for."""
    async with store.reading() as tx:
        return await everything(tx, derived=derived)
