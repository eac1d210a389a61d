"""A turn whose worker was killed is answered once by the recipe of docs/how-to/langgraph.md."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.one_backend

SCRIPT = Path(__file__).with_name("killed_worker.py")
PAGE = Path(__file__).parents[3] / "docs" / "how-to" / "langgraph.md"


@pytest.mark.sampled(6)
@pytest.mark.parametrize("durability", ["async", "sync", "exit"])
def test_a_killed_workers_turn_is_answered_once(durability: str, store_address: str) -> None:
    """A process is killed with SIGKILL before and after each of a turn's operations on the store."""
    command = [sys.executable, "-W", "ignore", str(SCRIPT), store_address, durability]
    found = json.loads(subprocess.run(command, capture_output=True, check=True, timeout=300).stdout)
    assert len(found) >= (3 if durability == "exit" else 12)
    for n, turn in enumerate(found):
        assert turn["texts"] == [f"question {n}", "", "found", f"answer to question {n}"]
        assert turn["answers"] == [f"answer to question {n}"] * 2
    # Had `next` told which turns to go on with, these would have no answer, with whatever durability.
    assert not found[0]["next"]


def test_the_recipe_is_the_documented_one() -> None:
    recipe = SCRIPT.read_text().partition("async def answer(agent")[2].partition("\n\n\n")[0]
    documented = PAGE.read_text().partition("async def answer(agent")[2].partition("\n\n\n")[0]
    assert recipe.partition(":\n")[2] == documented.partition(":\n")[2]
