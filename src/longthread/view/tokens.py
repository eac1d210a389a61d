"""How many tokens a text may cost, for any language."""

from __future__ import annotations

import re
from functools import lru_cache

_WIDE = re.compile(r"[\u1100-\u11ff\u2e80-\u9fff\ua960-\ua97f\uac00-\ud7ff\uf900-\ufaff\ufe30-\ufe4f\uff00-\uffef]")
_OUTSIDE_ASCII = re.compile(r"[^\x00-\x7f]")
_RUN = re.compile(r"[A-Za-z]+|[0-9]+|\s+|[^A-Za-z0-9\s]+")

MESSAGE_OVERHEAD = 6
"""Tokens that a message costs beyond its text: role and delimiters."""


_REMEMBERED = 4_000
"""Characters up to which a text's estimate is remembered: a conversation's messages are estimated at every call."""


def estimate(text: str) -> int:
    """An upper estimate of a text's tokens: Chinese costs about one a character, English about one a word."""
    return _remembered(text) if len(text) <= _REMEMBERED else _estimate(text)


def _estimate(text: str) -> int:
    wide = len(_WIDE.findall(text))
    other = len(_OUTSIDE_ASCII.findall(text)) - wide
    return int(wide * 1.1) + 2 * other + _ascii(text) + 1


def _ascii(text: str) -> int:
    tokens = 0
    for run in _RUN.findall(_OUTSIDE_ASCII.sub("", text)):
        if run[0].isalpha():
            # A word of up to six letters is nearly always one token; longer ones are split about every five.
            tokens += 1 if len(run) <= 6 else (len(run) + 4) // 5
        elif run[0].isdigit():
            tokens += (len(run) + 2) // 3
        elif run != " ":
            tokens += (len(run) + 1) // 2
    return tokens


_remembered = lru_cache(maxsize=4096)(_estimate)
