"""What a saver caches of threads, to read and compare less. Any of it may be dropped."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from langchain_core.messages import BaseMessage

from longthread.errors import ThreadNotFound
from longthread.langgraph.saver.message_list import CachedMessage, MessageList
from longthread.langgraph.saver.record import StoredCheckpoint, TaskWrites
from longthread.model.lru import LRU
from longthread.store.checkpoints import Locked, NewestCheckpoint, PutPlace

THREADS = 2048
"""Threads that are remembered; the one not used for the longest time goes first."""
SEEN = 16_384
"""Threads that are remembered to have been there."""
MESSAGES = 40_000
"""Messages that are remembered, of all threads together."""
LISTS = 8
"""Lists of messages of one thread."""
CHECKPOINTS = 16
"""Checkpoints of one thread: the newest of its namespaces."""
OPEN = 64
"""Checkpoints of one thread whose tasks are still writing."""

CheckpointName = tuple[str, str]
"""A namespace, and the name of a channel in it or the id of a checkpoint."""
CONVERSATION: CheckpointName = ("", "messages")
"""The list whose last message is the thread's tip."""


@dataclass(slots=True)
class CachedThread:
    """One thread's cache, of committed data only. `incarnation` tells threads of one id apart; None: unknown."""

    incarnation: str | None = None
    first_seq: int = 1
    thread: Locked | None = None
    """Its row, as it was seen or written last."""
    lists: LRU[CheckpointName, MessageList] = field(default_factory=lambda: LRU(LISTS))
    newest: LRU[str, StoredCheckpoint] = field(default_factory=lambda: LRU(CHECKPOINTS))
    """By namespace, the checkpoint that this process put there last."""
    tasks: LRU[CheckpointName, dict[str, TaskWrites]] = field(default_factory=lambda: LRU(OPEN))
    """By namespace and checkpoint, what this process has stored of the writes of its tasks."""
    delta: LRU[CheckpointName, tuple[str, MessageList, int]] = field(default_factory=lambda: LRU(LISTS))
    """Of a delta channel, the checkpoint that was stored last, its list of messages, and how many these were."""

    def keep_tasks(self, name: CheckpointName, tasks: Iterable[TaskWrites]) -> None:
        known = self.tasks.get(name) or {}
        known.update((task.id, task) for task in tasks)
        self.tasks.put(name, known)

    def delta_list(self, name: CheckpointName, checkpoint_id: str) -> MessageList | None:
        """Return the messages of a delta channel at a checkpoint, if they are known."""
        known_id, kept, count = self.delta.get(name) or ("", None, 0)
        is_it = known_id == checkpoint_id and kept is self.lists.get(name) and kept is not None and len(kept) == count
        return kept if is_it else None

    def drop_before(self, seq: int) -> None:
        """Drop the lists with entries before `seq`, which retention has deleted."""
        for name, kept in self.lists.items():
            if any(first < seq for first, *_ in kept.runs):
                self.lists.pop(name)

    def place(self, ns: str, checkpoint_id: str | None) -> PutPlace | None:
        """Return where to store a checkpoint's child or task writes, if this process made the last put.
        Another process may have made a later one."""
        newest = self.newest.peek(ns)
        if self.thread is None or newest is None or newest.id != checkpoint_id or self.tasks.get((ns, newest.id)):
            return None
        return PutPlace(self.thread, NewestCheckpoint(newest.n, newest.id, newest.writes), None, False)

    def finder(self, new: dict[str, CachedMessage] | None = None) -> SeqLookup:
        """Find cached messages, the conversation's first, and those in `new`, by id.
        From any thread: others may change the lists meanwhile."""
        lists = sorted(self.lists.items(), key=lambda each: each[0] != CONVERSATION)
        return SeqLookup([kept for _, kept in lists], new or {}, self.first_seq)


class ThreadCache:
    def __init__(self) -> None:
        self._threads = LRU[str, CachedThread](THREADS, most_size=MESSAGES, size=_size)
        self._seen = LRU[str, bool](SEEN)

    def has_seen(self, thread_id: str) -> bool:
        """Whether the thread existed before: if it is missing now, it was deleted."""
        return thread_id in self._seen

    def peek(self, thread_id: str) -> CachedThread:
        """Return a thread's cache, which may be out of date. From any thread of the process."""
        return self._threads.peek(thread_id) or CachedThread()

    def see(self, thread_id: str, memory: CachedThread) -> None:
        """Count a thread's cache after a commit, unless it was dropped meanwhile, and evict the least recently used."""
        self._seen.put(thread_id, True)
        if self._threads.peek(thread_id) is memory:
            self._threads.put(thread_id, memory)

    def of_locked(self, thread: Locked) -> CachedThread:
        """Return the cache of a locked thread. That of an earlier thread of the same id is dropped;
        if checkpoints were replaced or reverted, all but the messages."""
        memory = self._threads.get(thread.id)
        if memory is None or memory.incarnation not in (None, thread.incarnation):
            memory = self._renew_cache(memory, thread)
        if memory.first_seq != thread.first_seq:
            memory.drop_before(thread.first_seq)
        memory.incarnation, memory.first_seq, memory.thread = thread.incarnation, thread.first_seq, thread
        return memory

    def _renew_cache(self, memory: CachedThread | None, thread: Locked) -> CachedThread:
        """Replace a cache that a store in progress may still use."""
        renewed = CachedThread()
        if memory is not None and memory.thread is not None and memory.thread.birth_id == thread.birth_id:
            for name, kept in memory.lists.items():
                renewed.lists.put(name, kept)
        self._threads.put(thread.id, renewed)
        return renewed

    @contextmanager
    def unless_it_fails(self, thread_id: str) -> Iterator[None]:
        """Drop the thread's cache if the block fails: it may be half updated, and the commit is uncertain."""
        fails = True  # also when it is cancelled: the transaction may have been committed
        try:
            yield
            fails = False
        except ThreadNotFound:  # nothing was prepared, and what is remembered tells this to the other tasks too
            fails = False
            raise
        finally:
            if fails:
                self.forget(thread_id)

    def forget(self, thread_id: str) -> None:
        self._threads.pop(thread_id)


@dataclass(slots=True)
class SeqLookup:
    """Finds the seqs of cached messages. Entries before `first_seq` are deleted."""

    lists: Sequence[MessageList]
    new: dict[str, CachedMessage]
    first_seq: int

    def seqs(self, items: Sequence[Any]) -> list[int | None]:
        found: list[int | None] = []
        stretch = 1
        while len(found) < len(items):
            at = len(found)
            places = self._stretch(items[at : at + stretch])
            found += places
            # Neighbours in one list are mostly neighbours in the log: double the next stretch.
            stretch = 2 * stretch if len(places) == stretch else 1
        return [seq if seq is not None and seq >= self.first_seq else None for seq in found]

    def _stretch(self, items: Sequence[Any]) -> list[int | None]:
        """Return the seqs of the first items that are neighbours in a list; at least one."""
        first = items[0]
        if not isinstance(first, BaseMessage) or not first.id:
            return [None]
        messages = items if all(isinstance(item, BaseMessage) for item in items) else items[:1]
        for kept in self.lists:
            place = kept.place_of(first.id)
            if place is None:
                continue
            if count := kept.like(messages, place):
                return list(kept.seqs[place : place + count])
            kept.doubt()
        new = self.new.get(first.id)
        return [new.seq if new is not None and new.is_like(first) else None]


def _size(memory: CachedThread) -> int:
    return sum(len(kept) for _, kept in memory.lists.items())
