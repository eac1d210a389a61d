"""Every model call and every tool call of a run is a step: durable when it is over, and told as it happens."""

from __future__ import annotations

import json
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from langchain.agents.middleware import AgentMiddleware, ModelRequest, ModelResponse, ToolCallRequest, hook_config
from langchain_core.messages import AIMessage, AnyMessage, BaseMessage, SystemMessage, ToolMessage
from langgraph.types import Command

from longthread.agent.context import RunContext, is_malformed, note_of, noted, open_calls
from longthread.agent.window import fit
from longthread.errors import WindowTooSmall
from longthread.model.fold import PARSE_ERROR
from longthread.model.run import StepStatus
from longthread.store import runs
from longthread.tools.tool import Observation
from longthread.view.budget import LEAST, message_budget
from longthread.view.tokens import estimate

Handler = Callable[[ModelRequest[None]], Awaitable[ModelResponse[Any]]]
ToolHandler = Callable[[ToolCallRequest], Awaitable[ToolMessage | Command[Any]]]


class StepsMiddleware(AgentMiddleware[Any, None, Any]):
    """Shows the model its view, runs its tools, and writes down both."""

    def __init__(self, context: RunContext) -> None:
        super().__init__()
        self._context = context

    async def awrap_model_call(self, request: ModelRequest[None], handler: Handler) -> ModelResponse[Any]:
        """Compose the view, call the model, and note what it saw, said and used."""
        context = self._context
        view, manifest = self._view(request.messages)
        makers = [message for message in request.messages if isinstance(message, AIMessage)]
        context.call_ids = frozenset(call["id"] for message in makers for call in message.tool_calls)
        async with context.store.writing() as tx:
            index = await runs.start_step(tx, context.lease, "model", manifest=manifest)
        started = time.monotonic()
        request = request.override(messages=view, system_message=SystemMessage(context.system_prompt))
        try:
            response = await handler(request)
        except BaseException as error:
            problem = {"ok": False, "error": {"type": type(error).__name__, "message": str(error)}}
            await self._finish(index, "failed", started, observation=problem)
            raise
        message = _reply(response, context.message_id, started)
        action = message.tool_calls[0]["name"] if message.tool_calls else "finish"
        await self._finish(index, "done", started, thought=str(message.text), action=action, usage=_usage(message))
        if message.tool_calls and str(message.text).strip() and note_of(message).get("kind") != "malformed":
            await context.stream.tell("thought", text=str(message.text), message_id=message.id)
        return replace(response, result=[message, *response.result[1:]])

    async def awrap_tool_call(self, request: ToolCallRequest, handler: ToolHandler) -> ToolMessage | Command[Any]:
        """Run one call, unless this run finished it before a crash: then its result is the one it had."""
        call = request.tool_call
        earlier = self._context.earlier.get(call["id"] or "")
        if earlier is not None and earlier.status == "done" and earlier.observation is not None:
            return _result(call, earlier.observation)
        return _result(call, await self._run_call(call, request.state, interrupted=earlier is not None))

    async def _run_call(self, call: Mapping[str, Any], state: Any, *, interrupted: bool) -> Observation:
        context = self._context
        label = self._next_label(call["name"])
        started = time.monotonic()
        async with context.store.writing() as tx:
            index = await runs.start_step(
                tx, context.lease, "tool", action=call["name"], args=call["args"], call_id=call["id"]
            )
            told = {"step": index, "action": call["name"], "args": call["args"], "call_id": call["id"]}
            await context.stream.tell_with(tx, "step_started", **told)
        context.stream.ring()
        observation = await self._observe(call, state["messages"], interrupted=interrupted)
        if label and observation.get("ok"):
            observation = {**observation, "data": {"query": label, **observation["data"]}}
        elapsed = _elapsed(started)
        async with context.store.writing() as tx:
            await runs.finish_step(
                tx, context.lease, index, "done", action=call["name"], observation=observation, elapsed_ms=elapsed
            )
            ended = {"ok": bool(observation.get("ok")), "observation": observation, "elapsed_ms": elapsed}
            await context.stream.tell_with(tx, "step_finished", **(told | ended))
        context.stream.ring()
        return observation

    async def _observe(
        self, call: Mapping[str, Any], messages: Sequence[BaseMessage], *, interrupted: bool
    ) -> Observation:
        maker = next((m for m in reversed(messages) if isinstance(m, AIMessage)), None)
        if call["name"] == PARSE_ERROR and maker is not None and is_malformed(maker):
            observation: Observation = note_of(maker)["observation"]
            return observation
        tool = self._context.tools.get(call["name"])
        if tool is None:
            names = ", ".join(self._context.tools)
            return _error("unknown_tool", f"There is no tool {call['name']}. Use one of: {names}.")
        if interrupted and not tool.retry_safe:
            return _error(
                "interrupted",
                f"The process died while {tool.name} was running; it may or may not have taken effect, and is not "
                "repeated. Find out what it did before you call it again.",
            )
        return await tool.call(call["args"])

    async def _finish(self, index: int, status: StepStatus, started: float, **found: Any) -> None:
        async with self._context.store.writing() as tx:
            await runs.finish_step(tx, self._context.lease, index, status, elapsed_ms=_elapsed(started), **found)

    def _view(self, messages: Sequence[AnyMessage]) -> tuple[list[AnyMessage], list[dict[str, Any]]]:
        context = self._context
        tools = [[tool.name, tool.description, dict(tool.parameters)] for tool in context.tools.values()]
        fixed = estimate(context.system_prompt) + 2 * estimate(json.dumps(tools, ensure_ascii=False))
        budget = message_budget(context.window, output=context.settings.max_tokens, fixed=fixed)
        if budget < LEAST:
            needed = f"{fixed:,} tokens of prompt and tools, {context.settings.max_tokens:,} of reply"
            raise WindowTooSmall(model=context.run.model, window=f"{context.window:,}", needed=needed)
        return fit(messages, budget)

    def _next_label(self, action: str) -> str | None:
        if action != "run_sql":
            return None
        self._context.queries += 1
        return f"q{self._context.queries}"


class ResumeMiddleware(AgentMiddleware[Any, None, Any]):
    """A run that died between a call and its results begins with the calls that have none."""

    @hook_config(can_jump_to=["tools"])
    async def abefore_agent(self, state: Any, runtime: Any) -> dict[str, Any] | None:
        """Go straight to the tools where calls are open."""
        return {"jump_to": "tools"} if open_calls(state["messages"]) else None


def _reply(response: ModelResponse[Any], message_id: str, started: float) -> AIMessage:
    message = response.result[0]
    assert isinstance(message, AIMessage)
    message = noted(message.model_copy(update={"id": message_id}), latency_ms=_elapsed(started))
    return message if message.tool_calls else noted(message, kind="answer")


def _usage(message: AIMessage) -> dict[str, int]:
    usage = message.usage_metadata
    return {"input_tokens": usage["input_tokens"], "output_tokens": usage["output_tokens"]} if usage else {}


def _elapsed(started: float) -> int:
    return round((time.monotonic() - started) * 1000)


def _result(call: Mapping[str, Any], observation: Mapping[str, Any]) -> ToolMessage:
    text = json.dumps(observation, ensure_ascii=False, separators=(",", ":"), default=str)
    return ToolMessage(content=text, tool_call_id=call["id"], name=call["name"])


def _error(code: str, message: str) -> Observation:
    return {"ok": False, "error": {"type": code, "message": message}}
