"""LangGraph's own tests of its savers, with ours in their place.

A pytest plugin, for a copy of LangGraph's repository; nothing of it is kept here:

    cd langgraph/libs/checkpoint-sqlite
    PYTHONPATH=<this folder>:. python -m pytest -p longthread_saver_in_langgraph tests/test_sqlite.py
        tests/test_aiosqlite.py tests/test_delta_parent_walk.py tests/test_delta_channel_migration.py
        tests/test_get_delta_channel_history.py tests/test_conformance_delta.py --saver-of sqlite

    cd langgraph/libs/checkpoint-postgres
    PYTHONPATH=<this folder>:. python -m pytest -p longthread_saver_in_langgraph tests/test_sync.py tests/test_async.py
        tests/test_prune.py tests/test_delta_pagination.py tests/test_delta_plain_value_seed.py
        tests/test_conformance_delta.py --saver-of postgres

Either folder's tests run on either backend. `--saver-of` is `sqlite`, `postgres` or `stock`; the server of
LONGTHREAD_TEST_POSTGRES_URL is needed for both. The tests of conformance need the copy's libs/checkpoint-conformance in
front of the released one. `LEFT_OUT` names what is not run, and why. `stock` changes nothing.
"""

from __future__ import annotations

import os
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Any

import pytest
from longthread_in_langgraph import _address
from psycopg.conninfo import conninfo_to_dict

from longthread.langgraph import LongthreadSaver

_LIBPQ = {"host": "PGHOST", "port": "PGPORT", "user": "PGUSER", "password": "PGPASSWORD"}
NAMES = ("SqliteSaver", "AsyncSqliteSaver", "PostgresSaver", "AsyncPostgresSaver")
LEFT_OUT = {
    "makes a stock saver over a connection or a pool": (
        "shallow",
        "[pool",
        "[pipe",
        "aio_pool",
        "aio_pipe",
    ),
    "looks into the tables and statements of a stock saver": (
        *("_cursor", "nonnull_migrations", "by_primary_key", "nothing_newer", "saved_meanwhile", "saved_while"),
        *("after_the_batch", "after_the_thread", "metadata_predicate", "search_sql_injection", "search_where"),
        "inline_primitive_seed",
    ),
    "expects the stock saver's wording of an error": ("informative_async_errors", "from_another_thread_only"),
    "only SqliteSaver does so: a filter by a path with dots, `writes` kept in the metadata": (
        *("hyphens_and_digits", "SqliteSaver::test_combined", "SqliteSaver::test_search", "SqliteSaver::test_asearch"),
    ),
    "only PostgresSaver does so: a None that was stored is taken for nothing": ("no_channel_values",),
    "tasks of checkpoints of LangGraph before 0.5: an import brings them over": ("pending_sends", "pre_v4"),
    "threads with delta channels are not pruned by the stock saver: ours are": ("refuses_a_batch",),
}
"""What is not run, by its cause: parts of the tests' names."""


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--saver-of", choices=["sqlite", "postgres", "stock"], default="sqlite")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    names = [name for names in LEFT_OUT.values() for name in names]
    left_out = [item for item in items if any(name in item.nodeid for name in names)]
    config.hook.pytest_deselected(items=left_out)
    items[:] = [item for item in items if item not in left_out]
    if "tests.conftest" in sys.modules:
        sys.modules["tests.conftest"].__dict__["DEFAULT_URI"] = os.environ["LONGTHREAD_TEST_POSTGRES_URL"]
    if config.getoption("--saver-of") == "stock":
        _point_at_the_server(items)
        return
    ours = {name: _in_place_of(name, config.getoption("--saver-of")) for name in NAMES}
    for module in {item.module for item in items if isinstance(item, pytest.Function)}:
        for name in ours.keys() & module.__dict__.keys():
            setattr(module, name, ours[name])
        opened = {
            "tests.test_sync": {"_saver": _open(ours["PostgresSaver"])},
            "tests.test_async": {"_saver": _open(ours["AsyncPostgresSaver"])},
            "tests.test_prune": {
                "_sync_saver": _open(ours["PostgresSaver"]),
                "_async_saver": _open(ours["AsyncPostgresSaver"]),
                "_rows": _rows,
            },
        }
        module.__dict__.update(opened.get(module.__name__, {}))


def _point_at_the_server(items: list[pytest.Item]) -> None:
    url = os.environ["LONGTHREAD_TEST_POSTGRES_URL"]
    # One of the two gets the name of a database at its end: what else it names is in libpq's variables.
    given = conninfo_to_dict(url)
    os.environ.update({_LIBPQ[name]: str(given[name]) for name in _LIBPQ.keys() & given.keys()})
    for module in {item.module for item in items if isinstance(item, pytest.Function)}:
        for name, address in {"DEFAULT_URI": url, "DEFAULT_POSTGRES_URI": "postgresql:///"}.items():
            if name in module.__dict__:
                setattr(module, name, address)


def _open(saver: Any) -> Any:
    return lambda _: saver.from_conn_string("")


async def _rows(saver: LongthreadSaver, thread_id: str) -> dict[str, list[tuple[str, ...]]]:
    """What is kept of a thread, as it can be asked for."""
    found = [item async for item in saver.alist({"configurable": {"thread_id": thread_id}})]
    places = [(at["checkpoint_ns"], at["checkpoint_id"]) for at in (item.config["configurable"] for item in found)]
    writes = [
        (*place, task_id, channel)
        for place, item in zip(places, found, strict=True)
        for task_id, channel, _ in item.pending_writes or ()
    ]
    values = [
        (ns, channel, item.checkpoint["channel_versions"][channel])
        for (ns, _), item in zip(places, found, strict=True)
        for channel in item.checkpoint["channel_values"]
    ]
    return {"checkpoints": sorted(places), "writes": sorted(writes), "blobs": sorted(values)}


def _in_place_of(name: str, backend: str) -> type:
    """A class that is opened as the stock one is, over an empty store each time."""

    class Saver(LongthreadSaver):
        if name.startswith("Async"):

            @classmethod
            @asynccontextmanager
            async def from_conn_string(cls, address: str, **options: Any) -> AsyncIterator[LongthreadSaver]:  # type: ignore[override]
                with _address(backend) as own:
                    async with LongthreadSaver.from_conn_string.__func__(cls, own) as saver:  # type: ignore[attr-defined]
                        yield saver
        else:

            @classmethod
            @contextmanager
            def from_conn_string(cls, address: str, **options: Any) -> Iterator[LongthreadSaver]:  # type: ignore[override]
                with _address(backend) as own, LongthreadSaver.from_conn_string.__func__(cls, own) as saver:  # type: ignore[attr-defined]
                    yield saver

    return Saver
