"""Questions for an amount in a unit: `多少公斤`, `几分钟`, `how many kilograms`."""

from __future__ import annotations

from longthread_demo.question.reading import NumberComparison, QuestionReading
from longthread_demo.schema import DemoColumn, Ref
from longthread_demo.words.units import UNITS, measuring, unit_of


def read_units(r: QuestionReading) -> None:
    """`多少公斤`, `几分钟`, `how many kilograms`: a unit that is asked for names the column, and counts nothing."""
    for at, chunk in enumerate(r.chunks):
        if not r.free(at) or not chunk.op("meas", "dur") or at == 0 or r.chunks[at - 1].number is not None:
            continue
        asked = next(iter(r.before(at, lambda p: r.chunks[p].op("count") is None and r.filler(p))), None)
        if asked is None or at - asked > 2 or not r.chunks[asked].op("count") or not r.free(asked):
            continue
        ranks = any(r.chunks[p].op("adj", "high", "low", "most", "least") for p in range(len(r)))
        averaged = any(r.chunks[p].op("avg", "max", "min") for p in range(len(r)))
        column = _unit_column(r, at)
        if column is None:
            continue
        r.use("unit", asked)
        r.asked_unit = column
        for place in range(len(r)):  # 占, 用 and the like say how it is taken up
            if r.free(place) and r.chunks[place].text in _TAKES:
                r.use("unit", place)
        if ranks or averaged or any(r.free(p) and r.column_at(p, _amount, 0.3) == column for p in range(at)):
            r.use("unit", at)
        if not ranks and not averaged:
            _total(r, at, column)
        return


_RATES = ("cost", "costs", "fee", "price", "charge", "charged", "pay", "rent", "earn", "earns", "paid", "salary")
_PER = {"month": "monthli", "year": "yearli", "day": "daili", "hour": "hourli", "week": "weekli", "annual": "annual"}


def read_rates(r: QuestionReading) -> None:
    """`what does the plan cost per month`: a column of that rate (`monthly_fee`), and nothing counted by month."""
    if any(chunk.op("count", "sum", "avg", "max", "min") for chunk in r.chunks):
        return
    for at, chunk in enumerate(r.chunks):
        money = next((p for p in range(max(0, at - 3), at) if r.chunks[p].text.lower() in _RATES), None)
        if money is None or not chunk.op("each") or at + 1 >= len(r) or not (r.free(at) and r.free(at + 1)):
            continue
        found = _rated(r, r.chunks[at + 1].text.lower())
        if len(found) == 1:
            r.use("unit", money, at, at + 1)
            r.wanted.append(found[0])


def _rated(r: QuestionReading, per: str) -> list[Ref]:
    """The columns of the tables that are named which keep money for each such time."""
    return [
        Ref(name, column.name)
        for name in sorted(r.anchors())
        for column in r.schema.tables[name].columns
        if _amount(column) and {per, _PER.get(per, per)} & set(column.words)
    ]


_TAKES = frozenset(
    [
        "占",
        "用",
        "用了",
        "占用",
        "占了",
        "耗",
        "耗费",
        "有",
        "用时",
        "耗时",
        "达",
        "重",
        "长",
        "take",
        "takes",
        "took",
        "use",
        "uses",
    ]
)


def _amount(column: DemoColumn) -> bool:
    return column.kind in ("number", "unknown") and not column.keyish


def _unit_column(r: QuestionReading, at: int) -> Ref | None:
    """The column kept in the unit that is asked for: the one the question names, else the only one near."""
    unit = UNITS.get(r.chunks[at].key[-1]) or UNITS.get("".join(r.chunks[at].key))
    if unit is None:
        return None
    for place in range(len(r)):
        if place == at or r.table_at(place):
            continue
        named = r.column_at(place, lambda c: _amount(c) and (unit_of(c) or ("", 0))[0] == unit[0], 0.3)
        if named is not None:
            return named
    for name in sorted(r.anchors()) or sorted(r.schema.tables):
        found = measuring(r.schema.tables[name].columns, unit[0])
        exact = [column for column in found if unit_of(column) == unit]
        if len(exact or found) == 1:
            return Ref(name, (exact or found)[0].name)
    return None


def _total(r: QuestionReading, at: int, column: Ref) -> None:
    """All of it: the sum, when *in total* or *all* is said; otherwise what each row has."""
    words = [p for p in range(len(r)) if r.free(p) and r.chunks[p].op("sum", "all") and r.chunks[p].noun < 0.9]
    if words:
        r.use("aggregate", at, *words)
        r.aggregates.append(("sum", at, at))
    elif r.free(at):
        r.use("unit", at)
        r.wanted.append(column)


def measured_by(r: QuestionReading, at: int) -> bool:
    """`60 minute sessions`, `5 kg parcels`: a measure right before a table says exactly how much."""
    unit = at + 1
    while unit < len(r) and r.chunks[unit].text == "-":
        unit += 1
    head = unit + 1
    if not (r.free(unit) and head < len(r) and r.table_at(head) and r.is_noun(head)) or r.chinese:
        return False
    duration, measure = r.chunks[unit].op("dur"), r.chunks[unit].op("meas")
    if duration is None and measure is None:
        return False
    made = NumberComparison(at, "=", r.chunks[at].number or 0.0)
    if duration is not None:
        made.scale, made.concept = float(duration.args[0]), "length"
    else:
        made.unit = UNITS.get(r.chunks[unit].key[-1])
    r.comparisons.append(made)
    r.use("comparison", *range(at, unit + 1))
    return True
