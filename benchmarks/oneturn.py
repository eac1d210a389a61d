"""What one turn of our own agent costs a process: run by `turn.py`, in a process of its own, on one checkout.

The checkout is the one that PYTHONPATH names: its sources, and the `agent.py` beside its benchmarks.
"""

from __future__ import annotations

import asyncio
import json
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from agent import analyst_on, ask, make_source, seeded_thread
from databases import SqliteFile

TURNS = 100
"""The length of the thread."""


async def measure(folder: Path, turns: int) -> dict[str, float]:
    """CPU and commits of a turn: the mean of so many. What goes on behind a turn does not go on."""
    source = make_source(folder)
    async with analyst_on(SqliteFile(folder / "agent.db"), folder) as analyst:
        analyst.recaller.keep_up = analyst.pruner.keep_up = _nothing
        analyst.memories.keep_up = _nothing
        thread = await seeded_thread(analyst, source, TURNS)
        for _ in range(3):  # the first folds the whole thread, once
            await ask(analyst, thread, source)
        commits = _counted(type(analyst.store))
        began = time.process_time()
        for _ in range(turns):
            await ask(analyst, thread, source)
        taken = time.process_time() - began
    return {"cpu_ms": 1000 * taken / turns, "commits": len(commits) / turns}


def _counted(driver: Any) -> list[None]:
    """A list that each transaction which writes adds to."""
    found: list[None] = []
    writing = driver.writing

    def counted(self: Any) -> Any:
        found.append(None)
        return writing(self)

    driver.writing = counted
    return found


def _nothing(*_: Any, **about: Any) -> None:
    """Do nothing behind a turn."""


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        print(json.dumps(asyncio.run(measure(Path(folder), int(sys.argv[1])))))
