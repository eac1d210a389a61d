"""Estimates of tokens, without a tokenizer's tables; the budget of a call, and the correction by counts.

A text is divided as tokenizers do: words, digits, blanks, marks, and characters of other scripts. Each piece has a
measured cost by the model's family. Attachments count by pages, duration or text; the pages of a PDF by its page tree,
or by its page objects.
"""

from __future__ import annotations

import binascii
import re
import zlib
from base64 import b64decode
from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache
from itertools import islice, pairwise

from longthread.errors import WindowTooSmall
from longthread.model.content import Attachment, AttachmentKind
from longthread.view.families import BIGRAMS, FAMILIES, CharacterPairs, TokenCosts, scripts_of, words_in

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


PAGE = 3_000
"""Tokens of a page: Anthropic's maximum for text and image. Others charge less."""
PAGE_BYTES = 25_000
"""Bytes of a page if their number is unknown."""
MOST_PAGES = 100
"""The most pages assumed for such a file: the limit of large providers."""
AUDIO_SECOND = 32
"""Tokens of a second of audio by Google; OpenAI has 10."""
VIDEO_SECOND = 300
"""Tokens of a second of video by Google."""
ELSEWHERE: Mapping[AttachmentKind, int] = {
    "image": IMAGE,
    "document": 5 * PAGE,
    "text": 5_000,
    "audio": 60 * AUDIO_SECOND,
    "video": 60 * VIDEO_SECOND,
}
"""Tokens of content at a URL or with the provider: five pages, or a minute."""
_BYTES_A_SECOND = {"mp3": 16_000, "mpeg": 16_000, "flac": 60_000, "pcm16": 48_000, "l16": 48_000}
"""Of audio formats with a usual rate,"""
_SPEECH = 8_000
"""of other audio, mostly speech,"""
_FILM = 125_000
"""and of video."""
_SAMPLE = 1 << 20
"""Bytes at both ends of a long file, where the page tree mostly is."""
_STREAM = 4 << 20
"""Bytes of one object stream,"""
_STREAMS = 32 << 20
"""and of all of them, packed and unpacked, at most."""
_TABLES = 2_000
"""Page tree nodes at most,"""
_AROUND = 1 << 16
"""and bytes around each."""
_FIRST_PAGE = re.compile(rb"/Linearized\b[^>]{0,300}?/N\s+(\d{1,7})\b")
_TABLE = re.compile(rb"/Type\s*/Pages(?![A-Za-z])")
_COUNT = re.compile(rb"/Count\s+(\d{1,7})\b")
_PAGE = re.compile(rb"/Type\s*/Page(?![A-Za-z])")
_OBJECTS = re.compile(rb"/Type\s*/ObjStm\b[^>]{0,300}>>\s*stream\r?\n")


def attachment_tokens(given: Attachment, family: str = ANY) -> int:
    """An upper estimate for an attachment with a family of models."""
    if given.kind == "image":
        return IMAGE
    label = estimate(given.label, family) if given.label else 0
    if given.text:
        return label + estimate(given.text, family) + given.images * IMAGE
    if not given.data:
        return label + (given.images * IMAGE or ELSEWHERE[given.kind])
    size = len(given.data) * 3 // 4
    if given.kind == "audio":
        usual = next((rate for name, rate in _BYTES_A_SECOND.items() if name in given.mime), _SPEECH)
        return label + round((1 + size / (_wav_rate(given.data) or usual)) * AUDIO_SECOND)
    if given.kind == "video":
        return label + round(size / _FILM * VIDEO_SECOND)
    pages = pages_in(given.data) if "pdf" in given.mime else None
    return label + (pages or min(MOST_PAGES, 1 + size // PAGE_BYTES)) * PAGE


def _wav_rate(data: str) -> int:
    """The bytes per second in a WAV header, or 0."""
    try:
        head = b64decode(data[:64])
    except (binascii.Error, ValueError):
        return 0
    is_wav = head[:4] == b"RIFF" and head[8:16] == b"WAVEfmt "
    return int.from_bytes(head[28:32], "little") if is_wav else 0


def pages_in(data: str) -> int | None:
    """The number of pages of a PDF in base64, or None. Of a long file only the ends are decoded, if these suffice."""
    try:
        if len(data) > 4 * _SAMPLE:
            last = (len(data) - _SAMPLE) // 4 * 4
            known = _read_page_count(_bytes(data[:_SAMPLE]) + b"\n" + _bytes(data[last:]))
            if known is not None:
                return known
        whole = _bytes(data)
    except (binascii.Error, ValueError):
        return None
    return _read_page_count(whole) or sum(len(_PAGE.findall(part)) for part in (whole, *_unpack_streams(whole))) or None


def _bytes(data: str) -> bytes:
    return b64decode(data + "==")  # some leave out what it ends with


def _read_page_count(data: bytes) -> int | None:
    """The number of pages in the header of a linearized file, or at the root of the page tree."""
    linearized = [int(found[1]) for found in [_FIRST_PAGE.search(data[:2048])] if found]
    roots = [count for part in (data, *_unpack_streams(data)) for count in _roots(part)]
    return max([*linearized, *roots], default=0) or None


def _roots(data: bytes) -> Iterator[int]:
    """The counts of root page tree nodes: each version in the file has one."""
    for found in islice(_TABLE.finditer(data), _TABLES):
        first, last = max(0, found.start() - _AROUND), found.end() + _AROUND
        begin, end = data.rfind(b"<<", first, found.start()), data.find(b">>", found.end(), last)
        table = data[begin if begin >= 0 else first : end if end >= 0 else last]
        count = _COUNT.search(table)
        if count and b"/Parent" not in table:
            yield int(count[1])


def _unpack_streams(data: bytes) -> Iterator[bytes]:
    """The unpacked object streams, without unreadable ones."""
    left = _STREAMS
    for found in _OBJECTS.finditer(data):
        begin = found.end()
        end = data.find(b"endstream", begin, begin + _STREAM)
        left -= end - begin if end >= 0 else _STREAM
        if left <= 0:
            return
        if end < 0:
            continue
        try:
            part = zlib.decompressobj().decompress(data[begin:end], _STREAM)
        except zlib.error:
            continue
        left -= len(part)
        yield part


SAFETY = 0.10
"""Share of the window left free for estimation errors (document 004 §4.1)."""
LEAST = 256
"""The least tokens for messages: a question and one result."""
USUAL_LEAST = 1_024
"""Tokens for messages before the reply and the tools' descriptions have all of theirs, in at most a quarter of the
window: a question, its tables' columns, a statement and a result."""
LARGE_WINDOW, LARGE_REPLY = 64_000, 16_000
"""Tokens of a window from which on more is reserved for the reply, and the most of that (document 004 §4.1)."""
LEAST_REPLY = 256
"""The least tokens for the reply."""
EXTRA_SHARE = 0.3
"""Share of the window for optional extras, such as known facts."""
FLOOR = 1.0
"""Estimates are only raised: a report may omit cached input, and a refused call costs more than a smaller view."""
CEILING = 3.0
"""A report above this is about another prompt."""
_LEAST_PROMPT = 500
"""Tokens below which the overhead of a prompt dominates."""
_FORGOTTEN = 0.05
"""Share by which a lower report reduces the factor."""


def least_of(window: int) -> int:
    """Tokens that messages have in a window before others have all of theirs; in a small one fewer than in others."""
    return max(LEAST, min(USUAL_LEAST, window // 4))


def message_budget(window: int, *, output: int, fixed: int, least: int | None = None) -> int:
    """The window without safety share, reply reserve and `fixed` tokens. Below `LEAST` the window is too small."""
    return free_tokens(window) - fixed - reply_reserve(window, output=output, fixed=fixed, least=least)


def reply_reserve(window: int, *, output: int, fixed: int, least: int | None = None) -> int:
    """Tokens for the reply: `output`, or in a large window an eighth of it, up to `LARGE_REPLY`, if that is more; at
    most a quarter of the window. Less, down to `LEAST_REPLY`, if the messages would have less than `least`."""
    large = min(LARGE_REPLY, window // 8) if window >= LARGE_WINDOW else 0
    usual = min(max(output, large), window // 4)
    least = least_of(window) if least is None else least
    return max(min(usual, free_tokens(window) - fixed - least), min(usual, LEAST_REPLY))


def extra_budget(window: int, room: int) -> int:
    """Tokens for known facts: at most half of the messages' `room` and `EXTRA_SHARE` of the window; none if the
    messages would have too little."""
    return min(int(window * EXTRA_SHARE), room // 2) if room >= 2 * LEAST else 0


def too_small(model: str, window: int, *, output: int, fixed: int) -> WindowTooSmall:
    """The error for a budget below `LEAST`."""
    reserve = reply_reserve(window, output=output, fixed=fixed)
    needed = f"{_tokens(fixed)} of prompt and tools, {reserve:,} of reply"
    return WindowTooSmall(model=model, window=_tokens(window), needed=needed)


def free_tokens(window: int) -> int:
    """The window without the share for errors of the estimate."""
    return int(window * (1 - SAFETY))


def _tokens(count: int) -> str:
    return f"{count:,} token{'' if count == 1 else 's'}"


def correct_factor(factor: float, estimated: int, reported: int) -> float:
    """The next factor for a model's estimates, from the present `factor` (at first 1.0), an uncorrected estimate and
    the provider's count. A higher report counts at once, a lower one slowly."""
    if estimated < _LEAST_PROMPT or reported <= 0:
        return factor
    seen = reported / estimated
    if seen > CEILING:
        return factor
    after = seen if seen > factor else factor + (seen - factor) * _FORGOTTEN
    return max(FLOOR, after)
