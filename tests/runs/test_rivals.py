"""Two processes of the operating system decide about the same call: one is heard, and the call is made once at most."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

from tests.processes.rivals import CHOICES


async def test_of_two_processes_that_decide_at_once_one_is_heard(
    store_address: str, tmp_path: Path, warmed: Path
) -> None:
    plan = {"store": store_address, "data": str(tmp_path), "rounds": 4}
    process = await asyncio.create_subprocess_exec(
        *(str(warmed / "python"), "-m", "tests.processes.rivals"),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
    )
    out, _ = await process.communicate(json.dumps(plan).encode())
    assert process.returncode == 0
    rounds = [json.loads(line) for line in out.splitlines()]
    assert len(rounds) == plan["rounds"]
    said = {"approve": "approved", "reject": "rejected"}
    for each in rounds:
        [[name, end]], [[code, message]] = each["heard"], each["refused"]
        assert (end, code) == ("finished", "not_pending")
        assert f"It was {said[CHOICES[name]]} by user “{name}” already." in message
        assert each["sent"] == (CHOICES[name] == "approve")
