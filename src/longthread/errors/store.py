"""Errors of the conversation store, of imports and copies, and of the saver and the store for LangGraph."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from longthread.documentation import documentation
from longthread.errors.base import InvalidInput, LongthreadError

__all__ = [
    "ArchiveInvalid",
    "BackupDamaged",
    "CalledOnItsLoop",
    "CheckpointUnreadable",
    "CommitUnknown",
    "ExportFailed",
    "ExportIncomplete",
    "ImportIncomplete",
    "ImportedUnreadable",
    "ItemNotStorable",
    "MessageNotStorable",
    "NotACheckpointDatabase",
    "NotAnExportTarget",
    "NotAsExpected",
    "NotCopied",
    "NotImported",
    "NotStorable",
    "NothingToImport",
    "NumberNotStorable",
    "RowDamaged",
    "SaverClosed",
    "SerializerNeeded",
    "SerializerNotUsable",
    "StoreBusy",
    "StoreClosed",
    "StoreConflict",
    "StoreDamaged",
    "StoreDisconnected",
    "StoreError",
    "StoreFull",
    "StoreReadOnly",
    "StoreTooNew",
    "StoreUnavailable",
    "TextNotStorable",
    "ValueDamaged",
    "ValueRefused",
]


class StoreError(LongthreadError, exit_code=5):
    message = "The conversation store failed: {reason}"


class StoreUnavailable(StoreError):
    message = """The conversation store at {where} cannot be opened: {reason} If it is another one that you mean, give
    that one's address (commands: --database or LONGTHREAD_DATABASE_URL)."""
    where: Path | str


class StoreClosed(StoreError):
    message = "The conversation store was closed: nothing more is read from it or written to it."


class StoreDisconnected(StoreError):
    message = "The connection to the conversation store was lost: {reason} Nothing of this was written. Repeat it."


class CommitUnknown(StoreDisconnected):
    message = """The connection to the conversation store was lost while a transaction was being committed: {reason}
    Whether it was written is not known; repeating it is safe."""


class StoreTooNew(StoreError):
    message = """The conversation store at {where} has schema version {found}, and this Longthread knows {known}.
    Upgrade Longthread, or use another store."""
    where: Path | str
    found: int
    known: int


class StoreFull(StoreError):
    message = """The conversation store is full: {reason} Nothing of this was written. Free some space on its disk and
    repeat."""


class StoreBusy(StoreError):
    message = """The conversation store took no write for {seconds} seconds: another process writes, or its disk hangs.
    Wait, or see what does."""
    seconds: str


class StoreReadOnly(StoreError):
    message = """The conversation store may not be written to: {reason} Nothing was changed. Commands that only read
    take --read-only. To write to it, leave that and LONGTHREAD_READ_ONLY out and give this user the right to write (to
    a file, to its folder too), or use another store with --database."""


class StoreDamaged(StoreError):
    message = """The conversation store is damaged: {reason} Nothing was changed. Stop what uses it and keep a copy of
    it; then restore a backup, or take what can still be read with `longthread threads export`, and the rows as they are
    with `longthread db copy`."""


class RowDamaged(StoreDamaged, code="store_damaged"):
    pass


class ValueDamaged(RowDamaged, code="store_damaged"):
    message = """A stored value cannot be read: {reason} Nothing was changed. If the application's serializer or classes
    are other ones than those that stored it, read it with those. If not, the conversation store is damaged: stop what
    uses it and keep a copy of it; then restore a backup, or take what can still be read with `longthread threads
    export`, and the rows as they are with `longthread db copy`."""


class StoreConflict(StoreError, exit_code=4):
    message = """Another transaction of the conversation store was faster: {reason} Nothing of this was written. Read
    again and repeat."""


class NotAsExpected(StoreConflict, code="store_conflict"):
    message = "The conversation store is not as it was: {reason} Nothing of this was written. Read again and repeat."


class ValueRefused(StoreError):
    message = """The conversation store does not take a value: {reason} Nothing of this was written. Give one that its
    column takes."""


class NotStorable(StoreError, exit_code=2):
    message = "A value cannot be stored."


class TextNotStorable(NotStorable):
    message = """The text of {name} holds a NUL character or half of a surrogate pair, which no text column can hold.
    Replace it (by U+FFFD, say), or store the content as bytes."""
    name: str


class NumberNotStorable(NotStorable):
    message = """The number of {name} is none that every store can hold: whole numbers have at most 64 bits, and others
    are not NaN. Give another."""
    name: str


class MessageNotStorable(NotStorable):
    message = """Message {message_id} holds a value that cannot be written down: {reason}. Give text, numbers, bytes,
    lists or objects of these, or leave it out."""
    message_id: str | None


class ItemNotStorable(NotStorable):
    message = """Item {key} holds a value that is no JSON: {reason}. Give text, numbers, lists or objects of these, or
    leave it out."""
    key: str


class ArchiveInvalid(InvalidInput):
    message = "{where} cannot be imported: line {line}: {reason} Nothing was written."
    where: Path | str
    line: int


class NotImported(InvalidInput):
    message = """Not imported from {where}: {refused}. A thread that is there is never overwritten. Import it under
    another id with --as NEW_ID, or delete the one that is there and import again."""
    where: Path | str
    refused: str


class NotCopied(StoreError):
    message = "Not copied to {where}: {refused}. What is there already was left as it is. {remedy}"
    where: Path | str
    refused: str
    remedy: str


class BackupDamaged(LongthreadError, exit_code=5):
    message = """The backup {where} is not as it was written: {tables}. Nothing was restored. Somebody wrote to it, or
    its disk is failing: take another backup. `longthread db copy {where} TO` copies what can be read."""
    where: Path | str
    tables: str


class NotACheckpointDatabase(InvalidInput):
    message = """{where} cannot be imported: {reason} Give the SQLite file of a LangGraph SqliteSaver, or the
    postgresql:// address of a PostgresSaver."""
    where: Path | str


class NothingToImport(InvalidInput):
    message = """{where} cannot be imported: {reason} Give an export of Longthread's, or the SQLite file or
    postgresql:// address of a database that {page} lists."""
    where: Path | str
    page: str = documentation("how-to/import")


class ImportedUnreadable(StoreError):
    message = """The database to import cannot be read: {reason} Nothing in it was changed, and what came of it before
    stays. If it is damaged, keep a copy of it and repair it (SQLite: `.recover`); then import again: it goes on with
    the rest."""


class ImportIncomplete(LongthreadError):
    message = """Not everything of {where} was imported: {reason} The rest is here, and nothing is lost there. When the
    cause is gone, import again: it goes on with what is missing."""
    where: Path | str
    left: Sequence[str] = ()
    """Everything that was left out, and why."""


class NotAnExportTarget(InvalidInput):
    message = """Nothing was exported to {where}: {reason} Give sqlite:///FILE or the postgresql:// address of a
    database for LangGraph's own savers, or of a new one."""
    where: Path | str


class ExportFailed(StoreError):
    message = """The database that is exported to failed: {reason} What was written before is there, and nothing has
    changed here. When the cause is gone, export again: it goes on with the rest."""


class ExportIncomplete(LongthreadError):
    message = """Not everything was exported to {where}: {reason} The rest is there, and nothing has changed here.
    Export again: it goes on with what is missing. What is there and differs is replaced with --replace, or in a
    program with replaces=True."""
    where: Path | str
    left: Sequence[str] = ()
    """Everything that was left out, and why."""


class SaverClosed(LongthreadError):
    message = """The saver or store cannot be used: {reason} Use it inside its block, or open another with
    LongthreadSaver.from_conn_string(…)."""


class CalledOnItsLoop(LongthreadError):
    message = """`{method}` was called on the event loop of its own saver or store, and would wait for itself for ever.
    Use `await saver.{twin}(…)`, and ainvoke, astream, aget_state or aupdate_state of the graph. Or open it with a
    plain `with LongthreadSaver.from_conn_string(…)`: it then runs on a thread of its own."""
    method: str
    twin: str


class SerializerNotUsable(InvalidInput):
    message = """LongthreadSaver cannot use {serde}: {reason} Give it a serializer that stores messages too, such as
    LangGraph's JsonPlusSerializer, or an EncryptedSerializer around it."""
    serde: str


class SerializerNeeded(ValueDamaged):
    message = """What is stored was written through a serializer of the application's own, of kind {kind}, and cannot be
    read: {reason} Open the store with that serializer and its key, for example LongthreadSaver.from_conn_string(…,
    serde=EncryptedSerializer.from_pycryptodome_aes(key=…)). Nothing was changed. If it is the right key, the value is
    damaged: restore a backup."""
    kind: str


class CheckpointUnreadable(LongthreadError):
    message = "Checkpoint {checkpoint} of thread {thread} cannot be read: {reason}"
    checkpoint: str
    thread: str
