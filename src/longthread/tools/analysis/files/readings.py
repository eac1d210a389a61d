"""The kind of a text's cell, and readings of a column's texts: numbers, dates, times or booleans.

A reading is a DuckDB expression that gives a value, or NULL for a text that does not fit.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from longthread.tools.analysis.quoting import literal

CellKind = Literal["empty", "missing", "number", "year", "date", "truth", "text"]

MISSING = frozenset(
    {
        *("na", "n/a", "#n/a", "null", "none", "nan", "nil", "\\n", "-", "--", "–", "—", ".", "..", "…", "?"),
        *("无", "不适用", "暂无", "#div/0!", "#ref!", "#value!", "#name?", "#num!", "#null!"),
    }
)
"""Marks of missing values, in lower case."""
CURRENCIES = ("US$", "HK$", "NT$", "A$", "C$", "R$", "$", "€", "£", "¥", "￥", "₹", "₩", "元", "円", "원", "zł", "kr")
CODES = ("USD", "EUR", "GBP", "CNY", "RMB", "JPY", "KRW", "TWD", "HKD", "INR", "CHF", "SEK", "NOK", "DKK", "AUD", "CAD")
PERCENT = ("%", "％")
UNITS = (*CURRENCIES, *CODES, *PERCENT)
_UNIT = "|".join(re.escape(unit) for unit in UNITS)
# Repeats next to each other are possessive (`*+`). Else a long blank cell would be split between them in every way.
NUMERIC = re.compile(
    rf"[-+−(]*+\s*+(?:{_UNIT})?\s*+[-+−]?\s*+(?:\d[\d.,'’\s\u00a0\u202f]*+|\.\d++)(?:[eE][-+]?\d++)?\s*+(?:{_UNIT})?\s*+\)?"
)
"""Anything that may be a number. A cell takes time linear in its length, here and below."""
_CLOCK = r"\d{1,2}:\d{2}(?::\d{2}(?:[.,]\d+)?)?"
TIMED = rf"(?:(?:T|\s++){_CLOCK}\s*+(?:[AaPp]\.?[Mm]\.?)?\s*+(?:Z|UTC|[+-]\d{{2}}(?::?\d{{2}})?)?)?"
DATED = re.compile(
    rf"(?:\d{{4}}\s*[-/.年]\s*\d{{1,2}}\s*[-/.月]\s*\d{{1,2}}(?:\s*+日)?|\d{{1,2}}[-/.]\d{{1,2}}[-/.](?:\d{{4}}|\d{{2}})"
    rf"|\d{{1,2}}[-\s.]*[A-Za-z]{{3,9}}\.?[-\s,]*(?:\d{{4}}|\d{{2}})|[A-Za-z]{{3,9}}\.?\s+\d{{1,2}},?\s+\d{{4}}){TIMED}"
)
"""Anything that may be a date."""
CLOCK = re.compile(_CLOCK)
TRUTH = re.compile(r"true|false", re.I)
_YEAR = re.compile(r"(?:1[89]|20|21)\d{2}")
_MONTH = re.compile(r"\d{4}[-/年]\d{1,2}月?|\d{4}年")
_BLANK = " \t\u00a0\u202f\u3000"
_LONGEST_MARK = max(map(len, MISSING))
_GROUPED = r"[1-9]\d{0,2}(?:SEP\d{3})+"
_POWER = r"(?:\d{1,2}|[12]\d{2})"
_PLAIN = (
    rf"-?(?:0|[1-9]\d{{0,37}})(?:\.\d*)?(?:[eE][+-]{_POWER})?|-?(?:0|[1-9]\d*)\.\d+[eE]{_POWER}"
    rf"|-?\.\d+(?:[eE][+-]?{_POWER})?"
)
_SIGN = "-?"
_CONVENTIONS = {
    "plain": (_PLAIN, ""),
    "1,234.56": (rf"{_SIGN}(?:0|{_GROUPED.replace('SEP', ',')}|[1-9]\d?(?:,\d{{2}})*,\d{{3}}|[1-9]\d*)(?:\.\d*)?", ","),
    "1.234,56": (rf"{_SIGN}(?:0|{_GROUPED.replace('SEP', '[.]')}|[1-9]\d*)(?:,\d+)?", "."),
    "1 234,56": (rf"{_SIGN}(?:0|{_GROUPED.replace('SEP', ' ')}|[1-9]\d*)(?:,\d+)?", " "),
    "1 234.56": (rf"{_SIGN}(?:0|{_GROUPED.replace('SEP', ' ')}|[1-9]\d*)(?:\.\d*)?", " "),
    "1'234.56": (rf"{_SIGN}(?:0|{_GROUPED.replace('SEP', chr(39))}|[1-9]\d*)(?:\.\d*)?", "'"),
}
_COMMA = frozenset({"1.234,56", "1 234,56"})
"""Number formats with a decimal comma."""
_EXPONENT = r"[1-9]\d*[eE]\d+"
_USUAL = str.maketrans("\u00a0\u202f’", "  '")
_HALF = re.compile(r"[AaPp]\.?[Mm]\.?$")
DAY_FIRST = "day/month/year"
MONTH_FIRST = "month/day/year"
NAMED = "months by name"
_FORMATS = {
    "day/month/year with two digits": ("%d %m %y",),
    "month/day/year with two digits": ("%m %d %y",),
    "year/month/day with two digits": ("%y %m %d",),
    NAMED: ("%d %b %Y", "%d %B %Y", "%b %d %Y", "%B %d %Y"),
    "months by name and years with two digits": ("%d %b %y", "%d %B %y", "%b %d %y", "%B %d %y"),
}
_CLOCKS = ("", " %H:%M", " %H:%M:%S", " %I:%M %p", " %I:%M:%S %p")


def kind_of(cell: str) -> CellKind:
    text = cell.strip()
    if not text:
        return "empty"
    if text.casefold() in MISSING:
        return "missing"
    if _YEAR.fullmatch(text):
        return "year"
    if TRUTH.fullmatch(text):
        return "truth"
    if DATED.fullmatch(text) or _MONTH.fullmatch(text) or CLOCK.fullmatch(text):
        return "date"
    return "number" if NUMERIC.fullmatch(text) else "text"


@dataclass(frozen=True)
class ColumnReading:
    """One reading. `value` is an expression over the trimmed text."""

    name: str
    value: str
    family: str


SIMPLE_NUMBER = r"-?(?:0|[1-9]\d*)(?:\.\d+)?"
SIMPLE_DATE = r"\d{4}-\d{2}-\d{2}(?:[ T]\d{2}:\d{2}(?::\d{2}(?:\.\d{1,6})?)?)?"


def text_of(column: str) -> str:
    """SQL for a column's trimmed text, or NULL if it is blank or a mark of a missing value."""
    trimmed = f"trim({column}, {literal(_BLANK)})"
    marks = ", ".join(literal(mark) for mark in sorted(MISSING))
    marked = f"length({column}) < {_LONGEST_MARK + 3} AND lower({trimmed}) IN ({marks})"
    return f"CASE WHEN {marked} THEN NULL ELSE nullif({trimmed}, '') END"


def family_of(values: Sequence[str]) -> str:
    """`number`, `date`, `time`, `truth` or `text`, by most of the values."""
    patterns = (("truth", TRUTH), ("date", DATED), ("time", CLOCK), ("number", NUMERIC))
    trimmed = [value.strip(_BLANK) for value in values]
    for family, pattern in patterns:
        if sum(pattern.fullmatch(value) is not None for value in trimmed) * 2 > len(trimmed):
            return family
    return "text"


def readings_of(family: str, values: Sequence[str], text: str) -> list[ColumnReading]:
    """The possible readings of a column; `text` is the SQL of its text."""
    if family == "number":
        return _numbers(text, unit_of(values), values)
    if family == "date":
        return _dates(text, values)
    if family == "time":
        return [ColumnReading("time", f"TRY_CAST({text} AS TIME)", "time")]
    if family == "truth":
        return [ColumnReading("truth", f"TRY_CAST({text} AS BOOLEAN)", "truth")]
    return []


def unit_of(values: Sequence[str]) -> str:
    """The currency or percent sign that all values but zeros have; else empty."""
    found = units_of(values)
    return found.pop() if len(found) == 1 else ""


def units_of(values: Sequence[str]) -> set[str]:
    """Return the currencies and percent signs of all values but zeros; an empty one for a value without any."""
    return {_unit(value) for value in values if value.strip(_BLANK + "0.,-")}


def _unit(value: str) -> str:
    text = value.strip(_BLANK + "()+-−")
    return next((unit for unit in UNITS if text.startswith(unit) or text.endswith(unit)), "")


def _numbers(text: str, unit: str, sample: Sequence[str]) -> list[ColumnReading]:
    core = _core(text, unit, "".join(sample))
    written = "".join(sample).translate(_USUAL)
    found = []
    for name, (pattern, group) in _CONVENTIONS.items():
        if name == "plain" or "," in written or group in written:
            plain = f"replace({core}, {literal(group)}, '')" if group else core
            plain = f"replace({plain}, ',', '.')" if name in _COMMA else plain
            value = f"CASE WHEN regexp_full_match({core}, {literal(pattern)}) THEN {plain} END"
            found.append(ColumnReading(name, value, "number"))
    code = f"CASE WHEN regexp_full_match({text}, {literal(_EXPONENT)}) THEN {text} END"
    return [*found, ColumnReading("exponent", code, "code")]


def _core(text: str, unit: str, letters: str) -> str:
    """SQL for the number without its unit, with a plain minus and blanks. Only characters in `letters` are replaced:
    each replacement is slow in a large file."""
    core = text
    if "−" in letters:
        core = f"replace({core}, '−', '-')"
    if unit:
        sign = re.escape(unit).replace("'", "''")
        core = f"regexp_replace({core}, '^(\\(?[+-]?)\\s*{sign}\\s*|\\s*{sign}(\\)?)$', '\\1\\2')"
    if "(" in letters:
        core = f"regexp_replace({core}, '^\\((.*)\\)$', '-\\1')"
    if "+" in letters:  # a telephone's number keeps it
        core = f"regexp_replace({core}, '^\\+(\\d{{1,6}}(?:\\D.*)?)$', '\\1')"
    if "’" in letters:
        core = f"replace({core}, '’', '''')"
    if "\u00a0" in letters or "\u202f" in letters:
        core = f"regexp_replace({core}, '[\u00a0\u202f]', ' ', 'g')"
    return core


def _dates(text: str, sample: Sequence[str]) -> list[ColumnReading]:
    halved = any(_HALF.search(value) for value in sample)
    orders = {
        "year-month-day": (r"(\d{4})\s*[-/.年]\s*(\d{1,2})\s*[-/.月]\s*(\d{1,2})(?:\s*日)?", r"\1-\2-\3"),
        DAY_FIRST: (r"(\d{1,2})[-/.](\d{1,2})[-/.](\d{4})", r"\3-\2-\1"),
        MONTH_FIRST: (r"(\d{1,2})[-/.](\d{1,2})[-/.](\d{4})", r"\3-\1-\2"),
    }
    found = [
        ColumnReading(name, _moment(text, literal(f"^{pattern}"), literal(order), halved), "date")
        for name, (pattern, order) in orders.items()
    ]
    spaced = f"regexp_replace({text}, '[-\\s.,/]+', ' ', 'g')"
    for name, formats in _FORMATS.items():
        wanted = ", ".join(literal(f"{one}{clock}") for one in formats for clock in _CLOCKS)
        value = f"try_strptime({spaced}, [{wanted}])::VARCHAR"
        if name == NAMED:  # a year of two digits is one of the first century to DuckDB
            value = f"CASE WHEN regexp_matches({text}, '\\d{{4}}') THEN {value} END"
        found.append(ColumnReading(name, value, "date"))
    return found


def _moment(text: str, pattern: str, order: str, halved: bool) -> str:
    """SQL for a date of a pattern as a timestamp's text. `halved`: some have a.m. or p.m."""
    ordered = f"regexp_replace({text}, {pattern}, {order})"
    value = (
        f"CASE WHEN regexp_matches({text}, {pattern}) AND (TRY_CAST({ordered} AS TIMESTAMP) IS NOT NULL "
        f"OR TRY_CAST({ordered} AS TIMESTAMPTZ) IS NOT NULL) THEN {ordered} END"
    )
    if not halved:
        return value
    noon = "['%Y-%m-%d %I:%M %p', '%Y-%m-%d %I:%M:%S %p']"
    half = f"try_strptime(replace(upper({ordered}), '.', ''), {noon})::VARCHAR"
    return f"CASE WHEN regexp_matches({text}, '[AaPp]\\.?[Mm]\\.?$') THEN {half} ELSE {value} END"
