"""A MySQL source by the commands, with Chinese names, and its password nowhere."""

from __future__ import annotations

import csv
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests import mysqlserver

from longthread.tools.analysis.address import SourceUrl

pytestmark = [pytest.mark.mysql, pytest.mark.one_backend]
Run = Callable[..., Any]
SHOP = """
CREATE TABLE 客户 (编号 INT PRIMARY KEY, 姓名 VARCHAR(40), 城市 VARCHAR(40), 注册日期 DATE) COMMENT = '客户资料';
CREATE TABLE 订单 (编号 INT PRIMARY KEY, 客户编号 INT, 金额 DECIMAL(12, 2), 下单时间 DATETIME, 状态 ENUM('已完成', '待付款'),
                   FOREIGN KEY (客户编号) REFERENCES 客户 (编号));
INSERT INTO 客户 VALUES (1, '王芳', '北京', '2021-01-01'), (2, '李雷', '上海', '2022-02-02'), (3, '韩梅', '北京', '2023-05-05');
INSERT INTO 订单 VALUES (1, 1, 99.90, '2023-03-03 10:00:00', '已完成'), (2, 2, 15, '2023-04-04 11:00:00', '待付款'),
                        (3, 1, 50, '2024-04-04 11:00:00', '已完成');
"""  # noqa: E501 - rows
CATALOG = """
kind: source
name: shop
address: {address}
"""
PASSWORD = "gehe1m-7"


def test_a_source_of_the_catalog_is_asked_in_chinese(
    run: Run, mysql_server: str, mysql_url: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    mysqlserver.run(mysql_url, SHOP)
    given = SourceUrl.parse(mysql_url)
    user = f"u{given.database}"[-30:]
    grant = f"GRANT SELECT ON {given.database}.* TO {user}"
    mysqlserver.run(mysql_server, f"CREATE USER {user} IDENTIFIED BY '{PASSWORD}'; {grant}")
    address = f"mysql://{user}:${{SHOP_PASSWORD}}@{given.host}:{given.port}/{given.database}"
    (tmp_path / "shop.yaml").write_text(CATALOG.format(address=address))
    monkeypatch.setenv("LONGTHREAD_SECRET_SHOP_PASSWORD", PASSWORD)
    said = [run("apply", "-f", "shop.yaml").output, run("sources", "show", "shop").output]
    for question, answer in (
        ("每个客户的订单总金额是多少？", "| 王芳 | 149.90 |"),
        ("每个月的订单总金额", "| 2023-03 | 99.90 |"),
        ("已完成的订单有多少？", "**2**"),
    ):
        said.append(run("ask", question, "--source", "shop").output)
        assert answer in said[-1]
    said.append(run("ask", "已完成的订单有多少？", "--thread", "last").output)
    assert "**2**" in said[-1]
    said.append(run("threads", "result", "last", "q1", "--to", "whole.csv").output)
    with (tmp_path / "whole.csv").open(encoding="utf-8-sig", newline="") as file:
        assert list(csv.reader(file)) == [["订单_count"], ["2"]]
    monkeypatch.setenv("MYSQL_PWD", "wr0ng")
    said.append(str(run("ask", "还有呢？", "--source", address.replace("${SHOP_PASSWORD}", "wr0ng"), code=3).exception))
    assert PASSWORD not in "".join(said) and "wr0ng" not in "".join(said)
    mysqlserver.run(mysql_server, f"DROP USER {user}")
