"""What the spans of a run tell: of the run, of each model call with the way to its exact view, of each tool call."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager
from typing import Any

from longthread.context.view_size import ViewSize
from longthread.llm.chat import ChatModel
from longthread.llm.models import RunModels
from longthread.messages.message import Message
from longthread.model.catalog import QUERIES
from longthread.runs.run_context import RunContext
from longthread.telemetry import (
    TraceSpan,
    as_parts,
    as_text,
    describe_model,
    describe_usage,
    span,
    view_path,
)
from longthread.tools.tool import Observation, Tool


def begin_trace(context: RunContext, models: RunModels) -> AbstractContextManager[TraceSpan]:
    """Work in the span of a run. One that an agent asked for belongs to the agent's call."""
    run, agent = context.run, context.run.agent
    about = describe_model(models.name, asked=models.model.name) | {
        "gen_ai.agent.name": context.agent_name or None,
        "gen_ai.agent.id": agent.id if agent is not None else None,
        "gen_ai.agent.version": str(agent.version) if agent is not None else None,
        "gen_ai.conversation.id": run.thread_id,
        "longthread.run.id": run.id,
        "longthread.run.attempt": context.lease.attempt,
    }
    return span("invoke_agent", context.agent_name, about, is_first=run.answers is None)


def trace_request(context: RunContext, name: str, model: ChatModel) -> AbstractContextManager[TraceSpan]:
    """Work in the span of a model call, with all its attempts. `name` says the model's provider."""
    about = describe_model(name, asked=model.name, address=model.address)
    about |= {"gen_ai.conversation.id": context.run.thread_id, "gen_ai.request.stream": True}
    return span("chat", model.name, about)


def describe_step(context: RunContext, index: int) -> dict[str, Any]:
    """Return the attributes by which one finds what a model call saw."""
    return {"longthread.step": index, "longthread.view": view_path(context.run.thread_id, index)}


def describe_reply(
    context: RunContext, reply: Message, usage: Mapping[str, int], size: ViewSize | None
) -> dict[str, Any]:
    """Return the attributes of a reply, and of the view that it came from. The fallback may have answered."""
    told = reply.response_metadata
    reason, model = told.get("finish_reason") or told.get("stop_reason"), told.get("model_name") or told.get("model")
    found = describe_usage(usage.get("input_tokens"), usage.get("output_tokens"), usage.get("cached_tokens"))
    found |= {
        "gen_ai.response.model": str(model) if model else context.model.name,
        "gen_ai.response.finish_reasons": [str(reason)] if reason else None,
    }
    return found | (size.attributes if size is not None else {})


def describe_contents(context: RunContext, reply: Message) -> dict[str, Any]:
    """Return what a model call saw and said, as its protocol rendered it."""
    system = [each.text for each in context.reply.sent if each.role == "system"]
    seen = [_as_parts(each) for each in context.reply.sent if each.role != "system"]
    return {
        "gen_ai.system_instructions": as_text([{"type": "text", "content": text} for text in system]),
        "gen_ai.input.messages": as_text(seen),
        "gen_ai.output.messages": as_text([_as_parts(reply)]),
    }


def _as_parts(message: Message) -> Any:
    return as_parts(message.role, str(message.text), message.tool_calls, message.tool_call_id)


def trace_tool(
    context: RunContext, tool: Tool | None, call: Mapping[str, Any], index: int
) -> AbstractContextManager[TraceSpan]:
    """Work in the span of a tool call. A name that is no tool's is a model's words, and stays out."""
    name = tool.name if tool is not None else None
    about = {
        "gen_ai.tool.name": name or "unknown",
        "gen_ai.tool.type": "datastore" if name in QUERIES else "function",
        "gen_ai.tool.call.id": str(call["id"]),
        "gen_ai.conversation.id": context.run.thread_id,
        "longthread.step": index,
    }
    return span("execute_tool", name or "", about)


def note_observation(begun: TraceSpan, call: Mapping[str, Any], observation: Observation) -> None:
    """Note how a tool call ended."""
    if not observation.get("ok"):
        begun.fail(str((observation.get("error") or {}).get("type") or "failed"))
    if begun.captures:
        begun.note(
            {"gen_ai.tool.call.arguments": as_text(call["args"]), "gen_ai.tool.call.result": as_text(observation)}
        )
