"""Names, values and date parts in the SQL of each dialect."""

from __future__ import annotations

import re
from typing import Any

from longthread.tools.analysis import quoting
from longthread.tools.analysis.quoting import quoted

_RESERVED = frozenset(
    [
        "all",
        "and",
        "any",
        "as",
        "asc",
        "between",
        "by",
        "case",
        "cast",
        "check",
        "column",
        "constraint",
        "create",
        "cross",
        "current_date",
        "default",
        "delete",
        "desc",
        "distinct",
        "drop",
        "else",
        "end",
        "except",
        "exists",
        "false",
        "for",
        "foreign",
        "from",
        "full",
        "group",
        "having",
        "in",
        "index",
        "inner",
        "insert",
        "intersect",
        "into",
        "is",
        "join",
        "key",
        "left",
        "like",
        "limit",
        "match",
        "natural",
        "not",
        "null",
        "offset",
        "on",
        "or",
        "order",
        "outer",
        "primary",
        "references",
        "right",
        "select",
        "set",
        "some",
        "table",
        "then",
        "to",
        "transaction",
        "true",
        "union",
        "unique",
        "update",
        "user",
        "using",
        "values",
        "view",
        "when",
        "where",
        "with",
        "window",
        "session_user",
        "analyze",
        "do",
        "end",
        "grant",
        "only",
        "pivot",
        "qualify",
        "sample",
        "show",
        "summarize",
        "symmetric",
        "both",
        "cycle",
        "leading",
        "trailing",
    ]
)


def quote(name: str, dialect: str, *, whole: bool = False) -> str:
    """An identifier, quoted where the dialect needs it. A dot in a PostgreSQL or DuckDB name parts schema and table,
    unless it is `whole`."""
    if dialect == "mysql":  # MySQL and MariaDB have hundreds of reserved words, and not the same
        return quoted(name, dialect)
    if "." in name and dialect != "sqlite" and not whole:
        return ".".join(quote(part, dialect) for part in name.split("."))
    simple = re.fullmatch(r"[a-z_][a-z0-9_]*" if dialect == "postgresql" else r"[A-Za-z_][A-Za-z0-9_]*", name)
    if simple and name.lower() not in _RESERVED:
        return name
    return quoted(name)


def literal(value: Any, dialect: str = "") -> str:
    """A value as SQL."""
    if isinstance(value, bool):
        return "TRUE" if value else "FALSE"
    if isinstance(value, int):
        return str(value)
    if isinstance(value, float):
        return str(int(value)) if value.is_integer() else repr(value)
    return quoting.literal(str(value), dialect)


def date_part(text: str, grain: str, dialect: str, *, is_text: bool = False) -> str:
    """A date expression cut to its year (a number), or to text such as `2013-05`, `2013-Q2`, `2013-05-01`."""
    if dialect == "sqlite":
        cut = {"month": f"strftime('%Y-%m', {text})", "day": f"date({text})"}.get(grain)
        if grain == "quarter":
            return f"strftime('%Y', {text}) || '-Q' || ((CAST(strftime('%m', {text}) AS INTEGER) + 2) / 3)"
        return cut or f"CAST(strftime('%Y', {text}) AS INTEGER)"
    if dialect == "mysql":
        if grain == "quarter":
            return f"CONCAT(YEAR({text}), '-Q', QUARTER({text}))"
        cut = {"month": f"DATE_FORMAT({text}, '%Y-%m')", "day": f"DATE_FORMAT({text}, '%Y-%m-%d')"}.get(grain)
        return cut or f"YEAR({text})"
    moment = f"CAST({text} AS TIMESTAMP)" if is_text else text
    if grain == "year":
        return f"CAST(EXTRACT(YEAR FROM {moment}) AS INTEGER)"
    if dialect == "duckdb":
        if grain == "quarter":
            return f"strftime({moment}, '%Y') || '-Q' || quarter({moment})"
        return f"strftime({moment}, '{'%Y-%m' if grain == 'month' else '%Y-%m-%d'}')"
    shape = {"month": "YYYY-MM", "quarter": 'YYYY-"Q"Q', "day": "YYYY-MM-DD"}[grain]
    return f"to_char({moment}, '{shape}')"
