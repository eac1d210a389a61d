"""A branch of a thread as Markdown."""

from __future__ import annotations

from collections.abc import Sequence

from longthread.model.entry import Entry
from longthread.model.markdown import markdown
from longthread.model.thread import Thread
from longthread.store.branches import branch_points
from longthread.store.driver import Transaction


async def branch_markdown(tx: Transaction, thread: Thread, entries: Sequence[Entry], *, details: bool) -> str:
    """Return entries of a thread's branch as Markdown: questions and answers, or all with its details. Those say
    whether the thread has other branches."""
    has_others = details and bool(await branch_points(tx, thread.id))
    return markdown(thread, entries, details=details, has_others=has_others)
