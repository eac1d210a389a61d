"""Import every thread, namespace, checkpoint and write of LangGraph's own savers."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import WRITES_IDX_MAP, CheckpointTuple

from longthread.errors import CheckpointUnreadable, ImportIncomplete, NotACheckpointDatabase, ThreadTaken
from longthread.langgraph.imports.stock_savers import CheckpointAddress, StockCheckpoints, open_stock
from longthread.langgraph.saver.async_saver import AsyncLongthreadSaver
from longthread.store.imports.foreign import shown_address

PendingWrite = tuple[str, Any]


@dataclass(frozen=True, slots=True)
class CheckpointProgress:
    """The progress of an import: checkpoints read, their total, and the current thread."""

    done: int
    total: int
    thread_id: str


@dataclass(frozen=True, slots=True)
class Imported:
    """The result of an import. `already` counts the checkpoints that an earlier import had stored."""

    threads: int
    checkpoints: int
    writes: int
    already: int


async def import_langgraph(
    address: str, saver: AsyncLongthreadSaver, *, progress: Callable[[CheckpointProgress], None] | None = None
) -> Imported:
    """Copy all checkpoints of a SqliteSaver (a file) or a PostgresSaver (a `postgresql://` URL) into the saver's store.

    Threads keep their ids and get the saver's user. Existing checkpoints are not changed, so run an interrupted import
    again to finish it. The source is read in one snapshot and not changed. Writes without a checkpoint are skipped,
    because no graph can read them. At the end both sides are counted.

    Raises:
        NotACheckpointDatabase: there is nothing to import at the address; the message says why.
        ExtraMissing: the package of the stock saver is not installed.
        ImportIncomplete: something could not be read or is missing at the end; the message says what.
        StoreError: a database failed. What was imported before is stored.
    """
    async with open_stock(address) as stock:
        threads = await _threads(stock, address)
        taking = _Taking(stock, saver, sum(threads.values()), progress or _ignore)
        for thread_id in threads:
            await taking.take(thread_id)
    if taking.failures:
        count = f"{len(taking.failures)} of {taking.total} checkpoints are missing. The first: "
        raise ImportIncomplete(where=shown_address(address), reason=count + taking.failures[0])
    return Imported(len(threads), taking.done, taking.writes, taking.already)


async def _threads(stock: StockCheckpoints, address: str) -> dict[str, int]:
    if found := await stock.threads():
        return found
    raise NotACheckpointDatabase(where=shown_address(address), reason="it holds no checkpoints.")


@dataclass(slots=True)
class _Taking:
    stock: StockCheckpoints
    saver: AsyncLongthreadSaver
    total: int
    progress: Callable[[CheckpointProgress], None]
    done: int = 0
    writes: int = 0
    already: int = 0
    failures: list[str] = field(default_factory=list)

    async def take(self, thread_id: str) -> None:
        """Import what is missing of a thread, oldest first: the last one stored is its newest state."""
        wanted = await self.stock.checkpoints(thread_id)
        here = await self._here(thread_id)
        done = {address.key for address in wanted if here.get(address.key, -1) >= address.writes}
        self.already += len(done)
        last = max((place for place, address in enumerate(wanted) if address.key in done), default=-1)
        for address in wanted[: last + 1]:
            if address.key in done:
                self._told(thread_id, address)
            else:
                # It would become the thread's newest state.
                self._fail(
                    f"checkpoint {address.id} of thread {thread_id} is missing before others that are here: the thread "
                    "was pruned here, or the checkpoint could not be read."
                )
        if here.keys() - {address.key for address in wanted} and wanted[last + 1 :]:
            self._fail(f"thread {thread_id} has gone on here.", len(wanted[last + 1 :]))
        else:
            await self._bring_all(thread_id, wanted[last + 1 :])

    async def _bring_all(self, thread_id: str, missing: Sequence[CheckpointAddress]) -> None:
        stored: set[tuple[str, str, Any]] = set()
        brought: list[CheckpointAddress] = []
        for address in missing:
            try:
                await self._bring(thread_id, address, stored)
            except CheckpointUnreadable as error:
                self._fail(str(error))
            except ThreadTaken:
                self._fail(f"thread {thread_id} is here already, and is another user's.", len(missing))
                return
            else:
                brought.append(address)
                self._told(thread_id, address)
        here = await self._here(thread_id) if brought else {}
        for address in brought:
            if here.get(address.key, -1) < address.writes:
                self._fail(f"checkpoint {address.id} of thread {thread_id} is not here with all its writes.")

    async def _bring(self, thread_id: str, address: CheckpointAddress, stored: set[tuple[str, str, Any]]) -> None:
        found = await self.stock.read(thread_id, address)
        paths = await self.stock.paths(thread_id, address) if address.writes else {}
        # Writes go first: a stored checkpoint then always has all of them.
        for task_id, writes in _by_task(found):
            await self.saver.aput_writes(found.config, writes, task_id, paths.get(task_id, ""))
        versions = found.checkpoint["channel_versions"]
        new = {channel: v for channel, v in versions.items() if (address.ns, channel, v) not in stored}
        parent = (found.parent_config or {}).get("configurable", {}).get("checkpoint_id")
        config: RunnableConfig = {"configurable": {"thread_id": thread_id, "checkpoint_ns": address.ns}}
        if parent:
            config["configurable"]["checkpoint_id"] = parent
            # As of a run that was given it: the stock saver may have forked there.
            config["metadata"] = {"thread_id": thread_id, "checkpoint_id": parent}
        await self.saver.aput(config, found.checkpoint, found.metadata, new)
        stored |= {(address.ns, channel, version) for channel, version in new.items()}

    async def _here(self, thread_id: str) -> dict[tuple[str, str], int]:
        async with self.saver._store.reading() as tx:
            rows = await tx.fetch("count_checkpoint_writes", thread_id=thread_id, user_id=self.saver._user_id)
        return {(row["ns"], row["id"]): row["writes"] for row in rows}

    def _told(self, thread_id: str, address: CheckpointAddress) -> None:
        self.done += 1
        self.writes += address.writes
        self.progress(CheckpointProgress(self.done, self.total, thread_id))

    def _fail(self, reason: str, checkpoints: int = 1) -> None:
        self.failures += [reason] * checkpoints


def _by_task(found: CheckpointTuple) -> Iterator[tuple[str, list[PendingWrite]]]:
    """Group writes by task. LangGraph numbers errors, interrupts and the like separately."""
    for task_id, writes in groupby(found.pending_writes or [], key=lambda write: write[0]):
        all_of_task = [(channel, value) for _, channel, value in writes]
        for special in (False, True):
            if chosen := [write for write in all_of_task if (write[0] in WRITES_IDX_MAP) is special]:
                yield task_id, chosen


def _ignore(progress: CheckpointProgress) -> None:
    """Ignore the progress."""
