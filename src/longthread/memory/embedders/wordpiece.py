"""BERT's tokenizer: words in lower case, each split into the longest pieces of the vocabulary."""

from __future__ import annotations

import json
import unicodedata
from collections.abc import Iterator, Sequence
from functools import lru_cache
from pathlib import Path

_LONGEST = 100
"""Characters of a word beyond which it is unknown."""


class WordPiece:
    def __init__(self, folder: Path) -> None:
        """Load vocab.txt; OSError if there is none, KeyError if it is not BERT's."""
        words = (folder / "vocab.txt").read_text("utf-8").split("\n")
        self._known = {word: number for number, word in enumerate(words) if word}
        self._first, self._last, self._unknown = (self._known[word] for word in ("[CLS]", "[SEP]", "[UNK]"))
        config = folder / "tokenizer_config.json"
        given = json.loads(config.read_text("utf-8")) if config.is_file() else {}
        self._lower = bool(given.get("do_lower_case", True))
        self._pieces = lru_cache(maxsize=50_000)(self._split)

    def numbers(self, text: str, most: int) -> list[int]:
        """Return the text's tokens between the start and end tokens, cut to `most` in all."""
        found: list[int] = []
        for word in self._words(text):
            found += self._pieces(word)
            if len(found) >= most - 2:
                break
        return [self._first, *found[: most - 2], self._last]

    def unknown_share(self, numbers: Sequence[int]) -> float:
        """Return the share of a text's tokens that the vocabulary lacks."""
        return numbers.count(self._unknown) / max(1, len(numbers) - 2)

    def _words(self, text: str) -> Iterator[str]:
        if self._lower:
            decomposed = unicodedata.normalize("NFD", text.lower())
            text = "".join(letter for letter in decomposed if unicodedata.category(letter) != "Mn")
        word = ""
        for letter in text:
            if letter.isspace() or _is_control(letter):
                alone = ""
            elif _is_mark(letter) or _is_han(letter):
                alone = letter
            else:
                word += letter
                continue
            if word:
                yield word
            word = ""
            if alone:
                yield alone
        if word:
            yield word

    def _split(self, word: str) -> tuple[int, ...]:
        if len(word) > _LONGEST:
            return (self._unknown,)
        pieces: list[int] = []
        start = 0
        while start < len(word):
            prefix = "##" if start else ""
            for end in range(len(word), start, -1):
                number = self._known.get(prefix + word[start:end])
                if number is not None:
                    pieces.append(number)
                    start = end
                    break
            else:
                return (self._unknown,)
        return tuple(pieces)


def _is_control(letter: str) -> bool:
    return letter in "\0\ufffd" or unicodedata.category(letter) in ("Cc", "Cf")


def _is_mark(letter: str) -> bool:
    return (letter.isascii() and not letter.isalnum()) or unicodedata.category(letter).startswith("P")


def _is_han(letter: str) -> bool:
    return "\u3400" <= letter <= "\u9fff" or "\uf900" <= letter <= "\ufaff" or "\U00020000" <= letter <= "\U0002fa1f"
