"""The gateway's calls, and the index by which prefixes of conversations are found (document 003)."""

from __future__ import annotations

import json
import zlib
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from longthread.model.content import deflate, inflate
from longthread.store.driver import Row, Transaction, one
from longthread.store.log import now
from longthread.store.rows import decoder, dump, micros_of, time_at

_OF_FRAMES = ("dialect", "upstream", "family", "model")
_ELSEWHERE = frozenset({*_OF_FRAMES, "refused", "usage", "broken"})
_DEFLATED = b"\x01"

HiddenPart = tuple[int, bool, str]
"""The visible part that a hidden one stands before (or after), and the JSON text of its block."""


@dataclass(frozen=True, slots=True)
class KnownNode:
    """An entry at whose end a prefix ends. `call` is the last call whose reply is in the prefix, or 0; `tip` is the
    thread's. With another `place` than 0 it stands for something else: see `gateway_nodes`."""

    node: int
    thread_id: str
    seq: int
    call: int
    updated_at: str = ""
    tip: int = 0
    place: int = 0
    client: str = ""


@dataclass(frozen=True, slots=True)
class GatewayCall:
    """A call of a model through the gateway: the columns of `gateway_calls`, its hidden parts decoded.

    `broken` says why the reply broke off, in a word; empty: it is whole, or could not be read.
    """

    thread_id: str
    n: int
    response_id: str | None
    dialect: str
    upstream: str
    family: str
    model: str
    frame: str
    tools: int
    status: int
    asked_seq: int
    reply_seq: int | None
    reply_end: int | None
    asked: int
    ends: int
    previous: int
    base: int
    hidden: Sequence[HiddenPart]
    hidden_hash: bytes | None
    restored: int
    dropped: int
    usage: Mapping[str, Any]
    head: Mapping[str, Any]
    started_at: str
    elapsed_ms: int
    refused: bool = False
    broken: str = ""

    @property
    def is_answered(self) -> bool:
        """Whether its reply is whole."""
        return self.reply_seq is not None and not self.broken


async def known_replies(
    tx: Transaction, user_id: str, nodes: Sequence[int], own: str | None = None, client: str = ""
) -> list[KnownNode]:
    """Return where a user's conversations have a reply that ends with one of these nodes: of each node the `own`
    conversation's, and those of the conversations that changed last, first of the same client. Expired ones have
    none."""
    values = {"nodes": dump(list(nodes)), "own": own, "client": client}
    rows = await tx.fetch("select_known_replies", user_id=user_id, now=now(), **values)
    return [KnownNode(**row) for row in rows]


async def thread_nodes(tx: Transaction, thread_id: str, nodes: Sequence[int]) -> list[KnownNode]:
    """Return where a thread has one of these nodes. An expired one has none."""
    rows = await tx.fetch("select_thread_nodes", thread_id=thread_id, nodes=dump(list(nodes)), now=now())
    return [KnownNode(thread_id=thread_id, **row) for row in rows]


async def find_call(tx: Transaction, thread_id: str, n: int) -> GatewayCall | None:
    row = await one(tx, "select_gateway_call", thread_id=thread_id, n=n)
    return _call_of(row) if row else None


async def calls_until(tx: Transaction, thread_id: str, n: int) -> dict[int, GatewayCall]:
    """Return a thread's calls up to number `n`, by number."""
    rows = await tx.fetch("select_gateway_calls", thread_id=thread_id, n=n)
    return {int(row["n"]): _call_of(row) for row in rows}


async def calls_among(tx: Transaction, thread_id: str, numbers: Collection[int]) -> list[GatewayCall]:
    """Return those of a thread's calls that have these numbers."""
    rows = await tx.fetch("select_gateway_calls_among", thread_id=thread_id, numbers=dump(sorted(numbers)))
    return [_call_of(row) for row in rows]


@dataclass(frozen=True, slots=True)
class GatewayPosition:
    """Where a thread stands.

    Attributes:
        n: the number of its last call, or 0.
        tools: the hash of the tools of its first call that had any, or 0.
        has_frame, has_node: whether the frame and the node that were looked for are there.
        has_run: whether a run goes on in it.
        owner: the user who owns it; None: no user yet.
    """

    n: int
    tools: int
    has_frame: bool
    has_node: bool
    has_run: bool = False
    owner: str | None = None


async def position(
    tx: Transaction, thread_id: str, *, frame: str = "", node: KnownNode | None = None, user_id: str | None = None
) -> GatewayPosition:
    """Return where a thread stands, and whether it has a frame and a node. `user_id` says who asks: a thread of another
    user is owned by another."""
    seq, number, call = (node.seq, node.node, node.call) if node else (0, 0, 0)
    asked = {"thread_id": thread_id, "frame": frame, "user_id": user_id}
    [row] = await tx.fetch("select_gateway_position", **asked, seq=seq, node=number, call=call)
    there = {name: bool(row[name]) for name in ("has_frame", "has_node", "has_run")}
    return GatewayPosition(int(row["n"]), int(row["tools"]), owner=row["owner"], **there)


async def add_call(tx: Transaction, call: GatewayCall) -> None:
    """Add a call. What its frame says of it is not written."""
    values = {name: getattr(call, name) for name in GatewayCall.__dataclass_fields__ if name not in _ELSEWHERE}
    values |= {
        "hidden": _pack_body(call.hidden) if call.hidden else None,
        "head": _packed_head(call.usage, call.head, call.broken),
        "started_at": micros_of(call.started_at),
    }
    await tx.later("insert_gateway_call", **values)


async def refuse(tx: Transaction, thread_id: str, calls: Iterable[int]) -> None:
    """Note that the provider refused the hidden parts of these calls' replies: they are never restored."""
    await tx.run_all("refuse_gateway_calls", [{"thread_id": thread_id, "n": n} for n in calls])


async def add_frame(tx: Transaction, call: GatewayCall, frame: Mapping[str, str]) -> None:
    """Add the frame of a call: which model it asked, and what it said along with its messages. A known frame stays as
    it is."""
    values = {name: getattr(call, name) for name in ("thread_id", *_OF_FRAMES)}
    await tx.later("insert_gateway_frame", **values, id=call.frame, body=_pack_body(frame))


async def find_frame(tx: Transaction, thread_id: str, frame_id: str) -> dict[str, str]:
    row = await one(tx, "select_gateway_frame", thread_id=thread_id, id=frame_id)
    return dict(_unpack_body(row["body"])) if row else {}


async def add_nodes(tx: Transaction, thread_id: str, nodes: Iterable[tuple[int, int, int, int]]) -> None:
    """Add nodes: each the seq of its entry, a place, the node and the call. A known entry keeps its own."""
    names = ("seq", "place", "node", "call")
    await tx.run_all(
        "insert_gateway_node", [{"thread_id": thread_id, **dict(zip(names, node, strict=True))} for node in nodes]
    )


async def note_client(
    tx: Transaction, thread_id: str, *, client_type: str, client: str, last_signature: str | None, owner: str | None
) -> None:
    """Note who asked, and count it. A thread that has an owner keeps it."""
    values = {"client_type": client_type, "client": client, "last_signature": last_signature, "owner": owner}
    await tx.later("put_thread_client", thread_id=thread_id, **values)


async def expire_after(tx: Transaction, thread_id: str, seconds: int) -> None:
    """Let a thread expire this long from now, and those above it not before."""
    at = (datetime.now(UTC) + timedelta(seconds=seconds)).isoformat(timespec="microseconds")
    await tx.later("extend_expiry", id=thread_id, expires_at=at, now=now())


async def client_of(tx: Transaction, thread_id: str) -> tuple[str, int] | None:
    """Return a thread's client, and how many calls it made; None if it made none."""
    row = await one(tx, "select_gateway_client", thread_id=thread_id)
    return (str(row["client"]), int(row["calls"])) if row else None


async def owner_of(tx: Transaction, thread_id: str, *, user_id: str | None = None) -> str | None:
    """Return who owns a thread; None: no client yet. `user_id` as in `position`."""
    row = await one(tx, "select_gateway_owner", thread_id=thread_id, user_id=user_id)
    return row["owner"] if row else None


async def is_unowned(tx: Transaction, thread_id: str, user_id: str) -> bool:
    """Whether a thread of a user's has had clients, and no owner."""
    return await one(tx, "select_unowned", thread_id=thread_id, user_id=user_id) is not None


async def has_unowned(tx: Transaction) -> bool:
    """Whether there are such threads."""
    [row] = await tx.fetch("select_any_unowned")
    return bool(row["found"])


async def put_owner(tx: Transaction, thread_id: str, owner: str) -> None:
    """Give a locked thread an owner, and delete its nodes: they are others now."""
    await tx.run("put_gateway_owner", thread_id=thread_id, owner=owner)
    await tx.run("delete_gateway_nodes", thread_id=thread_id)


async def find_salt(tx: Transaction) -> str | None:
    row = await one(tx, "select_gateway_salt")
    return str(row["salt"]) if row else None


async def put_salt(tx: Transaction, salt: str) -> str:
    """Set what owners are hashed with, unless it is set; return it."""
    await tx.run("insert_gateway_salt", salt=salt)
    [row] = await tx.fetch("select_gateway_salt")
    return str(row["salt"])


async def threads_without_nodes(tx: Transaction) -> list[tuple[str, str]]:
    """Return the threads that have calls whose nodes are missing, as after a copy, each with its user."""
    return [(str(row["id"]), str(row["user_id"])) for row in await tx.fetch("select_threads_without_nodes")]


async def forget_names(tx: Transaction, thread_id: str, n: int) -> None:
    """Delete the ids of the provider's by which a call is found."""
    call = await find_call(tx, thread_id, n)
    await tx.run("delete_response_nodes", thread_id=thread_id, call=n)
    await tx.run(
        "forget_response", thread_id=thread_id, n=n, head=_packed_head(call.usage, {}, call.broken) if call else None
    )


@decoder
def _call_of(row: Row) -> GatewayCall:
    values = {name: row[name] for name in GatewayCall.__dataclass_fields__ if name != "broken"}
    values["hidden"] = [tuple(each) for each in _unpack_body(row["hidden"])] if row["hidden"] else []
    values["usage"], values["head"], values["broken"] = _head_of(row)
    values["started_at"] = time_at(row["started_at"])
    values["refused"] = bool(row["refused"])
    if values["dialect"] is None:
        raise ValueError("its frame is gone")
    return GatewayCall(**values)


def _packed_head(usage: Mapping[str, Any], head: Mapping[str, Any], broken: str) -> bytes | None:
    """Return a reply's usage, the fields of it that go with it, with null for the same usage among them, and why it
    broke off."""
    if not usage and not head and not broken:
        return None
    is_same = bool(usage) and head.get("usage") == usage
    own = {**head, "usage": None} if is_same else head
    return _pack_body([usage, own, broken] if broken else [usage, own] if own else [usage])


def _head_of(row: Row) -> tuple[dict[str, Any], dict[str, Any], str]:
    found = _unpack_body(row["head"]) if row["head"] else [{}]
    if row["usage"] is not None:  # an older row
        return json.loads(row["usage"]), (found if isinstance(found, dict) else {}), ""
    usage, head, broken = found[0], found[1] if len(found) > 1 else {}, found[2] if len(found) > 2 else ""
    return usage, head | {"usage": usage} if usage and head.get("usage", usage) is None else head, broken


def _pack_body(value: Any) -> bytes:
    return _DEFLATED + deflate(json.dumps(value, separators=(",", ":")).encode())


def _unpack_body(body: bytes) -> Any:
    """Return what was packed, also in older rows: zlib's own form begins with another byte."""
    return json.loads(inflate(body[1:]) if body.startswith(_DEFLATED) else zlib.decompress(body))
