"""Five more small databases: staff, pay, a gym, a Chinese library and films, generated from a seed."""

from __future__ import annotations

import random
import sqlite3
from pathlib import Path

from tests.demo.rows import FIRST, LAST, build_from, put, random_day


def build(name: str, folder: Path) -> Path:
    """Make one of the databases; the same every time."""
    return build_from(_SCHEMAS[name], _FILL[name], folder / f"{name}.sqlite")


_STAFF = """
CREATE TABLE t_dept ( -- 部门
  dept_id INTEGER PRIMARY KEY, -- 部门编号
  dept_name TEXT, -- 部门名称
  location TEXT -- 地点
);
CREATE TABLE t_emp ( -- 员工
  emp_id INTEGER PRIMARY KEY, -- 员工编号
  emp_name TEXT, -- 姓名
  gender TEXT, -- 性别
  hire_date DATE, -- 入职日期
  salary INTEGER, -- 工资
  bonus INTEGER, -- 奖金
  dept_id INTEGER, -- 部门编号
  manager_id INTEGER, -- 上级
  FOREIGN KEY (dept_id) REFERENCES t_dept(dept_id),
  FOREIGN KEY (manager_id) REFERENCES t_emp(emp_id)
);
CREATE TABLE t_leave ( -- 请假记录
  leave_id INTEGER PRIMARY KEY,
  emp_id INTEGER REFERENCES t_emp(emp_id), -- 员工编号
  leave_type TEXT, -- 请假类型
  start_date DATE, -- 开始日期
  days INTEGER -- 天数
);
"""


def _staff(c: sqlite3.Connection, rng: random.Random) -> None:
    put(
        c,
        "t_dept",
        [
            (1, "销售部", "北京"),
            (2, "研发部", "上海"),
            (3, "财务部", "北京"),
            (4, "人事部", "深圳"),
            (5, "客服部", "上海"),
        ],
    )
    last, first = "赵钱孙李周吴郑王冯陈", "明红刚丽军华平云"
    people = [
        (
            n,
            last[n % 10] + first[n * 3 % 8],
            "男女"[rng.randrange(2)],
            random_day(rng, 2012, 2023),
            rng.randrange(5, 40) * 1000,
            None if n % 4 == 0 else rng.randrange(1, 9) * 500,
            rng.randrange(1, 5),
            None if n <= 3 else rng.randrange(1, 4),
        )
        for n in range(1, 46)
    ]
    put(c, "t_emp", people)
    kinds = ["年假", "病假", "事假"]
    put(
        c,
        "t_leave",
        [
            (n, rng.randrange(1, 40), kinds[rng.randrange(3)], random_day(rng, 2022, 2023), rng.randrange(1, 11))
            for n in range(1, 91)
        ],
    )


_HR = """
CREATE TABLE locations (location_id INTEGER PRIMARY KEY, city TEXT, country_code TEXT);
CREATE TABLE departments (department_id INTEGER PRIMARY KEY, department_name TEXT,
  location_id INT REFERENCES locations);
CREATE TABLE jobs (job_id INTEGER PRIMARY KEY, job_title TEXT, min_salary INT, max_salary INT);
CREATE TABLE employees (employee_id INTEGER PRIMARY KEY, first_name TEXT, last_name TEXT, email TEXT, hire_date DATE,
  job_id INT REFERENCES jobs(job_id), salary NUMERIC, commission_pct REAL,
  manager_id INT REFERENCES employees(employee_id), department_id INT REFERENCES departments(department_id));
"""


def _hr(c: sqlite3.Connection, rng: random.Random) -> None:
    places = [("Seattle", "US"), ("London", "UK"), ("Toronto", "CA"), ("Munich", "DE")]
    put(c, "locations", [(n, *place) for n, place in enumerate(places, 1)])
    names = ["IT", "Sales", "Finance", "HR", "Marketing"]
    put(c, "departments", [(n, name, n % 4 + 1) for n, name in enumerate(names, 1)])
    titles = ["Programmer", "Manager", "Accountant", "Sales Rep"]
    put(c, "jobs", [(n, title, 3000 * n, 9000 * n) for n, title in enumerate(titles, 1)])
    rows: list[tuple[object, ...]] = []
    for n in range(1, 61):
        bonus = None if rng.random() < 0.6 else round(rng.random() * 0.4, 2)
        boss = None if n < 4 else rng.randint(1, 3)
        pay = rng.randint(30, 150) * 100 + n
        who = (n, FIRST[n % 20], LAST[n * 3 % 16], f"e{n}@mail.test")
        rows.append((*who, random_day(rng, 2008, 2023), rng.randint(1, 4), pay, bonus, boss, rng.randint(1, 4)))
    rows.append((61, "Zed", "Zorn", None, "2024-01-02", 1, 9999, None, 1, None))
    put(c, "employees", rows)


_GYM = """
CREATE TABLE gymMembers (memberId INTEGER PRIMARY KEY, fullName TEXT, membershipType TEXT, joinDate TEXT,
  age INT, status TEXT);
CREATE TABLE trainers (trainerId INTEGER PRIMARY KEY, trainerName TEXT, specialty TEXT, hourlyRate INT);
CREATE TABLE fitnessClasses (classId INTEGER PRIMARY KEY, className TEXT, trainerId INT, durationMinutes INT,
  capacity INT,
  weekDay TEXT);
CREATE TABLE bookings (bookingId INTEGER PRIMARY KEY, memberId INT, classId INT, bookingDate TEXT, attended BOOLEAN);
"""


def _gym(c: sqlite3.Connection, rng: random.Random) -> None:
    kinds, states = ["Premium", "Standard", "Student"], ["active", "frozen", "expired"]
    members = [
        (
            n,
            f"{FIRST[n % 20]} {LAST[n % 16]}",
            rng.choice(kinds),
            random_day(rng, 2018, 2023),
            18 + n,
            rng.choice(states),
        )
        for n in range(1, 49)
    ]
    put(c, "gymMembers", members)
    skills = ["Yoga", "Boxing", "Pilates"]
    put(c, "trainers", [(n, f"{FIRST[-n]} {LAST[-n]}", rng.choice(skills), 20 + 5 * n) for n in range(1, 8)])
    days = ["Monday", "Tuesday", "Friday"]
    classes = [
        (n, f"Class {n}", rng.randint(1, 6), 30 + 3 * n, rng.randint(8, 30), rng.choice(days)) for n in range(1, 21)
    ]
    put(c, "fitnessClasses", classes)
    rows = [
        (n, rng.randint(1, 38), rng.randint(1, 20), random_day(rng, 2022, 2023), rng.randint(0, 1))
        for n in range(1, 151)
    ]
    put(c, "bookings", rows)


_CNLIB = """
CREATE TABLE 图书分类 (分类编号 INTEGER PRIMARY KEY, 分类名称 TEXT);
CREATE TABLE 图书 (图书编号 INTEGER PRIMARY KEY, 书名 TEXT, 作者 TEXT, 分类编号 INTEGER, 出版社 TEXT,
  价格 REAL, 出版年份 INTEGER);
CREATE TABLE 读者 (读者编号 INTEGER PRIMARY KEY, 姓名 TEXT, 性别 TEXT, 读者类型 TEXT, 注册日期 TEXT);
CREATE TABLE 借阅记录 (记录编号 INTEGER PRIMARY KEY, 图书编号 INTEGER, 读者编号 INTEGER, 借阅日期 TEXT, 归还日期 TEXT);
"""


def _cnlib(c: sqlite3.Connection, rng: random.Random) -> None:
    put(c, "图书分类", list(enumerate(["小说", "科技", "历史", "儿童"], 1)))
    writers, presses = ["鲁迅", "老舍", "余华", "莫言"], ["人民出版社", "商务印书馆"]
    books = [
        (
            n,
            f"书名{n}",
            rng.choice(writers),
            rng.randint(1, 3),
            rng.choice(presses),
            20.0 + 2.5 * n,
            rng.randint(1990, 2023),
        )
        for n in range(1, 51)
    ]
    put(c, "图书", books)
    readers = [
        (
            n,
            "王李张刘"[n % 4] + "一二三四五六"[n % 6] + "明华"[n % 2],
            "男女"[rng.randint(0, 1)],
            ["学生", "教师", "职工"][n % 3],
            random_day(rng, 2018, 2023),
        )
        for n in range(1, 31)
    ]
    put(c, "读者", readers)
    rows: list[tuple[object, ...]] = []
    for n in range(1, 121):
        back = None if rng.random() < 0.2 else random_day(rng, 2022, 2023)
        rows.append((n, min(45, n * n % 47 + 1), rng.randint(1, 28), random_day(rng, 2021, 2023), back))
    put(c, "借阅记录", rows)


_MOVIES = """
CREATE TABLE directors (id INTEGER PRIMARY KEY, name TEXT, country TEXT);
CREATE TABLE movies (id INTEGER PRIMARY KEY, title TEXT, director_id INT REFERENCES directors(id),
  genre TEXT, release_year INT,
  runtime_minutes INT, rating REAL, box_office INT);
CREATE TABLE actors (id INTEGER PRIMARY KEY, name TEXT, gender TEXT, birth_year INT);
CREATE TABLE movie_actors (movie_id INT REFERENCES movies(id), actor_id INT REFERENCES actors(id), role TEXT);
"""


def _movies(c: sqlite3.Connection, rng: random.Random) -> None:
    lands, kinds = ["USA", "France", "Japan"], ["Drama", "Comedy", "Action", "Horror"]
    put(c, "directors", [(n, f"{FIRST[n]} {LAST[n % 16]}", rng.choice(lands)) for n in range(1, 13)])
    rows = [
        (
            n,
            f"Film {n}",
            rng.randint(1, 11),
            rng.choice(kinds),
            rng.randint(1980, 2023),
            80 + n * 2,
            round(3 + n * 0.107, 2),
            n * 7 % 61 * 1000000,
        )
        for n in range(1, 61)
    ]
    put(c, "movies", rows)
    actors = [
        (n, f"{FIRST[n % 20]} {LAST[n * 7 % 16]}", rng.choice("MF"), rng.randint(1940, 2000)) for n in range(1, 31)
    ]
    put(c, "actors", actors)
    parts = [(rng.randint(1, 60), rng.randint(1, 28), rng.choice(["lead", "support"])) for _ in range(180)]
    put(c, "movie_actors", sorted(set(parts)))


_SCHEMAS = {"staff": _STAFF, "hr": _HR, "gym": _GYM, "cnlib": _CNLIB, "movies": _MOVIES}
_FILL = {"staff": _staff, "hr": _hr, "gym": _gym, "cnlib": _cnlib, "movies": _movies}
NAMES = tuple(_SCHEMAS)
