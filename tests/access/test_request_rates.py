"""Requests a minute: a window that slides, in each process for its part."""

from __future__ import annotations

import pytest

from longthread.access.principal import KeyLimits
from longthread.access.request_rates import RequestRates
from longthread.errors import TooManyRequests

KEY = KeyLimits("k", frozenset({"chat"}), requests_per_minute=4)


class Clock:
    def __init__(self) -> None:
        self.now = 1_000.0

    def __call__(self) -> float:
        return self.now


def count_until_refused(rates: RequestRates, key: KeyLimits = KEY) -> int:
    for count in range(100):
        try:
            rates.take(key)
        except TooManyRequests:
            return count
    return 100


def test_a_key_has_its_requests_again_as_the_minute_goes_by() -> None:
    clock = Clock()
    rates = RequestRates(clock)
    rates.take(KEY)
    clock.now += 30
    assert count_until_refused(rates) == 3
    with pytest.raises(TooManyRequests, match="4 requests a minute") as refused:
        rates.take(KEY)
    assert refused.value.seconds == 30
    clock.now += 30
    assert count_until_refused(rates) == 1
    clock.now += 30
    assert count_until_refused(rates) == 3


def test_keys_do_not_count_for_each_other_and_one_without_a_limit_has_none() -> None:
    rates = RequestRates(Clock())
    assert count_until_refused(rates) == 4
    assert count_until_refused(rates, KeyLimits("other", frozenset(), requests_per_minute=2)) == 2
    assert count_until_refused(rates, KeyLimits("free", frozenset())) == 100


@pytest.mark.parametrize(("share", "count"), [(1, 4), (2, 2), (3, 2), (9, 1)])
def test_processes_share_the_requests(share: int, count: int) -> None:
    rates = RequestRates(Clock())
    rates.share = share
    assert count_until_refused(rates) == count
