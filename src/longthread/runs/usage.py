"""What the runs of a conversation have used, on all of its branches."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from longthread.model.run import Step
from longthread.settings import Price
from longthread.store import log, runs
from longthread.store.driver import Transaction
from longthread.store.run_end import bare_steps


@dataclass(slots=True)
class ModelUsage:
    """Calls of one model, and the tokens that its provider counted. Of `uncounted` calls it said nothing;
    `cached_tokens` are those of the input that it had in its cache."""

    calls: int = 0
    uncounted: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cached_tokens: int = 0

    def add(self, step: Step) -> None:
        """Add a call that has ended."""
        self.calls += 1
        self.uncounted += "input_tokens" not in step.usage
        self.input_tokens += step.usage.get("input_tokens", 0)
        self.output_tokens += step.usage.get("output_tokens", 0)
        self.cached_tokens += step.usage.get("cached_tokens", 0)

    def cost(self, price: Price) -> float:
        """Return what the counted tokens cost."""
        cached = price.input if price.cached is None else price.cached
        paid = (self.input_tokens - self.cached_tokens) * price.input + self.cached_tokens * cached
        return (paid + self.output_tokens * price.output) / 1_000_000


@dataclass(slots=True)
class ThreadUsage:
    """What a thread and those below it have used: questions between agents belong to the conversation."""

    runs: int = 0
    tool_calls: int = 0
    models: dict[str, ModelUsage] = field(default_factory=dict)
    fallbacks: dict[str, ModelUsage] = field(default_factory=dict)
    """What other models answered in place of those, by the run's model."""

    def add(self, model: str, steps: Iterable[Step]) -> None:
        """Add a run of a model by its steps."""
        self.runs += 1
        for step in steps:
            if step.kind == "tool":
                self.tool_calls += 1
            elif step.status != "running":
                kind = self.fallbacks if step.usage.get("fallback") else self.models
                kind.setdefault(model, ModelUsage()).add(step)


async def usage_of(tx: Transaction, thread_id: str, *, user_id: str) -> ThreadUsage:
    """Return what a user's thread has used, with those below it. It reads all runs, without the results of their
    steps. Raises ThreadNotFound."""
    await log.find_thread(tx, thread_id, user_id=user_id)
    found = ThreadUsage()
    for each in (thread_id, *await log.threads_below(tx, thread_id, user_id=user_id)):
        for run, steps in await bare_steps(tx, each):
            found.add(run.model, await runs.steps_of(tx, run) if steps is None else steps)
    return found
