"""An embedder for tests: the same vectors everywhere, without a model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from longthread.memory.embedder import Vectors
from longthread.memory.index.postings import hash_of
from longthread.memory.index.terms import terms


class HashEmbedder:
    """Texts that share words are near one another; `same` maps words to their synonyms."""

    def __init__(self, dims: int = 64, *, model: str = "words", same: Mapping[str, str] | None = None) -> None:
        self.name = f"hash:{model}"
        self._dims = dims
        pairs = [zip(terms(word), terms(means), strict=True) for word, means in (same or {}).items()]
        self._same = {word: means for pair in pairs for word, means in pair}

    async def documents(self, texts: Sequence[str]) -> Vectors:
        return np.array([self._vector(text) for text in texts], dtype=np.float32)

    async def query(self, text: str) -> Vectors:
        return self._vector(text)

    def _vector(self, text: str) -> Vectors:
        vector = np.zeros(self._dims, dtype=np.float32)
        for term in terms(text):
            # Each word has its own direction, the same in every process.
            vector += np.random.default_rng(hash_of(self._same.get(term, term))).standard_normal(self._dims)
        return vector
