"""All that is kept of a person as one zip file: a member of JSON lines for each kind of rows.

Hashes, tokens and sealed keys stay out, and so does what is derived from the rest. Conversations are in the format of
`longthread threads export`, so that `longthread import` reads them.
"""

from __future__ import annotations

import asyncio
import zipfile
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, BinaryIO

from longthread.access import audit, users
from longthread.errors import RowDamaged, UserNotFound
from longthread.store import log
from longthread.store.driver import Row, Transaction
from longthread.store.queries import Sql
from longthread.store.tables import StoreColumn, StoreTable, Tables, canonical, read_tables
from longthread.store.transfer.archive import dump, export_lines, why_not_whole
from longthread.store.transfer.threads import thread_ids

PAGE_ROWS = 200
_BATCH_BYTES = 1 << 20


@dataclass(frozen=True, slots=True)
class ExportedRows:
    """Rows of a table: the member's name, which rows are `:user_id`'s, and the columns that stay out."""

    member: str
    table: str
    condition: str = '"user_id" = :user_id'
    without: frozenset[str] = frozenset()


EXPORTED = (
    ExportedRows("identities", "access_identities"),
    ExportedRows("groups", "access_groups", '"id" IN (SELECT group_id FROM access_members WHERE user_id = :user_id)'),
    ExportedRows("projects", "access_project_members"),
    ExportedRows("sessions", "access_sessions", without=frozenset({"id_hash"})),
    ExportedRows("links", "access_links", without=frozenset({"token_hash"})),
    ExportedRows("keys", "access_keys", without=frozenset({"key_hash"})),
    ExportedRows("grants", "access_grants", '"to_kind" = \'user\' AND "to_id" = :user_id'),
    ExportedRows("usage", "access_spending"),
    ExportedRows("uploads", "access_uploads"),
    ExportedRows("provider_keys", "provider_keys", without=frozenset({"sealed"})),
    ExportedRows("share_links", "share_links", without=frozenset({"token_hash"})),
    ExportedRows(
        "queued_questions", "queued_questions", '"thread_id" IN (SELECT id FROM threads WHERE user_id = :user_id)'
    ),
    ExportedRows(
        "memories",
        "memories",
        without=frozenset({"embedding", "numbers", "terms", "words", "form", "model"}),
    ),
    ExportedRows(
        "memory_sources", "memory_sources", '"memory_id" IN (SELECT id FROM memories WHERE user_id = :user_id)'
    ),
    ExportedRows("items", "items", without=frozenset({"form", "words", "embedded", "fields"})),
    ExportedRows("boards", "boards"),
    ExportedRows("board_cards", "board_cards", '"board_id" IN (SELECT id FROM boards WHERE user_id = :user_id)'),
    ExportedRows("board_links", "board_links", without=frozenset({"token_hash"})),
)
LEFT_OUT = frozenset(
    {
        *("item_terms", "item_vectors", "recall_volumes", "recall_volume_postings", "recall_bound", "recall_loose"),
        *("idempotency_keys", "pending_deletions", "access_members", "threads"),
    }
)
"""Tables with rows of users that are derived, about requests, or in another member."""


async def export_person(tx: Transaction, user_id: str, to: BinaryIO) -> int:
    """Write all that is kept of a user into a file, as it is in this snapshot, and return the number of
    conversations."""
    tables = await read_tables(tx)
    damaged: dict[str, str] = {}
    threads = await _list_whole_threads(tx, user_id, damaged)
    with zipfile.ZipFile(to, "w", zipfile.ZIP_DEFLATED) as archive:
        account = await _describe_account(tx, user_id)
        account |= {"conversations": len(threads), "damaged_conversations": damaged}
        archive.writestr("account.json", dump(account))
        await _write_member(archive, "conversations.jsonl", export_lines(tx, threads, _ignore_progress, {}))
        for exported in EXPORTED:
            await _write_member(archive, f"{exported.member}.jsonl", _row_lines(tx, tables, exported, user_id))
        await _write_member(archive, "audit.jsonl", _audit_lines(tx, user_id))
    return len(threads)


async def _list_whole_threads(tx: Transaction, user_id: str, damaged: dict[str, str]) -> list[str]:
    """Return a user's threads with those below them; `damaged` receives unreadable ones, with the reason."""
    found: dict[str, None] = {}
    after: str | None = None
    while page := await thread_ids(tx, after=after, user_id=user_id):
        found |= dict.fromkeys(page)
        after = page[-1]
    for thread_id in list(found):
        try:
            await log.find_thread(tx, thread_id, user_id=user_id)
            reason = await why_not_whole(tx, thread_id)
        except RowDamaged as error:
            reason = error.reason
        if reason is not None:
            damaged[thread_id] = reason
            del found[thread_id]
    return list(found)


async def _describe_account(tx: Transaction, user_id: str) -> dict[str, Any]:
    """Return what is known of a user, without the password's hash; of a server without login only the id."""
    try:
        user = await users.find_user(tx, user_id)
    except UserNotFound:
        return {"id": user_id}
    times = {"created_at": user.created_at, "seen_at": user.seen_at}
    about = {"id": user.id, "name": user.name, "display": user.display, "email": user.email, "role": user.role}
    return {**about, **{name: each.isoformat() if each is not None else None for name, each in times.items()}}


async def _row_lines(tx: Transaction, tables: Tables, exported: ExportedRows, user_id: str) -> AsyncIterator[bytes]:
    table = tables[exported.table]
    columns = [each for each in table.columns if each.name not in exported.without]
    after: Row | None = None
    while True:
        rows = await tx.fetch(
            _select(table, exported, goes_on=after is not None),
            user_id=user_id,
            page=PAGE_ROWS,
            **({f"after_{number}": after[name] for number, name in enumerate(table.key)} if after is not None else {}),
        )
        for row in rows:
            yield dump(_row_json(columns, row)).encode() + b"\n"
        if len(rows) < PAGE_ROWS:
            return
        after = rows[-1]


def _select(table: StoreTable, exported: ExportedRows, *, goes_on: bool) -> Sql:
    columns = ", ".join(
        f'{each.read} AS "{each.name}"'
        for each in table.columns
        if each.name not in exported.without or each.name in table.key
    )
    order = ", ".join(f'"{name}"' for name in table.key)
    conditions = [exported.condition]
    if goes_on:
        conditions.append(f"({order}) > ({', '.join(f':after_{number}' for number in range(len(table.key)))})")
    return Sql(f'SELECT {columns} FROM "{table.name}" WHERE {" AND ".join(conditions)} ORDER BY {order} LIMIT :page')


def _row_json(columns: Sequence[StoreColumn], row: Row) -> Mapping[str, Any]:
    return {each.name: _value_json(canonical(each, row[each.name])) for each in columns}


def _value_json(value: Any) -> Any:
    return value.hex() if isinstance(value, bytes) else value


async def _audit_lines(tx: Transaction, user_id: str) -> AsyncIterator[bytes]:
    for row in await audit.list_rows_about(tx, user_id):
        yield dump(row.to_json()).encode() + b"\n"


async def _write_member(archive: zipfile.ZipFile, name: str, lines: AsyncIterator[bytes]) -> None:
    """Write lines into a member, compressed on a thread, a part at a time."""
    with archive.open(name, "w", force_zip64=True) as member:
        part: list[bytes] = []
        size = 0
        async for line in lines:
            part.append(line)
            size += len(line)
            if size >= _BATCH_BYTES:
                await asyncio.to_thread(member.write, b"".join(part))
                part, size = [], 0
        await asyncio.to_thread(member.write, b"".join(part))


def _ignore_progress(done: int, total: int, what: str) -> None:
    """Ignore the progress of an export."""
