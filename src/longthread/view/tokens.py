"""Estimates the tokens of a text in any language, JSON or code, without a tokenizer's tables.

A text is divided as tokenizers do: words, digits, blanks, marks, and characters of other scripts. Each piece has a
measured cost by the model's family.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache
from itertools import pairwise

from longthread.view.families import BIGRAMS, FAMILIES, TokenCosts, scripts_of
from longthread.view.pairs import CharacterPairs, words_in

MESSAGE_OVERHEAD = 6
"""Tokens of a message in addition to its text."""
IMAGE = 1_600
"""Tokens of an image: the maximum of large providers."""
ANY = "any"
"""The family of an unknown model, as expensive as the dearest other."""
_CACHED = 4_000
"""Characters up to which an estimate is cached."""
_LONG = 1_000
"""Characters up to which counting pieces is faster than counting pairs."""
_WORD = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])")
_BLANKS = re.compile(r"[\t-\r\x1c-\x20]{2,512}")
_OUTSIDE = re.compile(r"[^\x00-\x7f]+")
_DENSE = ("han", "han2", "han3", "kana", "hangul", "hangul2")
_COVERED = 0.15
"""Wide marks per such character that its cost includes."""
_BEYOND_LATIN = "\u0250"
_NAMES = (
    ("claude", "claude"),
    ("anthropic", "claude"),
    ("qwen", "qwen"),
    ("qwq", "qwen"),
    ("qvq", "qwen"),
    ("llama3", "cl100k"),
    ("llama-3.", "cl100k"),
    ("llama-3-", "cl100k"),
    ("deepseek", "deepseek"),
    ("gpt-3.5", "cl100k"),
    ("gpt-4o", "o200k"),
    ("gpt-4.", "o200k"),
    ("gpt-4", "cl100k"),
    ("gpt-", "o200k"),
    ("chatgpt", "o200k"),
)
"""Parts of models' names, and the family; the first match counts. Llama 3 has all tokens of `cl100k`, and more."""
_SPACE, _OTHER_BLANK, _DIGIT, _MARK, _LETTER, _CONTROL, _NON_ASCII = b" bdmwco"


def family_of(model: str) -> str:
    """The family of a model's name, or `any`."""
    name = model.lower()
    found = next((family for part, family in _NAMES if part in name), None)
    if found is None and re.search(r"(?:^|[:/])o[1-9](?:$|[-:])", name):
        return "o200k"
    return found or ANY


def estimate(text: str, family: str = ANY) -> int:
    """An upper estimate of a text's tokens: on average 10 % too high, rarely a few per cent too low."""
    return _cached(text, family) if len(text) <= _CACHED else _count(text, family)


def message_tokens(text: str, family: str = ANY, *, images: int = 0) -> int:
    """The tokens of a message."""
    return estimate(text, family) + images * IMAGE + MESSAGE_OVERHEAD


def tools_tokens(definitions: str, count: int, family: str = ANY) -> int:
    """The tokens of tool definitions in JSON, which providers rewrite."""
    return int(estimate(definitions, family) * 1.15) + 12 * count + (24 if count else 0)


class Estimator:
    """Counts by the costs of one family, with caches."""

    def __init__(self, costs: TokenCosts) -> None:
        self._costs = costs
        self._words: Callable[[bytes], float] = lru_cache(1 << 16)(
            lambda letters: sum(map(self._word_cost, _WORD.findall(letters.decode())))
        )
        self._blanks: Callable[[str], float] = lru_cache(1 << 10)(self._blanks_cost)
        self._together: Callable[[str], float] = lru_cache(1 << 10)(
            lambda blanks: self._blanks_cost(blanks) - sum(map(self._blanks, blanks))
        )
        """The additional cost of blanks in a run."""
        self._marks: Callable[[bytes], float] = lru_cache(1 << 14)(self._marks_cost)

    def count(self, text: str) -> float:
        """The tokens of a text."""
        total = self._by_pairs(CharacterPairs(text)) if len(text) > _LONG else self._by_pieces(CharacterKinds(text))
        return total if text.isascii() else total + self._outside(text)

    def _by_pieces(self, kinds: CharacterKinds) -> float:
        """The tokens of ASCII characters."""
        letters, marks = kinds.letters, kinds.marks
        total = sum(map(self._words, letters)) + sum(map(self._marks, marks))
        return total + self._between(kinds, len(letters), len(marks))

    def _by_pairs(self, pairs: CharacterPairs) -> float:
        """The same, for long texts."""
        costs, (alone, more), (single, runs, changes, same) = self._costs, pairs.capitals, pairs.marks
        total = costs.word * pairs.words + costs.word_break * pairs.breaks + costs.title * pairs.titles
        total += costs.vowel_end * pairs.vowel_ends + costs.capital * alone + costs.capitals * more
        total += costs.mark * single + costs.marks * runs + costs.mark_change * changes + costs.mark_same * same
        return total + self._between(pairs, pairs.letter_runs, single + runs)

    def _between(self, found: CharacterKinds | CharacterPairs, words: int, marks: int) -> float:
        """Return the tokens of digits, blanks and controls, and of marks that are too many for the words."""
        costs, groups = self._costs, found.digit_groups
        total = costs.digits * groups + costs.digit * found.digits
        total += costs.blank_digit * found.blank_digits + costs.mark_letter * found.mark_letters
        total += sum(count * self._blanks(blank) for blank, count in found.blanks)
        if not found.blanks_alone:
            total += sum(map(self._together, _BLANKS.findall(found.text)))
        # The costs of words and numbers include most marks.
        return total + costs.mark_alone * max(0, marks - words - groups) + found.controls

    def _word_cost(self, word: str) -> float:
        costs = self._costs
        if word.isupper():
            return costs.capitals * (len(word) - 1) if len(word) > 1 else costs.capital
        total = costs.word * words_in(len(word) - word[0].isupper())
        total += costs.word_break * sum(BIGRAMS.get(a + b, 0.8) for a, b in pairwise(word.lower()))
        if word[0].isupper():
            total += costs.title
        # Romance and Slavic words; the ending is rare in English.
        return total + costs.vowel_end if len(word) > 2 and word[-1] in "aiou" else total

    def _blanks_cost(self, blanks: str) -> float:
        if blanks == " ":
            return self._costs.space
        costs, lines = self._costs, blanks.count("\n")
        changes = sum(a != b for a, b in pairwise(blanks))
        total = costs.line if lines or "\r" in blanks else costs.spaces
        total += costs.first_change * (changes > 0) + costs.change * max(0, changes - 1)
        total += costs.more_lines * max(0, lines - 1) + costs.returns * blanks.count("\r")
        return total + costs.more_spaces * (len(blanks) - max(1, lines)) / 16 + costs.tab * blanks.count("\t")

    def _marks_cost(self, marks: bytes) -> float:
        if len(marks) == 1:
            return self._costs.mark
        changes = sum(a != b for a, b in pairwise(marks))
        same = len(marks) - 1 - changes
        return self._costs.marks + self._costs.mark_change * changes + self._costs.mark_same * same

    def _outside(self, text: str) -> float:
        """The tokens of non-ASCII characters."""
        costs, counts = self._costs, scripts_of(text)
        total = sum(count * costs.scripts[script] for script, count in counts.items())
        covered = _COVERED * sum(counts[script] for script in _DENSE)
        total += costs.wide_alone * max(0.0, counts["wide"] - covered)
        # Accented Latin letters in a row: few in words, many in binary data.
        rows = (run for run in _OUTSIDE.findall(text) if len(run) > 1 and run[0] < _BEYOND_LATIN)
        return total + costs.latin_pair * sum(len(run) - 1 for run in rows if max(run) < _BEYOND_LATIN)


_ESTIMATORS = {name: Estimator(costs) for name, costs in FAMILIES.items()}


def _count(text: str, family: str) -> int:
    return int(_ESTIMATORS.get(family, _ESTIMATORS[ANY]).count(text)) + 1


_cached = lru_cache(1 << 12)(_count)


def _kind(code: int) -> int:
    character = bytes([code])
    if code >= 128:
        return _NON_ASCII
    if character in b" \t":
        return _SPACE
    if character in b"\n\x0b\x0c\r\x1c\x1d\x1e\x1f":
        return _OTHER_BLANK
    if character.isalpha():
        return _LETTER
    return _DIGIT if character.isdigit() else _MARK if 32 < code < 127 else _CONTROL


_KINDS = bytes(map(_kind, range(256)))


def _only(kind: int) -> bytes:
    """A translation table that turns all other kinds into blanks."""
    return bytes(code if each == kind else 32 for code, each in enumerate(_KINDS))


_LETTERS, _MARKS = _only(_LETTER), _only(_MARK)
_NOT_BLANK = bytes(code for code, kind in enumerate(_KINDS) if kind not in (_SPACE, _OTHER_BLANK))


class CharacterKinds:
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
    def marks(self) -> list[bytes]:
        """The runs of marks."""
        return self._bytes.translate(_MARKS).split()

    @property
    def digits(self) -> int:
        return self._kinds.count(b"d")

    @property
    def digit_groups(self) -> int:
        """The number of groups of up to three digits."""
        rest = self._kinds.replace(b"ddd", b"3")
        # Of a run, one digit or two may be left: two are counted once.
        return rest.count(b"3") + rest.count(b"d") - rest.count(b"dd")

    @property
    def blank_digits(self) -> int:
        """Digits after a space or a tab."""
        return self._kinds.count(b" d")

    @property
    def mark_letters(self) -> int:
        """Letters after a mark."""
        return self._kinds.count(b"mw")

    @property
    def controls(self) -> int:
        """The number of control characters."""
        return self._kinds.count(b"c")

    @property
    def blanks_alone(self) -> bool:
        """Whether no blank stands next to another."""
        kinds = self._kinds
        return not (b"  " in kinds or b" b" in kinds or b"b " in kinds or b"bb" in kinds)

    @property
    def blanks(self) -> list[tuple[str, int]]:
        """Each blank, and how often it is there."""
        found = self._bytes.translate(None, _NOT_BLANK)
        return [(chr(code), found.count(code)) for code in set(found)]
