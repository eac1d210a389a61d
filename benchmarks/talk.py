"""Made-up talk for measuring, in English and in Chinese."""

from __future__ import annotations

import random

ENGLISH = [
    "the",
    "of",
    "to",
    "and",
    "a",
    "in",
    "is",
    "it",
    "that",
    "we",
    "you",
    "for",
    "on",
    "with",
    "as",
    "are",
    "this",
    "be",
    "have",
    "from",
    "not",
    "can",
    "at",
    "by",
    "will",
]
"""Words that are everywhere."""


class Talk:
    """Made-up talk, the same each time."""

    def __init__(self, seed: int = 7) -> None:
        self._random = random.Random(seed)
        self._words = [self._word(number) for number in range(30_000)]
        self._weights = self._cumulated(len(self._words))
        self._han = [chr(0x4E00 + 7 * number) for number in range(2_500)]
        self._han_weights = self._cumulated(len(self._han))
        self._english_weights = self._cumulated(len(ENGLISH) + len(self._words))
        own = random.Random(seed)
        self._han_words = ["".join(own.choices(self._han, k=2 + number % 3 // 2)) for number in range(30_000)]

    def entry(self) -> str:
        """A message of about 25 words; every fourth one is Chinese."""
        count = self._random.randint(8, 42)
        if self._random.random() < 0.25:
            return "".join(self._random.choices(self._han, cum_weights=self._han_weights, k=count))
        return " ".join(self._random.choices(self._words, cum_weights=self._weights, k=count))

    def sentence(self, chinese: bool) -> str:
        """Words of the one language or the other, with more frequent ones between them."""
        count = self._random.randint(6, 14)
        if chinese:
            return "".join(self._random.choices(self._han_words, cum_weights=self._weights, k=count))
        return " ".join(self._random.choices([*ENGLISH, *self._words], cum_weights=self._english_weights, k=count))

    def question(self, text: str) -> str:
        """Some of an entry's words, and as many that are in a great many entries."""
        if " " in text:
            some = self._random.sample(text.split(), min(6, len(text.split())))
            return " ".join([*some, *self._words[: len(some)]])
        at = self._random.randint(0, max(0, len(text) - 12))
        return text[at : at + 12] + "".join(self._han[:6])

    def _word(self, number: int) -> str:
        letters = ""
        while number or not letters:
            number, rest = divmod(number, 100)
            letters += "bcdfghjklmnprstvwxyz"[rest // 5] + "aeiou"[rest % 5]
        return letters

    def _cumulated(self, count: int) -> list[float]:
        total, weights = 0.0, []
        for rank in range(count):
            total += 1 / (rank + 2)
            weights.append(total)
        return weights
