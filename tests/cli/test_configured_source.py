"""`LONGTHREAD_SOURCE` counts wherever `--source` does."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.one_backend

Run = Callable[..., Any]


@pytest.fixture
def configured(run: Run, monkeypatch: pytest.MonkeyPatch) -> Run:
    monkeypatch.setenv("LONGTHREAD_SOURCE", "demo")
    return run


def threads(run: Run) -> dict[str, str]:
    found = [json.loads(line) for line in run("threads", "list", "--json").stdout.splitlines()]
    return {each["id"]: each["source"] for each in found}


def test_it_begins_threads_that_are_named(configured: Run) -> None:
    run = configured
    run("ask", "How many rockets are there?", "--thread", "my-notes")
    run("ask", "How many launches are there?", "--thread", "my-n")
    run("chat", "--thread", "my-other", text="How many rockets are there?\n")
    assert threads(run) == {"my-notes": "demo", "my-other": "demo"}
    assert "several" in str(run("ask", "How many rockets?", "--thread", "my", code=2).exception).lower()


def test_last_is_no_threads_name(configured: Run) -> None:
    configured("memories", "add", "x")
    configured("ask", "How many rockets are there?", "--thread", "last", code=2)


def test_a_thread_that_is_not_there_needs_some_source(run: Run) -> None:
    run("memories", "add", "x")
    run("ask", "How many rockets are there?", "--thread", "none", code=2)


def test_evals_and_tools_ask_it(configured: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = configured
    run("memories", "add", "x")
    assert "rockets" in run("tools", "run", "list_tables").stdout
    statements = tmp_path / "s.jsonl"
    statements.write_text('{"dialect": "sqlite", "sql": "SELECT count(*) FROM rocketz", "must": "allow"}\n')
    run("eval", "sql", str(statements), code=1)  # there is no such table in the demo's database
    monkeypatch.delenv("LONGTHREAD_SOURCE")
    run("eval", "sql", str(statements))  # nothing is asked


@pytest.mark.sampled(3)
@pytest.mark.parametrize("thread", ["a/b [bold]c", "100%?#x", "火箭/一号", "..", "[/dim]", " x "])
def test_a_threads_name_may_hold_any_character(configured: Run, thread: str) -> None:
    run = configured
    assert thread in run("ask", "How many rockets are there?", "--thread", thread).stderr
    assert thread in run("threads", "show", thread).stdout
    assert run("threads", "tag", thread, "x").stdout.split() == ["x"]
    assert json.loads(run("state", thread).stdout)["question"] == "How many rockets are there?"
    run("ask", "How many launches are there?", "--thread", thread)
    assert run("threads", "runs", thread).stdout
    run("threads", "delete", thread, "--yes")
    assert threads(run) == {}
