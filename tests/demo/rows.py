"""What the small databases of these tests are filled with, and how."""

from __future__ import annotations

import random
import sqlite3
from collections.abc import Callable
from datetime import date, timedelta
from pathlib import Path

Fill = Callable[[sqlite3.Connection, random.Random], None]


def build_from(schema: str, fill: Fill, path: Path) -> Path:
    """Make a database; the same every time."""
    with sqlite3.connect(path) as connection:
        connection.executescript(schema)
        fill(connection, random.Random(7))
    connection.close()
    return path


def random_day(rng: random.Random, first: int, last: int) -> str:
    """A day from the first year to the last."""
    start = date(first, 1, 1)
    return (start + timedelta(days=rng.randrange((date(last, 12, 31) - start).days))).isoformat()


def put(connection: sqlite3.Connection, table: str, rows: list[tuple[object, ...]]) -> None:
    """Insert rows."""
    marks = ", ".join("?" for _ in rows[0])
    connection.executemany(f'INSERT INTO "{table}" VALUES ({marks})', rows)


FIRST = [
    "Anna",
    "Ben",
    "Carla",
    "David",
    "Elena",
    "Frank",
    "Grace",
    "Hugo",
    "Iris",
    "Jack",
    "Kate",
    "Liam",
    "Mona",
    "Noah",
    "Olga",
    "Paul",
    "Quinn",
    "Rosa",
    "Sam",
    "Tina",
]
LAST = [
    "Adams",
    "Brown",
    "Clark",
    "Dubois",
    "Evans",
    "Fischer",
    "Garcia",
    "Hansen",
    "Ivanov",
    "Jones",
    "Keller",
    "Lopez",
    "Meyer",
    "Novak",
    "Olsen",
    "Petrov",
]
