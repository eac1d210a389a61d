"""Counts pairs of character kinds in a long text in one pass, ten times as fast as piece by piece."""

from __future__ import annotations

from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from longthread.view.families import BIGRAMS

_LONGEST_WORD = 40
"""Lower case letters of one word at most."""
_UPPER, _NO_LETTER, _BLANKS, _DIGIT, _MARK, _CONTROL, _OUTSIDE = 26, 52, " \t\n\r\f", 57, 58, 59, 60
"""Kinds of characters: each lower case letter, each capital, each blank (the last for all others), and the rest."""
_KINDS = 64
_VOWELS = [ord(vowel) - ord("a") for vowel in "aiou"]
_AROUND = bytes([_OUTSIDE, _OUTSIDE])


def _kind(code: int) -> int:
    character = chr(code)
    if code >= 128:
        return _OUTSIDE
    if character.isalpha():
        return ord(character.lower()) - ord("a") + (_UPPER if character.isupper() else 0)
    if character.isspace():
        return _NO_LETTER + (_BLANKS.index(character) if character in _BLANKS else len(_BLANKS) - 1)
    return _DIGIT if character.isdigit() else _MARK if 32 < code < 127 else _CONTROL


_TABLE = bytes(map(_kind, range(256)))
_SMALL = bytes(ord("a") if kind < _UPPER else 32 for kind in _TABLE)
_LONG_WORD = b"a" * (_LONGEST_WORD + 1)


def _features() -> NDArray[np.float64]:
    """The weights of pairs for each sum in `CharacterPairs`."""
    rows = np.zeros((9, _KINDS, _KINDS))
    rows[0, _UPPER:, :_UPPER] = 1
    for two, cost in BIGRAMS.items():
        first, second = (ord(letter) - ord("a") for letter in two)
        rows[1, [first, _UPPER + first], second] = cost
    rows[2, _UPPER:_NO_LETTER, :_UPPER] = 1
    rows[3, _NO_LETTER:, :_NO_LETTER] = 1
    rows[4, :, _DIGIT] = 1
    rows[5, _NO_LETTER : _NO_LETTER + 2, _DIGIT] = 1
    rows[6, _MARK, :_NO_LETTER] = 1
    rows[7, :, _CONTROL] = 1
    rows[8, _NO_LETTER:_DIGIT, _NO_LETTER:_DIGIT] = 1
    return rows.reshape(9, -1)


_FEATURES = _features()


class CharacterPairs:
    """Counts from a text's pairs of characters: `words` (long ones count more), likely `breaks` in them, `titles`
    (words with a capital), `letter_runs`, and what `CharacterKinds` counts."""

    def __init__(self, text: str) -> None:
        self.text = text
        self._bytes = text.encode("utf-8", "surrogatepass")
        kinds = np.frombuffer(_AROUND + self._bytes.translate(_TABLE) + _AROUND, np.uint8)
        both = kinds[:-1].astype(np.uint16)
        both <<= 6
        both |= kinds[1:]
        self._kinds, self._pairs = kinds, np.bincount(both, minlength=_KINDS * _KINDS)
        sums = _FEATURES @ self._pairs
        self.breaks = float(sums[1])
        self.words = int(sums[0]) + (self._more_words() if _LONG_WORD in self._bytes.translate(_SMALL) else 0)
        self.titles, self.letter_runs = int(sums[2]), int(sums[3])
        self.digits, self.blank_digits, self.mark_letters, self.controls = map(int, sums[4:8])
        self.blanks_alone = not sums[8]

    @property
    def vowel_ends(self) -> int:
        """Words of three letters or more with an ending that is rare in English."""
        kinds = self._kinds
        is_vowel = kinds == _VOWELS[0]
        for vowel in _VOWELS[1:]:
            is_vowel |= kinds == vowel
        [ends] = (is_vowel[:-1] & (kinds[1:] >= _UPPER)).nonzero()
        return int(np.count_nonzero((kinds[ends - 1] < _UPPER) & (kinds[ends - 2] < _NO_LETTER)))

    @property
    def capitals(self) -> tuple[int, int]:
        """Single capitals; and all but the first in longer runs."""
        kinds = self._kinds
        [places] = _is_capital(kinds).nonzero()
        places = places[kinds[places + 1] >= _UPPER]  # those before a small letter are its word's
        behind = kinds[places + 1]
        last = (behind >= _NO_LETTER) | (kinds[places + 2] < _UPPER)
        alone = int(np.count_nonzero(last & ~_is_capital(kinds[places - 1])))
        return alone, len(places) - int(np.count_nonzero(last))

    @property
    def digit_groups(self) -> int:
        """The number of groups of up to three digits."""
        is_digit = self._kinds == _DIGIT
        [begins] = (is_digit[1:] > is_digit[:-1]).nonzero()
        [ends] = (is_digit[1:] < is_digit[:-1]).nonzero()
        return int(((ends - begins + 2) // 3).sum())

    @property
    def blanks(self) -> list[tuple[str, int]]:
        """Each blank, and how often it is there; the last stands for all other ones."""
        counts = self._pairs.reshape(_KINDS, _KINDS)[_NO_LETTER:_DIGIT].sum(axis=1)
        return list(zip(_BLANKS, map(int, counts), strict=True))

    @property
    def marks(self) -> tuple[int, int, int, int]:
        """Single marks, longer runs, and in these the different and the equal neighbours."""
        pairs, is_mark = int(self._pairs[_MARK * _KINDS + _MARK]), self._kinds == _MARK
        marks = int(np.count_nonzero(is_mark))
        if not pairs:
            return marks, 0, 0, 0
        beside = is_mark[1:] & is_mark[:-1]
        begins = int(np.count_nonzero(beside[1:] & ~beside[:-1]))
        codes, places = np.frombuffer(self._bytes, np.uint8), beside.nonzero()[0] - len(_AROUND)
        same = int(np.count_nonzero(codes[places] == codes[places + 1]))
        # A run of n marks has n - 1 pairs.
        return marks - pairs - begins, begins, pairs - same, same

    def _more_words(self) -> int:
        """Additional words in very long runs."""
        [others] = (self._kinds >= _UPPER).nonzero()
        lengths = others[1:] - others[:-1] - 1
        long: NDArray[Any] = lengths[lengths > _LONGEST_WORD]
        return int(words_in(long).sum()) - len(long)


Lengths = TypeVar("Lengths", int, NDArray[Any])


def words_in(letters: Lengths) -> Lengths:
    """The number of words in a run of lower case letters."""
    return (letters + _LONGEST_WORD - 1) // _LONGEST_WORD


def _is_capital(kinds: NDArray[Any]) -> NDArray[np.bool_]:
    found: NDArray[np.bool_] = (kinds >= _UPPER) & (kinds < _NO_LETTER)
    return found
