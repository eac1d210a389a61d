"""LangGraph's own tests of its SQLite stores of items, with ours in their place.

A pytest plugin, for a copy of LangGraph's repository; nothing of it is kept here:

    cd langgraph/libs/checkpoint-sqlite
    PYTHONPATH=<this folder>:. python -m pytest -p longthread_store_in_langgraph tests/test_store.py
        tests/test_async_store.py tests/test_ttl.py --items sqlite

`--items` is `sqlite`, `postgres` (databases are made on the server of LONGTHREAD_TEST_POSTGRES_URL) or `stock`, which
changes nothing and tells what fails without us. `LEFT_OUT` names what is not run, and why.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Any

import pytest
from longthread_in_langgraph import _address

from longthread.langgraph import LongthreadStore

NAMES = ("SqliteStore", "AsyncSqliteStore")
LEFT_OUT = {
    "looks into the tables of the stock stores": ("_cur", "migration", "vector_store_init"),
    "tests a function of the stock stores, or their wording of an error": (
        *("escape_glob", "namespace_match_pattern", "indexable", "test_sql_injection_vulnerability"),
        "test_no_running_loop",
    ),
    "reads renew a time to live, as LangGraph's documentation says": ("test_ttl_override_default",),
}
"""What is not run, by its cause: parts of the tests' names."""


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--items", choices=["sqlite", "postgres", "stock"], default="sqlite")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    names = [name for names in LEFT_OUT.values() for name in names]
    left_out = [item for item in items if any(name in item.name for name in names)]
    config.hook.pytest_deselected(items=left_out)
    items[:] = [item for item in items if item not in left_out]
    backend = config.getoption("--items")
    if backend != "stock":
        for module in {item.module for item in items if isinstance(item, pytest.Function)}:
            for name in NAMES:
                if hasattr(module, name):
                    setattr(module, name, _in_place_of(name, backend))


def _in_place_of(name: str, backend: str) -> type:
    """A class that is opened as the stock one is: each name of a file is a store of its own."""

    class Store(LongthreadStore):
        if name.startswith("Async"):
            start_ttl_sweeper = LongthreadStore.start_ttl_sweeper
            sweep_ttl = LongthreadStore.asweep_ttl  # type: ignore[assignment]

            @classmethod
            @asynccontextmanager
            async def from_conn_string(cls, address: str, **options: Any) -> AsyncIterator[LongthreadStore]:  # type: ignore[override]
                with _address(backend) as own:
                    async with LongthreadStore.from_conn_string.__func__(cls, own, **options) as store:  # type: ignore[attr-defined]
                        yield store
        else:

            @classmethod
            @contextmanager
            def from_conn_string(cls, address: str, **options: Any) -> Iterator[LongthreadStore]:  # type: ignore[override]
                with _address(backend) as own, LongthreadStore.from_conn_string.__func__(cls, own, **options) as store:  # type: ignore[attr-defined]
                    yield store

    return Store
