"""Which version of a message recall shows: a message changed under its id has several entries."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from longthread.memory.index.entry_text import content_of
from longthread.model.branches import Branches
from longthread.model.entry import Entry
from longthread.store import log
from longthread.store.branches import find_versions
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
