"""A negated filter keeps the rows of which the value is unknown, and those without a partner in its table."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import pytest

Talk = Callable[[str], Awaitable[Any]]

SCHEMAS = {
    "shop": """
        CREATE TABLE customers (id INTEGER PRIMARY KEY, name TEXT, city TEXT, active BOOLEAN);
        CREATE TABLE orders (id INTEGER PRIMARY KEY, customer_id INTEGER REFERENCES customers(id), amount REAL);
        INSERT INTO customers VALUES (1, 'Ann', 'Oslo', 1), (2, 'Bob', 'Oslo', 0), (3, 'Cid', 'Bergen', 1),
          (4, 'Dee', NULL, NULL);
        INSERT INTO orders VALUES (1, 1, 100), (2, 1, 50), (3, 2, 70), (4, NULL, 1000), (5, 99, 500), (6, 4, 30);""",
    "clinic": """
        CREATE TABLE 科室 (编号 INTEGER PRIMARY KEY, 名称 TEXT);
        CREATE TABLE 患者 (编号 INTEGER PRIMARY KEY, 姓名 TEXT, 科室编号 INTEGER REFERENCES 科室(编号), 费用 REAL);
        INSERT INTO 科室 VALUES (1, '内科'), (2, '外科'), (3, '儿科');
        INSERT INTO 患者 VALUES (1, '张三', 1, 100), (2, '李四', 1, 200), (3, '王五', 2, 300), (4, '赵六', NULL, 4000),
          (5, '钱七', 9, 500);""",
}


@pytest.mark.parametrize(
    ("name", "question", "rows"),
    [
        ("shop", "how many customers not in Oslo", [[2]]),
        ("shop", "how many customers are not active", [[2]]),
        ("shop", "how many orders are not from Oslo", [[3]]),
        ("clinic", "不在内科的患者有多少", [[3]]),
        ("clinic", "不在内科的患者的总费用", [[4800]]),
        ("clinic", "除了内科以外的患者有多少", [[3]]),
        ("clinic", "不在内科和外科的患者有多少", [[2]]),
    ],
)
async def test_what_is_unknown_passes_a_negation(ask: Talk, name: str, question: str, rows: list[list[Any]]) -> None:
    conversation = await ask(name)
    answer = await conversation.ask(question)
    assert conversation.rows == rows, answer
