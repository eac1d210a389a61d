"""Which checkpoints a run continues from, so that two runs that continue the same one do not both succeed.

LangGraph names the checkpoint before a put, and not why: a run that loaded the newest one and a caller that forks from
an old one look the same. But the id comes back as the very object that was handed out. So the ids that a run was given
as the newest, and those that it put itself, are remembered as objects; every other answer has a new object. A put on a
remembered id must find that checkpoint still the newest; a put on any other id is a fork.

A run that found no checkpoint has no id: it is counted, and the first put without a parent takes it off. The thread of
each id is remembered too: a later thread of the same name is none of the run's.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from sys import intern

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import get_checkpoint_id

from longthread.errors import ThreadConflict
from longthread.langgraph.internals import REPLAY_STATE
from longthread.model.lru import LRU
from longthread.store.checkpoints import NewestCheckpoint

IDS = 8192
"""Ids that are remembered. A run whose id was forgotten is taken for a fork."""
_BELONGING = 2 * IDS
"""Ids of which the thread is remembered: each put has two."""

NamespaceKey = tuple[str, str]
"""A thread and a namespace."""


class ParentTracker:
    def __init__(self) -> None:
        self._ids = LRU[int, tuple[str, frozenset[str]]](IDS)
        self._threads = LRU[tuple[int, str], tuple[str, str]](_BELONGING)
        self._lost = LRU[str, bool](IDS)
        self._refused = LRU[int, str](IDS)
        self._found_nothing: Counter[NamespaceKey] = Counter()

    def note(self, checkpoint_id: str, seen: Iterable[str] = ()) -> None:
        """Remember that a run continues from here; `seen` are the channels of which it knows task writes."""
        # Held, so that no other object can get its `id()`.
        self._ids.put(id(checkpoint_id), (checkpoint_id, frozenset(seen)))

    def holds(self, checkpoint_id: str) -> bool:
        known = self._ids.peek(id(checkpoint_id))
        return known is not None and known[0] is checkpoint_id

    def seen(self, checkpoint_id: str) -> frozenset[str]:
        """Return the channels whose task writes the holder of this very object knows."""
        known = self._ids.peek(id(checkpoint_id))
        return known[1] if known is not None and known[0] is checkpoint_id else frozenset()

    def note_nothing(self, place: NamespaceKey) -> None:
        """Count a run that found no checkpoint."""
        if len(self._found_nothing) >= IDS:
            self._found_nothing.clear()
        self._found_nothing[place] += 1

    def began(self, place: NamespaceKey) -> bool:
        """Whether a run found nothing here and has not put anything since; takes it off the count."""
        if self._found_nothing[place] <= 0:
            del self._found_nothing[place]
            return False
        self._found_nothing[place] -= 1
        return True

    def belongs(self, checkpoint_id: str, thread_id: str, birth_id: str) -> None:
        """Remember the thread's mark for this very object: see `Locked.born`."""
        self._threads.put((id(checkpoint_id), thread_id), (checkpoint_id, intern(birth_id)))

    def is_missing(self, checkpoint_id: str, thread_id: str) -> None:
        """Note that the holder of this very object was told that the checkpoint is missing; it may go on."""
        self._threads.pop((id(checkpoint_id), thread_id))

    def birth_id(self, checkpoint_id: str | None, thread_id: str) -> str | None:
        """Return the thread's mark for this very object; None if unknown."""
        known = self._threads.peek((id(checkpoint_id), thread_id))
        return known[1] if known is not None and known[0] is checkpoint_id else None

    def fork(self, checkpoint_id: str, thread_id: str) -> str:
        """Return the id as a new object, which names an old checkpoint to fork from."""
        forked = new_object(checkpoint_id)
        if (birth_id := self.birth_id(checkpoint_id, thread_id)) is not None:
            self.belongs(forked, thread_id, birth_id)
        return forked

    def refuse(self, checkpoint_id: str) -> None:
        """Forbid the run to continue from here: its tasks' writes were refused."""
        self._refused.put(id(checkpoint_id), checkpoint_id)

    def lose(self, checkpoint_id: str) -> None:
        """Forbid the run to store anything more: its put was refused."""
        self._lost.put(checkpoint_id, True)

    def is_lost(self, checkpoint_id: str | None) -> bool:
        return checkpoint_id is not None and checkpoint_id in self._lost

    def forget(self, thread_id: str) -> None:
        for place in [place for place in self._found_nothing if place[0] == thread_id]:
            del self._found_nothing[place]

    def check(
        self, place: NamespaceKey, head: NewestCheckpoint | None, config: RunnableConfig, checkpoint_id: str
    ) -> None:
        """Raise ThreadConflict if the run's parent is no longer the newest checkpoint."""
        parent_id = named(config)
        if self.is_lost(parent_id) or (parent_id is not None and self._refused.peek(id(parent_id)) is parent_id):
            raise ThreadConflict(thread=place[0])
        if head is None or head.id in (parent_id, checkpoint_id):
            return
        if parent_id is None:
            goes_on = not config["configurable"].get(REPLAY_STATE) and self.began(place)
        else:
            goes_on = self.holds(parent_id)
        if goes_on:
            raise ThreadConflict(thread=place[0])


def named(config: RunnableConfig) -> str | None:
    """Return the very id object of a config; None for an empty id, which clients send for the newest checkpoint."""
    return get_checkpoint_id(config) or None


def new_object(text: str) -> str:
    return text.encode().decode()
