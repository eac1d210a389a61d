"""A request as the gateway reads it. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from hashlib import blake2b
from typing import Any

from longthread.gateway.dialects.dialect import Dialect
from longthread.gateway.parts import Anchored, Part, anchored, digests, node_of, root_of, visible_parts
from longthread.gateway.raw_json import Value, elements, members, without_credentials
from longthread.gateway.recent import ReadItems, Recent

_WITH_TOOLS = frozenset({"tools", "mcp_servers"})
"""Fields that may hold the credentials of servers."""


@dataclass(frozen=True)
class Asked:
    """A model's request, with the place of each value in its text.

    Attributes:
        fields: those of the request, a repeated one as its last.
        items: the conversation's messages or items, without the instructions before them.
        parts: theirs, in order; `item` counts in `items`.
    """

    dialect: Dialect
    user: str
    text: str
    fields: Mapping[str, Value]
    items: Sequence[Value]
    parts: Sequence[Part]
    body: bytes = field(repr=False)
    root: bytes = field(repr=False)
    recent: Recent = field(repr=False)
    digests: Sequence[bytes] = field(repr=False)
    """Those of the visible parts: each stands for its part and all before it."""
    nodes: Sequence[int] = field(repr=False)
    """The digests as they are looked up."""
    frame_count: int = 0
    """How many messages before `items` are instructions."""

    @classmethod
    def read(cls, dialect: Dialect, user: str, body: bytes, recent: Recent | None = None) -> Asked:
        """Read a request's body. Raises ValueError: it is no request of this dialect."""
        return cls._read(dialect, user, body.decode("utf-8"), body, recent or Recent(0))

    @classmethod
    def _read(cls, dialect: Dialect, user: str, text: str, body: bytes, recent: Recent) -> Asked:
        root = root_of(user, dialect.name)
        known: dict[int, ReadItems | None] = {}

        def read_list(text: str, at: int) -> Value:
            found = known[at] = recent.find(root, text, at)
            return elements(text, at, found.items_at(at) if found else ())

        try:
            fields = dict(members(text, lists=frozenset({dialect.items}), read_list=read_list))
            every = dialect.items_of(fields)
            start = fields[dialect.items].start if every else 0
            read = _parts(dialect, root, text[start : every[-1].end] if every else "", start, every, known.get(start))
        except (RecursionError, TypeError, AttributeError) as error:
            raise ValueError("It is nested too deeply, or has values of other types.") from error
        recent.put(read)
        items, count = every[read.frame_count :], read.frame_count
        return cls(dialect, user, text, fields, items, read.parts, body, root, recent, read.digests, read.nodes, count)

    def value(self, name: str) -> Any:
        found = self.fields.get(name)
        return found.value if found else None

    def with_text(self, text: str) -> Asked:
        """Return the request with another text."""
        return Asked._read(self.dialect, self.user, text, text.encode(), self.recent)

    @property
    def model(self) -> str:
        return str(self.value("model") or "")

    @property
    def streams(self) -> bool:
        return self.value("stream") is True

    @cached_property
    def visible(self) -> list[Part]:
        return visible_parts(self.parts)

    @cached_property
    def hidden(self) -> list[Anchored]:
        return anchored(self.parts)

    @property
    def end(self) -> bytes:
        """The root of what follows."""
        return self.digests[-1] if self.digests else self.root

    @cached_property
    def frame(self) -> dict[str, str]:
        """What the request says beside its messages, as JSON texts."""
        frame = self.dialect.frame(self.fields, self.text)
        return {name: without_credentials(raw) if name in _WITH_TOOLS else raw for name, raw in frame.items()}

    @cached_property
    def tools(self) -> int:
        """A hash of the names of its tools; 0 without any."""
        names = sorted(self.dialect.tool_names(self.fields))
        listed = "\n".join(names).encode("utf-8", "surrogatepass")
        return int.from_bytes(blake2b(listed, digest_size=7).digest(), "big") if names else 0

    def blocks(self, item: int) -> list[str]:
        """Return the JSON texts of a message's blocks."""
        found = self.items[item]
        return self.dialect.blocks(self.text[found.start : found.end])


def _parts(
    dialect: Dialect, root: bytes, text: str, start: int, every: Sequence[Value], known: ReadItems | None
) -> ReadItems:
    """Read the parts of a list's items that are not known. `text` is the list's, from its `start` to the last item."""
    count = dialect.frame_items(every)
    if known is None or known.frame_count != count:
        known = ReadItems(root, "", start, (), count, (), (), ())
    old = len(known.items)
    begin = max(old, count)
    new = [part._replace(item=part.item + begin - count) for part in dialect.parts(every[begin:])]
    made = digests(known.digests[-1] if known.digests else root, visible_parts(new))
    nodes = [*known.nodes, *map(node_of, made)]
    return ReadItems(root, text, start, every, count, [*known.parts, *new], [*known.digests, *made], nodes)
