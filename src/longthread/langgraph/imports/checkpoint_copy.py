"""Copies a checkpoint with its writes from one saver to another."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import groupby
from typing import Any

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import WRITES_IDX_MAP, BaseCheckpointSaver, CheckpointTuple

PendingWrite = tuple[str, Any]
StoredVersions = set[tuple[str, str, Any]]
"""Versions of channels that the other saver has, by namespace and channel."""


async def copy_checkpoint(
    found: CheckpointTuple, paths: Mapping[str, str], saver: BaseCheckpointSaver[Any], stored: StoredVersions
) -> None:
    """Store a checkpoint in a saver. `paths` are those of the tasks that wrote; `stored` is updated."""
    # Writes go first: a stored checkpoint then always has all of them.
    for task_id, writes in _by_task(found):
        await saver.aput_writes(found.config, writes, task_id, paths.get(task_id, ""))
    at = found.config["configurable"]
    ns, versions = at["checkpoint_ns"], found.checkpoint["channel_versions"]
    new = {channel: v for channel, v in versions.items() if (ns, channel, v) not in stored}
    config: RunnableConfig = {"configurable": {"thread_id": at["thread_id"], "checkpoint_ns": ns}}
    if parent := (found.parent_config or {}).get("configurable", {}).get("checkpoint_id"):
        config["configurable"]["checkpoint_id"] = parent
        # As of a run that was given it: the other saver may have forked there.
        config["metadata"] = {"thread_id": at["thread_id"], "checkpoint_id": parent}
    await saver.aput(config, found.checkpoint, found.metadata, new)
    stored |= {(ns, channel, version) for channel, version in new.items()}


def _by_task(found: CheckpointTuple) -> Iterator[tuple[str, list[PendingWrite]]]:
    """Group writes by task. LangGraph numbers errors, interrupts and the like separately."""
    for task_id, writes in groupby(found.pending_writes or [], key=lambda write: write[0]):
        all_of_task = [(channel, value) for _, channel, value in writes]
        for special in (False, True):
            if chosen := [write for write in all_of_task if (write[0] in WRITES_IDX_MAP) is special]:
                yield task_id, chosen
