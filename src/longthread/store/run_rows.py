"""Rows of runs and steps, the events derived from them, and the one compressed value of a run that has ended.

A run, a step or its entry holds an event's content; a mark on the run or step holds its number and time. Only
warnings, and text that became no message, are rows of `events`.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Any

from longthread.model.entry import Entry
from longthread.model.fold import observation_of
from longthread.model.memory import ANALYST
from longthread.model.run import (
    AgentRun,
    Answers,
    Event,
    EventType,
    Mark,
    Run,
    RunAsker,
    RunStatus,
    Step,
    StepKind,
    StepStatus,
)
from longthread.store.driver import QueryCall, Row, Transaction
from longthread.store.rows import UNREADABLE, decoder, dump, make_damage_error

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
        asker=asker_of(row),
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


def asker_values(asker: RunAsker | None) -> dict[str, str | None]:
    """Return the columns of who asked."""
    return {"asker": asker.user if asker else None, "key_id": asker.key if asker else None}


def asker_of(row: Row) -> RunAsker | None:
    """Decode the columns of `asker_values`."""
    return RunAsker(row["asker"], row["key_id"]) if row["asker"] is not None else None


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


ENDLESS = 2**62
"""More than any index or number."""
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


# Text in nearly every run, the most frequent last. Never change it: stored runs need it.
_DICTIONARY = (
    b'"reason":"max_steps","summary":null,"hint":"Reply \\"continue\\" to go on.","reason":"stopped","error":{"type":"'
    b'"action":"describe_table","args":{"table":"","action":"list_tables","args":{},"action":"sample_rows","limit":5}'
    b'"cut","left out",0,"budget"],"stale"],"condensed","action":"summary","events":[[,"warning",,"text","message_id":"'
    b'{"outcome":{"answer":null,"citations":[{"number":"","query":"q1"},{"number":"","query":null}],"message_id":null,'
    b'"queries":[{"query":"q1","sql":"SELECT  FROM  WHERE  GROUP BY  ORDER BY  DESC LIMIT ","columns":["name","count"],'
    b'"shown":"1 of 1"}],"usage":{"input_tokens":0,"output_tokens":0}},"marks":[[1,"started",0],[6,"finished",'
    b'"steps":[{"at":0,"ms":,"action":"run_sql","entry":1,"usage":{"input_tokens":0,"output_tokens":0},"manifest":[[1,1,'
    b'"whole",]],"marks":[[2,"thought",]]},{"kind":"tool","at":,"ms":,"action":"run_sql","args":{"sql":"SELECT '
    b'"},"entry":,"marks":[[3,"step_started",0],[4,"step_finished",]]},{"at":,"action":"finish","marks":[[5,"text",'
)
# The same, then a typical run: a query, its result, an answer.
_LATER_DICTIONARY = _DICTIONARY + (
    b'{"outcome":{"answer":null,"citations":[{"number":"1","query":null}],"message_id":null,"queries":[{"query":"q1",'
    b'"sql":"SELECT * FROM ","columns":["name","count"],"shown":"20 of 20"}],'
    b'"usage":{"input_tokens":100,"output_tokens":10}},"marks":[[1,"started",0],[7,"finished",4]],'
    b'"steps":[{"at":1,"ms":4,"action":"run_sql","usage":{"input_tokens":100,"output_tokens":10},'
    b'"manifest":[[1,2,"condensed",8],[3,4,"whole",1]],"prompt":"0","entry":1,"marks":[[2,"text",1,5],[3,"thought",3]]},'
    b'{"kind":"tool","at":2,"ms":3,"action":"run_sql","args":{"sql":"SELECT * FROM "},"entry":2,'
    b'"marks":[[4,"step_started",0],[5,"step_finished",3]]},{"at":3,"ms":4,"action":"finish",'
    b'"usage":{"input_tokens":100,"output_tokens":10},"manifest":[[1,2,"condensed",8],[3,4,"whole",1]],"prompt":"0",'
    b'"entry":3,"marks":[[6,"text",1,2,""," "]]}]}'
)
_FORM = b"\x02"
"""The first byte, which names the dictionary of the rest."""
_DICTIONARIES = {b"\x01": _DICTIONARY, _FORM: _LATER_DICTIONARY}
_MICROSECOND = timedelta(microseconds=1)
_SMALL_BYTES = 16_384


@dataclass(frozen=True, slots=True)
class Packed:
    """A run's content. `outcome` is None where the last entry has the value; steps omit what their entries hold;
    `events` excludes marks."""

    outcome: Mapping[str, Any]
    marks: Sequence[Mark]
    steps: Sequence[tuple[Step, Sequence[Mark]]] = ()
    events: Sequence[Event] = field(default_factory=tuple)


def pack(run: Run, packed: Packed) -> bytes:
    since = run.started_at
    data = {
        "outcome": packed.outcome,
        "marks": [mark.to_json() for mark in packed.marks],
        "steps": [_step_json(step, marks, run, place) for place, (step, marks) in enumerate(packed.steps)],
        "events": [[event.seq, event.type, _after(event.at, since), event.data] for event in packed.events],
    }
    return _compress_line(dump({key: value for key, value in data.items() if value}).encode())


def unpack(run: Run, body: bytes) -> Packed:
    """Decode a run's stored value. Raises `RowDamaged`."""
    try:
        return _pack_run(run, json.loads(_expand_body(body)))
    except UNREADABLE as error:
        raise make_damage_error(f"what run {run.id} did on thread {run.thread_id}", error) from error


def _compress_line(line: bytes) -> bytes:
    # A small window compresses a small value as well, and is much faster to set up.
    bits = -12 if len(line) <= _SMALL_BYTES else -15
    squeezer = zlib.compressobj(6, zlib.DEFLATED, bits, 8, zdict=_DICTIONARIES[_FORM])
    return _FORM + squeezer.compress(line) + squeezer.flush()


def _expand_body(body: bytes) -> bytes:
    form, rest = body[: len(_FORM)], body[len(_FORM) :]
    expander = zlib.decompressobj(-15, zdict=_DICTIONARIES[form])
    return expander.decompress(rest) + expander.flush()


def _pack_run(run: Run, data: Mapping[str, Any]) -> Packed:
    since = run.started_at
    return Packed(
        outcome=data.get("outcome", {}),
        marks=[Mark.from_json(mark) for mark in data.get("marks", ())],
        steps=[_step(run, place, step) for place, step in enumerate(data.get("steps", ()))],
        events=[
            Event(run.thread_id, run.id, seq, kind, told, since + after * _MICROSECOND)
            for seq, kind, after, told in data.get("events", ())
        ],
    )


_NAMES = ("action", "args", "call_id", "thought", "observation", "usage", "manifest", "prompt")


def _step_json(step: Step, marks: Sequence[Mark], run: Run, place: int) -> dict[str, Any]:
    values = {
        "place": None if step.index == run.first_step + place else step.index - run.first_step,
        "kind": None if step.kind == "model" else step.kind,
        "status": None if step.status == "done" else step.status,
        "at": _after(step.started_at, run.started_at),
        "ms": step.elapsed_ms,
        **{name: getattr(step, name) for name in _NAMES},
        "entry": step.entry_seq,
        "marks": [mark.to_json() for mark in marks],
    }
    empty: Sequence[Any] = (None, "", [], (), {})
    return {name: value for name, value in values.items() if value not in empty}


def _step(run: Run, place: int, data: Mapping[str, Any]) -> tuple[Step, Sequence[Mark]]:
    step = Step(
        thread_id=run.thread_id,
        index=run.first_step + data.get("place", place),
        run_id=run.id,
        kind=data.get("kind", "model"),
        status=data.get("status", "done"),
        started_at=run.started_at + data.get("at", 0) * _MICROSECOND,
        elapsed_ms=data.get("ms"),
        entry_seq=data.get("entry"),
        **{"manifest": [], **{name: data[name] for name in _NAMES if name in data}},
    )
    return step, [Mark.from_json(mark) for mark in data.get("marks", ())]


def _after(moment: datetime, since: datetime) -> int:
    return (moment - since) // _MICROSECOND


_ENDLESS = 2**62
_EVENT_OF: dict[RunStatus, EventType] = {"finished": "finished", "paused": "paused", "failed": "failed"}


async def end_run(
    tx: Transaction,
    run: Run,
    outcome: Mapping[str, Any],
    marks: Sequence[Mark],
    *,
    said: Entry | None = None,
    event: int | None = None,
) -> list[Event]:
    """End a run with `run.status` and pack its outcome, steps and events. `said` is its final entry; `event` is its
    last event's number, or None. Return that event, if there is one."""
    moment = datetime.now(UTC)
    ends = [] if event is None else [Mark.at(event, _EVENT_OF[run.status], moment, since=run.started_at)]
    marks = [*marks, *ends]
    own = {"thread_id": run.thread_id, "run_id": run.id}
    rows = await tx.fetch("select_own_steps", **own, first=run.first_step)
    events = [event_of(row) for row in await tx.fetch("select_events", **own, after=0, limit=_ENDLESS)]
    steps = [(step_of(row), marks_of(row)) for row in rows]
    kept = Packed(_without(outcome, said), marks, [(_without_call(step), told) for step, told in steps], events)
    await tx.later(
        "end_run",
        thread_id=run.thread_id,
        id=run.id,
        status=run.status,
        body=pack(run, kept),
        entry_seq=said.seq if said else None,
        prompts=" ".join(dict.fromkeys(step.prompt for step, _ in steps if step.prompt)) or None,
        last_event=max([last_of(marks), *(last_of(told) for _, told in steps), *(each.seq for each in events)]),
        stop_step=rows[-1]["idx"] + 1 if rows else run.first_step,
        now=text_of(moment),
    )
    if rows:
        await tx.later("delete_own_steps", **own, first=run.first_step)
    if events:
        await tx.later("delete_own_events", **own)
    return list(events_of_run(replace(run, outcome=outcome), ends))


def _without(outcome: Mapping[str, Any], said: Entry | None) -> dict[str, Any]:
    """Return the outcome without what the final entry holds."""
    if said is None:
        return dict(outcome)
    told = {"message_id": said.id, **dict.fromkeys(SAID, said.text)}
    return {key: None if key in told and value == told[key] else value for key, value in outcome.items()}


def _without_call(step: Step) -> Step:
    """Return the step without its call's id, which the result's entry holds."""
    return replace(step, call_id=None) if step.kind == "tool" and step.entry_seq else step


@dataclass(frozen=True, slots=True)
class RunContent:
    """A run with its steps, its warnings, and the number of its last event."""

    run: Run
    steps: Sequence[Step]
    warnings: Sequence[Event]
    last_event: int


def run_from(row: Row) -> Run:
    """Return a run, with its outcome if it has ended."""
    run = run_of(row)
    return run if row["body"] is None else complete_run(run, unpack(run, bytes(row["body"])).outcome, row)


async def ended_runs(tx: Transaction, thread_id: str, run_ids: Iterable[str]) -> dict[str, RunContent]:
    """Return those of a thread's runs that have ended, by id. However many they are, it asks the database twice."""
    asked: list[QueryCall] = [("select_run", {"thread_id": thread_id, "id": each}) for each in run_ids]
    rows = [row for [row] in filter(None, await tx.fetch_all(*asked)) if row["body"] is not None]
    runs = [run_of(row) for row in rows]
    bodies = [unpack(run, bytes(row["body"])) for run, row in zip(runs, rows, strict=True)]
    said = await tx.fetch_all(*(_said_asked(packed) for packed in bodies))
    return {
        run.id: RunContent(
            run=complete_run(run, packed.outcome, row),
            steps=[step for step, _ in _complete_steps(packed, its)],
            warnings=[event for event in packed.events if event.type == "warning"],
            last_event=row["last_event"],
        )
        for run, row, packed, its in zip(runs, rows, bodies, said, strict=True)
    }


async def bare_steps(tx: Transaction, thread_id: str) -> list[tuple[Run, Sequence[Step] | None]]:
    """Return all of a thread's runs, newest first, with their steps as they are stored: without what entries hold. A
    run that has not ended has None."""
    found: list[tuple[Run, Sequence[Step] | None]] = []
    for row in await tx.fetch("select_runs", thread_id=thread_id, limit=_ENDLESS):
        run = run_of(row)
        has_ended = row["body"] is not None
        found.append((run, [step for step, _ in unpack(run, bytes(row["body"])).steps] if has_ended else None))
    return found


async def live_steps(
    tx: Transaction, thread_id: str, first: int, stop: int, *, told_from: int = 0
) -> list[tuple[Step, Sequence[Mark]]]:
    """Return the steps of a thread that have rows, completed from their entries."""
    rows = await tx.fetch("select_steps", thread_id=thread_id, first=first, stop=stop, told_from=told_from)
    return [(complete_step(step_of(row), row if row["id"] is not None else None), marks_of(row)) for row in rows]


async def completed_steps(tx: Transaction, packed: Packed) -> list[tuple[Step, Sequence[Mark]]]:
    """Return an ended run's steps, completed from their entries."""
    asked, values = _said_asked(packed)
    return _complete_steps(packed, await tx.fetch(asked, **values) if values["last"] else [])


def _said_asked(packed: Packed) -> QueryCall:
    """Ask for the entries of an ended run's steps."""
    seqs = [step.entry_seq for step, _ in packed.steps if step.entry_seq is not None]
    thread_id = packed.steps[0][0].thread_id if packed.steps else ""
    return "select_said", {"thread_id": thread_id, "first": min(seqs, default=0), "last": max(seqs, default=0)}


def _complete_steps(packed: Packed, rows: Sequence[Row]) -> list[tuple[Step, Sequence[Mark]]]:
    said = {row["seq"]: row for row in rows}
    return [(complete_step(step, said.get(step.entry_seq)), marks) for step, marks in packed.steps]
