"""Which checkpoints a run continues from, so that two runs that continue the same one do not both succeed.

LangGraph names the parent in a put, and not why: a run that loaded the newest checkpoint and a run that forks from an
old one look alike. Three values distinguish them, and they survive a wrapper, a copy and a wire:

- A parent that is still its namespace's newest checkpoint has no rival.
- LangGraph writes the coordinates that a run was given into the `metadata` of its config: a run that was given a
  checkpoint forks, one that was given only a thread continues the newest.
- Where the metadata is missing (a caller of the saver, a wire that sends coordinates alone), a checkpoint may be forked
  from that was loaded by its id when it was no longer the newest. So may one that no caller has loaded as the newest,
  if this saver put what is the newest now: no run can have continued it.

Every other put on a parent that is no longer the newest is a rival's.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from sys import intern

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import get_checkpoint_id

from longthread.errors import ThreadBegunAnew, ThreadConflict
from longthread.langgraph.internals import given_to_run
from longthread.model.lru import LRU
from longthread.store import checkpoints
from longthread.store.checkpoints import Locked, NewestCheckpoint
from longthread.store.driver import Transaction
from longthread.store.incarnation import is_cut

IDS = 8192
"""Checkpoints that are remembered. A fork from one that was forgotten is refused if its config has no metadata."""

NamespaceKey = tuple[str, str]
"""A thread and a namespace."""
CheckpointKey = tuple[str, str, str]
"""A thread, a namespace, and a checkpoint's id."""


@dataclass(slots=True)
class _HandedOut:
    """What callers know of a checkpoint. `seen` are the channels whose task writes the callers know that loaded it as
    the newest; None: no caller did."""

    birth_id: str | None = None
    seen: frozenset[str] | None = None
    is_addressed: bool = False
    is_put: bool = False


_NOTHING = _HandedOut()


class ParentTracker:
    def __init__(self) -> None:
        self._known = LRU[CheckpointKey, _HandedOut](IDS)
        self._lost = LRU[str, bool](IDS)
        self._refused = LRU[tuple[CheckpointKey, int], bool](IDS)
        self._found_nothing: Counter[NamespaceKey] = Counter()

    def _of(self, key: CheckpointKey) -> _HandedOut:
        """Return what is known of a checkpoint, only to be read."""
        return self._known.peek(key) or _NOTHING

    def _note_use(self, key: CheckpointKey) -> _HandedOut:
        """Return what is known of a checkpoint, to be changed; counts as a use."""
        known = self._known.get(key)
        if known is None:
            self._known.put(key, known := _HandedOut())
        return known

    def belongs(self, key: CheckpointKey, birth_id: str) -> None:
        """Remember the mark of the checkpoint's thread, which a later thread of the same id lacks: see `Locked`."""
        self._note_use(key).birth_id = intern(birth_id)

    def see(self, key: CheckpointKey, channels: Iterable[str]) -> None:
        """Note the channels whose task writes were there when the newest checkpoint was loaded."""
        self._note_use(key).seen = frozenset(channels)

    def address(self, key: CheckpointKey) -> None:
        """Note that a checkpoint was loaded that was no longer the newest: a run that continues from it may fork."""
        self._note_use(key).is_addressed = True

    def put(self, key: CheckpointKey, birth_id: str) -> None:
        """Note that the checkpoint was stored by this saver, in a thread of this mark."""
        known = self._note_use(key)
        known.birth_id, known.is_put = intern(birth_id), True

    def is_missing(self, key: CheckpointKey) -> None:
        """Note that the checkpoint is not there any more; who asked for it may go on in whatever thread there is."""
        self._note_use(key).birth_id = None

    def birth_id(self, key: CheckpointKey) -> str | None:
        """Return the mark of the checkpoint's thread; None if unknown."""
        return self._of(key).birth_id

    def find_seen(self, key: CheckpointKey) -> frozenset[str]:
        return self._of(key).seen or frozenset()

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

    def refuse(self, key: CheckpointKey, run: int | None) -> None:
        """Forbid a run to continue from here: its tasks' writes were refused."""
        if run is not None:
            self._refused.put((key, run), True)

    def lose(self, checkpoint_id: str) -> None:
        """Forbid the run to store anything more: its put was refused."""
        self._lost.put(checkpoint_id, True)

    def is_lost(self, checkpoint_id: str | None) -> bool:
        return checkpoint_id is not None and checkpoint_id in self._lost

    def forget(self, thread_id: str) -> None:
        for place in [place for place in self._found_nothing if place[0] == thread_id]:
            del self._found_nothing[place]

    def forks(
        self, config: RunnableConfig, place: NamespaceKey, checkpoint_id: str | None, newest_id: str = ""
    ) -> bool:
        """Return whether the run was given this checkpoint to continue from, be it the newest or not."""
        given = given_to_run(config)
        if given is not None and not given:
            return False
        if checkpoint_id is None:
            return given is not None or not self.began(place)
        known = self._of((*place, checkpoint_id))
        by_hand = given is None and known.seen is None and self._of((*place, newest_id)).is_put
        return checkpoint_id == given or known.is_addressed or by_hand

    def continues_newest(self, config: RunnableConfig, key: CheckpointKey) -> bool:
        """Whether a run writes to the checkpoint that it took for the newest, where another may do the same.

        Without metadata, only if somebody loaded it as that: other callers of a saver write as often as they like.
        """
        if given_to_run(config) is None and self._of(key).seen is None:
            return False
        return not self.forks(config, key[:2], key[2])

    def check(
        self,
        place: NamespaceKey,
        head: NewestCheckpoint | None,
        config: RunnableConfig,
        checkpoint_id: str,
        *,
        run: int | None,
        is_fork: bool,
    ) -> None:
        """Raise ThreadConflict if another run has continued the parent. `is_fork`: the put itself says what it is."""
        parent_id = read_checkpoint_id(config)
        refused = parent_id is not None and run is not None and ((*place, parent_id), run) in self._refused
        if refused or self.is_lost(parent_id):
            raise ThreadConflict(thread=place[0])
        if head is None or head.id in (parent_id, checkpoint_id) or is_fork:
            return
        if not self.forks(config, place, parent_id, head.id):
            raise ThreadConflict(thread=place[0])


def read_checkpoint_id(config: RunnableConfig) -> str | None:
    """Return the checkpoint's id; None for an empty one, which clients send for the newest checkpoint."""
    return get_checkpoint_id(config) or None


async def expect_same(
    tx: Transaction, thread: Locked, ns: str, checkpoint_id: str | None, birth_id: str | None
) -> None:
    """Check that a thread is the one that `birth_id` marks, and from which a run has read a checkpoint.

    Raises:
        ThreadConflict: a message was forgotten since; the run may still hold it.
        ThreadBegunAnew: it is another thread, and does not hold the checkpoint again.
    """
    if birth_id is not None and is_cut(birth_id, thread.birth_id):
        raise ThreadConflict(thread=thread.id)
    if birth_id in (None, thread.birth_id) or await checkpoints.find(tx, thread.id, ns, checkpoint_id) is not None:
        return
    raise ThreadBegunAnew(thread=thread.id)
