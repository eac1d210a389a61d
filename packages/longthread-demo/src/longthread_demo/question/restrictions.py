"""The filters of a question put into its plan: values, comparisons, dates and patterns."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import date

from longthread_demo.query.display import amounts, dates, display_columns
from longthread_demo.query.joins import path
from longthread_demo.query.plan import Condition, Dimension, Field, Having, PlannedMeasure, QueryPlan, field_of
from longthread_demo.question.focus import focus_of
from longthread_demo.question.nouns import (
    amount_measure,
    default_amount,
    default_date,
    dimension_at,
    dimension_of_column,
    dimension_of_table,
    means,
)
from longthread_demo.question.reading import NumberComparison, QuestionReading, When, as_number
from longthread_demo.schema import DemoColumn, DemoTable, Ref
from longthread_demo.words.units import measuring, names_for, unit_of


def restrict(r: QuestionReading, plan: QueryPlan) -> QueryPlan:
    """The plan with every filter that was read."""
    conditions = [*plan.conditions, *r.conditions]
    spans = [made for when in r.dates if (made := _when(r, plan, when)) is not None]
    conditions += _disjoint(spans)
    plan = _by_span(r, plan, conditions)
    for ref, operator, shape, noun in r.patterns:
        field = Field(ref) if ref else _named(r, plan, noun)
        if field is None:
            r.refuse("no_pattern_column", shape.strip("%"))
        else:
            conditions.append(Condition(field, operator, (shape,)))  # type: ignore[arg-type]  # like or not like
    plan = replace(plan, conditions=tuple(dict.fromkeys(conditions)))
    for comparison in r.comparisons:
        plan = _compared(r, plan, comparison)
    return plan


def _disjoint(spans: list[Condition]) -> list[Condition]:
    """Ranges of one column that cannot hold at once are alternatives: `in 2022 and how many in 2023`."""
    found: list[Condition] = []
    for span in spans:
        other = next((c for c in found if c.field == span.field and c.operator in ("range", "ranges")), None)
        pairs = () if other is None else other.values if other.operator == "ranges" else (other.values,)
        if other is None or span.operator != "range" or any(_overlap(pair, span.values) for pair in pairs):
            found.append(span)
        else:
            ordered = tuple(sorted((*pairs, span.values), key=lambda pair: pair[0] or ""))
            found[found.index(other)] = Condition(span.field, "ranges", ordered)
    return found


def _overlap(one: tuple[str | None, ...], other: tuple[str | None, ...]) -> bool:
    return (one[0] or "") < (other[1] or "9") and (other[0] or "") < (one[1] or "9")


def _by_span(r: QuestionReading, plan: QueryPlan, conditions: list[Condition]) -> QueryPlan:
    """Two years that are asked for side by side are two groups, each with its number."""
    span = next((c for c in conditions if c.operator == "ranges"), None)
    if span is None or plan.dimensions or r.either:
        return plan
    if not plan.measures:
        if any(chunk.text.startswith(("分别", "各")) for chunk in r.chunks):
            r.refuse("two_things", r.question)
        return plan
    grains = {_grain(*pair) for pair in span.values}
    if len(grains) != 1 or grains == {""}:
        r.refuse("two_things", r.question)
        return plan
    for at in range(len(r)):
        if r.free(at) and r.chunks[at].op("each"):
            r.use("group", at)
    return replace(plan, dimensions=(Dimension((span.field,), grains.pop()),))


def _grain(low: str | None, high: str | None) -> str:
    """The unit of time that a range is one of; empty when it is none."""
    if low is None or high is None:
        return ""
    days = (date.fromisoformat(high) - date.fromisoformat(low)).days
    return {1: "day", 28: "month", 29: "month", 30: "month", 31: "month"}.get(days, _longer(days))


def _longer(days: int) -> str:
    return "quarter" if 90 <= days <= 92 else "year" if days in (365, 366) else ""


def _named(r: QuestionReading, plan: QueryPlan, noun: int | None) -> Field | None:
    table = (r.table_at(noun) if noun is not None else None) or plan.table
    found = display_columns(r.schema.tables[table])
    return field_of(table, found[0]) if found else None


def _when(r: QuestionReading, plan: QueryPlan, when: When) -> Condition | None:
    ref = None
    if when.noun is not None:
        ref = r.column_at(when.noun, lambda c: c.kind == "date" or c.yearish, -1.0)
        if r.free(when.noun) and not r.table_at(when.noun):
            r.use("date", when.noun)
    ref = ref or _date_of_deed(r, plan)
    field = Field(ref) if ref else default_date(r, plan.table) or _anchored_date(r, plan)
    born = field is not None and means(r.schema.column(field.ref).words, ("birth date",))
    if field is None or (ref is None and born):  # `animals seen in 2023` are not those born in it
        r.refuse("no_date", r.text(when.index))
        return None
    if not r.schema.column(field.ref).iso and not r.schema.column(field.ref).yearish:
        r.refuse("odd_dates", field.ref.column)
        return None
    r.note("date_column", field.ref.column)
    if when.newest is not None:
        return Condition(field, "newest", when.newest)
    return Condition(field, "range", (when.low, when.high))


def _date_of_deed(r: QuestionReading, plan: QueryPlan) -> Ref | None:
    """`tools repaired in March`, where tools have no date: that of what is said to have been done, and no other's."""
    if dates(r.schema.tables[plan.table]):
        return None
    places = [at for at in range(len(r)) if r.role.get(at) in (None, "context", "filter")]
    named = {sense.ref.table for at in places for sense in r.chunks[at].of("table") if sense.score >= 0.75}
    links = {link.table for link in r.schema.links if link.target == plan.table and link.table != plan.table}
    done = [name for name in sorted(named & links) if dates(r.schema.tables[name])]
    return Ref(done[0], dates(r.schema.tables[done[0]])[0].name) if len(done) == 1 else None


def _anchored_date(r: QuestionReading, plan: QueryPlan) -> Field | None:
    for name in sorted(r.anchors()):
        found = default_date(r, name)
        if found is not None and path(r.schema, plan.table, found.ref.table) is not None:
            return found
    return None


def _compared(r: QuestionReading, plan: QueryPlan, c: NumberComparison) -> QueryPlan:
    if c.function == "count":
        table = r.table_at(c.noun) if c.noun is not None else None
        return _having(r, plan, c, PlannedMeasure("count", table or plan.table))
    if c.function:
        measure = amount_measure(r, c.function, c.noun, plan.table)
        if measure is None:
            r.refuse("no_amount", r.text(c.noun if c.noun is not None else c.index))
            return plan
        return _having(r, plan, c, measure)
    field = _field(r, plan, c)
    if field is not None:
        if plan.measures and plan.dimensions and any(m.field == field for m in plan.measures):
            return _having(r, plan, c, next(m for m in plan.measures if m.field == field))
        hops = path(r.schema, plan.table, field.ref.table) or []
        spends = not plan.measures and r.chunks[c.noun if c.noun is not None else c.index].op("soft")
        if any(not hop.up for hop in hops) and (spends or _says_total(r, c, field)):
            return _having(r, plan, c, PlannedMeasure("sum", field.ref.table, field))
        if r.schema.column(field.ref).kind == "text" and c.operator not in ("=", "!="):
            r.refuse("no_amount", field.ref.column)  # as texts 9 comes after 10
        if any(not hop.up for hop in hops) and c.noun is not None and r.chunks[c.noun].text.lower() == "rated":
            r.refuse("two_readings", f"{r.text(c.noun, c.index)} {as_number(c.value)}")  # by one, or on average
        return replace(plan, conditions=(*plan.conditions, *_tests(r, field, c)))
    table = r.table_at(c.noun) if c.noun is not None else None
    if table is not None and (table != plan.table or plan.dimensions or _other_focus(r)):
        return _having(r, plan, c, PlannedMeasure("count", table))
    if c.noun is None and plan.measures and plan.dimensions:
        return _having(r, plan, c, plan.measures[0])
    r.refuse("no_comparison", f"{r.text(c.index)} {as_number(c.value)}")
    return plan


def _says_total(r: QuestionReading, c: NumberComparison, field: Field) -> bool:
    """Whether the total of many rows is compared, and not a column that is called so: `a total amount over 15`."""
    said = r.text(*range(max(0, (c.noun or 0) - 1), (c.noun or 0) + 1)).lower() if c.noun is not None else ""
    return any(word in said and word not in field.ref.column.lower() for word in ("total", "sum", "总", "合计", "累计"))


def _other_focus(r: QuestionReading) -> bool:
    return focus_of(r) is not None or "shown" in r.role.values()


def _field(r: QuestionReading, plan: QueryPlan, c: NumberComparison) -> Field | None:
    """The number column compared."""
    numeric = lambda col: col.kind in ("number", "unknown") and not col.keyish  # noqa: E731
    r.entity = r.entity or plan.table
    if c.concept:
        return _concept(r, plan, c)
    if c.noun is not None:
        table = r.table_at(c.noun)
        if table is not None and not any(
            s.score >= 0.9 for s in r.chunks[c.noun].of("column") if s.ref.table == plan.table
        ):
            return None
        ref = r.column_at(c.noun, numeric, -1.0) or r.column_at(c.noun, lambda col: col.kind == "text", -1.0)
        return Field(ref) if ref else None
    if c.money:
        return _near(plan.table, r, lambda table: default_amount(r, table) or _unmeasured(r, table))
    if c.unit is not None:
        kind = c.unit[0]
        return _near(plan.table, r, lambda table: _kept_in(r, table, kind))
    return None


def _near(home: str, r: QuestionReading, find: Callable[[DemoTable], DemoColumn | None]) -> Field | None:
    """Return what is found in the table asked for, else in the tables the question names, else in the tables next to
    them."""
    for name in dict.fromkeys((home, *sorted(r.anchors()), *sorted(r.linked_to(home)))):
        column = find(r.schema.tables[name])
        if column is not None:
            return field_of(name, column.name)
    return None


def _unmeasured(r: QuestionReading, table: DemoTable) -> DemoColumn | None:
    """The only amount that is kept in no unit of length, weight or time: money, then."""
    found = [column for column in amounts(table, r.schema) if unit_of(column) is None]
    return found[0] if len(found) == 1 else None


def _kept_in(r: QuestionReading, table: DemoTable, kind: str) -> DemoColumn | None:
    """The only column of a table that is kept in such a unit, else the one named for what it measures."""
    found = measuring(table.columns, kind)
    if found:
        return found[0] if len(found) == 1 else None
    named = (r.concept(table, name, lambda col: col.kind == "number") for name in names_for(kind))
    return next((column for column in named if column is not None), None)


def _concept(r: QuestionReading, plan: QueryPlan, c: NumberComparison) -> Field | None:
    if c.scale != 1.0 and c.concept == "length":  # a time: lengths kept in metres are not meant
        timed = _near(plan.table, r, lambda table: _kept_in(r, table, "duration"))
        if timed is not None:
            return timed
    for name in (plan.table, *sorted(r.anchors()), *sorted(r.linked_to(plan.table))):
        column = r.concept(r.schema.tables[name], c.concept, lambda col: col.kind in ("number", "unknown"))
        if column is not None:
            return field_of(name, column.name)
    if c.unit is not None:
        kind = c.unit[0]
        return _near(plan.table, r, lambda table: _kept_in(r, table, kind))
    if c.concept == "price":
        return _near(plan.table, r, lambda table: default_amount(r, table) or _unmeasured(r, table))
    return None


def _scaled(r: QuestionReading, field: Field, c: NumberComparison, value: float) -> float:
    """A number said in some unit, in the unit of the column, which its name or comment tells."""
    said = c.unit or (("duration", c.scale) if c.scale != 1.0 else None)
    if said is None:
        return value
    kept = unit_of(r.schema.column(field.ref))
    if kept is not None and kept[0] == said[0]:
        return round(value * said[1] / kept[1], 9)
    r.note("unit_assumed", field.ref.column)
    return value


def _tests(r: QuestionReading, field: Field, c: NumberComparison) -> list[Condition]:
    value = as_number(_scaled(r, field, c, c.value))
    negated = c.index > 0 and r.free(c.index - 1) and r.chunks[c.index - 1].op("not") is not None
    if c.high is not None:
        high = as_number(_scaled(r, field, c, c.high))
        return [Condition(field, ">=", (value,)), Condition(field, "<=", (high,))]
    operator = c.operator
    if negated:
        r.use("not", c.index - 1)
        operator = {">": "<=", ">=": "<", "<": ">=", "<=": ">", "=": "!="}[operator]
    return [Condition(field, operator, (value,))]  # type: ignore[arg-type]  # a comparison


def _having(r: QuestionReading, plan: QueryPlan, c: NumberComparison, measure: PlannedMeasure) -> QueryPlan:
    """Groups by their measure: `countries with more than 5 customers`; counted again when `how many` is asked."""
    operators = [(c.operator, c.value)] if c.high is None else [(">=", c.value), ("<=", c.high)]
    having = tuple(Having(measure, operator, as_number(value)) for operator, value in operators)
    if plan.dimensions:
        measures = plan.measures or (measure,)
        return replace(plan, having=(*plan.having, *having), measures=measures)
    counted = bool(plan.measures)
    dimension = None
    if counted and plan.measures[0].function == "distinct" and plan.measures[0].field:
        dimension = dimension_of_column(r, plan.measures[0].field.ref)
    elif counted and plan.measures[0].function == "count":
        dimension = dimension_of_table(r, plan.measures[0].table)
    elif not counted:
        dimension = _grouped(r, plan, measure)
    if dimension is None:
        r.refuse("no_comparison", r.text(c.index))
        return plan
    return QueryPlan(
        table=measure.table,
        measures=(measure,),
        dimensions=(dimension,),
        conditions=plan.conditions,
        having=having,
        wrap="count" if counted else "",
        order=measure,
        limit=plan.limit,
    )


def _grouped(r: QuestionReading, plan: QueryPlan, measure: PlannedMeasure) -> Dimension | None:
    shown = [field for field in plan.shown if not plan.implied]
    place = next((at for at in range(len(r)) if r.role.get(at) == "entity"), None)
    if place is not None and r.table_at(place) and r.table_at(place) != measure.table:
        return dimension_of_table(r, r.table_at(place) or "")
    if plan.table != measure.table:
        return dimension_of_table(r, plan.table)
    named = next((at for at in range(len(r)) if r.role.get(at) in ("shown", "entity") and not r.table_at(at)), None)
    if named is not None:
        return dimension_at(r, named, measure.table)
    if shown:
        return dimension_of_column(r, shown[0].ref)
    return None
