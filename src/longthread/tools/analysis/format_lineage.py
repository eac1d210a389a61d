"""The formats of a query's columns, from those of the columns that it reads.

A sum of euros is in euros, and so is an amount times a count; euros over euros are a plain number, as are a count and
pieces over pieces.
What is computed has the places that it needs, as an average of whole euros has.
Where a name may be that of several columns, or an expression is none of these, nothing is told: a wrong currency is
worse than none.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from sqlglot import exp

from longthread.tools.analysis.column_format import ColumnFormat

TableFormats = Mapping[str, Mapping[str, ColumnFormat]]
"""Formats by table and column, as the source names them."""
_Known = Mapping[str, ColumnFormat | None]
"""Formats by column, in lower case; None: it has none."""
_AGGREGATES = (exp.Sum, exp.Avg, exp.Min, exp.Max, exp.Median, exp.First, exp.Last)
_KEEPING = (*_AGGREGATES, exp.Round, exp.Abs, exp.Ceil, exp.Floor, exp.Cast, exp.TryCast, exp.Paren, exp.Neg)
"""What has the format of its first argument."""
_COMPUTED = (exp.Avg, exp.Median, exp.Round, exp.Ceil, exp.Floor, exp.Cast, exp.TryCast)
"""What has other places than its argument."""
_ADDING = (exp.Sum, exp.Avg, exp.Median)
_NESTING = (exp.Paren, exp.Cast, exp.TryCast, exp.Sum, exp.Nullif, exp.Coalesce, exp.Window, exp.Filter)
"""What is a count if its first argument is one."""
_COUNT = re.compile(
    r"(?:.*[_ ])?(?:qty|quantity|quantities|counts?|cnt)|(?:n|num|number)(?:[_ ]of[_ ].*)?|.*(?:数量|件数|人数)", re.I
)
"""The name of a column that counts; an order_number does not."""
_CONVERTED = re.compile(
    r"usd|eur|gbp|cny|rmb|jpy|inr|krw|chf|hkd|dollar|pound|yuan|yen|(?:^|[_ ])cents?(?:_|$)|[$€£¥￥₹₩元镑币円]"
    r"|thousand|million|billion|trillion|(?:^|[_ (])(?:k|mio|mrd|[bm]n)(?:[_ )]|$)|[_ (][mb]\)?$|[千万亿]",
    re.I,
)
"""The name says the currency of its amounts, or that they are thousands or more."""
_WORD_STARTS = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_SCALE = 1_000
"""A number by which amounts are divided to write them in thousands."""
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
        found = {} if _has_new_names(one) else _query(one.this, tables, depth - 1)
        tables = {**tables, one.alias.casefold(): found}
    if isinstance(query, exp.Subquery):
        return {} if _has_new_names(query) else _query(query.this, tables, depth - 1)
    if isinstance(query, exp.SetOperation):
        return _of_both(query, tables, depth)
    return _of_select(query, tables, depth) if isinstance(query, exp.Select) else {}


def _of_both(query: exp.SetOperation, tables: Mapping[str, _Known], depth: int) -> _Known:
    """The formats that both sides of a UNION have, by position; where a star hides positions, by name."""
    left, right = (_query(each, tables, depth - 1) for each in (query.left, query.right))
    names = [[name.casefold() for name in getattr(each, "named_selects", [])] for each in (query.left, query.right)]
    if any(len(set(each)) < len(each) for each in names):
        return {}
    if query.args.get("by_name") or any("*" in each for each in names):
        return left if left == right else {}
    return left if list(left.values()) == list(right.values()) else {}


def _of_select(query: exp.Select, tables: Mapping[str, _Known], depth: int) -> _Known:
    """The formats of what is selected. A name that occurs twice, and those of several sources' stars, have none."""
    sources, count = _sources(query, tables, depth)
    stars = [item for item in query.expressions if _star(item) is not None]
    items: list[tuple[str, ColumnFormat | None]] = []
    for item in query.expressions:
        star = _star(item)
        if star is None:
            items.append((item.alias_or_name.casefold(), _of_item(item, sources, tables, depth - 1)))
            continue
        table = item.table.casefold() if isinstance(item, exp.Column) else ""
        known = _of_star(star, [sources.get(table, {})] if table else list(sources.values()))
        is_sure = len(stars) == 1 and (table or count == 1)
        items += known.items() if is_sure else dict.fromkeys(known).items()
    times = Counter(name for name, _ in items)
    return {name: one if times[name] == 1 else None for name, one in items}


def _star(item: exp.Expr) -> exp.Star | None:
    inner = item.this if isinstance(item, exp.Column) else item
    return inner if isinstance(inner, exp.Star) else None


def _of_star(star: exp.Star, read: list[_Known]) -> _Known:
    """The formats of a star's columns, but for those that it leaves out, replaces and renames."""
    left_out = {each.name.casefold() for each in star.args.get("except_") or ()}
    changed = [*(star.args.get("replace") or ()), *(star.args.get("rename") or ())]
    renamed = {each.this.name.casefold() for each in star.args.get("rename") or ()}
    found = {name: one for each in read for name, one in each.items() if name not in left_out | renamed}
    return {**found, **dict.fromkeys(each.alias_or_name.casefold() for each in changed)}


def _has_new_names(item: exp.Expr) -> bool:
    """Whether a source's columns have other names than those that it reads: `t(a, b)`, or a PIVOT."""
    alias = item.args.get("alias")
    return bool(item.args.get("pivots") or (isinstance(alias, exp.TableAlias) and alias.columns))


def _sources(query: exp.Select, tables: Mapping[str, _Known], depth: int) -> tuple[dict[str, _Known], int]:
    """The formats of the columns of what a query reads from, by the names that it has there; and how many it reads."""
    clauses = [query.args.get("from_"), *(query.args.get("joins") or ()), *(query.args.get("laterals") or ())]
    read = [clause.this for clause in clauses if clause is not None]
    found: dict[str, _Known] = {}
    for item in read:
        if isinstance(item, exp.Table):
            known = tables.get(item.name.casefold(), {})
            found[item.alias_or_name.casefold()] = {} if _has_new_names(item) else known
        elif isinstance(item, exp.Subquery):
            found[item.alias_or_name.casefold()] = _query(item, tables, depth - 1)
    inner = sum(len(item.args.get("joins") or ()) for item in read if isinstance(item, exp.Expr))
    return found, len(read) + inner


def _of_item(
    item: exp.Expr, sources: Mapping[str, _Known], tables: Mapping[str, _Known], depth: int
) -> ColumnFormat | None:
    """The format of a selected expression; none where it has a new name of a currency or a scale."""
    if isinstance(item, exp.Alias) and _CONVERTED.search(_WORD_STARTS.sub("_", item.alias)):
        read = {column.name.casefold() for column in item.find_all(exp.Column)}
        if item.alias.casefold() not in read or item.find(exp.Mul, exp.Div) is not None:
            return None
    return _expression(item, sources, tables, depth)


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
        return None if _is_to_boolean(item) else _of_function(item, of(item.this))
    if isinstance(item, exp.Subquery):
        values = list(_query(item.this, {**tables, **sources}, depth - 1).values())
        return values[0] if len(values) == 1 else None
    if isinstance(item, exp.Coalesce | exp.Case | exp.If):
        return _of_branches(item, of)
    return _of_arithmetic(item, of)


def _of_function(item: exp.Expr, format_: ColumnFormat | None) -> ColumnFormat | None:
    """The format of a function's value, by that of its argument. What is added up is no year or id."""
    if format_ is None or not isinstance(item, (*_COMPUTED, *_ADDING)):
        return format_
    if format_.kind == "date" or (format_.kind == "plain" and isinstance(item, _ADDING)):
        return None
    return replace(format_, places=None) if isinstance(item, _COMPUTED) else format_


def _of_branches(item: exp.Expr, of: _Of) -> ColumnFormat | None:
    """The format that all branches of an expression have, but for literals and NULL."""
    branches = [item.this] if isinstance(item, exp.Coalesce) else [item.args.get("default"), item.args.get("false")]
    branches += [each.args.get("true") for each in item.args.get("ifs") or ()]
    branches += item.expressions if isinstance(item, exp.Coalesce) else [item.args.get("true")]
    given = [each for each in branches if each is not None and not isinstance(each, exp.Null)]
    literals = [each for each in given if isinstance(each, exp.Literal) or _number(each) is not None]
    return _beside(_common([of(each) for each in given if each not in literals]), literals)


def _beside(format_: ColumnFormat | None, literals: Sequence[exp.Expr]) -> ColumnFormat | None:
    """A format that holds beside literals: with one such as 0.45, whole euros have other places."""
    if format_ is None or all((_number(each) or 0) % 1 == 0 for each in literals):
        return format_
    return replace(format_, places=None)


def _common(formats: Sequence[ColumnFormat | None]) -> ColumnFormat | None:
    """The format that all have, if by places only they differ."""
    first = formats[0] if formats else None
    if first is None or all(each == first for each in formats):
        return first
    bare = replace(first, places=None)
    return bare if all(each is not None and replace(each, places=None) == bare for each in formats) else None


def _of_arithmetic(item: exp.Expr, of: _Of) -> ColumnFormat | None:
    if not isinstance(item, exp.Add | exp.Sub | exp.Mul | exp.Div):
        return None
    left, right = of(item.left), of(item.right)
    if isinstance(item, exp.Add | exp.Sub):
        is_literal = _number(item.right) is not None
        found = _beside(left, [item.right]) if is_literal else _common([left, right])
        return None if found is not None and found.kind == "date" else found  # days, or another date
    if left is not None and right is not None:
        if (left.kind, left.unit) == (right.kind, right.unit) or (_has_counts(item.left) and _has_counts(item.right)):
            return None  # pieces over pieces
        if _is_count(item.right):
            right = None  # a count has a format of its own: 3 pcs
        elif isinstance(item, exp.Mul) and _is_count(item.left):
            left = None
    amount, other = (left, item.right) if left is not None else (right, item.left)
    if amount is None or amount.kind in ("percent", "share", "plain") or (left is not None and right is not None):
        return None
    if isinstance(item, exp.Div) and left is None:
        return None
    is_kept = _is_count(other) or _is_factor(other, is_divisor=isinstance(item, exp.Div))
    return replace(amount, places=None) if is_kept else None


def _is_to_boolean(item: exp.Expr) -> bool:
    return isinstance(item, exp.Cast | exp.TryCast) and item.is_type(exp.DType.BOOLEAN)


def _is_count(item: exp.Expr) -> bool:
    """Whether an expression counts things: an amount times it, or over it, stays an amount."""
    while isinstance(item, _NESTING) and not _is_to_boolean(item):
        item = item.this
    return isinstance(item, exp.Count | exp.CountIf) or (
        isinstance(item, exp.Column) and _COUNT.fullmatch(item.name) is not None
    )


def _has_counts(item: exp.Expr) -> bool:
    """Whether an expression, such as qty * 1.0, reads nothing but counts."""
    return all(_COUNT.fullmatch(column.name) is not None for column in item.find_all(exp.Column))


def _is_factor(item: exp.Expr, *, is_divisor: bool) -> bool:
    """Whether an expression is a number that does not make thousands of an amount."""
    number = _number(item)
    return number is not None and abs(number) > 1 / _SCALE and not (is_divisor and abs(number) >= _SCALE)


def _number(item: exp.Expr) -> float | None:
    """The number that a literal is."""
    while isinstance(item, exp.Paren | exp.Neg | exp.Cast | exp.TryCast) and not _is_to_boolean(item):
        item = item.this
    if not isinstance(item, exp.Literal) or item.is_string:
        return None
    try:
        return float(item.this)
    except ValueError:
        return None
