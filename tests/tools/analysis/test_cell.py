from __future__ import annotations

import json
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from longthread.tools.analysis.cell import json_cell


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (None, None),
        (True, True),
        (10**30, 10**30),
        (float("nan"), None),
        (float("-inf"), None),
        (Decimal("1.50"), 1.5),
        (Decimal("3"), 3),
        (Decimal("0.1"), 0.1),
        (Decimal("12345678901234567890.123456789"), "12345678901234567890.123456789"),
        (Decimal("NaN"), None),
        (date(2020, 1, 2), "2020-01-02"),
        (datetime(2020, 1, 2, 3, 4), "2020-01-02T03:04:00"),
        (time(3, 4), "03:04:00"),
        (timedelta(days=3), "3 days, 0:00:00"),
        (b"abc", "<3 bytes>"),
        (memoryview(b"abcd"), "<4 bytes>"),
        (UUID(int=1), "00000000-0000-0000-0000-000000000001"),
        ([1, Decimal("2.5"), {"a": b"x"}], [1, 2.5, {"a": "<1 bytes>"}]),
        ({1: date(2020, 1, 1)}, {"1": "2020-01-01"}),
        ("\ud800", "?"),
    ],
)
def test_values_become_json(value: Any, shown: Any) -> None:
    assert json_cell(value, 100) == (shown, False)


def test_long_text_says_how_long_it_is() -> None:
    assert json_cell("长" * 500, 3) == ("长长长… (500 characters)", True)


def test_a_long_list_is_cut_as_text() -> None:
    shown, cut = json_cell(list(range(1000)), 10)
    assert cut
    assert shown.startswith("[0, 1, 2, ")


@given(st.recursive(st.none() | st.floats() | st.text() | st.decimals() | st.binary(), st.lists, max_leaves=5))
def test_every_cell_can_be_sent(value: Any) -> None:
    shown, _ = json_cell(value, 50)
    assert len(json.dumps(shown, allow_nan=False).encode()) < 2000
