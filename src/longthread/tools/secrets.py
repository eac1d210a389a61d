"""Secrets of tools: put in place of `${NAME}` in a definition, and removed from results."""

from __future__ import annotations

import base64
import html
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any
from urllib.parse import quote

from longthread.environment import tool_secrets
from longthread.errors import SecretUnusable, ToolInvalid

REMOVED = "***"
"""Stands in place of a secret."""
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,99}")
_PLACE = re.compile(r"\$\{([^{}]*)\}")
_SHORTEST = 4
"""Characters of a secret: a shorter one could be ordinary text."""


class Secrets:
    """The secrets of one tool, by name. Only `fill` reveals them."""

    def __init__(self, values: Mapping[str, str], names: Iterable[str] = ()) -> None:
        self._values = {name: value.strip() for name, value in values.items()}
        self.names = frozenset(values) | frozenset(names)
        """The names that the tool may use, set or not."""
        usable = sorted((one for one in self._values.values() if len(one) >= _SHORTEST), key=len, reverse=True)
        encoded = {form for value in usable for form in _encode_secret(value)}
        self._beginnings = {*usable, *encoded, *(quote(value, safe="") for value in usable)}
        whole = [*map(_pattern, usable), *map(re.escape, sorted(encoded, key=len, reverse=True))]
        self._pattern = re.compile("|".join(whole)) if whole else None

    def __repr__(self) -> str:
        return f"Secrets({', '.join(sorted(self.names))})"

    def fill(self, text: str) -> str:
        """Replaces each `${NAME}`. Raises SecretUnusable."""
        return _PLACE.sub(lambda place: self._value(place[1]), text)

    def filled_in_url(self, text: str) -> str:
        """Like `fill`, with the values percent-encoded."""
        return _PLACE.sub(lambda place: quote(self._value(place[1]), safe=""), text)

    def _value(self, name: str) -> str:
        value = self._values.get(name) if name in self.names else None
        if not value:
            raise SecretUnusable(name=name, problem="is not set.")
        if len(value) < _SHORTEST:
            raise SecretUnusable(name=name, problem=f"is shorter than {_SHORTEST} characters.")
        if any(ord(character) < 32 or ord(character) == 127 for character in value):
            raise SecretUnusable(name=name, problem="holds a line break or another control character.")
        return value

    def scrub(self, value: Any, *, cut: bool = False) -> Any:
        """Removes the secrets from a JSON value: as they are, and as in URLs, JSON, HTML, Base64 or hexadecimal. Of a
        `cut` text also the beginning of a secret at its end."""
        if self._pattern is None:
            return value
        if isinstance(value, str):
            text = self._pattern.sub(REMOVED, value)
            return self._strip_partial_secret(text) if cut else text
        if isinstance(value, Mapping):
            return {self.scrub(str(key)): self.scrub(one, cut=cut) for key, one in value.items()}
        if isinstance(value, list | tuple):
            return [self.scrub(one, cut=cut) for one in value]
        if isinstance(value, int | float) and not isinstance(value, bool) and self._pattern.search(str(value)):
            return REMOVED
        return value

    def _strip_partial_secret(self, text: str) -> str:
        longest = 0
        for form in self._beginnings:
            most = min(len(form) - 1, len(text))
            longest = max(longest, next((n for n in range(most, 1, -1) if text.endswith(form[:n])), 0))
        return f"{text[: len(text) - longest]}{REMOVED}" if longest else text


def read_secrets(names: Iterable[str]) -> Secrets:
    """Reads LONGTHREAD_SECRET_<NAME> from the environment or `.env`."""
    names = frozenset(names)
    return Secrets({name: value.get_secret_value() for name, value in tool_secrets(names).items()}, names)


def secret_names(implementation: Mapping[str, Any], used: Iterable[str]) -> frozenset[str]:
    """The names of a tool's secrets: its list `secrets`, by default those in its texts `used`. Raises ToolInvalid."""
    found = {name for text in used for name in _PLACE.findall(text)}
    listed = implementation.get("secrets")
    if listed is not None and not (isinstance(listed, list) and all(isinstance(name, str) for name in listed)):
        raise ToolInvalid(problem="`secrets` is not a list of names, such as [API_KEY].")
    for name in sorted(found.union(listed or ())):
        if not _NAME.fullmatch(name):
            raise ToolInvalid(problem=f"${{{name[:50]}}} does not name a secret: letters, digits and _ do.")
    missing = sorted(found.difference(found if listed is None else listed))
    if missing:
        raise ToolInvalid(problem=f"it uses ${{{missing[0]}}}, which is not in its list `secrets`. Add it there.")
    return frozenset(found.union(listed or ()))


def _pattern(secret: str) -> str:
    """A pattern of a secret with any encoding of its characters."""
    return "".join(f"(?:{'|'.join(_list_spellings(character))})" for character in secret)


def _list_spellings(character: str) -> Iterator[str]:
    yield re.escape(character)
    yield "".join(f"%(?:25)*(?i:{byte:02x})" for byte in character.encode())
    if character == " ":
        yield r"\+"
    units = character.encode("utf-16-be")
    codes = [units[place : place + 2].hex() for place in range(0, len(units), 2)]
    yield "".join(rf"\\{{1,4}}u(?i:{code})" for code in codes)
    if character in '"\\/':
        yield rf"\\{{1,7}}{re.escape(character)}"
    if not character.isalnum():
        number = ord(character)
        named = html.escape(character)
        yield rf"&(?:amp;)?#(?:0*{number}|[xX]0*(?i:{number:x}));"
        if named != character:
            yield re.escape(named)


def _encode_secret(secret: str) -> set[str]:
    """A secret in Base64 and hexadecimal, also within a longer text such as user:secret."""
    data = secret.encode()
    forms = {data.hex(), data.hex().upper()}
    for shift in range(3):
        whole = base64.b64encode(b"\0" * shift + data).decode()
        inner = whole[-(-8 * shift // 6) : 8 * (shift + len(data)) // 6]
        forms |= {inner, inner.replace("+", "-").replace("/", "_"), quote(inner, safe="")}
    return forms
