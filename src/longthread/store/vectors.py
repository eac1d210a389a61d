"""Vectors of entries in document 004's `memory_vectors`: pgvector on PostgreSQL, bytes on SQLite.

Each block of entries has signatures, written with its vectors, which select candidates so that few vectors are read.
A store needs pgvector for its first vector, and not before (`require_vectors`).
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from longthread.errors import StoreError, StoreReadOnly
from longthread.model.thread import Scope
from longthread.store import incarnation
from longthread.store.driver import Driver, QueryCall, Row, Transaction, one
from longthread.store.queries import Sql, queries
from longthread.store.schema import LOCK, schema
from longthread.store.signatures import FloatArray, Signatures


def vector_text(vector: NDArray[np.float32]) -> str:
    """Return a vector as PostgreSQL's text; nine digits identify a 32-bit float."""
    return f"[{','.join(f'{number:.9g}' for number in vector)}]"


def numbers(data: bytes, dims: int) -> NDArray[np.float32]:
    """Decode a vector. PostgreSQL sends two 16-bit counts, then big-endian numbers."""
    found: NDArray[np.float32] = (
        np.frombuffer(data, "<f4") if len(data) == 4 * dims else np.frombuffer(data, ">f4", -1, 4).astype(np.float32)
    )
    return found


_ADVICE = "Vectors are stored because an embedder is configured: without one, nothing needs pgvector."


async def require_vectors(store: Driver) -> None:
    """Let a store have vectors: on PostgreSQL, add pgvector and what depends on it where they are missing. Where they
    are not, this is one small query.

    Raises:
        StoreError: that is not possible; the message says why, and what to do.
    """
    if store.dialect != "postgres":
        return
    async with store.reading() as tx:
        has = await _has(tx)
    if not has:
        try:
            async with store.writing() as tx:
                await tx.fetch(Sql(f"SELECT pg_advisory_xact_lock({LOCK})"))
                if not await _has(tx):
                    await tx.run(Sql(schema("postgres", "pgvector")))
                    await tx.run(Sql(schema("postgres", "vectors")))
        except StoreReadOnly:
            raise
        except StoreError as error:
            raise StoreError(reason=f"{error.reason} {_ADVICE}") from error


async def _has(tx: Transaction) -> bool:
    [row] = await tx.fetch("count_vector_columns")
    return bool(row["found"])


BLOCK = 1024
"""Entries per value of signatures; blocks start at its multiples."""

INDEXED = frozenset({384, 512, 768, 1024, 1536})
"""Dimensions for which PostgreSQL has an index."""
_FEW_THREADS = 8
"""Up to this many threads are queried one by one, which costs less per vector."""


@dataclass(frozen=True, slots=True)
class Vector:
    """An entry's vector: little-endian 32-bit floats, and the text that it embeds."""

    id: str
    seq: int
    chunk: str
    data: bytes


@dataclass(frozen=True, slots=True)
class Candidates:
    """Entries whose vectors may be near: threads, numbers, and one vector row each."""

    places: Sequence[tuple[str, int]]
    vectors: FloatArray

    def where(self, counts: Callable[[str, int], bool]) -> Candidates:
        """Return the candidates that `counts` accepts."""
        some = [at for at, place in enumerate(self.places) if counts(*place)]
        return Candidates([self.places[at] for at in some], self.vectors[some])


NONE = Candidates([], np.zeros((0, 0), np.float32))


@dataclass(frozen=True, slots=True)
class BlockHead:
    """The identity and stamp of a block's signatures: equal if they are unchanged."""

    thread_id: str
    block: int
    stamp: str


@dataclass(frozen=True, slots=True)
class VectorMark:
    """A thread's progress with a model's vectors, and its extent at that time.

    Args:
        first_seq, entry_count, birth_id: the thread's.
        last_seq: entries up to this one have their vectors; None: not started.
        signed_from: vectors from this entry on have signatures; None: not checked.
        refused: entries that the embedder refused.
        others: whether the thread may have vectors of other models.
    """

    first_seq: int
    entry_count: int
    birth_id: str
    last_seq: int | None
    signed_from: int | None
    refused: int
    others: bool

    @property
    def after(self) -> int:
        """The last entry that is known to be done."""
        return self.last_seq or 0

    @property
    def is_behind(self) -> bool:
        """Whether entries may lack vectors."""
        return self.last_seq is None or self.last_seq < self.entry_count

    @property
    def is_untidy(self) -> bool:
        """Whether signatures may be missing, as after retention, or other models' vectors exist."""
        return self.others or self.signed_from is None or self.signed_from < self.first_seq


async def find_mark(tx: Transaction, thread_id: str, model: str) -> VectorMark | None:
    """Return a thread's progress with a model; None if there is no such thread."""
    row = await one(tx, "select_embedded", thread_id=thread_id, model=model)
    if row is None:
        return None
    last, signed_from = (None if row[name] is None else int(row[name]) for name in ("last_seq", "signed_from"))
    of_thread = int(row["first_seq"]), int(row["entry_count"]), incarnation.birth_id(row["incarnation"])
    return VectorMark(*of_thread, last, signed_from, int(row["refused"]), bool(row["others"]))


async def behind(tx: Transaction, scope: Scope, model: str) -> list[str]:
    """Return the threads in scope that may lack vectors of a model, the last active first."""
    rows = await tx.fetch("select_threads_behind", user_id=scope.user_id, agent_id=scope.agent_id, model=model)
    return [row["thread_id"] for row in rows]


async def move_mark(tx: Transaction, thread_id: str, model: str, last_seq: int, refused: int) -> None:
    """Store the progress. The caller has locked the thread in this transaction and writes the vectors in it."""
    await tx.run("write_embedded", thread_id=thread_id, model=model, last_seq=last_seq, refused=refused)


async def mark_signed(tx: Transaction, thread_id: str, model: str, signed_from: int) -> None:
    """Store that vectors from an entry on have signatures. The caller has locked the thread in this transaction."""
    await tx.run("sign_embedded", thread_id=thread_id, model=model, signed_from=signed_from)


async def missing_count(tx: Transaction, thread_id: str, model: str, *, after: int) -> int:
    """Count the entries after `after` that lack a vector of a model."""
    [row] = await tx.fetch("count_missing_vectors", thread_id=thread_id, model=model, after=after)
    return int(row["missing"])


async def missing(tx: Transaction, thread_id: str, model: str, *, after: int, limit: int) -> list[int]:
    """Return the next entries after `after` that lack one."""
    rows = await tx.fetch("select_missing_vectors", thread_id=thread_id, model=model, after=after, limit=limit)
    return [int(row["seq"]) for row in rows]


async def write(tx: Transaction, thread_id: str, model: str, rows: Sequence[Vector]) -> None:
    """Insert vectors and their signatures; existing vectors stay. The caller has locked the thread in this
    transaction."""
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
    """Add signatures to a block; with none yet, or another center, recompute all."""
    row = await one(tx, "select_signature", thread_id=thread_id, model=model, block=block)
    there = Signatures.unpack(row["data"], block * BLOCK) if row else None
    more = there.with_new(list(new), np.array(list(new.values()))) if there else None
    if more is None:
        await sign_block(tx, thread_id, model, block)
    else:
        await _write_block(tx, thread_id, model, block, more)


async def sign_block(tx: Transaction, thread_id: str, model: str, block: int) -> None:
    """Compute a block's signatures from its vectors. The caller has locked the thread in this transaction."""
    found = await between(tx, model, [(thread_id, block * BLOCK, block * BLOCK + BLOCK - 1)])
    if found.places:
        seqs = [seq for _, seq in found.places]
        order = np.argsort(seqs)
        made = Signatures.of([seqs[at] for at in order], found.vectors[order])
        await _write_block(tx, thread_id, model, block, made)


async def _write_block(tx: Transaction, thread_id: str, model: str, block: int, made: Signatures) -> None:
    data = made.pack(block * BLOCK)
    stamp = f"2:{hashlib.blake2b(data, digest_size=12).hexdigest()}"
    await tx.run("write_signature", thread_id=thread_id, model=model, block=block, stamp=stamp, data=data)


async def unsigned_blocks(tx: Transaction, thread_id: str, model: str, mark: VectorMark | None) -> list[int]:
    """Return the blocks with vectors but no signatures, as after an import or deletion. If the mark says that all had
    them, only the thread's first block is read."""
    before = 2**62 if mark is None or mark.signed_from is None else (mark.first_seq // BLOCK + 1) * BLOCK
    rows = await tx.fetch("select_unsigned_blocks", thread_id=thread_id, model=model, size=BLOCK, before=before)
    return [int(row["block"]) for row in rows]


async def stamps(tx: Transaction, scope: Scope, model: str) -> str:
    """Return a text that changes with the signatures in scope: their places and stamps."""
    query, values = stamps_asked(scope, model)
    [row] = await tx.fetch(query, **values)
    return str(row["stamps"])


def stamps_asked(scope: Scope, model: str) -> QueryCall:
    """Return the query of `stamps`."""
    return _of(scope, "select_signature_stamps"), {"model": model, **_bind_scope(scope)}


async def heads(tx: Transaction, scope: Scope, model: str) -> list[BlockHead]:
    """Return the signed blocks in scope, ordered by thread and entry."""
    rows = await tx.fetch(_of(scope, "select_signature_heads"), model=model, **_bind_scope(scope))
    return [BlockHead(row["thread_id"], int(row["block"]), row["stamp"]) for row in rows]


async def signatures(tx: Transaction, scope: Scope, model: str, first: int) -> dict[BlockHead, Signatures]:
    """Return the signatures of the blocks in scope from number `first` on."""
    rows = await tx.fetch(_of(scope, "select_signatures"), model=model, first=first, **_bind_scope(scope))
    return {
        (head := BlockHead(row["thread_id"], int(row["block"]), row["stamp"])): Signatures.unpack(
            row["data"], head.block * BLOCK
        )
        for row in rows
    }


def _of(scope: Scope, query: str) -> str:
    return query if scope.thread_id is not None else f"{query}_of_user"


def _bind_scope(scope: Scope) -> dict[str, Any]:
    more = {"agent_id": scope.agent_id} if scope.thread_id is None else {"thread_id": scope.thread_id}
    return {"user_id": scope.user_id, **more}


async def delete_others(tx: Transaction, thread_id: str, model: str) -> None:
    """Delete other models' vectors. The caller has locked the thread in this transaction."""
    await tx.run("delete_other_vectors", thread_id=thread_id, model=model)
    await tx.run("delete_other_signatures", thread_id=thread_id, model=model)
    await tx.run("delete_other_embedded", thread_id=thread_id, model=model)


async def between(tx: Transaction, model: str, ranges: Iterable[tuple[str, int, int]]) -> Candidates:
    """Return the vectors in ranges (thread, first, last), unordered. The caller checks access."""
    query, values = _between_asked(model, ranges)
    return _candidates(await tx.fetch(query, **values))


def _between_asked(model: str, ranges: Iterable[tuple[str, int, int]]) -> QueryCall:
    asked = json.dumps([list(each) for each in ranges], ensure_ascii=False)
    return "select_vectors_between", {"model": model, "ranges": asked}


async def at(tx: Transaction, asked: Sequence[QueryCall]) -> Candidates:
    """Return the vectors that `at_asked` asks for, unordered. The caller checks access."""
    found = await tx.fetch_all(*asked)
    return _candidates([row for rows in found for row in rows])


def at_asked(model: str, places: Sequence[tuple[str, int]]) -> list[QueryCall]:
    """Return the queries for the vectors of entries, by thread and number."""
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
    """Decode vectors of one model, which have equal lengths."""
    if not rows:
        return NONE
    data = b"".join([row["embedding"] for row in rows])
    numbers = np.frombuffer(data, ">f4" if rows[0]["sent"] else "<f4").reshape(len(rows), -1)
    if rows[0]["sent"]:
        numbers = numbers[:, 1:]  # Before them stand two counts of 16 bits.
    places = [(row["thread_id"], int(row["seq"])) for row in rows]
    return Candidates(places, np.ascontiguousarray(numbers, dtype=np.float32))


async def search_index(tx: Transaction, scope: Scope, model: str, vector: FloatArray, count: int) -> Candidates | None:
    """Return the `count` nearest vectors in scope by the database's own index; None if it has none. The index covers
    all users and is scanned until enough are in scope."""
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
    """Decode a vector: PostgreSQL sends two 16-bit counts, then big-endian numbers."""
    if row["sent"]:
        return np.frombuffer(row["embedding"], ">f4", -1, 4).astype(np.float32)
    found: FloatArray = np.frombuffer(row["embedding"], "<f4")
    return found
