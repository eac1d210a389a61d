"""A query plan: what is asked, free of language and dialect."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from longthread_demo.schema import Ref

AggregateFunction = Literal["count", "distinct", "sum", "avg", "min", "max"]
Operator = Literal[
    "=",
    "!=",
    ">",
    ">=",
    "<",
    "<=",
    "range",
    "ranges",
    "newest",
    "in",
    "not in",
    "null",
    "not null",
    "like",
    "not like",
    "not >",
    "exists",
    "not exists",
]


@dataclass(frozen=True)
class Field:
    """A column in the query. `via` is the foreign-key column that leads to its table, where there are several."""

    ref: Ref
    via: Ref | None = None


def field_of(table: str, column: str) -> Field:
    """The field of a table's column."""
    return Field(Ref(table, column))


@dataclass(frozen=True)
class PlannedMeasure:
    """A function over the rows of `table`. `factor` is multiplied in (unit price by quantity)."""

    function: AggregateFunction
    table: str
    field: Field | None = None
    factor: Field | None = None


@dataclass(frozen=True)
class Dimension:
    """What is grouped by: columns that name one thing together, and its key; or a date cut to a grain."""

    fields: tuple[Field, ...]
    grain: str = ""
    key: Field | None = None


@dataclass(frozen=True)
class Condition:
    """A filter. `range` holds (from, to) ISO dates, half-open, None for open; `ranges` several such pairs, and one must
    hold; `newest` (grain, steps back)."""

    field: Field
    operator: Operator
    values: tuple[Any, ...] = ()


@dataclass(frozen=True)
class Having:
    """A condition on a measure of the group."""

    measure: PlannedMeasure
    operator: str
    value: float


@dataclass(frozen=True)
class QueryPlan:
    """A query. Without measures it lists `shown` columns of `table`; with them it aggregates, by `dimensions`."""

    table: str
    shown: tuple[Field, ...] = ()
    measures: tuple[PlannedMeasure, ...] = ()
    dimensions: tuple[Dimension, ...] = ()
    conditions: tuple[Condition, ...] = ()
    having: tuple[Having, ...] = ()
    order: Field | PlannedMeasure | Literal["dimension", ""] = ""
    descending: bool = True
    limit: int | None = None
    offset: int = 0
    distinct: bool = False
    wrap: Literal["", "count", "avg", "max", "min", "sum"] = ""
    """A function over the groups: how many there are, or of their first measure."""
    keep_empty: bool = False
    """Whether groups without any row count as zero."""
    share: bool = False
    """Whether the measure is a percentage: of the rows of `part` among all, or of each group among all groups."""
    part: tuple[Condition, ...] = ()
    """What a percentage is of, in addition to the conditions that hold for all."""
    together: bool = False
    """Whether the measures are of several tables, each counted by itself."""
    implied: bool = False
    """Whether the columns shown were chosen by us and not named in the question."""

    def fields(self) -> list[Field]:
        """Every column the query touches."""
        found = [*self.shown, *(item.field for item in (*self.conditions, *self.part) if item.field.ref.column)]
        for measure in (*self.measures, *(item.measure for item in self.having)):
            found += [field for field in (measure.field, measure.factor) if field is not None]
        for dimension in self.dimensions:
            found += [*dimension.fields, *([dimension.key] if dimension.key else [])]
        if isinstance(self.order, Field):
            found.append(self.order)
        elif isinstance(self.order, PlannedMeasure):
            found += [field for field in (self.order.field, self.order.factor) if field is not None]
        return found

    def tables(self) -> list[str]:
        """Every table it names, the main one first; tables that only join are not among them."""
        names = [self.table, *(measure.table for measure in (*self.measures, *(item.measure for item in self.having)))]
        names += [field.ref.table for field in self.fields()]
        names += [condition.field.ref.table for condition in (*self.conditions, *self.part)]
        return list(dict.fromkeys(names))
