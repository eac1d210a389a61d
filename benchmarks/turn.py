"""What one turn of the analyst costs on threads of different lengths, and what its turns leave on disk.

A turn is a question, one tool call and an answer (4 entries) through the whole run loop on each backend, with a model
that answers at once: all of the time is Longthread's and LangGraph's.

    python benchmarks/turn.py [--quick] [--json] [--turns N]
"""

from __future__ import annotations

import argparse
import asyncio
import json

from longthread.model.entry import Draft, ToolCall
from longthread.model.ids import new_id


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


async def main() -> None:
    from databases import databases

    from agent import disk, turns  # it takes the seeded turn from here

    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--quick", action="store_true", help="fewer repetitions, and fewer turns for the disk")
    parser.add_argument("--json", action="store_true", help="print only the JSON object")
    parser.add_argument("--turns", type=int, default=0, help="turns that are written to disk (2,000; 200 with --quick)")
    args = parser.parse_args()
    with databases() as made:
        taken = await turns(made, [10, 5000], 2 if args.quick else 5)
        kept = await disk(made, [args.turns or (200 if args.quick else 2000)])
    found: dict[str, dict[str, float]] = {}
    for row in taken:
        found.setdefault(row["backend"], {})[f"turn_ms_{row['turns']}"] = row["turn_ms"]
    for row in kept:
        found[row["backend"]]["disk_ratio"] = round(row["grown_bytes"] / row["raw_bytes"], 2)
    for each in found.values():
        each["turn_ratio_5000_10"] = round(each["turn_ms_5000"] / each["turn_ms_10"], 3)
    if not args.json:
        for backend, each in found.items():
            print(backend, *(f"{name} {value}" for name, value in each.items()), sep="  ")
    print(json.dumps(found))


if __name__ == "__main__":
    asyncio.run(main())
