"""Forgets one message of a thread: its entries in all versions, what was made of them, and every checkpoint's share."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Collection, Iterable, Mapping, Set
from dataclasses import replace
from typing import Any

from longthread.errors import EntryNotFound, InvalidInput, ThreadNotFound
from longthread.langgraph.message_codec import MessageForm
from longthread.langgraph.saver.channel_values import NOTHING, ChannelValue
from longthread.langgraph.saver.forgotten_values import ForgottenMessages
from longthread.langgraph.saver.record import StoredCheckpoint, TaskWrites, blob_of, cell_of_blob
from longthread.model.entry import Entry
from longthread.store import checkpoints, incarnation, log
from longthread.store.branches import find_versions, places_of_versions
from longthread.store.checkpoints import CheckpointRow, WriteRow
from longthread.store.driver import Driver, Transaction
from longthread.store.maintenance.deletions import delete_entries, expect_free
from longthread.store.maintenance.space import scrub

_logger = logging.getLogger(__name__)
_TABLES = (
    "entries",
    "threads",
    "checkpoints",
    "checkpoint_blobs",
    "checkpoint_writes",
    "message_metadata",
    "conversation_summaries",
    "memory_topics",
    "memory_topic_spans",
    "memory_vectors",
    "memories",
    "memory_sources",
    "folds",
    "recall_segments",
    "recall_postings",
    "recall_signatures",
    "recall_volumes",
    "recall_volume_postings",
)
"""The tables that held something of it."""
_PAGE = 64
_STEP = 64
"""Entries that are read at a time, on the way back to the call of a result."""
_NEITHER = ChannelValue("null", b"")


async def forget_message(
    store: Driver, thread_id: str, message_id: str, *, user_id: str, form: MessageForm
) -> list[str]:
    """Forget a message of a thread for good; return the ids of all that went.

    A call and its results are one: with one of them all go, since no provider takes one without the other. A run that
    has read the thread before would bring the message back: with its next write it gets a `ThreadConflict`, unless its
    saver has handed out the same checkpoint again meanwhile.

    Raises:
        ThreadNotFound: there is no such thread, or it is another user's.
        EntryNotFound: the thread has no such message.
        InvalidInput: the id is none, or the thread is not a LangGraph application's alone, or a step of it is not
            finished and goes on with the message, or what messages say is not stored in plain: then it is unknown which
            calls and results are one.
        StoreError: the database failed. Nothing was changed.
    """
    given: Any = message_id  # not every program is type-checked
    if not isinstance(given, str) or not given:
        raise InvalidInput(reason=f"The message's id is {given!r}. Give the id that it has in the graph's state.")
    async with store.writing() as tx:
        thread = await checkpoints.lock(tx, thread_id, user_id=user_id)
        if thread is None:
            raise ThreadNotFound(thread=thread_id)
        if not form.has_text:
            raise InvalidInput(
                reason="One message cannot be forgotten where the application's serializer packs all of them. Forget "
                "the whole thread: saver.delete_thread(…)."
            )
        await expect_free(tx, thread_id)
        entries = await _unit(tx, thread_id, message_id)
        ids = {log.sent_id(entry) for entry in entries} | {message_id}
        versions = sorted(await places_of_versions(tx, thread_id))
        gone = ForgottenMessages(entries, ids, form.serde, versions)
        names = sorted(await checkpoints.namespaces(tx, thread_id))
        spaces = [await _Namespace.of(tx, thread_id, ns, gone) for ns in names]
        for space in spaces:
            await space.note_lists()
        step = await checkpoints.find(tx, thread_id, "", None)
        finished = step.id if step is not None else ""
        gone.clears_summaries = bool(entries)
        rewritten = [await space.rewrite(finished) for space in spaces]
        if not entries and not any(rewritten):
            raise EntryNotFound(thread=thread_id, entry=message_id)
        if not entries:
            gone.clears_summaries = True  # it was somewhere, so a summary may tell of it
            for space in spaces:
                await space.rewrite(finished)
        if entries:
            await delete_entries(tx, thread_id, user_id, entries)
        else:
            await incarnation.begin_again(tx, thread_id)
    for problem in await scrub(store, _TABLES):
        _logger.info("After a message was forgotten: %s", problem)
    return sorted(ids)


async def _unit(tx: Transaction, thread_id: str, message_id: str) -> list[Entry]:
    """Return the entries of a message, and of the messages that are one with it: a call and its results."""
    found: dict[str, list[Entry]] = {}
    waiting = [message_id]
    while waiting:
        sent = waiting.pop()
        if sent in found:
            continue
        found[sent] = await _versions(tx, thread_id, sent)
        for entry in found[sent]:
            caller = await _caller(tx, thread_id, entry)
            waiting += [log.sent_id(caller)] if caller is not None else []
            waiting += await _results(tx, thread_id, entry, found[sent])
    return sorted((entry for entries in found.values() for entry in entries), key=lambda entry: entry.seq)


async def _versions(tx: Transaction, thread_id: str, sent: str) -> list[Entry]:
    first = await log.find_entries(tx, thread_id, [sent])
    others = (await find_versions(tx, thread_id, [sent])).get(sent, [])
    return [
        *(await log.entries_at(tx, thread_id, others)).values(),
        *(e for e in first.values() if log.sent_id(e) == sent),
    ]


async def _caller(tx: Transaction, thread_id: str, result: Entry) -> Entry | None:
    """Return the nearest message before a result that makes its call."""
    if result.role != "tool" or not result.tool_call_id:
        return None
    at = result.replaces or result.seq
    while at and (page := await log.branch(tx, thread_id, at, limit=_STEP, seen_from=max(at, result.seq))):
        for entry in reversed(page):
            if any(call.id == result.tool_call_id for call in entry.tool_calls):
                return entry
        at = page[0].parent_seq
    return None


async def _results(tx: Transaction, thread_id: str, entry: Entry, own: Iterable[Entry]) -> list[str]:
    """Return the ids of the results of an entry's calls. Some models give many calls the same id."""
    if not entry.tool_calls:
        return []
    seqs = await log.results_of(tx, thread_id, [call.id for call in entry.tool_calls])
    places = {each.replaces or each.seq for each in own}
    found: list[str] = []
    for result in (await log.entries_at(tx, thread_id, seqs)).values():
        caller = await _caller(tx, thread_id, result)
        found += [log.sent_id(result)] if caller is not None and caller.seq in places else []
    return found


class _Namespace:
    """Rewrites the checkpoints of a namespace without forgotten messages."""

    def __init__(
        self, tx: Transaction, thread_id: str, ns: str, gone: ForgottenMessages, newest: CheckpointRow | None
    ) -> None:
        self._tx = tx
        self._thread_id = thread_id
        self._ns = ns
        self._gone = gone
        self._newest = newest

    @classmethod
    async def of(cls, tx: Transaction, thread_id: str, ns: str, gone: ForgottenMessages) -> _Namespace:
        return cls(tx, thread_id, ns, gone, await checkpoints.find(tx, thread_id, ns, None))

    async def note_lists(self) -> None:
        """Note which channels have lists of messages, wherever one is: inputs are named by them."""
        async for _, channel, cell in self._large_values():
            self._note([(channel, cell)])
        async for row in self._rows():
            stored = StoredCheckpoint.from_row(row, self._gone.serde)
            self._note(stored.cells.items())
            for task in stored.tasks.values():
                self._note(task.items.values())
        for task_row in await checkpoints.writes(self._tx, self._thread_id, self._ns, "", checkpoints.LAST):
            self._note(TaskWrites.from_row(task_row, self._thread_id).items.values())

    async def rewrite(self, step: str) -> int:
        """Rewrite the rows that mention the forgotten messages; return how many rows that was. `step`: the newest
        checkpoint of the graph itself. A subgraph that has a later one belongs to the step after that, which may be
        unfinished."""
        newest = self._newest
        waits = newest is not None and newest.id >= step
        later = await self._find_replaced() if waits else {}
        count = 0
        async for n, channel, cell in self._large_values():
            at_newest = newest is not None and n == newest.n
            left = self._gone.without(channel, cell, raw=not at_newest, waits=waits and at_newest)
            if left is not cell:
                count += 1
                made = blob_of(replace(left or _NEITHER, stored_by=n))
                await checkpoints.put_blobs(self._tx, self._thread_id, self._ns, n, {channel: made})
        async for row in self._rows():
            at_newest = newest is not None and row.n == newest.n
            count += await self._checkpoint(row, later, raw=not at_newest, waits=waits and at_newest)
        for task in await checkpoints.writes(self._tx, self._thread_id, self._ns, "", checkpoints.LAST):
            at_newest = newest is not None and task.checkpoint_id == newest.id
            count += await self._task(task, raw=newest is not None and not at_newest, waits=waits and at_newest)
        return count

    def _note(self, cells: Iterable[tuple[str, ChannelValue]]) -> None:
        for channel, cell in cells:
            self._gone.note_list(channel, cell)

    async def _large_values(self) -> AsyncIterator[tuple[int, str, ChannelValue]]:
        for n, channel in await checkpoints.blob_names(self._tx, self._thread_id, self._ns):
            body = await checkpoints.blob(self._tx, self._thread_id, self._ns, n, channel)
            yield n, channel, cell_of_blob(body or b"", n)

    async def _rows(self) -> AsyncIterator[CheckpointRow]:
        last: int | None = None
        while rows := await checkpoints.before(self._tx, self._thread_id, self._ns, last, limit=_PAGE):
            for row in rows:
                yield row
            last = rows[-1].n

    async def _find_replaced(self) -> dict[str, set[int]]:
        """Return which writes in the newest checkpoint's body are replaced by later ones, as a question by the next."""
        at = self._newest.id if self._newest is not None else ""
        rows = await checkpoints.writes(self._tx, self._thread_id, self._ns, at)
        tasks = [TaskWrites.from_row(row, self._thread_id) for row in rows]
        return {task.id: {index for index in task.items if index < 0} for task in tasks}

    async def _checkpoint(self, row: CheckpointRow, later: Mapping[str, Set[int]], *, raw: bool, waits: bool) -> bool:
        stored = StoredCheckpoint.from_row(row, self._gone.serde)
        cells = {
            channel: cell if cell.stored_by is not None else self._cell(channel, cell, raw=raw, waits=waits)
            for channel, cell in stored.cells.items()
        }
        tasks = {
            task_id: self._without(task, later.get(task_id, ()), raw=raw, waits=waits)
            for task_id, task in stored.tasks.items()
        }
        if _same(cells, stored.cells) and _same(tasks, stored.tasks):
            return False
        left = replace(stored, cells=cells, tasks=tasks)
        await checkpoints.rewrite(self._tx, row, left.body(), left.writes)
        return True

    async def _task(self, row: WriteRow, *, raw: bool, waits: bool) -> bool:
        task = TaskWrites.from_row(row, self._thread_id)
        left = self._without(task, (), raw=raw, waits=waits)
        if left is not task:
            await checkpoints.replace_writes(self._tx, self._thread_id, left.row(row.ns, row.checkpoint_id))
        return left is not task

    def _cell(self, channel: str, cell: ChannelValue, *, raw: bool, waits: bool) -> ChannelValue:
        left = self._gone.without(channel, cell, raw=raw, waits=waits)
        return _NEITHER if left is None else left

    def _without(self, task: TaskWrites, replaced: Collection[int], *, raw: bool, waits: bool) -> TaskWrites:
        items: dict[int, tuple[str, ChannelValue]] = {}
        for index, (channel, cell) in task.items.items():
            left = self._gone.without(channel, cell, raw=raw, waits=waits and index not in replaced)
            # A task of whose writes none is left would run again.
            items[index] = (NOTHING, _NEITHER) if left is None and index >= 0 else (channel, left or _NEITHER)
        same = all(items[n][1] is cell for n, (_, cell) in task.items.items())
        return task if same else TaskWrites(task.id, task.path, items)


def _same(one: Mapping[str, object], other: Mapping[str, object]) -> bool:
    return all(one[name] is value for name, value in other.items())
