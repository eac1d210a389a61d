"""Finds English phrases that may name a topic: one to three words, identifiers and names of tables.

No tagger finds the nouns. Phrases end at words that no noun phrase contains. A single word counts if it mostly ends
such a run, and seldom follows "to", "we" or "can", as a verb does.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import chain

from longthread.memory.index.terms import stem
from longthread.memory.summary.stopwords import AGENTS, BREAKS, LIGHT, SQL

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
"""Phrases that are looked at one by one, those that are said most."""
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
        self.found = self._spelled(runs, _most_said(counts, least))

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

    def _spelled(self, runs: Sequence[_Run], counts: dict[PhraseWords, int]) -> dict[PhraseWords, FoundPhrase]:
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
                        there.spellings[" ".join([self._told(other) for other in run[start:end]])] += 1
        return {words: there for words, there in found.items() if self._may_name(words, there)}

    def _told(self, word: _Word) -> str:
        """Return a word's spelling, without a capital that only begins sentences."""
        return word.token.lower() if word.title and word.token not in self._proper else word.token

    def _may_name(self, words: PhraseWords, found: FoundPhrase) -> bool:
        spelling = spelled(found.spellings)
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


def spelled(spellings: Counter[str]) -> str:
    """Return the most frequent spelling; among equals without a sentence's capital, then the shorter."""
    return min(spellings, key=lambda name: (-spellings[name], name[:1].isupper(), len(name), name))


def is_proper(spellings: Counter[str]) -> bool:
    """Whether a phrase is mostly capitalised."""
    capital = sum(count for name, count in spellings.items() if all(word[:1].isupper() for word in name.split(" ")))
    return 2 * capital > sum(spellings.values())
