"""The language that the command line speaks: English, or Chinese under a Chinese locale or with `--lang zh`.

The command line's own texts name their values (`say`). What something else has made, such as an error's reason, is made
in English by code that knows of no language, and is recognised when it leaves for the terminal (`translate`).
`chinese/*.json` has the Chinese of both. JSON output, logs and what is printed for programs stay as they are.

Texts in another language, found by their English.

A phrasebook's key is an English text as the code has it: with `{}` for each value of an f-string, or with the names of
an error's fields. What is said in its place names the values by their number (`{0}`) or name. `{reason!t}` is said in
the other language too, where the book has it; any other value stays as it is.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping, Sequence
from enum import StrEnum
from functools import cache
from pathlib import Path
from string import Formatter
from typing import Any

from longthread.errors import InvalidInput

_SENTENCES = re.compile(r"(?<=[.?!]) (?=[A-Z`])")
_AFTER_STOP = re.compile(r"(?<=[。？！]) ")


class Phrasebook(Formatter):
    """English texts, and what is said in their place."""

    def __init__(self, texts: Mapping[str, str]) -> None:
        self._texts = dict(texts)
        self._texts |= {
            key.format(): text.format() for key, text in texts.items() if "{{" in key and not fields_of(key)
        }
        templates = [key for key in texts if fields_of(key)]
        # The one that says most comes first: `{} of {}` must not take what a longer one recognises.
        self._patterns = sorted(((literals_of(key), key) for key in templates), key=lambda found: -_size(found[0]))

    def translate(self, text: str) -> str:
        """Return a text in the other language: as a whole, else line by line or sentence by sentence. What the book
        does not have stays English. A key itself, which a library fills in, becomes its template."""
        if said := self._texts.get(text):
            return said
        sentences = [self._fill(each) for each in _SENTENCES.split(text)]
        if all(sentences):  # each says something of its own
            return "".join(sentences)
        if said := self._fill(text):
            return said
        if "\n" in text:
            return "\n".join(self._translate_line(line) for line in text.split("\n"))
        parts = _SENTENCES.split(text)
        return _AFTER_STOP.sub("", " ".join(map(self.translate, parts))) if len(parts) > 1 else text

    def convert_field(self, value: Any, conversion: Any) -> Any:
        """Say a value in the other language where its field asks for that."""
        return self.translate(str(value)) if conversion == "t" else super().convert_field(value, conversion)

    def _translate_line(self, line: str) -> str:
        bare = line.strip()
        return line.replace(bare, self.translate(bare)) if bare else line

    def _fill(self, text: str) -> str:
        """What is said in the place of a text that one key recognises; empty if none does."""
        if said := self._texts.get(text):
            return said
        for literals, key in self._patterns:
            if all(literal in text for literal in literals) and (found := re.fullmatch(_regex(key), text, re.DOTALL)):
                values = [value or "" for value in found.groups()]
                named = {name: value or "" for name, value in found.groupdict().items()}
                return _AFTER_STOP.sub("", self.vformat(self._texts[key], values, named)).strip()
        return ""


def fields_of(key: str) -> list[str]:
    """Return the names of a template's fields, in their order; one without a name is empty."""
    return [name for _, name, _, _ in Formatter().parse(key) if name is not None]


def literals_of(key: str) -> tuple[str, ...]:
    """Return what a template says beside its fields."""
    return tuple(literal.strip() for literal, *_ in Formatter().parse(key) if literal.strip())


def _size(literals: tuple[str, ...]) -> int:
    return sum(map(len, literals))


def _regex(key: str) -> str:
    """Return what recognises a filled template. Its last field may be missing: errors leave an empty hint away."""
    pattern, seen = "", set[str]()
    for literal, name, _, _ in Formatter().parse(key):
        pattern += re.escape(literal)
        if name is not None:
            pattern += f"(?P={name})" if name in seen else f"(?P<{name}>.*?)" if name else "(.*?)"
            seen |= {name} - {""}
    return re.sub(r"\\ (\((?:\?P<\w+>)?\.\*\?\))$", r"(?:\\ \1)?", pattern)


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

MADE_ELSEWHERE = ("errors", "help", "libraries", "reasons")
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
    text = template if _spoken == SpokenLanguage.ENGLISH else _own().get(template, template)
    return text.format(*values) if values else text


def translate(text: str) -> str:
    """Return a text that something else has made, such as an error or a warning, in the language that is spoken; as it
    is where that has no words for it."""
    return text if _spoken == SpokenLanguage.ENGLISH else _phrasebook().translate(text)


@cache
def _own() -> dict[str, str]:
    return read_chinese("own")


@cache
def _phrasebook() -> Phrasebook:
    return Phrasebook({key: text for name in MADE_ELSEWHERE for key, text in read_chinese(name).items()})


def read_chinese(name: str) -> dict[str, str]:
    """Read a file of Chinese texts, by their English."""
    from importlib.resources import files  # English needs none of it

    found: dict[str, str] = json.loads(files("longthread.cli").joinpath(f"chinese/{name}.json").read_text("utf-8"))
    return found


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
