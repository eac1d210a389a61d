"""Names and texts as SQL can hold them, whatever they contain."""

from __future__ import annotations


def quoted(name: str) -> str:
    """An identifier in double quotes, as all three dialects take it."""
    return '"' + name.replace('"', '""') + '"'


def literal(text: str) -> str:
    """A text as an SQL literal."""
    return "'" + text.replace("'", "''") + "'"
