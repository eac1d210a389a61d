"""What people think of answers: each with its question, its SQL and the call of the model that gave it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any
from urllib.parse import urlsplit

from longthread.context.forks import question_of
from longthread.errors import NotAQuestion
from longthread.model.entry import Entry
from longthread.model.run import Run
from longthread.model.thread import Feedback
from longthread.store import listing, log, runs
from longthread.store.driver import Driver, Transaction

_PAGE = 100
_EARLIER = 200
"""Entries before a question among which the earlier questions of its branch are looked for."""


@dataclass(frozen=True, slots=True)
class JudgedAnswer:
    """An answer with a person's opinion. `call` is the step of the model call that gave it, whose exact view is kept;
    `sql` the last query that it rests on; None where there is none, as in threads of other clients. `earlier` are the
    questions before it on its branch."""

    feedback: Feedback
    entry: Entry
    question: str
    earlier: tuple[str, ...]
    sql: str | None
    source: str | None
    model: str | None
    call: int | None

    def to_json(self) -> dict[str, Any]:
        return {
            "thread_id": self.entry.thread_id,
            "message_id": self.entry.id,
            "run_id": self.entry.run_id,
            "call": self.call,
            "question": self.question,
            "answer": self.entry.shown_text,
            "sql": self.sql,
            "source": self.source,
            "model": self.model,
            **self.feedback.to_json(),
        }

    def to_eval(self) -> dict[str, Any]:
        """A line of an evaluation set, as `longthread eval analyst` reads it."""
        return {
            "db": _database(self.source),
            "question": self.question,
            **({"before": list(self.earlier)} if self.earlier else {}),
            "sql": self.sql,
            "verdict": self.feedback.opinion,
            "comment": self.feedback.text,
            "thread_id": self.entry.thread_id,
            "message_id": self.entry.id,
        }


async def judged_page(
    tx: Transaction, *, user_id: str, limit: int, before: tuple[str, str] = listing.LATEST, thread_id: str = ""
) -> list[JudgedAnswer]:
    """Return a user's judged answers, as `listing.judged_answers` does."""
    found = await listing.judged_answers(tx, user_id=user_id, limit=limit, before=before, thread_id=thread_id)
    return [await _read(tx, entry, feedback) for entry, feedback in found]


async def all_judged(store: Driver, *, user_id: str, thread_id: str = "") -> AsyncIterator[JudgedAnswer]:
    """Yield all of a user's judged answers, the latest first, page by page."""
    before = listing.LATEST
    while True:
        async with store.reading() as tx:
            page = await judged_page(tx, user_id=user_id, limit=_PAGE, before=before, thread_id=thread_id)
        for each in page:
            yield each
        if len(page) < _PAGE:
            return
        before = place_of_answer(page[-1])


def place_of_answer(answer: JudgedAnswer) -> tuple[str, str]:
    """Where a page begins that follows an answer."""
    return answer.entry.created_at.isoformat(timespec="microseconds"), answer.entry.id


async def _read(tx: Transaction, entry: Entry, feedback: Feedback) -> JudgedAnswer:
    run = await runs.find_run(tx, entry.thread_id, entry.run_id) if entry.run_id is not None else None
    try:
        asked = await question_of(tx, entry.thread_id, entry.id)
    except NotAQuestion:  # an assistant began, or retention has deleted the question
        return JudgedAnswer(feedback, entry, run.question if run else "", (), *await _facts(tx, run))
    there = await log.branch(tx, entry.thread_id, asked.parent_seq, limit=_EARLIER) if asked.parent_seq else []
    earlier = tuple(each.shown_text for each in there if each.role == "user")
    return JudgedAnswer(feedback, entry, asked.shown_text, earlier, *await _facts(tx, run))


async def _facts(tx: Transaction, run: Run | None) -> tuple[str | None, str | None, str | None, int | None]:
    """The SQL, source and model of a run, and the step of its last call."""
    if run is None:
        return None, None, None, None
    queries = run.outcome.get("queries") or []
    calls = [step.index for step in await runs.steps_of(tx, run) if step.kind == "model"]
    return (queries[-1]["sql"] if queries else None), run.source, run.model, calls[-1] if calls else None


def _database(source: str | None) -> str:
    """The name of a source in an evaluation set: that of its file or database, without a place or a secret."""
    name = urlsplit(source).path if source and "://" in source else source or ""
    return PurePosixPath(name.replace("\\", "/")).stem or "database"
