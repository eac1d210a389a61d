"""Questions that the demo model can answer about a database, made from its tables."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import islice

from longthread.tools.analysis.schema_linking import is_cjk
from longthread_demo.near import near
from longthread_demo.nouns import name_in_words, table_in_words, table_plural
from longthread_demo.query.display import amounts
from longthread_demo.query.plan import Dimension, PlannedMeasure, QueryPlan, field_of
from longthread_demo.question.parse import understand
from longthread_demo.schema import DemoSchema, DemoTable
from longthread_demo.schematalk import SchemaQuestion, schema_question
from longthread_demo.words.vocabulary import vocabulary

_SHOWN = 3
_TRIED = 4
"""Tables for which a question of one kind is tried."""


@dataclass(frozen=True)
class Suggestion:
    """A question, and what it means."""

    question: str
    meant: QueryPlan | SchemaQuestion


def examples_for(schema: DemoSchema, language: str) -> list[str]:
    """Up to three questions about the largest tables. The model reads each as it is meant."""
    ranked = sorted(schema.tables.values(), key=lambda table: -(table.rows or 0))
    named = [table for table in ranked if not _joins_only(table)] or ranked
    if not named:
        return []
    chinese = language == "zh"
    kinds = (
        (_counted(table, chinese) for table in named),
        (_grouped(table, chinese) for table in named),
        (_averaged(table, schema, chinese) for table in named),
        (_listed(table, chinese) for table in (*named[1:], named[0])),
        (_described(table, chinese) for table in named),
    )
    found: list[str] = []
    for kind in kinds:
        sound = (each.question for each in islice(filter(None, kind), _TRIED) if is_read_as_meant(each, schema))
        found += islice(sound, 1 if len(found) < 2 else _SHOWN)
    return found[:_SHOWN]


def is_read_as_meant(example: Suggestion, schema: DemoSchema) -> bool:
    """Whether the model would read a question as it is meant."""
    about = schema_question(example.question, schema)
    if about is not None or isinstance(example.meant, SchemaQuestion):
        return about == example.meant
    words = vocabulary(tuple(near(schema, [example.question]).tables.values()))
    read = understand(example.question, schema, words, None)
    if read.plan is None or read.refusal or read.unknown or read.left or read.followup:
        return False
    return replace(read.plan, shown=(), order="", descending=True, keep_empty=False) == example.meant


def _counted(table: DemoTable, chinese: bool) -> Suggestion:
    question = (
        f"有多少{table_in_words(table, chinese=True)}？" if chinese else f"How many {table_plural(table)} are there?"
    )
    return Suggestion(question, QueryPlan(table.name, measures=(PlannedMeasure("count", table.name),)))


def _grouped(table: DemoTable, chinese: bool) -> Suggestion | None:
    category = _category(table)
    if category is None:
        return None
    by = name_in_words(category, chinese=chinese)
    question = (
        f"各{_in_chinese(by)}的{table_in_words(table, chinese=True)}数量"
        if chinese
        else f"How many {table_plural(table)} per {by}?"
    )
    measures, groups = (PlannedMeasure("count", table.name),), (Dimension((field_of(table.name, category),)),)
    return Suggestion(question, QueryPlan(table.name, measures=measures, dimensions=groups))


def _averaged(table: DemoTable, schema: DemoSchema, chinese: bool) -> Suggestion | None:
    amount = next((column.name for column in amounts(table, schema)), None)
    if amount is None:
        return None
    of = name_in_words(amount, chinese=chinese)
    question = (
        f"{table_in_words(table, chinese=True)}的平均{_in_chinese(of)}是多少？"
        if chinese
        else f"What is the average {of} of {table_plural(table)}?"
    )
    measure = PlannedMeasure("avg", table.name, field_of(table.name, amount))
    return Suggestion(question, QueryPlan(table.name, measures=(measure,)))


def _in_chinese(name: str) -> str:
    """A name within Chinese text, which leaves room around Latin letters."""
    return name if is_cjk(name) else f" {name} "


def _listed(table: DemoTable, chinese: bool) -> Suggestion:
    question = f"列出{table_in_words(table, chinese=True)}" if chinese else f"List the {table_plural(table)}"
    return Suggestion(question, QueryPlan(table.name, implied=True))


def _described(table: DemoTable, chinese: bool) -> Suggestion:
    question = f"{table.name} 有哪些列？" if chinese else f"What columns does {table.name} have?"
    return Suggestion(question, SchemaQuestion(table.name))


def _joins_only(table: DemoTable) -> bool:
    return bool(table.columns) and all(column.keyish for column in table.columns)


def _category(table: DemoTable) -> str | None:
    for column in table.columns:
        if column.kind == "text" and column.distinct is not None and 1 < column.distinct <= 50 and not column.keyish:
            return column.name
    return None
