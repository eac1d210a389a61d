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

from collections import Counter, OrderedDict
from collections.abc import Iterable
from sys import intern

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import get_checkpoint_id

from longthread.errors import ThreadConflict
from longthread.store.checkpoints import NewestCheckpoint

IDS = 8192
"""Ids that are remembered. A run whose id was forgotten is taken for a fork."""
_BELONGING = 2 * IDS
"""Ids of which the thread is remembered: each put has two."""
_REPLAY = "__pregel_replay_state"
"""Key of a config that LangGraph sets while it replays a graph from an old checkpoint, for the graphs inside of it."""

_NONE: tuple[None, frozenset[str]] = (None, frozenset())

NamespaceKey = tuple[str, str]
"""A thread and a namespace."""


class ParentTracker:
    """The ids that runs go on from."""

    def __init__(self) -> None:
        self._ids: OrderedDict[int, tuple[str | None, frozenset[str]]] = OrderedDict()
        self._threads: OrderedDict[tuple[int, str], tuple[str, str]] = OrderedDict()
        self._lost: OrderedDict[str, None] = OrderedDict()
        self._refused: OrderedDict[int, str] = OrderedDict()
        self._found_nothing: Counter[NamespaceKey] = Counter()

    def note(self, checkpoint_id: str, seen: Iterable[str] = ()) -> None:
        """A run goes on from here: it was given this as the newest, or has put it. `seen`: the channels of which it was
        told that tasks have written to them."""
        # The object is kept, so that no other can get its number.
        self._ids[id(checkpoint_id)] = checkpoint_id, frozenset(seen)
        self._ids.move_to_end(id(checkpoint_id))
        while len(self._ids) > IDS:
            self._ids.popitem(last=False)

    def holds(self, checkpoint_id: str) -> bool:
        """Whether it is such an id, the very object."""
        return self._ids.get(id(checkpoint_id), _NONE)[0] is checkpoint_id

    def seen(self, checkpoint_id: str) -> frozenset[str]:
        """The channels that who was given this id, the very object, was told tasks have written to."""
        return self._ids[id(checkpoint_id)][1] if self.holds(checkpoint_id) else frozenset()

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
        key = id(checkpoint_id), thread_id
        self._threads[key] = checkpoint_id, intern(born)
        self._threads.move_to_end(key)
        while len(self._threads) > _BELONGING:
            self._threads.popitem(last=False)

    def is_missing(self, checkpoint_id: str, thread_id: str) -> None:
        """Who has this id, the very object, has been told that the thread has no such checkpoint, and may go on."""
        self._threads.pop((id(checkpoint_id), thread_id), None)

    def born(self, checkpoint_id: str | None, thread_id: str) -> str | None:
        """The mark of the thread when this id, the very object, was of a checkpoint of it; None: not known."""
        known, born = self._threads.get((id(checkpoint_id), thread_id), (None, None))
        return born if known is checkpoint_id else None

    def fork(self, checkpoint_id: str, thread_id: str) -> str:
        """The id as one that names an old checkpoint, to fork from."""
        forked = anew(checkpoint_id)
        if (born := self.born(checkpoint_id, thread_id)) is not None:
            self.belongs(forked, thread_id, born)
        return forked

    def refuse(self, checkpoint_id: str) -> None:
        """What a run wrote for its tasks here was refused: it may not go on from here."""
        self._refused[id(checkpoint_id)] = checkpoint_id
        while len(self._refused) > IDS:
            self._refused.popitem(last=False)

    def lose(self, checkpoint_id: str) -> None:
        """A put was refused: nothing more of its run may be stored."""
        self._lost[checkpoint_id] = None
        while len(self._lost) > IDS:
            self._lost.popitem(last=False)

    def is_lost(self, checkpoint_id: str | None) -> bool:
        """Whether this is a checkpoint that was refused."""
        return checkpoint_id in self._lost

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
        if self.is_lost(parent_id) or (parent_id is not None and self._refused.get(id(parent_id)) is parent_id):
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


def anew(text: str) -> str:
    """The same text as another object."""
    return text.encode().decode()
