"""Words of Chinese texts, by statistics of their characters alone.

A word's characters stand together more often than chance puts them (cohesion), and what stands before and behind it
changes (freedom). A Latin word between Chinese ones counts as one character: "Docker部署".
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
_LOOKED_AT = 400
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
    """A word, and how many passages have it."""

    text: str
    passages: int


def has_han(text: str) -> bool:
    """Whether there is Chinese in a text."""
    return _ANY_HAN.search(text) is not None


def grams(passages: Sequence[str], least: int) -> list[Gram]:
    """The words that stand in at least `least` passages, each where no longer one has nearly as many."""
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
    """Whether a word may name a topic: none that only holds sentences together, nor one of all conversations'."""
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
    """How often the grams of a text stand in it."""

    def __init__(self, codes: Codes, numbers: _Numbers) -> None:
        self._codes = codes
        self._numbers = numbers
        self._dense = (codes >= 0x3400) & (codes <= 0xFAFF) & ((codes <= 0x9FFF) | (codes >= _OWN))
        self._inside = self._dense & ~_ENDS[codes]
        self._letters = np.bincount(codes, minlength=65536)
        self._total = max(1, int(self._dense.sum()))
        self._counts: dict[str, int] = {}

    def found(self, least: int) -> list[Gram]:
        """The words, the most frequent first."""
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
        """The most frequent grams, each with its places."""
        together = np.flatnonzero(self._dense[:-1] & self._dense[1:])
        keys = self._codes[together].astype(np.uint32) << 16 | self._codes[together + 1]
        groups: list[tuple[str, _Numbers]] = []
        for size in range(2, LONGEST + 1):
            ids, count, largest = _grouped(keys, least)
            groups += [(self._text(int(together[members[0]]), size), together[members]) for members in largest]
            # A gram of one more character begins where two of this size follow each other.
            often = np.flatnonzero(ids >= 0)
            together, ids = together[often], ids[often]
            follows = np.flatnonzero(np.diff(together) == 1)
            if not len(follows):
                break
            keys = ids[follows] * count + ids[follows + 1]
            together = together[follows]
        groups.sort(key=lambda group: (-len(group[1]), -len(group[0]), group[0]))
        return groups[:_LOOKED_AT]

    def _inner(self, known: Sequence[tuple[str, _Numbers]]) -> set[str]:
        """The grams that mostly stand within a longer one."""
        found = set()
        for text, places in known:
            if len(text) > 2 and may_name(text):
                parts = {text[a:b] for a in range(len(text)) for b in range(a + 2, len(text) + 1)} - {text}
                found |= {part for part in parts if len(places) >= _WITHIN * self._counts.get(part, len(places))}
        return found

    def _holds(self, text: str, places: _Numbers) -> bool:
        """Whether its parts belong together, and whether it ends where words do."""
        size, count = len(text), len(places)
        # What is not known stands there as often as the whole, or nearly: it was one too many to be looked at.
        parts = ((self._count(text[:cut], count), self._count(text[cut:], count)) for cut in range(1, size))
        by_chance = max(before * behind for before, behind in parts)
        if math.log(count * self._total / max(1, by_chance)) < _COHESION:
            return False
        return all(self._freedom(places + step) >= _FREEDOM for step in (-1, size))

    def _freedom(self, places: _Numbers) -> int:
        """How many different characters stand at places; ends of runs, and characters that no name has, are each one
        of its own."""
        there = places[(places >= 0) & (places < len(self._codes))]
        within = there[self._inside[there]]
        return len(np.unique(self._codes[within])) + len(places) - len(within)

    def _count(self, text: str, default: int) -> int:
        return int(self._letters[ord(text)]) if len(text) == 1 else self._counts.get(text, default)

    def _text(self, place: int, size: int) -> str:
        return self._codes[place : place + size].tobytes().decode("utf-16-le")


def _grouped(keys: _Numbers, least: int) -> tuple[_Numbers, int, list[_Numbers]]:
    """The groups of equal keys that are large enough: for each key its group's number, or -1, how many groups there
    are, and the places of the largest ones."""
    order = np.argsort(keys)
    there = keys[order]
    starts = np.flatnonzero(np.append(True, there[1:] != there[:-1]))[: len(keys)]
    counts = np.diff(np.append(starts, len(keys)))
    often = counts >= least
    ids = np.empty(len(keys), dtype=np.int64)
    ids[order] = np.repeat(np.where(often, np.cumsum(often) - 1, -1), counts)
    enough = max(least, int(np.partition(counts, -_LOOKED_AT)[-_LOOKED_AT])) if len(counts) > _LOOKED_AT else least
    large = counts >= enough
    ends = starts + counts
    return ids, int(often.sum()), [order[a:b] for a, b in zip(starts[large], ends[large], strict=True)]
