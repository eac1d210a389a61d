"""The contract asks a driver for every query that there is: one that lacks any of them does not pass."""

from __future__ import annotations

import inspect
import itertools
import shutil
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping
from contextlib import AbstractAsyncContextManager, AbstractContextManager, asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from tests.contract import StoreContract
from tests.contract.concurrency import ConcurrencyContract
from tests.contract.text import TextContract
from tests.contract.transactions import TransactionContract

from longthread.store.driver import Driver, QueryCall, Row, Transaction
from longthread.store.open import open_store
from longthread.store.queries import Sql, queries
from longthread.testing.failpoints import DriverWrapper

Lend = Callable[[], AbstractContextManager[str]]
_FOREIGN = "they are asked of the database of another program, not of the store"
_SCHEMA = "the schema holds its text, and keeps the built-in rows with it: tests/store/written"
NOT_ASKED = {
    "foreign_checkpoints": _FOREIGN,
    "foreign_metadata": _FOREIGN,
    "foreign_paths": _FOREIGN,
    "foreign_threads": _FOREIGN,
    "foreign_unreadable": _FOREIGN,
    "foreign_values": _FOREIGN,
    "imported_entries": "an import of another program's database asks it: tests/imports, on both backends",
    "note_import": "an import of another program's database asks it: tests/imports, on both backends",
    "notify": "signals send it, which PostgreSQL alone has: tests/store/backends/test_postgres_signals.py",
    "put_builtin_agent": _SCHEMA,
    "put_builtin_skill": _SCHEMA,
    "select_near_vectors": "it is asked with the number of a vector's dimensions in it, and so not by its name",
    "set_vacuum_mode": "it is asked where an older SQLite store has made the file",
}
"""Queries for which the contract does not ask, and why."""
OF_THE_DRIVER = (TextContract, TransactionContract, ConcurrencyContract)
"""Parts that ask nothing of their own: they look at how a driver does what the others ask for."""


@dataclass
class Recording(DriverWrapper):
    """Notes the names of all queries that are asked."""

    asked: set[str] = field(default_factory=set)

    @asynccontextmanager
    async def _noted(self, transaction: AbstractAsyncContextManager[Transaction]) -> AsyncIterator[Transaction]:
        async with transaction as tx:
            yield _Noted(tx, self.asked)

    def reading(self) -> AbstractAsyncContextManager[Transaction]:
        return self._noted(self.driver.reading())

    def writing(self) -> AbstractAsyncContextManager[Transaction]:
        return self._noted(self.driver.writing())

    def dedicated(self) -> AbstractAsyncContextManager[Transaction]:
        return self._noted(self.driver.dedicated())

    def maintaining(self) -> AbstractAsyncContextManager[Transaction]:
        return self._noted(self.driver.maintaining())


@dataclass
class _Noted:
    transaction: Transaction
    asked: set[str]

    def _note(self, *names: str) -> None:
        self.asked.update(name for name in names if not isinstance(name, Sql))

    async def fetch(self, query: str, **values: Any) -> list[Row]:
        self._note(query)
        return await self.transaction.fetch(query, **values)

    async def fetch_all(self, *asked: QueryCall, last: bool = False) -> list[list[Row]]:
        self._note(*(name for name, _ in asked))
        return await self.transaction.fetch_all(*asked, last=last)

    async def ahead(self, *asked: QueryCall) -> None:
        await self.transaction.ahead(*asked)

    async def run(self, query: str, **values: Any) -> int:
        self._note(query)
        return await self.transaction.run(query, **values)

    async def later(self, query: str, **values: Any) -> None:
        self._note(query)
        await self.transaction.later(query, **values)

    async def expect(self, query: str, rows: int, **values: Any) -> None:
        self._note(query)
        await self.transaction.expect(query, rows, **values)

    async def run_all(self, query: str, rows: Iterable[Mapping[str, Any]]) -> None:
        given = list(rows)
        if given:
            self._note(query)
        await self.transaction.run_all(query, given)


def features() -> Iterator[tuple[str, dict[str, Any]]]:
    """The contract's tests but those of the driver alone, each once: with the first of what it is parametrized by."""
    for name, test in inspect.getmembers(StoreContract, inspect.isfunction):
        if name.startswith("test_") and not any(hasattr(part, name) for part in OF_THE_DRIVER):
            marks = [mark.args for mark in getattr(test, "pytestmark", []) if mark.name == "parametrize"]
            yield name, {names: values[0] for names, values in marks}


async def run(name: str, given: Mapping[str, Any], address: str, asked: set[str], tmp_path: Path) -> None:
    """Run one of the contract's tests on an empty store."""

    @asynccontextmanager
    async def open_recording() -> AsyncIterator[Driver]:
        async with open_store(address) as driver:
            yield Recording(driver, asked)

    test = getattr(StoreContract(), name)
    wanted = inspect.signature(test).parameters
    with pytest.MonkeyPatch.context() as monkeypatch:
        if "monkeypatch" in wanted:
            given = {**given, "monkeypatch": monkeypatch}
        if "tmp_path" in wanted:
            given = {**given, "tmp_path": tmp_path}
        if "open_store" in wanted:
            given = {**given, "open_store": open_recording}
        if "store" not in wanted:
            await test(**given)
        else:
            async with open_recording() as store:
                await test(store=store, **given)


@pytest.fixture
def lend(backend: str, tmp_path: Path, request: pytest.FixtureRequest) -> Lend:
    """Lends an empty store of the backend, one after the other."""

    @contextmanager
    def file() -> Iterator[str]:
        template = request.getfixturevalue("sqlite_template")
        yield shutil.copyfile(template, str(tmp_path / f"{next(numbers)}.db"))

    numbers = itertools.count()
    return file if backend == "sqlite" else request.getfixturevalue("databases").lent


# The contract runs once more for it.
@pytest.mark.slow
async def test_every_query_is_asked_for_by_the_contract(backend: str, lend: Lend, tmp_path: Path) -> None:
    asked: set[str] = set()
    for name, given in features():
        with lend() as address:
            await run(name, given, address, asked, tmp_path)
    there = set(queries(backend))
    assert sorted(there - asked - NOT_ASKED.keys()) == [], "the contract asks for none of these"
    assert sorted(NOT_ASKED.keys() & asked) == [], "the contract asks for these, and is said not to"


def test_the_exceptions_are_queries() -> None:
    assert NOT_ASKED.keys() <= set(queries("sqlite")) | set(queries("postgres"))
