"""What an unfinished run has come to, told without a model."""

from __future__ import annotations

import json

import pytest

from longthread.messages.message import Message
from longthread.runs.end_run import progress_digest

pytestmark = pytest.mark.one_backend


@pytest.mark.parametrize(
    ("question", "done", "said"),
    [
        ("Write.", "**Done**: look({})", "mail({}): not made, the tool is no longer there"),
        ("写信。", "**已完成**: look({})", "mail({})：工具已不在，未执行"),
    ],
)
def test_a_call_of_a_tool_that_is_gone_was_not_made(question: str, done: str, said: str) -> None:
    calls = [{"id": name, "name": name, "args": {}, "type": "tool_call"} for name in ("look", "mail")]
    results = [{"ok": True, "data": 1}, {"ok": False, "error": {"type": "tool_gone", "message": "It is gone."}}]
    told = [
        Message("tool", json.dumps(result), tool_call_id=call["id"])
        for call, result in zip(calls, results, strict=True)
    ]
    lines = progress_digest(question, [Message("assistant", "", tool_calls=calls), *told]).splitlines()
    assert done in lines
    assert [line for line in lines if said in line and "**Done**" not in line and "已完成" not in line]
