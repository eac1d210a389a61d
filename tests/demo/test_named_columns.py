"""A column that a question names is in the answer, or it is refused; a value is of the table that is measured."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import pytest

Talk = Callable[[str], Awaitable[Any]]

SCHEMAS = {
    "cafe": """
        CREATE TABLE Sales (Date TEXT, Branch TEXT, Product TEXT, "Cups / pieces" INTEGER, Revenue REAL);
        CREATE TABLE Staff (Name TEXT, Branch TEXT, Role TEXT, "Hourly wage" REAL);
        INSERT INTO Sales VALUES ('2025-01-02', 'Uni', 'Tea', 2, 6.5), ('2025-01-03', 'Bahnhof', 'Tea', 1, 3.5),
            ('2025-01-03', 'Uni', 'Cake', 2, 9), ('2025-01-04', 'Bahnhof', 'Cake', 3, 13.5);
        INSERT INTO Staff VALUES ('Ann', 'Uni', 'Manager', 20), ('Bob', 'Uni', 'Barista', 14),
            ('Cy', 'Bahnhof', 'Barista', 13);""",
    "咖啡馆": """
        CREATE TABLE 销售 (日期 TEXT, 门店 TEXT, 商品 TEXT, 数量 INTEGER, 营业额 REAL);
        CREATE TABLE 员工 (姓名 TEXT, 门店 TEXT, 职位 TEXT, 时薪 REAL);
        INSERT INTO 销售 VALUES ('2025-01-02', '大学店', '绿茶', 2, 6.5), ('2025-01-03', '车站店', '绿茶', 1, 3.5),
            ('2025-01-03', '大学店', '蛋糕', 2, 9), ('2025-01-04', '车站店', '蛋糕', 3, 13.5);
        INSERT INTO 员工 VALUES ('安娜', '大学店', '店长', 20), ('梅林', '大学店', '咖啡师', 14),
            ('奥马尔', '车站店', '咖啡师', 13);""",
    "takings": """
        CREATE TABLE Takings (Date TEXT, Branch TEXT, Revenue REAL);
        INSERT INTO Takings VALUES ('2025-01-02', 'Uni', 6.5), ('2025-01-03', 'Bahnhof', 3.5);""",
    "营业": """
        CREATE TABLE 营业 (日期 TEXT, 门店 TEXT, 营业额 REAL);
        INSERT INTO 营业 VALUES ('2025-01-02', '大学店', 6.5), ('2025-01-03', '车站店', 3.5);""",
}


@pytest.mark.parametrize(
    ("name", "question", "said"),
    [
        ("cafe", "Total Cups / pieces by Name", "`Sales` / `Staff`"),
        ("cafe", "Average Revenue by Name", "`Sales` / `Staff`"),
        ("cafe", "Total Revenue by Role", "`Sales` / `Staff`"),
        ("咖啡馆", "按姓名统计营业额的总和", "`销售` / `员工`"),
        ("咖啡馆", "各姓名的营业额", "`销售` / `员工`"),
        ("takings", "Total revenue by name", "“name”"),
        ("营业", "按姓名统计营业额的总和", "“姓名”"),
    ],
)
async def test_a_group_that_a_table_lacks_is_no_other_group(ask: Talk, name: str, question: str, said: str) -> None:
    answer = await (await ask(name)).ask(question)
    assert "cannot answer" in answer or "无法回答" in answer
    assert said in answer


@pytest.mark.parametrize(
    ("name", "question", "rows"),
    [
        ("cafe", "Average Hourly wage by Name", [["Ann", 20], ["Bob", 14], ["Cy", 13]]),
        ("咖啡馆", "按姓名统计时薪的平均值", [["安娜", 20], ["梅林", 14], ["奥马尔", 13]]),
    ],
)
async def test_a_table_is_grouped_by_its_own_names(ask: Talk, name: str, question: str, rows: list[list[Any]]) -> None:
    conversation = await ask(name)
    await conversation.ask(question)
    assert conversation.rows == rows


@pytest.mark.parametrize(
    ("name", "question", "rows"),
    [
        ("cafe", "Total revenue at Uni", [[15.5]]),
        ("cafe", "Total revenue of branch Uni", [[15.5]]),
        ("cafe", "Average hourly wage at Uni", [[17]]),
        ("咖啡馆", "大学店的营业额", [[15.5]]),
        ("咖啡馆", "门店为大学店的总营业额是多少", [[15.5]]),
        ("咖啡馆", "大学店的平均时薪", [[17]]),
    ],
)
async def test_a_value_of_two_tables_is_of_the_one_that_is_measured(
    ask: Talk, name: str, question: str, rows: list[list[Any]]
) -> None:
    conversation = await ask(name)
    await conversation.ask(question)
    assert conversation.rows == rows
