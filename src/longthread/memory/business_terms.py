"""Business terms and examples of a source, and which of them a question is likely about."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence

from longthread.memory.index.matching import Bag, score_bags
from longthread.memory.index.terms import COMMON_TERMS, terms
from longthread.model.catalog import Example, SourceDefinition, Term
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
    said = _folded(question)
    named = [(n, each) for n, each in enumerate(taught) if isinstance(each, Term)]
    yield from (n for n, each in named if any(_is_in(name, said) for name in _names(each)))
    wanted = dict.fromkeys((term for term in terms(question) if term not in COMMON_TERMS), 1.0)
    ranked = sorted(score_bags(bags, wanted).items(), key=lambda each: (-each[1], int(each[0])))
    yield from (int(name) for name, score in ranked if score >= _SHARE * ranked[0][1])


def _names(term: Term) -> list[str]:
    return [term.name, *term.synonyms]


def _folded(text: str) -> str:
    return " ".join(unicodedata.normalize("NFKC", text).casefold().split())


def _is_in(name: str, question: str) -> bool:
    """Whether a question contains a name, at word boundaries and not within another word."""
    name = _folded(name)
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
