"""BM25: how much a term of a question counts in a text (Robertson, Zaragoza: The Probabilistic Relevance Framework)."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_Number = TypeVar("_Number", float, "NDArray[np.float64]")


def rarity(texts: int, holding: int) -> float:
    """The inverse document frequency of a term that `holding` texts have. Never negative."""
    return math.log(1 + (max(0, texts - holding) + 0.5) / (holding + 0.5))


def occurrence(count: _Number, words: _Number, average: float, *, saturation: float, length: float) -> _Number:
    """The term frequency part, to be multiplied by `rarity`, of a text of so many `words`. `saturation` is BM25's k1,
    `length` its b."""
    return count * (saturation + 1) / (count + saturation * (1 - length + length * words / average))
