"""What makes the numbers of an answer doubtful: rows that are all read, numbers and dates kept as text."""

from __future__ import annotations

import re
from collections.abc import Iterable

from longthread.tools.analysis.schema_linking import atoms
from longthread_demo.query.plan import QueryPlan
from longthread_demo.schema import DemoColumn, DemoSchema, DemoTable

_AS_TEXT = re.compile(r'kept as text(?!: (?:"[^"]*" may be a code|values such as "[^"]*" begin with zeros))')


def texts_used(plan: QueryPlan, schema: DemoSchema) -> list[str]:
    """The columns of a plan that are kept as text, though they hold numbers or dates."""
    used = dict.fromkeys(field.ref for field in plan.fields() if field.ref.column)
    return [
        f"{ref.table}.{ref.column}" for ref in used if _is_kept_as_text(schema.tables[ref.table], schema.column(ref))
    ]


def reads_all_rows(plan: QueryPlan) -> bool:
    """Whether a plan surely reads every row of its table, so that nothing need be counted."""
    dated = any(dimension.grain for dimension in plan.dimensions)
    return len(plan.tables()) == 1 and not (plan.conditions or plan.part or plan.limit is not None or dated)


def texts_named(said: str, tables: Iterable[str], schema: DemoSchema) -> list[str]:
    """The columns of these tables that are kept as text and that a text names."""
    words = set(atoms(said))
    named = ((table, column) for name in tables for table in [schema.tables[name]] for column in table.columns)
    return [
        f"{table.name}.{column.name}"
        for table, column in named
        if column.words and words.issuperset(column.words) and _is_kept_as_text(table, column)
    ]


def _is_kept_as_text(table: DemoTable, column: DemoColumn) -> bool:
    notes = [note for note in table.notes if note.startswith(f'Column "{column.name}": ')]
    return not column.keyish and any(_AS_TEXT.search(note) for note in (*notes, column.note))
