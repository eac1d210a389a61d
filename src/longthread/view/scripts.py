"""The scripts of a text's non-ASCII characters, by cost."""

from __future__ import annotations

from collections import Counter
from functools import lru_cache

import numpy as np

from longthread.view.families import COMMON_HAN, COMMON_HANGUL, SCRIPTS

_FEW = 300
"""Characters up to which each is looked up singly."""
_NAMES = sorted({name for name, _, _ in SCRIPTS} | {"han", "han2", "han3", "hangul", "hangul2", "rare", "astral"})
_ASCII = len(_NAMES)
_UNKNOWN = 255


@lru_cache(1)
def _known() -> np.ndarray[tuple[int], np.dtype[np.uint8]]:
    """The index of each character's script, filled in on demand."""
    places = np.full(0x110000, _UNKNOWN, np.uint8)
    places[:128] = _ASCII
    return places


def scripts_of(text: str) -> Counter[str]:
    """Counts non-ASCII characters by script."""
    if len(text) > _FEW:
        return _by_table(text)
    counts: Counter[str] = Counter()
    for character, count in Counter(text).items():
        if not character.isascii():
            counts[script_of(character)] += count
    return counts


def _by_table(text: str) -> Counter[str]:
    codes = np.frombuffer(text.encode("utf-32-le", "surrogatepass"), np.uint32)
    known = _known()
    places = known[codes]
    for code in set(codes[places == _UNKNOWN].tolist()):
        known[code] = _NAMES.index(script_of(chr(code)))
    if (places == _UNKNOWN).any():
        places = known[codes]
    counts = np.bincount(places, minlength=_ASCII)
    return Counter({name: int(count) for name, count in zip(_NAMES, counts, strict=False) if count})


@lru_cache(1 << 16)
def script_of(character: str) -> str:
    """The script of a character outside of ASCII."""
    code = ord(character)
    if 0x4E00 <= code <= 0x9FFF:
        return _han(character)
    if 0xAC00 <= code <= 0xD7A3:
        return _hangul(character)
    return next(
        (name for name, first, last in SCRIPTS if first <= code <= last), "rare" if code < 0x10000 else "astral"
    )


def _han(character: str) -> str:
    if character in COMMON_HAN:
        return "han"
    everyday = _in_first_level(character, "gb2312", 0xD8) or _in_first_level(character, "big5", 0xC7)
    return "han2" if everyday else "han3"


def _hangul(character: str) -> str:
    if character in COMMON_HANGUL:
        return "hangul"
    return "hangul2" if _in_first_level(character, "euc_kr", 0x100) else "rare"


def _in_first_level(character: str, encoding: str, beyond: int) -> bool:
    """Whether an encoding has the character among the frequent ones, before lead byte `beyond`."""
    code = character.encode(encoding, "ignore")
    return bool(code) and code[0] < beyond
