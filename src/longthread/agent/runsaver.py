"""The checkpointer of one run of ours."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import WRITES_IDX_MAP

from longthread.agent.checkpointer import LongthreadSaver


class RunSaver(LongthreadSaver):
    """Keeps every checkpoint of a run, and of what its tasks write before one only what no step says.

    A reply and a result are in the log before the graph hears of them, and a run goes on from the log: nobody would
    read the messages of a task that was broken off. Errors and interrupts are kept as usual.
    """

    async def aput_writes(
        self, config: RunnableConfig, writes: Sequence[tuple[str, Any]], task_id: str, task_path: str = ""
    ) -> None:
        """Store what a task has written, unless the log has it already."""
        if any(channel in WRITES_IDX_MAP for channel, _ in writes):
            await super().aput_writes(config, writes, task_id, task_path)
