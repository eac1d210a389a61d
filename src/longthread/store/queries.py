"""Named SQL: each `.sql` file under `sql/` holds queries headed by `-- name: …`. PostgreSQL's placeholders are derived
from them.

`sql/common` is for every backend; a backend's own folder overrides it by name. `bulky` after the name: the query
returns many bytes, which a server need not send as text. Words such as `JSON[…]` stand for dialect-specific SQL
(`_WORDS`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import cache, lru_cache
from importlib.resources import files
from importlib.resources.abc import Traversable

_HEAD = re.compile(r"^-- name: (\w+)( bulky)?\s*$", re.MULTILINE)


class Sql(str):
    """SQL instead of a query's name, composed for work on all tables. It contains only quoted names from the database's
    catalog; values are parameters, `:name`."""

    __slots__ = ()


class Queries(dict[str, str]):
    """Queries by name, and the names of bulky ones; composed SQL maps to itself."""

    def __init__(self) -> None:
        self.bulky: set[str] = set()

    def __missing__(self, query: str) -> str:
        if not isinstance(query, Sql):
            raise KeyError(query)
        return str(query)


@cache
def queries(dialect: str) -> Queries:
    """Return a dialect's queries, `sqlite` or `postgres`, by name."""
    found = Queries()
    for folder in ("common", dialect):
        for name, is_bulky, sql in _read_folder(files("longthread.store") / "sql" / folder):
            found[name] = spelled_out(sql, dialect)
            if is_bulky:
                found.bulky.add(name)
    return found


def spelled_out(sql: str, dialect: str) -> str:
    """Return SQL with a dialect's own in place of the words."""
    return _WORD.sub(lambda word: _WORDS[word[1]][dialect == "postgres"].format(word[2]), sql)


_IS_UUID = f"length({{0}}) = 36 AND substr({{0}}, -8) GLOB '{8 * '[0-9a-f]'}'"
_IS_OURS = f"length({{0}}) IN (16, 36) AND substr({{0}}, -8) GLOB '{8 * '[0-9a-z]'}'"
_WORDS = {
    "AMONG_TEXTS": ("IN (SELECT value FROM json_each({}))", "IN (SELECT json_array_elements_text(CAST({} AS JSON)))"),
    "AMONG_NUMBERS": (
        "IN (SELECT value FROM json_each({}))",
        "= ANY(CAST(translate({}, '[]', '{{}}') AS BIGINT[]))",
    ),
    "ENTRY_KEY": (f"CASE WHEN {_IS_UUID} THEN substr({{0}}, 11, 3) || substr({{0}}, -8) ELSE {{0}} END", "{0}"),
    "FLAG": ("{}", "CAST(CAST({} AS INTEGER) AS BOOLEAN)"),
    "JSON": ("{}", "CAST({} AS JSONB)"),
    "LIST_OF": ("json_group_array({})", "CAST(coalesce(json_agg({}), '[]') AS TEXT)"),
    "MOMENT": ("julianday({})", "CAST({} AS TIMESTAMPTZ)"),
    "STAMP": ("{}", "CAST({} AS TIMESTAMPTZ)"),
    "TAGS_IN": (
        "json_each(CASE WHEN json_valid({0}) THEN {0} ELSE '[]' END)",
        "json_array_elements_text(CASE WHEN json_typeof(json_of({0})) = 'array' THEN json_of({0}) ELSE '[]' END)",
    ),
    "THREAD_KEY": (f"CASE WHEN {_IS_OURS} THEN substr({{0}}, -6) ELSE {{0}} END", "{0} || ' '"),
    "TEXTS": ("{}", "ARRAY(SELECT json_array_elements_text(CAST({} AS JSON)))"),
    "UUID": ("{}", "CAST(CAST({} AS TEXT) AS UUID)"),
}
"""The SQL of words such as `JSON[:config]` on SQLite and on PostgreSQL. AMONG_…: membership in a JSON list. FLAG, JSON,
STAMP, TEXTS, UUID: a value for a column of that type. MOMENT: a time for comparisons. LIST_OF: all rows' values as a
JSON list. TAGS_IN: a table of the texts of a JSON list, in its column `value`. THREAD_KEY and ENTRY_KEY: the columns of
the index `entries_by_id`."""
_WORD = re.compile(rf"\b({'|'.join(_WORDS)})\[([^\]]+)\]")


def _read_folder(folder: Traversable) -> Iterator[tuple[str, bool, str]]:
    for file in sorted(folder.iterdir(), key=lambda f: f.name) if folder.is_dir() else []:
        if file.name.endswith(".sql"):
            parts = _HEAD.split(file.read_text("utf-8"))
            for name, bulky, sql in zip(parts[1::3], parts[2::3], parts[3::3], strict=True):
                yield name, bool(bulky), sql.strip()


_PART = re.compile(
    r"""'(?:[^']|'')*' | "(?:[^"]|"")*" | --[^\n]* | /\*.*?\*/ | ::\s*\w+ | :(?P<name>[A-Za-z_]\w*) | %""",
    re.VERBOSE | re.DOTALL,
)
_LOCK = re.compile(r"\s+FOR (?:NO KEY )?UPDATE(?: OF [\w, ]+)?$")


def translate_placeholders(sql: str) -> str:
    """Replace `:name` by psycopg's `%(name)s`."""

    def placeholder(match: re.Match[str]) -> str:
        name = match["name"]
        return f"%({name})s" if name else match[0].replace("%", "%%")

    return _PART.sub(placeholder, sql)


@lru_cache(maxsize=2048)
def with_names(query: str, reads: bool) -> bytes:
    """Return a query for psycopg with separate values."""
    return translate_placeholders(_sql(query, reads)).encode()


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
