"""Sources to ask: small databases made for a test, and the demo."""

from __future__ import annotations

import sqlite3
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from longthread.tools.analysis.limits import Limits
from longthread.tools.analysis.open import open_source
from longthread.tools.analysis.source import Source
from longthread.tools.analysis.toolbox import analysis_tools

Ask = Callable[..., Awaitable[dict[str, Any]]]
"""`await ask(source, "run_sql", sql="…")`: the observation."""


@pytest.fixture
def ask() -> Ask:
    async def call(source: Source, tool: str, **arguments: Any) -> dict[str, Any]:
        tools = {one.name: one for one in analysis_tools(source)}
        return await tools[tool].call(arguments)

    return call


@pytest.fixture
def make_sqlite(tmp_path: Path) -> Callable[..., Path]:
    """Writes a SQLite file from a script, and rows into its tables."""

    def make(script: str, name: str = "made.sqlite", **rows: list[tuple[Any, ...]]) -> Path:
        path = tmp_path / name
        with closing(sqlite3.connect(path)) as connection:
            connection.executescript(script)
            for table, values in rows.items():
                places = ", ".join("?" * len(values[0]))
                connection.executemany(f'INSERT INTO "{table}" VALUES ({places})', values)
            connection.commit()
        return path

    return make


@pytest.fixture
async def opened() -> AsyncIterator[Callable[..., Awaitable[Source]]]:
    """Opens sources and closes them after the test."""
    sources: list[Source] = []

    async def call(spec: object, **limits: Any) -> Source:
        source = await open_source(str(spec), limits=Limits(**limits))
        sources.append(source)
        return source

    yield call
    for source in sources:
        await source.close()


@pytest.fixture
async def demo() -> AsyncIterator[Source]:
    source = await open_source("demo")
    yield source
    await source.close()
