"""Placeholders in PostgreSQL's queries."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache

from longthread.store.queries import queries

_PART = re.compile(
    r"""'(?:[^']|'')*' | "(?:[^"]|"")*" | --[^\n]* | /\*.*?\*/ | ::\s*\w+ | :(?P<name>[A-Za-z_]\w*) | %""",
    re.VERBOSE | re.DOTALL,
)
_LOCK = re.compile(r"\s+FOR (?:NO KEY )?UPDATE(?: OF [\w, ]+)?$")


def translated(sql: str) -> str:
    """Replace `:name` by psycopg's `%(name)s`."""

    def placeholder(match: re.Match[str]) -> str:
        name = match["name"]
        return f"%({name})s" if name else match[0].replace("%", "%%")

    return _PART.sub(placeholder, sql)


@lru_cache(maxsize=2048)
def with_names(query: str, reads: bool) -> bytes:
    """Return a query for psycopg with separate values."""
    return translated(_sql(query, reads)).encode()


def _sql(query: str, reads: bool) -> str:
    """Return a query; one that reads a snapshot loses its locks, which PostgreSQL would refuse."""
    sql = queries("postgres")[query].rstrip().rstrip(";")
    return _LOCK.sub("", sql) if reads else sql


@lru_cache(maxsize=2048)
def parts(query: str, reads: bool) -> tuple[Sequence[bytes], Sequence[str]]:
    """Split a query, without comments, into the text around its values and the values' names."""
    texts, names, end = [""], [], 0
    sql = _sql(query, reads)
    for match in _PART.finditer(sql):
        is_comment = match[0].startswith(("--", "/*"))
        if is_comment or match["name"]:
            texts[-1] += sql[end : match.start()]
            end = match.end()
        if match["name"]:
            names.append(match["name"])
            texts.append("")
    texts[-1] += sql[end:]
    return [text.encode() for text in texts], names
