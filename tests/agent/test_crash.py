"""`kill -9` at every boundary of a write, then another process goes on: nothing is lost, half there or done twice."""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path
from typing import Any

import pytest

SCENARIOS = ["analyst", "graph"]


async def _kill(**plan: Any) -> int:
    """Kill processes as the plan says and see that nothing is wrong after any; how many were killed."""
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "tests.agent.dying", stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE
    )
    out, _ = await process.communicate(json.dumps(plan).encode())
    assert process.returncode == 0
    killed = [json.loads(line) for line in out.splitlines()]
    assert [each for each in killed if each["problems"]] == []
    return sum(signal == 9 for each in killed for signal in each["signals"])


@pytest.mark.parametrize("scenario", SCENARIOS)
async def test_a_run_survives_a_kill_anywhere(store_address: str, tmp_path: Path, shop: str, scenario: str) -> None:
    every = {"analyst": 19, "graph": 13}[scenario]  # primes: all kinds of boundaries have their turn
    where = {"store": store_address, "data": str(tmp_path), "source": shop}
    assert await _kill(scenario=scenario, every=every, first=every // 2, **where) > 15


@pytest.mark.slow
async def test_a_thousand_kills_lose_nothing(store_address: str, tmp_path: Path, shop: str) -> None:
    where = {"store": store_address, "data": str(tmp_path), "source": shop}
    kills = 0
    for scenario, twice in (("analyst", 97), ("graph", 41)):
        for plans in (
            [{"every": 2, "first": first} for first in (1, 2)],
            [{"every": twice, "first": first, "again": twice} for first in (7, 7 + twice // 2)],
        ):
            kills += sum(await asyncio.gather(*(_kill(scenario=scenario, **plan, **where) for plan in plans)))
    print(f"{kills} processes were killed")
    assert kills >= 1000
