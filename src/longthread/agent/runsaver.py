"""The checkpointer of one run of ours."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from langchain_core.messages import BaseMessage
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import WRITES_IDX_MAP, CheckpointTuple

from longthread.agent.checkpointer import LongthreadSaver
from longthread.agent.kept import Run, private
from longthread.agent.reading import Reader
from longthread.agent.remembered import CONVERSATION, Memory
from longthread.agent.window import Window
from longthread.model.entry import Entry
from longthread.store.checkpoints import Locked
from longthread.store.driver import Driver, Transaction
from longthread.store.runs import Lease


class RunSaver(LongthreadSaver):
    """Keeps every checkpoint of a run, which goes on from the log: the conversation of its state is the run's window,
    whatever the newest checkpoint holds, and so is not read again.

    A reply and a result are in the log before the graph hears of them, so that of what a task writes only what no step
    says is kept: errors and interrupts. Nobody would read the messages of a task that was broken off.
    """

    def __init__(self, store: Driver, *, user_id: str, lease: Lease, window: Window) -> None:
        super().__init__(store, user_id=user_id, lease=lease)
        self._state: list[BaseMessage] = window.messages
        self._found: CheckpointTuple | None = None
        self.know(window.messages, window.entries)

    def learn(self, messages: Sequence[BaseMessage], entries: Sequence[Entry]) -> None:
        """Messages that the run has added to the log, behind those that were there."""
        memory = self._remembered.of(entries[0].thread_id)
        conversation = memory.lists.get(CONVERSATION)
        if conversation is not None:
            places = zip(messages, entries, strict=True)
            conversation.extend(private(message, entry.seq, entry.parent_seq) for message, entry in places)

    async def given(self, config: RunnableConfig) -> list[BaseMessage]:
        """The messages that the graph is to be given. The others are in its state already.

        That is the question alone, or nothing when a run goes on after a crash; all, on a thread without checkpoints.
        """
        asked = [message for message in self._state[-1:] if message.type == "human"]
        self._state, whole = self._state[: len(self._state) - len(asked)], self._state
        self._found = await super().aget_tuple(config)
        return asked if self._found else whole

    async def aget_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        """The newest checkpoint, once more: nobody else can have stored one since."""
        return self._found

    async def aput_writes(
        self, config: RunnableConfig, writes: Sequence[tuple[str, Any]], task_id: str, task_path: str = ""
    ) -> None:
        """Store what a task has written, unless the log has it already."""
        if any(channel in WRITES_IDX_MAP for channel, _ in writes):
            await super().aput_writes(config, writes, task_id, task_path)

    def _reader(self, tx: Transaction | None, thread: Locked, memory: Memory) -> Reader:
        return _WindowReader(tx, thread.id, memory, self.serde, thread.first_seq, remembers=False, state=self._state)


class _WindowReader(Reader):
    """Reads a checkpoint with other messages than its own in the conversation."""

    def __init__(self, *args: Any, state: list[BaseMessage], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._given = state

    async def messages(self, name: tuple[str, str], runs: Sequence[Run]) -> list[BaseMessage]:
        return list(self._given) if name == CONVERSATION else await super().messages(name, runs)
