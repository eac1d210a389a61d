"""Begin a run, execute it, end it."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from langchain.agents import create_agent
from langchain.agents.middleware import AgentMiddleware, ModelFallbackMiddleware, ModelRetryMiddleware
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage, RemoveMessage
from langchain_core.tools import BaseTool, StructuredTool
from langgraph.graph.message import REMOVE_ALL_MESSAGES

from longthread.agent.begin import HOT_WINDOW
from longthread.agent.budget import BudgetMiddleware, malformed_in_a_row
from longthread.agent.checkpointer import LongthreadSaver
from longthread.agent.citations import citations, query_results
from longthread.agent.context import RunContext, note_of, pairs
from longthread.agent.messages import message_of
from longthread.agent.models import failure_reason, retryable
from longthread.agent.progress import progress_digest, words_for
from longthread.agent.protocol import ProtocolMiddleware
from longthread.agent.steps import ResumeMiddleware, StepsMiddleware
from longthread.agent.storable import storable
from longthread.errors import JsonParseFailed, LeaseLost, LongthreadError, ModelFailed, StoreError
from longthread.model.entry import Entry
from longthread.model.run import RunStatus
from longthread.store import log, runs
from longthread.store.completion import to_the_end
from longthread.tools.tool import Tool

RENEW_SECONDS = 5.0
"""How often a lease is renewed: several times before it runs out."""


_logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Models:
    """The model of a run, the one that takes over when it fails, and how often to try each again."""

    name: str
    model: BaseChatModel
    fallback: BaseChatModel | None = None
    retries: int = 0


async def execute(context: RunContext, models: Models, entries: Sequence[Entry], *, user_id: str) -> RunStatus:
    """Run the agent on a thread's hot window until the run ends, and say how it ended.

    `entries` are the window: the branch's last entries, oldest first, up to the one that starts the run, or, when a
    run goes on after a crash, up to the last that was stored.

    Raises:
        LeaseLost: another process took the run over; nothing more was written.
    """
    beat = asyncio.ensure_future(_keep_lease(context))
    saver = LongthreadSaver(context.store, user_id=user_id, lease=context.lease)
    messages = [message_of(entry) for entry in entries]
    saver.know(messages, entries)
    work = asyncio.ensure_future(_work(context, models, messages, saver))
    try:
        await asyncio.wait({beat, work}, return_when=asyncio.FIRST_COMPLETED)
        if beat.done():
            work.cancel()
            await asyncio.gather(work, return_exceptions=True)
            beat.result()
        status, outcome = await work
    except asyncio.CancelledError:
        work.cancel()
        await asyncio.gather(work, return_exceptions=True)
        await to_the_end(_stop(context, user_id))
        raise
    finally:
        beat.cancel()
    await to_the_end(_end(context, status, outcome))
    return status


async def _end(context: RunContext, status: RunStatus, outcome: Mapping[str, Any]) -> None:
    """Tell the run's end. What cannot be stored of it is told as a failure: a run without an end blocks its thread."""
    try:
        await context.stream.end(status, outcome)
    except LeaseLost:
        raise
    except (StoreError, ValueError, TypeError) as error:
        problem = {"type": "store_error", "message": f"The run's end could not be stored: {type(error).__name__}."}
        await context.stream.end("failed", {"error": problem})


async def _work(
    context: RunContext, models: Models, messages: list[BaseMessage], saver: LongthreadSaver
) -> tuple[RunStatus, dict[str, Any]]:
    try:
        final = messages if _is_over(messages) else await _drive(context, models, messages, saver)
        return _outcome(context, models, final)
    except LeaseLost:
        raise
    except LongthreadError as error:
        return "failed", {"error": {"type": error.code, "message": str(error)}}
    except Exception as error:  # noqa: BLE001 - a run's boundary: whatever failed, the thread is told and stays usable
        reason = failure_reason(error, context.settings)
        problem = ModelFailed(model=models.name, reason=reason, thread=context.lease.thread_id)
        return "failed", {"error": {"type": problem.code, "message": str(problem), "cause": type(error).__name__}}


async def _drive(
    context: RunContext, models: Models, messages: list[BaseMessage], saver: LongthreadSaver
) -> list[BaseMessage]:
    """One execution of the agent's graph; the messages it ended with."""
    graph = create_agent(
        models.model,
        tools=[_langchain_tool(tool) for tool in context.tools.values()],
        middleware=_middleware(context, models),
        checkpointer=saver,
    )
    config: Any = {
        "configurable": {"thread_id": context.lease.thread_id},
        "callbacks": [context.recorder],
        "recursion_limit": 10 * context.run.max_steps + 50,
    }
    # The state is made anew from the log: whatever an older checkpoint holds, the log is what happened.
    given: Any = {"messages": [RemoveMessage(id=REMOVE_ALL_MESSAGES), *messages]}
    final = messages
    stream: AsyncIterator[Any] = graph.astream(given, config, stream_mode=["messages", "values"], durability="sync")
    async for mode, part in stream:
        if mode == "values":
            final = part["messages"]
        else:
            await _tell_text(context, part[0])
    return final


def _middleware(context: RunContext, models: Models) -> list[AgentMiddleware[Any, Any, Any]]:
    """Outermost first: the step is written around all attempts, and each attempt speaks the protocol."""
    chain: list[AgentMiddleware[Any, Any, Any]] = [
        ResumeMiddleware(),
        BudgetMiddleware(context, models.model),
        StepsMiddleware(context),
    ]
    if models.fallback is not None:
        chain.append(ModelFallbackMiddleware(models.fallback))
    if models.retries:
        chain.append(ModelRetryMiddleware(max_retries=models.retries, retry_on=_may_pass, on_failure="error"))
    return [*chain, ProtocolMiddleware(context)]


def _may_pass(error: Exception) -> bool:
    """Whether a failed model call is tried again: not after an error of ours, such as a lease that was lost."""
    return retryable(error) and not isinstance(error, LongthreadError)


def _langchain_tool(tool: Tool) -> BaseTool:
    async def call(**args: Any) -> str:
        return json.dumps(await tool.call(args), ensure_ascii=False)

    return StructuredTool(
        name=tool.name, description=tool.description, args_schema=dict(tool.parameters), coroutine=call
    )


async def _tell_text(context: RunContext, message: BaseMessage) -> None:
    """Tell the text of an answer while it is written. What may still turn out to be a call is held back."""
    if not isinstance(message, AIMessageChunk) or context.protocol == "json":
        return
    text = storable(str(message.text))
    if text and not context.held_back(text):
        await context.stream.tell_text(context.message_id, text)


def _is_over(messages: Sequence[BaseMessage]) -> bool:
    return bool(messages) and note_of(messages[-1]).get("kind") in {"answer", "summary"}


def _outcome(context: RunContext, models: Models, messages: Sequence[BaseMessage]) -> tuple[RunStatus, dict[str, Any]]:
    last = messages[-1]
    results = _query_results(messages)
    # An answer may cite a query of an earlier run: its SQL is shown too.
    mine = {query["query"] for query in _query_results(context.of_this_run(messages))}
    told = [query for query in results if query["query"] in mine or f"[{query['query']}]" in str(last.text)]
    queries = [{key: query.get(key) for key in ("query", "sql", "columns", "shown")} for query in told]
    shared = {"message_id": last.id, "queries": queries, "usage": _usage(context.of_this_run(messages))}
    match note_of(last).get("kind"):
        case "answer":
            answer = str(last.text)
            return "finished", {"answer": answer, "citations": citations(answer, results), **shared}
        case "summary":
            hint = words_for(context.run.question)["hint"]
            return "paused", {"reason": "max_steps", "summary": str(last.text), "hint": hint, **shared}
    count = malformed_in_a_row(context.of_this_run(messages))
    error = JsonParseFailed(count=count, other="native" if context.protocol == "json" else "json")
    return "failed", {"error": {"type": error.code, "message": str(error)}, **shared}


def _query_results(messages: Sequence[BaseMessage]) -> list[dict[str, Any]]:
    return query_results([str(result.text) for _, call, result in pairs(messages) if call["name"] == "run_sql"])


def _usage(messages: Sequence[BaseMessage]) -> dict[str, int]:
    total = {"input_tokens": 0, "output_tokens": 0}
    for message in messages:
        usage: Mapping[str, Any] = (message.usage_metadata if isinstance(message, AIMessage) else None) or {}
        for name in total:
            total[name] += usage.get(name, 0)
    return total


async def _keep_lease(context: RunContext) -> None:
    while True:
        await asyncio.sleep(RENEW_SECONDS)
        try:
            async with context.store.writing() as tx:
                await runs.renew(tx, context.lease)
        except StoreError as error:
            _logger.warning("The lease of run %s could not be renewed; trying again: %s", context.run.id, error)


async def _stop(context: RunContext, user_id: str) -> None:
    """End a run that was stopped from outside, as paused: it can be resumed where it is."""
    async with context.store.reading() as tx:
        thread = await log.find_thread(tx, context.lease.thread_id, user_id=user_id)
        messages = [message_of(entry) for entry in await log.branch(tx, thread.id, thread.tip, limit=HOT_WINDOW)]
    words = words_for(context.run.question)
    digest = progress_digest(context.run.question, context.of_this_run(messages))
    await _end(context, "paused", {"reason": "stopped", "summary": digest, "hint": words["hint"]})
