"""A source's `semantics` in the catalog, read and checked; the SQL of metrics and dimensions, bound to columns.

From the table of a metric, joins along keys lead to those of its dimensions: each row leads to one row at most.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from sqlglot import exp

from longthread.errors import InvalidInput, SqlRefused
from longthread.model.semantics import GRAINS, Grain, JoinDefinition, SemanticLayer, layer_of
from longthread.tools.analysis.dialects.dialect import find_dialect
from longthread.tools.analysis.guard import Guard
from longthread.tools.analysis.open import dialect_of
from longthread.tools.analysis.schema import Schema, Table, close_names
from longthread.tools.catalog.fields import LONGEST_NAME, FieldReader, short

NAME = re.compile(r"[^\W\d]\w{0,99}")
"""The names of metrics and dimensions: words of any script, which need no quotes in a condition."""
_AGGREGATES = (exp.AggFunc, exp.Filter, exp.WithinGroup, exp.AnonymousAggFunc, exp.ParameterizedAgg)
_MULTIPLIERS = (exp.UDTF, exp.Explode, exp.Unnest, exp.GenerateSeries, exp.Posexplode)
_SETS = re.compile(r"unnest|generate_\w+|\w+_to_table|\w+_array_elements(_text)?|\w+_each(_text)?", re.I)
"""Functions that give several rows for one."""


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

    return substitute_columns(tree, replace)


def column_name(table: Table, name: str, owner: str) -> str:
    """Return a column's name as the table spells it. Raises InvalidInput."""
    names = [column.name for column in table.columns]
    found = [each for each in names if each == name] or [each for each in names if each.casefold() == name.casefold()]
    if len(found) != 1:
        near = close_names(name, names) or names[:30]
        reason = f"{owner} names the column {name}, which {table.label} does not have. It has: {', '.join(near)}."
        raise InvalidInput(reason=reason)
    return found[0]


def substitute_columns(tree: exp.Expr, replace: Callable[[exp.Column], exp.Expr]) -> exp.Expr:
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


def truncate_moment(moment: exp.Expr, grain: Grain, dialect: str) -> exp.Expr:
    """Return the beginning of the hour, day, week (Monday), month, quarter or year of a moment: a date or its text."""
    known = find_dialect(dialect)
    tree: exp.Expr = exp.maybe_parse(known.truncate(grain), dialect=known.sqlglot)
    return substitute_columns(tree, lambda _: moment.copy())


def conditions(tree: exp.Expr) -> list[exp.Expr]:
    """Return the parts of a condition that must all hold."""
    tree = tree.unnest()
    return [*conditions(tree.left), *conditions(tree.right)] if isinstance(tree, exp.And) else [tree]


def fold_name(name: str) -> str:
    """A name for comparisons, in any script."""
    return " ".join(unicodedata.normalize("NFKC", name).casefold().split())


def make_unknown_name_error(kind: str, name: str, names: Collection[str]) -> InvalidInput:
    """Return the error of a name that does not exist, with the existing names, the nearest first."""
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


@dataclass(frozen=True)
class KeyJoin:
    """Columns of `table` that refer to one row of `to`. Not `certain`: no key of the database says that it is one."""

    table: Table
    columns: tuple[str, ...]
    to: Table
    references: tuple[str, ...]

    @property
    def is_certain(self) -> bool:
        return bool(self.to.primary_key) and set(self.references) == set(self.to.primary_key)


class JoinGraph:
    """The joins that people declared, and the foreign keys of the database."""

    def __init__(self, schema: Schema, declared: Sequence[JoinDefinition]) -> None:
        self._schema = schema
        self._definitions = declared

    def path(self, begin: Table, end: Table) -> list[KeyJoin] | None:
        """Return the shortest way, along declared joins before others; None if there is none. Raises InvalidInput:
        several are equally short."""
        for edges in (self._declared_joins, [*self._declared_joins, *self._keys]):
            if ways := list(_shortest(edges, begin, end)):
                if len(ways) > 1:
                    raise InvalidInput(reason=_ambiguous(begin, end, ways))
                return ways[0]
        return None

    @cached_property
    def _declared_joins(self) -> list[KeyJoin]:
        known = self._schema.tables
        found = []
        for each in self._definitions:
            table, to = self._schema.find(each.table), self._schema.find(each.to)
            owner = f"the join of {each.table} and {each.to}"
            columns = tuple(column_name(known[table.label], name, owner) for name in each.columns)
            references = tuple(column_name(known[to.label], name, owner) for name in each.references)
            found.append(KeyJoin(table, columns, to, references))
        return found

    @cached_property
    def _keys(self) -> list[KeyJoin]:
        """The foreign keys between tables that no declared join connects."""
        declared = {(join.table.label, join.to.label) for join in self._declared_joins}
        return [
            KeyJoin(table, key.columns, self._schema.tables[key.table], key.references)
            for table in self._schema.tables.values()
            for key in table.foreign_keys
            if key.table in self._schema.tables and (table.label, key.table) not in declared
        ]


def _shortest(edges: Sequence[KeyJoin], begin: Table, end: Table) -> Iterator[list[KeyJoin]]:
    if begin.label == end.label:
        yield []
        return
    ways: list[list[KeyJoin]] = [[]]
    seen = {begin.label}
    while ways:
        longer = [
            [*way, edge]
            for way in ways
            for edge in edges
            if edge.table.label == (way[-1].to.label if way else begin.label) and edge.to.label not in seen
        ]
        there = [way for way in longer if way[-1].to.label == end.label]
        if there:
            yield from there
            return
        seen |= {way[-1].to.label for way in longer}
        ways = longer


def _ambiguous(begin: Table, end: Table, ways: Sequence[Sequence[KeyJoin]]) -> str:
    named = [", ".join(f"{e.table.label}.{'+'.join(e.columns)} → {e.to.label}" for e in way) for way in ways]
    told = " or ".join(sorted(named)[:3])
    return (
        f"There are {len(ways)} ways from {begin.label} to {end.label}: {told}. Declare the one that is meant under "
        "`joins` of the source, or make the other a dimension of a view."
    )


LONGEST_TEXT = 2_000
_OWN = "metric_time"


def read_semantics(fields: FieldReader, address: str) -> dict[str, Any]:
    """Read the metrics, dimensions and joins of a source, without empty fields. Adds what is wrong to the problems."""
    given = fields.object("semantics")
    inside, dialect = fields.within("semantics", given), dialect_of(address)
    lists = {
        "metrics": [_metric(each, dialect) for each in inside.objects("metrics")],
        "dimensions": [_dimension(each, dialect) for each in inside.objects("dimensions")],
        "joins": [_join(each) for each in inside.objects("joins")],
    }
    inside.finish()
    _check_names(inside, lists)
    _check_calculated(inside, layer_of([lists]), dialect)
    return {name: items for name, items in lists.items() if items}


def _metric(fields: FieldReader, dialect: str) -> dict[str, Any]:
    table = fields.text("table", longest=LONGEST_TEXT)
    sql, where = fields.text("sql", required=True, longest=LONGEST_TEXT), fields.text("where", longest=LONGEST_TEXT)
    found = {
        "name": _name(fields),
        "meaning": fields.text("meaning", longest=LONGEST_TEXT),
        "table": table,
        "sql": sql,
        "where": where,
        "time": fields.text("time", longest=LONGEST_NAME),
        "synonyms": fields.texts("synonyms"),
    }
    fields.finish()
    if table is not None:
        _check_sql(fields, "sql", sql, dialect, check_aggregate)
        _check_sql(fields, "where", where, dialect, check_plain)
    for name in ("where", "time"):
        if table is None and found[name]:
            fields.problem(name, "it is of a metric with a table. Give it to the metrics that this one is made of.")
    return {name: value for name, value in found.items() if value}


def _dimension(fields: FieldReader, dialect: str) -> dict[str, Any]:
    name = _name(fields)
    found = {
        "name": name,
        "meaning": fields.text("meaning", longest=LONGEST_TEXT),
        "table": fields.text("table", required=True, longest=LONGEST_TEXT),
        "sql": fields.text("sql", longest=LONGEST_TEXT) or name,
        "grain": fields.text("grain"),
        "synonyms": fields.texts("synonyms"),
    }
    fields.finish()
    if found["grain"] and found["grain"] not in GRAINS:
        fields.problem("grain", f"it must be one of {', '.join(GRAINS)}, and is {short(found['grain'])}.")
    _check_sql(fields, "sql", str(found["sql"]), dialect, check_plain)
    return {field: value for field, value in found.items() if value}


def _join(fields: FieldReader) -> dict[str, Any]:
    found = {
        "table": fields.text("table", required=True, longest=LONGEST_TEXT),
        "columns": fields.texts("columns"),
        "to": fields.text("to", required=True, longest=LONGEST_TEXT),
        "references": fields.texts("references"),
    }
    fields.finish()
    if not found["columns"] or len(found["columns"] or ()) != len(found["references"] or ()):
        fields.problem("columns", "give as many columns as `references`, at least one.")
    return found


def _name(fields: FieldReader) -> str:
    name = fields.text("name", required=True, longest=LONGEST_NAME) or ""
    if name and not NAME.fullmatch(name):
        fields.problem("name", f"{short(name)} must be letters, digits and _. Write other words under `synonyms`.")
    elif "__" in name:
        fields.problem("name", f"{short(name)} has two _ in a row, which stand before a grain. Write one.")
    return name


def _check_sql(
    fields: FieldReader, name: str, sql: str | None, dialect: str, check: Callable[[exp.Expr], None]
) -> None:
    if not sql:
        return
    try:
        check(parse(sql, dialect))
    except (InvalidInput, SqlRefused) as error:
        fields.problem(name, str(error))


def _check_names(fields: FieldReader, lists: Mapping[str, list[dict[str, Any]]]) -> None:
    """Metrics and dimensions share one space of names, for a condition may name both."""
    seen = {_OWN}
    for kind in ("metrics", "dimensions"):
        for place, each in enumerate(lists[kind]):
            name = fold_name(str(each.get("name", "")))
            if name and name in seen:
                fields.problem(f"{kind}[{place}].name", f"{short(each['name'])} stands there twice, or is reserved.")
            seen.add(name)


def _check_calculated(fields: FieldReader, layer: SemanticLayer, dialect: str) -> None:
    """Check the metrics that name others: a time, or the metrics that they are calculated from."""
    made_of: dict[str, list[str]] = {}
    names = {fold_name(name): name for name in layer.metrics}
    for place, metric in enumerate(layer.metrics.values()):
        time = layer.dimensions.get(metric.time or "")
        if metric.time and (time is None or time.grain is None):
            fields.problem(f"metrics[{place}].time", f"{metric.time} is no dimension with a `grain`.")
        if metric.table is not None:
            continue
        try:
            tree = parse(metric.sql, dialect)
            check_plain(tree)
        except (InvalidInput, SqlRefused) as error:
            hint = f"{error} Without a `table`, it calculates with metrics, as in revenue / orders."
            fields.problem(f"metrics[{place}].sql", hint)
            continue
        columns = [column.name for column in tree.find_all(exp.Column)]
        missing = [name for name in columns if fold_name(name) not in names]
        if missing or not columns:
            there = ", ".join(list(layer.metrics)[:20])
            told = f"{', '.join(missing)} is no metric" if missing else "it names no metric"
            fields.problem(f"metrics[{place}].sql", f"{told}. Give a `table`, or use: {there}.")
        made_of[metric.name] = [names[fold_name(name)] for name in columns if fold_name(name) in names]
    for place, name in enumerate(layer.metrics):
        if _leads_to(name, name, made_of, set()):
            fields.problem(f"metrics[{place}].sql", f"{name} is calculated from itself.")


def _leads_to(name: str, end: str, made_of: Mapping[str, list[str]], seen: set[str]) -> bool:
    for each in made_of.get(name, ()):
        if each == end:
            return True
        if each not in seen:
            seen.add(each)
            if _leads_to(each, end, made_of, seen):
                return True
    return False
