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
from longthread.memory.index.matching import weighed
from longthread.memory.index.postings import by_bucket, hash_of
from longthread.memory.index.question_words import COMMON
from longthread.memory.index.terms import terms

MOST_TERMS = 256
"""Terms of a question that count, the first ones."""
_MOST_PARTS = 4
_VERBS = (
    r"(?:said|say|told|tell|recommend\w*|suggest\w*|mention\w*|gave|give|advi[cs]e\w*|propos\w*|explain\w*|provid\w*|"
    r"list\w*|describ\w*|shared?|taught|answer\w*|wrote|writ\w*|refer\w*)"
)
_YOU_SAID = re.compile(
    rf"\b(?:you|your)\b[^.?!]{{0,40}}\b{_VERBS}\b|"
    r"(?<![给給和跟向对對与與])你[^。？！，,]{0,12}(?:推荐|推薦|告诉|告訴|建议|建議|说|說|分享|教|给|給|提到|回答|介绍|介紹|讲|講)",
    re.IGNORECASE,
)
_I = re.compile(
    r"\b(?:(?<!War )(?<!part )(?<!Part )I(?!/)|[Mm]e|[Mm]y|[Mm]ine|[Mm]yself|[Ww]e|[Oo]ur|[Uu]s)\b|"
    r"(?<!自)我(?!国|國)|咱"
)
# "Can you tell me …" asks for an answer, not for what was said.
_POLITE = re.compile(r"\b(?:can|could|would|will|do) you\b|\bplease\b|你还记得|你還記得|你记得|你記得", re.IGNORECASE)
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
    """

    parts: Sequence[Mapping[int, float]]
    by_user: bool | None
    when: bool

    @classmethod
    def of(cls, text: str) -> ParsedQuery:
        return cls([_weights(part) for part in _parts(text)], _by_user(text), asks_when(text))

    @cached_property
    def marks(self) -> list[int]:
        """The hashes of the marks that the ranking needs."""
        return [mark for mark, asked in ((USER_SAID, self.by_user is not None), (HAS_TIME, self.when)) if asked]

    @cached_property
    def hashes(self) -> list[int]:
        return list(dict.fromkeys([*(value for part in self.parts for value in part), *self.marks]))

    @cached_property
    def buckets(self) -> Mapping[int, Sequence[int]]:
        """The hashes by the buckets that may have them."""
        return by_bucket(self.hashes)


def _weights(text: str) -> dict[int, float]:
    """Weigh a question's terms by hash. If some say what it is about, common question words weigh nothing."""
    wanted = sorted(weighed(text).items(), key=lambda each: -each[1])  # characters behind everything else
    return {hash_of(term): weight for term, weight in wanted[:MOST_TERMS]}


def _by_user(text: str) -> bool | None:
    plain = _POLITE.sub(" ", text)
    if _YOU_SAID.search(plain):
        return False
    return True if _I.search(plain) else None


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
    found = [part for part in found if any(term not in COMMON for term in terms(part))]
    return found if 1 < len(found) <= _MOST_PARTS else [text]
