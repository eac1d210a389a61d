"""The index of a thread's entries, in segments with buckets, and volumes, which merge the index of many of a user's
threads, so that a search over all of them reads few values.

The database tracks *loose* threads, which no volume covers as they are now. Deleting a thread, or its beginning,
deletes its volume and makes the other threads loose.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any

from longthread.model.content import extra_text
from longthread.model.entry import ToolCall
from longthread.model.thread import Scope
from longthread.store import incarnation
from longthread.store.driver import QueryCall, Row, Transaction, one
from longthread.store.rows import decoder, of_thread


@dataclass(frozen=True, slots=True)
class Searched:
    """A thread in scope: its first and last entry, and its indexed entries and words."""

    thread_id: str
    tip: int
    first_seq: int
    entry_count: int
    entries: int
    words: int
    behind: bool
    """Whether some entries are not indexed in this form."""


@dataclass(frozen=True, slots=True)
class Extent:
    """A segment: its range of entries, the number that can be found, and the form of their terms."""

    first: int
    last: int
    form: int
    entries: int


@dataclass(frozen=True, slots=True)
class IndexState:
    """What is indexed of a thread: of its entries `first` to `last`, those in the segments' extents. A thread that is
    deleted has no `birth_id`, and no entries."""

    birth_id: str | None
    first: int
    last: int
    extents: Sequence[Extent]


@dataclass(frozen=True, slots=True)
class Text:
    """The searchable parts of an entry; `extra_text` is outside of its text and calls."""

    seq: int
    role: str
    name: str | None
    text: str
    tool_calls: Sequence[ToolCall]
    metadata: Mapping[str, Any]
    created_at: datetime
    extra_text: str = ""


LARGE = 65_536
"""Bytes above which a payload is read by itself."""


async def threads_in(tx: Transaction, scope: Scope, *, form: int, last: bool = False) -> list[Searched]:
    """Return the user's threads in scope, ordered by id. `last`: nothing follows in this transaction."""
    [rows] = await tx.fetch_all(threads_asked(scope), last=last)
    return [decode_searched({**row, "wanted": form}) for row in rows]


def threads_asked(scope: Scope) -> QueryCall:
    """Return the query of `threads_in`."""
    of_user = {"user_id": scope.user_id, "agent_id": scope.agent_id}
    if scope.thread_id is not None:
        return "select_recall_thread", {"thread_id": scope.thread_id, **of_user}
    return "select_recall_threads", of_user


@decoder
def decode_searched(row: Row) -> Searched:
    """Decode a thread from a row with its index state and the `wanted` form."""
    there = int(row["entry_count"]) - int(row["first_seq"]) + 1
    return Searched(
        thread_id=row["thread_id"],
        tip=int(row["tip"]),
        first_seq=int(row["first_seq"]),
        entry_count=int(row["entry_count"]),
        entries=int(row["entries"]),
        words=int(row["words"]),
        behind=there > 0 and (int(row["covered"]) < there or int(row["form"]) != row["wanted"]),
    )


async def postings(tx: Transaction, scope: Scope, buckets: Sequence[int]) -> list[tuple[str, int, int, bytes]]:
    """Return the buckets of the thread's segments, as (thread, first entry, bucket, data), in this order."""
    query, values = postings_asked(scope, buckets)
    return [_bucket(row) for row in await tx.fetch(query, **values)]


def postings_asked(scope: Scope, buckets: Sequence[int]) -> QueryCall:
    """Return the query of `postings`."""
    values = {"user_id": scope.user_id, "thread_id": scope.thread_id, "buckets": json.dumps(list(buckets))}
    return "select_recall_postings", values


async def postings_of(
    tx: Transaction, user_id: str, threads: Sequence[str], buckets: Sequence[int]
) -> list[tuple[str, int, int, bytes]]:
    """Return the buckets of a user's threads, as `postings` does."""
    if not threads:
        return []
    asked = {"user_id": user_id, "threads": json.dumps(threads), "buckets": json.dumps(list(buckets))}
    return [_bucket(row) for row in await tx.fetch("select_postings_of_threads", **asked)]


async def all_postings(tx: Transaction, user_id: str, threads: Sequence[str]) -> list[tuple[str, int, bytes]]:
    """Return all buckets of a user's threads, as (thread, first entry of the segment, data), in this order."""
    rows = await tx.fetch("select_all_postings", user_id=user_id, threads=json.dumps(threads))
    return [(row["thread_id"], int(row["segment"]), row["data"]) for row in rows]


async def tips(tx: Transaction, user_id: str, threads: Sequence[str]) -> dict[str, tuple[int, int]]:
    """Return the (tip, last entry) of a user's threads."""
    rows = await tx.fetch("select_tips", user_id=user_id, threads=json.dumps(threads))
    return dict(map(_tip, rows))


@decoder
def _tip(row: Row) -> tuple[str, tuple[int, int]]:
    return row["id"], (int(row["tip"]), int(row["entry_count"]))


def _bucket(row: Row) -> tuple[str, int, int, bytes]:
    return row["thread_id"], int(row["segment"]), int(row["bucket"]), row["data"]


async def extents(tx: Transaction, thread_id: str) -> list[Extent]:
    """Return a thread's segments in entry order."""
    rows = await tx.fetch("select_recall_segments", thread_id=thread_id)
    return [_extent(row) for row in rows]


@decoder
def _extent(row: Row) -> Extent:
    return Extent(int(row["first_seq"]), int(row["last_seq"]), int(row["form"]), int(row["entries"]))


async def state(tx: Transaction, thread_id: str, *, lock: bool = False) -> IndexState:
    """Return what is indexed of a thread, in one round trip. `lock` first locks the thread; without it, nothing may
    follow in the transaction."""
    asked: list[QueryCall] = [("select_position", {"id": thread_id})] if lock else []
    asked += [
        ("select_incarnation", {"thread_id": thread_id}),
        ("select_retention", {"id": thread_id}),
        ("select_recall_segments", {"thread_id": thread_id}),
    ]
    *_, found, range_, segments = await tx.fetch_all(*asked, last=not lock)
    first, last = _first_seq(range_[0] if range_ else None, thread_id)
    birth = incarnation.birth_id(str(found[0]["incarnation"])) if found else None
    return IndexState(birth, first, last, [_extent(row) for row in segments])


async def segments_between(tx: Transaction, thread_id: str, first: int, last: int) -> list[tuple[Extent, int, bytes]]:
    """Return the segments that begin at entries `first` to `last`, in order, with words and times."""
    rows = await tx.fetch("select_segments_between", thread_id=thread_id, first=first, last=last)
    return [_segment(row) for row in rows]


@decoder
def _segment(row: Row) -> tuple[Extent, int, bytes]:
    return _extent(row), int(row["words"]), bytes(row["times"])


async def buckets_between(
    tx: Transaction, thread_id: str, first: int, last: int, *, below: int
) -> dict[int, list[bytes]]:
    """Return the buckets of these segments by first entry; only bucket numbers under `below`."""
    found: dict[int, list[bytes]] = {}
    asked = {"thread_id": thread_id, "first": first, "last": last, "below": below}
    for row in await tx.fetch("select_buckets_between", **asked):
        found.setdefault(int(row["segment"]), []).append(row["data"])
    return found


async def times(tx: Transaction, scope: Scope) -> list[tuple[str, int, bytes]]:
    """Return each segment's entry times, as (thread, first entry, times), in this order."""
    asked = {"user_id": scope.user_id, "thread_id": scope.thread_id, "agent_id": scope.agent_id}
    rows = await tx.fetch("select_recall_times", **asked)
    return [(row["thread_id"], int(row["first_seq"]), row["times"]) for row in rows]


async def texts(tx: Transaction, thread_id: str, first: int, last: int) -> list[Text]:
    """Return the searchable parts of entries `first` to `last`."""
    asked = {"thread_id": thread_id, "first": first, "last": last, "most": LARGE}
    return await _texts(tx, thread_id, await tx.fetch("select_recall_texts", **asked))


async def texts_at(tx: Transaction, thread_id: str, seqs: Sequence[int]) -> list[Text]:
    """Return the searchable parts of these entries."""
    asked = {"thread_id": thread_id, "seqs": json.dumps(seqs), "most": LARGE}
    return await _texts(tx, thread_id, await tx.fetch("select_recall_texts_at", **asked))


async def _texts(tx: Transaction, thread_id: str, rows: Sequence[Row]) -> list[Text]:
    found = []
    for row in rows:
        payload = row["payload"]
        if int(row["size"]) > LARGE:
            alone = await one(tx, "select_recall_payload", thread_id=thread_id, seq=row["seq"])
            payload = alone["payload"] if alone else None
        found.append(_text({**row, "payload": payload}))
    return found


@decoder
def _text(row: Row) -> Text:
    return Text(
        seq=int(row["seq"]),
        role=row["role"],
        name=row["name"],
        text=row["text"],
        tool_calls=[ToolCall.from_json(call) for call in json.loads(row["tool_calls"] or "[]")],
        metadata=json.loads(row["metadata"]) if row["metadata"] else {},
        created_at=datetime.fromisoformat(row["created_at"]),
        extra_text=extra_text(row["payload"], row["text"]),
    )


async def write_segment(
    tx: Transaction,
    thread_id: str,
    extent: Extent,
    *,
    words: int,
    times: bytes,
    buckets: Mapping[int, bytes],
) -> None:
    """Write a segment. The caller has locked the thread in this transaction."""
    await tx.later(
        "insert_recall_segment",
        thread_id=thread_id,
        first=extent.first,
        last=extent.last,
        form=extent.form,
        entries=extent.entries,
        words=words,
        times=times,
    )
    rows = [
        {"thread_id": thread_id, "bucket": bucket, "segment": extent.first, "data": data}
        for bucket, data in buckets.items()
    ]
    await tx.run_all("insert_recall_postings", rows)


async def delete_segments(tx: Transaction, thread_id: str, first: int, last: int, *, below: int = 2**31) -> None:
    """Delete the segments that begin at entries `first` to `last`, which have no buckets from `below` on."""
    await tx.later("delete_recall_segments", thread_id=thread_id, first=first, last=last)
    await tx.later("delete_recall_postings", thread_id=thread_id, first=first, last=last, below=below)


async def first_seq(tx: Transaction, thread_id: str) -> tuple[int, int]:
    """Return the first entry that retention left, and the last entry; (1, 0) for a deleted thread."""
    return _first_seq(await one(tx, "select_retention", id=thread_id), thread_id)


def _first_seq(row: Row | None, thread_id: str) -> tuple[int, int]:
    with of_thread(thread_id):
        return (int(row["first_seq"]), int(row["entry_count"])) if row else (1, 0)


async def birth_id(tx: Transaction, thread_id: str) -> str | None:
    """Return a thread's birth id; None if there is no such thread. Write derived data only if it is unchanged under the
    lock: otherwise a deleted thread's data would return."""
    found = await incarnation.find(tx, thread_id)
    return incarnation.birth_id(found) if found is not None else None


@dataclass(frozen=True, slots=True)
class Volume:
    """A volume: the form of its terms, and its numbers of entries and words."""

    id: str
    form: int
    entries: int
    words: int


@dataclass(frozen=True, slots=True)
class Members:
    """A volume's threads in order: agents, positions of the first entries (`firsts`), last entries, and counts of
    searchable entries and words. Between two threads are unused positions."""

    threads: Sequence[str]
    agents: Sequence[str]
    starts: Sequence[int]
    firsts: Sequence[int]
    lasts: Sequence[int]
    entries: Sequence[int]
    words: Sequence[int]


@dataclass(frozen=True, slots=True)
class Loose:
    """A thread that is read by its own index, and its outdated volume, if any."""

    thread: Searched
    volume: str | None


@dataclass(frozen=True, slots=True)
class Bindable:
    """A thread's state for a volume; `volume` is its current one."""

    thread_id: str
    agent_id: str
    first_seq: int
    entry_count: int
    birth_id: str
    volume: str | None


async def find_volumes(tx: Transaction, user_id: str) -> list[Volume]:
    """Return a user's volumes."""
    rows = await tx.fetch("select_volumes", user_id=user_id)
    return [Volume(row["id"], int(row["form"]), int(row["entries"]), int(row["words"])) for row in rows]


async def members(tx: Transaction, user_id: str, volumes: Sequence[str]) -> dict[str, Members]:
    """Return the members of volumes, by volume."""
    rows = await tx.fetch("select_volume_members", user_id=user_id, volumes=json.dumps(volumes))
    return {row["id"]: Members(**json.loads(row["members"])) for row in rows}


async def volume_postings(tx: Transaction, user_id: str, buckets: Sequence[int]) -> list[tuple[str, int, bytes]]:
    """Return the buckets of a user's volumes, as (volume, bucket, data), in this order."""
    rows = await tx.fetch("select_volume_postings", user_id=user_id, buckets=json.dumps(list(buckets)))
    return [(row["volume"], int(row["bucket"]), row["data"]) for row in rows]


async def loose(tx: Transaction, scope: Scope, *, form: int, also: str | None = None) -> list[Loose]:
    """Return the loose threads in scope and the thread `also`, ordered by id."""
    asked = {"user_id": scope.user_id, "agent_id": scope.agent_id, "also": also}
    rows = await tx.fetch("select_loose_threads", **asked)
    return [Loose(decode_searched({**row, "wanted": form}), row["volume"]) for row in rows]


async def loose_count(tx: Transaction, user_id: str, most: int, *, last: bool = False) -> int:
    """Count a user's loose threads with up to `most` entries. `last`: nothing follows in this transaction."""
    [[row]] = await tx.fetch_all(("count_loose_threads", {"user_id": user_id, "most": most}), last=last)
    return int(row["loose"])


async def users_with_loose(tx: Transaction) -> list[str]:
    """Return the users who have loose threads."""
    return [row["user_id"] for row in await tx.fetch("select_users_with_loose")]


async def lock_volumes(tx: Transaction, threads: Sequence[str]) -> None:
    """Lock threads, always in the same order."""
    await tx.fetch("lock_threads", threads=json.dumps(threads))


async def bindable(tx: Transaction, user_id: str, threads: Sequence[str]) -> list[Bindable]:
    """Return a user's threads as they are now, ordered by id."""
    rows = await tx.fetch("select_bindable_threads", user_id=user_id, threads=json.dumps(threads))
    return [_bindable(row) for row in rows]


@decoder
def _bindable(row: Row) -> Bindable:
    first, count = int(row["first_seq"]), int(row["entry_count"])
    return Bindable(row["id"], row["agent_id"], first, count, incarnation.birth_id(row["incarnation"]), row["volume"])


async def write_volume(
    tx: Transaction, user_id: str, volume: Volume, members: Members, buckets: Mapping[int, bytes]
) -> None:
    """Write a volume; its threads are no longer loose. The caller has locked them in this transaction."""
    told = json.dumps(asdict(members), ensure_ascii=False, separators=(",", ":"))
    await tx.run(
        "insert_volume",
        user_id=user_id,
        id=volume.id,
        form=volume.form,
        entries=volume.entries,
        words=volume.words,
        members=told,
    )
    rows = [
        {"user_id": user_id, "bucket": bucket, "volume": volume.id, "data": data} for bucket, data in buckets.items()
    ]
    await tx.run_all("insert_volume_postings", rows)
    bound = [{"thread_id": thread_id, "user_id": user_id, "volume": volume.id} for thread_id in members.threads]
    await tx.run_all("insert_bound_thread", bound)
    await tx.run_all("delete_loose_thread", [{"thread_id": thread_id} for thread_id in members.threads])


async def delete_volumes(tx: Transaction, user_id: str, volumes: Sequence[str]) -> None:
    """Delete volumes; their threads become loose."""
    await tx.run_all("delete_volume", [{"user_id": user_id, "id": each} for each in sorted(volumes)])
