"""`longthread mcp`, where it cannot start."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import pytest

pytestmark = pytest.mark.one_backend

Run = Callable[..., Any]


@pytest.mark.parametrize("backend", ["sqlite"], indirect=True)
def test_what_keeps_it_from_starting_is_told(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("LONGTHREAD_MCP_TOKEN", raising=False)
    assert "LONGTHREAD_MCP_TOKEN" in str(run("mcp", "--http", "--host", "0.0.0.0", "--port", "0", code=7).exception)
    monkeypatch.setitem(sys.modules, "mcp", None)
    missing = run("mcp", code=2)
    assert "pip install 'mcp<" in str(missing.exception)
    assert missing.stdout == ""
