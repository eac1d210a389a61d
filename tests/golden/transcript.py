"""Transcripts: files of commands or requests with the answers that were recorded.

A line `$ …` is a command of a shell, a line `> …` a request over HTTP, and lines `- …` below a request are its parts.
Lines that begin with two spaces are the answer. Other lines are comments. So a file is the table and the record at
once: to add a command, write its line and record again.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterator
from difflib import unified_diff
from pathlib import Path

import pytest

RECORDED = Path(__file__).parent / "recorded"
RECORDING = "LONGTHREAD_TEST_RECORD"
"""The variable that records again instead of comparing: LONGTHREAD_TEST_RECORD=1."""
LONGEST = 60
"""Lines of a difference that a failure prints."""
ANSWER = "  "

Ask = Callable[[str, list[str]], str]
"""`ask(line, parts)` returns the text of an answer."""


def replay(name: str, ask: Ask, *, may_record: bool = True) -> None:
    """Run each command or request of a transcript, and compare the answers with those that are recorded."""
    lines = _answer_lines((RECORDED / name).read_text("utf-8"), ask)
    expect_recorded(name, "\n".join(lines) + "\n", may_record=may_record)


def _answer_lines(transcript: str, ask: Ask) -> Iterator[str]:
    """Yield the lines of a transcript with the answers of today."""
    lines = deque(line for line in transcript.splitlines() if not line.startswith(ANSWER))
    while lines:
        line, parts = lines.popleft(), []
        while lines and lines[0].startswith("- "):
            parts.append(lines.popleft())
        yield from (line, *parts)
        if line.startswith(("$ ", "> ")):
            answer = ask(line[2:], [part[2:] for part in parts])
            yield from (ANSWER + each for each in answer.splitlines())


def expect_recorded(name: str, text: str, *, may_record: bool = True) -> None:
    """Fail with a short difference unless a text is the recorded one. With LONGTHREAD_TEST_RECORD, record it first."""
    path = RECORDED / name
    if may_record and os.environ.get(RECORDING):
        path.write_text(text, "utf-8")
    recorded = path.read_text("utf-8")
    difference = list(unified_diff(recorded.splitlines(), text.splitlines(), f"recorded/{name}", "now", "", "", 2, ""))
    if difference:
        more = [f"… and {len(difference) - LONGEST} lines more"] if len(difference) > LONGEST else []
        hint = f'If a user shall see the difference, record it: {RECORDING}=1 pytest -m "slow or not slow" tests/golden'
        pytest.fail("\n".join([*difference[:LONGEST], *more, hint]), pytrace=False)
