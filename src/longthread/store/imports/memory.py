"""Document 004's tables next to LangGraph's checkpoints: labels, summaries, chunks with vectors, and topics. See also
`longthread.langgraph.imports.checkpoints`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from longthread.errors import StoreError
from longthread.store.imports.extracted import ImportReport, Summary
from longthread.store.imports.foreign import Foreign
from longthread.store.imports.foreign_rows import decoded, floats, has, moment, moment_or_none, rows, storable, values

_NEEDED: Mapping[str, tuple[str, ...]] = {
    "thread_activity": ("thread_id", "label"),
    "conversation_summaries": ("thread_id", "summary"),
    "memory_vectors": ("id", "thread_id", "chunk"),
    "memory_topics": ("thread_id", "topic"),
}
TABLES = frozenset(_NEEDED)


@dataclass(frozen=True, slots=True)
class MemoryChunk:
    """A piece of a conversation. `vector` has little-endian 32-bit floats."""

    id: str
    text: str
    topics: Sequence[str]
    vector: bytes | None
    at: str


@dataclass(frozen=True, slots=True)
class MentionedTopic:
    """A topic with its number of mentions, and the time of the last."""

    name: str
    mentions: int
    at: str


@dataclass(slots=True)
class Beside:
    """A thread's data in these tables."""

    thread_id: str
    label: str | None = None
    active_at: str | None = None
    summary: Summary | None = None
    holds: Counter[str] = field(default_factory=Counter)
    chunks: list[MemoryChunk] = field(default_factory=list)
    topics: list[MentionedTopic] = field(default_factory=list)


def fits(foreign: Foreign) -> bool:
    return any(has(foreign, name, *columns) for name, columns in _NEEDED.items())


async def ids(foreign: Foreign) -> list[str]:
    """Return the thread ids in any of the tables."""
    found: dict[str, None] = {}
    for name in _present(foreign):
        found |= dict.fromkeys(await values(foreign, name, "thread_id"))
    return list(found)


async def beside(foreign: Foreign, thread_id: str, report: ImportReport) -> Beside | None:
    """Return a thread's data; None if it is unreadable."""
    taken = Beside(thread_id)
    try:
        for name in _present(foreign):
            for row in await rows(foreign, name, thread_id=thread_id):
                taken.holds[f"rows of {name}"] += 1
                _TAKE[name](taken, row)
    except StoreError as error:
        report.left.append(f"labels, summaries and topics of thread {thread_id}: {error.reason}")
        return None
    report.there.update(taken.holds)
    taken.chunks.sort(key=lambda chunk: (chunk.at, chunk.id))
    return taken


def _present(foreign: Foreign) -> list[str]:
    return [name for name, columns in _NEEDED.items() if has(foreign, name, *columns)]


def _activity(taken: Beside, row: Mapping[str, Any]) -> None:
    taken.label = storable(row["label"])
    taken.active_at = moment_or_none(row.get("last_active_at"))


def _summary(taken: Beside, row: Mapping[str, Any]) -> None:
    count = int(row.get("message_count") or 0)
    taken.summary = Summary(storable(row["summary"]), count, None, moment_or_none(row.get("updated_at")))


def _vector(taken: Beside, row: Mapping[str, Any]) -> None:
    try:
        topics = decoded(row.get("topics") or "[]")
    except ValueError:
        topics = [row["topics"]]
    named = [str(each) for each in topics if each is not None] if isinstance(topics, list) else [str(topics)]
    vector, at = floats(row.get("embedding")), moment(row.get("created_at"))
    taken.chunks.append(MemoryChunk(str(row["id"]), storable(row["chunk"]), storable(named), vector, at))


def _topic(taken: Beside, row: Mapping[str, Any]) -> None:
    mentions = row.get("mention_count")
    count = 1 if mentions is None else int(mentions)
    taken.topics.append(MentionedTopic(storable(row["topic"]), count, moment(row.get("last_seen_at"))))


_TAKE = {
    "thread_activity": _activity,
    "conversation_summaries": _summary,
    "memory_vectors": _vector,
    "memory_topics": _topic,
}
