"""A row of sums among the others, as the notes of a file's table tell it."""

from __future__ import annotations

import re
from dataclasses import dataclass

from longthread_demo.query.plan import QueryPlan
from longthread_demo.schema import DemoSchema, DemoTable, Ref

_SUM_ROW = re.compile(r'Its last row begins with "(.*)": it may be a sum of the others\.', re.S)


@dataclass(frozen=True)
class SumRow:
    """A row that may be a sum of the others, by the label in its table's first column."""

    table: str
    label: str


def sum_rows(plan: QueryPlan, schema: DemoSchema) -> list[SumRow]:
    """The rows that may be sums of the others, in the tables of a plan, which its query leaves out."""
    found = ((name, unwanted_label(plan, schema.tables[name])) for name in plan.tables())
    return [SumRow(name, label) for name, label in found if label]


def unwanted_label(plan: QueryPlan, table: DemoTable) -> str:
    """The label of a table's row of sums; empty without such a row, and where a condition names the rows it wants."""
    first = table.columns[0].name if table.columns else ""
    wants = any(
        condition.operator in ("=", "in") and condition.field.ref == Ref(table.name, first)
        for condition in plan.conditions
    )
    found = (found[1] for note in table.notes if (found := _SUM_ROW.search(note)))
    return "" if wants else next(found, "")
