"""Check that a thread's entries form a readable tree."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import datetime
from typing import Any, get_args

from longthread.model.entry import Role, ToolCall
from longthread.store.driver import Row
from longthread.store.rows import UNREADABLE, damaged

_READ: dict[str, Callable[[str], Any]] = {
    "created_at": datetime.fromisoformat,
    "tool_calls": lambda text: [ToolCall.from_json(call) for call in json.loads(text)],
    "metadata": json.loads,
}
"""Columns that readers of an entry decode, with their decoders."""


class EntryTree:
    """Checks a thread's entries: parents exist, ids are unique, and all can be decoded."""

    def __init__(self) -> None:
        self._seqs: set[int] = set()
        self._ids: set[str] = set()

    def add(self, entry: Row, thread: Row) -> str | None:
        """Check the next entry; return what is wrong with it."""
        seq, parent, first = entry["seq"], entry["parent_seq"], thread.get("first_seq", 1)
        if not first <= seq <= thread.get("entry_count", 0):
            return f"the thread cannot have an entry {seq}."
        if parent >= first and parent not in self._seqs:
            return f"entry {seq} stands behind entry {parent}, which is not there."
        if entry["role"] not in get_args(Role):
            return f"entry {seq} has the role {entry['role']}, which there is not."
        if entry["id"] in self._ids:
            return f"two entries have the id {entry['id']}."
        self._seqs.add(seq)
        self._ids.add(entry["id"])
        return _unreadable(entry)

    def check(self, thread: Row) -> str | None:
        """Check the thread after all entries; return what is wrong with it."""
        tip = thread.get("tip", 0)
        return f"the thread ends in entry {tip}, which is not there." if tip and tip not in self._seqs else None


def _unreadable(entry: Row) -> str | None:
    for name, read in _READ.items():
        try:
            if entry.get(name):
                read(entry[name])
        except UNREADABLE as error:
            return damaged(f"{name} of entry {entry['seq']}", error).reason
    return None
