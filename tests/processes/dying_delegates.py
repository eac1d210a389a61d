"""An agent that asks two others at once, and one of them once more: whoever dies, each call has one run."""

from __future__ import annotations

from typing import Any

from langchain_core.messages import BaseMessage, HumanMessage, ToolMessage
from tests.orphans import orphans
from tests.processes import dying_analyst
from tests.processes.forks import Ended, Tell
from tests.script import call, finish

from longthread import Catalog
from longthread.errors import NothingToResume, ThreadNotFound
from longthread.model.fold import observation_of
from longthread.runs.analyst import Analyst
from longthread.runs.shared import RunHandle
from longthread.settings import Settings
from longthread.store import listing, log, runs
from longthread.store.driver import Driver
from longthread.store.open import open_store
from longthread.testing import ScriptedChatModel

acknowledged = dying_analyst.acknowledged
_ANSWER = "ONE, TWO, THREE"
_AGENTS = [
    {"kind": "agent", "name": "boss", "system_prompt": "You are boss.", "sub_agents": ["helper"]},
    {"kind": "agent", "name": "helper", "system_prompt": "You are helper.", "skills": ["memory"]},
]


def model(tell: Tell) -> ScriptedChatModel:
    """What it says next follows from the results that there are: the same in every process."""

    def reply(messages: list[BaseMessage]) -> Any:
        for problem in orphans(messages):
            tell({"problem": problem})
        last = max(n for n, message in enumerate(messages) if isinstance(message, HumanMessage))
        told = [observation_of(str(each.text)) for each in messages[last:] if isinstance(each, ToolMessage)]
        if str(messages[0].text).startswith("You are helper."):
            return finish(str(messages[last].text).upper()) if told else call("recall_memory", query="one")
        for each in told:
            if each is None or not each["ok"]:
                tell({"problem": f"an agent did not answer: {each}"})
                return finish("No.")
        match told:
            case []:
                return [call("ask_helper", task="one"), call("ask_helper", task="two")]
            case [{"data": first}, _]:
                return call("ask_helper", task="three", thread_id=first["thread_id"])
        return finish(", ".join(each["data"]["answer"] for each in told if each))

    return ScriptedChatModel(reply)


async def begin(store: Driver, thread_id: str, plan: Any, tell: Tell) -> None:
    """Ask, and see the answer."""
    async with open_store(plan.store) as unharmed:
        await Catalog(unharmed).apply(_AGENTS)
    handle = await _analyst(store, plan, tell).ask(
        dying_analyst.QUESTION, thread_id=thread_id, agent="boss", user_id="default"
    )
    tell({"acknowledged": dying_analyst.QUESTION})
    await _seen(handle, tell)


async def _seen(handle: RunHandle, tell: Tell) -> None:
    async for event in handle.events():
        tell({"event": [event.run_id, event.seq, event.type, event.data]})


async def resume(store: Driver, thread_id: str, plan: Any, tell: Tell) -> None:
    """Go on; ask again where nothing was acknowledged; nothing where it had ended."""
    try:
        await _seen(await _analyst(store, plan, tell).runs.resume(thread_id, user_id="default"), tell)
    except ThreadNotFound:
        await begin(store, thread_id, plan, tell)
    except NothingToResume:
        return


async def check(store: Driver, thread_id: str, plan: Any, tell: Tell) -> None:
    """Three calls, each with one run that has ended, in two threads below; no entry twice."""
    async with store.reading() as tx:
        run = await runs.last_run(tx, thread_id)
        if run is None or run.outcome.get("answer") != _ANSWER:
            tell({"problem": f"the run is {run}"})
            return
        answers = await runs.answers(tx, thread_id, run.id)
        children = await listing.children(tx, thread_id, user_id="default")
        said = []
        for child in children:
            tip, count = await log.position(tx, child.id)
            entries = await log.branch(tx, child.id, tip, limit=count + 1)
            said.append([entry.text for entry in entries if entry.role in {"user", "assistant"} and entry.text])
            if tip != count or len(await runs.list_runs(tx, child.id, limit=9)) != sum(
                e.role == "user" for e in entries
            ):
                tell({"problem": f"a thread below has {count} entries, and its tip is {tip}"})
    calls = [each.answers.call_id for each in answers if each.answers]
    if len(calls) != 3 or len(set(calls)) != 3 or {each.status for each in answers} != {"finished"}:
        tell({"problem": f"the runs below are {[(each.thread_id, each.status, each.answers) for each in answers]}"})
    used = "I use recall_memory."
    wanted = [["one", used, "ONE", "three", used, "THREE"], ["two", used, "TWO"]]
    if sorted(said) != wanted:
        tell({"problem": f"said below: {said}"})


def repeated(processes: list[Ended]) -> list[str]:
    """Questions that were put into the log twice."""
    asked = [
        values["text"]
        for process in processes
        for written in process.told("written")
        for query, values in written
        if query == "insert_entry" and values["role"] == "user"
    ]
    return [f"asked twice: {asked}"] if len(asked) != len(set(asked)) else []


def _analyst(store: Driver, plan: Any, tell: Tell) -> Analyst:
    settings = Settings.load(env_file=None, data_dir=plan.data, model="test:scripted", memory_enable_summary=False)
    return Analyst(store, settings, models=lambda name, _: model(tell))
