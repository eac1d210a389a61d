"""Rows of runs and steps, and the events that are derived from them.

A run, a step or its entry holds an event's content; a mark on the run or step holds its number and time. Only
warnings, and text that became no message, are rows of `events`.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

from longthread.model.fold import observation_of
from longthread.model.memory import ANALYST
from longthread.model.run import AgentRun, Answers, Event, Mark, Run, Step, StepKind, StepStatus
from longthread.store.driver import Row
from longthread.store.rows import decoder, dump

SAID = ("answer", "summary", "unfinished")
"""Outcome keys that hold the final entry's text. They are stored as None, as is the entry's id, `message_id`."""


@decoder
def run_of(row: Row) -> Run:
    """Decode a run, with what its entries hold. An ended run's outcome is in its body."""
    return Run(
        thread_id=row["thread_id"],
        id=row["id"],
        status="waiting" if row["status"] == "running" and row["waiting_since"] else row["status"],
        question=row["question"] if row["asked"] is None else row["asked"],
        source=row["source"],
        model=row["model"],
        protocol=row["protocol"],
        max_steps=row["max_steps"],
        started_at=time_of(row["started_at"]),
        ended_at=time_of(row["ended_at"]) if row["ended_at"] else None,
        continues=row["continues"],
        first_step=row["first_step"],
        stop_step=row["stop_step"],
        question_seq=row["question_seq"],
        entry_seq=row["entry_seq"],
        outcome=json.loads(row["outcome"]),
        agent=agent_of(row),
        answers=Answers(row["parent_run_id"], row["parent_call_id"]) if row["parent_call_id"] else None,
    )


def agent_values(agent: AgentRun | None) -> dict[str, Any]:
    """Return the columns of a run's agent; the id is NULL for the built-in analyst."""
    if agent is None:
        return {"agent_id": None, "agent_version": None, "agent_parts": None}
    return {
        "agent_id": agent.id if agent.id != ANALYST else None,
        "agent_version": agent.version,
        "agent_parts": dump(agent.parts) if agent.parts else None,
    }


def agent_of(row: Row) -> AgentRun | None:
    """Decode the columns of `agent_values`; None if the run's agent is not known."""
    if row["agent_version"] is None:
        return None
    parts = json.loads(row["agent_parts"]) if row["agent_parts"] else {}
    return AgentRun(row["agent_id"] or ANALYST, int(row["agent_version"]), parts)


def complete_run(run: Run, outcome: Mapping[str, Any], row: Row) -> Run:
    """Return the run with its outcome, completed from its final entry."""
    if run.entry_seq is None:
        return replace(run, outcome=outcome)
    said = {"message_id": row["said_id"], **dict.fromkeys(SAID, row["said"] or "")}
    return replace(run, outcome={key: said.get(key) if value is None else value for key, value in outcome.items()})


@decoder
def step_of(row: Row) -> Step:
    """Decode a step, without what its entry holds."""
    kind: StepKind = row["kind"]
    status: StepStatus = row["status"]
    return Step(
        thread_id=row["thread_id"],
        index=row["idx"],
        run_id=row["run_id"],
        kind=kind,
        status=status,
        started_at=time_of(row["started_at"]),
        thought=row["thought"],
        action=row["action"],
        args=json.loads(row["args"]),
        observation=json.loads(row["observation"]) if row["observation"] else None,
        call_id=row["call_id"],
        usage=json.loads(row["usage"]),
        manifest=json.loads(row["manifest"]),
        prompt=row["prompt"],
        entry_seq=row["entry_seq"],
        elapsed_ms=row["elapsed_ms"],
    )


def complete_step(step: Step, said: Row | None) -> Step:
    """Complete a step from its entry; `said` is None if that was deleted."""
    if step.entry_seq is None:
        return step
    if step.kind == "model":
        return replace(step, thought=said["text"], entry_id=said["id"]) if said else step
    if said is None:
        return replace(step, observation=dict(_GONE))
    call_id = step.call_id or said["tool_call_id"]
    return replace(step, observation=observation_of(said["text"]), entry_id=said["id"], call_id=call_id)


_GONE = {"ok": False, "error": {"type": "expired", "message": "The result was deleted: it was older than is kept."}}


def step_values(step: Step) -> dict[str, Any]:
    """Return a step's columns, without what its entry holds."""
    return {
        "thread_id": step.thread_id,
        "idx": step.index,
        "run_id": step.run_id,
        "kind": step.kind,
        "status": step.status,
        "thought": "" if step.entry_seq else step.thought,
        "action": step.action,
        "args": dump(step.args),
        "observation": None if step.entry_seq or step.observation is None else dump(step.observation),
        "call_id": step.call_id,
        "usage": dump(step.usage),
        "manifest": dump(step.manifest),
        "prompt": step.prompt,
        "entry_seq": step.entry_seq,
        "started_at": text_of(step.started_at),
        "elapsed_ms": step.elapsed_ms,
    }


@decoder
def event_of(row: Row) -> Event:
    return Event(row["thread_id"], row["run_id"], row["seq"], row["type"], json.loads(row["data"]), time_of(row["at"]))


def text_of(moment: datetime) -> str:
    return moment.isoformat(timespec="microseconds")


def time_of(text: str) -> datetime:
    return datetime.fromisoformat(text)


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
            data: Mapping[str, Any] = _describe_delta(step, f"{before}{step.thought[place:stop]}{behind}")
            place = stop
        else:
            data = _data(step, mark)
        yield Event(step.thread_id, step.run_id, mark.seq, mark.type, data, mark.moment(step.started_at))


def _describe_delta(step: Step, delta: str) -> Mapping[str, Any]:
    return {"message_id": step.entry_id, "delta": delta}


def _data(step: Step, mark: Mark) -> Mapping[str, Any]:
    if mark.type == "thought":
        return {"text": step.thought, "message_id": step.entry_id}
    data = {"step": step.index, "action": step.action, "args": step.args, "call_id": step.call_id}
    if mark.type == "step_finished":
        observation = step.observation or {}
        data |= {"ok": bool(observation.get("ok")), "observation": observation, "elapsed_ms": step.elapsed_ms}
    return data
