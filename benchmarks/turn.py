"""What one turn of our own agent costs: CPU and commits, disk, and how long the commands take to start.

A turn is a question, one tool call and an answer (4 entries) through the whole run loop, with a model that answers at
once: all of the CPU time is Longthread's own. CPU and commits are of turns on a thread of 100, on SQLite. Disk is what
2,000 turns leave, with everything kept, beside their messages as JSON, on the backend that takes more. The short run
makes 288 of them, and the rest as they grew from the 96th on, like `log.py`.

    python benchmarks/turn.py [--quick] [--json] [--against PATH]

`--against` names the root of another checkout. Its turns are measured in the same run, one process after the other, and
a line before the last tells the ratio.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from longthread.model.entry import Draft, ToolCall
from longthread.model.ids import new_id

ROOT = Path(__file__).resolve().parents[1]
COMMAND = "from longthread.cli.start import main; main()"


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


def alternating(checkouts: list[Path], pairs: int, turns: int) -> dict[Path, dict[str, float]]:
    """CPU and commits of a turn in each checkout: the median of some processes, which take turns."""
    found: dict[Path, list[dict[str, float]]] = {checkout: [] for checkout in checkouts}
    for _ in range(pairs):
        for checkout in checkouts:
            worker = [sys.executable, "-P", str(ROOT / "benchmarks" / "oneturn.py"), str(turns)]
            done = subprocess.run(worker, env=_env(checkout), stdout=subprocess.PIPE, text=True, check=True)
            found[checkout].append(json.loads(done.stdout))
    return {
        checkout: {name: round(statistics.median(each[name] for each in rows), 2) for name in rows[0]}
        for checkout, rows in found.items()
    }


def started(checkout: Path, times: int) -> dict[str, float]:
    """Seconds of CPU that two commands take, the processes that they start included, from bytecode that is there.

    The least of some: work beside them only adds to it, as it takes away what the processor's caches hold.
    """
    with tempfile.TemporaryDirectory() as folder:
        env = _env(checkout) | {"HOME": folder, "LONGTHREAD_DATABASE": f"{folder}/c.db", "LLM_MODEL": "demo"}
        asks = [_cpu(env, "ask", "How many rockets are there?", "--source", "demo") for _ in range(times + 1)]
        lists = [_cpu(env, "threads", "list") for _ in range(times + 1)]
    # The first of each writes what the others find: bytecode, the store, the demo's database.
    return {"import_cpu_s": min(lists[1:]), "ask_cpu_s": min(asks[1:])}


def _cpu(env: dict[str, str], *arguments: str) -> float:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    command = [sys.executable, "-c", COMMAND, *arguments]
    subprocess.run(command, env=env, stdout=subprocess.DEVNULL, check=True, cwd=env["HOME"])
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return round(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, 2)


def _env(checkout: Path) -> dict[str, str]:
    env = os.environ | {"PYTHONPATH": os.pathsep.join([f"{checkout}/src", f"{checkout}/benchmarks"])}
    env.pop("PYTHONDONTWRITEBYTECODE", None)  # without bytecode a command compiles all that it loads
    return env


async def disk_ratios(turns: int, since: int | None) -> dict[str, float]:
    """Bytes of the database ÷ the messages as JSON after 2,000 turns, on each backend.

    Args:
        since: fewer turns are made, and the rest grow as these did from this one on.
    """
    from agent import disk  # it takes the seeded turn from here
    from databases import databases
    from report import disk_ratio

    with databases() as made:
        rows = await disk(made, [turns], since=since)
    return {row["backend"]: round(disk_ratio(row), 2) for row in rows}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--quick", action="store_true", help="fewer repetitions, and fewer turns for the disk")
    parser.add_argument("--json", action="store_true", help="print nothing but JSON objects, one a line")
    parser.add_argument("--against", type=Path, help="another checkout, whose turns are measured beside these")
    args = parser.parse_args()
    rows: list[dict[str, Any]] = []
    other = args.against.resolve() if args.against else None
    taken = alternating([*([other] if other else []), ROOT], 3 if args.quick else 7, 40)
    ours = taken[ROOT]
    if other:
        ratio = {"cpu_ratio": round(ours["cpu_ms"] / taken[other]["cpu_ms"], 3)}
        rows.append({"measured": "against", **taken[other], **started(other, 5), **ratio})
    kept = asyncio.run(disk_ratios(*((288, 96) if args.quick else (2000, None))))
    rows.append({"measured": "disk", **kept})
    for row in rows:
        print(json.dumps(row) if args.json else "  ".join(f"{name} {value}" for name, value in row.items()))
    print(json.dumps({**ours, "disk_ratio": max(kept.values()), **started(ROOT, 5)}))


if __name__ == "__main__":
    main()
