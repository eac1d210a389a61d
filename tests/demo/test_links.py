"""Which tables the demo model joins, and by which columns: declared keys first, own keys of one name never."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from longthread.tools.analysis.open import open_source
from longthread.tools.analysis.toolbox import analysis_tools

_CREATE = """
CREATE TABLE 节目 ({key} INTEGER PRIMARY KEY, 名称 TEXT);
INSERT INTO 节目 VALUES (1, '夜话'), (2, '史谈'), (3, '闲聊');
CREATE TABLE 主播 ({key} INTEGER PRIMARY KEY, 姓名 TEXT);
INSERT INTO 主播 VALUES (1, '周航'), (2, '林岚'), (3, '何川');
CREATE TABLE 节目主播 (节目编号 INTEGER{to_shows}, 主播编号 INTEGER{to_hosts});
INSERT INTO 节目主播 VALUES (1, 3), (2, 3), (2, 1);
CREATE TABLE 单集 ({key} INTEGER PRIMARY KEY, 节目编号 INTEGER{to_shows}, 标题 TEXT);
INSERT INTO 单集 VALUES (1, 2, '甲'), (2, 2, '乙'), (3, 1, '丙');
CREATE TABLE 评论 ({key} INTEGER PRIMARY KEY, 单集编号 INTEGER{to_parts}, 评分 INTEGER);
INSERT INTO 评论 VALUES (1, 1, 5), (2, 2, 3), (3, 3, 2);
"""
_ASKED = {
    "夜话的主播是谁？": [["何川"]],
    "没有节目的主播有哪些": [["林岚"]],
    "每个节目的平均评分": [["史谈", 4.0], ["夜话", 2.0]],
    "参与节目最多的主播是谁？": [["何川", 2]],
}


def _script(key: str, *, declared: bool) -> str:
    targets = {"to_shows": "节目", "to_hosts": "主播", "to_parts": "单集"}
    return _CREATE.format(key=key, **{k: f" REFERENCES {t}({key})" if declared else "" for k, t in targets.items()})


async def _asked(script: str, tmp_path: Path, converse: Any, question: str) -> tuple[str, Any]:
    path = tmp_path / "links.sqlite"
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript(script)
    source = await open_source(str(path))
    conversation = converse({tool.name: tool for tool in analysis_tools(source)})
    try:
        return await conversation.ask(question), conversation.rows
    finally:
        await source.close()


@pytest.mark.sampled(2)
@pytest.mark.parametrize("declared", [True, False])
@pytest.mark.parametrize("key", ["编号", "code", "uid", "序号", "id"])
async def test_own_keys_of_one_name_join_nothing(tmp_path: Path, converse: Any, key: str, declared: bool) -> None:
    """With keys declared the rows are right; with none declared they are right, or the question is refused."""
    for question, rows in _ASKED.items():
        (tmp_path / question).mkdir()
        answer, got = await _asked(_script(key, declared=declared), tmp_path / question, converse, question)
        assert got is None or [list(row) for row in got] == rows, answer
        assert got is not None or not declared, answer


_PARTS = """
CREATE TABLE machines (machine_id INTEGER PRIMARY KEY, name TEXT);
INSERT INTO machines VALUES (1, 'Lathe'), (2, 'Mill');
CREATE TABLE operators (code TEXT PRIMARY KEY, full_name TEXT);
INSERT INTO operators VALUES ('A', 'Ann Ash'), ('B', 'Ben Birk');
CREATE TABLE tools (code TEXT PRIMARY KEY, label TEXT, machine_id INTEGER);
INSERT INTO tools VALUES ('A', 'Drill', 1), ('B', 'Saw', 1);
CREATE TABLE machine_settings (machine_id INTEGER PRIMARY KEY, speed INTEGER);
INSERT INTO machine_settings VALUES (1, 300), (2, 500);
"""


@pytest.mark.parametrize(
    ("question", "rows"),
    [
        ("number of tools per machine", [["Lathe", 2]]),
        ("number of tools per operator", None),  # nothing leads from one to the other
        ("average speed per machine", [["Mill", 500.0], ["Lathe", 300.0]]),  # the key says whose it is
    ],
)
async def test_names_lead_only_where_they_name_the_table(
    tmp_path: Path, converse: Any, question: str, rows: list[list[Any]] | None
) -> None:
    answer, got = await _asked(_PARTS, tmp_path, converse, question)
    assert (None if got is None else [list(row) for row in got]) == rows, answer
