"""An analyst with a scripted model, on a small shop."""

from __future__ import annotations

import sqlite3
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest

from longthread.runs.analyst import Analyst
from longthread.settings import Settings
from longthread.store.driver import Driver
from longthread.store.open import open_store
from longthread.testing import ScriptedChatModel, ScriptedModel

OpenAnalyst = Callable[..., Awaitable[Analyst]]


@pytest.fixture
def shop(tmp_path: Path) -> str:
    """A database with two tables."""
    path = tmp_path / "shop.sqlite"
    connection = sqlite3.connect(path)
    connection.executescript(
        """
        CREATE TABLE customers (id INTEGER PRIMARY KEY, name TEXT, country TEXT);
        CREATE TABLE orders (id INTEGER PRIMARY KEY, customer_id INTEGER REFERENCES customers (id), total REAL);
        INSERT INTO customers VALUES (1, 'Ada', 'UK'), (2, '李雷', 'China'), (3, 'Bob', 'UK');
        INSERT INTO orders VALUES (1, 1, 10.5), (2, 2, 20), (3, 2, 5);
        """
    )
    connection.close()
    return str(path)


@pytest.fixture
async def second(store_address: str, store: Driver) -> AsyncIterator[Driver]:
    """The same store once more, as another process has it."""
    async with open_store(store_address) as opened:
        yield opened


@pytest.fixture
async def open_analyst(tmp_path: Path, store_address: str) -> AsyncIterator[OpenAnalyst]:
    """Opens analysts that share one store; each follows its own script."""
    given = {"data_dir": tmp_path / "data", "database": store_address, "model": "test:scripted"}
    # A script has no reply for what is asked behind a turn.
    given |= {"memory_enable_summary": False}
    async with AsyncExitStack() as stack:

        async def open_(replies: Sequence[Any] | ScriptedChatModel | ScriptedModel, **settings: Any) -> Analyst:
            model = replies if isinstance(replies, ScriptedChatModel | ScriptedModel) else ScriptedChatModel(replies)
            loaded = Settings.load(env_file=None, **{**given, **settings})
            return await stack.enter_async_context(Analyst.open(loaded, models=lambda name, _: model))

        yield open_
