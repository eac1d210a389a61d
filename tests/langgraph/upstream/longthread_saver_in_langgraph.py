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

Either folder's tests run on either backend. `--saver-of` is `sqlite` or `postgres`; the server of
LONGTHREAD_TEST_POSTGRES_URL is needed for both. The tests of conformance need the copy's libs/checkpoint-conformance in
front of the released one. Left out is

- what makes a stock saver over a connection, looks into its tables and statements, or expects its wording of an error;
- what only one of the stock savers does: a filter by a path with dots, `writes` kept in the metadata, a None that was
  stored and is taken for nothing, the tasks of checkpoints of LangGraph before 0.5 (an import brings them over);
- that threads with delta channels are not pruned: ours are.
"""

from __future__ import annotations

import os
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Any

import pytest
from longthread_in_langgraph import _address

from longthread.langgraph import LongthreadSaver

NAMES = ("SqliteSaver", "AsyncSqliteSaver", "PostgresSaver", "AsyncPostgresSaver")
OF_THE_STOCK = (
    *("shallow", "[pool", "[pipe", "aio_pool", "aio_pipe", "_cursor", "nonnull_migrations", "no_channel_values"),
    *("by_primary_key", "nothing_newer", "saved_meanwhile", "saved_while", "after_the_batch", "after_the_thread"),
    *("metadata_predicate", "search_sql_injection", "informative_async_errors", "from_another_thread_only"),
    *("search_where", "hyphens_and_digits", "SqliteSaver::test_combined", "SqliteSaver::test_search"),
    *("SqliteSaver::test_asearch", "inline_primitive_seed", "pending_sends", "pre_v4", "refuses_a_batch"),
)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--saver-of", choices=["sqlite", "postgres"], default="sqlite")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    left_out = [item for item in items if any(name in item.nodeid for name in OF_THE_STOCK)]
    config.hook.pytest_deselected(items=left_out)
    items[:] = [item for item in items if item not in left_out]
    ours = {name: _in_place_of(name, config.getoption("--saver-of")) for name in NAMES}
    if "tests.conftest" in sys.modules:
        sys.modules["tests.conftest"].__dict__["DEFAULT_URI"] = os.environ["LONGTHREAD_TEST_POSTGRES_URL"]
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
