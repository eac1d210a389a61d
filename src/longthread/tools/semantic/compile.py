"""Compiles a request for metrics to one SELECT.

Metrics of one table, with the same filter, are aggregated together; each such group becomes a part of its own, and the
parts are put together by their dimensions after that. A part reaches the tables of its dimensions along keys, so that
no join multiplies the rows of a metric.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, TypeVar

from sqlglot import exp

from longthread.errors import InvalidInput
from longthread.model.semantics import GRAINS, DimensionDefinition, Grain, MetricDefinition, SemanticLayer
from longthread.tools.analysis.dialects.dialect import find_dialect
from longthread.tools.analysis.schema import Schema, Table
from longthread.tools.analysis.sql_text import write_sql
from longthread.tools.semantic.expressions import (
    JoinGraph,
    KeyJoin,
    bind,
    conditions,
    divided_safely,
    fold_name,
    make_unknown_name_error,
    parse,
    substitute_columns,
    truncate_moment,
)

T = TypeVar("T", MetricDefinition, DimensionDefinition)
METRIC_TIME = "metric_time"
"""Each metric's own time, as a dimension of all."""


@dataclass(frozen=True, slots=True)
class MetricRequest:
    """What is asked: metrics `by` dimensions, `where` a condition over both holds, in an `order`, at most `limit`."""

    metrics: Sequence[str]
    by: Sequence[str] = ()
    where: str = ""
    order: Sequence[str] = ()
    limit: int | None = None


@dataclass(frozen=True, slots=True)
class CompiledMetrics:
    """The statement, the metrics that it computes, and the joins whose keys must be found to be unique before it."""

    sql: str
    metrics: tuple[str, ...]
    unproven: tuple[KeyJoin, ...]


class Split(NamedTuple):
    """A dimension that is asked for. `dimension` is None for each metric's own time."""

    name: str
    dimension: DimensionDefinition | None
    grain: Grain | None


def compile_metrics(layer: SemanticLayer, schema: Schema, dialect: str, request: MetricRequest) -> CompiledMetrics:
    """Compile a request. Raises InvalidInput, SqlRefused, TableNotFound; each names what there is."""
    return _Compiler(layer, schema, dialect, request).compile()


class _Compiler:
    def __init__(self, layer: SemanticLayer, schema: Schema, dialect: str, request: MetricRequest) -> None:
        self._layer = layer
        self._schema = schema
        self._dialect = dialect
        self._request = request
        self._graph = JoinGraph(schema, layer.joins)
        self._unproven: dict[KeyJoin, None] = {}
        self._metrics = list(dict.fromkeys(self._metric(name) for name in request.metrics))
        if not self._metrics:
            raise InvalidInput(reason=f"Name a metric. Metrics: {', '.join(layer.metrics)}.")
        self._splits = list({split.name: split for split in map(self._split, request.by)}.values())
        self._rows: list[exp.Expr] = []
        self._groups: list[exp.Expr] = []
        """The conditions over dimensions, and those over metrics."""

    def compile(self) -> CompiledMetrics:
        if self._request.where.strip():
            self._read_where()
        named = [*self._metrics, *(self._metric(column.name) for each in self._groups for column in _columns(each))]
        leaves = list(dict.fromkeys(leaf for metric in named for leaf in self._leaves(metric)))
        parts: dict[tuple[str, str, str], list[MetricDefinition]] = {}
        for leaf in leaves:
            # Metrics of different times are apart where these are asked for.
            time = leaf.time or "" if self._asks_own_time() else ""
            parts.setdefault((fold_name(leaf.table or ""), leaf.where or "", time), []).append(leaf)
        groups = list(parts.values())
        if len(groups) == 1:
            select, scope = self._aggregate_metrics(groups[0])
            tree = self._add_metrics(select, {metric.name: scope.aggregate(metric) for metric in groups[0]})
        else:
            tree = self._unite_parts(groups)
        names = tuple(metric.name for metric in self._metrics)
        text = write_sql(self._order_rows(tree), self._dialect, comments=False)
        return CompiledMetrics(text, names, tuple(self._unproven))

    def _unite_parts(self, groups: Sequence[Sequence[MetricDefinition]]) -> exp.Select:
        """Return the statement of several parts: their rows one below the other, then grouped again."""
        stem = "part"
        while any(label.casefold().rpartition(".")[2].startswith(stem) for label in self._schema.tables):
            stem += "s"
        parts = {f"{stem}_{number}": metrics for number, metrics in enumerate(groups, 1)}
        values: dict[str, exp.Expr] = {}
        queries: dict[str, exp.Select] = {}
        for part, metrics in parts.items():
            select, scope = self._aggregate_metrics(metrics)
            made = {metric.name: scope.aggregate(metric) for metric in metrics}
            queries[part] = select.select(*(_as(tree, name) for name, tree in made.items()))
            for name, tree in made.items():
                value = exp.Max(this=_column(stem, name))
                # Of what has no row in this part, none was counted.
                counts = isinstance(tree, exp.Count)
                values[name] = exp.Coalesce(this=value, expressions=[_number(0)]) if counts else value
        rows = exp.union(*(self._rows_of(part, parts) for part in parts), distinct=False)
        below = exp.Subquery(this=rows, alias=exp.TableAlias(this=exp.to_identifier(stem, quoted=True)))
        united = exp.select(*(_as(_column(stem, each.name), each.name) for each in self._splits)).from_(below)
        for part, query in queries.items():
            united = united.with_(part, as_=query)
        return self._add_metrics(self._group_rows(united), values)

    def _rows_of(self, part: str, parts: Mapping[str, Sequence[MetricDefinition]]) -> exp.Select:
        """Return the rows of one part, with the columns of all: the others give theirs, with their types, no rows."""
        columns = [_as(_column(part, each.name), each.name) for each in self._splits]
        columns += [_as(_column(each, metric.name), metric.name) for each in parts for metric in parts[each]]
        select = exp.select(*columns).from_(exp.to_table(part))
        never = exp.EQ(this=_number(1), expression=_number(0))
        for other in parts:
            if other != part:
                select = select.join(exp.to_table(other), on=never.copy(), join_type="left")
        return select

    def _add_metrics(self, select: exp.Select, values: Mapping[str, exp.Expr]) -> exp.Select:
        """Add the metrics that are asked for, and the conditions over metrics. `values` are those of the leaves."""
        for metric in self._metrics:
            select.select(_as(self._value(metric, values), metric.name), copy=False)
        for each in self._groups:
            condition = substitute_columns(each, lambda column: self._value(self._metric(column.name), values))
            select = select.having(condition, copy=False)
        return select

    def _value(self, metric: MetricDefinition, values: Mapping[str, exp.Expr]) -> exp.Expr:
        if metric.table is not None:
            return values[metric.name].copy()
        tree = divided_safely(parse(metric.sql, self._dialect))
        return substitute_columns(tree, lambda column: self._value(self._metric(column.name), values))

    def _aggregate_metrics(self, metrics: Sequence[MetricDefinition]) -> tuple[exp.Select, _Scope]:
        """Return the SELECT of the dimensions from the table of metrics, and its scope."""
        first = metrics[0]
        scope = _Scope(self._schema, self._graph, self._dialect, first)
        selected = [_as(self._dimension(split, first, scope), split.name) for split in self._splits]
        filters = [
            substitute_columns(each, lambda column: self._dimension(self._split(_name_dimension(column)), first, scope))
            for each in self._rows
        ]
        if first.where:
            filters.insert(0, scope.bind_sql(first.where, scope.table, f"the metric {first.name}"))
        select = exp.select(*selected).from_(scope.source(scope.table))
        for join in scope.joins:
            pairs = zip(join.columns, join.references, strict=True)
            on = [
                exp.EQ(this=scope.column(join.table, column), expression=scope.column(join.to, reference))
                for column, reference in pairs
            ]
            select = select.join(scope.source(join.to), on=exp.and_(*on), join_type="left")
            if not join.is_certain:
                self._unproven[join] = None
        if filters:
            select = select.where(*(exp.Paren(this=each) for each in filters))
        return self._group_rows(select), scope

    def _group_rows(self, select: exp.Select) -> exp.Select:
        if self._splits:
            select.set("group", exp.Group(expressions=[_number(n + 1) for n in range(len(self._splits))]))
        return select

    def _dimension(self, split: Split, metric: MetricDefinition, scope: _Scope) -> exp.Expr:
        """Return the expression of a dimension of a metric."""
        dimension = split.dimension or self._own_time(metric)
        if dimension.grain is not None and split.grain is not None:
            self._check_grain(dimension, split.grain)
        table = self._schema.find(dimension.table)
        if not scope.reach(table):
            others = [name for name, each in self._layer.dimensions.items() if scope.can_reach(each.table)]
            raise InvalidInput(
                reason=f"{metric.name} has no dimension {dimension.name}: no key leads from a row of "
                f"{scope.table.label} to one of {table.label}, and each would count several times. Its dimensions: "
                f"{', '.join(others) or 'none'}."
            )
        tree = scope.bind_sql(dimension.sql, table, f"the dimension {dimension.name}")
        return tree if split.grain is None else truncate_moment(tree, split.grain, self._dialect)

    def _own_time(self, metric: MetricDefinition) -> DimensionDefinition:
        table = fold_name(metric.table or "")
        own = [each for each in self._layer.dimensions.values() if each.grain and fold_name(each.table) == table]
        if metric.time is not None and metric.time in self._layer.dimensions:
            return self._layer.dimensions[metric.time]
        if len(own) == 1:
            return own[0]
        there = f"Say which under `time`: {', '.join(each.name for each in own)}." if own else "Declare one."
        raise InvalidInput(reason=f"{metric.name} has {len(own)} times, so that metric_time is not known. {there}")

    def _check_grain(self, dimension: DimensionDefinition, grain: Grain) -> None:
        finest = dimension.grain or "day"
        if GRAINS.index(grain) < GRAINS.index(finest):
            coarser = ", ".join(GRAINS[GRAINS.index(finest) :])
            raise InvalidInput(reason=f"{dimension.name} is known by {finest}, not by {grain}. Ask for: {coarser}.")

    def _read_where(self) -> None:
        """Part the condition into those over dimensions and those over metrics."""
        for each in conditions(parse(self._request.where, self._dialect)):
            about = [self._is_metric(column) for column in _columns(each)]
            if any(about) and not all(about):
                raise InvalidInput(
                    reason=f"The condition {write_sql(each, self._dialect)} mixes metrics and dimensions. Join such "
                    "conditions with AND, each over one kind."
                )
            (self._groups if any(about) else self._rows).append(each)

    def _is_metric(self, column: exp.Column) -> bool:
        return _find_item(self._layer.metrics, column.name) is not None

    def _asks_own_time(self) -> bool:
        asked = [
            *(split.name for split in self._splits),
            *(_name_dimension(c) for each in self._rows for c in _columns(each)),
        ]
        return any(self._split(name).dimension is None for name in asked)

    def _metric(self, name: str) -> MetricDefinition:
        metric = _find_item(self._layer.metrics, name)
        if metric is None:
            raise make_unknown_name_error("metric", name, self._layer.metrics)
        return metric

    def _split(self, asked: str) -> Split:
        """Return the dimension of a name, of a synonym, or of one with a grain: `order_date__month`."""
        stem, mark, ending = asked.strip().replace(".", "__").rpartition("__")
        grain = next((grain for grain in GRAINS if grain == ending.casefold()), None) if mark else None
        if (dimension := _find_item(self._layer.dimensions, asked)) is not None:
            return Split(dimension.name, dimension, dimension.grain)
        if grain is not None and fold_name(stem) == METRIC_TIME:
            return Split(f"{METRIC_TIME}__{grain}", None, grain)
        if grain is not None and (dimension := _find_item(self._layer.dimensions, stem)) is not None:
            if dimension.grain is None:
                raise InvalidInput(reason=f"{dimension.name} is no time, and has no {grain}. Ask for {dimension.name}.")
            return Split(f"{dimension.name}__{grain}", dimension, grain)
        if fold_name(asked) == METRIC_TIME:
            return Split(METRIC_TIME, None, "day")
        raise make_unknown_name_error("dimension", asked, [*self._layer.dimensions, METRIC_TIME])

    def _leaves(self, metric: MetricDefinition, above: tuple[str, ...] = ()) -> Iterator[MetricDefinition]:
        """Yield the metrics of tables that a metric is calculated from."""
        if metric.table is not None:
            yield metric
            return
        if metric.name in above:
            raise InvalidInput(reason=f"The metric {metric.name} is calculated from itself. Change its SQL.")
        for column in _columns(parse(metric.sql, self._dialect)):
            yield from self._leaves(self._metric(column.name), (*above, metric.name))

    def _order_rows(self, select: exp.Select) -> exp.Select:
        """Order and limit the rows: by default times go forward, and else the first metric goes down."""
        shown = [*(split.name for split in self._splits), *(metric.name for metric in self._metrics)]
        times = [f"{split.name} asc" for split in self._splits if split.grain is not None]
        default = times or ([f"{self._metrics[0].name} desc"] if self._splits else [])
        for each in self._request.order or default:
            words = each.split()
            down = len(words) > 1 and words[-1].casefold() == "desc"
            plain = " ".join(words[:-1]) if len(words) > 1 and words[-1].casefold() in ("asc", "desc") else each
            name = self._shown_name(plain)
            if name not in shown:
                raise InvalidInput(reason=f"{plain} is not among what is asked. Order by: {', '.join(shown)}.")
            # Without NULLS LAST, MySQL has no expression over an aggregate's name either: its own order stays.
            first = not find_dialect(self._dialect).has_nulls_last and not down
            key = exp.Ordered(this=exp.to_identifier(name, quoted=True), desc=down, nulls_first=first)
            select = select.order_by(key, copy=False)
        return select if self._request.limit is None else select.limit(self._request.limit, copy=False)

    def _shown_name(self, name: str) -> str:
        metric = _find_item(self._layer.metrics, name)
        return metric.name if metric is not None else self._split(name).name


class _Scope:
    """The tables that a part reads: that of its metrics, and those of its dimensions."""

    def __init__(self, schema: Schema, graph: JoinGraph, dialect: str, metric: MetricDefinition) -> None:
        self.table = schema.find(metric.table or "")
        self.joins: list[KeyJoin] = []
        self._schema = schema
        self._graph = graph
        self._dialect = dialect
        self._aliases = {self.table.label: self.table.label.rpartition(".")[2]}

    def aggregate(self, metric: MetricDefinition) -> exp.Expr:
        return self.bind_sql(metric.sql, self.table, f"the metric {metric.name}")

    def bind_sql(self, sql: str, table: Table, owner: str) -> exp.Expr:
        return bind(parse(sql, self._dialect), table, self._aliases[table.label], f"The SQL of {owner}")

    def column(self, table: Table, name: str) -> exp.Column:
        return exp.column(name, table=self._aliases[table.label], quoted=True)

    def source(self, table: Table) -> exp.Table:
        alias = exp.TableAlias(this=exp.to_identifier(self._aliases[table.label], quoted=True))
        return exp.Table(**_named_parts(table), alias=alias)

    def can_reach(self, table: str) -> bool:
        return self._graph.path(self.table, self._schema.find(table)) is not None

    def reach(self, table: Table) -> bool:
        """Join the tables on the way to one. Return whether there is a way."""
        way = self._graph.path(self.table, table)
        for join in way or ():
            if join.to.label != table.label:
                self.reach(join.to)
            elif join.to.label not in self._aliases:
                bare, taken = join.to.label.rpartition(".")[2], set(self._aliases.values())
                self._aliases[join.to.label] = bare if bare not in taken else join.to.label.replace(".", "_")
                self.joins.append(join)
        return way is not None


def unproven_key(join: KeyJoin, dialect: str) -> str:
    """Return the statement that finds a value which several rows have, of columns that should tell one row."""
    columns = [exp.column(name, quoted=True) for name in join.references]
    select = exp.select(*columns).from_(exp.Table(**_named_parts(join.to)))
    select = select.where(*(column.copy().is_(exp.null()).not_() for column in columns))
    select.set("group", exp.Group(expressions=[column.copy() for column in columns]))
    select = select.having(exp.GT(this=exp.Count(this=exp.Star()), expression=_number(1))).limit(1)
    return write_sql(select, dialect)


def _named_parts(table: Table) -> dict[str, exp.Identifier]:
    """Return a table's name as parts of its node. Where a policy holds, `table.sql` is the policy's own."""
    names = [exp.to_identifier(part, quoted=True) for part in reversed(table.label.split("."))]
    return dict(zip(("this", "db", "catalog"), names, strict=False))


def _find_item(items: Mapping[str, T], name: str) -> T | None:
    """Return the item of a name, or else the only one of a synonym."""
    wanted = fold_name(name)
    for key, item in items.items():
        if fold_name(key) == wanted:
            return item
    found = [item for item in items.values() if any(fold_name(each) == wanted for each in item.synonyms)]
    if len(found) > 1:
        raise InvalidInput(reason=f"{name} may mean {' or '.join(each.name for each in found)}. Say which.")
    return found[0] if found else None


def _columns(tree: exp.Expr) -> list[exp.Column]:
    return list(tree.find_all(exp.Column))


def _name_dimension(column: exp.Column) -> str:
    """Return the name of a dimension in a condition; `order_date.month` means its month."""
    return f"{column.table}__{column.name}" if column.name.casefold() in GRAINS and column.table else column.name


def _column(table: str, name: str) -> exp.Column:
    return exp.column(name, table=table, quoted=True)


def _as(tree: exp.Expr, name: str) -> exp.Alias:
    return exp.Alias(this=tree, alias=exp.to_identifier(name, quoted=True))


def _number(value: int) -> exp.Expr:
    return exp.Literal.number(value)
