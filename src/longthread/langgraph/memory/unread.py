"""What of a thread was not read yet, or has changed since."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from longthread.model.entry import Entry
from longthread.store import log
from longthread.store.driver import Transaction

MARK = "memories_until"
"""The key in a thread's metadata of the last entry that was read, in the order in which they were written."""
ENTRIES = 60
"""So many messages are read with one call."""
_MOST = 2000
"""So far back entries are looked at."""


@dataclass(frozen=True, slots=True)
class Unread:
    """Messages to read, in their places and present versions, and the last entry of the log that is read with them."""

    entries: Sequence[Entry]
    mark: int


async def unread(tx: Transaction, thread_id: str, *, user_id: str) -> Unread | None:
    """Return the active branch's next messages of the user or the model that were written or changed after the mark.

    None: nothing was written since. Its `mark` is always above the thread's. Raises `ThreadNotFound`.
    """
    thread = await log.find_thread(tx, thread_id, user_id=user_id)
    mark, last = int(thread.metadata.get(MARK, 0)), thread.entry_count
    if last <= mark or not thread.tip:
        return None
    written = await log.entries_between(tx, thread_id, max(mark, last - _MOST) + 1, last)
    present = [each for each in _present(written, thread.tip) if each.role in ("user", "assistant")]
    said = [each for each in present if each.text.strip()]
    chosen = said[:ENTRIES]
    placed = [replace(each, seq=each.replaces or each.seq, replaces=0) for each in chosen]
    placed.sort(key=lambda each: each.seq)
    return Unread(placed, last if len(chosen) == len(said) else chosen[-1].seq)


def _present(written: Sequence[Entry], tip: int) -> list[Entry]:
    """Return the newest versions that the branch ending in `tip` has of its messages, in the order of writing."""
    there = {each.seq: each for each in written}
    newest: dict[int, Entry] = {}
    at = tip
    while entry := there.get(at):
        newest.setdefault(entry.replaces or entry.seq, entry)
        at = entry.parent_seq
    return sorted(newest.values(), key=lambda each: each.seq)
