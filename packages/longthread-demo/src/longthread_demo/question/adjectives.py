"""The column that a superlative ranks by: the one named, or the one that its adjective means."""

from __future__ import annotations

from longthread_demo.query.display import amounts
from longthread_demo.query.joins import path
from longthread_demo.query.plan import QueryPlan
from longthread_demo.question.nouns import default_amount, default_date
from longthread_demo.question.reading import QuestionReading, Superlative
from longthread_demo.schema import Ref


def ranked_column(r: QuestionReading, made: Superlative, focus: int | None, previous: QueryPlan | None) -> Ref | None:
    """The column a superlative ranks by; an adjective's is looked for in the entity, then in its neighbours."""
    home = (r.table_at(focus) if focus is not None else None) or r.entity
    if home is None and focus is not None:
        found = r.column_at(focus, least=-0.8)
        home = found.table if found else None
    home = home or (previous.table if previous else None) or next(iter(sorted(r.anchors())), None)
    home = home or _of_values(r)
    if made.target is not None:
        table = r.table_at(made.target)
        ref = r.column_at(
            made.target, lambda c: c.kind in ("number", "date", "unknown") and not (c.keyish and c.kind != "date"), -1.0
        )
        if (
            ref is not None
            and (
                table is None
                or table != ref.table
                or any(s.score >= 0.95 and s.ref == ref for s in r.chunks[made.target].of("column"))
            )
            and not (table and r.entity is None and focus is None and table != ref.table)
        ):
            return ref
        if table is not None:
            tall = _tallest(r, made, table)
            if tall is not None:
                return tall
            column = default_amount(r, r.schema.tables[table]) or r.concept(
                r.schema.tables[table], "size", lambda c: c.kind == "number"
            )
            return Ref(table, column.name) if column else None
        return None
    if home is None:
        return None
    tall = _tallest(r, made, home)
    if r.asked_unit is not None and (made.concept or tall is None):
        return r.asked_unit
    if tall is not None:
        return tall
    if made.concept:
        return _by_concept(r, made, home)
    column = default_amount(r, r.schema.tables[home])
    if column is None:
        return None
    return Ref(home, column.name)


def _of_values(r: QuestionReading) -> str | None:
    """The table of the values that stand for its rows: `最近一次火灾`, where only a category is so called."""
    tables = {condition.field.ref.table for condition in r.conditions}
    return tables.pop() if len(tables) == 1 else None


def _by_concept(r: QuestionReading, made: Superlative, home: str) -> Ref | None:
    numeric = lambda c: c.kind in ("number", "unknown")  # noqa: E731
    table = r.schema.tables[home]
    if made.date:
        found = default_date(r, home)
        return found.ref if found else None
    if made.concept == "age":
        return _age(r, made, home)
    column = r.concept(table, made.concept, numeric)
    if column is not None:
        return Ref(home, column.name)
    for name in sorted(r.linked_to(home)):
        column = r.concept(r.schema.tables[name], made.concept, numeric)
        if column is not None:
            return Ref(name, column.name)
    if made.concept == "rating":
        return _rated(r, home)
    if made.concept == "price":
        column = default_amount(r, table)
        return Ref(home, column.name) if column else None
    if made.concept == "length":
        column = next((c for c in amounts(table, r.schema) if set(c.words) & {"min", "sec", "hour", "ms"}), None)
        return Ref(home, column.name) if column else None
    return None


def _tallest(r: QuestionReading, made: Superlative, home: str) -> Ref | None:
    """`最高的火箭`, `highest mountain`, `largest country`: of a thing without a number named, its height or size."""
    if made.concept or not r.chunks[made.index].op("high", "low"):
        return None
    text = r.chunks[made.index].text.lower()
    tall = text.startswith(("highest", "lowest", "最高", "最低"))
    for name in ("height", "elevation") if tall else ("size", "area size", "population", "volume"):
        column = r.concept(r.schema.tables[home], name, lambda c: c.kind == "number")
        if column is not None:
            return Ref(home, column.name)
    return None


def _rated(r: QuestionReading, home: str) -> Ref | None:
    """`highest rated trainer`: the ratings kept in a table further down that leads to it."""
    for name in sorted(r.schema.tables):
        column = r.concept(r.schema.tables[name], "rating", lambda c: c.kind in ("number", "unknown"))
        hops = path(r.schema, name, home) if column is not None else None
        if column is not None and hops and all(hop.up for hop in hops):
            return Ref(name, column.name)
    return None


def _age(r: QuestionReading, made: Superlative, home: str) -> Ref | None:
    """Age itself; else by the date of birth, or of founding, the other way round.

    None where it is the age at another time: `who died youngest`, `was hired youngest`.
    """
    before = made.index - 1
    verb = before > 0 and not r.chinese and r.chunks[before].text.lower().endswith("ed")
    if verb and (r.chunks[before].op("soft") or r.chunks[before].of("column")):
        return None
    table = r.schema.tables[home]
    column = r.concept(table, "age", lambda c: c.kind == "number")
    if column is not None:
        return Ref(home, column.name)
    for concept in ("birth date", "birth year", "founded", "built", "release date", "publication date", "hire date"):
        column = r.concept(table, concept, lambda c: c.kind == "date" or c.yearish)
        if column is not None:
            made.descending = not made.descending
            return Ref(home, column.name)
    found = default_date(r, home)
    if found is not None and found.ref.table == home:
        made.descending = not made.descending
        return found.ref
    return None
