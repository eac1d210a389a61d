"""What the gateway asks of a dialect."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

from longthread.gateway.parts import Part
from longthread.gateway.raw_json import Value
from longthread.model.entry import Role

RequestFields = Mapping[str, Value]
"""The fields of a request, with their places in its text."""


@dataclass(slots=True)
class Edit:
    """Hidden parts to take out of one message and to put into it.

    Attributes:
        drops: places of blocks that go.
        puts: JSON texts of blocks, each with a place. It stands before that place, or, with True, after it.
    """

    drops: set[int] = field(default_factory=set)
    puts: list[tuple[int, bool, str]] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Reply:
    """What a provider answered.

    Attributes:
        raws: the JSON texts of the blocks of each of its messages or items; a part's `item` and `place` count in them.
        id: the provider's id of the response.
        ids: those of its items.
        whole: whether the provider said why the reply ended.
        head: the response without what it says.
    """

    parts: Sequence[Part]
    raws: Sequence[Sequence[str]]
    id: str | None = None
    ids: Sequence[str] = ()
    whole: bool = True
    model: str | None = None
    usage: Mapping[str, Any] = field(default_factory=dict)
    head: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class HiddenRefused:
    """A refusal for hidden parts: the message and the block that failed in the request; None: it does not say. `marks`
    are what the key of the one that failed contains, if the provider names it by its content."""

    item: int | None = None
    place: int | None = None
    marks: Sequence[bytes] = ()


Belonging = Literal["message", "part", "pair"]
"""What a hidden part of a reply belongs to: the whole message; one visible part, with which it goes; or one without
which nothing of the reply may be put in."""


@dataclass(frozen=True, slots=True)
class HiddenMissing:
    """What a provider accepts of a request that lacks hidden parts, and neither the client nor the log has them.

    Attributes:
        note: what is done about it.
        fields: other JSON texts of the request's fields.
        stand_in: gives a message with the vendor's own stand-ins, if there are any.
    """

    note: str
    fields: Mapping[str, str] = field(default_factory=dict)
    stand_in: Callable[[str], str] | None = None


class Dialect(Protocol):
    """One provider's way to write conversations. Pure, and without state."""

    name: str
    items: str
    """The field of a request that holds its messages or items."""
    final: tuple[str, ...]
    """The names that a stream's last event may have."""
    ping: bytes
    """An event that clients skip."""
    vendor_fields: tuple[str, ...]
    """Fields of hidden parts that vendors have added. Others may refuse a request that has them."""

    def items_without_list(self, fields: RequestFields) -> Sequence[Value]:
        """Return the items of a request that has no list of them. Raises ValueError: it must have one."""
        ...

    def tool_names(self, fields: RequestFields) -> list[str]:
        """Return the names of the request's tools."""
        ...

    def parts(self, items: Sequence[Any]) -> list[Part]:
        """Return the parts of messages. Raises ValueError: they have another form."""
        ...

    def read_blocks(self, role: Role, blocks: Sequence[Any]) -> list[Part]:
        """Return the parts of an entry's blocks; `place` counts in them."""
        ...

    def blocks(self, raw: str) -> list[str]:
        """Return the JSON texts of a message's blocks; `place` of a part counts in them."""
        ...

    def is_named(self, fields: RequestFields) -> bool:
        """Return whether a later request may name the reply, or an item of it, by the provider's id."""
        ...

    def item_ids(self, blocks: Sequence[Any]) -> list[str]:
        """Return the provider's ids of the items that the blocks of a reply's entry make, as `Reply.ids` has them."""
        ...

    def write_messages(self, entries: Sequence[tuple[Role, Sequence[str]]]) -> list[str]:
        """Return entries as messages or items: JSON texts, made of the JSON texts of their blocks."""
        ...

    def frame_items(self, items: Sequence[Any]) -> int:
        """Return how many messages at the beginning are instructions, and belong to the frame."""
        ...

    def asks_hidden(self, fields: RequestFields, *, by_default: bool = False) -> bool:
        """Return whether hidden parts may be put into the request. `by_default`: the model thinks unless the request
        forbids it."""
        ...

    def binds_prefix(self, part: Part) -> bool:
        """Return whether a hidden part of an unknown model's is bound to all that went before."""
        ...

    def belongs_to(self, block: str) -> Belonging:
        """Return what a hidden part, as its block's JSON text, belongs to if it is bound to its call."""
        ...

    def pins_errors(self, fields: RequestFields) -> bool:
        """Return whether the client wants the provider's error for hidden parts that do not fit."""
        ...

    def edit_message(self, raw: str, edit: Edit) -> str:
        """Return the JSON of a message or item after an edit; empty if nothing is left of it."""
        ...

    def reply(self, body: bytes) -> Reply:
        """Read a reply that was not streamed. Raises ValueError."""
        ...

    def read_stream(self, body: bytes) -> Reply:
        """Read the events of a streamed reply; of one that broke off what is complete, and the text so far. Raises
        ValueError."""
        ...

    def refusal(self, body: bytes) -> HiddenRefused | None:
        """Return what a 400 says about hidden parts, or None if it is about something else."""
        ...

    def missing(self, body: bytes) -> HiddenMissing | None:
        """Return what to do if a 400 says that hidden parts are missing, or None if it is about something else."""
        ...

    def error(self, status: int, code: str, message: str) -> bytes:
        """Return an error of ours in the provider's shape. `code` is the vendor's own, or empty."""
        ...
