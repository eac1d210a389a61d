"""What OpenAI's Responses name by ids: earlier responses, conversations, and items."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from longthread.errors import ThreadNotFound
from longthread.gateway.asked import Asked
from longthread.gateway.dialects.dialect import Dialect
from longthread.gateway.dialects.responses import is_reference
from longthread.gateway.parts import name_node
from longthread.gateway.raw_json import element_texts, elements
from longthread.gateway.state import Expanded, StateUnknown, blocks_of, messages_until, named_call, rebuilt
from longthread.gateway.tree import own_name
from longthread.store import gateway as calls
from longthread.store import log
from longthread.store.driver import Transaction
from longthread.store.gateway import GatewayCall
from longthread.store.log import entries_at

# The vendor's errors. Clients recognize them.
_BOTH = (
    "Mutually exclusive parameters: 'previous_response_id' and 'conversation'. Ensure you are only using one of them."
)
_NO_ITEM = (
    "Item with id '{id}' not found. Items are not persisted when `store` is set to false. Try again with `store` set "
    "to true, or remove this item from your input."
)


async def expanded_response(tx: Transaction, asked: Asked) -> Expanded:
    """Put in the items that a request goes on from by `previous_response_id` or `conversation`, and those that its
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
    there = await _referred(tx, asked, referred) if referred else {}
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


async def _referred(tx: Transaction, asked: Asked, ids: Sequence[str]) -> Mapping[str, str]:
    """Return items of replies by their ids. Raises StateUnknown: one is not kept."""
    names = {name_node(asked.root, "item", id_): id_ for id_ in ids}
    found = await calls.known_replies(tx, asked.user, list(names))
    newest = {node.node: node for node in sorted(found, key=lambda node: (node.updated_at, node.seq))}
    items: dict[str, str] = {}
    for thread_id, n in {(node.thread_id, node.call) for node in newest.values()}:
        call = await calls.find_call(tx, thread_id, n)
        if call is not None and call.reply_seq is not None and call.reply_end is not None:
            entries = await entries_at(tx, thread_id, range(call.reply_seq, call.reply_end + 1))
            raws = asked.dialect.spelled([(entry.role, blocks_of(entry)) for _, entry in sorted(entries.items())])
            items |= _by_id(raws)
    for id_ in ids:
        if id_ not in items:
            raise StateUnknown(404, "", _NO_ITEM.format(id=id_))
    return items


def _by_id(raws: Iterable[str]) -> dict[str, str]:
    parsed = elements(f"[{','.join(raws)}]").value
    return {str(item.value["id"]): raw for item, raw in zip(parsed, raws, strict=True) if item.value.get("id")}
