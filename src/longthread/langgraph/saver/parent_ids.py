"""Which checkpoints a run goes on from, so that two runs that go on from the same one do not both succeed.

LangGraph names the checkpoint that a put goes on from, and not why: a run that loaded the newest one and a caller who
asked for an old one, to fork from there, look the same. But the id comes back as the very object that it was handed out
as. So the ids that a run was given as the newest checkpoint's, and those of the checkpoints that it put itself, are
remembered as objects, and every other answer holds an id made anew. A put that goes on from a remembered id must find
that checkpoint still the newest; one that goes on from any other is a fork.

A run that found no checkpoint has no id to hand back: it is counted, and the first put without a parent takes it off.

Of each id that a run was given or has put it is also known of which thread it is: one of the same name that was begun
after that one was deleted is none of the run's.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from sys import intern

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import get_checkpoint_id

from longthread.errors import ThreadConflict
from longthread.model.lru import LRU
from longthread.store.checkpoints import NewestCheckpoint

IDS = 8192
"""Ids that are remembered. A run whose id was forgotten is taken for a fork."""
_BELONGING = 2 * IDS
"""Ids of which the thread is remembered: each put has two."""
_REPLAY = "__pregel_replay_state"
"""Key of a config that LangGraph sets while it replays a graph from an old checkpoint, for the graphs inside of it."""

NamespaceKey = tuple[str, str]
"""A thread and a namespace."""


class ParentTracker:
    """The ids that runs go on from."""

    def __init__(self) -> None:
        self._ids = LRU[int, tuple[str, frozenset[str]]](IDS)
        self._threads = LRU[tuple[int, str], tuple[str, str]](_BELONGING)
        self._lost = LRU[str, bool](IDS)
        self._refused = LRU[int, str](IDS)
        self._found_nothing: Counter[NamespaceKey] = Counter()

    def note(self, checkpoint_id: str, seen: Iterable[str] = ()) -> None:
        """A run goes on from here: it was given this as the newest, or has put it. `seen`: the channels of which it was
        told that tasks have written to them."""
        # The object is kept, so that no other can get its number.
        self._ids.put(id(checkpoint_id), (checkpoint_id, frozenset(seen)))

    def holds(self, checkpoint_id: str) -> bool:
        """Whether it is such an id, the very object."""
        known = self._ids.peek(id(checkpoint_id))
        return known is not None and known[0] is checkpoint_id

    def seen(self, checkpoint_id: str) -> frozenset[str]:
        """The channels that who was given this id, the very object, was told tasks have written to."""
        known = self._ids.peek(id(checkpoint_id))
        return known[1] if known is not None and known[0] is checkpoint_id else frozenset()

    def note_nothing(self, place: NamespaceKey) -> None:
        """A run begins where there is nothing yet."""
        if len(self._found_nothing) >= IDS:
            self._found_nothing.clear()
        self._found_nothing[place] += 1

    def began(self, place: NamespaceKey) -> bool:
        """Whether a run found nothing here and has not put anything since; it has now."""
        if self._found_nothing[place] <= 0:
            del self._found_nothing[place]
            return False
        self._found_nothing[place] -= 1
        return True

    def belongs(self, checkpoint_id: str, thread_id: str, born: str) -> None:
        """This id, the very object, is of a checkpoint of a thread with this mark: see `Locked.born`."""
        self._threads.put((id(checkpoint_id), thread_id), (checkpoint_id, intern(born)))

    def is_missing(self, checkpoint_id: str, thread_id: str) -> None:
        """Who has this id, the very object, has been told that the thread has no such checkpoint, and may go on."""
        self._threads.pop((id(checkpoint_id), thread_id))

    def born(self, checkpoint_id: str | None, thread_id: str) -> str | None:
        """The mark of the thread when this id, the very object, was of a checkpoint of it; None: not known."""
        known = self._threads.peek((id(checkpoint_id), thread_id))
        return known[1] if known is not None and known[0] is checkpoint_id else None

    def fork(self, checkpoint_id: str, thread_id: str) -> str:
        """The id as one that names an old checkpoint, to fork from."""
        forked = new_object(checkpoint_id)
        if (born := self.born(checkpoint_id, thread_id)) is not None:
            self.belongs(forked, thread_id, born)
        return forked

    def refuse(self, checkpoint_id: str) -> None:
        """What a run wrote for its tasks here was refused: it may not go on from here."""
        self._refused.put(id(checkpoint_id), checkpoint_id)

    def lose(self, checkpoint_id: str) -> None:
        """A put was refused: nothing more of its run may be stored."""
        self._lost.put(checkpoint_id, True)

    def is_lost(self, checkpoint_id: str | None) -> bool:
        """Whether this is a checkpoint that was refused."""
        return checkpoint_id is not None and checkpoint_id in self._lost

    def forget(self, thread_id: str) -> None:
        """A thread is not there any more."""
        for place in [place for place in self._found_nothing if place[0] == thread_id]:
            del self._found_nothing[place]

    def check(
        self, place: NamespaceKey, head: NewestCheckpoint | None, config: RunnableConfig, checkpoint_id: str
    ) -> None:
        """Make sure that a run that goes on does so from the newest checkpoint.

        Raises:
            ThreadConflict: another run has put one since.
        """
        parent_id = named(config)
        if self.is_lost(parent_id) or (parent_id is not None and self._refused.peek(id(parent_id)) is parent_id):
            raise ThreadConflict(thread=place[0])
        if head is None or head.id in (parent_id, checkpoint_id):
            return
        if parent_id is None:
            goes_on = not config["configurable"].get(_REPLAY) and self.began(place)
        else:
            goes_on = self.holds(parent_id)
        if goes_on:
            raise ThreadConflict(thread=place[0])


def named(config: RunnableConfig) -> str | None:
    """The id of the checkpoint that a config names, the very object. An empty one names none, as with LangGraph's own
    savers: clients send it for the newest."""
    return get_checkpoint_id(config) or None


def new_object(text: str) -> str:
    """The same text as another object."""
    return text.encode().decode()
