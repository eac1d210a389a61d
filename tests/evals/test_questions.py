"""Judging answers to plain questions: right ones pass, and each way of being wrong does not."""

from __future__ import annotations

import json
from typing import Any

import pytest
from evals.verdicts import (
    AnswerVerdict,
    Cited,
    GoldQuestion,
    Match,
    ResultTable,
    judge,
    judge_schema,
    labels,
    normal,
    read_questions,
    tally,
)

from longthread.errors import InvalidInput


def ask(match: Match = "set", text: str = "How many?", kind: str = "count", lang: str = "en") -> GoldQuestion:
    return GoldQuestion("a-1", "shop", lang, kind, text, ("SELECT 1",), match)


def table(*rows: tuple[Any, ...]) -> ResultTable:
    return ResultTable(tuple(f"c{index}" for index in range(len(rows[0]))), rows)


def verdict(
    gold: ResultTable, found: ResultTable, answer: str, match: Match = "set", sql: str = "SELECT x"
) -> AnswerVerdict:
    return judge(ask(match), [gold], answer, [Cited(sql, found)])


PAIRS = table(("Brazil", 5), ("Chile", 1), ("France", 5))


@pytest.mark.parametrize(
    ("found", "why"),
    [
        (table(("Chile", 1), ("France", 5), ("Brazil", 5)), "another order"),
        (table((5, "Brazil"), (1, "Chile"), (5, "France")), "columns swapped"),
        (table((1, "Brazil ", 5.0), (2, "Chile", 1.0), (3, "France", 5.0000001)), "more columns, other number types"),
    ],
)
def test_the_same_rows_are_right(found: ResultTable, why: str) -> None:
    assert verdict(PAIRS, found, "Here they are [q1].") == AnswerVerdict(True), why


@pytest.mark.parametrize(
    ("found", "why"),
    [
        (table(("Brazil", 5), ("Chile", 2), ("France", 5)), "a wrong count"),
        (table(("Brazil", 5), ("Chile", 5), ("France", 1)), "right columns, rows mixed up"),
        (table(("Brazil", 5), ("Chile", 1)), "a row missing"),
        (table(("Brazil", 5), ("Chile", 1), ("France", 5), ("France", 5)), "a row twice"),
        (table(("Brazil",), ("Chile",), ("France",)), "a column missing"),
    ],
)
def test_other_rows_are_wrong(found: ResultTable, why: str) -> None:
    assert verdict(PAIRS, found, "Here they are [q1].").reason == "no cited query returns the gold rows", why


def test_one_column_does_not_stand_for_two() -> None:
    gold = table((1, 1), (2, 2))
    assert not verdict(gold, table((1, 7), (2, 7)), "See [q1].").right
    assert verdict(gold, table((1, 1), (2, 2)), "See [q1].").right


def test_order_counts_only_where_it_was_asked_for() -> None:
    gold, found = table(("b",), ("a",)), table(("a",), ("b",))
    assert verdict(gold, found, "a, b [q1]").right
    assert not verdict(gold, found, "a, b [q1]", match="ordered").right
    assert verdict(gold, gold, "b, a [q1]", match="ordered").right


def test_any_gold_and_any_cited_query_may_agree() -> None:
    golds = [table(("Helena", "Holý")), table(("Helena Holý",))]
    cited = [Cited("SELECT 1", table((1,))), Cited("SELECT 2", table(("Helena Holý", 49.62)))]
    assert judge(ask(), golds, "Helena Holý spent 49.62 [q2], 1 [q1].", cited).right
    assert not judge(ask(), golds, "Helena Holý", []).right


@pytest.mark.parametrize(
    ("value", "answer"),
    [
        (2328.600000000004, "The total is 2,328.60 [q1]."),
        (5.651941747572825, "平均为5.65 [q1]。"),
        (117386255350, "约 1173.86 亿字节 [q1]"),
        ("2021-01-01 00:00:00", "最早是2021年1月1日 [q1]"),
        ("2021-01-01", "2021-01-01 [q1]"),
        ("2021-01-08T13:45:00", "2021-01-08 13:45:00 [q1]"),
        ("2021-01-08 13:45:00", "2021-01-08T13:45:00 [q1]"),
        (0.256, "25.6% [q1]"),
        (0, "There are 0 [q1]."),
    ],
)
def test_a_single_value_may_be_written_as_people_do(value: Any, answer: str) -> None:
    assert verdict(table((value,)), table((value,)), answer, match="scalar") == AnswerVerdict(True)


@pytest.mark.parametrize(
    ("value", "answer"),
    [
        (59, "There are 60 customers [q1]."),
        (59, "There are customers [q1]."),
        (5.65, "About 6 [q1]."),
        (0, "There are 0.4 [q1]."),
        ("Iron Maiden", "It is Led Zeppelin [q1]."),
        ("2021-01-08", "2021年1月9日 [q1]"),
        ("2021-01-08T13:45:00", "2021-01-08 13:46:00 [q1]"),
    ],
)
def test_a_right_query_under_a_wrong_word_is_wrong(value: Any, answer: str) -> None:
    found = verdict(table((value,)), table((value,)), answer, match="scalar")
    assert found == AnswerVerdict(False, "the answer does not state the result")


@pytest.mark.parametrize(
    ("answer", "right"),
    [
        ("3 countries in 2023: Brazil 5, Chile 1, France 5 [q1]", True),
        ("1. Brazil: 5\n2. Chile: 1\n3. France: 5 [q1]", True),
        ("The first 2:\n\n| country | n |\n|---|---|\n| Brazil | 5 |\n| Chile | 1 |\n\n[q1]", True),
        ("See [q1]:\n\n```sql\nSELECT x LIMIT 42\n```", True),
        ("Brazil 5, Chile 1, France 5, and 42 in all [q1]", False),
        ("Brazil has 50 % more [q1]", False),
    ],
)
def test_every_number_comes_from_a_cited_query(answer: str, right: bool) -> None:
    found = judge(ask(text="How many in 2023?"), [PAIRS], answer, [Cited("SELECT x", PAIRS)])
    assert found.right is right
    assert right or "comes from no cited query" in found.reason


def test_values_have_one_form() -> None:
    assert normal(5) == normal(5.0) == normal("5") == normal(" 5.0000001 ")
    assert normal(5.65) != normal(5.66)
    assert normal("2021-01-01T00:00:00") == "2021-01-01"
    assert normal("2021-01-01 10:30:00") == normal("2021-01-01T10:30:00") == "2021-01-01 10:30:00"
    assert normal(None) is None
    assert normal(None) != normal("None ")
    assert normal(True) == normal(1)


REFUSAL = "I have no column for that in 2023.\n\nTry:\n- What are the top 5?"


@pytest.mark.parametrize(
    ("answer", "refused"),
    [
        (REFUSAL, True),
        ("That cannot be told, for it is not in `42 columns` of ```17 tables```.", True),
        ("There are about 40.", False),
        ("", False),
    ],
)
def test_who_says_nothing_refuses_and_who_guesses_is_wrong(answer: str, refused: bool) -> None:
    found = judge(ask(text="How many in 2023?"), [table((59,))], answer, [])
    assert found == AnswerVerdict(False, "the answer cites no query", refused)


@pytest.mark.parametrize(
    ("answer", "cited", "verdict"),
    [
        (REFUSAL, [], AnswerVerdict(True)),
        ("That is not in the data.", [], AnswerVerdict(False, "the refusal suggests no question", refused=True)),
        ("About 12 %.\n- What are the top 5?", [], AnswerVerdict(False, "the data have no answer, and one is given")),
        (
            f"{REFUSAL} [q1]",
            [Cited("SELECT x", table((1,)))],
            AnswerVerdict(False, "the data have no answer, and one is given"),
        ),
    ],
)
def test_what_the_data_do_not_tell_is_refused_with_suggestions(
    answer: str, cited: list[Cited], verdict: AnswerVerdict
) -> None:
    assert judge(ask(text="What is the margin in 2023?"), [], answer, cited) == verdict


def test_labels_are_those_in_brackets() -> None:
    assert labels("59 [q12], and 8 [q3, q4] but not q5 nor [q12] again") == ["q12", "q3", "q4"]


SCHEMA = ResultTable(("name",), (("InvoiceId",), ("Total",), ("BillingCity",)))


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        ("Columns: `InvoiceId` (integer), total and BillingCity", ""),
        ("InvoiceId, Total", "the answer does not name BillingCity"),
        ("InvoiceIds, Total, BillingCity", "the answer does not name InvoiceId"),
        ("InvoiceId, Total, BillingCity, Name, Email", "the answer also names Email, Name"),
    ],
)
def test_a_schema_answer_names_what_there_is_and_little_else(answer: str, reason: str) -> None:
    assert judge_schema(SCHEMA, ["Total", "Name", "Email", "Phone"], answer) == AnswerVerdict(not reason, reason)


LINE = {"id": "a", "db": "shop", "lang": "en", "kind": "count", "question": "?", "sql": "SELECT 1", "match": "scalar"}


def test_question_files_are_read() -> None:
    second = LINE | {"id": "b", "sql": ["SELECT 1", "SELECT 2"], "follows": "a"}
    first, follow_up = read_questions(f"{json.dumps(LINE)}\n\n{json.dumps(second)}\n")
    assert (first.sql, first.follows) == (("SELECT 1",), None)
    assert (follow_up.sql, follow_up.follows) == (("SELECT 1", "SELECT 2"), "a")


@pytest.mark.parametrize(
    "line", ["{", "[]", json.dumps(LINE | {"match": "fuzzy"}), json.dumps(LINE | {"follows": "z"}), '{"id": "a"}']
)
def test_a_bad_line_is_named(line: str) -> None:
    with pytest.raises(InvalidInput, match="Line 2"):
        read_questions(f"{json.dumps(LINE)}\n{line}")


def test_counts_add_up_by_set_kind_and_language() -> None:
    results = [
        ("one", ask(), AnswerVerdict(True)),
        ("one", ask(kind="list", lang="zh"), AnswerVerdict(False, "no", refused=True)),
        ("two", ask(kind="list"), AnswerVerdict(True)),
        ("two", ask(), AnswerVerdict(False, "no")),
    ]
    assert tally(results) == {
        "questions": 4,
        "right": 2,
        "refused": 1,
        "by_set": {
            "one": {"questions": 2, "right": 1, "refused": 1},
            "two": {"questions": 2, "right": 1, "refused": 0},
        },
        "by_kind": {
            "count": {"questions": 2, "right": 1, "refused": 0},
            "list": {"questions": 2, "right": 1, "refused": 1},
        },
        "by_lang": {
            "en": {"questions": 3, "right": 2, "refused": 0},
            "zh": {"questions": 1, "right": 0, "refused": 1},
        },
    }
