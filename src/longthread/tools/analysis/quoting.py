"""Names and texts as SQL can hold them, whatever they contain."""

from __future__ import annotations


def quoted(name: str, dialect: str = "") -> str:
    """An identifier in the quotes of the dialect: MySQL has its own, all others take double ones."""
    mark = "`" if dialect == "mysql" else '"'
    return f"{mark}{name.replace(mark, mark * 2)}{mark}"


def literal(text: str, dialect: str = "") -> str:
    """A text as an SQL literal."""
    told = text.replace("\\", "\\\\") if dialect == "mysql" else text
    return "'" + told.replace("'", "''") + "'"
