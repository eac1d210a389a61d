"""PostgreSQL errors as store errors."""

from __future__ import annotations

import psycopg
from psycopg import errors
from psycopg_pool import PoolClosed

from longthread.errors import (
    StoreClosed,
    StoreConflict,
    StoreDamaged,
    StoreDisconnected,
    StoreError,
    StoreFull,
    StoreReadOnly,
    ValueRefused,
)
from longthread.store.driver import sentence

_FAILURES: dict[type[psycopg.Error], type[StoreError]] = {
    PoolClosed: StoreClosed,
    errors.UniqueViolation: StoreConflict,
    errors.DeadlockDetected: StoreConflict,
    errors.SerializationFailure: StoreConflict,
    errors.DiskFull: StoreFull,
    errors.ReadOnlySqlTransaction: StoreReadOnly,
    errors.InsufficientPrivilege: StoreReadOnly,
    errors.DataCorrupted: StoreDamaged,
    errors.IndexCorrupted: StoreDamaged,
    errors.AdminShutdown: StoreDisconnected,
    errors.CrashShutdown: StoreDisconnected,
    psycopg.OperationalError: StoreDisconnected,  # itself, and no class below it: what the server has not said
}


_REFUSED = (psycopg.DataError, errors.CheckViolation, errors.NotNullViolation, errors.ForeignKeyViolation)


def failure(error: psycopg.Error) -> StoreError:
    other = ValueRefused if isinstance(error, _REFUSED) else StoreError
    kind = _FAILURES.get(type(error), other)
    return StoreClosed() if kind is StoreClosed else kind(reason=reason_of(error))


def reason_of(error: BaseException) -> str:
    if isinstance(error, errors.LockNotAvailable):
        return "another transaction held its lock for too long."
    diag = getattr(error, "diag", None)
    text = (diag.message_primary if diag is not None else None) or str(error) or type(error).__name__
    text = " ".join(text.split())
    return sentence(text)
