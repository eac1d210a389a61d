"""The bilingual glossary: which words mean the same thing."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property, lru_cache
from importlib.resources import files

from longthread.tools.analysis.schema_linking import atoms, is_cjk

_Key = tuple[str, ...]


@dataclass(frozen=True)
class Glossary:
    """`synonyms[key]` are the keys that mean the same; `hints[key]` the keys that often name a column of it."""

    synonyms: dict[_Key, tuple[_Key, ...]]
    hints: dict[_Key, tuple[_Key, ...]]
    longest: int
    raw: dict[_Key, tuple[str, ...]]
    """The same synonyms as they are written, to search data for."""
    concepts: tuple[tuple[str, ...], ...] = ()
    """The words of each concept as they are written, with the names of its columns."""

    def same(self, key: _Key) -> tuple[_Key, ...]:
        """The other keys of the same concepts."""
        return self.synonyms.get(key, ())

    @cached_property
    def _concepts_of(self) -> dict[_Key, list[tuple[tuple[str, ...], list[str]]]]:
        """The concepts that a key is in, each with its words of that key."""
        found: dict[_Key, list[tuple[tuple[str, ...], list[str]]]] = {}
        for words in self.concepts:
            by_key: dict[_Key, list[str]] = {}
            for word in words:
                by_key.setdefault(atoms(word), []).append(word)
            for key, others in by_key.items():
                found.setdefault(key, []).append((words, others))
        return found

    def chinese(self, word: str) -> str:
        """The Chinese for an English word that begins one concept and is in no other; empty where it may mean two."""
        key = atoms(word)
        near = [
            words
            for words, others in self._concepts_of.get(key, ())
            if any(abs(len(other) - len(word)) <= 2 for other in others)
        ]
        if len(near) != 1 or atoms(near[0][0]) != key:
            return ""
        return next((other for other in near[0] if is_cjk(other) and len(other) > 1), "")

    def parts(self, key: _Key) -> list[_Key]:
        """A key cut into the longest glossary words it is made of, at least two; an unknown atom stands alone."""
        pieces: list[_Key] = []
        at = 0
        longest = min(self.longest, len(key) - 1) or 1
        while at < len(key):
            for size in range(min(longest, len(key) - at), 0, -1):
                piece = key[at : at + size]
                if size == 1 or piece in self.synonyms:
                    pieces.append(piece)
                    at += size
                    break
        return pieces

    def expand(self, text: str) -> Iterator[str]:
        """The synonyms of the glossary words in a text."""
        for piece in self.parts((*atoms(text), "")):
            for other in self.same(piece):
                yield "".join(other) if not other[0].isascii() else " ".join(other)


def _rows() -> Iterator[tuple[list[str], list[_Key]]]:
    for strong, weak in _written():
        yield strong, [atoms(word) for word in weak]


def _written() -> Iterator[tuple[list[str], list[str]]]:
    text = files(__package__).joinpath("glossary.tsv").read_text(encoding="utf-8")
    for line in text.splitlines():
        if line and not line.startswith("#"):
            strong, _, weak = line.partition("\t")
            yield strong.split(","), [word for word in weak.split(",") if word]


@lru_cache(maxsize=1)
def glossary() -> Glossary:
    """The packaged glossary, read once."""
    synonyms: dict[_Key, dict[_Key, None]] = {}
    hints: dict[_Key, dict[_Key, None]] = {}
    raw: dict[_Key, dict[str, None]] = {}
    for words, weak in _rows():
        strong = [atoms(word) for word in words]
        for key in strong:
            synonyms.setdefault(key, {}).update(dict.fromkeys(other for other in strong if other != key))
            hints.setdefault(key, {}).update(dict.fromkeys(weak))
            raw.setdefault(key, {}).update(dict.fromkeys(words))
    return Glossary(
        synonyms={key: tuple(others) for key, others in synonyms.items()},
        hints={key: tuple(others) for key, others in hints.items() if others},
        longest=max(len(key) for key in synonyms),
        concepts=tuple((*words, *weak) for words, weak in _written()),
        raw={key: tuple(words) for key, words in raw.items()},
    )
