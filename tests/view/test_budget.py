"""The budget of a view's messages, and what is said when there is none."""

from __future__ import annotations

from longthread.view.budget import message_budget, too_small


def test_what_the_reply_takes_is_at_most_a_quarter() -> None:
    assert message_budget(1_000, output=100, fixed=50) == 750
    assert message_budget(1_000, output=4_096, fixed=50) == 600


def test_a_window_that_is_too_small_says_what_takes_the_room() -> None:
    said = str(too_small("m", 1, output=4_096, fixed=1))
    assert "m, 1 token, leaves" in said
    assert "beside 1 token of prompt and tools, 0 of reply" in said
    assert "12,000 tokens, leaves" in str(too_small("m", 12_000, output=4_096, fixed=9_000))
    assert "9,000 tokens of prompt and tools, 3,000 of reply" in str(too_small("m", 12_000, output=4_096, fixed=9_000))
