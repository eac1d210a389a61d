"""Parses a question: its parts, and whose words and which time it asks for.

An entry that answers is often found by its speaker rather than by words: "what did you recommend?", 我提到过的公园.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from longthread.memory.index.dates import asks_when
from longthread.memory.index.postings import HAS_TIME, USER_SAID, by_bucket, hash_of
from longthread.memory.index.terms import COMMON_TERMS, named_in, terms, weigh_terms

_VERBS = (
    r"(?:said|say|told|tell|recommend\w*|suggest\w*|mention\w*|gave|give|advi[cs]e\w*|propos\w*|explain\w*|provid\w*|"
    r"listed|listing|(?<=you )list|(?<=your )list|describ\w*|shared?|taught|answer\w*|wrote|writ\w*|refer\w*)"
)
# "Can you tell me …" asks for an answer, not for what was said, and says nothing of the user.
_POLITE = re.compile(
    r"\b(?:can|could|would|will|do) you(?: (?:still|please|kindly))?(?: (?:remember|recall|know))?\b|\bplease\b|"
    r"\byou (?:still |may |might |must |should |surely )?(?:remember|recall|know)\b|"
    r"\bI(?:['’]d| would)? (?:need|want|like) (?:you )?to (?:know|(?=tell|remind|show|give|help))|"
    r"[你您妳](?:还|還)?(?:记不记得|記不記得|知不知道|记得|記得|知道|是否记得|是否知道)|"
    r"(?:[请請][你您妳]?|[你您妳]?(?:能不能|可不可以|能否|可否|可以|能))(?:再)?(?=告诉我|告訴我|提醒我)",
    re.IGNORECASE,
)
_TO_ME = re.compile(
    r"(?<!you )(?<!who )(?<!they )(?<!he )(?<!she )\b(?:tell|remind|show|give|help|send|let) me\b|"
    r"(?:\A|(?<=[。？！，,\s]))(?:告诉我|告訴我|提醒我)(?![的过過])",
    re.IGNORECASE,
)
_ZH_SAY = "(?:推荐|推薦|告诉|告訴|建议|建議|说|說|分享|教|给|給|提到|回答|介绍|介紹|讲|講)"
_ZH_TO = "[给給和跟向对對与與为為帮幫]"
_ZH_BEFORE = r"(?:\A|(?<=[。？！，,\s次回前天才刚剛经經曾还還都先]))"
"""Where a sentence without a subject begins: 上次给我推荐."""
_TO_YOU = re.compile(
    rf"\b({_VERBS}(?: (?:to|with|for))?|to|with|for|from|about|of|need|want|ask(?:ed)?|show(?:ed|n)?|sent|thank) you\b|"
    rf"((?:告诉|告訴|推荐|推薦|介绍|介紹|教|送|发|發|问|問)[过過了]?[给給]?)[你您妳]",
    re.IGNORECASE,
)
_I_SAID = re.compile(rf"{_ZH_BEFORE}{_ZH_TO}[你您妳]{_ZH_SAY}")
_YOU_SAID = re.compile(
    rf"\b(?:you|your)\b(?:(?! (?:I|we|he|she|they)\b)[^.?!]){{0,40}}\b{_VERBS}\b|"
    rf"(?<!{_ZH_TO})[你您妳](?:[^我。？！，,]|(?<=[给給跟和向对對为為帮幫替在])我){{0,12}}{_ZH_SAY}|"
    rf"{_ZH_BEFORE}{_ZH_TO}我{_ZH_SAY}",
    re.IGNORECASE,
)
_I = re.compile(
    r"\b(?:(?<!War )(?<!part )(?<!Part )I(?!/)|[Mm]e|[Mm]y|MY|[Mm]ine|[Mm]yself|[Ww]e|[Oo]ur|[Uu]s)\b|"
    r"(?<!自)我(?!国|國)|咱"
)
_SMALL_I = re.compile(r"(?<![\w./-])(?<!war )(?<!part )(?<!type )(?<!phase )(?<!class )(?<!volume )i(?![\w/-]|\.\w)")


def by_user(question: str) -> bool | None:
    """Return whether a question asks for the user's words, or for others'; None: it does not say."""
    plain = _TO_ME.sub(" ", _POLITE.sub(" ", question.lower() if question.isupper() else question))
    plain = _TO_YOU.sub(r"\1\2 ", plain)
    if _I_SAID.search(question):
        return True
    if _YOU_SAID.search(plain):
        return False
    return True if _names_user(plain) else None


def _names_user(text: str) -> bool:
    """Whether a text has "I" or 我. A small i counts where nothing else is written with a capital."""
    return _I.search(text) is not None or (text.islower() and _SMALL_I.search(text) is not None)


MOST_TERMS = 256
"""Terms of a question that count, the first ones."""
_MOST_PARTS = 4
_SENTENCE = re.compile(r"[^。？！?!；;\n]+[。？！?!；;\n]*")
_MOREOVER = re.compile(
    r"(?:^|(?<=[,，。？！?!；;\n]))[ \t\u3000]*"
    r"(?:另外|此外|还有|還有|以及|(?:and )?also\b|additionally\b|besides\b|"
    r"and (?=(?:who|what|when|where|which|how|why)\b))[,，]?",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class ParsedQuery:
    """A parsed question.

    Args:
        parts: the weights of each part's terms, by hash.
        by_user: whether it asks for the user's words, or for others'; None: it does not say.
        when: whether it asks for a time.
        names: the hashes of what it writes as a speaker's name.
    """

    parts: Sequence[Mapping[int, float]]
    by_user: bool | None
    when: bool
    names: Sequence[int] = ()

    @classmethod
    def of(cls, text: str) -> ParsedQuery:
        names = [hash_of(term) for term in named_in(text)]
        return cls([_weights(part) for part in _parts(text)], by_user(text), asks_when(text), names)

    @cached_property
    def marks(self) -> list[int]:
        """The hashes of the marks that the ranking needs."""
        return [mark for mark, asked in ((USER_SAID, self.by_user is not None), (HAS_TIME, self.when)) if asked]

    @cached_property
    def hashes(self) -> list[int]:
        return list(dict.fromkeys([*(value for part in self.parts for value in part), *self.names, *self.marks]))

    @cached_property
    def buckets(self) -> Mapping[int, Sequence[int]]:
        """The hashes by the buckets that may have them."""
        return by_bucket(self.hashes)


def _weights(text: str) -> dict[int, float]:
    """Weigh a question's terms by hash. If some say what it is about, common question words weigh nothing."""
    wanted = sorted(weigh_terms(text).items(), key=lambda each: -each[1])  # characters after everything else
    return {hash_of(term): weight for term, weight in wanted[:MOST_TERMS]}


def _parts(text: str) -> list[str]:
    """Split a question into two to four parts; else return it whole.

    Each asking sentence is a part; other text before or after a "besides" is another. An English full stop ends no
    part: the text before it says what the question is about, and scores better with it.
    """
    found: list[str] = []
    for piece in _MOREOVER.split(text):
        telling: list[str] = []
        for sentence in _SENTENCE.findall(piece):
            (found if sentence.rstrip().endswith(("?", "？")) else telling).append(sentence)
        found.append(" ".join(telling))
    found = [part for part in found if any(term not in COMMON_TERMS for term in terms(part))]
    return found if 1 < len(found) <= _MOST_PARTS else [text]
