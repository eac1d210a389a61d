"""What a backend must be able to do. Everything above it is written once, over this contract."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import AbstractAsyncContextManager
from typing import Any, Protocol

from longthread.errors import TextNotStorable

Row = Mapping[str, Any]


class Transaction(Protocol):
    """One open transaction. Queries are given by the names they have in the `.sql` files.

    Values in and out are str, int, float, bytes or None: times are ISO 8601 text in UTC, JSON is text. Text is what
    every backend can hold: Unicode without NUL and without lone surrogates.

    Raises:
        TextNotStorable: a text is not such a text. The transaction is as it was.
        StoreError: the statement failed. The transaction can only be rolled back.
    """

    async def fetch(self, query: str, **values: Any) -> list[Row]:
        """All rows of a query, in its order."""
        ...

    async def run(self, query: str, **values: Any) -> int:
        """Run a statement; the number of rows it touched."""
        ...

    async def run_all(self, query: str, rows: Iterable[Mapping[str, Any]]) -> None:
        """Run a statement once for each of `rows`, in order."""
        ...


class Driver(Protocol):
    """A database that holds threads. Safe to share between tasks; other processes may use the same database."""

    @property
    def dialect(self) -> str:
        """The folder of `sql/` that this backend reads: `sqlite`, `postgres`."""
        ...

    @property
    def where(self) -> str:
        """Where the data lives, without secrets, for people."""
        ...

    @property
    def found_version(self) -> int:
        """The schema version that the database had when it was opened, which brought it up to date; 0: it was new."""
        ...

    def reading(self) -> AbstractAsyncContextManager[Transaction]:
        """A consistent snapshot. Nothing may be written in it."""
        ...

    def writing(self) -> AbstractAsyncContextManager[Transaction]:
        """A write transaction, one at a time for what it touches: committed durably when the block ends, rolled back
        when it raises.

        Raises:
            StoreError: the database is locked for too long, full or broken; nothing was written.
        """
        ...

    def maintaining(self) -> AbstractAsyncContextManager[Transaction]:
        """No transaction: each statement takes effect by itself. For those that cannot be in one, such as VACUUM."""
        ...

    async def close(self) -> None:
        """Let go of every connection. May be called twice."""
        ...


def storable(values: Mapping[str, Any]) -> dict[str, Any]:
    """The values of a statement, as every backend can store them.

    Raises:
        TextNotStorable: a text holds a NUL or half of a surrogate pair.
    """
    for name, value in values.items():
        if isinstance(value, str) and ("\x00" in value or not _is_unicode(value)):
            raise TextNotStorable(name=name)
    return dict(values)


def _is_unicode(text: str) -> bool:
    if text.isascii():
        return True
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


async def one(transaction: Transaction, query: str, **values: Any) -> Row | None:
    """The first row of a query, or None."""
    rows = await transaction.fetch(query, **values)
    return rows[0] if rows else None
