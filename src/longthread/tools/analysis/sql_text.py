"""SQL of a source's dialect, as sqlglot reads and writes it."""

from __future__ import annotations

from collections.abc import Iterator

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError
from sqlglot.generators.mysql import MySQLGenerator

from longthread.tools.analysis.dialects.dialect import find_dialect


def sqlglot_name(dialect: str) -> str:
    """What sqlglot calls a dialect."""
    return find_dialect(dialect).sqlglot


class _RegexpGenerator(MySQLGenerator):
    """Writes REGEXP, which MySQL and MariaDB both have, in place of REGEXP_LIKE."""

    def regexplike_sql(self, expression: exp.RegexpLike) -> str:
        if expression.args.get("flag"):
            return self.function_fallback_sql(expression)
        text = " REGEXP ".join(self._operand(one) for one in (expression.this, expression.expression))
        return text if isinstance(expression.parent, exp.Paren) else f"({text})"

    def _operand(self, operand: exp.Expr) -> str:
        plain = isinstance(operand, exp.Column | exp.Literal | exp.Paren | exp.Anonymous)
        return self.sql(operand) if plain else f"({self.sql(operand)})"


def write_sql(tree: exp.Expr, dialect: str, *, comments: bool = True) -> str:
    """A tree as SQL."""
    known = find_dialect(dialect)
    if not known.has_regexp_like:
        return _RegexpGenerator(dialect=known.sqlglot, comments=comments).generate(tree)
    return tree.sql(known.sqlglot, comments=comments)


def read_check_labels(statement: str, dialect: str) -> dict[str, tuple[str, ...]]:
    """Allowed texts by column, in lower case. What cannot be parsed is skipped."""
    try:
        tree = sqlglot.parse_one(statement, dialect=sqlglot_name(dialect))
    except (SqlglotError, RecursionError):
        return {}
    found: dict[str, tuple[str, ...]] = {}
    for check in tree.find_all(exp.CheckColumnConstraint):
        found |= dict(_check_labels(check.this))
    return found


def _check_labels(condition: exp.Expr) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Reads `a IN ('x', 'y')`, `a = ANY (ARRAY['x'])`, `a IS NULL OR a = 'x'`, and such conditions joined by AND."""
    bare = _bare(condition)
    if isinstance(bare, exp.And):
        yield from _check_labels(bare.left)
        yield from _check_labels(bare.right)
        return
    parts = [_bare(part) for part in bare.flatten()] if isinstance(bare, exp.Or) else [bare]
    pairs = [_pair(part) for part in parts if not isinstance(part, exp.Is)]
    names = {name for name, _ in pairs}
    if len(names) == 1 and "" not in names:
        yield names.pop(), tuple(text for _, texts in pairs for text in texts)


def _pair(part: exp.Expr) -> tuple[str, tuple[str, ...]]:
    """The column and the texts of one comparison; no name for any other condition."""
    if not isinstance(part, exp.In | exp.EQ):
        return "", ()
    column = _bare(part.this)
    given = part.expressions if isinstance(part, exp.In) else [part.expression]
    texts = [text for each in given for text in _literals(_bare(each))]
    known = isinstance(column, exp.Column) and texts and all(text.is_string for text in texts)
    return (column.name.casefold(), tuple(text.name for text in texts)) if known else ("", ())


def _literals(given: exp.Expr) -> list[exp.Expr]:
    array = _bare(given.this) if isinstance(given, exp.Any) else given
    return [_bare(item) for item in array.expressions] if isinstance(array, exp.Array) else [array]


def _bare(condition: exp.Expr) -> exp.Expr:
    """Removes parentheses and casts."""
    while isinstance(condition, exp.Paren | exp.Cast):
        condition = condition.this
    return condition
