"""Rows of LangGraph checkpoints. What they mean is the checkpointer's business."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass

from longthread.store.driver import Row, Transaction, one


@dataclass(frozen=True, slots=True)
class CheckpointRow:
    """One checkpoint without its channels' values. `metadata` is JSON text."""

    thread_id: str
    ns: str
    id: str
    parent_id: str | None
    type: str
    body: bytes
    metadata: str


@dataclass(frozen=True, slots=True)
class ChannelRow:
    """One version of one channel's value."""

    channel: str
    version: str
    type: str
    body: bytes | None


@dataclass(frozen=True, slots=True)
class WriteRow:
    """One write of a task that its checkpoint has not taken in yet. A negative `idx` is replaced, others are kept."""

    task_id: str
    idx: int
    task_path: str
    channel: str
    type: str
    body: bytes | None


async def put(tx: Transaction, row: CheckpointRow, channels: Sequence[ChannelRow]) -> None:
    """Store a checkpoint and the channel versions that are new with it."""
    await tx.run_all("put_channel", [asdict(c) | {"thread_id": row.thread_id, "ns": row.ns} for c in channels])
    await tx.run("put_checkpoint", **asdict(row))


async def put_writes(tx: Transaction, thread_id: str, ns: str, checkpoint_id: str, writes: Sequence[WriteRow]) -> None:
    """Store a task's writes. Storing them again changes nothing."""
    at = {"thread_id": thread_id, "ns": ns, "checkpoint_id": checkpoint_id}
    for query, chosen in (
        ("put_write", [w for w in writes if w.idx >= 0]),
        ("replace_write", [w for w in writes if w.idx < 0]),
    ):
        await tx.run_all(query, [asdict(w) | at for w in chosen])


async def find(
    tx: Transaction, thread_id: str, ns: str, checkpoint_id: str | None, *, user_id: str
) -> CheckpointRow | None:
    """A checkpoint of a user's thread by its id, or the newest one of its namespace."""
    at = {"thread_id": thread_id, "ns": ns, "user_id": user_id}
    if checkpoint_id is None:
        row = await one(tx, "select_latest_checkpoint", **at)
    else:
        row = await one(tx, "select_checkpoint", **at, id=checkpoint_id)
    return _checkpoint(row) if row else None


async def find_all(
    tx: Transaction, thread_id: str | None, ns: str | None, before: str | None, *, user_id: str
) -> list[CheckpointRow]:
    """Checkpoints of a user's threads, newest first; None stands for any."""
    rows = await tx.fetch("select_checkpoints", thread_id=thread_id, ns=ns, before=before, user_id=user_id)
    return [_checkpoint(row) for row in rows]


async def channels(
    tx: Transaction, thread_id: str, ns: str, versions: Mapping[str, str | int | float]
) -> list[ChannelRow]:
    """The stored channel values that `versions` names."""
    found: list[ChannelRow] = []
    for channel, version in versions.items():
        row = await one(tx, "select_channel", thread_id=thread_id, ns=ns, channel=channel, version=str(version))
        if row is not None:
            found.append(ChannelRow(row["channel"], row["version"], row["type"], row["body"]))
    return found


async def writes(tx: Transaction, thread_id: str, ns: str, checkpoint_id: str) -> list[WriteRow]:
    """A checkpoint's pending writes, in the order in which a live run applies them."""
    rows = await tx.fetch("select_writes", thread_id=thread_id, ns=ns, checkpoint_id=checkpoint_id)
    return [WriteRow(r["task_id"], r["idx"], r["task_path"], r["channel"], r["type"], r["body"]) for r in rows]


def _checkpoint(row: Row) -> CheckpointRow:
    return CheckpointRow(**{name: row[name] for name in CheckpointRow.__dataclass_fields__})
