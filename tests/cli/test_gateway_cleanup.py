"""`longthread gateway cleanup`."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.testing import CliRunner

from longthread.cli.commands.gateway_cleanup import cleanup
from longthread.conversation_state import SignatureDatabase
from longthread.errors import StoreUnavailable

Run = Callable[..., Any]


def cleaned(*options: str) -> Any:
    command = typer.Typer()
    command.command()(cleanup)
    result = CliRunner().invoke(command, options)
    if result.exception is not None:
        raise result.exception
    return result.stdout


def test_what_has_expired_goes(run: Run) -> None:
    with SignatureDatabase() as db:
        for scid, ttl in {"a": -1, "b": 0, "c": 3600, "d": None}.items():
            assert db.store_conversation_state(scid, "unknown", "[1]", ttl_seconds=ttl)
    assert cleaned() == "Deleted 2 expired conversations.\n"
    assert sorted(json.loads(line)["id"] for line in run("threads", "list", "--json").stdout.splitlines()) == ["c", "d"]
    assert json.loads(cleaned("--json")) == {"threads": 0, "busy": 0, "damaged": {}}


def test_it_makes_no_store(run: Run, tmp_path: Path) -> None:
    with pytest.raises(StoreUnavailable, match="there is none"):
        cleaned("--database", str(tmp_path / "none.db"))
    assert not (tmp_path / "none.db").exists()
