"""What a thread knows of its source: facts from earlier entries, and business terms for its questions."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from itertools import islice

from longthread.context.window import Window
from longthread.errors import LongthreadError
from longthread.memory.business_terms import likely, lines, text_of
from longthread.model.entry import Entry
from longthread.model.fold import Facts, facts_of, observation_of
from longthread.model.language import asks_to_continue
from longthread.model.thread import Thread
from longthread.store import catalog as catalog_store
from longthread.store import log, runs
from longthread.store.driver import Driver, Transaction
from longthread.tools.analysis.source import Source
from longthread.tools.catalog import address

_CHUNK = 500
"""Entries to read at a time when older entries than the window are searched for facts."""
_EARLIER = 5
"""Earlier questions whose terms are shown too: a follow-up does not repeat them."""
_logger = logging.getLogger(__name__)


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


async def taught(store: Driver, source: Source, questions: Sequence[str]) -> list[str]:
    """Return a source's terms for its questions, newest question first, without those that name a hidden table or
    column. A run goes on without terms if they cannot be read."""
    try:
        async with store.reading() as tx:
            every = await catalog_store.sources(tx)
        own = [each for each in every if each.is_active and address.is_of(each.address, source.spec)]
        chosen = [each for each in likely(own, questions) if not source.hides(text_of(each))]
        about = [each.description for each in own if each.description and not source.hides(each.description)]
        return lines(about, chosen)
    except LongthreadError as error:
        _logger.warning("A run has no business terms: %s", error)
        return []


def questions_of(window: Window, question: str) -> list[str]:
    """Return the question of a run, and those before it, newest first."""
    before = [spot.entry.text for spot in reversed(window.spots[: window.question]) if spot.entry.role == "user"]
    asked = (text for text in before if text != question and not asks_to_continue(text))
    return [question, *islice(asked, _EARLIER)]
