"""A conversation in which a bit of everything was said, on two branches."""

from __future__ import annotations

import json
from typing import Any

from longthread.model.entry import Draft, Entry, ToolCall
from longthread.store import log
from longthread.store.driver import Driver

NOTE = {"kind": "question", "source": "demo", "fingerprint": "f1", "max_steps": 12}
COLUMNS = {"table_name": "rockets", "columns": [{"name": "id", "type": "INTEGER"}]}
THINKING = [{"type": "thinking", "thinking": "hm", "signature": "c2ln"}, {"type": "text", "text": "Let me look."}]


def payload(**fields: Any) -> bytes:
    return json.dumps(fields, ensure_ascii=False).encode()


def explored() -> list[Draft]:
    """A question that was answered after two calls, one of which failed."""
    calls = [ToolCall("c1", "describe_table", {"table": "rockets"}), ToolCall("c2", "run_sql", {"sql": "SELECT '深'"})]
    failed = {"ok": False, "error": {"type": "sql_failed", "message": "no such column"}}
    return [
        Draft("system", "system", "You are an analyst."),
        Draft("ask", "user", "运载火箭有哪些？", metadata=NOTE),
        Draft(
            "calls", "assistant", "Let me look.", calls, payload=payload(content=THINKING), tokens=20, latency_ms=900
        ),
        Draft("r1", "tool", json.dumps({"ok": True, "data": COLUMNS}), tool_call_id="c1", name="describe_table"),
        Draft("r2", "tool", json.dumps(failed), tool_call_id="c2", name="run_sql"),
        Draft("answer", "assistant", "长征五号", metadata={"kind": "answer"}, tokens=5),
    ]


async def talk(store: Driver, thread_id: str, *, user_id: str = "u") -> list[Entry]:
    """The entries of the active branch: the question was asked again in other words, and this is the first try."""
    async with store.writing() as tx:
        await log.create_thread(tx, thread_id, user_id=user_id, title="运载火箭有哪些？", source="demo")
        first = await log.extend(tx, thread_id, explored())
        await log.extend(tx, thread_id, [Draft("again", "user", "Which rockets?", metadata=NOTE)], parent=1)
        await log.set_tip(tx, thread_id, first[-1].seq)
    return first
