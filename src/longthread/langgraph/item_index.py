"""Index items by LangGraph's index configuration, and search them by words with BM25 or by vectors."""

from __future__ import annotations

import json
import logging
import math
import time
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, get_args

import numpy as np
from langchain_core.embeddings import Embeddings
from langgraph.store.base import IndexConfig, ensure_embeddings, get_text_at_path

from longthread.errors import InvalidInput
from longthread.llm.failures import constructor_errors, first_line
from longthread.memory.embedder import (
    ANY,
    MOST_NUMBERS,
    EmbedderFailed,
    Vectors,
    answer,
    is_about_the_text,
    make_vectors,
    unit,
)
from longthread.memory.index.postings import hash_of
from longthread.memory.index.ranking import LENGTH, SATURATION
from longthread.memory.index.terms import CHARACTER, COMMON_TERMS, TERMS_FORM, asked_characters, characters, terms
from longthread.memory.index.vectors import TIMEOUT
from longthread.model.bm25 import occurrence, rarity
from longthread.store import items
from longthread.store.driver import Transaction
from longthread.store.items import Index, ItemPlace, ItemScope, Posting, VectorMeasure

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


def count_terms(texts: Iterable[str]) -> dict[int, int]:
    return dict(Counter(hash_of(term) - _HALF for text in texts for term in [*terms(text), *characters(text)]))


async def by_words(tx: Transaction, scope: ItemScope, question: str) -> RankedItems:
    wanted = dict.fromkeys(terms(question), 1.0)
    wanted |= {char: CHARACTER for char in asked_characters(question, COMMON_TERMS) if char not in wanted}
    asked = {hash_of(term) - _HALF: weight for term, weight in list(wanted.items())[:_MOST_TERMS]}
    found = await items.postings(tx, scope, list(asked)) if asked else []
    if not found:
        return []
    count, words = await items.extent(tx, scope)
    return _rank_places(_scores(found, asked, count, words / max(1, count)))


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
    return _rank_places(scores)


def _likeness(vectors: Vectors, vector: Vectors, measure: VectorMeasure) -> Vectors:
    """Return similarities, higher is nearer: the cosine, the negative distance, or the inner product."""
    if measure == "l2":
        distances: Vectors = -np.linalg.norm(vectors - vector, axis=1)
        return distances
    if measure == "cosine":
        vectors, vector = unit(vectors), unit(vector)
    products: Vectors = vectors @ vector
    return products


def _rank_places(scores: dict[ItemPlace, float]) -> RankedItems:
    return [
        (-value, place) for value, place in sorted((-round(score, _DIGITS), place) for place, score in scores.items())
    ]


IndexFields = list[str] | bool | None
"""The paths to what of a value is found; None for the configured ones, False for nothing."""

REST_SECONDS = 60.0
"""How long an embedder that failed is not asked again."""
_WHOLE = ["$"]

_logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class IndexedItem:
    key: str
    value: Mapping[str, Any]
    fields: IndexFields


class ItemIndex:
    """Indexes items. When the embedder fails, items are stored without vectors, which are added later."""

    def __init__(self, config: IndexConfig | None) -> None:
        """Raises InvalidInput if the configuration has no usable embedder or no dimensions."""
        given: Mapping[str, Any] = dict(config or {})
        dims = given.get("dims")
        if config is not None and not (isinstance(dims, int) and 0 < dims <= MOST_NUMBERS and given.get("embed")):
            raise InvalidInput(
                reason='The index needs "dims", the size of its vectors, a whole number from 1 to '
                f'{MOST_NUMBERS:,}, and "embed".'
            )
        named = given.get("distance_type") or "cosine"
        measure: VectorMeasure | None = next((each for each in get_args(VectorMeasure) if each == named), None)
        if measure is None:
            raise InvalidInput(reason=f"The distance_type {named!r} is none of {', '.join(get_args(VectorMeasure))}.")
        self.measure = measure
        self._dims = int(given.get("dims") or 0)
        fields = given.get("fields") or given.get("text_fields") or _WHOLE  # the latter is SqliteStore's name for them
        if not isinstance(fields, str | list | tuple) or not all(isinstance(field, str) for field in fields):
            raise InvalidInput(reason=f'The index has the "fields" {fields!r}. Give a list of paths, such as ["text"].')
        self._fields = [fields] if isinstance(fields, str) else list(fields)
        self._embeddings = _embeddings(given["embed"]) if given else None
        self._name = _name(given["embed"]) if given else ""
        self._resting_until = 0.0

    @property
    def vector_model(self) -> str | None:
        """The name of the vectors' model; None without an embedder. Vectors of different names are never compared."""
        fields = json.dumps(self._fields, ensure_ascii=False)
        return f"{self._name} {self._dims} {fields}" if self._embeddings is not None else None

    async def make_indexes(self, wanted: Sequence[IndexedItem]) -> list[Index]:
        """Index items, without vectors where the embedder fails; InvalidInput if the vectors have the wrong size."""
        texts = [self._texts(each) for each in wanted] if self._embeddings is not None else []
        vectors = await self._documents([text for each in texts for text in each.values()]) if any(texts) else {}
        embedded = self.vector_model if vectors is not None else None
        found: list[Index] = []
        at = 0
        for n, each in enumerate(wanted):
            named: dict[str, Vectors] = {}
            for path in texts[n] if texts else ():
                if vectors is not None and at in vectors:
                    named[path] = vectors[at]
                at += 1
            found.append(Index(TERMS_FORM, self._terms(each), named, embedded or ""))
        return found

    async def vector(self, question: str) -> Vectors | None:
        """Embed a query; None if no embedder works. InvalidInput if the vector's size is not the configured one."""
        if self._embeddings is None:
            return None
        embeddings = self._embeddings
        if time.monotonic() < self._resting_until:
            return None
        try:
            return self._check_shape(await answer(partial(embeddings.aembed_query, question), TIMEOUT), ())
        except EmbedderFailed as error:
            if not await is_about_the_text(partial(answer, partial(embeddings.aembed_query, ANY), TIMEOUT), error):
                self._rest(error)
            return None

    async def _documents(self, texts: Sequence[str]) -> dict[int, Vectors] | None:
        """Map places of texts to vectors, without texts that the embedder rejects; None if it fails."""
        assert self._embeddings is not None
        embeddings = self._embeddings

        async def make(some: Sequence[str]) -> Vectors:
            return self._check_shape(
                await answer(partial(embeddings.aembed_documents, list(some)), TIMEOUT), (len(some),)
            )

        if time.monotonic() < self._resting_until:
            return None
        made = await make_vectors(make, texts)
        if made.failure is not None:
            self._rest(made.failure)
            return None
        for reason in made.refused.values():
            _logger.warning("The embedder %s refused a text, which is found by its words: %s", self._name, reason)
        return made.vectors

    def _rest(self, error: EmbedderFailed) -> None:
        _logger.warning("The embedder %s failed; items are found by their words: %s", self._name, error)
        self._resting_until = time.monotonic() + REST_SECONDS

    def _check_shape(self, vectors: Vectors, shape: tuple[int, ...]) -> Vectors:
        if vectors.shape != (*shape, self._dims):
            reason = f"The embedder gave vectors of shape {vectors.shape}, and the index is for dims={self._dims}."
            raise InvalidInput(reason=reason)
        return vectors

    def _texts(self, wanted: IndexedItem) -> dict[str, str]:
        if wanted.fields is False:
            return {}
        texts: dict[str, str] = {}
        for path in wanted.fields if isinstance(wanted.fields, list) else self._fields:
            found = get_text_at_path(dict(wanted.value), path)
            texts |= {(f"{path}.{n}" if len(found) > 1 else path): text for n, text in enumerate(found)}
        return texts

    def _terms(self, wanted: IndexedItem) -> dict[int, int]:
        """Index the words of the whole value, whatever has vectors, unless the item itself says otherwise."""
        if wanted.fields is False:
            return {}
        if not isinstance(wanted.fields, list):
            return count_terms([wanted.key, *said_in(wanted.value)])
        value = dict(wanted.value)
        return count_terms(text for path in wanted.fields for text in get_text_at_path(value, path))


def _embeddings(embed: Any) -> Embeddings:
    """Return LangGraph's embeddings for `embed`; InvalidInput if there is no such embedder."""
    advice = 'Give an Embeddings object, a function of texts, or "provider:model" of a provider whose package is there.'
    if not isinstance(embed, str | Embeddings) and not callable(embed):
        raise InvalidInput(reason=f'The index\'s "embed" is of type {type(embed).__name__}. {advice}')

    def make_refusal(error: Exception) -> InvalidInput:
        return InvalidInput(reason=f"The index's embedder {embed!r} cannot be used: {first_line(error)} {advice}")

    with constructor_errors(make_refusal):
        return ensure_embeddings(embed)


def _name(embed: Any) -> str:
    if isinstance(embed, str):
        return embed
    kind = embed if hasattr(embed, "__qualname__") else type(embed)
    model = next((str(getattr(embed, name)) for name in ("model", "model_name") if hasattr(embed, name)), "")
    return f"{kind.__module__}.{kind.__qualname__}:{model}"
