"""Which client asks, and which conversation it says that it is in. Pure."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from longthread.gateway.http import Incoming
from longthread.gateway.tree import NamedThread

_LABELS: Sequence[tuple[str, str]] = (
    ("claude-cli", "claude_code"),
    ("claude-code", "claude_code"),
    ("codex", "codex"),
    ("opencode", "opencode"),
    ("qwen", "qwen"),
    ("aider", "aider"),
    ("cline", "cline"),
    ("cursor", "cursor"),
    ("augment", "augment"),
    ("gemini", "gemini"),
    ("litellm", "litellm"),
    ("langchain", "langchain"),
    ("pydantic-ai", "pydantic_ai"),
    ("ai-sdk", "ai_sdk"),
    ("ai/", "ai_sdk"),
    ("anthropic/", "sdk"),
    ("openai/", "sdk"),
)
"""Beginnings of words in a `User-Agent`, and the label of the client."""
_TYPES = frozenset({"cursor", "augment", "claude_code"})
"""Document 003's kinds of clients."""
_SESSIONS = ("thread-id", "x-session-id", "x-claude-code-session-id")
"""Headers by which clients name their conversation."""
_AGENT = "x-claude-code-agent-id"
_PARENT = "x-claude-code-parent-agent-id"
_MAIN = frozenset({"", "main", "turn", "subagent"})
"""Kinds of requests that are part of the conversation."""


@dataclass(frozen=True, slots=True)
class Client:
    """Who asks.

    Attributes:
        type: document 003's `client_type`.
        label: a finer name, which is a label only.
        is_aside: the client says that the request is no part of the conversation.
    """

    type: str
    label: str
    is_aside: bool = False


def client_of(asked: Incoming) -> Client:
    label = _label(asked.header("user-agent") or "")
    return Client(label if label in _TYPES else "unknown", label, _is_aside(asked))


@lru_cache(64)
def _label(agent: str) -> str:
    begins = (label for mark, label in _LABELS if re.search(rf"\b(?:async)?{mark}", agent, re.IGNORECASE))
    return next(begins, "unknown")


def named_thread(asked: Incoming) -> NamedThread | None:
    """Return the thread that a request's headers name; that of a sub-agent is below its caller's."""
    chosen = _text(asked.header("x-conversation-id"))
    session = chosen or next((value for name in _SESSIONS if (value := asked.header(name))), None)
    if session is None:
        return None
    agent, above = asked.header(_AGENT), asked.header(_PARENT)
    parent: str | None = None
    if agent:
        parent = f"{session}:{above}" if above else session
        return NamedThread(f"{session}:{agent}", strict=bool(chosen), parent=parent)
    root = asked.header("session-id")  # Codex: its sub-agents have their root's
    if not chosen and root != session and asked.header("thread-id"):
        parent = root
    return NamedThread(session, strict=bool(chosen), parent=parent)


def _text(header: str | None) -> str | None:
    """Return a header's text: programs send UTF-8, which HTTP reads as Latin-1."""
    try:
        return header.encode("latin-1").decode("utf-8") if header else None
    except UnicodeError:
        return header


def _is_aside(asked: Incoming) -> bool:
    kind = asked.header("x-claude-code-request-class") or ""
    try:
        kind = kind or json.loads(asked.header("x-codex-turn-metadata") or "{}").get("request_kind", "")
    except (ValueError, AttributeError):
        return False
    return str(kind).lower() not in _MAIN
