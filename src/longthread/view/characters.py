"""Which kinds of ASCII characters a text has, and which stand beside which: by counting bytes, which takes a fifth of
what looking for patterns does."""

from __future__ import annotations

import numpy as np

_OTHER_BLANKS = b"\t\n\x0b\x0c\r\x1c\x1d\x1e\x1f"
_SPACE, _OTHER_BLANK, _DIGIT, _MARK, _LETTER, _CONTROL, _OUTSIDE = b" bdmwco"
_LONGEST = 512
"""Characters up to which blanks or marks are one piece."""
_LONG_WORD = 64


def _kind(code: int) -> int:
    character = bytes([code])
    if code >= 128:
        return _OUTSIDE
    if character in b" \t":
        return _SPACE
    if character in _OTHER_BLANKS:
        return _OTHER_BLANK
    if character.isalpha():
        return _LETTER
    return _DIGIT if character.isdigit() else _MARK if 32 < code < 127 else _CONTROL


_KINDS = bytes(map(_kind, range(256)))
_LETTERS = bytes(code if chr(code).isalpha() and code < 128 else 32 for code in range(256))


class Kinds:
    """The kinds of a text's characters."""

    def __init__(self, text: str) -> None:
        self.text = text
        self._bytes = text.encode("utf-8", "surrogatepass")
        self._kinds = self._bytes.translate(_KINDS)

    @property
    def letters(self) -> list[bytes]:
        """The runs of letters."""
        return self._bytes.translate(_LETTERS).split()

    @property
    def letters_in_short_runs(self) -> bool:
        """Whether every one of them may be a word, or a few."""
        return b"w" * (_LONG_WORD + 1) not in self._kinds

    @property
    def digits(self) -> int:
        """How many digits there are."""
        return self._kinds.count(b"d")

    @property
    def digit_groups(self) -> int:
        """In how many groups of up to three from the left."""
        if not self.digits:
            return 0
        rest = self._kinds.replace(b"ddd", b"3")
        # Of a run, one digit or two may be left: two are counted once.
        return rest.count(b"3") + rest.count(b"d") - rest.count(b"dd")

    @property
    def blank_digits(self) -> int:
        """Digits behind a space or a tab."""
        return self._kinds.count(b" d")

    @property
    def mark_letters(self) -> int:
        """Letters behind a mark."""
        return self._kinds.count(b"mw")

    @property
    def controls(self) -> int:
        """Characters that are not for people."""
        return self._kinds.count(b"c")

    @property
    def blanks_alone(self) -> bool:
        """Whether no blank stands beside another."""
        return not any(pair in self._kinds for pair in (b"  ", b" b", b"b ", b"bb"))

    @property
    def single_blanks(self) -> list[tuple[str, int]]:
        """Each blank, and how often it is there."""
        spaces = self._bytes.count(b" ")
        found = [(" ", spaces)] if spaces else []
        if spaces < self._kinds.count(b" ") + self._kinds.count(b"b"):
            counts = ((chr(code), self._bytes.count(code)) for code in _OTHER_BLANKS)
            found += [(blank, count) for blank, count in counts if count]
        return found

    @property
    def marks_in_short_runs(self) -> bool:
        """Whether every run of marks is one piece."""
        return b"m" * (_LONGEST + 1) not in self._kinds

    @property
    def marks(self) -> tuple[int, int, int, int]:
        """Marks that stand alone, longer runs, and in these the neighbours that differ, and that are the same."""
        is_mark = np.frombuffer(self._kinds, np.uint8) == _MARK
        beside = is_mark[1:] & is_mark[:-1]
        pairs = int(np.count_nonzero(beside))
        codes = np.frombuffer(self._bytes, np.uint8)
        same = int(np.count_nonzero(beside & (codes[1:] == codes[:-1]))) if pairs else 0
        all_marks = int(np.count_nonzero(is_mark))
        begins = int(np.count_nonzero(beside[1:] & ~beside[:-1])) + int(beside[:1].any())
        # A run of n marks has n - 1 pairs.
        return all_marks - pairs - begins, begins, pairs - same, same
