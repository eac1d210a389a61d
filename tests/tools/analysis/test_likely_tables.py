"""The likely tables of a large database."""

from __future__ import annotations

import json
from typing import Any

import pytest

from longthread.tools.analysis.schema import Column, ForeignKey, Schema, Table
from longthread.tools.analysis.schema_linking import Likely
from longthread.tools.analysis.toolbox import analysis_tools
from longthread_evals.linking_eval import made_tables


def table(label: str, columns: str, *keys: ForeignKey) -> Table:
    return Table(label, label, columns=tuple(Column(name, "TEXT") for name in columns.split()), foreign_keys=keys)


LIBRARY = [
    table("uni.author", "aid name"),
    table("uni.publication", "pid title year"),
    table("uni.writes", "aid pid", ForeignKey(("aid",), "uni.author", ("aid",))),
    table("shop.author", "id name"),
    table("shop.order", "id total"),
    table("客服.工单", "编号 客户 状态"),
]


def test_the_table_between_two_and_the_schema_of_both() -> None:
    ranked = Likely(Schema(LIBRARY)).rank("Which author has the most publications?", 3)
    assert set(ranked) == {"uni.author", "uni.publication", "uni.writes"}


@pytest.mark.parametrize("column", ["author_id", "AuthorID", "aid"])
def test_a_column_that_is_called_like_a_key_joins_where_no_key_is_declared(column: str) -> None:
    key = "aid name" if column == "aid" else "id name"
    tables = [table("uni.authors", key), table("uni.prizes", f"{column} sum"), *made_tables(500)]
    assert "uni.prizes" in Likely(Schema(tables)).rank("Which author is the oldest?", 20)
    alone = [table("uni.authors", key), table("uni.prizes", "sum"), *made_tables(500)]
    assert "uni.prizes" not in Likely(Schema(alone)).rank("Which author is the oldest?", 20)


def test_chinese_and_nothing_alike() -> None:
    likely = Likely(Schema(LIBRARY))
    assert likely.rank("每个客户有多少工单？", 1) == ["客服.工单"]
    assert likely.rank("zzz", 5) == []
    assert likely.rank("how many", 5) == []


def test_a_thousand_tables_are_ranked() -> None:
    schema = Schema([*LIBRARY, *made_tables(994)])
    assert len(schema) == 1_000
    assert "uni.publication" in Likely(schema).rank("Titles of publications by an author in 2020", 20)


async def test_a_large_database_lists_the_likely_ones(opened: Any, make_sqlite: Any, ask: Any) -> None:
    script = "".join(f"CREATE TABLE filler_{n} (id);" for n in range(130)) + "CREATE TABLE penguins (id, weight);"
    source = await opened(make_sqlite(script))
    tools = {tool.name: tool for tool in analysis_tools(source, "How heavy are the penguins?")}
    listed = (await tools["list_tables"].call({}))["data"]
    assert (listed["tables"], listed["shown"]) == (["penguins"], "1 of 131")
    assert "likely meant" in json.dumps(listed["notes"])
    about = (await tools["list_tables"].call({"about": "filler"}))["data"]
    assert len(about["tables"]) == 20
    assert (await tools["list_tables"].call({"pattern": "filler"}))["data"]["shown"] == "130 of 130"
    assert len((await ask(source, "list_tables"))["data"]["tables"]) == 20
