"""State for upstreams that hold none: what a request names by an id of the provider's is put into it whole.

OpenAI's Responses name earlier responses, conversations, and items.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from longthread.errors import ThreadNotFound
from longthread.gateway.dialects.dialect import Dialect
from longthread.gateway.dialects.responses import is_reference
from longthread.gateway.http import Headers
from longthread.gateway.parts import name_node
from longthread.gateway.raw_json import element_texts, elements, write_json
from longthread.gateway.request import Asked
from longthread.gateway.restore import drop_hidden
from longthread.gateway.tree import own_name
from longthread.model.entry import Entry
from longthread.model.wire import is_wire, unpack
from longthread.store import gateway as calls
from longthread.store import log
from longthread.store.driver import Transaction
from longthread.store.gateway import GatewayCall, KnownNode
from longthread.store.log import entries_at

_LONGEST = 1_000_000
"""Entries of a branch: all of them."""


_THREADS_BETA = b"message-threads"
"""What the name of Anthropic's beta for message threads begins with."""


class StateUnknown(Exception):
    """A request names a response or a thread that is not kept. `status` and `code` are those of the vendor's error."""

    def __init__(self, status: int, code: str, message: str) -> None:
        super().__init__(message)
        self.status = status
        self.code = code


@dataclass(frozen=True, slots=True)
class Expanded:
    """A request with what it named by ids put in.

    Attributes:
        call: the call whose reply it goes on from, if it named one.
        thread: the thread that it named, if it named no reply.
    """

    asked: Asked
    call: GatewayCall | None = None
    thread: str | None = None


async def expanded_thread(tx: Transaction, asked: Asked) -> Expanded:
    """Put in what Anthropic's message threads leave out: a request that continues one has neither its messages nor
    system and tools. Raises StateUnknown."""
    if "thread" not in asked.fields:
        return Expanded(asked)
    thread = asked.value("thread")
    if not isinstance(thread, dict) or thread.get("type") != "continue":
        return Expanded(rebuilt(asked, {}, leave_out=("thread",)))
    previous = str(thread.get("previous_message_id") or "")
    call = await named_call(tx, asked.user, asked.root, previous)
    said = await messages_until(tx, asked.dialect, call.thread_id, call.reply_end or 0) if call else None
    if call is None or said is None:
        raise StateUnknown(404, "thread_not_found", f"No thread was found for `previous_message_id` {previous}.")
    frame = await calls.find_frame(tx, call.thread_id, call.frame)
    own = {name: frame[name] for name in ("system", "tools") if name in frame and name not in asked.fields}
    messages = [*said, *asked.items]
    return Expanded(rebuilt(asked, own | {"messages": f"[{','.join(messages)}]"}, leave_out=("thread",)), call)


def rebuilt(asked: Asked, fields: dict[str, str], leave_out: Sequence[str] = ()) -> Asked:
    """Return a request with other JSON texts for some fields, and without some."""
    raws = {name: asked.raw(name) for name in asked.fields if name not in leave_out} | fields
    return asked.with_body(("{" + ",".join(f"{write_json(name)}:{raw}" for name, raw in raws.items()) + "}").encode())


def without_state(headers: Headers) -> Headers:
    """Return a client's headers without the betas for state that is put into the request."""
    found: list[tuple[bytes, bytes]] = []
    for name, value in headers:
        if name == b"anthropic-beta":
            value = b",".join(each for each in value.split(b",") if not each.strip().startswith(_THREADS_BETA))
        if value or name != b"anthropic-beta":
            found.append((name, value))
    return found


async def named_call(tx: Transaction, user: str, root: bytes, response_id: str) -> GatewayCall | None:
    """Return the call whose reply has this id of the provider's; None if it is not kept, expired or another's."""
    node = await named_node(tx, user, name_node(root, "response", response_id))
    call = await calls.find_call(tx, node.thread_id, node.call) if node else None
    return call if call is not None and call.response_id == response_id else None


async def named_node(tx: Transaction, user: str, node: int) -> KnownNode | None:
    found = await calls.known_replies(tx, user, [node])
    return max(found, key=lambda each: (each.updated_at, each.seq), default=None)


async def messages_until(tx: Transaction, dialect: Dialect, thread_id: str, seq: int) -> list[str] | None:
    """Return the messages of a conversation up to an entry, as JSON texts; None if older ones are deleted."""
    entries = await log.branch(tx, thread_id, seq, limit=_LONGEST) if seq else []
    if entries and not await log.is_first(tx, thread_id, entries[0].seq):
        return None
    return dialect.write_messages([(entry.role, blocks_of(entry)) for entry in entries if is_wire(entry.payload)])


def blocks_of(entry: Entry) -> Sequence[str]:
    """Return the JSON texts of the blocks of a gateway's entry."""
    return [text for _, text in element_texts(unpack(entry.payload or b"", entry.text)[1])]


# The vendor's errors. Clients recognize them.
_BOTH = (
    "Mutually exclusive parameters: 'previous_response_id' and 'conversation'. Ensure you are only using one of them."
)
_NO_ITEM = (
    "Item with id '{id}' not found. Items are not persisted when `store` is set to false. Try again with `store` set "
    "to true, or remove this item from your input."
)


async def expanded_response(tx: Transaction, asked: Asked) -> Expanded:
    """Insert the items that a request continues by `previous_response_id` or `conversation`, and the items that its
    `item_reference`s name. `instructions` are not carried over. Raises StateUnknown."""
    previous, thread = _text(asked.value("previous_response_id")), conversation_id(asked.value("conversation"))
    if previous and thread:
        raise StateUnknown(400, "mutually_exclusive_parameters", _BOTH)
    call = None
    if previous:
        call = await named_call(tx, asked.user, asked.root, previous)
        if call is None:
            raise _no_previous(previous)
    elif thread:
        call = await _last_call(tx, asked, thread)
    if call is None and all(part.kind != "reference" for part in asked.parts):
        return Expanded(asked, thread=thread)
    given = input_items(asked)
    referred = [item["id"] for item, _ in given if is_reference(item)]
    there = await _find_items(tx, asked, referred) if referred else {}
    before = await items_until(tx, asked.dialect, call, call.reply_end or 0) if call else []
    if before is None:
        raise _no_previous(previous or str(thread))
    items = [*before, *(there[item["id"]] if is_reference(item) else raw for item, raw in given)]
    fields = {"input": f"[{','.join(items)}]"}
    gone = ("previous_response_id", "conversation") if call else ()
    return Expanded(rebuilt(asked, fields, leave_out=gone), call, thread)


def _no_previous(id_: str) -> StateUnknown:
    return StateUnknown(400, "previous_response_not_found", f"Previous response with id '{id_}' not found.")


def _text(value: Any) -> str | None:
    """Return an id; None if it is none, about which the provider says what is wrong."""
    return value if isinstance(value, str) and value else None


def conversation_id(value: Any) -> str | None:
    return _text(value.get("id") if isinstance(value, dict) else value)


def input_items(asked: Asked) -> list[tuple[Any, str]]:
    """Return the items of a request's input, each parsed and as its JSON text; a text is one message."""
    pieces = asked.conversation.cut
    texts = [pieces.item(number) for number in range(len(pieces.spans))]
    if isinstance(asked.value("input"), str):
        texts = [f'{{"type":"message","role":"user","content":{text}}}' for text in texts]
    return [(json.loads(text, strict=False), text) for text in texts]


async def frame_items(tx: Transaction, call: GatewayCall) -> list[str]:
    """Return the instructions at the beginning of a call's input, as JSON texts."""
    frame = await calls.find_frame(tx, call.thread_id, call.frame)
    return [text for _, text in element_texts(frame["input"])] if "input" in frame else []


async def items_until(tx: Transaction, dialect: Dialect, call: GatewayCall, seq: int) -> list[str] | None:
    """Return the items of a call's conversation up to an entry, as JSON texts; None if older ones are deleted."""
    said = await messages_until(tx, dialect, call.thread_id, seq)
    return None if said is None else [*await frame_items(tx, call), *said]


async def _last_call(tx: Transaction, asked: Asked, thread_id: str) -> GatewayCall | None:
    """Return the call at the end of a conversation of the user's, or None if it is not known or not answered."""
    thread_id = await own_name(tx, thread_id, asked.owner)
    try:
        thread = await log.find_thread(tx, thread_id, user_id=asked.user)
    except ThreadNotFound:
        return None
    if thread.expires_at is not None and thread.expires_at <= datetime.now(UTC):
        return None
    if asked.owner is not None and await calls.owner_of(tx, thread_id) != asked.owner:
        return None
    last = (await calls.position(tx, thread_id)).n
    own = (await calls.calls_until(tx, thread_id, last)).values()
    answered = [call for call in own if call.reply_end is not None and call.dialect == asked.dialect.name]
    return max(answered, key=lambda call: call.n, default=None)


async def _find_items(tx: Transaction, asked: Asked, ids: Sequence[str]) -> Mapping[str, str]:
    """Return items of replies by their ids. Raises StateUnknown: one is not kept."""
    names = {name_node(asked.root, "item", id_): id_ for id_ in ids}
    found = await calls.known_replies(tx, asked.user, list(names))
    newest = {node.node: node for node in sorted(found, key=lambda node: (node.updated_at, node.seq))}
    items: dict[str, str] = {}
    for thread_id, n in {(node.thread_id, node.call) for node in newest.values()}:
        call = await calls.find_call(tx, thread_id, n)
        if call is not None and call.reply_seq is not None and call.reply_end is not None:
            entries = await entries_at(tx, thread_id, range(call.reply_seq, call.reply_end + 1))
            raws = asked.dialect.write_messages(
                [(entry.role, blocks_of(entry)) for _, entry in sorted(entries.items())]
            )
            items |= _by_id(raws)
    for id_ in ids:
        if id_ not in items:
            raise StateUnknown(404, "", _NO_ITEM.format(id=id_))
    return items


def _by_id(raws: Iterable[str]) -> dict[str, str]:
    parsed = elements(f"[{','.join(raws)}]").value
    return {str(item.value["id"]): raw for item, raw in zip(parsed, raws, strict=True) if item.value.get("id")}


def names_state(asked: Asked) -> bool:
    """Whether a request leaves out what it names by ids of the provider's."""
    if asked.dialect.name == "anthropic":
        thread = asked.value("thread")
        return isinstance(thread, dict) and thread.get("type") == "continue"
    named = (asked.value(name) for name in ("previous_response_id", "conversation"))
    return asked.dialect.name == "responses" and (any(named) or any(part.kind == "reference" for part in asked.parts))


async def expand_request(tx: Transaction, asked: Asked, upstream: str, family: str) -> Expanded:
    """Return a request with what it names by ids put in, and the ids taken out; itself, if it names nothing.

    What only another upstream, or another family of models, can read is left out. Raises StateUnknown.
    """
    if asked.dialect.name == "anthropic":
        found = await expanded_thread(tx, asked)
    elif asked.dialect.name == "responses":
        found = await expanded_response(tx, asked)
    else:
        return Expanded(asked)
    call = found.call
    if call is None or (call.upstream, call.family) == (upstream, family):
        return found
    return Expanded(drop_hidden(found.asked, found.asked.indexed_parts.hidden_before(call.ends)), call)
