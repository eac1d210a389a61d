"""The policy of one user for one source."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

from longthread.errors import PolicyUnusable
from longthread.tools.analysis.dialects.dialect import SqlDialect


@dataclass(frozen=True)
class UserPolicy:
    """Restrictions by table label. `values` are the user's values for conditions. A table whose condition uses a
    missing value is hidden."""

    values: Mapping[str, Any] = field(default_factory=dict)
    rows: Mapping[str, str] = field(default_factory=dict)
    hide: Mapping[str, frozenset[str]] = field(default_factory=dict)
    mask: Mapping[str, Mapping[str, str | None]] = field(default_factory=dict)
    hidden: frozenset[str] = frozenset()

    @property
    def tables(self) -> frozenset[str]:
        return frozenset(self.rows) | frozenset(self.hide) | frozenset(self.mask) | self.hidden


class Unbound(Exception):
    """A condition uses a value that the user lacks."""


def condition(text: str, values: Mapping[str, Any], dialect: SqlDialect) -> exp.Expr:
    """Parses a condition and puts in the user's values as literals. Raises Unbound, PolicyUnusable."""
    tree = parse_expression(text, dialect)
    for place in list(tree.find_all(exp.Placeholder)):
        if place.name not in values:
            raise Unbound(place.name)
        value = values[place.name]
        if isinstance(value, Sequence) and not isinstance(value, str):
            if not isinstance(place.parent, exp.In):
                raise PolicyUnusable(
                    reason=f"the list :{place.name} stands in {text!r}, but not in IN (:{place.name})."
                )
            for one in value or [None]:
                place.parent.append("expressions", _literal(one, dialect))
            place.pop()
        else:
            place.replace(_literal(value, dialect))
    return tree


def parse_mask(text: str | None, dialect: SqlDialect) -> exp.Expr:
    """Parses the expression of a mask. Raises PolicyUnusable."""
    tree = exp.Null() if text is None else parse_expression(text, dialect)
    if tree.find(exp.Query, exp.Placeholder):
        raise PolicyUnusable(reason=f"the mask {text!r} is more than an expression over the table's columns.")
    return tree


def parse_expression(text: str, dialect: SqlDialect) -> exp.Expr:
    """Parses a condition or an expression. Raises PolicyUnusable."""
    try:
        tree = sqlglot.parse_one(f"SELECT 1 WHERE ({text}\n)", read=dialect.sqlglot)
    except SqlglotError as error:
        raise PolicyUnusable(reason=f"{text!r} cannot be parsed as {dialect.sqlglot}.") from error
    where = tree.args.get("where") if isinstance(tree, exp.Select) else None
    clauses = {key for key, value in tree.args.items() if value}
    if where is None or clauses != {"expressions", "where"} or not isinstance(where.this, exp.Paren):
        raise PolicyUnusable(reason=f"{text!r} is not one condition or expression.")
    inner: exp.Expr = where.this.this
    return inner.copy()


def _literal(value: Any, dialect: SqlDialect) -> exp.Expr:
    if value is None:
        return exp.Null()
    if isinstance(value, bool):
        return exp.Boolean(this=value)
    if isinstance(value, int) or (isinstance(value, float) and math.isfinite(value)):
        return exp.Literal.number(value)
    text = str(value)
    if "\0" in text:
        raise PolicyUnusable(reason="a value of the user holds a NUL character.")
    literal = exp.Literal.string(text)
    if not dialect.exact_collation:
        return literal
    if text.endswith(" "):
        reason = f"a value of the user ends with a space, which {dialect.title} does not compare."
        raise PolicyUnusable(reason=reason)
    return exp.Collate(this=literal, expression=exp.Var(this=dialect.exact_collation))
