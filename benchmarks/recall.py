"""How long a question to recall takes in a thread of many entries, and what its index costs, on each backend.

The entries are made of words as frequent as those of a language are (Zipf), in English and in Chinese; questions take
words from an entry, frequent ones among them. All goes through `Recaller.find`, which `recall_memory` uses too.

    python benchmarks/recall.py [--quick] [--json] [--entries N] [--questions N] [--threads N] [--vectors DIMENSIONS]
        [--backend sqlite|postgres]

With `--threads`, the entries are spread over a user's threads, and all of them are asked, when their index has been
put together. With `--vectors`, each entry has a vector, made of its words', and so has each question: what an embedder
takes is not measured. `cpu` is what the processors did for it: in all threads of this process, and for
`server_cpu_mean_ms` in PostgreSQL's; `when_i` is of the same questions as "When did I say …", which ask for who said
it and for a time too. With other work on the machine, times on the clock say little.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from databases import Databases, databases
from numpy.typing import NDArray
from talk import Talk

from longthread.memory.embedder import unit
from longthread.memory.index.indexer import index_thread
from longthread.memory.index.shards import bind_user
from longthread.memory.index.vectors import model_of
from longthread.memory.recall import Question, Recaller
from longthread.model.entry import Draft
from longthread.model.thread import Scope
from longthread.store import log, recall_index, vectors
from longthread.store.driver import Driver
from longthread.store.open import open_store
from longthread.store.queries import Sql

THREAD, USER = "recalled", "benchmark"
_PAGE = 5000
_WARM = 5
"""Questions that are asked before it is measured."""


class Words:
    """An embedder: of each word a direction of its own, as long as the word is rare, and some that all texts share."""

    def __init__(self, dims: int) -> None:
        self.name = "benchmark:words"
        self._dims = dims
        self._common = np.random.default_rng(1).standard_normal(dims).astype(np.float32)
        self._known: dict[str, NDArray[np.float32]] = {}

    async def documents(self, texts: Sequence[str]) -> NDArray[np.float32]:
        return np.array([self._vector(text) for text in texts])

    async def query(self, text: str) -> NDArray[np.float32]:
        return self._vector(text)

    def _vector(self, text: str) -> NDArray[np.float32]:
        words = text.split() if " " in text else [text[at : at + 2] for at in range(len(text) - 1)]
        return np.sum([self._common, *(self._of(word) for word in words)], axis=0, dtype=np.float32)

    def _of(self, word: str) -> NDArray[np.float32]:
        if word not in self._known:
            seed = int.from_bytes(word.encode()[:8], "little")
            self._known[word] = np.random.default_rng(seed).standard_normal(self._dims).astype(np.float32)
        return self._known[word]


@dataclass(frozen=True)
class Asked:
    """What is measured."""

    entries: int
    questions: int
    threads: int
    dims: int


async def measure(made: Databases, backend: str, asked_for: Asked) -> dict[str, Any]:
    """`entries` entries: their index, and what is asked of them."""
    entries = asked_for.entries
    talk = Talk()
    database = made.make(backend, "recall")
    async with open_store(database.address) as store:
        asked = [talk.question(text) for text in await _fill(store, talk, asked_for)]
        database.settle()
        before, started = database.size(), time.perf_counter()
        for thread in _threads(asked_for):
            await index_thread(store, thread)
        took = time.perf_counter() - started
        database.settle()
        size = database.size() - before
        embedder = Words(asked_for.dims) if asked_for.dims else None
        if embedder is not None:
            await _embed(store, embedder, asked_for)
        database.settle()
        if asked_for.threads > 1:
            await bind_user(store, USER)
        if embedder is not None:
            for text in asked:
                await embedder.query(text)  # it knows all words from then on, and answers at once
        recaller = Recaller(store, embedder)
        scope = Scope(USER, THREAD if asked_for.threads == 1 else None)
        for text in asked[:_WARM]:
            await recaller.find(Question(text, scope))
        worked = database.worked()
        times, cpu = await _ask(recaller, scope, asked[_WARM:])
        worked = 1000 * (database.worked() - worked) / len(times)
        own_times, own_cpu = await _ask(recaller, scope, [f"When did I say {text}" for text in asked[_WARM:]])
    return {
        "backend": backend,
        "entries": entries,
        "threads": asked_for.threads,
        "dimensions": asked_for.dims,
        "p50_ms": _quantile(times, 0.5),
        "p95_ms": _quantile(times, 0.95),
        "cpu_p50_ms": _quantile(cpu, 0.5),
        "cpu_p95_ms": _quantile(cpu, 0.95),
        "when_i_p95_ms": _quantile(own_times, 0.95),
        "when_i_cpu_p50_ms": _quantile(own_cpu, 0.5),
        "server_cpu_mean_ms": round(worked, 2),
        "index_ms_per_1000": round(1e6 * took / entries, 1),
        "index_bytes_per_entry": round(size / entries, 1),
    }


async def _ask(recaller: Recaller, scope: Scope, texts: Sequence[str]) -> tuple[list[float], list[float]]:
    """How long each question takes, and what this process's CPU time is, in milliseconds."""
    times, cpu = [], []
    for text in texts:
        started, used = time.perf_counter(), time.process_time()
        recalled = await recaller.find(Question(text, scope))
        assert recalled.hits
        times.append(1000 * (time.perf_counter() - started))
        cpu.append(1000 * (time.process_time() - used))
    return times, cpu


def _threads(asked: Asked) -> list[str]:
    return [THREAD, *(f"{THREAD}-{number}" for number in range(1, asked.threads))]


async def _fill(store: Driver, talk: Talk, asked: Asked) -> list[str]:
    """Write the entries; some of their texts."""
    said: list[str] = []
    own = asked.entries // asked.threads
    for thread in _threads(asked):
        async with store.writing() as tx:
            await log.create_thread(tx, thread, user_id=USER)
        for start in range(0, own, _PAGE):
            texts = [talk.entry() for _ in range(min(_PAGE, own - start))]
            drafts = [
                Draft(f"{thread}-e{start + at}", "assistant" if at % 2 else "user", text)
                for at, text in enumerate(texts)
            ]
            async with store.writing() as tx:
                tip, size = await log.position(tx, thread)
                await log.append(tx, thread, drafts, tip=tip, size=size)
            said += texts
    return said[:: max(1, len(said) // (asked.questions + 5))][: asked.questions + 5]


async def _embed(store: Driver, embedder: Words, asked: Asked) -> None:
    """Give the entries vectors, more at a time than embedders take: PostgreSQL's index is not what is measured here."""
    if store.dialect == "postgres":
        async with store.maintaining() as tx:
            for dims in sorted(vectors.INDEXED):
                await tx.run(Sql(f"DROP INDEX IF EXISTS memory_vectors_{dims}"))
    model = await model_of(embedder)
    for thread in _threads(asked):
        for start in range(1, asked.entries // asked.threads + 1, vectors.BLOCK):
            async with store.writing() as tx:
                await log.position(tx, thread)
                texts = await recall_index.texts(tx, thread, start, start + vectors.BLOCK - 1)
                made = unit(await embedder.documents([text.text for text in texts]))
                rows = [
                    vectors.Vector(f"{thread}/{text.seq}", text.seq, text.text, vector.astype("<f4").tobytes())
                    for text, vector in zip(texts, made, strict=True)
                ]
                await vectors.write(tx, thread, model, rows)


def _quantile(values: list[float], share: float) -> float:
    ordered = sorted(values)
    return round(ordered[min(len(ordered) - 1, int(share * len(ordered)))], 2)


async def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--quick", action="store_true", help="20,000 entries and 60 questions")
    parser.add_argument("--json", action="store_true", help="print only the JSON object")
    parser.add_argument("--entries", type=int, default=0, help="entries of the thread (100,000)")
    parser.add_argument("--questions", type=int, default=0, help="how many are asked (200)")
    parser.add_argument("--threads", type=int, default=1, help="threads that the entries are spread over (1)")
    parser.add_argument("--vectors", type=int, default=0, metavar="DIMENSIONS", help="numbers of each vector (none)")
    parser.add_argument("--backend", default="", help="only this one")
    args = parser.parse_args()
    entries = args.entries or (20_000 if args.quick else 100_000)
    questions = args.questions or (60 if args.quick else 200)
    found = {}
    with databases() as made:
        for backend in [args.backend] if args.backend else made.backends:
            found[backend] = await measure(made, backend, Asked(entries, questions, args.threads, args.vectors))
            if not args.json:
                print(backend, *(f"{name} {value}" for name, value in found[backend].items()), sep="  ")
    print(json.dumps(found))


if __name__ == "__main__":
    asyncio.run(main())
