"""Numbers, dates and phrases in both languages."""

from __future__ import annotations

import pytest

from longthread.tools.analysis.schema_linking import atoms
from longthread_demo.glossary import glossary
from longthread_demo.nouns import plural_of
from longthread_demo.words.lexicon import language_of, lexicon, number_of, tokenize
from longthread_demo.words.moments import moment_at


@pytest.mark.parametrize(
    ("text", "value"), [("五", 5), ("十五", 15), ("二十", 20), ("两万", 20000), ("三千五百", 3500), ("seven", 7)]
)
def test_numbers_in_words(text: str, value: float) -> None:
    assert number_of(tokenize(text)[0].norm if text.isascii() else text) == value


@pytest.mark.parametrize(
    ("text", "start", "end"),
    [
        ("2013", "2013-01-01", "2014-01-01"),
        ("2013年", "2013-01-01", "2014-01-01"),
        ("May 2013", "2013-05-01", "2013-06-01"),
        ("2013年12月", "2013-12-01", "2014-01-01"),
        ("December 31, 2013", "2013-12-31", "2014-01-01"),
        ("Q2 2013", "2013-04-01", "2013-07-01"),
        ("2013年第四季度", "2013-10-01", "2014-01-01"),
        ("first half of 2013", "2013-01-01", "2013-07-01"),
        ("1990s", "1990-01-01", "2000-01-01"),
        ("90年代", "1990-01-01", "2000-01-01"),
        ("2013-05-06", "2013-05-06", "2013-05-07"),
    ],
)
def test_dates(text: str, start: str, end: str) -> None:
    found = moment_at(tokenize(text), 0)
    assert found is not None and (found[0].start, found[0].end) == (start, end)


@pytest.mark.parametrize("text", ["2013-13-45", "February 30, 2020", "99", "customers"])
def test_what_is_no_date(text: str) -> None:
    assert moment_at(tokenize(text), 0) is None


def test_the_language_of_a_question() -> None:
    assert language_of("有多少 customers？") == "zh"
    assert language_of("List the students from 上海 who joined in 2020") == "en"


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("What is the average 销售额 by 部门?", "en"),
        ("List 部门", "en"),
        ("How many 部门 are in 上海?", "en"),
        ("平均销售额", "zh"),
        ("销售额", "zh"),
        ("iPhone 销售额", "zh"),
        ("各部门的 max 销售额是多少", "zh"),
    ],
)
def test_names_of_the_database_do_not_make_a_question_chinese(text: str, language: str) -> None:
    assert language_of(text, ("销售额", "部门", "上海")) == language


def test_the_glossary_says_the_same_thing_in_both_languages() -> None:
    assert atoms("客户") in glossary().same(atoms("customers"))
    assert atoms("rocket") in glossary().same(atoms("运载火箭"))


def test_the_glossary_and_the_lexicon_have_no_empty_phrase() -> None:
    assert all(glossary().synonyms) and all(lexicon())
    assert len(glossary().synonyms) > 1000


@pytest.mark.parametrize(
    ("name", "plural"),
    [
        *(("branch", "branches"), ("city", "cities"), ("box", "boxes"), ("day", "days"), ("dish", "dishes")),
        *(("class", "classes"), ("order item", "order items"), ("门店", "门店")),
    ],
)
def test_the_plural_of_a_word(name: str, plural: str) -> None:
    assert plural_of(name) == plural
