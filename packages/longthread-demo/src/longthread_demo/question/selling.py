"""What was sold: units (`how many laptops were sold`, 卖了多少台) and money (`how much did we sell`, 卖了多少钱)."""

from __future__ import annotations

from longthread.tools.analysis.schema_linking import atoms
from longthread_demo.glossary import glossary
from longthread_demo.query.display import dates
from longthread_demo.query.joins import path
from longthread_demo.query.plan import Field, PlannedMeasure, field_of
from longthread_demo.question.nouns import means
from longthread_demo.question.reading import QuestionReading
from longthread_demo.schema import DemoColumn, DemoTable, Ref, bases

_VERBS = ("卖", "售出", "销售了", "卖出", "卖掉")
_MONEY = ("多少钱", "多少元", "多少块")


def sells(r: QuestionReading) -> int | None:
    """The place of the word for selling, if there is one."""
    for at, chunk in enumerate(r.chunks):
        if "sell" in chunk.key and not chunk.of("table") and not chunk.op("most", "least"):
            return at
        if chunk.text.startswith(_VERBS) and not chunk.of("table"):
            return at
    return None


def units_sold(r: QuestionReading) -> PlannedMeasure | None:
    """How many were sold: the quantities of the table that also has a price."""
    for table in bases(r.schema.tables.values()):
        name = table.name
        price = r.concept(table, "price", _number)
        quantity = r.concept(table, "quantity", lambda c: _number(c) and "stock" not in c.words)
        if price is not None and quantity is not None and price != quantity:
            return PlannedMeasure("sum", name, Field(Ref(name, quantity.name)))
    return None


def read_takings(r: QuestionReading) -> None:
    """`how much did we sell?`, 一共卖了多少钱: the money of what was sold. Refused where it is not clear which."""
    at = sells(r)
    asked = next((p for p, chunk in enumerate(r.chunks) if _asks_money(chunk.text.lower())), None)
    if at is None or asked is None or r.counted or r.superlative is not None:
        return
    found = [measure for measure in map(_takings, bases(r.schema.tables.values())) if measure is not None]
    named = [measure for measure in found if measure.table in r.anchors()]
    found = named or found
    stored = [measure for measure in found if measure.factor is None]
    if len(found) > 1 and len(stored) == 1:
        found = stored  # the total of a sale rather than the sum of its lines
    if len(found) != 1:
        names = ", ".join(f"{m.table}.{m.field.ref.column}" for m in found if m.field)
        r.refuse("several_amounts" if found else "no_amount", names or r.text(at))
        return
    r.made.append(found[0])
    taken = [p for p, c in enumerate(r.chunks) if c.op("sum", "money") or c.text in ("钱", "了", "一共", "总共")]
    r.use("aggregate", at, asked, *(p for p in taken if r.free(p) and r.chunks[p].noun < 0.9))
    r.entity = r.entity or found[0].table


def _asks_money(text: str) -> bool:
    return text in ("how much", "how much money", "how much in total") or text.startswith(_MONEY)


def _number(column: DemoColumn) -> bool:
    return column.kind in ("number", "unknown") and not column.keyish


def _takings(table: DemoTable) -> PlannedMeasure | None:
    """The money a table's rows record: a column called so, else price times quantity."""
    for name in ("revenue", "amount", "total"):
        for column in table.columns:
            if _number(column) and _called(column, name):
                return PlannedMeasure("sum", table.name, field_of(table.name, column.name))
    price = next((c for c in table.columns if _number(c) and _called(c, "price")), None)
    count = next((c for c in table.columns if _number(c) and _called(c, "quantity") and "stock" not in c.words), None)
    if price is None or count is None:
        return None
    return PlannedMeasure("sum", table.name, field_of(table.name, price.name), field_of(table.name, count.name))


def _called(column: DemoColumn, name: str) -> bool:
    key = atoms(name)
    forms = (key, *glossary().same(key))
    return any(column.words[-len(form) :] == form for form in forms)


def sold_instead(r: QuestionReading, counted: str | None) -> PlannedMeasure | None:
    """`how many laptops were sold`: units, where kept. Refuses where things and no sales would be counted."""
    if sells(r) is None:
        return None
    sold = units_sold(r)
    if sold is not None:
        hops = path(r.schema, sold.table, counted) if counted else []
        reached = hops is not None and all(hop.up for hop in hops)
        return sold if reached and not (hops == [] and counted is None and not _about(r, sold.table)) else None
    if counted is not None and not _is_sale(r, counted):
        r.refuse("no_units", counted)
    return None


def _about(r: QuestionReading, table: str) -> bool:
    return any(sense.ref.table == table for chunk in r.chunks for sense in chunk.senses)


def sells_in(r: QuestionReading, table: str) -> bool:
    """Whether a table's rows may be sales: it is called so, or no other table is."""
    called = [name for name, found in r.schema.tables.items() if means(found.words, ("sale", "order", "销售"))]
    return not called or table in called or any("sell" in column.words for column in r.schema.tables[table].columns)


def _is_sale(r: QuestionReading, table: str) -> bool:
    """Whether a row of the table may itself be a sale: it is described and has a date, and nothing points to it."""
    found = r.schema.tables[table]
    pointed = any(link.target == table for link in r.schema.links)
    named = any("sell" in column.words or "sal" in column.words or "sale" in column.words for column in found.columns)
    return named or not found.described or (bool(dates(found)) and not pointed)
