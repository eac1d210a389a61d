"""Events, derived from runs and steps.

A run, a step or its entry holds an event's content; a mark on the run or step holds its number and time. Only
warnings, and text that became no message, are rows of `events`.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from longthread.model.run import Event, Mark, Run, Step
from longthread.store.driver import Row
from longthread.store.rows import decoder

BEGUN = (Mark(1, "started", 0),)
"""The marks of a run that has just begun."""
_STARTED = ("question", "source", "model", "protocol", "max_steps", "continues")


@decoder
def marks_of(row: Row) -> list[Mark]:
    return [Mark.from_json(mark) for mark in json.loads(row["told"])]


def marks_json(marks: Sequence[Mark]) -> str:
    return json.dumps([mark.to_json() for mark in marks], separators=(",", ":"))


def last_of(marks: Sequence[Mark]) -> int:
    """Return the last event's number; 0 if there is none."""
    return max((mark.seq for mark in marks), default=0)


def events_of_run(run: Run, marks: Sequence[Mark]) -> Iterator[Event]:
    """Yield the run's own events: its start and its end."""
    for mark in marks:
        data = {name: getattr(run, name) for name in _STARTED} if mark.type == "started" else run.outcome
        yield Event(run.thread_id, run.id, mark.seq, mark.type, data, mark.moment(run.started_at))


def events_of_step(step: Step, marks: Sequence[Mark]) -> Iterator[Event]:
    """Yield a step's events: a model call's text and thought, a tool call's start and end."""
    place = 0
    for mark in marks:
        if mark.type == "text":
            before, behind = mark.space
            stop = place + (mark.chars or 0)
            data: Mapping[str, Any] = _said(step, f"{before}{step.thought[place:stop]}{behind}")
            place = stop
        else:
            data = _data(step, mark)
        yield Event(step.thread_id, step.run_id, mark.seq, mark.type, data, mark.moment(step.started_at))


def _said(step: Step, delta: str) -> Mapping[str, Any]:
    return {"message_id": step.entry_id, "delta": delta}


def _data(step: Step, mark: Mark) -> Mapping[str, Any]:
    if mark.type == "thought":
        return {"text": step.thought, "message_id": step.entry_id}
    data = {"step": step.index, "action": step.action, "args": step.args, "call_id": step.call_id}
    if mark.type == "step_finished":
        observation = step.observation or {}
        data |= {"ok": bool(observation.get("ok")), "observation": observation, "elapsed_ms": step.elapsed_ms}
    return data
