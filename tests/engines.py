"""The engines that a source may have, for tests that ask the same of each."""

from __future__ import annotations

import pytest

ENGINES = [
    "sqlite",
    "duckdb",
    pytest.param("postgresql", marks=pytest.mark.postgres),
    pytest.param("mysql", marks=pytest.mark.mysql),
]
