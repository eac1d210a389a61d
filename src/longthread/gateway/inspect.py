"""What a call of the gateway sent up and got back, as the log has it."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from longthread.errors import InvalidInput
from longthread.gateway.dialects import DIALECTS
from longthread.gateway.dialects.dialect import Dialect
from longthread.gateway.parts import Part, anchor_hidden, visible_parts
from longthread.gateway.raw_json import element_texts
from longthread.gateway.tree import hidden_in_log
from longthread.model.entry import Entry, Role
from longthread.model.wire import is_wire, unpack
from longthread.store import gateway as calls
from longthread.store import log
from longthread.store.driver import Transaction
from longthread.store.gateway import GatewayCall, HiddenPart

CLIENT = "client"
"""Where a hidden part came from that the client sent itself."""


@dataclass(frozen=True, slots=True)
class SentPart:
    """A part of a message.

    Attributes:
        kind: `text`, `call`, `result`, `other`, or `hidden`.
        sent: whether it went up. Of a reply, whether it came.
        origin: of a hidden part that went up, the call whose reply it is, or `client`.
        block: its JSON, parsed.
    """

    kind: str
    sent: bool
    block: Any
    origin: int | str | None = None

    def to_json(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in self.__slots__}


@dataclass(frozen=True, slots=True)
class SentMessage:
    """An entry as a call sent it, or as its reply has it."""

    seq: int
    role: str
    parts: Sequence[SentPart]

    def to_json(self) -> dict[str, Any]:
        return {"seq": self.seq, "role": self.role, "parts": [part.to_json() for part in self.parts]}


@dataclass(frozen=True, slots=True)
class InspectedGatewayCall:
    """A call of the gateway.

    Attributes:
        last: the number of the thread's last call.
        frame: the request's fields other than its messages.
        is_whole: whether all that it sent is still known: retention may have deleted some.
    """

    call: GatewayCall
    last: int
    client: str
    frame: Mapping[str, Any]
    messages: Sequence[SentMessage]
    reply: Sequence[SentMessage]
    is_whole: bool


async def look_at_call(tx: Transaction, thread_id: str, number: int | None) -> InspectedGatewayCall | None:
    """Return a call by its number, a negative one from the end, or the last; None if the thread has none. Raises
    InvalidInput: it has others."""
    last = (await calls.position(tx, thread_id)).n
    if not last:
        return None
    n = last if number is None else number if number > 0 else last + 1 + number
    call = await calls.find_call(tx, thread_id, n)
    if call is None:
        raise InvalidInput(
            reason=f"There is no call {number}: the thread's last one is {last}. Those of deleted entries are deleted."
        )
    dialect = DIALECTS[call.dialect]
    sent = await _sent(tx, dialect, call)
    frame = await calls.find_frame(tx, thread_id, call.frame)
    entries = await log.branch(tx, thread_id, call.asked_seq, limit=call.asked_seq) if call.asked_seq else []
    is_first = not entries or await log.is_first(tx, thread_id, entries[0].seq)
    replied = await log.entries_between(tx, thread_id, call.reply_seq or 1, call.reply_end or 0)
    client = await calls.client_of(tx, thread_id)
    return InspectedGatewayCall(
        call,
        last,
        client[0] if client else "unknown",
        {name: json.loads(text, strict=False) for name, text in frame.items()},
        _messages(dialect, entries, sent or [], call.asked),
        list(_describe_reply(dialect, replied)),
        is_whole=is_first and sent is not None,
    )


_Sent = list[tuple[HiddenPart, int | str]]
"""Hidden parts that went up, each with its origin."""


async def _sent(tx: Transaction, dialect: Dialect, call: GatewayCall) -> _Sent | None:
    """Return the hidden parts that a call sent; None if some of them are deleted."""
    own: _Sent = [(each, CLIENT) for each in call.hidden]
    if not call.base:
        return own
    base = await calls.find_call(tx, call.thread_id, call.base)
    carried = await hidden_in_log(tx, dialect, base) if base else None
    if base is None or carried is None:
        return None
    there = await calls.calls_until(tx, call.thread_id, call.base)
    return [(each, _origin(there, base, each[0])) for each in carried] + own


def _origin(there: Mapping[int, GatewayCall], base: GatewayCall, at: int) -> int | str:
    """Return the call whose reply holds a part, among the calls that `base` continues, or `client`."""
    n = base.n
    while n in there:
        call = there[n]
        if call.asked <= at < max(call.ends, call.asked + 1):
            return n
        n = call.base
    return CLIENT


def _messages(dialect: Dialect, entries: Sequence[Entry], sent: _Sent, asked: int) -> list[SentMessage]:
    """Return entries as they went up. `asked` counts the visible parts of the branch up to their end."""
    entries = [entry for entry in entries if is_wire(entry.payload)]
    blocks = [_blocks(entry) for entry in entries]
    every = [
        part._replace(item=number)
        for number, entry in enumerate(entries)
        for part in dialect.read_blocks(entry.role, blocks[number])
    ]
    visible = visible_parts(every)
    start = asked - len(visible)
    own = {(each.at, each.key): each.part for each in anchor_hidden(every, start)}
    found: list[list[SentPart]] = [[] for _ in entries]
    for number, part in enumerate(visible, start):
        before = [_take_hidden(dialect, part.role, each, own) for each in sent if each[0][:2] == (number, False)]
        behind = [_take_hidden(dialect, part.role, each, own) for each in sent if each[0][:2] == (number, True)]
        found[part.item] += [*before, SentPart(part.kind, True, blocks[part.item][part.place]), *behind]
    for part in own.values():
        found[part.item].append(SentPart("hidden", False, blocks[part.item][part.place]))
    return [SentMessage(entry.seq, entry.role, parts) for entry, parts in zip(entries, found, strict=True)]


def _take_hidden(
    dialect: Dialect, role: Role, sent: tuple[HiddenPart, int | str], own: dict[tuple[int, bytes], Part]
) -> SentPart:
    """Return a hidden part that went up, and take it out of the entries' `own`."""
    (at, _, raw), origin = sent
    block = json.loads(raw, strict=False)
    for part in dialect.read_blocks(role, [block]):
        own.pop((at, part.hidden or b""), None)
    return SentPart("hidden", True, block, origin)


def _describe_reply(dialect: Dialect, entries: Sequence[Entry]) -> Iterator[SentMessage]:
    for entry in entries:
        if is_wire(entry.payload):
            blocks = _blocks(entry)
            parts = {part.place: part for part in dialect.read_blocks(entry.role, blocks)}
            kinds = [_kind(parts.get(place)) for place in range(len(blocks))]
            shown = [SentPart(kind, True, block) for kind, block in zip(kinds, blocks, strict=True)]
            yield SentMessage(entry.seq, entry.role, shown)


def _kind(part: Part | None) -> str:
    return part.kind if part is not None and part.visible is not None else "hidden"


def _blocks(entry: Entry) -> list[Any]:
    return [value for value, _ in element_texts(unpack(entry.payload or b"", entry.text)[1])]
