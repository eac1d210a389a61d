"""A model that does what the last message asks for: `CALL name {arguments}` once or several times, or an answer."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from typing import Any

from longthread.messages.message import Message

SUMMARY = "<analysis>All was read.</analysis><state_snapshot><summary>A short talk.</summary></state_snapshot>"
"""What each client takes for a summary of the conversation."""

_CALL = re.compile(r"CALL (\S+) (?=\{)")
_SUMMARY = re.compile(r"\A[^<].*<(summary|state_snapshot)>", re.DOTALL)
"""A message that says which tags a summary has; one that begins with a tag tells of something else."""
_REMINDER = re.compile(r"<system-reminder>.*?</system-reminder>\s*", re.DOTALL)
_AMONG_RESULTS = "<subagent_notification>"
"""Codex tells of a sub-agent's end in a user's message, which may come between a call's result and the reply."""
_ID = re.compile(r'"agent_id": ?"([^"]+)"')


def call(name: str, **arguments: Any) -> str:
    """Return the text that asks for a call."""
    return f"CALL {name} {json.dumps(arguments)}"


def answer(asked: str) -> str:
    """Return the answer to a message that asks for nothing else."""
    return f"Noted: {asked}"


DONE = "Done."
"""The answer when all calls have results."""


def obedient(messages: Sequence[Message]) -> Any:
    """Return the reply, as a script of the emulator's has it. `$agent` in arguments is the agent that was started."""
    said = {n: _last_text(each) for n, each in enumerate(messages) if each.role == "user"}
    last = max((n for n, text in said.items() if not text.startswith(_AMONG_RESULTS)), default=-1)
    asked = _REMINDER.sub("", said.get(last, ""))
    results = [each.text for each in messages[last + 1 :] if each.role == "tool"]
    calls = [*_calls(asked)] if asked.startswith("CALL ") else []
    if len(results) < len(calls):
        name, arguments = calls[len(results)]
        started = _ID.search("".join(results))
        text = json.dumps(arguments).replace("$agent", started[1] if started else "")
        return {"thought": "", "action": name, "args": json.loads(text)}
    if calls:
        return DONE
    return SUMMARY if _SUMMARY.search(asked) else answer(asked.strip()[:60])


def _last_text(message: Message) -> str:
    """Return the last text of a message: clients put reminders before what the user said."""
    if isinstance(message.content, str):
        return message.content
    return next((str(block["text"]) for block in reversed(message.blocks) if block.get("text")), "")


def _calls(text: str) -> Iterator[tuple[str, dict[str, Any]]]:
    decoder, end = json.JSONDecoder(), 0
    while found := _CALL.search(text, end):
        arguments, end = decoder.raw_decode(text, found.end())
        yield found[1], arguments
