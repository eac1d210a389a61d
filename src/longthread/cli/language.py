"""The language that the command line speaks: English, or Chinese under a Chinese locale or with `--lang zh`.

The command line's own texts name their values (`say`). What something else has made, such as an error's reason, is made
in English by code that knows of no language, and is recognised when it leaves for the terminal (`translate`). The
phrasebook has its Chinese, and `chinese/*.json` that of what the command line and its libraries say. JSON output, logs
and what is printed for programs stay as they are.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from enum import StrEnum
from functools import cache
from pathlib import Path

from longthread import phrasebook
from longthread.errors import InvalidInput
from longthread.phrasebook import BOOKS, Phrasebook, note_in_chinese


class SpokenLanguage(StrEnum):
    """What is spoken."""

    ENGLISH = "en"
    CHINESE = "zh"


OPTION, VARIABLE = "--lang", "LONGTHREAD_LANG"
_LOCALE = ("LC_ALL", "LC_MESSAGES", "LANG")
"""The variables of a locale's language, the one that wins first (POSIX)."""
_HAS_ITS_OWN = ("eval", "context")
"""The command whose `--lang` is its conversation's."""
_DOTENV = Path(".env")

MADE_ELSEWHERE = (*BOOKS, "help", "libraries")
"""The files of what is recognised; `own` has the command line's own texts."""

_spoken: str = SpokenLanguage.ENGLISH


def choose(arguments: Sequence[str]) -> None:
    """Choose the language of this process: that of `--lang` wherever it stands, of LONGTHREAD_LANG, or of the locale.

    Raises:
        InvalidInput: LONGTHREAD_LANG names no language that is spoken.
    """
    global _spoken
    _spoken = _find_option(arguments) or _read_setting() or _of_locale(os.environ)


def is_chinese() -> bool:
    """Whether Chinese is spoken."""
    return _spoken == SpokenLanguage.CHINESE


def say(template: str, *values: object) -> str:
    """Return a text of the command line's own, in the language that is spoken, with values at its `{}`."""
    text = template if _spoken == SpokenLanguage.ENGLISH else _read_own().get(template, template)
    return text.format(*values) if values else text


def translate(text: str) -> str:
    """Return a text that something else has made, such as an error or a warning, in the language that is spoken; as it
    is where that has no words for it."""
    return text if _spoken == SpokenLanguage.ENGLISH else _read_phrasebook().translate(text)


def translate_note(note: str) -> str:
    """Return a note on a file in the language that is spoken, as `translate` does."""
    return note if _spoken == SpokenLanguage.ENGLISH else note_in_chinese(note)


@cache
def _read_own() -> dict[str, str]:
    return read_chinese("own")


@cache
def _read_phrasebook() -> Phrasebook:
    return Phrasebook({key: text for name in MADE_ELSEWHERE for key, text in read_chinese(name).items()})


def read_chinese(name: str) -> dict[str, str]:
    """Read a file of Chinese texts, by their English."""
    return phrasebook.read_chinese("longthread" if name in BOOKS else "longthread.cli", name)


def _find_option(arguments: Sequence[str]) -> str | None:
    """The language that `--lang` names. What else it names is refused when the options are read."""
    for at, argument in enumerate(arguments):
        name, _, value = argument.partition("=")
        if argument == "--" or tuple(arguments[max(0, at - 1) : at + 1]) == _HAS_ITS_OWN:
            return None
        if name == OPTION:
            language = value if "=" in argument else "".join(arguments[at + 1 : at + 2])
            return language if language in list(SpokenLanguage) else None
    return None


def _read_setting() -> str | None:
    language = os.environ.get(VARIABLE) or (_of_file() if _DOTENV.is_file() else None)
    if language and language not in list(SpokenLanguage):
        raise InvalidInput(reason=f"{VARIABLE} is {language!r}; allowed is `en` or `zh`.")
    return language


def _of_file() -> str | None:
    from dotenv import dotenv_values

    try:
        return dotenv_values(_DOTENV).get(VARIABLE)
    except (OSError, UnicodeDecodeError):
        return None  # a command that needs the file says so


def _of_locale(environment: Mapping[str, str]) -> str:
    name = next((environment[variable] for variable in _LOCALE if environment.get(variable)), "")
    return SpokenLanguage.CHINESE if name.lower().startswith("zh") else SpokenLanguage.ENGLISH
