"""People, modifiers and verbs over databases of a few rows: who, crews, `fire stations`, 消防员, what nobody has."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import pytest

Talk = Callable[[str], Awaitable[Any]]

_FERRY = """
CREATE TABLE vessels (vessel_id INTEGER PRIMARY KEY, name TEXT, passenger_capacity INTEGER);
INSERT INTO vessels VALUES (1, 'Tern', 90), (2, 'Puffin', 60);
CREATE TABLE crew (crew_id INTEGER PRIMARY KEY, name TEXT, role TEXT, hire_date DATE, salary REAL);
INSERT INTO crew VALUES (1, 'Ann Ash', 'captain', '2020-01-02', 50), (2, 'Ben Birk', 'cook', '2022-03-04', 30),
  (3, 'Cy Cole', 'cook', '2021-05-06', 40);
CREATE TABLE vessel_crew (vessel_id INTEGER REFERENCES vessels(vessel_id), crew_id INTEGER REFERENCES crew(crew_id));
INSERT INTO vessel_crew VALUES (1, 1), (1, 2), (2, 1);
CREATE TABLE sailings (sailing_id INTEGER PRIMARY KEY, vessel_id INTEGER REFERENCES vessels(vessel_id),
  departure_date DATE, passengers INTEGER, status TEXT);
INSERT INTO sailings VALUES (1, 1, '2024-01-02', 10, 'completed'), (2, 1, '2024-02-03', 30, 'cancelled'),
  (3, 2, '2024-02-04', 50, 'completed');
"""
_FIRE = """
CREATE TABLE stations (id INTEGER PRIMARY KEY, name TEXT, opened_on DATE);
INSERT INTO stations VALUES (1, '滨江站', '2003-05-18'), (2, '高新站', '1998-03-12');
CREATE TABLE firefighters (id INTEGER PRIMARY KEY, name TEXT, gender TEXT, rank TEXT,
  station_id INTEGER REFERENCES stations(id), monthly_pay REAL);
INSERT INTO firefighters VALUES (1, '赵建国', '男', '站长', 1, 90), (2, '钱雪梅', '女', '消防员', 2, 60),
  (3, '孙文静', '女', '班长', 2, 70);
CREATE TABLE incidents (id INTEGER PRIMARY KEY, category TEXT, reported_on DATE, station_id INTEGER
  REFERENCES stations(id), status TEXT);
INSERT INTO incidents VALUES (1, '火灾', '2024-01-02', 1, '已结案'), (2, '误报', '2024-02-03', 1, '调查中'),
  (3, '火灾', '2024-02-01', 2, '调查中'), (4, '救援', '2024-03-01', 1, '已结案');
"""
_CLUBS = """
CREATE TABLE clubs (id INTEGER PRIMARY KEY, name TEXT, annual_fee REAL);
INSERT INTO clubs VALUES (1, 'Rook', 40), (2, 'Bishop', 60);
CREATE TABLE players (id INTEGER PRIMARY KEY, name TEXT, rating INTEGER, club_id INTEGER REFERENCES clubs(id),
  licence_status TEXT);
INSERT INTO players VALUES (1, 'Ada Ash', 2400, 1, 'active'), (2, 'Ben Birk', 2100, NULL, 'expired'),
  (3, 'Cy Cole', 1900, 1, 'active'), (4, 'Di Dorn', 2500, 1, 'active');
CREATE TABLE tournaments (id INTEGER PRIMARY KEY, title TEXT, start_date DATE);
INSERT INTO tournaments VALUES (1, 'Open', '2024-05-01');
CREATE TABLE entries (tournament_id INTEGER REFERENCES tournaments(id), player_id INTEGER REFERENCES players(id));
INSERT INTO entries VALUES (1, 1), (1, 2), (1, 3);
CREATE TABLE games (id INTEGER PRIMARY KEY, tournament_id INTEGER REFERENCES tournaments(id), played_on DATE);
INSERT INTO games VALUES (1, 1, '2024-05-01'), (2, 1, '2024-05-02');
"""
_COSTUMES = """
CREATE TABLE 设计师 (编号 INTEGER PRIMARY KEY, 姓名 TEXT);
INSERT INTO 设计师 VALUES (1, '唐婉'), (2, '白露');
CREATE TABLE 剧目 (编号 INTEGER PRIMARY KEY, 剧名 TEXT);
INSERT INTO 剧目 VALUES (1, '牡丹亭'), (2, '雷雨');
CREATE TABLE 戏服 (编号 INTEGER PRIMARY KEY, 名称 TEXT, 造价 REAL, 设计师编号 INTEGER REFERENCES 设计师(编号));
INSERT INTO 戏服 VALUES (1, '红袍', 10, 1), (2, '黑靠', 20, 1), (3, '青裙', 40, 2);
CREATE TABLE 剧目戏服 (剧目编号 INTEGER REFERENCES 剧目(编号), 戏服编号 INTEGER REFERENCES 戏服(编号));
INSERT INTO 剧目戏服 VALUES (1, 1), (1, 2), (2, 3);
CREATE TABLE 修补记录 (编号 INTEGER PRIMARY KEY, 戏服编号 INTEGER REFERENCES 戏服(编号), 费用 REAL);
INSERT INTO 修补记录 VALUES (1, 1, 5), (2, 1, 6), (3, 3, 7);
"""
SCHEMAS = {"ferry": _FERRY, "fire": _FIRE, "clubs": _CLUBS, "costumes": _COSTUMES}


@pytest.mark.parametrize(
    ("name", "question", "first"),
    [
        ("ferry", "Who was hired most recently?", ["Ben Birk"]),
        ("ferry", "crew members who are not assigned to any vessel", ["Cy Cole"]),
        ("ferry", "How many passengers did we carry in total?", [90]),
        ("ferry", "Which vessel carried the most passengers?", ["Puffin"]),
        ("ferry", "Total passengers carried by Tern", [40]),
        ("ferry", "passengers per month in 2024", ["2024-01", "2024-02"]),
        ("ferry", "船员的平均工资是多少", [40.0]),
        ("fire", "How many fire stations are there?", [2]),
        ("fire", "有多少个消防站？", [2]),
        ("fire", "高新站的消防员名单", ["钱雪梅", "孙文静"]),
        ("fire", "女消防员有几个", [2]),
        ("fire", "谁的月薪最高？", ["赵建国"]),
        ("fire", "还有多少起警情在调查中？", [2]),
        ("fire", "最近一次火灾是什么时候？", ["2024-02-01"]),
        ("fire", "最早成立的消防站是哪个", ["高新站"]),
        ("clubs", "俱乐部年费平均多少", [50.0]),
        ("clubs", "players rated above 2300", ["Ada Ash", "Di Dorn"]),
        ("clubs", "Which players have never entered a tournament?", ["Di Dorn"]),
        ("clubs", "What share of licences are expired?", [25.0]),
        ("clubs", "每个俱乐部有多少名棋手？", ["Rook"]),
        ("clubs", "which players don't belong to a club?", ["Ben Birk"]),
        ("clubs", "How many tournament games are there?", [2]),
        ("ferry", "Which crew never worked on the Tern?", ["Cy Cole"]),
        ("ferry", "2024年2月运送了多少乘客", [80]),
        ("fire", "误报占全部警情的百分之多少", [25.0]),
        ("costumes", "戏服的造价总额是多少", [70.0]),
        ("costumes", "牡丹亭用了哪些戏服？", ["红袍", "黑靠"]),
        ("costumes", "每位设计师设计了多少件戏服", ["唐婉", "白露"]),
        ("costumes", "唐婉设计的戏服总造价是多少", [30.0]),
    ],
)
async def test_a_question_about_people_and_what_they_do(ask: Talk, name: str, question: str, first: list[Any]) -> None:
    conversation = await ask(name)
    answer = await conversation.ask(question)
    assert conversation.rows is not None, answer
    assert len(conversation.rows) == len(first), answer
    assert all(value in row for value, row in zip(first, conversation.rows, strict=True)), answer


@pytest.mark.parametrize(
    ("name", "question"),
    [
        ("ferry", "Who works on the Tern?"),  # no vessel is who works on it
        ("clubs", "2024年有哪些比赛"),  # games, or tournaments
        ("fire", "How many closed stations are there?"),  # a modifier that would restrict them
        ("fire", "How many volunteer stations are there?"),
        ("clubs", "How many foreign players are there?"),
        ("clubs", "How many empty clubs are there?"),  # not: players without one
    ],
)
async def test_a_word_that_may_restrict_or_mean_two_things_is_refused(ask: Talk, name: str, question: str) -> None:
    conversation = await ask(name)
    answer = await conversation.ask(question)
    assert "cannot answer" in answer or "无法回答" in answer, (conversation.actions[-1], conversation.rows)
