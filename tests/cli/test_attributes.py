"""`longthread threads tag | metadata | expire`."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.one_backend

Run = Callable[..., Any]


def told(result: Any) -> Any:
    return json.loads(result.stdout)


def test_an_archived_conversation_is_listed_where_it_is_asked_for(asked: Run) -> None:
    run = asked
    run("threads", "archive", "a")
    assert run("threads", "list", "--json").stdout == run("threads", "search", "rockets", "--json").stdout == ""
    for listed in (
        run("threads", "list", "--archived", "--json"),
        run("threads", "search", "rockets", "--archived", "--json"),
    ):
        assert told(listed)["archived_at"] is not None
    run("threads", "unarchive", "last")
    assert told(run("threads", "list", "--json"))["archived_at"] is None
    assert run("threads", "list", "--archived", "--json").stdout == ""
    assert "The user default has no such conversations here" in run("threads", "list", "--archived").stderr
    run("threads", "archive", "none", code=2)


@pytest.fixture
def asked(run: Run) -> Run:
    """A store with two conversations, of two users."""
    run("memories", "add", "x")  # makes the store
    run("ask", "How many rockets are there?", "--source", "demo", "--thread", "a")
    return run


def test_tags_are_added_listed_and_taken_away(asked: Run) -> None:
    run = asked
    assert run("threads", "tag", "a").stdout == ""
    assert run("threads", "tag", "a", "航天", "weekly").stdout.split() == ["航天", "weekly"]
    assert told(run("threads", "tag", "last", "--remove", "weekly", "--json")) == {"thread_id": "a", "tags": ["航天"]}
    assert json.loads(run("threads", "list", "--json").stdout)["tags"] == ["航天"]
    assert "tags: 航天" in run("threads", "show", "a").stdout
    assert "tag" in str(run("threads", "tag", "a", " ", code=2).exception)
    run("threads", "tag", "none", "x", code=2)


def test_metadata_is_set_shown_and_taken_out(asked: Run) -> None:
    run = asked
    assert told(run("threads", "metadata", "a")) == {}
    assert told(run("threads", "metadata", "a", "team=数据", "n=1.5", "deep={\"a\":[true]}", "url=http://x/?a=b")) == {
        "team": "数据", "n": 1.5, "deep": {"a": [True]}, "url": "http://x/?a=b",
    }  # fmt: skip
    assert told(run("threads", "metadata", "a", "--remove", "deep", "--remove", "url", "n=2")) == {
        "team": "数据",
        "n": 2,
    }
    assert '"team": "数据"' in run("threads", "show", "a").stdout
    assert "KEY=VALUE" in str(run("threads", "metadata", "a", "team", code=2).exception)
    entry = json.loads(run("threads", "show", "a", "--json").stdout.splitlines()[-1])
    assert told(run("threads", "metadata", "a", "rating=5", "--message", entry["id"])) == {"rating": 5}
    assert told(run("threads", "metadata", "a", "--message", entry["id"])) == {"rating": 5}
    assert json.loads(run("threads", "show", "a", "--json").stdout.splitlines()[-1]) == {
        **entry,
        "noted": {"rating": 5},
    }
    run("threads", "metadata", "a", "rating=5", "--message", "none", code=2)


def test_what_expires_is_pruned_then_and_not_before(asked: Run) -> None:
    run = asked
    assert run("threads", "expire", "a").stdout.strip() == "never"
    until = datetime.fromisoformat(told(run("threads", "expire", "a", "30d", "--json"))["expires_at"])
    assert abs(until - datetime.now(UTC) - timedelta(days=30)) < timedelta(minutes=5)
    assert told(run("db", "prune", "--json"))["threads"] == 0
    assert run("threads", "expire", "a", "never").stdout.strip() == "never"
    assert run("threads", "expire", "a", "2020-01-02").stdout.startswith("2020-01-")
    assert "expires: 2020-01-0" in run("threads", "show", "a").stdout
    assert told(run("db", "prune", "--json"))["threads"] == 1
    run("db", "prune", "--apply", "--yes")
    run("threads", "show", "a", code=2)
    run("threads", "expire", "a", "soon", code=2)


def test_another_user_notes_nothing(asked: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    run = asked
    run("threads", "tag", "a", "mine")
    monkeypatch.setenv("LONGTHREAD_USER", "other")
    for command in (
        ["tag", "a", "x"],
        ["tag", "a"],
        ["metadata", "a", "x=1"],
        ["metadata", "a"],
        ["expire", "a", "1d"],
    ):
        run("threads", *command, code=2)
    monkeypatch.delenv("LONGTHREAD_USER")
    assert run("threads", "tag", "a").stdout.split() == ["mine"]


def test_what_was_noted_is_exported_and_imported(asked: Run, tmp_path: Path) -> None:
    run = asked
    run("threads", "tag", "a", "航天")
    run("threads", "metadata", "a", "team=data")
    run("threads", "expire", "a", "2040-05-08")
    entry = json.loads(run("threads", "show", "a", "--json").stdout.splitlines()[-1])["id"]
    run("threads", "metadata", "a", "rating=5", "--message", entry)
    before = run("threads", "show", "a").stdout
    run("threads", "export", "a", "--to", "a.jsonl")
    run("threads", "delete", "a", "--yes")
    run("threads", "import", "a.jsonl")
    assert run("threads", "show", "a").stdout == before
    assert told(run("threads", "metadata", "a", "--message", entry)) == {"rating": 5}
