"""The vectors of entries, in document 004's `memory_vectors`: pgvector on PostgreSQL, bytes on SQLite."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from longthread.store.driver import Row, Transaction
from longthread.store.queries import Sql, queries
from longthread.store.recall import Scope

EXACT = 10_000
"""Vectors in scope up to which PostgreSQL compares them all, as SQLite does; beyond, it asks its index."""
INDEXED = frozenset({384, 512, 768, 1024, 1536})
"""Dimensions that PostgreSQL has an index for."""
_MORE = 16
"""How many more candidates are read than are wanted: the databases' arithmetic differs in the last digit."""


@dataclass(frozen=True, slots=True)
class Vector:
    """A vector of an entry: its numbers with 32 bits each, the lowest byte first, and the text that it was made of."""

    id: str
    seq: int
    chunk: str
    data: bytes


@dataclass(frozen=True, slots=True)
class Candidate:
    """An entry whose vector may be near."""

    thread_id: str
    seq: int
    vector: NDArray[np.float32]


async def missing_count(tx: Transaction, thread_id: str, model: str) -> int:
    """How many entries of a thread have no vector of a model."""
    [row] = await tx.fetch("count_missing_vectors", thread_id=thread_id, model=model)
    return int(row["missing"])


async def missing(tx: Transaction, thread_id: str, model: str, *, after: int, limit: int) -> list[int]:
    """The next entries that have none, behind entry `after`."""
    rows = await tx.fetch("select_missing_vectors", thread_id=thread_id, model=model, after=after, limit=limit)
    return [int(row["seq"]) for row in rows]


async def write(tx: Transaction, thread_id: str, model: str, rows: Sequence[Vector]) -> None:
    """Keep vectors. For who has locked the thread in this transaction; those that are there are left."""
    given = [
        {
            "id": row.id,
            "thread_id": thread_id,
            "seq": row.seq,
            "chunk": row.chunk,
            "model": model,
            "embedding": row.data,
            "numbers": _told(np.frombuffer(row.data, "<f4")),
        }
        for row in rows
    ]
    await tx.run_all("insert_vector", given)


async def has_others(tx: Transaction, thread_id: str, model: str) -> bool:
    """Whether entries of a thread have vectors of other models."""
    return bool(await tx.fetch("select_other_vectors", thread_id=thread_id, model=model))


async def delete_others(tx: Transaction, thread_id: str, model: str) -> None:
    """Delete the vectors of other models."""
    await tx.run("delete_other_vectors", thread_id=thread_id, model=model)


async def candidates(
    tx: Transaction, scope: Scope, model: str, vector: NDArray[np.float32], count: int
) -> list[Candidate]:
    """The entries in scope whose vectors may be nearest to `vector`: all of them, or as many as are sure to hold
    `count` that are; where there are very many, nearly sure."""
    asked: dict[str, Any] = {
        "user_id": scope.user_id,
        "thread_id": scope.thread_id,
        "agent_id": scope.agent_id,
        "model": model,
        "dims": len(vector),
    }
    [held] = await tx.fetch("count_vectors", **asked)
    query: str = "select_near_vectors"
    if held["indexed"] and int(held["vectors"]) > EXACT and len(vector) in INDEXED:
        await tx.run("search_on")
        query = _indexed(len(vector))
    rows = await tx.fetch(query, **asked, numbers=_told(vector), limit=count + _MORE)
    return [Candidate(row["thread_id"], int(row["seq"]), _numbers(row, len(vector))) for row in rows]


def _indexed(dims: int) -> Sql:
    """The query that the index for vectors of so many dimensions answers: it must say the number itself."""
    return Sql(queries("postgres")["select_near_vectors_indexed"].replace("1536", str(dims)))


def _told(vector: NDArray[np.float32]) -> str:
    """A vector as PostgreSQL reads it; nine digits tell any number of 32 bits."""
    return f"[{','.join(f'{number:.9g}' for number in vector)}]"


def _numbers(row: Row, dims: int) -> NDArray[np.float32]:
    """PostgreSQL sends two counts of 16 bits and the numbers, the highest byte first."""
    data = row["embedding"]
    found: NDArray[np.float32] = (
        np.frombuffer(data, "<f4") if len(data) == 4 * dims else np.frombuffer(data, ">f4", -1, 4).astype(np.float32)
    )
    return found
