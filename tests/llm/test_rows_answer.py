"""Answers that the rows give, in both languages."""

from __future__ import annotations

from typing import Any

import pytest

from longthread.llm.rows_answer import answer_from_rows, asks_words


def data(columns: list[str], rows: list[list[Any]], **more: Any) -> dict[str, Any]:
    return {"query": "q1", "columns": columns, "rows": rows, "total": len(rows), **more}


NAMES = ["Ada", "Bob", "Eve", "Kim"]


@pytest.mark.parametrize(
    ("columns", "rows", "english", "chinese"),
    [
        (["COUNT(*)"], [[4272]], "**4,272** [q1].", "**4,272** [q1]。"),
        (["stock"], [[4272]], "Stock: **4,272** [q1].", "Stock：**4,272** [q1]。"),
        (["库存"], [[4272]], "库存: **4,272** [q1].", "库存：**4,272** [q1]。"),
        (["sales_2024"], [[7]], "```sales 2024```: **7** [q1].", None),
        (["a"], [], "No rows match [q1].", "没有符合条件的数据 [q1]。"),
        (["a", "b"], [[None, None]], "There is no value [q1].", "没有值 [q1]。"),
        (["city", "n"], [["Lyon", None]], "City: **Lyon**, n: **—** [q1].", "City：**Lyon**，n：**—** [q1]。"),
        (["name"], [[name] for name in NAMES], "**Ada**, **Bob**, **Eve**, **Kim** [q1].", None),
        (["n", "name"], [[9, "Ada"], [4, "Bob"]], "**2** rows: **Ada** (**9**), **Bob** (**4**) [q1].", None),
        (["n", "name"], [[9, "Ada"], [4, "Bob"]], None, "共 **2** 行：**Ada**（**9**）、**Bob**（**4**） [q1]。"),
    ],
)
def test_few_cells_are_stated(
    columns: list[str], rows: list[list[Any]], english: str | None, chinese: str | None
) -> None:
    if english is not None:
        assert answer_from_rows("How many?", data(columns, rows)) == english
    if chinese is not None:
        assert answer_from_rows("有多少？", data(columns, rows)) == chinese


def test_sorted_rows_are_named_from_the_first() -> None:
    rows = [[n, name, 40 - 10 * n] for n, name in enumerate(NAMES)]
    first, table = answer_from_rows("Who?", data(["id", "name", "points"], rows)).split("\n\n")
    assert first == "**4** rows: **Ada** (**40**), **Bob** (**30**), **Eve** (**20**) … [q1]."
    assert table.splitlines() == [
        "| id | name | points |",
        "| --- | --- | --- |",
        *(f"| {n} | {name} | {points} |" for n, name, points in rows),
    ]


@pytest.mark.parametrize(
    ("launches", "english"),
    [
        ([5, 81, 18, 20], "**4** rows: launches **5** to **81**, the most: **2020** [q1]."),
        ([5, 81, 18, 81], "**4** rows: launches **5** to **81** [q1]."),
        ([5, 81, None, 9], "**4** rows: **2019** (**5**), **2020** (**81**), **2021** (**—**) … [q1]."),
    ],
)
def test_unsorted_rows_are_told_from_the_least_to_the_most(launches: list[int | None], english: str) -> None:
    rows = [[2019 + at, number] for at, number in enumerate(launches)]
    assert answer_from_rows("By year?", data(["year", "launches"], rows)).split("\n\n")[0] == english


def test_a_result_in_part_says_how_many_there_are() -> None:
    rows = [[n] for n in range(100)]
    told = data(["p"], rows, total=270, truncated=True)
    assert answer_from_rows("Which?", told).startswith("**270** rows [q1].\n\n| p |")
    assert answer_from_rows("哪些？", told | {"total": None}).startswith("超过 **100** 行 [q1]。")
    assert answer_from_rows("Which?", told).endswith("\n| 9 |\n\nOnly the first ```10``` are printed here.")
    assert answer_from_rows("Which?", told).count("\n| ") == 2 + 10


def test_what_is_not_whole_is_not_told_as_the_whole() -> None:
    one = data(["id", "body"], [[1, "x"]], total=3, truncated=True)
    assert answer_from_rows("Which?", one).startswith("**3** rows: **x** [q1].\n\n| id | body |")
    empty = data(["rating"], [[None]] * 5, total=170, truncated=True)
    assert answer_from_rows("Which ratings?", empty).startswith("**170** rows [q1].\n\n| rating |")


def test_rows_are_named_with_what_they_are_sorted_by() -> None:
    rows = [["Ada", 90, 3], ["Bob", 80, 1], ["Kim", 70, 9], ["Eve", 60, 2]]
    told = answer_from_rows("Top revenue?", data(["name", "revenue", "orders"], rows))
    assert told.startswith("**4** rows: **Ada** (**90**), **Bob** (**80**), **Kim** (**70**) …")


def test_lists_and_structs_are_json() -> None:
    assert answer_from_rows("Which?", data(["tags"], [[{"a": None, "b": [True]}]])) == (
        'Tags: **{"a": null, "b": [true]}** [q1].'
    )


def test_formats_of_the_file_and_notes_are_kept() -> None:
    formats = {"vat": {"kind": "share"}, "net": {"kind": "currency", "unit": "€"}}
    told = data(["net", "vat"], [[1200.5, 0.19]], formats=formats, notes=["A row of sums was left out."])
    assert answer_from_rows("What?", told) == "Net: **€1,200.50**, vat: **19%** [q1].\n\nA row of sums was left out."


def test_a_cell_cannot_leave_its_table() -> None:
    rows = [[f"a | b\nc{n}", n, "x"] for n in range(4)]
    told = answer_from_rows("Which?", data(["na|me", "n", "note"], rows))
    assert [line.count(" | ") for line in told.splitlines() if line.startswith("| ")] == [2] * 6


@pytest.mark.parametrize(
    "question",
    [
        *("Are there orders?", "And is it true?", "Why did sales fall?", "Describe the customers"),
        *("Compare Lyon and Paris", "What does churn mean?", "Answer in French: how many?"),
        *("Isn't there stock?", "How come sales fell?", "Give me an overview", "What is the trend?"),
        *("How many customers? Always add the currency.", "How many, in German?"),
        *(
            "Warum sind die Umsätze gefallen?",
            "Wie viele Kunden gibt es?",
            "Combien de clients ?",
            "在庫はありますか？",
        ),
        *("趋势怎么样？", "哪个更好？"),
        *("有库存吗？", "是否有订单", "为什么下降", "总结一下", "对比两个城市"),
    ],
)
def test_questions_that_want_words(question: str) -> None:
    assert asks_words(question)


@pytest.mark.parametrize(
    "question",
    [
        *("How many orders are there?", "Can you list the cities?", "What is the mean price?", "And in Lyon?"),
        *("Which customer has most orders?", "Show sales that are late"),
        *("平均价格是多少？", "哪个城市最多", "列出所有订单", "那里昂呢？"),
    ],
)
def test_questions_that_rows_answer(question: str) -> None:
    assert not asks_words(question)
