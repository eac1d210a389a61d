"""What is remembered of a user, and what is derived from a conversation: its summary, topics and memories."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Annotated, Self

from fastapi import APIRouter, Query, Response
from pydantic import BaseModel, ConfigDict, Field, model_validator
from typing_extensions import TypedDict

from longthread.errors import DefinitionNotFound, InvalidInput, MemoryNotFound, ThreadNotFound, TooManyMemories
from longthread.memory.forget import forget_memory
from longthread.memory.user_memories import LONGEST, STANDING
from longthread.model.memory import ANALYST, Memory, MemoryChanges, MemorySource, MemoryType, Statement
from longthread.model.thread import Scope
from longthread.runs.rights import granted_names
from longthread.server.answers import Timestamp
from longthread.server.fields import Flag, Name, PathSegment, PlainText, Time
from longthread.server.openapi import problems
from longthread.server.state import Caller, Granted, ProjectCaller, ServedDep
from longthread.store import log, memories, summaries
from longthread.store.driver import Transaction
from longthread.store.memories import Owner
from longthread.store.summaries import TOPICS


class MemoryEntries(TypedDict):
    """The messages of a conversation that a memory comes from, by their ids."""

    thread_id: str
    entries: list[str]


class MemoryView(TypedDict):
    """A memory. `pinned`: it is given to every run. `thread_id` is the conversation that it comes from, null where the
    user said it, or where that was deleted, at `source_deleted_at`. `read` names what a model had read before it
    remembered this, such as `run_sql q1 of demo`. At `said_at` its words were said last."""

    id: str
    type: MemoryType
    content: str
    importance: float
    pinned: bool
    agent: str
    thread_id: str | None
    source_deleted_at: Timestamp | None
    sources: list[MemoryEntries]
    read: str | None
    created_at: Timestamp
    said_at: Timestamp
    expires_at: Timestamp | None


class MemoryList(TypedDict):
    memories: list[MemoryView]
    warnings: list[str]


class SummaryView(TypedDict):
    """The summary of a conversation's messages from `first` to `last`, by their ids; null where one was deleted.
    `model` wrote it; null: it was made without one."""

    text: str
    messages: int
    first: str | None
    last: str | None
    model: str | None


class TopicSpan(TypedDict):
    first: str | None
    last: str | None


class TopicView(TypedDict):
    """A topic, how often it was mentioned, and in which stretches of messages."""

    topic: str
    mentions: int
    spans: list[TopicSpan]


class ConversationMemory(TypedDict):
    """What is derived from a conversation. `memories` are those that it `said`, and those that its runs `used`. If it
    is deleted with its memories, those `only_here` go, and those of the conversations below it."""

    thread_id: str
    summary: SummaryView | None
    topics: list[TopicView]
    memories: list[MemoryView]
    said: list[str]
    used: list[str]
    only_here: list[str]


router = APIRouter(prefix="/api", tags=["memories"])

MOST = 500
"""Memories of one answer."""
PINNED, UNPINNED = 1.0, 0.5
"""The importance that pinning gives a memory, and that taking it off gives."""

MemoryText = Annotated[Name, Field(max_length=LONGEST)]
Importance = Annotated[float, Field(ge=0, le=1, allow_inf_nan=False, strict=True)]


class NewMemory(BaseModel):
    """A statement to remember. `agent` names the agent whose it is; by default the analyst's."""

    model_config = ConfigDict(extra="forbid")

    content: MemoryText
    type: MemoryType | None = None
    importance: Importance | None = None
    expires_at: Time | None = None
    agent: Annotated[PlainText, Field(min_length=1, max_length=100)] | None = None


class MemoryBody(BaseModel):
    """Changes of a memory; omitted fields stay. A null `expires_at` removes the expiry. A pinned memory is given to
    every run: pinning sets its importance."""

    model_config = ConfigDict(
        extra="forbid", json_schema_extra={"minProperties": 1, "not": {"required": ["importance", "pinned"]}}
    )

    content: MemoryText | None = None
    type: MemoryType | None = None
    importance: Importance | None = None
    pinned: Flag | None = None
    expires_at: Time | None = None

    @model_validator(mode="after")
    def _says_something(self) -> Self:
        if not self.model_fields_set:
            raise ValueError("give at least one of content, type, importance, pinned, expires_at")
        if {"importance", "pinned"} <= self.model_fields_set:
            raise ValueError("give importance or pinned, not both")
        return self

    @property
    def changes(self) -> MemoryChanges:
        importance = self.importance
        if self.pinned is not None:
            importance = PINNED if self.pinned else UNPINNED
        never = "expires_at" in self.model_fields_set and self.expires_at is None
        return MemoryChanges(self.content, self.type, importance, self.expires_at, never_expires=never)


@router.get("/memories", responses=problems(reads=True))
async def list_memories(
    served: ServedDep,
    user: ProjectCaller,
    q: Annotated[PlainText, Query(max_length=4000)] = "",
    type_: Annotated[MemoryType | None, Query(alias="type")] = None,
    limit: Annotated[int, Query(ge=1, le=MOST)] = 100,
) -> MemoryList:
    """The user's memories that have not expired, the most important first; with `q`, those that say it, the best first.
    Each has the messages that it comes from."""
    service, owner, warnings = served.analyst.memories, Owner(user), list[str]()
    if q.strip():
        hits = await service.search(owner, q, k=limit)
        found, warnings = [hit.memory for hit in hits.hits if type_ in {None, hit.memory.type}], list(hits.warnings)
    else:
        found = await service.list_(owner, type_=type_, limit=limit)
    async with served.analyst.store.reading() as tx:
        return {"memories": await _views(tx, found, user), "warnings": warnings}


@router.post(
    "/memories", status_code=201, responses=problems(DefinitionNotFound, InvalidInput, TooManyMemories, body=True)
)
async def remember(served: ServedDep, user: ProjectCaller, granted: Granted, body: NewMemory) -> MemoryView:
    """Remember something. What says the same as a memory is that memory, said again by the user."""
    names = await granted_names(served.analyst.store, granted) if body.agent is not None else None
    agent = names.one("agent", body.agent).id if names is not None and body.agent is not None else ANALYST
    statement = Statement(body.content, body.type, body.importance, body.expires_at)
    stored = await served.analyst.memories.remember(Owner(user, agent), statement)
    served.analyst.memories.keep_up(user)
    return await _view(served, stored.memory, user)


@router.get("/memories/{memory_id}", responses=problems(MemoryNotFound, reads=True))
async def memory(served: ServedDep, user: ProjectCaller, memory_id: PathSegment) -> MemoryView:
    """One memory with the messages that it comes from."""
    async with served.analyst.store.reading() as tx:
        found = await memories.find(tx, memory_id, user_id=user)
    return await _view(served, found, user)


@router.patch("/memories/{memory_id}", responses=problems(MemoryNotFound, body=True))
async def change(served: ServedDep, user: ProjectCaller, memory_id: PathSegment, body: MemoryBody) -> MemoryView:
    """Change a memory, or pin it. One with other words is the user's own then: it goes with no conversation. A
    pinned one is given to every run."""
    changed = await served.analyst.memories.edit(memory_id, body.changes, user_id=user)
    served.analyst.memories.keep_up(user)
    return await _view(served, changed, user)


@router.delete("/memories/{memory_id}", status_code=204, responses=problems(MemoryNotFound))
async def forget(served: ServedDep, user: ProjectCaller, memory_id: PathSegment) -> Response:
    """Forget a memory, also in the views of runs that were given it. Its conversation stays."""
    await forget_memory(served.analyst.store, memory_id, user_id=user)
    return Response(status_code=204)


@router.get("/conversations/{thread_id}/memory", responses=problems(ThreadNotFound, reads=True))
async def memory_of(served: ServedDep, user: Caller, thread_id: PathSegment) -> ConversationMemory:
    """What is derived from a conversation: its summary, its topics, and the memories that it said or was given.
    `said` are the ids of the memories that it said, `used` of the ones that its runs were given or found,
    `only_here` of the ones that go with it if you ask for that."""
    async with served.analyst.store.reading() as tx:
        await log.find_thread(tx, thread_id, user_id=user)
        used = await memories.used_in(tx, thread_id, user_id=user)
        said = await memories.said_in(tx, thread_id, user_id=user)
        family = [thread_id, *await log.threads_below(tx, thread_id, user_id=user)]
        return {
            "thread_id": thread_id,
            "summary": await _summary(tx, thread_id),
            "topics": await _topics(tx, Scope(user, thread_id)),
            "memories": await _views(tx, {each.id: each for each in [*said, *used]}.values(), user),
            "said": [each.id for each in said],
            "used": [each.id for each in used],
            "only_here": await memories.of_threads(tx, family, user_id=user),
        }


async def _summary(tx: Transaction, thread_id: str) -> SummaryView | None:
    kept = await summaries.find(tx, thread_id)
    if kept is None:
        return None
    ids = await _ids(tx, thread_id, [kept.first_seq, kept.last_seq])
    return {
        "text": kept.summary,
        "messages": kept.message_count,
        "first": ids.get(kept.first_seq),
        "last": ids.get(kept.last_seq),
        "model": kept.model,
    }


async def _topics(tx: Transaction, scope: Scope) -> list[TopicView]:
    thread_id = scope.thread_id or ""
    named = await summaries.list_most_mentioned_topics(tx, thread_id, TOPICS)
    spans = {name: (await summaries.find_topic_spans(tx, scope, name)).get(thread_id, []) for name, _ in named}
    ids = await _ids(
        tx, thread_id, [seq for each in spans.values() for span in each for seq in (span.first, span.last)]
    )
    return [
        {
            "topic": name,
            "mentions": mentions,
            "spans": [{"first": ids.get(span.first), "last": ids.get(span.last)} for span in spans[name]],
        }
        for name, mentions in named
    ]


async def _view(served: ServedDep, found: Memory, user: str) -> MemoryView:
    async with served.analyst.store.reading() as tx:
        return (await _views(tx, [found], user))[0]


async def _views(tx: Transaction, found: Iterable[Memory], user: str) -> list[MemoryView]:
    listed = list(found)
    sources = await memories.sources_of(tx, [each.id for each in listed], user_id=user)
    seqs: dict[str, set[int]] = {}
    for each in (each for several in sources.values() for each in several):
        seqs.setdefault(each.thread_id, set()).update(each.seqs)
    ids = {thread_id: await _ids(tx, thread_id, sorted(each)) for thread_id, each in seqs.items()}
    return [_memory_view(each, sources.get(each.id, ()), ids) for each in listed]


async def _ids(tx: Transaction, thread_id: str, seqs: Sequence[int]) -> dict[int, str]:
    """Return the ids of a thread's entries, by seq, without entries that retention has deleted."""
    return {seq: entry.id for seq, entry in (await log.entries_at(tx, thread_id, seqs)).items()}


def _memory_view(found: Memory, sources: Sequence[MemorySource], ids: Mapping[str, Mapping[int, str]]) -> MemoryView:
    return {
        "id": found.id,
        "type": found.type,
        "content": found.content,
        "importance": found.importance,
        "pinned": found.importance >= STANDING,
        "agent": found.agent_id,
        "thread_id": found.thread_id,
        "source_deleted_at": found.source_deleted_at.isoformat() if found.source_deleted_at is not None else None,
        "sources": [_entries(each, ids[each.thread_id]) for each in sources],
        "read": found.origin.summary if found.origin is not None else None,
        "created_at": found.created_at.isoformat(),
        "said_at": found.said_at.isoformat(),
        "expires_at": found.expires_at.isoformat() if found.expires_at is not None else None,
    }


def _entries(source: MemorySource, ids: Mapping[int, str]) -> MemoryEntries:
    return {"thread_id": source.thread_id, "entries": [ids[seq] for seq in source.seqs if seq in ids]}
