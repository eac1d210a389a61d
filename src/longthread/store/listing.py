"""Lists of threads: their statuses, those with a title or a text, their tags, and the answers that people judged."""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import suppress
from datetime import datetime
from typing import Any, NamedTuple

from longthread.errors import RowDamaged
from longthread.model.entry import Entry, Role
from longthread.model.run import RunStatus, ShownStatus
from longthread.model.thread import ARCHIVED, FEEDBACK, PINNED, Archived, Feedback, Thread
from longthread.store.driver import Row, Transaction, one
from longthread.store.leases import IsAlive, is_held
from longthread.store.rows import dump, entry_of, like_pattern, threads_of

_LAST = "\U0010ffff"
"""Sorts after every time and id: the start of a listing."""
LATEST = (_LAST, _LAST)
"""The position before the first thread of a list."""


async def list_threads(
    tx: Transaction,
    *,
    user_id: str,
    limit: int = 50,
    before: tuple[str, str] = LATEST,
    below: bool = False,
    archived: Archived = "exclude",
    pinned: bool = False,
    tag: str = "",
    unreadable: dict[str, str] | None = None,
) -> list[Thread]:
    """Return a user's threads, the latest active first, after `before`, the (updated_at, id) of the last one seen.

    Args:
        below: also threads below others: questions between agents.
        archived: whether archived ones are listed.
        pinned: only pinned threads.
        tag: only threads with this tag; empty: all.
        unreadable: receives the ids and reasons of damaged threads, which others replace in the list.

    Raises:
        RowDamaged: a thread is damaged, and there is no `unreadable`.
    """
    found: list[Thread] = []
    while True:
        after, asked = {"before": before[0], "before_id": before[1]}, limit - len(found)
        also = {"below": int(below), "archived": ARCHIVED.index(archived), "tag": tag}
        noted = f'%"{PINNED}"%' if pinned else "%"
        rows = await tx.fetch("select_threads", user_id=user_id, **after, **also, noted=noted, limit=asked)
        found += threads_of(rows, unreadable)
        if len(rows) < asked or len(found) == limit:
            return found
        before = rows[-1]["updated_at"], rows[-1]["id"]


async def last_thread(tx: Transaction, *, user_id: str) -> str | None:
    """Return the id of a user's latest active thread, even if its row is damaged."""
    among: dict[str, Any] = {"below": 0, "archived": 1, "tag": "", "noted": "%"}
    row = await one(tx, "select_threads", user_id=user_id, before=_LAST, before_id=_LAST, **among, limit=1)
    return str(row["id"]) if row else None


async def children(
    tx: Transaction, thread_id: str, *, user_id: str, unreadable: dict[str, str] | None = None
) -> list[Thread]:
    """Return a thread's direct children, oldest first. `unreadable`: see `list_threads`."""
    return threads_of(await tx.fetch("select_children", id=thread_id, user_id=user_id), unreadable)


async def depth(tx: Transaction, thread_id: str) -> int:
    """Return how many ancestors a thread has."""
    row = await one(tx, "count_threads_above", id=thread_id)
    return int(row["depth"] or 0) if row else 0


async def threads_that_begin(tx: Transaction, prefix: str, *, user_id: str, limit: int = 2) -> list[str]:
    """Return a user's thread ids with this prefix, in order."""
    last = prefix + _LAST
    rows = await tx.fetch("select_threads_by_prefix", user_id=user_id, first=prefix, last=last, limit=limit)
    return [row["id"] for row in rows]


async def latest_runs(
    tx: Transaction, threads: Sequence[Thread], *, user_id: str, alive: IsAlive
) -> dict[str, ShownStatus]:
    """Return the status of each thread's last run, by thread; threads without runs are absent. An unfinished run is
    `interrupted` if no process executes it and it waits for no decision. One query reads the range of activity between
    the first and the last thread."""
    if not threads:
        return {}
    active = [thread.updated_at for thread in threads]
    rows = await tx.fetch("latest_runs", user_id=user_id, first=_text(min(active)), last=_text(max(active)))
    wanted = {thread.id for thread in threads}
    return {row["thread_id"]: _status(row, alive) for row in rows if row["thread_id"] in wanted}


class RunState(NamedTuple):
    """A run's status, as `latest_runs` has it, and the number of its last event. `claimable`: if no process executes
    it, a worker will."""

    status: str
    last_event: int
    claimable: bool


async def run_states(tx: Transaction, places: Sequence[tuple[str, str]], *, alive: IsAlive) -> dict[str, RunState]:
    """Return the states of runs, given with their threads, by the run's id; deleted ones are absent."""
    threads, ids = [dump([place[part] for place in places]) for part in (0, 1)]
    rows = await tx.fetch("select_run_states", threads=threads, runs=ids)
    last = {row["id"]: max(row["told"], row["step_told"], row["row_told"]) for row in rows}
    return {row["id"]: RunState(_status(row, alive), last[row["id"]], bool(row["claimable"])) for row in rows}


class FoundText(NamedTuple):
    """What a search found in a thread: the newest question or answer with the text, and its id. Without an id it is the
    title."""

    text: str
    entry: str | None
    role: Role | None


async def search_threads(
    tx: Transaction,
    text: str,
    *,
    user_id: str,
    limit: int = 20,
    archived: Archived = "exclude",
    tag: str = "",
    unreadable: dict[str, str] | None = None,
) -> list[tuple[Thread, FoundText]]:
    """Return a user's threads with `text` in a title, tag, question or answer, each with the newest match. `archived`,
    `tag`, `unreadable`: see `log.list_threads`; damaged threads count towards `limit`."""
    among = {"user_id": user_id, "archived": ARCHIVED.index(archived), "tag": tag}
    rows = await tx.fetch("search_threads", **among, pattern=like_pattern(text), limit=limit)
    hits = {row["id"]: FoundText(row["hit"] or row["title"] or "", row["hit_id"], row["hit_role"]) for row in rows}
    return [(thread, hits[thread.id]) for thread in threads_of(rows, unreadable)]


async def tags(tx: Transaction, *, user_id: str, limit: int = 200) -> list[tuple[str, int]]:
    """Return the tags of a user's threads, those of most threads first, with how many have each. Archived threads, and
    those between agents, do not count."""
    rows = await tx.fetch("select_tags", user_id=user_id, limit=limit)
    return [(row["tag"], int(row["threads"])) for row in rows]


async def judged_answers(
    tx: Transaction, *, user_id: str, limit: int, before: tuple[str, str] = LATEST, thread_id: str = ""
) -> list[tuple[Entry, Feedback]]:
    """Return the answers that a user has an opinion about, the latest first, after `before`, the time and id of the
    last one seen; `thread_id`: only answers of one thread. Fewer than `limit`: there are no more. What another program
    wrote in an opinion's place is left out, and so are damaged messages."""
    among = {"user_id": user_id, "thread_id": thread_id, "noted": f'%"{FEEDBACK}"%', "limit": limit}
    judged: list[tuple[Entry, Feedback]] = []
    while len(judged) < limit:
        rows = await tx.fetch("select_feedback", **among, before=before[0], before_id=before[1])
        for row in rows:
            with suppress(KeyError, TypeError, ValueError, RowDamaged):
                judged.append((entry_of(row), Feedback.from_json(json.loads(row["noted"])[FEEDBACK])))
        if len(rows) < limit:
            break
        before = rows[-1]["created_at"], rows[-1]["id"]
    return judged[:limit]


async def search_titles(tx: Transaction, text: str, *, user_id: str, limit: int = 20) -> list[Thread]:
    """Return a user's threads with `text` in their title, the latest active first. Damaged threads are left out."""
    rows = await tx.fetch("search_titles", user_id=user_id, pattern=like_pattern(text), limit=limit)
    return threads_of(rows, {})


def _status(row: Row, alive: IsAlive) -> ShownStatus:
    status: RunStatus = row["status"]
    if status == "running" and row["waiting_since"]:
        return "waiting"
    return "interrupted" if status == "running" and not is_held(row, alive) else status


def _text(moment: datetime) -> str:
    return moment.isoformat(timespec="microseconds")
