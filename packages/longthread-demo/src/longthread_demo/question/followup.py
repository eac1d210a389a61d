"""Follow-ups: a fragment such as `and by country?` or `只看2020年以后的` put onto the plan before it."""

from __future__ import annotations

from dataclasses import replace
from typing import Literal

from longthread_demo.query.display import listed_columns, naming_columns
from longthread_demo.query.plan import Condition, Field, PlannedMeasure, QueryPlan, field_of
from longthread_demo.question.nouns import amount_measure, default_amount, dimension_of_table
from longthread_demo.question.reading import QuestionReading
from longthread_demo.schema import Ref

_LEADS = ("and", "but", "or", "so", "then", "那", "那么", "再", "还有", "以及")


def is_followup(r: QuestionReading) -> bool:
    """Whether a question leans on the one before: it says so, or it names nothing to ask about."""
    first = next((chunk for chunk in r.chunks if not chunk.sign), None)
    if first is None:
        return False
    prepositional = _begins_with_preposition(r) and r.previous is not None and not _whole(r) and not _ranks(r)
    if prepositional or r.resort is not None:
        return True
    leads = (first.text.lower() in _LEADS or _only_groups(r)) and not _whole(r)
    marked = _says_so(r) and not _whole(r)
    pointing = any(chunk.op("pron") and chunk.text.lower() in _POINTING for chunk in r.chunks) and not _named_before(r)
    return leads or marked or pointing or not _names_something(r)


def is_marked(r: QuestionReading) -> bool:
    """Whether a question says that it follows another: `and …`, `what about …`, `那…呢`."""
    first = next((chunk for chunk in r.chunks if not chunk.sign), None)
    leads = first is not None and first.text.lower() in _LEADS
    return leads or _says_so(r)


def _says_so(r: QuestionReading) -> bool:
    """Whether a word points back. A *that* or *it* after a noun, and the *it* of weather, stand for nothing earlier."""
    for at, chunk in enumerate(r.chunks):
        if not chunk.op("follow", "pron"):
            continue
        inner = chunk.text.lower() in ("that", "it", "its", "their", "they", "now", "just", "only", "then", "also")
        named = any(r.is_noun(p) or r.chunks[p].op("unit") for p in range(at))
        if not (inner and named and (chunk.op("pron") or chunk.text.lower() in ("now", "then"))):
            return True
    return False


_POINTING = frozenset(
    [
        "those",
        "them",
        "these",
        "they",
        "ones",
        "of",
        "them",
        "of",
        "those",
        "他们",
        "她们",
        "它们",
        "这些",
        "那些",
        "其中",
    ]
) | {
    "of them",
    "of those",
}


_PREPOSITIONS = frozenset(
    (
        "in",
        "for",
        "from",
        "of",
        "at",
        "with",
        "without",
        "excluding",
        "except",
        "since",
        "before",
        "after",
        "between",
        "on",
        "under",
        "over",
        "within",
        "not",
    )
)


def _begins_with_preposition(r: QuestionReading) -> bool:
    first = next((chunk for chunk in r.chunks if not chunk.sign), None)
    return first is not None and first.text.lower() in _PREPOSITIONS


def _ranks(r: QuestionReading) -> bool:
    return any(chunk.op("list", "which", "most", "high", "low", "adj") for chunk in r.chunks)


def _only_groups(r: QuestionReading) -> bool:
    """`by department`, `按部门呢`: nothing but a grouping."""
    rest = [
        at
        for at, chunk in enumerate(r.chunks)
        if not (chunk.sign or r.filler(at) or r.role.get(at) == "group" or chunk.op("follow"))
    ]
    return bool(r.groups) and not rest and r.previous is not None


def _whole(r: QuestionReading) -> bool:
    """Whether a question could be asked by itself: it names a table, and asks for something."""
    named = any(chunk.of("table") and chunk.of("table")[0].score >= 0.85 for chunk in r.chunks)
    asks = any(
        chunk.op("count", "list", "which", "sum", "avg", "max", "min", "most", "high", "low", "adj")
        for chunk in r.chunks
    )
    return named and asks and not any(chunk.op("pron") and chunk.text.lower() in _POINTING for chunk in r.chunks)


def _named_before(r: QuestionReading) -> bool:
    """Whether a table is named before the pronoun, which then stands for it."""
    for chunk in r.chunks:
        if chunk.op("pron") and chunk.text.lower() in _POINTING:
            return False
        if chunk.of("table") and chunk.of("table")[0].score >= 0.85:
            return True
    return False


def _names_something(r: QuestionReading) -> bool:
    if any(chunk.of("table") and chunk.of("table")[0].score >= 0.85 for chunk in r.chunks):
        return True
    asks = any(
        chunk.op("count", "list", "which", "sum", "avg", "max", "min", "most", "least", "high", "low", "adj", "howmuch")
        for chunk in r.chunks
    )
    if any(chunk.op("list") for chunk in r.chunks) and any(chunk.of("value") for chunk in r.chunks):
        return True
    if r.groups and any(chunk.noun >= 0.5 and r.role.get(at) == "aggregate" for at, chunk in enumerate(r.chunks)):
        return True
    return asks and any(chunk.noun >= 0.5 for chunk in r.chunks) and not _bare(r)


def _bare(r: QuestionReading) -> bool:
    """`and the average?`, `how many?`: an operation whose noun is missing."""
    roles = set(r.role.values())
    targets = [target for _, target in r.counted] + [target for _, _, target in r.aggregates]
    made = r.superlative
    if made is not None and made.target is None and not made.concept:
        return r.previous is not None and not any(chunk.of("table") for chunk in r.chunks)
    return bool(targets) and all(target is None for target in targets) and not {"entity", "focus"} & roles


def merged(r: QuestionReading, previous: QueryPlan, new: QueryPlan) -> QueryPlan:
    """The plan before, with what the fragment changes."""
    if previous.together:
        r.refuse("two_things", r.question)
        return previous
    if r.resort is not None and previous.measures:
        return replace(previous, order=previous.measures[0], descending=r.resort)
    replaced = _new_subject(r, previous, new)
    if replaced is not None:
        return replaced
    if _lists_anew(r, previous, new):
        shown = tuple(
            field_of(previous.table, name) for name in listed_columns(r.schema.tables[previous.table], r.schema)
        )
        return QueryPlan(
            previous.table, shown=shown, conditions=_conditions(previous, new), limit=new.limit, implied=True
        )
    measures = _measures(r, previous, new)
    dimensions = new.dimensions or (previous.dimensions if not _pointing(r) or not r.aggregates else ())
    ranked = _ranked(r, previous, new)
    if ranked is not None:
        return ranked
    if not measures and dimensions:
        measures = (PlannedMeasure("count", previous.table),)
    counted_anew = bool(r.counted) and all(target is None for _, target in r.counted)
    if counted_anew and not new.dimensions:
        dimensions = ()
        measures = (PlannedMeasure("count", previous.table),)
    lists = bool(new.shown) and not new.implied and not measures and not r.groups
    base = measures[0].table if measures else previous.table
    if r.aggregates and not new.dimensions and previous.limit == 1 and previous.dimensions:
        previous = replace(previous, limit=None, offset=0)  # 那平均呢 after 最高的是哪个: of every group again
    grouped_anew = bool(new.dimensions)
    plan = replace(
        previous,
        offset=r.offset,
        table=base,
        measures=() if lists else measures,
        dimensions=() if lists else dimensions,
        conditions=_conditions(previous, new),
        having=(*(() if grouped_anew else previous.having), *new.having),
        wrap=new.wrap or ("" if grouped_anew or counted_anew else previous.wrap),
        shown=_shown(r, previous, new, measures),
        limit=new.limit if new.limit is not None else (None if grouped_anew or counted_anew else previous.limit),
        distinct=new.distinct or previous.distinct,
    )
    return _order(r, plan, previous, new)


def _ranked(r: QuestionReading, previous: QueryPlan, new: QueryPlan) -> QueryPlan | None:
    """A superlative that asks of the same rows as before."""
    if r.superlative is None:
        return None
    if new.measures or new.dimensions or (new.order and not new.measures):
        return replace(new, conditions=_conditions(previous, new))
    return None


def _lists_anew(r: QuestionReading, previous: QueryPlan, new: QueryPlan) -> bool:
    """`and list them`, `都有哪些？` after a count: the rows that were counted."""
    counted = bool(previous.measures) and previous.measures[0].function == "count" and not previous.dimensions
    asks = any(chunk.op("list") or chunk.text.lower() in _WHO for chunk in r.chunks)
    return counted and asks and not (r.counted or r.aggregates or r.groups or new.dimensions or r.superlative)


_WHO = frozenset(
    (
        "who",
        "who are",
        "which",
        "which ones",
        "what are",
        "有哪些",
        "都有哪些",
        "是哪些",
        "哪些",
        "有谁",
        "都有谁",
        "是谁",
    )
)


def _pointing(r: QuestionReading) -> bool:
    return any(chunk.op("pron") for chunk in r.chunks)


def _measures(r: QuestionReading, previous: QueryPlan, new: QueryPlan) -> tuple[PlannedMeasure, ...]:
    if r.aggregates and previous.measures and all(target is None for _, _, target in r.aggregates):
        function = r.aggregates[0][0]
        field = next((m.field for m in previous.measures if m.field is not None), None)
        if field is not None:
            r.refusal = None
            return tuple(replace(m, function=function) for m in previous.measures if m.field is not None)  # type: ignore[arg-type]
        column = default_amount(r, r.schema.tables[previous.table])
        if column is not None:
            r.refusal = None
            made = amount_measure(r, function, None, previous.table)
            return (made,) if made else ()
    if r.counted or r.aggregates:
        return new.measures
    return previous.measures


def _shown(
    r: QuestionReading, previous: QueryPlan, new: QueryPlan, measures: tuple[PlannedMeasure, ...]
) -> tuple[Field, ...]:
    if measures and not (new.shown and not new.implied):
        return previous.shown
    if new.shown and not new.implied:
        names = naming_columns(r.schema.tables[previous.table])
        kept = previous.shown or tuple(field_of(previous.table, name) for name in names)
        if any(chunk.text.lower() in ("only", "just", "只显示", "只") for chunk in r.chunks):
            return new.shown
        kept = tuple(
            field for field in kept if not previous.implied or field.ref.column in names or field == previous.order
        )
        return tuple(dict.fromkeys((*kept, *new.shown)))
    return previous.shown


def _order(r: QuestionReading, plan: QueryPlan, previous: QueryPlan, new: QueryPlan) -> QueryPlan:
    if new.order:
        return replace(plan, order=_sortable(r, plan, new.order), descending=new.descending)
    if isinstance(previous.order, PlannedMeasure):
        kept: PlannedMeasure | Literal[""] = plan.measures[0] if plan.measures and plan.dimensions else ""
        if plan.measures and previous.order in plan.measures:
            kept = previous.order
        return replace(plan, order=kept)
    if new.limit is not None and plan.measures and plan.dimensions and not plan.order:
        return replace(plan, order=plan.measures[0], descending=True)
    if plan.measures and isinstance(plan.order, Field):
        return replace(plan, order="", limit=new.limit)
    return plan


def _sortable(
    r: QuestionReading, plan: QueryPlan, order: PlannedMeasure | Field | str
) -> PlannedMeasure | Field | Literal["", "dimension"]:
    """What a sort says among groups: the measure of the column that it names. Refused where no group has it."""
    if not isinstance(order, Field) or not plan.measures:
        return order  # type: ignore[return-value]  # never another string
    if any(order in dimension.fields for dimension in plan.dimensions):
        return order
    measured = next((measure for measure in plan.measures if measure.field == order), None)
    if measured is None or not plan.dimensions:
        r.refuse("no_order", order.ref.column)
    return measured or order


def _conditions(previous: QueryPlan, new: QueryPlan) -> tuple[Condition, ...]:
    """Return the old filters but for filters on a column that is filtered again; a new date replaces an old one."""
    fresh = {(item.field.ref, item.field.via) for item in new.conditions}
    dated = any(item.operator in _DATED for item in new.conditions)
    names = {item.field.ref.column.lower() for item in new.conditions if item.operator in ("=", "in", "!=")}
    kept = [
        item
        for item in previous.conditions
        if (item.field.ref, item.field.via) not in fresh
        and not (dated and item.operator in _DATED)
        and not (
            item.operator in ("=", "in")
            and item.field.ref.column.lower() in names
            and item.field.ref.column.lower() != "name"
        )
    ]
    return (*kept, *new.conditions)


_DATED = ("range", "ranges", "newest")


def _new_subject(r: QuestionReading, previous: QueryPlan, new: QueryPlan) -> QueryPlan | None:
    """`and employees?`: the same question about another table."""
    named = [at for at in range(len(r)) if r.role.get(at) in ("entity", "context") and r.table_at(at)]
    if (
        not named
        or _begins_with_preposition(r)
        or r.counted
        or r.aggregates
        or r.groups
        or r.superlative
        or new.table == previous.table
    ):
        return None
    if r.find("list", "which") is not None:
        return None
    table = r.table_at(named[0]) or new.table
    if previous.measures and previous.dimensions and previous.measures[0].function != "count":
        return replace(previous, dimensions=(dimension_of_table(r, table),), order=previous.measures[0], limit=None)
    carried = _carried(r, previous, table)
    if not previous.measures:
        return replace(new, table=table, conditions=(*carried, *(c for c in new.conditions if c.operator != "exists")))
    measures = (PlannedMeasure("count", table),)
    return replace(
        previous,
        table=table,
        measures=measures,
        conditions=(*carried, *(c for c in new.conditions if c.operator != "exists")),
        order=measures[0] if previous.order else "",
    )


def _carried(r: QuestionReading, previous: QueryPlan, table: str) -> list[Condition]:
    """Old filters that the other table can have too: on a column of the same name."""
    names = {column.name.lower(): column.name for column in r.schema.tables[table].columns}
    kept = []
    for item in previous.conditions:
        same = names.get(item.field.ref.column.lower())
        if (
            same
            and item.field.ref.column.lower() not in ("name", "id")
            and item.operator not in ("exists", "not exists")
        ):
            kept.append(replace(item, field=Field(Ref(table, same))))
        else:
            r.note("filter_dropped", item.field.ref.column or item.field.ref.table)
    return kept
