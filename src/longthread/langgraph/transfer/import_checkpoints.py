"""Import every thread, namespace, checkpoint and write of LangGraph's own savers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any, Literal

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import WRITES_IDX_MAP, BaseCheckpointSaver, CheckpointTuple
from langgraph.checkpoint.serde.base import SerializerProtocol

from longthread.errors import (
    CheckpointUnreadable,
    ImportIncomplete,
    MessageNotStorable,
    NotACheckpointDatabase,
    ThreadTaken,
)
from longthread.langgraph.message_codec import SerializerFailed, calling_serializer
from longthread.langgraph.saver.async_saver import AsyncLongthreadSaver
from longthread.langgraph.saver.saver import on_home
from longthread.langgraph.transfer import stock_items
from longthread.langgraph.transfer.stock_savers import CheckpointAddress, StockCheckpoints, open_stock
from longthread.store.transfer.foreign import shown_address

PendingWrite = tuple[str, Any]
StoredVersions = set[tuple[str, str, Any]]
"""Versions of channels that the other saver has, by namespace and channel."""
USER_KEYS = ("langgraph_auth_user_id", "user_id")
"""Keys of a checkpoint's metadata that name its user: LangGraph's server writes the first, programs the second."""


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


@dataclass(frozen=True, slots=True)
class CheckpointProgress:
    """The progress of an import or export: how many checkpoints and items of how many are done, and the last one's kind
    and thread, or its namespace."""

    done: int
    total: int
    thread_id: str
    kind: Literal["checkpoint", "item"] = "checkpoint"


@dataclass(slots=True, kw_only=True)
class CheckpointTally:
    """What an import or export of `total` checkpoints and items has done, and what it could not do."""

    total: int
    progress: Callable[[CheckpointProgress], None] | None
    done: int = 0
    checkpoints: int = 0
    writes: int = 0
    already: int = 0
    failures: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    @property
    def left(self) -> list[str]:
        """What could not be done, each once."""
        return list(dict.fromkeys(self.failures))

    def tell_checkpoint(self, thread_id: str, address: CheckpointAddress) -> None:
        """Count a checkpoint that is there now."""
        self.checkpoints += 1
        self.writes += address.writes
        self._tell(thread_id, "checkpoint")

    def tell_item(self, namespace: str) -> None:
        """Count an item that is there now."""
        self._tell(namespace, "item")

    def _tell(self, place: str, kind: Literal["checkpoint", "item"]) -> None:
        self.done += 1
        if self.progress is not None:
            self.progress(CheckpointProgress(self.done, self.total, place, kind))


@dataclass(frozen=True, slots=True)
class Imported:
    """The result of an import. `already` and `items_already` count what was here before. `users` counts the threads of
    users other than the saver's; `notes` says what you should know of them."""

    threads: int
    checkpoints: int
    writes: int
    already: int
    items: int = 0
    items_already: int = 0
    users: Mapping[str, int] = field(default_factory=dict)
    notes: Sequence[str] = ()


async def import_langgraph(
    address: str,
    saver: AsyncLongthreadSaver,
    *,
    serde: SerializerProtocol | None = None,
    user_keys: Sequence[str] = USER_KEYS,
    progress: Callable[[CheckpointProgress], None] | None = None,
) -> Imported:
    """Copy all checkpoints and items of LangGraph's own savers and stores into the saver's database.

    Threads keep their ids. Existing checkpoints and items are not changed, so run an interrupted import again to finish
    it. The source is read in one snapshot and not changed. Writes without a checkpoint are skipped, because no graph
    can read them. At the end both sides are counted.

    Args:
        address: a SQLite file or a `postgresql://` URL, with the tables of a saver, of a store, or of both.
        serde: the serializer that wrote the checkpoints, if they are encrypted or pickled. Unpickling runs code.
        user_keys: keys of the checkpoints' metadata that name a thread's user; the first one found counts. Other
            threads, and all with `()`, become those of the saver's user, as do all items.

    Raises:
        NotACheckpointDatabase: there is nothing to import at the address; the message says why.
        ExtraMissing: the package of the stock saver is not installed.
        ImportIncomplete: something could not be read or is missing at the end; `left` names each.
        StoreError: a database failed. What was imported before is stored.
    """
    return await on_home(saver, _import_all, address, saver, serde, user_keys, progress)


async def _import_all(
    address: str,
    saver: AsyncLongthreadSaver,
    serde: SerializerProtocol | None,
    user_keys: Sequence[str],
    progress: Callable[[CheckpointProgress], None] | None,
) -> Imported:
    async with open_stock(address, serde) as stock:
        threads = await stock.threads()
        total = sum(threads.values()) + await stock_items.count(stock.foreign)
        if not total:
            raise NotACheckpointDatabase(where=shown_address(address), reason="it holds no checkpoints.")
        taking = CheckpointImport(stock, saver, user_keys, total=total, progress=progress)
        imported = await taking.take_all(threads)
    if left := taking.left:
        count = f"{taking.missing} of {sum(threads.values())} checkpoints are missing. " if taking.missing else ""
        raise ImportIncomplete(
            where=shown_address(address), reason=f"{count}The first: {left[0]}" if count else left[0], left=left
        )
    return imported


@dataclass(slots=True)
class _Here:
    """A checkpoint in the saver's store: how many writes it has, and its parent's id."""

    writes: int
    parent: str | None


@dataclass(slots=True)
class CheckpointImport(CheckpointTally):
    """An import into the store of the saver `of_all`."""

    stock: StockCheckpoints
    of_all: AsyncLongthreadSaver
    user_keys: Sequence[str]
    missing: int = 0
    users: Counter[str] = field(default_factory=Counter)

    async def take_all(self, threads: Collection[str]) -> Imported:
        """Import what is missing of these threads, and the items; `failures` receives what could not be imported."""
        for thread_id in threads:
            await self._take(thread_id)
        items = await stock_items.take(self.stock.foreign, self.of_all, self.failures, self.tell_item)
        counts = len(threads), self.checkpoints, self.writes, self.already
        return Imported(*counts, items.there, items.already, dict(self.users), tuple(self.notes))

    async def _take(self, thread_id: str) -> None:
        """Import what is missing of a thread, oldest first: the last one stored is its newest state."""
        saver = await self._saver_of(thread_id)
        wanted = await self.stock.checkpoints(thread_id)
        here = await _here(saver, thread_id)
        done = {address.key for address in wanted if _is_done(address, here)}
        self.already += len(done)
        has_gone_on = bool(here.keys() - {address.key for address in wanted})
        last = max((place for place, address in enumerate(wanted) if address.key in done), default=-1)
        gaps = [address for address in wanted[: last + 1] if address.key not in done]
        if gaps and not has_gone_on and not _is_pruned(wanted, here) and await self._are_readable(thread_id, gaps):
            # What is stored last is the newest state: the thread is written again, whole.
            await saver.adelete_thread(thread_id)
            here, done, last = {}, set(), -1
        for address in wanted[: last + 1]:
            if address.key in done:
                self.tell_checkpoint(thread_id, address)
            else:
                self._fail(
                    f"checkpoint {address.id} of thread {thread_id} is missing before others that are here: the thread "
                    "was pruned here, or the checkpoint could not be read."
                )
        if has_gone_on and wanted[last + 1 :]:
            self._fail(f"thread {thread_id} has gone on here.", len(wanted[last + 1 :]))
        else:
            await self._bring_all(saver, thread_id, wanted[last + 1 :])

    async def _saver_of(self, thread_id: str) -> AsyncLongthreadSaver:
        """Return a saver of the thread's user."""
        named = await self.stock.users(thread_id, self.user_keys)
        if len(named) > 1:
            self.notes.append(f"thread {thread_id} names the users {', '.join(named)}; it is {named[0]}'s now")
        if not named or named[0] == self.of_all._user_id:
            return self.of_all
        self.users[named[0]] += 1
        return AsyncLongthreadSaver(self.of_all._store, user_id=named[0], serde=self.of_all.serde)

    async def _are_readable(self, thread_id: str, addresses: Sequence[CheckpointAddress]) -> bool:
        with suppress(CheckpointUnreadable):
            for address in addresses:
                await self.stock.read(thread_id, address)
            return True
        return False

    async def _bring_all(
        self, saver: AsyncLongthreadSaver, thread_id: str, missing: Sequence[CheckpointAddress]
    ) -> None:
        stored: StoredVersions = set()
        brought: list[CheckpointAddress] = []
        for address in missing:
            try:
                await self._bring(saver, thread_id, address, stored)
            except CheckpointUnreadable as error:
                self._fail(str(error))
            except ThreadTaken:
                self._fail(f"thread {thread_id} is here already, and is another user's.", len(missing))
                return
            else:
                brought.append(address)
                self.tell_checkpoint(thread_id, address)
        here = await _here(saver, thread_id) if brought else {}
        for address in brought:
            if not _is_done(address, here):
                self._fail(f"checkpoint {address.id} of thread {thread_id} is not here with all its writes.")

    async def _bring(
        self, saver: AsyncLongthreadSaver, thread_id: str, address: CheckpointAddress, stored: StoredVersions
    ) -> None:
        found = await self.stock.read(thread_id, address)
        try:
            paths = await self.stock.paths(thread_id, address) if address.writes else {}
            with calling_serializer():
                await copy_checkpoint(found, paths, saver, stored)
        except MessageNotStorable as error:
            raise CheckpointUnreadable(thread=thread_id, checkpoint=address.id, reason=str(error)) from error
        except SerializerFailed as failed:
            reason = _why_not_storable(found, saver, failed)
            raise CheckpointUnreadable(thread=thread_id, checkpoint=address.id, reason=reason) from failed.error

    def _fail(self, reason: str, checkpoints: int = 1) -> None:
        self.failures.append(reason)
        self.missing += checkpoints


async def _here(saver: AsyncLongthreadSaver, thread_id: str) -> dict[tuple[str, str], _Here]:
    async with saver._store.reading() as tx:
        rows = await tx.fetch("count_checkpoint_writes", thread_id=thread_id, user_id=saver._user_id)
    return {(row["ns"], row["id"]): _Here(row["writes"], row["parent"]) for row in rows}


def _is_done(address: CheckpointAddress, here: Mapping[tuple[str, str], _Here]) -> bool:
    return address.key in here and here[address.key].writes >= address.writes


def _is_pruned(wanted: Sequence[CheckpointAddress], here: Mapping[tuple[str, str], _Here]) -> bool:
    """Return whether checkpoints were deleted here: the checkpoints after them name no parent any more."""
    return any(address.parent and here[address.key].parent is None for address in wanted if address.key in here)


def _why_not_storable(found: CheckpointTuple, saver: AsyncLongthreadSaver, failed: SerializerFailed) -> str:
    """Say which value the saver's serializer cannot write, as one out of a pickle, and why."""
    written = [(name, value) for _, name, value in found.pending_writes or ()]
    for channel, value in [*found.checkpoint["channel_values"].items(), *written]:
        try:
            with calling_serializer():
                saver.serde.dumps_typed(value)
        except SerializerFailed as refused:
            advice = "Give the saver the serde= that your program uses"
            return f"channel {channel}: the saver's serializer cannot write it: {refused}. {advice}."
    return f"{failed}."
