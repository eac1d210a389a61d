"""A LangGraph checkpointer over the log.

A channel that holds a list of messages is stored as ranges over the thread's entries: the messages themselves become
entries, once, in the transaction that stores the checkpoint. Every other channel is a small blob.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any

from langchain_core.messages import BaseMessage
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import (
    WRITES_IDX_MAP,
    BaseCheckpointSaver,
    ChannelVersions,
    Checkpoint,
    CheckpointMetadata,
    CheckpointTuple,
    get_checkpoint_id,
    get_checkpoint_metadata,
)

from longthread.agent.messages import message_of
from longthread.agent.places import ListName, Place, Places, Placing, place_of, places_on_branch
from longthread.errors import ThreadNotFound
from longthread.model.entry import Entry
from longthread.model.thread import Thread
from longthread.store import checkpoints, log, runs
from longthread.store.checkpoints import ChannelRow, CheckpointRow, WriteRow
from longthread.store.driver import Driver, Transaction
from longthread.store.runs import Lease

_RANGES = "ranges"
"""Type of a channel row whose body is JSON `[[first, last], …]` over the thread's seqs."""
_TIP_CHANNEL = "messages"
"""The channel whose last message is the thread's tip."""
_NEW_THREADS = 1024
"""How many threads that were looked for and not there are remembered."""


class LongthreadSaver(BaseCheckpointSaver[str]):
    """Keeps LangGraph's checkpoints in a Longthread store.

    With a `lease`, every write first makes sure that the run is still ours: a process that lost its run to another
    writes nothing more (`LeaseLost`). The thread named by `configurable.thread_id` is made when it is new. Threads of
    other users than `user_id` are as if they were not there.

    The last message of the channel `messages` is the thread's tip, and the tip's branch reads like that channel: see
    `Placing` for what an edit does. Only the asynchronous methods are there: the synchronous ones raise
    `NotImplementedError`, so call a graph with `ainvoke` and `astream`.
    """

    def __init__(self, store: Driver, *, user_id: str = "default", lease: Lease | None = None) -> None:
        super().__init__()
        self._store = store
        self._user_id = user_id
        self._lease = lease
        self._places = Places()
        self._new: set[str] = set()

    def know(self, messages: Iterable[BaseMessage], entries: Iterable[Entry]) -> None:
        """Messages of a conversation that were made from these entries, so that they need not be looked up.

        For the holder of the thread's lease, who would lose it if the thread were deleted meanwhile.
        """
        pairs = list(zip(messages, entries, strict=True))
        for thread_id in {entry.thread_id for _, entry in pairs}:
            places = [place_of(message, entry) for message, entry in pairs if entry.thread_id == thread_id]
            self._places.keep(ListName(thread_id, "", _TIP_CHANNEL), None, places)

    async def aget_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        """The checkpoint that `config` names, or its thread's newest."""
        thread_id, ns = _address(config)
        async with self._store.reading() as tx:
            row = await checkpoints.find(tx, thread_id, ns, get_checkpoint_id(config), user_id=self._user_id)
            if row is not None:
                return await self._tuple(tx, row)
            try:
                await log.find_thread(tx, thread_id, user_id=self._user_id)
            except ThreadNotFound:
                self._expect_new(thread_id)
            return None

    async def alist(
        self,
        config: RunnableConfig | None,
        *,
        filter: dict[str, Any] | None = None,  # noqa: A002 - LangGraph's name
        before: RunnableConfig | None = None,
        limit: int | None = None,
    ) -> AsyncIterator[CheckpointTuple]:
        """Checkpoints that match, newest first."""
        where = config["configurable"] if config else {}
        wanted = get_checkpoint_id(config) if config else None
        async with self._store.reading() as tx:
            rows = await checkpoints.find_all(
                tx,
                where.get("thread_id"),
                where.get("checkpoint_ns"),
                get_checkpoint_id(before) if before else None,
                user_id=self._user_id,
            )
            chosen = [r for r in rows if (not wanted or r.id == wanted) and _matches(r, filter)]
            found = [await self._tuple(tx, row) for row in chosen[:limit]]
        for item in found:
            yield item

    async def aput(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        """Store a checkpoint and the entries that are new with it, in one transaction.

        Raises:
            LeaseLost: the run belongs to another process now.
            ThreadConflict: the thread was extended by somebody else.
            ThreadNotFound: the thread is another user's.
        """
        thread_id, ns = _address(config)
        slim = {**checkpoint, "channel_values": {}}
        kind, body = self.serde.dumps_typed(slim)
        meta = json.dumps(get_checkpoint_metadata(config, metadata), ensure_ascii=False, default=str)
        parent_id = config["configurable"].get("checkpoint_id")
        row = CheckpointRow(thread_id, ns, checkpoint["id"], parent_id, kind, body, meta)
        placed: dict[ListName, list[Place]] = {}
        async with self._store.writing() as tx:
            if self._lease:
                await runs.check(tx, self._lease)
            thread = await log.create_thread(tx, thread_id, user_id=self._user_id)
            rows: list[ChannelRow] = []
            # The conversation first: entries that other channels share with it then stand where it has them.
            for name in sorted(new_versions, key=lambda name: name != _TIP_CHANNEL):
                values, version = checkpoint["channel_values"], str(new_versions[name])
                rows.append(await self._channel_row(tx, thread, ListName(thread_id, ns, name), version, values, placed))
            await checkpoints.put(tx, row, rows)
        # Only now: a transaction that was rolled back has placed nothing.
        for where, places in placed.items():
            self._places.keep(where, thread.created_at, places)
        self._new.discard(thread_id)
        return {"configurable": {"thread_id": thread_id, "checkpoint_ns": ns, "checkpoint_id": checkpoint["id"]}}

    async def aput_writes(
        self, config: RunnableConfig, writes: Sequence[tuple[str, Any]], task_id: str, task_path: str = ""
    ) -> None:
        """Store what a task has written before its step is over.

        Raises:
            LeaseLost: the run belongs to another process now.
            ThreadNotFound: the thread was deleted meanwhile, or is another user's.
        """
        thread_id, ns = _address(config)
        rows = [
            WriteRow(task_id, WRITES_IDX_MAP.get(channel, idx), task_path, channel, *self.serde.dumps_typed(value))
            for idx, (channel, value) in enumerate(writes)
        ]
        async with self._store.writing() as tx:
            if self._lease:
                await runs.check(tx, self._lease)
            # A graph that begins with a command writes before its first checkpoint.
            find = log.create_thread if thread_id in self._new else log.find_thread
            await find(tx, thread_id, user_id=self._user_id)
            await checkpoints.put_writes(tx, thread_id, ns, str(get_checkpoint_id(config)), rows)

    async def adelete_thread(self, thread_id: str) -> None:
        """Delete a thread with everything that is kept of it, its messages too. It cannot be undone."""
        async with self._store.writing() as tx:
            with suppress(ThreadNotFound):
                await log.delete_thread(tx, thread_id, user_id=self._user_id)
        self._places.forget(thread_id)
        self._new.discard(thread_id)

    def get_next_version(self, current: str | None, channel: None) -> str:
        """Versions count up; padded, so that they sort as text."""
        return f"{int(current or 0) + 1:010}"

    def _expect_new(self, thread_id: str) -> None:
        """A thread that was not there may be begun by writes; one that was may not: it has been deleted."""
        if len(self._new) >= _NEW_THREADS:
            self._new.clear()
        self._new.add(thread_id)

    async def _channel_row(
        self,
        tx: Transaction,
        thread: Thread,
        where: ListName,
        version: str,
        values: Mapping[str, Any],
        placed: dict[ListName, list[Place]],
    ) -> ChannelRow:
        if where.channel not in values:
            return ChannelRow(where.channel, version, "empty", None)
        value = values[where.channel]
        if not _is_messages(value):
            kind, body = self.serde.dumps_typed(value)
            return ChannelRow(where.channel, version, kind, body)
        known = self._places.find(where, thread) or await places_on_branch(tx, thread, limit=len(value))
        leads = where.channel == _TIP_CHANNEL and where.ns == ""
        placing = Placing(tx, thread, known, leads, self._lease.run_id if self._lease else None)
        placed[where] = await placing.place(value)
        ranges = _ranges([place.seq for place in placed[where]])
        return ChannelRow(where.channel, version, _RANGES, json.dumps(ranges).encode())

    async def _tuple(self, tx: Transaction, row: CheckpointRow) -> CheckpointTuple:
        checkpoint: Checkpoint = self.serde.loads_typed((row.type, row.body))
        stored = await checkpoints.channels(tx, row.thread_id, row.ns, checkpoint["channel_versions"])
        checkpoint["channel_values"] = {
            channel.channel: await self._value(tx, row.thread_id, channel)
            for channel in stored
            if channel.type != "empty"
        }
        pending = await checkpoints.writes(tx, row.thread_id, row.ns, row.id)
        at = {"thread_id": row.thread_id, "checkpoint_ns": row.ns}
        return CheckpointTuple(
            config={"configurable": {**at, "checkpoint_id": row.id}},
            checkpoint=checkpoint,
            metadata=json.loads(row.metadata),
            parent_config={"configurable": {**at, "checkpoint_id": row.parent_id}} if row.parent_id else None,
            pending_writes=[(w.task_id, w.channel, self.serde.loads_typed((w.type, w.body or b""))) for w in pending],
        )

    async def _value(self, tx: Transaction, thread_id: str, row: ChannelRow) -> Any:
        if row.type != _RANGES:
            return self.serde.loads_typed((row.type, row.body or b""))
        entries: list[Entry] = []
        for first, last in json.loads(row.body or b"[]"):
            entries += await log.entries_between(tx, thread_id, first, last)
        return [message_of(entry) for entry in entries]


def _address(config: RunnableConfig) -> tuple[str, str]:
    where = config["configurable"]
    return str(where["thread_id"]), str(where.get("checkpoint_ns", ""))


def _is_messages(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and all(isinstance(m, BaseMessage) and m.id for m in value)


def _ranges(seqs: Sequence[int]) -> list[tuple[int, int]]:
    found: list[tuple[int, int]] = []
    for seq in seqs:
        if found and found[-1][1] == seq - 1:
            found[-1] = (found[-1][0], seq)
        else:
            found.append((seq, seq))
    return found


def _matches(row: CheckpointRow, wanted: Mapping[str, Any] | None) -> bool:
    if not wanted:
        return True
    metadata = json.loads(row.metadata)
    return all(metadata.get(key) == value for key, value in wanted.items())
