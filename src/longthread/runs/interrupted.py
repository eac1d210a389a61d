"""What a run was writing when it ended early: an entry of the conversation, marked as interrupted."""

from __future__ import annotations

from longthread.messages.entries import draft_of
from longthread.messages.message import Message
from longthread.model.entry import INTERRUPTED, NOTE, Draft
from longthread.model.ids import new_id
from longthread.model.run import Run, unfinished_reply
from longthread.store import runs
from longthread.store.driver import Transaction

_ENDLESS = 2**62


def interrupted_draft(text: str, run_id: str, message_id: str = "") -> Draft | None:
    """Return the entry of what the user was shown of a reply that did not come: its text alone, as thinking and
    signatures without their end are no use to a provider. None for an empty text."""
    if not text.strip():
        return None
    note = {NOTE: {"kind": INTERRUPTED}}
    return draft_of(Message("assistant", text, id=message_id or new_id(), additional_kwargs=note), run_id=run_id)


async def interrupted_of(tx: Transaction, run: Run) -> Draft | None:
    """Return the same for a run whose process died, of what that had stored."""
    events = await runs.events_after(tx, run.thread_id, run.id, 0, limit=_ENDLESS)
    text, message_id = unfinished_reply(events)
    return interrupted_draft(text, run.id, message_id)
