"""State for upstreams that hold none: what a request names by an id of the provider's is put into it whole."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from longthread.gateway.asked import Asked
from longthread.gateway.dialects.dialect import Dialect
from longthread.gateway.http import Headers
from longthread.gateway.parts import name_node
from longthread.gateway.raw_json import element_texts, spelled
from longthread.model.entry import Entry
from longthread.model.wire import is_wire, unpack
from longthread.store import gateway as calls
from longthread.store import log
from longthread.store.driver import Transaction
from longthread.store.gateway import GatewayCall, KnownNode

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
    return asked.with_body(("{" + ",".join(f"{spelled(name)}:{raw}" for name, raw in raws.items()) + "}").encode())


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
    return dialect.spelled([(entry.role, blocks_of(entry)) for entry in entries if is_wire(entry.payload)])


def blocks_of(entry: Entry) -> Sequence[str]:
    """Return the JSON texts of the blocks of a gateway's entry."""
    return [text for _, text in element_texts(unpack(entry.payload or b"", entry.text)[1])]
