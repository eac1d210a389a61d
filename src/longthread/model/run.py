"""Runs and steps: one execution of an agent on a thread, and what it did."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, Literal, Self

RunStatus = Literal["running", "waiting", "finished", "paused", "failed"]
"""`waiting`: it goes on when a person has decided about its calls (`longthread.model.approval`)."""
StepKind = Literal["model", "tool"]
StepStatus = Literal["running", "done", "failed"]
Protocol = Literal["auto", "native", "json"]


@dataclass(frozen=True, slots=True)
class AgentRun:
    """The agent that a run executes: its id, its version, and by kind the versions of what belonged to it then (its
    skills, their tools, its source), by their ids. Under `opened` are those of its skills whose text the model is told
    from the beginning, the first that was first."""

    id: str
    version: int
    parts: Mapping[str, Mapping[str, int]] = field(default_factory=dict)

    @property
    def opened(self) -> Sequence[str]:
        """The ids of the skills whose text is told from the beginning, for the question or one before it."""
        return tuple(self.parts.get("opened", ()))

    def opening(self, ids: Iterable[str]) -> Self:
        """The same, with the text of these skills told too, as far as they are its own."""
        skills = self.parts.get("skill", {})
        opened = {id_: skills[id_] for id_ in (*self.opened, *ids) if id_ in skills}
        return replace(self, parts={**self.parts, "opened": opened}) if opened else self

    def after(self, before: AgentRun | None) -> Self:
        """The same, where `before` is the thread's last run: what this has opened stays open, and in its place."""
        if before is None or before.id != self.id or not before.opened:
            return self
        own = {kind: ids for kind, ids in self.parts.items() if kind != "opened"}
        return replace(self, parts=own).opening([*before.opened, *self.opened])


@dataclass(frozen=True, slots=True)
class Answers:
    """The call that a run answers: of an agent that asks another, in a run of the thread that this one is below."""

    run_id: str
    call_id: str


@dataclass(frozen=True, slots=True)
class Run:
    """One execution of an agent, from a user's message to `finished`, `paused` or `failed`.

    `question` is the question being worked on: for a run that continues another, the other's question. `question_seq`
    is the entry that asks it, `entry_seq` the one that the run ended with, whose text is the answer or summary of
    `outcome`. Its steps are those from index `first_step` on, up to `stop_step` when it has ended. `agent` is None in a
    run from before agents had versions. `answers` is the call of another agent, where one has asked.
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

    `index` counts the thread's steps. For a model call, `manifest` says which entries it saw and how (see
    `longthread.model.manifest`), and `prompt` names the system prompt and tools that went with them. `entry_seq` is the
    entry that the step made, `entry_id` its id: the reply, whose text is the `thought`, or the result, which says the
    `observation`. `elapsed_ms` and the token counts in `usage` are None or empty until the step is done.
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
