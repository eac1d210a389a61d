"""What a saver remembers of threads, so that it need not read and compare them anew. All of it may be forgotten."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
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
    """One thread. `incarnation` tells it from a later one of the same id; None: not known yet.

    What is remembered has been committed: nothing of a transaction is noted here before its end.
    """

    incarnation: str | None = None
    first_seq: int = 1
    thread: Locked | None = None
    """Its row, as it was seen or written last."""
    lists: LRU[CheckpointName, MessageList] = field(default_factory=lambda: LRU(LISTS))
    newest: LRU[str, StoredCheckpoint] = field(default_factory=lambda: LRU(CHECKPOINTS))
    """By namespace, the checkpoint that this process put there last."""
    tasks: LRU[CheckpointName, dict[str, TaskWrites]] = field(default_factory=lambda: LRU(OPEN))
    """By namespace and checkpoint, what this process has stored of the writes of its tasks."""

    def keep_task(self, name: CheckpointName, task: TaskWrites) -> None:
        """Remember what a task's row holds."""
        self.tasks.put(name, {**(self.tasks.get(name) or {}), task.id: task})

    def drop_before(self, seq: int) -> None:
        """Forget the lists that hold entries from before this one: retention has deleted those."""
        for name, kept in self.lists.items():
            if any(first < seq for first, _ in kept.runs):
                self.lists.pop(name)

    def place(self, ns: str, checkpoint_id: str | None) -> PutPlace | None:
        """Where to store what goes on from a checkpoint, or what its tasks have written, if this process has put it and
        nothing since: unless somebody else has."""
        newest = self.newest.peek(ns)
        if self.thread is None or newest is None or newest.id != checkpoint_id or self.tasks.get((ns, newest.id)):
            return None
        return PutPlace(self.thread, NewestCheckpoint(newest.n, newest.id, newest.writes), None, False)

    def finder(self, new: dict[str, CachedMessage] | None = None) -> SeqLookup:
        """Finds the messages that are remembered, the conversation's first; and those in `new`, by id. From any thread:
        others may remember and forget lists meanwhile."""
        lists = sorted(self.lists.items(), key=lambda each: each[0] != CONVERSATION)
        return SeqLookup([kept for _, kept in lists], new or {}, self.first_seq)


class ThreadCache:
    """All threads of a saver."""

    def __init__(self) -> None:
        self._threads = LRU[str, CachedThread](THREADS, most_size=MESSAGES, size=_size)
        self._seen = LRU[str, bool](SEEN)

    def has_seen(self, thread_id: str) -> bool:
        """Whether the thread was there once: if it is not there now, it has been deleted."""
        return thread_id in self._seen

    def peek(self, thread_id: str) -> CachedThread:
        """What is known of a thread, which may not be right any more. From any thread of the process."""
        return self._threads.peek(thread_id) or CachedThread()

    def see(self, thread_id: str, memory: CachedThread) -> None:
        """The thread is there, and has been committed: note how much is remembered of it now, unless it was forgotten
        meanwhile. The threads that were used least recently are forgotten, as far as it is too much."""
        self._seen.put(thread_id, True)
        if self._threads.peek(thread_id) is memory:
            self._threads.put(thread_id, memory)

    def of_locked(self, thread: Locked) -> CachedThread:
        """A thread as the database has it. What is known of an earlier thread of the same id is forgotten; where
        checkpoints were replaced or taken back, all but the messages."""
        memory = self._threads.get(thread.id)
        if memory is None or memory.incarnation not in (None, thread.incarnation):
            memory = self._renewed(memory, thread)
        if memory.first_seq != thread.first_seq:
            memory.drop_before(thread.first_seq)
        memory.incarnation, memory.first_seq, memory.thread = thread.incarnation, thread.first_seq, thread
        return memory

    def _renewed(self, memory: CachedThread | None, thread: Locked) -> CachedThread:
        """Another one in the place of this one, which somebody may be storing with still."""
        renewed = CachedThread()
        if memory is not None and memory.thread is not None and memory.thread.born == thread.born:
            for name, kept in memory.lists.items():
                renewed.lists.put(name, kept)
        self._threads.put(thread.id, renewed)
        return renewed

    @contextmanager
    def unless_it_fails(self, thread_id: str) -> Iterator[None]:
        """Something is stored in its block. If that fails the thread is forgotten: what was prepared may be half of it,
        and whether it was committed is not known for certain."""
        try:
            yield
        except ThreadNotFound:
            raise  # nothing was prepared, and what is remembered tells this to the run's other tasks too
        except BaseException:  # also when it is cancelled: the transaction may have been committed
            self.forget(thread_id)
            raise

    def forget(self, thread_id: str) -> None:
        """A thread is not there any more."""
        self._threads.pop(thread_id)


@dataclass(slots=True)
class SeqLookup:
    """Tells where messages stand that are remembered. Entries before `first_seq` are gone."""

    lists: Sequence[MessageList]
    new: dict[str, CachedMessage]
    first_seq: int

    def seqs(self, items: Sequence[Any]) -> list[int | None]:
        """Of each of these that is a message that the log holds, its seq."""
        found: list[int | None] = []
        stretch = 1
        while len(found) < len(items):
            at = len(found)
            places = self._stretch(items[at : at + stretch])
            found += places
            # Messages that follow one another mostly do so in the log too: look at twice as many the next time.
            stretch = 2 * stretch if len(places) == stretch else 1
        return [seq if seq is not None and seq >= self.first_seq else None for seq in found]

    def _stretch(self, items: Sequence[Any]) -> list[int | None]:
        """Where the first items stand that follow one another somewhere; at least one is told."""
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
            kept.hold([])  # it may have been changed where it stands
        new = self.new.get(first.id)
        return [new.seq if new is not None and new.is_like(first) else None]


def _size(memory: CachedThread) -> int:
    """How many messages are remembered of a thread."""
    return sum(len(kept) for _, kept in memory.lists.items())
