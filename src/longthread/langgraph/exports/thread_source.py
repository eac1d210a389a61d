"""Reads the checkpoints of one thread for an export, in one snapshot, with versions as LangGraph's own savers do.

These count up in texts, and a random part tells the versions of different branches apart: PostgresSaver stores a value
once for its channel and version. Longthread counts in numbers, which repeat on each branch.
"""

from __future__ import annotations

import hashlib
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

from langchain_core.messages import BaseMessage
from langgraph.checkpoint.base import CheckpointTuple

from longthread.errors import RowDamaged
from longthread.langgraph.imports.stock_savers import CheckpointAddress
from longthread.langgraph.saver.async_saver import AsyncLongthreadSaver
from longthread.langgraph.saver.load import CheckpointReader, merged_tasks
from longthread.langgraph.saver.record import StoredCheckpoint
from longthread.langgraph.saver.thread_cache import CachedThread
from longthread.store import checkpoints
from longthread.store.checkpoints import Locked
from longthread.store.driver import Transaction

_Texts = Mapping[tuple[str, Any], str]
"""The text of a channel's version at a checkpoint."""


@dataclass(slots=True)
class TextVersions:
    """The versions of one thread. Ask for its checkpoints oldest first: the same ones give the same texts."""

    _known: dict[tuple[str, str], _Texts] = field(default_factory=dict)
    """By namespace and checkpoint."""

    def of(self, found: CheckpointTuple) -> CheckpointTuple:
        """Return a checkpoint with versions as texts."""
        checkpoint = found.checkpoint
        at = found.config["configurable"]
        parent = (found.parent_config or {}).get("configurable", {}).get("checkpoint_id", "")
        before = self._known.get((at["checkpoint_ns"], parent), {})
        texts: dict[tuple[str, Any], str] = {}

        def text(channel: str, version: Any) -> Any:
            if not isinstance(version, int | float):
                return version
            known = before.get((channel, version)) or _text(channel, version, checkpoint["id"])
            return texts.setdefault((channel, version), known)

        versions = {channel: text(channel, version) for channel, version in checkpoint["channel_versions"].items()}
        seen = {
            node: {channel: text(channel, version) for channel, version in channels.items()}
            for node, channels in checkpoint["versions_seen"].items()
        }
        self._known[at["checkpoint_ns"], checkpoint["id"]] = texts
        return found._replace(checkpoint={**checkpoint, "channel_versions": versions, "versions_seen": seen})


def _text(channel: str, version: float, checkpoint_id: str) -> str:
    own = int.from_bytes(hashlib.blake2b(f"{checkpoint_id} {channel}".encode(), digest_size=6).digest()) % 10**14
    return f"{int(version):032}.0.{own:014}"


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
            # The longest list of messages comes first: the lists of earlier checkpoints are prefixes of it.
            with suppress(RowDamaged):  # which is reported when it is its turn
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
