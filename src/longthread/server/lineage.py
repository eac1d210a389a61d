"""A conversation among others: its agent, its parent, and the conversations below it."""

from __future__ import annotations

from contextlib import suppress

from longthread.errors import ThreadNotFound
from longthread.model.memory import ANALYST
from longthread.model.run import Run
from longthread.model.thread import Thread
from longthread.runs.workers.liveness import may_be_alive
from longthread.server.answers import AgentName, AgentVersion, DelegatedRun, Lineage
from longthread.store import approvals, catalog, log, runs
from longthread.store.driver import Transaction


async def lineage(tx: Transaction, thread: Thread) -> Lineage:
    """The thread's agent, its parent thread, and the threads below it where calls wait for approval."""
    parent = None
    if thread.parent_id:
        with suppress(ThreadNotFound):  # a copied thread may lack its parent
            parent = await log.find_thread(tx, thread.parent_id, user_id=thread.user_id)
    waiting = (await approvals.below(tx, user_id=thread.user_id)).get(thread.id, [])
    below = [await log.find_thread(tx, each, user_id=thread.user_id) for each in waiting]
    return {
        "agent": await _agent(tx, thread),
        "parent": {"id": parent.id, "label": parent.title or ""} if parent else None,
        "waiting_below": [
            {"id": each.id, "label": each.title or "", "agent": (await _agent(tx, each))["name"]} for each in below
        ],
    }


async def delegated(tx: Transaction, run: Run) -> DelegatedRun:
    """A run that another agent's run asked for, with its call and its thread."""
    agent = await ran(tx, run)
    return {
        "thread_id": run.thread_id,
        "run_id": run.id,
        "call_id": run.answers.call_id if run.answers else None,
        "agent": agent["name"] if agent else None,
        "status": await runs.current_status(tx, run, alive=may_be_alive),
    }


async def ran(tx: Transaction, run: Run) -> AgentVersion | None:
    """The agent of a run, by its name at that time; None in a run older than agent versions."""
    if run.agent is None:
        return None
    name = await catalog.name_then(tx, "agent", run.agent.id, run.agent.version)
    return {"id": run.agent.id, "name": name, "version": run.agent.version}


async def _agent(tx: Transaction, thread: Thread) -> AgentName:
    """The agent of a conversation, by its present name; a deleted one by its name in the last run."""
    id_ = thread.agent_id or ANALYST
    for stored in await catalog.some(tx, "agent", ids=[id_]):
        return {"id": id_, "name": stored.definition.name}
    last = await runs.last_run(tx, thread.id)
    then = await ran(tx, last) if last else None
    return {"id": id_, "name": then["name"] if then else id_}
