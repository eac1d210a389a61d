"""Reads the checkpoints of one thread for an export, in one snapshot."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

from langchain_core.messages import BaseMessage
from langgraph.checkpoint.base import CheckpointTuple

from longthread.errors import RowDamaged
from longthread.langgraph.exports.text_versions import TextVersions
from longthread.langgraph.imports.stock_savers import CheckpointAddress
from longthread.langgraph.saver.async_saver import AsyncLongthreadSaver
from longthread.langgraph.saver.load import CheckpointReader, merged_tasks
from longthread.langgraph.saver.record import StoredCheckpoint
from longthread.langgraph.saver.thread_cache import CachedThread
from longthread.store import checkpoints
from longthread.store.checkpoints import Locked
from longthread.store.driver import Transaction


@dataclass(slots=True)
class ThreadSource:
    """One thread in one snapshot."""

    tx: Transaction
    thread: Locked
    saver: AsyncLongthreadSaver
    memory: CachedThread
    versions: TextVersions = field(default_factory=TextVersions)

    async def addresses(self) -> list[CheckpointAddress]:
        """List the checkpoints of all namespaces, oldest first."""
        rows = await self.tx.fetch("count_checkpoint_writes", thread_id=self.thread.id, user_id=self.saver._user_id)
        found = [CheckpointAddress(row["ns"], row["id"], int(row["writes"]), row["parent"]) for row in rows]
        found.sort(key=lambda address: (address.id, address.ns))
        for address in {address.ns: address for address in found}.values():
            # The longest list of messages comes first: those of earlier checkpoints are beginnings of it.
            with suppress(RowDamaged):  # which is told when it is its turn
                await self._read(address, remembers=True)
        return found

    async def read(self, address: CheckpointAddress) -> tuple[CheckpointTuple, Mapping[str, str]]:
        """Return a checkpoint and its writes, as LangGraph's own savers hold them, and the paths of its tasks. Read
        all, oldest first: see `TextVersions`.

        Raises:
            RowDamaged: it cannot be read.
        """
        found, paths = await self._read(address)
        return self.versions.of(found), paths

    async def _read(
        self, address: CheckpointAddress, *, remembers: bool = False
    ) -> tuple[CheckpointTuple, Mapping[str, str]]:
        at = self.thread.id, address.ns, address.id
        row = await checkpoints.find(self.tx, *at)
        assert row is not None  # it is in this snapshot
        rows = await checkpoints.writes(self.tx, *at)
        asked = self.tx, self.thread.id, self.memory, self.saver.serde, self.thread.first_seq
        found = await CheckpointReader(*asked, remembers=remembers).read(row, rows)
        tasks = merged_tasks(StoredCheckpoint.from_row(row, self.saver.serde), rows, self.thread.id)
        return found, {task.id: task.path for task in tasks.values()}


@asynccontextmanager
async def thread_source(saver: AsyncLongthreadSaver, thread_id: str) -> AsyncIterator[ThreadSource | None]:
    """Read one thread of the saver's user; None if it is gone."""
    async with saver._store.reading() as tx:
        thread = await checkpoints.lock(tx, thread_id, user_id=saver._user_id)
        if thread is None:
            yield None
        else:
            yield ThreadSource(tx, thread, saver, CachedThread(thread.incarnation, thread.first_seq))


def message_ids(value: Any) -> Iterator[str]:
    """Yield the ids of the messages in a value, however deep."""
    if isinstance(value, BaseMessage):
        if value.id:
            yield value.id
    elif isinstance(value, dict):
        for each in value.values():
            yield from message_ids(each)
    elif isinstance(value, list | tuple | set):
        for each in value:
            yield from message_ids(each)
