"""How a run ends: its outcome, and the end of a run that this process does not execute.

The outcome is its answer or summary, with its queries and numbers. Of an unfinished run it is the progress: question,
done, found, problems, left (document 001 §2). When somebody stops a run or no process can continue it, no call stays
without a result, and what the run was writing becomes an entry, marked as interrupted.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from longthread.context.citations import CitedQuery, citations
from longthread.context.window import WindowMessage, spots_of
from longthread.context.window_cache import WindowCache
from longthread.errors import JsonParseFailed, NothingToStop
from longthread.memory.summary.digest import findings, short
from longthread.messages.entries import draft_of
from longthread.messages.message import Message
from longthread.model.catalog import QUERIES
from longthread.model.entry import INTERRUPTED, Draft, Entry, ToolCall
from longthread.model.fold import observation_of
from longthread.model.ids import new_id
from longthread.model.language import is_chinese
from longthread.model.run import CORRECT, Run, RunStatus, start_of, unfinished_reply
from longthread.model.thread import Thread
from longthread.runs.run_context import RunContext, malformed_in_a_row, pairs
from longthread.runs.tool_calls import called_off, describe_rejection
from longthread.runs.worker import may_be_alive
from longthread.store import log, run_events, runs, wait_list
from longthread.store.driver import Driver, Transaction
from longthread.store.runs import Lease
from longthread.tools.tool import Observation

_WORDS = {
    True: {
        "question": "问题",
        "done": "已完成",
        "found": "已发现",
        "problems": "遇到的问题",
        "left": "还需要",
        "none": "无",
        "left_text": "根据以上信息得出答案。",
        "hint": "回复“继续”即可接着执行。",
        "rows": "行",
        "called_off": "{call}：运行被停止，未执行",
        "superseded": "{call}：用户转而说了别的，未执行",
        "rejected": "{call}：用户拒绝，未执行",
        "tool_gone": "{call}：工具已不在，未执行",
        "interrupted": "{call}：运行中断，不知是否已生效",
    },
    False: {
        "question": "Question",
        "done": "Done",
        "found": "Found",
        "problems": "Problems",
        "left": "Left",
        "none": "none",
        "left_text": "to answer the question from what was found.",
        "hint": 'Reply "continue" to go on.',
        "rows": "row|rows",
        "called_off": "{call}: not made, the run was stopped",
        "superseded": "{call}: not made, the user said something else",
        "rejected": "{call}: not made, the user rejected it",
        "tool_gone": "{call}: not made, the tool is no longer there",
        "interrupted": "{call}: broken off with the run, it may or may not have taken effect",
    },
}
_NOT_DONE = frozenset({"called_off", "superseded", "rejected", "tool_gone", "interrupted"})
"""Error types of calls that were not made, or of unknown outcome; they are keys of the summary's words too."""


def is_over(messages: Sequence[Message]) -> bool:
    return bool(messages) and messages[-1].kind in {"answer", "summary"}


def outcome_of(context: RunContext) -> tuple[RunStatus, dict[str, Any]]:
    last = context.window.spots[-1].message
    text = str(last.text)
    queries = list(_queries(context.window.spots))
    # An answer may cite a query of an earlier run, whose SQL is shown too.
    mine = {query.label for query in _queries(context.window.own_spots)}
    told = [dict(query.told) for query in queries if query.label in mine or f"[{query.label}]" in text]
    shared = {"message_id": last.id, "queries": told, "usage": _usage(context.window.own)}
    match last.kind:
        case "answer":
            return "finished", {"answer": text, "citations": citations(text, queries), **shared}
        case "summary":
            hint = words_for(context.run.question)["hint"]
            reason = last.note.get("reason", "max_steps")
            return "paused", {"reason": reason, "summary": text, "hint": hint, **shared}
    count = malformed_in_a_row(context.window.own)
    error = JsonParseFailed(count=count, other="native" if context.model.protocol == "json" else "json")
    return "failed", {"error": error.described(), "error_type": error.code, **shared}


def _queries(spots: Sequence[WindowMessage]) -> Iterator[CitedQuery]:
    names: dict[str | None, str] = {}
    for spot in spots:
        names |= {call.id: call.name for call in spot.entry.tool_calls}
        if names.get(spot.entry.tool_call_id) in QUERIES and spot.query is not None:
            yield spot.query


def _usage(messages: Sequence[Message]) -> dict[str, int]:
    total = {"input_tokens": 0, "output_tokens": 0}
    for message in messages:
        usage: Mapping[str, Any] = (message.usage_metadata if message.role == "assistant" else None) or {}
        for name in total:
            total[name] += usage.get(name, 0)
    return total


def words_for(question: str) -> Mapping[str, str]:
    return _WORDS[is_chinese(question)]


def progress_digest(question: str, messages: Sequence[Message]) -> str:
    """Summarize a run without a model, in the question's language."""
    words = words_for(question)
    done: list[str] = []
    found: list[str] = []
    problems: list[str] = []
    for _, call, result in pairs(messages):
        observation = observation_of(str(result.text))
        made, error = f"{call['name']}({short(call['args'])})", observation.get("error") or {}
        kind = str(error.get("type"))
        if not observation.get("ok") and kind in _NOT_DONE:
            problems.append(words[kind].format(call=made))
            continue
        done.append(made)
        if observation.get("ok"):
            found += findings(observation.get("data"), words["rows"])
        else:
            problems.append(str(error.get("message", "")).removesuffix(f" {CORRECT}"))
    sections = {
        "question": [question[:500]],
        "done": list(dict.fromkeys(done)),
        "found": found,
        "problems": list(dict.fromkeys(problems)),
        "left": [words["left_text"]],
    }
    return "\n".join(f"**{words[name]}**: {_list_items(items, words['none'])}" for name, items in sections.items())


def stopped_outcome(question: str, messages: Sequence[Message]) -> dict[str, Any]:
    """Return the outcome of a run that was stopped from outside: paused, so that it can be resumed."""
    digest = progress_digest(question, messages)
    return {"reason": "stopped", "summary": digest, "hint": words_for(question)["hint"]}


def _list_items(items: Sequence[str], none: str) -> str:
    if len(items) < 2:
        return items[0] if items else none
    return "".join(f"\n- {item}" for item in items)


_ENDLESS = 2**62


async def stop_run(
    store: Driver, thread: Thread, run_id: str, cache: WindowCache, *, by: str, claimed: Lease | None = None
) -> Run | None:
    """Stop a run of the thread in one transaction. If a worker executes it, that one is to obey. Otherwise (it waits
    for a person, its worker died, or it was `claimed` to be stopped) it ends here, with a result for each open call.
    A concurrent decision comes before it or too late. Return the run if it has ended here.

    Raises:
        NothingToStop: the run has ended, or there is none.
        ThreadNotFound: the thread was deleted.
        LeaseLost: the claimed run is another worker's now.
    """
    async with store.writing() as tx:
        await log.position(tx, thread.id)
        thread = await log.find_thread(tx, thread.id, user_id=thread.user_id)
        if claimed is not None:
            await runs.check(tx, claimed)
        run = await runs.last_run(tx, thread.id)
        if run is None or run.id != run_id or run.status not in {"running", "waiting"}:
            raise NothingToStop(thread=thread.id)
        if claimed is None and await runs.is_held(tx, run, alive=may_be_alive):
            await runs.request_stop(tx, run, by=by)
            return None
        window = [spot.entry for spot in (await cache.read(tx, thread)).spots]
        await end_stopped(tx, run, window, tip=thread.tip, size=thread.entry_count, by=by)
    return run


async def end_stopped(tx: Transaction, run: Run, window: Sequence[Entry], *, tip: int, size: int, by: str) -> None:
    """End a stopped run that no process executes, with a result for each open call. The caller has locked its thread,
    which has this `tip` and `size`; `window` are the thread's entries from the run's question on, or more."""
    drafts = await closing_of(tx, window, run, run.id, by=by, why=called_off())
    left = await interrupted_of(tx, run) if run.status == "running" else None
    drafts += [left] if left is not None else []
    added = await log.append(tx, run.thread_id, drafts, tip=tip, size=size)
    first = start_of(window, run) or 0
    own = [spot.message for spot in spots_of([*window[first:], *added])]
    await runs.call_off(tx, run, stopped_outcome(run.question, own), added[-1] if left is not None else None)
    await stop_answers(tx, run, by=by)


async def stop_answers(tx: Transaction, run: Run, *, by: str) -> None:
    """Request that the runs of other agents that answer this run's calls stop: no run waits for them any more. The
    caller has locked the run's thread."""
    for below in await runs.answers(tx, run.thread_id, run.id):
        if below.status == "running":
            await runs.request_stop(tx, below, by=by)


async def fail_run(store: Driver, lease: Lease, outcome: Mapping[str, Any]) -> None:
    """End a claimed run as failed. Raises `LeaseLost`: it is another worker's now, or was deleted."""
    async with store.writing() as tx:
        held = await runs.check(tx, lease)
        last = await run_events.last_event(tx, lease.thread_id, lease.run_id)
        run, said = await runs.find_run(tx, lease.thread_id, lease.run_id), None
        if run is not None and (left := await interrupted_of(tx, run)) is not None:
            [said] = await log.append(tx, lease.thread_id, [left], tip=held.tip, size=held.size, goes_on=True)
            outcome = {**outcome, "unfinished": left.text, "message_id": left.id}
        await runs.end(tx, lease, "failed", outcome, said=said, event=last + 1, held=held)


def _open_calls(window: Sequence[Entry]) -> dict[str, ToolCall]:
    calls: dict[str, ToolCall] = {}
    for entry in window:
        calls |= {call.id: call for call in entry.tool_calls}
        calls.pop(entry.tool_call_id or "", None)
    return calls


async def closing_of(
    tx: Transaction, window: Sequence[Entry], before: Run | None, run_id: str, *, by: str, why: Observation
) -> list[Draft]:
    """Return results for the calls that an unfinished run left open: from its steps, from a decision, or `why`.

    Args:
        run_id: the run that the results belong to.
        by: who ends a run that waits; its calls are never made, for `why`.
    """
    calls = _open_calls(window)
    if not calls and (before is None or before.status != "waiting"):
        return []
    steps = {step.call_id: step for step in (await runs.steps_of(tx, before) if before else [])}
    asked = await _never_made(tx, before, calls, by=by, why=why) if before else {}
    drafts: list[Draft] = []
    for call in calls.values():
        step = steps.get(call.id)
        observation = step.observation if step and step.status == "done" else asked.get(call.id)
        text = json.dumps(observation or _INTERRUPTED, ensure_ascii=False, separators=(",", ":"))
        drafts.append(Draft(id=new_id(), role="tool", text=text, tool_call_id=call.id, name=call.name, run_id=run_id))
    return drafts


async def _never_made(
    tx: Transaction, run: Run, calls: Collection[str], *, by: str, why: Observation
) -> dict[str, Observation]:
    """Return the results of calls that a person was asked about. If the run waits, the end of the run supersedes its
    calls that were not rejected."""
    said: dict[str, Observation] = {}
    for call in await wait_list.of_run(tx, run.thread_id, run.id):
        if call.decision == "reject" and call.call_id in calls:
            said[call.call_id] = describe_rejection(call)
        elif run.status == "waiting" and (call.decision is None or call.call_id in calls):
            said[call.call_id] = why
            await wait_list.decide(tx, replace(call, edited=None, message=None, by=by), "superseded")
    return said


_INTERRUPTED = {
    "ok": False,
    "error": {"type": "interrupted", "message": "The run was stopped before this call was finished."},
}


def interrupted_draft(text: str, run_id: str, message_id: str = "") -> Draft | None:
    """Return the entry of what the user was shown of a reply that did not come: its text alone, as thinking and
    signatures without their end are no use to a provider. None for an empty text."""
    if not text.strip():
        return None
    message = Message("assistant", text, id=message_id or new_id()).add_note(kind=INTERRUPTED)
    return draft_of(message, run_id=run_id)


async def interrupted_of(tx: Transaction, run: Run) -> Draft | None:
    """Return the same for a run whose process died, of what that had stored."""
    events = await run_events.events_after(tx, run.thread_id, run.id, 0, limit=_ENDLESS)
    text, message_id = unfinished_reply(events)
    return interrupted_draft(text, run.id, message_id)
