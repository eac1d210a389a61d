"""Which of a user's memories fit a question, by words and by meaning, and which always hold."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import median, pstdev

from longthread.memory.index.ranking import Bag, form_of, score_bags
from longthread.memory.index.terms import COMMON_TERMS, characters, terms, weigh_terms
from longthread.memory.nearest import MEANING
from longthread.model.memory import Memory
from longthread.store.memories import Candidate

_HAN = re.compile("[\u3400-\u9fff]")
_WISH = r"wants?|prefers?|asks?|asked|must|should|expects?|insists?"
_WISH_HAN = "要求|希望|想要|必须|应该|应当"
_EACH_TIME = r"always|never|from now on|every (?:time|answer|reply)"
_EACH_TIME_HAN = "一直|总是|始终|永远|每次|一律|今后|以后|从现在起|从今以后"
_ALWAYS = re.compile(
    rf"^(?:please,? )?(?:{_EACH_TIME})\b"
    rf"|\b(?:{_WISH})\b.*\b(?:{_EACH_TIME})\b|\b(?:{_EACH_TIME})\b.*\b(?:{_WISH})\b"
    rf"|^请?(?:{_EACH_TIME_HAN}|务必|切勿|绝不|不要再)"
    rf"|(?:{_WISH_HAN}|请).*(?:{_EACH_TIME_HAN})|(?:{_EACH_TIME_HAN}).*(?:{_WISH_HAN})",
    re.IGNORECASE,
)
_STOCK = frozenset(
    terms("always ask call expect insist like mean must name need never now prefer request remember should")
)
_STOCK_HAN = re.compile(f"{_WISH_HAN}|{_EACH_TIME_HAN}|用户|用戶|喜欢|需要|偏好|记住|称为|叫做")
"""Words in which a model tells of a user, and which say nothing of what it tells."""


def says_always(content: str) -> bool:
    """Return whether a memory asks for something each time: "Always answer in French", "用户要求一直用法语回答"."""
    return _ALWAYS.search(content) is not None


def is_typed(content: str, messages: Iterable[str]) -> bool:
    """Return whether every word of a memory that says something stands in the user's messages. What a model has read
    may be in it only in words that the user has typed too."""
    wanted = _words(_STOCK_HAN.sub(" ", content)) - COMMON_TERMS - _STOCK
    said = {word for text in messages for word in _words(text)}
    return bool(wanted) and wanted <= said


def _words(text: str) -> set[str]:
    """Return the terms of a text; of Chinese its characters, since a sentence that is said again has other pairs of
    them."""
    return {term for term in terms(text) if not _HAN.search(term)} | set(characters(text))


_ALIKE = 0.9
"""What another memory scores, of the better one's score, to be as good."""
_FEWEST = 10
"""Memories with vectors that tell what is usual: of fewer, one always stands out by chance."""
_STANDS_OUT = 2.0
"""Standard deviations above the median cosine of a user's memories from which on one is near a text. Not an absolute
cosine: with some embedders any two texts have one of 0.7."""


def asks_always(memory: Candidate | Memory) -> bool:
    """Whether a memory says how the user wants things done, whatever is asked."""
    return memory.type == "procedural" or says_always(memory.content)


@dataclass(frozen=True, slots=True)
class RankedMemory:
    id: str
    score: float
    shares: bool
    cosine: float


def rank(there: Sequence[Candidate], text: str, near: Sequence[tuple[str, float]]) -> list[RankedMemory]:
    """Merge two rankings: each score as a share of its ranking's best, summed. Of memories that score alike, the newest
    is first. Two memories score alike that say the same in sentences of other lengths."""
    by_words = score_bags({each.id: bag_of(each) for each in there}, weigh_terms(text))
    shares: dict[str, float] = {}
    known = {each.id: each for each in there}
    for ranking, weight in ((by_words, 1.0), (dict(near), MEANING)):
        top = max(ranking.values(), default=0.0)
        for one, value in ranking.items():
            if value > 0 and one in known:
                shares[one] = shares.get(one, 0.0) + weight * value / top
    order = list[str]()
    best_first = sorted(shares, key=lambda one: (-round(shares[one], 3), one))
    while best_first:
        least = _ALIKE * shares[best_first[0]]
        alike = [one for one in best_first if shares[one] >= least]
        order += sorted(alike, key=lambda one: (known[one].said_at, one), reverse=True)
        best_first = best_first[len(alike) :]
    cosines = dict(near)
    return [RankedMemory(one, shares[one], one in by_words, cosines.get(one, 0.0)) for one in order]


def standing_out(there: Sequence[Candidate], near: Sequence[tuple[str, float]]) -> set[str]:
    """Return the memories whose cosine stands out of those of all of a user's memories in the same script: any text is
    nearer to a question in its own language. Where these are few, none does."""
    is_han = {each.id: _HAN.search(each.content) is not None for each in there}
    found = set[str]()
    for script in (False, True):
        cosines = {one: cosine for one, cosine in near if is_han.get(one) is script}
        if len(cosines) >= _FEWEST:
            least = median(cosines.values()) + _STANDS_OUT * pstdev(cosines.values())
            found |= {one for one, cosine in cosines.items() if cosine > max(least, 0.0)}
    return found


def bag_of(candidate: Candidate) -> Bag:
    """Return a memory's terms: the stored ones, if they are of its present text."""
    if candidate.form == form_of(candidate.content):
        return Bag.read(candidate.terms, candidate.words)
    return Bag.of(candidate.content)
