"""Whether messages that a summary tells of say something else since."""

from __future__ import annotations

from longthread.memory.index.entry_text import content_of, is_prompt
from longthread.store import log
from longthread.store.driver import Transaction


async def replaced_since(tx: Transaction, thread_id: str, size: int, *, mark: int) -> bool:
    """Return whether a message up to entry `mark` got other words after entry `size`, on any branch.

    The system message that a branch begins with does not count: no summary tells of it.
    """
    changed = {place for place in await log.changed_between(tx, thread_id, size, _ENDLESS) if place <= mark}
    for place in changed:
        versions = await log.versions_before(tx, thread_id, place, _ENDLESS)
        first = next((each for each in versions if each.seq == place), None)
        is_system = first is None and all(each.role == "system" for each in versions)  # retention deleted the first
        if is_system or (first is not None and is_prompt(first)):
            continue
        if first is None or len({content_of(each) for each in versions}) > 1:
            return True
    return False


_ENDLESS = 2**62
