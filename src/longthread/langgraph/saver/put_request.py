"""Copies of what a saver is given to store: LangGraph changes some of it in place later."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from langchain_core.messages import BaseMessage, RemoveMessage
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import (
    ChannelVersions,
    Checkpoint,
    CheckpointMetadata,
)
from langgraph.checkpoint.serde.base import SerializerProtocol

from longthread.langgraph.saver.channel_values import ChannelValue, cell_of
from longthread.langgraph.saver.inflight import run_at_work
from longthread.langgraph.saver.parent_ids import read_checkpoint_id
from longthread.langgraph.saver.record import TaskWrites, dump_metadata, slim_of
from longthread.langgraph.saver.thread_cache import CachedThread


@dataclass(frozen=True, slots=True)
class PutRequest:
    """A checkpoint to store. Only the messages in `lists` are shared with the caller.
    `cells` are all other values; they refer to the log as `memory` knew it."""

    config: RunnableConfig
    id: str
    values: Mapping[str, Any]
    versions: ChannelVersions
    slim: tuple[str, bytes]
    metadata: str
    new: ChannelVersions
    lists: Mapping[str, list[BaseMessage]]
    cells: Mapping[str, ChannelValue]
    memory: CachedThread
    first_seq: int
    is_fork: bool
    """The caller says that it continues from an old checkpoint."""
    run: int | None = None
    """The run in this process that stores it, where this is known: see `StoreCaller`."""

    @classmethod
    def of(
        cls,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new: ChannelVersions,
        *,
        memory: CachedThread,
        serde: SerializerProtocol,
    ) -> PutRequest:
        """Copy the arguments of `put`. `memory` is the thread's cache, which may be out of date."""
        values = dict(checkpoint["channel_values"])
        lists = {
            name: value.copy()
            for name, value in values.items()
            if name in new and value and isinstance(value, list) and _are_messages(value)
        }
        newest = memory.newest.peek(str(config["configurable"].get("checkpoint_ns", "")))
        stored = newest.cells.keys() if newest is not None else ()
        rest = [name for name in values if name not in lists and (name in new or name not in stored)]
        finder = memory.finder()
        return cls(
            config=config,
            id=checkpoint["id"],
            values=values,
            versions=dict(checkpoint["channel_versions"]),
            slim=slim_of(checkpoint, serde),
            metadata=dump_metadata(config, metadata, serde),
            new=dict(new),
            lists=lists,
            cells={name: cell_of(values[name], serde, finder) for name in rest},
            memory=memory,
            first_seq=memory.first_seq,
            is_fork=metadata.get("source") == "fork",
            run=run_at_work(),
        )

    @property
    def parent_id(self) -> str | None:
        return read_checkpoint_id(self.config)

    def referring_to(self, memory: CachedThread, serde: SerializerProtocol) -> PutRequest:
        """Return a copy that refers to the log as this verified cache knows it."""
        if memory is self.memory and memory.first_seq == self.first_seq:
            return self
        finder = memory.finder()
        cells = {name: cell_of(self.values[name], serde, finder) for name in self.cells}
        return replace(self, cells=cells, memory=memory, first_seq=memory.first_seq)


@dataclass(frozen=True, slots=True)
class WritesRequest:
    config: RunnableConfig
    writes: Sequence[tuple[str, Any]]
    task: TaskWrites
    memory: CachedThread
    first_seq: int
    run: int | None = None

    @classmethod
    def of(
        cls,
        config: RunnableConfig,
        writes: Sequence[tuple[str, Any]],
        task_id: str,
        task_path: str,
        *,
        memory: CachedThread,
        serde: SerializerProtocol,
    ) -> WritesRequest:
        task = TaskWrites.of(task_id, task_path, writes, serde, memory.finder())
        return cls(config, list(writes), task, memory, memory.first_seq, run_at_work())

    def task_for(self, memory: CachedThread, serde: SerializerProtocol) -> TaskWrites:
        """Return the task, with references by this verified cache."""
        if memory is self.memory and memory.first_seq == self.first_seq:
            return self.task
        return TaskWrites.of(self.task.id, self.task.path, self.writes, serde, memory.finder())


def _are_messages(values: list[Any]) -> bool:
    return all(issubclass(kind, BaseMessage) and kind is not RemoveMessage for kind in set(map(type, values)))
