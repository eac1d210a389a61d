"""Numbers in words, as an answer may have them."""

from __future__ import annotations

import pytest

from longthread.context.citations import as_digits


@pytest.mark.parametrize(
    ("words", "digits"),
    [
        ("There are fifty-nine customers.", "There are 59 customers."),
        ("Fifty nine of two hundred and thirty", "59 of 230"),
        ("a hundred, one hundred and five, twelve hundred", "100, 105, 1200"),
        ("three thousand four hundred and twenty-one orders", "3421 orders"),
        ("two hundred fifty thousand", "250000"),
        ("one million, two hundred thousand", "1200000"),
        ("thirteen or nineteen", "13 or 19"),
        ("共有五十九位客户。", "共有 59 位客户。"),
        ("两百", " 200 "),
        ("十五家，二十家，一百零五家", " 15 家， 20 家， 105 家"),
        ("一千二百三十四笔", " 1234 笔"),
        ("一万五，三十万，一亿零二百万", " 15000 ， 300000 ， 102000000 "),
        ("兩千零二十六個", " 2026 個"),
    ],
)
def test_numbers_in_words_become_digits(words: str, digits: str) -> None:
    assert as_digits(words) == digits


@pytest.mark.parametrize(
    "text",
    [
        "One of them, in two ways, at least twelve times",
        "on the twenty-first day, a fifty-fifty chance",
        "someone, often, attention, freighteen",
        "hundreds of thousands",
        "一个客户，一些订单，十分重要，万一，千万不要，十几家，几十家",
        "第五十九名，二十一世纪，七八个",
        "三家，十二家",
    ],
)
def test_other_words_stay(text: str) -> None:
    assert as_digits(text) == text
