"""What a thread has learned about its source, from the stored facts and the entries since."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass

from longthread.model.entry import Entry
from longthread.model.facts import Facts
from longthread.model.fold import facts_of, observation_of
from longthread.model.thread import Thread
from longthread.store import log, runs
from longthread.store.driver import Transaction

_CHUNK = 500
"""Entries to read at a time when older entries than the window are searched for facts."""


@dataclass(frozen=True, slots=True)
class KnownFacts:
    """Facts, and the stored part of them: None if nothing is stored, or only for a branch that was left."""

    facts: Facts
    kept: Facts | None


async def known(tx: Transaction, thread: Thread, window: Sequence[Entry], added: Sequence[Entry]) -> KnownFacts:
    """Return the facts after `added`, the entries behind `window`, which is the end of the branch before them.

    Reads only entries after the stored facts. If there are none, reads the branch down to its beginning, or to a
    question about another source or schema.
    """
    saved = await runs.saved_fold(tx, thread.id)
    newer: list[Entry] = list(added)
    async for entries in _downwards(tx, thread, window):
        behind = _behind(entries, saved[0]) if saved else None
        if saved and behind is not None:
            kept = Facts.from_json(saved[1])
            return KnownFacts(facts_of(kept, [*behind, *newer]), kept)
        newer = [*entries, *newer]
        if (not saved or newer[0].seq < saved[0]) and _is_enough(newer):
            break
    return KnownFacts(facts_of(Facts(), newer), None)


async def keep(tx: Transaction, thread_id: str, seq: int, facts: Facts, *, kept: Facts | None) -> None:
    """Store the facts after entry `seq`. `kept` are those stored now: unchanged ones are not written again."""
    if kept is not None and kept.say_the_same_as(facts):
        await runs.move_fold(tx, thread_id, seq, facts.queries)
    else:
        await runs.save_fold(tx, thread_id, seq, facts.to_json())


async def _downwards(tx: Transaction, thread: Thread, window: Sequence[Entry]) -> AsyncIterator[list[Entry]]:
    """Yield the window, then ever older entries of the branch, to its beginning."""
    entries = list(window) or (await log.branch(tx, thread.id, thread.tip, limit=_CHUNK) if thread.tip else [])
    while entries:
        yield entries
        before = entries[0].parent_seq
        entries = await log.branch(tx, thread.id, before, limit=_CHUNK, seen_from=thread.tip) if before else []


def _behind(entries: Sequence[Entry], seq: int) -> list[Entry] | None:
    """Return the entries after `seq`; None if `seq` is neither one of them nor just before them."""
    if entries[0].parent_seq == seq:
        return list(entries)
    return next((list(entries[n + 1 :]) for n, entry in enumerate(entries) if entry.seq == seq), None)


def _is_enough(entries: Sequence[Entry]) -> bool:
    """Return whether no older entry can add facts: they are of another source, and the last query label is known."""
    abouts = {(e.metadata.get("source"), e.metadata.get("fingerprint")) for e in entries if e.role == "user"}
    return len(abouts) > 1 and any(_is_labelled(entry) for entry in reversed(entries))


def _is_labelled(entry: Entry) -> bool:
    data = observation_of(entry.text).get("data") if entry.role == "tool" else None
    return isinstance(data, dict) and bool(data.get("query"))
