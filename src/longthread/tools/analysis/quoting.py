"""Names and literals in SQL: quoted, and unique."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache

from longthread.tools.analysis.dialects.dialect import find_dialect

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


@cache
def _read_reserved(dialect: str) -> frozenset[str]:
    words = frozenset(_WORDS.split())
    known = find_dialect(dialect)
    if not known.has_more_words:
        return words
    # Imported here: sqlglot is slow to load.
    from sqlglot.dialects.dialect import Dialect

    generator = Dialect.get_or_raise(known.sqlglot).generator_class
    return words | {word.casefold() for word in generator.RESERVED_KEYWORDS}


def quoted_if_needed(name: str, dialect: str) -> str:
    """A name as SQL: an identifier that is quoted where its characters, its case or a reserved word ask for it."""
    plain = _FOLDED if find_dialect(dialect).folds_names else _PLAIN
    return (
        name
        if plain.fullmatch(name) and name.casefold() not in _read_reserved(dialect)
        else quote_identifier(name, dialect)
    )


def quoted_label(label: str, sql: str, dialect: str) -> str:
    """A table's label as SQL: of schema and table, unless the dot is in its name, as `sql`, its quoted name, tells."""
    is_one = not find_dialect(dialect).has_schemas or sql == quote_identifier(label, dialect)
    return ".".join(quoted_if_needed(part, dialect) for part in ([label] if is_one else label.split(".")))


def quote_identifier(name: str, dialect: str = "") -> str:
    """A quoted identifier."""
    mark = find_dialect(dialect).quote
    return f"{mark}{name.replace(mark, mark * 2)}{mark}"


def literal(text: str, dialect: str = "") -> str:
    """A text as an SQL literal."""
    escaped = text.replace("\\", "\\\\") if find_dialect(dialect).escapes_backslashes else text
    return "'" + escaped.replace("'", "''") + "'"


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
