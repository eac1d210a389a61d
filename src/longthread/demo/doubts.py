"""What makes the numbers of an answer doubtful: a row of sums among the others, numbers and dates kept as text."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from longthread.demo.query.plan import QueryPlan
from longthread.demo.schema import DemoColumn, DemoSchema, DemoTable
from longthread.tools.analysis.schema_linking import atoms

_SUM_ROW = re.compile(r'Its last row begins with "(.*)": it may be a sum of the others\.')
_AS_TEXT = re.compile(r'kept as text(?!: (?:"[^"]*" may be a code|values such as "[^"]*" begin with zeros))')


def doubts_of(plan: QueryPlan, schema: DemoSchema) -> list[tuple[str, str]]:
    """The phrases to say of what a plan uses, each with its table or column."""
    summed = (("sum_row", name) for name in plan.tables() if _holds_a_sum(plan, schema.tables[name]))
    used = dict.fromkeys(field.ref for field in plan.fields() if field.ref.column)
    texts = (
        ("as_text", f"{ref.table}.{ref.column}")
        for ref in used
        if _is_kept_as_text(schema.tables[ref.table], schema.column(ref))
    )
    return [*summed, *texts]


def texts_named(said: str, tables: Iterable[str], schema: DemoSchema) -> list[str]:
    """The columns of these tables that are kept as text and that a text names."""
    words = set(atoms(said))
    named = ((table, column) for name in tables for table in [schema.tables[name]] for column in table.columns)
    return [
        f"{table.name}.{column.name}"
        for table, column in named
        if column.words and words.issuperset(column.words) and _is_kept_as_text(table, column)
    ]


def _holds_a_sum(plan: QueryPlan, table: DemoTable) -> bool:
    """Whether a table's last row may be a sum of the others, and no condition on its label leaves it out."""
    labels = [found[1] for note in table.notes if (found := _SUM_ROW.search(note))]
    return bool(labels) and not any(labels[0] not in values for values in _wanted_labels(plan, table))


def _wanted_labels(plan: QueryPlan, table: DemoTable) -> Iterator[tuple[object, ...]]:
    """The values that conditions want of the first column, which has the label of a sum."""
    for condition in plan.conditions:
        ref = condition.field.ref
        if condition.operator in ("=", "in") and ref.table == table.name and ref.column == table.columns[0].name:
            yield condition.values


def _is_kept_as_text(table: DemoTable, column: DemoColumn) -> bool:
    notes = [note for note in table.notes if note.startswith(f'Column "{column.name}": ')]
    return not column.keyish and any(_AS_TEXT.search(note) for note in (*notes, column.note))
