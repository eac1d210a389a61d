"""Schemathesis at the server over a socket: it asks what the OpenAPI description allows and what it forbids."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest
from tests.server.apps import define_clerk
from tests.server.test_chat import ANSWER, LOOK

pytestmark = [pytest.mark.clients, pytest.mark.one_backend]

# It reads each answer to its end, and the stream of a user's changes has none. Its answers are tested in tests/server.
ENDLESS = "/api/events"
CONFIG = Path(__file__).with_name("schemathesis.toml")
PHASES = "examples,coverage,fuzzing,stateful"
SECONDS = 900.0


def test_it_finds_nothing(serve: Any, store_address: str, tmp_path: Path, installed: Path) -> None:
    define_clerk(store_address)
    running = serve([LOOK, ANSWER])
    program = [installed / "schemathesis" / "bin" / "schemathesis", "--config-file", CONFIG]
    command = [*program, "run", f"{running.url}/api/openapi.json"]
    options = ["--phases", PHASES, "--checks", "all", "--max-examples", "30", "--exclude-path", ENDLESS]
    done = subprocess.run([*command, *options], cwd=tmp_path, capture_output=True, text=True, timeout=SECONDS)
    assert done.returncode == 0, done.stdout[-8000:]
