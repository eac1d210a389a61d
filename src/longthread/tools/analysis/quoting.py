"""Names and literals in SQL: quoted, unique, and their quotes, comments and parameters in MySQL statements."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import cache

_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_FOLDED = re.compile(r"[a-z_][a-z0-9_]*")
"""What PostgreSQL takes for itself: it folds other names to this case."""
_WORDS = """
    add all alter analyse analyze and anti any array as asc asof asymmetric at authorization autoincrement between
    binary both by case cast check collate collation column columns commit concurrently constraint create cross
    current_catalog current_date current_role current_schema current_time current_timestamp current_user default
    deferrable delete desc describe distinct do drop else end escape except exists explain false fetch for foreign
    freeze from full generated glob grant group having if ilike in index initially inner insert intersect into is
    isnull join lambda lateral leading left like limit localtime localtimestamp map match natural not nothing notnull
    null offset on only or order outer overlaps pivot placing positional primary qualify raise references returning
    right select semi session_user set show similar some struct summarize symmetric system_user table tablesample then
    to trailing transaction true try_cast tuple union unique unpack unpivot update user using values variadic verbose
    when where window with
"""
"""The words that PostgreSQL, SQLite or DuckDB reserve."""
_MYSQL_LEXEMES = re.compile(
    r"""
    (?P<quoted>'(?:[^'\\]|\\.|'')*' | "(?:[^"\\]|\\.|"")*" | `(?:[^`]|``)*`)
  | (?P<comment>/\*(?!M?!|\+)(?:(?!/\*).)*?\*/ | (?:--(?=[ \t\n]|\r\n|\Z)|\#)[^\r\n]*(?=\r?\n|\Z))
  | (?P<odd>/\*|--|\#)
  | (?P<place>:p\d+\b)
    """,
    re.VERBOSE | re.DOTALL,
)


@cache
def _read_reserved(dialect: str) -> frozenset[str]:
    words = frozenset(_WORDS.split())
    if dialect != "mysql":
        return words
    # Imported here: sqlglot is slow to load.
    from sqlglot.generators.mysql import MySQLGenerator

    return words | {word.casefold() for word in MySQLGenerator.RESERVED_KEYWORDS}


def quoted_if_needed(name: str, dialect: str) -> str:
    """A name as SQL: an identifier that is quoted where its characters, its case or a reserved word ask for it."""
    plain = _FOLDED if dialect == "postgresql" else _PLAIN
    return name if plain.fullmatch(name) and name.casefold() not in _read_reserved(dialect) else quoted(name, dialect)


def quoted_label(label: str, sql: str, dialect: str) -> str:
    """A table's label as SQL: of schema and table, unless the dot is in its name, as `sql`, its quoted name, tells."""
    is_one = dialect in ("sqlite", "mysql") or sql == quoted(label, dialect)
    return ".".join(quoted_if_needed(part, dialect) for part in ([label] if is_one else label.split(".")))


def quoted(name: str, dialect: str = "") -> str:
    """A quoted identifier: with backticks in MySQL, else double quotes."""
    mark = "`" if dialect == "mysql" else '"'
    return f"{mark}{name.replace(mark, mark * 2)}{mark}"


def literal(text: str, dialect: str = "") -> str:
    """A text as an SQL literal."""
    escaped = text.replace("\\", "\\\\") if dialect == "mysql" else text
    return "'" + escaped.replace("'", "''") + "'"


def has_odd_comment(sql: str) -> bool:
    """Whether a text has a comment that a server executes (`/*! … */`), obeys (`/*+ … */`), or reads otherwise than
    sqlglot: nested ones, or two dashes without a space."""
    return any(found["odd"] for found in _MYSQL_LEXEMES.finditer(sql))


def with_values(sql: str, values: Sequence[str]) -> str:
    """Puts literals in the places `:p1`, `:p2`, …"""

    def replaced(found: re.Match[str]) -> str:
        return values[int(found["place"][2:]) - 1] if found["place"] else found[0]

    return _MYSQL_LEXEMES.sub(replaced, sql)


class UniqueNames:
    """Makes names unique: a repeated one gets a number, from `first` on. Names of the same `key` are equal."""

    def __init__(self, *, first: int = 2, key: Callable[[str], str] = str.casefold) -> None:
        self._taken: set[str] = set()
        self._first = first
        self._key = key

    def take(self, wanted: str) -> str:
        """`wanted`, or that with a number where it is taken."""
        name, number = wanted, self._first
        while self._key(name) in self._taken:
            name, number = f"{wanted}_{number}", number + 1
        self._taken.add(self._key(name))
        return name
