"""Which checkpoints a listing finds."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.serde.base import SerializerProtocol

from longthread.langgraph.filters import MetadataFilter
from longthread.langgraph.message_codec import is_own
from longthread.langgraph.saver.parent_ids import named
from longthread.langgraph.saver.record import metadata_of
from longthread.store import checkpoints
from longthread.store.checkpoints import LAST, CheckpointFilter, CheckpointRow, FoundMetadata
from longthread.store.driver import Driver, Transaction

T = TypeVar("T")
ReadRows = Callable[[Transaction, Sequence[CheckpointRow]], Awaitable[T]]
_PAGE = 64
"""How many checkpoints are read at a time."""


@dataclass(frozen=True, slots=True)
class Listing:
    """What a listing asks for: checkpoints by place, the one of an id, by metadata, and how many at most."""

    where: CheckpointFilter
    checkpoint_id: str | None
    filter: MetadataFilter | None
    limit: int | None
    serde: SerializerProtocol

    @classmethod
    def of(
        cls,
        config: RunnableConfig | None,
        before: RunnableConfig | None,
        filter_: Mapping[str, Any] | None,
        *,
        user_id: str,
        limit: int | None,
        serde: SerializerProtocol,
    ) -> Listing:
        at = config["configurable"] if config else {}
        thread_id, last = at.get("thread_id"), named(before) if before else None
        thread_id = str(thread_id) if thread_id is not None else None
        where = CheckpointFilter(user_id, thread_id, at.get("checkpoint_ns"), last or LAST)
        wanted = MetadataFilter.of(filter_) if filter_ else None
        most = limit if limit is not None and limit >= 0 else None
        return cls(where, named(config) if config else None, wanted, most, serde)

    async def pages(self, store: Driver, read: ReadRows[list[T]]) -> AsyncIterator[list[T]]:
        """Yield what `read` makes of the checkpoints, newest ids first, page by page, each in a snapshot of its own."""
        # The store cannot search what an application's own serializer has packed.
        is_searched = self.filter is not None and not is_own(self.serde)
        rows = self._filtered(store, read, self.filter) if self.filter and is_searched else self._all(store, read)
        async for found in rows:
            yield found

    async def _all(self, store: Driver, read: ReadRows[list[T]]) -> AsyncIterator[list[T]]:
        after: CheckpointRow | None = None
        left = -1 if self.limit is None else self.limit
        size = _PAGE if left < 0 else min(left, _PAGE)
        while left:
            async with store.reading() as tx:
                rows = await self._page(tx, after, size)
                chosen = [row for row in rows if self._has(row) and self._is_wanted(row)]
                found = await read(tx, chosen[:left] if left > 0 else chosen)
            yield found
            left -= len(found) if left > 0 else 0
            if len(rows) < size:
                return
            after = rows[-1]
            size = _PAGE

    async def _filtered(
        self, store: Driver, read: ReadRows[list[T]], filter_: MetadataFilter
    ) -> AsyncIterator[list[T]]:
        async with store.reading() as tx:
            there = await checkpoints.with_metadata(tx, self.where, filter_.search)
        chosen = [each for each in there if self._has(each) and filter_.matches(each.about)][: self.limit]
        for at in range(0, len(chosen), _PAGE):
            part = chosen[at : at + _PAGE]
            async with store.reading() as tx:
                rows = [await checkpoints.find(tx, each.thread_id, each.ns, each.id) for each in part]
                found = await read(tx, [row for row in rows if row is not None])  # some may be gone by now
            yield found

    async def _page(self, tx: Transaction, after: CheckpointRow | None, size: int) -> list[CheckpointRow]:
        where, wanted = self.where, self.checkpoint_id
        if not wanted or where.thread_id is None or where.ns is None:
            return await checkpoints.page(tx, where, after, limit=size)
        known = await checkpoints.lock(tx, where.thread_id, user_id=where.user_id) is not None and after is None
        row = await checkpoints.find(tx, where.thread_id, where.ns, wanted) if known else None
        return [row] if row is not None and row.id < where.before else []

    def _is_wanted(self, row: CheckpointRow) -> bool:
        return self.filter is None or self.filter.matches(metadata_of(row, self.serde))

    def _has(self, row: CheckpointRow | FoundMetadata) -> bool:
        return (self.where.ns is None or row.ns == self.where.ns) and self.checkpoint_id in (None, "", row.id)
