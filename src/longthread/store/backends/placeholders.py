"""Where values stand in the queries of PostgreSQL."""

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
    """A query with psycopg's placeholders, `%(name)s`, in the place of `:name`."""

    def placeholder(match: re.Match[str]) -> str:
        name = match["name"]
        return f"%({name})s" if name else match[0].replace("%", "%%")

    return _PART.sub(placeholder, sql)


@lru_cache(maxsize=2048)
def with_names(query: str, reads: bool) -> bytes:
    """A query as psycopg takes it that sends the values beside it."""
    return translated(_sql(query, reads)).encode()


def _sql(query: str, reads: bool) -> str:
    """A query. A snapshot needs no locks, and may not take any."""
    sql = queries("postgres")[query].rstrip().rstrip(";")
    return _LOCK.sub("", sql) if reads else sql


@lru_cache(maxsize=2048)
def parts(query: str, reads: bool) -> tuple[Sequence[bytes], Sequence[str]]:
    """A query without its comments: what stands before, between and behind its values, and the values' names."""
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
