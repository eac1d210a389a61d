"""Checkpoints that retention may delete, and their rows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from longthread.store import incarnation
from longthread.store.driver import Transaction, one


@dataclass(frozen=True, slots=True)
class RowDeletion:
    """Rows to delete: a `DELETE FROM` query's name, and its values besides the thread's id."""

    query: str
    values: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Staying:
    """A namespace's checkpoints that stay: from number `first` to the newest."""

    first: int
    newest: int
    newest_id: str


@dataclass(frozen=True, slots=True)
class Surplus:
    """Deletable checkpoints: those before `Staying` in a namespace, all of the namespaces `over`, and unshared large
    values by namespace, number and channel."""

    staying: Mapping[str, Staying]
    over: tuple[str, ...]
    blobs: tuple[tuple[str, int, str], ...]


class Checkpoints(Protocol):
    """The retention's interface to the checkpointer."""

    async def surplus(self, tx: Transaction, thread_id: str, *, keep: int | None, before: str | None) -> Surplus:
        """Return what may be deleted of a thread, if the newest `keep` of each namespace (None: all), those made since
        `before`, and what these need stay."""
        ...

    async def first_entry(self, tx: Transaction, thread_id: str, staying: Mapping[str, Staying]) -> int | None:
        """Return the first entry that the remaining checkpoints refer to."""
        ...


Deletions = tuple[RowDeletion, ...]


async def deletions_of(
    tx: Transaction, thread_id: str, surplus: Surplus, *, few: int | None = None
) -> tuple[Deletions, Deletions, bool]:
    """Return a surplus's row deletions, those to run after them, and whether more remain: `few` limits the checkpoints
    per namespace. An emptied namespace reuses its numbers."""
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
    rows, after, _ = await deletions_of(tx, thread_id, surplus)
    for deletion in (*rows, *after):
        await tx.run(deletion.query, thread_id=thread_id, **deletion.values)


async def _behind(tx: Transaction, thread_id: str, ns: str, n: int, few: int) -> int | None:
    """Return the checkpoint after the namespace's first `few`, if its number is below `n`."""
    row = await one(tx, "select_checkpoint_after", thread_id=thread_id, ns=ns, n=n, few=few)
    return int(row["n"]) if row else None
