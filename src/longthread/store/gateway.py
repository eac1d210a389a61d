"""The gateway's calls, and the index by which prefixes of conversations are found (document 003)."""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from longthread.store.decoding import decoder
from longthread.store.driver import Row, Transaction, one
from longthread.store.encoding import dump
from longthread.store.log import now

HiddenPart = tuple[int, bool, str]
"""The visible part that a hidden one stands before (or behind), and the JSON text of its block."""


@dataclass(frozen=True, slots=True)
class KnownNode:
    """An entry at whose end a prefix ends. `call` is the last call whose reply is in the prefix, or 0; `tip` is the
    thread's."""

    node: int
    thread_id: str
    seq: int
    call: int
    updated_at: str = ""
    tip: int = 0


@dataclass(frozen=True, slots=True)
class GatewayCall:
    """A call of a model through the gateway: the columns of `gateway_calls`, its hidden parts decoded."""

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


async def known_nodes(tx: Transaction, user_id: str, nodes: Sequence[int]) -> list[KnownNode]:
    """Return where a user's conversations have one of these nodes. Expired ones have none."""
    rows = await tx.fetch("select_known_nodes", user_id=user_id, nodes=dump(list(nodes)), now=now())
    return [KnownNode(**row) for row in rows]


async def thread_nodes(tx: Transaction, thread_id: str, nodes: Sequence[int]) -> list[KnownNode]:
    """Return where a thread has one of these nodes."""
    rows = await tx.fetch("select_thread_nodes", thread_id=thread_id, nodes=dump(list(nodes)))
    return [KnownNode(thread_id=thread_id, **row) for row in rows]


async def find_call(tx: Transaction, thread_id: str, n: int) -> GatewayCall | None:
    row = await one(tx, "select_gateway_call", thread_id=thread_id, n=n)
    return _call_of(row) if row else None


async def calls_until(tx: Transaction, thread_id: str, n: int) -> dict[int, GatewayCall]:
    """Return a thread's calls up to number `n`, by number."""
    rows = await tx.fetch("select_gateway_calls", thread_id=thread_id, n=n)
    return {int(row["n"]): _call_of(row) for row in rows}


async def position(tx: Transaction, thread_id: str) -> tuple[int, int]:
    """Return the number of the thread's last call, and the hash of the tools of its first one that had any, or 0."""
    row = await one(tx, "select_gateway_position", thread_id=thread_id)
    return (int(row["n"]), int(row["tools"])) if row else (0, 0)


async def add_call(tx: Transaction, call: GatewayCall) -> None:
    values = {name: getattr(call, name) for name in GatewayCall.__dataclass_fields__ if name != "refused"}
    values |= {
        "hidden": _packed(call.hidden) if call.hidden else None,
        "usage": dump(call.usage),
        "head": _packed(call.head) if call.head else None,
    }
    await tx.run("insert_gateway_call", **values)


async def refuse(tx: Transaction, thread_id: str, calls: Iterable[int]) -> None:
    """Note that the provider refused the hidden parts of these calls' replies: they are never restored."""
    await tx.run_all("refuse_gateway_calls", [{"thread_id": thread_id, "n": n} for n in calls])


async def add_frame(tx: Transaction, thread_id: str, frame_id: str, frame: Mapping[str, str]) -> None:
    await tx.run("insert_gateway_frame", thread_id=thread_id, id=frame_id, body=_packed(frame))


async def find_frame(tx: Transaction, thread_id: str, frame_id: str) -> dict[str, str]:
    row = await one(tx, "select_gateway_frame", thread_id=thread_id, id=frame_id)
    return dict(_unpacked(row["body"])) if row else {}


async def add_nodes(tx: Transaction, thread_id: str, nodes: Iterable[tuple[int, int, int, int]]) -> None:
    """Add nodes: each the seq of its entry, a place, the node and the call. A known entry keeps its own."""
    names = ("seq", "place", "node", "call")
    await tx.run_all(
        "insert_gateway_node", [{"thread_id": thread_id, **dict(zip(names, node, strict=True))} for node in nodes]
    )


async def note_client(
    tx: Transaction, thread_id: str, *, client_type: str, client: str, last_signature: str | None
) -> None:
    """Note who asked, and count it."""
    values = {"client_type": client_type, "client": client, "last_signature": last_signature}
    await tx.run("put_thread_client", thread_id=thread_id, **values)


async def expire_after(tx: Transaction, thread_id: str, seconds: int) -> None:
    """Let a thread expire this long from now."""
    at = (datetime.now(UTC) + timedelta(seconds=seconds)).isoformat(timespec="microseconds")
    await tx.run("extend_expiry", id=thread_id, expires_at=at)


async def client_of(tx: Transaction, thread_id: str) -> tuple[str, int] | None:
    """Return a thread's client, and how many calls it made; None if it made none."""
    row = await one(tx, "select_gateway_client", thread_id=thread_id)
    return (str(row["client"]), int(row["calls"])) if row else None


async def threads_without_nodes(tx: Transaction) -> list[tuple[str, str]]:
    """Return the threads that have calls whose nodes are missing, as after a copy, each with its user."""
    return [(str(row["id"]), str(row["user_id"])) for row in await tx.fetch("select_threads_without_nodes")]


async def forget_names(tx: Transaction, thread_id: str, n: int) -> None:
    """Delete the ids of the provider's by which a call is found."""
    await tx.run("delete_response_nodes", thread_id=thread_id, call=n)
    await tx.run("forget_response", thread_id=thread_id, n=n)


@decoder
def _call_of(row: Row) -> GatewayCall:
    values = {name: row[name] for name in GatewayCall.__dataclass_fields__}
    values["hidden"] = [tuple(each) for each in _unpacked(row["hidden"])] if row["hidden"] else []
    values["usage"] = json.loads(row["usage"])
    values["head"] = _unpacked(row["head"]) if row["head"] else {}
    values["refused"] = bool(row["refused"])
    return GatewayCall(**values)


def _packed(value: Any) -> bytes:
    return zlib.compress(json.dumps(value, separators=(",", ":")).encode(), 1)


def _unpacked(body: bytes) -> Any:
    return json.loads(zlib.decompress(body))
