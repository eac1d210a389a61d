"""BM25: how much a term of a question counts in a text (Robertson, Zaragoza: The Probabilistic Relevance Framework)."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_Number = TypeVar("_Number", float, "NDArray[np.float64]")


def rarity(texts: int, holding: int) -> float:
    """The weight of a term that `holding` of so many texts have: the fewer, the more. It is never negative."""
    return math.log(1 + (max(0, texts - holding) + 0.5) / (holding + 0.5))


def occurrence(count: _Number, words: _Number, average: float, *, saturation: float, length: float) -> _Number:
    """What a text adds that has a term `count` times, to be multiplied by the term's rarity.

    Args:
        words: how long the text is; `average` is how long texts are in the mean.
        saturation: BM25's k1: how soon further mentions stop to count.
        length: BM25's b, from 0 to 1: how much a long text is held against a term in it.
    """
    return count * (saturation + 1) / (count + saturation * (1 - length + length * words / average))
