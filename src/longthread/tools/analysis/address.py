"""A source's address: its URL, and without its secrets for display, for storage and for comparison."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, quote, quote_plus, unquote

from longthread.errors import InvalidInput
from longthread.plugins import plugins
from longthread.tools.analysis.dialects.dialect import find_scheme, is_file

_LOGIN = r"(?:(?P<username>[^:/]*)(?::(?P<password>[^@]*))?@)?"
_HOST = r"(?:\[(?P<address>[^/?]+)\]|(?P<name>[^/:?]+))?(?::(?P<port>[^/?]*))?"
_URL = re.compile(rf"(?P<driver>[\w+]+)://{_LOGIN}{_HOST}(?:/(?P<database>[^?]*))?(?:\?(?P<query>.*))?")
_DRIVER = re.compile(r"(?P<scheme>\w+)(?:\+\w+)?://")
_UNQUOTED = " +"
"""Characters of a name or password that are not percent-encoded."""
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+_.-]*(?=://)")
_PATH = re.compile(r"[/\\~.]|[A-Za-z]:[/\\]")
_SECRET_NAME = r"pass(?:word|wd|phrase)?|pwd|token|secret|key|credential"
_SECRET = re.compile(_SECRET_NAME, re.I)
_ASSIGNED = re.compile(
    rf"""([\w.%-]*(?:{_SECRET_NAME})[\w.-]*\s*(?:=|%3D)\s*)('(?:[^'\\]|\\.)*'?|"(?:[^"\\]|\\.)*"?|[^\s&;]+)""", re.I
)
_CREDENTIALS = re.compile(r":\S*@", re.S)
"""From the first colon to the last @: a password may hold both."""
_SHOWN_OPTIONS = frozenset({"host", "port", "dbname", "sslmode"})
_BARE = re.compile(r"[^/\\\\.:]{1,100}")
DEMO = "demo"
"""The name of the demo database."""


@dataclass(frozen=True, slots=True)
class SourceUrl:
    """The decoded parts of a URL. `driver` is the scheme, such as `postgresql` or `postgresql+psycopg`."""

    driver: str
    username: str | None = None
    password: str | None = None
    host: str | None = None
    port: int | None = None
    database: str | None = None
    query: dict[str, tuple[str, ...]] = field(default_factory=dict)

    @classmethod
    def parse(cls, text: str) -> SourceUrl:
        """Raises ValueError, whose message does not have the URL."""
        found = _URL.match(text)
        if found is None:
            raise ValueError("it is no URL")
        query: dict[str, tuple[str, ...]] = {}
        for name, value in parse_qsl(found["query"] or ""):
            query[name] = (*query.get(name, ()), value)
        if found["port"] is not None and not found["port"].isdecimal():
            raise ValueError("its port is no number")
        return cls(
            found["driver"],
            _decode_part(found["username"]),
            _decode_part(found["password"]),
            found["name"] or found["address"],
            int(found["port"]) if found["port"] is not None else None,
            _decode_part(found["database"]),
            query,
        )

    @property
    def kind(self) -> str:
        """The driver's name up to a plus sign."""
        return self.driver.partition("+")[0]

    def text(self, *, password: bool = True) -> str:
        """The URL as text, with its password or `***`."""
        login = "" if self.username is None else quote(self.username, safe=_UNQUOTED)
        if self.username is not None and self.password is not None:
            login += ":" + (quote(self.password, safe=_UNQUOTED) if password else "***")
        host = f"[{self.host}]" if self.host and ":" in self.host else self.host or ""
        port = "" if self.port is None else f":{self.port}"
        place = "" if self.database is None else "/" + quote(self.database, safe=f"{_UNQUOTED}/")
        pairs = [f"{quote_plus(name)}={quote_plus(one)}" for name in sorted(self.query) for one in self.query[name]]
        options = "?" + "&".join(pairs) if pairs else ""
        return f"{self.driver}://{login}{'@' if self.username is not None else ''}{host}{port}{place}{options}"


def _decode_part(part: str | None) -> str | None:
    return None if part is None else unquote(part)


def is_url(spec: str) -> bool:
    """Whether `spec` is a URL rather than a path."""
    return _SCHEME.match(spec) is not None


def parse_url(spec: str) -> SourceUrl:
    """Parses a URL. Raises InvalidInput, whose message has no secret."""
    url = _try_parse_url(spec)
    if url is None:
        raise InvalidInput(
            reason=f"The URL {redact_spec(spec)} cannot be understood. Percent-encode special characters."
        )
    return url


def is_bare(spec: str) -> bool:
    """Whether a text is a name: no path and no URL."""
    return _BARE.fullmatch(spec) is not None


def is_offered(spec: str, folder: Path = Path()) -> bool:
    """Whether a spec means a source that a plugin offers: `demo` in any case, another name where `folder` has no file
    of that name."""
    if spec == DEMO or not is_bare(spec):
        return spec == DEMO
    is_path = os.path.exists(folder / spec)  # noqa: PTH110 - `Path.exists` raises an error for a name that is too long
    return not is_path and plugins().find("sources", spec) is not None


def redact_spec(spec: str) -> str:
    """`spec` without password and without all but harmless options. Of a URL that cannot be parsed only the scheme is
    left: the password could be anywhere."""
    if not is_url(spec):
        return _ASSIGNED.sub(r"\1***", spec if _PATH.match(spec) else _CREDENTIALS.sub(":***@", spec))
    url = _try_parse_url(spec)
    if url is None:
        return f"{_SCHEME.match(spec)[0]}://…"  # type: ignore[index] # is_url says that it matches
    options = {name: value for name, value in _harmless(url.query).items() if name in _SHOWN_OPTIONS}
    return _ASSIGNED.sub(r"\1***", replace(url, query=options).text(password=False))


def normalize_spec(spec: str) -> str:
    """`spec` as a thread stores it: with an absolute path, and without the password of a URL, which PGPASSWORD or a
    password file may give."""
    if not is_url(spec):
        return spec if is_offered(spec) else str(Path(spec).expanduser().absolute())
    url = _try_parse_url(spec)
    if url is None:
        return redact_spec(spec)
    text = absolute(replace(url, password=None, query=_harmless(url.query))).text()
    return text if is_file(url.kind) else _ASSIGNED.sub(r"\1***", text)


def same_source(a: str, b: str) -> bool:
    """Whether two specs name the same source, with whatever password."""
    return _comparable(a) == _comparable(b)


def absolute(url: SourceUrl) -> SourceUrl:
    """Makes the path in the URL of a database file absolute."""
    if not is_file(url.kind) or not url.database or url.database == ":memory:":
        return url
    return replace(url, database=str(Path(url.database).expanduser().absolute()))


def secrets_of(url: SourceUrl) -> list[str]:
    """The secrets in a URL, longest first."""
    found = [url.password] if url.password else []
    for name, values in url.query.items():
        if _SECRET.search(name):
            found += values
    return sorted((secret for secret in found if secret), key=len, reverse=True)


def scrub_message(message: Any, secrets: list[str]) -> str:
    """Removes secrets from a driver's message."""
    text = str(message)
    for secret in secrets:
        text = text.replace(secret, "***")
    return text


def _try_parse_url(spec: str) -> SourceUrl | None:
    """The URL; None where it cannot be parsed, or where a part of the password was taken for something else (an @ is
    left over). No cause is ever chained: its text would carry the password."""
    try:
        url = SourceUrl.parse(spec)
    except ValueError:
        return None
    server = not is_file(url.kind)
    misread = "@" in (url.host or "") or (server and "@" in (url.database or "")) or ":" in (url.username or "")
    return None if misread else url


def _harmless(query: Mapping[str, tuple[str, ...]]) -> dict[str, tuple[str, ...]]:
    return {
        name: values
        for name, values in query.items()
        if not _SECRET.search(name) and not any("@" in one or _ASSIGNED.search(one) for one in values)
    }


def _comparable(spec: str) -> str:
    text = normalize_spec(spec.strip())
    driver = _DRIVER.match(text)
    dialect = find_scheme(driver["scheme"]) if driver is not None else None
    if driver is None or dialect is None or dialect.is_file:
        return text
    return f"{dialect.name}://{text[driver.end() :]}"
