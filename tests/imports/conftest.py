"""What imports are tested with."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.lending import database

from longthread.langgraph.transfer.import_database import Import
from longthread.store.driver import Driver
from longthread.store.queries import Sql
from longthread.store.transfer.foreign import ImportReport

Take = Callable[..., Awaitable[ImportReport]]
Fetch = Callable[..., Awaitable[list[dict[str, Any]]]]


@pytest.fixture
def take(store: Driver) -> Take:
    """Imports a database into the store under test."""

    async def run(address: str | Path, **options: Any) -> ImportReport:
        options = {"user": "default"} | options
        _, report = await Import(str(address), **options).into(store, lambda *_: None)
        return report

    return run


@pytest.fixture
def fetch(store: Driver) -> Fetch:
    """The rows of a query in the store under test."""

    async def run(query: str, **values: Any) -> list[dict[str, Any]]:
        async with store.reading() as tx:
            return [dict(row) for row in await tx.fetch(Sql(query), **values)]

    return run


@pytest.fixture
def old_url(postgres_server: str) -> Iterator[str]:
    """An empty PostgreSQL database, for another program's tables."""
    with database(postgres_server) as url:
        yield url
