"""Checkpoints that may go, and the rows that go with them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from longthread.store import incarnation
from longthread.store.driver import Transaction, one


@dataclass(frozen=True, slots=True)
class RowDeletion:
    """Rows to delete: the name of a `DELETE FROM` query, and its values besides the thread's id."""

    query: str
    values: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Staying:
    """The checkpoints of a namespace that stay: those from number `first` on, up to the newest."""

    first: int
    newest: int
    newest_id: str


@dataclass(frozen=True, slots=True)
class Surplus:
    """Checkpoints that may go: those before the ones that stay in their namespace, all of namespaces that are `over`,
    and large values that no other has, by namespace, number and channel."""

    staying: Mapping[str, Staying]
    over: tuple[str, ...]
    blobs: tuple[tuple[str, int, str], ...]


class Checkpoints(Protocol):
    """Knows what checkpoints are made of."""

    async def surplus(self, tx: Transaction, thread_id: str, *, keep: int | None, before: str | None) -> Surplus:
        """The checkpoints of a thread that may go, when the newest `keep` of each namespace (None: all) and those that
        were not made before a moment are to stay, with what they need."""
        ...

    async def first_entry(self, tx: Transaction, thread_id: str, staying: Mapping[str, Staying]) -> int | None:
        """The first entry that checkpoints which stay refer to."""
        ...


Deletions = tuple[RowDeletion, ...]


async def deletions_of(
    tx: Transaction, thread_id: str, surplus: Surplus, *, few: int | None = None
) -> tuple[Deletions, Deletions, bool]:
    """The rows that go with a surplus, what is to be done when they are gone, and whether there is more then: of each
    namespace no more than `few` checkpoints go at once. Where all of one go, their numbers are given out again."""
    rows = [
        RowDeletion(query, {"ns": ns})
        for ns in surplus.over
        for query in ("prune_ns", "prune_ns_writes", "prune_ns_blobs")
    ]
    after: list[RowDeletion] = []
    if surplus.over and (now := await incarnation.find(tx, thread_id)) is not None:
        after.append(RowDeletion("renew_thread", {"incarnation": incarnation.renewed(now)}))
    more = False
    for ns, kept in surplus.staying.items():
        if await _behind(tx, thread_id, ns, kept.first, 0) is None:
            continue
        stop = None if few is None else await _behind(tx, thread_id, ns, kept.first, few)
        more = more or stop is not None
        n = kept.first if stop is None else stop
        rows.append(RowDeletion("prune_writes", {"ns": ns, "n": n, "newest": kept.newest_id}))
        rows.append(RowDeletion("prune_checkpoints", {"ns": ns, "n": n}))
        after.append(RowDeletion("forget_lost_parents", {"ns": ns}))
    if not more:  # else others still have them
        rows += [RowDeletion("prune_blob", {"ns": ns, "n": n, "channel": channel}) for ns, n, channel in surplus.blobs]
    return tuple(rows), tuple(after), more


async def delete_surplus(tx: Transaction, thread_id: str, surplus: Surplus) -> None:
    """Delete a surplus."""
    rows, after, _ = await deletions_of(tx, thread_id, surplus)
    for deletion in (*rows, *after):
        await tx.run(deletion.query, thread_id=thread_id, **deletion.values)


async def _behind(tx: Transaction, thread_id: str, ns: str, n: int, few: int) -> int | None:
    """The checkpoint behind the namespace's first `few`, if it is before number `n`."""
    row = await one(tx, "select_checkpoint_after", thread_id=thread_id, ns=ns, n=n, few=few)
    return int(row["n"]) if row else None
