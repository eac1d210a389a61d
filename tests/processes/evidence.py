"""What a store must hold after a process was killed, by what that process told before."""

from __future__ import annotations

import json
from typing import Any

from tests.processes.forks import Ended, Tell

from longthread.errors import ThreadNotFound
from longthread.langgraph.message_codec import message_of
from longthread.model.run import FINAL
from longthread.store import log, run_events, runs
from longthread.store.driver import Driver, Transaction

_ENTRY = ("id", "role", "text", "tool_call_id", "name", "run_id", "seq", "parent_seq")

_OF_WORKERS = {"insert_worker", "delete_silent_worker", "delete_worker"}


async def after_the_crash(
    store: Driver, thread_id: str, dead: list[Ended], tell: Tell, *, resumed: bool = False
) -> None:
    """Nothing that was acknowledged is lost, of what was not there is all or nothing, and the thread is whole.

    Once a run was `resumed`, a part of what was not acknowledged may be there by right: a tool's result that was stored
    by itself is taken into the thread, beside that of a call which ran again.
    """
    async with store.reading() as tx:
        for process in dead:
            written, intended = process.told("written"), process.told("intended")
            for number, writes in enumerate(written):
                for query, values in writes:
                    if await _holds(tx, query, values) is False:
                        tell({"problem": f"lost: {query} of acknowledged transaction {number}: {values}"})
            for writes in intended[len(written) :] if not resumed else []:
                held = [await _holds(tx, query, values) for query, values in writes]
                if True in held and False in held:
                    tell({"problem": f"half written: {[query for query, _ in writes]} {held}"})
        try:
            await whole(tx, thread_id, tell)
        except ThreadNotFound:
            wrote = {query for process in dead for writes in process.told("written") for query, _ in writes}
            if wrote - _OF_WORKERS:
                tell({"problem": "the thread is lost"})


async def _holds(tx: Transaction, query: str, values: dict[str, Any]) -> bool | None:
    """Whether a row that was written is there; None where later writes may have replaced it."""
    if query == "insert_entry":
        found = (await log.find_entries(tx, values["thread_id"], [values["id"]])).get(values["id"])
        payload = found.payload.hex() if found and found.payload is not None else None
        return (
            found is not None
            and [getattr(found, name) for name in _ENTRY] == [values[name] for name in _ENTRY]
            and payload == values["payload"]
        )
    if query == "insert_event":
        events = await run_events.events_after(tx, values["thread_id"], values["run_id"], values["seq"] - 1, limit=1)
        return [(e.seq, e.type, dict(e.data)) for e in events] == [
            (values["seq"], values["type"], json.loads(values["data"]))
        ]
    if query == "finish_step":
        [step] = await runs.steps_between(tx, values["thread_id"], values["idx"], values["idx"] + 1) or [None]
        return step is not None and step.status == values["status"]
    return None


async def whole(tx: Transaction, thread_id: str, tell: Tell, *, gaps: bool = False) -> None:
    """Every entry is there, each behind one that is; their messages can be read; each run ends at most once."""
    tip, count = await log.position(tx, thread_id)
    entries = await log.entries_between(tx, thread_id, 0, count + 99)
    if [entry.seq for entry in entries] != list(range(1, count + 1)):
        tell({"problem": f"{count} entries are counted, there are {[entry.seq for entry in entries]}"})
    if any(not 0 <= entry.parent_seq < entry.seq for entry in entries):
        tell({"problem": "an entry stands behind none"})
    for entry in await log.branch(tx, thread_id, tip, limit=count + 1):
        message_of(entry)
    run = await runs.last_run(tx, thread_id)
    if run is not None:
        events = await run_events.events_after(tx, thread_id, run.id, 0)
        seqs = [event.seq for event in events]
        # A number that was given out in a transaction that failed is not told: only a process that lives has gaps.
        if seqs != (sorted(set(seqs)) if gaps else list(range(1, len(seqs) + 1))):
            tell({"problem": f"events {seqs}"})
        final = [event.type in FINAL for event in events]
        if sum(final) != (run.status not in {"running", "waiting"}) or any(final[:-1]):
            tell({"problem": f"run {run.status}, events {[event.type for event in events]}"})
