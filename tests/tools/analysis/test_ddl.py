# ruff: noqa: E501 - a statement reads better in one line
from __future__ import annotations

import pytest

from longthread.tools.analysis.schema import comments_of


@pytest.mark.parametrize(
    ("sql", "table", "columns"),
    [
        ("CREATE TABLE t (a INT, b TEXT)", None, {}),
        ("CREATE TABLE t ( -- 火箭\n a INT, -- 编号\n b TEXT -- 名称\n)", "火箭", {"a": "编号", "b": "名称"}),
        ("CREATE TABLE t -- 火箭\n(\n a INT -- 编号\n, b TEXT)", "火箭", {"a": "编号"}),
        ("CREATE TABLE t /* rockets */ (a INT /* number */, b /* n */ TEXT)", "rockets", {"a": "number", "b": "n"}),
        ("CREATE TABLE t (\n -- the number\n a INT,\n /* the\n name */\n b TEXT)", None, {"a": "the number", "b": "the name"}),
        ("CREATE TABLE t (\n -- all rockets\n a INT, -- number\n b TEXT)", "all rockets", {"a": "number"}),
        ('CREATE TABLE "a--b" ("x -- y" INT, `z` TEXT, [w w] INT -- 宽\n)', None, {"w w": "宽"}),
        ("CREATE TABLE t (a TEXT DEFAULT '-- no', -- yes\n b DECIMAL(10,2) CHECK (b > (1)), -- 价格\n PRIMARY KEY (a) -- key\n)",
         None, {"a": "yes", "b": "价格"}),
        ("CREATE TABLE t (a INT, -- id\n b INT REFERENCES u(id), -- to u\n FOREIGN KEY (a) REFERENCES v(x, y))",
         None, {"a": "id", "b": "to u"}),
        ("CREATE VIEW v AS -- 视图\nSELECT a, b FROM t", "视图", {}),
        ("CREATE TABLE t (a INT /* never closed", None, {"a": "never closed"}),
    ],
)  # fmt: skip
def test_comments_belong_to_what_they_stand_beside(sql: str, table: str | None, columns: dict[str, str]) -> None:
    comments = comments_of(sql)
    assert (comments.table, comments.columns) == (table, columns)
