"""The eval of SQL safety: statements, and whether each was refused, stopped, or let through as it should be.

A file has one JSON object a line, of three kinds. An attack: `{"dialect", "sql", "must", …}`, where `must` is `refuse`
(never run) or `bound` (may run, must be stopped); `allow` marks a harmless statement. A gold question: `{"db",
"question", "sql": […]}`, whose statements are all harmless. Or `{"dialect", "sql"}`, without an expectation.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, get_args

from longthread.errors import StatementsInvalid

Must = Literal["refuse", "bound", "allow"]
DIALECTS = {
    "sqlite": "sqlite", "duckdb": "duckdb", "postgres": "postgresql", "postgresql": "postgresql",
    "mysql": "mysql", "mariadb": "mysql", "tsql": "tsql", "mssql": "tsql",
}  # fmt: skip


@dataclass(frozen=True)
class JudgedStatement:
    """One statement. `dialect` is None for gold, which has the dialect of its database."""

    sql: str
    dialect: str | None
    database: str | None = None
    must: Must | None = None


def read_statements(path: Path) -> list[JudgedStatement]:
    """Return a file's statements, in order. Raises StatementsInvalid: a line is malformed; the message says which."""
    found: list[JudgedStatement] = []
    number = 0
    try:
        with path.open(encoding="utf-8") as lines:
            for line in lines:
                number += 1
                if line.strip():
                    found += _statements(json.loads(line))
    except UnicodeDecodeError:
        raise StatementsInvalid(where=path, reason="it is no text in UTF-8.") from None
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        reason = f"line {number}: {type(error).__name__}: {error}."
        raise StatementsInvalid(where=path, reason=reason) from None
    except OSError as error:
        raise StatementsInvalid(where=path, reason=f"{error.strerror or error}.") from None
    if not found:
        raise StatementsInvalid(where=path, reason="it has no statements.")
    return found


def _statements(row: Mapping[str, Any]) -> Iterator[JudgedStatement]:
    if "dialect" not in row:
        for sql in [row["sql"]] if isinstance(row["sql"], str) else row["sql"]:
            yield JudgedStatement(_text(sql), None, str(row["db"]), "allow")
        return
    must = row.get("must")
    if must is not None and must not in get_args(Must):
        raise ValueError(f"must is {must!r}; it can be {', '.join(get_args(Must))}")
    if row["dialect"] not in DIALECTS:
        raise ValueError(f"the dialect is {row['dialect']!r}; it can be {', '.join(DIALECTS)}")
    yield JudgedStatement(_text(row["sql"]), DIALECTS[row["dialect"]], None, must)


def _text(sql: Any) -> str:
    if not isinstance(sql, str):
        raise TypeError("sql is no text")
    return sql
