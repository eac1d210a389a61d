"""The budget of a view's messages, and what is said when there is none."""

from __future__ import annotations

from longthread.view.tokens import LEAST, extra_budget, least_of, message_budget, reply_reserve, too_small


def test_what_the_reply_takes_is_at_most_a_quarter() -> None:
    assert message_budget(1_000, output=100, fixed=50) == 750
    assert message_budget(1_000, output=4_096, fixed=50) == 600


def test_a_window_that_is_too_small_says_what_takes_the_room() -> None:
    said = str(too_small("m", 1, output=4_096, fixed=1))
    assert "m, 1 token, leaves" in said
    assert "beside 1 token of prompt and tools, 0 of reply" in said
    said = str(too_small("m", 12_000, output=4_096, fixed=11_000))
    assert "12,000 tokens, leaves" in said
    assert "11,000 tokens of prompt and tools, 256 of reply" in said


def test_the_reserve_of_the_reply_gives_way_to_the_messages() -> None:
    for fixed in range(0, 12_000, 100):
        reserve, left = (
            reply_reserve(12_000, output=4_096, fixed=fixed),
            message_budget(12_000, output=4_096, fixed=fixed),
        )
        assert 256 <= reserve <= 3_000
        assert reserve + left + fixed == 10_800
        assert reserve == 3_000 or left <= 1_024, "it gives way only as far as it must"
        assert left >= 1_024 or reserve == 256
    assert reply_reserve(12_000, output=100, fixed=11_000) == 100


def test_messages_have_their_least_before_the_reply_has_all_of_its_own() -> None:
    assert [least_of(window) for window in (1, 1_000, 2_000, 4_096, 8_192, 10**6)] == [
        256,
        256,
        500,
        1_024,
        1_024,
        1_024,
    ]
    assert message_budget(4_096, output=2_000, fixed=2_000) == 1_024
    assert message_budget(4_096, output=2_000, fixed=2_000, least=LEAST) == 662


def test_known_facts_get_a_part_of_what_is_left() -> None:
    assert extra_budget(100_000, 80_000) == 30_000
    assert extra_budget(8_000, 1_600) == 800
    assert extra_budget(8_000, 2 * LEAST) == LEAST
    assert extra_budget(8_000, 2 * LEAST - 1) == extra_budget(8_000, -900) == 0


def test_a_large_window_leaves_more_room_for_the_reply() -> None:
    reserves = [reply_reserve(window, output=2_000, fixed=1_000) for window in (16_000, 32_000, 64_000, 128_000, 10**6)]
    assert reserves == [2_000, 2_000, 8_000, 16_000, 16_000]
    assert message_budget(128_000, output=2_000, fixed=4_200) == 95_000, "document 004 §4.1"
    assert reply_reserve(128_000, output=30_000, fixed=1_000) == 30_000, "LLM_MAX_TOKENS may ask for more"
