"""Quotes, comments and parameters in MySQL statements."""

from __future__ import annotations

import re
from collections.abc import Sequence

_LEXEMES = re.compile(
    r"""
    (?P<quoted>'(?:[^'\\]|\\.|'')*' | "(?:[^"\\]|\\.|"")*" | `(?:[^`]|``)*`)
  | (?P<comment>/\*(?!M?!|\+)(?:(?!/\*).)*?\*/ | (?:--(?=[ \t\n]|\r\n|\Z)|\#)[^\r\n]*(?=\r?\n|\Z))
  | (?P<odd>/\*|--|\#)
  | (?P<place>:p\d+\b)
    """,
    re.VERBOSE | re.DOTALL,
)


def has_odd_comment(sql: str) -> bool:
    """Whether a text has a comment that a server executes (`/*! … */`), obeys (`/*+ … */`), or reads otherwise than
    sqlglot: nested ones, or two dashes without a space."""
    return any(found["odd"] for found in _LEXEMES.finditer(sql))


def with_values(sql: str, values: Sequence[str]) -> str:
    """Puts literals in the places `:p1`, `:p2`, …"""

    def replaced(found: re.Match[str]) -> str:
        return values[int(found["place"][2:]) - 1] if found["place"] else found[0]

    return _LEXEMES.sub(replaced, sql)
