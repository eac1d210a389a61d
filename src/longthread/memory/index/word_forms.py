"""Irregular word forms: verbs, plurals, months, ordinals."""

from __future__ import annotations

import re

from longthread.memory.index.dates import MONTHS

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
    """Return the noun of which a lower-case word may be the plural, if its base form is a verb: leaf for leaves."""
    return _ALSO_PLURAL.get(word)
