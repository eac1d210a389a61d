"""What the user gave or set is not right."""

from __future__ import annotations

from pathlib import Path

from longthread.errors.base import LongthreadError


class InvalidInput(LongthreadError, exit_code=2):
    message = "{reason}"


class CursorUnknown(InvalidInput):
    message = "This cursor is not one that was given out. Leave it out to begin at the start."


class PositionUnknown(InvalidInput):
    message = "Last-Event-ID and `after` take the `id` of an event of a stream of the same runs in order."


class QuestionTooLong(InvalidInput):
    message = """The question has {size} characters, and the limit is {limit}. Put the data into a file and give that as
    a --source, or raise LONGTHREAD_MAX_QUESTION."""
    size: str
    limit: str


class MessageTooLong(InvalidInput):
    message = """The message has {size} characters with its calls, and the limit is {limit}. Shorten it, or raise
    LONGTHREAD_MAX_QUESTION."""
    size: str
    limit: str


class SourceMissing(InvalidInput):
    message = "There is no source to ask. Give one with --source, or try --source demo."


class EvalInvalid(InvalidInput):
    message = """{where} cannot be measured with: {reason} It holds entries and queries, one JSON object a line;
    docs/guide/recall.md shows them."""
    where: Path | str


class QuestionsInvalid(InvalidInput):
    message = """{where} cannot be measured with: {reason} It holds questions with gold SQL: one JSON object a line, or
    BIRD's or Spider's array; docs/reference/analyst-eval.md shows them."""
    where: Path | str


class StatementsInvalid(InvalidInput):
    message = """{where} cannot be judged: {reason} It holds SQL statements, one JSON object a line;
    docs/guide/sql.md shows them."""
    where: Path | str
