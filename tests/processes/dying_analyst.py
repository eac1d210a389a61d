"""An analyst that asks one question, with calls that may be repeated and one that may not."""

from __future__ import annotations

import collections
import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from langchain_core.messages import BaseMessage, HumanMessage, ToolMessage
from tests.orphans import orphans
from tests.processes.forks import Ended, Tell
from tests.script import COUNT, call, finish

from longthread.errors import NothingToResume, ThreadNotFound
from longthread.runs import run_setup
from longthread.runs.agents import Assignment
from longthread.runs.analyst import Analyst
from longthread.runs.shared import RunHandle
from longthread.runs.start import StartedRun
from longthread.settings import Settings
from longthread.store import log, run_events, runs
from longthread.store.driver import Driver
from longthread.testing import ScriptedChatModel
from longthread.tools.analysis.source import Source
from longthread.tools.analysis.toolbox import analysis_tools
from longthread.tools.catalog.role import AgentTools
from longthread.tools.tool import Observation, Tool, make_success

QUESTION = "How many customers and countries?"
ANSWER = "3 customers [q1], 2 countries [q2]."
_SEND = "send_mail"
_PLAN: list[Any] = [
    call("list_tables"),
    [COUNT, call("run_sql", sql="SELECT COUNT(DISTINCT country) AS n FROM customers")],
    call(_SEND, to="ada"),
    finish(ANSWER),
]
_ROLES = ["user", "assistant", "tool", "assistant", "tool", "tool", "assistant", "tool", "assistant"]


def model(tell: Tell) -> ScriptedChatModel:
    """What it says next follows from the results that there are: the same in every process."""

    def reply(messages: list[BaseMessage]) -> Any:
        for problem in orphans(messages):
            tell({"problem": problem})
        last = max(n for n, message in enumerate(messages) if isinstance(message, HumanMessage))
        results = sum(isinstance(message, ToolMessage) for message in messages[last:])
        return _PLAN[{0: 0, 1: 1, 3: 2, 4: 3}[results]]

    return ScriptedChatModel(reply)


async def begin(store: Driver, thread_id: str, plan: Any, tell: Tell) -> None:
    """Ask, and see the answer."""
    analyst = analyst_on(store, plan, tell)
    handle = await analyst.ask(QUESTION, thread_id=thread_id, source=plan.source, user_id=analyst.settings.user)
    tell({"acknowledged": QUESTION})
    await _seen(handle, tell)


async def _seen(handle: RunHandle, tell: Tell) -> None:
    """Watch a run to its end, and tell what was seen."""
    async for event in handle.events():
        tell({"event": [event.run_id, event.seq, event.type, event.data]})


async def resume(store: Driver, thread_id: str, plan: Any, tell: Tell) -> None:
    """Go on; ask again where nothing was acknowledged; nothing where it had ended."""
    analyst = analyst_on(store, plan, tell)
    try:
        await _seen(await analyst.runs.resume(thread_id, user_id=analyst.settings.user), tell)
    except ThreadNotFound:
        await begin(store, thread_id, plan, tell)
    except NothingToResume:
        return


async def check(store: Driver, thread_id: str, plan: Any, tell: Tell) -> None:
    """The whole conversation, once."""
    async with store.reading() as tx:
        tip, count = await log.position(tx, thread_id)
        entries = await log.branch(tx, thread_id, tip)
        steps = await runs.steps_from(tx, thread_id, 0)
        run = await runs.last_run(tx, thread_id)
    if run is None or run.status != "finished" or run.outcome.get("answer") != ANSWER:
        tell({"problem": f"the run is {run}"})
    if not tip == count == len(entries) or [entry.role for entry in entries] != _ROLES:
        tell({"problem": f"the branch is {[entry.role for entry in entries]}, tip {tip}, count {count}"})
    if any("unknown_tool" in entry.text for entry in entries):
        tell({"problem": "a tool was not there"})
    calls = sorted(call.id for entry in entries for call in entry.tool_calls)
    if calls != sorted(entry.tool_call_id or "" for entry in entries if entry.role == "tool"):
        tell({"problem": "calls and results do not match"})
    finished = collections.Counter(step.call_id for step in steps if step.call_id and step.status == "done")
    if sorted(finished.elements()) != calls:
        tell({"problem": f"steps of calls: {finished}"})


async def acknowledged(store: Driver, thread_id: str, dead: list[Ended], tell: Tell) -> None:
    """A question that was acknowledged is there, and so is every event that somebody has seen, as it was seen."""
    async with store.reading() as tx:
        if any(process.told("acknowledged") for process in dead):
            [first] = await log.entries_between(tx, thread_id, 1, 1) or [None]
            if first is None or first.text != QUESTION:
                tell({"problem": "the question is lost"})
        for run_id, seq, type_, data in (event for process in dead for event in process.told("event")):
            [found] = await run_events.events_after(tx, thread_id, run_id, seq - 1, limit=1) or [None]
            if found is None or [found.seq, found.type, json.loads(json.dumps(found.data))] != [seq, type_, data]:
                tell({"problem": f"event {seq} was {type_} {data}, and is {found}"})


def repeated(processes: list[Ended]) -> list[str]:
    """Calls that ran again though they were finished, or though they must not."""
    problems = []
    begun: dict[int, str] = {}
    finished: set[str] = set()
    for process in processes:
        problems += [f"a finished call ran again: {ran}" for ran in process.told("ran") if ran in finished]
        for query, values in (write for written in process.told("written") for write in written):
            if query == "insert_step" and values["kind"] == "tool":
                begun[values["idx"]] = _name(values["action"], json.loads(values["args"]))
            if query in {"insert_step", "finish_step"} and values["status"] == "done" and values["idx"] in begun:
                finished.add(begun[values["idx"]])
    sent = [ran for process in processes for ran in process.told("ran") if ran.startswith(_SEND)]
    return [*problems, *(["a call that is not safe to repeat ran twice"] if len(sent) > 1 else [])]


def analyst_on(store: Driver, plan: Any, tell: Tell) -> Analyst:
    """An analyst whose tools tell when they run, and whose model tells what is wrong with a request."""

    def tools(source: Source, question: str = "") -> list[Tool]:
        return [_told(tool, tell) for tool in analysis_tools(source, question)]

    def execute(started: StartedRun, assignment: Assignment) -> RunHandle:
        return own(started, replace(assignment, agent_tools=AgentTools([_told(_send_mail(), tell)])))

    run_setup.analysis_tools = tools
    settings = Settings.load(env_file=None, data_dir=plan.data, model="test:scripted")
    analyst = Analyst(store, settings, models=lambda name, _: model(tell))
    own = analyst.runs._execute
    analyst.runs._execute = execute  # type: ignore[method-assign]
    return analyst


def _send_mail() -> Tool:
    async def send(args: Mapping[str, Any]) -> Observation:
        return make_success({"sent": True})

    parameters = {"type": "object", "properties": {"to": {"type": "string"}}}
    return Tool(_SEND, "Sends a mail.", parameters, send)


def _told(tool: Tool, tell: Tell) -> Tool:
    async def run(args: Mapping[str, Any]) -> Observation:
        tell({"ran": _name(tool.name, args)})
        return await tool.call(args)

    return replace(tool, call=run)


def _name(action: str, args: Mapping[str, Any]) -> str:
    return f"{action} {json.dumps(dict(args), sort_keys=True)}"
