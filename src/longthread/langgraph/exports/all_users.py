"""Export the threads and items of one user, or of all, for the command line."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

from langgraph.checkpoint.serde.base import SerializerProtocol

from longthread.errors import ExportIncomplete
from longthread.langgraph.exports.database import export_langgraph
from longthread.langgraph.imports.checkpoints import CheckpointProgress
from longthread.langgraph.imports.serializers import reader_of
from longthread.langgraph.saver.async_saver import AsyncLongthreadSaver
from longthread.store.driver import Driver
from longthread.store.transfer import checkpoint_counts


@dataclass(slots=True)
class ExportReport:
    """What is there now, by kind; what is to be said of it; and what is not there, and why."""

    written: Counter[str] = field(default_factory=Counter)
    notes: list[str] = field(default_factory=list)
    left: list[str] = field(default_factory=list)


async def export_users(
    store: Driver,
    address: str,
    progress: Callable[[int, int, str], None],
    *,
    user: str | None,
    replaces: bool,
    serde: SerializerProtocol | None,
) -> ExportReport:
    """Export what this user has, or what all users have; raises as `export_langgraph` does, but for what is left.

    Objects of the application's classes are copied as packed bytes: none of its code is needed.
    """
    report, threads = ExportReport(Counter(threads=0, checkpoints=0, items=0)), set[str]()

    def tell(at: CheckpointProgress) -> None:
        progress(at.done, at.total, at.thread_id)
        report.written[f"{at.kind}s"] += 1
        if at.kind == "checkpoint":
            threads.add(at.thread_id)

    packed, _ = reader_of(serde)
    async with store.reading() as tx:
        users = [user] if user is not None else await checkpoint_counts.users(tx)
    for each in users:
        saver = AsyncLongthreadSaver(store, user_id=each, serde=packed)
        try:
            done = await export_langgraph(address, saver, serde=packed, replaces=replaces, progress=tell)
        except ExportIncomplete as error:
            report.left += error.left
        else:
            report.notes += done.notes
    if len(users) > 1:
        report.notes.append(f"the threads of {len(users)} users are in one database now, which knows no users")
    report.written["threads"] = len(threads)
    return report
