"""What is kept of a thread for the time when its older entries are no longer shown: a summary, its mark, and topics."""

from __future__ import annotations

import json
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from longthread.model.fold import Compressed
from longthread.store import incarnation, topics
from longthread.store.decoding import Decoding
from longthread.store.driver import Row, Transaction, one
from longthread.store.encoding import dump
from longthread.store.log_rows import of_thread

UNWRITTEN = "unwritten"
"""Beside a digest: the summary before it, from which a model is to go on; nothing in it, where there was none."""
TOPICS = 20
"""Topics of a thread that are listed, those that were mentioned most."""


@dataclass(frozen=True, slots=True)
class ThreadSummary:
    """A thread's summary. It tells of `message_count` entries of a branch, from `first_seq` to `last_seq`, the mark.

    `model` wrote it; None: it is the digest, which is kept beside it as data. `topics` are read for a view alone; what
    a model wrote has its `digest` for a pass alone. `unwritten`: it is the digest for now, and a model is to write it.
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
    """A thread as a pass finds it: where it begins and ends, which of its id it is (`born`), and what is kept."""

    user_id: str
    tip: int
    entry_count: int
    first_seq: int
    born: str
    kept: ThreadSummary | None


async def find(tx: Transaction, thread_id: str) -> ThreadSummary | None:
    """A thread's summary with its topics; None where there is none, or none that has a mark."""
    row = await one(tx, "select_summary", thread_id=thread_id, topics=TOPICS)
    return _kept(row, thread_id) if row else None


async def find_thread(tx: Transaction, thread_id: str) -> Summarised | None:
    """What a pass must know of a thread; None where there is no such thread."""
    row = await one(tx, "select_pruning", thread_id=thread_id)
    if row is None:
        return None
    kept = _kept(row, thread_id) if row["summary"] is not None else None
    with of_thread(thread_id):
        position = (int(row["tip"]), int(row["entry_count"]), int(row["thread_first"]))
    return Summarised(row["user_id"], *position, incarnation.born(row["incarnation"]), kept)


def _kept(row: Row, thread_id: str) -> ThreadSummary | None:
    if row["last_seq"] is None:
        return None  # another program's, which says nothing of where it ends
    with Decoding(thread_id, "the summary up to entry", row["last_seq"]):
        return ThreadSummary(
            summary=row["summary"],
            message_count=int(row["message_count"] or 0),
            config_hash=row["config_hash"],
            first_seq=int(row["first_seq"] or 1),
            last_seq=int(row["last_seq"]),
            model=row["model"],
            digest=json.loads(row["digest"] or "{}"),
            topics=tuple(json.loads(row.get("topics") or "[]")),
            unwritten=bool(row["unwritten"]),
        )


async def compressed(tx: Transaction, thread_id: str) -> Compressed | None:
    """What the state of a thread tells of its summary; None where there is none."""
    row = await one(tx, "select_pruning", thread_id=thread_id)
    if row is None or row["summary"] is None:
        return None
    with of_thread(thread_id):
        last = None if row["last_seq"] is None else int(row["last_seq"])
        return Compressed(row["summary"], row["config_hash"], last, int(row["message_count"] or 0))


async def save(tx: Transaction, thread_id: str, kept: ThreadSummary) -> None:
    """Keep a summary in the place of the one before. For who has locked the thread in this transaction."""
    values = {name: getattr(kept, name) for name in _COLUMNS}
    digest = dump(kept.digest)
    await tx.run("save_summary", thread_id=thread_id, **values, digest=digest)


_COLUMNS = ("summary", "message_count", "config_hash", "first_seq", "last_seq", "model")


async def drop(tx: Transaction, thread_id: str) -> None:
    """Forget a thread's summary, mark and topics: the next pass derives them anew from what is there."""
    await tx.run("delete_summary", thread_id=thread_id)
    await topics.drop(tx, thread_id)


async def live_question(tx: Transaction, thread_id: str) -> int | None:
    """The entry that began the run which is being executed, or was broken off."""
    row = await one(tx, "select_live_question", thread_id=thread_id)
    return int(row["question_seq"]) if row and row["question_seq"] is not None else None


async def is_behind(tx: Transaction, thread_id: str, *, mark: int, tip: int, first_seq: int) -> bool:
    """Whether entry `mark` stands on the branch that ends in `tip`. What retention has deleted is taken to have."""
    rows = await tx.fetch("select_entries_apart_between", thread_id=thread_id, after=mark, last=tip)
    return leads_to(mark, tip, {int(row["seq"]): int(row["parent_seq"]) for row in rows}, first_seq)


def leads_to(mark: int, tip: int, apart: Mapping[int, int], first_seq: int = 1) -> bool:
    """Whether the branch that ends in `tip` leads back to entry `mark`.

    `apart` are the entries behind the mark that do not stand behind the one written before them, with the entry before
    each on its branch.
    """
    starts = sorted(apart)
    while tip > mark:
        at = bisect_right(starts, tip)
        if at == 0 or tip < first_seq:
            return True
        tip = apart[starts[at - 1]]
    return tip == mark
