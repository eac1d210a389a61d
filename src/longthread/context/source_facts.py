"""What a thread knows of its source: facts from earlier entries, and business terms for its questions."""

from __future__ import annotations

import logging
import re
import unicodedata
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice

from longthread.context.window import Window
from longthread.errors import LongthreadError
from longthread.memory.index.ranking import Bag, score_bags
from longthread.memory.index.terms import COMMON_TERMS, terms
from longthread.model.catalog import Example, SourceDefinition, Term
from longthread.model.entry import Entry
from longthread.model.fold import Facts, facts_of, observation_of
from longthread.model.language import asks_to_continue
from longthread.model.thread import Thread
from longthread.store import catalog as catalog_store
from longthread.store import log, runs
from longthread.store.driver import Driver, Transaction
from longthread.tools.analysis.source import Source
from longthread.tools.catalog import address
from longthread.view.tokens import estimate

TOKENS = 1_500
"""What a question's terms and examples may have together."""
MOST_TERMS = 12
MOST_EXAMPLES = 4
"""How many of them a question is given."""
_SHARE = 0.3
"""What one that shares words must score, of the best one's score."""


def likely(sources: Sequence[SourceDefinition], questions: Sequence[str]) -> list[Term | Example]:
    """Choose terms and examples for `questions`: the current one first, then those before it, newest first.

    A term whose name or synonym is in the question comes first; the others, and examples, are ranked by shared words,
    in any language. No model is asked.
    """
    taught: list[Term | Example] = []
    for source in sources:
        taught += [*source.terms, *source.examples]
    if not taught:
        return []  # a question may be long
    bags = {str(n): Bag.of(_text(each)) for n, each in enumerate(taught)}
    found: dict[int, None] = {}
    for question in questions:
        found |= dict.fromkeys(_of_question(taught, bags, question))
    chosen = [taught[n] for n in found]
    named = [each for each in chosen if isinstance(each, Term)][:MOST_TERMS]
    shown = [each for each in chosen if isinstance(each, Example)][:MOST_EXAMPLES]
    return [*named, *shown]


def lines(descriptions: Sequence[str], chosen: Iterable[Term | Example]) -> list[str]:
    """Return the descriptions, then the chosen terms, in at most `TOKENS` tokens."""
    left, told = TOKENS, list[str]()
    for line in (*(f"The database: {_in_line(each)}" for each in descriptions), *map(_line, chosen)):
        left -= estimate(line)
        if left < 0:
            break
        told.append(line)
    return told


def text_of(each: Term | Example) -> str:
    return f"{_text(each)} {each.sql or ''}"


def _of_question(taught: Sequence[Term | Example], bags: Mapping[str, Bag], question: str) -> Iterator[int]:
    said = _fold_text(question)
    named = [(n, each) for n, each in enumerate(taught) if isinstance(each, Term)]
    yield from (n for n, each in named if any(_is_in(name, said) for name in _names(each)))
    wanted = dict.fromkeys((term for term in terms(question) if term not in COMMON_TERMS), 1.0)
    ranked = sorted(score_bags(bags, wanted).items(), key=lambda each: (-each[1], int(each[0])))
    yield from (int(name) for name, score in ranked if score >= _SHARE * ranked[0][1])


def _names(term: Term) -> list[str]:
    return [term.name, *term.synonyms]


def _fold_text(text: str) -> str:
    return " ".join(unicodedata.normalize("NFKC", text).casefold().split())


def _is_in(name: str, question: str) -> bool:
    """Whether a question contains a name, at word boundaries and not within another word."""
    name = _fold_text(name)
    before = r"(?<![a-z0-9_])" if name[:1].isascii() else ""
    after = r"(?![a-z0-9_])" if name[-1:].isascii() else ""
    return bool(name) and re.search(f"{before}{re.escape(name)}{after}", question) is not None


def _text(each: Term | Example) -> str:
    return each.question if isinstance(each, Example) else " ".join([*_names(each), each.meaning or ""])


def _line(each: Term | Example) -> str:
    sql = f" SQL: {_in_line(each.sql)}" if each.sql else ""
    if isinstance(each, Example):
        return f"- Example: {_in_line(each.question)}{sql}"
    also = f" (also: {', '.join(each.synonyms)})" if each.synonyms else ""
    meaning = f": {_in_line(each.meaning)}" if each.meaning else ":"
    return _in_line(f"- {each.name}{also}{meaning}{sql}")


def _in_line(text: str) -> str:
    return " ".join(text.split())


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


async def load_facts(tx: Transaction, thread: Thread, window: Sequence[Entry], added: Sequence[Entry]) -> KnownFacts:
    """Return the facts after `added`, the entries after `window`, which is the end of the branch before them.

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
    """Return a source's terms for its questions, newest question first, without terms that name a hidden table or
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
