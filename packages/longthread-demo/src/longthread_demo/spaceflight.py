"""The demo source: a generated database of spaceflight with bilingual names, the same for the same seed.

Rocket families, sites and agencies are real; the launches, payloads and missions are invented to be plausible.
"""

from __future__ import annotations

import hashlib
import os
import random
import sqlite3
import tempfile
from contextlib import closing
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import platformdirs

from longthread_demo.spaceflight_facts import AGENCIES, MISSION_KINDS, ORBITS, PAYLOAD_KINDS, ROCKETS, SITES

SEED = 1957
_VERSION = 2
_FIRST_YEAR, _LAST_YEAR = 1990, 2025
_FREQUENCY = 0.73
"""Share of the real number of launches: the database has about 5,000 rows."""

SCHEMA = """
CREATE TABLE agencies ( -- 航天机构
    id INTEGER PRIMARY KEY, -- 编号
    name TEXT NOT NULL UNIQUE, -- 英文名
    name_zh TEXT NOT NULL, -- 中文名
    country TEXT NOT NULL, -- 国家
    country_zh TEXT NOT NULL, -- 国家中文名
    founded INTEGER NOT NULL, -- 成立年份
    kind TEXT NOT NULL -- 性质: Government 政府, Commercial 商业
);
CREATE TABLE sites ( -- 发射场
    id INTEGER PRIMARY KEY, -- 编号
    name TEXT NOT NULL UNIQUE, -- 英文名
    name_zh TEXT NOT NULL, -- 中文名
    country TEXT NOT NULL, -- 所在国家
    country_zh TEXT NOT NULL, -- 所在国家中文名
    latitude REAL NOT NULL, -- 纬度
    longitude REAL NOT NULL, -- 经度
    opened INTEGER NOT NULL -- 启用年份
);
CREATE TABLE rockets ( -- 运载火箭
    id INTEGER PRIMARY KEY, -- 编号
    name TEXT NOT NULL UNIQUE, -- 英文名
    name_zh TEXT NOT NULL, -- 中文名
    family TEXT NOT NULL, -- 系列
    family_zh TEXT NOT NULL, -- 系列中文名
    agency_id INTEGER NOT NULL REFERENCES agencies(id), -- 研制机构
    country TEXT NOT NULL, -- 国家
    country_zh TEXT NOT NULL, -- 国家中文名
    height_m REAL NOT NULL, -- 高度(米)
    mass_t REAL NOT NULL, -- 起飞质量(吨)
    leo_capacity_kg INTEGER NOT NULL, -- 近地轨道运力(千克)
    gto_capacity_kg INTEGER, -- 地球同步转移轨道运力(千克)
    stages INTEGER NOT NULL, -- 级数
    reusable INTEGER NOT NULL, -- 是否可重复使用: 1 是, 0 否
    first_flight INTEGER NOT NULL, -- 首飞年份
    status TEXT NOT NULL, -- 状态: Active 现役, Retired 退役
    price_million_usd REAL NOT NULL -- 单次发射价格(百万美元)
);
CREATE TABLE missions ( -- 任务
    id INTEGER PRIMARY KEY, -- 编号
    name TEXT NOT NULL UNIQUE, -- 英文名
    name_zh TEXT NOT NULL, -- 中文名
    kind TEXT NOT NULL, -- 任务类型
    kind_zh TEXT NOT NULL, -- 任务类型中文名
    agency_id INTEGER NOT NULL REFERENCES agencies(id), -- 负责机构
    crewed INTEGER NOT NULL, -- 是否载人: 1 是, 0 否
    start_date TEXT NOT NULL, -- 开始日期
    budget_million_usd REAL NOT NULL -- 预算(百万美元)
);
CREATE TABLE launches ( -- 发射
    id INTEGER PRIMARY KEY, -- 编号
    rocket_id INTEGER NOT NULL REFERENCES rockets(id), -- 运载火箭
    site_id INTEGER NOT NULL REFERENCES sites(id), -- 发射场
    mission_id INTEGER REFERENCES missions(id), -- 任务
    launch_date TEXT NOT NULL, -- 发射日期
    outcome TEXT NOT NULL, -- 结果: Success, Failure, Partial failure
    outcome_zh TEXT NOT NULL, -- 结果中文: 成功, 失败, 部分失败
    cost_million_usd REAL NOT NULL -- 费用(百万美元)
);
CREATE TABLE payloads ( -- 载荷
    id INTEGER PRIMARY KEY, -- 编号
    launch_id INTEGER NOT NULL REFERENCES launches(id), -- 所属发射
    name TEXT NOT NULL, -- 英文名
    name_zh TEXT NOT NULL, -- 中文名
    kind TEXT NOT NULL, -- 载荷类型
    kind_zh TEXT NOT NULL, -- 载荷类型中文名
    mass_kg REAL NOT NULL, -- 质量(千克)
    orbit TEXT NOT NULL, -- 轨道
    orbit_zh TEXT NOT NULL -- 轨道中文名
);
CREATE INDEX launches_by_date ON launches (launch_date);
CREATE INDEX payloads_by_launch ON payloads (launch_id);
"""


def demo_source() -> tuple[str, Path]:
    """Return the title of the demo database, and its file."""
    return "spaceflight", spaceflight_database()


def spaceflight_database(folder: Path | None = None, seed: int = SEED) -> Path:
    """The file of the demo database, created on first use in `folder`, by default the user's cache folder. Its name has
    a hash of its facts. It appears atomically, so several processes may create it."""
    folder = folder or Path(platformdirs.user_cache_dir("longthread", appauthor=False))
    facts = (_VERSION, seed, SCHEMA, _FREQUENCY, AGENCIES, SITES, ROCKETS, MISSION_KINDS, ORBITS, PAYLOAD_KINDS)
    version = hashlib.sha256(repr(facts).encode()).hexdigest()[:12]
    path = folder / f"spaceflight-{version}.sqlite"
    if path.exists():
        return path
    folder.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=folder, prefix=".spaceflight-", suffix=".tmp")
    os.close(handle)
    try:
        with closing(sqlite3.connect(name)) as connection:
            generate(connection, seed)
        Path(name).replace(path)
    finally:
        Path(name).unlink(missing_ok=True)
    return path


def generate(connection: sqlite3.Connection, seed: int = SEED) -> None:
    """Fills an empty database."""
    chance = random.Random(seed)
    connection.executescript("BEGIN;" + SCHEMA)
    _insert(connection, "agencies", [(number, *agency) for number, agency in enumerate(AGENCIES, 1)])
    _insert(connection, "sites", [(number, *site) for number, site in enumerate(SITES, 1)])
    _insert(connection, "rockets", _rockets())
    missions = _missions(chance)
    _insert(connection, "missions", missions)
    launches = _launches(chance, missions)
    _insert(connection, "launches", launches)
    _insert(connection, "payloads", _payloads(chance, launches))
    connection.commit()


def _insert(connection: sqlite3.Connection, table: str, rows: list[tuple[Any, ...]]) -> None:
    places = ", ".join("?" * len(rows[0]))
    connection.executemany(f"INSERT INTO {table} VALUES ({places})", rows)


def _rockets() -> list[tuple[Any, ...]]:
    agencies = {agency[0]: (number, agency[2], agency[3]) for number, agency in enumerate(AGENCIES, 1)}
    rows = []
    for number, rocket in enumerate(ROCKETS, 1):
        status = "Active" if rocket.last_flight >= _LAST_YEAR else "Retired"
        made_by, country, country_zh = agencies[rocket.agency]
        rows.append(
            (number, rocket.name, rocket.name_zh, rocket.family, rocket.family_zh, made_by, country, country_zh,
             rocket.height_m, rocket.mass_t, rocket.leo_kg, rocket.gto_kg, rocket.stages, int(rocket.reusable),
             rocket.first_flight, status, rocket.price)
        )  # fmt: skip
    return rows


def _missions(chance: random.Random) -> list[tuple[Any, ...]]:
    """Numbered series, such as Shenzhou 1 to 20, each with the agency that leads it."""
    agencies = {agency[0]: number for number, agency in enumerate(AGENCIES, 1)}
    rows: list[tuple[Any, ...]] = []
    for kind in MISSION_KINDS:
        for series in kind.series:
            span = max(1, series.last_year - series.first_year)
            for number in range(1, series.count + 1):
                year = series.first_year + (number - 1) * span // series.count
                start = date(year, 1, 1) + timedelta(days=chance.randrange(360))
                budget = round(kind.budget * chance.uniform(0.6, 1.7), 1)
                rows.append(
                    (len(rows) + 1, f"{series.name} {number}", f"{series.name_zh}{number}号", kind.name, kind.name_zh,
                     agencies[series.agency], int(kind.name == "Crewed flight"), start.isoformat(), budget)
                )  # fmt: skip
    return rows


def _launches(chance: random.Random, missions: list[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    sites = {site[0]: number for number, site in enumerate(SITES, 1)}
    agency_country = {number: agency[2] for number, agency in enumerate(AGENCIES, 1)}
    by_country: dict[str, list[tuple[Any, ...]]] = {}
    for mission in missions:
        by_country.setdefault(agency_country[mission[5]], []).append(mission)
    countries = {agency[0]: agency[2] for agency in AGENCIES}
    flights: list[tuple[date, int, int, int | None, str, float]] = []
    for number, rocket in enumerate(ROCKETS, 1):
        for year in range(max(_FIRST_YEAR, rocket.first_flight), min(_LAST_YEAR, rocket.last_flight) + 1):
            for _ in range(_flights_in(chance, rocket.flights_a_year, year - rocket.first_flight)):
                day = date(year, 1, 1) + timedelta(days=chance.randrange(365))
                served = _mission_at(chance, by_country.get(countries[rocket.agency], []), day)
                cost = round(rocket.price * chance.uniform(0.9, 1.2), 1)
                site = sites[chance.choice(rocket.sites)]
                flights.append((day, number, site, served, _outcome(chance, rocket.success), cost))
    flights.sort(key=lambda flight: flight[:3])
    zh = {"Success": "成功", "Failure": "失败", "Partial failure": "部分失败"}
    return [
        (number, rocket_id, site, mission_id, day.isoformat(), outcome, zh[outcome], cost)
        for number, (day, rocket_id, site, mission_id, outcome, cost) in enumerate(flights, 1)
    ]


def _flights_in(chance: random.Random, usual: float, age: int) -> int:
    """How often a rocket flies in a year: less in its first years."""
    expected = _FREQUENCY * usual * min(1.0, 0.35 + 0.2 * age)
    whole = int(expected)
    return max(0, whole + (chance.random() < expected - whole) + chance.choice((-1, 0, 0, 1) if whole > 1 else (0,)))


def _mission_at(chance: random.Random, missions: list[tuple[Any, ...]], day: date) -> int | None:
    """A mission of the rocket's country that began within the year before; one launch in five serves none."""
    year_before = (day - timedelta(days=365)).isoformat()
    open_now = [mission for mission in missions if year_before <= mission[7] <= day.isoformat()]
    return int(chance.choice(open_now)[0]) if open_now and chance.random() > 0.2 else None


def _outcome(chance: random.Random, success: float) -> str:
    drawn = chance.random()
    if drawn < success:
        return "Success"
    return "Failure" if drawn < success + (1 - success) * 0.7 else "Partial failure"


def _payloads(chance: random.Random, launches: list[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    rows: list[tuple[Any, ...]] = []
    serials: dict[str, int] = {}
    for launch in launches:
        rocket = ROCKETS[launch[1] - 1]
        count = chance.choices((1, 2, 3, 4), weights=(72, 19, 6, 3))[0]
        orbit, orbit_zh, share = chance.choices(ORBITS, weights=[orbit[3] for orbit in ORBITS])[0][:3]
        room = (
            (rocket.gto_kg or rocket.leo_kg * 0.3)
            if orbit in ("GTO", "GEO", "TLI", "Heliocentric")
            else rocket.leo_kg * share
        )
        for _ in range(count):
            kind = chance.choice([kind for kind in PAYLOAD_KINDS if orbit in kind.orbits])
            name, name_zh = chance.choice(kind.names)
            serials[name] = serials.get(name, 0) + 1
            mass = round(room / count * chance.uniform(0.35, 0.95), 1)
            rows.append(
                (len(rows) + 1, launch[0], f"{name}-{serials[name]}", f"{name_zh}{serials[name]}号",
                 kind.name, kind.name_zh, mass, orbit, orbit_zh)
            )  # fmt: skip
    return rows
