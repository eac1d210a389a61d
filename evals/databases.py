"""Six small databases for the questions of `unseen.jsonl` and `analyst_*.jsonl`, the same on every machine.

Their rows come from a seed. They differ in what trips a reader of schemas: plural snake_case tables, camelCase,
singular names, codes as keys with two references to one table, no declared foreign keys, and Chinese table and column
names.

    python evals/databases.py FOLDER      # writes shop.sqlite, hospital.sqlite, …
"""

from __future__ import annotations

import random
import sqlite3
import sys
from collections.abc import Callable, Iterable, Sequence
from datetime import date, datetime, time, timedelta
from pathlib import Path
from typing import Any

Rows = Iterable[Sequence[Any]]
Tables = dict[str, Rows]

FIRST = "Alice Ben Carla David Emma Felix Grace Hugo Irene Jack Karen Leo Maria Noah Olivia Peter Quinn Rosa Sam Tina"
LAST = "Anders Brooks Castro Dalton Evans Fischer Grant Hughes Ito Jensen Keller Lopez Meyer Novak Owens Patel Quist"
SURNAMES = "王 李 张 刘 陈 杨 赵 黄 周 吴 徐 孙 马 朱 胡 郭 何 林"
GIVEN = "伟 芳 娜 敏 静 丽 强 磊 军 洋 勇 艳 杰 娟 涛 明 超 秀英 志强 建华 晓东 海燕 文博 雨桐"


def names(rng: random.Random, count: int) -> list[str]:
    """`count` different English names."""
    return rng.sample([f"{first} {last}" for first in FIRST.split() for last in LAST.split()], count)


def chinese_names(rng: random.Random, count: int) -> list[str]:
    """`count` different Chinese names."""
    return rng.sample([surname + given for surname in SURNAMES.split() for given in GIVEN.split()], count)


def day(rng: random.Random, start: str, end: str) -> str:
    """A day between two ISO dates, both included."""
    first, last = date.fromisoformat(start), date.fromisoformat(end)
    return (first + timedelta(days=rng.randrange((last - first).days + 1))).isoformat()


SHOP = """
CREATE TABLE customers (id INTEGER PRIMARY KEY, name TEXT NOT NULL, email TEXT, city TEXT, country TEXT,
  created_at TEXT NOT NULL);
CREATE TABLE categories (id INTEGER PRIMARY KEY, name TEXT NOT NULL);
CREATE TABLE products (id INTEGER PRIMARY KEY, name TEXT NOT NULL, category_id INTEGER REFERENCES categories(id),
  price REAL NOT NULL, stock INTEGER NOT NULL);
CREATE TABLE orders (id INTEGER PRIMARY KEY, customer_id INTEGER NOT NULL REFERENCES customers(id),
  order_date TEXT NOT NULL, status TEXT NOT NULL, total_amount REAL NOT NULL);
CREATE TABLE order_items (id INTEGER PRIMARY KEY, order_id INTEGER NOT NULL REFERENCES orders(id),
  product_id INTEGER NOT NULL REFERENCES products(id), quantity INTEGER NOT NULL, unit_price REAL NOT NULL);
"""
WARES = {
    "Kitchen": "Chef Knife,Cutting Board,Frying Pan,Kettle,Toaster,Blender,Mixing Bowl,Teapot,Wok,Whisk",
    "Garden": "Garden Hose,Rake,Spade,Watering Can,Wheelbarrow,Pruning Shears,Plant Pot,Bird Feeder",
    "Books": "Travel Atlas,Cookbook,Notebook,Detective Novel,Poetry Collection,Bird Guide",
    "Toys": "Wooden Train,Puzzle,Teddy Bear,Kite,Board Game,Toy Robot,Yo-Yo",
    "Sports": "Yoga Mat,Tennis Racket,Football,Dumbbell,Jump Rope,Swim Goggles,Camping Tent",
    "Office": "Desk Lamp,Stapler,Fountain Pen,Paper Shredder,Office Chair,Whiteboard,Calculator",
}
CITIES = {
    "Germany": ["Berlin", "Hamburg", "Munich"],
    "France": ["Paris", "Lyon"],
    "Spain": ["Madrid", "Seville"],
    "Italy": ["Rome", "Milan"],
    "Japan": ["Tokyo", "Osaka"],
    "Canada": ["Toronto", "Montreal"],
}


def shop(rng: random.Random) -> Tables:
    """Customers, products and orders."""
    customers = []
    for number, name in enumerate(names(rng, 80), 1):
        country = rng.choice([*CITIES, "Germany", "Germany", "France"])
        email = f"{name.lower().replace(' ', '.')}@example.com"
        created = day(rng, "2021-01-01", "2024-12-31")
        customers.append((number, name, email, rng.choice(CITIES[country]), country, created))
    wares = [(ware, kind) for kind, group in enumerate(WARES.values(), 1) for ware in group.split(",")]
    products = [
        (number, ware, kind, round(rng.uniform(3, 240), 2), rng.randrange(0, 200))
        for number, (ware, kind) in enumerate(wares, 1)
    ]
    orders: list[Sequence[Any]] = []
    items: list[Sequence[Any]] = []
    for number in range(1, 201):
        status = rng.choice(["delivered", "delivered", "delivered", "shipped", "pending", "cancelled"])
        total = 0.0
        for product in rng.sample(products, rng.randint(1, 4)):
            quantity = rng.randint(1, 5)
            total += quantity * product[3]
            items.append((len(items) + 1, number, product[0], quantity, product[3]))
        orders.append((number, rng.randint(1, 80), day(rng, "2022-01-01", "2024-12-31"), status, round(total, 2)))
    return {
        "customers": customers,
        "categories": enumerate(WARES, 1),
        "products": products,
        "orders": orders,
        "order_items": items,
    }


HOSPITAL = """
CREATE TABLE department (departmentId INTEGER PRIMARY KEY, departmentName TEXT NOT NULL, floorNumber INTEGER);
CREATE TABLE doctor (doctorId INTEGER PRIMARY KEY, fullName TEXT NOT NULL, hireDate TEXT, yearlySalary INTEGER,
  departmentId INTEGER NOT NULL, FOREIGN KEY (departmentId) REFERENCES department (departmentId));
CREATE TABLE patient (patientId INTEGER PRIMARY KEY, fullName TEXT NOT NULL, birthDate TEXT, gender TEXT,
  bloodType TEXT, homeCity TEXT);
CREATE TABLE appointment (appointmentId INTEGER PRIMARY KEY, patientId INTEGER NOT NULL, doctorId INTEGER NOT NULL,
  appointmentDate TEXT NOT NULL, visitFee REAL NOT NULL, visitStatus TEXT NOT NULL,
  FOREIGN KEY (patientId) REFERENCES patient (patientId), FOREIGN KEY (doctorId) REFERENCES doctor (doctorId));
CREATE TABLE labTest (labTestId INTEGER PRIMARY KEY, patientId INTEGER NOT NULL, testName TEXT NOT NULL,
  testDate TEXT NOT NULL, testCost REAL NOT NULL, FOREIGN KEY (patientId) REFERENCES patient (patientId));
"""
DEPARTMENTS = ["Cardiology", "Neurology", "Pediatrics", "Oncology", "Orthopedics", "Dermatology", "Radiology"]


def hospital(rng: random.Random) -> Tables:
    """Doctors, patients, appointments and laboratory tests, in camelCase."""
    people = names(rng, 180)
    patients = [
        (
            number,
            name,
            day(rng, "1940-01-01", "2018-12-31"),
            rng.choice(["female", "male"]),
            rng.choice(["A", "A", "B", "O", "O", "AB"]),
            rng.choice(["Boston", "Cambridge", "Salem", "Quincy", "Newton"]),
        )
        for number, name in enumerate(people[30:], 1)
    ]
    doctors = [
        (number, name, day(rng, "2001-01-01", "2022-12-31"), rng.randrange(90, 260) * 1000, rng.randint(1, 7))
        for number, name in enumerate(people[:30], 1)
    ]
    visits = [
        (
            number,
            rng.randint(1, 150),
            rng.randint(1, 30),
            day(rng, "2023-01-01", "2024-12-31"),
            rng.randrange(40, 400, 5),
            rng.choice(["completed", "completed", "completed", "cancelled", "missed"]),
        )
        for number in range(1, 401)
    ]
    tests = ["Blood Count", "Cholesterol", "X-Ray", "Ultrasound", "Glucose", "Allergy Panel"]
    labs = [
        (
            number,
            rng.randint(1, 150),
            rng.choice(tests),
            day(rng, "2023-01-01", "2024-12-31"),
            rng.randrange(15, 300, 5),
        )
        for number in range(1, 251)
    ]
    floors = [(number, name, 1 + number // 2) for number, name in enumerate(DEPARTMENTS, 1)]
    return {"department": floors, "doctor": doctors, "patient": patients, "appointment": visits, "labTest": labs}


SCHOOL = """
CREATE TABLE students (id INTEGER PRIMARY KEY, name TEXT, gender TEXT, grade INTEGER, birth_date TEXT, city TEXT);
CREATE TABLE teachers (id INTEGER PRIMARY KEY, name TEXT, subject TEXT, hired_on TEXT, salary INTEGER);
CREATE TABLE courses (id INTEGER PRIMARY KEY, title TEXT, teacher_id INTEGER, credits INTEGER, room TEXT);
CREATE TABLE enrollments (id INTEGER PRIMARY KEY, student_id INTEGER, course_id INTEGER, year INTEGER, score REAL);
"""
COURSES = {
    "Mathematics": ["Algebra", "Geometry", "Calculus", "Statistics"],
    "Physics": ["Mechanics", "Optics"],
    "Chemistry": ["Organic Chemistry", "Lab Chemistry"],
    "History": ["World History", "Ancient Rome"],
    "English": ["Literature", "Creative Writing", "Drama Club"],
    "Art": ["Painting", "Sculpture"],
    "Music": ["Choir", "Orchestra"],
}


def school(rng: random.Random) -> Tables:
    """Students, teachers, courses and marks; no foreign key is declared."""
    people = names(rng, 140)
    students = [
        (
            number,
            name,
            rng.choice(["girl", "boy"]),
            rng.randint(7, 12),
            day(rng, "2006-01-01", "2012-12-31"),
            rng.choice(["Leeds", "York", "Hull", "Bradford"]),
        )
        for number, name in enumerate(people[20:], 1)
    ]
    subjects = [*COURSES, *COURSES, "Mathematics", "Mathematics", "English", "English", "Physics", "History"]
    teachers = [
        (number, name, subject, day(rng, "2005-01-01", "2023-12-31"), rng.randrange(32, 71) * 1000)
        for number, (name, subject) in enumerate(zip(people[:20], subjects, strict=True), 1)
    ]
    courses: list[Sequence[Any]] = []
    for subject, titles in COURSES.items():
        able = [teacher[0] for teacher in teachers if teacher[2] == subject]
        for title in titles:
            room = f"{rng.choice('ABC')}{rng.randint(101, 320)}"
            courses.append((len(courses) + 1, title, rng.choice(able), rng.choice([2, 3, 4, 5]), room))
    enrollments: list[tuple[int, int, int, int, float]] = []
    for student in range(1, 121):
        for course in rng.sample(range(1, len(courses) + 1), rng.randint(2, 5)):
            score = round(min(100.0, max(35.0, rng.gauss(74, 12))), 1)
            enrollments.append((len(enrollments) + 1, student, course, rng.choice([2022, 2023, 2024]), score))
    return {"students": students, "teachers": teachers, "courses": courses, "enrollments": enrollments}


LIBRARY = """
CREATE TABLE author (author_id INTEGER PRIMARY KEY, author_name TEXT NOT NULL, nationality TEXT, birth_year INTEGER);
CREATE TABLE book (book_id INTEGER PRIMARY KEY, title TEXT NOT NULL, author_id INTEGER REFERENCES author(author_id),
  genre TEXT, published_year INTEGER, pages INTEGER, copies INTEGER);
CREATE TABLE member (member_id INTEGER PRIMARY KEY, full_name TEXT NOT NULL, joined_on TEXT, membership TEXT);
CREATE TABLE loan (loan_id INTEGER PRIMARY KEY, book_id INTEGER NOT NULL REFERENCES book(book_id),
  member_id INTEGER NOT NULL REFERENCES member(member_id), loaned_on TEXT NOT NULL, returned_on TEXT, fine REAL);
"""
ADJECTIVES = "Silent Golden Broken Hidden Last Crimson Distant Frozen Burning Forgotten Velvet Hollow"
NOUNS = "River Garden Empire Letter Harbor Winter Machine Orchard Mirror Voyage Mountain Lantern"


def library(rng: random.Random) -> Tables:
    """Books, authors, members and loans, in the singular."""
    people = names(rng, 115)
    nations = ["British", "American", "French", "Japanese", "Irish", "Brazilian"]
    authors = [
        (number, name, rng.choice(nations), rng.randint(1880, 1990)) for number, name in enumerate(people[:25], 1)
    ]
    titles = rng.sample([f"The {adjective} {noun}" for adjective in ADJECTIVES.split() for noun in NOUNS.split()], 120)
    genres = ["Fiction", "Fiction", "Mystery", "Science", "Biography", "Poetry", "Fantasy"]
    books = [
        (
            number,
            title,
            rng.randint(1, 25),
            rng.choice(genres),
            rng.randint(1950, 2023),
            rng.randint(90, 900),
            rng.randint(1, 8),
        )
        for number, title in enumerate(titles, 1)
    ]
    members = [
        (number, name, day(rng, "2018-01-01", "2024-06-30"), rng.choice(["adult", "adult", "student", "senior"]))
        for number, name in enumerate(people[25:], 1)
    ]
    loans = []
    for number in range(1, 321):
        start = day(rng, "2022-01-01", "2024-12-31")
        kept = rng.randint(3, 45)
        back = (date.fromisoformat(start) + timedelta(days=kept)).isoformat() if rng.random() < 0.9 else None
        late = round(max(0, kept - 28) * 0.25, 2) if back else 0.0
        loans.append((number, rng.randint(1, 120), rng.randint(1, 90), start, back, late))
    return {"author": authors, "book": books, "member": members, "loan": loans}


FLIGHTS = """
CREATE TABLE airlines (airline_code TEXT PRIMARY KEY, airline_name TEXT NOT NULL, country TEXT);
CREATE TABLE airports (airport_code TEXT PRIMARY KEY, airport_name TEXT NOT NULL, city TEXT, country TEXT);
CREATE TABLE flights (flight_id INTEGER PRIMARY KEY, flight_number TEXT NOT NULL,
  airline_code TEXT NOT NULL REFERENCES airlines(airline_code),
  origin_code TEXT NOT NULL REFERENCES airports(airport_code),
  destination_code TEXT NOT NULL REFERENCES airports(airport_code),
  departure_time TEXT NOT NULL, duration_minutes INTEGER, distance_km INTEGER, ticket_price REAL,
  delay_minutes INTEGER, status TEXT);
"""
AIRLINES = [
    ("NB", "Nordic Blue", "Sweden"),
    ("SA", "Sol Air", "Spain"),
    ("KW", "Kiwi Wings", "New Zealand"),
    ("PX", "Pacific Express", "Japan"),
    ("AL", "Alpine Lines", "Switzerland"),
    ("MJ", "Maple Jet", "Canada"),
]
AIRPORTS = [
    ("ARN", "Arlanda Airport", "Stockholm", "Sweden"),
    ("MAD", "Barajas Airport", "Madrid", "Spain"),
    ("BCN", "El Prat Airport", "Barcelona", "Spain"),
    ("AKL", "Auckland Airport", "Auckland", "New Zealand"),
    ("HND", "Haneda Airport", "Tokyo", "Japan"),
    ("KIX", "Kansai Airport", "Osaka", "Japan"),
    ("ZRH", "Zurich Airport", "Zurich", "Switzerland"),
    ("YYZ", "Pearson Airport", "Toronto", "Canada"),
    ("YVR", "Vancouver Airport", "Vancouver", "Canada"),
    ("CDG", "Charles de Gaulle Airport", "Paris", "France"),
    ("LHR", "Heathrow Airport", "London", "United Kingdom"),
    ("PEK", "Capital Airport", "Beijing", "China"),
]


def flights(rng: random.Random) -> Tables:
    """A year of flights; codes are keys, and a flight refers to two airports."""
    rows = []
    for number in range(1, 401):
        start, end = rng.sample(AIRPORTS, 2)
        airline = rng.choice(AIRLINES)[0]
        distance = rng.randint(350, 11500)
        departure = datetime.combine(
            date.fromisoformat(day(rng, "2024-01-01", "2024-12-31")), time(rng.randint(5, 23), rng.randrange(0, 60, 5))
        )
        status = rng.choice(["on time", "on time", "on time", "delayed", "cancelled"])
        rows.append(
            (
                number,
                f"{airline}{100 + number}",
                airline,
                start[0],
                end[0],
                departure.isoformat(" "),
                35 + distance // 13,
                distance,
                round(40 + distance * rng.uniform(0.05, 0.14), 2),
                rng.randint(10, 240) if status == "delayed" else 0,
                status,
            )
        )
    return {"airlines": AIRLINES, "airports": AIRPORTS, "flights": rows}


HR = """
CREATE TABLE 部门 (部门编号 INTEGER PRIMARY KEY, 部门名称 TEXT NOT NULL, 所在城市 TEXT);
CREATE TABLE 员工 (工号 INTEGER PRIMARY KEY, 姓名 TEXT NOT NULL, 性别 TEXT, 学历 TEXT, 职位 TEXT, 入职日期 TEXT,
  月薪 INTEGER, 部门编号 INTEGER NOT NULL REFERENCES 部门(部门编号));
CREATE TABLE 请假 (请假编号 INTEGER PRIMARY KEY, 工号 INTEGER NOT NULL REFERENCES 员工(工号), 请假类型 TEXT,
  开始日期 TEXT, 天数 INTEGER);
CREATE TABLE 培训 (培训编号 INTEGER PRIMARY KEY, 工号 INTEGER NOT NULL REFERENCES 员工(工号), 课程名称 TEXT,
  培训日期 TEXT, 费用 INTEGER, 成绩 INTEGER);
"""
OFFICES = [
    ("研发部", "北京"),
    ("市场部", "上海"),
    ("销售部", "上海"),
    ("财务部", "北京"),
    ("人事部", "北京"),
    ("客服部", "成都"),
    ("生产部", "深圳"),
]


def hr(rng: random.Random) -> Tables:
    """Departments, staff, leave and training; tables and columns have Chinese names."""
    staff = [
        (
            1000 + number,
            name,
            rng.choice(["男", "女"]),
            rng.choice(["大专", "本科", "本科", "本科", "硕士", "硕士", "博士"]),
            rng.choice(["专员", "专员", "专员", "主管", "工程师", "工程师", "经理"]),
            day(rng, "2015-01-01", "2024-12-31"),
            rng.randrange(60, 420) * 100,
            rng.randint(1, 7),
        )
        for number, name in enumerate(chinese_names(rng, 150), 1)
    ]
    leave = [
        (
            number,
            rng.randint(1001, 1150),
            rng.choice(["年假", "年假", "病假", "事假", "婚假"]),
            day(rng, "2023-01-01", "2024-12-31"),
            rng.randint(1, 10),
        )
        for number in range(1, 261)
    ]
    courses = ["安全生产", "沟通技巧", "数据分析", "项目管理", "办公软件"]
    training = [
        (
            number,
            rng.randint(1001, 1150),
            rng.choice(courses),
            day(rng, "2023-01-01", "2024-12-31"),
            rng.randrange(200, 3000, 50),
            rng.randint(55, 100),
        )
        for number in range(1, 201)
    ]
    offices = [(number, *office) for number, office in enumerate(OFFICES, 1)]
    return {"部门": offices, "员工": staff, "请假": leave, "培训": training}


DATABASES: dict[str, tuple[str, Callable[[random.Random], Tables]]] = {
    "shop": (SHOP, shop),
    "hospital": (HOSPITAL, hospital),
    "school": (SCHOOL, school),
    "library": (LIBRARY, library),
    "flights": (FLIGHTS, flights),
    "hr": (HR, hr),
}


def build(folder: Path, name: str, seed: int = 7) -> Path:
    """Write the database `name` of `DATABASES` into `folder`, over one that is there, and return its path."""
    ddl, generate = DATABASES[name]
    path = folder / f"{name}.sqlite"
    path.unlink(missing_ok=True)
    connection = sqlite3.connect(path)
    try:
        with connection:
            connection.executescript(ddl)
            for table, rows in generate(random.Random(f"{name}:{seed}")).items():
                insert_rows(connection, table, rows)
    finally:
        connection.close()
    return path


def insert_rows(connection: sqlite3.Connection, table: str, rows: Iterable[Sequence[Any]]) -> None:
    """Insert rows of one length, at least one, into a table that has these columns."""
    lines = [tuple(row) for row in rows]
    marks = ", ".join("?" * len(lines[0]))
    connection.executemany(f'INSERT INTO "{table}" VALUES ({marks})', lines)


if __name__ == "__main__":
    target = Path(sys.argv[1] if len(sys.argv) > 1 else ".")
    target.mkdir(parents=True, exist_ok=True)
    for each in DATABASES:
        sys.stdout.write(f"{build(target, each)}\n")
