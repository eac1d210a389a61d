"""A LangGraph checkpointer over the log.

A channel that holds a list of messages is stored as ranges over the thread's entries: the messages themselves become
entries, once, in the transaction that stores the checkpoint. Every other channel is a small blob.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
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

from longthread.agent.messages import draft_of, message_of
from longthread.errors import ThreadConflict
from longthread.model.entry import Entry
from longthread.store import checkpoints, log, runs
from longthread.store.checkpoints import ChannelRow, CheckpointRow, WriteRow
from longthread.store.driver import Driver, Transaction
from longthread.store.runs import Lease

_RANGES = "ranges"
"""Type of a channel row whose body is JSON `[[first, last], …]` over the thread's seqs."""
_TIP_CHANNEL = "messages"
"""The channel whose last message is the thread's tip."""


class LongthreadSaver(BaseCheckpointSaver[str]):
    """Keeps LangGraph's checkpoints in a Longthread store.

    With a `lease`, every write first makes sure that the run is still ours: a process that lost its run to another
    writes nothing more (`LeaseLost`). The thread named by `configurable.thread_id` is made when it is new.
    """

    def __init__(self, store: Driver, *, user_id: str = "default", lease: Lease | None = None) -> None:
        super().__init__()
        self._store = store
        self._user_id = user_id
        self._lease = lease
        self._placed: dict[str, tuple[BaseMessage, int]] = {}

    def know(self, messages: Iterable[BaseMessage], entries: Iterable[Entry]) -> None:
        """Messages that were made from entries of the log, so that these need not be looked up."""
        for message, entry in zip(messages, entries, strict=True):
            self._placed[message.id or ""] = (message, entry.seq)

    async def aget_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        """The checkpoint that `config` names, or its thread's newest."""
        thread_id, ns = _address(config)
        async with self._store.reading() as tx:
            row = await checkpoints.find(tx, thread_id, ns, get_checkpoint_id(config))
            return await self._tuple(tx, row) if row else None

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
        """
        thread_id, ns = _address(config)
        values = checkpoint["channel_values"]
        parent_id = config["configurable"].get("checkpoint_id")
        slim = {**checkpoint, "channel_values": {}}
        kind, body = self.serde.dumps_typed(slim)
        meta = json.dumps(get_checkpoint_metadata(config, metadata), ensure_ascii=False, default=str)
        row = CheckpointRow(thread_id, ns, checkpoint["id"], parent_id, kind, body, meta)
        async with self._store.writing() as tx:
            if self._lease:
                await runs.check(tx, self._lease)
            rows = [
                await self._channel_row(tx, thread_id, ns, name, str(version), values)
                for name, version in new_versions.items()
            ]
            await checkpoints.put(tx, row, rows)
        return {"configurable": {"thread_id": thread_id, "checkpoint_ns": ns, "checkpoint_id": checkpoint["id"]}}

    async def aput_writes(
        self, config: RunnableConfig, writes: Sequence[tuple[str, Any]], task_id: str, task_path: str = ""
    ) -> None:
        """Store what a task has written before its step is over."""
        thread_id, ns = _address(config)
        rows = [
            WriteRow(task_id, WRITES_IDX_MAP.get(channel, idx), task_path, channel, *self.serde.dumps_typed(value))
            for idx, (channel, value) in enumerate(writes)
        ]
        async with self._store.writing() as tx:
            await checkpoints.put_writes(tx, thread_id, ns, str(get_checkpoint_id(config)), rows)

    async def adelete_thread(self, thread_id: str) -> None:
        """Delete a thread's checkpoints; its entries are the log's."""
        async with self._store.writing() as tx:
            await checkpoints.delete(tx, thread_id)

    def get_next_version(self, current: str | None, channel: None) -> str:
        """Versions count up; padded, so that they sort as text."""
        return f"{int(current or 0) + 1:010}"

    async def _channel_row(
        self, tx: Transaction, thread_id: str, ns: str, name: str, version: str, values: Mapping[str, Any]
    ) -> ChannelRow:
        if name not in values:
            return ChannelRow(name, version, "empty", None)
        value = values[name]
        if _is_messages(value):
            await log.create_thread(tx, thread_id, user_id=self._user_id)
            seqs = await self._place(tx, thread_id, value, moves_tip=name == _TIP_CHANNEL and ns == "")
            return ChannelRow(name, version, _RANGES, json.dumps(_ranges(seqs)).encode())
        kind, body = self.serde.dumps_typed(value)
        return ChannelRow(name, version, kind, body)

    async def _place(
        self, tx: Transaction, thread_id: str, messages: Sequence[BaseMessage], *, moves_tip: bool
    ) -> list[int]:
        """The seq of each message, adding those that the log does not have behind the message before them."""
        seqs: list[int] = []
        run_id = self._lease.run_id if self._lease else None
        tip = (await log.position(tx, thread_id))[0]
        for message in messages:
            known = self._placed.get(message.id or "")
            if known and known[0] is message:
                seqs.append(known[1])
                continue
            draft = draft_of(message, run_id=run_id)
            there = await log.find_entries(tx, thread_id, [draft.id])
            if draft.id in there and there[draft.id].says_the_same_as(draft):
                seq = there[draft.id].seq
            else:
                behind = seqs[-1] if seqs else 0
                if self._lease and moves_tip and behind != tip:
                    raise ThreadConflict(thread=thread_id)
                seq = (await log.extend(tx, thread_id, [draft], parent=behind))[0].seq
                tip = seq
            self._placed[draft.id] = (message, seq)
            seqs.append(seq)
        return seqs

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
