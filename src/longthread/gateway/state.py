"""State for upstreams that hold none: what a request names by an id of the provider's is put into it whole."""

from __future__ import annotations

from collections.abc import Sequence

from longthread.gateway.asked import Asked
from longthread.gateway.dialects.dialect import Dialect
from longthread.gateway.parts import name_node
from longthread.gateway.raw_json import element_texts
from longthread.messages.wire import is_wire, unpack
from longthread.model.entry import Entry
from longthread.store import gateway as calls
from longthread.store import log
from longthread.store.driver import Transaction
from longthread.store.gateway import GatewayCall, KnownNode

_LONGEST = 1_000_000
"""Entries of a branch: all of them."""


async def named_call(tx: Transaction, asked: Asked, response_id: str) -> GatewayCall | None:
    """Return the call whose reply has this id of the provider's; None if it is not kept, expired or another's."""
    node = await named_node(tx, asked.user, name_node(asked.root, "response", response_id))
    call = await calls.find_call(tx, node.thread_id, node.call) if node else None
    return call if call is not None and call.response_id == response_id else None


async def named_node(tx: Transaction, user: str, node: int) -> KnownNode | None:
    found = await calls.known_nodes(tx, user, [node])
    return max(found, key=lambda each: (each.updated_at, each.seq), default=None)


async def history(tx: Transaction, dialect: Dialect, call: GatewayCall) -> list[str]:
    """Return the messages of a conversation up to the end of a call's reply, as JSON texts."""
    if call.reply_end is None:
        return []
    entries = await log.branch(tx, call.thread_id, call.reply_end, limit=_LONGEST)
    return dialect.spelled([(entry.role, blocks_of(entry)) for entry in entries if is_wire(entry.payload)])


def blocks_of(entry: Entry) -> Sequence[str]:
    """Return the JSON texts of the blocks of a gateway's entry."""
    return [text for _, text in element_texts(unpack(entry.payload or b"", entry.text)[1])]
