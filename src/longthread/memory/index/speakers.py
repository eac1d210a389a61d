"""Names of speakers: what they are asked for by.

A question names a speaker by the whole name ("caroline", flight_assistant), or by a part as people write it, with a
capital ("Ann" of Ann Smith). A word of what it is about names nobody: "my flight" does not mean flight_assistant.
"""

from __future__ import annotations

import re
from functools import lru_cache

from longthread.memory.index.terms import COMMON_TERMS, terms

_PART = "\0"
"""What a term begins with that is a name with a capital; no text has such a term."""
_WORD = re.compile(r"[^\W\d_]+")
_BEGINS = re.compile(r"(?:\A|[.?!:;\n\"“])\s*\Z")
_IDENTIFIER = re.compile(r"[A-Za-z0-9]+(?:[-_./:@+#~][A-Za-z0-9]+)*")
_MOST = 16
"""Names of a question that are looked up, the first ones."""
_MOST_DENSE = 3
"""Characters of a Chinese name of which each pair names its speaker: a longer one is mostly made of other words."""


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
