"""Grouping: `per country`, `by year`, `每个国家`, `按月`, `不同国家的…数量`."""

from __future__ import annotations

from longthread_demo.question.reading import QuestionReading


def read_groups(r: QuestionReading) -> None:
    """Every chunk that something is grouped by, nouns and units of time."""
    for at, chunk in enumerate(r.chunks):
        if not r.free(at) or chunk.noun >= 0.9:
            continue
        if chunk.op("each", "by") or (chunk.op("distinct") and r.chinese and _shared(r, at)):
            _group(r, at)
        elif chunk.op("unit") and chunk.text.lower() in _ADVERBS:
            r.use("group", at)
            r.groups.append(at)
    for at, chunk in enumerate(r.chunks):
        if r.free(at) and chunk.op("split"):
            _spread(r, at)
            r.use("group", at)


def _spread(r: QuestionReading, at: int) -> None:
    """`客户的城市分布`: how many of each value of the column before it."""
    before = at - 1
    if r.groups or not r.chunks[at].text.startswith("分布") or not r.free(before) or not r.is_noun(before):
        return
    if r.table_at(before) is None and r.column_at(before, lambda c: c.kind != "date", 0.0) is not None:
        r.use("group", before)
        r.groups.append(before)


_ADVERBS = frozenset(
    [
        "yearly",
        "annually",
        "monthly",
        "quarterly",
        "daily",
        "每年",
        "逐年",
        "各年",
        "历年",
        "每月",
        "逐月",
        "各月",
        "每季度",
        "逐季",
        "每天",
        "每日",
        "逐日",
    ]
)


def _group(r: QuestionReading, at: int) -> None:
    if r.chunks[at].op("each") is None and (_ranks(r, at) or (r.chinese and _sorted(r, at))):
        return
    if (
        r.chinese
        and r.chunks[at].op("each")
        and at
        and r.chunks[at - 1].op("avg")
        and not any(c.op("count") and r.role.get(p) != "unit" for p, c in enumerate(r.chunks))
    ):
        r.use("preposition", at)  # 平均每张发票的金额: an average over all, and no groups
        return
    passive = r.chunks[at].text.lower() == "by"
    for place in r.after(at, r.filler):
        chunk = r.chunks[place]
        if not r.free(place) or chunk.sign or place - at > 4:
            return
        if passive and chunk.of("value") and not r.is_noun(place):
            r.use("preposition", at)
            return
        if chunk.op("count") and r.chinese and chunk.noun < 0.9:
            _owned(r, at)  # 各有多少: what is counted comes next, and what has it came before
            return
        if chunk.op("distinct", "each"):
            r.use("group", place)
            continue
        if chunk.op("unit") and chunk.noun < 0.97:
            break
        if r.is_noun(place):
            if passive and _filtered(r, place):
                r.use("preposition", at)
                return
            break
        if passive:
            return
    else:
        return
    place = _head(r, place)
    r.use("group", at, place)
    r.groups.append(place)
    _more(r, place)


def _head(r: QuestionReading, at: int) -> int:
    """`by payment method`: the column of a table that stands right before it."""
    table, behind = r.table_at(at), at + 1
    if r.chinese or table is None or not r.free(behind) or not r.is_noun(behind) or r.table_at(behind) is not None:
        return at
    ref = r.column_at(behind, lambda c: c.kind == "text", 0.0)
    if ref is None or ref.table != table:
        return at
    r.use("context", at)
    return behind


def _owned(r: QuestionReading, at: int) -> None:
    """`站点各有多少充电桩`: where nothing else is grouped by, it is what stands before."""
    noun = r.previous_noun(at, 3)
    if r.groups or noun is None or any(r.chunks[place].op("count") for place in range(at)):
        return
    counted = r.next_noun(at, 6)
    if counted is not None and r.table_at(noun) != r.table_at(counted):
        r.use("group", at, noun)
        r.groups.append(noun)


def _sorted(r: QuestionReading, at: int) -> bool:
    return any(r.chunks[place].op("sort", "desc", "asc") for place in range(at + 2, min(at + 5, len(r))))


def _ranks(r: QuestionReading, at: int) -> bool:
    """`top 5 customers by revenue`: what follows is ranked by."""
    if not any(r.role.get(p) == "limit" and r.chunks[p].op("top", "bottom") for p in range(at)):
        return False
    if any(chunk.op("most", "least", "high", "low", "adj") for chunk in r.chunks):
        return False
    noun = r.next_noun(at, 3)
    return not r.chinese or (noun is not None and r.column_at(noun, lambda c: c.kind == "number", 0.0) is not None)


def _filtered(r: QuestionReading, noun: int) -> bool:
    """`albums by artist Queen`: the noun only introduces a value."""
    after = next(iter(r.after(noun, r.filler)), None)
    return after == noun + 1 and (
        bool(r.chunks[noun + 1].of("value"))
        or r.chunks[noun + 1].quoted
        or (r.chunks[noun + 1].unknown and r.chunks[noun + 1].proper)
    )


def _more(r: QuestionReading, at: int) -> None:
    """`per country and year`, `按国家和年份`."""
    joint = at + 1
    while r.free(joint) and r.chunks[joint].text in (",", "，", "的"):
        joint += 1
    if not (r.free(joint) and r.chunks[joint].op("and")) or not r.free(joint + 1):
        return
    place = joint + 1
    while r.free(place) and (r.filler(place) or r.chunks[place].op("each", "by")):
        place += 1
    if r.free(place) and (
        r.chunks[place].op("unit") or (r.is_noun(place) and r.table_at(place) not in r.anchored_before(at))
    ):
        r.use("group", joint, place)
        r.groups.append(place)


def _shared(r: QuestionReading, at: int) -> bool:
    """`不同国家的客户数量`: different X, each with a number."""
    noun = r.next_noun(at, 2)
    later = range((noun or at) + 1, len(r))
    return noun is not None and any(r.chunks[p].op("count", "sum", "avg", "max", "min") for p in later)
