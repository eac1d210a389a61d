"""Several things asked at once: two tables counted side by side; what cannot be put into one query is refused."""

from __future__ import annotations

import itertools

from longthread_demo.query.plan import PlannedMeasure, QueryPlan
from longthread_demo.question.reading import QuestionReading


def read_several(r: QuestionReading) -> None:
    """`how many trainers and members`, 订单和菜品一共多少: every table that is counted."""
    tables = [name for _, at in r.counted if at is not None and (name := r.table_at(at)) is not None]
    for _, target in list(r.counted):
        if target is None or r.table_at(target) is None:
            continue
        for joint, other in ((target + 1, target + 2), (target - 1, target - 2)):
            if _joined(r, joint, other) and r.table_at(other) not in tables:
                tables.append(r.table_at(other) or "")
                r.use("count", joint, other)
    if len(set(tables)) > 1:
        r.together = list(dict.fromkeys(tables))
    _twice(r)


def _joined(r: QuestionReading, joint: int, other: int) -> bool:
    if not (0 <= joint < len(r) and 0 <= other < len(r)) or not r.free(other):
        return False
    return r.chunks[joint].op("and") is not None and r.is_noun(other) and r.table_at(other) is not None


def _twice(r: QuestionReading) -> None:
    """`total bookings and cancelled bookings`: a filter that holds for one of two."""
    places = [at for at in range(len(r)) if r.table_at(at) and r.is_noun(at)]
    for first, second in itertools.pairwise(places):
        between = range(first + 1, second)
        joined = any(r.chunks[p].op("and") for p in between)
        filtered = any(r.chunks[p].of("value", "flag") for p in between)
        if joined and filtered and r.table_at(first) == r.table_at(second) and second - first <= 5:
            r.refuse("two_things", r.question)


def side_by_side(r: QuestionReading) -> QueryPlan | None:
    """The plan of several tables counted, each by itself; refused when anything else is said of them."""
    restricted = (r.groups, r.dates, r.conditions, r.comparisons, r.patterns, r.aggregates, r.superlative)
    if any(restricted):
        r.refuse("two_things", r.question)
    measures = tuple(PlannedMeasure("count", table) for table in r.together)
    return QueryPlan(table=r.together[0], measures=measures, together=True)
