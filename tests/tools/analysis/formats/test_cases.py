"""The rule of formats, by the cases that the page's tests read too."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from longthread.tools.analysis.column_format import format_of_json, guess_format, write_value

CASES: dict[str, list[Any]] = json.loads((Path(__file__).parents[3] / "formats.json").read_text("utf-8"))


@pytest.mark.parametrize(("name", "cells", "wanted"), CASES["guessed"])
def test_a_format_is_guessed(name: str, cells: list[Any], wanted: dict[str, Any]) -> None:
    assert guess_format(name, cells).to_json() == wanted


@pytest.mark.parametrize(("cell", "given", "text"), CASES["written"])
def test_a_cell_is_written(cell: Any, given: dict[str, Any], text: str) -> None:
    assert write_value(cell, format_of_json(given)) == text
