"""Messages that are written into a thread without a run: by the API, or by a program."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace

from longthread.errors import CallNotOpen, InvalidInput, MessageTaken, MessageTooLong
from longthread.messages.sanitize import storable
from longthread.messages.tool_calls import calls_of
from longthread.model.entry import Draft, Entry, Role, ToolCall
from longthread.model.ids import new_id
from longthread.model.thread import Thread
from longthread.store import log
from longthread.store.driver import Transaction

MOST_CALLS = 128
"""Calls of one message."""
_CHUNK = 50
"""Entries that are read at a time."""


@dataclass(frozen=True, slots=True)
class WrittenMessage:
    """A message of document 002. `tool_calls` are an assistant's; `tool_call_id` is the call that a tool's message
    answers. Without an `id` it gets one."""

    role: Role
    text: str
    id: str | None = None
    tool_calls: Sequence[ToolCall] = ()
    tool_call_id: str | None = None


def draft_of_written(message: WrittenMessage, *, most: int) -> Draft:
    """Return the draft of a message, which has at most `most` characters with its calls.

    Raises:
        InvalidInput: it is empty, or the calls are not those of its role; MessageTooLong.
        MessageNotStorable: the arguments of a call are nested too deeply.
    """
    if message.tool_calls and message.role != "assistant":
        raise InvalidInput(reason=f"Only an assistant's message has tool_calls; this is of the role {message.role}.")
    if (message.tool_call_id is not None) != (message.role == "tool"):
        raise InvalidInput(reason="A tool's message names the call that it answers in tool_call_id; no other one does.")
    if not message.text.strip() and not message.tool_calls and message.role != "tool":
        raise InvalidInput(reason="The message is empty. Give its content.")
    called = calls_of([call.to_json() for call in message.tool_calls], message.id).told
    if len({call.id for call in called}) < len(called) or len(called) > MOST_CALLS:
        raise InvalidInput(reason=f"A message has at most {MOST_CALLS} calls, each with an id of its own.")
    size = len(message.text) + sum(len(call.name) + len(json.dumps(call.args, ensure_ascii=False)) for call in called)
    if size > most:
        raise MessageTooLong(size=f"{size:,}", limit=f"{most:,}")
    given = storable(message.tool_call_id)
    return Draft(storable(message.id) or new_id(), message.role, storable(message.text), called, given)


async def stored_before(tx: Transaction, thread: Thread, draft: Draft, before: Entry | None) -> Entry | None:
    """Return the thread's message with the draft's id, if it says the same at the same place (None: at any). Raises
    MessageTaken if it does not."""
    there = (await log.find_entries(tx, thread.id, [draft.id])).get(draft.id)
    if there is None:
        return None
    same = there.says_the_same_as(replace(draft, name=there.name))
    if not same or (before is not None and there.parent_seq != before.seq):
        raise MessageTaken(thread=thread.id, entry=draft.id)
    return there


async def result_of(tx: Transaction, thread: Thread, draft: Draft, parent: int) -> Draft:
    """Return the result of a call with the call's name. The message behind which it goes has the call, or other
    results of that message stand between. Raises CallNotOpen."""
    answered: set[str | None] = set()
    at = parent
    while at:
        entries = await log.branch(tx, thread.id, at, limit=_CHUNK)
        for entry in reversed(entries):
            if entry.role != "tool":
                call = next((each for each in entry.tool_calls if each.id == draft.tool_call_id), None)
                if call is None or call.id in answered:
                    raise CallNotOpen(thread=thread.id, call=str(draft.tool_call_id))
                return replace(draft, name=call.name)
            answered.add(entry.tool_call_id)
            at = entry.parent_seq
    raise CallNotOpen(thread=thread.id, call=str(draft.tool_call_id))
