"""Kinds of plain questions over databases of a few rows: percentages, units, rates, verbs of a date, parts of names."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import pytest

Talk = Callable[[str], Awaitable[Any]]

_FITNESS = """
CREATE TABLE plans (plan_id INTEGER PRIMARY KEY, name TEXT, monthly_fee REAL);
INSERT INTO plans VALUES (1, 'Basic', 20), (2, 'Premium', 60);
CREATE TABLE members (member_id INTEGER PRIMARY KEY, full_name TEXT, city TEXT, status TEXT, joined_on DATE,
  plan_id INTEGER REFERENCES plans(plan_id));
INSERT INTO members VALUES (1, 'Ann Ash', 'Leeds', 'active', '2023-01-05', 1),
  (2, 'Ben Birk', 'Leeds', 'cancelled', '2023-02-05', 2), (3, 'Cy Cole', 'York', 'active', '2024-02-07', 1),
  (4, 'Di Dorn', 'York', 'active', '2024-03-08', NULL);
CREATE TABLE lessons (lesson_id INTEGER PRIMARY KEY, title TEXT, duration_min INTEGER);
INSERT INTO lessons VALUES (1, 'Spin', 45), (2, 'Flow', 75);
CREATE TABLE checkins (checkin_id INTEGER PRIMARY KEY, member_id INTEGER REFERENCES members(member_id),
  lesson_id INTEGER REFERENCES lessons(lesson_id), checked_in_at DATE, minutes INTEGER);
INSERT INTO checkins VALUES (1, 1, 2, '2024-05-01', 80), (2, 1, 1, '2024-05-02', 40), (3, 3, 2, '2024-06-03', 90);
CREATE TABLE payments (payment_id INTEGER PRIMARY KEY, member_id INTEGER REFERENCES members(member_id), paid_on DATE,
  amount REAL, method TEXT);
INSERT INTO payments VALUES (1, 1, '2023-04-01', 30, 'card'), (2, 2, '2023-05-01', 60, 'cash'),
  (3, 2, '2023-06-01', 10, 'card');
"""
_HERBARIUM = """
CREATE TABLE species (id INTEGER PRIMARY KEY, common_name TEXT);
INSERT INTO species VALUES (1, 'Daisy'), (2, 'Thyme'), (3, 'Rue');
CREATE TABLE sites (id INTEGER PRIMARY KEY, name TEXT, country TEXT, area_m2 REAL);
INSERT INTO sites VALUES (1, 'Alm', 'Austria', 3000), (2, 'Pusta', 'Hungary', 900);
CREATE TABLE accessions (id INTEGER PRIMARY KEY, species_id INTEGER REFERENCES species(id),
  site_id INTEGER REFERENCES sites(id), collected_on DATE);
INSERT INTO accessions VALUES (1, 1, 2, '2020-01-01'), (2, 1, 2, '2021-01-01'), (3, 2, 1, '2021-02-02'),
  (4, 3, 2, '2022-03-03');
CREATE TABLE collectors (id INTEGER PRIMARY KEY, full_name TEXT);
INSERT INTO collectors VALUES (1, 'Marco Riva'), (2, 'Ida Lund');
CREATE TABLE accession_collectors (accession_id INTEGER REFERENCES accessions(id),
  collector_id INTEGER REFERENCES collectors(id));
INSERT INTO accession_collectors VALUES (1, 1), (2, 1), (3, 2);
CREATE TABLE deliveries (id INTEGER PRIMARY KEY, site_id INTEGER REFERENCES sites(id), delivered_at DATE,
  shipping_cost REAL);
INSERT INTO deliveries VALUES (1, 1, '2024-01-02', 5), (2, 1, '2024-02-02', 15);
"""
_RADIO = """
CREATE TABLE 节目 (编号 INTEGER PRIMARY KEY, 名称 TEXT, 分类 TEXT);
INSERT INTO 节目 VALUES (1, '夜话', '故事'), (2, '史谈', '历史');
CREATE TABLE 单集 (编号 INTEGER PRIMARY KEY, 节目编号 INTEGER REFERENCES 节目(编号), 标题 TEXT, 发布日期 DATE,
  播放量 INTEGER, 时长分钟 INTEGER, 是否付费 TEXT);
INSERT INTO 单集 VALUES (1, 1, '甲', '2024-01-03', 10, 30, '是'), (2, 1, '乙', '2024-01-09', 30, 50, '否'),
  (3, 2, '丙', '2024-02-03', 60, 40, '否'), (4, 2, '丁', '2023-02-03', 100, 60, '否');
CREATE TABLE 主播 (编号 INTEGER PRIMARY KEY, 姓名 TEXT, 城市 TEXT);
INSERT INTO 主播 VALUES (1, '周航', '上海'), (2, '林岚', '上海'), (3, '何川', '北京');
CREATE TABLE 广告商 (编号 INTEGER PRIMARY KEY, 名称 TEXT, 行业 TEXT);
INSERT INTO 广告商 VALUES (1, '云杯', '饮料'), (2, '快修', '汽车'), (3, '远行', '旅游');
CREATE TABLE 广告投放 (编号 INTEGER PRIMARY KEY, 广告商编号 INTEGER REFERENCES 广告商(编号), 金额 REAL, 付款状态 TEXT);
INSERT INTO 广告投放 VALUES (1, 1, 100, '已付款'), (2, 1, 300, '未付款'), (3, 2, 600, '已付款');
"""
_SHOP = """
CREATE TABLE m (month TEXT, sales INTEGER);
INSERT INTO m VALUES ('2024-01', 10), ('2024-02', 20), ('2024-03', 30), ('2024-04', 40);
CREATE TABLE orders (order_id INTEGER PRIMARY KEY, order_date DATE, region TEXT, product TEXT, quantity INTEGER,
  price REAL);
INSERT INTO orders VALUES (1, '2024-01-05', 'North', 'Chair', 3, 10), (2, '2024-02-01', 'West', 'Chair', 7, 10),
  (3, '2024-02-03', 'West', 'Lamp', 2, 20);
"""
SCHEMAS = {"fitness": _FITNESS, "herbarium": _HERBARIUM, "radio": _RADIO, "shop": _SHOP}


@pytest.mark.parametrize(
    ("name", "question", "rows"),
    [
        ("fitness", "What percentage of members are cancelled?", [[25.0]]),
        ("fitness", "What share of members are on the Premium plan?", [[25.0]]),  # of all four, also without a plan
        ("fitness", "percentage of payments by method", [["card", 200 / 3], ["cash", 100 / 3]]),
        ("fitness", "状态为cancelled的会员占比", [[25.0]]),
        ("fitness", "各城市会员占比", [["Leeds", 50.0], ["York", 50.0]]),
        ("radio", "付费单集占比是多少", [[25.0]]),
        ("radio", "各分类的播放量占比", [["历史", 80.0], ["故事", 20.0]]),
        ("radio", "未付款的广告占百分之几", [[100 / 3]]),
        ("fitness", "lessons longer than 60 minutes", [["Flow", 75]]),
        ("fitness", "How many check-ins were there in May 2024?", [[2]]),
        ("fitness", "What does the Premium plan cost per month?", [["Premium", 60.0]]),
        ("fitness", "revenue by payment method", [["cash", 60.0], ["card", 40.0]]),
        ("fitness", "When was the first payment made?", [[1, "2023-04-01"]]),
        ("fitness", "top 1 members by total amount paid", [["Ben Birk", 70.0]]),
        ("fitness", "How many members are still active?", [[3]]),
        ("herbarium", "Which species were collected in Hungary?", [["Daisy"], ["Rue"]]),
        ("herbarium", "Which collector has collected the most accessions?", [["Marco Riva", 2]]),
        ("herbarium", "How many accessions did Marco Riva collect?", [[2]]),
        ("herbarium", "面积超过2000平米的采集点", [["Alm", "Austria", 3000.0]]),
        ("herbarium", "2024年1月有多少次送货", [[1]]),
        ("herbarium", "平均运费是多少？", [[10.0]]),
        ("radio", "2024年每月的播放量", [["2024-01", 40], ["2024-02", 60]]),
        ("radio", "主播的城市分布", [["上海", 2], ["北京", 1]]),
        ("radio", "夜话有多少集", [[2]]),
        ("radio", "广告总金额", [[1000.0]]),
        ("radio", "投放总金额最多的广告商", [["快修", 600.0]]),
        ("radio", "哪家广告商没有投放过广告？", [["远行", "旅游"]]),
        # Months that are texts come before their days.
        ("shop", "total sales in February 2024", [[20]]),
        ("shop", "total sales in 2024", [[100]]),
        ("shop", "total sales since March 2024", [[70]]),
        ("shop", "total sales from February to March 2024", [[50]]),
        ("shop", "total sales on 2024-02-01", [[None]]),
        ("shop", "total sales by month", [["2024-01", 10], ["2024-02", 20], ["2024-03", 30], ["2024-04", 40]]),
        ("shop", "total sales by quarter", [["2024-Q1", 60], ["2024-Q2", 40]]),
        ("shop", "各年的 sales 总和", [[2024, 100]]),
    ],
)
async def test_a_plain_question_is_answered(ask: Talk, name: str, question: str, rows: list[list[Any]]) -> None:
    conversation = await ask(name)
    answer = await conversation.ask(question)
    assert conversation.rows is not None, answer
    got = [[round(v, 6) if isinstance(v, float) else v for v in row] for row in conversation.rows]
    assert got == [[round(v, 6) if isinstance(v, float) else v for v in row] for row in rows], answer


@pytest.mark.parametrize(
    ("name", "question"),
    [
        ("fitness", "average visit length by city"),  # the visits are check-ins, and lessons have a length too
        ("fitness", "percentage of active members by city"),  # of each city, or of all the active ones
        ("fitness", "percentage of members who are active in Leeds"),
        ("fitness", "What percentage of the price is tax?"),
        ("fitness", "members with 5% discount"),
        ("radio", "每个节目的时长"),  # the total or the average
        ("radio", "广告商占比"),
        ("shop", "Which product sold the most?"),  # by units or by money
        ("shop", "Which region bought the least?"),
    ],
)
async def test_what_may_be_read_in_two_ways_is_refused(ask: Talk, name: str, question: str) -> None:
    conversation = await ask(name)
    answer = await conversation.ask(question)
    assert "cannot answer" in answer or "无法回答" in answer, (conversation.actions[-1], conversation.rows)


@pytest.mark.parametrize("name", ["fitness", "herbarium"])
async def test_examples_call_no_table_by_a_word_of_another_trade(ask: Talk, name: str) -> None:
    answer = await (await ask(name)).ask("最热的颜色是什么")
    assert not any(word in answer for word in ("发射场", "图书", "班级", "m 2", "```2```")), answer
