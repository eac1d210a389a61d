"""BM25's two factors, at values that can be checked by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest

from longthread.model.bm25 import occurrence, rarity


def test_a_rare_term_weighs_more_and_none_weighs_less_than_nothing() -> None:
    assert rarity(9, 1) == pytest.approx(math.log(1 + 8.5 / 1.5))
    assert rarity(9, 1) > rarity(9, 5) > rarity(9, 9) > 0
    assert rarity(9, 12) == pytest.approx(math.log(1 + 0.5 / 12.5))  # counted from an index that is ahead


def test_further_mentions_count_less_and_so_do_those_in_a_long_text() -> None:
    parts = {"saturation": 1.5, "length": 0.5}
    assert occurrence(1, 10, 10.0, **parts) == pytest.approx(1.0)
    assert occurrence(3, 10, 10.0, **parts) == pytest.approx(3 * 2.5 / 4.5)
    assert occurrence(1, 30, 10.0, **parts) == pytest.approx(2.5 / 4)
    assert occurrence(1, 30, 10.0, saturation=1.5, length=0.0) == pytest.approx(1.0)
    found = occurrence(np.array([1.0, 3.0]), np.array([30.0, 10.0]), 10.0, **parts)
    assert found.tolist() == pytest.approx([2.5 / 4, 3 * 2.5 / 4.5])
