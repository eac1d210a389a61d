"""The manifest: few segments, from which each entry's part can be told again."""

from __future__ import annotations

import json
from collections.abc import Sequence

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.examples import examples
from tests.view.test_compose import threads

from longthread.model.run import Segment, Why
from longthread.view.compose import compose
from longthread.view.items import ViewItem, ViewPart, is_observed, segments, show_part, units_of
from longthread.view.tokens import LEAST


def parts_of(items: Sequence[ViewItem], budget: int, stale: int = 0) -> list[tuple[int, ViewPart, Why | None]]:
    """A view's parts as the manifest takes them; what was observed before place `stale` is left out as stale.

    There is a gap between the seqs of the fifth and the sixth.
    """
    left_out = {item.key for item in items[:stale] if is_observed(item)}
    found = {
        part.item.key: part for part in compose([item for item in items if item.key not in left_out], budget).parts
    }
    parts: list[tuple[int, ViewPart, Why | None]] = []
    for n, item in enumerate(items):
        part = found.get(item.key, ViewPart(item, "left out"))
        why: Why | None = "stale" if item.key in left_out else "budget" if item.key in found else "unpaired"
        parts.append((n + (1 if n < 5 else 4), part, why if part.how == "left out" else None))
    return parts


@settings(max_examples=examples(100))
@given(threads(), st.integers(LEAST, 20_000), st.integers(0, 12))
def test_each_part_is_told_again_from_the_segments(items: list[ViewItem], budget: int, stale: int) -> None:
    parts = parts_of(items, budget, stale)
    told = [Segment.from_json(json.loads(json.dumps(segment.to_json()))) for segment in segments(parts)]
    seqs = [seq for segment in told for seq in range(segment.first, segment.last + 1)]
    assert seqs == [seq for seq, _, _ in parts]
    by_seq = {seq: segment for segment in told for seq in range(segment.first, segment.last + 1)}
    for seq, part, _ in parts:
        # Made again without what the first view has computed.
        item = ViewItem(
            part.item.key, part.item.role, part.item.text, part.item.calls, part.item.answers, extra=part.item.extra
        )
        again = show_part(by_seq[seq], item)
        if part.how == "left out":
            assert again is None
        else:
            assert again is not None
            assert (again.how, again.text, again.bare, again.limit) == (part.how, part.text, part.bare, part.limit)
    assert sum(segment.tokens for segment in told) == sum(part.tokens for _, part, _ in parts)


@settings(max_examples=examples(50))
@given(threads(), st.integers(LEAST, 20_000))
def test_units_stay_as_they_are_without_what_was_left_out(items: list[ViewItem], budget: int) -> None:
    shown_parts = [part.item for part in compose(items, budget).parts if part.how != "left out"]
    order = [item.key for unit in units_of(shown_parts) for item in unit]
    assert order == [item.key for item in shown_parts]
    in_log = sorted(shown_parts, key=items.index)
    assert [item.key for unit in units_of(in_log) for item in unit] == order


def turns(count: int, result: str = "word " * 300) -> list[ViewItem]:
    """Items of turns with one call each."""
    items: list[ViewItem] = []
    for n in range(count):
        items += [
            ViewItem(f"q{n}", "user", "how many?"),
            ViewItem(f"a{n}", "assistant", "", calls=(f"c{n}",)),
            ViewItem(f"t{n}", "tool", result, answers=f"c{n}"),
            ViewItem(f"f{n}", "assistant", "so many"),
        ]
    return items


def test_a_long_view_is_a_few_segments() -> None:
    told = segments((seq, part, why) for seq, (_, part, why) in enumerate(parts_of(turns(50), 7_000), start=1))
    assert [(segment.how, segment.why) for segment in told] == [
        ("left out", "budget"),
        ("condensed", None),
        ("whole", None),
    ]
    assert len(json.dumps([segment.to_json() for segment in told])) < 120


def test_what_is_stale_is_one_segment_with_what_stands_between() -> None:
    items = turns(50)
    told = segments((seq, part, why) for seq, (_, part, why) in enumerate(parts_of(items, 1_000_000, 100), start=1))
    assert [(s.first, s.last, s.how, s.why) for s in told] == [(1, 101, "whole", "stale"), (102, 200, "whole", None)]


def test_a_segment_is_a_short_list() -> None:
    assert Segment(1, 9, "whole", 12).to_json() == [1, 9, "whole", 12]
    assert Segment(1, 9, "left out", why="budget").to_json() == [1, 9, "left out", 0, "budget"]
    assert Segment(4, 4, "cut", 300, limit=1200, bare=True).to_json() == [4, 4, "cut", 300, None, 1200, True]
    assert Segment(4, 4, "cut", 0).to_json() == [4, 4, "cut", 0]
