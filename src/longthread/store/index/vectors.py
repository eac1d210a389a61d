"""The vectors of entries, in document 004's `memory_vectors`: pgvector on PostgreSQL, bytes on SQLite.

Beside them are their signatures, in one value for each block of entries. They say which vectors may be near, so that
few have to be read. They follow from the vectors, and are written with them.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from longthread.store import incarnation
from longthread.store.driver import QueryCall, Row, Transaction, one
from longthread.store.index.numbers import vector_text
from longthread.store.index.recall import Scope
from longthread.store.index.signatures import FloatArray, Signatures
from longthread.store.queries import Sql, queries

BLOCK = 1024
"""Entries whose signatures are one value: those from a multiple of it on."""

INDEXED = frozenset({384, 512, 768, 1024, 1536})
"""Dimensions that PostgreSQL has an index for."""
_FEW_THREADS = 8
"""So many threads are asked one by one, which takes less for each vector than to ask for all at once."""


@dataclass(frozen=True, slots=True)
class Vector:
    """A vector of an entry: its numbers with 32 bits each, the lowest byte first, and the text that it was made of."""

    id: str
    seq: int
    chunk: str
    data: bytes


@dataclass(frozen=True, slots=True)
class Candidates:
    """Entries whose vectors may be near: their threads and numbers, and of each its vector, one row each."""

    places: Sequence[tuple[str, int]]
    vectors: FloatArray

    def where(self, counts: Callable[[str, int], bool]) -> Candidates:
        """Those that count."""
        some = [at for at, place in enumerate(self.places) if counts(*place)]
        return Candidates([self.places[at] for at in some], self.vectors[some])


NONE = Candidates([], np.zeros((0, 0), np.float32))


@dataclass(frozen=True, slots=True)
class BlockHead:
    """A block's signatures, without them: what tells whether they are still the same."""

    thread_id: str
    block: int
    stamp: str


@dataclass(frozen=True, slots=True)
class VectorMark:
    """How far a thread has vectors of a model, and the thread as it was then.

    Args:
        first_seq, entry_count, born: the thread's.
        last_seq: up to this entry all that can have a vector do; None: nobody has begun.
        signed_from: from this entry on all vectors have signatures; None: nobody has looked.
        refused: entries that the embedder did not take.
        others: whether the thread may have vectors of other models.
    """

    first_seq: int
    entry_count: int
    born: str
    last_seq: int | None
    signed_from: int | None
    refused: int
    others: bool

    @property
    def after(self) -> int:
        """The entry behind which vectors may be missing."""
        return self.last_seq or 0

    @property
    def is_behind(self) -> bool:
        """Whether entries may be without vectors."""
        return self.last_seq is None or self.last_seq < self.entry_count

    @property
    def is_untidy(self) -> bool:
        """Whether signatures may be missing, or vectors of other models be there. Retention takes the signatures of the
        block that it ends in."""
        return self.others or self.signed_from is None or self.signed_from < self.first_seq


async def find_mark(tx: Transaction, thread_id: str, model: str) -> VectorMark | None:
    """How far a thread has vectors of a model; None where there is no such thread."""
    row = await one(tx, "select_embedded", thread_id=thread_id, model=model)
    if row is None:
        return None
    last, signed_from = (None if row[name] is None else int(row[name]) for name in ("last_seq", "signed_from"))
    of_thread = int(row["first_seq"]), int(row["entry_count"]), incarnation.born(row["incarnation"])
    return VectorMark(*of_thread, last, signed_from, int(row["refused"]), bool(row["others"]))


async def behind(tx: Transaction, scope: Scope, model: str) -> list[str]:
    """The threads in a user's scope that may have entries without vectors of a model, the last active first."""
    rows = await tx.fetch("select_threads_behind", user_id=scope.user_id, agent_id=scope.agent_id, model=model)
    return [row["thread_id"] for row in rows]


async def move_mark(tx: Transaction, thread_id: str, model: str, last_seq: int, refused: int) -> None:
    """Note that a thread has vectors of a model up to an entry. For who has locked it in this transaction, in which the
    vectors are written."""
    await tx.run("write_embedded", thread_id=thread_id, model=model, last_seq=last_seq, refused=refused)


async def mark_signed(tx: Transaction, thread_id: str, model: str, signed_from: int) -> None:
    """Note that the vectors from an entry on have signatures. For who has locked the thread in this transaction."""
    await tx.run("sign_embedded", thread_id=thread_id, model=model, signed_from=signed_from)


async def missing_count(tx: Transaction, thread_id: str, model: str, *, after: int) -> int:
    """How many entries of a thread have no vector of a model, behind entry `after`."""
    [row] = await tx.fetch("count_missing_vectors", thread_id=thread_id, model=model, after=after)
    return int(row["missing"])


async def missing(tx: Transaction, thread_id: str, model: str, *, after: int, limit: int) -> list[int]:
    """The next entries that have none, behind entry `after`."""
    rows = await tx.fetch("select_missing_vectors", thread_id=thread_id, model=model, after=after, limit=limit)
    return [int(row["seq"]) for row in rows]


async def write(tx: Transaction, thread_id: str, model: str, rows: Sequence[Vector]) -> None:
    """Keep vectors, and their signatures. For who has locked the thread in this transaction; those that are there are
    left."""
    given = [
        {
            "id": row.id,
            "thread_id": thread_id,
            "seq": row.seq,
            "chunk": row.chunk,
            "model": model,
            "embedding": row.data,
            "numbers": vector_text(np.frombuffer(row.data, "<f4")),
        }
        for row in rows
    ]
    await tx.run_all("insert_vector", given)
    for block in sorted({row.seq // BLOCK for row in rows}):
        new = {row.seq: np.frombuffer(row.data, "<f4") for row in rows if row.seq // BLOCK == block}
        await _sign(tx, thread_id, model, block, new)


async def _sign(tx: Transaction, thread_id: str, model: str, block: int, new: Mapping[int, FloatArray]) -> None:
    """Add signatures to those of a block; where there are none, or too few for their center, all are made anew."""
    row = await one(tx, "select_signature", thread_id=thread_id, model=model, block=block)
    there = Signatures.unpacked(row["data"], block * BLOCK) if row else None
    more = there.with_new(list(new), np.array(list(new.values()))) if there else None
    if more is None:
        await sign_block(tx, thread_id, model, block)
    else:
        await _write_block(tx, thread_id, model, block, more)


async def sign_block(tx: Transaction, thread_id: str, model: str, block: int) -> None:
    """Make the signatures of a block from its vectors. For who has locked the thread in this transaction."""
    found = await between(tx, model, [(thread_id, block * BLOCK, block * BLOCK + BLOCK - 1)])
    if found.places:
        seqs = [seq for _, seq in found.places]
        order = np.argsort(seqs)
        made = Signatures.of([seqs[at] for at in order], found.vectors[order])
        await _write_block(tx, thread_id, model, block, made)


async def _write_block(tx: Transaction, thread_id: str, model: str, block: int, made: Signatures) -> None:
    data = made.packed(block * BLOCK)
    stamp = f"2:{hashlib.blake2b(data, digest_size=12).hexdigest()}"
    await tx.run("write_signature", thread_id=thread_id, model=model, block=block, stamp=stamp, data=data)


async def unsigned_blocks(tx: Transaction, thread_id: str, model: str, mark: VectorMark | None) -> list[int]:
    """The blocks of a thread that have vectors and no signatures: where they were imported, or some were deleted.

    Where the mark says that all were there once, only the block that the thread now begins in is looked at.
    """
    before = 2**62 if mark is None or mark.signed_from is None else (mark.first_seq // BLOCK + 1) * BLOCK
    rows = await tx.fetch("select_unsigned_blocks", thread_id=thread_id, model=model, size=BLOCK, before=before)
    return [int(row["block"]) for row in rows]


async def stamps(tx: Transaction, scope: Scope, model: str) -> str:
    """What tells whether the signatures in scope are still the same, all of them: their places and stamps."""
    query, values = stamps_asked(scope, model)
    [row] = await tx.fetch(query, **values)
    return str(row["stamps"])


def stamps_asked(scope: Scope, model: str) -> QueryCall:
    """What `stamps` asks the database."""
    return _of(scope, "select_signature_stamps"), {"model": model, **_asked(scope)}


async def heads(tx: Transaction, scope: Scope, model: str) -> list[BlockHead]:
    """The blocks in scope that have signatures, in the order of their threads and entries."""
    rows = await tx.fetch(_of(scope, "select_signature_heads"), model=model, **_asked(scope))
    return [BlockHead(row["thread_id"], int(row["block"]), row["stamp"]) for row in rows]


async def signatures(tx: Transaction, scope: Scope, model: str, first: int) -> dict[BlockHead, Signatures]:
    """The signatures of the blocks in scope from number `first` on."""
    rows = await tx.fetch(_of(scope, "select_signatures"), model=model, first=first, **_asked(scope))
    return {
        (head := BlockHead(row["thread_id"], int(row["block"]), row["stamp"])): Signatures.unpacked(
            row["data"], head.block * BLOCK
        )
        for row in rows
    }


def _of(scope: Scope, query: str) -> str:
    return query if scope.thread_id is not None else f"{query}_of_user"


def _asked(scope: Scope) -> dict[str, Any]:
    more = {"agent_id": scope.agent_id} if scope.thread_id is None else {"thread_id": scope.thread_id}
    return {"user_id": scope.user_id, **more}


async def delete_others(tx: Transaction, thread_id: str, model: str) -> None:
    """Delete the vectors of other models. For who has locked the thread in this transaction."""
    await tx.run("delete_other_vectors", thread_id=thread_id, model=model)
    await tx.run("delete_other_signatures", thread_id=thread_id, model=model)
    await tx.run("delete_other_embedded", thread_id=thread_id, model=model)


async def between(tx: Transaction, model: str, ranges: Iterable[tuple[str, int, int]]) -> Candidates:
    """The vectors of entries in ranges of (thread, first, last), in no order; of threads that the reader may read."""
    query, values = _between_asked(model, ranges)
    return _candidates(await tx.fetch(query, **values))


def _between_asked(model: str, ranges: Iterable[tuple[str, int, int]]) -> QueryCall:
    asked = json.dumps([list(each) for each in ranges], ensure_ascii=False)
    return "select_vectors_between", {"model": model, "ranges": asked}


async def at(tx: Transaction, asked: Sequence[QueryCall]) -> Candidates:
    """The vectors that `at_asked` asks for, in no order; of threads that the reader may read."""
    found = await tx.fetch_all(*asked)
    return _candidates([row for rows in found for row in rows])


def at_asked(model: str, places: Sequence[tuple[str, int]]) -> list[QueryCall]:
    """What asks the database for the vectors of entries, by their threads and numbers."""
    of_thread: dict[str, list[int]] = {}
    for thread_id, seq in places:
        of_thread.setdefault(thread_id, []).append(seq)
    if len(of_thread) > _FEW_THREADS:
        return [_between_asked(model, ((thread_id, seq, seq) for thread_id, seq in places))]
    return [
        ("select_vectors_at", {"thread_id": thread_id, "model": model, "seqs": json.dumps(seqs)})
        for thread_id, seqs in of_thread.items()
    ]


def _candidates(rows: Sequence[Row]) -> Candidates:
    """Vectors of one model: all of them have as many numbers."""
    if not rows:
        return NONE
    data = b"".join([row["embedding"] for row in rows])
    numbers = np.frombuffer(data, ">f4" if rows[0]["sent"] else "<f4").reshape(len(rows), -1)
    if rows[0]["sent"]:
        numbers = numbers[:, 1:]  # Before them stand two counts of 16 bits.
    places = [(row["thread_id"], int(row["seq"])) for row in rows]
    return Candidates(places, np.ascontiguousarray(numbers, dtype=np.float32))


async def indexed(tx: Transaction, scope: Scope, model: str, vector: FloatArray, count: int) -> Candidates | None:
    """The `count` vectors in scope that the database's own index says to be nearest; None where it has none.

    The index is over the vectors of all users: it goes on until it has found enough of those in scope.
    """
    [row] = await tx.fetch("has_vector_index")
    if not row["has"] or len(vector) not in INDEXED:
        return None
    await tx.run("search_on")
    # The query must say the number of dimensions itself, for each has an index of its own.
    query = Sql(queries("postgres")["select_near_vectors"].replace("1536", str(len(vector))))
    asked = {"user_id": scope.user_id, "thread_id": scope.thread_id, "agent_id": scope.agent_id}
    rows = await tx.fetch(query, **asked, model=model, numbers=vector_text(vector), limit=count)
    return _candidates(rows)


def numbers_of(row: Row) -> FloatArray:
    """PostgreSQL sends two counts of 16 bits and the numbers, the highest byte first."""
    if row["sent"]:
        return np.frombuffer(row["embedding"], ">f4", -1, 4).astype(np.float32)
    found: FloatArray = np.frombuffer(row["embedding"], "<f4")
    return found
