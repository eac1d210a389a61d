"""The plan made of what the passes over a question found."""

from __future__ import annotations

from dataclasses import replace

from longthread_demo.query.display import dates, display_columns, link_of, listed_columns, naming_columns
from longthread_demo.query.joins import path
from longthread_demo.query.plan import Condition, Dimension, Field, PlannedMeasure, QueryPlan, field_of
from longthread_demo.question.focus import focus_of
from longthread_demo.question.nouns import (
    MONEY,
    additive,
    amount_measure,
    counted_for,
    dimension_at,
    dimension_of_column,
    dimension_of_table,
    is_deed,
    is_name,
    means,
    money_word,
    person_column,
    person_like,
)
from longthread_demo.question.ranking import ranked
from longthread_demo.question.reading import QuestionReading
from longthread_demo.question.restrictions import restrict
from longthread_demo.question.selling import sold_instead
from longthread_demo.question.several import side_by_side
from longthread_demo.question.shares import as_share
from longthread_demo.schema import Ref, key_of


def assemble(r: QuestionReading, *, follows: bool) -> QueryPlan | None:
    """The plan of a question by itself. A follow-up may lack what the plan before it has."""
    previous = r.previous if follows else None
    if r.together:
        return side_by_side(r)
    plan = ranked(r, previous) if r.superlative is not None else None
    if plan is None:
        plan = _aggregated(r, previous) if r.counted or r.aggregates or r.groups or r.made else _listed(r, previous)
    if plan is None:
        return None
    plan = restrict(r, plan)
    _refuse_absent(r, plan)
    plan = as_share(r, _leftover_tables(r, plan))
    for measure in (*plan.measures, *(item.measure for item in plan.having)):
        if measure.function in ("sum", "avg") and measure.field is not None and not _adds_up(r, measure.field.ref):
            r.refuse("no_amount", measure.field.ref.column)
    return _ordered(r, plan)


def _refuse_absent(r: QuestionReading, plan: QueryPlan) -> None:
    """Refuse a condition on rows that must not be there: `who never fixed a leak`, which is one of the repairs."""
    absent = {item.field.ref.table for item in plan.conditions if item.operator == "not exists"}
    for item in plan.conditions:
        hops = path(r.schema, plan.table, item.field.ref.table) or []
        if item.operator != "not exists" and absent & {item.field.ref.table, *(hop.end for hop in hops)}:
            r.refuse("unsupported", r.question)


def _adds_up(r: QuestionReading, ref: Ref) -> bool:
    """Whether a sum or an average of a column says anything: not of a date, a year, a flag or a key."""
    column = r.schema.column(ref)
    return column.kind in ("number", "unknown") and not (column.yearish or column.keyish or r.foreign(ref))


def measures_of(r: QuestionReading, base: str | None) -> list[PlannedMeasure]:
    """The measures that counting and aggregating words ask for."""
    found: list[PlannedMeasure] = list(r.made)
    for at, target in r.counted:
        made = _people(r, at, target) or _count(r, at, target, base)
        if made is not None:
            found.append(made)
    for function, said, target in r.aggregates:
        if function == "avg" and target is None and r.counted:
            continue  # the average of a count: a function over groups
        amount = amount_measure(r, function, target, base)
        if amount is not None and not (function == "sum" and _only_rows(r, target, amount)):
            found.append(amount)
        elif target is not None and r.table_at(target) and function == "sum" and "额" not in r.text(said):
            found.append(PlannedMeasure("count", r.table_at(target) or ""))
        else:
            r.refuse(
                "no_amount", r.text(target) if target is not None else r.text(*[at for f, at, t in r.aggregates][:1])
            )
    return list(dict.fromkeys(found))


def _people(r: QuestionReading, at: int, target: int | None) -> PlannedMeasure | None:
    """`how many people have tasks`: the people that a table's rows name, each once."""
    table = r.table_at(target) if target is not None else None
    said = any(r.chunks[p].text.lower() in ("people", "persons") for p in range(at + 1, target or at))
    if table is None or not said or person_like(r.schema.tables[table]):
        return None
    column = person_column(r, table)
    if column is None:
        r.refuse("no_person", table)
        return None
    return PlannedMeasure("distinct", table, Field(column))


def _only_rows(r: QuestionReading, target: int | None, amount: PlannedMeasure) -> bool:
    """`total bookings`: the rows, where the only number of a table is none to add up."""
    if target is None or r.table_at(target) is None or amount.field is None:
        return False
    column = r.schema.column(amount.field.ref)
    named = any(sense.ref == amount.field.ref for sense in r.chunks[target].of("column"))
    return not (named or additive(column) or means(column.words, MONEY))


def _count(r: QuestionReading, at: int, target: int | None, base: str | None) -> PlannedMeasure | None:
    counted = (r.table_at(target) if target is not None else None) or _value_table(r) or base
    sold = sold_instead(r, counted)
    if sold is not None:
        return sold
    if target is None:
        return PlannedMeasure("count", base) if base else None
    table = r.table_at(target)
    if table is not None:
        return PlannedMeasure("count", table)
    if is_name(r.chunks[target].key) and base:
        return PlannedMeasure("count", base)
    ref = r.column_at(target, least=-0.8)
    if ref is None:
        return None
    column = r.schema.column(ref)
    key = key_of(r.schema.tables[ref.table])
    if column.kind == "date" and not _asks_dates(r, target):
        return _happenings(r, target, ref)
    if ref.column == key:
        return PlannedMeasure("count", ref.table)
    if column.kind == "number" and not column.yearish and not r.foreign(ref):
        if means(column.words, ("price", "rating", "age")):
            r.refuse("no_measure", r.text(at))  # 多少张票 of a 票价: how many is never a sum of prices
        return PlannedMeasure("sum", ref.table, Field(ref))
    if column.kind == "bool":
        r.conditions.append(Condition(Field(ref), "=", (True,)))
        return PlannedMeasure("count", ref.table)
    if any(item.field.ref == ref for item in r.conditions):
        return PlannedMeasure("count", ref.table)  # the rows with that value, and not its different values
    link = link_of(r.schema, ref)
    return (
        PlannedMeasure("count", link.target)
        if link and base is None
        else PlannedMeasure("distinct", ref.table, Field(ref))
    )


_DATE_ENDINGS = ("date", "dates", "day", "days", "time", "times", "日期", "日子", "天", "时间", "日")


def _asks_dates(r: QuestionReading, at: int) -> bool:
    """Whether days are counted: *different*, or a noun for a date is said, and no verb."""
    return r.find("distinct") is not None or r.chunks[at].text.lower().endswith(_DATE_ENDINGS)


def _happenings(r: QuestionReading, at: int, ref: Ref) -> PlannedMeasure:
    """`how many joined in 2023`: the rows with that date, and not the different dates."""
    table = (r.entity or ref.table) if r.entity in r.linked_to(ref.table) else ref.table
    undated = [when for when in r.dates if when.noun is None]
    for when in undated:
        when.noun = at
    if not r.dates:
        r.conditions.append(Condition(Field(ref), "not null"))
    return PlannedMeasure("count", table)


def _aggregated(r: QuestionReading, previous: QueryPlan | None) -> QueryPlan | None:
    base = r.entity or (previous.table if previous else None)
    if r.counted and all(target is None for _, target in r.counted) and r.groups:
        grouped = r.table_at(r.groups[0])
        base = _free_table(r) or counted_for(r, grouped) or base or grouped
    base = base or _value_table(r)
    measures = measures_of(r, base)
    if not measures and r.groups:
        measures = _grouped_amount(r, base)
    if not measures and r.groups and not previous:
        table = _free_table(r) or base or _group_table(r)
        if table and any(_one_each(r, at, table) for at in r.groups):
            r.refuse("unsupported", r.text(r.groups[0]))
        measures = [PlannedMeasure("count", table)] if table else []
    if not measures and not previous:
        return None
    base = measures[0].table if measures else base
    r.entity = r.entity or base
    dimensions = _dimensions(r, base) or _between_values(r)
    averaged = any(function == "avg" and target is None for function, _, target in r.aggregates)
    return QueryPlan(
        table=base or "",
        measures=tuple(m for m in measures if m.table == base) or tuple(measures[:1]),
        dimensions=tuple(dimensions),
        wrap="avg" if dimensions and averaged and r.counted else "",
    )


def _between_values(r: QuestionReading) -> list[Dimension]:
    """`男生和女生各有多少人`: several values of one column, each with its number."""
    each = next((at for at in range(len(r)) if r.free(at) and r.chunks[at].op("each")), None)
    several = [condition.field for condition in r.conditions if condition.operator == "in"]
    if each is None or not several:
        return []
    r.use("group", each)
    return [Dimension((several[0],))]


def _grouped_amount(r: QuestionReading, base: str | None) -> list[PlannedMeasure]:
    """`revenue per genre`, `按类型统计天数`: a number column that stands free next to a grouping is added up."""
    for at in range(len(r)):
        if not r.free(at) or not r.is_noun(at) or r.table_at(at):
            continue
        ref = r.column_at(at, lambda c: c.kind == "number" and not c.keyish and not c.yearish, -1.0)
        if ref is not None:
            r.use("aggregate", at)
            if not (additive(r.schema.column(ref)) or money_word(r.chunks[at].key)):
                r.refuse("average_or_total", r.text(at))
            made = amount_measure(r, "sum", at, base)
            return [made] if made else []
    return []


def _dimensions(r: QuestionReading, base: str | None) -> list[Dimension]:
    found: list[Dimension] = []
    for at in r.groups:
        made = dimension_at(r, at, base)
        if made is None:
            r.refuse("no_dimension", r.text(at))
        elif made not in found:
            found.append(made)
    return found


def _one_each(r: QuestionReading, at: int, table: str) -> bool:
    """`the artist of each artwork`: each has one, so that there is nothing to count."""
    grouped = r.table_at(at)
    hops = path(r.schema, grouped, table) if grouped and grouped != table else None
    return bool(hops) and all(hop.up for hop in hops or ())


def _group_table(r: QuestionReading) -> str | None:
    for at in r.groups:
        ref = r.column_at(at, least=-0.8)
        if ref is not None:
            return ref.table
    return None


def _free_table(r: QuestionReading) -> str | None:
    places = [at for at in range(len(r)) if (r.free(at)) and r.table_at(at)]
    if not places:
        return None
    return r.table_at(places[-1] if r.chinese else places[0])


def _listed(r: QuestionReading, previous: QueryPlan | None) -> QueryPlan | None:
    place = focus_of(r)
    table = r.table_at(place) if place is not None else None
    shown, named = _shown(r, place)
    if table is None and shown:
        table = _home(r, shown, previous)
    table = table or r.entity or (previous.table if previous else None) or _value_table(r)
    if table is None:
        return None
    r.entity = table
    r.use("entity", place)
    if not shown and not named and previous is not None and (place is None or r.table_at(place) is None):
        return QueryPlan(table=table, implied=True)
    distinct = bool(shown) and _distinct(r, table, shown)
    if not shown or (not distinct and not _names(r, table, shown)):
        listed = naming_columns(r.schema.tables[table]) if shown else listed_columns(r.schema.tables[table], r.schema)
        shown = [*(field_of(table, name) for name in listed), *shown]
    chosen = r.find("distinct")
    if chosen is not None:
        r.use("distinct", chosen)
        distinct = True
    return QueryPlan(table=table, shown=tuple(dict.fromkeys(shown)), distinct=distinct, implied=not named)


def _value_table(r: QuestionReading) -> str | None:
    """`list the goalkeepers`: the table that follows from a value alone."""
    if r.conditions:
        return r.conditions[0].field.ref.table
    for comparison in r.comparisons:  # `ratings below 3`
        if comparison.noun is not None and r.table_at(comparison.noun) is None:
            ref = r.column_at(comparison.noun, lambda c: c.kind in ("number", "unknown"), -1.0)
            return ref.table if ref else None
    return None


def _home(r: QuestionReading, shown: list[Field], previous: QueryPlan | None) -> str:
    if previous is not None and any(field.ref.table == previous.table for field in shown):
        return previous.table
    return shown[0].ref.table


def _shown(r: QuestionReading, focus: int | None) -> tuple[list[Field], bool]:
    """The columns a list names: free nouns that are columns, or other tables by their names."""
    found: list[Field] = []
    if focus is not None and r.table_at(focus):
        r.entity = r.table_at(focus)
    found += [Field(ref) for ref in r.wanted]
    for at in range(len(r)):
        chunk = r.chunks[at]
        if not r.free(at) or not (r.is_noun(at) or chunk.of("flag")) or (at == focus and r.table_at(at)):
            continue
        if is_name(chunk.key) and r.entity:
            r.use("shown", at)
            found += [field_of(r.entity, name) for name in naming_columns(r.schema.tables[r.entity])]
            continue
        if r.table_at(at) is not None:
            continue
        ref = r.column_at(at, least=0.0)
        if ref is None:
            continue
        if found and chunk.op("unit", "meas", "dur") and r.chunks[at - 1].op("count", "howmuch"):
            r.use("unit", at)  # 生长天数是多少天: the column that is named, and no other that is kept in days
            continue
        if focus is not None and r.table_at(focus) and is_deed(r, at, ref):
            r.use("filter", at)
            r.conditions.append(Condition(Field(ref), "not null"))
            continue
        r.use("shown", at)
        found += dimension_of_column(r, ref).fields if link_of(r.schema, ref) else [Field(ref)]
    return list(dict.fromkeys(found)), bool(found)


def _names(r: QuestionReading, table: str, shown: list[Field]) -> bool:
    """Whether the columns shown already say whose they are."""
    names = set(naming_columns(r.schema.tables[table]))
    return any(field.ref.table == table and field.ref.column in names for field in shown) or not names


def _distinct(r: QuestionReading, table: str, shown: list[Field]) -> bool:
    """`which countries are our customers from`: the values, each once, and not one for every row."""
    if r.find("distinct") is not None:
        return True
    if len(shown) != 1 or shown[0].ref.table != table:
        return False
    column = r.schema.column(shown[0].ref)
    if shown[0].ref.column in display_columns(r.schema.tables[table]) or column.kind not in ("text", "unknown", "bool"):
        return False
    rows = r.schema.tables[table].rows
    repeated = column.distinct is not None and rows is not None and column.distinct < rows
    places = [at for at in range(len(r)) if r.role.get(at) == "shown"]
    tables = [at for at in range(len(r)) if r.role.get(at) in ("entity", None) and r.table_at(at)]
    column_first = not tables or (bool(places) and places[0] < tables[0])
    asked = any(chunk.op("which", "list") for chunk in r.chunks)
    single = any(r.conditions) and any(condition.operator == "=" for condition in r.conditions)
    return repeated and asked and not single and (column_first or r.chinese)


def _leftover_tables(r: QuestionReading, plan: QueryPlan) -> QueryPlan:
    """Use a table that is named and used for nothing yet: rows must have a partner there, or it is shown along with
    them."""
    extra: list[Condition] = []
    shown: list[Field] = list(plan.shown)
    joined = set(plan.tables())
    for at in range(len(r)):
        table = r.table_at(at) if r.free(at) and r.is_noun(at) else None
        if table is None:
            continue
        if table in joined:
            r.use("context", at)
            continue
        hops = path(r.schema, plan.table, table) or []
        required = at > 0 and r.chunks[at - 1].op("have") is not None
        absent = {c.field.ref.table for c in plan.conditions if c.operator == "not exists"}
        if (absent & r.linked_to(table)) or (
            r.chunks[at].op("soft") and hops and all(hop.up for hop in hops) and not required
        ):
            r.use("context", at)
            continue
        beside = not plan.measures and not plan.dimensions and _beside(r, at)
        r.use("context", at)
        if beside and r.chunks[at - 1].op("and") and any(not hop.up for hop in hops) and len(hops) > 1:
            r.refuse("two_things", r.question)
        summed = any(m.field is not None for m in plan.measures) or any(chunk.op("howmuch") for chunk in r.chunks)
        if summed and len(hops) > 1 and not required:
            r.refuse("unsupported", r.text(at))  # 销售总额 is no sum over members whose fields' crops were sold
        if beside:
            shown += dimension_of_table(r, table).fields
        else:
            extra.append(Condition(field_of(table, ""), "exists"))
    if not extra and len(shown) == len(plan.shown):
        return plan
    return replace(plan, shown=tuple(dict.fromkeys(shown)), conditions=(*plan.conditions, *extra))


def _beside(r: QuestionReading, at: int) -> bool:
    """`albums and their artists`, `专辑及其艺术家`, `the artist of each album`."""
    if at and r.chunks[at - 1].text.lower() in ("their", "its", "及其", "和其"):
        return True
    for place in r.before(at, lambda p: r.chunks[p].op("pron", "stop", "all") is not None):
        return (
            r.chunks[place].op("and", "each", "list", "which") is not None
            or r.chunks[place].sign
            or r.role.get(place) == "shown"
        )
    return True


def _ordered(r: QuestionReading, plan: QueryPlan) -> QueryPlan:
    if r.ordering is not None:
        at, down = r.ordering
        plan = _sorted_by(r, plan, at, down)
    elif r.superlative is None:
        place = r.find("desc", "asc")
        if place is not None:
            down = r.chunks[place].op("desc") is not None
            r.use("order", place)
            order: PlannedMeasure | Field | str = plan.measures[0] if plan.measures and plan.dimensions else ""
            if not plan.measures and plan.shown:
                order = plan.shown[0]
            plan = replace(plan, order=order, descending=down)  # type: ignore[arg-type]  # never another string
    if r.offset:
        plan = replace(plan, offset=r.offset)
    if r.limit is not None and plan.limit is None and r.limit > 0:
        plan = replace(
            plan, limit=r.limit, order=plan.order or (plan.measures[0] if plan.measures and plan.dimensions else "")
        )
        if not plan.order and any(c.text.lower() == "top" and r.role.get(p) == "limit" for p, c in enumerate(r.chunks)):
            plan = _topped(r, plan)
        if r.reverse and not plan.order and plan.shown:
            key = key_of(r.schema.tables[plan.table])
            dated = dates(r.schema.tables[plan.table])
            last = dated[0].name if dated else key
            plan = replace(plan, order=field_of(plan.table, last) if last else "", descending=True)
    return plan


def _topped(r: QuestionReading, plan: QueryPlan) -> QueryPlan:
    """`top 10 salaries`: by the number that is named; refused where none is."""
    named = [field for field in plan.shown if r.schema.column(field.ref).kind == "number"] if not plan.implied else []
    if len(named) != 1:
        r.refuse("no_ranking", r.question)
        return plan
    return replace(plan, order=named[0], descending=True)


def _sorted_by(r: QuestionReading, plan: QueryPlan, at: int, down: bool | None) -> QueryPlan:
    if plan.dimensions:
        ref = r.column_at(at, least=-0.8)
        measured = [m for m in plan.measures if m.field and ref == m.field.ref]
        if (
            measured
            or r.chunks[at].op("count")
            or (r.table_at(at) and any(m.table == r.table_at(at) for m in plan.measures))
        ):
            return replace(plan, order=(measured or list(plan.measures))[0], descending=down is not False)
        return replace(plan, order="dimension", descending=bool(down))
    if plan.measures:
        r.refuse("no_order", r.text(at))  # one row has no order
    r.entity = r.entity or plan.table
    if is_name(r.chunks[at].key) or r.table_at(at) == plan.table:
        order = field_of(plan.table, naming_columns(r.schema.tables[plan.table])[-1])
        return replace(plan, order=order, descending=bool(down))
    ref = r.column_at(at, least=-0.8)
    if ref is None:
        r.refuse("no_order", r.text(at))
        return plan
    field = Field(ref)
    shown = plan.shown if field in plan.shown or not plan.shown else (*plan.shown, field)
    return replace(plan, order=field, descending=bool(down), shown=shown)
