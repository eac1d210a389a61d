"""Dates and times as models write them."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from longthread.errors import InvalidInput
from longthread.model.language import moment_of


@pytest.mark.parametrize(
    ("text", "begins", "ends"),
    [
        ("2026-11-23", datetime(2026, 11, 23, tzinfo=UTC), datetime(2026, 11, 24, tzinfo=UTC)),
        ("2026-11-23T14:30", datetime(2026, 11, 23, 14, 30, tzinfo=UTC), datetime(2026, 11, 23, 14, 30, tzinfo=UTC)),
        ("9999-12-31", datetime(9999, 12, 31, tzinfo=UTC), datetime(9999, 12, 31, tzinfo=UTC)),
        ("", None, None),
    ],
)
def test_what_ends_on_a_date_does_so_at_its_end(text: str, begins: datetime | None, ends: datetime | None) -> None:
    assert moment_of(text, "since") == begins
    assert moment_of(text, "until", ends=True) == ends


def test_other_words_are_refused() -> None:
    with pytest.raises(InvalidInput, match="until is 'tomorrow'"):
        moment_of("tomorrow", "until", ends=True)
