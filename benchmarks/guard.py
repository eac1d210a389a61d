"""What the guard costs: milliseconds a statement, over everyday statements of three dialects.

    python benchmarks/guard.py                     # evals/sql/benign.jsonl, ten times
    python benchmarks/guard.py --quick --json      # twice; the last line is a JSON object
    python benchmarks/guard.py FILE                # other statements, in a format of `longthread eval sql`

Times are those of the processor, and each statement is parsed anew: nothing is remembered between two of them.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path
from statistics import median, quantiles

from longthread.errors import SqlRefused
from longthread.tools.analysis.guard import Guard
from longthread_evals.sql_judge import GOLD_DIALECT
from longthread_evals.statements import JudgedStatement, read_statements

CORPUS = Path(__file__).parents[1] / "evals" / "sql" / "benign.jsonl"


def timed(guard: Guard, statement: JudgedStatement) -> tuple[float, bool]:
    """Milliseconds, and whether the statement was let through."""
    started = time.process_time()
    try:
        guard.check(statement.sql)
    except SqlRefused:
        return (time.process_time() - started) * 1000, False
    return (time.process_time() - started) * 1000, True


def measured(statements: list[JudgedStatement], rounds: int) -> dict[str, dict[str, float]]:
    """The figures of each dialect, and of all under an empty name."""
    guards = {name: Guard(name) for name in {one.dialect or GOLD_DIALECT for one in statements}}
    taken: dict[str, list[float]] = {"": []}
    passed: dict[str, list[bool]] = {"": []}
    for number in range(rounds + 1):
        for statement in statements:
            dialect = statement.dialect or GOLD_DIALECT
            took, allowed = timed(guards[dialect], statement)
            for group in ("", dialect) if number else ():  # the first round warms up
                taken.setdefault(group, []).append(took)
                passed.setdefault(group, []).append(allowed)
    return {
        group: {
            "statements": len(times) // rounds,
            "median_ms": round(median(times), 3),
            "p95_ms": round(quantiles(times, n=20)[-1], 3),
            "allowed": round(sum(passed[group]) / len(passed[group]), 4),
        }
        for group, times in taken.items()
    }


def main(arguments: argparse.Namespace) -> None:
    found = measured(read_statements(arguments.file), 2 if arguments.quick else 10)
    figures = found.pop("")
    for dialect, row in sorted(found.items()):
        print(json.dumps({"dialect": dialect, **row}))
    print(json.dumps(figures) if arguments.json else "\n".join(f"{name}: {value}" for name, value in figures.items()))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("file", type=Path, nargs="?", default=CORPUS, help="statements, one JSON object a line")
    parser.add_argument("--quick", action="store_true", help="less often")
    parser.add_argument("--json", action="store_true", help="the last line is a JSON object")
    main(parser.parse_args())
