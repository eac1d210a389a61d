"""What a backend must be able to do. Everything above it is written once, over this contract.

`longthread.testing.contract.StoreContract` is the contract as tests.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import AbstractAsyncContextManager
from typing import Any, Protocol

from longthread.errors import NumberNotStorable, TextNotStorable

Row = Mapping[str, Any]
QueryCall = tuple[str, Mapping[str, Any]]
"""The name of a query, and its values."""
CHANGED = "somebody else has changed what was known of it."
"""Why an expectation fails."""


class Transaction(Protocol):
    """One open transaction. Queries are given by the names they have in the `.sql` files.

    Values in and out are str, int, float, bytes or None: times are ISO 8601 text in UTC, JSON is text. Text is what
    every backend can hold: Unicode without NUL and without lone surrogates. A negative zero is stored as zero.

    Raises:
        NotStorable: a text is not such a text, or a number none of 64 bits. The transaction is as it was.
        StoreError: the statement failed. The transaction can only be rolled back.
    """

    async def fetch(self, query: str, **values: Any) -> list[Row]:
        """All rows of a query, in its order. Text is compared and ordered by code points, and equal only to itself:
        neither case nor accents nor spaces at the end are ignored."""
        ...

    async def fetch_all(self, *asked: QueryCall, last: bool = False) -> list[list[Row]]:
        """The rows of several queries, of which none needs what another finds: a list for each, in their order.

        If one of them fails, the transaction has failed, as if it had been asked alone.

        Args:
            last: nothing more will be asked in this transaction, which only reads: it may be ended with these. One that
                writes goes on.
        """
        ...

    async def ahead(self, *asked: QueryCall) -> None:
        """Tell what will be fetched in this transaction, which only reads: a server finds it while other work is done
        here. Whoever then fetches the same query with the same values has its rows, and learns there if it failed."""
        ...

    async def run(self, query: str, **values: Any) -> int:
        """Run a statement; the number of rows it touched, which is 0 where it found nothing to change."""
        ...

    async def later(self, query: str, **values: Any) -> None:
        """Run a statement of which only the effect is wanted: now, or together with what comes next, at the latest the
        commit. The transaction's queries that follow see its effect, and if it fails, nothing is committed."""
        ...

    async def expect(self, query: str, rows: int, **values: Any) -> None:
        """Go on only if the query finds so many rows where it is asked: that is made sure of now, or together with what
        comes next, at the latest the commit. Where nothing is written, that is what is fetched next.

        Raises, then or when it is made sure of:
            NotAsExpected: it does not, or the connection was lost before that was known. Repeat the transaction with
                what `fetch` finds: the same may have been written.
        """
        ...

    async def run_all(self, query: str, rows: Iterable[Mapping[str, Any]]) -> None:
        """Run a statement once for each of `rows`, in order: for all of them, or the transaction has failed."""
        ...


class Driver(Protocol):
    """A database that holds threads. Safe to share between tasks; other processes may use the same database."""

    @property
    def dialect(self) -> str:
        """Whose SQL this backend runs: `sqlite` or `postgres`, and nothing else.

        It has the tables of that folder of `sql/` (its `schema`), and runs the queries of `common` and of that folder
        under their names, `queries(dialect)`. It is asked for composed SQL (`queries.Sql`) in the same language.
        """
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
        """A consistent snapshot, as of its first query at the latest: what is committed meanwhile is not seen.

        It waits for no writer, and nothing can be written in it.

        Raises:
            StoreError: the database cannot be read, or a statement would have written.
        """
        ...

    def writing(self) -> AbstractAsyncContextManager[Transaction]:
        """A write transaction: committed durably when the block ends, rolled back when it raises.

        Transactions on one thread come one after the other, whichever process they are in: one that has asked for a
        thread's position (`select_position`) has it to itself until its end, and sees all that was committed before.
        Whoever is cancelled, also while it waits for its turn, gives up its place; a commit that is under way is then
        carried out whole, or not at all.

        The same transaction may be repeated by who did not learn how it ended: what is above this contract writes
        nothing the second time.

        Raises:
            StoreError: the database is locked for too long, full, read-only, damaged or gone (see its subclasses);
                nothing was written, unless it is CommitUnknown. The driver goes on to work when the cause is gone,
                without being opened again.
        """
        ...

    def maintaining(self) -> AbstractAsyncContextManager[Transaction]:
        """No transaction: each statement takes effect by itself. For those that cannot be in one, such as VACUUM."""
        ...

    async def close(self) -> None:
        """Let go of every connection. May be called twice."""
        ...


def storable(values: Mapping[str, Any]) -> dict[str, Any]:
    """The values of a statement, as every backend can store them: a column of SQLite's has no negative zero.

    Raises:
        TextNotStorable: a text holds a NUL or half of a surrogate pair.
        NumberNotStorable: a whole number has more than 64 bits, or another is NaN.
    """
    given = dict(values)
    # Asked of each statement, and nearly all values are texts and whole numbers: those first.
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
    """What a database said, with its end: some say more in a question."""
    return text if text.endswith((".", "?", "!")) else f"{text}."


async def one(transaction: Transaction, query: str, **values: Any) -> Row | None:
    """The first row of a query, or None."""
    rows = await transaction.fetch(query, **values)
    return rows[0] if rows else None
