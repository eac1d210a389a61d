"""Conversation states (document 003): a state is a thread, with `thread_clients` and `threads.expires_at`.

A client's messages are stored as entries, and read back value for value. Nothing is overwritten: messages after the
stored ones are appended, and a history that differs becomes a branch.

An entry's columns and `content` hold most messages. Of another one, the payload of its first entry holds all, in a list
below `client_messages`. Its other entries have an empty list there, and are shown only where retention has deleted the
first one. The relation `conversation_state` reads it too.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

from longthread.errors import InvalidInput, RunInProgress, ThreadNotFound, ThreadTaken
from longthread.model.entry import Draft, Entry
from longthread.store import log
from longthread.store.driver import Row, Transaction, one
from longthread.store.leases import find_running
from longthread.store.rows import dump, moment_of, of_thread
from longthread.store.transfer.foreign import storable
from longthread.store.transfer.messages import drafts_of, payload_of, role_of, text_of

CLIENT_TYPES = ("cursor", "augment", "claude_code", "unknown")
"""The kinds of clients that the document names."""


def expiry(ttl_seconds: float | None) -> str | None:
    """Return the time that a state expires, as stored; None: never. Raises `InvalidInput` if it is after year 9999."""
    if ttl_seconds is None:
        return None
    try:
        ends = datetime.fromisoformat(log.now()) + timedelta(seconds=ttl_seconds)
        return ends.astimezone(UTC).isoformat(timespec="microseconds")
    except (OverflowError, ValueError) as error:
        raise InvalidInput(reason=f"ttl_seconds={ttl_seconds} leads to no date: {error}.") from error


async def store_state(
    tx: Transaction,
    scid: str,
    history: Sequence[Any],
    *,
    user_id: str,
    client_type: str,
    signature: str | None,
    expires_at: str | None,
) -> None:
    """Store a state, or replace what there is of it; an expired one is deleted before. The access count goes on.

    Raises:
        RunInProgress: a run is being executed on the thread.
        ThreadTaken: it is another user's.
    """
    there = await _lock_state(tx, scid, user_id)
    if there is None or _is_over(there):
        if there is not None:
            await log.delete_thread(tx, scid, user_id=user_id)
        try:
            await log.create_thread(tx, scid, user_id=user_id)
        except ThreadNotFound:
            raise ThreadTaken(thread=scid) from None
        there = await _row(tx, scid)
    await _write_history(tx, scid, there, history)
    await tx.run("write_state", id=scid, user_id=user_id, expires_at=expires_at, now=log.now())
    await tx.run("write_client", id=scid, client_type=client_type, signature=signature)


async def update_state(
    tx: Transaction, scid: str, history: Sequence[Any], *, user_id: str, signature: str | None
) -> bool:
    """Change a state's history, and its signature if there is one; return whether there is such a state. Raises
    `RunInProgress`."""
    there = await _lock_state(tx, scid, user_id)
    if there is None or _is_over(there):
        return False
    await _write_history(tx, scid, there, history)
    await tx.run("write_state", id=scid, user_id=user_id, expires_at=there["expires_at"], now=log.now())
    if signature is not None:
        await tx.run("write_state_signature", id=scid, signature=signature)
    return True


async def read_state(tx: Transaction, scid: str, *, user_id: str, counts: bool = True) -> dict[str, Any] | None:
    """Return a state with the keys of the document; None if there is none. `counts`: it is an access."""
    if not await tx.fetch("select_position", id=scid):
        return None
    row = await _row(tx, scid)
    if row["user_id"] != user_id or _is_over(row):
        return None
    if counts:
        await tx.run("count_access", id=scid)
    return {
        "scid": scid,
        "client_type": row["client_type"] or "unknown",
        "authoritative_history": [message for message, _ in history_of(await _branch(tx, scid, row))],
        "last_signature": row["last_signature"],
        "created_at": row["created_at"],
        "updated_at": row["updated_at"],
        "expires_at": row["expires_at"],
        "access_count": int(row["access_count"] or 0) + counts,
    }


async def delete_state(tx: Transaction, scid: str, *, user_id: str) -> bool:
    """Delete a state with its thread; return whether there was one. Raises `RunInProgress`."""
    there = await _lock_state(tx, scid, user_id)
    if there is None or _is_over(there):
        return False
    await log.delete_thread(tx, scid, user_id=user_id)
    return True


async def _lock_state(tx: Transaction, scid: str, user_id: str) -> Row | None:
    """Lock a state's thread for writing; None if the user has none."""
    if not await tx.fetch("select_position", id=scid):
        return None
    row = await _row(tx, scid)
    if row["user_id"] != user_id:
        return None
    run = await find_running(tx, scid, alive=lambda owner: True)
    if run is not None:
        raise RunInProgress(thread=scid, run=run)
    return row


async def _row(tx: Transaction, scid: str) -> Row:
    row = await one(tx, "select_state", id=scid)
    if row is None:
        raise ThreadNotFound(thread=scid)
    return row


def _is_over(row: Row) -> bool:
    return row["expires_at"] is not None and moment_of(row["expires_at"]) <= moment_of(log.now())


async def _branch(tx: Transaction, scid: str, row: Row) -> list[Any]:
    with of_thread(scid):
        tip, size = int(row["tip"]), int(row["entry_count"])
    return await log.branch(tx, scid, tip, limit=size)


async def _write_history(tx: Transaction, scid: str, row: Row, history: Sequence[Any]) -> None:
    """Make the active branch hold these messages: append, branch off, or go back to an earlier entry."""
    there = history_of(await _branch(tx, scid, row))
    common = 0
    for (message, _), given in zip(there, history, strict=False):
        if not same(message, given):
            break
        common += 1
    parent = there[common - 1][1] if common else None
    drafts = drafts_after(history[common:], parent.id if parent else "")
    tip, size = int(row["tip"]), int(row["entry_count"])
    start = parent.seq if parent else 0
    if start == tip == size:  # the thread ends here, so that nothing comes after it
        await log.append(tx, scid, drafts, tip=tip, size=size)
    elif drafts:
        await log.extend(tx, scid, drafts, parent=start)
    else:
        await log.set_tip(tx, scid, start)
    if not row["title"] and (title := title_of(drafts)):
        await log.rename_thread(tx, scid, title, user_id=row["user_id"])


CLIENT_MESSAGES = "client_messages"
_NAMESPACE = uuid.UUID("6c6f6e67-7468-5265-8164-686973746f72")
_TITLE = 50
"""Length of a title made from the first question, in characters."""


def drafts_of_message(message: Any, id_: str) -> list[Draft]:
    """Return the entries of any JSON value that a client sent as a message."""
    try:
        drafts = drafts_of(message, id_)
    except ValueError:  # it is no message of a known form; only the user can have said it
        drafts = [Draft(id=id_, role=role_of(message) or "user", text=storable(text_of(message)))]
    if (
        len(drafts) == 1
        and not drafts[0].tool_calls
        and same(_describe_message(drafts[0], _fields(drafts[0])), message)
    ):
        return drafts
    return [_with_messages(draft, [] if place else [message]) for place, draft in enumerate(drafts)]


def drafts_after(messages: Sequence[Any], parent_id: str) -> list[Draft]:
    """Return the entries of messages after an entry ("": none). Equal messages after one entry have equal ids, so that
    a client that returns to an earlier branch writes nothing."""
    found: list[Draft] = []
    for message in messages:
        parent_id = str(uuid.uuid5(_NAMESPACE, f"{parent_id}\n{_canonical(message)}"))
        found += drafts_of_message(message, parent_id)
    return found


def history_of(entries: Sequence[Entry]) -> list[tuple[Any, Entry]]:
    """Return the messages of a branch, each with its last entry."""
    found: list[tuple[Any, Entry]] = []
    for entry in entries:
        fields = _fields(entry)
        whole = fields.get(CLIENT_MESSAGES)
        if isinstance(whole, list) and (whole or found):
            found.append((whole[0] if whole else found.pop()[0], entry))
        else:
            found.append((_describe_message(entry, fields), entry))
    return found


def same(one: Any, other: Any) -> bool:
    """Return whether two JSON values are equal: other than in Python, 1, 1.0 and true differ."""
    return one == other and (repr(one) == repr(other) or _canonical(one) == _canonical(other))


def title_of(entries: Sequence[Draft]) -> str | None:
    """Return the beginning of the first question."""
    asked = next((entry.text for entry in entries if entry.role == "user"), "")
    return " ".join(asked.split())[:_TITLE] or None


def _canonical(value: Any) -> str:
    return json.dumps(value, sort_keys=True)


def _with_messages(draft: Draft, messages: list[Any]) -> Draft:
    return replace(draft, payload=payload_of(_fields(draft) | {CLIENT_MESSAGES: messages}))


def _fields(entry: Draft) -> dict[str, Any]:
    """Return an unpacked payload's fields; none for another payload."""
    if not (entry.payload or b"").startswith(b"{"):
        return {}
    try:
        fields = json.loads((entry.payload or b"").decode("utf-8", "surrogatepass"))
    except (ValueError, RecursionError):
        return {}
    return fields if isinstance(fields, dict) else {}


def _describe_message(entry: Draft, fields: dict[str, Any]) -> dict[str, Any]:
    """Return the message of an entry that holds no client's, as the relation shows it."""
    content = fields.get("content")
    message: dict[str, Any] = {"role": entry.role, "content": entry.text}
    if isinstance(content, str | list):
        message["content"] = content
    if entry.tool_calls:
        functions = [(call.id, {"name": call.name, "arguments": dump(call.args)}) for call in entry.tool_calls]
        message["tool_calls"] = [{"id": id_, "type": "function", "function": function} for id_, function in functions]
    if entry.tool_call_id is not None:
        message["tool_call_id"] = entry.tool_call_id
    if entry.name is not None:
        message["name"] = entry.name
    return message
