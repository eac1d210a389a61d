"""Questions with gold SQL: reads our format, BIRD's and Spider's, and compares results.

Ours has one JSON object a line: `{"db", "question", "sql": "…" or ["…"]}`, and more: lines of one `conversation`
are asked in one thread, in their order; the questions of `before` are asked first, and not counted; of a line whose
`verdict` is `down`, or that has a verdict and no `sql`, no right statement is known. BIRD's file is a JSON array of
`{"db_id", "question", "evidence", "SQL"}`, Spider's of `{"db_id", "question", "query"}`.
"""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Any

from longthread.errors import InvalidInput, QuestionsInvalid

Cells = Sequence[Any]
_SUFFIXES = (".sqlite", ".db", ".duckdb")
_DECIMALS = 3
_COMPARED = 2_000
"""Rows of a result up to which columns may stand in another order."""


@dataclass(frozen=True, slots=True)
class SqlQuestion:
    """A question of one database, and statements that each give the right rows. `hint` is BIRD's evidence;
    `conversation` names the thread that it belongs to. `before` are questions that are asked before it in its thread.
    If it `lacks_gold`, no right statement is known."""

    database: str
    text: str
    gold: tuple[str, ...]
    hint: str = ""
    conversation: str | None = None
    before: tuple[str, ...] = ()
    lacks_gold: bool = False

    @property
    def full_text(self) -> str:
        return f"{self.text}\n{self.hint}" if self.hint else self.text


def read_questions(path: Path, *, database: str | None = None) -> list[SqlQuestion]:
    """Return a file's questions, in order; `database` is that of questions that name none.

    Raises:
        QuestionsInvalid: it is malformed; the message says where.
    """
    questions: list[SqlQuestion] = []
    place = ""
    try:
        text = path.read_text("utf-8-sig")
        is_array = text.lstrip().startswith("[")
        for number, row in enumerate(json.loads(text) if is_array else text.splitlines(), 1):
            if is_array or row.strip():
                place = f"question {number}" if is_array else f"line {number}"
                question = _question(row if is_array else json.loads(row), database or "")
                if not question.database:
                    reason = f"{place} names no database: give it a `db`, or all questions one source with --source."
                    raise QuestionsInvalid(where=path, reason=reason)
                questions.append(question)
    except UnicodeDecodeError:
        raise QuestionsInvalid(where=path, reason="it is no text in UTF-8.") from None
    except (ValueError, KeyError, TypeError) as error:
        raise QuestionsInvalid(where=path, reason=f"{place}: {type(error).__name__}: {error}.") from None
    except OSError as error:
        raise QuestionsInvalid(where=path, reason=f"{error.strerror or error}.") from None
    if not questions:
        raise QuestionsInvalid(where=path, reason="it has no questions.")
    return questions


def _question(row: Mapping[str, Any], database: str) -> SqlQuestion:
    database = str(row.get("db") or row.get("db_id") or database)
    if row.get("verdict") == "down" or ("verdict" in row and row.get("sql") is None):
        return SqlQuestion(database, str(row["question"]), (), lacks_gold=True)
    gold = next(row[name] for name in ("sql", "SQL", "query") if name in row) if not _lacks(row) else None
    statements = [gold] if isinstance(gold, str) else gold
    if not isinstance(statements, list) or not statements or not all(isinstance(each, str) for each in statements):
        raise TypeError("the gold SQL (sql, SQL or query) is neither a text nor a list of texts")
    conversation = row.get("conversation")
    return SqlQuestion(
        database,
        str(row["question"]),
        tuple(statements),
        str(row.get("evidence") or ""),
        None if conversation is None else str(conversation),
        tuple(str(each) for each in row.get("before") or ()),
    )


def _lacks(row: Mapping[str, Any]) -> bool:
    return not any(name in row for name in ("sql", "SQL", "query"))


def in_conversations(questions: Sequence[SqlQuestion], *, follow_ups: bool) -> list[list[SqlQuestion]]:
    """Return the threads to ask: conversations if `follow_ups`, else each question of none alone."""
    threads: list[list[SqlQuestion]] = []
    for (_, conversation), group in groupby(questions, key=lambda each: (each.database, each.conversation)):
        if conversation is None:
            threads += [] if follow_ups else [[each] for each in group]
        elif follow_ups:
            threads.append(list(group))
    return threads


def sample(threads: Sequence[list[SqlQuestion]], count: int | None, seed: int) -> list[list[SqlQuestion]]:
    """Return `count` of the threads, chosen at random by the seed; all of them if None. Those of one database stand
    together, so that a model server finds the schema of the question before in its cache."""
    places = list(range(len(threads)))
    if count is not None:
        random.Random(seed).shuffle(places)
        places = places[:count]
    first: dict[str, int] = {}
    for place, thread in enumerate(threads):
        first.setdefault(thread[0].database, place)
    return [threads[place] for place in sorted(places, key=lambda place: (first[threads[place][0].database], place))]


def find_database(folder: Path, name: str) -> Path:
    """Return the file of a database: `NAME.sqlite`, `NAME.db` or `NAME.duckdb` in the folder, or in a folder NAME at
    any depth. Raises InvalidInput: there is none."""
    names = [f"{name}{suffix}" for suffix in _SUFFIXES]
    direct = next((folder / each for each in names if (folder / each).is_file()), None)
    file = direct or next((path for each in names for path in sorted(folder.rglob(f"{name}/{each}"))), None)
    if file is None:
        reason = f"There is no {', '.join(names[:-1])} or {names[-1]} in {folder}, nor in a folder {name} below it."
        raise InvalidInput(reason=f"{reason} Give the folder of the databases with --databases, or one with --source.")
    return file


def have_same_rows(gold: Sequence[Cells], rows: Sequence[Cells]) -> bool:
    """Return whether a result has the rows of the gold result, in any order. It may have more columns, and its
    columns may stand in another order; texts, numbers and decimals are compared by what they say."""
    if len(gold) != len(rows):
        return False
    wanted, given = [_values(row) for row in gold], [_values(row) for row in rows]
    if sorted(wanted) == sorted(given):
        return True
    if len(gold) > _COMPARED:
        return False
    left = [Counter(row) for row in given]
    for row in sorted(wanted, key=lambda each: -len(each)):
        needed = Counter(row)
        place = next((place for place, there in enumerate(left) if needed <= there), None)
        if place is None:
            return False
        left.pop(place)
    return True


def _values(row: Cells) -> list[str]:
    return [_value(each) for each in row]


def _value(value: Any) -> str:
    if value is None:
        return "NULL"
    try:
        number = round(float(value), _DECIMALS)
    except (TypeError, ValueError, OverflowError):
        return str(value).strip()
    return str(number if number else 0.0)
