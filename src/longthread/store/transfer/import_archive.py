"""Import of exported threads: each whole or not at all, and none over an existing one."""

from __future__ import annotations

import tempfile
from collections.abc import AsyncIterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, BinaryIO
from uuid import UUID, uuid5

from longthread.errors import InvalidInput
from longthread.store.driver import Driver, one
from longthread.store.leases import left
from longthread.store.open import open_store
from longthread.store.tables import RUNS, THREADS, Tables, read_tables
from longthread.store.transfer.archive_reader import ArchivedThread, ArchiveReader, Contents, check
from longthread.store.transfer.threads import (
    Refusal,
    TableRow,
    TransferOutcome,
    TransferProgress,
    difference,
    write_thread,
)

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
    tables, contents, into = await _checked(store, file, where, into)
    file.seek(0)
    outcome = TransferOutcome()
    reader = ArchiveReader(file, where, tables)
    for done, thread in enumerate(reader.threads()):
        progress(done, contents.threads, into.id_of(thread.id))
        await _import_thread(store, tables, thread, reader, into, outcome)
    progress(contents.threads, contents.threads, "")
    return outcome


async def check_import(file: BinaryIO, where: str, into: ImportTarget) -> None:
    """Check that an export can be imported, before a store is created. Raises as `import_threads` does."""
    # Only a store knows the tables and columns, which are the same in all stores.
    with tempfile.TemporaryDirectory() as folder:
        async with open_store(Path(folder) / "empty.db") as empty:
            await _checked(empty, file, where, into)


async def _checked(
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


async def _import_thread(
    store: Driver,
    tables: Tables,
    thread: ArchivedThread,
    reader: ArchiveReader,
    into: ImportTarget,
    outcome: TransferOutcome,
) -> None:
    thread_id = into.id_of(thread.id)
    rows = _rows(tables, reader, thread, into)
    async with store.reading() as tx:
        there = await one(tx, "select_owner", id=thread_id)
        if there is not None:
            # Reveal nothing about another user's thread.
            own = there["user_id"] == into.user_id
            reason = (
                await difference(tx, tables, thread_id, thread.counts, rows)
                if own
                else "its id is taken by another user"
            )
            if reason is None:
                outcome.same += 1
            else:
                outcome.refused.append(Refusal(f"thread {thread_id}", reason))
            return
    async with store.writing() as tx:
        outcome.rows += await write_thread(tx, tables, thread_id, thread.counts, rows)
    outcome.written += 1


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
