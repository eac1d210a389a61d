"""The SQL expressions of metrics and dimensions: parsed, checked, and bound to the columns of a table."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Collection

from sqlglot import exp

from longthread.errors import InvalidInput
from longthread.model.semantics import Grain
from longthread.tools.analysis.guard import Guard, sqlglot_name
from longthread.tools.analysis.schema import Table, close_names

NAME = re.compile(r"[^\W\d]\w{0,99}")
"""The names of metrics and dimensions: words of any script, which need no quotes in a condition."""
_AGGREGATES = (exp.AggFunc, exp.Filter, exp.WithinGroup, exp.AnonymousAggFunc, exp.ParameterizedAgg)
_MULTIPLIERS = (exp.UDTF, exp.Explode, exp.Unnest, exp.GenerateSeries, exp.Posexplode)
_SETS = re.compile(r"unnest|generate_\w+|\w+_to_table|\w+_array_elements(_text)?|\w+_each(_text)?", re.I)
"""Functions that give several rows for one."""
_SQLITE = {
    "hour": "strftime('%Y-%m-%d %H:00', x)",
    "day": "date(x)",
    "week": "date(x, 'weekday 0', '-6 days')",
    "month": "strftime('%Y-%m-01', x)",
    "quarter": "strftime('%Y', x) || substr('-01-04-07-10', (CAST(strftime('%m', x) AS INTEGER) - 1) / 3 * 3 + 1, 3) "
    "|| '-01'",
    "year": "strftime('%Y-01-01', x)",
}
_MYSQL = {
    "hour": "DATE_FORMAT(x, '%Y-%m-%d %H:00')",
    "day": "DATE_FORMAT(x, '%Y-%m-%d')",
    "week": "DATE_FORMAT(DATE_SUB(x, INTERVAL WEEKDAY(x) DAY), '%Y-%m-%d')",
    "month": "DATE_FORMAT(x, '%Y-%m-01')",
    "quarter": "CONCAT(YEAR(x), SUBSTR('-01-04-07-10', (QUARTER(x) - 1) * 3 + 1, 3), '-01')",
    "year": "DATE_FORMAT(x, '%Y-01-01')",
}


def parse(sql: str, dialect: str) -> exp.Expr:
    """Return the tree of one expression that only reads. Raises InvalidInput, SqlRefused."""
    tree = Guard(dialect).judge(f"SELECT (\n{sql}\n)").tree
    given = {name for name, value in tree.args.items() if value}
    shown = tree.expressions[0] if isinstance(tree, exp.Select) and len(tree.expressions) == 1 else None
    if not isinstance(shown, exp.Paren) or isinstance(shown.this, exp.Alias) or given - {"expressions"}:
        raise InvalidInput(reason=f"{_short(sql)} is not one expression, such as sum(amount) or status = 'paid'.")
    if any(inside is not tree for inside in tree.find_all(exp.Query)):
        raise InvalidInput(reason=f"{_short(sql)} holds a query. Put it into a view, and name that as the table.")
    inside: exp.Expr = shown.this
    return inside.pop()


def check_aggregate(tree: exp.Expr) -> None:
    """Check that an expression gives one value for many rows. Raises InvalidInput."""
    if tree.find(exp.Window):
        raise InvalidInput(reason="it has a window (OVER), and a metric gives one value for all rows of a group.")
    bare = next((column for column in tree.find_all(exp.Column) if not _is_aggregated(column)), None)
    if bare is not None:
        raise InvalidInput(reason=f"{bare.name} stands outside an aggregate. Write sum({bare.name}), for example.")
    if not tree.find(exp.Anonymous, *_AGGREGATES):
        raise InvalidInput(reason="it aggregates nothing. Write sum(…), count(*), avg(…), min(…) or max(…).")


def check_plain(tree: exp.Expr) -> None:
    """Check that an expression gives one value for one row. Raises InvalidInput."""
    if tree.find(exp.Window, *_AGGREGATES):
        raise InvalidInput(reason="it aggregates, and must give one value for one row.")
    named = (node for node in tree.find_all(exp.Anonymous) if _SETS.fullmatch(node.name))
    if tree.find(*_MULTIPLIERS) or next(named, None):
        raise InvalidInput(reason="it gives several rows for one, which would count a metric several times.")


def bind(tree: exp.Expr, table: Table, alias: str, owner: str) -> exp.Expr:
    """Return a copy whose columns are those of a table with this alias, quoted. `owner` says whose it is, such as
    `the metric revenue`. Raises InvalidInput: the table lacks a column."""
    bare = table.label.rpartition(".")[2].casefold()

    def replace(column: exp.Column) -> exp.Expr:
        if column.table and column.table.casefold() not in (bare, table.label.casefold()):
            raise InvalidInput(reason=f"{owner} names {column.table}.{column.name}, and is of {table.label} alone.")
        return exp.column(column_name(table, column.name, owner), table=alias, quoted=True)

    return substituted(tree, replace)


def column_name(table: Table, name: str, owner: str) -> str:
    """Return a column's name as the table spells it. Raises InvalidInput."""
    names = [column.name for column in table.columns]
    found = [each for each in names if each == name] or [each for each in names if each.casefold() == name.casefold()]
    if len(found) != 1:
        near = close_names(name, names) or names[:30]
        reason = f"{owner} names the column {name}, which {table.label} does not have. It has: {', '.join(near)}."
        raise InvalidInput(reason=reason)
    return found[0]


def substituted(tree: exp.Expr, replace: Callable[[exp.Column], exp.Expr]) -> exp.Expr:
    """Return a copy with another expression in the place of each column."""
    root = exp.Paren(this=tree.copy())
    for column in list(root.find_all(exp.Column)):
        made = replace(column)
        # AND, OR and some operators are functions to sqlglot.
        stands_alone = isinstance(made, exp.Column | exp.Func | exp.Paren) and not isinstance(made, exp.Binary)
        column.replace(made if stands_alone else exp.Paren(this=made))
    inside: exp.Expr = root.this
    return inside.pop()


def divided_safely(tree: exp.Expr) -> exp.Expr:
    """Change each division to one of decimals, which is NULL where the divisor is 0."""
    root = exp.Paren(this=tree)
    for node in list(root.find_all(exp.Div)):
        node.set("this", exp.Mul(this=exp.Paren(this=node.this), expression=exp.Literal.number("1.0")))
        node.set("expression", exp.Nullif(this=node.expression, expression=exp.Literal.number(0)))
    inside: exp.Expr = root.this
    return inside.pop()


def truncated(moment: exp.Expr, grain: Grain, dialect: str) -> exp.Expr:
    """Return the beginning of the hour, day, week (Monday), month, quarter or year of a moment: a date or its text."""
    if dialect in ("sqlite", "mysql"):
        template = (_SQLITE if dialect == "sqlite" else _MYSQL)[grain]
    else:
        cut = f"date_trunc('{grain}', CAST(x AS TIMESTAMP))"
        template = cut if grain == "hour" else f"CAST({cut} AS DATE)"
    tree: exp.Expr = exp.maybe_parse(template, dialect=sqlglot_name(dialect))
    return substituted(tree, lambda _: moment.copy())


def conditions(tree: exp.Expr) -> list[exp.Expr]:
    """Return the parts of a condition that must all hold."""
    tree = tree.unnest()
    return [*conditions(tree.left), *conditions(tree.right)] if isinstance(tree, exp.And) else [tree]


def folded(name: str) -> str:
    """A name for comparisons, in any script."""
    return " ".join(unicodedata.normalize("NFKC", name).casefold().split())


def unknown(kind: str, name: str, names: Collection[str]) -> InvalidInput:
    """Return the error of a name that is not there, with those that are, the nearest first."""
    near = list(dict.fromkeys([*close_names(name, names), *names]))[:40]
    there = f"{kind.capitalize()}s: {', '.join(near)}." if near else f"There is no {kind} at all."
    return InvalidInput(reason=f"There is no {kind} {name[:100]}. {there}")


def _is_aggregated(column: exp.Expr) -> bool:
    node = column.parent
    while node is not None:
        if isinstance(node, (*_AGGREGATES, exp.Anonymous)):
            return True
        node = node.parent
    return False


def _short(sql: str) -> str:
    line = " ".join(sql.split())
    return line if len(line) <= 80 else f"{line[:79]}…"
