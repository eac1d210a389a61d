"""The URL of a source: `driver://user:password@host:port/database?option=value`."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from urllib.parse import parse_qsl, quote, quote_plus, unquote

_LOGIN = r"(?:(?P<username>[^:/]*)(?::(?P<password>[^@]*))?@)?"
_HOST = r"(?:\[(?P<address>[^/?]+)\]|(?P<name>[^/:?]+))?(?::(?P<port>[^/?]*))?"
_URL = re.compile(rf"(?P<driver>[\w+]+)://{_LOGIN}{_HOST}(?:/(?P<database>[^?]*))?(?:\?(?P<query>.*))?")
_UNQUOTED = " +"
"""Characters of a name or password that are not percent-encoded."""


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
            _decoded(found["username"]),
            _decoded(found["password"]),
            found["name"] or found["address"],
            int(found["port"]) if found["port"] is not None else None,
            _decoded(found["database"]),
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


def _decoded(part: str | None) -> str | None:
    return None if part is None else unquote(part)
