"""A LangGraph checkpointer over the log.

A message anywhere in a checkpoint is a reference to its entry, which is written once, in the checkpoint's transaction.
Other values are small, or stored once for each version.
"""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any, get_args

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import (
    BaseCheckpointSaver,
    ChannelVersions,
    Checkpoint,
    CheckpointMetadata,
    CheckpointTuple,
    DeltaChannelHistory,
    get_checkpoint_id,
)
from langgraph.checkpoint.serde.base import SerializerProtocol

from longthread.errors import LongthreadError, StoreConflict, ThreadConflict, ThreadNotFound
from longthread.langgraph.internals import given_to_run
from longthread.langgraph.message_codec import MessageForm, expect_usable
from longthread.langgraph.saver.channel_values import next_version
from longthread.langgraph.saver.delta import channel_history
from longthread.langgraph.saver.forget_message import forget_message
from longthread.langgraph.saver.inflight import Puts, ThreadLocks
from longthread.langgraph.saver.load import CheckpointReader, Listing, NotCached
from longthread.langgraph.saver.parent_ids import CheckpointKey, ParentTracker, expect_same, read_checkpoint_id
from longthread.langgraph.saver.placement import LogGrowth
from longthread.langgraph.saver.put import CheckpointPut
from longthread.langgraph.saver.put_request import PutRequest, WritesRequest
from longthread.langgraph.saver.retention import DamagedThreads, Strategy, delete_for_runs, prune
from longthread.langgraph.saver.task_writes import Pending, PendingWrites, WritesPut
from longthread.langgraph.saver.thread_cache import CachedThread, ThreadCache
from longthread.memory.forget import delete_thread
from longthread.model.lru import LRU
from longthread.store import checkpoints
from longthread.store.checkpoints import CheckpointRow, Locked, PutPlace
from longthread.store.driver import Driver, Transaction
from longthread.store.maintenance.space import scrub

_NEW_THREADS = 1024
"""How many threads that were looked for and not there are remembered."""
_logger = logging.getLogger(__name__)


class AsyncLongthreadSaver(BaseCheckpointSaver[Any]):
    """Stores LangGraph's checkpoints in a Longthread store.

    A new `configurable.thread_id` creates its thread. Threads of other users than `user_id` are invisible.

    The last message of the channel `messages` is the thread's tip, and the tip's branch reads like that channel; for
    edits see `ListPlacement`. Of two runs that continue the same checkpoint, the second to store one gets a
    `ThreadConflict` and nothing of it is stored: see `ParentTracker`.
    """

    _serde: SerializerProtocol = BaseCheckpointSaver.serde

    def __init__(
        self,
        store: Driver,
        *,
        user_id: str = "default",
        serde: SerializerProtocol | None = None,
        index_text: bool = False,
    ) -> None:
        self._index_text = index_text
        super().__init__(serde=serde)
        self._store = store
        self._user_id = user_id
        self._cache = ThreadCache()
        self._parents = ParentTracker()
        self._locks = ThreadLocks()
        self._puts = Puts()
        self._pending = PendingWrites(self._puts)
        self._new = LRU[str, bool](_NEW_THREADS)

    @property
    def serde(self) -> SerializerProtocol:
        return self._serde

    @serde.setter
    def serde(self, given: SerializerProtocol) -> None:
        """Raises SerializerNotUsable: it does not give messages back."""
        expect_usable(given)
        self._serde = given

    @property
    def _form(self) -> MessageForm:
        return MessageForm(self._serde, self._index_text)

    async def aget_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        """Return the checkpoint that `config` names, or its thread's newest."""
        thread_id, ns = _address(config)
        wanted = read_checkpoint_id(config)
        if wanted and given_to_run(config) != "":
            await self._note_address((thread_id, ns, wanted))
        if self._cache.peek(thread_id).lists:
            # All but the checkpoint itself is mostly cached.
            with suppress(NotCached):
                return await self._load_checkpoint(thread_id, ns, wanted, at_once=True)
        return await self._load_checkpoint(thread_id, ns, wanted)

    async def _note_address(self, key: CheckpointKey) -> None:
        """Note that a caller goes back to a checkpoint. If it is the newest, he may as well continue the thread."""
        async with self._store.reading() as tx:
            newest = await checkpoints.find(tx, *key[:2], None)
        if newest is not None and newest.id != key[2]:
            self._parents.address(key)

    async def _load_checkpoint(
        self, thread_id: str, ns: str, wanted: str | None, *, at_once: bool = False
    ) -> CheckpointTuple | None:
        """Load a checkpoint; NotCached if `at_once` and one batch of statements is not enough."""
        async with self._store.reading() as tx:
            at = thread_id, ns, wanted
            thread, row, rows = await checkpoints.look(tx, *at, user_id=self._user_id, last=at_once)
            found = None
            if thread is not None:
                memory = self._cache.of_locked(thread)
                try:
                    if row is not None:
                        asked = None if at_once else tx, thread.id, memory, self.serde, thread.first_seq
                        found = await CheckpointReader(*asked, remembers=True).read(row, rows)
                finally:
                    self._cache.see(thread_id, memory)
            else:
                self._new.put(thread_id, True)  # so that a task's writes may create it
                self._cache.forget(thread_id)
        if found is not None and thread is not None:
            self._note(found, thread, newest=not wanted)
        elif wanted:
            self._parents.is_missing((thread_id, ns, wanted))
        else:
            self._parents.note_nothing((thread_id, ns))
        return found

    def _note(self, found: CheckpointTuple, thread: Locked, *, newest: bool) -> None:
        key = _key_of(found)
        self._parents.belongs(key, thread.birth_id)
        if newest:
            self._parents.see(key, (channel for _, channel, _ in found.pending_writes or ()))

    async def alist(
        self,
        config: RunnableConfig | None,
        *,
        filter: dict[str, Any] | None = None,  # noqa: A002 - LangGraph's name
        before: RunnableConfig | None = None,
        limit: int | None = None,
    ) -> AsyncIterator[CheckpointTuple]:
        """Yield matching checkpoints, newest ids first. They are read page by page.

        A filter finds metadata that contains it: an object these fields, a list these items. A key with dots may also
        be a path, and None finds what is missing.
        """
        listing = Listing.of(config, before, filter, user_id=self._user_id, limit=limit, serde=self.serde)
        # How LangGraph finds where a graph inside of one that goes back is to go on from.
        goes_back = limit == 1 and before is not None
        async for found in listing.pages(self._store, self._read_all):
            for item in found:
                if goes_back:
                    self._parents.address(_key_of(item))
                yield item

    async def aput(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        """Store a checkpoint and its new entries in one transaction.

        Raises:
            ThreadConflict: another run, or another writer, has written to the thread since this one read it.
            ThreadNotFound: the thread is another user's, or was deleted meanwhile.
        """
        return await self._put(self._copy_request(config, checkpoint, metadata, new_versions))

    def _copy_request(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> PutRequest:
        """Copy what a put is to store, as it is now. From any thread."""
        memory = self._cache.peek(_address(config)[0])
        return PutRequest.of(config, checkpoint, metadata, new_versions, memory=memory, serde=self.serde)

    async def _put(self, given: PutRequest) -> RunnableConfig:
        thread_id, ns = _address(given.config)
        parent_id = given.parent_id
        pending = self._pending.take((thread_id, ns, parent_id))
        try:
            with self._puts.going_on((thread_id, ns), given.id):
                async with self._locks.of(thread_id):
                    putting = await self._store_checkpoint(given, pending)
        finally:
            for each in pending:
                each.settle(stored=False)  # what was not stored here is stored by who handed it in
        if parent_id is None:
            self._parents.began((thread_id, ns))
        self._parents.put((thread_id, ns, given.id), putting.growth.thread.birth_id)
        return {"configurable": {"thread_id": thread_id, "checkpoint_ns": ns, "checkpoint_id": given.id}}

    async def _store_checkpoint(self, given: PutRequest, pending: Sequence[Pending]) -> CheckpointPut:
        """Store a checkpoint and its parent's pending writes: in one transaction where all is cached."""
        thread_id, ns = _address(given.config)
        putting, birth_id = None, self._parents.birth_id((thread_id, ns, given.parent_id or ""))
        if birth_id is not None:
            self._parents.belongs((thread_id, ns, given.id), birth_id)
        try:
            with self._cache.unless_it_fails(thread_id):
                if (known := self._cache.peek(thread_id).place(ns, given.parent_id)) is not None:
                    with suppress(StoreConflict, ThreadConflict):
                        putting = await self._putting(given, known, [each.given for each in pending])
                if putting is None:
                    await self._store_together(pending)
                    putting = await self._putting(given)
        except ThreadConflict:
            self._parents.lose(given.id)
            await self._drop_writes(thread_id, ns, given.id)
            raise
        putting.remember()
        self._cache.see(thread_id, putting.memory)
        self._new.pop(thread_id)
        for each in pending:
            each.settle(stored=True)
        return putting

    async def _store_together(self, pending: Sequence[Pending]) -> None:
        """Store writes of one checkpoint's tasks, in one transaction if that is possible, and settle them."""
        try:
            if len(pending) > 1:
                with suppress(LongthreadError):
                    await self._store_writes([each.given for each in pending])
                    for each in pending:
                        each.settle(stored=True)
                    return
            for each in pending:
                await self._store_apart(each)
        finally:
            for each in pending:
                each.settle(stored=False)  # what was not stored here is stored by who handed it in

    async def _store_apart(self, pending: Pending) -> None:
        try:
            await self._store_writes([pending.given])
        except LongthreadError as error:
            pending.refuse(error)
        else:
            pending.settle(stored=True)

    async def _putting(
        self, given: PutRequest, known: PutPlace | None = None, writes: Sequence[WritesRequest] = ()
    ) -> CheckpointPut:
        """Store a checkpoint and, with a `known` place, its parent's writes; StoreConflict if that is outdated."""
        thread_id, ns = _address(given.config)
        ids = {"checkpoint_id": given.id, "written_id": given.parent_id or ""}
        async with self._store.writing() as tx:
            if known is not None:
                await checkpoints.expect(tx, known, ns, user_id=self._user_id, written_id=ids["written_id"])
            birth_id = self._parents.birth_id((thread_id, ns, given.parent_id or ""))
            create = birth_id is None and (given.parent_id is None or not self._cache.has_seen(thread_id))
            place = known or await self._place(tx, thread_id, ns, create=create, **ids)
            await expect_same(tx, place.thread, ns, given.parent_id, birth_id)
            memory = self._cache.of_locked(place.thread)
            asked: Any = {"run": given.run, "is_fork": given.is_fork}
            self._parents.check((thread_id, ns), place.head, given.config, given.id, **asked)
            growth = LogGrowth(tx, place.thread, self._form, guesses=known is not None)
            tasks = [each.task_for(memory, self.serde) for each in writes]
            putting = CheckpointPut(growth, memory, self.serde, ns, place, tasks)
            await putting.put(given.referring_to(memory, self.serde))
        return putting

    async def aput_writes(
        self, config: RunnableConfig, writes: Sequence[tuple[str, Any]], task_id: str, task_path: str = ""
    ) -> None:
        """Store what a task has written before its step is over.

        Raises:
            ThreadConflict: another run has stored a checkpoint where this one was to store its own.
            ThreadNotFound: the thread was deleted meanwhile, or is another user's.
        """
        await self._put_writes(self._given_writes(config, writes, task_id, task_path))

    def _given_writes(
        self, config: RunnableConfig, writes: Sequence[tuple[str, Any]], task_id: str, task_path: str
    ) -> WritesRequest:
        memory = self._cache.peek(_address(config)[0])
        return WritesRequest.of(config, writes, task_id, task_path, memory=memory, serde=self.serde)

    async def _put_writes(self, given: WritesRequest) -> None:
        thread_id, ns = _address(given.config)
        key, lock = (thread_id, ns, get_checkpoint_id(given.config)), self._locks.of(thread_id)
        if not await self._pending.are_stored(key, given, lock, self._store_together):
            async with lock:
                await self._store_writes([given])

    async def _store_writes(self, given: Sequence[WritesRequest]) -> None:
        """Store what several tasks of a checkpoint have written: all of it or nothing."""
        thread_id, ns = _address(given[0].config)
        checkpoint_id = str(get_checkpoint_id(given[0].config))
        if self._parents.is_lost(checkpoint_id):
            raise ThreadConflict(thread=thread_id)
        stored = None
        try:
            with self._cache.unless_it_fails(thread_id):
                if (known := self._cache.peek(thread_id).place(ns, checkpoint_id)) is not None:
                    with suppress(StoreConflict, ThreadConflict):
                        stored = await self._writing(given, checkpoint_id, known)
                if stored is None:
                    stored = await self._writing(given, checkpoint_id)
        except ThreadConflict:
            if len(given) == 1:  # else it is not known yet whose
                self._parents.refuse((thread_id, ns, checkpoint_id), given[0].run)
            raise
        memory, remember = stored
        remember()
        self._cache.see(thread_id, memory)

    async def _writing(
        self, given: Sequence[WritesRequest], checkpoint_id: str, known: PutPlace | None = None
    ) -> tuple[CachedThread, Callable[[], None]]:
        """Store tasks' writes; return the cache and its update after the commit. StoreConflict: outdated `known`."""
        thread_id, ns = _address(given[0].config)
        async with self._store.writing() as tx:
            if known is not None:
                await checkpoints.expect(tx, known, ns, user_id=self._user_id, written_id=checkpoint_id)
            key = thread_id, ns, checkpoint_id
            birth_id = self._parents.birth_id(key)
            # A graph that begins with a command writes before its first checkpoint.
            create = birth_id is None and (thread_id in self._new or not self._cache.has_seen(thread_id))
            before = self._cache.peek(thread_id).thread
            place = known or await self._place(tx, thread_id, ns, create=create, written_id=checkpoint_id)
            if birth_id is None and before is not None:
                birth_id = before.birth_id
            await expect_same(tx, place.thread, ns, checkpoint_id, birth_id)
            memory = self._cache.of_locked(place.thread)
            goes_on = self._parents.continues_newest(given[0].config, key)
            seen = self._parents.find_seen(key)
            writing = WritesPut(tx, place, memory, self.serde, ns, checkpoint_id, goes_on, seen)
            return memory, await writing.put([each.task_for(memory, self.serde) for each in given])

    async def adelete_thread(self, thread_id: str, *, with_memories: bool = False) -> None:
        """Delete a thread with its messages and everything derived from it. This cannot be undone. What was remembered
        from it stays, unless `with_memories`."""
        thread_id = str(thread_id)
        with suppress(ThreadNotFound):
            gone = await delete_thread(self._store, thread_id, user_id=self._user_id, with_memories=with_memories)
            self._forget(thread_id)
            for problem in await scrub(self._store, gone.tables):
                _logger.info("After the deletion of a thread: %s", problem)
        self._forget(thread_id)

    async def aforget_message(self, thread_id: str, message_id: str) -> list[str]:
        """Remove a message for good with all that tells of it; return the ids of what went. See `forget_message`."""
        async with self._locks.of(thread_id := str(thread_id)):
            gone = await forget_message(self._store, thread_id, message_id, user_id=self._user_id, form=self._form)
        self._cache.forget(thread_id)
        return gone

    async def adelete_for_runs(self, run_ids: Sequence[str]) -> None:
        """Delete the checkpoints whose metadata names one of these runs, with their tasks' writes.

        The messages stay in the log; if the newest checkpoint goes, the conversation ends where the one before ends.
        Each thread is read again under its lock: it may have changed, or be another one of the same id.

        Raises:
            StoreDamaged: something of a thread cannot be read. It is not changed, and the others are done.
        """
        found: dict[str, list[str]] = {}
        async with self._store.reading() as tx:
            for run_id in dict.fromkeys(map(str, run_ids)):
                for thread_id in await checkpoints.threads_of_run(tx, run_id, user_id=self._user_id):
                    found.setdefault(thread_id, []).append(run_id)
        damaged = DamagedThreads()
        for thread_id, there in found.items():
            with damaged.left(thread_id):
                async with self._store.writing() as tx:
                    if (thread := await checkpoints.lock(tx, thread_id, user_id=self._user_id)) is not None:
                        await delete_for_runs(tx, thread, there, self.serde)
        damaged.tell()

    async def acopy_thread(self, source_thread_id: str, target_thread_id: str) -> None:
        """Copy a thread's messages, checkpoints and writes to a new thread.

        Raises:
            ThreadNotFound: there is no thread to copy.
            ThreadTaken: a thread of the new id exists.
        """
        source_thread_id, target_thread_id = str(source_thread_id), str(target_thread_id)
        async with self._store.writing() as tx:
            await checkpoints.copy_thread(tx, source_thread_id, target_thread_id, user_id=self._user_id)
        self._forget(target_thread_id)

    async def aprune(self, thread_ids: Sequence[str], *, strategy: str = "keep_latest") -> None:
        """Delete checkpoints that are no longer needed. The messages stay in the log. Safe while runs go on.

        Args:
            strategy: `keep_latest` keeps the newest checkpoint of each namespace, and the earlier ones that its delta
                channels need; `delete` deletes all checkpoints.

        Raises:
            StoreDamaged: something of a thread cannot be read. It is not changed, and the others are pruned.
            TypeError: `thread_ids` is a single text.
            ValueError: there is no such strategy.
        """
        if isinstance(thread_ids, str):
            raise TypeError("thread_ids must be a sequence of thread ids, not a str")
        chosen = next((known for known in get_args(Strategy) if known == strategy), None)
        if chosen is None:
            raise ValueError(f"Unknown prune strategy: {strategy!r}")
        damaged = DamagedThreads()
        for thread_id in map(str, thread_ids):
            with damaged.left(thread_id):
                async with self._store.writing() as tx:
                    if (thread := await checkpoints.lock(tx, thread_id, user_id=self._user_id)) is not None:
                        await prune(tx, thread, chosen, self.serde)
        damaged.tell()

    async def aget_delta_channel_history(
        self, *, config: RunnableConfig, channels: Sequence[str]
    ) -> Mapping[str, DeltaChannelHistory]:
        """Return the writes to channels, up to this checkpoint, since each last had a value."""
        thread_id, ns = _address(config)
        async with self._store.reading() as tx:
            thread = await checkpoints.lock(tx, thread_id, user_id=self._user_id)
            row = await checkpoints.find(tx, thread_id, ns, read_checkpoint_id(config)) if thread else None
            if thread is None or row is None:
                return {channel: {"writes": []} for channel in channels}
            return await channel_history(tx, row, channels, self.serde, thread.first_seq)

    def get_next_version(self, current: Any, channel: None) -> Any:
        """Count up. Versions of a thread that began with another saver stay texts."""
        return next_version(current)

    def _forget(self, thread_id: str) -> None:
        self._cache.forget(thread_id)
        self._parents.forget(thread_id)
        self._new.pop(thread_id)

    async def _place(
        self, tx: Transaction, thread_id: str, ns: str, *, create: bool, checkpoint_id: str = "", written_id: str = ""
    ) -> PutPlace:
        ids = {"user_id": self._user_id, "checkpoint_id": checkpoint_id, "written_id": written_id}
        found = await checkpoints.place(tx, thread_id, ns, **ids)
        if found is None and create:
            await checkpoints.lock(tx, thread_id, user_id=self._user_id, create=True)
            found = await checkpoints.place(tx, thread_id, ns, **ids)
        if found is None:
            raise ThreadNotFound(thread=thread_id)
        return found

    async def _drop_writes(self, thread_id: str, ns: str, checkpoint_id: str) -> None:
        """Delete the tasks' writes of a refused checkpoint, unless it is stored."""
        async with self._store.writing() as tx:
            is_there = await checkpoints.lock(tx, thread_id, user_id=self._user_id) is not None
            if is_there and await checkpoints.find(tx, thread_id, ns, checkpoint_id) is None:
                await checkpoints.delete_writes(tx, thread_id, ns, checkpoint_id)

    async def _read_all(self, tx: Transaction, rows: Sequence[CheckpointRow]) -> list[CheckpointTuple]:
        found: list[CheckpointTuple] = []
        readers: dict[str, CheckpointReader] = {}
        for row in rows:
            reader = readers.get(row.thread_id)
            if reader is None:
                thread = await checkpoints.lock(tx, row.thread_id, user_id=self._user_id)
                assert thread is not None  # its rows are in the same snapshot
                memory = self._cache.of_locked(thread)
                self._cache.see(thread.id, memory)
                reader = CheckpointReader(tx, thread.id, memory, self.serde, thread.first_seq, remembers=False)
                readers[thread.id] = reader
            writes = await checkpoints.writes(tx, row.thread_id, row.ns, row.id)
            found.append(await reader.read(row, writes))
        return found


def _address(config: RunnableConfig) -> tuple[str, str]:
    where = config["configurable"]
    return str(where["thread_id"]), str(where.get("checkpoint_ns", ""))


def _key_of(found: CheckpointTuple) -> CheckpointKey:
    at = found.config["configurable"]
    return at["thread_id"], at["checkpoint_ns"], at["checkpoint_id"]
