"""An analyst whose calls wait for a person, and a person who decides about one after the other."""

from __future__ import annotations

import json
from typing import Any

from langchain_core.messages import BaseMessage, HumanMessage, ToolMessage
from tests.orphans import orphans
from tests.processes.forks import Ended, Tell
from tests.runs.approvals import define, type_that_tells
from tests.script import call, finish

from longthread.errors import NothingToResume, ThreadNotFound
from longthread.runs.analyst import Analyst
from longthread.runs.shared import RunHandle
from longthread.settings import Settings
from longthread.store import log, run_events, runs, wait_list
from longthread.store.driver import Driver
from longthread.testing import ScriptedChatModel
from longthread.tools.types import query

ANSWER = "Ada has mail, Eve has none."
_CALLS = [call("send_mail", to="ada"), call("look_up", to="bob"), call("send_mail", to="eve")]


async def begin(store: Driver, thread_id: str, plan: Any, tell: Tell) -> None:
    """Ask, decide, and see the answer."""
    analyst = await _analyst(store, plan, tell)
    handle = await analyst.ask("Write to both.", thread_id=thread_id, agent="clerk", user_id=analyst.settings.user)
    tell({"acknowledged": thread_id})
    await _seen(handle, tell)
    await _decide(analyst, thread_id, tell)


async def resume(store: Driver, thread_id: str, plan: Any, tell: Tell) -> None:
    """Decide what was not decided, and go on; ask again where nothing was acknowledged."""
    analyst = await _analyst(store, plan, tell)
    try:
        if not await analyst.approvals.pending(thread_id, user_id=analyst.settings.user):
            await _seen(await analyst.runs.resume(thread_id, user_id=analyst.settings.user), tell)
        await _decide(analyst, thread_id, tell)
    except ThreadNotFound:
        await begin(store, thread_id, plan, tell)
    except NothingToResume:
        return


async def _decide(analyst: Analyst, thread_id: str, tell: Tell) -> None:
    """Ada is written to, and Eve is not."""
    for asked in await analyst.approvals.pending(thread_id, user_id=analyst.settings.user):
        choice = "approve" if asked.args["to"] == "ada" else "reject"
        handle = await analyst.approvals.decide(
            thread_id, {asked.call_id: {"type": choice}}, user_id=analyst.settings.user
        )
        tell({"decided": [asked.run_id, asked.call_id, choice]})
        if handle is not None:
            await _seen(handle, tell)


async def _seen(handle: RunHandle, tell: Tell) -> None:
    async for event in handle.events():
        tell({"event": [event.run_id, event.seq, event.type, event.data]})


async def check(store: Driver, thread_id: str, plan: Any, tell: Tell) -> None:
    """The whole conversation, once: each call has its result, and what was decided stands there."""
    async with store.reading() as tx:
        tip, count = await log.position(tx, thread_id)
        entries = await log.branch(tx, thread_id, tip)
        run = await runs.last_run(tx, thread_id)
        assert run is not None
        decided = {call.args["to"]: call.decision for call in await wait_list.of_run(tx, thread_id, run.id)}
    if run.status != "finished" or run.outcome.get("answer") != ANSWER:
        tell({"problem": f"the run is {run}"})
    roles = [entry.role for entry in entries]
    if tip != count or roles != ["user", "assistant", "tool", "tool", "tool", "assistant"]:
        tell({"problem": f"the branch is {roles}, tip {tip}, count {count}"})
    if decided != {"ada": "approve", "eve": "reject"}:
        tell({"problem": f"decided is {decided}"})
    ada, _, eve = [json.loads(entry.text) for entry in entries if entry.role == "tool"]
    if not ada["ok"] and ada["error"]["type"] != "interrupted":
        tell({"problem": f"an approved call came to {ada}"})
    if eve["ok"] or eve["error"]["type"] != "rejected":
        tell({"problem": f"a rejected call came to {eve}"})


async def acknowledged(store: Driver, thread_id: str, dead: list[Ended], tell: Tell) -> None:
    """A decision that was acknowledged stands, and so does every event that somebody has seen."""
    async with store.reading() as tx:
        for run_id, call_id, choice in (each for process in dead for each in process.told("decided")):
            kept = {call.call_id: call.decision for call in await wait_list.of_run(tx, thread_id, run_id)}
            if kept.get(call_id) != choice:
                tell({"problem": f"it was decided to {choice} {call_id}, and kept is {kept}"})
        for run_id, seq, type_, data in (event for process in dead for event in process.told("event")):
            [found] = await run_events.events_after(tx, thread_id, run_id, seq - 1, limit=1) or [None]
            if found is None or [found.seq, found.type, json.loads(json.dumps(found.data))] != [seq, type_, data]:
                tell({"problem": f"event {seq} was {type_} {data}, and is {found}"})


def repeated(processes: list[Ended]) -> list[str]:
    """Calls that ran twice, or that nobody has approved."""
    sent = [ran for process in processes for ran in process.told("ran") if ran[0] == "send_mail"]
    problems = [] if len(sent) < 2 else [f"an approved call ran again: {sent}"]
    return [*problems, *(f"a call ran that was rejected: {ran}" for ran in sent if ran[1]["to"] != "ada")]


async def _analyst(store: Driver, plan: Any, tell: Tell) -> Analyst:
    # On the store itself: the catalog is there before anything is killed.
    await define(getattr(store, "driver", store))
    query.TYPE = type_that_tells(lambda name, args: tell({"ran": [name, args]}))
    settings = Settings.load(env_file=None, data_dir=plan.data, model="test:scripted")
    return Analyst(store, settings, models=lambda name, _: _model(tell))


def _model(tell: Tell) -> ScriptedChatModel:
    def reply(messages: list[BaseMessage]) -> Any:
        for problem in orphans(messages):
            tell({"problem": problem})
        last = max(n for n, message in enumerate(messages) if isinstance(message, HumanMessage))
        results = sum(isinstance(message, ToolMessage) for message in messages[last:])
        return {0: _CALLS, 3: finish(ANSWER)}[results]

    return ScriptedChatModel(reply)
