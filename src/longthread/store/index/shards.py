"""Volumes: the index of many threads of a user, put together, so that a question to all of them reads few values.

The database itself keeps note of the threads that no volume has as they are now, the *loose* ones; and when a thread is
deleted, or the beginning of it, the volume goes that it is in, and its other threads are loose.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass

from longthread.store import incarnation
from longthread.store.decoding import decoder
from longthread.store.driver import Row, Transaction
from longthread.store.index.recall import Scope, Searched, searched


@dataclass(frozen=True, slots=True)
class Volume:
    """A volume: its terms' form, and how many entries and words it has."""

    id: str
    form: int
    entries: int
    words: int


@dataclass(frozen=True, slots=True)
class Members:
    """The threads of a volume, in the order of their places: each with its agent, the place of its entry `firsts`, its
    last entry, and how many entries and words it has that can be found. Between two are places that no entry has."""

    threads: Sequence[str]
    agents: Sequence[str]
    starts: Sequence[int]
    firsts: Sequence[int]
    lasts: Sequence[int]
    entries: Sequence[int]
    words: Sequence[int]


@dataclass(frozen=True, slots=True)
class Loose:
    """A thread that is read by its own index, and the volume that it is in as it was."""

    thread: Searched
    volume: str | None


@dataclass(frozen=True, slots=True)
class Bindable:
    """A thread as it was read to be put into a volume; `volume`: the one that it is in already."""

    thread_id: str
    agent_id: str
    first_seq: int
    entry_count: int
    born: str
    volume: str | None


async def find_volumes(tx: Transaction, user_id: str) -> list[Volume]:
    """A user's volumes."""
    rows = await tx.fetch("select_volumes", user_id=user_id)
    return [Volume(row["id"], int(row["form"]), int(row["entries"]), int(row["words"])) for row in rows]


async def members(tx: Transaction, user_id: str, volumes: Sequence[str]) -> dict[str, Members]:
    """The threads of volumes, by volume."""
    rows = await tx.fetch("select_volume_members", user_id=user_id, volumes=json.dumps(volumes))
    return {row["id"]: Members(**json.loads(row["members"])) for row in rows}


async def postings(tx: Transaction, user_id: str, buckets: Sequence[int]) -> list[tuple[str, int, bytes]]:
    """The buckets of a user's volumes, as (volume, bucket, data), in this order."""
    rows = await tx.fetch("select_volume_postings", user_id=user_id, buckets=json.dumps(list(buckets)))
    return [(row["volume"], int(row["bucket"]), row["data"]) for row in rows]


async def loose(tx: Transaction, scope: Scope, *, form: int, also: str | None = None) -> list[Loose]:
    """The loose threads in scope, and the thread `also`, in the order of their ids."""
    asked = {"user_id": scope.user_id, "agent_id": scope.agent_id, "also": also}
    rows = await tx.fetch("select_loose_threads", **asked)
    return [Loose(searched({**row, "wanted": form}), row["volume"]) for row in rows]


async def loose_count(tx: Transaction, user_id: str, most: int) -> int:
    """How many of a user's loose threads have up to `most` entries."""
    [row] = await tx.fetch("count_loose_threads", user_id=user_id, most=most)
    return int(row["loose"])


async def users_with_loose(tx: Transaction) -> list[str]:
    """The users who have loose threads."""
    return [row["user_id"] for row in await tx.fetch("select_users_with_loose")]


async def lock(tx: Transaction, threads: Sequence[str]) -> None:
    """Lock threads, always in the same order."""
    await tx.fetch("lock_threads", threads=json.dumps(threads))


async def bindable(tx: Transaction, user_id: str, threads: Sequence[str]) -> list[Bindable]:
    """Threads of a user as they are now, in the order of their ids."""
    rows = await tx.fetch("select_bindable_threads", user_id=user_id, threads=json.dumps(threads))
    return [_bindable(row) for row in rows]


@decoder
def _bindable(row: Row) -> Bindable:
    first, count = int(row["first_seq"]), int(row["entry_count"])
    return Bindable(row["id"], row["agent_id"], first, count, incarnation.born(row["incarnation"]), row["volume"])


async def write_volume(
    tx: Transaction, user_id: str, volume: Volume, members: Members, buckets: Mapping[int, bytes]
) -> None:
    """Write a volume; its threads are no longer loose. For who has locked them in this transaction."""
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
    """Delete volumes; their threads are loose."""
    await tx.run_all("delete_volume", [{"user_id": user_id, "id": each} for each in sorted(volumes)])
