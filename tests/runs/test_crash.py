"""`kill -9` at every boundary of a write, then another process goes on: nothing is lost, half there or done twice."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

SCENARIOS = ["analyst", "graph", "approval"]


async def _kill(warmed: Path, **plan: Any) -> int:
    """Kill processes as the plan says and see that nothing is wrong after any; how many were killed."""
    process = await asyncio.create_subprocess_exec(
        *(str(warmed / "python"), "-m", "tests.processes.dying"),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
    )
    out, _ = await process.communicate(json.dumps(plan).encode())
    assert process.returncode == 0
    killed = [json.loads(line) for line in out.splitlines()]
    assert [each for each in killed if each["problems"]] == []
    return sum(signal == 9 for each in killed for signal in each["signals"])


# Primes: all kinds of boundaries have their turn.
@pytest.mark.parametrize(
    ("scenario", "every", "first", "kills"), [("analyst", 47, 8, 4), ("graph", 37, 5, 3), ("approval", 83, 9, 2)]
)
async def test_a_run_survives_a_kill_anywhere(
    store_address: str, tmp_path: Path, shop: str, warmed: Path, scenario: str, every: int, first: int, kills: int
) -> None:
    where = {"store": store_address, "data": str(tmp_path), "source": shop}
    assert await _kill(warmed, scenario=scenario, every=every, first=first, **where) >= kills


async def test_agents_that_are_asked_survive_a_kill(
    store_address: str, tmp_path: Path, shop: str, warmed: Path
) -> None:
    where = {"store": store_address, "data": str(tmp_path), "source": shop}
    # One while two are asked at once, one while the first of them is asked again.
    assert await _kill(warmed, scenario="delegates", first=170, every=300, **where) == 2


@pytest.mark.slow
async def test_agents_that_are_asked_survive_a_kill_anywhere(
    store_address: str, tmp_path: Path, shop: str, warmed: Path
) -> None:
    where = {"store": store_address, "data": str(tmp_path), "source": shop}
    plans = [{"every": 38, "first": first} for first in (1, 20)]
    assert sum(await asyncio.gather(*(_kill(warmed, scenario="delegates", **plan, **where) for plan in plans))) > 30


@pytest.mark.slow
async def test_a_thousand_kills_lose_nothing(store_address: str, tmp_path: Path, shop: str, warmed: Path) -> None:
    """At every boundary there is; and then at some again, in the process that goes on, until there are enough."""
    where = {"store": store_address, "data": str(tmp_path), "source": shop}
    kills = 0
    for every in (1, 29, 19, 13, 7):
        if kills < 1000:
            kills += sum([await _kill_in_two(warmed, every, scenario, where) for scenario in SCENARIOS])
    print(f"{kills} processes were killed")
    assert kills >= 1000


async def _kill_in_two(warmed: Path, every: int, scenario: str, where: dict[str, str]) -> int:
    """Kill on two processors: each has every other boundary."""
    more = {"again": every} if every > 1 else {}
    plans = [{"every": 2 * every, "first": first, **more} for first in (1, 1 + every)]
    return sum(await asyncio.gather(*(_kill(warmed, scenario=scenario, **plan, **where) for plan in plans)))
