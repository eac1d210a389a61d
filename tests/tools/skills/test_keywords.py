"""Which questions call for a skill."""

from __future__ import annotations

import pytest

from longthread.tools.skills import triggers


@pytest.mark.parametrize(
    ("keyword", "question"),
    [
        ("launch", "When was the first LAUNCH?"),
        ("Launch", "how many launches failed"),
        ("rocket", "the rocket's mass"),
        ("box", "two boxes"),
        ("SQL", "用SQL查一下"),
        ("sql", "what does run_sql do"),
        ("ｓｑｌ", "SQL?"),
        ("发射", "去年一共发射了多少次?"),
        ("發射", "發射場"),
        ("SQL查询", "写一条sql查询语句"),
        ("year end", "the YEAR\n  end report"),
        ("c++", "is it C++?"),
        (".net", "a .NET service"),
        ("straße", "STRASSE"),
        ("로켓", "로켓을 쏘다"),
        ("ロケット", "ロケットは?"),
    ],
)
def test_a_keyword_that_is_there(keyword: str, question: str) -> None:
    assert triggers(["nothing of this", keyword], question)


@pytest.mark.parametrize(
    ("keyword", "question"),
    [
        ("launch", "a prelaunch party"),
        ("launch", "launched"),
        ("art", "the start"),
        ("as", "asses"),
        ("发射", "发动机和射程"),
        ("year end", "year-end"),
        ("7", "17"),
        (" ", "a b"),
        ("", ""),
    ],
)
def test_a_keyword_that_is_not(keyword: str, question: str) -> None:
    assert not triggers([keyword], question)
