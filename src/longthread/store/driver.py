"""The contract of a backend. `tests.contract.StoreContract` is the same contract as tests."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Any, Protocol

from longthread.errors import NumberNotStorable, TextNotStorable

Row = Mapping[str, Any]
QueryCall = tuple[str, Mapping[str, Any]]
"""A query's name and values."""
CHANGED = "somebody else has changed what was known of it."
"""Why an expectation fails."""
LEAST_CONNECTIONS = 2
"""Of a pool: a task that writes may also read meanwhile."""


class Transaction(Protocol):
    """One open transaction. Queries are named as in the `.sql` files.

    Values are str, int, float, bytes or None: times are ISO 8601 text in UTC, JSON is text. Text is Unicode without NUL
    and lone surrogates. A negative zero is stored as zero.

    Raises:
        NotStorable: a text is not such a text, or a number exceeds 64 bits. The transaction is unchanged.
        StoreError: the statement failed. The transaction can only be rolled back.
    """

    async def fetch(self, query: str, **values: Any) -> list[Row]:
        """Return a query's rows in its order. Text compares by code point: case, accents and trailing spaces count."""
        ...

    async def fetch_all(self, *asked: QueryCall, last: bool = False) -> list[list[Row]]:
        """Return the rows of several independent queries, one list for each, in order.

        If one fails, the transaction has failed, as if that query had been sent by itself.

        Args:
            last: nothing follows in this transaction. One that only reads may end here; one that writes goes on.
        """
        ...

    async def ahead(self, *asked: QueryCall) -> None:
        """Prefetch queries in a read transaction: the server works while the caller does. `fetch` of the same query and
        values returns the rows, or raises if it failed."""
        ...

    async def run(self, query: str, **values: Any) -> int:
        """Run a statement; return the number of rows it changed, which may be 0."""
        ...

    async def later(self, query: str, **values: Any) -> None:
        """Run a statement for its effect, now or with a later one, at the latest at commit. Later queries see its
        effect; if it fails, nothing is committed."""
        ...

    async def expect(self, query: str, rows: int, **values: Any) -> None:
        """Go on only if the query finds exactly `rows` rows.

        The check runs now or later, at the latest at commit; in a transaction that writes nothing, with the next fetch.

        Raises, now or when checked:
            NotAsExpected: it does not, or the connection was lost before the check. Repeat the transaction and read
                with `fetch`: the same data may have been written.
        """
        ...

    async def run_all(self, query: str, rows: Iterable[Mapping[str, Any]]) -> None:
        """Run a statement for each of `rows`, in order. If one fails, the transaction has failed."""
        ...


class Signals(Protocol):
    """Words between the processes that share a database: something has changed, and is to be read.

    A word reaches every process that listens, the sender too, within a moment, and in the order of its sender. It is
    lost where a process is cut off, and may come twice. It is part of no transaction: send it after the commit.
    """

    async def send(self, words: Sequence[str]) -> None:
        """Send words, without white space and of at most a hundred bytes each. Raises `StoreError`."""
        ...

    async def listen(self, heard: Callable[[Sequence[str]], None], connected: Callable[[bool], None]) -> None:
        """Listen until cancelled, on a connection of its own, which is opened again when it is lost.

        Args:
            connected: is called with True when words begin to arrive (earlier ones are lost), and with False when they
                no longer arrive.
        """
        ...


class Driver(Protocol):
    """A database of threads. Tasks can share a driver, and processes can share the database."""

    @property
    def dialect(self) -> str:
        """The backend's SQL: `sqlite` or `postgres`. It names the folders of `schema`, of `queries(dialect)`, and the
        language of composed SQL (`queries.Sql`)."""
        ...

    @property
    def where(self) -> str:
        """The location of the data, for people, without secrets."""
        ...

    @property
    def found_version(self) -> int:
        """The schema version before opening upgraded it; 0 for a new database."""
        ...

    @property
    def signals(self) -> Signals | None:
        """How processes wake each other; None where the database cannot: look for changes instead."""
        ...

    def reading(self) -> AbstractAsyncContextManager[Transaction]:
        """Open a consistent snapshot, taken at the first query at the latest. It waits for no writer.

        Raises:
            StoreError: the database cannot be read, or a statement would have written.
        """
        ...

    def writing(self) -> AbstractAsyncContextManager[Transaction]:
        """Open a write transaction: committed durably when the block ends, rolled back when it raises.

        `select_position` locks a thread until the transaction ends, across processes; later reads see all that was
        committed before. Lock first, then read. A cancelled task leaves the queue; a commit under way completes or
        has no effect. A caller who does not learn the outcome may repeat the transaction: code above this contract
        writes nothing the second time.

        Raises:
            StoreError: the database is locked for too long, full, read-only, damaged or gone (see its subclasses).
                Nothing was written, unless it is CommitUnknown. The driver recovers without being reopened.
        """
        ...

    def maintaining(self) -> AbstractAsyncContextManager[Transaction]:
        """Open no transaction: each statement commits by itself. For VACUUM and the like."""
        ...

    def dedicated(self) -> AbstractAsyncContextManager[Transaction]:
        """Open a connection of its own, which waits for no other task of this driver: each statement commits by itself.
        For a process's sign of life. After a `StoreError`, open another one."""
        ...

    async def close(self) -> None:
        """Close every connection. Idempotent."""
        ...


def storable(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return values that every backend can store; negative zero becomes zero.

    Raises:
        TextNotStorable: a text holds a NUL or half of a surrogate pair.
        NumberNotStorable: a whole number has more than 64 bits, or another is NaN.
    """
    given = dict(values)
    # This runs for each statement, and nearly all values are texts and whole numbers: those first.
    for name, value in values.items():
        kind = type(value)
        if kind is str or isinstance(value, str):
            if "\x00" in value or not (value.isascii() or _is_unicode(value)):
                raise TextNotStorable(name=name)
        elif value is None or kind is bytes or (kind is int and _LEAST <= value <= _MOST):
            continue
        elif value == 0:
            given[name] = value + 0  # and -0.0 + 0 is 0.0
        elif (isinstance(value, int) and not _LEAST <= value <= _MOST) or value != value:  # NaN
            raise NumberNotStorable(name=name)
    return given


_LEAST, _MOST = -(2**63), 2**63 - 1


def _is_unicode(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def sentence(text: str) -> str:
    """Return a database's message, with a full stop if it ends without punctuation."""
    return text if text.endswith((".", "?", "!")) else f"{text}."


async def one(transaction: Transaction, query: str, **values: Any) -> Row | None:
    """Return a query's first row, or None."""
    rows = await transaction.fetch(query, **values)
    return rows[0] if rows else None
