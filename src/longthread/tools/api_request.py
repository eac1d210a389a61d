"""The template of a request, with places for arguments and secrets, and the addresses that it may go to."""

from __future__ import annotations

import asyncio
import json
import re
import socket
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network
from typing import Any
from urllib.parse import quote, urlencode

import httpx

from longthread.errors import ApiFailed, ApiRefused, ArgumentsInvalid, ToolInvalid
from longthread.tools.arguments import Placeholder, TemplateParts, is_scalar, parts_of, types_of
from longthread.tools.secrets import Secrets, secret_names
from longthread.tools.tool import ImplementationFields

Resolve = Callable[[str, int], Awaitable[Sequence[str]]]
"""Resolves a host and port to addresses. Raises OSError."""
IpAddress = IPv4Address | IPv6Address

_NEVER = tuple(
    map(
        ip_network,
        (
            "0.0.0.0/8",  # this host, by its old spelling
            "169.254.0.0/16",  # link-local, with the metadata of most clouds
            "168.63.129.16/32",  # Azure's
            "100.100.100.200/32",  # Alibaba's
            "192.0.0.0/24",  # Oracle's, and protocols of the network itself
            "fd00:ec2::/32",  # Amazon's
            "fe80::/10",
            "fec0::/10",
            "192.88.99.0/24",  # 6to4 relays
            "2002::/16",  # 6to4, Teredo, NAT64: another address stands within
            "2001::/32",
            "64:ff9b::/96",
            "64:ff9b:1::/48",
            "::/96",
            "224.0.0.0/4",
            "ff00::/8",
            "240.0.0.0/4",
        ),
    )
)
_PRIVATE = tuple(
    map(ip_network, ("10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "100.64.0.0/10", "127.0.0.0/8", "fc00::/7"))
)
_GLOBAL6 = ip_network("2000::/3")
_LOOPBACK6 = IPv6Address("::1")
_DOCUMENTATION6 = (ip_network("2001:db8::/32"), ip_network("3fff::/20"))


def refusal(text: str, *, allow_private: bool = False) -> str | None:
    """The reason why no request may go to an address, or None. Link-local, metadata, multicast and tunnel addresses are
    always refused; private and loopback ones without `allow_private`."""
    address = _plain(ip_address(text))
    if any(address in network for network in _NEVER) and address != _LOOPBACK6:
        return "is one that no tool may reach (link-local, metadata, multicast or a tunnel)"
    if address == _LOOPBACK6 or any(address in network for network in _PRIVATE):
        return None if allow_private else "is private, or this machine's own. `allow_private: true` allows it"
    if isinstance(address, IPv4Address):
        reachable = address.is_global
    else:
        reachable = address.is_global and address in _GLOBAL6
        reachable &= not any(address in network for network in _DOCUMENTATION6)
    return None if reachable else "is no public address"


async def addresses_of(host: str, port: int, resolve: Resolve, *, allow_private: bool) -> list[str]:
    """Resolves a host once. One refused address refuses them all: no honest name has public and private addresses.
    Raises ApiRefused, ApiFailed."""
    try:
        found = list(dict.fromkeys(await resolve(host, port)))
    except (OSError, UnicodeError) as error:
        raise ApiFailed(reason=f"the host {host[:100]} has no address.") from error
    if not found:
        raise ApiFailed(reason=f"the host {host[:100]} has no address.")
    for address in found:
        reason = refusal(address, allow_private=allow_private)
        if reason:
            raise ApiRefused(reason=f"the address {address} of {host[:100]} {reason}.")
    return [str(_plain(ip_address(address))) for address in found]


async def by_the_system(host: str, port: int) -> Sequence[str]:
    """The system's resolver."""
    found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return [str(entry[4][0]) for entry in found]


def _plain(address: IpAddress) -> IpAddress:
    """Converts ::ffff:127.0.0.1 to IPv4."""
    mapped = address.ipv4_mapped if isinstance(address, IPv6Address) else None
    return mapped or address


_PORTS = {"http": 80, "https": 443}
_ENTRY = re.compile(r"((?:\*\.)?[\w.-]+|\[[0-9A-Fa-f:.]+\])(?::(\d{1,5}))?")


def port_of(url: httpx.URL) -> int:
    """A URL's port, or its scheme's. Raises ValueError."""
    port = _PORTS.get(url.scheme, 0) if url.port is None else url.port
    if not 0 < port < 65_536:
        raise ValueError(f"no port {port}")
    return port


def host_of(url: httpx.URL) -> str:
    """The host for comparison: ASCII, lower case, without a final dot."""
    return url.raw_host.decode("ascii").lower().rstrip(".")


class Hosts:
    """An allow-list of hosts (on ports 80 and 443), `*.domain`, or either with a port. Raises ToolInvalid."""

    def __init__(self, endpoint: httpx.URL, more: Iterable[str] = ()) -> None:
        own = (host_of(endpoint), port_of(endpoint))
        self._exact = {own} | ({(own[0], 443)} if own[1] == 80 else set())
        self._below: set[tuple[str, int]] = set()
        for entry in more:
            found = _ENTRY.fullmatch(entry.strip())
            if found is None or not 0 < int(found[2] or 80) < 65_536:
                raise ToolInvalid(problem=f"`hosts` has {entry[:100]!r}, which is no host such as api.example.com.")
            try:
                host = host_of(httpx.URL(f"http://{found[1].removeprefix('*.')}"))
            except httpx.InvalidURL as error:
                raise ToolInvalid(problem=f"`hosts` has {entry[:100]!r}, which is no host.") from error
            where = self._below if found[1].startswith("*.") else self._exact
            where.update((host, int(port)) for port in ((found[2],) if found[2] else ("80", "443")))

    def check(self, url: httpx.URL) -> None:
        """Raises ApiRefused for any other URL."""
        if url.scheme not in _PORTS:
            raise ApiRefused(reason=f"{url.scheme[:20] or 'nothing'}:// is not asked, only http:// and https://.")
        if url.userinfo:
            raise ApiRefused(reason="a URL with a user or a password in it is not asked.")
        host, port = host_of(url), port_of(url)
        below = any(port == one and host.endswith(f".{domain}") for domain, one in self._below)
        if not host or not (below or (host, port) in self._exact):
            reason = f"the host {host[:100]} (port {port}) is not one of the tool's. `hosts` can list it."
            raise ApiRefused(reason=reason)


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
