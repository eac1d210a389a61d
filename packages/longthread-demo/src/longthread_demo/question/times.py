"""Dates in a question, made ranges: `in 2013`, `since May 2020`, `2010到2015年`, `last year`."""

from __future__ import annotations

from longthread_demo.question.reading import QuestionReading, When
from longthread_demo.words.moments import Moment, year


def read_dates(r: QuestionReading) -> None:
    """Every moment that no comparison took, with the words around it."""
    for at, chunk in enumerate(r.chunks):
        if not r.free(at):
            continue
        newest = chunk.op("reltime")
        if newest is not None:
            r.use("date", at)
            r.dates.append(When(at, newest=(newest.args[0], int(newest.args[1])), noun=_noun(r, at)))
            r.note("newest")
        elif chunk.moment is not None:
            _moment(r, at, chunk.moment)
        elif r.chinese and chunk.number is not None and chunk.number >= 1500:
            _bare_chinese(r, at)


def _bare_chinese(r: QuestionReading, at: int) -> None:
    """`2010到2015年`: the first year lacks its 年."""
    if r.free(at + 2) and r.chunks[at + 1].op("to", "and") and r.chunks[at + 2].moment:
        _moment(r, at, year(int(r.chunks[at].number or 0)))


def _moment(r: QuestionReading, at: int, moment: Moment) -> None:
    r.use("date", at)
    if moment.grain == "range":
        r.use("date", *_words_before(r, at, "between", "since"))
        _close(r, at)
        r.dates.append(When(at, moment.start, moment.end, noun=_noun(r, at)))
        return
    joint = at + 1
    while r.free(joint) and r.chunks[joint].text in ("年", "年份"):
        joint += 1
    second = joint + 1
    if r.free(joint) and r.chunks[joint].op("to", "and", "until", "or") and r.free(second):
        other = r.chunks[second].moment
        between = r.chunks[joint].op("or") is None and (
            _leads(r, at, "between", "since", "cmp") or _from(r, at) or r.chunks[joint].op("to", "until")
        )
        if other is not None and between:
            r.use("date", joint, second, *_words_before(r, at, "between", "since"))
            _close(r, second)
            r.dates.append(When(at, moment.start, other.end, noun=_noun(r, at)))
            return
        if other is not None and r.chunks[joint].op("and", "or"):
            r.use("date", joint, second)
            low, high = sorted((moment, other), key=lambda m: m.start)
            noun = _noun(r, at) if _noun(r, at) is not None else _noun(r, second)
            r.either = r.chunks[joint].op("or") is not None
            if low.end == high.start and not _side_by_side(r):
                r.dates.append(When(at, low.start, high.end, noun=noun))
            else:
                r.dates += [When(at, low.start, low.end, noun=noun), When(at, high.start, high.end, noun=noun)]
            return
    r.dates.append(_one(r, at, moment))


def _side_by_side(r: QuestionReading) -> bool:
    """Whether a number for each is asked for: 2022年和2023年各有多少, `in 2022 and 2023 respectively`."""
    said = ("each", "respectively", "separately", "各", "分别")
    return any(chunk.text.lower().startswith(said) for chunk in r.chunks) and not any(
        chunk.text.lower() in ("each", "各") and any(r.is_noun(p) for p in (at + 1,) if p < len(r))
        for at, chunk in enumerate(r.chunks)
    )


def _one(r: QuestionReading, at: int, moment: Moment) -> When:
    made = When(at, moment.start, moment.end, noun=None)
    lead = _words_before(r, at, "after", "since", "before", "until", "cmp")
    tail = [
        place
        for place in (at + 1, at + 2)
        if r.free(place) and r.chunks[place].op("after", "since", "before", "until", "cmp")
    ]
    if (
        tail
        and tail[0] == at + 2
        and not (r.chunks[at + 1].text in ("年", "及", "月", "and", "or") or r.filler(at + 1))
    ):
        tail = []
    for place in (lead or tail)[:1]:
        chunk = r.chunks[place]
        name = "after"
        compared = chunk.op("cmp")
        if compared is not None:
            turned = {">": "<", "<": ">"} if compared.args[1:] == ("age",) else {}
            name = {">": "after", ">=": "since", "<": "before", "<=": "until", "=": "on"}[
                turned.get(compared.args[0], compared.args[0])
            ]
        else:
            operation = chunk.op("after", "since", "before", "until")
            name = operation.name if operation else name
        _bound(made, name, moment)
        r.use("date", place)
        if name == "since" and chunk.text in ("以后",):
            r.note("inclusive", r.chunks[at].text)
    _close(r, at)
    made.noun = _noun(r, min([at, *lead]))
    return made


def _bound(made: When, name: str, moment: Moment) -> None:
    if name == "after":
        made.low, made.high = moment.end, None
    elif name == "since":
        made.low, made.high = moment.start, None
    elif name == "before":
        made.low, made.high = None, moment.start
    elif name == "until":
        made.low, made.high = None, moment.end


def _close(r: QuestionReading, at: int) -> None:
    """Take the small words after a date: 年, 之间, 期间, 以来."""
    for place in (at + 1, at + 2):
        if r.free(place) and (
            r.chunks[place].op("between") or r.chunks[place].text in ("年", "间", "期间", "以来", "起")
        ):
            r.use("date", place)


def _leads(r: QuestionReading, at: int, *names: str) -> bool:
    return bool(_words_before(r, at, *names))


def _from(r: QuestionReading, at: int) -> bool:
    return at > 0 and r.chunks[at - 1].text.lower() in ("from", "从", "自", "在")


def _words_before(r: QuestionReading, at: int, *names: str) -> list[int]:
    """The place just before a date (small words passed over) when it is one of these operations."""
    for place in r.before(
        at, lambda p: r.chunks[p].text.lower() in ("the", "year", "of", "in", "于", "在", "年", "是")
    ):
        return [place] if r.free(place) and r.chunks[place].op(*names) else []
    return []


def _noun(r: QuestionReading, at: int) -> int | None:
    """Return the date column named next to a date: `hired after 2003`, `发射日期在2020年`, `born in 1990`."""
    for place in r.before(at, lambda p: r.filler(p) and not r.chunks[p].senses):
        if at - place <= 4 and place not in r.role and r.column_at(place, lambda c: c.kind == "date" or c.yearish, 0.0):
            return place
        break
    for place in (at + 1, at + 2, at + 3):
        if place < len(r) and r.free(place) and r.column_at(place, lambda c: c.kind == "date" or c.yearish, 0.0):
            if not r.table_at(place) or r.chunks[place].op("soft"):
                return place
            return None
        if place < len(r) and r.chunks[place].sign:
            return None
    return None
