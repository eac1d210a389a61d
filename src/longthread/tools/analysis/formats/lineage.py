"""The formats of a query's columns, from those of the columns that it reads.

A sum of euros is in euros, and so is an amount times a count; euros over euros are a plain number, and a count is one.
Where a name may be that of several columns, or an expression is none of these, nothing is told.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from sqlglot import exp

from longthread.tools.analysis.formats.column_format import ColumnFormat

TableFormats = Mapping[str, Mapping[str, ColumnFormat]]
"""Formats by table and column, as the source names them."""
_Known = Mapping[str, ColumnFormat | None]
"""Formats by column, in lower case; None: it has none."""
_AGGREGATES = (exp.Sum, exp.Avg, exp.Min, exp.Max, exp.Median, exp.First, exp.Last)
_KEEPING = (*_AGGREGATES, exp.Round, exp.Abs, exp.Ceil, exp.Floor, exp.Cast, exp.TryCast, exp.Paren, exp.Neg)
"""What has the format of its first argument."""
_Of = Callable[[exp.Expr], ColumnFormat | None]
_DEEPEST = 40
"""Queries and expressions in each other, at most."""


def formats_of_query(tree: exp.Expr, tables: TableFormats) -> dict[str, ColumnFormat]:
    """Return the formats of a statement's columns by name, as far as they are sure."""
    known = {label.casefold(): {name.casefold(): one for name, one in each.items()} for label, each in tables.items()}
    found = _query(tree, known, _DEEPEST) if any(known.values()) else {}
    names = {name.casefold(): name for name in getattr(tree, "named_selects", [])}
    return {names.get(name, name): format_ for name, format_ in found.items() if format_ is not None}


def _query(query: exp.Expr | None, tables: Mapping[str, _Known], depth: int) -> _Known:
    """The formats of a query's columns in lower case."""
    if depth <= 0 or query is None:
        return {}
    clause = query.args.get("with_")
    for one in clause.expressions if clause is not None else ():
        tables = {**tables, one.alias.casefold(): _query(one.this, tables, depth - 1)}
    if isinstance(query, exp.Subquery):
        return _query(query.this, tables, depth - 1)
    if isinstance(query, exp.SetOperation):
        left, right = (_query(each, tables, depth - 1) for each in (query.left, query.right))
        return left if list(left.values()) == list(right.values()) else {}
    if not isinstance(query, exp.Select):
        return {}
    sources = _sources(query, tables, depth)
    found: dict[str, ColumnFormat | None] = {}
    for item in query.expressions:
        if isinstance(item, exp.Star) or (isinstance(item, exp.Column) and isinstance(item.this, exp.Star)):
            read = [sources.get(item.table.casefold(), {})] if isinstance(item, exp.Column) else list(sources.values())
            found |= {name: one for each in read for name, one in each.items()}
        else:
            found[item.alias_or_name.casefold()] = _expression(item, sources, tables, depth - 1)
    return found


def _sources(query: exp.Select, tables: Mapping[str, _Known], depth: int) -> dict[str, _Known]:
    """The formats of the columns of what a query reads from, by the names that it has there."""
    clauses = [query.args.get("from_"), *query.args.get("joins", [])]
    found: dict[str, _Known] = {}
    for item in (clause.this for clause in clauses if clause is not None):
        if isinstance(item, exp.Table):
            found[item.alias_or_name.casefold()] = tables.get(item.name.casefold(), {})
        elif isinstance(item, exp.Subquery):
            found[item.alias_or_name.casefold()] = _query(item.this, tables, depth - 1)
    return found


def _expression(
    item: exp.Expr, sources: Mapping[str, _Known], tables: Mapping[str, _Known], depth: int
) -> ColumnFormat | None:
    if depth <= 0:
        return None

    def of(part: exp.Expr) -> ColumnFormat | None:
        return _expression(part, sources, tables, depth - 1)

    if isinstance(item, exp.Alias | exp.Window | exp.Distinct | exp.Filter):
        inner = item.this if item.this is not None else next(iter(item.expressions), None)
        return of(inner) if inner is not None else None
    if isinstance(item, exp.Column):
        owners = [sources.get(item.table.casefold(), {})] if item.table else sources.values()
        named = [each[item.name.casefold()] for each in owners if item.name.casefold() in each]
        return named[0] if len(named) == 1 else None
    if isinstance(item, _KEEPING):
        return of(item.this)
    if isinstance(item, exp.Subquery):
        values = list(_query(item.this, {**tables, **sources}, depth - 1).values())
        return values[0] if len(values) == 1 else None
    if isinstance(item, exp.Coalesce | exp.Case | exp.If):
        return _of_branches(item, of)
    return _of_arithmetic(item, of)


def _of_branches(item: exp.Expr, of: _Of) -> ColumnFormat | None:
    """The format that all branches of an expression have, but for numbers and NULL."""
    branches = [item.this] if isinstance(item, exp.Coalesce) else [item.args.get("default"), item.args.get("false")]
    branches += [each.args.get("true") for each in item.args.get("ifs") or ()]
    branches += item.expressions if isinstance(item, exp.Coalesce) else [item.args.get("true")]
    told = [of(each) for each in branches if each is not None and not isinstance(each, exp.Literal | exp.Null)]
    return told[0] if told and all(each == told[0] for each in told) else None


def _of_arithmetic(item: exp.Expr, of: _Of) -> ColumnFormat | None:
    if not isinstance(item, exp.Add | exp.Sub | exp.Mul | exp.Div):
        return None
    left, right = of(item.left), of(item.right)
    if isinstance(item, exp.Add | exp.Sub):
        return left if left == right or item.right.find(exp.Column) is None else None
    amounts = [each for each in (left, right) if each is not None]
    if len(amounts) != 1 or amounts[0].kind in ("percent", "share", "plain"):
        return None
    if isinstance(item, exp.Div) and left is None:
        return None
    return amounts[0]
