"""A climbing hall (English) and a bakery (Chinese): date columns named `…_on`, yes/no texts, money and units sold."""

from __future__ import annotations

import random
import sqlite3
from datetime import date, timedelta
from pathlib import Path


def _day(rng: random.Random, first: int, last: int) -> str:
    start = date(first, 1, 1)
    return (start + timedelta(days=rng.randrange((date(last, 12, 31) - start).days))).isoformat()


CLIMBING = """
CREATE TABLE climbers (
  climber_id INTEGER PRIMARY KEY, full_name TEXT, town TEXT, enrolled_on TEXT);
CREATE TABLE guides (guide_id INTEGER PRIMARY KEY, full_name TEXT, hourly_rate REAL);
CREATE TABLE courses (
  course_id INTEGER PRIMARY KEY, course_name TEXT, guide_id INTEGER REFERENCES guides(guide_id),
  starts_at TEXT, duration_minutes INTEGER);
CREATE TABLE visits (
  visit_id INTEGER PRIMARY KEY, course_id INTEGER REFERENCES courses(course_id),
  climber_id INTEGER REFERENCES climbers(climber_id), visited_at TEXT, status TEXT, rating INTEGER);
CREATE TABLE repairs (
  repair_id INTEGER PRIMARY KEY, assignee TEXT, hours REAL, priority TEXT, due_on TEXT);
"""


def climbing(c: sqlite3.Connection, rng: random.Random) -> None:
    towns = ["Bergen", "Arles", "Krems"]
    c.executemany(
        "INSERT INTO climbers VALUES (?,?,?,?)",
        [(n, f"Climber {chr(64 + n % 26 + 1)}{n}", rng.choice(towns), _day(rng, 2020, 2023)) for n in range(1, 61)],
    )
    c.executemany("INSERT INTO guides VALUES (?,?,?)", [(n, f"Guide {n}", 30 + n * 1.5) for n in range(1, 7)])
    kinds = ["Bouldering", "Lead", "Ice"]
    c.executemany(
        "INSERT INTO courses VALUES (?,?,?,?,?)",
        [
            (n, rng.choice(kinds), n % 5 + 1, _day(rng, 2021, 2023) + " 10:00:00", rng.choice([45, 60, 90]))
            for n in range(1, 81)
        ],
    )
    states = ["attended", "attended", "attended", "cancelled", "no_show"]
    rows = []
    for n in range(1, 401):
        state = rng.choice(states)
        rating = rng.randint(1, 5) if state == "attended" else None
        seen = _day(rng, 2021, 2023) + " 00:00:00"
        rows.append((n, rng.randint(1, 80), rng.randint(1, 55), seen, state, rating))
    c.executemany("INSERT INTO visits VALUES (?,?,?,?,?,?)", rows)
    people = ["Ida", "Jon", "Kim"]
    c.executemany(
        "INSERT INTO repairs VALUES (?,?,?,?,?)",
        [
            (n, rng.choice(people), 0.5 + n % 7, rng.choice(["low", "medium", "high"]), _day(rng, 2022, 2023))
            for n in range(1, 101)
        ],
    )


BAKERY = """
CREATE TABLE 分店 (分店编号 INTEGER PRIMARY KEY, 名称 TEXT, 城市 TEXT, 开业日期 TEXT);
CREATE TABLE 店员 (店员编号 INTEGER PRIMARY KEY, 姓名 TEXT, 分店编号 INTEGER REFERENCES 分店(分店编号), 入职日期 TEXT);
CREATE TABLE 糕点 (糕点编号 INTEGER PRIMARY KEY, 名称 TEXT, 单价 REAL, 是否甜 TEXT);
CREATE TABLE 订单 (
  订单编号 INTEGER PRIMARY KEY, 分店编号 INTEGER REFERENCES 分店(分店编号),
  店员编号 INTEGER REFERENCES 店员(店员编号), 下单时间 TEXT, 金额 REAL);
"""


def bakery(c: sqlite3.Connection, rng: random.Random) -> None:
    towns = ["苏州", "杭州", "南京"]
    c.executemany(
        "INSERT INTO 分店 VALUES (?,?,?,?)",
        [(n, f"{n}号店", towns[n % 3], _day(rng, 2015, 2019)) for n in range(1, 12)],
    )
    c.executemany(
        "INSERT INTO 店员 VALUES (?,?,?,?)", [(n, f"店员{n}", n % 11 + 1, _day(rng, 2019, 2022)) for n in range(1, 21)]
    )
    c.executemany(
        "INSERT INTO 糕点 VALUES (?,?,?,?)",
        [(n, f"糕点{n}", round(8 + n * 1.3, 1), "是" if n % 3 else "否") for n in range(1, 41)],
    )
    c.executemany(
        "INSERT INTO 订单 VALUES (?,?,?,?,?)",
        [
            (n, rng.randint(1, 10), rng.randint(1, 19), _day(rng, 2021, 2023), round(12 + rng.random() * 90, 2))
            for n in range(1, 301)
        ],
    )


MARKET = """
CREATE TABLE sales (
  sale_id INTEGER PRIMARY KEY, region TEXT, product TEXT, quantity INTEGER, unit_price REAL, sale_date TEXT);
"""


def market(c: sqlite3.Connection, rng: random.Random) -> None:
    things, places = ["Lamp", "Chair", "Desk"], ["North", "South", "East"]
    c.executemany(
        "INSERT INTO sales VALUES (?,?,?,?,?,?)",
        [
            (n, rng.choice(places), rng.choice(things), rng.randint(1, 9), 5 + n % 40, _day(rng, 2021, 2023))
            for n in range(1, 201)
        ],
    )


SCHEMAS = {"climbing": CLIMBING, "bakery": BAKERY, "market": MARKET}
FILL = {"climbing": climbing, "bakery": bakery, "market": market}


def build(name: str, folder: Path) -> Path:
    """Make one of the databases; the same every time."""
    path = folder / f"{name}.sqlite"
    with sqlite3.connect(path) as connection:
        connection.executescript(SCHEMAS[name])
        FILL[name](connection, random.Random(23))
    connection.close()
    return path
