"""Rows of LangGraph checkpoints; the checkpointer gives them meaning."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Any

from longthread.errors import ThreadNotFound, ThreadTaken
from longthread.store import incarnation, log
from longthread.store.driver import QueryCall, Row, Transaction, one
from longthread.store.rows import Decoding, decoder, like_pattern

_ENDLESS = 2**62
_FEW = 16
USUAL: Mapping[str, Any] = {"source": "loop", "parents": {}}
"""LangGraph's usual metadata, which has a `step` too."""
_USUAL_METADATA = '{"source":"loop","step":%s,"parents":{}}'
_STEP = re.compile(r"0|[1-9][0-9]{0,17}")
_USUAL = re.compile(rf'\{{"source":"loop","step":({_STEP.pattern}),"parents":\{{\}}\}}')
_MOMENT = timedelta(seconds=1)
LAST = "\U0010ffff"
"""Sorts after every id: the start of a listing."""


@dataclass(frozen=True, slots=True)
class Locked:
    """A thread that is locked until the transaction ends; `size` is the number of its last entry.

    `incarnation` differs for each thread of the same id, and after a checkpoint is replaced or removed (see `renew`).
    `untitled`: the thread has no title yet.
    """

    id: str
    tip: int
    size: int
    first_seq: int
    incarnation: str
    untitled: bool = False
    active_at: datetime | None = field(default=None, compare=False)
    """The stored activity time; None: unknown."""

    @property
    def birth_id(self) -> str:
        """The part of the incarnation that is constant for the thread's lifetime."""
        return incarnation.birth_id(self.incarnation)


@dataclass(frozen=True, slots=True)
class NewestCheckpoint:
    """A namespace's newest checkpoint; `writes` counts its tasks' writes inside its body."""

    n: int
    id: str
    writes: int


@dataclass(frozen=True, slots=True)
class PutPlace:
    """A place to store a checkpoint or writes: the locked thread and its namespace's newest checkpoint.

    `there` is the requested checkpoint's number, if it exists; `tasks`: whether another checkpoint's tasks have rows.
    """

    thread: Locked
    head: NewestCheckpoint | None
    there: int | None
    tasks: bool


@dataclass(frozen=True, slots=True)
class CheckpointRow:
    """One checkpoint. `metadata` is JSON text; `writes` counts its tasks' writes inside `body`."""

    thread_id: str
    ns: str
    n: int
    id: str
    parent_id: str | None
    metadata: str
    body: bytes
    writes: int = 0

    @property
    def about(self) -> dict[str, Any]:
        """Parse the metadata. Raises `RowDamaged`."""
        return _about(self)


def _about(row: CheckpointRow | FoundMetadata) -> dict[str, Any]:
    with Decoding(row.thread_id, "the metadata of checkpoint", row.id):
        found = json.loads(row.metadata)
        if not isinstance(found, dict):
            raise TypeError("it is no JSON object")
        return found


@dataclass(frozen=True, slots=True)
class WriteRow:
    """What one task has written so far."""

    ns: str
    checkpoint_id: str
    task_id: str
    task_path: str
    writes: int
    body: bytes


async def lock(tx: Transaction, thread_id: str, *, user_id: str, create: bool = False) -> Locked | None:
    """Return a user's thread, locked in a write transaction, or None. Raises `ThreadTaken` if it is to be created and
    the id is another user's."""
    row = await one(tx, "lock_thread", id=thread_id, user_id=user_id)
    if row is None and create:
        await tx.run("insert_thread", id=thread_id, user_id=user_id, title=None, source=None, now=log.now())
        row = await one(tx, "lock_thread", id=thread_id, user_id=user_id)
        if row is None:
            raise ThreadTaken(thread=thread_id)
    if row is None:
        return None
    return _decode_locked(row)


@decoder
def _decode_locked(row: Row) -> Locked:
    position = int(row["tip"]), int(row["entry_count"]), int(row["first_seq"])
    return Locked(row["id"], *position, row["incarnation"], bool(row["untitled"]))


async def place(
    tx: Transaction, thread_id: str, ns: str, *, user_id: str, checkpoint_id: str = "", written_id: str = ""
) -> PutPlace | None:
    """Lock a user's thread and return where to store; None if there is no such thread.

    Args:
        checkpoint_id: the requested checkpoint (`there`).
        written_id: the checkpoint whose tasks are looked for (`tasks`).
    """
    # Lock first, then look: the second query sees what was committed before the lock.
    await tx.later("hold_thread", id=thread_id, user_id=user_id)
    ids = {"checkpoint_id": checkpoint_id, "written_id": written_id}
    row = await one(tx, "select_place", id=thread_id, ns=ns, user_id=user_id, **ids)
    if row is None:
        return None
    head = NewestCheckpoint(row["head_n"], row["head_id"], row["head_writes"]) if row["head_id"] is not None else None
    return PutPlace(_decode_locked(row), head, row["there"], bool(row["tasks"]))


async def expect(tx: Transaction, place: PutPlace, ns: str, *, user_id: str, written_id: str) -> None:
    """Lock a thread; go on only if `place` is unchanged and the written checkpoint's tasks have no rows (see
    `Transaction.expect`). A checkpoint that exists by now makes its insert fail."""
    thread, head = place.thread, place.head
    assert head is not None  # else there is nothing to expect
    values = {"id": thread.id, "user_id": user_id, "tip": thread.tip, "size": thread.size, "ns": ns}
    values |= {"first_seq": thread.first_seq, "incarnation": thread.incarnation}
    values["head"] = f"{head.n} {head.writes} {head.id}"
    await tx.expect("hold_known_place", 1, **values, written_id=written_id)


async def put(tx: Transaction, row: CheckpointRow, parent_n: int | None) -> None:
    """Store a new checkpoint, whose id must not exist. `parent_n` is its parent's number, if that exists."""
    await tx.later("insert_checkpoint", **_values(row, parent_n), id=row.id)


async def renew(tx: Transaction, thread: Locked) -> Locked:
    """Invalidate caches of a thread's checkpoints after one was replaced or removed; return the new thread."""
    return replace(thread, incarnation=await incarnation.renew(tx, thread.id))


async def replace_checkpoint(tx: Transaction, row: CheckpointRow, parent_n: int | None) -> None:
    """Replace the checkpoint of the same number."""
    await tx.later("replace_checkpoint", **_values(row, parent_n))


def _values(row: CheckpointRow, parent_n: int | None) -> dict[str, Any]:
    return {
        "thread_id": row.thread_id,
        "ns": row.ns,
        "n": row.n,
        "parent_n": parent_n,
        "parent_id": row.parent_id if parent_n is None else None,
        "metadata": _short(row.metadata),
        "body": row.body,
    }


def _short(metadata: str) -> str:
    """Shorten metadata for storage: LangGraph's usual metadata becomes its step number."""
    match = _USUAL.fullmatch(metadata)
    return match[1] if match else metadata


@decoder
def _checkpoint(row: Row) -> CheckpointRow:
    found = CheckpointRow(**row)
    return replace(found, metadata=_full(found.metadata))


def _full(metadata: str) -> str:
    return metadata if _STEP.fullmatch(metadata) is None else _USUAL_METADATA % metadata


async def update_body(
    tx: Transaction, thread_id: str, ns: str, head: NewestCheckpoint, body: bytes, writes: int
) -> None:
    """Replace the newest checkpoint's body, which holds `writes` of its tasks' writes."""
    values = {"thread_id": thread_id, "ns": ns, "n": head.n, "id": head.id, "body": body}
    await tx.later("update_checkpoint_body", **values, writes=writes, before=head.writes)


async def rewrite(tx: Transaction, row: CheckpointRow, body: bytes, writes: int) -> None:
    """Replace a checkpoint's body, which holds `writes` of its tasks' writes."""
    at = {"thread_id": row.thread_id, "ns": row.ns, "n": row.n}
    await tx.run("rewrite_checkpoint", **at, body=body, writes=writes)


async def blob_names(tx: Transaction, thread_id: str, ns: str) -> list[tuple[int, str]]:
    """Return the numbers and channels of a namespace's large values."""
    rows = await tx.fetch("select_blob_names", thread_id=thread_id, ns=ns)
    return [(int(row["n"]), str(row["channel"])) for row in rows]


async def delete_tasks(tx: Transaction, thread_id: str, ns: str, checkpoint_id: str, task_ids: Iterable[str]) -> None:
    """Delete the rows of some of a checkpoint's tasks."""
    at = {"thread_id": thread_id, "ns": ns, "checkpoint_id": checkpoint_id}
    for task_id in task_ids:
        await tx.later("delete_writes", **at, task_id=task_id)


async def grow(tx: Transaction, thread: Locked, tip: int, size: int, *, title: str | None = None) -> Locked:
    """Store a thread's new tip and size, and a title if it has none; return the new thread. The activity time, which is
    indexed, is precise to the second."""
    now = datetime.now(UTC)
    values = {"id": thread.id, "tip": tip, "entry_count": size}
    if title is None and thread.active_at is not None and abs(now - thread.active_at) < _MOMENT:
        await tx.later("grow_active_thread", **values)
        return replace(thread, tip=tip, size=size)
    recent, noted = (time.isoformat(timespec="microseconds") for time in (now - _MOMENT, now))
    await tx.later("grow_thread", **values, title=title, recent=recent, now=noted)
    return replace(thread, tip=tip, size=size, active_at=now)


async def put_blobs(tx: Transaction, thread_id: str, ns: str, n: int, blobs: Mapping[str, bytes]) -> None:
    """Store a checkpoint's large values, by channel."""
    at = {"thread_id": thread_id, "ns": ns, "n": n}
    for channel, body in blobs.items():
        await tx.later("put_blob", **at, channel=channel, body=body)


async def delete_blobs(tx: Transaction, thread_id: str, ns: str, n: int, channels: Iterable[str]) -> None:
    for channel in channels:
        await tx.later("delete_blob", thread_id=thread_id, ns=ns, n=n, channel=channel)


async def blob(tx: Transaction, thread_id: str, ns: str, n: int, channel: str) -> bytes | None:
    row = await one(tx, "select_blob", thread_id=thread_id, ns=ns, n=n, channel=channel)
    return row["body"] if row else None


async def put_writes(tx: Transaction, thread_id: str, row: WriteRow) -> None:
    """Store a task's writes, which have no row yet."""
    await tx.later("insert_writes", thread_id=thread_id, **asdict(row))


async def replace_writes(tx: Transaction, thread_id: str, row: WriteRow) -> None:
    """Replace a task's writes."""
    values = asdict(row)
    del values["task_path"]
    await tx.later("replace_writes", thread_id=thread_id, **values)


async def delete_writes(tx: Transaction, thread_id: str, ns: str, checkpoint_id: str) -> None:
    await tx.run("delete_writes_of", thread_id=thread_id, ns=ns, checkpoint_id=checkpoint_id)


async def writes(tx: Transaction, thread_id: str, ns: str, first: str, last: str | None = None) -> list[WriteRow]:
    """Return the task rows of a checkpoint, or of those with ids from `first` to `last`."""
    at = {"thread_id": thread_id, "ns": ns}
    if last is None:
        rows = await tx.fetch("select_writes_of", **at, checkpoint_id=first)
    else:
        rows = await tx.fetch("select_writes", **at, first=first, last=last)
    return [WriteRow(**row) for row in rows]


async def add_entries(tx: Transaction, rows: Sequence[Mapping[str, Any]]) -> None:
    """Insert rows that `entry_row` made."""
    if len(rows) > _FEW:
        await tx.run_all("insert_entry", rows)
        return
    for row in rows:
        await tx.later("insert_entry", **row)


async def find(tx: Transaction, thread_id: str, ns: str, checkpoint_id: str | None) -> CheckpointRow | None:
    """Return a checkpoint by id, or its namespace's newest."""
    at = {"thread_id": thread_id, "ns": ns}
    if checkpoint_id is None:
        row = await one(tx, "select_newest_checkpoint", **at)
    else:
        row = await one(tx, "select_checkpoint", **at, id=checkpoint_id)
    return _checkpoint(row) if row else None


async def look(
    tx: Transaction, thread_id: str, ns: str, checkpoint_id: str | None, *, user_id: str, last: bool = False
) -> tuple[Locked | None, CheckpointRow | None, list[WriteRow]]:
    """Return a user's thread, a checkpoint by id or its namespace's newest, and its task rows. `last`: the
    transaction's last query."""
    at = {"thread_id": thread_id, "ns": ns}
    thread: QueryCall = "lock_thread", {"id": thread_id, "user_id": user_id}
    if checkpoint_id is None:
        asked = thread, ("select_newest_checkpoint", at), ("select_writes_of_newest", at)
    else:
        one_of = {**at, "checkpoint_id": checkpoint_id}
        asked = thread, ("select_checkpoint", {**at, "id": checkpoint_id}), ("select_writes_of", one_of)
    threads, rows, tasks = await tx.fetch_all(*asked, last=last)
    if not threads or not rows:
        return (_decode_locked(threads[0]) if threads else None), None, []
    return _decode_locked(threads[0]), _checkpoint(rows[0]), [WriteRow(**row) for row in tasks]


async def writes_of_tasks(
    tx: Transaction, thread_id: str, ns: str, checkpoint_id: str, task_ids: Sequence[str]
) -> dict[str, WriteRow]:
    """Return the rows of some of a checkpoint's tasks, by task."""
    at = {"thread_id": thread_id, "ns": ns, "checkpoint_id": checkpoint_id}
    asked: list[QueryCall] = [("select_writes_of_task", {**at, "task_id": task_id}) for task_id in task_ids]
    found = await tx.fetch_all(*asked) if asked else []
    return {row["task_id"]: WriteRow(**row) for rows in found for row in rows}


@dataclass(frozen=True, slots=True)
class CheckpointFilter:
    """A filter for a user's checkpoints: ids below `before`; None matches any."""

    user_id: str
    thread_id: str | None = None
    ns: str | None = None
    before: str = LAST


@dataclass(frozen=True, slots=True)
class MetadataSearch:
    """A search for metadata, which finds all that is meant and perhaps more: each contains one of the JSON objects in
    `contained`, and `text` as a part of its JSON. `usual`: or it is LangGraph's usual metadata, of any step."""

    contained: Sequence[str]
    text: str
    usual: bool


@dataclass(frozen=True, slots=True)
class FoundMetadata:
    """A checkpoint that a search of metadata found."""

    id: str
    ns: str
    thread_id: str
    metadata: str

    @property
    def about(self) -> dict[str, Any]:
        """Parse the metadata. Raises `RowDamaged`."""
        return _about(self)


async def with_metadata(tx: Transaction, where: CheckpointFilter, search: MetadataSearch) -> list[FoundMetadata]:
    """Return the checkpoints of a filter that a search of metadata finds, newest ids first."""
    at = {"user_id": where.user_id, "thread_id": where.thread_id, "ns": where.ns, "before": where.before}
    rows: list[Row] = []
    for contained in search.contained:
        rows += await tx.fetch("select_checkpoints_with_metadata", **at, contained=contained, part=search.text)
    if search.usual:
        rows += await tx.fetch("select_usual_checkpoints", **at)
    found = {(row["id"], row["ns"], row["thread_id"]): _full(row["metadata"]) for row in rows}
    return [FoundMetadata(*key, found[key]) for key in sorted(found, reverse=True)]


async def page(
    tx: Transaction, where: CheckpointFilter, after: CheckpointRow | None, *, limit: int
) -> list[CheckpointRow]:
    """Return a page of checkpoints after `after`, newest ids first; of every namespace if no thread is given."""
    values: dict[str, Any] = {"user_id": where.user_id, "before": where.before, "limit": limit}
    if where.thread_id is not None and where.ns is not None:
        before = where.before if after is None else after.id
        values |= {"thread_id": where.thread_id, "ns": where.ns, "before": before}
        rows = await tx.fetch("select_checkpoints_of_ns", **values)
        return [_checkpoint(row) for row in rows]
    values |= {"after_id": after.id if after else LAST, "after_ns": after.ns if after else LAST}
    if where.thread_id is not None:
        rows = await tx.fetch("select_checkpoints_of_thread", **values, thread_id=where.thread_id)
    else:
        rows = await tx.fetch("select_checkpoints_of_user", **values, after_thread=after.thread_id if after else LAST)
    return [_checkpoint(row) for row in rows]


async def before(tx: Transaction, thread_id: str, ns: str, n: int | None, *, limit: int) -> list[CheckpointRow]:
    """Return a namespace's checkpoints stored before number `n` (None: all), newest first."""
    at = {"thread_id": thread_id, "ns": ns, "n": _ENDLESS if n is None else n}
    return [_checkpoint(row) for row in await tx.fetch("select_checkpoints_down", **at, limit=limit)]


async def namespaces(tx: Transaction, thread_id: str) -> list[str]:
    """Return a thread's namespaces, the root first."""
    return [row["ns"] for row in await tx.fetch("select_namespaces", thread_id=thread_id)]


async def threads_of_run(tx: Transaction, run_id: str, *, user_id: str) -> list[str]:
    """Return a user's threads with a checkpoint whose metadata contains the run's id as a substring."""
    rows = await tx.fetch("select_threads_of_run", user_id=user_id, pattern=_holding(run_id))
    return [row["thread_id"] for row in rows]


async def of_run(tx: Transaction, thread_id: str, run_id: str) -> list[CheckpointRow]:
    """Return a thread's checkpoints whose metadata names this run. Raises `RowDamaged` for unreadable metadata."""
    rows = await tx.fetch("select_checkpoints_of_run", thread_id=thread_id, pattern=_holding(run_id))
    found = [_checkpoint(row) for row in rows]
    return [row for row in found if row.about.get("run_id") == run_id]


def _holding(text: str) -> str:
    """Return the LIKE pattern for JSON that contains a text."""
    return like_pattern(json.dumps(text, ensure_ascii=False))


async def delete(tx: Transaction, rows: Iterable[CheckpointRow]) -> None:
    """Delete checkpoints and their tasks' writes, but not their large values, which others may share."""
    for row in rows:
        await tx.run("delete_checkpoint", thread_id=row.thread_id, ns=row.ns, n=row.n, id=row.id)
        await delete_writes(tx, row.thread_id, row.ns, row.id)


async def tidy(tx: Transaction, thread_id: str, ns: str, wanted: Set[tuple[int, str]]) -> None:
    """Delete large values that are not `wanted`, by number and channel, and clear references to deleted parents."""
    at = {"thread_id": thread_id, "ns": ns}
    there = {(row["n"], row["channel"]) for row in await tx.fetch("select_blob_names", **at)}
    await tx.run_all("delete_blob", [{**at, "n": n, "channel": channel} for n, channel in sorted(there - wanted)])
    await tx.run("forget_lost_parents", **at)


async def delete_namespace(tx: Transaction, thread_id: str, ns: str) -> None:
    """Delete a namespace's checkpoints and all that belongs to them."""
    for query in ("delete_ns_checkpoints", "delete_ns_writes", "delete_ns_blobs"):
        await tx.run(query, thread_id=thread_id, ns=ns)


async def messages(tx: Transaction, thread_id: str, runs: Sequence[tuple[int, int]]) -> list[Row]:
    """Return the message columns of the entries in these seq ranges, in order."""
    if len(runs) == 1:
        [(first, last)] = runs
        return await tx.fetch("select_messages_between", thread_id=thread_id, first=first, last=last)
    rows = await tx.fetch("select_messages", thread_id=thread_id, runs=json.dumps(runs))
    return sorted(rows, key=_seq)


async def messages_of_branch(tx: Transaction, thread_id: str, tip: int, *, limit: int) -> list[Row]:
    """Return the message columns of the last `limit` entries of the branch that ends in `tip`, oldest first, each in
    its newest version."""
    found: list[Row] = []
    versions: dict[int, Row] = {}
    wanted = tip
    while wanted and len(found) < limit:
        left = limit - len(found)
        rows = await tx.fetch("select_messages_down", thread_id=thread_id, seq=wanted, limit=left)
        before = wanted
        for row in rows:
            if row["seq"] == wanted:
                wanted = row["parent_seq"]
                if row["replaces"] is None:
                    found.append(row)
                else:
                    versions.setdefault(row["replaces"], row)
        if wanted == before:
            break  # what comes before was deleted by retention
    places = {row["seq"] for row in found}
    # Those whose place was deleted by retention come before all that was not.
    early = [versions[place] for place in sorted(versions) if place not in places and len(found) < limit]
    return [*early, *(versions.get(row["seq"], row) for row in found[::-1])]


def _seq(row: Row) -> int:
    seq: int = row["seq"]
    return seq


async def copy_thread(tx: Transaction, source: str, target: str, *, user_id: str) -> None:
    """Copy entries and checkpoints to a new thread. Raises `ThreadNotFound`, or `ThreadTaken` if `target` exists."""
    if await lock(tx, source, user_id=user_id) is None:
        raise ThreadNotFound(thread=source)
    if not await tx.run("copy_thread", source=source, target=target, user_id=user_id, now=log.now()):
        raise ThreadTaken(thread=target)
    for query in ("copy_entries", "copy_message_metadata", "copy_checkpoints", "copy_blobs", "copy_writes"):
        await tx.run(query, source=source, target=target)
