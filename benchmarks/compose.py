"""What composing a view costs: on a short and on a long thread, and for a full window of 128k tokens.

    python benchmarks/compose.py                     # a minute or two
    python benchmarks/compose.py --quick --json      # less; JSON lines, the last one the figures

Times are those of the processor: composing waits for nothing. `grown` is a view that goes on from the one before,
`planned` one that is planned anew, and `cold` one that counts every message's tokens. `first` is the first view of a
process, which has counted nothing at all yet: the median of some processes.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import pickle
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

from longthread.context.window import PreviousCall, ViewRequest, WindowMessage, fit
from longthread.context.window_cache import WindowCache
from longthread.messages.entries import draft_of
from longthread.messages.message import Message, tool_call
from longthread.model.entry import Draft
from longthread.store import log
from longthread.store.open import open_store
from longthread.view.tokens import FAMILIES, Estimator
from longthread_evals.long_conversation import words

WINDOW = 128_000
BUDGET = int(WINDOW * 0.9) - 16_000 - 4_000
LIMIT = 200
"""Messages of the hot window."""


def turn(number: int, chance: random.Random, size: int) -> list[Message]:
    """A question, a call, its result of `size` characters and an answer."""
    call = tool_call(id=f"c{number}", name="run_sql", args={"sql": f"SELECT * FROM t WHERE id < {number}"})
    said = words(chance, "en", size // 6)
    rows = [[n, said[n : n + 80]] for n in range(0, size, 90)]
    result = json.dumps({"ok": True, "data": {"query": f"q{number}", "rows": rows}})
    thinking: Any = {"type": "thinking", "thinking": words(chance, "en", 60), "signature": "s" * 64}
    return [
        Message("user", words(chance, "en", 20)),
        Message("assistant", [thinking], tool_calls=[call]),
        Message("tool", result, tool_call_id=call["id"]),
        Message("assistant", words(chance, "en", 40)),
    ]


def drafts(count: int, size: int) -> list[Draft]:
    chance = random.Random(1)
    return [draft_of(message) for number in range(count // 4) for message in turn(number, chance, size)]


def timed(rounds: int, *works: Callable[[], Any]) -> list[float]:
    """Milliseconds of each, the median of some rounds. They take turns: a processor is not always as fast."""
    taken: list[list[float]] = [[] for _ in works]
    for _ in range(rounds):
        for work, own in zip(works, taken, strict=True):
            started = time.process_time()
            work()
            own.append((time.process_time() - started) * 1000)
    return [round(median(own), 3) for own in taken]


async def window_of(folder: Path, entries: int, size: int) -> list[WindowMessage]:
    """The hot window of a thread of so many entries."""
    async with open_store(str(folder / f"{entries}.db")) as store:
        async with store.writing() as tx:
            await log.create_thread(tx, "t", user_id="default")
            written, tip = 0, 0
            made = drafts(min(entries, 1_000), size)
            while written < entries:
                some = [replace(draft, id=f"{written}.{place}") for place, draft in enumerate(made)]
                added = await log.append(tx, "t", some, tip=tip, size=written)
                written, tip = written + len(added), added[-1].seq
        async with store.reading() as tx:
            thread = await log.find_thread(tx, "t", user_id="default")
            return (await WindowCache(LIMIT).read(tx, thread)).spots


def fresh(spots: list[WindowMessage]) -> list[WindowMessage]:
    """The same messages, with nothing computed."""
    return [WindowMessage(spot.entry, spot.message) for spot in spots]


def measured(threads: Sequence[list[WindowMessage]], budget: int, rounds: int) -> list[dict[str, float]]:
    """Of each thread: milliseconds of a view that grows, of one that is planned anew, and of one that counts all."""
    views = [fit(spots[:-2], ViewRequest(budget, "o200k")) for spots in threads]
    pasts = [PreviousCall(view.segments) for view in views]
    both = list(zip(threads, pasts, strict=True))
    grown = [partial(fit, spots, ViewRequest(budget, "o200k", past=past)) for spots, past in both]
    planned = [partial(fit, spots, ViewRequest(budget // 2, "o200k", past=past)) for spots, past in both]
    cold = [partial(_counted, spots, ViewRequest(budget, "o200k")) for spots in threads]
    columns = (timed(rounds, *grown), timed(rounds, *planned), timed(3, *cold))
    return [
        {"tokens": view.view.tokens, "grown_ms": grew, "planned_ms": plan, "cold_ms": counted}
        for view, grew, plan, counted in zip(views, *columns, strict=True)
    ]


def _counted(spots: list[WindowMessage], wanted: ViewRequest) -> None:
    fit(fresh(spots), wanted)


def first(spots: list[WindowMessage], processes: int) -> float:
    """Milliseconds of the first view in a process that has the messages and has done nothing with them."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "spots"
        file.write_bytes(pickle.dumps([(spot.entry, spot.message) for spot in spots]))
        command = [sys.executable, __file__, "--first", str(file)]
        taken = [float(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout) for _ in range(processes)]
    return round(median(taken), 3)


def first_of(file: str) -> None:
    """What such a process does."""
    spots = [WindowMessage(entry, message) for entry, message in pickle.loads(Path(file).read_bytes())]
    print(*timed(1, lambda: fit(spots, ViewRequest(BUDGET, "o200k"))))


def estimating(size: int) -> float:
    """Megabytes of English text a second, by an estimator that has seen nothing."""
    text = words(random.Random(2), "en", size // 6)
    started = time.process_time()
    Estimator(FAMILIES["any"]).count(text)
    return round(len(text.encode()) / 1e6 / (time.process_time() - started), 1)


async def main(arguments: argparse.Namespace) -> None:
    rounds = 10 if arguments.quick else 50
    lengths = (1_000, 20_000 if arguments.quick else 100_000)
    with tempfile.TemporaryDirectory() as folder:
        threads = [await window_of(Path(folder), entries, 300) for entries in lengths]
        spots = await window_of(Path(folder), 400, 6_000)
    short, long = measured(threads, BUDGET, rounds)
    [full] = measured([spots], BUDGET, rounds)
    for entries, figures_of in zip((*lengths, "a full window"), (short, long, full), strict=True):
        print(json.dumps({"entries": entries, **figures_of}))
    figures = {
        "ratio": round(long["grown_ms"] / short["grown_ms"], 2),
        "planned_ratio": round(long["planned_ms"] / short["planned_ms"], 2),
        "full_tokens": full["tokens"],
        "full_grown_ms": full["grown_ms"],
        "full_planned_ms": full["planned_ms"],
        "full_cold_ms": full["cold_ms"],
        "full_first_ms": first(spots, 3 if arguments.quick else 9),
        "estimate_mb_s": estimating(2_000_000),
    }
    print(json.dumps(figures) if arguments.json else "\n".join(f"{name}: {value}" for name, value in figures.items()))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help="less, and smaller")
    parser.add_argument("--json", action="store_true", help="the last line is a JSON object")
    parser.add_argument("--first", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.first:
        first_of(given.first)
    else:
        asyncio.run(main(given))
