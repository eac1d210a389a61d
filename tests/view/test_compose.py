"""The composer: within budget, no call without its result, the newest question always in."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import cycle

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.examples import examples

from longthread.view import items
from longthread.view.compose import compose
from longthread.view.condense import cut_middle
from longthread.view.items import ViewItem, ViewPart, units_of
from longthread.view.tokens import LEAST, estimate, message_budget

ROWS = '{"rows":' + "[1,2]," * 900 + "}"
TEXTS = st.sampled_from(["", "short", "运载火箭有哪些？" * 20, "word " * 400, ROWS, "x" * 9000])


@st.composite
def threads(draw: st.DrawFn) -> list[ViewItem]:
    items: list[ViewItem] = []

    writes = draw(st.booleans())  # a protocol that sends a short text for each message

    def add(role: str, text: str, **more: object) -> None:
        written = text[:60] if writes else None
        items.append(ViewItem(f"e{len(items)}", role, text, written=written, **more))  # type: ignore[arg-type]

    for _ in range(draw(st.integers(1, 6))):
        add("user", draw(TEXTS))
        for _ in range(draw(st.integers(0, 3))):
            # Ids come again: some servers number the calls of each reply, and some give them one id, or none.
            name = draw(st.sampled_from(["c{}", "c{}", "call", ""]))
            calls = tuple(name.format(n) for n in range(draw(st.sampled_from([1, 1, 2, 3, 30, 200]))))
            add("assistant", draw(TEXTS), calls=calls, extra=draw(st.sampled_from([0, 50, 50_000])))
            answered = draw(st.integers(0, 10))
            # To draw each of 200 results takes longer than what is tested.
            results = cycle(draw(st.lists(TEXTS, min_size=1, max_size=7)))
            for call in calls[: len(calls) - 1 if answered == 0 else len(calls)]:
                add("tool", next(results), answers=call)
        if draw(st.booleans()):
            add("assistant", draw(TEXTS))
    return items


def shown(parts: Sequence[ViewPart]) -> list[ViewPart]:
    return [part for part in parts if part.how != "left out"]


@settings(max_examples=examples(300))
@given(threads(), st.integers(LEAST, 20_000))
def test_a_view_fits_and_is_whole(items: list[ViewItem], budget: int) -> None:
    parts = compose(items, budget).parts
    view = shown(parts)
    assert sum(part.tokens for part in view) <= budget
    open_calls: list[str] = []
    for part in view:
        if part.item.answers is not None:
            open_calls.remove(part.item.answers)
        else:
            assert open_calls == [], "a call is followed by its results"
            open_calls += part.item.calls
    assert open_calls == []
    newest = max(n for n, item in enumerate(items) if item.role == "user")
    assert items[newest].key in {part.item.key for part in view}
    order = [items.index(part.item) for part in view]
    assert order == sorted(order)
    assert compose(items, budget).parts == parts


@given(threads())
def test_with_room_everything_is_whole(items: list[ViewItem]) -> None:
    parts = compose(items, 10_000_000).parts
    assert {part.how for part in parts} == {"whole"}


def test_what_is_old_is_condensed_before_it_is_left_out() -> None:
    items = [ViewItem("q0", "user", "first")]
    for n in range(8):
        items += [
            ViewItem(f"a{n}", "assistant", "", calls=(f"c{n}",)),
            ViewItem(f"t{n}", "tool", "word " * 500, answers=f"c{n}"),
        ]
    items.append(ViewItem("q1", "user", "second"))
    how = {part.item.key: part.how for part in compose(items, 3000).parts}
    assert how["q1"] == how["t7"] == "whole"
    assert how["t0"] == "condensed"


def test_a_huge_newest_question_is_cut_in_the_middle_and_says_so() -> None:
    parts = compose([ViewItem("q", "user", "begin " + "汉字" * 100_000 + " end")], 1000).parts
    assert parts[0].how == "cut"
    assert parts[0].text is not None
    assert parts[0].text.startswith("begin ")
    assert parts[0].text.endswith(" end")
    assert "characters left out" in parts[0].text


def test_the_newest_results_are_shown_whatever_their_size() -> None:
    items = [
        ViewItem("q", "user", "how many?"),
        ViewItem("a", "assistant", "", calls=("c",)),
        ViewItem("t", "tool", "x " * 50_000, answers="c"),
    ]
    how = {part.item.key: part.how for part in compose(items, 600).parts}
    assert how["t"] in {"condensed", "cut"}


def test_huge_arguments_are_left_out_of_the_newest_call() -> None:
    items = [
        ViewItem("q", "user", "write it"),
        ViewItem("a", "assistant", "so", calls=("c",), extra=50_000),
        ViewItem("t", "tool", "done", answers="c"),
    ]
    parts = {part.item.key: part for part in compose(items, 2000).parts}
    assert parts["a"].bare
    assert parts["t"].how == "whole"


@pytest.mark.parametrize("ids", [("a", "a"), ("", ""), ("a", "b", "a"), ("", "a", "")])
def test_calls_of_one_message_may_have_one_id_or_none(ids: tuple[str, ...]) -> None:
    results = [ViewItem(f"t{n}", "tool", f"row {n}", answers=each) for n, each in enumerate(ids)]
    unit = [ViewItem("a", "assistant", "", calls=ids), *results]
    assert units_of(unit) == [unit]
    assert units_of(unit[:-1]) == []
    assert units_of([*unit, ViewItem("more", "tool", "row", answers=ids[0])]) == [unit]
    again = [replace(item, key=f"{item.key}.2") for item in unit]
    assert units_of([*unit[:-1], *again]) == [again], "a result is the nearest call's"
    items = [ViewItem("q", "user", "how many?"), *unit]
    assert [part.item.key for part in shown(compose(items, 5_000).parts)] == [item.key for item in items]


def test_no_messages_make_no_view() -> None:
    assert compose([], 1000).parts == []


def test_cutting_says_how_much_is_left_out() -> None:
    text = cut_middle("a" * 500 + "b" * 500, 200)
    assert len(text) <= 220
    assert text.startswith("a")
    assert text.endswith("b")
    assert "(860 characters left out)" in text


def test_a_window_that_is_too_small_is_told_by_its_budget() -> None:
    assert message_budget(100, output=2000, fixed=5000) < LEAST
    assert message_budget(128_000, output=16_000, fixed=4_200) == 95_000


def test_tokens_of_chinese_are_about_its_characters_and_of_english_its_words() -> None:
    assert 9 <= estimate("运载火箭有哪些发射场") <= 16
    assert 5 <= estimate("How many customers are there?") <= 9
    assert estimate("x" * 10_000) >= 1_000


@settings(max_examples=examples(100))
@given(threads(), st.integers(LEAST, 20_000))
def test_a_view_of_messages_without_a_question_fits_too(items: list[ViewItem], budget: int) -> None:
    view = shown(compose([item for item in items if item.role != "user"], budget).parts)
    assert sum(part.tokens for part in view) <= budget


def test_calls_that_have_no_room_at_all_leave_it_to_those_before_them() -> None:
    items = [ViewItem("a", "assistant", "The first answer.")]
    calls = tuple(f"c{n}" for n in range(60))
    items += [ViewItem("b", "assistant", "", calls=calls, extra=9_000)]
    items += [ViewItem(f"r{n}", "tool", "found", answers=call) for n, call in enumerate(calls)]
    parts = compose(items, 1_000).parts
    assert [part.item.key for part in shown(parts)] == ["a"]
    assert len(parts) == len(items)


def test_what_is_left_out_beside_a_text_is_said() -> None:
    pictures = ViewItem("q", "user", "what is it?", other=32_000, beside=20)
    [part] = compose([pictures], 8_000).parts
    assert (part.how, part.text) == ("cut", "what is it?\n… (20 attachments left out) …")
    [alone] = compose([ViewItem("q", "user", "", other=32_000, beside=1)], LEAST).parts
    assert alone.text == "… (1 attachment left out) …"
    assert items.show_part(items.segments([(1, alone, None)])[0], alone.item) == alone
    [long] = compose([ViewItem("q", "user", "word " * 9_000, other=1_600, beside=1)], 1_000).parts
    assert long.tokens <= 550
    assert (long.text or "").endswith("\n… (1 attachment left out) …")
