"""The built page in a real browser."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from tests.server.conftest import browser, serve

from longthread.server import page

__all__ = ["browser", "serve"]


@pytest.fixture
def backend() -> str:
    """The page knows the API alone, and that is tested on every backend."""
    return "sqlite"


@pytest.fixture
def context(browser: Any) -> Iterator[Any]:
    """One person's browser; what a page of it complains about fails the test."""
    assert (page.FOLDER / "index.html").exists(), "build the page first: make page"
    opened = browser.new_context(locale="en", viewport={"width": 1280, "height": 800})
    opened.set_default_timeout(30_000)
    complaints: list[str] = []
    opened.on("weberror", lambda error: complaints.append(str(error.error)))
    opened.on("console", lambda said: complaints.append(said.text) if "Content Security Policy" in said.text else None)
    yield opened
    opened.close()
    assert complaints == []
