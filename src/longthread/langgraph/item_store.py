"""LangGraph's store of items in a Longthread store: what an application knows across threads."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Coroutine, Generator, Iterable, Mapping
from contextlib import AbstractAsyncContextManager
from typing import Any, Literal

from langgraph.store.base import (
    NOT_PROVIDED,
    BaseStore,
    IndexConfig,
    Item,
    NotProvided,
    Op,
    Result,
    SearchItem,
    TTLConfig,
)

from longthread.errors import LongthreadError
from longthread.langgraph.backend import (
    Backend,
    BackendOpener,
    BackendUser,
    done,
    expect_backed,
    expect_store,
    opener,
    over_pool,
)
from longthread.langgraph.item_batch import Batches, expect_config, expect_minutes, expect_tuple
from longthread.langgraph.item_index import ItemIndex
from longthread.loop_bridge import Portal
from longthread.store.driver import Driver

SWEEP_MINUTES = 5.0
"""How often expired items are deleted when that is not configured."""

_logger = logging.getLogger(__name__)


class SweptCount(int):
    """How many items were deleted, which LangGraph's asynchronous stores let one await."""

    def __await__(self) -> Generator[Any, None, int]:
        yield from ()
        return int(self)


class LongthreadStore(BaseStore):
    """LangGraph's store of items over a Longthread store, for synchronous and asynchronous callers.

    ```
    with LongthreadStore.from_conn_string("conversations.db") as store:
        store.put(("users", "ada"), "food", {"likes": "noodles"})
        store.search(("users",), query="What does Ada like?")
    ```

    With an `index` as LangGraph defines it, a search with a `query` goes by meaning; without one, and while its
    embedder does not work, by words. It may be called from any thread and any event loop, as `LongthreadSaver`. Items
    of other users than `user_id` are as if they were not there.
    """

    supports_ttl = True

    def __init__(
        self, store: Driver, *, user_id: str = "default", index: IndexConfig | None = None, ttl: TTLConfig | None = None
    ) -> None:
        """Use a store that is already open on the running event loop; InvalidInput if it is no store."""
        expect_store(store, "LongthreadStore")
        self._begin(Backend(store, Portal(), user_id), index, ttl)

    @classmethod
    def of(
        cls, saver: BackendUser, *, index: IndexConfig | None = None, ttl: TTLConfig | None = None
    ) -> LongthreadStore:
        """Create a store of items in a saver's database, for the same user, open as long as the saver is."""
        expect_backed(saver, "LongthreadStore.of")
        made = cls.__new__(cls)
        made._begin(saver.backing, index, ttl)
        return made

    @classmethod
    def from_conn_string(
        cls,
        address: str,
        *,
        user_id: str = "default",
        index: IndexConfig | None = None,
        ttl: TTLConfig | None = None,
        pool_size: int | None = None,
    ) -> BackendOpener[LongthreadStore]:
        """Open the store at a file path, at a `postgresql://` URL, or the word `embedded`, for `with` or `async with`.

        It has at most `pool_size` connections to PostgreSQL (None: 16).

        Raises, when the block begins:
            StoreUnavailable: it cannot be opened; the message says why.
            InvalidInput: the index has no embedder that can be used, or no dimensions; or the pool is too small.
        """
        make = lambda store: cls(store, user_id=user_id, index=index, ttl=ttl)  # noqa: E731
        return opener(address, make, name="longthread-store", pool_size=pool_size)

    @classmethod
    def from_pool(
        cls, pool: Any, *, user_id: str = "default", index: IndexConfig | None = None, ttl: TTLConfig | None = None
    ) -> AbstractAsyncContextManager[LongthreadStore]:
        """Use connections of an open `psycopg_pool.AsyncConnectionPool` of your own, as `LongthreadSaver.from_pool`."""
        return over_pool(pool, lambda store: cls(store, user_id=user_id, index=index, ttl=ttl))

    def _begin(self, backing: Backend, index: IndexConfig | None, ttl: TTLConfig | None) -> None:
        expect_config(index, "index")
        expect_config(ttl, "ttl")
        for name in ("default_ttl", "sweep_interval_minutes"):
            expect_minutes((ttl or {}).get(name), name)
        self.backing = backing
        self.index_config = index
        self.ttl_config = ttl
        self._batches = Batches(backing, ItemIndex(index), omit_expired=bool((ttl or {}).get("omit_expired")))
        self._sweeping: object | None = None

    def setup(self) -> Awaitable[None]:
        """Do nothing: opening a store migrates it. May be awaited or called plainly; SaverClosed if it is closed."""
        self.backing.home.require_open()
        return done()

    def put(
        self,
        namespace: tuple[str, ...],
        key: str,
        value: Mapping[str, Any],
        index: Literal[False] | list[str] | None = None,
        *,
        ttl: float | NotProvided | None = NOT_PROVIDED,
    ) -> None:
        expect_tuple(namespace)
        super().put(namespace, key, value, index, ttl=ttl)

    async def aput(
        self,
        namespace: tuple[str, ...],
        key: str,
        value: Mapping[str, Any],
        index: Literal[False] | list[str] | None = None,
        *,
        ttl: float | NotProvided | None = NOT_PROVIDED,
    ) -> None:
        expect_tuple(namespace)
        await super().aput(namespace, key, value, index, ttl=ttl)

    def get(self, namespace: tuple[str, ...], key: str, *, refresh_ttl: bool | None = None) -> Item | None:
        expect_tuple(namespace)
        return super().get(namespace, key, refresh_ttl=refresh_ttl)

    async def aget(self, namespace: tuple[str, ...], key: str, *, refresh_ttl: bool | None = None) -> Item | None:
        expect_tuple(namespace)
        return await super().aget(namespace, key, refresh_ttl=refresh_ttl)

    def search(self, namespace_prefix: tuple[str, ...], /, **asked: Any) -> list[SearchItem]:
        expect_tuple(namespace_prefix)
        return super().search(namespace_prefix, **asked)

    async def asearch(self, namespace_prefix: tuple[str, ...], /, **asked: Any) -> list[SearchItem]:
        expect_tuple(namespace_prefix)
        return await super().asearch(namespace_prefix, **asked)

    def delete(self, namespace: tuple[str, ...], key: str) -> None:
        expect_tuple(namespace)
        super().delete(namespace, key)

    async def adelete(self, namespace: tuple[str, ...], key: str) -> None:
        expect_tuple(namespace)
        await super().adelete(namespace, key)

    def batch(self, ops: Iterable[Op]) -> list[Result]:
        return self.backing.home.call("batch", self._batches.run, list(ops))

    async def abatch(self, ops: Iterable[Op]) -> list[Result]:
        return await self.backing.home.run(self._batches.run, list(ops))

    def sweep_ttl(self) -> SweptCount | Coroutine[Any, Any, int]:
        """Delete expired items; return their number. It may be awaited; on the store's own event loop it must be."""
        if self.backing.home.here:
            return self.asweep_ttl()
        return SweptCount(self.backing.home.call("sweep_ttl", self._batches.sweep))

    async def asweep_ttl(self) -> int:
        """Delete expired items; return their number."""
        return await self.backing.home.run(self._batches.sweep)

    def start_ttl_sweeper(self, sweep_interval_minutes: float | None = None) -> Awaitable[None]:
        """Delete expired items periodically in the background, until this is stopped or the store is closed."""
        configured = (self.ttl_config or {}).get("sweep_interval_minutes")
        expect_minutes(sweep_interval_minutes, "sweep_interval_minutes")
        minutes = float(sweep_interval_minutes or configured or SWEEP_MINUTES)
        self.backing.home.require_open()
        if self._sweeping is None:
            self._sweeping = object()
            self.backing.home.start(self._sweep_on, self._sweeping, minutes * 60)
        return done()

    def stop_ttl_sweeper(self) -> Awaitable[None]:
        """Stop the background deletion of expired items."""
        self._sweeping = None
        return done()

    async def _sweep_on(self, own: object, seconds: float) -> None:
        while await self.backing.home.pause(seconds) and self._sweeping is own:
            try:
                if count := await self._batches.sweep():
                    _logger.info("%d expired items were deleted.", count)
            except LongthreadError as error:
                _logger.warning("Expired items could not be deleted: %s", error)
