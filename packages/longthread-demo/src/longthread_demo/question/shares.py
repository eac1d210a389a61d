"""Percentages: `what percentage of bookings were cancelled`, 付费单集占比, `share of revenue by country`."""

from __future__ import annotations

from dataclasses import replace

from longthread_demo.query.joins import path
from longthread_demo.query.plan import QueryPlan
from longthread_demo.question.nouns import money_word
from longthread_demo.question.reading import QuestionReading

_SPANS = ("range", "ranges", "newest")


def read_shares(r: QuestionReading) -> None:
    """The word for a percentage, and the rows or the amount that it is of."""
    places = [at for at in range(len(r)) if r.free(at) and r.chunks[at].op("share") and r.chunks[at].noun < 0.85]
    if not places:
        return
    at = places[0]
    r.share = True
    counted = at > 0 and r.chunks[at - 1].number is not None  # 5 %: no question
    r.use("share", *places)
    target = None if len(places) > 1 or counted else _whole_before(r, at) if r.chinese else _whole_behind(r, at)
    if target is None:
        r.refuse("unsupported", r.text(at))
        return
    for place in range(min(at, target), max(at, target)):
        if r.free(place) and r.chunks[place].op("count", "sum") and not r.is_noun(place):
            r.use("share", place)  # 占会员总数的比例
    if r.table_at(target) is not None or not (r.chinese or _is_amount(r, target)):
        r.use("count", target)  # the rows, also of a column: `share of licences`
        r.counted.append((at, target))
    elif _is_amount(r, target):
        r.use("aggregate", target)
        r.aggregates.append(("sum", at, target))
    else:
        _of_values(r, target)


def _is_amount(r: QuestionReading, at: int) -> bool:
    return money_word(r.chunks[at].key) or (
        r.column_at(at, lambda c: c.kind == "number" and not c.keyish and not c.yearish, -1.0) is not None
    )


def _whole_behind(r: QuestionReading, at: int) -> int | None:
    """Return the table or the amount after `percentage of`, values and flags passed over."""
    for place in r.after(at, r.filler):
        if r.chunks[place].sign or place - at > 6 or r.chunks[place].op("each", "by"):
            return None
        if r.free(place) and r.is_noun(place) and (r.table_at(place) is not None or _is_amount(r, place)):
            return place
        if r.free(place) and r.is_noun(place) and _has_value_behind(r, place):
            return place
    return None


def _has_value_behind(r: QuestionReading, at: int) -> bool:
    """Return whether a column is named whose values stand after it: `licences are expired`."""
    columns = {sense.ref for sense in r.chunks[at].of("column")}
    return any(sense.ref in columns for place in range(at + 1, len(r)) for sense in r.chunks[place].of("value"))


def _whole_before(r: QuestionReading, at: int) -> int | None:
    """The noun before 占比: a table, an amount, or a column of values."""
    for place in r.before(at, r.filler):
        if r.chunks[place].sign or at - place > 6:
            return None
        if r.free(place) and r.is_noun(place) and not r.chunks[place].of("flag"):
            return place
    return None


def _of_values(r: QuestionReading, at: int) -> None:
    """`会员的性别占比`: of each value of a column."""
    table = next((p for p in range(at - 1, -1, -1) if r.free(p) and r.table_at(p)), None)
    if table is None or r.groups:
        r.refuse("unsupported", r.text(at))
        return
    r.use("group", at)
    r.groups.append(at)
    r.use("count", table)
    r.counted.append((at, table))


def as_share(r: QuestionReading, plan: QueryPlan) -> QueryPlan:
    """The plan with its measure as a percentage. Refuses where it is not clear what of what."""
    if not r.share:
        return plan
    spans = tuple(item for item in plan.conditions if item.operator in _SPANS)
    others = tuple(item for item in plan.conditions if item not in spans)
    part = others or (spans if not plan.dimensions else ())
    whole = spans if others else () if part else spans
    clear = (len(plan.dimensions) == 1 and not part) or (len(part) == 1 and not plan.dimensions)
    measured = len(plan.measures) == 1 and plan.measures[0].function in ("count", "sum")
    made = replace(plan, share=True, part=part, conditions=whole)
    if not (clear and measured) or plan.having or plan.wrap or r.superlative is not None or not _once_each(r, made):
        r.refuse("unsupported", r.question)
    return made


def _once_each(r: QuestionReading, plan: QueryPlan) -> bool:
    """Whether no join repeats the rows that a percentage is of."""
    apart = {item.field.ref.table for item in plan.part if item.operator in ("exists", "not exists")}
    hops = [hop for name in plan.tables()[1:] if name not in apart for hop in path(r.schema, plan.table, name) or []]
    return all(hop.up for hop in hops) and not any(measure.factor for measure in plan.measures)


def whole_of(plan: QueryPlan) -> QueryPlan:
    """The plan with all its conditions together, for who asks which words it holds."""
    return replace(plan, conditions=(*plan.conditions, *plan.part), part=())
