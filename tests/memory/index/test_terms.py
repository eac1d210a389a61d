"""What texts are found by."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from longthread.memory.index.terms import asked_characters, characters, stem, terms


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ("RUNNING", "She runs every day"),
        ("painted", "painting"),
        ("stories", "a story"),
        ("café", "CAFE"),
        ("Straße", "STRASSE"),
        ("Caroline", "Caroline's dog"),
        ("ｆｕｌｌ１２", "full12"),
        ("价格", "我们讨论了模型的价格。"),
        ("東京", "昨日東京へ行きました"),
        ("데이터", "데이터베이스"),
        ("1234567", "there were 1,234,567 rows"),
        ("main.py", "edit src/app/main.py please"),
        ("src/app/main.py", "edit src/app/main.py please"),
        ("run query", "runQuery"),
        ("max_steps", "set max_steps to 3"),
        ("10.0.0.7", "ssh 10.0.0.7"),
        ("zhao@example.org", "邮箱是zhao@example.org的人"),
    ],
)
def test_what_is_asked_shares_a_term_with_what_was_said(asked: str, said: str) -> None:
    assert set(terms(asked)) & set(terms(said))


def test_a_character_is_a_term_within_a_run_and_only_there() -> None:
    assert characters("我养了一只猫，叫小白。") == ["养", "猫", "白"]
    assert characters("猫 狗 cat") == []
    assert set(characters("猫吃什么")) & set(characters("一只猫")) == {"猫"}
    assert asked_characters("猫叫什么名字", {"什么"}) == ["猫", "名", "字"]
    assert asked_characters("我们用茶招待客人", {"我们"}) == ["茶", "人"]
    assert characters("昨日東京へ") == ["昨", "東", "京"]


@pytest.mark.parametrize(("one", "other"), [("价格", "价钱"), ("plan", "a planet"), ("1.5", "15")])
def test_different_words_stay_different(one: str, other: str) -> None:
    assert terms(one)[0] not in terms(other)


def test_a_path_counts_whole_and_in_parts() -> None:
    assert {"src/app/main.py", "src", "app", "main"} <= set(terms("src/app/main.py"))


@given(st.text())
def test_any_text_has_terms_that_can_be_stored_and_are_the_same_in_capitals(text: str) -> None:
    found = terms(text)
    assert all(found)
    assert terms(text) == found


@given(st.text(alphabet="abcdefghijklmnopqrstuvwxyz", min_size=1))
def test_a_stem_is_not_empty(word: str) -> None:
    assert stem(word)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("part", ["x", "x-", "_", "_x", "1,", "1,000,", "我", "aB", "'s", "a.b ", "x/", "é"])
def test_a_long_text_takes_no_more_than_its_length(part: str) -> None:
    # With the square of it, this would not end.
    assert len(terms(part * 100_000)) <= 333_333
