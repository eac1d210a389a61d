"""Finds words of Chinese texts by character statistics alone.

A word's characters occur together more often than by chance (cohesion), and its neighbours vary (freedom). A Latin
word between Chinese ones counts as one character: "Docker部署".
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from longthread.memory.summary.stopwords import (
    BREAKS,
    HAN_ALONE,
    HAN_BREAKS,
    HAN_COUNTS,
    HAN_EDGES,
    HAN_KEPT,
    HAN_LIGHT,
    HAN_WITHIN,
)

LONGEST = 8
"""Characters of a word at most."""
_HAN = "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
_WORD = r"[A-Za-z](?:[A-Za-z0-9_+#]|[.-](?=[A-Za-z0-9])){0,29}"  # what ends a sentence is no part of it
_LATIN = re.compile(rf"(?<=[{_HAN}])[ ]?{_WORD}[ ]?|{_WORD}[ ]?(?=[{_HAN}])")
_ANY_HAN = re.compile(f"[{_HAN}]")
_BEYOND = re.compile("[\U00010000-\U0010ffff\ue000-\uf8ff]")
_OWN, _MOST_OWN = 0xE000, 6000
"""Where the private characters begin that stand for Latin words, and how many there are."""
_ENDS = np.zeros(65536, dtype=bool)
_ENDS[[ord(letter) for letter in sorted(HAN_ALONE)]] = True
_GRAMS_LOOKED_AT = 400
"""Grams that are looked at one by one, the most frequent ones."""
_ENOUGH = 64
"""Words after which the others are too rare to name a topic."""
_SPARSE = 12_000
"""Characters of all texts for each of which a gram has to stand there once more."""
_WITHIN = 0.7
"""A gram is left out when so many of its mentions are those of a longer one."""
_COHESION = 1.0
_FREEDOM = 2

Codes = NDArray[np.uint16]
_Numbers = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Gram:
    text: str
    passages: int


def has_han(text: str) -> bool:
    return _ANY_HAN.search(text) is not None


def grams(passages: Sequence[str], least: int) -> list[Gram]:
    """Return the words in at least `least` passages, unless a longer one is in nearly as many."""
    latin: dict[str, str] = {}
    shown: dict[str, str] = {}

    def stand_in(word: re.Match[str]) -> str:
        said = word[0].strip()
        key = said.casefold()
        if key in BREAKS:
            return " "
        if key not in latin:
            if len(latin) >= _MOST_OWN:
                return " "
            latin[key] = chr(_OWN + len(latin))
            shown[latin[key]] = said
        return latin[key]

    texts = [_LATIN.sub(stand_in, _BEYOND.sub(" ", passage)) for passage in passages]
    codes = np.frombuffer("\n".join(texts).encode("utf-16-le", "replace"), "<u2")
    numbers = np.cumsum(codes == 10)
    found = _Counted(codes, numbers).found(least)
    return [Gram("".join(shown.get(letter, letter) for letter in gram.text), gram.passages) for gram in found]


def may_name(text: str) -> bool:
    """Whether a word may name a topic: no function word, and none that every conversation has."""
    return (
        text not in HAN_LIGHT
        and HAN_BREAKS.search(HAN_KEPT.sub("\u25a1\u25a1", text)) is None
        and HAN_WITHIN.search(text) is None
        and HAN_COUNTS.match(text) is None
        and text[0] not in HAN_EDGES
        and text[-1] not in HAN_EDGES
        and has_han(text)
    )


class _Counted:
    def __init__(self, codes: Codes, numbers: _Numbers) -> None:
        self._codes = codes
        self._numbers = numbers
        self._dense = (codes >= 0x3400) & (codes <= 0xFAFF) & ((codes <= 0x9FFF) | (codes >= _OWN))
        self._inside = self._dense & ~_ENDS[codes]
        self._letters = np.bincount(codes, minlength=65536)
        self._total = max(1, int(self._dense.sum()))
        self._counts: dict[str, int] = {}

    def found(self, least: int) -> list[Gram]:
        """Return the words, most frequent first."""
        known = self._frequent(max(least, self._total // _SPARSE))
        self._counts = {text: len(places) for text, places in known}
        inner = self._inner(known)
        kept: list[Gram] = []
        for text, places in known:
            if text not in inner and may_name(text) and self._holds(text, places):
                passages = len(np.unique(self._numbers[places]))
                if passages >= least:
                    kept.append(Gram(text, passages))
            if len(kept) >= _ENOUGH:
                break
        return kept

    def _frequent(self, least: int) -> list[tuple[str, _Numbers]]:
        together = np.flatnonzero(self._dense[:-1] & self._dense[1:])
        keys = self._codes[together].astype(np.uint32) << 16 | self._codes[together + 1]
        groups: list[tuple[str, _Numbers]] = []
        for size in range(2, LONGEST + 1):
            ids, count, largest = _grouped(keys, least)
            groups += [(self._text(int(together[members[0]]), size), together[members]) for members in largest]
            # A gram of one more character begins where two of this size overlap.
            often = np.flatnonzero(ids >= 0)
            together, ids = together[often], ids[often]
            follows = np.flatnonzero(np.diff(together) == 1)
            if not len(follows):
                break
            keys = ids[follows] * count + ids[follows + 1]
            together = together[follows]
        groups.sort(key=lambda group: (-len(group[1]), -len(group[0]), group[0]))
        return groups[:_GRAMS_LOOKED_AT]

    def _inner(self, known: Sequence[tuple[str, _Numbers]]) -> set[str]:
        """Return the grams that mostly occur within a longer one."""
        found = set()
        for text, places in known:
            if len(text) > 2 and may_name(text):
                parts = {text[a:b] for a in range(len(text)) for b in range(a + 2, len(text) + 1)} - {text}
                found |= {part for part in parts if len(places) >= _WITHIN * self._counts.get(part, len(places))}
        return found

    def _holds(self, text: str, places: _Numbers) -> bool:
        """Whether its parts belong together, and whether it ends at word boundaries."""
        size, count = len(text), len(places)
        # An unknown part occurs about as often as the whole: it fell below the limit.
        parts = ((self._count(text[:cut], count), self._count(text[cut:], count)) for cut in range(1, size))
        by_chance = max(before * behind for before, behind in parts)
        if math.log(count * self._total / max(1, by_chance)) < _COHESION:
            return False
        return all(self._freedom(places + step) >= _FREEDOM for step in (-1, size))

    def _freedom(self, places: _Numbers) -> int:
        """Count the different characters at places; ends of runs and non-name characters are all different."""
        there = places[(places >= 0) & (places < len(self._codes))]
        within = there[self._inside[there]]
        return len(np.unique(self._codes[within])) + len(places) - len(within)

    def _count(self, text: str, default: int) -> int:
        return int(self._letters[ord(text)]) if len(text) == 1 else self._counts.get(text, default)

    def _text(self, place: int, size: int) -> str:
        return self._codes[place : place + size].tobytes().decode("utf-16-le")


def _grouped(keys: _Numbers, least: int) -> tuple[_Numbers, int, list[_Numbers]]:
    """Return each key's group number or -1, the number of groups, and the largest groups' places."""
    order = np.argsort(keys)
    there = keys[order]
    starts = np.flatnonzero(np.append(True, there[1:] != there[:-1]))[: len(keys)]
    counts = np.diff(np.append(starts, len(keys)))
    often = counts >= least
    ids = np.empty(len(keys), dtype=np.int64)
    ids[order] = np.repeat(np.where(often, np.cumsum(often) - 1, -1), counts)
    enough = (
        max(least, int(np.partition(counts, -_GRAMS_LOOKED_AT)[-_GRAMS_LOOKED_AT]))
        if len(counts) > _GRAMS_LOOKED_AT
        else least
    )
    large = counts >= enough
    ends = starts + counts
    return ids, int(often.sum()), [order[a:b] for a, b in zip(starts[large], ends[large], strict=True)]
