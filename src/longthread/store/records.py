"""Runs and steps as rows."""

from __future__ import annotations

import json
from datetime import datetime
from typing import Any

from longthread.model.fold import observation_of
from longthread.model.run import Run, Step, StepKind, StepStatus
from longthread.store.decoding import decoder
from longthread.store.driver import Row

SAID = ("answer", "summary")
"""Keys of an outcome that hold what the entry says with which the run ended: there they are None."""


@decoder
def run_of(row: Row) -> Run:
    """A run."""
    return Run(
        thread_id=row["thread_id"],
        id=row["id"],
        status=row["status"],
        question=row["question"],
        source=row["source"],
        model=row["model"],
        protocol=row["protocol"],
        max_steps=row["max_steps"],
        started_at=time_of(row["started_at"]),
        ended_at=time_of(row["ended_at"]) if row["ended_at"] else None,
        continues=row["continues"],
        first_step=row["first_step"],
        stop_step=row["stop_step"],
        entry_seq=row["entry_seq"],
        outcome=_outcome(row),
    )


def _outcome(row: Row) -> dict[str, Any]:
    outcome: dict[str, Any] = json.loads(row["outcome"])
    if row["entry_seq"] is not None:
        outcome |= {key: row["said"] or "" for key in SAID if key in outcome and outcome[key] is None}
    return outcome


@decoder
def step_of(row: Row) -> Step:
    """A step, with what the entry says that it made."""
    kind: StepKind = row["kind"]
    status: StepStatus = row["status"]
    return Step(
        thread_id=row["thread_id"],
        index=row["idx"],
        run_id=row["run_id"],
        kind=kind,
        status=status,
        started_at=time_of(row["started_at"]),
        thought=(row["said"] or "") if kind == "model" and row["entry_seq"] else row["thought"],
        action=row["action"],
        args=json.loads(row["args"]),
        observation=_observation(row),
        call_id=row["call_id"],
        usage=json.loads(row["usage"]),
        manifest=json.loads(row["manifest"]),
        prompt=row["prompt"],
        entry_seq=row["entry_seq"],
        entry_id=row["entry_id"],
        elapsed_ms=row["elapsed_ms"],
    )


def _observation(row: Row) -> dict[str, Any] | None:
    if row["observation"]:
        observation: dict[str, Any] = json.loads(row["observation"])
        return observation
    if row["kind"] == "model" or row["entry_seq"] is None:
        return None
    return dict(_GONE) if row["said"] is None else observation_of(row["said"])


_GONE = {"ok": False, "error": {"type": "expired", "message": "The result was deleted: it was older than is kept."}}


def step_values(step: Step) -> dict[str, Any]:
    """A step's columns. What an entry says stands there."""
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


def text_of(moment: datetime) -> str:
    """A time as it is stored."""
    return moment.isoformat(timespec="microseconds")


def time_of(text: str) -> datetime:
    """A time that was stored."""
    return datetime.fromisoformat(text)


def dump(value: Any) -> str:
    """JSON as it is stored."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), default=dict)
