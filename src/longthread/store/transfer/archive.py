"""Exports of threads as JSON lines, and of a branch as Markdown. Equal threads give equal bytes on every backend.

The first line holds the format version and the number of threads. A thread is a line with its id and row counts by
table, then one line per row. The last line is a checksum.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from datetime import datetime
from typing import Any, get_args

from longthread.errors import RowDamaged
from longthread.model.entry import Entry, Role, ToolCall
from longthread.model.markdown import markdown
from longthread.model.thread import Thread
from longthread.store.branches import branch_points
from longthread.store.driver import Row, Transaction
from longthread.store.rows import UNREADABLE, make_damage_error
from longthread.store.schema import SCHEMA_VERSION
from longthread.store.tables import ENTRIES, THREADS, StoreColumn, StoreTable, canonical, read_tables
from longthread.store.transfer.threads import TransferProgress, count_rows, read_thread

_READ: dict[str, Callable[[str], Any]] = {
    "created_at": datetime.fromisoformat,
    "tool_calls": lambda text: [ToolCall.from_json(call) for call in json.loads(text)],
    "metadata": json.loads,
}
"""Columns that readers of an entry decode, with their decoders."""


class EntryTree:
    """Checks a thread's entries: parents exist, ids are unique, and all can be decoded."""

    def __init__(self) -> None:
        self._seqs: set[int] = set()
        self._ids: set[str] = set()

    def add(self, entry: Row, thread: Row) -> str | None:
        """Check the next entry; return what is wrong with it."""
        seq, parent, first = entry["seq"], entry["parent_seq"], thread.get("first_seq", 1)
        if not first <= seq <= thread.get("entry_count", 0):
            return f"the thread cannot have an entry {seq}."
        if parent >= first and parent not in self._seqs:
            return f"entry {seq} stands behind entry {parent}, which is not there."
        if entry["role"] not in get_args(Role):
            return f"entry {seq} has the role {entry['role']}, which there is not."
        if entry["id"] in self._ids:
            return f"two entries have the id {entry['id']}."
        self._seqs.add(seq)
        self._ids.add(entry["id"])
        return _unreadable(entry)

    def check(self, thread: Row) -> str | None:
        """Check the thread after all entries; return what is wrong with it."""
        tip = thread.get("tip", 0)
        return f"the thread ends in entry {tip}, which is not there." if tip and tip not in self._seqs else None


def _unreadable(entry: Row) -> str | None:
    for name, read in _READ.items():
        try:
            if entry.get(name):
                read(entry[name])
        except UNREADABLE as error:
            return make_damage_error(f"{name} of entry {entry['seq']}", error).reason
    return None


FORMAT = "longthread_export"
VERSION = 1


async def export_lines(
    tx: Transaction, thread_ids: Sequence[str], progress: TransferProgress, damaged: dict[str, str] | None = None
) -> AsyncIterator[bytes]:
    """Yield an export of these threads in this snapshot; a missing thread has no rows. `damaged` receives the threads
    that could not be imported, with the reason."""
    checksum = hashlib.sha256()
    lines = 0
    async for data in _objects(tx, thread_ids, progress, damaged):
        line = dump(data).encode() + b"\n"
        checksum.update(line)
        lines += 1
        yield line
    yield (
        dump({"end": FORMAT, "threads": len(thread_ids), "lines": lines, "sha256": checksum.hexdigest()}).encode()
        + b"\n"
    )


async def _objects(
    tx: Transaction, thread_ids: Sequence[str], progress: TransferProgress, damaged: dict[str, str] | None
) -> AsyncIterator[Mapping[str, Any]]:
    tables = await read_tables(tx)
    yield {FORMAT: VERSION, "schema": SCHEMA_VERSION, "threads": len(thread_ids)}
    for done, thread_id in enumerate(thread_ids):
        progress(done, len(thread_ids), thread_id)
        yield {"thread": thread_id, "rows": await count_rows(tx, tables.of_threads, thread_id)}
        check = _Check()
        async for name, row in read_thread(tx, tables, thread_id):
            data = row_json(tables[name], row)
            if damaged is not None:
                check.add(tables[name], data)
            yield {"table": name, "row": data}
        if damaged is not None and (reason := check.end()):
            damaged[thread_id] = reason
    progress(len(thread_ids), len(thread_ids), "")


async def why_not_whole(tx: Transaction, thread_id: str) -> str | None:
    """Return why a damaged thread's lines could not be imported; None: they could."""
    tables = await read_tables(tx)
    check = _Check()
    try:
        async for name, row in read_thread(tx, tables, thread_id):
            check.add(tables[name], row_json(tables[name], row))
            if check.reason is not None:
                break
    except RowDamaged as error:
        return error.reason
    return check.end()


class _Check:
    """Checks a thread's rows during export. `reason`: why they could not be imported."""

    def __init__(self) -> None:
        self.reason: str | None = None
        self._tree = EntryTree()
        self._thread: dict[str, Any] = {}

    def add(self, table: StoreTable, data: Mapping[str, Any]) -> None:
        if self.reason is not None:
            return
        try:
            row = row_of(table, data)
        except ValueError as error:
            self.reason = str(error)
            return
        if table.name == THREADS:
            self._thread = row
        elif table.name == ENTRIES:
            self.reason = self._tree.add(row, self._thread)

    def end(self) -> str | None:
        """Return the reason after the last row."""
        return self.reason or self._tree.check(self._thread)


def select_exported(table: StoreTable) -> Sequence[StoreColumn]:
    """Return a table's columns in an export: all but the thread's id."""
    return [column for column in table.columns if column.name != table.thread]


def row_json(table: StoreTable, row: Row) -> dict[str, Any]:
    """Return a row as its line; NULL columns are absent."""
    found: dict[str, Any] = {}
    for column in select_exported(table):
        value = canonical(column, row[column.name])
        if value is not None or column.has_default:
            found[column.name] = _value_json(value)
    return found


def row_of(table: StoreTable, data: Mapping[str, Any]) -> dict[str, Any]:
    """Return the row of `row_json`, without the thread's id. Raises `ValueError` if the table allows no such row."""
    known = {column.name: column for column in select_exported(table)}
    unknown = sorted(data.keys() - known.keys())
    if unknown:
        raise ValueError(f"{table.name} has no {', '.join(unknown)} in this Longthread.")
    row = {name: _value_of(known[name], value) for name, value in data.items()}
    for column in known.values():
        needed = column.name in table.key or (column.required and (column.name in row or not column.has_default))
        if needed and row.get(column.name) is None:
            raise ValueError(f"{table.name} needs a value for {column.name}.")
    return row


def dump(data: Any) -> str:
    """Return compact JSON in one line."""
    return json.dumps(data, ensure_ascii=False, separators=(",", ":"))


def _value_json(value: Any) -> Any:
    """Return JSON text in our own spelling as its value, and bytes as `{"base64": …}`."""
    if isinstance(value, bytes):
        return {"base64": base64.b64encode(value).decode("ascii")}
    if isinstance(value, str) and value[:1] in {"{", "["}:
        try:
            said = json.loads(value)
            return said if dump(said) == value else value
        except (ValueError, RecursionError):
            return value
    return value


def _value_of(column: StoreColumn, value: Any) -> Any:
    match column.kind, value:
        case _, None:
            return None
        case "text", str():
            return value
        case "text", dict() | list():
            return dump(value)
        case "bytes", {"base64": str(text)}:
            try:
                return base64.b64decode(text, validate=True)
            except binascii.Error:
                raise ValueError(f"{column.name} is not in base64.") from None
        case "integer", int() if not isinstance(value, bool) and -(2**63) <= value < 2**63:
            return value
        case "real", int() | float() if not isinstance(value, bool):
            return float(value)
    raise ValueError(f"{column.name} must be {_KINDS[column.kind]}.")


_KINDS = {"text": "text", "bytes": "bytes in base64", "integer": "a whole number", "real": "a number"}


async def branch_markdown(tx: Transaction, thread: Thread, entries: Sequence[Entry], *, details: bool) -> str:
    """Return entries of a thread's branch as Markdown: questions and answers, or all with its details. Those say
    whether the thread has other branches."""
    has_others = details and bool(await branch_points(tx, thread.id))
    return markdown(thread, entries, details=details, has_others=has_others)
