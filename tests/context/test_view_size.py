"""How much smaller views are than what they were made of: counted once a call, by what was done with each message."""

from __future__ import annotations

import pytest
from tests.context.test_window import spot

from longthread.context.view_size import ViewSize, sum_sizes
from longthread.context.window import PreviousCall, ViewRequest, WindowMessage, fit
from longthread.messages.message import Message, tool_call
from longthread.metrics import VIEW_MESSAGES, VIEW_TOKENS, VIEWS, Metric
from longthread.view.compose import ViewConfig


def talk(turns: int) -> list[WindowMessage]:
    messages = list[Message]()
    for turn in range(turns):
        messages.append(Message("user", f"Question {turn}?", id=f"q{turn}"))
        calls = [tool_call(name="run_sql", args={"sql": "select 1"}, id=f"c{turn}")]
        messages.append(Message("assistant", "So.", tool_calls=calls, id=f"a{turn}"))
        messages.append(Message("tool", "word " * 400, tool_call_id=f"c{turn}", id=f"t{turn}"))
        messages.append(Message("assistant", f"Answer {turn}.", id=f"z{turn}"))
    return [spot(message, seq) for seq, message in enumerate(messages, start=1)]


def size_of(spots: list[WindowMessage], past: PreviousCall | None = None) -> tuple[ViewSize, PreviousCall]:
    wanted = ViewRequest(3_000, config=ViewConfig(full_recent=4), past=past)
    fitted = fit(spots, wanted)
    return ViewSize.of(fitted, spots, wanted), PreviousCall(fitted.segments, fitted.view.summary.text)


def test_each_message_is_counted_by_what_became_of_it() -> None:
    spots = talk(30)
    planned, past = size_of(spots)
    assert sum(planned.messages.values()) == len(spots)
    assert planned.messages["whole"] >= 4 and planned.messages["condensed"] > 0 and planned.messages["left_out"] > 0
    assert planned.before == sum(each.item.tokens for each in spots) > 3_000 >= planned.after > 0
    assert not planned.is_grown
    grown, _ = size_of([*spots, spot(Message("user", "And now?", id="q"), len(spots) + 1)], past)
    assert grown.is_grown
    assert sum_sizes([planned, grown]) == {
        "views": 2,
        "views_planned": 1,
        "tokens_before": planned.before + grown.before,
        "tokens_after": planned.after + grown.after,
        "messages_condensed": sum(each.messages[how] for each in (planned, grown) for how in ("condensed", "cut")),
        "messages_left_out": planned.messages["left_out"] + grown.messages["left_out"],
    }


def test_a_view_that_shows_all_is_counted_too(monkeypatch: pytest.MonkeyPatch) -> None:
    counted = list[tuple[Metric, tuple[object, ...], float]]()
    monkeypatch.setattr(Metric, "add", lambda self, *labels, by=1: counted.append((self, labels, by)))
    spots = talk(1)
    size, _ = size_of(spots)
    size.count()
    assert counted == [
        (VIEWS, ("planned",), 1),
        (VIEW_TOKENS, ("before",), size.before),
        (VIEW_TOKENS, ("after",), size.after),
        (VIEW_MESSAGES, ("whole",), 4),
    ]
