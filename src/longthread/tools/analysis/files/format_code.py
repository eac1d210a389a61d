"""What a number format of a workbook tells of a column: `[$€-407]#,##0.00`, `0.0%`, `#,##0 "kg"`.

After ECMA-376 part 1, 18.8.30 and 18.8.31. A bare `#,##0.00` tells no unit, so that nothing is lost where the column's
name tells one. A format that writes thousands or more in short (`0.0,"k"`) has no unit either: the cells are not in it.
Words beside a currency may scale it (`$0"M"` writes 5 as $5M), so that such a format tells nothing. Nor does one that
depends on the value (`[<1]0%;0`).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from longthread.tools.analysis.files.readings import CODES, CURRENCIES, PERCENT
from longthread.tools.analysis.formats.column_format import MOST_PLACES, ColumnFormat, guess_format

_LONGEST = 1_000
"""Characters of a code that is read; Excel takes 255."""
_TOKEN = re.compile(
    r'"(?P<quoted>[^"]*)"?|[\\!](?P<escaped>.)|[_*].|\[(?P<bracket>[^\]]*)\]?|(?P<general>General|G/通用格式)'
    r"|(?P<half>AM/PM|A/P|上午/下午)|(?P<power>E[+-])|(?P<digit>[0#?])|(?P<end>;)|(?P<mark>[.,%/@])"
    r"|(?P<letter>[A-Za-z])|(?P<literal>.)",
    re.I | re.S,
)
_ELAPSED = re.compile(r"h+|m+|s+", re.I)
_DATE_LETTERS = frozenset("ymdhsaegb")
_SCALED = re.compile(r"[0#?],+(?:\.|$)")
_GROUP_MARKS = frozenset(",.' \u00a0\u202f")
_AROUND = " \t\u00a0\u202f()+-:"
_LONGEST_UNIT = 20
_NO_WORDS = frozenset("°‰‱′″")
_ORDINALS = frozenset({"年", "年度", "号", "届", "期"})
"""Words after a number that counts nothing: 2024年."""
_DAY = ColumnFormat("date")
BUILT_IN: Mapping[int, ColumnFormat] = {
    1: ColumnFormat("plain", places=0),
    9: ColumnFormat("share", places=0),
    10: ColumnFormat("share", places=2),
    **dict.fromkeys((5, 6, 42), ColumnFormat("currency", places=0)),
    **dict.fromkeys((7, 8, 44), ColumnFormat("currency", places=2)),
    **dict.fromkeys((*range(14, 18), *range(27, 32), 36, *range(50, 55), 57, 58), _DAY),
}
"""Formats by number, where a workbook has no code for it. The currency is then that of each reader's settings."""


@dataclass
class _Section:
    """The first section of a code: what stands before, in and after the digits, and what else it says."""

    digits: str = ""
    before: str = ""
    inside: str = ""
    behind: str = ""
    letters: str = ""
    currency: str = ""
    marks: str = ""
    """`%`, `@`, `/` (a fraction), `E` (an exponent), `t` (a time), `?` (a condition)."""

    def add(self, kind: str, text: str) -> None:
        if kind == "bracket":
            self._add_bracket(text)
        elif kind == "general" or kind == "digit" or (kind == "mark" and text == "."):
            if self.digits:
                self.inside, self.behind = self.inside + self.behind, ""
            self.digits += text
        elif kind == "mark" and text == ",":
            self.digits += text
        elif kind in ("mark", "power", "half"):
            self.marks += {"power": "E", "half": "t"}.get(kind, text)
        else:
            self.letters += text.lower() if kind == "letter" else ""
            self._add_literal(text)

    def _add_literal(self, text: str) -> None:
        if self.digits:
            self.behind += text
        else:
            self.before += text

    def _add_bracket(self, text: str) -> None:
        if text.startswith("$"):
            name = text[1:].partition("-")[0].strip()  # a locale stands behind it: $€-407, $£-en-GB
            if self.currency or name in PERCENT:
                self._add_literal(name)
            else:
                self.currency = name
        elif _ELAPSED.fullmatch(text):
            self.marks += "t"
        elif text[:1] in ("<", ">", "="):
            self.marks += "?"

    @property
    def is_date(self) -> bool:
        return bool(self.letters) and _DATE_LETTERS.issuperset(self.letters)

    @property
    def places(self) -> int | None:
        """The digits after the point; None: as many as a value needs."""
        _, _, fraction = self.digits.partition(".")
        if not set(fraction) <= {"0"} or not set(self.digits) <= set("0#?.,"):
            return None
        return min(len(fraction), MOST_PLACES)


def format_of_code(code: str) -> ColumnFormat | None:
    """Return what a format says of its numbers or dates; None: no more than that they are such."""
    section = _Section()
    for token in _TOKEN.finditer(code[:_LONGEST]):
        kind = token.lastgroup
        if kind == "end":
            break
        if kind is not None:
            section.add(kind, token[kind])
    if "?" in section.marks:
        return None
    if section.is_date or "t" in section.marks:
        is_day = "t" not in section.marks and not set(section.letters) & set("hs")
        return _DAY if is_day else None
    if not section.digits or set(section.marks) & set("E/@"):
        return None
    return _of_number(section)


def _of_number(section: _Section) -> ColumnFormat | None:
    is_short = bool(_SCALED.search(section.digits))
    places = None if is_short else section.places
    if "%" in section.marks:
        return ColumnFormat("share", places=places)
    if any(sign in section.before + section.behind for sign in PERCENT):
        return ColumnFormat("percent", places=places)
    before, behind = section.before.strip(_AROUND), section.behind.strip(_AROUND)
    money = section.currency or next((each for each in (before, behind) if _is_money(each)), "")
    if money and not is_short and (_may_scale(before) or _may_scale(behind)):
        return None
    if money and len(money) <= _LONGEST_UNIT and money.isprintable():
        return ColumnFormat("currency", money, places)
    if is_short:
        return None
    is_grouped = bool(section.inside) or not set(",.").isdisjoint(section.digits)
    is_bare = not behind and set(section.digits) <= set("0#?")
    if not set(section.inside) <= _GROUP_MARKS or (not is_grouped and (is_bare or behind in _ORDINALS)):
        return ColumnFormat("plain", places=0)
    return ColumnFormat("unit", behind, places) if _is_unit(behind) else None


def _is_money(text: str) -> bool:
    return text in CURRENCIES or text in CODES


def _may_scale(text: str) -> bool:
    """Whether a text beside an amount of money may say how many each stands for: M, 万, Tsd., but not `/ kg`."""
    return not (_is_money(text) or text.startswith("/")) and any(letter.isalnum() for letter in text)


def _is_unit(text: str) -> bool:
    has_word = any(letter.isalpha() or letter in _NO_WORDS for letter in text)
    return has_word and len(text) <= _LONGEST_UNIT and text.isprintable()


def by_name(name: str, format_: ColumnFormat) -> ColumnFormat:
    """Return a format of a workbook with the currency that its column's name tells, where it tells none itself."""
    if format_.kind not in ("plain", "currency") or format_.unit:
        return format_
    guessed = guess_format(name, [1_000])
    return ColumnFormat("currency", guessed.unit, format_.places) if guessed.kind == "currency" else format_
