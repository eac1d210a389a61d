"""The spans of an agent's turns: a turn begins with a question, and ends with the reply that calls no tool."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any

from langchain.agents.middleware import ModelRequest, ModelResponse
from langchain_core.messages import AIMessage, BaseMessage
from langgraph.config import get_config

from longthread.context.view_size import ViewSize
from longthread.llm.langchain import LangChainModel
from longthread.messages.langchain import from_langchain
from longthread.telemetry import (
    OFF,
    TraceSpan,
    as_parts,
    as_text,
    begin_span,
    describe_model,
    describe_usage,
    note_failure,
    span,
)

_MOST = 1_000
"""Turns under way, at most: one that an error has ended elsewhere is never heard of again."""


class TurnSpans:
    """The spans of the turns under way, by their threads."""

    def __init__(self) -> None:
        self._open: OrderedDict[str, TraceSpan] = OrderedDict()

    @contextmanager
    def trace_call(self, request: ModelRequest[Any], thread_id: str | None, *, is_first: bool) -> Iterator[TraceSpan]:
        """Work in the span of a model call, in that of its turn. `is_first`: a turn begins."""
        about = _describe_request(request) | {"gen_ai.conversation.id": thread_id}
        turn = self._find(thread_id, about, is_first=is_first)
        chat = span("chat", str(about["gen_ai.request.model"]), about, parent=turn)
        with ExitStack() as failing:
            failing.callback(self.end, thread_id)
            with note_failure(turn or OFF), chat as begun:
                yield begun
            failing.pop_all()  # the turn goes on

    def _find(self, thread_id: str | None, about: dict[str, Any], *, is_first: bool) -> TraceSpan | None:
        if thread_id is None:
            return None
        if is_first:
            self.end(thread_id)
            name = str(get_config().get("metadata", {}).get("lc_agent_name") or "")
            turn = begin_span("invoke_agent", name, {**about, "gen_ai.agent.name": name or None})
            if turn is not OFF:
                self._open[thread_id] = turn
            if len(self._open) > _MOST:
                self.end(next(iter(self._open)))
        return self._open.get(thread_id)

    def end(self, thread_id: str | None) -> None:
        """End the turn of a thread, if one is under way in this process."""
        if thread_id is not None and (turn := self._open.pop(thread_id, None)) is not None:
            turn.end()


def _describe_request(request: ModelRequest[Any]) -> dict[str, Any]:
    name = LangChainModel(request.model).name
    provider = request.model._get_ls_params().get("ls_provider") or ""
    return describe_model(f"{provider}:" if provider else name, asked=name)


def describe_response(response: ModelResponse[Any], size: ViewSize) -> dict[str, Any]:
    """Return the attributes of a reply and of the view that it came from."""
    reply = next((each for each in response.result if isinstance(each, AIMessage)), None)
    usage: Any = (reply.usage_metadata if reply is not None else None) or {}
    cached = (usage.get("input_token_details") or {}).get("cache_read")
    model = reply.response_metadata.get("model_name") if reply is not None else None
    return {
        **describe_usage(usage.get("input_tokens"), usage.get("output_tokens"), cached),
        **size.attributes,
        "gen_ai.response.id": reply.id if reply is not None else None,
        "gen_ai.response.model": model,
    }


def describe_messages(sent: Sequence[BaseMessage], response: ModelResponse[Any]) -> dict[str, Any]:
    """Return what a model call saw and said."""
    return {
        "gen_ai.input.messages": as_text([_as_parts(each) for each in sent]),
        "gen_ai.output.messages": as_text([_as_parts(each) for each in response.result]),
    }


def _as_parts(message: BaseMessage) -> Any:
    read = from_langchain(message)
    return as_parts(read.role, str(read.text), read.tool_calls, read.tool_call_id)
