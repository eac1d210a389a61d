"""Memories: their rows, source entries, and the runs that used them."""

from __future__ import annotations

import json
import uuid
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from longthread.errors import MemoryNotFound
from longthread.model.memory import Memory, MemorySource, MemoryType, Origin, Statement, Use, Used
from longthread.store import log
from longthread.store.driver import Row, Transaction, one
from longthread.store.rows import decoder

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

SAID = "2:"
"""The prefix of a statement's current hash. Other hashes follow an older rule, or belong to former words; they are
replaced when their owner's next memory is stored."""


@dataclass(frozen=True, slots=True)
class Owner:
    """An owner of memories: a user with one agent, or with all."""

    user_id: str
    agent_id: str | None = None


@dataclass(frozen=True, slots=True)
class MemoryTerms:
    """A memory's index: a hash of its statement, and its terms in `form`."""

    said: str
    form: str
    words: int
    terms: bytes


@dataclass(frozen=True, slots=True)
class Candidate:
    """A memory for search, said at `said_at` in UTC. Without `form`, its terms are unknown."""

    id: str
    content: str
    type: MemoryType
    importance: float
    said_at: datetime
    form: str
    words: int
    terms: bytes
    embedded: bool


async def find(tx: Transaction, memory_id: str, *, user_id: str, agent_id: str | None = None) -> Memory:
    """Return a user's memory, with one agent or any. Raises `MemoryNotFound`, also for another user's."""
    row = await one(tx, "select_memory", id=_parse_id(memory_id), user_id=user_id)
    if row is None or (agent_id is not None and str(row["agent_id"]) != agent_id):
        raise MemoryNotFound(memory=memory_id)
    return _memory(row)


async def that_begin(tx: Transaction, prefix: str, *, user_id: str, limit: int = 2) -> list[str]:
    """Return a user's memory ids with this prefix, expired ones too."""
    if not prefix.strip():
        return []
    rows = await tx.fetch("select_memories_that_begin", prefix=prefix.strip().lower(), user_id=user_id, limit=limit)
    return [str(row["id"]) for row in rows]


async def list_(
    tx: Transaction, owner: Owner, *, type_: MemoryType | None = None, limit: int = 50, now: str | None = None
) -> list[Memory]:
    """Return a user's unexpired memories, the most important first, then the newest."""
    rows = await tx.fetch(
        "select_memories",
        user_id=owner.user_id,
        agent_id=owner.agent_id,
        memory_type=type_,
        limit=limit,
        now=now or log.now(),
    )
    return [_memory(row) for row in rows]


async def that_says(tx: Transaction, owner: Owner, said: str) -> Row | None:
    """Return the `id`, `session_id`, `source_deleted_at` and `content` of the memory with this hash, locked in the
    transaction."""
    return await one(tx, "select_memory_that_says", user_id=owner.user_id, agent_id=owner.agent_id, said=said)


async def said_otherwise(tx: Transaction, owner: Owner) -> list[tuple[str, str]]:
    """Return an owner's memories whose hash is outdated, as (id, content)."""
    asked = {"user_id": owner.user_id, "agent_id": owner.agent_id}
    rows = await tx.fetch("select_memories_said_otherwise", form=SAID, **asked)
    return [(str(row["id"]), str(row["content"])) for row in rows]


async def put_said(tx: Transaction, memory_id: str, said: str) -> None:
    """Set a memory's hash, unless another of its owner has the same."""
    await tx.run("put_memory_said", id=memory_id, said=said)


async def make_agent(tx: Transaction, agent_id: str) -> None:
    """Ensure that this agent exists."""
    await tx.run("insert_memory_agent", id=agent_id)


async def any_of(tx: Transaction, user_id: str) -> bool:
    """Return whether a user has memories, expired ones too."""
    return await one(tx, "select_any_memory", user_id=user_id) is not None


async def count(tx: Transaction, owner: Owner, *, now: str | None = None) -> int:
    """Count an owner's unexpired memories."""
    [row] = await tx.fetch("count_memories", user_id=owner.user_id, agent_id=owner.agent_id, now=now or log.now())
    return int(row["memories"])


async def insert(tx: Transaction, owner: Owner, memory_id: str, statement: Statement, indexed: MemoryTerms) -> bool:
    """Insert a memory; False if another transaction has just inserted the same statement."""
    written = await tx.run(
        "insert_memory",
        id=memory_id,
        user_id=owner.user_id,
        agent_id=owner.agent_id,
        said=indexed.said,
        created_at=log.now(),
        **_values(statement, indexed),
    )
    return written > 0


async def update(tx: Transaction, memory_id: str, statement: Statement, indexed: MemoryTerms) -> None:
    """Update a memory with a new statement and its index."""
    await tx.run("update_memory", id=memory_id, said_at=log.now(), **_values(statement, indexed))


async def edit(tx: Transaction, memory_id: str, statement: Statement, indexed: MemoryTerms) -> None:
    """Set all of a memory as a person says; with other words it is no thread's any more."""
    values = _values(statement, indexed)
    del values["session_id"]
    await tx.run("edit_memory", id=memory_id, said_at=log.now(), **values)


def _values(statement: Statement, indexed: MemoryTerms) -> dict[str, Any]:
    expires = statement.expires_at
    return {
        "session_id": statement.source.thread_id if statement.source else None,
        "content": statement.content,
        "memory_type": statement.type,
        "importance": None if statement.importance is None else float(statement.importance),
        "expires_at": expires.astimezone(UTC).isoformat(timespec="microseconds") if expires else None,
        "form": indexed.form,
        "words": indexed.words,
        "terms": indexed.terms,
    }


async def add_source(tx: Transaction, memory_id: str, source: MemorySource, content: str) -> None:
    """Store a thread's entries as a memory's source. The caller has locked the thread in this transaction."""
    there = await one(tx, "select_memory_source", memory_id=memory_id, thread_id=source.thread_id)
    seqs = sorted({*source.seqs, *(json.loads(there["seqs"]) if there else ())})
    await tx.run(
        "put_memory_source",
        memory_id=memory_id,
        thread_id=source.thread_id,
        seqs=json.dumps(seqs, separators=(",", ":")),
        content=content,
        said_at=log.now(),
        origin=None if source.origin is None else json.dumps(source.origin.to_json(), ensure_ascii=False),
    )


async def join_sources(tx: Transaction, memory_id: str) -> None:
    """Note that a memory was made of the words of all its threads together: it goes with the first of them."""
    await tx.run("join_memory_sources", memory_id=memory_id)


async def forget_said(tx: Transaction, thread_id: str, seqs: Collection[int]) -> int:
    """Delete the memories that come from any of these entries of a locked thread; return how many.

    What another thread has said too stays, in that one's words; not what was made of both together.
    """
    count = 0
    for row in await tx.fetch("select_sources_of_thread", thread_id=thread_id):
        if not set(seqs).isdisjoint(json.loads(row["seqs"])):
            at = {"thread_id": thread_id, "memory_id": row["memory_id"]}
            count += await tx.run("delete_joint_memories", **at, user_id=row["user_id"])
            await tx.run("rehome_memories", **at, user_id=row["user_id"])
            count += await tx.run("delete_memory_of_thread", **at)
            await tx.run("delete_memory_source", **at)
    return count


async def sources(tx: Transaction, memory_id: str, *, user_id: str) -> list[MemorySource]:
    """Return a memory's source entries, the earliest thread first."""
    rows = await tx.fetch("select_memory_sources", id=_parse_id(memory_id), user_id=user_id)
    return [MemorySource(row["session_id"], tuple(json.loads(row["seqs"])), _origin(row)) for row in rows]


async def sources_of(tx: Transaction, memory_ids: Sequence[str], *, user_id: str) -> dict[str, list[MemorySource]]:
    """Return the source entries of a user's memories, by memory."""
    rows = await tx.fetch("select_sources_of_memories", ids=json.dumps(list(memory_ids)), user_id=user_id)
    found: dict[str, list[MemorySource]] = {}
    for row in rows:
        source = MemorySource(row["session_id"], tuple(json.loads(row["seqs"])), _origin(row))
        found.setdefault(str(row["memory_id"]), []).append(source)
    return found


async def said_in(tx: Transaction, thread_id: str, *, user_id: str) -> list[Memory]:
    """Return the user's memories that a thread has said, the most important first."""
    return [_memory(row) for row in await tx.fetch("select_memories_said", thread_id=thread_id, user_id=user_id)]


async def of_threads(tx: Transaction, thread_ids: Sequence[str], *, user_id: str) -> list[str]:
    """Return the ids of the user's memories that would be forgotten with these threads: no other thread has said them,
    and no person has entered them."""
    threads = json.dumps(list(thread_ids))
    return [row["id"] for row in await tx.fetch("select_memories_of_threads", threads=threads, user_id=user_id)]


async def used_in(tx: Transaction, thread_id: str, *, user_id: str) -> list[Memory]:
    """Return the user's memories that a thread's runs were given, or found, the most important first."""
    return [_memory(row) for row in await tx.fetch("select_memories_used", thread_id=thread_id, user_id=user_id)]


async def delete(tx: Transaction, memory_id: str, *, user_id: str) -> None:
    """Delete a memory with all its data. Raises `MemoryNotFound`, also for another user's."""
    if not await tx.run("delete_memory", id=_parse_id(memory_id), user_id=user_id):
        raise MemoryNotFound(memory=memory_id)


async def delete_expired(tx: Transaction, *, user_id: str | None = None, now: str | None = None) -> int:
    """Delete expired memories, of one user or all; return how many."""
    return await tx.run("delete_expired_memories", user_id=user_id, now=now or log.now())


async def count_expired(tx: Transaction, *, user_id: str | None = None, now: str) -> int:
    """Count the memories, of one user or all, that had expired at a time."""
    [row] = await tx.fetch("count_expired_memories", user_id=user_id, now=now)
    return int(row["memories"])


async def delete_if_expired(tx: Transaction, owner: Owner, said: str) -> None:
    """Delete the memory with this hash if it has expired, so that it can be stored as new."""
    await tx.run("delete_memory_that_says", user_id=owner.user_id, agent_id=owner.agent_id, said=said, now=log.now())


async def candidates(tx: Transaction, owner: Owner) -> list[Candidate]:
    """Return all searchable memories, ordered by id."""
    rows = await tx.fetch("select_memory_terms", user_id=owner.user_id, agent_id=owner.agent_id, now=log.now())
    return [_candidate(row) for row in rows]


async def nearest(tx: Transaction, owner: Owner, model: str, vector: NDArray[np.float32]) -> list[tuple[str, float]]:
    """Return all memories that have a vector, with their cosines to a vector of length 1, nearest first."""
    from longthread.store.vectors import vector_text  # numpy: only with an embedder

    rows = await tx.fetch(
        "select_near_memories",
        user_id=owner.user_id,
        agent_id=owner.agent_id,
        model=model,
        dims=len(vector),
        text=vector_text(vector),
        now=log.now(),
    )
    found = sorted((-_cosine(row, vector), str(row["id"])) for row in rows)
    return [(memory_id, -value) for value, memory_id in found]


def _cosine(row: Row, vector: NDArray[np.float32]) -> float:
    """Return a memory's cosine. PostgreSQL computes it, so that no vectors need be read."""
    from longthread.store.vectors import numbers

    found = row["cosine"] if row["numbers"] is None else numbers(row["numbers"], len(vector)) @ vector
    return round(float(found), 5)


async def without_vector(
    tx: Transaction, model: str, *, user_id: str, after: str = "", limit: int = 64
) -> list[tuple[str, str]]:
    """Return a user's next memories without a vector of a model, as (id, content)."""
    rows = await tx.fetch("select_memories_without_vector", user_id=user_id, model=model, after=after, limit=limit)
    return [(str(row["id"]), str(row["content"])) for row in rows]


async def put_vectors(tx: Transaction, model: str, rows: Iterable[tuple[str, str, NDArray[np.float32]]]) -> None:
    """Store vectors, as (id, content, vector). Memories that were deleted or changed are skipped."""
    from longthread.store.vectors import vector_text  # numpy: only with an embedder

    for memory_id, content, vector in rows:
        data = vector.astype("<f4").tobytes()
        await tx.run(
            "put_memory_vector", id=memory_id, content=content, model=model, data=data, text=vector_text(vector)
        )


async def note_uses(tx: Transaction, thread_id: str, run_id: str, uses: Sequence[Used]) -> None:
    """Store which memories a run used; deleted ones are skipped. The caller has locked the thread."""
    for place, use in enumerate(uses):
        values = {"memory_id": use.memory_id, "how": use.how, "place": place, "shown": use.shown}
        await tx.later("put_memory_use", thread_id=thread_id, run_id=run_id, **values)


async def uses(tx: Transaction, thread_id: str, run_id: str, *, user_id: str | None) -> list[Used]:
    """Return the memories that a run used, in the order given; deleted ones are absent. `user_id`: the run's owner;
    None: access was checked."""
    rows = await tx.fetch("select_memory_uses", thread_id=thread_id, run_id=run_id, user_id=user_id)
    return [_decode_used(row) for row in rows]


def _parse_id(memory_id: str) -> str:
    """Return an id in the database's spelling; other texts are ids of no memory."""
    try:
        return str(uuid.UUID(memory_id))
    except ValueError:
        raise MemoryNotFound(memory=memory_id) from None


@decoder
def _memory(row: Row) -> Memory:
    return Memory(
        id=str(row["id"]),
        user_id=row["user_id"],
        agent_id=str(row["agent_id"]),
        content=row["content"],
        type=row["memory_type"] or "episodic",
        importance=_importance(row),
        created_at=_moment(row["created_at"]) or datetime.fromtimestamp(0, UTC),
        said_at=_said_at(row),
        expires_at=_moment(row["expires_at"]),
        thread_id=row["session_id"],
        origin=_origin(row),
        source_deleted_at=_moment(row["source_deleted_at"]),
    )


def _origin(row: Row) -> Origin | None:
    return Origin.from_json(json.loads(row["origin"])) if row["origin"] else None


@decoder
def _candidate(row: Row) -> Candidate:
    return Candidate(
        id=str(row["id"]),
        content=row["content"],
        type=row["memory_type"] or "episodic",
        importance=_importance(row),
        said_at=_said_at(row),
        form=row["form"] or "",
        words=int(row["words"] or 0),
        terms=row["terms"] or b"",
        embedded=bool(row["embedded"]),
    )


@decoder
def _decode_used(row: Row) -> Used:
    how: Use = row["how"]
    return Used(str(row["memory_id"]), how, row["shown"])


def _importance(row: Row) -> float:
    """Return the importance; rows written by other means may hold any value."""
    value = row["importance"]
    return 0.5 if value is None else min(1.0, max(0.0, float(value)))


def _said_at(row: Row) -> datetime:
    """Return when a memory's words were said last; rows written by other means may not say."""
    return _moment(row["said_at"]) or _moment(row["created_at"]) or datetime.fromtimestamp(0, UTC)


def _moment(text: str | None) -> datetime | None:
    if text is None:
        return None
    moment = datetime.fromisoformat(text)
    return moment.astimezone(UTC) if moment.tzinfo else moment.replace(tzinfo=UTC)
