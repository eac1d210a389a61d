"""The schema as SQL, written once in PostgreSQL's types for both backends."""

from __future__ import annotations

import re
from functools import cache
from importlib.resources import files

_TEXT = re.compile(r"\b(?:TEXT(?:\[\])?|VARCHAR\(\d+\))")
_VECTOR = re.compile(r"\bVECTOR\b(?:\(\d+\))?")
_ROWLESS = " WITHOUT ROWID"
"""Marks SQLite tables that are stored in key order."""
_KINDS = r"BIGINT|BOOLEAN|BYTEA|DOUBLE PRECISION|FLOAT|INT|JSONB|TEXT\[\]|TIMESTAMPTZ|UUID|VARCHAR|VECTOR"
_COLUMN = re.compile(rf"^(    (\w+) +)({_KINDS})(?:\(\d+\))?(?![\w(])([^\n]*?)(,?)$", re.MULTILINE)
"""A column of one of these types: name, type, rest."""
_SQLITE = {
    "BIGINT": "INTEGER",
    "BOOLEAN": "INTEGER",
    "BYTEA": "BLOB",
    "DOUBLE PRECISION": "REAL",
    "FLOAT": "REAL",
    "INT": "INTEGER",
    "VECTOR": "BLOB",
}
"""SQLite types other than TEXT."""
_CHECKS = {
    "BOOLEAN": "{0} IN (FALSE, TRUE)",
    "JSONB": "json_valid({0})",
    "TEXT[]": "json_valid({0}) AND json_type({0}) = 'array'",
    "VARCHAR": "length({0}) <= 100",
}
"""SQLite checks that replace PostgreSQL's types."""
_DEFAULTS = {
    "gen_random_uuid()": """(
        lower(hex(randomblob(4)) || '-' || hex(randomblob(2)) || '-4' || substr(hex(randomblob(2)), 2) || '-'
            || substr('89AB', 1 + (random() & 3), 1) || substr(hex(randomblob(2)), 2) || '-' || hex(randomblob(6))))""",
    "now()": "(strftime('%Y-%m-%dT%H:%M:%f000+00:00', 'now'))",
}


@cache
def schema(dialect: str, part: str) -> str:
    """Return a part of a dialect's schema as SQL: `tables`, `views`, or `upgrade_N`, which upgrades version N.

    PostgreSQL's has two more, for the first vector: `pgvector` adds the extension, `vectors` what depends on it.
    """
    own = _read(dialect, part)
    if part != "tables":
        return own
    tables = _read("common", part)
    if dialect == "sqlite":
        return _COLUMN.sub(_column_of_sqlite, tables) + own
    # Independent of the database's collation. `vectors` makes vectors of bytes, where there is pgvector.
    ours = _VECTOR.sub("BYTEA", _TEXT.sub(r'\g<0> COLLATE "C"', tables).replace(_ROWLESS, ""))
    return _read(dialect, "extensions") + ours + own


def _column_of_sqlite(found: re.Match[str]) -> str:
    begin, name, kind, rest, end = found.groups()
    for default, ours in _DEFAULTS.items():
        rest = rest.replace(default, ours)
    if kind == "TEXT[]":
        rest = rest.replace("'{}'", "'[]'")
    check = _CHECKS.get(kind)
    if check and "CHECK" not in rest:
        rest += f" CHECK ({check.format(name)})"
    return f"{begin}{_SQLITE.get(kind, 'TEXT')}{rest}{end}"


def _read(folder: str, part: str) -> str:
    return (files("longthread.store") / "sql" / folder / "schema" / f"{part}.sql").read_text("utf-8")
