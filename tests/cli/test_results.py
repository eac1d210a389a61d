"""`longthread threads result`."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.one_backend

Run = Callable[..., Any]
QUESTION = "How many launches were there?"


def test_a_whole_result_is_written_to_a_file(run: Run, tmp_path: Path) -> None:
    run("ask", QUESTION, "--source", "demo", "--model", "demo")
    run("threads", "result", "last", "q1", "--to", "r.csv")
    whole = list(csv.reader(io.StringIO((tmp_path / "r.csv").read_text(), newline="")))
    stored = run("threads", "result", "last", "[q1]", "--stored").stdout
    assert list(csv.reader(io.StringIO(stored, newline=""))) == whole
    assert len(whole) == 2
    assert whole[1][0].isdigit()
    for name in ("r.xlsx", "r.parquet"):
        run("threads", "result", "last", "q1", "--to", name)
        assert (tmp_path / name).stat().st_size > 100
    assert "--force" in str(run("threads", "result", "last", "q1", "--to", "r.csv", code=2).exception)


def test_what_cannot_be_written_says_why(run: Run) -> None:
    run("ask", QUESTION, "--source", "demo", "--model", "demo")
    assert "Its results: q1" in str(run("threads", "result", "last", "q9", code=2).exception)
    assert "says no format" in str(run("threads", "result", "last", "q1", "--to", "r.txt", code=2).exception)
