"""What words may mean in this database: every way to say a table, a column or a known value."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal

from longthread.tools.analysis.schema_linking import atoms, is_cjk, split_name
from longthread_demo.glossary import _Key, glossary
from longthread_demo.schema import DemoColumn, DemoTable, Ref, bases
from longthread_demo.words.lexicon import Op, lexicon, tokenize

_GENERIC = frozenset(
    ["info", "information", "list", "record", "master", "data", "catalog", "profile", "histori", "detail", "entri"]
)
_GENERIC_ZH = ("信息", "记录", "列表", "档案", "主表", "资料", "数据", "明细")
_TAILS = frozenset(
    [
        "id",
        "name",
        "nam",
        "date",
        "dat",
        "time",
        "tim",
        "at",
        "on",
        "no",
        "num",
        "number",
        "count",
        "code",
        "value",
        "amount",
        "amt",
        "key",
        "year",
        "nbr",
        "cd",
    ]
)
_JOINING = frozenset(["stop", "to", "and", "or", "by", "not", "top", "bottom", "after", "before", "since"])
_PREPOSITIONS = frozenset(
    [("on",), ("in",), ("at",), ("by",), ("to",), ("from",), ("sinc",), ("of",), ("for",), ("until",)]
)
_UNITS = frozenset(
    [
        "cm",
        "mm",
        "km",
        "kg",
        "g",
        "lb",
        "lbs",
        "ms",
        "sec",
        "secs",
        "second",
        "min",
        "mins",
        "minut",
        "hour",
        "hr",
        "day",
        "usd",
        "eur",
        "rmb",
        "cny",
        "pct",
        "ft",
        "mil",
        "nm",
        "ton",
        "tonn",
        "liter",
        "litr",
        "kwh",
        "m",
        "m2",
        "m3",
        "km2",
        "ha",
        "sqm",
        "sqft",
        "mb",
        "gb",
        "kmh",
        "c",
        "f",
        "celsius",
        "mph",
        "year",
        "yr",
    ]
)
_PIECES = re.compile(r"[，,;；、()（）|/:：。.\n]+| - ")
_BRACKETS = re.compile(r"[(（\[【][^)）\]】]*[)）\]】]")
_MAX_COMBINATIONS = 80
_OF_A_VIEW = 0.8
"""What a name in a view is worth compared with the same name in a table, which holds each row once."""


@dataclass(frozen=True)
class Sense:
    """One meaning: a table, a column, a flag (a yes/no column), or a value of a column. `score` is at most 1."""

    kind: Literal["table", "column", "flag", "value"]
    ref: Ref
    score: float
    value: Any = None


@dataclass(frozen=True)
class Vocabulary:
    """`senses` of each phrase in this database and `ops` of the language; `longest` phrase in tokens."""

    senses: Mapping[_Key, tuple[Sense, ...]]
    ops: Mapping[_Key, tuple[Op, ...]]
    longest: int


@dataclass(frozen=True)
class ProbedValue:
    """A value that a probe found: which words it was looked up for, and where it is."""

    ref: Ref
    value: str


def plain_key(text: str) -> _Key:
    """The key of a value: its tokens without signs."""
    return tuple(token.norm for token in tokenize(text.replace("_", " ")) if token.kind != "sign")


@lru_cache(maxsize=8)
def vocabulary(tables: tuple[DemoTable, ...], found: tuple[ProbedValue, ...] = ()) -> Vocabulary:
    """The vocabulary of a schema's tables, and of values found in them."""
    senses: dict[_Key, dict[tuple[str, Ref, Any], Sense]] = {}

    def add(key: _Key, sense: Sense) -> None:
        mine = senses.setdefault(key, {})
        same = (sense.kind, sense.ref, str(sense.value))
        if same not in mine or mine[same].score < sense.score:
            mine[same] = sense

    for key, name in _own_tails(tables).items():
        add(key, Sense("table", Ref(name, ""), 0.86))
    first = {table.name for table in bases(tables)}
    for table in tables:
        for key, sense in _table_senses(table, 1.0 if table.name in first else _OF_A_VIEW):
            add(key, sense)
    for item in found:
        for key, score in _value_terms(None, item.value):
            add(key, Sense("value", item.ref, score, item.value))
    ops = {**{key: (Op("soft", ("verb",)),) for key in _done_by(tables)}, **lexicon()}
    done = {key: tuple(sorted(mine.values(), key=lambda s: -s.score)) for key, mine in senses.items() if key}
    return Vocabulary(done, ops, max(8, *(min(16, len(key)) for key in (*ops, *done))))


@lru_cache(maxsize=512)
def _table_senses(table: DemoTable, share: float) -> tuple[tuple[_Key, Sense], ...]:
    """What names a table and what is in it, each worth that share of what it would be."""
    named = (
        (key, Sense("table", Ref(table.name, ""), score if key == table.words else score * share))
        for key, score in _table_terms(table)
    )
    columns = (sense for column in table.columns for sense in _column_senses(table, column, share))
    money = ((key, Sense("column", Ref(table.name, column.name), 0.55 * share)) for key, column in _money_terms(table))
    return (*named, *columns, *money)


def _column_senses(table: DemoTable, column: DemoColumn, share: float) -> Iterator[tuple[_Key, Sense]]:
    """What names a column, and the values it is known to hold, each worth that share of what it would be."""
    ref = Ref(table.name, column.name)
    for key, score in _column_terms(table, column):
        yield key, Sense("flag" if column.kind == "bool" else "column", ref, score * share)
    for value in column.values:
        for key, score in _value_terms(column, value):
            yield key, Sense("value", ref, score * share, value)


def _table_terms(table: DemoTable) -> Iterator[tuple[_Key, float]]:
    words = table.words
    yield from ((key, score) for key, score in _expanded(words, 1.0) if key == words or key not in _money_words())
    yield atoms(split_name(table.name).replace(" ", "")), 0.95
    yield atoms(glossary().chinese(split_name(table.name))), 0.95  # the first word for it, before any value
    if len(words) > 1:
        if words[-1] in _GENERIC:
            yield from _expanded(words[:-1], 0.95)
        elif words[0].isascii():
            yield from _expanded(words[-1:], 0.6, hints=False)
    for ending in _GENERIC_ZH:
        name = "".join(words)
        if name.endswith(ending) and len(name) > len(ending):
            yield from _expanded(words[: -len(ending)], 0.9)
    yield from _comment_terms(table.comment)


def _money_words() -> frozenset[_Key]:
    """What means money earned: a table of sales is not called 销售额."""
    revenue = atoms("revenue")
    return frozenset((revenue, *glossary().same(revenue)))


def _amount_words() -> frozenset[_Key]:
    """What the only amount of a row is called: amount, total, 金额."""
    forms = {
        form for name in ("amount", "total", "total amount") for form in (atoms(name), *glossary().same(atoms(name)))
    }
    return frozenset(forms)


def _own_tails(tables: tuple[DemoTable, ...]) -> dict[_Key, str]:
    """The last words of compound table names (订单 of 充电订单), and what means the same, where one table has them."""
    tails: dict[_Key, set[str]] = {}
    for table in bases(tables):
        pieces = glossary().parts(table.words)
        whole = len(pieces) < 2 or "".join(pieces[-1]) in _GENERIC_ZH or pieces[-1][-1] in _GENERIC
        tail = table.words if whole else pieces[-1]
        for form in (tail, *glossary().same(tail), *_parts_zh(table)):
            if len(form) > 1 or form[:1] in _COUNTED_ZH or (form[:1] != () and form[0].isascii()):
                tails.setdefault(form, set()).add(table.name)
    named = {form for table in tables for form in (table.words, *glossary().same(table.words))}
    return {key: next(iter(names)) for key, names in tails.items() if len(names) == 1 and key not in named}


_DOERS_ZH = ("师", "员", "者", "工")


def _done_by(tables: tuple[DemoTable, ...]) -> Iterator[_Key]:
    """What the people of a Chinese table or column name do: 设计, of 设计师."""
    for table in tables:
        for name in (table.name, *(column.name for column in table.columns)):
            if len(name) >= 3 and is_cjk(name) and name.endswith(_DOERS_ZH):
                yield atoms(name[:-1])


_COUNTED_ZH = (("集",), ("课",), ("站",), ("店",), ("书",), ("票",), ("单",), ("车",))
_DONE_ZH = ("投放", "发布", "刊登", "上架")


def _parts_zh(table: DemoTable) -> Iterator[_Key]:
    """The noun at the end of a Chinese table name (投放 of 广告投放), and what it is done with (广告); a counted thing
    of one character (集 of 单集)."""
    words = table.words
    if not words or words[-1].isascii() or words in glossary().synonyms:
        return
    if len(words) == 2:
        yield words[-1:]
    if len(words) > 2 and words[-1] == "单":
        yield words[:-1]
    operates = any(op.name not in ("soft", "stop") for op in lexicon().get(words[-2:], ()))
    if len(words) >= 4 and not operates and "".join(words[-2:]) not in _GENERIC_ZH:
        yield words[-2:]
        if "".join(words[-2:]) in _DONE_ZH:
            yield words[:-2]


def _column_terms(table: DemoTable, column: DemoColumn) -> Iterator[tuple[_Key, float]]:
    words = column.words
    if not words:
        return
    yield from _expanded(words, 1.0)
    yield atoms(split_name(column.name).replace(" ", "")), 0.95
    short = _without_table(table, words)
    if short != words:
        yield from _expanded(short, 0.95)
    if short[:1] in (("is",), ("has",)) and len(short) > 1:
        yield from _expanded(short[1:], 0.95)
    if column.name.startswith("是否") and len(short) > 2:
        yield from _expanded(short[2:], 0.95)
    if len(short) > 1 and short[-1] in _UNITS and column.kind in ("number", "unknown"):
        yield from _expanded(short[:-1], 0.9)
    pieces = glossary().parts(short)
    if len(pieces) > 1:
        part = len(pieces[-1]) == 1 and is_cjk(pieces[-1][0]) and pieces[-1] not in glossary().synonyms
        if pieces[-1] not in _PREPOSITIONS and not part:  # 用 is no 费用
            yield from _expanded(pieces[-1], 0.66, hints=False)
        head = tuple(itertools.chain.from_iterable(pieces[:-1]))
        tail = pieces[-1]
        generic = tail[-1] in _TAILS or "".join(tail) in ("日期", "时间", "名称", "编号", "年份", "名", "金额")
        joining = any(op.name in _JOINING for op in lexicon().get(head, ()))
        if head not in (("is",), ("has",), ("can",), ("wa",), *_PREPOSITIONS) and not joining:
            yield from _expanded(head, 0.75 if generic else 0.5, hints=False)
    yield from _comment_terms(column.comment)


def _money_terms(table: DemoTable) -> Iterator[tuple[_Key, DemoColumn]]:
    """Where a price and a quantity stand side by side there is revenue, though no column is called so."""
    numbers = [column for column in table.columns if column.kind in ("number", "unknown")]
    price = next(
        (
            column
            for column in numbers
            if column.words[-1:] in (("pric",), ("价",)) or "单价" in column.name or "价格" in column.name
        ),
        None,
    )
    amounts = [column for column in numbers if column.words in _amount_words()]
    if len(amounts) == 1:
        price = amounts[0]
    elif amounts:
        price = None
    sold = any(
        (column.words[-1:] in (("quantiti",), ("qty",)) and "stock" not in column.words) or "数量" in column.name
        for column in numbers
    )
    if price is not None and (sold or amounts):
        for name in ("revenue", "spending"):
            key = atoms(name)
            for form in (key, *glossary().same(key)):
                yield form, price


def _without_table(table: DemoTable, words: _Key) -> _Key:
    for prefix in (table.words, table.words[-1:], *glossary().same(table.words)):
        if prefix and len(words) > len(prefix) and words[: len(prefix)] == prefix:
            return words[len(prefix) :]
    return words


def _comment_terms(comment: str) -> Iterator[tuple[_Key, float]]:
    """What a comment calls a thing: the part before a colon, without units in brackets and without 是否."""
    named = _BRACKETS.sub("", re.split("[:：]", comment)[0]).removeprefix("是否")
    for piece in _PIECES.split(named):
        key = atoms(piece)
        if key and len(key) <= (8 if is_cjk(piece) else 3):
            yield from _expanded(key, 0.95)
            name = "".join(key)
            for ending in ("表", *_GENERIC_ZH):
                if name.endswith(ending) and len(name) > len(ending) and is_cjk(name):
                    yield key[: -len(ending)], 0.9


def _expanded(words: _Key, score: float, *, hints: bool = True) -> Iterator[tuple[_Key, float]]:
    """A name in every way the glossary can say it: as a whole, and piece by piece."""
    if not words:
        return
    words = tuple(words)
    book = glossary()
    yield words, score
    for other in book.same(words):
        yield other, score * 0.92
    if hints:
        for key in _hinted_by().get(words, ()):
            yield key, score * 0.6
    pieces = book.parts(words)
    if 1 < len(pieces) <= 4:
        ways = [[piece, *book.same(piece)][:10] for piece in pieces]
        for combination in itertools.islice(itertools.product(*ways), 1, _MAX_COMBINATIONS):
            yield tuple(itertools.chain.from_iterable(combination)), score * 0.85


def _hinted_by() -> Mapping[_Key, tuple[_Key, ...]]:
    if not _HINTED:
        for key, names in glossary().hints.items():
            for name in names:
                _HINTED[name] = (*_HINTED.get(name, ()), key)
    return _HINTED


_HINTED: dict[_Key, tuple[_Key, ...]] = {}

_COUNTRIES = {
    "US": "usa", "GB": "uk", "UK": "uk", "DE": "germany", "FR": "france", "IT": "italy", "ES": "spain", "CN": "china",
    "JP": "japan", "CA": "canada", "BR": "brazil", "IN": "india", "RU": "russia", "AU": "australia", "MX": "mexico",
    "NL": "netherlands", "CH": "switzerland", "SE": "sweden", "PL": "poland", "AT": "austria", "BE": "belgium",
    "PT": "portugal",
}  # fmt: skip
_GENDERS = {"m": atoms("male"), "f": atoms("female")}


def _value_terms(column: DemoColumn | None, value: Any) -> Iterator[tuple[_Key, float]]:
    if not isinstance(value, str) or not value.strip() or len(value) > 80:
        return
    key = plain_key(value)
    if not key or all(part.replace(".", "").isdigit() for part in key):
        return
    if len(value) == 1 and value.isascii():
        gender = _GENDERS.get(value.lower())
        if gender and column is not None and set(column.words) & {"gender", "sex", "性"}:
            yield gender, 0.9
            for other in glossary().same(gender):
                yield other, 0.85
        return
    yield key, 0.95
    if value in _COUNTRIES and column is not None and set(column.words) & {"countri", "nation", "code", "国"}:
        land = atoms(_COUNTRIES[value])
        for other in (land, *glossary().same(land)):
            yield other, 0.85
    for other in glossary().same(key):
        yield other, 0.85
    pieces = glossary().parts(key)
    if 1 < len(pieces) <= 3:
        ways = [[piece, *glossary().same(piece)][:6] for piece in pieces]
        for combination in itertools.islice(itertools.product(*ways), 1, 30):
            yield tuple(itertools.chain.from_iterable(combination)), 0.75
