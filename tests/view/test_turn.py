"""The turn that goes on: its question and its newest unit whole as long as they fit, and thinking the last to go."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.examples import examples
from tests.view.test_growth import after
from tests.view.test_manifest import turns

from longthread.view.compose import View, compose
from longthread.view.items import ViewItem, ViewPart, cost, fit_unit, least, units_of
from longthread.view.tokens import MESSAGE_OVERHEAD


def loop(count: int, *, thinking: int = 60, result: str = "row of the table " * 60) -> list[ViewItem]:
    """A question, and calls with thinking and their results, one after the other."""
    items = [ViewItem("loop", "user", "how many?")]
    for n in range(count):
        call = ViewItem(f"call{n}", "assistant", "Next.", calls=(f"l{n}",), extra=10, thinking=thinking)
        items += [call, ViewItem(f"result{n}", "tool", result, answers=f"l{n}")]
    return items


def by_key(view: View) -> dict[str, ViewPart]:
    return {part.item.key: part for part in view.shown_parts}


def test_a_plan_in_a_loop_of_calls_keeps_the_thinking_of_the_whole_turn() -> None:
    old, calls = turns(40), loop(40)
    view, planned = compose(old, 12_000), 0
    for end in range(1, len(calls) + 1, 2):
        view = compose([*old, *calls[:end]], 12_000, before=after(view))
        planned += not view.grown
        parts = by_key(view)
        assert all(parts[item.key].how == "whole" for item in calls[:end] if item.thinking)
    assert planned >= 1
    assert {part.item.key for part in view.shown_parts} - {item.key for item in calls}, "of the turns before too"
    assert parts["result0"].how == "condensed"
    assert parts["result39"].how == "whole"


def test_where_the_thinking_of_a_turn_has_no_room_that_of_the_newest_calls_is_kept() -> None:
    calls = loop(60, thinking=400)
    view, kept = compose(calls[:1], 8_000), []
    for end in range(3, len(calls) + 1, 2):
        view = compose(calls[:end], 8_000, before=after(view))
        assert view.tokens <= 8_000
        ways = [part.how for part in view.shown_parts if part.item.thinking]
        kept.append(ways.count("whole"))
        assert ways == sorted(ways), "condensed ones are the oldest"
        assert ways[-1] == "whole"
    assert min(kept[12:]) >= 6


def test_what_is_in_no_turn_any_more_goes_without_its_thinking() -> None:
    calls = [*loop(30), ViewItem("end", "assistant", "So many."), ViewItem("next", "user", "and now?")]
    ways = {key: part.how for key, part in by_key(compose(calls, 5_000)).items()}
    assert ways["call29"] == "whole"
    assert ways["call20"] == "condensed"


@settings(max_examples=examples(300))
@given(
    question=st.integers(0, 3_000),
    thinking=st.sampled_from([0, 30, 300, 3_000]),
    extra=st.sampled_from([0, 20, 2_000]),
    results=st.lists(st.sampled_from([0, 5, 300, 6_000]), min_size=1, max_size=4),
    budget=st.integers(300, 12_000),
    old=st.integers(0, 30),
    again=st.booleans(),
)
def test_question_and_newest_unit_are_whole_where_they_fit_and_results_are_cut_before_thinking(
    question: int, thinking: int, extra: int, results: list[int], budget: int, old: int, again: bool
) -> None:
    asked = ViewItem("q", "user", "word " * question)
    calls = tuple(f"c{n}" for n in range(len(results)))
    unit = [ViewItem("a", "assistant", "Next.", calls=calls, extra=extra, thinking=thinking)]
    unit += [ViewItem(f"t{n}", "tool", "cell " * size, answers=f"c{n}") for n, size in enumerate(results)]
    before = after(compose([*turns(old), asked], budget)) if again else None
    view = compose([*turns(old), asked, *unit], budget, before=before)
    parts = by_key(view)
    assert view.tokens <= budget
    if view.grown:
        return
    if asked.tokens + least(unit) <= budget:
        assert parts["q"].how == "whole"
        assert len(units_of(part.item for part in view.shown_parts if part.item in unit)) == 1
    left = budget - parts["q"].tokens
    if cost(item.whole for item in unit) <= left:
        assert [parts[item.key].how for item in unit] == ["whole"] * len(unit)
    floor = sum(min(item.tokens, 20 + MESSAGE_OVERHEAD) for item in unit[1:])
    if thinking and unit[0].tokens + floor <= left:
        assert parts["a"].how == "whole"


def test_a_long_question_is_whole_beside_a_long_result() -> None:
    old = [ViewItem(f"o{n}", ("user", "assistant")[n % 2], "older words here " * 60) for n in range(50)]
    asked = ViewItem("q", "user", "please compare the clauses of this contract. " * 760)
    unit = [
        ViewItem("a", "assistant", "", calls=("c",), extra=20),
        ViewItem("t", "tool", "line " * 20_000, answers="c"),
    ]
    view = compose([*old, asked, *unit], 20_000)
    parts = by_key(view)
    assert parts["q"].how == "whole"
    assert parts["t"].how == "cut"
    assert parts["t"].tokens > 4_000
    wider = by_key(compose([*old, ViewItem("q", "user", "clause " * 7_000), *unit], 12_000))
    assert (wider["q"].how, wider["t"].how) == ("whole", "cut")
    assert wider["t"].tokens > 1_000


@pytest.mark.parametrize("thinking", [0, 60])
def test_a_large_result_leaves_the_calls_before_it_in_the_turn_their_room(thinking: int) -> None:
    calls = loop(6, thinking=thinking)
    for size in (4_000, 5_000, 40_000):
        calls[-1] = ViewItem("result5", "tool", "cell " * size, answers="l5")
        view = compose([*turns(20), *calls], 6_000)
        assert view.tokens <= 6_000
        parts = by_key(view)
        assert {item.key for item in calls} <= parts.keys()
        assert all(parts[item.key].how == "whole" for item in calls if item.answers is None)


def test_arguments_that_just_have_room_leave_the_results_what_is_left() -> None:
    call = ViewItem("a", "assistant", "Next.", calls=("c",), extra=2_000, thinking=3_000)
    unit = [call, ViewItem("t", "tool", "cell " * 300, answers="c")]
    parts = fit_unit(unit, 2_053)
    assert cost(parts) <= 2_053
    assert [part.bare for part in parts] == [False, False]


def test_a_question_that_has_no_room_is_cut_alike_before_and_behind_its_first_call() -> None:
    asked = ViewItem("q", "user", "clause " * 90_000)
    unit = [ViewItem("a", "assistant", "", calls=("c",), extra=20), ViewItem("t", "tool", "line " * 9_000, answers="c")]
    first = by_key(compose([asked], 12_000))["q"]
    assert first.how == "cut"
    assert by_key(compose([asked, *unit], 12_000))["q"] == first


@pytest.mark.parametrize("budget", [100, 400, 900, 1_100, 5_000])
def test_a_unit_is_cut_in_order_of_what_can_be_missed(budget: int) -> None:
    call = ViewItem("a", "assistant", "Next.", calls=("c",), extra=10, thinking=300)
    unit = [call, ViewItem("t", "tool", "word " * 900, answers="c")]
    parts = fit_unit(unit, budget)
    assert cost(parts) <= budget
    assert (parts[0].how == "whole") == (budget >= call.tokens + 26)
    assert parts[0].how in ("whole", "condensed")
    assert (parts[1].how == "whole") == (budget >= cost(item.whole for item in unit))
