"""Searches a store's items: by words with BM25, or by the vectors of their texts."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from longthread.memory.embedder import Vectors, unit
from longthread.memory.index.postings import hash_of
from longthread.memory.index.ranking import LENGTH, SATURATION
from longthread.memory.index.terms import CHARACTER, COMMON_TERMS, asked_characters, characters, terms
from longthread.model.bm25 import occurrence, rarity
from longthread.store import items
from longthread.store.driver import Transaction
from longthread.store.items import ItemPlace, ItemScope, Posting, VectorMeasure

RankedItems = list[tuple[float, ItemPlace]]
"""Items with their scores, the best first."""

_HALF = 2**63  # databases have signed numbers
_DIGITS = 6
"""Digits of a score: what both databases' arithmetic agrees on."""
_MOST_TERMS = 256


def said_in(value: Any) -> list[str]:
    """Return the leaf texts of a value, without keys."""
    if isinstance(value, dict):
        return [text for item in value.values() for text in said_in(item)]
    if isinstance(value, list | tuple):
        return [text for item in value for text in said_in(item)]
    return [] if value is None or isinstance(value, bool) else [str(value)]


def counted(texts: Iterable[str]) -> dict[int, int]:
    return dict(Counter(hash_of(term) - _HALF for text in texts for term in [*terms(text), *characters(text)]))


async def by_words(tx: Transaction, scope: ItemScope, question: str) -> RankedItems:
    wanted = dict.fromkeys(terms(question), 1.0)
    wanted |= {char: CHARACTER for char in asked_characters(question, COMMON_TERMS) if char not in wanted}
    asked = {hash_of(term) - _HALF: weight for term, weight in list(wanted.items())[:_MOST_TERMS]}
    found = await items.postings(tx, scope, list(asked)) if asked else []
    if not found:
        return []
    count, words = await items.extent(tx, scope)
    return _ranked(_scores(found, asked, count, words / max(1, count)))


def _scores(found: Sequence[Posting], asked: Mapping[int, float], count: int, average: float) -> dict[ItemPlace, float]:
    holders = Counter(posting.term for posting in found)
    scores: defaultdict[ItemPlace, float] = defaultdict(float)
    for posting in sorted(found, key=lambda each: (each.place, each.term)):
        said = occurrence(posting.count, posting.words, max(1.0, average), saturation=SATURATION, length=LENGTH)
        scores[posting.place] += asked[posting.term] * rarity(count, holders[posting.term]) * said
    return scores


async def by_meaning(
    tx: Transaction, scope: ItemScope, embedded: str, vector: Vectors, measure: VectorMeasure, limit: int | None
) -> RankedItems:
    """Rank items by the nearest of their vectors."""
    found = await items.near(tx, scope, embedded, vector, measure, limit)
    scores: dict[ItemPlace, float] = {}
    if found:
        values = _likeness(np.array([numbers for _, numbers in found]), vector, measure)
        for (place, _), value in zip(found, values.tolist(), strict=True):
            scores[place] = max(value, scores.get(place, -math.inf))
    return _ranked(scores)


def _likeness(vectors: Vectors, vector: Vectors, measure: VectorMeasure) -> Vectors:
    """Return similarities, higher is nearer: the cosine, the negative distance, or the inner product."""
    if measure == "l2":
        distances: Vectors = -np.linalg.norm(vectors - vector, axis=1)
        return distances
    if measure == "cosine":
        vectors, vector = unit(vectors), unit(vector)
    products: Vectors = vectors @ vector
    return products


def _ranked(scores: dict[ItemPlace, float]) -> RankedItems:
    return [
        (-value, place) for value, place in sorted((-round(score, _DIGITS), place) for place, score in scores.items())
    ]
