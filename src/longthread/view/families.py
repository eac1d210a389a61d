"""Token costs of pieces of text, by family of models and by script, and pairs of characters counted in one pass."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from string import ascii_lowercase
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

_FEW = 300
"""Characters up to which each is looked up singly."""
_UNKNOWN = 255


@dataclass(frozen=True, slots=True)
class TokenCosts:
    """Tokens by piece, for one family. A word costs `word`, and `word_break` for each likely break in it. `scripts` are
    costs of characters. `mark_alone` and `wide_alone` are for marks that are too many for the words, `latin_pair` for
    two accented letters in a row."""

    word: float
    word_break: float
    title: float
    vowel_end: float
    capital: float
    capitals: float
    digits: float
    digit: float
    blank_digit: float
    space: float
    spaces: float
    line: float
    more_lines: float
    returns: float
    first_change: float
    change: float
    more_spaces: float
    tab: float
    mark: float
    marks: float
    mark_change: float
    mark_same: float
    mark_letter: float
    scripts: Mapping[str, float]
    mark_alone: float = 0.65
    wide_alone: float = 1.1
    latin_pair: float = 1


SCRIPTS: tuple[tuple[str, int, int], ...] = (
    ("latin", 0xC0, 0x24F),
    ("cyrillic", 0x400, 0x52F),
    ("greek", 0x370, 0x3FF),
    ("points", 0x591, 0x5C7),
    ("points", 0x64B, 0x65F),
    ("points", 0x6D6, 0x6ED),
    ("arabic2", 0x66E, 0x6D5),
    ("arabic", 0x600, 0x6FF),
    ("hebrew", 0x590, 0x5FF),
    ("kana", 0x3040, 0x30FF),
    ("wide", 0x3000, 0x303F),
    ("forms", 0xFF10, 0xFF19),
    ("forms", 0xFF21, 0xFF3A),
    ("forms", 0xFF41, 0xFF5A),
    ("forms", 0xFF5B, 0xFFEF),
    ("wide", 0xFF00, 0xFFEF),
    ("vietnamese", 0x1E00, 0x1EFF),
    ("thai", 0xE00, 0xE7F),
    ("devanagari", 0x900, 0x97F),
    ("indic", 0x980, 0xBFF),
    ("southern", 0xC00, 0xDFF),
    ("georgian", 0x10A0, 0x10FF),
    ("typographic", 0x80, 0xBF),
    ("typographic", 0x2010, 0x205F),
    ("typographic", 0x20AC, 0x20AC),
    ("symbol", 0x20A0, 0x20CF),
    ("typographic", 0x2122, 0x2122),
    ("zero", 0x200B, 0x200F),
    ("box", 0x2500, 0x259F),
    ("symbol", 0x2190, 0x2BFF),
    ("joiner", 0xFE00, 0xFE0F),
    ("emoji", 0x1F300, 0x1FAFF),
)
"""Ranges of characters of equal cost. Han and Hangul are divided by frequency."""
_BREAKS = (
    "95007408183100808001123205"
    "56551686348078078137069836"
    "16260780280277026161088646"
    "34620627177585488335388527"
    "03103118588111740001834128"
    "17743088087286183180387658"
    "57970880286386586007288572"
    "27870687187657078180888888"
    "42101208886010006210517280"
    "56852889778877567818688688"
    "58780853488886828857885888"
    "13820008188188118804168817"
    "12830886376726018917588978"
    "18110304486686048800137856"
    "70406038242110128020010255"
    "08500752485088028000088407"
    "84584788876088787788188786"
    "18100538174821085301158818"
    "38480730187268127300076608"
    "18370280086588128006185408"
    "34340648289000808100878168"
    "17760777187866367878888268"
    "08680680386873088418884868"
    "78575878768777825883887188"
    "88787888878485545512888687"
    "68783888678877578768188778"
)
"""How often a token ends between two letters, in tenths: rows are first letters, columns second ones."""
BIGRAMS: dict[str, float] = {
    first + second: int(_BREAKS[26 * row + column]) / 10
    for row, first in enumerate(ascii_lowercase)
    for column, second in enumerate(ascii_lowercase)
}
COMMON_HAN = frozenset(
    "一万三上下不与专业东两个中串为主么义之也书了事二于五些交产享京人亿今介从他付代以们件价任份企优会传但位体"
    "何余作你使例供価保信修倍值停像元先入全公共关其具内円册再写出击分列则初利别到制前力功加务动動包化北区十午"
    "华单南即历原去县参及友反发取变口只可台右号司合同名后向否含听启告员周命和品哈商問器四回因国图土在地场址型"
    "城基報場填增声处备复外多大天失头女好如始子字存学安宋完定实审客家容密对导将小少尔就局展山岁州工左已市布常"
    "平年并广序库应店度建开异式引张当录形影径待後得微心必志态思性总息您情意感成我或户所手打找技投报拉持指按换"
    "据排接推提播支收改放政效数整文料断新方族无日时明易星是時景更最月有服期木未本机权束条来板构析果查标样核格"
    "案检模次款止正此步歳段每比民気水求江汽没治法注活流海消清游源火点無然片版物特率环现球理生用由电男画界番登"
    "的监目直相省看県真知码确示社票私种科秒称移程稍税稿空立站章端笑符第等签简算管箱米类系素索约级线组经结给络"
    "统编网置美老考者而联能自至色节英藏行表装西要見见规视角解言計記話読计认议记论设证评试话询该详语误说请读调"
    "象责败账货购费资起超路身车转软载辑输达过运近还这进连述退送选通速造連道邮部都配释里重量金钟钮链销错键长開"
    "間関门闭问间队阳陆限院除雅集雷需非面音页项预频题额首验高黑"
)
"""The most common characters of Chinese and Japanese, which mostly are tokens of their own."""
COMMON_HANGUL = frozenset(
    "가간값개거게결경고공과구그글기나내는능니다당대도동되된드든들디라래러력로록료류른를름리만메면명목문미버번"
    "보복부분비사산상색생서성세션소수스습시식신아야어에여열오와요용우운원위으은을음의이인일임입자작장재적전정"
    "제져조주지진째체출치크태터턴트튼하한할함해호화환회"
)
"""The same of Korean."""
_PIECES = """
                    any   cl100k    o200k   claude deepseek     qwen
word               0.92     0.92     0.92     0.92     0.92     0.92
word_break         1.09     1.07     1.01     1.06     1.08     1.07
title                 0     0.03        0        0        0     0.03
vowel_end           1.2     0.94      0.3     1.11     0.68     0.94
capital            1.15     1.22     1.37     1.27     1.65     1.22
capitals           0.62     0.59     0.58      0.6     0.62     0.59
digits              0.3     1.41     1.35     0.88     1.26     0.35
digit              0.96        0        0     0.16     0.01        1
blank_digit         0.9     0.98      1.2     0.18     0.79      0.9
space              0.02        0        0        0     0.04        0
spaces             1.08     1.11     1.11     1.13     1.11     1.11
line               0.79     0.91        1     0.92     1.01     0.91
more_lines         0.68     0.11     0.07     0.62     0.07     0.11
returns            0.68        0        0     0.76      0.4        0
first_change       0.38     0.84     0.49     0.25     0.38     0.84
change                0      0.2     0.22        0      0.1      0.2
more_spaces        0.37      0.1      0.1        0     0.11      0.1
tab                0.19     0.06     0.06     0.18     0.13     0.06
mark               0.67     0.47     0.53     0.82     0.64     0.58
marks                 0        0        0     0.09        0        0
mark_change           1     0.85     0.99     0.82     0.96     0.85
mark_same          0.04     0.02     0.02     0.04     0.02     0.02
mark_letter        0.19        0        0     0.14        0        0
"""
_SCRIPTS = """
han                1.02     1.02     0.73     0.97     0.63     0.63
han2               2.56     2.57     1.74     2.24     1.26     1.26
han3               2.38     2.38     2.13     2.23     2.19     2.19
kana               1.07     1.01     0.84     1.14     0.71     0.71
hangul             0.86     0.68      0.3     0.85      0.3      0.3
hangul2            2.68     2.68     2.31     2.64     2.45     2.45
wide               0.03        0        0        0        0     0.03
latin              2.29     1.08      0.3     2.36     0.71     0.71
vietnamese         1.18      0.4      0.4     1.06      0.4      0.4
cyrillic            0.7     0.64     0.33     0.69     0.41     0.41
greek              1.37     1.06     0.43     1.37     0.52     1.06
arabic             1.23     0.92     0.38      1.2     0.44     0.44
hebrew              1.2     1.21     0.45     1.05     0.54     0.54
thai               1.82     0.97     0.43     1.82     0.38     0.55
devanagari         1.39     1.25     0.38     1.39     0.74     1.25
indic              2.18     1.52     0.38     2.17     0.58     1.35
georgian           2.17     2.18     0.33     1.85     0.77     2.18
typographic        1.05        1     0.94     1.06     1.02     1.02
symbol             3.06     3.06     3.06      2.3      2.3     3.06
box                1.86     1.86     1.58     1.67     1.67     1.86
emoji              2.92     2.92     2.31     2.96     2.24     2.24
joiner             0.42      0.3      0.3     2.84      0.3      0.3
rare               3.28        3        3     3.29        3        3
forms              2.15     2.15     1.86      1.4     2.15     1.35
points                2        2      1.5        2      1.4      1.9
arabic2             1.9      1.9      0.5      1.9        1      1.9
southern            2.6      2.1      0.9      2.6      1.4      1.9
zero               2.84        2        1     2.84        1        2
astral                4        4        4     3.06        4        4
"""


def _families() -> dict[str, TokenCosts]:
    """The columns of both tables."""
    names, *pieces = (line.split() for line in _PIECES.strip().splitlines())
    scripts = [line.split() for line in _SCRIPTS.strip().splitlines()]
    return {
        name: TokenCosts(
            **{piece: float(costs[column]) for piece, *costs in pieces},
            scripts={script: float(costs[column]) for script, *costs in scripts},
        )
        for column, name in enumerate(names)
    }


FAMILIES = _families()
"""By name: `cl100k` and `o200k` are OpenAI's older and newer tables; with `qwen` each digit is a token. `any` costs at
least what the dearest does."""
_NAMES = sorted({name for name, _, _ in SCRIPTS} | {"han", "han2", "han3", "hangul", "hangul2", "rare", "astral"})
_ASCII = len(_NAMES)


@lru_cache(1)
def _make_script_index() -> np.ndarray[tuple[int], np.dtype[np.uint8]]:
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
    known = _make_script_index()
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
