"""Threads that are long from the start: written as an export, and imported."""

from __future__ import annotations

import hashlib
import io
import json
from collections.abc import Mapping, Sequence
from typing import Any

from longthread.model.entry import Draft
from longthread.model.ids import new_id
from longthread.store import log
from longthread.store.driver import Driver
from longthread.store.schema import SCHEMA_VERSION
from longthread.store.transfer.archive_reader import ImportTarget, import_threads

USER = "default"


async def seed(
    store: Driver, drafts: Sequence[Draft], *, source: str | None = None, parents: Mapping[int, int] | None = None
) -> str:
    """A thread of these entries; `parents` are of those that do not stand behind the entry before them.

    The last entry is the tip.
    """
    thread_id = new_id()
    lines = _lines(thread_id, drafts, source, parents or {})
    outcome = await import_threads(
        store, io.BytesIO(lines), "the seed", ImportTarget(USER), lambda done, total, thread: None
    )
    assert not outcome.refused, outcome
    return thread_id


def _lines(thread_id: str, drafts: Sequence[Draft], source: str | None, parents: Mapping[int, int]) -> bytes:
    at = {"created_at": log.now()}
    size = len(drafts)
    thread = {"user_id": USER, "source": source, "tip": size, "entry_count": size, "updated_at": at["created_at"]} | at
    entries = [
        {"seq": seq, "parent_seq": parents.get(seq, seq - 1), "id": draft.id, "role": draft.role, "text": draft.text}
        | {"tool_calls": [call.to_json() for call in draft.tool_calls] or None, "tool_call_id": draft.tool_call_id}
        | {"metadata": dict(draft.metadata) or None, "name": draft.name}
        | at
        for seq, draft in enumerate(drafts, 1)
    ]
    counts = {"threads": 1} | ({"entries": size} if size else {})
    objects: list[dict[str, Any]] = [
        {"longthread_export": 1, "schema": SCHEMA_VERSION, "threads": 1},
        {"thread": thread_id, "rows": counts},
        {"table": "threads", "row": thread},
        *({"table": "entries", "row": row} for row in entries),
    ]
    body = b"".join(json.dumps(each, ensure_ascii=False).encode() + b"\n" for each in objects)
    checksum = hashlib.sha256(body).hexdigest()
    end = {"end": "longthread_export", "threads": 1, "lines": len(objects), "sha256": checksum}
    return body + json.dumps(end).encode() + b"\n"
