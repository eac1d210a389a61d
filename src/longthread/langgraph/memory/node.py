"""Memory for one's own graphs: a node before the model's, with what `MemoryMiddleware` does for agents."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any, NotRequired, Unpack

from langchain.agents.middleware import ModelRequest, ModelResponse
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, AnyMessage, BaseMessage, SystemMessage
from langchain_core.runnables import Runnable, RunnableBinding, RunnableConfig
from langchain_core.tools import BaseTool
from langgraph.graph import MessagesState

from longthread.errors import InvalidInput
from longthread.langgraph.backend import BackendUser
from longthread.langgraph.memory.extractor import MemoryExtractor
from longthread.langgraph.memory.long_term import MemoryOptions
from longthread.langgraph.memory.middleware import MemoryMiddleware
from longthread.settings import Settings
from longthread.telemetry import OFF, TraceSpan


class MemoryMessagesState(MessagesState):
    """`MessagesState` with what the node stores: the plan of the last view, the summary, and the room for messages."""

    memory_view: NotRequired[dict[str, Any]]
    memory_summary: NotRequired[dict[str, Any]]
    memory_room: NotRequired[int]


def memory_node(
    saver: BackendUser | None = None,
    *,
    model: Any,
    tools: Sequence[BaseTool | dict[str, Any]] = (),
    system_prompt: str | None = None,
    summarizer: BaseChatModel | None = None,
    settings: Settings | None = None,
    patience: float = 30.0,
    extractor: MemoryExtractor | None = None,
    **options: Unpack[MemoryOptions],
) -> MemoryNode:
    """Return a node that keeps the state short and plans what the model sees of it: `node.messages(state)`.

    ```
    memory = memory_node(saver, model=model)
    builder.add_node("memory", memory)
    builder.add_node("model", lambda state: {"messages": [model.invoke(memory.messages(state))]})
    builder.add_edge("memory", "model")
    ```

    The graph's state is a `MemoryMessagesState`, or a class below it.

    Args:
        saver: whose threads these are; None: the checkpointer of the graph, when it runs.
        model: the chat model that will see the messages, also with tools bound.
        tools: what is bound to it, where `model` does not say so.
        system_prompt: begins the messages, and counts.
        summarizer, settings, patience, extractor, options: as those of `MemoryMiddleware`.

    Raises:
        InvalidInput: an argument is of another type, or an option has a bad value.
    """
    chat, bound = _parts(model)
    given = list(tools) or bound
    memory = _PlanningMemory(
        saver, summarizer=summarizer, settings=settings, patience=patience, extractor=extractor, **options
    )
    prompt = None if system_prompt is None else SystemMessage(system_prompt)
    return MemoryNode(memory, chat, given, prompt)


class _PlanningMemory(MemoryMiddleware):
    """Plans views for models that others ask: its calls are none, and have no spans."""

    def _trace_call(self, request: ModelRequest[Any]) -> AbstractContextManager[TraceSpan]:
        return nullcontext(OFF)


class MemoryNode(Runnable[Any, dict[str, Any]]):
    """The node that `memory_node` returns, for synchronous and asynchronous graphs."""

    def __init__(
        self,
        memory: MemoryMiddleware,
        model: BaseChatModel,
        tools: Sequence[BaseTool | dict[str, Any]],
        prompt: SystemMessage | None,
    ) -> None:
        self._memory = memory
        self._model = model
        self._tools = list(tools)
        self._prompt = prompt

    def invoke(self, input: Any, config: RunnableConfig | None = None, **_: Any) -> dict[str, Any]:  # noqa: A002
        """Return the state's update; WindowTooSmall if the tools and the prompt leave no room for messages."""
        done = self._memory.wrap_model_call(self._request(input), lambda _: ModelResponse(result=[]))
        return _update(done.command)

    async def ainvoke(self, input: Any, config: RunnableConfig | None = None, **_: Any) -> dict[str, Any]:  # noqa: A002
        async def nothing(_: ModelRequest[Any]) -> ModelResponse[Any]:
            return ModelResponse(result=[])

        return _update((await self._memory.awrap_model_call(self._request(input), nothing)).command)

    def messages(self, state: Any) -> list[AnyMessage]:
        """Return what the model sees of a state: the view that the node has planned, with what came since.

        It reads nothing but the state, so a resumed run sees the same.
        """
        shown = self._memory.view(self._request(state)).messages
        return shown if self._prompt is None else [self._prompt, *shown]

    def settle(self) -> None:
        """Wait for the background passes: for programs whose turns follow each other without a pause."""
        self._memory.settle()

    def _request(self, state: Any) -> ModelRequest[Any]:
        found = _fields(state)
        return ModelRequest(
            model=self._model,
            messages=found["messages"],
            system_message=self._prompt,
            tools=self._tools,
            state=found,
        )


def _fields(state: Any) -> Any:
    """Return a state of any form as a dict, with what the provider counted of the last view."""
    found = dict(state) if isinstance(state, Mapping) else dict(vars(state))
    messages: list[BaseMessage] = found.setdefault("messages", [])
    view = found.get("memory_view")
    reply = next((each for each in reversed(messages) if isinstance(each, AIMessage)), None)
    if view and not view["reported"] and reply is not None and reply.usage_metadata:
        found["memory_view"] = {**view, "reported": reply.usage_metadata["input_tokens"]}
    return found


def _parts(model: Any) -> tuple[BaseChatModel, list[Any]]:
    """Return a chat model and the tools that are bound to it."""
    tools: list[Any] = []
    while isinstance(model, RunnableBinding):
        tools = tools or list(model.kwargs.get("tools", ()))
        model = model.bound
    if not isinstance(model, BaseChatModel):
        raise InvalidInput(
            reason=f"The model of memory_node is of type {type(model).__name__}. Give the chat model that the next "
            'node asks, such as init_chat_model("…"), with or without tools bound to it.'
        )
    return model, tools


def _update(command: Any) -> dict[str, Any]:
    return dict(command.update)
