"""Scores short texts, such as memories, against a question by BM25 over shared terms."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from hashlib import blake2b

import numpy as np
from numpy.typing import NDArray

from longthread.memory.index.postings import hash_of
from longthread.memory.index.ranking import LENGTH, SATURATION
from longthread.memory.index.terms import (
    TERMS_FORM,
    characters,
    terms,
)
from longthread.model.bm25 import occurrence, rarity

_TERM = np.dtype([("hash", "<u8"), ("count", "<u2")])
_MOST = 65535


@dataclass(frozen=True, slots=True)
class Bag:
    """The hashed terms and characters of a text with their counts; `words` is the number of terms."""

    hashes: NDArray[np.uint64]
    counts: NDArray[np.uint16]
    words: int

    @classmethod
    def of(cls, text: str) -> Bag:
        found = terms(text)
        counted = Counter(hash_of(term) for term in [*found, *characters(text)])
        order = sorted(counted)
        counts = np.array([min(counted[value], _MOST) for value in order], dtype=np.uint16)
        return cls(np.array(order, dtype=np.uint64), counts, len(found))

    @classmethod
    def read(cls, data: bytes, words: int) -> Bag:
        rows = np.frombuffer(data, _TERM)
        return cls(rows["hash"].astype(np.uint64), rows["count"].astype(np.uint16), words)

    def packed(self) -> bytes:
        """Serialize hashes and counts; the text is not stored."""
        rows = np.empty(len(self.hashes), dtype=_TERM)
        rows["hash"], rows["count"] = self.hashes, self.counts
        return rows.tobytes()


def form_of(text: str) -> str:
    """Identify a text and the version of its terms."""
    return f"{TERMS_FORM}:{blake2b(text.encode('utf-8', 'surrogatepass'), digest_size=8).hexdigest()}"


def score_bags(bags: Mapping[str, Bag], wanted: Mapping[str, float]) -> dict[str, float]:
    """Score each text by name; texts that share no term are left out."""
    if not bags:
        return {}
    names, each = list(bags), list(bags.values())
    words = np.array([bag.words for bag in each], dtype=np.float64)
    owners = np.repeat(np.arange(len(each)), [len(bag.hashes) for bag in each])
    hashes = np.concatenate([bag.hashes for bag in each])
    counts = np.concatenate([bag.counts for bag in each]).astype(np.float64)
    average = max(1.0, float(words.mean()))
    found = np.zeros(len(each))
    for value, weight in sorted((hash_of(term), weight) for term, weight in wanted.items()):
        places = np.flatnonzero(hashes == np.uint64(value))
        at = owners[places]
        said = occurrence(counts[places], words[at], average, saturation=SATURATION, length=LENGTH)
        found[at] += weight * rarity(len(each), len(places)) * said
    return {name: round(float(value), 6) for name, value in zip(names, found, strict=True) if value > 0}


def holds_all(bag: Bag, wanted: Collection[str]) -> bool:
    return all(_place(bag, hash_of(term)) is not None for term in wanted)


def _place(bag: Bag, value: int) -> int | None:
    place = int(bag.hashes.searchsorted(np.uint64(value)))
    return place if place < len(bag.hashes) and int(bag.hashes[place]) == value else None
