"""Reading of exports, all of whose content is checked, and their import: each thread whole or not at all, and none over
an existing one."""

from __future__ import annotations

import codecs
import hashlib
import json
import tempfile
from collections.abc import AsyncIterator, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, BinaryIO
from uuid import UUID, uuid5

from longthread.errors import ArchiveInvalid, InvalidInput, NotStorable
from longthread.store.driver import Driver, Row, storable
from longthread.store.leases import left
from longthread.store.open import open_store
from longthread.store.schema import OLDEST_COMMIT, OLDEST_VERSION, SCHEMA_VERSION
from longthread.store.tables import RUNS, THREADS, StoreTable, Tables, read_tables
from longthread.store.transfer.archive import FORMAT, VERSION, EntryTree, row_of
from longthread.store.transfer.threads import (
    Refusal,
    TableRow,
    TransferOutcome,
    TransferProgress,
    key_of,
    store_thread,
)

_HEAD = f'{{"{FORMAT}":'.encode()
_NO_EXPORT = "this is not an export of threads, which begins with a line that says so."
_CUT_OFF = "the file ends here, and it is not complete. Export again, or copy the file again."
_AS_IT_WAS = "Import the file as it was exported."


@dataclass(frozen=True, slots=True)
class ArchivedThread:
    """A thread in an export: its id there, and row counts by table."""

    id: str
    counts: Mapping[str, int]


@dataclass(slots=True)
class Contents:
    """The content of an export. `tops` are the threads that have no parent in it."""

    threads: int = 0
    users: set[str] = field(default_factory=set)
    tops: list[str] = field(default_factory=list)


class ArchiveReader:
    """Reads an export once, from its start. Every error is an `ArchiveInvalid` that names the line."""

    def __init__(self, file: BinaryIO, where: str, tables: Tables) -> None:
        self._file = file
        self._where = where
        self._tables = tables
        self._checksum = hashlib.sha256()
        self._line = 0
        self._total = 0
        self._left: dict[str, int] = {}

    def threads(self) -> Iterator[ArchivedThread]:
        """Yield the threads in order. Unread rows are skipped, but checked."""
        header = self.header()
        self._total = header["threads"]
        for _ in range(self._total):
            thread = self._thread(self._next())
            yield thread
            for _ in self.rows():
                pass
        self._check_end()

    def rows(self) -> Iterator[TableRow]:
        """Yield the rows of the thread that `threads` yielded last."""
        while self._left:
            name = next(iter(self._left))
            data = self._next()
            if data.keys() != {"table", "row"} or data["table"] != name or not isinstance(data["row"], dict):
                raise self.invalid(f"a row of {name} is missing.")
            row = self._row(self._tables[name], data["row"])
            self._left[name] -= 1
            if not self._left[name]:
                del self._left[name]
            yield name, row

    def key_of(self, name: str, row: Row) -> tuple[Any, ...]:
        """Return the row's key within its thread."""
        return key_of(self._tables[name], row)

    def invalid(self, reason: str) -> ArchiveInvalid:
        """Return an error for the last line read."""
        return ArchiveInvalid(where=self._where, line=self._line, reason=reason)

    def header(self) -> dict[str, Any]:
        """Return the first line, which identifies an export."""
        line = self._file.readline()
        self._line = 1
        if line.startswith(codecs.BOM_UTF8):
            raise self.invalid(f"the file begins with a byte order mark, which another program has added. {_AS_IT_WAS}")
        begun = line.startswith(_HEAD) or (line != b"" and _HEAD.startswith(line))
        in_another_order = line.endswith(b"\n") and FORMAT.encode() in line
        if not begun and not in_another_order:
            raise self.invalid(_NO_EXPORT)
        if not line.endswith(b"\n"):
            raise self.invalid(_CUT_OFF)
        header = self._parse_line(line)
        self._check_header(header)
        if line.endswith(b"\r\n"):
            raise self.invalid(f"another program has changed its line ends, from LF to CRLF. {_AS_IT_WAS}")
        self._checksum.update(line)
        return header

    def _next(self) -> dict[str, Any]:
        line = self._read()
        self._checksum.update(line)
        return self._parse_line(line)

    def _read(self) -> bytes:
        line = self._file.readline()
        self._line += 1
        if not line.endswith(b"\n"):
            raise self.invalid(_CUT_OFF)
        return line

    def _parse_line(self, line: bytes) -> dict[str, Any]:
        try:
            data = json.loads(line.decode())
        except UnicodeDecodeError:
            raise self.invalid("it is not text in UTF-8.") from None
        except (ValueError, RecursionError) as error:
            raise self.invalid(f"it is not JSON ({error}).") from None
        if not isinstance(data, dict):
            raise self.invalid("it is not a JSON object.")
        return data

    def _check_header(self, header: Mapping[str, Any]) -> None:
        if FORMAT not in header:
            raise self.invalid(_NO_EXPORT)
        if header[FORMAT] != VERSION or not _is_count(header.get("schema")) or header["schema"] > SCHEMA_VERSION:
            raise self.invalid("a newer Longthread wrote it. Upgrade this one, and import again.")
        if header["schema"] < OLDEST_VERSION:
            raise self.invalid(
                f"it has schema version {header['schema']}, from before the first release, which this Longthread does "
                f"not read. Import it into a new store with Longthread's commit {OLDEST_COMMIT}: this Longthread opens "
                "that store."
            )
        if not _is_count(header.get("threads")):
            raise self.invalid("it does not say how many threads follow.")

    def _thread(self, data: Mapping[str, Any]) -> ArchivedThread:
        if data.keys() != {"thread", "rows"} or not isinstance(data["thread"], str):
            raise self.invalid("a thread must begin here.")
        counts = data["rows"]
        if not isinstance(counts, dict) or not all(_is_count(count) and count for count in counts.values()):
            raise self.invalid("it does not count the thread's rows.")
        if next(iter(counts), None) != THREADS or counts[THREADS] != 1:
            raise self.invalid("the thread itself is missing.")
        known = {table.name for table in self._tables.of_threads}
        if not counts.keys() <= known:
            raise self.invalid(f"this Longthread has no {', '.join(sorted(counts.keys() - known))}.")
        self._storable(data)
        self._left = dict(counts)
        return ArchivedThread(data["thread"], counts)

    def _row(self, table: StoreTable, data: Mapping[str, Any]) -> dict[str, Any]:
        try:
            return self._storable(row_of(table, data))
        except ValueError as error:
            raise self.invalid(str(error)) from None

    def _storable(self, values: Mapping[str, Any]) -> dict[str, Any]:
        try:
            return storable(values)
        except NotStorable as error:
            raise self.invalid(str(error)) from None

    def _check_end(self) -> None:
        lines, checksum = self._line, self._checksum.hexdigest()
        told = self._parse_line(self._read())
        if told != {"end": FORMAT, "threads": self._total, "lines": lines, "sha256": checksum}:
            raise self.invalid("the checksum is another: lines are missing, or were changed.")
        if self._file.read(1):
            self._line += 1
            raise self.invalid("there is more behind the end of the export.")


def check_beginning(file: BinaryIO, where: str) -> None:
    """Check that a file begins as an export, then rewind it; needs no store. Raises `ArchiveInvalid`."""
    ArchiveReader(file, where, Tables(())).header()
    file.seek(0)


def check(reader: ArchiveReader) -> Contents:
    """Read and check a whole export. Raises `ArchiveInvalid`."""
    contents = Contents()
    parents: dict[str, Any] = {}
    for thread in reader.threads():
        if thread.id in parents:
            raise reader.invalid(f"thread {thread.id} comes twice.")
        row = _check_thread(reader)
        parents[thread.id] = row.get("parent_thread_id")
        contents.threads += 1
        contents.users.add(str(row["user_id"]))
    contents.tops = [thread_id for thread_id, parent in parents.items() if parent not in parents]
    return contents


def _check_thread(reader: ArchiveReader) -> Row:
    """Check a thread and return its own row."""
    thread: Row = {}
    tree = EntryTree()
    last: tuple[str, tuple[Any, ...]] = ("", ())
    for name, row in reader.rows():
        key = reader.key_of(name, row)
        if name == last[0] and key <= last[1]:
            raise reader.invalid(f"rows of {name} are in another order than that of their keys.")
        last = name, key
        if name == THREADS:
            thread = row
        elif name == "entries" and (reason := tree.add(row, thread)):
            raise reader.invalid(reason)
    if reason := tree.check(thread):
        raise reader.invalid(reason)
    return thread


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


_BELOW = UUID("6c6f6e67-7468-5265-8164-62656c6f7721")
"""Namespace of the ids of descendants of a thread that is imported under another id."""


@dataclass(frozen=True, slots=True)
class ImportTarget:
    """The owner of imported threads, and a single one's new id, from which its descendants' ids derive. Unless
    `takes_over`, other users' exports are refused."""

    user_id: str
    takes_over: bool = False
    thread_id: str | None = None
    top: str | None = None

    def id_of(self, thread_id: str) -> str:
        if self.thread_id is None:
            return thread_id
        return self.thread_id if thread_id == self.top else str(uuid5(_BELOW, f"{self.thread_id}\n{thread_id}"))


async def import_threads(
    store: Driver, file: BinaryIO, where: str, into: ImportTarget, progress: TransferProgress
) -> TransferOutcome:
    """Check an export, then import each thread in one transaction. Existing threads stay; differing ones are reported.

    Args:
        file: the export, which is read twice.
        where: the file's name in errors.

    Raises:
        ArchiveInvalid: it is no export, incomplete, or from a newer Longthread.
        InvalidInput: its threads are not for `into`.
    """
    tables, contents, into = await _check_archive(store, file, where, into)
    file.seek(0)
    outcome = TransferOutcome()
    reader = ArchiveReader(file, where, tables)
    for done, thread in enumerate(reader.threads()):
        thread_id = into.id_of(thread.id)
        progress(done, contents.threads, thread_id)
        rows = _rows(tables, reader, thread, into)
        reason = await store_thread(store, tables, thread_id, thread.counts, rows, outcome, user_id=into.user_id)
        if reason is not None:
            outcome.refused.append(Refusal(f"thread {thread_id}", reason))
    progress(contents.threads, contents.threads, "")
    return outcome


async def check_import(file: BinaryIO, where: str, into: ImportTarget) -> None:
    """Check that an export can be imported, before a store is created. Raises as `import_threads` does."""
    # Only a store knows the tables and columns, which are the same in all stores.
    with tempfile.TemporaryDirectory() as folder:
        async with open_store(Path(folder) / "empty.db") as empty:
            await _check_archive(empty, file, where, into)


async def _check_archive(
    store: Driver, file: BinaryIO, where: str, into: ImportTarget
) -> tuple[Tables, Contents, ImportTarget]:
    async with store.reading() as tx:
        tables = await read_tables(tx)
    contents = check(ArchiveReader(file, where, tables))
    _check_into(contents, into, where)
    return tables, contents, replace(into, top=contents.tops[0] if contents.tops else None)


def _check_into(contents: Contents, into: ImportTarget, where: str) -> None:
    if into.thread_id is not None and len(contents.tops) != 1:
        raise InvalidInput(
            reason=f"{where} holds {contents.threads} threads, and --as gives one an id. Export that thread alone."
        )
    others = sorted(contents.users - {into.user_id})
    if others and not into.takes_over:
        raise InvalidInput(
            reason=f"{where} holds threads of {', '.join(others)}, and you are {into.user_id}. Say with --user whose "
            f"they are to be: --user {into.user_id} makes them yours."
        )


async def _rows(
    tables: Tables, reader: ArchiveReader, thread: ArchivedThread, into: ImportTarget
) -> AsyncIterator[TableRow]:
    thread_id = into.id_of(thread.id)
    for name, row in reader.rows():
        table = tables[name]
        given: dict[str, Any] = {**row, str(table.thread): thread_id}
        if name == THREADS:
            given["user_id"] = into.user_id
            if given.get("parent_thread_id") is not None and thread.id != into.top:
                given["parent_thread_id"] = into.id_of(given["parent_thread_id"])
        elif name == RUNS:
            given = left(given)  # the process that executes it there does not do so here
        elif table.thread not in table.key and thread_id != thread.id:
            # The key is unique across threads, and the exported thread may exist here too.
            given |= {key: f"{thread_id}/{row[key]}" for key in table.key}
        yield name, given
