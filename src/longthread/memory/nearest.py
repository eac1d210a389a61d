"""Finds the entries whose vectors are nearest to a question's: the same ones on every backend.

The signatures of all vectors in scope are compared first, and of the few that are left the numbers. The signatures stay
in memory, within bounds; each question sees by their stamps whether they are still those of the store.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable, Sequence
from functools import partial

import numpy as np

from longthread.memory.embedding import Vectors
from longthread.memory.shelf import Asked, Numbers, Ranges, Shelf, by_both, put_together
from longthread.store import vectors
from longthread.store.driver import Transaction
from longthread.store.recall import Scope, Searched
from longthread.store.signatures import Signatures
from longthread.store.vectors import BLOCK, Candidate, Head

MOST_KEPT = 256 * 2**20
"""Bytes of signatures that one process keeps."""
MOST_COMPARED = 250_000
"""Entries beyond which PostgreSQL's own index is asked. It is one for all users, and in small scopes finds little."""
LONG_LIST = 4096
"""Vectors that are nearest by their signs, which are then compared by both bits of each number."""
MORE = 150
"""How many more vectors are read whole than are wanted."""
_FEW_THREADS = 8


class Nearest:
    """Finds near entries of a store. Safe to share between tasks.

    Args:
        most_kept: bytes that stay in memory.
        unsigned: told the threads that have vectors without signatures, and the model.
    """

    def __init__(
        self, most_kept: int = MOST_KEPT, unsigned: Callable[[Sequence[str], str], None] | None = None
    ) -> None:
        self._most_kept = most_kept
        self._unsigned = unsigned
        self._kept: OrderedDict[tuple[Scope, str], Shelf] = OrderedDict()

    async def find(
        self,
        tx: Transaction,
        scope: Scope,
        model: str,
        vector: Vectors,
        count: int,
        threads: Sequence[Searched],
        ranges: Ranges | None = None,
    ) -> list[tuple[str, int, float]]:
        """The `count` entries in scope whose vectors are nearest to a vector of length 1: (thread, entry, cosine).

        The nearest first, of equals the one that comes first in its thread.

        Args:
            threads: those in scope.
            ranges: only these entries.
        """
        if ranges is None and sum(thread.entries for thread in threads) > MOST_COMPARED:
            found = await vectors.indexed(tx, scope, model, vector, count + MORE)
            if found is not None:
                return _ranked(found, vector, count)
        shelf = await self._shelf(tx, scope, model)
        places = short_list(shelf, vector, count, ranges)
        near = await vectors.at(tx, model, places)
        unsigned = await _without_signatures(tx, model, shelf.heads, threads)
        if unsigned and self._unsigned is not None:
            self._unsigned(sorted({row.thread_id for row in unsigned}), model)
        if ranges is not None:
            unsigned = [row for row in unsigned if _is_in(row.seq, ranges.get(row.thread_id, ()))]
        return _ranked([*near, *unsigned], vector, count)

    async def _shelf(self, tx: Transaction, scope: Scope, model: str) -> Shelf:
        heads = await vectors.heads(tx, scope, model)
        kept = self._kept.get((scope, model))
        if kept is None or kept.heads != heads:
            there = set(kept.heads) if kept else set()
            blocks = await _fetched(tx, scope, model, [head for head in heads if head not in there])
            kept = put_together(heads, blocks, kept)
            self._kept[scope, model] = kept
        self._kept.move_to_end((scope, model))
        while self._kept and sum(shelf.size for shelf in self._kept.values()) > self._most_kept:
            self._kept.popitem(last=False)
        return kept


async def _fetched(tx: Transaction, scope: Scope, model: str, missing: Sequence[Head]) -> dict[Head, Signatures]:
    firsts: dict[str, int] = {}
    for head in missing:
        firsts[head.thread_id] = min(head.block, firsts.get(head.thread_id, head.block))
    if len(firsts) > _FEW_THREADS:
        return await vectors.signatures(tx, scope, model, 0)
    found: dict[Head, Signatures] = {}
    for thread_id, first in firsts.items():
        found |= await vectors.signatures(tx, Scope(scope.user_id, thread_id), model, first)
    return found


def short_list(shelf: Shelf, vector: Vectors, count: int, ranges: Ranges | None) -> list[tuple[str, int]]:
    """The threads and numbers of the entries whose vectors are to be read, in order."""
    rows: Sequence[Numbers] = [slab.rows_in(ranges) for slab in shelf.slabs]
    if rows and sum(map(len, rows)) > count + MORE:
        asked = Asked.of(vector, shelf)
        rows = _best(rows, partial(_by_signs, shelf, asked), LONG_LIST)
        rows = _best(rows, partial(by_both, shelf.slabs, asked), count + MORE)
    return [place for slab, some in zip(shelf.slabs, rows, strict=True) for place in slab.places(some)]


def _by_signs(shelf: Shelf, asked: Asked, rows: Sequence[Numbers]) -> Vectors:
    return np.concatenate([slab.by_signs(asked, some) for slab, some in zip(shelf.slabs, rows, strict=True)])


def _best(rows: Sequence[Numbers], measure: Callable[[Sequence[Numbers]], Vectors], most: int) -> Sequence[Numbers]:
    """Those of the rows of each slab that are nearest by some measure, with all that equal the last of them, up to
    twice as many."""
    if sum(map(len, rows)) <= most:
        return rows
    near = measure(rows)
    limit = -np.partition(-near, most - 1)[most - 1]
    found, room, start = [], 2 * most, 0
    for some in rows:
        found.append(some[near[start : start + len(some)] >= limit][:room])
        start += len(some)
        room -= len(found[-1])
    return found


async def _without_signatures(
    tx: Transaction, model: str, heads: Iterable[Head], threads: Iterable[Searched]
) -> list[Candidate]:
    """The vectors of blocks whose signatures are not made yet, all of them."""
    there = {(head.thread_id, head.block) for head in heads}
    asked = [
        (thread.thread_id, block * BLOCK, block * BLOCK + BLOCK - 1)
        for thread in threads
        for block in range(thread.first_seq // BLOCK, thread.entry_count // BLOCK + 1)
        if thread.entry_count and (thread.thread_id, block) not in there
    ]
    return await vectors.between(tx, model, asked) if asked else []


def _is_in(seq: int, ranges: Iterable[tuple[int, int]]) -> bool:
    return any(first <= seq <= last for first, last in ranges)


def _ranked(found: Sequence[Candidate], vector: Vectors, count: int) -> list[tuple[str, int, float]]:
    if not found:
        return []
    # Not by `@`: for so few, its threads cost more than they save, and wait busily for the next product.
    similar = np.einsum("ij,j->i", np.array([row.vector for row in found]), vector)
    ranked = sorted(
        (-round(float(value), 5), row.thread_id, row.seq) for value, row in zip(similar, found, strict=True)
    )
    return [(thread_id, seq, -value) for value, thread_id, seq in ranked[:count]]
