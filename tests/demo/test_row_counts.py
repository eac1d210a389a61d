"""The number of a table's rows, beside other tables with a column that is called number or quantity."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import pytest

Talk = Callable[[str], Awaitable[Any]]

SCHEMAS = {
    "stock": """
        CREATE TABLE 商品 (编号 INTEGER PRIMARY KEY, 名称 TEXT, 类别 TEXT);
        CREATE TABLE 入库 (编号 INTEGER PRIMARY KEY, 商品编号 INTEGER REFERENCES 商品(编号), 数量 INTEGER, 日期 TEXT);
        INSERT INTO 商品 VALUES (1, '绿茶', '茶'), (2, '红茶', '茶'), (3, '咖啡', '豆'), (4, '绿茶', '茶');
        INSERT INTO 入库 VALUES (1, 1, 10, '2024-01-01'), (2, 2, 5, '2024-01-02'), (3, 1, 7, '2024-02-01');""",
    "branches": """
        CREATE TABLE 分店 (编号 INTEGER PRIMARY KEY, 店名 TEXT, 城市 TEXT);
        CREATE TABLE 订货 (编号 INTEGER PRIMARY KEY, 分店编号 INTEGER REFERENCES 分店(编号), 数量 INTEGER);
        INSERT INTO 分店 VALUES (1, '东店', '北京'), (2, '西店', '北京'), (3, '东店', '上海');
        INSERT INTO 订货 VALUES (1, 1, 10), (2, 1, 20), (3, 2, 30), (4, 3, 40), (5, 3, 50);""",
    "deliveries": """
        CREATE TABLE products (id INTEGER PRIMARY KEY, name TEXT, category TEXT);
        CREATE TABLE deliveries (id INTEGER PRIMARY KEY, product_id INTEGER REFERENCES products(id), count INTEGER);
        INSERT INTO products VALUES (1, 'tea', 'leaf'), (2, 'mint', 'leaf'), (3, 'coffee', 'bean');
        INSERT INTO deliveries VALUES (1, 1, 3), (2, 2, 4), (3, 3, 50), (4, 3, 6);""",
    "products": """
        CREATE TABLE products (id INTEGER PRIMARY KEY, name TEXT, category TEXT);
        CREATE TABLE stock_in (id INTEGER PRIMARY KEY, product_id INTEGER REFERENCES products(id), quantity INTEGER);
        INSERT INTO products VALUES (1, 'tea', 'leaf'), (2, 'tea', 'leaf'), (3, 'coffee', 'bean');
        INSERT INTO stock_in VALUES (1, 1, 10), (2, 2, 5), (3, 3, 7), (4, 3, 7);""",
}


@pytest.mark.parametrize(
    ("name", "question", "rows"),
    [
        ("stock", "按名称统计商品的数量", [["绿茶", 2], ["咖啡", 1], ["红茶", 1]]),
        ("stock", "按名称统计商品数量", [["绿茶", 2], ["咖啡", 1], ["红茶", 1]]),
        ("stock", "按类别统计商品的数量", [["茶", 3], ["豆", 1]]),
        ("stock", "各类别商品的数量", [["茶", 3], ["豆", 1]]),
        ("stock", "商品的数量是多少？", [[4]]),
        ("stock", "商品的总数量", [[4]]),
        ("stock", "商品的数量总和", [[22]]),
        ("stock", "入库的平均数量是多少？", [[pytest.approx(22 / 3)]]),
        ("branches", "按店名统计分店的数量", [["东店", 2], ["西店", 1]]),
        ("branches", "分店的数量是多少？", [[3]]),
        ("stock", "哪个类别的商品数量最多？", [["茶", 3]]),
        ("stock", "商品的数量最少的类别", [["豆", 1]]),
        ("stock", "哪个商品的数量最多？", [["绿茶", 17]]),
        ("stock", "数量最多的入库", [[1, 10]]),
        ("deliveries", "product count per category", [["leaf", 2], ["bean", 1]]),
        ("deliveries", "What is the product count?", [[3]]),
        ("products", "How many products per name?", [["tea", 2], ["coffee", 1]]),
        ("products", "number of products by category", [["leaf", 2], ["bean", 1]]),
    ],
)
async def test_the_number_of_a_tables_rows_is_no_sum_of_another_tables_column(
    ask: Talk, name: str, question: str, rows: list[list[Any]]
) -> None:
    conversation = await ask(name)
    answer = await conversation.ask(question)
    assert conversation.rows == rows, answer
