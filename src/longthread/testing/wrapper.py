"""A driver around a driver: passes everything on, and is the base of those that look at what passes."""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass

from longthread.store.driver import Driver, Transaction


@dataclass
class DriverWrapper:
    """Does what `driver` does. A subclass changes the transactions that it wants to see."""

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

    def reading(self) -> AbstractAsyncContextManager[Transaction]:
        return self.driver.reading()

    def writing(self) -> AbstractAsyncContextManager[Transaction]:
        return self.driver.writing()

    def maintaining(self) -> AbstractAsyncContextManager[Transaction]:
        return self.driver.maintaining()

    async def close(self) -> None:
        await self.driver.close()
