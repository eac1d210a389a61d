"""A driver around a driver, which passes everything on: the base of drivers that inspect transactions."""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass

from longthread.store.driver import Driver, Signals, Transaction


@dataclass
class DriverWrapper:
    """Does what `driver` does. A subclass changes the transactions that it inspects."""

    driver: Driver

    @property
    def dialect(self) -> str:
        return self.driver.dialect

    @property
    def where(self) -> str:
        return self.driver.where

    @property
    def found_version(self) -> int:
        return self.driver.found_version

    @property
    def signals(self) -> Signals | None:
        return self.driver.signals

    def reading(self) -> AbstractAsyncContextManager[Transaction]:
        return self.driver.reading()

    def writing(self) -> AbstractAsyncContextManager[Transaction]:
        return self.driver.writing()

    def maintaining(self) -> AbstractAsyncContextManager[Transaction]:
        return self.driver.maintaining()

    def dedicated(self) -> AbstractAsyncContextManager[Transaction]:
        return self.driver.dedicated()

    def leave_loop(self) -> None:
        self.driver.leave_loop()

    async def close(self) -> None:
        await self.driver.close()
