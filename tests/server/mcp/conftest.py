"""Analysts whose models wait where a test says so."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest
from tests.server.conftest import GatedModel

from longthread.llm.models import resolve_model
from longthread.runs.analyst import Analyst
from longthread.settings import Settings

Open = Callable[..., Awaitable[Analyst]]


@pytest.fixture
async def open_analyst(tmp_path: Path, store_address: str) -> AsyncIterator[Open]:
    """Opens analysts on the store under test: `open_analyst(model, user=…)`; without a model it is the demo model."""
    async with AsyncExitStack() as stack:

        async def open_(model: GatedModel | None = None, **settings: Any) -> Analyst:
            given = {"data_dir": tmp_path / "data", "database": store_address, "source": "demo", "model": "demo"}
            given |= {"memory_enable_summary": False, "sql_isolated": False}
            loaded = Settings.load(env_file=None, **(given | settings))
            models = (lambda name, settings: model) if model else resolve_model
            return await stack.enter_async_context(Analyst.open(loaded, models=models))

        yield open_
