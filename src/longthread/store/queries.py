"""Named SQL. Each `.sql` file under `sql/` holds queries headed by `-- name: …`.

`sql/common` is what every backend understands; a backend's own folder overrides by name. `quick` behind the name
says that the query finds what it reads or writes by its key, and that it is little: it may run where others wait.
`bulky` says that it finds many bytes, beside texts and whole numbers: a server need not write them as text.
`IN (TEXTS :x)` and `IN (NUMBERS :x)` stand for membership in a parameter that is a JSON list.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable

_HEAD = re.compile(r"^-- name: (\w+)(?: (quick|bulky))?\s*$", re.MULTILINE)


class Sql(str):
    """A query itself, in the place of a name: composed by the store for work that goes over whatever tables there are.

    It names nothing but what the database's own catalog told, in quotes; values are its parameters, `:name`.
    """

    __slots__ = ()


class Queries(dict[str, str]):
    """Queries by name, and the names of those that are quick or bulky; a composed one stands for itself."""

    def __init__(self) -> None:
        self.quick: set[str] = set()
        self.bulky: set[str] = set()

    def __missing__(self, query: str) -> str:
        if not isinstance(query, Sql):
            raise KeyError(query)
        return str(query)


@cache
def queries(dialect: str) -> Queries:
    """All queries of a dialect, `sqlite` or `postgres`, by name."""
    found = Queries()
    for folder in ("common", dialect):
        for name, kind, sql in _read_folder(files("longthread.store") / "sql" / folder):
            found[name] = _TEXTS.sub(_LISTS[dialect][0], _NUMBERS.sub(_LISTS[dialect][1], sql))
            if kind:
                (found.quick if kind == "quick" else found.bulky).add(name)
    return found


_TEXTS = re.compile(r"IN \(TEXTS (:\w+)\)")
_NUMBERS = re.compile(r"IN \(NUMBERS (:\w+)\)")
_LISTS = {
    "sqlite": (r"IN (SELECT value FROM json_each(\1))",) * 2,
    "postgres": (
        r"IN (SELECT json_array_elements_text(CAST(\1 AS JSON)))",
        r"= ANY(CAST(translate(\1, '[]', '{}') AS BIGINT[]))",
    ),
}
"""How a dialect says that something is in a JSON list of texts, or of whole numbers, that is a parameter."""


@cache
def schema(dialect: str, part: str) -> str:
    """A part of the dialect's schema, as SQL: `tables`, `views`, or `upgrade_N`, which brings version N up."""
    own = _schema_file(dialect, part)
    if part != "tables":
        return own
    shared = _schema_file("common", part)
    return (shared if dialect == "sqlite" else _SQLITE_TYPE.sub(lambda found: _POSTGRES[found[0]], shared)) + own


_POSTGRES = {
    "TEXT": 'TEXT COLLATE "C"',
    "INTEGER": "BIGINT",
    "REAL": "DOUBLE PRECISION",
    "BLOB": "BYTEA",
    " WITHOUT ROWID": "",
}
"""What stands in PostgreSQL's tables for what is SQLite's. "C" orders text by its bytes, as SQLite does, whatever the
database's own collation is."""
_SQLITE_TYPE = re.compile(r"\b(?:TEXT|INTEGER|REAL|BLOB)\b| WITHOUT ROWID")


def _schema_file(folder: str, part: str) -> str:
    return (files("longthread.store") / "sql" / folder / "schema" / f"{part}.sql").read_text("utf-8")


def _read_folder(folder: Traversable) -> Iterator[tuple[str, str | None, str]]:
    for file in sorted(folder.iterdir(), key=lambda f: f.name) if folder.is_dir() else []:
        if file.name.endswith(".sql"):
            parts = _HEAD.split(file.read_text("utf-8"))
            for name, kind, sql in zip(parts[1::3], parts[2::3], parts[3::3], strict=True):
                yield name, kind, sql.strip()
