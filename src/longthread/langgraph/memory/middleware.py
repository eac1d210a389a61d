"""Memory for any LangChain agent: fits the view to the model's window, and summarises what it no longer shows."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from typing import Annotated, Any, NotRequired, Unpack

from langchain.agents.middleware import AgentMiddleware, AgentState, ExtendedModelResponse, ModelRequest, ModelResponse
from langchain.agents.middleware.types import PrivateStateAttr
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, RemoveMessage, ToolMessage
from langgraph.config import get_config
from langgraph.types import Command

from longthread.context.view_size import ViewSize
from longthread.context.window import FittedView, ViewRequest, WindowMessage, fit
from longthread.errors import InvalidInput, LongthreadError
from longthread.langgraph.backend import BackendUser, backend_in, backend_of_run, expect_backed
from longthread.langgraph.internals import CHECKPOINTER, DURABILITY
from longthread.langgraph.memory.extractor import MemoryExtractor
from longthread.langgraph.memory.long_term import NO_TEXT, LongTermMemory, MemoryOptions, StateSummary, settings_of
from longthread.langgraph.memory.message_view import (
    StateMessages,
    StoredView,
    as_sent,
    fixed_tokens,
    instructions,
    reply_tokens,
    shows_todos,
    todo_note,
)
from longthread.langgraph.memory.turn_spans import TurnSpans, describe_messages, describe_response
from longthread.llm.langchain import LangChainModel
from longthread.llm.models import context_window
from longthread.memory.summary.pruning import first_shown, left_out
from longthread.model.catalog import RECALL_TOOL
from longthread.settings import Settings
from longthread.telemetry import OFF, TraceSpan, is_traced
from longthread.view.compose import ViewConfig
from longthread.view.tokens import LEAST, correct_factor, estimate, family_of, message_budget, too_small

Request = ModelRequest[Any]
Response = ModelResponse[Any]

_TIMES = 2
"""How many times its maximum the messages before a question may number before it waits for their summary."""
MOST_PATIENCE = 86_400
"""Seconds: a day."""

_logger = logging.getLogger(__name__)
_NO_SAVER = (
    "MemoryMiddleware has no LongthreadSaver that keeps this agent's threads: views fit their window and "
    "hold a digest of what has no room in them, but nothing is summarised or recalled, and the state keeps "
    "every message. Give the same saver to both: create_agent(…, checkpointer=saver, "
    "middleware=[MemoryMiddleware(saver)])."
)


class MemoryState(AgentState[Any]):
    """What the middleware stores in the state and so in each checkpoint: the last view, the summary, and the
    estimated cost of its messages, by which `recall_memory` sizes its pages."""

    memory_view: NotRequired[Annotated[dict[str, Any], PrivateStateAttr]]
    memory_summary: NotRequired[Annotated[dict[str, Any], PrivateStateAttr]]
    memory_room: NotRequired[Annotated[int, PrivateStateAttr]]


@dataclass(slots=True)
class _Call:
    request: Request
    thread_id: str = ""
    memory: LongTermMemory | None = None
    stores_at_end: bool = False
    """Whether the turn's own messages are stored when it is over: no pass can summarise them before."""
    found: StateSummary | None = None
    loop: asyncio.AbstractEventLoop | None = None
    spots: Sequence[WindowMessage] = ()
    fitted: FittedView | None = None
    size: ViewSize | None = None
    room: int = 0
    seen: StoredView = field(default_factory=StoredView)
    span: TraceSpan = OFF
    sent: Sequence[BaseMessage] = ()

    @property
    def own(self) -> Mapping[str, Any]:
        """The summary that the state itself has."""
        found: Mapping[str, Any] = self.state.get("memory_summary") or {}
        return found

    @property
    def state(self) -> Mapping[str, Any]:
        return self.request.state

    @property
    def messages(self) -> Sequence[BaseMessage]:
        """The messages of the state without its leading instructions: those are always shown and never removed."""
        found: Sequence[BaseMessage] = self.state["messages"]
        return found[len(instructions(found)) :]

    @property
    def ids(self) -> list[str]:
        return [str(message.id or "") for message in self.messages]

    @property
    def question(self) -> str:
        """The id of the last question, which never leaves the state: a turn may have very many steps after it."""
        return next((str(each.id or "") for each in reversed(self.messages) if isinstance(each, HumanMessage)), "")

    @property
    def before(self) -> list[str]:
        """The ids of the messages before the last question."""
        asked = max((n for n, each in enumerate(self.messages) if isinstance(each, HumanMessage)), default=0)
        return self.ids[:asked]

    @property
    def removed_ids(self) -> list[str]:
        """The ids of the messages that the summary stands for: they leave the state."""
        covered = self.ids[: self.found.covered if self.found else 0]
        return [each for each in covered if each and each != self.question]

    @property
    def summary(self) -> dict[str, Any]:
        """Tier 1 as the state stores it: the mark, its summary, topics, and what was shown last."""
        before = self.own
        if self.found is None:
            return dict(before)
        if self.found.replaced:  # its words are never shown again, also not by a fork
            before = {"mark": before.get("mark", 0), "summary": "", "topics": [], "shown": ""}
        kept = self.found.kept
        if kept is None and self.found.stale:
            return dict(before)  # of another branch; the state's own tells of what has left this very state
        if kept is None:
            return {"mark": 0, "summary": "", "topics": [], "shown": before.get("shown", "")}
        told = {"mark": kept.last_seq, "summary": kept.summary, "topics": list(kept.topics)}
        told |= {"digest": dict(kept.digest)} if kept.digest else {}
        return {**told, "shown": before.get("shown", "")}


class MemoryMiddleware(AgentMiddleware[MemoryState, Any, Any]):
    """Shows an agent's model a view of the conversation that fits its window, and keeps the state short.

    ```
    agent = create_agent(model, tools, checkpointer=saver, middleware=[MemoryMiddleware(saver)])
    ```

    The view only grows at its end until it has no more room, so that a provider's prompt cache stays warm. With a
    `LongthreadSaver`, messages beyond `MEMORY_MAX_MESSAGES_PER_THREAD` are summarised in the background and then leave
    the state; they stay in the log, and `recall_tool` finds them. Where turns are faster than summaries, a turn whose
    question has more than twice that many messages before it waits for theirs. With another checkpointer, or none,
    there is the view alone.
    """

    state_schema = MemoryState

    def __init__(
        self,
        saver: BackendUser | None = None,
        *,
        summarizer: BaseChatModel | None = None,
        settings: Settings | None = None,
        patience: float = 30.0,
        extractor: MemoryExtractor | None = None,
        **options: Unpack[MemoryOptions],
    ) -> None:
        """Configure the middleware; InvalidInput for an argument of another type or an option's bad value.

        Args:
            saver: whose threads these are; None: the checkpointer of the agent, when it runs, whatever wraps it.
            summarizer: the model that writes summaries; None: the agent's own.
            settings: None: the defaults. `Settings.load()` reads the environment and `.env`; nothing else here does.
            patience: seconds that a turn waits at most for late summaries; 0: it never waits.
            extractor: takes facts from the conversations into memories; None: no facts are taken.
            options: such as `context_window=16_000`; they win over `settings`.
        """
        super().__init__()
        if saver is not None:
            expect_backed(saver, "MemoryMiddleware")
        self._backing = backend_in(saver)
        _expect_model(summarizer)
        _expect_seconds(patience)
        self._summarizer = summarizer
        self._patience = patience
        self._extractor = extractor
        self._settings = settings_of("MemoryMiddleware", settings, options)
        self._messages = StateMessages()
        self._factors: dict[str, float] = {}
        self._memory: LongTermMemory | None = None
        self._has_warned = False
        self._turns = TurnSpans()

    def wrap_model_call(self, request: Request, handler: Callable[[Request], Response]) -> ExtendedModelResponse[Any]:
        """Show the model its view; WindowTooSmall if prompt and tools leave no room for messages."""
        with self._trace_call(request) as span:
            return self._plan_call(request, handler, span)

    async def awrap_model_call(
        self, request: Request, handler: Callable[[Request], Awaitable[Response]]
    ) -> ExtendedModelResponse[Any]:
        """Show the model its view; WindowTooSmall if prompt and tools leave no room for messages."""
        with self._trace_call(request) as span:
            return await self._aplan_call(request, handler, span)

    def _plan_call(
        self, request: Request, handler: Callable[[Request], Response], span: TraceSpan
    ) -> ExtendedModelResponse[Any]:
        """Plan the view that `handler` gets, and what the state keeps. Raises WindowTooSmall."""
        call = self._begun(request, span)
        if call.memory is not None and self._is_to_look(call):
            with _done_without(call):
                home = call.memory.backing.home
                call.found = home.call("find", call.memory.find, call.thread_id, call.ids, call.own)
                if waiting := self._waiting(call):
                    call.found = home.call("catch_up", call.memory.catch_up, call.thread_id, **waiting)
        return self._finish_call(call, handler(self._compose_request(call)))

    async def _aplan_call(
        self, request: Request, handler: Callable[[Request], Awaitable[Response]], span: TraceSpan
    ) -> ExtendedModelResponse[Any]:
        """Plan the view that `handler` gets, and what the state keeps. Raises WindowTooSmall."""
        call = self._begun(request, span)
        call.loop = asyncio.get_running_loop()
        if call.memory is not None and self._is_to_look(call):
            with _done_without(call):
                home = call.memory.backing.home
                call.found = await home.run(call.memory.find, call.thread_id, call.ids, call.own)
                if waiting := self._waiting(call):
                    call.found = await home.run(call.memory.catch_up, call.thread_id, **waiting)
        return self._finish_call(call, await handler(self._compose_request(call)))

    def view(self, request: Request) -> Request:
        """Return the request with the view that its state has planned, and nothing else: neither a summary is looked
        up, nor the state changed."""
        return self._compose_request(_Call(request))

    def settle(self) -> None:
        """Wait for the background passes: for programs whose turns follow each other without a pause."""
        if self._memory is not None:
            home = self._memory.backing.home
            home.call("settle", home.settle)

    def _trace_call(self, request: Request) -> AbstractContextManager[TraceSpan]:
        if not is_traced():
            return nullcontext(OFF)
        thread_id = _read_configurable().get("thread_id")
        is_first = not isinstance(request.messages[-1] if request.messages else None, ToolMessage)
        return self._turns.trace_call(request, str(thread_id) if thread_id is not None else None, is_first=is_first)

    def _begun(self, request: Request, span: TraceSpan) -> _Call:
        config = _read_configurable()
        thread_id, ns = config.get("thread_id"), str(config.get("checkpoint_ns", ""))
        # The conversation is the thread's own graph's, not a subgraph's.
        is_whole = thread_id is not None and "|" not in ns
        memory = self._memory_of(config.get(CHECKPOINTER)) if is_whole else None
        if memory is not None and self._extractor is not None:
            self._extractor.cancel(str(thread_id), backing=memory.backing)
        stores_at_end = config.get(DURABILITY) == "exit"
        return _Call(request, str(thread_id), memory, stores_at_end=stores_at_end, span=span)

    def _memory_of(self, checkpointer: Any) -> LongTermMemory | None:
        backing = backend_of_run(self._backing, checkpointer)
        if backing is None or not backing.has_text:
            self._warn_once(_NO_SAVER if backing is None else NO_TEXT)
            return None
        if self._memory is None or self._memory.backing != backing:
            self._memory = LongTermMemory(backing, self._settings)
        return self._memory

    def _warn_once(self, why: str = _NO_SAVER) -> None:
        if not self._has_warned:
            self._has_warned = True
            _logger.warning(why)

    def _is_kept_elsewhere(self, call: _Call) -> bool:
        """Whether another checkpointer, or none, stores this thread. It may wrap ours in a way that cannot be seen."""
        ours = backend_in(_read_configurable().get(CHECKPOINTER)) is not None
        return not ours and bool(call.before) and call.found is not None and call.found.missing

    def _is_to_look(self, call: _Call) -> bool:
        """Whether to read the thread's summary: once for each turn, and while the state is too long."""
        messages = call.messages
        within = bool(messages) and isinstance(messages[-1], ToolMessage) and "memory_summary" in call.state
        return not within or len(messages) > self._settings.memory_max_messages_per_thread

    def _waiting(self, call: _Call) -> dict[str, Any]:
        """Return how the turn waits for late summaries; empty when it need not wait.

        Its first call waits for what is before the question, and a later one for the steps of the turn itself.
        """
        if self._is_kept_elsewhere(call):
            self._warn_once()
            call.memory = None
            return {}
        found, most = call.found or StateSummary(), _TIMES * self._settings.memory_max_messages_per_thread
        is_first = not isinstance(call.messages[-1] if call.messages else None, ToolMessage)
        ids = call.before if is_first else call.ids
        if not is_first and call.stores_at_end:
            return {}
        if self._patience <= 0 or len(ids) - found.covered <= most:
            return {}
        model = self._summarizer or call.request.model
        last = None if is_first else (ids[-1] or None)
        return {
            "ids": ids,
            "last": last,
            "most": most,
            "seconds": self._patience,
            "found": found,
            "model": model,
            "loop": call.loop,
        }

    def _compose_request(self, call: _Call) -> Request:
        request, settings = call.request, self._settings
        name = LangChainModel(request.model).name
        family, factor = family_of(name), self._factor(name, call)
        fixed = fixed_tokens(request, family)
        removed, summary, first = set(call.removed_ids), call.summary, instructions(request.messages)
        rest = [each for each in request.messages[len(first) :] if each.id not in removed]
        call.spots = self._messages.spots(rest)
        seen = self._last_view(call, request.messages[len(first) :], summary)
        tasks = todo_note(call.state)
        noted = estimate(tasks.text, family) if tasks is not None else 0
        wanted = ViewRequest(
            budget=self._budget(request, name, int((fixed + noted) * factor), factor),
            family=family,
            config=ViewConfig(
                full_recent=settings.memory_full_recent_count,
                tool_max=settings.memory_condensed_tool_max,
                max_length=settings.message_compress_max_length,
            ),
            past=seen.past(call.spots, summary.get("shown", "")) if seen else None,
            summary=summary.get("summary", ""),
            digest=summary.get("digest", {}),
            topics=summary.get("topics", ()) if _can_recall(request) else (),
        )
        call.fitted, call.room = fit(call.spots, wanted), wanted.budget
        call.size = ViewSize.of(call.fitted, call.spots, wanted)
        kept = StoredView.of(call.fitted.segments, call.spots)
        sent = as_sent(call.fitted.messages, call.spots, rest)
        if tasks is not None and not shows_todos(sent, rest):
            sent, fixed = [tasks, *sent], fixed + noted
        call.seen = replace(kept, estimated=fixed + call.fitted.view.tokens, model=name)
        shown = [*first, *sent]
        call.sent = shown
        return request.override(messages=shown)

    def _last_view(self, call: _Call, messages: Sequence[BaseMessage], summary: Mapping[str, Any]) -> StoredView | None:
        """Return the view to go on from; None if there is none, or its summary tells of what is another message now."""
        seen = StoredView.from_json(call.state.get("memory_view"))
        if seen is None or (call.found is not None and call.found.replaced):
            return None
        if call.own.get("mark") and summary.get("summary") and not call.own.get("summary"):
            return None  # it was taken back, and is there again
        spots = call.spots if len(call.spots) == len(messages) else self._messages.spots(messages)
        return None if seen.is_outdated(spots) else seen

    def _budget(self, request: Request, name: str, fixed: int, factor: float) -> int:
        window, reply = (
            context_window(LangChainModel(request.model), self._settings),
            reply_tokens(request, self._settings),
        )
        budget = int(message_budget(window, output=reply, fixed=fixed) / factor)
        if budget < LEAST:
            raise too_small(name, window, output=reply, fixed=fixed)
        return budget

    def _factor(self, name: str, call: _Call) -> float:
        """Return the correction of estimates: learned by this process for the model, else the last call's."""
        seen = StoredView.from_json(call.state.get("memory_view"))
        if name not in self._factors and seen is not None and seen.model == name:
            return correct_factor(1.0, seen.estimated, seen.reported)
        return self._factors.get(name, 1.0)

    def _finish_call(self, call: _Call, response: Response) -> ExtendedModelResponse[Any]:
        assert call.fitted is not None
        assert call.size is not None
        call.size.count()
        reply = next((each for each in response.result if isinstance(each, AIMessage)), None)
        self._note_response(call, response, call.size)
        usage = (reply.usage_metadata if reply is not None else None) or {"input_tokens": 0}
        call.seen = replace(call.seen, reported=usage["input_tokens"])
        factor = self._factor(call.seen.model, call)
        self._factors[call.seen.model] = correct_factor(factor, call.seen.estimated, call.seen.reported)
        summary = _add_size(call.summary | {"shown": call.fitted.view.summary.text}, call)
        update: dict[str, Any] = {"memory_view": call.seen.to_json()}
        if summary != call.state.get("memory_summary"):
            update["memory_summary"] = summary
        if call.room != call.state.get("memory_room"):
            update["memory_room"] = call.room
        if removed := call.removed_ids:
            update["messages"] = [RemoveMessage(id=each) for each in removed]
        if call.memory is not None:
            count = len(call.messages) - len(removed) + len(response.result)
            is_end = response.structured_response is not None
            self._keep_up(call, call.memory, count, reply, is_end=is_end)
        return ExtendedModelResponse(response, Command(update=update))

    def _note_response(self, call: _Call, response: Response, size: ViewSize) -> None:
        if call.span.is_on:
            call.span.note(describe_response(response, size))
        if call.span.captures:
            call.span.note(describe_messages(call.sent, response))
        calls = any(isinstance(each, AIMessage) and each.tool_calls for each in response.result)
        if call.span.is_on and (not calls or response.structured_response is not None):
            self._turns.end(call.thread_id)

    def _keep_up(
        self, call: _Call, memory: LongTermMemory, count: int, reply: AIMessage | None, *, is_end: bool = False
    ) -> None:
        """Start background passes when a turn is over or the state is too long."""
        assert call.fitted is not None
        if self._extractor is not None:
            self._extractor.submit(call.thread_id, backing=memory.backing, loop=call.loop)
        segments = call.fitted.segments
        over = count > self._settings.memory_max_messages_per_thread
        # A turn may end with a call: a structured reply, or a tool whose result is the answer.
        over = over or left_out(segments, 0) >= self._settings.memory_summary_threshold
        if (not over or call.stores_at_end) and not is_end and (reply is None or reply.tool_calls):
            return
        first = first_shown(segments)
        memory.backing.home.start(
            memory.keep_up,
            call.thread_id,
            count=count,
            hidden=left_out(segments, 0),
            first_shown=call.spots[first - 1].message.id if first else None,
            last=reply.id if reply is not None else None,
            found=call.found or StateSummary(),
            model=self._summarizer or call.request.model,
            loop=call.loop,
        )


def _add_size(summary: dict[str, Any], call: _Call) -> dict[str, Any]:
    """Add how many entries the log had when its words were found to be those of the present messages."""
    found, own = call.found, call.own
    if found is None or (not found.replaced and summary | {"size": 0} == {**own, "size": 0}):
        return summary | ({"size": own["size"]} if "size" in own else {})
    return summary | {"size": found.size}


def _expect_model(given: Any) -> None:
    if given is not None and not isinstance(given, BaseChatModel):
        raise InvalidInput(
            reason=f"The summarizer of MemoryMiddleware is of type {type(given).__name__}. Give a chat model, such as "
            'init_chat_model("…"), or None for the agent\'s own.'
        )


def _expect_seconds(given: Any) -> None:
    is_number = isinstance(given, int | float) and not isinstance(given, bool)
    if not is_number or not 0 <= given <= MOST_PATIENCE:
        raise InvalidInput(
            reason=f"The patience of MemoryMiddleware is {given!r}; allowed is a number of seconds from 0, which never "
            f"waits, to {MOST_PATIENCE:,}."
        )


def _can_recall(request: Request) -> bool:
    return any(_name_of(tool) == RECALL_TOOL for tool in request.tools)


def _name_of(tool: Any) -> Any:
    if isinstance(tool, dict):
        return tool.get("name") or tool.get("function", {}).get("name")
    return getattr(tool, "name", None)


def _read_configurable() -> Mapping[str, Any]:
    try:
        return get_config().get("configurable", {})
    except RuntimeError:
        return {}


@contextmanager
def _done_without(call: _Call) -> Iterator[None]:
    """Log errors of the store: memory must not prevent an answer."""
    try:
        yield
    except LongthreadError as error:
        _logger.warning("The summary of thread %s could not be read: %s", call.thread_id, error)
