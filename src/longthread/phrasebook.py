"""Texts in Chinese, found by their English: those that are made by code that knows of no language, such as errors.

A phrasebook's key is an English text as the code has it: with `{}` for each value of an f-string, or with the names of
an error's fields. What is said in its place names the values by their number (`{0}`) or name. `{reason!t}` is said in
the other language too, where the book has it; any other value stays as it is.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from string import Formatter
from typing import Any, Self

BOOKS = ("errors", "reasons")
"""The files of what Longthread's own code says, in `chinese/`."""
_SENTENCES = re.compile(r"(?<=[.?!]) (?=[A-Z`])")
_AFTER_STOP = re.compile(r"(?<=[。？！]) ")
_NOTED = re.compile(r"\S+|.+\.\w{1,8}|.+ left out", re.S)
"""What a note is on: a table, a file, or that it is left out."""
LONGEST_NOTE = 1_000
"""Characters of a note that is translated. Ours are shorter; the names in it, which others give, have no bound."""


class Phrasebook(Formatter):
    """English texts, and what is said in their place."""

    def __init__(self, texts: Mapping[str, str]) -> None:
        self._texts = dict(texts)
        self._texts |= {
            key.format(): text.format() for key, text in texts.items() if "{{" in key and not fields_of(key)
        }
        # The one that says most comes first: `{} of {}` must not take what a longer one recognises.
        said_most = sorted(filter(fields_of, texts), key=lambda key: -sum(map(len, literals_of(key))))
        self._templates = [(max(literals_of(key), key=len), PhraseTemplate.of(key), key) for key in said_most]

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
        for longest, template, key in self._templates:
            if longest in text and (values := template.match(text)) is not None:
                named = dict(zip(template.names, values, strict=True))
                return _AFTER_STOP.sub("", self.vformat(self._texts[key], values, named)).strip()
        return ""


@dataclass(frozen=True, slots=True)
class PhraseTemplate:
    """A key that names values: its fields, and the literals before, between and after them."""

    literals: tuple[str, ...]
    names: tuple[str, ...]

    @classmethod
    def of(cls, key: str) -> Self:
        """Take a key apart."""
        literals = [""]
        for literal, name, _, _ in Formatter().parse(key):
            literals[-1] += literal
            literals += [""] if name is not None else []
        return cls(tuple(literals), tuple(fields_of(key)))

    def match(self, text: str) -> list[str] | None:
        """Return the values that make a text of the template, each as short as can be; None if none do. The last one
        may be missing, with the space before it: errors leave an empty hint away."""
        *_, before, after = self.literals
        values = self._values_in(text)
        return self._values_in(f"{text} ") if values is None and before.endswith(" ") and not after else values

    def _values_in(self, text: str) -> list[str] | None:
        """Look for each literal once: the time that it takes grows with the text alone."""
        first, *between, last = self.literals
        if not (text.startswith(first) and text.endswith(last)):
            return None
        values, at = list[str](), len(first)
        for literal in between:
            if (end := text.find(literal, at)) < 0:
                return None
            values.append(text[at:end])
            at = end + len(literal)
        values.append(text[at : len(text) - len(last)])
        return values if at <= len(text) - len(last) and self._agrees(values) else None

    def _agrees(self, values: list[str]) -> bool:
        """Whether a name that comes twice has one value."""
        named = dict(zip(self.names, values, strict=True))
        return all(not name or named[name] == value for name, value in zip(self.names, values, strict=True))


def fields_of(key: str) -> list[str]:
    """Return the names of a template's fields, in their order; one without a name is empty."""
    return [name for _, name, _, _ in Formatter().parse(key) if name is not None]


def literals_of(key: str) -> tuple[str, ...]:
    """Return what a template says beside its fields."""
    return tuple(literal.strip() for literal, *_ in Formatter().parse(key) if literal.strip())


def read_chinese(package: str, name: str) -> dict[str, str]:
    """Read a file of Chinese texts, by their English, from a package's folder `chinese/`."""
    from importlib.resources import files  # English needs none of it

    found: dict[str, str] = json.loads(files(package).joinpath(f"chinese/{name}.json").read_text("utf-8"))
    return found


@cache
def chinese_texts() -> Phrasebook:
    """Return the phrasebook of what Longthread's own code says."""
    return Phrasebook({key: text for name in BOOKS for key, text in read_chinese("longthread", name).items()})


def note_in_chinese(note: str) -> str:
    """Return a note on a file or a result in Chinese, as far as there are words for it. What it is on stands before
    it: `sales.xlsx: NOTE`, `Sales: NOTE`, `sales.xlsx is left out: REASON`."""
    if len(note) > LONGEST_NOTE:
        return note
    book = chinese_texts()
    before, _, told = note.partition(": ")
    if before not in (whole := book.translate(note)):
        return whole
    if told and _NOTED.fullmatch(before) and ((said := book.translate(told)) != told or before.endswith(" left out")):
        return f"{book.translate(before)}：{said}"
    return whole
