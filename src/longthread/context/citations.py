"""Which query each number of an answer came from, and the results of a conversation by labels, such as [q3]."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import cached_property
from typing import Any

from longthread.errors import ResultNotFound
from longthread.model.entry import Entry
from longthread.model.fold import observation_of
from longthread.store import log
from longthread.store.driver import Transaction

_DATE = r"\d{4}-\d{2}-\d{2}"
_NUMBER = re.compile(rf"(?<![A-Za-z0-9_.])(?:{_DATE}|-?\d+(?:,\d{{3}})*(?:\.\d+)?)(?![A-Za-z0-9_]|[.,]\d)")
_MIDNIGHT = re.compile(rf"\A({_DATE})[T ]00:00(?::00(?:\.0+)?)?(?:Z|\+00(?::?00)?)?\Z")
"""A day as a moment, which an answer writes as the day."""
_LABEL = re.compile(r"\[q\d+(?:\s*,\s*q\d+)*\]")
_MARKER = re.compile(r"^\s*\d+[.)、]\s", re.MULTILINE)
_LETTER = r"[^\W\d_]"
_TOLD = ("query", "sql", "columns", "shown")
_CODE = re.compile(r"```.*?```", re.DOTALL)
LEAST_IN_WORDS = 13
"""Smaller numbers stay words: "one of", "two ways", 一个 and 十分 count nothing."""
_UNITS = ["one", "two", "three", "four", "five", "six", "seven", "eight", "nine"]
_TEENS = ["ten", "eleven", "twelve", "thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen"]
_TENS = ["twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety"]
_SCALES = {"hundred": 100, "thousand": 1_000, "million": 1_000_000}
_WORDS = {
    "a": 1,
    **{word: value for value, word in enumerate([*_UNITS, *_TEENS], 1)},
    **{word: 10 * value for value, word in enumerate(_TENS, 2)},
}


@dataclass(frozen=True)
class CitedQuery:
    """A labelled result of a query, as a tool's text. Its rows and SQL are parsed once."""

    label: str
    told: Mapping[str, Any]
    """Its part of an answer's event: label, SQL, columns, how many of its rows were shown, and the metrics."""
    text: str

    @classmethod
    def read(cls, text: str) -> CitedQuery | None:
        """Return the query of a tool's text; None if it is none, or has no label."""
        data = _data(text)
        if not (data.get("query") and "sql" in data):
            return None
        told = {key: data.get(key) for key in _TOLD} | ({"metrics": data["metrics"]} if "metrics" in data else {})
        return cls(data["query"], told, text)

    @cached_property
    def in_rows(self) -> frozenset[Decimal | str]:
        return frozenset(_values_in(_data(self.text)))

    @cached_property
    def names(self) -> frozenset[str]:
        """The texts in its rows that begin with a letter and hold a number, such as `Falcon 9`."""
        cells = {cell.strip() for row in _data(self.text).get("rows", []) for cell in row if isinstance(cell, str)}
        return frozenset(cell for cell in cells if re.match(_LETTER, cell) and _NUMBER.search(cell))

    @cached_property
    def in_sql(self) -> frozenset[Decimal | str]:
        return frozenset(numbers_in(str(self.told["sql"])))


def citations(answer: str, queries: Sequence[CitedQuery]) -> list[dict[str, Any]]:
    """Return each number and date of an answer with the newest query whose rows hold it; `query` is None if none does.

    A count of rows counts as held, also of those with a value in the first column, where all are there; failing rows, a
    query whose SQL has the number (a year, a limit) is its source.
    Numbers in code blocks, in labels and in names from rows are ignored. `queries` are in the order of their runs.
    """
    wanted = {found[0]: _values(found) for found in _NUMBER.finditer(_words(answer, queries))}
    held: dict[str, str] = {}
    said: dict[str, str] = {}
    for query in reversed(queries):
        for text, values in wanted.items():
            if text not in held and any(_holds(query.in_rows, value) for value in values):
                held[text] = query.label
            if text not in held and text not in said and _holds(query.in_sql, values[0]):
                said[text] = query.label
        if len(held) == len(wanted):
            break
    return [{"number": text, "query": held.get(text, said.get(text))} for text in wanted]


def _data(text: str) -> Mapping[str, Any]:
    data = observation_of(text).get("data")
    return data if isinstance(data, Mapping) else {}


def _words(answer: str, queries: Sequence[CitedQuery]) -> str:
    """Return the answer without code, labels, list numbers, and names from rows."""
    for pattern in (_CODE, _LABEL, _MARKER):
        answer = pattern.sub(" ", answer)
    if not _NUMBER.search(answer):
        return answer
    said = {name for query in queries for name in query.names if name in answer}
    for name in sorted(said, key=len, reverse=True):
        answer = re.sub(rf"(?<![A-Za-z0-9_]){re.escape(name)}(?![A-Za-z0-9_]|[.,]\d)", " ", answer)
    return answer


def _values_in(query: Mapping[str, Any]) -> Iterator[Decimal | str]:
    yield from (Decimal(query[key]) for key in ("row_count", "total") if isinstance(query.get(key), int))
    rows = query.get("rows", [])
    if not query.get("truncated") and query.get("total") in (None, len(rows)):
        yield Decimal(sum(1 for row in rows if row and row[0] is not None))
    for row in rows:
        for cell in row:
            yield from numbers_in(_MIDNIGHT.sub(r"\1", str(cell)))


def numbers_in(text: str) -> Iterator[Decimal | str]:
    """Yield the numbers and dates in a text; a date also as its year."""
    for found in _NUMBER.findall(text):
        value = _value(found)
        yield value
        if isinstance(value, str):
            yield Decimal(value[:4])


def _value(text: str) -> Decimal | str:
    return text if re.fullmatch(_DATE, text) else Decimal(text.replace(",", ""))


def _values(found: re.Match[str]) -> tuple[Decimal | str, ...]:
    """What a number of an answer may be in a row: 95.6% is also the share 0.956."""
    value = _value(found[0])
    is_percent = isinstance(value, Decimal) and found.string[found.end() : found.end() + 1] in ("%", "％")
    return (value, value.scaleb(-2)) if is_percent and isinstance(value, Decimal) else (value,)


def holds(values: frozenset[Decimal | str], number: str) -> bool:
    """Return whether a number or date of an answer is among these, perhaps rounded."""
    return _holds(values, _value(number))


def _holds(values: frozenset[Decimal | str], wanted: Decimal | str) -> bool:
    if wanted in values:
        return True
    if isinstance(wanted, str):
        return False
    # An answer may round: 5.652 matches 5.65.
    places = -int(wanted.as_tuple().exponent)
    numbers = (value for value in values if isinstance(value, Decimal))
    return places > 0 and any(abs(number - wanted) * 2 <= Decimal(10) ** -places for number in numbers)


def _add_scale(below: str, scale: str) -> str:
    """Return the pattern of numbers with one more scale than those of `below`."""
    comma = "" if scale == "hundred" else ",?"
    return rf"(?:(?:{below}|a)[-\s]+{scale}(?:{comma}\s+(?:and\s+)?{below})?|{below})"


_BELOW_100 = rf"(?:(?:{'|'.join(_TENS)})(?:[-\s](?:{'|'.join(_UNITS)}))?|{'|'.join([*_TEENS, *_UNITS])})"
_BELOW_1000 = _add_scale(_BELOW_100, "hundred")
_ENGLISH = re.compile(
    rf"(?<![\w-]){_add_scale(_add_scale(_BELOW_1000, 'thousand'), 'million')}(?![\w-]|\s+(?:{'|'.join(_SCALES)})\b)",
    re.I,
)  # not in "twenty-first"
_SIGNS = ("零〇", "一壹", "二两兩贰貳", "三叁參", "四肆", "五伍", "六陆陸", "七柒", "八捌", "九玖")
_DIGITS = {sign: value for value, signs in enumerate(_SIGNS) for sign in signs}
_PLACES = {sign: value for value, signs in ((10, "十拾"), (100, "百佰"), (1_000, "千仟")) for sign in signs}
_MYRIADS = {sign: value for value, signs in ((10_000, "万萬"), (100_000_000, "亿億")) for sign in signs}
_DIGIT = f"[{''.join(sign for sign, value in _DIGITS.items() if value)}]"
_NUMERAL = f"[{''.join([*_DIGITS, *_PLACES, *_MYRIADS])}]"
_SECTION = rf"(?:{_DIGIT}[千仟]零?)?(?:{_DIGIT}[百佰]零?)?(?:{_DIGIT}?[十拾])?{_DIGIT}?"
_CHINESE = re.compile(
    rf"(?<![第几幾数數])(?<!{_NUMERAL})(?={_DIGIT}|[十拾])(?:{_SECTION}[亿億]零?)?(?:{_SECTION}[万萬]零?)?{_SECTION}"
    rf"(?!{_NUMERAL}|[几幾]|世[纪紀]|年代)"
)


def as_digits(text: str) -> str:
    """Return a text with its numbers in words as digits, from `LEAST` on."""
    return _CHINESE.sub(_replace_chinese, _ENGLISH.sub(_replace_english, text))


def _replace_english(number: re.Match[str]) -> str:
    total = part = 0
    for word in re.findall(r"[a-z]+", number[0].lower()):
        if word == "hundred":
            part *= 100
        elif word in _SCALES:
            total, part = total + part * _SCALES[word], 0
        elif word != "and":
            part += _WORDS[word]
    return str(total + part) if total + part >= LEAST_IN_WORDS else number[0]


def _replace_chinese(number: re.Match[str]) -> str:
    total = section = digit = 0
    place = 1
    for sign in number[0]:
        if sign in _DIGITS:
            digit = _DIGITS[sign]
            place = place if digit else 1
        elif sign in _PLACES:
            place = _PLACES[sign]
            section, digit = section + (digit or 1) * place, 0
        else:
            place = _MYRIADS[sign]
            total, section, digit = total + (section + digit) * place, 0, 0
    value = total + section + digit * max(1, place // 10)  # 一万五 is 15,000
    return f" {value} " if value >= LEAST_IN_WORDS else number[0]


_CHUNK = 100
"""Entries that are read at a time."""


@dataclass(frozen=True)
class StoredResult:
    """A result in the conversation: its SQL, and the rows that were shown."""

    label: str
    sql: str
    columns: Sequence[str]
    rows: Sequence[Sequence[Any]]
    shown: str


def find_result(entries: Sequence[Entry], label: str) -> StoredResult:
    """The result of a label such as `q3` or `[q3]`. Raises ResultNotFound, which lists the labels."""
    wanted = re.sub(r"[\[\]\s]", "", label).lower()
    found = {one.label: one for entry in entries if entry.role == "tool" and (one := _result(entry.text)) is not None}
    if wanted not in found:
        there = ", ".join(found) if found else "none"
        raise ResultNotFound(label=label[:50], labels=there)
    return found[wanted]


async def find_result_before(tx: Transaction, thread_id: str, seq: int, label: str) -> StoredResult:
    """The result of a label on the branch that ends in an entry, read backwards. Raises ResultNotFound."""
    while seq:
        entries = await log.branch(tx, thread_id, seq, limit=_CHUNK)
        if label in result_labels(entries):
            return find_result(entries, label)
        seq = entries[0].parent_seq
    return find_result((), label)


def result_labels(entries: Sequence[Entry]) -> list[str]:
    """The labels of the results in entries, the newest last."""
    found = (_result(entry.text) for entry in entries if entry.role == "tool")
    return [one.label for one in found if one is not None]


def _result(text: str) -> StoredResult | None:
    try:
        observation = json.loads(text)
    except ValueError:
        return None
    data = observation.get("data") if isinstance(observation, dict) else None
    if not isinstance(data, dict) or not data.get("query") or "sql" not in data:
        return None
    return StoredResult(
        str(data["query"]), str(data["sql"]), data.get("columns") or [], data.get("rows") or [], str(data.get("shown"))
    )
