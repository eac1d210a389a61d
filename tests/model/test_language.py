"""Which texts are Chinese."""

from __future__ import annotations

import pytest

from longthread.model.language import is_chinese


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("有多少 customers？", True),
        ("退货率", True),
        ("請問上個月的營收", True),
        ("你知道ソニー去年卖了多少吗？", True),
        ("この顧客の売上はいくらですか？", False),
        ("売上データ", False),
        ("ﾃﾞｰﾀを見せて", False),
        ("고객 數는?", False),
        ("How many customers?", False),
        ("", False),
    ],
)
def test_chinese_is_told_from_japanese_and_korean(text: str, expected: bool) -> None:
    assert is_chinese(text) == expected
