from __future__ import annotations

import pytest

from longthread.tools.analysis.files.readings import family_of, kind_of

_LONG = 1_000_000
"""Characters. A pattern that tried every way to split a cell would need at least 10^12 steps."""


@pytest.mark.parametrize(
    ("begin", "repeated", "end"),
    [
        ("12", " ", "see manual"),
        ("", "(", "x"),
        ("", "-", "x"),
        ("1", "0", "x"),
        ("1", ",000", "x"),
        (".", "5", "x"),
        ("$", " ", "x"),
        ("1e", "5", "x"),
        ("5 USD", " ", "x"),
        ("2021-01-02", " ", "x"),
        ("2021-01-02 10:00", " ", "x"),
        ("2021-01-02 10:00 AM", " ", "x"),
        ("1", "-", "x"),
        ("1 Jan", "-", "x"),
        ("2021", " ", "-01-02x"),
        ("Jan", " ", "x"),
    ],
)
def test_a_long_cell_is_read_in_time(begin: str, repeated: str, end: str) -> None:
    cell = begin + repeated * (_LONG // len(repeated)) + end
    assert kind_of(cell) == "text"
    assert family_of([cell]) == "text"


@pytest.mark.parametrize(
    "cell", ["1", "-1.5", "( 5 )", "−  $ + 1 234,5", "US$5", "5 kr", "12 %", ".5e-3", "1'000 CHF )", "1,5e5€"]
)
def test_whatever_may_be_a_number_is_one(cell: str) -> None:
    assert kind_of(cell) == "number"


@pytest.mark.parametrize("cell", ["$", "-", "1 $ $", "5 -", "1e", "e5", "USD", "1) 2", "5 USD EUR"])
def test_no_other_text_is(cell: str) -> None:
    assert kind_of(cell) != "number"


@pytest.mark.parametrize("cell", ["2021-01-02 10:00:01.5  PM  UTC", "2 Jan, 2021 3:04 a.m.", "2021-01-02T10:00+01:00"])
def test_dates_have_times(cell: str) -> None:
    assert kind_of(cell) == "date"
