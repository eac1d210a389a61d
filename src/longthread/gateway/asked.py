"""A request as the gateway reads it. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from hashlib import blake2b
from typing import Any

from longthread.gateway.dialects.dialect import Dialect
from longthread.gateway.parts import Anchored, Part, anchored, nodes, root_of
from longthread.gateway.raw_json import Value, members


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
    frame_count: int = 0
    """How many messages before `items` are instructions."""

    @classmethod
    def read(cls, dialect: Dialect, user: str, body: bytes) -> Asked:
        """Read a request's body. Raises ValueError: it is no request of this dialect."""
        text = body.decode("utf-8")
        try:
            fields = dict(members(text, lists=frozenset({dialect.items})))
            every = dialect.items_of(fields)
            items = every[dialect.frame_items(every) :]
            parts = dialect.parts(items)
        except RecursionError as error:
            raise ValueError("It is nested too deeply.") from error
        root = root_of(user, dialect.name)
        return cls(dialect, user, text, fields, items, parts, body, root, len(every) - len(items))

    def value(self, name: str) -> Any:
        found = self.fields.get(name)
        return found.value if found else None

    def with_text(self, text: str) -> Asked:
        """Return the request with another text."""
        return Asked.read(self.dialect, self.user, text.encode())

    @property
    def model(self) -> str:
        return str(self.value("model") or "")

    @property
    def streams(self) -> bool:
        return self.value("stream") is True

    @cached_property
    def visible(self) -> list[Part]:
        return [part for part in self.parts if part.visible is not None]

    @cached_property
    def hidden(self) -> list[Anchored]:
        return anchored(self.parts)

    @cached_property
    def _tree(self) -> tuple[list[int], bytes]:
        return nodes(self.root, self.visible)

    @property
    def nodes(self) -> list[int]:
        return self._tree[0]

    @property
    def end(self) -> bytes:
        """The root of what follows."""
        return self._tree[1]

    @cached_property
    def frame(self) -> dict[str, str]:
        """What the request says beside its messages, as JSON texts."""
        return self.dialect.frame(self.fields, self.text)

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
