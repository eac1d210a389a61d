"""LangGraph's own tests of the graph, with our saver in the place of its SQLite savers.

A pytest plugin, for a copy of LangGraph's repository; nothing of it is kept here:

    cd langgraph/libs/langgraph
    NO_DOCKER=true PYTHONPATH=<this folder> python -m pytest -p longthread_in_langgraph --saver sqlite

`--saver` is `sqlite`, `postgres` (databases are made on the server of LONGTHREAD_TEST_POSTGRES_URL) or `stock`, which
changes nothing and tells what fails without us. Synchronous tests get a saver on a thread of its own, asynchronous ones
get it on their loop; with `--opened crossed` these too get one on a thread of its own. Only tests that take one of the
two fixtures are run; with `--made` those of modules that make an InMemorySaver, and they get ours in its place.
"""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import AsyncIterator, Iterator
from contextlib import ExitStack, asynccontextmanager, contextmanager
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit
from uuid import uuid4

import psycopg
import pytest
from langgraph.checkpoint.serde.base import SerializerProtocol

from longthread.langgraph import LongthreadSaver

PARAMS = {"sync_checkpointer": "sqlite", "async_checkpointer": "sqlite_aio"}
MADE = {"InMemorySaver", "MemorySaver"}


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--saver", choices=["sqlite", "postgres", "stock"], default="sqlite")
    parser.addoption("--opened", choices=["usual", "crossed"], default="usual")
    parser.addoption("--made", action="store_true")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    wanted = _may_make_a_saver if config.getoption("--made") else _takes_a_saver
    chosen = [item for item in items if isinstance(item, pytest.Function) and wanted(item)]
    config.hook.pytest_deselected(items=[item for item in items if item not in chosen])
    items[:] = chosen
    if config.getoption("--saver") != "stock":
        conftest = sys.modules["tests.conftest"]
        backend, crossed = config.getoption("--saver"), config.getoption("--opened") == "crossed"
        conftest.__dict__["_checkpointer_sqlite"] = lambda: _plain(backend)
        conftest.__dict__["_checkpointer_sqlite_aio"] = lambda: _crossed(backend) if crossed else _async(backend)


def _takes_a_saver(item: pytest.Function) -> bool:
    params = item.callspec.params if hasattr(item, "callspec") else {}
    return any(params.get(fixture) == param for fixture, param in PARAMS.items())


def _may_make_a_saver(item: pytest.Function) -> bool:
    return not PARAMS.keys() & set(item.fixturenames) and bool(MADE & item.module.__dict__.keys())


@pytest.fixture(autouse=True)
def _made_savers(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    backend = request.config.getoption("--saver")
    made = backend != "stock" and request.config.getoption("--made")
    with ExitStack() as stack:
        for name in MADE & request.module.__dict__.keys() if made else ():
            monkeypatch.setattr(request.module, name, _made(backend, stack))
        yield


def _made(backend: str, stack: ExitStack) -> type[LongthreadSaver]:
    """A class that is made as an InMemorySaver is, and may be inherited from."""

    class Made(LongthreadSaver):
        def __init__(self, *, serde: SerializerProtocol | None = None, **_: object) -> None:
            self.__dict__ |= stack.enter_context(_plain(backend)).__dict__
            if serde is not None:
                self.serde = serde

    return Made


@contextmanager
def _address(backend: str) -> Iterator[str]:
    """The address of an empty store."""
    if backend == "sqlite":
        with tempfile.TemporaryDirectory() as folder:
            yield str(Path(folder) / "conversations.db")
        return
    server = urlsplit(os.environ["LONGTHREAD_TEST_POSTGRES_URL"])
    name = f"upstream_{uuid4().hex[:16]}"
    with psycopg.connect(urlunsplit(server), autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}".encode())
        try:
            yield urlunsplit(server._replace(path=f"/{name}"))
        finally:
            connection.execute(f"DROP DATABASE {name} WITH (FORCE)".encode())


@contextmanager
def _plain(backend: str) -> Iterator[LongthreadSaver]:
    with _address(backend) as address, LongthreadSaver.from_conn_string(address) as saver:
        yield saver


@asynccontextmanager
async def _async(backend: str) -> AsyncIterator[LongthreadSaver]:
    with _address(backend) as address:
        async with LongthreadSaver.from_conn_string(address) as saver:
            yield saver


@asynccontextmanager
async def _crossed(backend: str) -> AsyncIterator[LongthreadSaver]:
    with _plain(backend) as saver:
        yield saver
