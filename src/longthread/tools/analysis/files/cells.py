"""The kind of a cell in a text file: number, year, date, missing value or text."""

from __future__ import annotations

import re
from typing import Literal

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
