"""The agent's graph: compiled once for each model and set of tools, and run with what belongs to one run."""

from __future__ import annotations

import json
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from langchain.agents import create_agent
from langchain.agents.middleware import ModelFallbackMiddleware, ModelRetryMiddleware
from langchain_core.language_models import BaseChatModel
from langchain_core.tools import BaseTool, StructuredTool
from langgraph.graph.state import CompiledStateGraph

from longthread.agent.budget import Budget
from longthread.agent.context import RunContext
from longthread.agent.models import retryable
from longthread.agent.overflow import overflow_of
from longthread.agent.protocol import ProtocolMiddleware
from longthread.agent.refit import RefitMiddleware
from longthread.agent.steps import Middleware, StepsMiddleware
from longthread.errors import LongthreadError
from longthread.tools.tool import Tool

GRAPHS = 16
"""Compiled graphs that are remembered; the one not used for the longest time goes first."""

Graph = CompiledStateGraph[Any, RunContext, Any, Any]


@dataclass(frozen=True, slots=True)
class Models:
    """The model of a run, the one that takes over when it fails, and how often to try each again."""

    name: str
    model: BaseChatModel
    fallback: BaseChatModel | None = None
    retries: int = 0

    @property
    def all(self) -> list[BaseChatModel]:
        """Those that may be asked."""
        return [self.model] if self.fallback is None else [self.model, self.fallback]


class Graphs:
    """The graphs of an analyst. One holds nothing of a run: that comes with the context."""

    def __init__(self) -> None:
        self._made: OrderedDict[Any, tuple[Models, Graph]] = OrderedDict()

    def graph(self, models: Models, tools: Mapping[str, Tool]) -> Graph:
        """The graph for these models and tools."""
        offered = json.dumps([[tool.name, tool.description, dict(tool.parameters)] for tool in tools.values()])
        # The models are kept with the graph, so that no other can come to have the same identity.
        key = (id(models.model), id(models.fallback), models.retries, offered)
        found = self._made.get(key) or (models, _made(models, tools))
        self._made[key] = found
        self._made.move_to_end(key)
        while len(self._made) > GRAPHS:
            self._made.popitem(last=False)
        return found[1]


def _made(models: Models, tools: Mapping[str, Tool]) -> Graph:
    return create_agent(
        models.model,
        tools=[_langchain_tool(tool) for tool in tools.values()],
        middleware=[StepsMiddleware(Budget(models.model), _inner(models))],
        context_schema=RunContext,
    )


def _inner(models: Models) -> list[Middleware]:
    """Outermost first: the step is written around all attempts, and each attempt speaks the protocol."""
    chain: list[Any] = []
    if models.fallback is not None:
        chain.append(ModelFallbackMiddleware(models.fallback))
    chain.append(RefitMiddleware())
    if models.retries:
        chain.append(ModelRetryMiddleware(max_retries=models.retries, retry_on=_may_pass, on_failure="error"))
    return [*chain, ProtocolMiddleware()]


def _may_pass(error: Exception) -> bool:
    """Whether a failed model call is tried again as it was: not after an error of ours, such as a lost lease, nor where
    it was too long."""
    return retryable(error) and not isinstance(error, LongthreadError) and overflow_of(error) is None


def _langchain_tool(tool: Tool) -> BaseTool:
    """The tool as the model is told of it. It is called by the run that it belongs to (`StepsMiddleware`)."""

    async def call(**args: Any) -> str:
        raise RuntimeError(f"{tool.name} is called by its run")

    return StructuredTool(
        name=tool.name, description=tool.description, args_schema=dict(tool.parameters), coroutine=call
    )
