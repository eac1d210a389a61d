"""What the source documents print, and what a database makes of it.

The documents lie beside the repository, in `shared/seeds`, or nowhere. `stand_ins` says the same in other words, so
that there is something to test without them.
"""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg

SEEDS = Path(__file__).parents[3] / "shared" / "seeds"
SOURCES = ["stand_ins", "documents"] if SEEDS.is_dir() else ["stand_ins"]
_BLOCK = re.compile(r"^```(\w+)\n(.*?)^```", re.DOTALL | re.MULTILINE)


def text_of(source: str, document: str) -> str:
    """A document's text."""
    if source == "stand_ins":
        return (Path(__file__).parent / "stand_ins" / f"{document}.md").read_text("utf-8")
    [path] = SEEDS.glob(f"{document}_*.txt")
    return path.read_text("utf-8")


def blocks(source: str, document: str, language: str) -> list[str]:
    """The code blocks of a document, in its order."""
    return [code for name, code in _BLOCK.findall(text_of(source, document)) if name == language]


def definitions(source: str, document: str) -> list[str]:
    """The SQL that makes tables and indexes."""
    return [sql for sql in blocks(source, document, "sql") if "CREATE " in sql]


def questions(source: str, document: str) -> list[str]:
    """The SQL that asks."""
    return [sql for sql in blocks(source, document, "sql") if "CREATE " not in sql]


@dataclass(frozen=True)
class Column:
    """A column as a database tells it."""

    type: str
    required: bool

    @property
    def family(self) -> str:
        """What kind of values it holds, whatever each database calls them."""
        word = re.sub(r"\(\d+\)", "", self.type).lower()
        return _FAMILIES.get(word, word)


_FAMILIES = {
    "character varying": "text",
    "jsonb": "json",
    "text[]": "list",
    "bigint": "integer",
    "double precision": "real",
    "timestamp": "time",
    "timestamp with time zone": "time",
}
Shape = dict[str, dict[str, Column]]
Index = tuple[str, str, str]
"""Its table, its columns, its condition."""


def described(source: str) -> Shape:
    """The tables that document 000 describes: it has no SQL for them."""
    parts = re.split(r"^### \d+\. `(\w+)`", text_of(source, "000").split("## `state_data`")[0], flags=re.MULTILINE)
    row = re.compile(r"^\| `(\w+)` \| (\w+)([^|]*)", re.MULTILINE)
    return {
        name: {column: Column(kind, bool(rest.strip())) for column, kind, rest in row.findall(part)}
        for name, part in zip(parts[1::2], parts[2::2], strict=True)
    }


def shape_in_postgres(connection: psycopg.Connection[Any]) -> Shape:
    """The tables and views of the schema `public`."""
    shape: Shape = {}
    for table, column, kind, required in connection.execute(
        "SELECT c.relname, a.attname, format_type(a.atttypid, a.atttypmod), a.attnotnull FROM pg_class c "
        "JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped "
        "WHERE c.relnamespace = 'public'::regnamespace AND c.relkind IN ('r', 'v') ORDER BY c.relname, a.attnum"
    ):
        shape.setdefault(table, {})[column] = Column(kind, required)
    return shape


def shape_in_sqlite(connection: sqlite3.Connection) -> Shape:
    """The tables and views of the file."""
    shape: Shape = {}
    for table, column, kind, required, key in connection.execute(
        """SELECT t.name, c.name, c.type, c."notnull", c.pk FROM sqlite_master t JOIN pragma_table_xinfo(t.name) c
        WHERE t.type IN ('table', 'view') AND t.name NOT LIKE 'sqlite%' ORDER BY t.name, c.cid"""
    ):
        shape.setdefault(table, {})[column] = Column(kind, bool(required or key))
    return shape


_INDEX = re.compile(r"INDEX (?:IF NOT EXISTS )?(\w+) ON (?:\w+\.)?(\w+) ?(?:USING \w+ )?\((.*?)\)(?: WHERE (.*))?$")


def indexes_in(connection: psycopg.Connection[Any] | sqlite3.Connection) -> dict[str, Index]:
    """The indexes by name, but for those of keys."""
    if isinstance(connection, psycopg.Connection):
        rows = connection.execute("SELECT indexdef FROM pg_indexes WHERE schemaname = 'public'").fetchall()
    else:
        rows = connection.execute("SELECT sql FROM sqlite_master WHERE type = 'index' AND sql IS NOT NULL").fetchall()
    return _indexes(sql for (sql,) in rows)


def _indexes(statements: Iterable[str]) -> dict[str, Index]:
    found: dict[str, Index] = {}
    for statement in statements:
        match = _INDEX.search(re.sub(r" WITH \(.*?\)", "", " ".join(statement.split())))
        assert match, statement
        name, table, columns, condition = match.groups()
        found[name] = (
            table,
            columns.replace(" vector_cosine_ops", ""),
            re.sub(r"[()]|::\w+", "", condition or "").lower(),
        )
    return found


@dataclass(frozen=True)
class Documented:
    """The databases that documents 002 and 004, and document 003, make where there is nothing yet."""

    server: psycopg.Connection[Any]
    file: sqlite3.Connection

    @property
    def shape(self) -> Shape:
        return shape_in_postgres(self.server) | shape_in_sqlite(self.file)

    @property
    def indexes(self) -> dict[str, Index]:
        return indexes_in(self.server) | indexes_in(self.file)


@contextmanager
def documented(source: str, postgres_url: str) -> Iterator[Documented]:
    """Run the definitions as they are printed, in an empty database and an empty file."""
    with psycopg.connect(postgres_url, autocommit=True) as server, closing(sqlite3.connect(":memory:")) as file:
        for sql in [*definitions(source, "002"), *definitions(source, "004")]:
            server.execute(sql.encode())
        for sql in definitions(source, "003"):
            file.executescript(sql)
        yield Documented(server, file)
