"""A thread's summary, its mark and topics, for entries that are no longer in the window."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from longthread.model.fold import Compressed
from longthread.model.thread import Scope, leads_to
from longthread.store import incarnation
from longthread.store.driver import Row, Transaction, one
from longthread.store.rows import Decoding, dump, of_thread

UNWRITTEN = "unwritten"
"""Key next to a digest: the previous summary, from which a model is to continue; empty if there was none."""
WRITTEN = "written"
"""The model of a summary that a person or another program wrote: passes add to it, and never make it again."""
TOPICS = 20
"""Maximum number of listed topics per thread, the most mentioned first."""


@dataclass(frozen=True, slots=True)
class ThreadSummary:
    """A summary of `message_count` entries of a branch, from `first_seq` to `last_seq`, the mark.

    `model` wrote it; None: it is the digest, also stored as data. One that another program stored tells of what was
    before the first entry: its mark is 0. `topics` are read only for a view, a model summary's
    `digest` only for a pass. `unwritten`: a digest that a model must still replace.
    """

    summary: str
    message_count: int
    config_hash: str | None
    first_seq: int
    last_seq: int
    model: str | None = None
    digest: Mapping[str, Any] = field(default_factory=dict)
    topics: Sequence[str] = ()
    unwritten: bool = field(default=False, compare=False)


@dataclass(frozen=True, slots=True)
class Summarised:
    """A thread for a summary pass: its extent, its birth id (`birth_id`), and its stored summary."""

    user_id: str
    tip: int
    entry_count: int
    first_seq: int
    birth_id: str
    kept: ThreadSummary | None


async def find(tx: Transaction, thread_id: str) -> ThreadSummary | None:
    """Return a thread's summary with topics; None without a summary."""
    row = await one(tx, "select_summary", thread_id=thread_id, topics=TOPICS)
    return _decode_summary(row, thread_id) if row else None


async def find_thread(tx: Transaction, thread_id: str) -> Summarised | None:
    """Return what a pass needs of a thread; None if there is no such thread."""
    row = await one(tx, "select_pruning", thread_id=thread_id)
    if row is None:
        return None
    kept = _decode_summary(row, thread_id) if row["summary"] is not None else None
    with of_thread(thread_id):
        position = (int(row["tip"]), int(row["entry_count"]), int(row["thread_first"]))
    return Summarised(row["user_id"], *position, incarnation.birth_id(row["incarnation"]), kept)


def _decode_summary(row: Row, thread_id: str) -> ThreadSummary:
    with Decoding(thread_id, "the summary up to entry", row["last_seq"]):
        return ThreadSummary(
            summary=row["summary"],
            message_count=int(row["message_count"] or 0),
            config_hash=row["config_hash"],
            first_seq=int(row["first_seq"] or 1),
            last_seq=int(row["last_seq"] or 0),
            model=row["model"] if row["last_seq"] is not None else WRITTEN,
            digest=json.loads(row["digest"] or "{}"),
            topics=tuple(json.loads(row.get("topics") or "[]")),
            unwritten=bool(row["unwritten"]),
        )


async def find_compressed(tx: Transaction, thread_id: str) -> Compressed | None:
    """Return the state's view of a thread's summary; None if there is none."""
    row = await one(tx, "select_pruning", thread_id=thread_id)
    if row is None or row["summary"] is None:
        return None
    with of_thread(thread_id):
        last = None if row["last_seq"] is None else int(row["last_seq"])
        return Compressed(row["summary"], row["config_hash"], last, int(row["message_count"] or 0))


async def save(tx: Transaction, thread_id: str, kept: ThreadSummary) -> None:
    """Replace a thread's summary. The caller has locked the thread in this transaction."""
    values = {name: getattr(kept, name) for name in _COLUMNS}
    digest = dump(kept.digest)
    await tx.run("save_summary", thread_id=thread_id, **values, digest=digest)


_COLUMNS = ("summary", "message_count", "config_hash", "first_seq", "last_seq", "model")


async def outdate(tx: Transaction, thread_id: str, seq: int, *, prompt: bool = False) -> None:
    """Empty a thread's summary and topics if they cover entry `seq`; the mark stays, and the next pass makes them
    again. The caller has locked the thread in this transaction. `prompt`: also for the system message that a branch
    begins with. No summary covers it, but other messages may change with it."""
    await tx.later("outdate_summary", thread_id=thread_id, seq=seq, prompt=int(prompt))
    await tx.later("delete_outdated_topics", thread_id=thread_id)
    await tx.later("delete_outdated_topic_spans", thread_id=thread_id)


async def drop(tx: Transaction, thread_id: str) -> None:
    """Delete a thread's summary, mark and topics; the next pass derives them again."""
    await tx.run("delete_summary", thread_id=thread_id)
    await drop_topics(tx, thread_id)


async def live_question(tx: Transaction, thread_id: str) -> int | None:
    """Return the entry that began the running or interrupted run."""
    row = await one(tx, "select_live_question", thread_id=thread_id)
    return int(row["question_seq"]) if row and row["question_seq"] is not None else None


async def is_behind(tx: Transaction, thread_id: str, *, mark: int, tip: int, first_seq: int) -> bool:
    """Return whether entry `mark` is on the branch that ends in `tip`. Deleted entries count as on it."""
    rows = await tx.fetch("select_entries_apart_between", thread_id=thread_id, after=mark, last=tip)
    return leads_to(mark, tip, {int(row["seq"]): int(row["parent_seq"]) for row in rows}, first_seq)


_LAST = 2**62
"""After every entry."""


@dataclass(frozen=True, slots=True)
class Span:
    """A topic of the entries `first` to `last`, its mentions, and the time of the last entry (ISO 8601, UTC)."""

    topic: str
    first: int
    last: int
    mentions: int
    seen_at: str


async def add_topics(tx: Transaction, thread_id: str, spans: Sequence[Span]) -> None:
    """Store topics of stretches, also with their entries' vectors, and replace existing ones. The caller has locked the
    thread in this transaction."""
    rows = [
        {
            "thread_id": thread_id,
            "topic": span.topic,
            "first_seq": span.first,
            "last_seq": span.last,
            "mentions": span.mentions,
            "seen_at": span.seen_at,
        }
        for span in spans
    ]
    await tx.run_all("insert_topic_span", rows)
    names = sorted({span.topic for span in spans})
    await tx.run_all("count_topic", [{"thread_id": thread_id, "topic": name} for name in names])
    if spans:
        about = {"first": min(span.first for span in spans), "last": max(span.last for span in spans)}
        await tx.run("tag_vectors", thread_id=thread_id, **about)


async def drop_topics(tx: Transaction, thread_id: str) -> None:
    """Delete a thread's topics, which can be derived again. The caller has locked the thread in this transaction."""
    await tx.run("delete_topic_spans", thread_id=thread_id)
    await tx.run("delete_topics_of_thread", thread_id=thread_id)
    await tx.run("tag_vectors", thread_id=thread_id, first=0, last=_LAST)


async def list_most_mentioned_topics(tx: Transaction, thread_id: str, limit: int) -> list[tuple[str, int]]:
    """Return a thread's topics with mentions, the most mentioned first, then the newest."""
    rows = await tx.fetch("select_topics", thread_id=thread_id, limit=limit)
    return [(row["topic"], int(row["mention_count"])) for row in rows]


async def list_topic_names(tx: Transaction, scope: Scope) -> list[str]:
    """Return the names of all topics in scope."""
    rows = await tx.fetch(
        "select_topic_names", user_id=scope.user_id, thread_id=scope.thread_id, agent_id=scope.agent_id
    )
    return [row["topic"] for row in rows]


async def find_topic_spans(tx: Transaction, scope: Scope, topic: str) -> dict[str, list[Span]]:
    """Return a topic's stretches in scope, by thread, in entry order."""
    asked = {"user_id": scope.user_id, "thread_id": scope.thread_id, "agent_id": scope.agent_id}
    found: dict[str, list[Span]] = {}
    for row in await tx.fetch("select_topic_spans", **asked, topic=topic):
        span = Span(row["topic"], int(row["first_seq"]), int(row["last_seq"]), int(row["mentions"]), row["seen_at"])
        found.setdefault(row["thread_id"], []).append(span)
    return found
