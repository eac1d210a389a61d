"""SQLite's errors as a store's."""

from __future__ import annotations

import sqlite3

from longthread.errors import (
    RowDamaged,
    StoreClosed,
    StoreConflict,
    StoreDamaged,
    StoreError,
    StoreFull,
    StoreReadOnly,
    ValueRefused,
)
from longthread.store.driver import sentence

BUSY_SECONDS = 30.0
"""A writer's timeout for another process's transaction."""
ERRORS = (sqlite3.Error, UnicodeDecodeError)
"""A statement's errors; the latter where SQLite quotes damaged text in its message."""
_FAILURES: dict[int, type[StoreError]] = {
    sqlite3.SQLITE_FULL: StoreFull,
    sqlite3.SQLITE_READONLY: StoreReadOnly,
    sqlite3.SQLITE_CORRUPT: StoreDamaged,
    sqlite3.SQLITE_NOTADB: StoreDamaged,
    sqlite3.SQLITE_CONSTRAINT: ValueRefused,
    sqlite3.SQLITE_MISMATCH: ValueRefused,
}
_NOT_UTF8 = "Could not decode to UTF-8"
_CLOSED = "closed database"
_NOT_UNIQUE = (sqlite3.SQLITE_CONSTRAINT_PRIMARYKEY, sqlite3.SQLITE_CONSTRAINT_UNIQUE, sqlite3.SQLITE_CONSTRAINT_ROWID)


def failure(error: Exception) -> StoreError:
    """Return a statement's error as a store error."""
    if getattr(error, "sqlite_errorcode", None) in _NOT_UNIQUE:
        return StoreConflict(reason=reason_of(error))
    if isinstance(error, sqlite3.ProgrammingError) and _CLOSED in str(error):
        return StoreClosed()
    kind = _FAILURES.get(code_of(error), StoreError)
    # Text that is not UTF-8 has no code: only a broken disk writes it.
    damaged = isinstance(error, UnicodeDecodeError) or _NOT_UTF8 in str(error)
    return (RowDamaged if damaged else kind)(reason=reason_of(error))


def code_of(error: Exception) -> int:
    """Return SQLite's primary result code; 0 for Python's own errors."""
    return (getattr(error, "sqlite_errorcode", None) or 0) & 0xFF


def reason_of(error: Exception) -> str:
    """Return an error's meaning, for people."""
    text = str(error)
    if text.startswith(_NOT_UTF8):
        return sentence(text.partition(" with text ")[0])
    if isinstance(error, UnicodeDecodeError):
        return "the database disk image is malformed: the file was damaged by something else. Restore a backup."
    match code_of(error):
        case sqlite3.SQLITE_BUSY | sqlite3.SQLITE_LOCKED:
            return f"another process held its lock for more than {BUSY_SECONDS:.0f} seconds."
        case sqlite3.SQLITE_NOTADB:
            return "the file is not a Longthread database."
        case sqlite3.SQLITE_CANTOPEN | sqlite3.SQLITE_READONLY | sqlite3.SQLITE_PERM:
            return f"{text}: this user may not write to the file or to its folder."
        case sqlite3.SQLITE_IOERR:
            return f"{text}: its disk is full or failing. Nothing of this was written."
        case sqlite3.SQLITE_CORRUPT:
            return f"{text}: the file was damaged by something else. Restore a backup."
    return sentence(text)
