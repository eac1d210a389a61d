"""A thread as a page shows it: its messages, the runs with their steps, and the conversations around it.

Observations are cut to what a page shows at first.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, cast

from longthread.access.projects import names_of, project_of
from longthread.context.forks import ended_with, last_run_of
from longthread.errors import ThreadNotFound
from longthread.model.entry import SHOWN_KINDS, Entry, ToolCall
from longthread.model.fold import PARSE_ERROR, observation_of
from longthread.model.memory import ANALYST
from longthread.model.run import Approval, Run, Step
from longthread.model.thread import Thread, active_ranges, is_active
from longthread.runs.worker import may_be_alive
from longthread.server.answers import AgentName, AgentVersion, DecidedCall, DelegatedRun, PendingCall, RunView, StepView
from longthread.server.conversation_answers import Attributes, History, Lineage, MessageView, QueuedView, Siblings
from longthread.server.fields import decode_cursor, encode_cursor, segment
from longthread.server.problems import error_for_http
from longthread.store import attributes, branches, catalog, log, run_events, runs, wait_list
from longthread.store.branches import Sibling, branch_points
from longthread.store.driver import Transaction
from longthread.store.run_rows import RunContent, ended_runs
from longthread.store.wait_list import QueuedQuestion


async def lineage(tx: Transaction, thread: Thread) -> Lineage:
    """The thread's agent, its parent thread, and the threads below it where calls wait for approval."""
    parent = None
    if thread.parent_id:
        with suppress(ThreadNotFound):  # a copied thread may lack its parent
            parent = await log.find_thread(tx, thread.parent_id, user_id=thread.user_id)
    waiting = (await wait_list.below(tx, user_id=thread.user_id)).get(thread.id, [])
    below = [await log.find_thread(tx, each, user_id=thread.user_id) for each in waiting]
    return {
        "agent": await _agent(tx, thread),
        "parent": {"id": parent.id, "label": parent.title or ""} if parent else None,
        "waiting_below": [
            {"id": each.id, "label": each.title or "", "agent": (await _agent(tx, each))["name"]} for each in below
        ],
    }


async def describe_delegated(tx: Transaction, run: Run) -> DelegatedRun:
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


@dataclass(frozen=True, slots=True)
class Forks:
    """The siblings of messages on the branch of a thread. See `forks_of`."""

    thread: Thread
    firsts: Mapping[int, Entry]
    following: Mapping[int, Sequence[Sibling]]
    ranges: Sequence[tuple[int, int]]
    last: Run | None

    def siblings(self, message: Entry) -> Siblings:
        """Return the message, and the messages that stand in its place on other branches."""
        first = self.firsts[message.seq]
        asks = first.role == "user"
        found = [each for each in self.following.get(first.parent_seq, ()) if (each.role == "user") == asks]
        is_cut_off = first.parent_seq == 0 and self.thread.first_seq > 1  # others of the root are no siblings then
        if is_cut_off or all(each.seq != first.seq for each in found):
            return {"ids": [first.id], "shown": 0}
        return self._of(found)

    def answers(self, message: Entry) -> Siblings | None:
        """The answers of a question; None for another message."""
        return self._of(self._answers(message)) if message.role == "user" else None

    def run_of(self, message: Entry) -> str | None:
        """The run that a message is of. A question's is the one whose answer the history shows."""
        if message.role != "user" or message.run_id is None:
            return message.run_id
        shown = next((each.run_id for each in self._answers(message) if self._is_shown(each)), None)
        if shown is None and message.seq == self.thread.tip and self.last is not None:
            return self.last.id
        return shown or message.run_id

    def _answers(self, message: Entry) -> list[Sibling]:
        return [each for each in self.following.get(message.seq, ()) if each.role != "user"]

    def _is_shown(self, sibling: Sibling) -> bool:
        return is_active(sibling.seq, self.ranges)

    def _of(self, found: Sequence[Sibling]) -> Siblings:
        shown = next((place for place, each in enumerate(found) if self._is_shown(each)), None)
        return {"ids": [each.id for each in found], "shown": shown}


async def forks_of(
    tx: Transaction, thread: Thread, messages: Sequence[Entry], firsts: Mapping[int, Entry], last: Run | None
) -> Forks:
    """Read the siblings of messages. `firsts` has, by the seq of each, the first entry after the message before it;
    `last` is the branch's last run."""
    places = {entry.seq for entry in messages} | {firsts[entry.seq].parent_seq for entry in messages}
    following = await branches.following(tx, thread.id, places)
    ranges = active_ranges(thread.tip, await branch_points(tx, thread.id))
    return Forks(thread, firsts, following, ranges, last)


ROWS = 100
"""Rows of a result; a row is never cut."""
ITEMS = 2_000
"""Items of any other list."""
TEXT = 4_000
"""Characters of one string."""
SIZE = 256_000
"""Characters of JSON above which fewer rows are shown."""


def cut(observation: Mapping[str, Any] | None) -> tuple[dict[str, Any] | None, bool]:
    """The observation with its first rows, and whether anything was cut."""
    if observation is None:
        return None, False
    rows = ROWS
    while True:
        short: dict[str, Any] = _cut(observation, rows)
        if rows == 1 or len(json.dumps(short, ensure_ascii=False, default=str)) <= SIZE:
            return short, short != observation
        rows = max(1, rows // 4)


def _cut(value: Any, rows: int, most: int = ITEMS) -> Any:
    if isinstance(value, Mapping):
        return {key: _cut(each, rows, rows if key == "rows" else ITEMS) for key, each in value.items()}
    if isinstance(value, list):
        return [_cut(item, rows) for item in value[:most]]
    return f"{value[:TEXT]}…" if isinstance(value, str) and len(value) > TEXT else value


_CHUNK = 100
"""Entries that are read at a time."""


@dataclass(frozen=True, slots=True)
class _Page:
    """Messages of a branch, oldest first, with the calls and results outside runs among them (`between`).

    `firsts` has, by the seq of each message, the entry with which it begins. A reply begins with the first entry after
    the message before it. A question begins with itself: what a run left after the message before it does not belong to
    it. `before` is the seq of the entry before them all, or 0.
    """

    messages: Sequence[Entry]
    between: Sequence[Entry]
    firsts: Mapping[int, Entry]
    before: int


async def history(
    tx: Transaction, thread_id: str, *, user_id: str, limit: int, before: str | None = None, at: str | None = None
) -> History:
    """The last `limit` messages of a thread's active branch, or those before a cursor, with their runs and steps. With
    the id of an entry (`at`) it is the branch with that entry, which does not become the active one.

    It reads what it returns and the entries between, however long the thread is. Raises ThreadNotFound, EntryNotFound,
    or InvalidInput for a bad cursor.
    """
    thread = await log.find_thread(tx, thread_id, user_id=user_id)
    if at is None:
        return await history_of(tx, thread, await last_run_of(tx, thread), limit=limit, before=before)
    entry = await log.find_entry(tx, thread_id, at)
    shown = replace(thread, tip=await branches.end_of(tx, thread, entry.seq))
    # What runs now is on the active branch.
    last = await (last_run_of(tx, thread) if shown.tip == thread.tip else ended_with(tx, shown))
    found = await history_of(tx, shown, last, limit=limit, before=before)
    upto = (await _messages(tx, shown, entry.seq, 1)).messages
    found["at"] = {"message": upto[-1].id if upto else None, "chosen": shown.tip == thread.tip}
    return found


async def history_of(tx: Transaction, thread: Thread, last: Run | None, *, limit: int, before: str | None) -> History:
    """As `history`, for the branch that ends in `thread.tip`, whichever is the active one, with the run `last`."""
    thread_id = thread.id
    [tip] = decode_cursor(before, int) if before else [thread.tip]
    page = await _messages(tx, thread, tip, limit)
    forks = await forks_of(tx, thread, page.messages, page.firsts, last)
    run_ids = dict.fromkeys(run_id for entry in page.messages if (run_id := forks.run_of(entry)))
    shown = await _contents(tx, thread_id, run_ids)
    also = [] if last is None or last.id in run_ids else await _contents(tx, thread_id, [last.id])
    views = {view["id"]: view for view in await _views(tx, thread_id, [*shown, *also])}
    seqs = [entry.seq for entry in page.messages] or [0]
    noted = await attributes.message_metadata(tx, thread_id, first=min(seqs), last=max(seqs))
    return {
        "thread_id": thread.id,
        "label": thread.title or "",
        "source": thread.source,
        **await lineage(tx, thread),
        "created_at": thread.created_at.isoformat(),
        "last_active_at": thread.updated_at.isoformat(),
        **attributes_json(thread),
        "messages": [_message(entry, noted.get(entry.seq, {}), forks) for entry in page.messages],
        "runs": [views[each.run.id] for each in shown],
        "steps": {each.run.id: _steps(each.steps) for each in shown} | _calls(page),
        "run": views[last.id] if last else None,
        "queue": [queued_view(each) for each in await wait_list.of_thread(tx, thread_id)],
        "before": encode_cursor(page.before) if page.before else None,
        "at": None,
    }


async def message_json(tx: Transaction, thread: Thread, entry: Entry) -> MessageView:
    """One message of a thread's active branch, as its history has it."""
    forks = await forks_of(tx, thread, [entry], {entry.seq: entry}, await last_run_of(tx, thread))
    noted = await attributes.message_metadata(tx, thread.id, first=entry.seq, last=entry.seq)
    return _message(entry, noted.get(entry.seq, {}), forks)


def attributes_json(thread: Thread) -> Attributes:
    """A thread's tags, metadata, expiry, archive and pin."""
    return {
        "tags": list(thread.tags),
        "metadata": dict(thread.metadata),
        "expires_at": thread.expires_at.isoformat() if thread.expires_at else None,
        "archived_at": thread.archived_at.isoformat() if thread.archived_at else None,
        "pinned_at": thread.pinned_at.isoformat() if thread.pinned_at else None,
    }


def waiting_call(call: Approval) -> PendingCall:
    """A call that waits for a decision."""
    return cast(PendingCall, call.request())


def decided_call(call: Approval) -> DecidedCall:
    """A call with its decision."""
    return cast(DecidedCall, call.to_json())


async def run_json(tx: Transaction, run: Run) -> RunView:
    """A run as JSON. An unfinished run that no process executes is `interrupted`."""
    [view] = await _views(tx, run.thread_id, await _contents(tx, run.thread_id, [run.id]))
    return view


async def _contents(tx: Transaction, thread_id: str, run_ids: Iterable[str]) -> list[RunContent]:
    """Those of a thread's runs that are there, in the order of their ids."""
    ids = list(run_ids)
    found = await ended_runs(tx, thread_id, ids)
    for each in ids:
        if each not in found and (run := await runs.find_run(tx, thread_id, each)) is not None:
            steps, last = await runs.steps_of(tx, run), await run_events.last_event(tx, thread_id, each)
            found[each] = RunContent(run, steps, await run_events.events_of_type(tx, thread_id, each, "warning"), last)
    return [found[each] for each in ids if each in found]


async def _views(tx: Transaction, thread_id: str, contents: Sequence[RunContent]) -> list[RunView]:
    """Runs of one thread as JSON. What they have in common is read together."""
    ids = [each.run.id for each in contents]
    asked = await wait_list.of_runs(tx, thread_id, ids)
    answered = await runs.answers_of_runs(tx, thread_id, ids)
    agents = {_agent_of(each.run): each.run for each in contents}
    names = {agent: await ran(tx, run) for agent, run in agents.items()}
    askers = await _askers(tx, thread_id, [each.run for each in contents])
    return [
        await _run_view(tx, content, names[_agent_of(content.run)], askers, calls, below)
        for content, calls, below in zip(contents, asked, answered, strict=True)
    ]


async def _askers(tx: Transaction, thread_id: str, found: Sequence[Run]) -> Mapping[str, str]:
    """The names of those who asked runs on a thread that is not their own, by their ids; without a login there are
    none, and nothing is read."""
    asked = {run.asker.user for run in found if run.asker is not None}
    if not asked or project_of(await log.owner(tx, thread_id)) is None:
        return {}
    return await names_of(tx, asked)


def _agent_of(run: Run) -> tuple[str, int] | None:
    return (run.agent.id, run.agent.version) if run.agent else None


async def _run_view(
    tx: Transaction,
    content: RunContent,
    agent: AgentVersion | None,
    askers: Mapping[str, str],
    asked: Sequence[Approval],
    below: Sequence[Run],
) -> RunView:
    run = content.run
    status = await runs.current_status(tx, run, alive=may_be_alive)
    calls = [call for call in asked if call.decision is None]
    return {
        "id": run.id,
        "status": status,
        "question": run.question,
        "source": run.source,
        "model": run.model,
        "agent": agent,
        "asked": [await describe_delegated(tx, each) for each in below],
        "protocol": run.protocol,
        "max_steps": run.max_steps,
        "continues": run.continues,
        "started_at": run.started_at.isoformat(),
        "ended_at": run.ended_at.isoformat() if run.ended_at else None,
        "outcome": {"calls": [call.request() for call in calls]}
        if status == "waiting"
        else error_for_http(run.outcome),
        "unfinished": run.outcome.get("unfinished", ""),
        "edited_by": run.outcome.get("edited_by"),
        "asked_by": askers.get(run.asker.user) if run.asker is not None else None,
        "approvals": [decided_call(call) for call in asked],
        "warnings": [event.data.get("message", "") for event in content.warnings],
        "last_event_seq": content.last_event,
        "events": events_path(run),
    }


def events_path(run: Run) -> str:
    """The path of a run's event stream."""
    return f"/api/conversations/{segment(run.thread_id)}/runs/{segment(run.id)}/events"


def queued_path(thread_id: str, question_id: str) -> str:
    """The path of a queued question's event stream."""
    return f"/api/conversations/{segment(thread_id)}/queue/{segment(question_id)}/events"


def queued_view(question: QueuedQuestion) -> QueuedView:
    """A question that waits, as JSON."""
    return {
        "thread_id": question.thread_id,
        "queued_id": question.id,
        "position": question.position,
        "events": queued_path(question.thread_id, question.id),
        "question": question.plan.question,
        "queued_at": question.queued_at.isoformat(),
    }


def step_json(step: Step, *, thought: str = "", whole: bool = False) -> StepView:
    """A step as JSON, with its observation cut or `whole`."""
    seen = None if step.observation is None else dict(step.observation)
    observation, was_cut = (seen, False) if whole else cut(seen)
    return {
        "step": step.index,
        "action": step.action,
        "args": dict(step.args),
        "call_id": step.call_id,
        "ok": bool(observation.get("ok")) if observation is not None else None,
        "observation": observation,
        "cut": was_cut,
        "thought": thought,
        "elapsed_ms": step.elapsed_ms,
        "started_at": step.started_at.isoformat(),
        "status": step.status,
    }


async def _messages(tx: Transaction, thread: Thread, tip: int, limit: int) -> _Page:
    """The last `limit` messages up to `tip`, and more until a question begins the page: it holds whole runs."""
    messages: list[Entry] = []
    between: list[Entry] = []
    firsts: dict[int, Entry] = {}
    at = tip
    while at:
        entries = await log.branch(tx, thread.id, at, limit=_CHUNK, seen_from=thread.tip)
        for entry in reversed(entries):
            if _is_shown(entry):
                messages.append(entry)
            if messages and (messages[-1].role != "user" or entry is messages[-1]):
                firsts[messages[-1].seq] = entry
            if entry.run_id is None and (entry.role == "tool" or entry.tool_calls):
                between.append(entry)
            at = entry.parent_seq
            if len(messages) >= limit and messages[-1].role == "user":
                return _Page(messages[::-1], between[::-1], firsts, at)
    return _Page(messages[::-1], between[::-1], firsts, 0)


def _is_shown(entry: Entry) -> bool:
    """Whether a page shows an entry. Those without a kind are imported or a LangGraph application's, or steps."""
    if entry.kind is not None:
        return entry.kind in SHOWN_KINDS
    return entry.role == "user" or (entry.role == "assistant" and entry.run_id is None and bool(entry.text))


def _calls(page: _Page) -> dict[str, list[StepView]]:
    """The calls outside runs, as steps, by the id of the question before them, else of the page's first message."""
    found: dict[str, list[StepView]] = {}
    waiting: dict[str, StepView] = {}
    user_entries = [entry for entry in page.messages if entry.role == "user"] or page.messages[:1]
    for entry in page.between:
        before = [question for question in user_entries if question.seq < entry.seq] or user_entries[:1]
        for call in entry.tool_calls if before else ():
            waiting[call.id] = _call_json(entry, call)
            found.setdefault(before[-1].id, []).append(waiting[call.id])
        if entry.role == "tool" and (made := waiting.pop(entry.tool_call_id or "", None)):
            observation = observation_of(entry.text)
            short, was_cut = cut(observation)
            made |= {"ok": bool(observation["ok"]), "observation": short, "cut": was_cut, "status": "done"}
    return found


def _call_json(entry: Entry, call: ToolCall) -> StepView:
    return {
        "step": None,
        "action": call.name,
        "args": dict(call.args),
        "call_id": call.id,
        "ok": None,
        "observation": None,
        "cut": False,
        "thought": "",  # text next to the call is a message
        "elapsed_ms": None,
        "started_at": entry.created_at.isoformat(),
        "status": "abandoned",
    }


def _message(entry: Entry, noted: Mapping[str, Any], forks: Forks) -> MessageView:
    return {
        "id": entry.id,
        "role": entry.role,
        "content": entry.shown_text,
        "kind": entry.kind,
        "created_at": entry.created_at.isoformat(),
        "run_id": forks.run_of(entry),
        "metadata": dict(noted),
        "siblings": forks.siblings(entry),
        "answers": forks.answers(entry),
    }


def _steps(steps: Sequence[Step]) -> list[StepView]:
    """The tool calls of a run, each with the thought before it. A repeated call counts once."""
    last = {step.call_id: step.index for step in steps if step.kind == "tool"}
    made: list[StepView] = []
    thought = ""
    for step in steps:
        if step.kind == "model":
            thought = step.thought if step.action not in {"finish", PARSE_ERROR} else ""
        elif last[step.call_id] == step.index:
            made.append(step_json(step, thought=thought))
            thought = ""
    return made
