"""Superlatives as plans: `longest track`, `which employee has the most customers`, `top 5 countries by revenue`."""

from __future__ import annotations

from dataclasses import replace

from longthread_demo.query.display import display_columns, link_of, listed_columns, naming_columns
from longthread_demo.query.joins import path
from longthread_demo.query.plan import AggregateFunction, Dimension, Field, PlannedMeasure, QueryPlan, field_of
from longthread_demo.question.adjectives import ranked_column
from longthread_demo.question.focus import focus_of, free_nouns
from longthread_demo.question.nouns import (
    additive,
    amount_measure,
    counted_for,
    deeds,
    default_amount,
    default_date,
    dimension_at,
    is_name,
    money_word,
    people,
    person_like,
    person_of,
)
from longthread_demo.question.reading import QuestionReading, Superlative, plural
from longthread_demo.question.selling import sells, units_sold
from longthread_demo.schema import DemoColumn, Ref


def ranked(r: QuestionReading, previous: QueryPlan | None) -> QueryPlan | None:
    """The plan of a superlative; None when it is none after all. Refuses when what it ranks by cannot be found."""
    made = r.superlative
    assert made is not None
    focus = _focus(r, made)
    if focus is not None and r.table_at(focus):
        r.entity = r.table_at(focus)
    if not _per_group(r, made):
        return None
    _several(r, made)
    if (made.function == "avg" and made.target is not None) or made.function in ("sum", "max", "min", "avg"):
        return _by_measure(r, made, focus, previous)
    counting = made.function == "count" or (made.counting and not _numeric_target(r, made))
    bare = made.target is None and focus is None and not made.concept
    if bare and previous is not None and previous.measures and previous.dimensions:
        measure = previous.order if isinstance(previous.order, PlannedMeasure) else previous.measures[0]
        return replace(previous, order=measure, descending=made.descending, limit=_limit(r), offset=r.offset)
    if bare and previous is not None and previous.measures and not previous.dimensions and previous.measures[0].field:
        measure = replace(previous.measures[0], function="max" if made.descending else "min")
        return replace(previous, measures=(measure,))
    if counting and asks_who(r) and (doing := _deed(r, made, focus)) is not None:
        return doing
    if counting:
        return _by_count(r, made, focus, previous)
    return _by_column(r, made, focus, previous)


def _several(r: QuestionReading, made: Superlative) -> None:
    """`the most expensive rooms`: more than one is asked for, though it is not said how many."""
    behind = made.index + 1
    adjective = r.chunks[made.index].op("adj", "high", "low")
    if r.limit is None and adjective and behind < len(r) and r.table_at(behind) and plural(r.chunks[behind]):
        r.limit = 10
        r.note("assumed_ten")


def _deed(r: QuestionReading, made: Superlative, focus: int | None) -> QueryPlan | None:
    """`who has booked the most sessions?`: the rows that record it, for each person they name."""
    table = r.table_at(focus) if focus is not None else None
    if focus is None or table is None or person_like(r.schema.tables[table]) or focus > made.index:
        return None
    person = person_of(r, table)
    if person is None:
        return None
    r.use("focus", focus)
    measure = PlannedMeasure("count", table)
    order = made.descending
    return QueryPlan(table, measures=(measure,), dimensions=(person,), order=measure, descending=order, limit=_limit(r))


def _per_group(r: QuestionReading, made: Superlative) -> bool:
    """`the highest salary in each department` has a row for each; `the newest member in each city` is refused."""
    each = [at for at in r.groups if any(r.chunks[p].op("each") for p in (at - 1, at - 2) if p >= 0)]
    if not each or made.target in each:
        return True
    others = [at for at in free_nouns(r) if r.table_at(at) and at not in r.groups]
    if others or made.counting or made.target is None:
        r.refuse("per_group", r.text(made.index, *others[:1]))
        return False
    r.limit = 0 if r.limit is None else r.limit
    return True


def _numeric_target(r: QuestionReading, made: Superlative) -> bool:
    if made.target is None:
        return False
    numeric = r.column_at(made.target, lambda c: c.kind == "number" and not c.keyish, -1.0)
    return numeric is not None and r.table_at(made.target) is None


def asks_who(r: QuestionReading) -> bool:
    """Whether a person is asked for."""
    return any(chunk.who for chunk in r.chunks)


def _focus(r: QuestionReading, made: Superlative) -> int | None:
    """Whose superlative it is: the noun grouped by, the noun asked for, or the one after `longest`."""
    if r.groups:
        return r.groups[0]
    for at in range(len(r)):
        if r.chunks[at].op("which"):
            unit = next(iter(r.after(at, r.filler)), None)
            if unit is not None and r.free(unit) and r.chunks[unit].op("unit") and not r.table_at(unit):
                r.use("focus", unit)
                return unit
            if r.chunks[at].text in ("哪一年", "哪年") and made.target is None:
                return at
    nouns = free_nouns(r)
    if not nouns:
        return next((at for at in range(len(r)) if r.free(at) and r.chunks[at].op("unit")), None)
    behind = [at for at in nouns if at > made.index]
    if made.target is None and not r.chinese and behind and behind[0] - made.index <= 2 and not _asked_table(r, nouns):
        return behind[0]
    if r.chinese and behind and made.index + 1 < len(r):
        return behind[-1] if r.table_at(behind[-1]) else behind[0]
    if r.chinese and not any(chunk.op("which") for chunk in r.chunks):
        return nouns[-1] if len(nouns) == 1 or r.table_at(nouns[-1]) else nouns[0]
    return focus_of(r)


def _asked_table(r: QuestionReading, nouns: list[int]) -> bool:
    first = nouns[0]
    return any(r.chunks[p].op("which") for p in range(max(0, first - 2), first)) and r.table_at(first) is not None


def _limit(r: QuestionReading) -> int | None:
    if r.limit == 0:
        return None
    return r.limit or 1


def _plan(
    r: QuestionReading, made: Superlative, focus: int | None, measure: PlannedMeasure, previous: QueryPlan | None
) -> QueryPlan | None:
    if focus is None:
        person = person_of(r, measure.table) if asks_who(r) else None
        if person is not None:
            dimension = person
        elif previous is not None and previous.dimensions:
            dimension = previous.dimensions[0]
        else:
            return None
    elif r.chunks[focus].text in ("哪一年", "哪年"):
        found = default_date(r, measure.table)
        if found is None:
            return None
        dimension = Dimension((found,), "year")
    else:
        named = dimension_at(r, focus, measure.table)
        if named is None:
            r.refuse("no_dimension", r.text(focus))
            return None
        dimension = named
        r.use("focus", focus)
    empty = not made.descending and dimension.key is not None and measure.function == "count"
    return QueryPlan(
        table=measure.table,
        measures=(measure,),
        dimensions=(dimension,),
        order=measure,
        descending=made.descending,
        limit=_limit(r),
        keep_empty=empty and dimension.fields[0].ref.table != measure.table and dimension.fields[0].via is None,
    )


def _by_count(r: QuestionReading, made: Superlative, focus: int | None, previous: QueryPlan | None) -> QueryPlan | None:
    table = r.table_at(made.target) if made.target is not None else None
    measure: PlannedMeasure | None = None
    if table is not None:
        measure = PlannedMeasure("count", table)
    elif made.target is not None:
        ref = r.column_at(made.target, least=-0.8)
        if ref is not None:
            link = link_of(r.schema, ref)
            measure = (
                PlannedMeasure("count", link.target) if link else PlannedMeasure("distinct", ref.table, Field(ref))
            )
            if link is None and r.schema.column(ref).kind == "date":  # `which product sold the most`: no dates
                measure = (units_sold(r) if sells(r) is not None else None) or PlannedMeasure("count", ref.table)
    else:
        measure = _uncounted(r, focus, previous)
    if measure is None or (table is None and previous is None and _often_or_much(r, made, measure)):
        r.refuse("no_measure", r.text(made.index))
        return None
    measure = deeds(r, measure)
    r.entity = r.entity or measure.table
    if focus is None and table is not None and previous is None and r.find("each") is None:
        who = asks_who(r)
        if not who:
            r.refuse("no_dimension", r.text(made.index))
            return None
    return _plan(r, made, focus, measure, previous)


def _uncounted(r: QuestionReading, focus: int | None, previous: QueryPlan | None) -> PlannedMeasure | None:
    """`most popular genre`, `which country has the most?`: what is counted is not said."""
    if previous is not None and previous.measures:
        return previous.measures[0]
    if focus is None:
        return None
    table = r.table_at(focus)
    sold = (
        units_sold(r)
        if any("sell" in chunk.key or "畅销" in chunk.text or "热销" in chunk.text for chunk in r.chunks)
        else None
    )
    if sold is not None:
        return sold
    acted = [c.field.ref.table for c in r.conditions if table and c.field.ref.table != table]
    acted = [name for name in acted if any((k.table, k.target) == (name, table) for k in r.schema.links)]
    if acted:
        return PlannedMeasure("count", acted[0])  # `the members who cancelled most`: what they did
    others = [at for at in free_nouns(r) if at != focus and r.table_at(at) and r.table_at(at) != table]
    if others:
        r.use("counted", others[0])
        return PlannedMeasure("count", r.table_at(others[0]) or "")
    if table is None:
        ref = r.column_at(focus, least=-0.8)
        return _of_kind(r, ref) if ref else None
    counted = counted_for(r, table)
    if counted:
        r.note("counted", counted)
    return PlannedMeasure("count", counted) if counted else None


def _often_or_much(r: QuestionReading, made: Superlative, measure: PlannedMeasure) -> bool:
    """`which donor gave the most`: how often, or how much, where the rows counted keep an amount as well?"""
    before = made.index - 1
    verb = r.chunks[before].op("soft") if made.index else None
    done = verb is not None and verb.args == ("verb",) and not r.is_noun(before)
    dated = made.target == before and r.column_at(before, lambda c: c.kind == "date", -1.0) is not None
    return (done or dated) and measure.field is None and default_amount(r, r.schema.tables[measure.table]) is not None


_LIKED = ("popular", "热门", "受欢迎", "畅销", "热销", "busiest", "最忙", "冷门")


def _of_kind(r: QuestionReading, ref: Ref) -> PlannedMeasure | None:
    """`the most common room type` is of most rooms; the most popular one is of most rows that point to rooms."""
    liked = any(word in chunk.text.lower() for chunk in r.chunks for word in _LIKED)
    pointing = {link.table for link in r.schema.links if link.target == ref.table and link.table != ref.table}
    if not liked or not pointing:
        return PlannedMeasure("count", ref.table)
    counted = counted_for(r, ref.table)
    if counted:
        r.note("counted", counted)
    return PlannedMeasure("count", counted) if counted else None


def _by_measure(
    r: QuestionReading, made: Superlative, focus: int | None, previous: QueryPlan | None
) -> QueryPlan | None:
    measure = amount_measure(r, made.function, made.target, r.entity)
    if measure is None:
        r.refuse("no_amount", r.text(made.target if made.target is not None else made.index))
        return None
    r.entity = r.entity or measure.table
    if measure.field is not None:
        focus = _asked_above(r, measure.field.ref, focus)
    plan = _plan(r, made, focus, measure, previous)
    if plan is None:
        return QueryPlan(table=measure.table, measures=(measure,))
    return plan


def _by_column(
    r: QuestionReading, made: Superlative, focus: int | None, previous: QueryPlan | None
) -> QueryPlan | None:
    money = _money_of_others(r, made, focus)
    if money is not None:
        return _plan(r, made, focus, money, previous)
    ref = ranked_column(r, made, focus, previous)
    if ref is None:
        product = amount_measure(r, "sum", made.target, None) if made.target is not None else None
        if product is not None and focus is not None:
            return _plan(r, made, focus, product, previous)
        r.refuse("no_ranking", r.text(made.index) + (" " + r.text(made.target) if made.target is not None else ""))
        return None
    table = r.table_at(focus) if focus is not None else None
    alone = focus is None or (table is not None and table == ref.table and not _asked_which(r, focus))
    if made.date_named and alone and not asks_who(r) and r.limit is None:
        r.use("entity", focus)
        return QueryPlan(
            table=ref.table, measures=(PlannedMeasure("max" if made.descending else "min", ref.table, Field(ref)),)
        )
    return _of_column(r, made, focus, ref, previous)


def _of_column(
    r: QuestionReading, made: Superlative, focus: int | None, ref: Ref, previous: QueryPlan | None
) -> QueryPlan | None:
    """The rows, the group or the extreme of a column that a superlative ranks by."""
    focus = _asked_above(r, ref, focus)
    column, table = r.schema.column(ref), (r.table_at(focus) if focus is not None else None)
    if focus is None and asks_who(r) and not _are_who(r, made, ref.table):
        return _by_person(r, made, ref)
    if focus is None and made.target is not None and asks_when(r) and _dated_rows(r, ref.table):
        return _rows(r, made, ref, ref.table, _dated_rows(r, ref.table))
    if focus is None or (table is None and is_name(r.chunks[focus].key)):
        r.use("focus", focus)
        if (
            made.concept
            or r.limit is not None
            or (made.target is not None and r.table_at(made.target))
            or (previous is not None and _plain(previous))
            or focus is not None
        ):
            return _rows(r, made, ref, ref.table)
        if asks_who(r) and people(r.schema.tables[ref.table]):
            return _rows(r, made, ref, ref.table)
        return QueryPlan(
            table=ref.table, measures=(PlannedMeasure("max" if made.descending else "min", ref.table, Field(ref)),)
        )
    if table is None:
        other = r.column_at(focus, least=-0.8)
        if other is not None and _describes_row(r, other, ref):
            r.use("shown", focus)
            return _rows(r, made, ref, ref.table, Field(other))
        return _by_group(r, made, focus, ref, column, previous)
    r.use("entity", focus)
    if table == ref.table:
        return _rows(r, made, ref, table)
    hops = path(r.schema, table, ref.table)
    if hops is not None and all(hop.up for hop in hops):
        return _rows(r, made, ref, table)
    return _by_group(r, made, focus, ref, column, previous)


def _asked_above(r: QuestionReading, ranked_by: Ref, focus: int | None) -> int | None:
    """The noun of *which* where each has many of the ranked rows (影片 in 哪部影片的订单金额最高), else `focus`."""
    for at in range(1, len(r)):
        if at == focus or not r.free(at) or not r.chunks[at - 1].op("which"):
            continue
        ref = r.column_at(at, least=-0.8) if r.table_at(at) is None else Ref(r.table_at(at) or "", "")
        if ref is None or ref == ranked_by:
            continue
        hops = path(r.schema, ranked_by.table, ref.table) or []
        above = bool(hops) and all(hop.up for hop in hops)
        if above or (ref.table == ranked_by.table and ref.column and not _describes_row(r, ref, ranked_by)):
            return at
    return focus


def _are_who(r: QuestionReading, made: Superlative, table: str) -> bool:
    """Whether a table's rows are those asked for by *who*: people, or what has a name and does what is dated."""
    found = r.schema.tables[table]
    return people(found) or (made.date_verb and bool(display_columns(found)))


def _by_person(r: QuestionReading, made: Superlative, ref: Ref) -> QueryPlan | None:
    """`who worked the most hours?`: the rows that record it are added up for each person."""
    dimension = person_of(r, ref.table)
    if dimension is None:
        r.refuse("no_person", ref.table)
        return None
    summed = made.counting or additive(r.schema.column(ref))
    if summed and _largest_or_total(r, made):
        return None
    function: AggregateFunction = "sum" if summed else "max" if made.descending else "min"
    measure = PlannedMeasure(function, ref.table, Field(ref))
    r.entity = ref.table
    return QueryPlan(
        table=ref.table,
        measures=(measure,),
        dimensions=(dimension,),
        order=measure,
        descending=made.descending,
        limit=_limit(r),
    )


def asks_when(r: QuestionReading) -> bool:
    """Whether a date is asked for."""
    asking = ("when", "什么时候", "何时", "哪一天", "哪天", "是哪天", "是什么时候", "哪一日")
    return any(chunk.text.lower() in asking for chunk in r.chunks)


def _dated_rows(r: QuestionReading, table: str) -> Field | None:
    """The date column of a table itself."""
    found = default_date(r, table)
    return found if found is not None and found.ref.table == table else None


def _asked_which(r: QuestionReading, focus: int) -> bool:
    """`哪个员工`, `which employee`: the thing is asked for, and no date."""
    asking = [p for p in range(len(r)) if r.chunks[p].op("which") and r.chunks[p].text not in _WHEN]
    if r.chinese:
        return any(0 < focus - p <= 2 for p in asking) or any(r.chunks[p].text[-1:] in "个位名些" for p in asking)
    return any(0 < focus - p <= 3 and r.chunks[p].text.lower() == "which" for p in asking)


_WHEN = ("哪一年", "哪年", "哪一天", "哪天", "什么时候", "何时", "是哪天", "是什么时候", "哪一日", "什么")


def _money_of_others(r: QuestionReading, made: Superlative, focus: int | None) -> PlannedMeasure | None:
    """`the country with the highest sales`: money that rows of another table record."""
    if made.target is None or focus is None or not money_word(r.chunks[made.target].key):
        return None
    money = amount_measure(r, "sum", made.target, None)
    return money if money is not None and money.table != r.table_at(focus) else None


def _plain(plan: QueryPlan) -> bool:
    return not plan.measures and not plan.dimensions


def _describes_row(r: QuestionReading, other: Ref, ranked_by: Ref) -> bool:
    """Whether a column says something of each ranked row rather than grouping rows."""
    table = r.schema.tables[other.table]
    column = table.column(other.column)
    if other.table != ranked_by.table:
        return False
    unique = column.distinct is None or table.rows is None or column.distinct >= 0.9 * table.rows
    return unique or other.column in naming_columns(table)


_TOTALS = ("total", "sum", "overall", "altogether", "combined", "总", "合计", "累计", "共")


def _largest_or_total(r: QuestionReading, made: Superlative) -> bool:
    """Refuse `which film has the highest order amount`: of many orders, the largest or all of them together?

    *Most* adds up; so does a word for a total or for takings, and a ranking of several.
    """
    named = made.target is not None and money_word(r.chunks[made.target].key)
    said = any(word in chunk.text.lower() for chunk in r.chunks for word in _TOTALS)
    if made.counting or named or said or r.limit is not None:
        return False
    r.refuse("largest_or_total", r.text(made.target if made.target is not None else made.index))
    return True


def _by_group(
    r: QuestionReading, made: Superlative, focus: int, ref: Ref, column: DemoColumn, previous: QueryPlan | None
) -> QueryPlan | None:
    function = "sum" if additive(column) or made.counting else ("max" if made.descending else "min")
    if made.concept == "rating":
        function = "avg"
    if function == "sum" and _largest_or_total(r, made):
        return None
    target = made.target if made.target is not None else None
    measure = amount_measure(r, function, target, ref.table) if target is not None and function == "sum" else None
    return _plan(r, made, focus, measure or PlannedMeasure(function, ref.table, Field(ref)), previous)  # type: ignore[arg-type]


def _rows(r: QuestionReading, made: Superlative, ref: Ref, table: str, extra: Field | None = None) -> QueryPlan:
    """The rows of a table in the order of a column, what they are called and what they are ranked by."""
    r.entity = table
    names = naming_columns(r.schema.tables[table])
    shown = [field_of(table, name) for name in names]
    for at in free_nouns(r):
        wanted = r.column_at(at, least=0.0) if r.table_at(at) is None else None
        if wanted is not None:
            r.use("shown", at)
            if not is_name(r.chunks[at].key):
                shown.append(Field(wanted))
    if extra is not None and extra not in shown:
        shown.append(extra)
    if Field(ref) not in shown:
        shown.append(Field(ref))
    if not names:
        shown = [field_of(table, name) for name in listed_columns(r.schema.tables[table], r.schema)]
    return QueryPlan(
        table=table,
        shown=tuple(dict.fromkeys(shown)),
        order=Field(ref),
        descending=made.descending,
        limit=_limit(r),
        implied=True,
    )
