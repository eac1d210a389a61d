"""What an entry says: the text that is indexed, and the part of it that a question is about."""

from __future__ import annotations

import json

from longthread.model.builtin import LOAD_SKILL, RECALL_TOOL
from longthread.model.entry import Draft, Entry
from longthread.store.index.recall import Text

_NOT_SAID = frozenset({RECALL_TOOL, LOAD_SKILL})
"""The tool whose calls and results are not found again: they say what other entries say."""


def is_recallable(entry: Text | Entry) -> bool:
    """Whether recall may return an entry: not recall's own results, nor loaded skills.
    System messages are recallable: as entries they were said in the conversation."""
    return entry.role != "tool" or entry.name not in _NOT_SAID


def is_prompt(entry: Entry) -> bool:
    """Whether it is the system message that a branch begins with, shown with every view."""
    return entry.role == "system" and entry.parent_seq == 0


def content_of(entry: Text | Draft) -> str:
    """Return an entry's text, the arguments of its tool calls, and its other content."""
    calls = [
        json.dumps(dict(call.args), ensure_ascii=False)
        for call in entry.tool_calls
        if call.name != RECALL_TOOL and call.args
    ]
    extra = entry.extra_text
    return "\n".join([entry.text, *calls, *([extra] if extra else [])]) if calls or extra else entry.text
