"""Words that scripts of the agent's tests are made of."""

from __future__ import annotations

from typing import Any

from longthread.model.run import Event
from longthread.runs.shared import RunHandle


async def events_of(handle: RunHandle) -> list[Event]:
    """All events of a run."""
    return [event async for event in handle.events()]


def call(action: str, **args: Any) -> dict[str, Any]:
    """A scripted call."""
    return {"thought": f"I use {action}.", "action": action, "args": args}


def finish(text: str) -> dict[str, Any]:
    """A scripted answer."""
    return {"thought": "Done.", "finish": text}


COUNT = call("run_sql", sql="SELECT COUNT(*) AS n FROM customers")
