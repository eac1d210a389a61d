"""The contract finds what is wrong with a driver."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.contract import StoreContract

from longthread.errors import LongthreadError
from longthread.store.driver import Driver, QueryCall, Row, Transaction
from longthread.store.open import open_store


class Sound:
    """A driver that passes everything on."""

    def __init__(self, driver: Driver) -> None:
        self.driver = driver
        self.dialect, self.where, self.found_version = driver.dialect, driver.where, driver.found_version

    @asynccontextmanager
    async def reading(self) -> AsyncIterator[Any]:
        async with self.driver.reading() as tx:
            yield self.transaction(tx)

    @asynccontextmanager
    async def writing(self) -> AsyncIterator[Any]:
        async with self.driver.writing() as tx:
            yield self.transaction(tx)

    def maintaining(self) -> Any:
        return self.driver.maintaining()

    async def close(self) -> None:
        await self.driver.close()

    def transaction(self, tx: Transaction) -> Any:
        return tx


class CommitsOnError(Sound):
    @asynccontextmanager
    async def writing(self) -> AsyncIterator[Any]:
        failed: BaseException | None = None
        async with self.driver.writing() as tx:
            try:
                yield tx
            except BaseException as error:  # noqa: BLE001 - the fault
                failed = error
        if failed:
            raise failed


class NoSnapshot(Sound):
    @asynccontextmanager
    async def reading(self) -> AsyncIterator[Any]:
        yield _EachAlone(self.driver)


class _EachAlone:
    def __init__(self, driver: Driver) -> None:
        self.driver = driver

    async def fetch(self, query: str, **values: Any) -> list[Row]:
        async with self.driver.reading() as tx:
            return await tx.fetch(query, **values)


class WritesInReadings(Sound):
    def reading(self) -> Any:
        return self.driver.writing()


class Odd(Sound):
    def transaction(self, tx: Transaction) -> Any:
        return _Odd(tx)


class _Odd:
    """A transaction that does as it is told; its children do not."""

    def __init__(self, tx: Transaction) -> None:
        self.tx = tx

    async def fetch(self, query: str, **values: Any) -> list[Row]:
        return await self.tx.fetch(query, **values)

    async def fetch_all(self, *asked: QueryCall, last: bool = False) -> list[list[Row]]:
        return [await self.fetch(query, **values) for query, values in asked]

    async def ahead(self, *asked: QueryCall) -> None:
        """Nothing."""

    async def run(self, query: str, **values: Any) -> int:
        return await self.tx.run(query, **values)

    async def later(self, query: str, **values: Any) -> None:
        await self.run(query, **values)

    async def expect(self, query: str, rows: int, **values: Any) -> None:
        await self.tx.expect(query, rows, **values)

    async def run_all(self, query: str, rows: Iterable[Mapping[str, Any]]) -> None:
        await self.tx.run_all(query, rows)


class WrongOrder(Sound):
    def transaction(self, tx: Transaction) -> Any:
        class Reversed(_Odd):
            async def fetch(self, query: str, **values: Any) -> list[Row]:
                return (await self.tx.fetch(query, **values))[::-1]

        return Reversed(tx)


class NoCount(Sound):
    def transaction(self, tx: Transaction) -> Any:
        class Always(_Odd):
            async def run(self, query: str, **values: Any) -> int:
                await self.tx.run(query, **values)
                return 1

        return Always(tx)


class ReplacesNul(Sound):
    def transaction(self, tx: Transaction) -> Any:
        class Quiet(_Odd):
            async def run(self, query: str, **values: Any) -> int:
                values = {n: v.replace("\x00", "") if isinstance(v, str) else v for n, v in values.items()}
                return await self.tx.run(query, **values)

        return Quiet(tx)


class FoldsIds(Sound):
    def transaction(self, tx: Transaction) -> Any:
        class Folding(_Odd):
            async def fetch(self, query: str, **values: Any) -> list[Row]:
                return await self.tx.fetch(query, **_folded(values))

            async def run(self, query: str, **values: Any) -> int:
                return await self.tx.run(query, **_folded(values))

        return Folding(tx)


def _folded(values: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value.lower() if name in {"user_id"} else value for name, value in values.items()}


class ForgetsTheLast(Sound):
    def transaction(self, tx: Transaction) -> Any:
        class Forgetful(_Odd):
            async def run_all(self, query: str, rows: Iterable[Mapping[str, Any]]) -> None:
                await self.tx.run_all(query, list(rows)[:-1])

        return Forgetful(tx)


class ExpectsNothing(Sound):
    def transaction(self, tx: Transaction) -> Any:
        class Trusting(_Odd):
            async def expect(self, query: str, rows: int, **values: Any) -> None:
                """Whatever there is."""

        return Trusting(tx)


FAULTS = [
    (CommitsOnError, "test_a_transaction_that_raises_leaves_nothing", {"error": RuntimeError()}),
    (CommitsOnError, "test_a_transaction_that_is_cancelled_leaves_nothing_and_lets_the_next_one_in", {}),
    (CommitsOnError, "test_a_deletion_that_is_rolled_back_deletes_nothing", {}),
    (NoSnapshot, "test_a_reading_is_a_snapshot", {}),
    (WritesInReadings, "test_nothing_can_be_written_in_a_reading", {}),
    (WrongOrder, "test_threads_are_listed_page_by_page_latest_active_first", {}),
    (WrongOrder, "test_a_branch_is_read_from_its_end_across_the_gaps_of_others", {}),
    (NoCount, "test_a_user_never_sees_anothers_thread", {}),
    (NoCount, "test_the_number_of_rows_that_a_statement_touched_is_told", {}),
    (ReplacesNul, "test_what_no_database_can_store_is_refused_and_nothing_is_written", {"column": "text", "bad": "\0"}),
    (FoldsIds, "test_names_that_look_alike_are_different_users", {"other": "OWNER"}),
    (ExpectsNothing, "test_what_is_expected_is_so_or_nothing_is_written", {}),
    (ForgetsTheLast, "test_the_number_of_rows_that_a_statement_touched_is_told", {}),
]


@pytest.mark.parametrize(("fault", "name", "more"), FAULTS, ids=[f"{f.__name__}-{n[5:40]}" for f, n, _ in FAULTS])
async def test_a_fault_is_found(tmp_path: Path, fault: type[Sound], name: str, more: dict[str, Any]) -> None:
    for number, (kind, wrong) in enumerate([(Sound, False), (fault, True)]):
        async with open_store(tmp_path / f"{number}.db") as driver:
            if wrong:
                with pytest.raises((AssertionError, LongthreadError, pytest.fail.Exception)):
                    await getattr(StoreContract(), name)(store=kind(driver), **more)
            else:
                await getattr(StoreContract(), name)(store=kind(driver), **more)


async def test_the_fixture_to_override_is_named() -> None:
    with pytest.raises(NotImplementedError, match="open_store"):
        StoreContract.open_store.__wrapped__(StoreContract())
