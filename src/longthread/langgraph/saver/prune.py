"""Deletes checkpoints: of given runs, or all that are no longer needed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Literal

from langchain_core.messages import BaseMessage
from langgraph.checkpoint.serde.base import SerializerProtocol

from longthread.errors import RowDamaged, ValueDamaged
from longthread.langgraph.message_codec import draft_of
from longthread.langgraph.saver.delta_history import delta_messages
from longthread.langgraph.saver.load import filled, list_of
from longthread.langgraph.saver.record import StoredCheckpoint
from longthread.langgraph.saver.retention import CheckpointKeeper
from longthread.langgraph.saver.thread_cache import CONVERSATION
from longthread.store import checkpoints, log
from longthread.store.checkpoints import CheckpointRow, Locked
from longthread.store.driver import Transaction
from longthread.store.maintenance.prunable import delete_surplus

Strategy = Literal["keep_latest", "delete"]
_PAGE = 256
_MOST_NAMED = 5


@dataclass(slots=True)
class DamagedThreads:
    """Threads that are skipped because something of them cannot be read, while others are done."""

    errors: dict[str, RowDamaged] = field(default_factory=dict)

    @contextmanager
    def left(self, thread_id: str) -> Iterator[None]:
        """Collect the damage that the block finds in a thread."""
        try:
            yield
        except RowDamaged as error:  # of this thread alone: a database that is damaged itself is not written to
            self.errors.setdefault(thread_id, error)

    def tell(self) -> None:
        """Raise RowDamaged if threads were skipped: it describes one, and names the others."""
        if not self.errors:
            return
        first = next(iter(self.errors.values()))
        # What to do is told for both kinds.
        error = next((each for each in self.errors.values() if isinstance(each, ValueDamaged)), first)
        others = [name for name, each in self.errors.items() if each is not error]
        if not others:
            raise error
        named = ", ".join(others[:_MOST_NAMED])
        more = f" and {len(others) - _MOST_NAMED} more" if len(others) > _MOST_NAMED else ""
        reason = f"{error.reason} Damaged too: thread{'s' * (len(others) > 1)} {named}{more}."
        raise type(error)(reason=reason) from error


async def prune(tx: Transaction, thread: Locked, strategy: Strategy, serde: SerializerProtocol) -> None:
    """Delete a thread's checkpoints, but for the newest of each namespace if the strategy is `keep_latest`.

    Earlier ones stay if those need them for their delta channels. A subgraph's checkpoint goes with the root's that
    called it. The messages stay in the log.
    """
    if strategy == "keep_latest":
        surplus = await CheckpointKeeper(serde).surplus(tx, thread.id, keep=1, before=None)
        await delete_surplus(tx, thread.id, surplus)
        return
    namespaces = await checkpoints.namespaces(tx, thread.id)
    for ns in namespaces:
        await checkpoints.delete_namespace(tx, thread.id, ns)
    if namespaces:
        await checkpoints.renew(tx, thread)


async def delete_for_runs(tx: Transaction, thread: Locked, run_ids: Iterable[str], serde: SerializerProtocol) -> None:
    """Delete the runs' checkpoints from a thread, and move its tip back to where it was before them."""
    thread_id = thread.id
    rows = [row for run_id in run_ids for row in await checkpoints.of_run(tx, thread_id, run_id)]
    if not rows:
        return
    end = await _end(tx, thread, serde)
    await checkpoints.delete(tx, rows)
    await checkpoints.renew(tx, thread)
    for ns in sorted({row.ns for row in rows}):
        await _tidy(tx, thread_id, ns, serde)
    before = await _end(tx, thread, serde)
    tip, _ = await log.position(tx, thread_id)
    if end == tip and before is not None and before != tip:
        await log.set_tip(tx, thread_id, before)


async def _end(tx: Transaction, thread: Locked, serde: SerializerProtocol) -> int | None:
    """Return the entry of the last message at the newest checkpoint; None if it has none."""
    ns, channel = CONVERSATION
    row = await checkpoints.find(tx, thread.id, ns, None)
    if row is None:
        return None
    cell = StoredCheckpoint.from_row(row, serde).cells.get(channel)
    runs = list_of(await filled(tx, row, channel, cell)) if cell is not None else None
    if runs is not None:
        return max((last for _, last, _ in runs), default=None)
    messages = await delta_messages(tx, row, channel, serde, thread.first_seq)
    return await _on_branch(tx, thread, messages[-1]) if messages else None


async def _on_branch(tx: Transaction, thread: Locked, message: BaseMessage) -> int | None:
    """Return the last entry of the active branch that holds this message."""
    at, text = thread.tip, draft_of(message).text
    while at >= thread.first_seq and (page := await log.branch(tx, thread.id, at, limit=_PAGE)):
        for entry in reversed(page):
            if log.sent_id(entry) == message.id and entry.text in (text, ""):  # "": sealed
                return entry.seq
        at = page[0].parent_seq
    return None


async def _tidy(tx: Transaction, thread_id: str, ns: str, serde: SerializerProtocol) -> None:
    wanted: set[tuple[int, str]] = set()
    last: CheckpointRow | None = None
    while rows := await checkpoints.before(tx, thread_id, ns, last.n if last else None, limit=_PAGE):
        wanted.update(_apart(rows, serde))
        last = rows[-1]
    await checkpoints.tidy(tx, thread_id, ns, wanted)


def _apart(rows: Iterable[CheckpointRow], serde: SerializerProtocol) -> Iterable[tuple[int, str]]:
    """Yield the separately stored values of checkpoints, by number and channel."""
    for row in rows:
        for channel, cell in StoredCheckpoint.from_row(row, serde).cells.items():
            if cell.stored_by is not None:
                yield cell.stored_by, channel
