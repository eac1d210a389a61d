"""Quotes SQL identifiers and literals."""

from __future__ import annotations


def quoted(name: str, dialect: str = "") -> str:
    """A quoted identifier: with backticks in MySQL, else double quotes."""
    mark = "`" if dialect == "mysql" else '"'
    return f"{mark}{name.replace(mark, mark * 2)}{mark}"


def literal(text: str, dialect: str = "") -> str:
    """A text as an SQL literal."""
    escaped = text.replace("\\", "\\\\") if dialect == "mysql" else text
    return "'" + escaped.replace("'", "''") + "'"
