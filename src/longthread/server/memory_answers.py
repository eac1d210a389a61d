"""The answers about memories, summaries and topics."""

from __future__ import annotations

from typing_extensions import TypedDict

from longthread.model.memory import MemoryType
from longthread.server.answers import Timestamp


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
