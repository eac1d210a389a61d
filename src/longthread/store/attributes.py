"""Tags, metadata, pin, expiry, archive and status of threads (documents 000, 002, 003), and people's opinions of
answers. Changing them is no activity, and changes no entry."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from longthread.errors import InvalidInput
from longthread.model.entry import Entry
from longthread.model.thread import FEEDBACK, FEEDBACK_LENGTH, PINNED, RESERVED, TITLED, Feedback, SessionStatus, Thread
from longthread.store import log
from longthread.store.driver import Transaction
from longthread.store.rows import Decoding, dump

MOST_TAGS = 100
TAG_LENGTH = 100
"""Characters."""
METADATA_SIZE = 65_536
"""Characters of JSON."""


async def set_tags(tx: Transaction, thread_id: str, tags: Iterable[str], *, user_id: str) -> Thread:
    """Replace a thread's tags, without duplicates, in order. Raises `ThreadNotFound`, or `InvalidInput` if a tag is
    empty or too long, or there are too many."""
    await _lock_owned_thread(tx, thread_id, user_id)
    kept = list(dict.fromkeys(_tag(tag) for tag in tags))
    if len(kept) > MOST_TAGS:
        raise InvalidInput(reason=f"A conversation has at most {MOST_TAGS} tags; these are {len(kept)}.")
    return await _set(tx, thread_id, user_id, "update_tags", tags=dump(kept))


async def change_tags(
    tx: Transaction, thread_id: str, *, add: Iterable[str] = (), remove: Iterable[str] = (), user_id: str
) -> Thread:
    """Add and remove tags; both are idempotent. Raises as `set_tags` does."""
    thread = await _lock_owned_thread(tx, thread_id, user_id)
    gone = {_tag(tag) for tag in remove}
    return await set_tags(tx, thread_id, [*(tag for tag in thread.tags if tag not in gone), *add], user_id=user_id)


async def set_metadata(tx: Transaction, thread_id: str, changes: Mapping[str, Any], *, user_id: str) -> Thread:
    """Merge keys into a thread's metadata; None removes a key. Raises `ThreadNotFound`, or `InvalidInput` if the
    metadata is not JSON, or too long, or a key is Longthread's own."""
    thread = await _lock_owned_thread(tx, thread_id, user_id)
    _expect_free(changes)
    return await _set(tx, thread_id, user_id, "update_metadata", metadata=_merge_metadata(_read_notes(thread), changes))


async def set_pinned(tx: Transaction, thread_id: str, pinned: bool, *, user_id: str) -> Thread:
    """Have the lists show a user's thread first, or no longer; nothing if it is so. Raises `ThreadNotFound`."""
    thread = await _lock_owned_thread(tx, thread_id, user_id)
    if pinned == (thread.pinned_at is not None):
        return thread
    changes = {PINNED: log.now() if pinned else None}
    return await _set(tx, thread_id, user_id, "update_metadata", metadata=_merge_metadata(_read_notes(thread), changes))


async def replace_own_title(tx: Transaction, thread: Thread, title: str) -> Thread:
    """Give a thread another title in the place of one that is no person's. The caller has locked the thread, and knows
    whose its title is."""
    changed = {"title": title, "metadata": _merge_metadata(_read_notes(thread), {TITLED: title})}
    return await _set(tx, thread.id, thread.user_id, "update_own_title", **changed)


async def set_message_metadata(
    tx: Transaction, thread_id: str, entry_id: str, changes: Mapping[str, Any], *, user_id: str
) -> Mapping[str, Any]:
    """Merge keys into a message's metadata and return it. Raises as `set_metadata` does, and `EntryNotFound`."""
    await _lock_owned_thread(tx, thread_id, user_id)
    _expect_free(changes)
    return _of_people(await _note(tx, await log.find_entry(tx, thread_id, entry_id), changes))


async def set_feedback(
    tx: Transaction, thread_id: str, entry_id: str, feedback: Feedback | None, *, user_id: str
) -> None:
    """Store what a person thinks of an answer, in the place of what they thought before; None takes it back. Raises
    `ThreadNotFound`, `EntryNotFound`, or `InvalidInput` if the message is no answer, or the text too long."""
    await _lock_owned_thread(tx, thread_id, user_id)
    entry = await log.find_entry(tx, thread_id, entry_id)
    if entry.role != "assistant" or entry.tool_calls:
        raise InvalidInput(reason=f"The message {entry_id} is no answer. Give the id of one.")
    if feedback is not None and len(feedback.text) > FEEDBACK_LENGTH:
        reason = f"What is said of an answer has at most {FEEDBACK_LENGTH:,} characters; this has"
        raise InvalidInput(reason=f"{reason} {len(feedback.text):,}. Shorten it.")
    await _note(tx, entry, {FEEDBACK: feedback.to_json() if feedback is not None else None})


async def message_metadata(tx: Transaction, thread_id: str, *, first: int, last: int) -> dict[int, Mapping[str, Any]]:
    """Return people's metadata of entries `first` to `last`, by seq. The caller checks access."""
    noted = await _noted_of_entries(tx, thread_id, first=first, last=last)
    return {seq: people for seq, each in noted.items() if (people := _of_people(each))}


async def _note(tx: Transaction, entry: Entry, changes: Mapping[str, Any]) -> Mapping[str, Any]:
    there = await _noted_of_entries(tx, entry.thread_id, first=entry.seq, last=entry.seq)
    data = _merge_metadata(there.get(entry.seq, {}), changes)
    await tx.run("save_message_metadata", thread_id=entry.thread_id, seq=entry.seq, data=data)
    changed: Mapping[str, Any] = json.loads(data)
    return changed


async def _noted_of_entries(tx: Transaction, thread_id: str, *, first: int, last: int) -> dict[int, Mapping[str, Any]]:
    rows = await tx.fetch("select_message_metadata", thread_id=thread_id, first=first, last=last)
    found: dict[int, Mapping[str, Any]] = {}
    for row in rows:
        with Decoding(thread_id, "the metadata of entry", row["seq"]):
            found[int(row["seq"])] = dict(json.loads(row["data"]))
    return found


async def set_expiry(tx: Transaction, thread_id: str, moment: datetime | None, *, user_id: str) -> Thread:
    """Set when retention deletes a user's thread (`longthread db prune`); None: never. Raises `ThreadNotFound`, or
    `InvalidInput` if the year, in UTC, is not from 1 to 9999."""
    await _lock_owned_thread(tx, thread_id, user_id)
    try:
        told = moment.astimezone(UTC).isoformat(timespec="microseconds") if moment is not None else None
    except OverflowError as error:
        raise InvalidInput(reason=f"{moment} is not a time in UTC: give a year from 1 to 9999.") from error
    return await _set(tx, thread_id, user_id, "update_expiry", expires_at=told)


async def set_archived(tx: Transaction, thread_id: str, archived: bool, *, user_id: str) -> Thread:
    """Take a user's thread out of the lists, or back into them; nothing if it is so. Raises `ThreadNotFound`."""
    thread = await _lock_owned_thread(tx, thread_id, user_id)
    if archived == (thread.archived_at is not None):
        return thread
    return await _set(tx, thread_id, user_id, "archive_thread", archived_at=log.now() if archived else None)


async def set_status(tx: Transaction, thread_id: str, status: SessionStatus, *, user_id: str) -> None:
    """Set a user's thread's status, as an `UPDATE` of the documented `sessions` does: it holds until the last run
    stands otherwise, or another one begins. Raises `ThreadNotFound`."""
    await _lock_owned_thread(tx, thread_id, user_id)
    await tx.run("update_session_status", id=thread_id, user_id=user_id, status=status)


async def statuses(tx: Transaction, thread_ids: Sequence[str]) -> dict[str, SessionStatus]:
    """Return document 002's status of each thread, by thread. The caller checks access."""
    rows = await tx.fetch("select_session_statuses", threads=dump(list(thread_ids)))
    return {row["id"]: row["status"] for row in rows}


async def _lock_owned_thread(tx: Transaction, thread_id: str, user_id: str) -> Thread:
    await log.lock(tx, thread_id)
    return await log.find_thread(tx, thread_id, user_id=user_id)


async def _set(tx: Transaction, thread_id: str, user_id: str, query: str, **values: Any) -> Thread:
    await tx.run(query, id=thread_id, user_id=user_id, **values)
    return await log.find_thread(tx, thread_id, user_id=user_id)


def _read_notes(thread: Thread) -> dict[str, Any]:
    """All of a thread's metadata, as it is stored."""
    pinned = thread.pinned_at.isoformat(timespec="microseconds") if thread.pinned_at else None
    return {**thread.metadata, PINNED: pinned, TITLED: thread.titled}


def _of_people(noted: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in noted.items() if not key.startswith(RESERVED)}


def _expect_free(changes: Mapping[str, Any]) -> None:
    taken = [key for key in changes if str(key).startswith(RESERVED)]
    if taken:
        names = ", ".join(taken)[:200]
        raise InvalidInput(
            reason=f"Keys of metadata that begin with {RESERVED!r} are Longthread's own; here {names}. Choose another "
            "name. A pin and an opinion of an answer have requests of their own."
        )


def _tag(tag: str) -> str:
    tag = tag.strip()
    if not 0 < len(tag) <= TAG_LENGTH:
        raise InvalidInput(reason=f"A tag has 1 to {TAG_LENGTH} characters; this has {len(tag)}: {tag[:40]!r}.")
    return tag


def _merge_metadata(there: Mapping[str, Any], changes: Mapping[str, Any]) -> str:
    changed = {**there, **changes}
    try:
        data = json.dumps(
            {str(key): value for key, value in changed.items() if value is not None},
            ensure_ascii=False, separators=(",", ":"), allow_nan=False,
        )  # fmt: skip
    except (TypeError, ValueError, RecursionError) as error:
        raise InvalidInput(reason=f"Metadata is a JSON object; this is none: {error}.") from error
    if len(data) > METADATA_SIZE:
        raise InvalidInput(reason=f"Metadata has at most {METADATA_SIZE} characters as JSON; this has {len(data)}.")
    return data
