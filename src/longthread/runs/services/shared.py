"""What the runs of one process share."""

from __future__ import annotations

from dataclasses import dataclass, field

from longthread.context.window_cache import WindowCache
from longthread.errors import RunInProgress, RunWaiting
from longthread.llm.model_facts import ContextWindows
from longthread.memory.pruner import Pruner
from longthread.memory.recall import Recaller
from longthread.memory.user_memories import Memories
from longthread.runs.streams.events import Teller
from longthread.runs.streams.hub import Hub
from longthread.runs.workers.worker import RunWorker
from longthread.settings import Settings
from longthread.store import runs
from longthread.store.driver import Driver, Transaction
from longthread.store.maintenance.jobs import JobClaims


@dataclass(frozen=True, slots=True)
class RunServices:
    """The store, and what works on it. `factors` correct the token estimates, by model."""

    store: Driver
    settings: Settings
    hub: Hub
    teller: Teller
    recaller: Recaller
    memories: Memories
    pruner: Pruner
    window_cache: WindowCache
    context_windows: ContextWindows
    worker: RunWorker
    jobs: JobClaims
    factors: dict[str, float] = field(default_factory=dict)


async def expect_idle(tx: Transaction, thread_id: str) -> None:
    """Raise RunInProgress if the thread's last run has not ended, RunWaiting if it waits for decisions: what it writes
    goes to the active branch. The caller has locked the thread."""
    last = await runs.last_run(tx, thread_id)
    if last is not None and last.status in {"running", "waiting"}:
        kind = RunWaiting if last.status == "waiting" else RunInProgress
        raise kind(thread=thread_id, run=last.id)
