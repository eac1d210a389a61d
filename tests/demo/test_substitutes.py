"""The column that the question names is used, and no neighbour of a like name; a value is counted as it is spelled."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import pytest

Talk = Callable[[str], Awaitable[Any]]

SCHEMAS = {
    "both": """CREATE TABLE sales (id INTEGER PRIMARY KEY, "Amount" REAL, "Amount_1" REAL, region TEXT, region_1 TEXT);
        INSERT INTO sales VALUES (1, 1, 100, 'N', 'A'), (2, 2, 200, 'S', 'B'), (3, 3, 300, 'S', 'B');""",
    "text": """CREATE TABLE sales ("Date" TEXT, "Amount" TEXT, "Amount_1" INTEGER);
        INSERT INTO sales VALUES ('2024-01-01', '12 kg', 5), ('2024-01-02', 'n/a', 6), ('2024-01-03', '3', 7);""",
    "two": """CREATE TABLE sales (id INTEGER PRIMARY KEY, list_price INT, unit_price INT, "金额_1" REAL, "金额_2" REAL);
        INSERT INTO sales VALUES (1, 5, 6, 1, 10), (2, 7, 8, 2, 20);""",
    "letters": """CREATE TABLE patients (id INTEGER PRIMARY KEY, name TEXT, gender TEXT, city TEXT);
        INSERT INTO patients VALUES (1, 'A', 'M', 'York'), (2, 'B', 'Male', 'york'), (3, 'C', 'male ', 'York'),
          (4, 'D', 'F', 'Hull'), (5, 'E', 'Female', 'Hull');""",
    "counted": """CREATE TABLE customers (id INTEGER PRIMARY KEY, name TEXT, order_count INT);
        CREATE TABLE orders (id INTEGER PRIMARY KEY, customer_id INT REFERENCES customers(id), discounted REAL);
        INSERT INTO customers VALUES (1, 'A', 3), (2, 'B', 7);
        INSERT INTO orders VALUES (1, 1, NULL), (2, 2, 1.5), (3, 2, 0), (4, 2, NULL);""",
    "flagged": """CREATE TABLE 患者 (编号 INTEGER PRIMARY KEY, 姓名 TEXT, 男性 TEXT);
        INSERT INTO 患者 VALUES (1, '甲', '是'), (2, '乙', '否'), (3, '丙', '是');""",
}  # fmt: skip


@pytest.mark.parametrize(
    ("name", "question", "rows"),
    [
        ("both", "total amount", [[6.0]]),
        ("both", "total Amount_1", [[600.0]]),
        ("both", "average Amount_1", [[200.0]]),
        ("both", "total amount by region_1", [["B", 5.0], ["A", 1.0]]),
        ("both", "total Amount_1 by region", [["S", 500.0], ["N", 100.0]]),
        ("text", "total Amount_1", [[18]]),
        ("two", "average unit price", [[7.0]]),
        ("counted", "average order count", [[5.0]]),
        ("counted", "total order_count", [[10]]),
        ("counted", "How many orders are there?", [[4]]),
        ("counted", "How many discounted orders are there?", [[1]]),
        ("counted", "How many not discounted orders are there?", [[3]]),
        ("letters", "How many male patients are there?", [[3]]),
        ("letters", "有多少位男性患者？", [[3]]),
        ("letters", "How many women?", [[2]]),
        ("letters", "How many patients are in York?", [[3]]),
    ],
)
async def test_the_named_column_and_every_spelling_of_a_value(
    ask: Talk, name: str, question: str, rows: list[Any]
) -> None:
    conversation = await ask(name)
    answer = await conversation.ask(question)
    assert conversation.rows == rows, answer


@pytest.mark.parametrize(
    ("name", "question", "named"),
    [
        ("text", "total amount", ["amount"]),
        ("text", "amount by date", ["`sales.Amount`", "`sales.Amount_1`"]),
        ("text", "highest amount", ["`sales.Amount`", "`sales.Amount_1`"]),
        ("text", "sales with an amount over 5", ["`sales.Amount`", "`sales.Amount_1`"]),
        ("text", "金额总和", ["`sales.Amount`", "`sales.Amount_1`"]),
        ("two", "average price", ["`sales.list_price`", "`sales.unit_price`"]),
        ("two", "highest price", ["`sales.list_price`", "`sales.unit_price`"]),
        ("two", "sales with a price over 6", ["`sales.list_price`", "`sales.unit_price`"]),
        ("two", "金额总和", ["`sales.金额_1`", "`sales.金额_2`"]),
        ("flagged", "有多少位男性患者？", ["男性"]),
        ("counted", "What is the order count?", ["`customers.order_count`", "COUNT(`orders`)"]),
        ("counted", "total order count", ["`customers.order_count`", "COUNT(`orders`)"]),
        ("flagged", "How many male patients are there?", []),
    ],
)
async def test_what_may_be_meant_is_asked_back(ask: Talk, name: str, question: str, named: list[str]) -> None:
    answer = await (await ask(name)).ask(question)
    assert "cannot answer" in answer or "无法回答" in answer, answer
    assert all(column in answer for column in named), answer
