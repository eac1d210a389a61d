"""Two more small databases, of a harbour (English) and of charging stations (Chinese), generated from a seed."""

from __future__ import annotations

import random
import sqlite3
from pathlib import Path

from tests.demo.rows import put, random_day

HARBOUR = """
CREATE TABLE shipping_companies (
  company_id INTEGER PRIMARY KEY, name TEXT NOT NULL, country TEXT, founded_year INTEGER, website TEXT, rating REAL);
CREATE TABLE vessels (
  vessel_id INTEGER PRIMARY KEY, vessel_name TEXT NOT NULL,
  company_id INTEGER REFERENCES shipping_companies(company_id),
  vessel_type TEXT, built_year INTEGER, length_m REAL, gross_tonnage INTEGER, hull_class TEXT, in_service INTEGER);
CREATE TABLE berths (
  berth_id INTEGER PRIMARY KEY, berth_no TEXT, zone TEXT, depth_m REAL, daily_rate REAL);
CREATE TABLE port_calls (
  call_id INTEGER PRIMARY KEY, vessel_id INTEGER REFERENCES vessels(vessel_id),
  berth_id INTEGER REFERENCES berths(berth_id),
  arrival_date TEXT, stay_hours REAL, call_status TEXT, harbour_dues REAL);
CREATE TABLE cargo_items (
  cargo_id INTEGER PRIMARY KEY, call_id INTEGER REFERENCES port_calls(call_id), commodity TEXT, weight_kg REAL,
  declared_value REAL, unload_minutes INTEGER, customs_state TEXT);
CREATE TABLE safetyInspections (
  inspection_id INTEGER PRIMARY KEY, vessel_id INTEGER REFERENCES vessels(vessel_id), inspected_on TEXT, outcome TEXT,
  fine_amount REAL, inspector TEXT);
"""


def harbour(c: sqlite3.Connection, rng: random.Random) -> None:
    lands = ["Norway", "Greece", "Japan", "Denmark", "Panama"]
    put(
        c,
        "shipping_companies",
        [
            (n, f"{w} Lines", lands[n * 3 % 5], 1900 + n * 9, f"https://{w.lower()}.test", 3 + n * 0.17)
            for n, w in enumerate(["Aurora", "Borealis", "Cyclone", "Drake", "Ember", "Fathom", "Gannet", "Heron"], 1)
        ],
    )
    kinds = ["Tanker", "Bulk Carrier", "Container Ship", "Ferry"]
    stars = [
        "Vega",
        "Rigel",
        "Altair",
        "Deneb",
        "Sirius",
        "Mira",
        "Spica",
        "Castor",
        "Pollux",
        "Antares",
        "Bellatrix",
        "Capella",
        "Regulus",
        "Polaris",
        "Electra",
        "Maia",
        "Alcor",
        "Mizar",
        "Nashira",
        "Sabik",
    ]
    put(
        c,
        "vessels",
        [
            (
                n,
                f"MV {s}",
                rng.randint(1, 7),
                kinds[rng.randrange(4)],
                1985 + n * 7 % 37,
                90 + n * 11.5,
                4000 + n * 913,
                "ABC"[rng.randrange(3)],
                int(n % 5 != 0),
            )
            for n, s in enumerate(stars, 1)
        ],
    )
    put(
        c,
        "berths",
        [(n, f"P{n:02d}", ["North", "South", "East"][n % 3], 8 + n * 0.7, 300 + n * 45.5) for n in range(1, 11)],
    )
    states = ["Completed", "Completed", "Delayed", "Cancelled", "Scheduled"]
    put(
        c,
        "port_calls",
        [
            (
                n,
                rng.randint(1, 19),
                rng.randint(1, 9),
                random_day(rng, 2019, 2023),
                round(4 + n * 0.61, 2),
                rng.choice(states),
                round(500 + n * 17.3, 2),
            )
            for n in range(1, 151)
        ],
    )
    goods = ["Steel", "Grain", "Coffee", "Timber", "Electronics"]
    put(
        c,
        "cargo_items",
        [
            (
                n,
                rng.randint(1, 150),
                rng.choice(goods),
                100.5 + n * 13,
                1000 + n * 91 % 7001,
                5 + n * 3 % 197,
                rng.choice(["cleared", "held", "rejected"]),
            )
            for n in range(1, 301)
        ],
    )
    put(
        c,
        "safetyInspections",
        [
            (
                n,
                rng.randint(1, 18),
                random_day(rng, 2018, 2023),
                rng.choice(["Passed", "Passed", "Failed"]),
                rng.choice([0, 0, 1000 + n * 10.0]),
                rng.choice(["Olsen", "Tanaka", "Papadakis"]),
            )
            for n in range(1, 71)
        ],
    )


CHARGING = """
CREATE TABLE 站点 (
  站点编号 INTEGER PRIMARY KEY, 名称 TEXT NOT NULL, 城市 TEXT, 等级 TEXT, 启用日期 TEXT, 车位数 INTEGER);
CREATE TABLE 充电桩 (
  桩编号 INTEGER PRIMARY KEY, 站点编号 INTEGER REFERENCES 站点(站点编号), 型号 TEXT, 功率_kw INTEGER, 重量_kg REAL,
  出厂年份 INTEGER, 运行状态 TEXT);
CREATE TABLE 车主 (
  车主编号 INTEGER PRIMARY KEY, 姓名 TEXT NOT NULL, 性别 TEXT, 出生日期 TEXT, 注册日期 TEXT, 会员级别 TEXT, 余额 REAL);
CREATE TABLE 充电订单 (
  订单号 INTEGER PRIMARY KEY, 桩编号 INTEGER REFERENCES 充电桩(桩编号), 车主编号 INTEGER REFERENCES 车主(车主编号),
  开始日期 TEXT, 时长分钟 INTEGER, 电量 REAL, 金额 REAL, 订单状态 TEXT);
CREATE TABLE 维修记录 (
  记录编号 INTEGER PRIMARY KEY, 桩编号 INTEGER REFERENCES 充电桩(桩编号), 维修日期 TEXT, 费用 REAL,
  耗时 INTEGER, -- 耗时（分钟）
  原因 TEXT, 日志字节数 INTEGER);
"""


def charging(c: sqlite3.Connection, rng: random.Random) -> None:
    towns = ["北京", "上海", "成都", "西安"]
    put(
        c,
        "站点",
        [
            (n, f"{p}充电站", towns[n * 3 % 4], "ABC"[n % 3], random_day(rng, 2016, 2021), 10 + n * 3)
            for n, p in enumerate(["东湖", "西山", "南苑", "北辰", "江滨", "高新", "临港", "空港", "大学城"], 1)
        ],
    )
    put(
        c,
        "充电桩",
        [
            (
                n,
                rng.randint(1, 8),
                rng.choice(["快充型", "慢充型", "超充型"]),
                rng.choice([7, 60, 120, 180]),
                45.5 + n * 3.25,
                2014 + n % 9,
                rng.choice(["正常", "正常", "故障", "停用"]),
            )
            for n in range(1, 41)
        ],
    )
    family, given = "赵钱孙李周吴郑王冯陈", "伟芳娜敏静强磊洋"
    put(
        c,
        "车主",
        [
            (
                n,
                family[n % 10] + given[n % 8] + given[n * 3 % 8],
                "男女"[n % 2],
                random_day(rng, 1960, 2002),
                random_day(rng, 2018, 2022),
                rng.choice(["金卡", "银卡", "普通"]),
                round(n * 7.7, 1),
            )
            for n in range(1, 31)
        ],
    )
    put(
        c,
        "充电订单",
        [
            (
                n,
                rng.randint(1, 38),
                rng.randint(1, 28),
                random_day(rng, 2019, 2023),
                12 + n * 7 % 233,
                round(3 + n * 0.31, 2),
                round(5 + n * 0.83, 2),
                rng.choice(["已完成", "已完成", "已取消", "未支付"]),
            )
            for n in range(1, 201)
        ],
    )
    put(
        c,
        "维修记录",
        [
            (
                n,
                rng.randint(1, 36),
                random_day(rng, 2019, 2023),
                50 + n * 11.5,
                20 + n * 3,
                rng.choice(["接触不良", "屏幕损坏", "断电"]),
                1024 + n * 77,
            )
            for n in range(1, 61)
        ],
    )


SCHEMAS = {"harbour": HARBOUR, "charging": CHARGING}
FILL = {"harbour": harbour, "charging": charging}


def build(name: str, folder: Path) -> Path:
    """Make one of the databases; the same every time."""
    path = folder / f"{name}.sqlite"
    with sqlite3.connect(path) as connection:
        connection.executescript(SCHEMAS[name])
        FILL[name](connection, random.Random(11))
    connection.close()
    return path
