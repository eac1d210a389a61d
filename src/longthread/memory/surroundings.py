"""The entries that recall shows: their present versions, and their neighbours on their branches."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Set
from itertools import chain

from longthread.memory.index.entry_text import content_of, is_recallable
from longthread.memory.keywords import EntryPlace
from longthread.model.entry import Entry
from longthread.model.thread import Branches
from longthread.store import log, recall_index
from longthread.store.branches import find_versions, places_of_versions, read_branches
from longthread.store.driver import Transaction

ShownVersions = Mapping[int, Entry | None]


async def present_versions(
    tx: Transaction, thread_id: str, branches: Branches, entries: Iterable[Entry]
) -> ShownVersions:
    """Map outdated entries to their message's present version if its text is the same, else None.

    The present version is the last one on the active branch, or the last of all where none is on it.
    """
    given = {entry.seq: entry for entry in entries}
    ids = sorted({log.sent_id(entry) for entry in given.values()})
    versions = await find_versions(tx, thread_id, ids)
    if not versions:
        return {}
    originals = await log.find_entries(tx, thread_id, sorted(versions))
    present = {
        message_id: max([*seqs, *_seqs(originals.get(message_id))], key=lambda seq: (branches.is_active(seq), seq))
        for message_id, seqs in versions.items()
    }
    missing = set(present.values()) - given.keys()
    given |= await log.entries_at(tx, thread_id, missing) if missing else {}
    shown: dict[int, Entry | None] = {}
    for entry in list(given.values()):
        seq = present.get(log.sent_id(entry), entry.seq)
        if seq != entry.seq:
            shown[entry.seq] = given[seq] if content_of(given[seq]) == content_of(entry) else None
    return shown


def _seqs(entry: Entry | None) -> tuple[int, ...]:
    return () if entry is None else (entry.seq,)


Tips = Mapping[str, tuple[int, int]]
"""Where threads are, each with its last entry."""


class Surroundings:
    """Reads branches and present versions of entries, each once.

    Args:
        tips: the known tips of threads.
        neighbours: how many entries on either side of one are shown with it.
        before: of this entry's thread only earlier ones.
    """

    def __init__(
        self, tx: Transaction, user_id: str, tips: Tips, *, neighbours: int, before: EntryPlace | None
    ) -> None:
        self.branches: dict[str, Branches] = {}
        self._tx = tx
        self._user_id = user_id
        self._tips = tips
        self._neighbours = neighbours
        self._before = before
        self._entries: defaultdict[str, dict[int, Entry | None]] = defaultdict(dict)
        self._with_versions: set[str] = set()

    async def read_branches(self, threads: Set[str]) -> None:
        new = sorted(threads - self.branches.keys())
        unknown = [thread_id for thread_id in new if thread_id not in self._tips]
        tips = {**self._tips, **await recall_index.tips(self._tx, self._user_id, unknown)} if unknown else self._tips
        for thread_id in new:
            apart, has_versions = await read_branches(self._tx, thread_id)
            versions = await places_of_versions(self._tx, thread_id) if has_versions else {}
            self.branches[thread_id] = Branches(*tips[thread_id], apart, versions)
            if has_versions:
                self._with_versions.add(thread_id)

    async def read_entries(self, places: Iterable[Iterable[EntryPlace]]) -> None:
        """Read the entries at places whose branches were read."""
        wanted: defaultdict[str, set[int]] = defaultdict(set)
        for place in chain.from_iterable(places):
            wanted[place.thread_id].add(place.seq)
        for thread_id, seqs in wanted.items():
            seqs |= {self.branches[thread_id].shown_at(seq) for seq in seqs}
            missing = seqs - self._entries[thread_id].keys()
            if missing:
                there = await log.entries_at(self._tx, thread_id, missing)
                self._entries[thread_id] |= {**dict.fromkeys(missing), **there}
                if thread_id in self._with_versions:
                    branches = self.branches[thread_id]
                    self._entries[thread_id] |= await present_versions(self._tx, thread_id, branches, there.values())

    def around(self, place: EntryPlace, shown: Set[int] = frozenset()) -> list[EntryPlace]:
        """Return the unshown places on either side of one, in order."""
        before = self._before
        end = before.seq if before is not None and before.thread_id == place.thread_id else 2**62
        seqs = self.branches[place.thread_id].around(place.seq, self._neighbours, shown)
        return [EntryPlace(place.thread_id, seq) for seq in seqs if seq < end]

    def around_each(self, places: Iterable[EntryPlace]) -> dict[EntryPlace, list[EntryPlace]]:
        """Return the neighbours of several places, best first; each once, further ones instead of repeats."""
        found: dict[EntryPlace, list[EntryPlace]] = {place: [] for place in places}
        shown: defaultdict[str, set[int]] = defaultdict(set)
        for place in found:
            shown[place.thread_id].add(place.seq)
        for place in found:
            found[place] = self.around(place, shown[place.thread_id])
            shown[place.thread_id].update(each.seq for each in found[place])
        return found

    def beside(self, place: EntryPlace) -> Entry | None:
        """Return what the active branch shows in the place of an entry that was read, if it may be recalled."""
        return self.find_shown(EntryPlace(place.thread_id, self.branches[place.thread_id].shown_at(place.seq)))

    def find_shown(self, place: EntryPlace) -> Entry | None:
        """Return the present version of an entry that was read, if it may be recalled."""
        entry = self._entries[place.thread_id][place.seq]
        return entry if entry is not None and is_recallable(entry) else None
