"""Rows that lack something, or must have it: missing values, rows without partners, and their opposites."""

from __future__ import annotations

from longthread_demo.query.display import link_of
from longthread_demo.query.plan import Condition, Field, field_of
from longthread_demo.question.reading import QuestionReading


def read_absences(r: QuestionReading) -> None:
    """`without a company`, `公司为空`, `customers who never ordered`; and their opposites."""
    for at, chunk in enumerate(r.chunks):
        if not r.free(at):
            continue
        if chunk.op("notnull", "null"):
            _null(r, at, "not null" if chunk.op("notnull") else "null")
        elif chunk.op("without") and chunk.noun < 0.9:
            _without(r, at)
        elif chunk.op("not") and not r.chinese:
            _not_any(r, at)


def _not_any(r: QuestionReading, at: int) -> None:
    """`don't belong to a club`, `are not assigned to any vessel`: a verb is denied of every row of a table."""
    place = at + 1
    while r.free(place) and r.chunks[place].text.lower() not in _ANY:
        if place - at > 3 or r.chunks[place].sign or not (r.filler(place) or r.chunks[place].op("soft", "to")):
            return
        place += 1
    if r.free(place) and r.free(place + 1) and r.table_at(place + 1) is not None:
        _lacking(r, at, place + 1)
        r.use("not", *(range(at + 1, place + 1) if r.role.get(at) == "filter" else ()))


_ANY = ("a", "an", "any")


def read_presence(r: QuestionReading) -> None:
    """`employees who get a commission`, `有奖金的员工`: a column that must not be empty."""
    for at, chunk in enumerate(r.chunks):
        if not r.free(at) or not chunk.op("have", "list", "soft") or chunk.noun >= 0.9:
            continue
        if chunk.op("list", "soft") and chunk.text.lower() not in (
            "get",
            "gets",
            "got",
            "receive",
            "received",
            "earn",
            "earns",
        ):
            continue
        place = at + 1
        article = r.free(place) and r.chunks[place].text.lower() in ("a", "an", "any")
        place += article
        if not r.free(place) or not r.is_noun(place) or r.table_at(place):
            continue
        ref = r.column_at(place, least=0.0)
        ends = place + 1 >= len(r) or r.chunks[place + 1].sign or r.chunks[place + 1].op("which", "and")
        of_table = (
            r.chinese and r.free(place + 2) and r.chunks[place + 1].text == "的" and r.table_at(place + 2) is not None
        )
        asked = any(other.op("count", "which", "list") for other in r.chunks[:at])
        if (
            ref is None
            or ref.table not in r.anchors()
            or not (of_table or (article and ends and asked and not r.chinese))
        ):
            continue
        r.conditions.append(Condition(Field(ref), "not null"))
        r.use("filter", at, place)


def _null(r: QuestionReading, at: int, operator: str) -> None:
    negated = at > 0 and r.free(at - 1) and r.chunks[at - 1].op("not") is not None
    place = r.previous_noun(at - 1 if negated else at, 3)
    if place is None or r.column_at(place) is None:
        place = r.next_noun(at, 3)
    ref = r.column_at(place) if place is not None else None
    if ref is None or place is None or (place > at and _only_table(r, place)):
        return
    flipped = {"null": "not null", "not null": "null"}[operator] if negated else operator
    r.conditions.append(Condition(Field(ref), flipped))  # type: ignore[arg-type]  # both are operators
    r.use("filter", at, place, at - 1 if negated else None)


def _only_table(r: QuestionReading, at: int) -> bool:
    """Whether a noun is the only table that is named: an empty apartment is no missing key of a lease."""
    return r.table_at(at) is not None and not any(r.table_at(p) for p in range(len(r)) if p != at)


def _without(r: QuestionReading, at: int) -> None:
    """After *without* comes the noun that is lacking: a column (null) or a table (no partner row)."""
    for place in r.after(
        at,
        lambda p: (r.filler(p) and not r.chunks[p].of("table", "column")) or bool(r.chunks[p].op("have", "distinct")),
    ):
        chunk = r.chunks[place]
        if chunk.sign or place - at > 5 or not r.free(place):
            return
        if chunk.of("table", "column"):
            _lacking(r, at, place)
            return
        if not chunk.op("soft"):
            return


def _lacking(r: QuestionReading, at: int, place: int) -> None:
    table = r.table_at(place)
    ref = r.column_at(place, least=0.0)
    home = r.entity or (r.previous.table if r.previous and not r.anchors() else None)
    own = ref is not None and (home == ref.table or (ref.table in r.anchors() and table != ref.table))
    if (
        ref is not None
        and own
        and (table is None or _score(r, place, "column") > _score(r, place, "table") - 0.3)
        and not (table and table != ref.table and link_of(r.schema, ref) is None)
    ):
        r.conditions.append(Condition(Field(ref), "null"))
    elif table is not None:
        r.conditions.append(Condition(field_of(table, ""), "not exists"))
    elif ref is not None and any(ref.table in r.linked_to(anchor) for anchor in r.anchors()):
        r.conditions.append(Condition(field_of(ref.table, ""), "not exists"))
    else:
        return
    r.use("filter", at, place)


def _score(r: QuestionReading, at: int, kind: str) -> float:
    return max((sense.score for sense in r.chunks[at].of(kind)), default=0.0)
