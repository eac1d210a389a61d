"""The search terms of a text in any language.

Words are compared without case, accents and English endings. Text without spaces (Chinese, Japanese, Korean, Thai …)
gives every pair of neighbouring characters, so that a word of two characters is found anywhere; a Chinese character
alone is found too. A path, an address, a number or an identifier is a term, and so are its parts.

A question names a speaker by the whole name ("caroline", flight_assistant), or by a part as people write it, with a
capital ("Ann" of Ann Smith). A word of its subject names no speaker: "my flight" does not mean flight_assistant.

This imports no numpy: commands load it.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Collection
from functools import lru_cache

from longthread.memory.index.dates import MONTHS, days, with_day_signs

_VERBS = (
    "be am is are was were been being|beat beaten|become became|begin began begun|bend bent|bite bit bitten|"
    "blow blew blown|break broke broken|bring brought|build built|burn burnt|buy bought|catch caught|"
    "choose chose chosen|come came|deal dealt|die dying|dig dug|do does did done doing|draw drew drawn|"
    "dream dreamt|drink drank drunk|drive drove driven|eat ate eaten|fall fell fallen|feed fed|feel felt|"
    "fight fought|find found|flee fled|fly flew flown|forget forgot forgotten|forgive forgave forgiven|"
    "freeze froze frozen|get got gotten|give gave given|go goes going went gone|grow grew grown|hang hung|"
    "have has had|hear heard|hide hid hidden|hold held|keep kept|know knew known|lay laid|lead led|learn learnt|"
    "leave left|lend lent|lie lying|light lit|lose lost|make made|"
    "mean meant|meet met|pay paid|quiz quizzes quizzed|ride rode ridden|ring rang rung|rise risen|run ran|say said|"
    "see saw seen|seek sought|sell sold|send sent|shake shook shaken|shine shone|shoot shot|show shown|"
    "sing sang sung|sink sank sunk|sit sat|ski skied|sleep slept|"
    "speak spoke spoken|spend spent|spin spun|stand stood|steal stole stolen|stick stuck|strike struck|"
    "swear swore sworn|sweep swept|swim swam swum|take took taken|teach taught|tear tore torn|tell told|"
    "think thought|throw threw thrown|tie tying|understand understood|wake woke woken|wear wore worn|weep wept|"
    "win won|write wrote written"
)
_NOUNS = (
    "child children|man men|woman women|person people|foot feet|tooth teeth|mouse mice|goose geese|"
    "wife wives|knife knives|half halves|shelf shelves|wolf wolves|loaf loaves|thief thieves|calf calves|scarf scarves|"
    "lens lenses"
)
_ALSO_PLURAL = {"leaves": "leaf", "lives": "life"}
_COMPARED = "good better best|bad worse worst"


def _by_form(groups: str) -> dict[str, str]:
    found: dict[str, str] = {}
    for group in groups.split("|"):
        first, *others = group.split()
        found |= dict.fromkeys(others, first)
    return found


_BASES = (_by_form(_NOUNS) | _by_form(_VERBS) | _by_form(_COMPARED) | {month[:3]: month for month in MONTHS}) | {
    "sept": "september"
}
_ORDINAL = re.compile(r"(\d+)(?:st|nd|rd|th)")


def base_form(word: str) -> str:
    """Return the base form of a lower-case word: go for went, january for jan, 17 for 17th."""
    ordinal = _ORDINAL.fullmatch(word)
    return ordinal[1] if ordinal else _BASES.get(word, word)


def other_base(word: str) -> str | None:
    """Return the noun whose plural a lower-case word may be, if its base form is a verb: leaf for leaves."""
    return _ALSO_PLURAL.get(word)


TERMS_FORM = 6
"""Which terms an entry gives, and whether it says a time. What was indexed with another number is indexed again."""
MAX_TERM = 200
"""Characters of a term that count: no question needs the rest of a longer one."""

# Scripts without spaces between words, and Korean, whose words carry endings.
_DENSE = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3100-\u312f\u31a0-\u31ff\u3400-\u4dbf\u4e00-\u9fff"
    "\uac00-\ud7af\uf900-\ufaff\U00020000-\U0003ffff"
)
# Vowel signs of Indic scripts do not match `\w`, but are part of words.
_SIGNS = "\u0900-\u0dff"
_PIECE = re.compile(rf"(?P<dense>[{_DENSE}]+)|(?P<word>(?:[^\W_{_DENSE}]|[{_SIGNS}])+)")
# Starts at a word and does not backtrack: else a long text without spaces takes quadratic time.
_COMPOUND = re.compile(
    r"(?<![A-Za-z0-9_])(?:[A-Za-z0-9_]++(?:[-._/\\:@+#~][A-Za-z0-9_]++)++|_*+[A-Za-z0-9]++(?:_++[A-Za-z0-9]++)++)"
)
_THOUSANDS = re.compile(r"(?<![\d,.])\d{1,3}(?:,\d{3})+(?![\d,])")
_HUMPS = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_POSSESSIVE = re.compile(r"(?<=\w)['’]s\b", re.IGNORECASE)
_ACCENTS = re.compile("[\u0300-\u036f]")
_VOWELS = frozenset("aeiouy")
_SYLLABLES = re.compile("[aeiouy]+[^aeiouy]+[aeiouy]")
_HAN = "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
# A character that stands alone is a term already.
_HAN_RUN = re.compile(rf"(?<=[{_DENSE}])[{_HAN}]+|[{_HAN}]++(?=[{_DENSE}])|[{_HAN}]{{2,}}")
_EMPTY = frozenset(
    "的了着过得地是不在有和与及或就都也还又再很太最更把被让给对向从到为以于之其此这那哪谁我你您他她它们吗呢吧啊呀哦嗯么什怎几多少"
    "个些一二三四五六七八九十百千万两没要会能可想说看去来上下里中内外前后大小好年月日时分点间次件种样回起出进行用做让使叫成所如何为"
    "因但而且则若并只才先已将应该请问告诉知道什麼這個們說會來時後與為過還沒對從讓"
)


def terms(text: str) -> list[str]:
    """Return the terms of a text with repetitions, in no particular order."""
    text = unicodedata.normalize("NFKC", text)
    text = _THOUSANDS.sub(lambda number: number[0].replace(",", ""), _POSSESSIVE.sub("", text))
    text = with_day_signs(text)
    found = [whole[:MAX_TERM] for whole in map(_fold_text, _COMPOUND.findall(text))] + days(text)
    for piece in _PIECE.finditer(text):
        dense = piece["dense"]
        if dense is None:
            found += _of_word(piece["word"])
        else:
            found += [dense[at : at + 2] for at in range(len(dense) - 1)] or [dense]
    return found


def characters(text: str) -> list[str]:
    """Return the Chinese characters within runs, with repetitions and without stop characters. They are terms in
    addition to `terms`: 猫 is a word in 一只猫."""
    return [char for run in _runs(text) for char in run if char not in _EMPTY]


def asked_characters(text: str, common: Collection[str]) -> list[str]:
    """Return a question's characters that may be words: at the edge of a run, or next to a stop character or a `common`
    pair. Between others one is mostly a part of a longer word."""
    found = []
    for run in _runs(text):
        pairs = [run[at : at + 2] in common for at in range(len(run) - 1)]
        said = zip(run, [False, *pairs], [*pairs, False], strict=True)
        empty = [True, *(before or after or char in _EMPTY for char, before, after in said), True]
        found += [run[at] for at in range(len(run)) if not empty[at + 1] and (empty[at] or empty[at + 2])]
    return found


def _runs(text: str) -> list[str]:
    return _HAN_RUN.findall(unicodedata.normalize("NFKC", text))


def _of_word(word: str) -> list[str]:
    whole = _found_by(word)[:MAX_TERM]
    parts = _HUMPS.split(word) if not (word.islower() or word.isupper() or word.isdigit()) else [word]
    noun = other_base(word.lower())
    found = [whole] if noun is None else [whole, stem(noun)]
    return found if len(parts) == 1 else [*found, *map(_found_by, parts)]


def _found_by(word: str) -> str:
    return stem(base_form(_fold_text(word)))


def _fold_text(text: str) -> str:
    text = text.casefold()
    return text if text.isascii() else _ACCENTS.sub("", unicodedata.normalize("NFD", text))


@lru_cache(maxsize=65536)
def stem(word: str) -> str:
    """Strip plural, tense and adverb endings of a lower-case English word; return any other word unchanged."""
    if len(word) < 4 or not word.isascii() or not word.isalpha():
        return word
    word = _without_tense(_singular(word))
    if word.endswith("ly") and len(word) > 5:
        word = word[:-2]
    if word.endswith("e") and len(word) > 3:
        word = word[:-1]
    if word.endswith("y") and len(word) > 3 and word[-2] not in _VOWELS:
        word = word[:-1] + "i"
    # "travelled" is "travel"; so "install" loses an l, too.
    return word[:-1] if word.endswith("ll") and _SYLLABLES.search(word) else word


def _singular(word: str) -> str:
    if word.endswith("ies") and len(word) > 4:  # "dies" is "die"
        return word[:-3] + "y"
    if word.endswith("es") and word[-3] in "sxz" and len(word) > 4:  # "uses" is "use"
        return word[:-2]
    return word[:-1] if word.endswith("s") and word[-2] not in "us" else word


def _without_tense(word: str) -> str:
    if word.endswith("ied"):  # "tried" is "try", but "died" is "die"
        return word[:-3] + "y" if len(word) > 4 else word[:-1]
    for ending in ("ingly", "edly", "ing", "ed"):
        rest = word.removesuffix(ending)
        if rest != word and len(rest) >= 3 and not _VOWELS.isdisjoint(rest):
            # "planned" is "plan", but "called" is "call".
            return rest[:-1] if len(rest) > 3 and rest[-1] == rest[-2] and rest[-1] not in "lsz" else rest
        if rest != word and len(rest) == 2 and rest[0] in _VOWELS and rest[1] not in _VOWELS:
            return f"{rest}e"  # "used" is "use"
    return word


_ENGLISH = (
    "a about all also am an and any are as at be been but by can could did do does doing each every for from get give "
    "had has have he her here him his how i if in into is it its just like many me more most much my no not of on one "
    "only or our "
    "please say show so some tell than that the their them then there these they this those to us use user want was we "
    "were what when where which who why will with would you your"
)
_CHINESE = (
    "多少 什么 哪些 哪个 怎么 如何 请问 我们 你们 他们 可以 这个 那个 这些 那些 一个 一下 没有 不是 是不 有多 有哪 "
    "几个 告诉 诉我 我想 想知 知道 为什 么样 怎样 用户 户的 我的 你的 时候 么时 是什 是谁 哪里 在哪 哪儿 显示 列出 "
    "查询 给我 帮我 看看 所有 有的 全部 每个 一共 总共 这里 那里 什麼 甚麼 哪個 怎麼 請問 我們 你們 他們 這個 那個 "
    "沒有 告訴 為什 時候 麼時 是誰 哪裡 顯示 查詢 給我 幫我"
)
COMMON_TERMS = frozenset(term for word in f"{_ENGLISH} {_CHINESE}".split() for term in terms(word))
"""Terms that say nothing of what a text is about."""


def find_telling_terms(text: str) -> list[str]:
    """Return the question's terms that say what it is about; all of them if none does."""
    found = list(dict.fromkeys(terms(text)))
    return [term for term in found if term not in COMMON_TERMS] or found


CHARACTER = 0.3
"""What a Chinese character counts, in addition to the pairs that it stands in."""


def weigh_terms(text: str) -> dict[str, float]:
    """Weigh a question's terms, and, at less weight, its characters."""
    return dict.fromkeys(asked_characters(text, COMMON_TERMS), CHARACTER) | dict.fromkeys(find_telling_terms(text), 1.0)


_PART = "\0"
"""What a term begins with that is a name with a capital; no text has such a term."""
_WORD = re.compile(r"[^\W\d_]+")
_BEGINS = re.compile(r"(?:\A|[.?!:;\n\"“])\s*\Z")
_IDENTIFIER = re.compile(r"[A-Za-z0-9]+(?:[-_./:@+#~][A-Za-z0-9]+)*")
_MOST = 16
"""Names of a question that are looked up, the first ones."""
_MOST_DENSE = 3
"""Characters of a Chinese name up to which each pair names its speaker: a longer one is mostly made of other words."""


def name_terms(name: str) -> list[str]:
    """Return the terms that a speaker is asked for by."""
    parts = [f"{_PART}{found}" for word in _WORD.findall(name) for found in _person(word)]
    return [*_whole(name.strip()), *parts]


def named_in(question: str) -> list[str]:
    """Return the terms of the words that a question writes as names. "Will" is none where a sentence begins with it."""
    if question.isupper():
        return []
    found: dict[str, None] = {}
    for word in _WORD.finditer(question):
        if len(found) == _MOST:
            break
        for term in _person(word[0]):
            if term not in COMMON_TERMS or not _BEGINS.search(question, max(0, word.start() - 4), word.start()):
                found[f"{_PART}{term}"] = None
    return list(found)


@lru_cache(maxsize=1024)
def _person(word: str) -> list[str]:
    return terms(word)[:1] if word[0].isupper() and word != "I" else []


def _whole(name: str) -> list[str]:
    found = terms(name)
    if _IDENTIFIER.fullmatch(name):
        return found[:1]
    one_word = _WORD.fullmatch(name) is not None
    is_dense = one_word and not name.isascii() and len(found) == len(name) - 1
    return found if one_word and (not is_dense or len(name) <= _MOST_DENSE) else []
