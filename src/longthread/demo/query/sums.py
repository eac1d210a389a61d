"""A row of sums among the others, as the notes of a file's table tell it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from longthread.demo.query.plan import QueryPlan
from longthread.demo.schema import DemoSchema, DemoTable

_SUM_ROW = re.compile(r'Its last row begins with "(.*)": it may be a sum of the others\.')


@dataclass(frozen=True)
class SumRow:
    """A row that may be a sum of the others, by the label in its table's first column."""

    table: str
    label: str


def sum_rows(plan: QueryPlan, schema: DemoSchema) -> list[SumRow]:
    """The rows that may be sums of the others, in the tables of a plan, unless a condition wants other labels."""
    found = ((table, _sum_label(table)) for table in (schema.tables[name] for name in plan.tables()))
    return [SumRow(table.name, label) for table, label in found if label and _may_be_wanted(plan, table, label)]


def _sum_label(table: DemoTable) -> str:
    return next((found[1] for note in table.notes if (found := _SUM_ROW.search(note))), "")


def _may_be_wanted(plan: QueryPlan, table: DemoTable, label: str) -> bool:
    return all(label in values for values in _wanted_labels(plan, table))


def _wanted_labels(plan: QueryPlan, table: DemoTable) -> Iterator[tuple[object, ...]]:
    """The values that conditions want of the first column, which has the label of a sum."""
    for condition in plan.conditions:
        ref = condition.field.ref
        if condition.operator in ("=", "in") and ref.table == table.name and ref.column == table.columns[0].name:
            yield condition.values
