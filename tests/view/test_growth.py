"""Between two plans a view only grows at its end; it keeps to its budget all the same."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.examples import examples
from tests.view.test_compose import threads
from tests.view.test_manifest import turns

from longthread.view.compose import HINT, PreviousView, View, ViewConfig, compose, share_of, tier1_of
from longthread.view.items import ViewItem, ViewPart, cost, fit_unit
from longthread.view.tokens import ANY, LEAST


def after(view: View) -> PreviousView:
    """What the next call knows of a view."""
    return PreviousView({part.item.key: part for part in view.parts}, view.summary.text)


def told(view: View) -> list[tuple[str, str, str | None, bool]]:
    """What is seen of a view's messages, in order."""
    return [(part.item.key, part.how, part.text, part.bare) for part in view.shown_parts]


def ends(items: Sequence[ViewItem]) -> list[int]:
    """Where a model call may see the thread: behind a question, or a call's last result."""
    return [n for n in range(1, len(items) + 1) if n == len(items) or items[n].answers is None]


@settings(max_examples=examples(100))
@given(threads(), st.integers(LEAST, 30_000), st.text(max_size=400), st.integers(1, 12))
def test_each_view_begins_with_the_one_before_or_is_planned_anew(
    items: list[ViewItem], budget: int, summary: str, recent: int
) -> None:
    config = ViewConfig(full_recent=recent)
    view: View | None = None
    for end in ends(items):
        before = after(view) if view else None
        last, view = view, compose(items[:end], budget, config, summary=summary, before=before)
        assert view.tokens <= budget
        assert view == compose(items[:end], budget, config, summary=summary, before=before)
        asked = [item.key for item in items[:end] if item.role == "user"]
        assert asked[-1] in {part.item.key for part in view.shown_parts}
        if view.grown:
            assert last is not None
            assert told(view)[: len(last.shown_parts)] == told(last)
            assert view.summary == last.summary
            assert all(part.how == "whole" for part in view.shown_parts[len(last.shown_parts) :])


@settings(max_examples=examples(50))
@given(threads(), st.integers(LEAST, 20_000), st.text(max_size=3_000), st.lists(st.text(max_size=20), max_size=9))
def test_what_stands_for_messages_keeps_to_its_share(
    items: list[ViewItem], budget: int, text: str, topics: list[str]
) -> None:
    view = compose(items, budget, summary=text, topics=topics, recalled=text)
    assert view.tokens <= budget
    assert view.summary.tokens <= share_of(budget, 0.1)
    assert view.recalled.tokens <= budget / 10


@settings(max_examples=examples(200))
@given(st.text(max_size=3_000), st.lists(st.text(min_size=1, max_size=20), max_size=20), st.integers(0, 700))
def test_tier_1_keeps_to_its_budget(summary: str, topics: list[str], budget: int) -> None:
    assert tier1_of(summary, topics, budget, ANY).tokens <= budget


@pytest.mark.parametrize(
    ("summary", "names"),
    [
        ("They spoke of many things. " * 200, ["connection pool", "staging database", "deployment of payments"]),
        ("他们谈到了很多事情。" * 200, ["连接池", "测试环境数据库", "支付服务的部署"]),
    ],
)
@pytest.mark.parametrize("budget", [300, 500, 800])
def test_topics_are_named_whole_however_long_the_summary_is(summary: str, names: list[str], budget: int) -> None:
    text = tier1_of(summary, names * 5, budget, ANY).text
    told, index = text.split("\n\n[Recallable Topics]: ")
    assert told.startswith("[Conversation Summary]\n") and " left out" in told
    listed = index.removesuffix(f"\n{HINT}").split(", ")
    assert listed == (names * 5)[: len(listed)]


def test_a_long_thread_is_planned_anew_now_and_then_and_down_to_the_low_water_mark() -> None:
    items = turns(120)
    budget = 12_000
    view = compose(items[:1], budget)
    planned = 0
    for end in ends(items)[1:]:
        view = compose(items[max(0, end - 300) : end], budget, before=after(view))
        planned += not view.grown
        if not view.grown:
            assert view.tokens <= 0.75 * budget
    assert 0 < planned < 20


def test_the_condensed_tier_begins_where_it_began_as_long_as_it_can() -> None:
    items = turns(40)
    budget = 12_000
    view, beginnings = compose(items[:1], budget), []
    for end in ends(items)[1:]:
        last, view = view, compose(items[:end], budget, before=after(view))
        if not view.grown:
            beginnings.append(told(view)[0] == told(last)[0])
    assert sum(beginnings) > len(beginnings) / 2


def test_behind_another_summary_the_condensed_tier_does_not_hold_on_to_where_it_began() -> None:
    items = turns(40)
    view, shorter = compose(items[:1], 12_000, summary="a"), []
    for end in ends(items)[1:]:
        before = after(view)
        view = compose(items[:end], 12_000, summary="a", before=before)
        if not view.grown:
            other = compose(items[:end], 12_000, summary="b", before=before)
            assert other.tokens <= view.tokens
            shorter.append(other.tokens < view.tokens)
    assert any(shorter)


def test_the_summary_is_the_old_one_until_the_view_is_planned_anew() -> None:
    items = turns(3)
    view = compose(items, 50_000, summary="old", topics=["tables"])
    assert view.summary.text == (
        "[Conversation Summary]\nold\n\n[Recallable Topics]: tables\n"
        "Use the recall_memory tool to retrieve details about any topic above."
    )
    grown = compose([*items, ViewItem("new", "user", "and now?")], 50_000, summary="new", before=after(view))
    assert (grown.grown, grown.summary) == (True, view.summary)
    gone = PreviousView(after(view).parts, view.summary.text, gone=True)
    assert "new" in compose(items, 50_000, summary="new", before=gone).summary.text


def test_what_is_recalled_comes_and_goes_without_changing_the_rest() -> None:
    items = turns(3)
    with_ = compose(items, 50_000, recalled="The budget is 7 euros.")
    without = compose(items, 50_000, before=after(with_))
    assert without.grown
    assert told(with_) == told(without)
    assert without.recalled.text == ""
    assert with_.recalled.text.endswith("The budget is 7 euros.")


def test_thinking_is_shown_whole_or_not_at_all() -> None:
    items = [
        ViewItem("q0", "user", "how many?"),
        ViewItem("thought", "assistant", "so many", thinking=900),
        *turns(6),
        ViewItem("q", "user", "and now?"),
    ]
    parts = {part.item.key: part for part in compose(items, 2_500).parts}
    assert parts["thought"].how in ("condensed", "left out")
    thought = ViewItem("t", "assistant", "so many", thinking=900)
    assert thought.condense() == ViewPart(thought, "condensed", tokens=thought.tokens - 900)
    assert cost(fit_unit([thought], 500)) < 100
    assert fit_unit([thought], 5_000) == [thought.whole]


def test_one_that_is_nothing_but_thinking_is_left_out_where_that_is() -> None:
    silent = ViewItem("s", "assistant", "", thinking=900, silent=True)
    assert silent.condense() == ViewPart(silent, "left out")
    assert silent.whole.tokens > 900
    view = compose([ViewItem("q0", "user", "how many?"), silent, *turns(6)], 2_500)
    assert "s" not in {part.item.key for part in view.shown_parts}
    assert view.shown_parts[0].item.key == "q0"
    assert fit_unit([silent], 500) == [ViewPart(silent, "left out")]
    assert fit_unit([silent], 5_000) == [silent.whole]


def test_a_result_of_a_new_size_limit_says_so() -> None:
    result = ViewItem("t", "tool", "word " * 500, answers="c")
    assert result.condense().limit is None
    assert result.condense(300).limit == 300
    assert len(result.condense(300).text or "") < 330


def test_many_calls_at_once_that_cannot_fit_are_left_out_and_the_question_stays() -> None:
    calls = tuple(f"c{n}" for n in range(300))
    results = [ViewItem(f"t{n}", "tool", "x" * 500, answers=call) for n, call in enumerate(calls)]
    items = [ViewItem("q", "user", "all of them"), ViewItem("a", "assistant", "", calls=calls, extra=20_000), *results]
    view = compose(items, 1_000)
    assert view.tokens <= 1_000
    assert [part.item.key for part in view.shown_parts] == ["q"]
