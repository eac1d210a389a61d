"""Keys of questions: one that a client sends again under its key is not asked twice."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from longthread.errors import KeyReused, RunRepeated
from longthread.store.driver import Transaction, one
from longthread.store.log import now
from longthread.store.run_rows import text_of

KNOWN_FOR = timedelta(hours=24)
"""How long a key is known."""


@dataclass(frozen=True, slots=True)
class QuestionKey:
    """A client's key for a question. `request` is a hash of all that it asks."""

    key: str
    request: str


async def find(tx: Transaction, user_id: str, key: QuestionKey) -> tuple[str, str] | None:
    """Return the ids of the thread and the run of the user's question under this key, or of the queued question, which
    may have become a run since; None if there is none.

    Raises:
        KeyReused: the key stands for another request.
    """
    row = await one(tx, "select_idempotency_key", user_id=user_id, key=key.key, since=_since())
    if row is None:
        return None
    if row["request"] != key.request:
        raise KeyReused(key=key.key)
    return row["thread_id"], row["run_id"]


async def save(tx: Transaction, user_id: str, key: QuestionKey, *, thread_id: str, run_id: str) -> None:
    """Store a key, in the transaction that stores its question, with the id of its run or of the queued question. The
    user's keys of the day before are deleted.

    Raises:
        RunRepeated: another transaction has stored the same question. Roll this one back.
        KeyReused: the key stands for another request.
    """
    await tx.run("delete_old_idempotency_keys", user_id=user_id, since=_since())
    about = {"key": key.key, "request": key.request, "thread_id": thread_id, "run_id": run_id}
    if await tx.run("insert_idempotency_key", user_id=user_id, now=now(), **about):
        return
    found = await find(tx, user_id, key)
    thread, run = found or (thread_id, run_id)
    raise RunRepeated(thread=thread, run=run)


def _since() -> str:
    return text_of(datetime.now(UTC) - KNOWN_FOR)
