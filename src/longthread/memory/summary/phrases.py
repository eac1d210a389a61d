"""Finds what may name a topic: English phrases of one to three words, identifiers, tables, and Chinese words.

No tagger finds the nouns. Phrases end at words that no noun phrase contains. A single word counts if it mostly ends
such a run, and seldom follows "to", "we" or "can", as a verb does.

Chinese words are found by character statistics alone. A word's characters occur together more often than by chance
(cohesion), and its neighbours vary (freedom). A Latin word between Chinese ones counts as one character: "Docker部署".
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import chain

import numpy as np
from numpy.typing import NDArray

from longthread.memory.index.terms import stem
from longthread.memory.summary.stopwords import (
    AGENTS,
    BREAKS,
    HAN_ALONE,
    HAN_BREAKS,
    HAN_COUNTS,
    HAN_EDGES,
    HAN_KEPT,
    HAN_LIGHT,
    HAN_WITHIN,
    LIGHT,
    SQL,
)

MOST_WORDS = 3
_LETTERS = "A-Za-z\u00c0-\u024f"
_TOKEN = re.compile(
    rf"[{_LETTERS}_][{_LETTERS}0-9_]*+(?:[-./'’&+#@:][{_LETTERS}0-9_]++)*+(?:\+\+|#)?|[^\s{_LETTERS}_]++|\n"
)
_BEGINS = re.compile(f"[{_LETTERS}_]")
_BETWEEN = "\n\n\0\n\n"
"""What stands between passages; no text has it."""
_STARTS = frozenset(".!?:…\n\"'”’)。！？：-*\0")
_SINGLE_LEAST = 4
"""Characters of a word that names a topic alone, unless it is written in capitals."""
_LONGEST = 30
_LOOKED_AT = 160
"""Phrases that are looked at one by one, the most frequent ones."""
_NO_NAMES = re.compile(r"(?=.*\d)[0-9a-f-]{7,}$|.*\d.*[a-z].*\d.*[a-z].*\d", re.IGNORECASE)
"""Hashes, keys and the like."""

PhraseWords = tuple[str, ...]
"""The stems of a phrase, by which its spellings are one."""


@dataclass(slots=True)
class FoundPhrase:
    passages: int = 0
    spellings: Counter[str] = field(default_factory=Counter)


@dataclass(frozen=True, slots=True)
class _Word:
    """A token: `key` is its stem, or empty if it ends a phrase."""

    token: str
    key: str
    is_agent: bool
    starts: bool
    title: bool

    @classmethod
    def of(cls, token: str) -> _Word:
        word = token.lower()
        key = "" if _breaks(token, word) else stem(word.removesuffix("'s").removesuffix("’s"))
        return cls(token, key, word in AGENTS, token[-1] in _STARTS, token.istitle())


class _Known(dict[str, _Word]):
    def __missing__(self, token: str) -> _Word:
        word = self[token] = _Word.of(token)
        return word


_Run = tuple[int, list[_Word]]


class Phrases:
    """Counts the phrases that occur in at least `least` passages."""

    def __init__(self, passages: Sequence[str], least: int) -> None:
        self._verbs: Counter[str] = Counter()
        self._proper: set[str] = set()
        runs = self._runs(_BETWEEN.join(passages))
        self._last = Counter(run[-1].key for _, run in runs)
        counts = self._counts(runs, least)
        self.found = self._spell_phrases(runs, _most_said(counts, least))

    def _runs(self, text: str) -> list[_Run]:
        """Return unbroken runs of words, each with its passage's number."""
        runs: list[_Run] = []
        run: list[_Word] = []
        number, before = 0, _Word.of(".")
        for word in map(_Known().__getitem__, _TOKEN.findall(text)):
            if word.key:
                if before.is_agent:
                    self._verbs[word.key] += 1
                if word.title and not before.starts:
                    self._proper.add(word.token)
                run.append(word)
            else:
                if run:
                    runs.append((number, run))
                    run = []
                if word.token == "\0":
                    number += 1
            before = word
        return [*runs, (number, run)] if run else runs

    def _counts(self, runs: Sequence[_Run], least: int) -> Counter[PhraseWords]:
        """Count each phrase's passages. Rare words begin and end no phrase."""
        often = Counter([word.key for _, run in runs for word in run])
        said: list[set[PhraseWords]] = [set() for _ in range(runs[-1][0] + 1 if runs else 0)]
        for number, run in runs:
            keys = [word.key if often[word.key] >= least else "" for word in run]
            for start, key in enumerate(keys):
                if not key:
                    continue
                said[number].add((key,))
                for end in range(start + 2, min(len(keys), start + MOST_WORDS) + 1):
                    if not keys[end - 1]:
                        break
                    said[number].add(tuple(keys[start:end]))
        return Counter(chain.from_iterable(said))

    def _spell_phrases(self, runs: Sequence[_Run], counts: dict[PhraseWords, int]) -> dict[PhraseWords, FoundPhrase]:
        """Return the phrases that may name a topic, with their spellings."""
        found = {words: FoundPhrase(count) for words, count in counts.items()}
        starting, within = {words[0] for words in found}, {word for words in found for word in words}
        for _, run in runs:
            for start, word in enumerate(run):
                if word.key not in starting:
                    continue
                for end in range(start + 1, min(len(run), start + MOST_WORDS) + 1):
                    if run[end - 1].key not in within:
                        break
                    there = found.get(tuple([other.key for other in run[start:end]]))
                    if there is not None:
                        there.spellings[" ".join([self._spell_word(other) for other in run[start:end]])] += 1
        return {words: there for words, there in found.items() if self._may_name(words, there)}

    def _spell_word(self, word: _Word) -> str:
        """Return a word's spelling, without a capital that only begins sentences."""
        return word.token.lower() if word.title and word.token not in self._proper else word.token

    def _may_name(self, words: PhraseWords, found: FoundPhrase) -> bool:
        spelling = choose_spelling(found.spellings)
        parts = spelling.split(" ")
        first, last = parts[0].lower(), parts[-1].lower()
        if is_odd(parts[0]) or is_odd(parts[-1]):
            return False
        if len(words) > 1:
            tense = last.endswith("ed") and len(last) > 4
            return not (first in LIGHT or first.endswith("ly") or tense or self._verbs[words[0]])
        if is_name(spelling):
            return True
        short = len(first) < _SINGLE_LEAST and not (first.isalnum() and spelling.isupper() and len(first) > 1)
        return not (
            short
            or first in LIGHT
            or first.endswith(("ly", "ful", "ous", "less"))
            or (first.endswith("ed") and len(first) > 5)
            # What mostly precedes another word only modifies it.
            or 2 * self._last[words[0]] < found.passages
            or (first.endswith("ing") and found.passages < 3)
            or 3 * self._verbs[words[0]] > found.passages
        )


def weight(words: PhraseWords) -> float:
    return (1.0, 1.7, 2.0)[len(words) - 1]


def _most_said(counts: Counter[PhraseWords], least: int) -> dict[PhraseWords, int]:
    often = [(weight(words) * count, words) for words, count in counts.items() if count >= least]
    often.sort(key=lambda item: (-item[0], item[1]))
    return {words: counts[words] for _, words in often[:_LOOKED_AT]}


def _breaks(token: str, word: str) -> bool:
    if word in BREAKS or token in SQL or len(token) > _LONGEST or not _BEGINS.match(token):
        return True
    # "it's" and "didn’t" count as their first part.
    return ("'" in word or "’" in word) and re.split("['’]", word)[0] in BREAKS


def is_name(token: str) -> bool:
    """Whether a word is an identifier: the name of a table, a class, a path, a host."""
    inside = token[1:]
    return (
        "_" in token.strip("_")
        or (any(mark in inside for mark in "./#@:") and len(token) > 4)
        or (token[0].isupper() and any(letter.isupper() for letter in inside) and any(map(str.islower, inside)))
        or (token[0].islower() and any(map(str.isupper, inside)))
    )


def is_odd(token: str) -> bool:
    """Whether a word is not spoken: a hash, a key, a single letter."""
    return len(token) < 2 or _NO_NAMES.match(token) is not None or token.startswith("_")


def choose_spelling(spellings: Counter[str]) -> str:
    """Return the most frequent spelling; among equals without a sentence's capital, then the shorter."""
    return min(spellings, key=lambda name: (-spellings[name], name[:1].isupper(), len(name), name))


def is_proper(spellings: Counter[str]) -> bool:
    """Whether a phrase is mostly capitalised."""
    capital = sum(count for name, count in spellings.items() if all(word[:1].isupper() for word in name.split(" ")))
    return 2 * capital > sum(spellings.values())


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
"""A gram has to stand there once more for each so many characters of all texts."""
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
    found = _Counted(codes, numbers).find_words(least)
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

    def find_words(self, least: int) -> list[Gram]:
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
            ids, count, largest = _group_keys(keys, least)
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


def _group_keys(keys: _Numbers, least: int) -> tuple[_Numbers, int, list[_Numbers]]:
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
