"""`longthread gateway cleanup`."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from longthread.conversation_state import SignatureDatabase

Run = Callable[..., Any]


def test_what_has_expired_goes(run: Run) -> None:
    with SignatureDatabase() as db:
        for scid, ttl in {"a": -1, "b": 0, "c": 3600, "d": None}.items():
            assert db.store_conversation_state(scid, "unknown", "[1]", ttl_seconds=ttl)
    assert run("gateway", "cleanup").stdout == "Deleted 2 expired conversations.\n"
    assert sorted(json.loads(line)["id"] for line in run("threads", "list", "--json").stdout.splitlines()) == ["c", "d"]
    assert json.loads(run("gateway", "cleanup", "--json").stdout) == {"threads": 0, "busy": 0, "damaged": {}}


def test_it_makes_no_store(run: Run, tmp_path: Path) -> None:
    run("gateway", "cleanup", "--database", str(tmp_path / "none.db"), code=5)
    assert not (tmp_path / "none.db").exists()
