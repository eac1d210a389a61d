"""The saver for LangGraph applications: synchronous and asynchronous entry points over one implementation."""

from __future__ import annotations

import builtins
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import replace
from typing import Any

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import (
    ChannelVersions,
    Checkpoint,
    CheckpointMetadata,
    CheckpointTuple,
    DeltaChannelHistory,
)
from langgraph.checkpoint.serde.base import SerializerProtocol

from longthread.errors import InvalidInput
from longthread.langgraph.backend import Backend, BackendOpener, done, expect_store, opener, over_pool
from longthread.langgraph.saver.async_saver import AsyncLongthreadSaver
from longthread.langgraph.saver.inflight import InflightWrites
from longthread.langgraph.saver.parent_ids import NamespaceKey
from longthread.langgraph.saver.put_request import PutRequest
from longthread.langgraph.user_threads import SaverThreads, SharedRecaller
from longthread.loop_bridge import P, Portal, T, several
from longthread.store.driver import Driver

BATCH = 64
"""At most so many listed checkpoints are fetched in advance: one at first, then twice as many each time."""


class LongthreadSaver(AsyncLongthreadSaver):
    """A LangGraph checkpointer over a Longthread store, for synchronous and asynchronous graphs.

    ```
    with LongthreadSaver.from_conn_string("conversations.db") as saver:
        graph = builder.compile(checkpointer=saver)
        graph.invoke(…)
    ```

    Every method may be called from any thread and any event loop: the work is done on the loop on which the store was
    opened. Only a synchronous call on that very loop cannot be answered (`CalledOnItsLoop`); a saver opened with a
    plain `with` has a loop of its own, on a thread of its own, and never meets this.
    """

    def __init__(
        self,
        store: Driver,
        *,
        user_id: str = "default",
        serde: SerializerProtocol | None = None,
        index_text: bool = False,
    ) -> None:
        """Use a store that is already open on the running event loop.

        Args:
            serde: writes everything of a conversation, if it is not LangGraph's JsonPlusSerializer: messages have no
                text in the log then, so that nothing is found by words, titled or summarised.
            index_text: store the plain texts of the messages next to what such a serializer writes, for recall.

        Raises:
            InvalidInput: it is no store.
            SerializerNotUsable: `serde` does not give messages back.
        """
        expect_store(store, "LongthreadSaver")
        super().__init__(store, user_id=user_id, serde=serde, index_text=index_text)
        self._home = Portal()
        self._stores = InflightWrites()
        self._recaller = SharedRecaller()

    @classmethod
    def from_conn_string(
        cls,
        address: str,
        *,
        user_id: str = "default",
        serde: SerializerProtocol | None = None,
        index_text: bool = False,
        pool_size: int | None = None,
    ) -> BackendOpener[LongthreadSaver]:
        """Open the store at a file path, at a `postgresql://` URL, or the word `embedded`, for `with` or `async with`.

        The store is made and migrated when needed, and closed at the end of the block. It has at most `pool_size`
        connections to PostgreSQL (None: 16).

        Raises, when the block begins:
            InvalidInput: the pool has fewer than two connections.
            StoreUnavailable: it cannot be opened; the message says why.
            StoreTooNew: a newer Longthread wrote it.
            SerializerNotUsable: `serde` does not give messages back.
        """
        make = lambda store: cls(store, user_id=user_id, serde=serde, index_text=index_text)  # noqa: E731
        return opener(address, make, name="longthread-saver", pool_size=pool_size)

    @classmethod
    def from_pool(
        cls,
        pool: Any,
        *,
        user_id: str = "default",
        serde: SerializerProtocol | None = None,
        index_text: bool = False,
    ) -> AbstractAsyncContextManager[LongthreadSaver]:
        """Use connections of an open `psycopg_pool.AsyncConnectionPool` of your own: `async with`, on its event loop.

        The pool's connections keep your settings, and the pool stays open. Raises as `from_conn_string` does, and
        InvalidInput for something else.
        """
        return over_pool(pool, lambda store: cls(store, user_id=user_id, serde=serde, index_text=index_text))

    def for_user(self, user_id: str) -> LongthreadSaver:
        """Return a saver of another user's threads over the same open store. It is open as long as this one, and may be
        called as this one may; make one for each request, or keep it."""
        given: Any = user_id  # not every program is type-checked
        if not isinstance(given, str) or not given:
            raise InvalidInput(reason=f"for_user needs the name of a user, and was given {user_id!r}.")
        made = type(self).__new__(type(self))
        shared: Any = {"serde": self.serde, "index_text": self._index_text}
        AsyncLongthreadSaver.__init__(made, self._store, user_id=user_id, **shared)
        made._home = self._home
        made._stores = InflightWrites()
        made._recaller = self._recaller
        return made

    @property
    def threads(self) -> SaverThreads:
        """The user's threads: list and search them, let them expire, delete and prune them."""
        return SaverThreads(self, self._recaller)

    @property
    def backing(self) -> Backend:
        """The store and its event loop, shared with other parts of Longthread."""
        return Backend(self._store, self._home, self._user_id, has_text=self._form.has_text, puts=self._puts)

    def setup(self) -> Awaitable[None]:
        """Do nothing: opening a store migrates it. May be awaited or called plainly; SaverClosed if it is closed."""
        self._home.require_open()
        return done()

    def get_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        self._home.require_callable("get_tuple")
        self._stores.settle(_thread_of(config))
        return self._home.call("get_tuple", super().aget_tuple, config)

    async def aget_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        self._home.require_open()
        await self._stores.asettle(_thread_of(config))
        return await self._home.run(super().aget_tuple, config)

    def list(
        self,
        config: RunnableConfig | None,
        *,
        filter: dict[str, Any] | None = None,  # noqa: A002 - LangGraph's name
        before: RunnableConfig | None = None,
        limit: int | None = None,
    ) -> Iterator[CheckpointTuple]:
        # Never closed explicitly: its loop closes it when it is garbage-collected, on whichever thread.
        found = super().alist(config, filter=filter, before=before, limit=limit)
        count = 1
        while batch := self._home.call("list", several, found, count):
            yield from batch
            count = min(2 * count, BATCH)

    async def alist(
        self,
        config: RunnableConfig | None,
        *,
        filter: dict[str, Any] | None = None,  # noqa: A002 - LangGraph's name
        before: RunnableConfig | None = None,
        limit: int | None = None,
    ) -> AsyncIterator[CheckpointTuple]:
        found = super().alist(config, filter=filter, before=before, limit=limit)
        count = 1
        while batch := await self._home.run(several, found, count):
            for item in batch:
                yield item
            count = min(2 * count, BATCH)

    def put(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        self._home.require_callable("put")
        given = self._copy_request(config, checkpoint, metadata, new_versions)
        thread_id, ns = place = _place_of(config)
        if self._stores.overtake(thread_id, ns):
            given = self._leaving_aside(place, given)
        with self._stores.one(thread_id):
            return self._home.call("put", self._put, given)

    async def aput(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        given = self._copy_request(config, checkpoint, metadata, new_versions)
        thread_id, ns = place = _place_of(config)
        if await self._stores.aovertake(thread_id, ns):
            given = self._leaving_aside(place, given)
        with self._stores.one(thread_id):
            return await self._home.run(self._put, given)

    def put_writes(
        self, config: RunnableConfig, writes: Sequence[tuple[str, Any]], task_id: str, task_path: str = ""
    ) -> None:
        with self._stores.one(_thread_of(config)):
            self._home.call("put_writes", self._put_writes, self._given_writes(config, writes, task_id, task_path))

    async def aput_writes(
        self, config: RunnableConfig, writes: Sequence[tuple[str, Any]], task_id: str, task_path: str = ""
    ) -> None:
        with self._stores.one(_thread_of(config)):
            await self._home.run(self._put_writes, self._given_writes(config, writes, task_id, task_path))

    def delete_thread(self, thread_id: str, *, with_memories: bool = False) -> None:
        """Delete everything of a thread. What was remembered from it stays, unless `with_memories`."""
        self._home.call("delete_thread", super().adelete_thread, thread_id, with_memories=with_memories)

    async def adelete_thread(self, thread_id: str, *, with_memories: bool = False) -> None:
        await self._home.run(super().adelete_thread, thread_id, with_memories=with_memories)

    def forget_message(self, thread_id: str, message_id: str) -> builtins.list[str]:
        """Remove a message for good with all that tells of it; return the ids of what went. See `aforget_message`."""
        self._stores.settle(str(thread_id))
        return self._home.call("forget_message", super().aforget_message, thread_id, message_id)

    async def aforget_message(self, thread_id: str, message_id: str) -> builtins.list[str]:
        await self._stores.asettle(str(thread_id))
        return await self._home.run(super().aforget_message, thread_id, message_id)

    def delete_for_runs(self, run_ids: Sequence[str]) -> None:
        self._home.call("delete_for_runs", super().adelete_for_runs, run_ids)

    async def adelete_for_runs(self, run_ids: Sequence[str]) -> None:
        await self._home.run(super().adelete_for_runs, run_ids)

    def copy_thread(self, source_thread_id: str, target_thread_id: str) -> None:
        self._home.call("copy_thread", super().acopy_thread, source_thread_id, target_thread_id)

    async def acopy_thread(self, source_thread_id: str, target_thread_id: str) -> None:
        await self._home.run(super().acopy_thread, source_thread_id, target_thread_id)

    def prune(self, thread_ids: Sequence[str], *, strategy: str = "keep_latest") -> None:
        self._home.call("prune", super().aprune, thread_ids, strategy=strategy)

    async def aprune(self, thread_ids: Sequence[str], *, strategy: str = "keep_latest") -> None:
        await self._home.run(super().aprune, thread_ids, strategy=strategy)

    def get_delta_channel_history(
        self, *, config: RunnableConfig, channels: Sequence[str]
    ) -> Mapping[str, DeltaChannelHistory]:
        method = super().aget_delta_channel_history
        return self._home.call("get_delta_channel_history", method, config=config, channels=channels)

    async def aget_delta_channel_history(
        self, *, config: RunnableConfig, channels: Sequence[str]
    ) -> Mapping[str, DeltaChannelHistory]:
        return await self._home.run(super().aget_delta_channel_history, config=config, channels=channels)

    def _leaving_aside(self, place: NamespaceKey, given: PutRequest) -> PutRequest:
        """Turn the put into a fork: a run that was over has stored a checkpoint since this one read."""
        if given.parent_id is None:
            self._parents.began(place)
        return replace(given, is_fork=True)


def _place_of(config: RunnableConfig) -> NamespaceKey:
    return _thread_of(config), str(config["configurable"].get("checkpoint_ns", ""))


def _thread_of(config: RunnableConfig) -> str:
    return str(config["configurable"]["thread_id"])


async def on_home(
    saver: AsyncLongthreadSaver, work: Callable[P, Coroutine[Any, Any, T]], *args: P.args, **kwargs: P.kwargs
) -> T:
    """Await `work(…)`, which uses the saver's store, on the event loop that the store belongs to."""
    if isinstance(saver, LongthreadSaver) and not saver.backing.home.here:
        return await saver.backing.home.run(work, *args, **kwargs)
    return await work(*args, **kwargs)
