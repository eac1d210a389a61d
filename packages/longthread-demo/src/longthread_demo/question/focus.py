"""The noun a question asks for, once counting, grouping and comparing have taken theirs."""

from __future__ import annotations

from longthread_demo.question.reading import QuestionReading, plural


def free_nouns(r: QuestionReading) -> list[int]:
    """The places of nouns without a role."""
    return [at for at in range(len(r)) if r.free(at) and r.is_noun(at)]


def focus_of(r: QuestionReading) -> int | None:
    """The noun asked for: after *which*; in English the first, in Chinese the last, tables before columns."""
    nouns = free_nouns(r)
    if not nouns:
        return None
    asked = _asked(r, nouns)
    if asked is not None:
        return asked
    tables = [at for at in nouns if r.table_at(at)]
    if not tables:
        return nouns[0]
    return _chinese(r, tables) if r.chinese else _english(r, tables)


def _asked(r: QuestionReading, nouns: list[int]) -> int | None:
    """`which X`, `哪个X`: the noun right after, when it is a table."""
    for at in range(len(r)):
        if not r.chunks[at].op("which") or r.chunks[at].text.lower() in ("what is", "what's", "是哪些"):
            continue
        for place in r.after(at, lambda p: r.filler(p) or (p not in nouns and r.chunks[p].op("distinct") is not None)):
            if place in nouns and r.table_at(place) and place - at <= 3 and not _owner(r, place, nouns):
                return place
            break
    return None


def _owner(r: QuestionReading, at: int, nouns: list[int]) -> bool:
    """In Chinese a table followed by 的 and another table only says whose: `哪个客户的订单`."""
    return (
        r.chinese and at + 1 < len(r) and r.chunks[at + 1].text == "的" and any(p > at and r.table_at(p) for p in nouns)
    )


def compound(r: QuestionReading, at: int) -> bool:
    """Whether a table's noun only says of what the next one is: `tenant payments`."""
    following = at + 1 if at + 1 < len(r) else at
    singular = r.chunks[at].text.isascii() and not plural(r.chunks[at])
    return singular and r.table_at(at) is not None and r.table_at(following) is not None and plural(r.chunks[following])


def _english(r: QuestionReading, tables: list[int]) -> int:
    return tables[1] if compound(r, tables[0]) and tables[1:2] == [tables[0] + 1] else tables[0]


def _chinese(r: QuestionReading, tables: list[int]) -> int:
    """Return the head noun: it comes last, but for `和`-joined ones and what a comma starts again."""
    return tables[-1]
