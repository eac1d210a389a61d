"""Small databases of different styles, generated from a seed: what the demo model is tried on."""

from __future__ import annotations

import random
import sqlite3
from datetime import date, timedelta
from pathlib import Path

from tests.demo.rows import FIRST, LAST, build_from, put, random_day


def build(name: str, folder: Path) -> Path:
    """Make one of the databases; the same every time."""
    return build_from(_SCHEMAS[name], _FILL[name], folder / f"{name}.sqlite")


_SHOP = """
CREATE TABLE customers (id INTEGER PRIMARY KEY, full_name TEXT, email TEXT, city TEXT, country TEXT, signup_date DATE);
CREATE TABLE categories (id INTEGER PRIMARY KEY, name TEXT);
CREATE TABLE products (id INTEGER PRIMARY KEY, product_name TEXT, category_id INTEGER REFERENCES categories(id),
  price REAL, stock_quantity INTEGER, is_active BOOLEAN);
CREATE TABLE orders (id INTEGER PRIMARY KEY, customer_id INTEGER REFERENCES customers(id), order_date DATE,
  status TEXT, total_amount REAL);
CREATE TABLE order_items (id INTEGER PRIMARY KEY, order_id INTEGER REFERENCES orders(id),
  product_id INTEGER REFERENCES products(id), quantity INTEGER, unit_price REAL);
CREATE TABLE reviews (id INTEGER PRIMARY KEY, product_id INTEGER REFERENCES products(id),
  customer_id INTEGER REFERENCES customers(id), rating INTEGER, comment TEXT, review_date DATE);
"""


def _shop(c: sqlite3.Connection, rng: random.Random) -> None:
    places = [
        ("Berlin", "Germany"),
        ("Munich", "Germany"),
        ("Paris", "France"),
        ("Lyon", "France"),
        ("Madrid", "Spain"),
        ("Tokyo", "Japan"),
        ("Austin", "USA"),
    ]
    people = [f"{first} {last}" for first in FIRST for last in LAST][::7][:40]
    customers = [
        (n, name, None if n % 9 == 0 else f"user{n}@mail.test", *places[rng.randrange(7)], random_day(rng, 2019, 2023))
        for n, name in enumerate(people, 1)
    ]
    put(c, "customers", customers)
    kinds = ["Electronics", "Books", "Clothing", "Toys", "Furniture"]
    put(c, "categories", list(enumerate(kinds, 1)))
    goods = [
        "Laptop",
        "Phone",
        "Tablet",
        "Camera",
        "Novel",
        "Atlas",
        "Cookbook",
        "Jacket",
        "Shirt",
        "Jeans",
        "Robot",
        "Puzzle",
        "Desk",
        "Chair",
        "Sofa",
        "Lamp",
    ]
    shelf = [1, 1, 1, 1, 2, 2, 2, 3, 3, 3, 4, 4, 5, 5, 5, 5]
    products = [
        (n, name, shelf[n - 1], round(rng.uniform(5, 900), 2), rng.randrange(0, 200), int(n % 5 != 0))
        for n, name in enumerate(goods, 1)
    ]
    put(c, "products", products)
    states = ["completed", "pending", "cancelled", "shipped"]
    orders, items = [], []
    for n in range(1, 161):
        lines = [(rng.randrange(1, 15), rng.randrange(1, 4)) for _ in range(rng.randrange(1, 4))]
        total = 0.0
        for product, quantity in lines:
            price = products[product - 1][3]
            items.append((len(items) + 1, n, product, quantity, price))
            total += quantity * float(str(price))
        orders.append((n, rng.randrange(1, 36), random_day(rng, 2020, 2023), states[rng.randrange(4)], round(total, 2)))
    put(c, "orders", orders)
    put(c, "order_items", items)
    put(
        c,
        "reviews",
        [
            (
                n,
                rng.randrange(1, 16),
                rng.randrange(1, 36),
                rng.randrange(1, 6),
                f"note {n}",
                random_day(rng, 2021, 2023),
            )
            for n in range(1, 71)
        ],
    )


_HOSPITAL = """
CREATE TABLE Department (DepartmentId INTEGER PRIMARY KEY, DepartmentName TEXT, Floor INTEGER);
CREATE TABLE Doctor (DoctorId INTEGER PRIMARY KEY, FirstName TEXT, LastName TEXT, Specialty TEXT, HireDate TEXT,
  Salary INTEGER, DepartmentId INTEGER);
CREATE TABLE Patient (PatientId INTEGER PRIMARY KEY, FirstName TEXT, LastName TEXT, Gender TEXT, BirthDate TEXT,
  BloodType TEXT, City TEXT, InsuranceProvider TEXT);
CREATE TABLE Appointment (AppointmentId INTEGER PRIMARY KEY, PatientId INTEGER, DoctorId INTEGER, AppointmentDate TEXT,
  Status TEXT, Fee REAL, Diagnosis TEXT);
"""


def _hospital(c: sqlite3.Connection, rng: random.Random) -> None:
    names = ["Cardiology", "Neurology", "Pediatrics", "Surgery", "Oncology"]
    put(c, "Department", [(n, name, n % 3 + 1) for n, name in enumerate(names, 1)])
    doctors = [
        (
            n,
            FIRST[n % 20],
            LAST[n * 3 % 16],
            ["Cardiologist", "Neurologist", "Pediatrician", "Surgeon", "Oncologist"][n % 5],
            random_day(rng, 2000, 2020),
            rng.randrange(60, 200) * 1000,
            n % 5 + 1,
        )
        for n in range(1, 19)
    ]
    put(c, "Doctor", doctors)
    cities = ["Boston", "Chicago", "Denver", "Seattle"]
    blood = ["A+", "B+", "O-", "O+", "AB+"]
    patients = [
        (
            n,
            FIRST[n * 7 % 20],
            LAST[n * 5 % 16],
            "MF"[rng.randrange(2)],
            random_day(rng, 1940, 2015),
            blood[rng.randrange(5)],
            cities[rng.randrange(4)],
            None if n % 6 == 0 else ["Acme", "Umbrella", "Globex"][n % 3],
        )
        for n in range(1, 61)
    ]
    put(c, "Patient", patients)
    ills = ["Flu", "Diabetes", "Hypertension", "Asthma", "Fracture"]
    states = ["Completed", "Scheduled", "Cancelled"]
    put(
        c,
        "Appointment",
        [
            (
                n,
                rng.randrange(1, 55),
                rng.randrange(1, 18),
                random_day(rng, 2021, 2024),
                states[rng.randrange(3)],
                rng.randrange(40, 400),
                ills[rng.randrange(5)],
            )
            for n in range(1, 201)
        ],
    )


_SCHOOL = """
CREATE TABLE 班级 (班级编号 INTEGER PRIMARY KEY, 班级名称 TEXT, 年级 INTEGER);
CREATE TABLE 学生 (学号 INTEGER PRIMARY KEY, 姓名 TEXT, 性别 TEXT, 出生日期 DATE, 城市 TEXT,
  班级编号 INTEGER REFERENCES 班级(班级编号));
CREATE TABLE 教师 (教师编号 INTEGER PRIMARY KEY, 姓名 TEXT, 职称 TEXT, 入职日期 DATE, 工资 INTEGER);
CREATE TABLE 课程 (课程编号 INTEGER PRIMARY KEY, 课程名称 TEXT, 学分 INTEGER,
  教师编号 INTEGER REFERENCES 教师(教师编号));
CREATE TABLE 成绩 (成绩编号 INTEGER PRIMARY KEY, 学号 INTEGER REFERENCES 学生(学号),
  课程编号 INTEGER REFERENCES 课程(课程编号), 分数 REAL, 考试日期 DATE);
"""


def _school(c: sqlite3.Connection, rng: random.Random) -> None:
    put(c, "班级", [(n, f"{'一二三'[(n - 1) // 2]}年级{n % 2 + 1}班", (n - 1) // 2 + 1) for n in range(1, 7)])
    last, first = "王李张刘陈杨赵黄周吴", "伟芳娜敏静丽强磊洋艳勇军"
    cities = ["北京", "上海", "广州", "成都"]
    students = [
        (
            1000 + n,
            last[n % 10] + first[n * 5 % 12] + (first[n * 7 % 12] if n % 3 else ""),
            "男女"[rng.randrange(2)],
            random_day(rng, 2005, 2010),
            cities[rng.randrange(4)],
            rng.randrange(1, 7),
        )
        for n in range(1, 61)
    ]
    put(c, "学生", students)
    ranks = ["教授", "副教授", "讲师"]
    put(
        c,
        "教师",
        [
            (n, last[-n] + first[n], ranks[n % 3], random_day(rng, 2000, 2020), rng.randrange(6, 20) * 1000)
            for n in range(1, 9)
        ],
    )
    subjects = ["数学", "语文", "英语", "物理", "化学", "历史"]
    put(c, "课程", [(n, name, rng.randrange(1, 6), rng.randrange(1, 9)) for n, name in enumerate(subjects, 1)])
    put(
        c,
        "成绩",
        [
            (
                n,
                1000 + rng.randrange(1, 58),
                rng.randrange(1, 7),
                float(rng.randrange(40, 101)),
                random_day(rng, 2021, 2023),
            )
            for n in range(1, 241)
        ],
    )


_LIBRARY = """
CREATE TABLE tbl_authors (author_id INTEGER, author_name TEXT, nationality TEXT, birth_year INTEGER);
CREATE TABLE tbl_books (book_id INTEGER, title TEXT, author_id INTEGER, genre TEXT, publication_year INTEGER,
  pages INTEGER,
  copies INTEGER);
CREATE TABLE tbl_members (member_id INTEGER, name TEXT, join_date TEXT, membership_type TEXT, phone TEXT);
CREATE TABLE tbl_loans (loan_id INTEGER, book_id INTEGER, member_id INTEGER, loan_date TEXT, due_date TEXT,
  return_date TEXT);
"""


def _library(c: sqlite3.Connection, rng: random.Random) -> None:
    nations = ["British", "American", "French", "Japanese"]
    put(
        c,
        "tbl_authors",
        [(n, f"{FIRST[n * 3 % 20]} {LAST[n % 16]}", nations[n % 4], rng.randrange(1900, 1985)) for n in range(1, 16)],
    )
    genres = ["Fantasy", "Mystery", "History", "Science Fiction", "Romance"]
    words = [
        "Silent",
        "River",
        "Golden",
        "Night",
        "Broken",
        "Tower",
        "Hidden",
        "Garden",
        "Iron",
        "Sea",
        "Winter",
        "Stone",
        "Lost",
        "Empire",
        "Paper",
        "Moon",
    ]
    books = [
        (
            n,
            f"{words[n % 16]} {words[n * 5 % 16]} {n}",
            rng.randrange(1, 15),
            genres[rng.randrange(5)],
            rng.randrange(1950, 2024),
            rng.randrange(90, 900),
            rng.randrange(1, 9),
        )
        for n in range(1, 71)
    ]
    put(c, "tbl_books", books)
    kinds = ["Gold", "Silver", "Basic"]
    put(
        c,
        "tbl_members",
        [
            (
                n,
                f"{FIRST[n % 20]} {LAST[n * 3 % 16]}",
                random_day(rng, 2015, 2022),
                kinds[rng.randrange(3)],
                None if n % 5 == 0 else f"555-{n:04d}",
            )
            for n in range(1, 36)
        ],
    )
    loans = []
    for n in range(1, 181):
        day = date.fromisoformat(random_day(rng, 2021, 2023))
        back = None if n % 7 == 0 else (day + timedelta(days=rng.randrange(2, 40))).isoformat()
        loans.append(
            (
                n,
                rng.randrange(1, 66),
                rng.randrange(1, 33),
                day.isoformat(),
                (day + timedelta(days=21)).isoformat(),
                back,
            )
        )
    put(c, "tbl_loans", loans)


_LEAGUE = """
CREATE TABLE teams (team_id INTEGER PRIMARY KEY, team_name TEXT, city TEXT, founded INTEGER, stadium TEXT);
CREATE TABLE players (player_id INTEGER PRIMARY KEY, name TEXT, position TEXT, birth_date DATE, height_cm INTEGER,
  team_id INTEGER REFERENCES teams(team_id), nationality TEXT, goals INTEGER);
CREATE TABLE matches (match_id INTEGER PRIMARY KEY, match_date DATE, home_team_id INTEGER REFERENCES teams(team_id),
  away_team_id INTEGER REFERENCES teams(team_id), home_score INTEGER, away_score INTEGER, attendance INTEGER);
"""


def _league(c: sqlite3.Connection, rng: random.Random) -> None:
    cities = ["London", "Leeds", "Bristol", "York", "Oxford", "Bath"]
    names = ["Lions", "Eagles", "Wolves", "Sharks", "Tigers", "Bears"]
    put(
        c,
        "teams",
        [
            (n, f"{city} {name}", city, rng.randrange(1880, 1980), f"{name} Park")
            for n, (city, name) in enumerate(zip(cities, names, strict=True), 1)
        ],
    )
    spots = ["Goalkeeper", "Defender", "Midfielder", "Forward"]
    nations = ["England", "Brazil", "Spain", "Ghana"]
    players = [
        (
            n,
            f"{FIRST[n % 20]} {LAST[n * 7 % 16]}",
            spots[rng.randrange(4)],
            random_day(rng, 1985, 2004),
            rng.randrange(165, 200),
            n % 6 + 1,
            nations[rng.randrange(4)],
            rng.randrange(0, 30),
        )
        for n in range(1, 67)
    ]
    put(c, "players", players)
    games = [(h, a) for h in range(1, 7) for a in range(1, 7) if h != a]
    put(
        c,
        "matches",
        [
            (n, random_day(rng, 2022, 2023), h, a, rng.randrange(5), rng.randrange(5), rng.randrange(2000, 40000))
            for n, (h, a) in enumerate(games * 2, 1)
        ],
    )


_FLIGHTS = """
CREATE TABLE airlines (airline_id INTEGER PRIMARY KEY, airline_name TEXT, country TEXT);
CREATE TABLE airports (airport_id INTEGER PRIMARY KEY, airport_name TEXT, city TEXT, country TEXT, iata_code TEXT);
CREATE TABLE flights (flight_id INTEGER PRIMARY KEY, flight_number TEXT, airline_id INTEGER,
  departure_airport_id INTEGER,
  arrival_airport_id INTEGER, departure_time DATETIME, arrival_time DATETIME, status TEXT, distance_km INTEGER,
  delay_minutes INTEGER, FOREIGN KEY (airline_id) REFERENCES airlines(airline_id),
  FOREIGN KEY (departure_airport_id) REFERENCES airports(airport_id),
  FOREIGN KEY (arrival_airport_id) REFERENCES airports(airport_id));
CREATE TABLE tickets (ticket_id INTEGER PRIMARY KEY, flight_id INTEGER REFERENCES flights(flight_id),
  passenger_name TEXT,
  seat_class TEXT, price NUMERIC);
"""


def _flights(c: sqlite3.Connection, rng: random.Random) -> None:
    lines = [("Skyways", "USA"), ("Nordair", "Norway"), ("Lotus Air", "China"), ("Sol Jet", "Spain")]
    put(c, "airlines", [(n, name, country) for n, (name, country) in enumerate(lines, 1)])
    ports = [
        ("Capital", "Beijing", "China", "PEK"),
        ("Pudong", "Shanghai", "China", "PVG"),
        ("Heathrow", "London", "UK", "LHR"),
        ("Kennedy", "New York", "USA", "JFK"),
        ("Barajas", "Madrid", "Spain", "MAD"),
    ]
    put(c, "airports", [(n, *port) for n, port in enumerate(ports, 1)])
    states = ["On Time", "Delayed", "Cancelled"]
    rows = []
    for n in range(1, 121):
        start, end = rng.sample(range(1, 6), 2)
        day = random_day(rng, 2022, 2024)
        rows.append(
            (
                n,
                f"FL{100 + n}",
                rng.randrange(1, 5),
                start,
                end,
                f"{day} 08:15:00",
                f"{day} 16:45:00",
                states[rng.randrange(3)],
                rng.randrange(500, 12000),
                rng.randrange(0, 180),
            )
        )
    put(c, "flights", rows)
    seats = ["Economy", "Business", "First"]
    put(
        c,
        "tickets",
        [
            (
                n,
                rng.randrange(1, 121),
                f"{FIRST[n % 20]} {LAST[n % 16]}",
                seats[rng.randrange(3)],
                rng.randrange(80, 3000),
            )
            for n in range(1, 301)
        ],
    )


_SCHEMAS = {
    "shop": _SHOP,
    "hospital": _HOSPITAL,
    "school": _SCHOOL,
    "library": _LIBRARY,
    "league": _LEAGUE,
    "flights": _FLIGHTS,
}
_FILL = {
    "shop": _shop,
    "hospital": _hospital,
    "school": _school,
    "library": _library,
    "league": _league,
    "flights": _flights,
}
NAMES = tuple(_SCHEMAS)
