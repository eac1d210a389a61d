"""The template of a request, with places for arguments and secrets."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote, urlencode

import httpx

from longthread.errors import ArgumentsInvalid, ToolInvalid
from longthread.tools.api.address import Hosts, port_of
from longthread.tools.arguments import Placeholder, TemplateParts, is_scalar, parts_of, types_of
from longthread.tools.secrets import Secrets, secret_names
from longthread.tools.tool import ImplementationFields

METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS")
IDEMPOTENT = frozenset({"GET", "HEAD", "PUT", "DELETE", "OPTIONS"})
"""Methods that may be repeated."""
FIELDS = (
    "endpoint", "method", "headers", "body_template", "body_format", "secrets", "hosts", "allow_private", "retry_safe",
    "timeout_seconds", "max_bytes",
)  # fmt: skip
_ENDPOINT = re.compile(r"(https?://[^/?#\s]+)([^?#]*)(?:\?([^#]*))?", re.I)
_HEADER = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_OURS = frozenset(
    {"host", "content-length", "transfer-encoding", "connection", "te", "trailer", "upgrade", "expect", "keep-alive",
     "accept-encoding", "proxy-authorization", "proxy-connection"}
)  # fmt: skip
"""Headers that the request implies."""
_SECRET = "${"


@dataclass(frozen=True)
class FilledRequest:
    """A request with arguments and secrets. `confidential` headers are for its own host only."""

    method: str
    url: httpx.URL
    headers: Mapping[str, str]
    content: bytes | None
    confidential: frozenset[str]
    secret_content: bool


class RequestTemplate:
    """The request of an implementation of type `api`. Raises ToolInvalid."""

    def __init__(
        self, fields: ImplementationFields, implementation: Mapping[str, Any], properties: Mapping[str, Any]
    ) -> None:
        self._properties = properties
        endpoint = fields.text("endpoint", "an http:// or https:// URL")
        found = _ENDPOINT.fullmatch(endpoint.strip())
        if found is None:
            raise _invalid("endpoint", "is not an http:// or https:// URL without a fragment (#…).")
        self.base = _base(found[1])
        self._path = self._parts("endpoint", found[2] or "/")
        self._query = tuple(self._pair(pair) for pair in (found[3] or "").split("&") if pair)
        body = implementation.get("body_template")
        self.method = fields.text("method", "GET, POST, …", default="GET" if body is None else "POST").upper()
        if self.method not in METHODS:
            raise _invalid("method", f"is none of {', '.join(METHODS)}.")
        self._headers = {name: self._header(name, text) for name, text in fields.texts_by_name("headers").items()}
        self._form = fields.text("body_format", "json or form", default="json")
        self._body = self._body_of(body)
        self.secrets = secret_names(implementation, self._texts())
        self.hosts = Hosts(self.base, fields.texts("hosts"))

    def fill(self, arguments: Mapping[str, Any], secrets: Secrets) -> FilledRequest:
        """Fills in a call. Raises ArgumentsInvalid, SecretUnusable."""
        path = "".join(_in_path(part, arguments, secrets) for part in self._path)
        pairs = [pair for one in self._query if (pair := _in_query(one, arguments, secrets)) is not None]
        target = f"{path}?{'&'.join(pairs)}" if pairs else path
        written = {name: _in_header(name, parts, arguments, secrets) for name, parts in self._headers.items()}
        headers = {name: value for name, value in written.items() if value is not None}
        content = None
        if self._body is not None:
            body = _in_body(self._body, arguments, secrets)
            content = _form(body) if self._form == "form" else json.dumps(body, ensure_ascii=False).encode()
        return FilledRequest(
            method=self.method,
            url=self.base.copy_with(raw_path=(target if target.startswith("/") else f"/{target}").encode("ascii")),
            headers=self._defaults() | headers,
            content=content,
            confidential=frozenset(
                name.lower()
                for name, parts in self._headers.items()
                if any(_SECRET in part for part in parts if isinstance(part, str))
            )
            | {"authorization", "cookie"},
            secret_content=any(_SECRET in text for text in _leaves(self._body)),
        )

    def _defaults(self) -> dict[str, str]:
        given = {name.lower() for name in self._headers}
        usual = {"Accept": "application/json, text/*;q=0.9, */*;q=0.1", "User-Agent": "longthread"}
        if self._body is not None:
            usual["Content-Type"] = "application/json" if self._form == "json" else "application/x-www-form-urlencoded"
        return {name: value for name, value in usual.items() if name.lower() not in given}

    def _parts(self, field: str, text: str) -> TemplateParts:
        """Parses a text whose places take one value each."""
        parts = parts_of(text, self._properties)
        for part in parts:
            if isinstance(part, Placeholder) and not is_scalar(types_of(self._properties[part.name])):
                kinds = "string, integer, number or boolean"
                raise _invalid(field, f"has the place of `{part.name}`, whose type in the schema is not {kinds}.")
        return parts

    def _pair(self, pair: str) -> tuple[TemplateParts, TemplateParts | None]:
        name, equals, value = pair.partition("=")
        return self._parts("endpoint", name), self._parts("endpoint", value) if equals else None

    def _header(self, name: str, text: str) -> TemplateParts:
        if not _HEADER.fullmatch(name):
            raise _invalid("headers", f"has {name[:50]!r}, which is no name of a header.")
        if name.lower() in _OURS:
            raise _invalid("headers", f"has {name}, which follows from the request. Leave it out.")
        if any(ord(one) < 32 or ord(one) > 126 for one in text):
            raise _invalid("headers", f"has {name} with a character that a header cannot have.")
        return self._parts("headers", text)

    def _body_of(self, body: Any) -> Any:
        if body is None:
            return None
        if self.method in ("GET", "HEAD"):
            raise _invalid("body_template", f"cannot be sent by {self.method}. Use POST, or put it into the endpoint.")
        if isinstance(body, str):
            try:
                body = json.loads(body)
            except (ValueError, RecursionError) as error:
                raise _invalid("body_template", f"is not JSON: {error}. Write places within quotes.") from error
        flat = isinstance(body, Mapping) and not any(isinstance(one, Mapping | list) for one in body.values())
        if self._form not in ("json", "form") or (self._form == "form" and not flat):
            raise _invalid("body_format", "is json, or form for a `body_template` that is an object of plain values.")
        return self._compile_value(body)

    def _compile_value(self, value: Any) -> Any:
        if isinstance(value, str):
            parts = parts_of(value, self._properties)
            return (
                parts if len(parts) == 1 and isinstance(parts[0], Placeholder) else self._parts("body_template", value)
            )
        if isinstance(value, Mapping):
            if any("{{" in str(key) or _SECRET in str(key) for key in value):
                raise _invalid("body_template", "has a place in the name of a field. Only values may be places.")
            return {str(key): self._compile_value(one) for key, one in value.items()}
        return [self._compile_value(one) for one in value] if isinstance(value, list) else value

    def _texts(self) -> Iterator[str]:
        """All texts that may have a secret."""
        for parts in (self._path, *(part for pair in self._query for part in pair if part), *self._headers.values()):
            yield from (part for part in parts if isinstance(part, str))
        yield from _leaves(self._body)


def _base(text: str) -> httpx.URL:
    """Scheme, host and port, without places."""
    if "{{" in text or _SECRET in text:
        raise _invalid("endpoint", "has a place in its host. Hosts cannot be arguments: write the host.")
    try:
        url = httpx.URL(text)
        port_of(url)
    except (httpx.InvalidURL, ValueError) as error:
        raise _invalid("endpoint", "is not a URL.") from error
    if url.userinfo:
        raise _invalid("endpoint", "holds a user or a password. Put them into `headers`, as ${NAME} of a secret.")
    if not url.host:
        raise _invalid("endpoint", "has no host.")
    return url


def _in_path(part: str | Placeholder, arguments: Mapping[str, Any], secrets: Secrets) -> str:
    if isinstance(part, str):
        return _SPACES.sub(_quote_match, secrets.filled_in_url(part))
    text = _text(arguments.get(part.name))
    if not text:
        raise ArgumentsInvalid(tool="the request", problem=f"`{part.name}` is part of a path, and must not be empty.")
    if {".", ".."} & set(re.split(r"[/\\]", text)):
        raise ArgumentsInvalid(tool="the request", problem=f"`{part.name}` is part of a path, and must not hold `..`.")
    return quote(text, safe="")


def _in_query(
    pair: tuple[TemplateParts, TemplateParts | None], arguments: Mapping[str, Any], secrets: Secrets
) -> str | None:
    """One `name=value`; None if its argument is missing."""
    name, value = pair
    written = []
    for parts in (name, value or ()):
        if any(isinstance(part, Placeholder) and arguments.get(part.name) is None for part in parts):
            return None
        written.append(
            "".join(
                quote(_text(arguments[part.name]), safe="")
                if isinstance(part, Placeholder)
                else _SPACES.sub(_quote_match, secrets.filled_in_url(part))
                for part in parts
            )
        )
    return written[0] if value is None else "=".join(written)


def _in_header(name: str, parts: TemplateParts, arguments: Mapping[str, Any], secrets: Secrets) -> str | None:
    """The value of a header; None if its argument is missing."""
    written = ""
    for part in parts:
        if isinstance(part, str):
            written += secrets.fill(part)
            continue
        value = arguments.get(part.name)
        if value is None:
            return None
        text = _text(value)
        if any(ord(one) < 32 or ord(one) > 126 for one in text):
            problem = f"`{part.name}` goes into the header {name}, which takes ASCII without line breaks."
            raise ArgumentsInvalid(tool="the request", problem=problem)
        written += text
    return written.strip()


_MISSING = object()


def _in_body(value: Any, arguments: Mapping[str, Any], secrets: Secrets) -> Any:
    """The body with typed values, without fields whose argument is missing."""
    if isinstance(value, tuple):
        if len(value) == 1 and isinstance(value[0], Placeholder):
            given = arguments.get(value[0].name)
            return _MISSING if given is None else given
        return "".join(
            secrets.fill(part) if isinstance(part, str) else _text(arguments.get(part.name)) for part in value
        )
    if isinstance(value, Mapping):
        made = {key: _in_body(one, arguments, secrets) for key, one in value.items()}
        return {key: one for key, one in made.items() if one is not _MISSING}
    if isinstance(value, list):
        return [None if one is _MISSING else one for one in (_in_body(each, arguments, secrets) for each in value)]
    return value


def _form(body: Mapping[str, Any]) -> bytes:
    return urlencode({key: _text(value) for key, value in body.items()}).encode()


def _leaves(body: Any) -> Iterator[str]:
    """The texts of a parsed body."""
    if isinstance(body, tuple):
        yield from (part for part in body if isinstance(part, str))
    elif isinstance(body, Mapping):
        for one in body.values():
            yield from _leaves(one)
    elif isinstance(body, list):
        for one in body:
            yield from _leaves(one)


_SPACES = re.compile(r"[^!-~]+|[\"<>\\^`{|}]")
"""Characters that a URL must encode, such as spaces and Chinese."""


def _quote_match(found: re.Match[str]) -> str:
    return quote(found[0], safe="")


def _text(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _invalid(field: str, problem: str) -> ToolInvalid:
    return ToolInvalid(problem=f"`{field}` {problem}")
