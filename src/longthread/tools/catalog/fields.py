"""Reads the fields of a definition and collects all problems, so that a person can fix them at once.

The definitions of upstreams and routes say which providers the gateway asks, and for which models.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal
from urllib.parse import urlsplit

from longthread.model.catalog import Body

LONGEST_NAME = 100
"""Characters of a name (document 002)."""
MOST_OBJECTS = 1_000
"""Terms of a source at most, examples, metrics and dimensions."""


FieldKind = Literal[
    "missing",
    "too_long",
    "not_text",
    "not_number",
    "not_flag",
    "not_object",
    "not_list",
    "twice",
    "unknown_field",
    "unknown_name",
    "other",
]
"""What is wrong with a field, for programs. `not_number` is also a number out of its range."""


class FieldProblem(str):
    """A problem, as people read it. `field` is the field that has it, such as `config.model`, and `reason` why."""

    field: str
    reason: str
    kind: FieldKind

    def __new__(cls, field: str, reason: str, where: str = "", kind: FieldKind = "other") -> FieldProblem:
        """A problem of the definition at `where`."""
        self = super().__new__(cls, f"{where}, {field}: {reason}" if where else f"{field}: {reason}")
        self.field, self.reason, self.kind = field, reason, kind
        return self


class FieldReader:
    """Reads the fields of an object. Adds `path: problem` to `problems` and skips an invalid value."""

    def __init__(self, data: Mapping[str, Any], problems: list[FieldProblem], path: str = "") -> None:
        self.problems = problems
        self._data = data
        self._path = path
        self._known: list[str] = []

    def problem(self, name: str, text: str, kind: FieldKind = "other") -> None:
        """Adds a problem of a field."""
        self.problems.append(FieldProblem(self._at(name), text, kind=kind))

    def has(self, name: str) -> bool:
        """Whether a field is given."""
        return self._get(name) is not None

    def text(self, name: str, *, required: bool = False, longest: int = 1_000_000) -> str | None:
        """A text that is not blank, or None."""
        value = self._get(name)
        if value is None or value == "":
            if required:
                self.problem(name, "it is missing. Give a text.", "missing")
            return None
        if not isinstance(value, str):
            self.problem(name, f"it must be a text, and is {short(value)}.{_quotes(value)}", "not_text")
        elif not value.strip():
            self.problem(name, "it is blank. Give a text.", "missing")
        elif len(value) > longest:
            self.problem(name, f"it has {len(value):,} characters, and the limit is {longest:,}.", "too_long")
        else:
            return value
        return None

    def flag(self, name: str, *, default: bool) -> bool:
        """True or false."""
        value = self._get(name)
        if value is None:
            return default
        if not isinstance(value, bool):
            self.problem(name, f"it must be true or false, and is {short(value)}.", "not_flag")
            return default
        return value

    def number(self, name: str, *, least: float, most: float, whole: bool = False, above: bool = False) -> None:
        """Checks a number, if given. `above`: it must be greater than `least`."""
        value = self._get(name)
        if value is None:
            return
        fits = isinstance(value, int | float) and not isinstance(value, bool)
        fits = fits and (not whole or float(value).is_integer()) and least <= value <= most
        if not fits or (above and value <= least):
            kind = "a whole number" if whole else "a number"
            begins = f"above {least:g}" if above else f"from {least:g}"
            self.problem(name, f"it must be {kind} {begins}, at most {most:g}, and is {short(value)}.", "not_number")

    def object(self, name: str, *, required: bool = False) -> dict[str, Any]:
        """An object, by default empty."""
        value = self._get(name)
        if value is None:
            if required:
                self.problem(name, "it is missing. Give an object.", "missing")
            return {}
        if not isinstance(value, Mapping):
            self.problem(name, f"it must be an object, and is {short(value)}.", "not_object")
            return {}
        return dict(value)

    def items(self, name: str) -> list[Any]:
        """A list, by default empty."""
        value = self._get(name)
        if value is None:
            return []
        if not isinstance(value, Sequence) or isinstance(value, str):
            self.problem(name, f"it must be a list, and is {short(value)}.", "not_list")
            return []
        return list(value)

    def texts(self, name: str) -> list[str]:
        """A list of unique texts."""
        found: list[str] = []
        for place, value in enumerate(self.items(name)):
            if not isinstance(value, str) or not value.strip():
                self.problem(
                    f"{name}[{place}]", f"it must be a text, and is {short(value)}.{_quotes(value)}", "not_text"
                )
            elif value in found:
                self.problem(f"{name}[{place}]", f"{value} stands there twice.", "twice")
            else:
                found.append(value)
        return found

    def objects(self, name: str) -> Iterator[FieldReader]:
        """A reader for each object of a list."""
        items = self.items(name)
        if len(items) > MOST_OBJECTS:
            self.problem(name, f"there are {len(items):,}, and the limit is {MOST_OBJECTS:,}.")
            return
        for place, item in enumerate(items):
            if isinstance(item, Mapping):
                yield self.within(f"{name}[{place}]", item)
            else:
                self.problem(f"{name}[{place}]", f"it must be an object, and is {short(item)}.")

    def expect_line(self, name: str, text: str) -> bool:
        """Check that a text is one line, without blanks at its ends."""
        fits = text == text.strip() and text.isprintable()
        if not fits:
            self.problem(name, "it must have no blank at its ends, and no line break or other control character.")
        return fits

    def within(self, name: str, data: Mapping[str, Any]) -> FieldReader:
        """A reader for a nested object."""
        return FieldReader(data, self.problems, self._at(name))

    def finish(self) -> None:
        """Adds a problem for each unknown field."""
        for name in self._data:
            if name not in self._known:
                self.problem(name, f"there is no such field.{near(name, self._known)}", "unknown_field")

    def _get(self, name: str) -> Any:
        if name not in self._known:
            self._known.append(name)
        return self._data.get(name)

    def _at(self, name: str) -> str:
        return f"{self._path}.{name}" if self._path else name


def near(name: str, names: Sequence[str]) -> str:
    """A sentence with the nearest names, or with all."""
    close = difflib.get_close_matches(name, names, n=3)
    if close:
        return f" Did you mean {' or '.join(close)}?"
    return f" There are: {', '.join(sorted(names)[:20])}." if names else " There are none."


def short(value: Any) -> str:
    """A value for a message."""
    if value is None:
        return "empty"
    if isinstance(value, Mapping):
        return "an object"
    if isinstance(value, list | tuple):
        return "a list"
    text = str(value).lower() if isinstance(value, bool) else str(value)
    return text if len(text) <= 60 else f"{text[:59]}…"


def _quotes(value: Any) -> str:
    return " Put it into quotes." if isinstance(value, bool | int | float) else ""


DIALECTS = ("anthropic", "responses", "completions")
_LONGEST = 2_000
_SECRET = re.compile(r"\$\{[A-Za-z_][A-Za-z0-9_]{0,99}\}")
_HIDDEN = "***"
_WRITTEN_OUT = (
    "it must be the name of a secret, as ${NAME} alone: whoever reads the catalog would read a key written out. "
    "Set LONGTHREAD_SECRET_NAME in the environment or in .env where the gateway runs. "
    "Without api_key, the client's own credentials go up."
)


def read_upstream(fields: FieldReader) -> Body:
    base_url = (fields.text("base_url", required=True, longest=_LONGEST) or "").strip()
    if base_url and (problem := _url_problem(base_url)):
        fields.problem("base_url", problem)
    api_key = fields.text("api_key", longest=_LONGEST)
    if api_key is not None and not _SECRET.fullmatch(api_key):
        fields.problem("api_key", _WRITTEN_OUT)
    dialects = fields.texts("dialects")
    if not dialects and not fields.has("dialects"):
        fields.problem("dialects", f"it is missing. Give a list of those that it speaks: {', '.join(DIALECTS)}.")
    elif not dialects and fields.items("dialects") == []:
        fields.problem("dialects", f"it is empty. Give those that it speaks: {', '.join(DIALECTS)}.")
    for place, dialect in enumerate(dialects):
        if dialect not in DIALECTS:
            fields.problem(f"dialects[{place}]", f"there is no dialect {short(dialect)}.{near(dialect, DIALECTS)}")
    return {
        "description": fields.text("description"),
        "base_url": base_url,
        "dialects": dialects,
        "api_key": api_key,
        "holds_state": fields.flag("holds_state", default=False),
        "is_active": fields.flag("is_active", default=True),
    }


def read_route(fields: FieldReader) -> Body:
    return {
        "description": fields.text("description"),
        "models": _name(fields, "models", required=True),
        "upstream": fields.text("upstream", required=True) or "",
        "model": _name(fields, "model", required=False),
        "is_active": fields.flag("is_active", default=True),
    }


def without_key(body: Mapping[str, Any]) -> dict[str, Any]:
    """Returns an upstream's body without a key that another program has written out."""
    key = body.get("api_key")
    return {**body, "api_key": key if key is None or _SECRET.fullmatch(str(key)) else _HIDDEN}


def _name(fields: FieldReader, name: str, *, required: bool) -> str | None:
    """A model's name, or a pattern of them."""
    found = fields.text(name, required=required, longest=500)
    if found is not None:
        fields.expect_line(name, found)
    return found if found is not None or not required else ""


def _url_problem(text: str) -> str:
    """What is wrong with an address of a provider; empty: nothing."""
    form = "Give an address such as https://api.example.com, or https://api.example.com/v1."
    if "${" in text:
        return f"a secret's name stands in api_key alone. {form}"
    try:
        url = urlsplit(text)
        port = url.port
    except ValueError as error:
        return f"it is no URL: {error}. {form}"
    if url.username is not None or url.password is not None:
        return f"it holds a user name or a password. Take it out; a key is given as api_key. {form}"
    if url.scheme not in ("http", "https") or not url.hostname or port == 0 or not _is_plain(text):
        return f"it must be a URL that begins with http:// or https://, and is {short(text)}. {form}"
    if url.query or url.fragment or text.endswith(("?", "#")):
        return f"paths are put behind it, so it must end before ? and #. {form}"
    return ""


def _is_plain(text: str) -> bool:
    return text.isprintable() and " " not in text
