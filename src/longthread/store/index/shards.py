"""Volumes: the merged index of many of a user's threads, so that a search over all of them reads few values.

The database tracks *loose* threads, which no volume covers as they are now. Deleting a thread, or its beginning,
deletes its volume and makes the other threads loose.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass

from longthread.model.thread import Scope
from longthread.store import incarnation
from longthread.store.driver import Row, Transaction
from longthread.store.index.recall import Searched, searched
from longthread.store.rows import decoder


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


async def postings(tx: Transaction, user_id: str, buckets: Sequence[int]) -> list[tuple[str, int, bytes]]:
    """Return the buckets of a user's volumes, as (volume, bucket, data), in this order."""
    rows = await tx.fetch("select_volume_postings", user_id=user_id, buckets=json.dumps(list(buckets)))
    return [(row["volume"], int(row["bucket"]), row["data"]) for row in rows]


async def loose(tx: Transaction, scope: Scope, *, form: int, also: str | None = None) -> list[Loose]:
    """Return the loose threads in scope and the thread `also`, ordered by id."""
    asked = {"user_id": scope.user_id, "agent_id": scope.agent_id, "also": also}
    rows = await tx.fetch("select_loose_threads", **asked)
    return [Loose(searched({**row, "wanted": form}), row["volume"]) for row in rows]


async def loose_count(tx: Transaction, user_id: str, most: int, *, last: bool = False) -> int:
    """Count a user's loose threads with up to `most` entries. `last`: nothing follows in this transaction."""
    [[row]] = await tx.fetch_all(("count_loose_threads", {"user_id": user_id, "most": most}), last=last)
    return int(row["loose"])


async def users_with_loose(tx: Transaction) -> list[str]:
    """Return the users who have loose threads."""
    return [row["user_id"] for row in await tx.fetch("select_users_with_loose")]


async def lock(tx: Transaction, threads: Sequence[str]) -> None:
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
