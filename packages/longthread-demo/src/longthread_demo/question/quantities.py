"""Numbers in a question: comparisons, limits and superlatives."""

from __future__ import annotations

from longthread_demo.question.measuring import belongs, head_of, ranks_rows
from longthread_demo.question.reading import NumberComparison, QuestionReading, Superlative
from longthread_demo.words.units import UNITS

_POSTFIX = ("以上", "以下", "以内", "及以上", "及以下", "或以上", "或更多", "或更少")


def read_comparisons(r: QuestionReading) -> None:
    """Every `more than 5 …`, `… 大于 10`, `5 or more`, `between 1 and 3`."""
    for at, chunk in enumerate(r.chunks):
        if at in r.role:
            continue
        operation = chunk.op("cmp")
        if operation is not None and chunk.noun < 0.9:
            _comparison(r, at, operation.args)
        elif chunk.op("between"):
            _between(r, at)
    for at, chunk in enumerate(r.chunks):
        if r.free(at) and chunk.number is not None and _to(r, at) and r.free(at):
            _range(r, at, at)


def _number_near(r: QuestionReading, at: int, step: int) -> int | None:
    place = at + step
    for _ in range(3):
        if not r.free(place):
            return None
        chunk = r.chunks[place]
        if chunk.number is not None or (chunk.moment is not None and chunk.moment.grain == "year"):
            return place
        if not (r.filler(place) or chunk.op("money", "unit", "dur", "meas", "stop", "cmp")):
            return None
        place += step
    return None


def _value(r: QuestionReading, at: int) -> float:
    chunk = r.chunks[at]
    if chunk.number is not None:
        return chunk.number
    return float(chunk.moment.start[:4]) if chunk.moment else 0.0


def _comparison(r: QuestionReading, at: int, args: tuple[str, ...]) -> None:
    text = r.chunks[at].text.lower()
    postfix = text in _POSTFIX or text.startswith(("or ", "and "))
    place = _number_near(r, at, -1 if postfix else 1)
    if place is None:
        if args[1:] and args[1] in ("price", "salary"):
            place = _number_near(r, at, 1)
        if place is None:
            return
    start, end = min(at, place), max(at, place)
    year = r.chunks[place].moment is not None
    left = _left(r, start)
    if year and not _numeric(r, left, end):
        return  # a year: the dates' affair
    made = NumberComparison(at, args[0], _value(r, place), concept=args[1] if len(args) > 1 else "")
    r.use("comparison", at, place)
    _attach(r, made, start, end, left)
    r.comparisons.append(made)


def _numeric(r: QuestionReading, left: int | None, end: int) -> bool:
    """Whether what stands around a four-digit number makes it an amount and no year."""
    if left is not None:
        if r.chunks[left].op("count") is not None and r.chunks[left].noun < 0.5:
            return True
        if r.column_at(left, lambda c: c.kind == "number" and not c.yearish) and not r.column_at(
            left, lambda c: c.kind == "date" or c.yearish
        ):
            return True
    following = next(iter(r.after(end, r.filler)), None)
    if following is None or r.chunks[following].sign:
        return False
    named = r.is_noun(following) and following == end + 1 and not r.chinese
    return named or r.chunks[following].op("money", "dur", "meas", "age") is not None


def _left(r: QuestionReading, start: int) -> int | None:
    """What stands before a comparison: the noun compared, or the word for counting."""
    for place in r.before(start, lambda at: r.filler(at) or bool(r.chunks[at].op("not", "money", "pron"))):
        chunk = r.chunks[place]
        if r.free(place) and (r.is_noun(place) or chunk.op("count") or chunk.senses):
            return place
        if chunk.op("have", "which", "and", "with") and start - place < 3:
            continue
        return None
    return None


def _attach(r: QuestionReading, made: NumberComparison, start: int, end: int, left: int | None) -> None:
    """Find what a comparison is about: units and the noun after it, or what stands before it."""
    place = end + 1
    while (
        place < len(r)
        and (r.chunks[place].op("money", "dur", "meas", "age", "stop", "distinct") or r.filler(place))
        and (not r.chunks[place].noun >= 0.9 or (place == end + 1 and r.chunks[place].op("meas", "dur", "money")))
    ):
        operation = r.chunks[place].op("dur")
        if operation is not None:
            made.scale = float(operation.args[0])
            made.concept = made.concept or "length"
        made.money = made.money or bool(r.chunks[place].op("money"))
        if r.chunks[place].op("meas"):
            made.unit = UNITS.get(r.chunks[place].key[-1])
        if r.chunks[place].op("age"):
            made.concept = "age"
        if r.chunks[place].op("money", "dur", "meas", "age"):
            r.use("comparison", place)
        elif r.chunks[place].text == "的" or r.chunks[place].sign:
            place = len(r)
        place += 1
    right = place if place < len(r) and r.free(place) and r.is_noun(place) else None
    if start > 0 and r.chunks[start - 1].op("money"):
        made.money = True
        r.use("comparison", start - 1)
    if left is not None and r.chunks[left].op("count") and r.chunks[left].noun < 0.5:
        r.use("comparison", left)
        made.noun, made.function = r.previous_noun(left) if r.chinese else _counted(r, left, start), "count"
        r.use("comparison", made.noun)
        return
    numeric = (
        left is not None and r.column_at(left, lambda c: c.kind in ("number", "unknown") and not c.keyish) is not None
    )
    measured = (made.money or made.unit is not None) and left is not None and r.table_at(left) is not None
    if (
        left is not None
        and not (measured and not numeric)
        and (numeric or (r.chinese and right is None) or (right is None and not made.concept))
    ):
        if not made.concept or numeric:
            made.noun, made.concept = left, "" if numeric else made.concept
            r.use("comparison", left)
            _function_before(r, made, left)
        return
    if right is not None and not made.concept and not made.money and made.unit is None:
        made.noun = right
        r.use("comparison", right)


def _counted(r: QuestionReading, count: int, end: int) -> int | None:
    """The noun between `number of` and the comparison."""
    return next((at for at in range(count + 1, end) if r.free(at) and r.is_noun(at)), None)


def _function_before(r: QuestionReading, made: NumberComparison, noun: int) -> None:
    for place in r.before(noun, r.filler):
        operation = r.chunks[place].op("sum", "avg", "max", "min")
        if operation is not None and r.free(place):
            made.function = operation.name
            r.use("comparison", place)
        return


def _to(r: QuestionReading, at: int) -> int | None:
    """The number after `to` / `到`, when a chunk is followed by one."""
    joint = at + 1
    if r.free(joint) and r.chunks[joint].op("to") and r.free(joint + 1) and r.chunks[joint + 1].number is not None:
        return joint + 1
    return None


def _between(r: QuestionReading, at: int) -> None:
    first = _number_near(r, at, 1)
    if first is not None and r.chunks[first].number is not None:
        _range(r, first, at)


def _range(r: QuestionReading, first: int, start: int) -> None:
    joint = first + 1
    while r.free(joint) and r.chunks[joint].op("money", "dur", "meas"):
        joint += 1
    second = joint + 1
    if not (r.free(joint) and r.chunks[joint].op("to", "and") and r.free(second)):
        return
    if r.chunks[second].number is None and r.chunks[second].op("money") and r.free(second + 1):
        second += 1
    if r.chunks[second].number is None:
        return
    made = NumberComparison(start, "between", _value(r, first), high=_value(r, second))
    r.use("comparison", *range(first + 1, joint))
    left = _left(r, min(start, first))
    r.use("comparison", start, first, joint, second)
    tail = second
    if r.free(tail + 1) and r.chunks[tail + 1].op("between", "money", "dur"):
        tail += 1
    _attach(r, made, min(start, first), second, left)
    r.use("comparison", tail)
    r.comparisons.append(made)


def read_limits(r: QuestionReading) -> None:
    """`top 5`, `前10`, `5 most expensive`, `最长的3首`, `which 3 …`, `show 10 …`, `second longest`."""
    _ordinals(r)
    for at, chunk in enumerate(r.chunks):
        if not r.free(at) or chunk.number is None or not 1 <= chunk.number <= 10000 or chunk.number % 1:
            continue
        before, after = r.chunks[at - 1] if at else None, r.chunks[at + 1] if at + 1 < len(r) else None
        if before is not None and before.op("top", "bottom") and r.free(at - 1):
            r.limit = int(chunk.number)
            r.reverse = before.op("bottom") is not None and before.op("top") is None
            r.use("limit", at, at - 1)
        elif (
            (after is not None and after.op("adj", "high", "low", "most", "least"))
            or _after_superlative(r, at)
            or (r.previous is not None and before is not None and before.text.lower() in _CHANGES)
            or (before is not None and before.op("which", "list", "all") and not r.chinese)
            or (r.chinese and before is not None and before.op("list") and r.next_noun(at, 3) is not None)
            or _ranked_behind(r, at)
        ):
            r.limit = int(chunk.number)
            r.use("limit", at)
    _bare_top(r)


def _ranked_behind(r: QuestionReading, at: int) -> bool:
    """`the 2 countries with the most customers`: a number before a noun, and a superlative after both."""
    noun = r.next_noun(at, 3)
    if noun is None or not all(r.filler(p) or r.chunks[p].of("value", "flag") for p in range(at + 1, noun)):
        return False
    led = r.chunks[at - 1] if at else None
    if led is not None and not (r.filler(at - 1) or led.op("which", "list", "all", "top")):
        return False
    return any(
        r.free(p) and r.chunks[p].op("adj", "high", "low", "most", "least") and r.chunks[p].noun < 0.9
        for p in range(noun + 1, len(r))
    )


_CHANGES = frozenset(("it", "to", "改成", "换成", "改为", "换", "要"))


def _ordinals(r: QuestionReading) -> None:
    """`the second longest`, `第二高`, and after a ranking `and the second?`."""
    for at, chunk in enumerate(r.chunks):
        operation = chunk.op("ordinal")
        if operation is None or not r.free(at) or chunk.noun >= 0.9:
            continue
        ranked = at + 1 < len(r) and r.chunks[at + 1].op("adj", "high", "low", "most", "least")
        alone = r.previous is not None and r.previous.limit == 1 and next(iter(r.after(at, r.filler)), None) is None
        if ranked or alone:
            r.offset, r.limit = int(operation.args[0]) - 1, 1
            r.use("limit", at)


def _after_superlative(r: QuestionReading, at: int) -> bool:
    for place in r.before(at, lambda p: r.chunks[p].text in ("的", "the", "是", "哪") or bool(r.chunks[p].op("which"))):
        return bool(r.chunks[place].op("adj", "high", "low", "most", "least", "desc", "asc"))
    return False


def _bare_top(r: QuestionReading) -> None:
    """`top customers` without a number means ten, `the top customer` one."""
    for at, chunk in enumerate(r.chunks):
        if r.free(at) and chunk.op("top") and chunk.text.lower() == "top" and r.limit is None:
            noun = r.next_noun(at)
            if noun is not None:
                r.limit = 10 if r.chunks[noun].text.lower().endswith("s") else 1
                r.use("limit", at)
                if r.limit == 10:
                    r.note("assumed_ten")


def read_superlative(r: QuestionReading) -> None:
    """The first superlative, and the chunk it ranks by."""
    _happened_last(r)
    _first_when(r)
    for at, chunk in enumerate(r.chunks):
        operation = chunk.op("adj", "most", "least", "high", "low")
        if r.superlative is not None:
            return
        if operation is None or not r.free(at) or chunk.noun >= 0.9:
            continue
        if operation.name == "adj":
            made = Superlative(at, operation.args[0] == "desc", False, concept=operation.args[1])
            made.date = made.concept == "date"
            dated = _dated(r, at) if made.date else None
            if dated is not None:
                made.target, made.date_named = dated, True
                r.use("superlative", dated)
            elif _measured(r, at):
                _target(r, made)
        else:
            made = Superlative(at, operation.name in ("most", "high"), operation.name in ("most", "least"))
            if operation.name in ("high", "low") or chunk.text.lower() in _PLAIN:
                _target(r, made)
        r.superlative = made
        r.use("superlative", at)
        return


def _happened_last(r: QuestionReading) -> None:
    """`who joined last?`, `which was opened first?`: the newest or oldest by the date of a verb."""
    for at, chunk in enumerate(r.chunks):
        if not r.free(at) or chunk.text.lower() not in ("last", "first") or r.superlative is not None or at == 0:
            continue
        ends = all(r.chunks[p].sign for p in range(at + 1, len(r)))
        dated = r.column_at(at - 1, lambda c: c.kind in ("date", "unknown"), 0.0) if r.free(at - 1) else None
        if ends and dated is not None and not r.table_at(at - 1):
            r.superlative = Superlative(
                at, chunk.text.lower() == "last", False, concept="date", target=at - 1, date_verb=True
            )
            r.use("superlative", at, at - 1)


def _first_when(r: QuestionReading) -> None:
    """`when was the first payment made?`: the oldest row, by its date."""
    if r.chinese or not any(chunk.text.lower() == "when" for chunk in r.chunks[:2]):
        return
    for at, chunk in enumerate(r.chunks):
        word = chunk.text.lower().removeprefix("the ")
        if r.superlative is None and r.free(at) and word in ("first", "last") and _of_table(r, at):
            r.superlative = Superlative(at, word == "last", False, concept="date", date=True)
            r.use("superlative", at)


def _of_table(r: QuestionReading, at: int) -> bool:
    noun = r.next_noun(at, 2)
    return noun is not None and r.table_at(noun) is not None


_PLAIN = frozenset(
    ["most", "the most", "fewest", "least", "the fewest", "the least", "最多", "最多的", "最少", "最少的"]
)


_DATED = ("date", "dates", "year", "years", "time", "day", "birthday", "日期", "时间", "年份", "年", "日", "年度")


def _dated(r: QuestionReading, at: int) -> int | None:
    """`earliest arrival date`, `最早的入职日期`: the date or year column that a superlative of time names."""
    for place in list(r.after(at, r.filler))[:2]:
        if not r.free(place) or not r.is_noun(place):
            return None
        table = r.table_at(place)
        dated = r.column_at(place, lambda c: c.kind == "date" or c.yearish, 0.2)
        if dated is not None and table is None and r.chunks[place].text.lower().endswith(_DATED):
            return place
        if table is None:
            return None
    return None


def _measured(r: QuestionReading, at: int) -> bool:
    """`longest average delay`, `longest distance`, `时长最长`: an adjective of a column that is named as well."""
    numeric = lambda c: c.kind == "number" and not c.keyish  # noqa: E731
    following = at + 1
    if r.free(following):
        chunk = r.chunks[following]
        if chunk.op("avg", "sum", "max", "min") and chunk.noun < 0.9:
            return True
        if r.is_noun(following) and not r.table_at(following) and r.column_at(following, numeric, 0.2):
            return True
    before = next(iter(r.before(at, r.filler)), None)
    return (
        r.chinese
        and before is not None
        and r.free(before)
        and not r.table_at(before)
        and r.column_at(before, numeric, 0.2) is not None
    )


def _target(r: QuestionReading, made: Superlative) -> None:
    """What `highest …` or `most …` is about: `number of X`, `average X`, `X`; in Chinese mostly what is before it."""
    place = _behind(r, made)
    if place is not None and r.free(place) and not (r.chinese and _chinese_before(r, made)):
        if _computed(r, made, place):
            return
        if r.is_noun(place) and r.chunks[place].text != "的":
            made.target = head_of(r, place)
            r.use("superlative", place, made.target)
            _trailing_count(r, made)
            return
        if r.chunks[place].op("money"):
            r.use("superlative", place)
    if not r.chinese and place is None:
        noun = r.previous_noun(made.index, 3)
        if noun is not None and any(r.chunks[p].text.lower() in ("who", "that") for p in range(noun, made.index)):
            return  # `the members who cancelled most`
        made.target = noun
        r.use("superlative", made.target)
    elif r.chinese:
        _chinese_before(r, made, take=True)
    elif made.counting:
        before = r.before(made.index, lambda p: r.chunks[p].op("stop") is not None and not r.chunks[p].senses)
        place = next(iter(before), None)
        if place is not None and r.free(place) and r.chunks[place].op("soft") and r.chunks[place].of("column"):
            made.target = place
            r.use("superlative", place)


def _behind(r: QuestionReading, made: Superlative) -> int | None:
    """Return the place of what stands after a superlative, values and small words passed over."""
    place = next(
        iter(
            r.after(
                made.index,
                lambda p: r.chunks[p].op("stop") is not None and not r.is_noun(p) and r.chunks[p].text != "的",
            )
        ),
        None,
    )
    if place is not None and r.chunks[place].sign:
        place = None
    if place is not None and not r.chinese and place + 1 < len(r) and r.table_at(place + 1) and r.free(place + 1):
        chunk = r.chunks[place]
        place += bool(chunk.of("value", "flag")) and not r.table_at(place) and chunk.text.lower().endswith("ed")
    if place is not None and not r.chinese:
        place = _past_values(r, place)
    return place


def _computed(r: QuestionReading, made: Superlative, place: int) -> bool:
    """`highest number of X`, `highest average X`: what is computed and ranked by."""
    operation = r.chunks[place].op("count", "sum", "avg", "max", "min")
    if operation is None or (r.chunks[place].noun >= 0.9 and r.next_noun(place, 2) is None):
        return False
    made.function = operation.name
    noun = r.next_noun(place, 3)
    if operation.name in ("sum", "avg") and noun is not None:
        count = next((p for p in range(place + 1, noun) if r.chunks[p].op("count")), None)
        made.function = "count" if count is not None else made.function
        r.use("superlative", count)
    r.use("superlative", place, noun)
    made.target, made.counting = noun, operation.name == "count"
    return True


def _past_values(r: QuestionReading, place: int) -> int:
    """`the most high priority tasks`: return the place of the table after a value and the column it belongs to."""
    at = place
    while at < len(r) and at - place < 3 and r.free(at) and r.chunks[at].of("value") and not r.is_noun(at):
        at += 1
    if at == place or at >= len(r):
        return place
    if belongs(r, at) and at + 1 < len(r) and r.table_at(at + 1):
        r.use("context", at)
        at += 1
    return at if r.table_at(at) else place


def _trailing_count(r: QuestionReading, made: Superlative) -> None:
    """`highest sales total`, `most tracks sold`, `largest customer count`."""
    place = (made.target or 0) + 1
    if r.free(place) and r.chunks[place].op("count") and r.chunks[place].text.lower() == "count":
        made.counting = True
        made.function = "count"
        r.use("superlative", place)


def _chinese_before(r: QuestionReading, made: Superlative, *, take: bool = False) -> bool:
    """In Chinese what is ranked by stands before: `客户最多`, `客户数量最多`, `平均工资最高`, `销售额最高`."""
    before = list(r.before(made.index, lambda p: r.filler(p) and r.chunks[p].text != "的" and not r.is_noun(p)))
    if not before or not r.free(before[0]):
        return False
    place = before[0]
    chunk = r.chunks[place]
    if chunk.op("count") and (chunk.noun < 0.9 or ranks_rows(r, place)):
        if take:
            made.target, made.function, made.counting = r.previous_noun(place, 2), "count", True
            r.use("superlative", place, made.target)
        return True
    aggregate = chunk.op("sum", "avg", "max", "min")
    function = ""
    if aggregate is not None and chunk.noun < 0.9:
        function = aggregate.name
        place = r.previous_noun(place, 2) or place
    if not r.is_noun(place) or not r.free(place):
        return False
    if not take:
        return True
    asked = any(r.chunks[p].op("which") for p in (place - 1, place - 2) if p >= 0)
    if asked and not made.counting and r.table_at(place):
        return False
    if r.previous is not None and place > 0 and r.chunks[place - 1].op("which") and made.counting and not function:
        return False  # 哪个城市最多: the one of the groups before
    _take_chinese(r, made, place, function)
    return True


def _take_chinese(r: QuestionReading, made: Superlative, place: int, function: str) -> None:
    ahead = place - 1
    operation = r.chunks[ahead].op("sum", "avg") if r.free(ahead) else None
    if operation is not None:
        function = function or operation.name
        r.use("superlative", ahead)
    made.target, made.function = place, function
    r.use("superlative", place)
