"""Counting and aggregating: which noun each `how many`, `total`, `平均` is about."""

from __future__ import annotations

from longthread_demo.question.focus import compound
from longthread_demo.question.nouns import money_word
from longthread_demo.question.reading import QuestionReading, Superlative

_BEHIND = frozenset(
    [
        "数量",
        "总数",
        "总数量",
        "个数",
        "人数",
        "总人数",
        "次数",
        "计数",
        "数目",
        "数",
        "笔数",
        "场数",
        "本数",
        "总数是多少",
    ]
)


_OVERALL = frozenset(("in total", "overall", "combined", "altogether", "总共", "一共", "共", "累计"))


def read_counts(r: QuestionReading) -> None:
    """Every word for counting, with the noun counted."""
    for at, chunk in enumerate(r.chunks):
        if not r.free(at) or not chunk.op("count") or (chunk.noun >= 0.9 and not _counts_rows(r, at)):
            continue
        others = any(r.chunks[p].op("sum", "avg", "max", "min") and r.free(p) for p in range(len(r)) if p != at)
        if chunk.text == "多少" and _of_aggregate(r, at):
            r.use("count", at)
            continue
        target = _chinese_target(r, at) if r.chinese else _english_target(r, at)
        if chunk.text == "多少" and (r.superlative or r.role.get(at - 1) == "aggregate"):
            r.use("count", at)
            continue
        if target is None and others and chunk.text == "多少":
            r.use("count", at)
            continue
        r.use("count", at, target)
        r.counted.append((at, target))


def _of_aggregate(r: QuestionReading, at: int) -> bool:
    """Whether 多少 only asks what is worked out right before it: `年费平均多少`, 总额是多少."""
    before = next(iter(r.before(at, r.filler)), None)
    if before is None or not r.free(before):
        return False
    return r.chunks[before].op("avg", "max", "min") is not None or r.chunks[before].text in ("总额", "总额是")


def _counts_rows(r: QuestionReading, at: int) -> bool:
    """`订单数量`, `订单的数量`, `order count`: a number of rows, though some column is called 数量 or count too."""
    if not r.chinese:
        return r.chunks[at].text.lower() == "count" and _of_table(r, at - 1, at)
    owner = _owner(r, at)
    if owner is None:
        return False
    return owner == at - 1 or not (_is_worked_out(r, at) or any(chunk.op("list") for chunk in r.chunks))


def ranks_rows(r: QuestionReading, at: int) -> bool:
    """`哪个类别的商品数量最多`: a number of rows; but 哪个商品的数量最多 is about what is recorded for each."""
    owner = _owner(r, at) if r.chinese else None
    return owner is not None and _of_table(r, owner, at) and not (owner and r.chunks[owner - 1].op("which"))


def _owner(r: QuestionReading, at: int) -> int | None:
    """The table right before a word for a number, 的 passed over."""
    if r.chunks[at].text not in _BEHIND:
        return None
    owner = next(iter(r.before(at, lambda p: r.chunks[p].text == "的")), None)
    return owner if owner is not None and r.free(owner) and r.table_at(owner) is not None else None


def _of_table(r: QuestionReading, owner: int, at: int) -> bool:
    """Whether a table stands at `owner`, and none of its own columns is called as the word at `at`."""
    table = r.table_at(owner) if owner >= 0 and r.free(owner) else None
    return table is not None and all(sense.ref.table != table for sense in r.chunks[at].of("column"))


def _is_worked_out(r: QuestionReading, at: int) -> bool:
    """`商品的数量总和`: return whether a column's sum or extreme is asked for right after it."""
    behind = next(iter(r.after(at, r.filler)), None)
    return behind is not None and r.chunks[behind].op("sum", "avg", "max", "min") is not None


def _english_target(r: QuestionReading, at: int) -> int | None:
    for place in r.after(at, r.filler):
        if not r.free(place) or r.chunks[place].sign:
            break
        if r.is_noun(place) and not _describes(r, place):
            return place if not _before_table(r, place) else place + 1
        if r.chunks[place].op("each", "by"):
            break
    return r.previous_noun(at, 2) if at + 1 >= len(r) or r.chunks[at].text.lower() == "count" else None


def _before_table(r: QuestionReading, at: int) -> bool:
    """Return whether a column's name only describes the table after it: 男性 in 男性患者, where rows are counted."""
    named = r.free(at + 1) and r.is_noun(at + 1) and r.table_at(at + 1) is not None
    return named and r.table_at(at) is None and not r.chunks[at + 1].of("column")


def _describes(r: QuestionReading, at: int) -> bool:
    """Whether a noun only describes the next one: a flag or value before a table (`active customers`)."""
    chunk = r.chunks[at]
    following = at + 1 if r.free(at + 1) else None
    named = following is not None and r.table_at(following) is not None
    if named and belongs(r, at):
        return True
    if named and compound(r, at):
        return True
    weak = chunk.noun < 0.7
    if named and chunk.text.isascii() and chunk.text.lower().endswith("ed"):
        return True  # purchased products: products that have purchases
    return named and not r.table_at(at) and (weak or bool(chunk.of("flag", "value")))


def belongs(r: QuestionReading, at: int) -> bool:
    """Return whether a column stands right after one of its values: `high priority`."""
    if at == 0 or r.table_at(at):
        return False
    mine = {sense.ref for sense in r.chunks[at].of("column")}
    return any(sense.ref in mine for sense in r.chunks[at - 1].of("value"))


def _chinese_target(r: QuestionReading, at: int) -> int | None:
    chunk = r.chunks[at]
    before = next(iter(r.before(at, r.filler)), None)
    after = next(iter(r.after(at, lambda p: r.filler(p) or bool(r.chunks[p].op("distinct")))), None)
    if chunk.text in _BEHIND and before is not None and r.free(before) and r.is_noun(before):
        return before
    if after is not None and not r.chunks[after].sign:
        place = r.next_noun(at, 8)
        if place is not None and before is not None and r.free(before) and r.table_at(before) and _persons(r, place):
            return before  # 女业主有多少人
        if place is not None:
            return place if not _before_table(r, place) else place + 1
    if before is not None and r.free(before) and r.is_noun(before) and not _grouped(r, before):
        return before
    return r.previous_noun(at, 4) if before is not None and not _grouped(r, before) else None


def _persons(r: QuestionReading, at: int) -> bool:
    """Whether a word only says that it is people who are counted: 人 names no more than the end of a column."""
    return r.chunks[at].op("stop") is not None and r.chunks[at].noun < 0.7


def _grouped(r: QuestionReading, at: int) -> bool:
    return at > 0 and r.chunks[at - 1].op("each") is not None


def read_aggregates(r: QuestionReading) -> None:
    """Every `total`, `average`, `max` …, with the noun aggregated."""
    for at, chunk in enumerate(r.chunks):
        operation = chunk.op("sum", "avg", "max", "min")
        if operation is None or not r.free(at):
            continue
        if operation.name == "sum" and _only_counts(r, at):
            r.use("count", at)
            continue
        if chunk.noun >= 0.9 and _is_target(r, at):
            continue
        if operation.name == "sum" and r.comparisons and chunk.noun < 0.9 and chunk.text.lower() in _OVERALL:
            r.use("comparison", at)
            continue
        target = _aggregated(r, at)
        if target is None and chunk.noun >= 0.9:
            continue
        r.use("aggregate", at, target)
        r.aggregates.append((operation.name, at, target))
    _shared(r)


def read_totals(r: QuestionReading) -> None:
    """`total amount of …`, `发票总额`, `sales in 2013`: a column whose name alone asks for its sum."""
    if r.aggregates or r.counted or r.superlative is not None or r.ordering is not None:
        return
    for at, chunk in enumerate(r.chunks):
        if not r.free(at) or not r.is_noun(at) or r.table_at(at):
            continue
        said = chunk.text.lower().startswith("total ") or chunk.text.startswith("总") or chunk.text.endswith("总额")
        if (said or (money_word(chunk.key) and not _listed_beside(r, at))) and r.column_at(
            at, lambda c: c.kind == "number", -1.0
        ):
            r.use("aggregate", at)
            r.aggregates.append(("sum", at, at))
            return


def _listed_beside(r: QuestionReading, at: int) -> bool:
    """Whether the column is listed for each of something: `list customers and their spending`."""
    return any(chunk.op("list") for chunk in r.chunks) and any(r.table_at(p) for p in range(at)) and not r.groups


def _shared(r: QuestionReading) -> None:
    """`minimum and maximum salary`: the first takes the noun of the second."""
    for number, (function, at, target) in enumerate(r.aggregates):
        later = [other for other in r.aggregates[number + 1 :] if other[2] is not None]
        if (
            target is None
            and later
            and all(
                r.chunks[p].op("and") or r.filler(p) or r.chunks[p].op("sum", "avg", "max", "min")
                for p in range(at, later[0][1])
            )
        ):
            r.aggregates[number] = (function, at, later[0][2])


def _only_counts(r: QuestionReading, at: int) -> bool:
    """`一共有多少客户`, `how many customers in total`; but 贷款总额是多少 asks for money."""
    if "额" in r.chunks[at].text:
        return False
    return (bool(r.counted) and r.chunks[at].noun < 0.9) or any(
        r.free(p) and r.chunks[p].op("count") and r.chunks[p].noun < 0.9
        for p in range(at + 1, min(at + 3, len(r)))
        if r.chinese
    )


def _is_target(r: QuestionReading, at: int) -> bool:
    """`average total`, `total of invoices`: a column called total that another word aggregates."""
    before = next(iter(r.before(at, r.filler)), None)
    return before is not None and (r.table_at(before) is not None or bool(r.chunks[before].op("avg", "max", "min")))


def _aggregated(r: QuestionReading, at: int) -> int | None:
    following = next(iter(r.after(at, r.filler)), None)
    previous = next(iter(r.before(at, r.filler)), None)
    if r.chinese and previous is not None and r.free(previous) and r.is_noun(previous):
        numeric = (
            None
            if r.table_at(previous)
            else r.column_at(previous, lambda c: c.kind in ("number", "unknown", "date"), 0.0)
        )
        ahead = following is not None and r.free(following) and r.is_noun(following)
        if numeric and not (ahead and r.chunks[at].text in ("总", "平均", "平均的", "总的")):
            return previous
    for place in r.after(at, lambda p: r.filler(p) or r.role.get(p) == "preposition"):
        chunk = r.chunks[place]
        if chunk.sign or chunk.op("each", "by") or not r.free(place):
            break
        total = chunk.op("sum", "count") and chunk.noun >= 0.9
        if r.is_noun(place) and (total or not chunk.op("sum", "avg")) and not _describes(r, place):
            return head_of(r, place)
        if chunk.op("sum", "avg", "max", "min"):
            break
    if r.chunks[at].text.lower() in _OVERALL:
        for place in (p for p in range(at) if r.free(p) and r.is_noun(p) and not r.table_at(p)):
            if r.column_at(place, lambda c: c.kind == "number" and not c.keyish, 0.3) is not None:
                return place  # how much prize money was paid out in total
    return r.previous_noun(at, 2)


def head_of(r: QuestionReading, at: int) -> int:
    """`average invoice total`, `total order amount`, `平均订单金额`: the number column right after a table."""
    following = at + 1
    table = r.table_at(at)
    while r.chinese and r.free(following) and r.chunks[following].text == "的":
        following += 1
    if table is None or not r.free(following) or not r.is_noun(following) or r.chunks[following].op("count"):
        return at
    if r.column_at(following, lambda c: c.kind in ("number", "unknown", "date"), 0.0) and not r.table_at(following):
        return following
    return at


def read_ranking(r: QuestionReading) -> None:
    """`top 5 customers by revenue`, `按销售额排名前5`, `销售额前5的客户`, `sorted by price`."""
    for at, chunk in enumerate(r.chunks):
        if not r.free(at) or not chunk.op("by", "sort") or chunk.noun >= 0.9:
            continue
        sorting = chunk.op("sort") is not None or _sorts_later(r, at)
        if not sorting and not (r.limit is not None and r.superlative is None and r.groups_ahead(at) is False):
            continue
        target = r.next_noun(at, 3)
        operation = next(
            (
                r.chunks[p].op("count", "sum", "avg", "max", "min")
                for p in range(at + 1, min(at + 3, len(r)))
                if r.free(p) and not r.chunks[p].noun >= 0.9
            ),
            None,
        )
        if target is None and operation is None:
            if chunk.op("sort"):
                r.use("order", at)
            continue
        if target is None and operation is not None and r.previous is not None and r.previous.measures and sorting:
            r.use(
                "order",
                at,
                *(p for p in range(at + 1, min(at + 3, len(r))) if r.free(p) and r.chunks[p].op("count", "sum")),
            )
            r.resort = _direction(r, at) is not False
            continue

        _rank(r, at, target, operation.name if operation else "", sorting=sorting)
    _chinese_top(r)


def _rank(r: QuestionReading, at: int, target: int | None, function: str, *, sorting: bool) -> None:
    down = _direction(r, at)
    if target is not None and r.chinese:
        behind = target + 1
        if r.free(behind) and r.chunks[behind].op("count", "sum") and not r.chunks[behind].noun >= 0.9:
            function = r.chunks[behind].op("count", "sum").name  # type: ignore[union-attr]  # checked above
            r.use("order", behind)
    end = target if target is not None else at + 2
    r.use(
        "order",
        at,
        *(p for p in range(at + 1, end) if r.free(p) and r.chunks[p].op("count", "sum", "avg", "max", "min")),
        target,
    )
    counts = target is not None and (
        r.chunks[target].text in _BEHIND or r.chunks[target].text.lower() in ("count", "number", "total")
    )
    if sorting and counts and r.previous is not None and r.previous.measures and not r.counted and not r.groups:
        r.resort = down is not False
        return
    if sorting and not function and r.limit is None and target is not None:
        r.ordering = (target, down)
        return
    if r.superlative is None:
        descending = (not r.reverse) if down is None else down
        r.superlative = Superlative(at, descending, function == "count", target=target, function=function)
        if sorting and r.limit is None:
            r.limit = 0  # an order without an end


def _sorts_later(r: QuestionReading, at: int) -> bool:
    return any(
        r.chunks[p].op("sort", "desc", "asc") for p in range(at + 1, min(at + 6, len(r))) if not r.chunks[p].sign
    )


def _direction(r: QuestionReading, at: int) -> bool | None:
    """Whether it is said to go down; None when nothing is said. Takes the words that say it."""
    down: bool | None = None
    for place in range(len(r)):
        operation = r.chunks[place].op("desc", "asc", "sort")
        if operation is None or not r.free(place):
            continue
        if operation.name != "sort":
            down = operation.name == "desc"
        r.use("order", place)
    return down


def _chinese_top(r: QuestionReading) -> None:
    """`客户最多的前5个国家` is read elsewhere; this is `销售额前5的客户`, `播放次数前十的歌曲`."""
    if not r.chinese or r.limit is None or r.superlative is not None:
        return
    for at, chunk in enumerate(r.chunks):
        if r.role.get(at) != "limit" or not chunk.op("top", "bottom") or at == 0 or not r.free(at - 1):
            continue
        before = r.chunks[at - 1]
        count = before.op("count") is not None and before.noun < 0.9
        noun = r.previous_noun(at - 1, 2) if count else (at - 1 if r.is_noun(at - 1) else None)
        if noun is None:
            return
        numeric = r.column_at(noun, lambda c: c.kind == "number", 0.0) is not None
        if count or (numeric and not r.table_at(noun)):
            r.superlative = Superlative(at, not r.reverse, count, target=noun, function="count" if count else "")
            r.use("order", at - 1, noun)
        return
