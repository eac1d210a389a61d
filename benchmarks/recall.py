"""How long a question to recall takes in a thread of many entries, and what its index costs, on each backend.

The entries are made of words as frequent as those of a language are (Zipf), in English and in Chinese; questions take
words from an entry, frequent ones among them. All goes through `Recaller.find`, which `recall_memory` uses too.

    python benchmarks/recall.py [--quick] [--json] [--entries N] [--questions N]
"""

from __future__ import annotations

import argparse
import asyncio
import json
import time
from typing import Any

from databases import Databases, databases
from talk import Talk

from longthread.memory.indexing import index_thread
from longthread.memory.recall import Question, Recaller
from longthread.model.entry import Draft
from longthread.store import log
from longthread.store.driver import Driver
from longthread.store.open import open_store
from longthread.store.recall import Scope

THREAD, USER = "recalled", "benchmark"
_PAGE = 5000


async def measure(made: Databases, backend: str, entries: int, questions: int) -> dict[str, Any]:
    """One thread of `entries` entries: its index, and what is asked of it."""
    talk = Talk()
    database = made.make(backend, "recall")
    async with open_store(database.address) as store:
        asked = [talk.question(text) for text in await _fill(store, talk, entries, questions)]
        database.settle()
        before, started = database.size(), time.perf_counter()
        await index_thread(store, THREAD)
        took = time.perf_counter() - started
        database.settle()
        size = database.size() - before
        recaller = Recaller(store)
        times, cpu = [], []
        for number, text in enumerate(asked):
            started, used = time.perf_counter(), time.process_time()
            recalled = await recaller.find(Question(text, Scope(USER, THREAD)))
            assert recalled.hits
            if number >= 5:
                times.append(1000 * (time.perf_counter() - started))
                cpu.append(1000 * (time.process_time() - used))
    return {
        "backend": backend,
        "entries": entries,
        "p50_ms": _quantile(times, 0.5),
        "p95_ms": _quantile(times, 0.95),
        "cpu_p95_ms": _quantile(cpu, 0.95),
        "index_ms_per_1000": round(1e6 * took / entries, 1),
        "index_bytes_per_entry": round(size / entries, 1),
    }


async def _fill(store: Driver, talk: Talk, entries: int, questions: int) -> list[str]:
    """Write the entries; some of their texts."""
    some: list[str] = []
    async with store.writing() as tx:
        await log.create_thread(tx, THREAD, user_id=USER)
    for start in range(0, entries, _PAGE):
        texts = [talk.entry() for _ in range(min(_PAGE, entries - start))]
        drafts = [Draft(f"e{start + at}", "user", text) for at, text in enumerate(texts)]
        async with store.writing() as tx:
            tip, size = await log.position(tx, THREAD)
            await log.append(tx, THREAD, drafts, tip=tip, size=size)
        some += texts[:: max(1, entries // (questions + 5))]
    return some[: questions + 5]


def _quantile(values: list[float], share: float) -> float:
    ordered = sorted(values)
    return round(ordered[min(len(ordered) - 1, int(share * len(ordered)))], 2)


async def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--quick", action="store_true", help="20,000 entries and 60 questions")
    parser.add_argument("--json", action="store_true", help="print only the JSON object")
    parser.add_argument("--entries", type=int, default=0, help="entries of the thread (100,000)")
    parser.add_argument("--questions", type=int, default=0, help="how many are asked (200)")
    args = parser.parse_args()
    entries = args.entries or (20_000 if args.quick else 100_000)
    questions = args.questions or (60 if args.quick else 200)
    found = {}
    with databases() as made:
        for backend in made.backends:
            found[backend] = await measure(made, backend, entries, questions)
            if not args.json:
                print(backend, *(f"{name} {value}" for name, value in found[backend].items()), sep="  ")
    print(json.dumps(found))


if __name__ == "__main__":
    asyncio.run(main())
