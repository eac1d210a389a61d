"""Numbers in words, in English and Chinese: `fifty-nine`, `two hundred`, `五十九`, `两百`."""

from __future__ import annotations

import re

LEAST = 13
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
    return str(total + part) if total + part >= LEAST else number[0]


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
    return f" {value} " if value >= LEAST else number[0]
