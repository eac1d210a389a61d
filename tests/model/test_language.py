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
        ("How many customers are there in 上海?", False),
        ("We decided that the budget of 华东区 is 3000 euros.", False),
        ("Please translate 你好世界，再见 for me", True),
        ("解释 SELECT a, b FROM t WHERE x IN (1, 2) AND y IS NOT NULL ORDER BY a", True),
        ("把 orders join customers on customer_id 之后 group by country", True),
        ("", False),
    ],
)
def test_chinese_is_told_from_other_languages(text: str, expected: bool) -> None:
    assert is_chinese(text) == expected
