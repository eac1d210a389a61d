"""Names, values and date parts in the SQL of each dialect."""

from __future__ import annotations

from typing import Any

from longthread.tools.analysis import quoting
from longthread.tools.analysis.dialects.dialect import find_dialect
from longthread.tools.analysis.quoting import quote_identifier
from longthread_demo.schema import DemoTable


def quote_table(table: DemoTable, dialect: str) -> str:
    """A table's name, quoted. In PostgreSQL and DuckDB a dot parts schema and table, unless its description says how
    the name is written."""
    if table.sql_name or not find_dialect(dialect).has_schemas:
        return table.sql_name or quote_identifier(table.name, dialect)
    return ".".join(quote_identifier(part) for part in table.name.split("."))


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
