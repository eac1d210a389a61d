"""What a request says beside its conversation. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from hashlib import blake2b

from longthread.gateway.dialects.dialect import Dialect, RequestFields
from longthread.gateway.raw_json import Value, members, without_credentials

_WITH_TOOLS = frozenset({"tools", "mcp_servers"})
"""Fields that may hold the credentials of servers."""
_CREDENTIALS = frozenset({"api_key", "apikey", "authorization", "access_token", "headers", "extra_headers"})
"""Fields in which proxies take the client's own."""


@dataclass(frozen=True)
class Frame:
    """The system prompt, tools and parameters of a request.

    Attributes:
        fields: those of the request, a repeated one as its last. Their places are of bytes in the body; behind the list
            they count from the body's end, and are negative. The list itself is empty here.
        texts: what the log has of them: their JSON texts without the credentials of servers. Instead of the list there
            are the instructions that it begins with.
        tools: a hash of the names of the tools; 0 without any.
    """

    fields: RequestFields
    texts: Mapping[str, str]
    tools: int

    @classmethod
    def read(cls, dialect: Dialect, head: bytes, rest: bytes) -> Frame:
        """Read what stands before a list and what stands behind its last item; or, with an empty `head`, a whole body.

        Raises:
            ValueError: it is no request of this dialect, or has more than one list.
        """
        body = head + b"[" + rest if head else rest
        text = body.decode("utf-8")
        found = dict(members(text))
        fields = {name: _in_bytes(value, text, len(body), len(head)) for name, value in found.items()}
        if head and fields[dialect.items].start != len(head):
            raise ValueError(f"It has more than one list of {dialect.items}.")
        texts = {name: text[value.start : value.end] for name, value in found.items() if name != dialect.items}
        for name in texts:
            if name in _WITH_TOOLS:
                texts[name] = without_credentials(texts[name])
            elif name.lower() in _CREDENTIALS:
                texts[name] = '"***"'
        return cls(fields, texts, _hash_of(dialect.tool_names(fields)))

    def with_instructions(self, dialect: Dialect, texts: list[str]) -> Frame:
        return Frame(self.fields, {**self.texts, dialect.items: f"[{','.join(texts)}]"}, self.tools)

    @cached_property
    def id(self) -> str:
        digest = blake2b(digest_size=8)
        for name, raw in sorted(self.texts.items()):
            digest.update(f"{len(name)} {len(raw)} {name}{raw}".encode("utf-8", "surrogatepass"))
        return digest.hexdigest()


def _in_bytes(found: Value, text: str, size: int, head: int) -> Value:
    """Return a value with its places in bytes, from the end of `size` bytes if they are behind the `head`."""
    start, end = found.start, found.end
    if not text.isascii():
        start, end = len(text[:start].encode()), len(text[:end].encode())
    return Value(found.value, start - size * (start > head > 0), end - size * (end > head > 0))


def _hash_of(names: Iterable[str]) -> int:
    found = sorted(names)
    listed = "\n".join(found).encode("utf-8", "surrogatepass")
    return int.from_bytes(blake2b(listed, digest_size=7).digest(), "big") if found else 0
