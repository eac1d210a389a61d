"""Topics of stretches of threads, and their sum in document 004's `memory_topics`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from longthread.model.thread import Scope
from longthread.store.driver import Transaction

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
