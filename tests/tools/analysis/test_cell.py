from __future__ import annotations

import json
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from longthread.tools.analysis.result import as_numbers, iso, json_cell


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (None, None),
        (True, True),
        (2**53 - 1, 2**53 - 1),
        (-(2**53), str(-(2**53))),
        (10**30, str(10**30)),
        (float("nan"), "NaN"),
        (float("-inf"), "-Infinity"),
        (Decimal("1.50"), 1.5),
        (Decimal("3"), 3),
        (Decimal("0.1"), 0.1),
        (Decimal("12345678901234567890.123456789"), "12345678901234567890.123456789"),
        (Decimal("-107.6666666666666667"), "-107.6666666666666667"),
        (Decimal("1234567890123.4567"), "1234567890123.4567"),
        (Decimal("1E+400"), "1" + 400 * "0"),
        (Decimal("1E-400"), "0." + 399 * "0" + "1"),
        ([Decimal("1e999999999")], ["1E+999999999"]),
        (Decimal("NaN"), "NaN"),
        (Decimal("-Infinity"), "-Infinity"),
        (date(2020, 1, 2), "2020-01-02"),
        (datetime(2020, 1, 2, 3, 4), "2020-01-02T03:04:00"),
        (time(3, 4), "03:04:00"),
        (timedelta(days=3), "3 days, 0:00:00"),
        (b"abc", "\\x616263"),
        (memoryview(b"abcd"), "\\x61626364"),
        (bytes(65), "<65 bytes>"),
        (UUID(int=1), "00000000-0000-0000-0000-000000000001"),
        ([1, Decimal("2.5"), {"a": b"x"}], [1, 2.5, {"a": "\\x78"}]),
        ([2**53, Decimal("0.30000000000000000001"), float("inf")], [str(2**53), 0.3, "Infinity"]),
        ({1: date(2020, 1, 1)}, {"1": "2020-01-01"}),
        ("\ud800", "?"),
    ],
)
def test_values_become_json(value: Any, shown: Any) -> None:
    assert json_cell(value, 500) == (shown, False)


@pytest.mark.parametrize(
    ("column", "numbers"),
    [
        ([Decimal("-107.6666666666666667"), Decimal("7.5"), None], ["-107.6666666666666667", "7.5", None]),
        ([1, 2**53, None, 1.5, True, "a"], ["1", str(2**53), None, "1.5", True, "a"]),
        ([Decimal("1.10"), Decimal("98765432109876543.21")], ["1.10", "98765432109876543.21"]),
        ([Decimal("NaN"), Decimal("1.5")], ["NaN", 1.5]),
        ([], []),
    ],
)
def test_the_numbers_of_a_column_have_one_form(column: list[Any], numbers: list[Any]) -> None:
    assert as_numbers(column) == numbers


def test_a_quotient_is_a_number_as_long_as_its_first_digits_are_held() -> None:
    quotients = [Decimal("-107.6666666666666667"), Decimal("7.5"), None, Decimal("1234567890.333333333333")]
    assert as_numbers(quotients, rounded=True) == [-107.66666666666667, 7.5, None, 1234567890.3333333]
    for large in (Decimal("98765432109876543.3333"), Decimal("1234567890123456.78"), Decimal("1E-400")):
        assert as_numbers([large, Decimal(1)], rounded=True) == [format(large, "f"), "1"]


@pytest.mark.parametrize(
    ("written", "said"),
    [
        ("2020-01-02 03:04:05.678+00", "2020-01-02T03:04:05.678+00:00"),
        ("2020-01-02 03:04:05-03:30", "2020-01-02T03:04:05-03:30"),
        ("0044-03-15 10:00:00+01 BC", "0044-03-15T10:00:00+01:00 BC"),
        ("12020-01-02 03:04:05", "12020-01-02T03:04:05"),
        ("03:04:05+02", "03:04:05+02:00"),
        ("2020-01-02", "2020-01-02"),
        ("-infinity", "-infinity"),
    ],
)
def test_times_are_iso(written: str, said: str) -> None:
    assert iso(written) == said


def test_long_text_says_how_long_it_is() -> None:
    assert json_cell("长" * 500, 3) == ("长长长… (500 characters)", True)


def test_a_long_list_is_cut_as_text() -> None:
    shown, cut = json_cell(list(range(1000)), 10)
    assert cut
    assert shown.startswith("[0, 1, 2, ")


EXACT = st.decimals() | st.integers()


@given(st.recursive(st.none() | st.floats() | st.text() | EXACT | st.binary(), st.lists, max_leaves=5))
def test_every_cell_can_be_sent(value: Any) -> None:
    shown, _ = json_cell(value, 50)
    assert len(json.dumps(shown, allow_nan=False).encode()) < 2000
