"""Parses a question: its parts, and whose words and which time it asks for.

An entry that answers is often found by its speaker rather than by words: "what did you recommend?", 我提到过的公园.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from longthread.memory.index.bitmaps import HAS_TIME, USER_SAID
from longthread.memory.index.dates import asks_when
from longthread.memory.index.postings import by_bucket, hash_of
from longthread.memory.index.speakers import named_in
from longthread.memory.index.terms import COMMON_TERMS, terms, weigh_terms
from longthread.memory.index.who_said import by_user

MOST_TERMS = 256
"""Terms of a question that count, the first ones."""
_MOST_PARTS = 4
_SENTENCE = re.compile(r"[^。？！?!；;\n]+[。？！?!；;\n]*")
_MOREOVER = re.compile(
    r"(?:^|(?<=[,，。？！?!；;\n]))[ \t\u3000]*"
    r"(?:另外|此外|还有|還有|以及|(?:and )?also\b|additionally\b|besides\b|"
    r"and (?=(?:who|what|when|where|which|how|why)\b))[,，]?",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class ParsedQuery:
    """A parsed question.

    Args:
        parts: the weights of each part's terms, by hash.
        by_user: whether it asks for the user's words, or for others'; None: it does not say.
        when: whether it asks for a time.
        names: the hashes of what it writes as a speaker's name.
    """

    parts: Sequence[Mapping[int, float]]
    by_user: bool | None
    when: bool
    names: Sequence[int] = ()

    @classmethod
    def of(cls, text: str) -> ParsedQuery:
        names = [hash_of(term) for term in named_in(text)]
        return cls([_weights(part) for part in _parts(text)], by_user(text), asks_when(text), names)

    @cached_property
    def marks(self) -> list[int]:
        """The hashes of the marks that the ranking needs."""
        return [mark for mark, asked in ((USER_SAID, self.by_user is not None), (HAS_TIME, self.when)) if asked]

    @cached_property
    def hashes(self) -> list[int]:
        return list(dict.fromkeys([*(value for part in self.parts for value in part), *self.names, *self.marks]))

    @cached_property
    def buckets(self) -> Mapping[int, Sequence[int]]:
        """The hashes by the buckets that may have them."""
        return by_bucket(self.hashes)


def _weights(text: str) -> dict[int, float]:
    """Weigh a question's terms by hash. If some say what it is about, common question words weigh nothing."""
    wanted = sorted(weigh_terms(text).items(), key=lambda each: -each[1])  # characters behind everything else
    return {hash_of(term): weight for term, weight in wanted[:MOST_TERMS]}


def _parts(text: str) -> list[str]:
    """Split a question into two to four parts; else return it whole.

    Each asking sentence is a part; other text before or after a "besides" is another. An English full stop ends no
    part: the text before it says what the question is about, and scores better with it.
    """
    found: list[str] = []
    for piece in _MOREOVER.split(text):
        telling: list[str] = []
        for sentence in _SENTENCE.findall(piece):
            (found if sentence.rstrip().endswith(("?", "？")) else telling).append(sentence)
        found.append(" ".join(telling))
    found = [part for part in found if any(term not in COMMON_TERMS for term in terms(part))]
    return found if 1 < len(found) <= _MOST_PARTS else [text]
