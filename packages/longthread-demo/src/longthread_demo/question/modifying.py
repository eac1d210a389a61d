"""Words that modify what is counted or listed: `delayed flights`, `shipped orders`, `未归还的图书`, `取消的航班`.

A known value or a yes/no column was taken for a filter before. What is left is a participle or adjective that would
restrict the rows and must not pass in silence: it becomes a filter on the column it names, or a word to look up.
"""

from __future__ import annotations

from longthread_demo.query.plan import Condition, Field
from longthread_demo.question.reading import QuestionReading

_ENDINGS = ("ed", "en", "ive", "able", "ible", "ful", "less")
_ADJECTIVES = frozenset(
    [
        "open",
        "due",
        "overdue",
        "late",
        "current",
        "former",
        "available",
        "active",
        "inactive",
        "valid",
        "invalid",
        "paid",
        "unpaid",
        "lost",
        "sold",
        "free",
        "busy",
        "public",
        "private",
        "new",
        "old",
        "recent",
        "ongoing",
        "pending",
        "broken",
        "won",
        "done",
        "local",
        "foreign",
        "domestic",
        "international",
    ]
)
_ASPECT = ("已", "未", "被", "已经", "正在", "尚未")


def read_modifiers(r: QuestionReading) -> None:
    """Every adjective or participle right before a table (in Chinese with 的 between) that found no place yet."""
    for at in range(len(r)):
        if not r.free(at) or r.table_at(at) is not None or not _modifies(r, at):
            continue
        chunk = r.chunks[at]
        table = r.table_at(_head(r, at) or 0)
        held = next((s for s in chunk.of("value") if s.ref.table == table and s.score >= 0.75), None)
        if held is not None:
            negated = _negated(r, at)
            r.conditions.append(Condition(Field(held.ref), "!=" if negated else "=", (held.value,)))
            r.use("value", at)
            continue
        ref = r.column_at(at, lambda c: c.kind in ("date", "number") and not c.keyish and not c.yearish, 0.3)
        if ref is not None and ref.table == table and not r.foreign(ref):
            dated = r.schema.column(ref).kind == "date"
            negated = _negated(r, at)
            r.conditions.append(_happened(Field(ref), dated=dated, negated=negated))
            r.use("filter", at)
        elif (
            not chunk.unknown
            and (not r.chinese or chunk.op("soft"))
            and not chunk.op("adj", "high", "low", "most", "least", "top", "distinct", "all")
        ):
            r.lookups.append(chunk.text)


def _negated(r: QuestionReading, at: int) -> bool:
    if at == 0 or not r.free(at - 1) or not r.chunks[at - 1].op("not", "without"):
        return False
    r.use("not", at - 1)
    return True


def _happened(field: Field, *, dated: bool, negated: bool) -> Condition:
    """A date that is there (or not), or more than nothing of a number."""
    if dated:
        return Condition(field, "null" if negated else "not null")
    return Condition(field, "not >" if negated else ">", (0,))


def _head(r: QuestionReading, at: int) -> int | None:
    """The table that a chunk stands right before."""
    place = at + 1
    if r.chinese:
        if place >= len(r) or r.chunks[place].text != "的":
            return None
        place += 1
    return place if place < len(r) and r.table_at(place) is not None and r.is_noun(place) else None


def _modifies(r: QuestionReading, at: int) -> bool:
    chunk = r.chunks[at]
    if _head(r, at) is None or chunk.sign or chunk.number is not None or chunk.quoted:
        return False
    light = bool(chunk.ops) and all(op.name in ("soft", "stop") for op in chunk.ops)
    if r.chinese:
        led = at == 0 or (r.chunks[at - 1].sign or r.chunks[at - 1].op("count", "which", "list", "all") is not None)
        aspect = chunk.text.startswith(_ASPECT) or (at > 0 and r.chunks[at - 1].text in _ASPECT)
        verbal = (light and bool(chunk.op("soft"))) or (not chunk.ops and bool(chunk.of("column")))
        return len(chunk.text) >= 2 and (led or aspect) and verbal and not _names_whose(r, at)
    text = chunk.text.lower()
    adjective = text in _ADJECTIVES or (text.endswith(_ENDINGS) and " " not in text and len(text) > 4)
    named = bool(chunk.of("column", "value")) and (not chunk.ops or text.endswith("ed"))
    return adjective and (light or named)


def _names_whose(r: QuestionReading, at: int) -> bool:
    """`公司的员工`, `商品的订单`: a noun that only says whose."""
    text = r.chunks[at].text
    return text in _PLACES


_PLACES = frozenset(
    [
        "图书馆",
        "医院",
        "学校",
        "公司",
        "商店",
        "店铺",
        "系统",
        "诊所",
        "书店",
        "超市",
        "联赛",
        "店里",
        "我们公司",
        "我们店",
        "所有者的",
        "目前",
        "现在",
        "当前",
        "所在",
        "所属",
        "相关的",
        "对应",
        "对应的",
        "所在的",
        "各自的",
        "具体",
        "总体",
        "整体",
        "现有",
        "信息",
        "记录",
        "情况",
    ]
)
