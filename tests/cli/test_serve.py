"""Where `longthread serve` keeps conversations, and what it says of that."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import longthread.server.app
from longthread.cli.app import app
from longthread.errors import InvalidInput
from longthread.settings import Settings

pytestmark = pytest.mark.one_backend

URL = "postgresql://me:s3cret@db.example:5432/conversations"


@pytest.fixture
def served(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[Settings]:
    """The settings of the servers that were started, which end at once."""
    started: list[Settings] = []

    def run(settings: Settings, *, on_ready: Callable[[str], None], **options: Any) -> None:
        started.append(settings)
        on_ready("http://127.0.0.1:1")

    monkeypatch.setattr(longthread.server.app, "run", run)
    monkeypatch.setenv("LONGTHREAD_DATA_DIR", str(tmp_path))
    for name in ("LONGTHREAD_DATABASE_URL", "LONGTHREAD_DATABASE", "DATABASE_URL"):
        monkeypatch.delenv(name, raising=False)
    return started


@pytest.mark.parametrize("command", ["serve", "demo"])
@pytest.mark.parametrize(
    ("flags", "database", "said"),
    [
        (["--postgres", URL], URL, "postgresql://me@db.example:5432/conversations"),
        (["--database", URL], URL, "postgresql://me@db.example:5432/conversations"),
        (["--postgres", "embedded"], "embedded:{}/postgres", "{}/postgres (embedded PostgreSQL)"),
        (["--postgres", "embedded:/elsewhere"], "embedded:/elsewhere", "/elsewhere (embedded PostgreSQL)"),
        (["--database", "embedded"], "embedded:{}/postgres", "{}/postgres (embedded PostgreSQL)"),
        (["--database", "/tmp/c.db"], "/tmp/c.db", "/tmp/c.db"),
        ([], "{}/conversations.db", "{}/conversations.db"),
    ],
)
def test_conversations_are_where_it_was_said(
    served: list[Settings], tmp_path: Path, command: str, flags: list[str], database: str, said: str
) -> None:
    result = CliRunner().invoke(app, [command, *flags])
    assert result.exception is None
    assert [settings.database for settings in served] == [database.format(tmp_path)]
    assert f"Conversations are in  {said.format(tmp_path)}\n" in result.output
    assert "s3cret" not in result.output


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        (["--postgres", URL, "--database", "x.db"], "Give one of them"),
        (["--postgres", "x.db"], "postgresql:// URL, embedded, or embedded:FOLDER"),
        (["--database", URL.replace("postgresql", "mysql")], "allowed is the path of a SQLite file"),
    ],
)
def test_what_is_no_store_is_refused(served: list[Settings], flags: list[str], words: str) -> None:
    result = CliRunner().invoke(app, ["serve", *flags])
    assert isinstance(result.exception, InvalidInput)
    assert words in str(result.exception)
    assert "s3cret" not in str(result.exception) + result.output
    assert served == []
