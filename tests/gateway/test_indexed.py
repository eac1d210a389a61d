"""What is computed of a conversation's parts bit by bit is what is computed of all of them at once."""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from longthread.gateway.indexed import IndexedParts
from longthread.gateway.parts import Anchored, Part, anchored, chain, digests, node_of, visible_parts

_ROOT = b"root"
_KINDS = st.sampled_from([(b"v", None), (None, b"h"), (None, b"other"), (None, None)])
"""Visible, hidden, and kept but never restored."""
_PARTS = st.lists(st.tuples(st.sampled_from(["user", "assistant", "tool"]), _KINDS), max_size=14)


def parts(drawn: Sequence[tuple[str, tuple[bytes | None, bytes | None]]]) -> list[Part]:
    return [
        Part(role, "other", visible, hidden, number // 2, number % 2)  # type: ignore[arg-type]
        for number, (role, (visible, hidden)) in enumerate(drawn)
    ]


def anchors(every: Sequence[Part]) -> list[Anchored]:
    """A hidden part is before the next visible part of its run of one role; behind the last one at the run's end; and
    before the next one of another run if its own has none."""
    found = []
    for place, part in enumerate(every):
        number = sum(each.visible is not None for each in every[:place])
        others = [n for n, each in enumerate(every) if each.role != part.role]
        start = max((n + 1 for n in others if n < place), default=0)
        end = min((n for n in others if n > place), default=len(every))
        before, behind = (
            any(each.visible is not None for each in run) for run in (every[start:place], every[place:end])
        )
        after = before and not behind
        if part.hidden is not None:
            found.append(Anchored(number - after, after, part.hidden, part))
    return found


@given(_PARTS, st.lists(st.integers(0, 14), max_size=4))
def test_parts_that_come_bit_by_bit_are_indexed_as_all_at_once(drawn: list[object], cuts: list[int]) -> None:
    every = parts(drawn)  # type: ignore[arg-type]
    found = IndexedParts(_ROOT)
    at = 0
    for cut in [*sorted(cuts), len(every)]:
        found = found.followed_by(every[at : max(at, cut)])
        at = max(at, min(cut, len(every)))
    for each in (found, found.followed_by(parts(drawn)).first(len(every))):  # type: ignore[arg-type]
        assert list(each.parts) == every
        assert list(each.hidden) == anchors(every) == anchored(every)
        assert list(each.digests) == digests(_ROOT, visible_parts(every))
        assert list(each.nodes) == list(map(node_of, each.digests))
        assert [each.parts[place] for place in each.places] == visible_parts(every)
        for visible in range(len(each.nodes) + 1):
            own = [one for one in anchors(every) if one.at < visible]
            assert list(each.hidden_before(visible)) == own
            assert each.hash_before(visible) == chain(own)
        assert each.hash_with([]) == chain(each.hidden)
        assert each.hash_with(each.hidden) == chain([*each.hidden, *each.hidden])


@given(_PARTS)
def test_what_is_behind_the_first_visible_parts(drawn: list[object]) -> None:
    every = parts(drawn)  # type: ignore[arg-type]
    found = IndexedParts(_ROOT).followed_by(every)
    assert found.behind(0) == 0
    for visible in range(1, len(found.nodes) + 1):
        own = {each.part.item * 2 + each.part.place for each in found.hidden if each.at < visible}
        place = found.places[visible - 1] + 1
        assert found.behind(visible) == next((n for n in range(place, len(every)) if n not in own), len(every))
