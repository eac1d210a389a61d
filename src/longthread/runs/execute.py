"""Execute a run: its loop with its budget, and its end.

A run is paused when its steps are used up, and failed when no reply can be read.
"""

from __future__ import annotations

import asyncio
import json
import logging
import re
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from time import perf_counter
from typing import Any, Literal

from longthread.context.source_facts import KnownFacts, keep
from longthread.context.view_size import sum_sizes
from longthread.errors import LeaseLost, LongthreadError, ModelFailed, RunTimeUp, StoreDisconnected, StoreError
from longthread.llm.chat import ChatModel
from longthread.llm.failures import asked_in_room
from longthread.llm.models import DEMO, RunModels, failure_reason
from longthread.llm.rows_answer import BY_ROWS, answer_from_rows, asks_words
from longthread.llm.sql_protocol import is_answering
from longthread.loop_bridge import to_the_end
from longthread.messages.fields import storable
from longthread.messages.message import Message
from longthread.metrics import RUNS
from longthread.model.catalog import QUERIES
from longthread.model.fold import PARSE_ERROR, facts_of, observation_of
from longthread.model.ids import new_id
from longthread.model.run import RunStatus, Step
from longthread.runs.budgets import find_spent_budget, note_model_call
from longthread.runs.end_run import (
    end_stopped,
    interrupted_draft,
    is_over,
    outcome_of,
    progress_digest,
    stop_answers,
    stopped_outcome,
)
from longthread.runs.model_call import call_model
from longthread.runs.protocol import ChatRequest
from longthread.runs.run_context import RunContext, malformed_in_a_row, open_calls, pairs
from longthread.runs.tool_calls import call_tools
from longthread.runs.tracing import begin_trace, trace_request
from longthread.runs.views import find_instructions
from longthread.store import runs
from longthread.store.driver import Transaction
from longthread.store.run_rows import events_of_step
from longthread.store.runs import LeaseCheck
from longthread.telemetry import current_span
from longthread.view.condense import cut_middle
from longthread.view.tokens import estimate

_NOTES_LIMIT = 12_000
"""Characters of the notes that a summary is written from: a run of many steps has more."""
MALFORMED_LIMIT = 3
"""Replies in a row that could not be read before a run fails."""
REPEATED_LIMIT = 3
"""Failed calls in a row that had failed before in the same form, before a run pauses."""
_NUMBER = re.compile(r"\d+(?:[.,]\d+)*")
_SUMMARY = """\
The run paused before the question was answered. Write a short progress report for the user, in the language of \
the question: the question, what is done, what was found, what problems came up, what is left to do. Use only what \
the notes say; keep labels such as [q3].

Notes:
{digest}"""
PauseReason = Literal["max_steps", "repeated", "budget_spent"]
"""Why a run pauses by itself: its steps are used up, it repeats a call that fails, or who asked has no budget left."""
_logger = logging.getLogger(__name__)


async def drive(context: RunContext, models: RunModels) -> bool:
    """Alternate model and tools until a reply makes no call, the budget ends, or a person must decide. Return False if
    the worker drains before that: another one is to go on.

    Each message is stored in the log and in the context's window, so a run that another process began continues there.
    Raises AccessEnded, NotGranted: who asked may not go on.
    """
    budget = Budget(models.model)
    while not context.calls.awaited:
        await context.rights.expect()
        messages = context.window.messages
        calls = open_calls(messages)
        if not calls and (is_over(messages) or budget.is_lost(context)):
            break
        if context.hold.draining:
            return False
        if calls:
            await call_tools(context, calls)
        elif tells_rows(context):
            await answer_by_rows(context)
        elif is_stuck(context.window.own):
            await budget.summary(context, "repeated")
        elif budget.is_spent(context):
            await budget.summary(context)
        elif (spent := await find_spent_budget(context)) is not None:
            await context.stream.publish("warning", message=str(spent))
            await budget.summary(context, "budget_spent")
        else:
            await call_model(context, models)
    return True


def tells_rows(context: RunContext) -> bool:
    """Return whether the rows of the last query are the answer, in the SQL protocol. That is so if the question wants
    no more than these rows, and no instruction or memory says how to answer."""
    if context.model.protocol != "sql" or not context.states_rows or not is_answering(context.window.messages):
        return False
    before = context.window.spots[: context.window.question]
    return not (asks_words(context.run.question) or context.knowledge.memories or find_instructions(before))


async def answer_by_rows(context: RunContext) -> None:
    """Write the answer that the rows of the last query give. It costs no model call, and no model sees it later: the
    rows stand there."""
    result = next(each for each in reversed(context.window.messages) if each.name in QUERIES)
    data = observation_of(str(result.text)).get("data") or {}
    context.reply.message_id = new_id()
    answer = Message("assistant", answer_from_rows(context.run.question, data), id=context.reply.message_id)
    answer = answer.add_note(kind="answer", by=BY_ROWS)
    async with context.stream.writing() as (tx, held):
        [entry] = await context.write(tx, held, [answer])
    context.note([entry], [answer])


class Budget:
    """What a run may use. It counts the messages of the run, so a crash resets nothing. `model` writes the
    summaries."""

    def __init__(self, model: ChatModel) -> None:
        self._model = model
        self._report: Message | None = None

    def is_lost(self, context: RunContext) -> bool:
        return malformed_in_a_row(context.window.own) >= MALFORMED_LIMIT

    def is_spent(self, context: RunContext) -> bool:
        """Return whether the run's own or shared steps are used up. If not, take one."""
        if sum(message.role == "assistant" for message in context.window.own) >= context.run.max_steps:
            return True
        return context.allowance is not None and not context.allowance.take()

    async def summary(self, context: RunContext, reason: PauseReason = "max_steps") -> None:
        """Write a summary of the run into the log: the model's report (a step of its own), or else the digest."""
        digest = progress_digest(context.run.question, context.window.own)
        # Before the call: its text belongs to the summary, not to the last reply.
        context.reply.message_id = new_id()
        started, clock = datetime.now(UTC), time.monotonic()
        # The demo model only answers questions, and a model of the SQL protocol is for statements: the digest serves.
        is_writer = context.run.model != DEMO and context.model.protocol != "sql" and reason != "budget_spent"
        written = await self._write_summary(context, digest) if is_writer else None
        if written and (invented := {*_NUMBER.findall(written)} - {*_NUMBER.findall(digest)}):
            _logger.warning("The progress summary had numbers that no query gave: %s", ", ".join(sorted(invented)[:5]))
            written = ""
        message = Message("assistant", written or digest, id=context.reply.message_id)
        message = message.add_note(kind="summary", reason=reason)
        async with context.stream.writing() as (tx, held):
            [entry] = await context.write(tx, held, [message])
            if written is not None:
                marks = await context.stream.reply(tx, entry, started)
                step = Step(
                    thread_id=context.lease.thread_id,
                    index=0,
                    run_id=context.run.id,
                    kind="model",
                    status="done" if written else "failed",
                    started_at=started,
                    action="summary",
                    entry_seq=entry.seq if written else None,
                    elapsed_ms=round((time.monotonic() - clock) * 1000),
                )
                await runs.add_step(tx, context.lease, step, marks=marks, held=held)
                if self._report is not None:
                    await note_model_call(tx, context, self._report, estimate(digest, context.model.family))
                context.stream.add(events_of_step(replace(step, thought=entry.text, entry_id=entry.id), marks))
        context.note([entry], [message])

    async def _write_summary(self, context: RunContext, digest: str) -> str:
        async def ask(notes: str) -> str:
            question = context.run.question[: min(4000, max(1000, len(notes)))]
            request = ChatRequest(self._model, _SUMMARY.format(digest=notes), [Message("user", question)])
            with trace_request(context, context.run.model, self._model):
                self._report = await request.reply(context)
                return str(self._report.text)

        try:
            return str(storable(await asked_in_room(ask, cut_middle(digest, _NOTES_LIMIT)))).strip()
        except Exception as error:  # noqa: BLE001 - whatever fails, the run ends paused, with the digest instead
            _logger.warning(
                "The progress summary failed: %s", failure_reason(error, context.settings, context.own_settings)
            )
            return ""


def is_stuck(messages: Sequence[Message]) -> bool:
    """Return whether a run's last calls failed, each in a form in which it had failed before."""
    failed: set[str] = set()
    repeated = 0
    for _, call, result in pairs(messages):
        form = json.dumps([call["name"], call["args"]], sort_keys=True, default=str)
        if observation_of(str(result.text)).get("ok") is not False or call["name"] == PARSE_ERROR:
            repeated = 0
            continue
        repeated = repeated + 1 if form in failed else 0
        failed.add(form)
    return repeated >= REPEATED_LIMIT


async def execute(context: RunContext, models: RunModels, known: KnownFacts, *, user_id: str) -> RunStatus:
    """Run the agent until the run ends, waits for a person, or stays `running` because the worker drains. If it is
    cancelled, `user_id` has stopped it.

    Raises:
        LeaseLost: the run is no longer this worker's.
        StoreDisconnected: it ends here without an end. A worker goes on with it when the store is back.
    """
    began, left = perf_counter(), "lost"
    _log(context, "run begins", attempt=context.lease.attempt)
    with begin_trace(context, models) as span:
        try:
            status = await _until_left(context, models, known, user_id)
            left = "given_back" if status == "running" else status
            return status
        except asyncio.CancelledError:
            left = "paused"
            raise
        finally:
            seconds = perf_counter() - began
            RUNS.note(left, seconds=seconds)
            sizes = sum_sizes(context.view.sizes)
            _log(context, "run ends", status=left, ms=round(1000 * seconds, 1), **sizes)
            span.note({"longthread.run.status": left, **{f"longthread.run.{name}": n for name, n in sizes.items()}})


def _log(context: RunContext, event: str, **fields: Any) -> None:
    ids = {"thread_id": context.lease.thread_id, "run_id": context.lease.run_id}
    _logger.info(event, extra={"fields": {**ids, **fields}})


async def _until_left(context: RunContext, models: RunModels, known: KnownFacts, user_id: str) -> RunStatus:
    hold, work = context.hold, asyncio.ensure_future(_work(context, models))
    try:
        either: set[asyncio.Future[Any]] = {hold.lost, work}
        await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
        if not work.done():
            work.cancel()
            await asyncio.gather(work, return_exceptions=True)
            hold.expect()
        status, outcome = await work
    except asyncio.CancelledError:
        work.cancel()
        await asyncio.gather(work, return_exceptions=True)
        hold.expect()
        outcome = stopped_outcome(context.run.question, context.window.own)
        await to_the_end(_end(context, known, "paused", outcome, stopped_by=user_id))
        raise
    if status == "running":
        return status
    if status == "waiting":
        return await to_the_end(_wait(context))
    if status == "failed":
        current_span().fail(str(outcome.get("error", {}).get("type") or status))
    await to_the_end(_end(context, known, status, outcome))
    return status


async def _in_time(context: RunContext, models: RunModels) -> bool:
    """Drive the run. Raises RunTimeUp: it took too long; AccessEnded, NotGranted: who asked may not go on. What it did
    is stored."""
    seconds = context.settings.run_timeout
    try:
        async with asyncio.timeout(seconds) as clock, context.rights.keep_watch():
            return await drive(context, models)
    except TimeoutError:
        if not clock.expired():
            raise
        raise RunTimeUp(seconds=f"{seconds:g}") from None


async def _wait(context: RunContext) -> RunStatus:
    """Let the run wait for a person, or end it if it was stopped meanwhile. If that cannot be stored, the run fails."""
    try:
        waits = await context.stream.wait(list(context.calls.awaited.values()), partial(_call_off, context))
    except (LeaseLost, StoreDisconnected):
        raise
    except (StoreError, ValueError, TypeError) as error:
        problem = {"type": "store_error", "message": f"What is to be approved could not be stored: {error}"}
        await context.stream.end("failed", {"error": problem})
        return "failed"
    return "waiting" if waits else "paused"


async def _call_off(context: RunContext, tx: Transaction, held: LeaseCheck) -> None:
    """End a run that was stopped just before it waits: its calls are called off, as by a stop just after."""
    assert held.stop_by is not None
    run, window = replace(context.run, status="waiting"), [spot.entry for spot in context.window.spots]
    await end_stopped(tx, run, window, tip=held.tip, size=held.size, by=held.stop_by)


async def _end(
    context: RunContext,
    known: KnownFacts,
    status: RunStatus,
    outcome: Mapping[str, Any],
    *,
    stopped_by: str | None = None,
) -> None:
    """Store the run's end. If its outcome cannot be stored, the run fails: a run without an end blocks its thread."""
    last = context.window.spots[-1].entry
    text, message_id = context.stream.unfinished_reply
    left = interrupted_draft(text, context.run.id, message_id)
    if left is not None:
        outcome = {**outcome, "unfinished": text, "message_id": left.id}
    said = last if last.id == outcome.get("message_id") else None

    async def also(tx: Transaction) -> None:
        await _keep_facts(context, known, tx)
        if stopped_by is not None:
            await stop_answers(tx, context.run, by=stopped_by)

    try:
        await context.stream.end(status, outcome, said=said, left=left, also=also)
    except (LeaseLost, StoreDisconnected):
        raise
    except (StoreError, ValueError, TypeError) as error:
        problem = {"type": "store_error", "message": f"The run's end could not be stored: {type(error).__name__}."}
        await context.stream.end("failed", {"error": problem})


async def _keep_facts(context: RunContext, known: KnownFacts, tx: Transaction) -> None:
    """Store what the run's entries say of the source, for the next run. Not while a call has no result: a later
    result would be folded without its call."""
    entries = [spot.entry for spot in context.window.own_spots]
    calls = {call.id for entry in entries for call in entry.tool_calls}
    if calls <= {entry.tool_call_id for entry in entries}:
        tip = context.window.spots[-1].entry.seq
        await keep(tx, context.lease.thread_id, tip, facts_of(known.facts, entries), kept=known.kept)


async def _work(context: RunContext, models: RunModels) -> tuple[RunStatus, dict[str, Any]]:
    try:
        for note in context.source_notes:
            await context.stream.publish("warning", message=note)
        if not is_over(context.window.messages):
            context.knowledge.memories = (
                await context.knowledge.fitting() if context.knowledge.fitting is not None else ()
            )
            context.knowledge.terms = (
                await context.knowledge.teaching() if context.knowledge.teaching is not None else ()
            )
            if not await _in_time(context, models):
                return "running", {}
        return ("waiting", {}) if context.calls.awaited else outcome_of(context)
    except (LeaseLost, StoreDisconnected):
        raise
    except LongthreadError as error:
        return "failed", {"error": error.described()}
    except Exception as error:  # noqa: BLE001 - a run's boundary: any failure is stored, and the thread stays usable
        reason = failure_reason(error, context.settings, context.own_settings)
        problem = ModelFailed(model=context.model.name, reason=reason, thread=context.lease.thread_id)
        return "failed", {"error": {**problem.described(), "cause": type(error).__name__}}
