"""Branches: what stands around an entry, and no more than there is."""

from __future__ import annotations

from longthread.model.thread import Branches


def test_around_an_entry_are_those_of_its_branch_up_to_its_ends() -> None:
    # 1 ← 2 ← 3 ← 4 ← 6, and 5 behind 2
    branches = Branches(5, 6, {5: 2, 6: 4})
    assert branches.around(4, 1000) == [1, 2, 3, 6]
    assert branches.around(5, 1000) == [1, 2]
    assert branches.around(6, 1000) == [1, 2, 3, 4]
    assert branches.around(1, 2) == [2, 5]
    assert branches.around(3, 1) == [2, 4]


def test_of_what_is_shown_already_the_next_one_further_out_is_around() -> None:
    branches = Branches(5, 6, {5: 2, 6: 4})
    assert branches.around(3, 1, {3, 4}) == [2, 6]
    assert branches.around(4, 1, {3, 4, 6}) == [2]
    assert branches.around(4, 2, {3}) == [1, 2, 6]
    assert branches.around(5, 1, {1, 2}) == []
