"""MESSAGE_COMPRESS_MAX_LENGTH: the messages before the newest ones have at most so many characters."""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.examples import examples
from tests.view.test_compose import threads
from tests.view.test_growth import after, ends, told

from longthread.view.compose import View, ViewConfig, compose
from longthread.view.items import ViewItem, segments, show_part, units_of


def seen(view: View) -> list[str]:
    return [part.item.text if part.text is None else part.text for part in view.shown_parts]


def item(key: str, role: str, text: str, **fields: object) -> ViewItem:
    return ViewItem(key, role, text, **fields)  # type: ignore[arg-type]


def talk(turns: int, size: int) -> list[ViewItem]:
    items: list[ViewItem] = []
    for n in range(turns):
        items += [
            item(f"q{n}", "user", f"question {n}"),
            item(f"c{n}", "assistant", "", calls=(f"id{n}",)),
            item(f"r{n}", "tool", f"{n} " + "x" * size, answers=f"id{n}"),
            item(f"a{n}", "assistant", f"answer {n}"),
        ]
    return items


def test_results_are_cut_further_before_anything_is_left_out() -> None:
    items = talk(6, 1000)
    assert not compose(items, 100_000, ViewConfig(full_recent=4)).shown_parts[2].text, "without it, nothing is"
    view = compose(items, 100_000, ViewConfig(full_recent=4, max_length=800))
    assert len(view.shown_parts) == 24
    assert sum(map(len, seen(view)[:-4])) <= 400
    assert seen(view)[-2] == items[-2].text
    assert {part.how for part in view.shown_parts[:-4]} == {"whole", "cut"}


def test_then_the_oldest_are_left_out() -> None:
    items = talk(40, 300)
    view = compose(items, 100_000, ViewConfig(full_recent=4, max_length=600))
    assert sum(map(len, seen(view)[:-4])) <= 300
    assert 4 < len(view.shown_parts) < 160
    assert seen(view)[0] != "question 0"


def test_what_has_become_too_long_is_planned_anew_with_room_to_grow() -> None:
    config = ViewConfig(full_recent=2, max_length=1_000)
    items = talk(30, 100)
    view: View | None = None
    planned = 0
    for end in ends(items):
        view = compose(items[:end], 100_000, config, before=after(view) if view else None)
        planned += not view.grown
    assert 3 < planned < 20


def _older(view: View, recent: int, pinned: str) -> int:
    """The characters, as they are sent, of the units whose messages are all before the newest ones, but for the pinned
    one."""
    count = total = 0
    parts = {part.item.key: part for part in view.shown_parts}
    units: Sequence[Sequence[ViewItem]] = units_of([part.item for part in view.shown_parts])
    for unit in reversed(units):
        if count >= recent and unit[0].key != pinned:
            texts = [parts[each.key].text for each in unit]
            wholes = [each.text if each.written is None else each.written for each in unit]
            total += sum(len(whole if text is None else text) for whole, text in zip(wholes, texts, strict=True))
        count += len(unit)
    return total


@settings(max_examples=examples(30))
@given(threads(), st.integers(300, 20_000), st.integers(1, 3_000), st.integers(1, 8))
def test_it_is_kept_to_and_told_by_the_manifest(items: list[ViewItem], budget: int, most: int, recent: int) -> None:
    config = ViewConfig(full_recent=recent, max_length=most)
    view: View | None = None
    for end in ends(items):
        past = after(view) if view else None
        last, view = view, compose(items[:end], budget, config, summary="Before: sales. " * 60, before=past)
        assert view.tokens <= budget
        asked = [each.key for each in items[:end] if each.role == "user"][-1]
        assert asked in {part.item.key for part in view.shown_parts}
        assert len(view.summary.text) + _older(view, recent, asked) <= most
        if view.grown and last is not None:
            assert told(view)[: len(last.shown_parts)] == told(last)
        parts = [(n, part, "budget" if part.how == "left out" else None) for n, part in enumerate(view.parts)]
        for segment in segments(parts):  # type: ignore[arg-type]
            for n in range(segment.first, segment.last + 1):
                part = view.parts[n]
                again = show_part(segment, part.item)
                assert (again.text if again else None) == (part.text if part.how != "left out" else None)
