"""Both backends print the recorded transcript of the command line.

To record a change that a user shall see: LONGTHREAD_TEST_RECORD=1 pytest -m "slow or not slow" tests/golden.
"""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from tests.golden.normalizer import Normalizer, format_json
from tests.golden.transcript import replay

pytestmark = pytest.mark.one_backend


def test_commands(backend: str, store_address: str, folder: Path, environment: dict[str, str]) -> None:
    normalize = Normalizer({str(folder): "<folder>", store_address: "<store>"})

    def ask(command: str, _: list[str]) -> str:
        done = subprocess.run(
            ["sh", "-c", command], cwd=folder, env=environment, capture_output=True, text=True, check=False, timeout=600
        )
        lines = [*format_json(done.stdout, normalize).splitlines(), *(f"! {line}" for line in done.stderr.splitlines())]
        if done.returncode:
            lines.append(f"[exit {done.returncode}]")
        return normalize("\n".join(lines))

    replay("commands.txt", ask, may_record=backend == "sqlite")
