"""Errors of the conversation store."""

from __future__ import annotations

from pathlib import Path

from longthread.errors.base import LongthreadError


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
