"""The tool that shows what a model saw: view."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from longthread.errors import InvalidInput
from longthread.runs.inspect import calls_of, look
from longthread.server.mcp.offer import TEXT, THREAD, WHOLE, OfferedTool, ReportProgress, ToolAnswer, each, schema
from longthread.store import log
from longthread.store.driver import Driver
from longthread.view.condense import cut_middle
from longthread.view.manifest import ViewEntry

_CHARS = 400
"""Characters of a message that are shown; the summary is shown whole."""
_MOST = 200
_SEEN = {"seq": WHOLE, "role": TEXT, "how": TEXT, "tokens": WHOLE, "why": TEXT, "tier": WHOLE, "text": TEXT}


class ViewTool:
    """What models saw of a user's conversations."""

    def __init__(self, store: Driver, user: str) -> None:
        self._store = store
        self._user = user

    def offer(self) -> OfferedTool:
        """`view`."""
        call = {"type": "integer", "description": "Which model call, from 1; -1 is the last one.", "default": -1}
        output = {"thread": TEXT, "call": WHOLE, "calls": WHOLE, "tokens": WHOLE, "why_planned": TEXT}
        messages = each(_SEEN, "seq", "role", "how", "tokens", "text")
        return OfferedTool(
            "view",
            "See what the model saw",
            "The messages that a model call of a conversation saw: how each went in (whole, condensed, as a summary, "
            "left out and why), and what it cost in tokens, by estimate.",
            schema({"thread": THREAD, "call": call}, "thread"),
            schema(output | {"messages": messages, "left_off": WHOLE}, *output, "messages"),
            self._view,
        )

    async def _view(self, given: Mapping[str, Any], progress: ReportProgress) -> ToolAnswer:
        async with self._store.reading() as tx:
            thread = await log.find_thread(tx, given["thread"], user_id=self._user)
            calls = await calls_of(tx, thread.id)
            number = given["call"] if given["call"] >= 0 else len(calls) + 1 + given["call"]
            if not 0 < number <= len(calls):
                reason = f"There is no call {given['call']}: of {len(calls)} calls the views are kept, counted from 1."
                raise InvalidInput(reason=reason)
            seen = await look(tx, calls, number)
        left_off = max(0, len(seen.entries) - _MOST)
        data: dict[str, Any] = {
            "thread": thread.id,
            "call": number,
            "calls": len(calls),
            "tokens": seen.tokens,
            "why_planned": seen.why_planned,
            "messages": [_seen(one) for one in seen.entries[left_off:]],
        }
        data |= {"left_off": left_off} if left_off else {}
        head = f"Call {number} of {len(calls)}: {seen.tokens} tokens of messages, by estimate"
        lines = [f"{one['seq']} {one['role']} {one['how']} {one['tokens']}: {one['text']}" for one in data["messages"]]
        return ToolAnswer(data, "\n".join([head, *lines]))


def _seen(one: ViewEntry) -> dict[str, Any]:
    text = one.text if one.how == "summary" else cut_middle(one.text, _CHARS)
    data: dict[str, Any] = {"seq": one.seq, "role": one.role, "how": one.how, "tokens": one.tokens, "text": text}
    data |= {"why": one.why} if one.why else {}
    return data | ({"tier": one.tier} if one.tier else {})
