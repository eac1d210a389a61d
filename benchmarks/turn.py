"""What one turn of the analyst costs on threads of different lengths, side by side in one run.

A turn is a question, one tool call and an answer (4 entries) through the whole run loop on SQLite, with a scripted
model that answers at once: all of the time is Longthread's and LangGraph's.

    python benchmarks/turn.py [--quick] [--json]
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sqlite3
import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

from longthread.agent.analyst import Analyst
from longthread.model.entry import Draft, ToolCall
from longthread.model.ids import new_id
from longthread.settings import Settings
from longthread.store import log
from longthread.testing import ScriptedChatModel

COUNT = {"thought": "Count.", "action": "run_sql", "args": {"sql": "SELECT COUNT(*) AS n FROM t"}}
ANSWER = {"finish": "There are 1,000 [q1]."}


def reply(messages: list[Any]) -> Any:
    """A call first, then the answer."""
    return ANSWER if messages[-1].type == "tool" else COUNT


def turn(number: int) -> list[Draft]:
    """The entries of one seeded turn, about 3 KB."""
    call = ToolCall(new_id(), "run_sql", {"sql": "SELECT * FROM t LIMIT 100"})
    rows = json.dumps({"ok": True, "data": {"query": f"q{number}", "rows": [[n, "x" * 20] for n in range(80)]}})
    return [
        Draft(new_id(), "user", f"Question {number}?", metadata={"kind": "question"}),
        Draft(new_id(), "assistant", "Ask.", tool_calls=(call,)),
        Draft(new_id(), "tool", rows, tool_call_id=call.id),
        Draft(new_id(), "assistant", f"Answer {number}.", metadata={"kind": "answer"}),
    ]


async def measure(analyst: Analyst, source: str, length: int, repeats: int) -> float:
    """Median milliseconds of a turn on a thread that has `length` turns already."""
    thread_id = new_id()
    async with analyst.store.writing() as tx:
        await log.create_thread(tx, thread_id, user_id="default", source=source)
        for number in range(length):
            await log.extend(tx, thread_id, turn(number))
    taken: list[float] = []
    for n in range(repeats + 1):
        started = time.perf_counter()
        handle = await analyst.ask("How many?", thread_id=thread_id, source=source)
        await handle.wait()
        if n:  # the first turn after seeding folds the whole thread, once
            taken.append((time.perf_counter() - started) * 1000)
    return statistics.median(taken)


async def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--quick", action="store_true", help="fewer and shorter threads")
    parser.add_argument("--json", action="store_true", help="print only the JSON object")
    args = parser.parse_args()
    lengths, repeats = ([10, 100, 1000], 7) if args.quick else ([10, 100, 1000, 5000], 15)
    with tempfile.TemporaryDirectory() as folder:
        source = str(Path(folder) / "t.sqlite")
        with sqlite3.connect(source) as connection:
            connection.execute("CREATE TABLE t AS WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT 1000) SELECT i FROM n")  # fmt: skip  # noqa: E501
        connection.close()
        model = ScriptedChatModel(reply)
        settings = Settings.load(env_file=None, data_dir=folder, model="bench:scripted")
        async with Analyst.open(settings, models=lambda name, _: model) as analyst:
            found = {length: await measure(analyst, source, length, repeats) for length in lengths}
    if not args.json:
        for length, ms in found.items():
            print(f"turn {length + 1:>5}: {ms:7.1f} ms  ({ms / found[lengths[0]]:.2f} × the first row)")
    ratio = round(found[lengths[-1]] / found[lengths[0]], 3)
    result = {"ms": {str(length): round(ms, 1) for length, ms in found.items()}, "ratio_last_first": ratio}
    print(json.dumps(result))


if __name__ == "__main__":
    asyncio.run(main())
