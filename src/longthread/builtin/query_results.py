"""Finds results of a conversation by their labels, such as [q3]."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from longthread.errors import ResultNotFound
from longthread.model.entry import Entry
from longthread.store import log
from longthread.store.driver import Transaction

_CHUNK = 100
"""Entries that are read at a time."""


@dataclass(frozen=True)
class StoredResult:
    """A result in the conversation: its SQL, and the rows that were shown."""

    label: str
    sql: str
    columns: Sequence[str]
    rows: Sequence[Sequence[Any]]
    shown: str


def find_result(entries: Sequence[Entry], label: str) -> StoredResult:
    """The result of a label such as `q3` or `[q3]`. Raises ResultNotFound, which lists the labels."""
    wanted = re.sub(r"[\[\]\s]", "", label).lower()
    found = {one.label: one for entry in entries if entry.role == "tool" and (one := _result(entry.text)) is not None}
    if wanted not in found:
        there = ", ".join(found) if found else "none"
        raise ResultNotFound(label=label[:50], labels=there)
    return found[wanted]


async def find_result_before(tx: Transaction, thread_id: str, seq: int, label: str) -> StoredResult:
    """The result of a label on the branch that ends in an entry, read backwards. Raises ResultNotFound."""
    while seq:
        entries = await log.branch(tx, thread_id, seq, limit=_CHUNK)
        if label in result_labels(entries):
            return find_result(entries, label)
        seq = entries[0].parent_seq
    return find_result((), label)


def result_labels(entries: Sequence[Entry]) -> list[str]:
    """The labels of the results in entries, the newest last."""
    found = (_result(entry.text) for entry in entries if entry.role == "tool")
    return [one.label for one in found if one is not None]


def _result(text: str) -> StoredResult | None:
    try:
        observation = json.loads(text)
    except ValueError:
        return None
    data = observation.get("data") if isinstance(observation, dict) else None
    if not isinstance(data, dict) or not data.get("query") or "sql" not in data:
        return None
    return StoredResult(
        str(data["query"]), str(data["sql"]), data.get("columns") or [], data.get("rows") or [], str(data.get("shown"))
    )
