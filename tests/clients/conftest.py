"""The clients, from the folder that `make test-clients` installs them into."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from tests.server.conftest import serve  # noqa: F401 - a fixture
from tests.web.conftest import browser, built, open_page  # noqa: F401 - fixtures


@pytest.fixture(scope="session")
def installed() -> Path:
    folder = os.environ.get("LONGTHREAD_TEST_CLIENTS")
    if not folder:
        pytest.skip("needs clients from npm, which `make test-clients` installs")
    return Path(folder)
