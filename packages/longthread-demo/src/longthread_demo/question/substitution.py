"""Whether a plan uses the column that the question names, and no neighbour of a name that is like it."""

from __future__ import annotations

from dataclasses import replace

from longthread_demo.query.plan import QueryPlan
from longthread_demo.question.reading import QuestionReading
from longthread_demo.words.chunks import PhraseChunk
from longthread_demo.words.vocabulary import Sense

_EXACT, _NAMED = 0.95, 0.85
"""Scores of a name that is said, and of one that is said in other words, or the other language."""
_TOTALS = ("total ", "总")


def refuse_substitutes(r: QuestionReading, plan: QueryPlan) -> None:
    """Refuse where a word names another column better than the one that was taken, or two of a table alike."""
    asked = replace(plan, shown=()) if plan.implied else plan
    used = {field.ref for field in asked.fields() if field.ref.column}
    for at, chunk in enumerate(r.chunks):
        if r.role.get(at) in ("value", "date") or r.table_at(at) is not None:
            continue
        columns = chunk.of("column", "flag")
        taken = next((sense for sense in columns if sense.ref in used), None)
        if taken is None:
            continue
        rivals = [sense for sense in columns if sense.ref not in used and _rivals(r, asked, sense, taken)]
        if rivals:
            names = (f"`{sense.ref.table}.{sense.ref.column}`" for sense in (taken, *rivals[:3]))
            r.refuse("two_readings", f"“{chunk.text}” = " + " / ".join(names))
        elif _total_is_lost(chunk, plan, taken):
            r.refuse("no_amount", chunk.text)
    _refuse_rows_for_amounts(r, plan)


def _rivals(r: QuestionReading, plan: QueryPlan, sense: Sense, taken: Sense) -> bool:
    """Whether a column is meant as well as the one taken, or better: called exactly so, or alike and of its kind."""
    if sense.ref.table != taken.ref.table:
        says_table = any(field.ref.column and field.ref != taken.ref for field in plan.fields())
        says_table |= r.previous is not None and r.previous.table == plan.table  # `and by city?`
        alone = not (r.anchors() or says_table) and r.schema.tables[sense.ref.table].kind == "table"
        same = sense.score == taken.score >= _EXACT and not r.foreign(taken.ref)
        return alone and same and not _linked(r, sense, taken)
    if sense.score > taken.score:
        return sense.score >= _NAMED
    column, other = (r.schema.column(one.ref) for one in (sense, taken))
    alike = sense.score == taken.score and sense.kind == taken.kind and column.kind == other.kind
    return alike and column.keyish == other.keyish and column.kind in ("number", "text")


def _linked(r: QuestionReading, one: Sense, other: Sense) -> bool:
    """Whether a declared key says that two columns hold the same values."""
    pairs = ((link.table, link.columns, link.target, link.references) for link in r.schema.links if link.declared)
    both = {(one.ref.table, (one.ref.column,)), (other.ref.table, (other.ref.column,))}
    return any({(table, columns), (target, references)} == both for table, columns, target, references in pairs)


def _total_is_lost(chunk: PhraseChunk, plan: QueryPlan, taken: Sense) -> bool:
    """Whether a total is asked for, and only the column is listed: it holds no numbers."""
    said = any(chunk.text.lower().startswith(word) and word.strip() not in taken.ref.column.lower() for word in _TOTALS)
    return said and not (plan.measures or plan.having)


def _refuse_rows_for_amounts(r: QuestionReading, plan: QueryPlan) -> None:
    """Refuse `target by region` where rows of targets would be counted that have a number column target."""
    if r.counted or r.superlative is not None or [measure.function for measure in plan.measures] != ["count"]:
        return
    for at, chunk in enumerate(r.chunks):
        numbers = [s for s in chunk.of("column") if s.ref.table == plan.table and s.score >= _EXACT]
        named = r.table_at(at) == plan.table and any(r.schema.column(s.ref).kind == "number" for s in numbers)
        if named:
            r.refuse("average_or_total", chunk.text)
