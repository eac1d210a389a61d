"""A thread as Markdown."""

from __future__ import annotations

import json
from collections.abc import Sequence

from longthread.model.entry import Entry
from longthread.model.thread import Thread


def markdown(thread: Thread, entries: Sequence[Entry]) -> str:
    """The messages and calls of a branch, without results."""
    parts = [f"# {thread.title or thread.id}\n"]
    for entry in entries:
        if entry.role == "user":
            parts.append(f"\n## {entry.text}\n")
        elif entry.role == "assistant" and entry.text.strip():
            parts.append(f"\n{entry.text}\n")
        for call in entry.tool_calls:
            sql = call.args.get("sql")
            shown = f"```sql\n{sql}\n```" if sql else f"`{json.dumps(dict(call.args), ensure_ascii=False)}`"
            parts.append(f"\n*{call.name}*\n\n{shown}\n")
    return "".join(parts)
