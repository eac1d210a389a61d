"""What users may ask of an account at a provider that they share: its secret is the gateway's.

The provider takes all of them for one. What it stores is anyone's there, so users reach nothing that is stored.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from longthread.gateway.http import Incoming
from longthread.gateway.upstream import Upstream

_READ = frozenset({"/v1/chat/completions", "/v1/messages", "/v1/messages/count_tokens", "/v1/responses"})
"""Paths whose requests the gateway reads: it passes none on that it cannot read."""
_STATELESS = frozenset(
    f"/v1/{end}"
    for end in (
        "audio/speech",
        "audio/transcriptions",
        "audio/translations",
        "completions",
        "embeddings",
        "images/edits",
        "images/generations",
        "images/variations",
        "moderations",
        "rerank",
    )
)
_MODELS = "/v1/models"
_STORED = frozenset({"container", "container_id", "file_id", "file_ids", "prompt", "vector_store_ids"})
"""Fields that name what a provider stores."""
_FREE = frozenset({"metadata", "arguments"})
"""Fields whose content is the client's own."""
_HINTS = (b"container", b"file_id", b"prompt", b"vector_store", b"\\u00")
"""A body without any of these names nothing that is stored."""


def is_account_shared(incoming: Incoming, upstream: Upstream) -> bool:
    """Whether a user's request goes up with a secret that is not the user's."""
    return incoming.principal is not None and upstream.api_key is not None


def is_unreadable(incoming: Incoming) -> bool:
    """Whether a request that would be passed on unread is one that the gateway reads."""
    return incoming.method == "POST" and incoming.path.rstrip("/") in _READ


def is_stateless(incoming: Incoming) -> bool:
    """Whether a request that is passed on unread neither reads nor changes what the provider stores."""
    path = incoming.path.rstrip("/")
    if incoming.method == "GET":
        return path == _MODELS or path.startswith(f"{_MODELS}/")
    if incoming.method != "POST" or path not in _STATELESS:
        return False
    if incoming.upload is not None:
        return (incoming.header("content-type") or "").strip().lower().startswith("multipart/form-data")
    return not names_stored(incoming.body)


def names_stored(body: bytes) -> bool:
    """Whether a request names a file or another thing that the provider stores."""
    if not any(hint in body for hint in _HINTS):
        return False
    try:
        return any(_is_id(name, value) for name, value in _fields(json.loads(body)))
    except (ValueError, RecursionError):
        return True  # nobody knows what it names


def _is_id(name: str, value: Any) -> bool:
    if name not in _STORED:
        return False
    if isinstance(value, Mapping):
        return name in ("container", "prompt") and bool(value.get("id"))
    return bool(value) and isinstance(value, str | list) and name != "prompt" and value != "auto"


def _fields(value: Any) -> Iterator[tuple[str, Any]]:
    """Yield the fields of all objects in a value, without what a program writes for its own tools."""
    waiting = [value]
    while waiting:
        each = waiting.pop()
        if isinstance(each, list):
            waiting += each
        elif isinstance(each, dict):
            is_call = str(each.get("type", "")).endswith("tool_use")
            for name, inner in each.items():
                if name not in _FREE and not (is_call and name == "input"):
                    yield name, inner
                    waiting.append(inner)
