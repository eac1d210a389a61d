"""Fixtures that every part of the suite shares."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from longthread.store.driver import Driver
from longthread.store.open import open_store


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[Driver]:
    """An empty store."""
    async with open_store(tmp_path / "conversations.db") as opened:
        yield opened
