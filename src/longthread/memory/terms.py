"""What a text is found by: its words, in one spelling, in any language.

Words are compared without case, accents and English endings. Text that is written without spaces (Chinese, Japanese,
Korean, Thai …) gives every pair of neighbouring characters, so that a word of two characters is found wherever it
stands. A path, an address, a number or an identifier counts whole, and so do its parts.
"""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache

FORM = 1
"""Which terms a text gives. What was indexed with another number is indexed anew."""
MAX_TERM = 200
"""Characters of a term that count: nobody asks for the rest of a longer one."""

# Scripts without spaces between words, and Korean, whose words carry endings.
_DENSE = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3100-\u312f\u31a0-\u31ff\u3400-\u4dbf\u4e00-\u9fff"
    "\uac00-\ud7af\uf900-\ufaff\U00020000-\U0003ffff"
)
# Vowel signs of Indic scripts are no letters to `\w`, and stand within words.
_SIGNS = "\u0900-\u0dff"
_PIECE = re.compile(rf"(?P<dense>[{_DENSE}]+)|(?P<word>(?:[^\W_{_DENSE}]|[{_SIGNS}])+)")
# It begins where a word does, and gives nothing back: else a long text without a space takes time with its square.
_COMPOUND = re.compile(
    r"(?<![A-Za-z0-9_])(?:[A-Za-z0-9_]++(?:[-._/\\:@+#~][A-Za-z0-9_]++)++|_*+[A-Za-z0-9]++(?:_++[A-Za-z0-9]++)++)"
)
_THOUSANDS = re.compile(r"(?<![\d,.])\d{1,3}(?:,\d{3})+(?![\d,])")
_HUMPS = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_POSSESSIVE = re.compile(r"(?<=\w)['’]s\b", re.IGNORECASE)
_ACCENTS = re.compile("[\u0300-\u036f]")
_VOWELS = frozenset("aeiouy")


def terms(text: str) -> list[str]:
    """The terms of a text, each as often as it stands there, in no order that matters."""
    text = unicodedata.normalize("NFKC", text)
    text = _THOUSANDS.sub(lambda number: number[0].replace(",", ""), _POSSESSIVE.sub("", text))
    found = [whole[:MAX_TERM] for whole in map(_folded, _COMPOUND.findall(text))]
    for piece in _PIECE.finditer(text):
        dense = piece["dense"]
        if dense is None:
            found += _of_word(piece["word"])
        else:
            found += [dense[at : at + 2] for at in range(len(dense) - 1)] or [dense]
    return found


def _of_word(word: str) -> list[str]:
    whole = stem(_folded(word))[:MAX_TERM]
    parts = _HUMPS.split(word) if not (word.islower() or word.isupper() or word.isdigit()) else [word]
    return [whole] if len(parts) == 1 else [whole, *(stem(_folded(part)) for part in parts)]


def _folded(text: str) -> str:
    text = text.casefold()
    return text if text.isascii() else _ACCENTS.sub("", unicodedata.normalize("NFD", text))


@lru_cache(maxsize=65536)
def stem(word: str) -> str:
    """A lower-case English word without the endings of plural, tense and adverb; any other word as it is."""
    if len(word) < 4 or not word.isascii() or not word.isalpha():
        return word
    word = _without_tense(_singular(word))
    if word.endswith("ly") and len(word) > 5:
        word = word[:-2]
    if word.endswith("e") and len(word) > 3:
        word = word[:-1]
    if word.endswith("y") and len(word) > 3 and word[-2] not in _VOWELS:
        word = word[:-1] + "i"
    return word


def _singular(word: str) -> str:
    if word.endswith("ies"):
        return word[:-3] + "y"
    if word.endswith("es") and word[-3] in "sxz":
        return word[:-2]
    return word[:-1] if word.endswith("s") and word[-2] not in "us" else word


def _without_tense(word: str) -> str:
    for ending in ("ingly", "edly", "ing", "ed"):
        rest = word.removesuffix(ending)
        if rest != word and len(rest) >= 3 and not _VOWELS.isdisjoint(rest):
            # "planned" is "plan", but "called" is "call".
            return rest[:-1] if len(rest) > 3 and rest[-1] == rest[-2] and rest[-1] not in "lsz" else rest
    return word
