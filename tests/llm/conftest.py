"""Models that tests make by themselves are closed, as an analyst closes its own."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest

from longthread.llm.http import Endpoint


@pytest.fixture(autouse=True)
async def _close_endpoints(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[None]:
    made: list[Endpoint] = []
    original = Endpoint.__init__

    def init(self: Endpoint, *args: Any, **how: Any) -> None:
        original(self, *args, **how)
        made.append(self)

    monkeypatch.setattr(Endpoint, "__init__", init)
    yield
    for endpoint in made:
        await endpoint.close()
