"""Runs and steps."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, Literal, Self

from longthread.model.entry import Entry

RunStatus = Literal["running", "waiting", "finished", "paused", "failed"]
"""`waiting`: for a person's approval of its calls (`longthread.model.approval`)."""
ShownStatus = RunStatus | Literal["interrupted"]
"""`interrupted`: unfinished, and no process executes it."""
StepKind = Literal["model", "tool"]
StepStatus = Literal["running", "done", "failed"]
Protocol = Literal["auto", "native", "json", "sql"]


@dataclass(frozen=True, slots=True)
class AgentRun:
    """The agent of a run: its id and version, and in `parts` by kind the versions of its skills, tools and source, by
    id. `opened` there are the skills that the prompt holds in full, in the order in which they were opened."""

    id: str
    version: int
    parts: Mapping[str, Mapping[str, int]] = field(default_factory=dict)

    @property
    def opened(self) -> Sequence[str]:
        """The ids of the skills that the prompt holds in full."""
        return tuple(self.parts.get("opened", ()))

    def opening(self, ids: Iterable[str]) -> Self:
        """Opens further skills, if they are its own."""
        skills = self.parts.get("skill", {})
        opened = {id_: skills[id_] for id_ in (*self.opened, *ids) if id_ in skills}
        return replace(self, parts={**self.parts, "opened": opened}) if opened else self

    def after(self, before: AgentRun | None) -> Self:
        """Keeps the skills open that the thread's last run `before` had opened."""
        if before is None or before.id != self.id or not before.opened:
            return self
        own = {kind: ids for kind, ids in self.parts.items() if kind != "opened"}
        return replace(self, parts=own).opening([*before.opened, *self.opened])


@dataclass(frozen=True, slots=True)
class Answers:
    """The call of a delegating agent, in the parent thread, that a run answers."""

    run_id: str
    call_id: str


@dataclass(frozen=True, slots=True)
class Run:
    """One execution of an agent, from a user's message to `finished`, `paused` or `failed`.

    A run that continues another has the other's `question`. `question_seq` is the entry of the question, `entry_seq`
    the last one, with the answer or summary of `outcome`. The steps are those from `first_step` up to `stop_step`.
    `agent` is None in a run from before agents had versions; `answers` is the delegating call, if any.
    """

    thread_id: str
    id: str
    status: RunStatus
    question: str
    source: str | None
    model: str
    protocol: Protocol
    max_steps: int
    started_at: datetime
    ended_at: datetime | None = None
    continues: str | None = None
    first_step: int = 0
    stop_step: int | None = None
    question_seq: int | None = None
    entry_seq: int | None = None
    outcome: Mapping[str, Any] = field(default_factory=dict)
    agent: AgentRun | None = None
    answers: Answers | None = None


@dataclass(frozen=True, slots=True)
class Step:
    """One model call or one tool call of a run (document 000's `conversation_steps`).

    `index` counts the thread's steps. A model call has a `manifest` (`longthread.model.manifest`) and a `prompt` with
    the system prompt and tools. `entry_seq` and `entry_id` are of the step's entry: the reply with the `thought`, or
    the result with the `observation`. `elapsed_ms` and `usage` are empty until the step is done.
    """

    thread_id: str
    index: int
    run_id: str
    kind: StepKind
    status: StepStatus
    started_at: datetime
    thought: str = ""
    action: str = ""
    args: Mapping[str, Any] = field(default_factory=dict)
    observation: Mapping[str, Any] | None = None
    call_id: str | None = None
    usage: Mapping[str, int] = field(default_factory=dict)
    manifest: Sequence[Any] = ()
    prompt: str | None = None
    entry_seq: int | None = None
    entry_id: str | None = None
    elapsed_ms: int | None = None


def start_of(entries: Sequence[Entry], run: Run) -> int | None:
    """Return the index of the message that a run answers, among the last messages of its branch; None if it is not
    among them. That is the run's own question or, if it answers one again, the message before its first."""
    for place, entry in enumerate(entries):
        if entry.metadata.get("run") == run.id:
            return place
    first = next((place for place, entry in enumerate(entries) if entry.run_id == run.id), None)
    if first is None:
        return len(entries) - 1 if entries and entries[-1].role == "user" else None
    return first - 1 if first else None
