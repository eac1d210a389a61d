"""The columns that adjectives of size, age and rating mean where no number is named."""

from __future__ import annotations

from longthread.agent.demo.joins import path
from longthread.agent.demo.nouns import default_date
from longthread.agent.demo.reading import Reading, Superlative
from longthread.agent.demo.schema import Ref


def tallest(r: Reading, made: Superlative, home: str) -> Ref | None:
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


def rated(r: Reading, home: str) -> Ref | None:
    """`highest rated trainer`: the ratings kept in a table further down that leads to it."""
    for name in sorted(r.schema.tables):
        column = r.concept(r.schema.tables[name], "rating", lambda c: c.kind in ("number", "unknown"))
        hops = path(r.schema, name, home) if column is not None else None
        if column is not None and hops and all(hop.up for hop in hops):
            return Ref(name, column.name)
    return None


def age(r: Reading, made: Superlative, home: str) -> Ref | None:
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
