"""What words do in a question: operations such as counting, comparing and sorting, in English and Chinese."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from importlib.resources import files

from longthread.tools.analysis.schema_linking import is_cjk, stem

_Key = tuple[str, ...]

TOKEN = re.compile(
    r"(?P<quoted>\"[^\"\n]+\"|“[^”\n]+”|「[^」\n]+」|《[^》\n]+》|『[^』\n]+』|‘[^’\n]+’|(?<![\w'])'[^'\n]+'(?!\w))"
    r"|(?P<date>\d{4}-\d{1,2}-\d{1,2}|\d{4}/\d{1,2}/\d{1,2}|\d{4}-\d{2}(?!\d))"
    r"|(?P<number>\d{1,3}(?:,\d{3})+(?:\.\d+)?|\d+(?:\.\d+)?)"
    r"|(?P<word>[^\W\d_]\.(?:[^\W\d_]\.)+|[^\W\d_\u3400-\u9fff]+(?:['’][^\W\d_\u3400-\u9fff]+)*)"
    r"|(?P<cjk>[\u3400-\u9fff])"
    r"|(?P<sign>>=|<=|!=|<>|==|[^\w\s])"
)

_CHINESE = re.compile(r"[\u3400-\u9fff]+")


@dataclass(frozen=True)
class Token:
    """A token of a text: its kind, what it is compared by, and where it stands."""

    kind: str
    norm: str
    text: str
    start: int
    end: int


def tokenize(text: str) -> list[Token]:
    """The tokens of a text. Words are stemmed; a possessive `'s` is cut."""
    found = []
    for match in TOKEN.finditer(text):
        kind, raw = str(match.lastgroup), match.group()
        norm = raw.lower()
        if kind == "word":
            norm = norm.replace("’", "'")
            norm = stem(norm.removesuffix("'s")) if "." not in norm else norm
        elif kind == "number":
            norm = norm.replace(",", "")
        found.append(Token(kind, norm, raw, match.start(), match.end()))
    return found


def key_of(text: str) -> _Key:
    """What a phrase is looked up by."""
    if _CHINESE.fullmatch(text):  # one token a character, as most phrases of the lexicon are
        return tuple(text)
    return tuple(token.norm for token in tokenize(text) if token.kind != "sign" or len(text.strip()) <= 2)


@dataclass(frozen=True)
class Op:
    """What a phrase does; `args` are the operation's, e.g. `("desc", "length")` of *longest*."""

    name: str
    args: tuple[str, ...] = ()


@lru_cache(maxsize=1)
def lexicon() -> dict[_Key, tuple[Op, ...]]:
    """The packaged lexicon, read once. A phrase may have several readings."""
    found: dict[_Key, list[Op]] = {}
    text = files(__package__).joinpath("lexicon.tsv").read_text(encoding="utf-8")
    for line in text.splitlines():
        if not line or line.startswith("#"):
            continue
        head, _, phrases = line.partition("\t")
        name, *args = head.split()
        for phrase in (*phrases.split(","), *_measured(head)):
            key = key_of(phrase)
            operation = Op(name, tuple(args))
            if key and operation not in found.setdefault(key, []):
                found[key].append(operation)
    return {key: tuple(ops) for key, ops in found.items()}


_MEASURE_WORDS = (
    "首道个位名辆枚次家本张条件趟门台所座支场部款笔类颗间种只头匹棵株朵幅艘架份封套篇段例项盘瓶箱袋盒双口组批则届轮节"
    "栋幢起宗桩堂册杯碗"
)
"""Chinese words between a number and a thing. After 多少, 几, 每 and 哪 they are no thing themselves."""
_MEASURED = {
    "count": ("多少", "几", "还有多少", "还有几", "有多少", "有几", "共有多少", "一共有多少", "总共有多少"),
    "each": ("每", "每一"),
    "which": ("哪", "哪几", "哪一"),
}


def _measured(head: str) -> list[str]:
    """What an operation's word and a measure word make together: 多少艘, 每架, 哪几份."""
    return [asking + word for asking in _MEASURED.get(head, ()) for word in _MEASURE_WORDS]


_ENGLISH = ["zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve"]
_NUMBERS = {word: float(value) for value, word in enumerate(_ENGLISH)} | {
    "fifteen": 15,
    "twenty": 20,
    "thirty": 30,
    "forty": 40,
    "fifty": 50,
    "hundred": 100,
    "thousand": 1000,
}
_STEMMED = {stem(word): value for word, value in _NUMBERS.items()}
_DIGITS = {char: value for value, char in enumerate("零一二三四五六七八九")} | {"两": 2, "〇": 0}
_SCALES = {"十": 10, "百": 100, "千": 1000}
SCALES: dict[str, float] = {
    "k": 1e3,
    "thousand": 1e3,
    "m": 1e6,
    "million": 1e6,
    "billion": 1e9,
    "hundr": 100,
    "万": 1e4,
    "亿": 1e8,
    "千": 1e3,
    "百万": 1e6,
    "千万": 1e7,
}
NUMERALS = frozenset(_DIGITS) | frozenset(_SCALES) | {"万", "亿"}


def number_of(word: str) -> float | None:
    """The number that a stemmed English word or a run of Chinese numerals means, else None."""
    if word in _STEMMED:
        return _STEMMED[word]
    if not word or any(char not in NUMERALS for char in word):
        return None
    total, section, digit = 0.0, 0.0, 0.0
    for char in word:
        if char in _DIGITS:
            digit = digit * 10 + _DIGITS[char] if digit else _DIGITS[char]
        elif char in _SCALES:
            section += (digit or 1) * _SCALES[char]
            digit = 0
        else:
            total = (total + section + digit or 1) * SCALES[char]
            section = digit = 0
    return total + section + digit


def language_of(text: str, names: Iterable[str] = ()) -> str:
    """`zh` when a text has more Chinese characters than a tenth of its letters, else `en`. A database's own `names` are
    of no language where an English word of the lexicon stands with them; they come longest first."""
    if not _is_chinese(text):
        return "en"
    rest = text
    for name in names:
        rest = rest.replace(name, " ")
    said = rest != text and any((token.norm,) in lexicon() for token in tokenize(rest) if token.kind == "word")
    return "zh" if not said or _is_chinese(rest) else "en"


def _is_chinese(text: str) -> bool:
    chinese = sum(is_cjk(char) for char in text)
    return chinese * 10 > len(text.replace(" ", "")) or (chinese > 0 and len(text) < 12)
