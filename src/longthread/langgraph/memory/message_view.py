"""The view of a state's messages: what a model call of an agent sees, what else it gets, and the last view stored."""

from __future__ import annotations

import hashlib
import json
import threading
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, cast

from langchain.agents.middleware import ModelRequest
from langchain.agents.structured_output import ProviderStrategy, ToolStrategy
from langchain_core.messages import AIMessage, AnyMessage, BaseMessage, HumanMessage, SystemMessage
from langchain_core.utils.function_calling import convert_to_openai_tool

from longthread.context.window import PreviousCall, WindowMessage, as_answered
from longthread.langgraph.saver.async_saver import AsyncLongthreadSaver
from longthread.langgraph.saver.delta import delta_messages
from longthread.langgraph.saver.thread_cache import CONVERSATION
from longthread.llm.langchain import LIMITS, LangChainModel
from longthread.llm.models import reply_limit
from longthread.messages.fields import BLANK, as_json, calls_of
from longthread.messages.langchain import from_langchain, to_langchain
from longthread.messages.message import Message
from longthread.model.entry import Entry
from longthread.model.lru import LRU
from longthread.model.run import TEXTS, Segment
from longthread.settings import Settings
from longthread.store import checkpoints, log
from longthread.store.driver import Driver
from longthread.view.items import ViewEntry, ViewItem, show_part
from longthread.view.tokens import estimate, family_of, message_tokens, tools_tokens

TODOS = "todos"
"""The key of LangChain's `TodoListMiddleware` in the state."""
WRITE_TODOS = "write_todos"
"""The tool by which the model writes the list."""
LONGEST_TODOS = 2000
"""So many characters of a list are shown."""
_TOLD = "The to-do list as it stands, from earlier in this conversation:"
REMEMBERED = 4096
"""Messages whose costs are remembered."""
CHARACTERS = 16_000_000
"""What they hold, of all of them: pictures are large."""
_ANEW = (Segment(-1, -1, "whole"),)
"""The manifest of a view that holds nothing any more."""
_REMEMBERING = threading.Lock()
"""Held while what is remembered changes. One for all: what has a lock of its own cannot be copied, and agents are."""


def reply_tokens(request: ModelRequest[Any], settings: Settings) -> int:
    told = (request.model_settings.get(name) for name in LIMITS)
    limit = next((each for each in told if isinstance(each, int) and each > 0), None)
    return limit or reply_limit(LangChainModel(request.model), settings)


def instructions(messages: Sequence[BaseMessage]) -> list[SystemMessage]:
    """Return the leading system messages of a conversation: they are part of its prompt."""
    found: list[SystemMessage] = []
    for each in messages:
        if not isinstance(each, SystemMessage):
            break
        found.append(each)
    return found


def fixed_tokens(request: ModelRequest[Any], family: str) -> int:
    """Return the tokens of the system prompt, the tools and the schema of a structured reply."""
    tools = [tool if isinstance(tool, dict) else convert_to_openai_tool(tool) for tool in request.tools]
    given = [*tools, *_forms(request.response_format)]
    told = json.dumps(given, ensure_ascii=False, default=str) if given else ""
    first = sum(message_tokens(_text_of_message(each), family) for each in instructions(request.messages))
    prompt = estimate(_text_of_message(request.system_message), family) if request.system_message is not None else 0
    return prompt + first + tools_tokens(told, len(given), family)


def _text_of_message(message: BaseMessage) -> str:
    content = message.content
    return content if isinstance(content, str) else json.dumps(content, ensure_ascii=False, default=str)


def _forms(wanted: Any) -> list[dict[str, Any]]:
    if wanted is None:
        return []
    if isinstance(wanted, ProviderStrategy):
        return [wanted.schema_spec.json_schema]
    strategy = wanted if isinstance(wanted, ToolStrategy) else ToolStrategy(getattr(wanted, "schema", wanted))
    return [spec.json_schema for spec in strategy.schema_specs]


def todo_note(state: Mapping[str, Any]) -> HumanMessage | None:
    """Return the list as a message; None where there is none."""
    todos = state.get(TODOS)
    lines = [_line(each) for each in todos if isinstance(each, dict)] if isinstance(todos, list) else []
    if not lines:
        return None
    text = "\n".join(lines)
    text = text if len(text) <= LONGEST_TODOS else f"{text[:LONGEST_TODOS]}…"
    return HumanMessage(f"{_TOLD}\n{text}", additional_kwargs={"longthread": {"kind": "digest"}})


def _line(todo: Mapping[str, Any]) -> str:
    return f"- [{todo.get('status', 'pending')}] {todo.get('content', '')}"


def shows_todos(sent: Sequence[AnyMessage], messages: Sequence[BaseMessage]) -> bool:
    """Whether the newest call that wrote the list is sent as it is."""
    calls = (each for each in reversed(messages) if isinstance(each, AIMessage) and _writes(each))
    newest = next(calls, None)
    return newest is not None and any(each is newest for each in sent)


def _writes(message: AIMessage) -> bool:
    return any(call["name"] == WRITE_TODOS for call in message.tool_calls)


@dataclass(frozen=True, slots=True)
class StoredView:
    """The last call's view as JSON in the state. `parts` are segments: count, first and last message, and form.
    `digested` is a hash of the messages that its digest tells of; empty: of none."""

    parts: Sequence[Sequence[Any]] = ()
    estimated: int = 0
    reported: int = 0
    model: str = ""
    digested: str = ""

    @classmethod
    def of(cls, segments: Sequence[Segment], spots: Sequence[WindowMessage]) -> StoredView:
        """Build it from a view, in which a message's number is its place, from 1 on."""
        names = [_short(spot.entry.id) for spot in spots]
        told = [
            [each.last - each.first + 1, names[each.first - 1], names[each.last - 1], *each.to_json()[2:]]
            for each in segments
            if each.how not in TEXTS
        ]
        hidden = [spots[n - 1] for each in segments if each.why == "digest" for n in range(each.first, each.last + 1)]
        return cls(told, digested=_content_hash(hidden))

    def to_json(self) -> dict[str, Any]:
        return {
            "parts": [list(part) for part in self.parts],
            "estimated": self.estimated,
            "reported": self.reported,
            "model": self.model,
            **({"digested": self.digested} if self.digested else {}),
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any] | None) -> StoredView | None:
        return cls(**data) if data else None

    def is_outdated(self, spots: Sequence[WindowMessage]) -> bool:
        """Whether a message that its digest tells of is another one now, or is not here."""
        if not self.digested:
            return False
        places = self._places(spots)
        hidden: list[WindowMessage] = []
        for count, first, last, _, *about in self.parts:
            if about[1:2] == ["digest"]:
                end = places.get(last, 0)
                if end - count + 1 != places.get(first, 0) or not end:
                    return True
                hidden += spots[end - count : end]
        return _content_hash(hidden) != self.digested

    def past(self, spots: Sequence[WindowMessage], summary: str) -> PreviousCall:
        """Return the previous call as far as its messages are here; an empty one when they have changed."""
        places = self._places(spots)
        segments: list[Segment] = []
        for count, first, last, *how in self.parts:
            start, end = places.get(first), places.get(last)
            if end is None:
                if start is not None:
                    return PreviousCall(_ANEW, summary)
                segments.append(Segment(-count, -1, *how))
            elif (start if start is not None else min(0, end - count + 1)) != end - count + 1:
                return PreviousCall(_ANEW, summary)
            else:
                segments.append(Segment(end - count + 1, end, *how))
        return PreviousCall(segments, summary)

    def _places(self, spots: Sequence[WindowMessage]) -> dict[str, int]:
        """Map names of messages to their places; a result that got its id only after the call is under both names."""
        places = {_short(spot.entry.id): n for n, spot in enumerate(spots, 1)}
        if all(first in places and last in places for _, first, last, *_ in self.parts):
            return places
        times: Counter[str] = Counter()
        for n, spot in enumerate(spots, 1):
            if spot.entry.role == "tool" and spot.message.id:
                name = _content(spot.message)
                places.setdefault(_short(f"{name}#{times[name]}"), n)
                times[name] += 1
        return places


def _content_hash(spots: Sequence[WindowMessage]) -> str:
    if not spots:
        return ""
    told = [[each.entry.role, each.entry.text, [call.to_json() for call in each.entry.tool_calls]] for each in spots]
    return _short(json.dumps(told, default=str))


def _short(key: str) -> str:
    return hashlib.blake2b(key.encode("utf-8", "surrogatepass"), digest_size=5).hexdigest()


@dataclass(frozen=True, slots=True)
class _Known:
    """What is cached of a message. Holding the message keeps its address from being reused."""

    message: BaseMessage
    ours: Message
    entry: Entry
    size: int
    items: dict[tuple[str, bool], ViewItem] = field(default_factory=dict)


@dataclass(slots=True)
class StateMessages:
    """Converts messages of states for a view, with a cache for all threads of the process."""

    _known: LRU[int, _Known] = field(
        default_factory=lambda: LRU(REMEMBERED, most_size=CHARACTERS, size=lambda known: known.size)
    )

    def spots(self, messages: Sequence[BaseMessage]) -> list[WindowMessage]:
        """Number the messages from 1 on, and name those whose id is missing or not unique."""
        found: list[WindowMessage] = []
        times: Counter[str] = Counter()
        for n, message in enumerate(messages, 1):
            name = message.id or _content(from_langchain(message))
            key = name if not times[name] and message.id else f"{name}#{times[name]}"
            times[name] += 1
            known = self._of(message, key)
            found.append(WindowMessage(replace(known.entry, seq=n), known.ours, known.items))
        return found

    def _of(self, message: BaseMessage, key: str) -> _Known:
        with _REMEMBERING:
            known = self._known.get(id(message))
            if known is None:
                ours = from_langchain(message)
                known = _Known(message, ours, _entry(ours, key), len(str(message.content)))
            elif known.entry.id != key:  # one without an id has one now: LangGraph sets it in the message itself
                ours = replace(known.ours, id=message.id)
                known = _Known(message, ours, replace(known.entry, id=key), known.size)
            self._known.put(id(message), known)
            return known


def as_sent(
    messages: Sequence[Message], spots: Sequence[WindowMessage], given: Sequence[AnyMessage]
) -> list[AnyMessage]:
    """Convert a view to LangChain messages. An unchanged message is the very object of the state."""
    same = {id(spot.message): message for spot, message in zip(spots, given, strict=True)}
    # `to_langchain` returns only types of AnyMessage.
    return [same.get(id(message)) or cast(AnyMessage, to_langchain(message)) for message in messages]


def _entry(message: Message, key: str) -> Entry:
    return Entry(
        id=key,
        role=message.role,
        text=message.text,
        tool_calls=calls_of(message.tool_calls, message.id).told,
        tool_call_id=message.tool_call_id,
    )


def _content(message: Message) -> str:
    """Name a message without an id by its content, the same in any process."""
    calls = [{**call, "args": as_json(call["args"])} for call in message.tool_calls]
    beside = [message.tool_call_id] if message.role == "tool" else []
    told = json.dumps([BLANK[message.role]["type"], message.content, calls, *beside], default=str)
    return hashlib.sha256(told.encode("utf-8", "surrogatepass")).hexdigest()[:16]


@dataclass(frozen=True, slots=True)
class LastView:
    """The view of the last call. Tokens are those of the whole prompt: estimated, and as the provider counted (0: not).
    `entries` are the messages still in the state, with how each was shown."""

    thread_id: str
    model: str
    estimated: int
    reported: int
    entries: Sequence[ViewEntry]


async def last_view(store: Driver, thread_id: str, *, user_id: str) -> LastView | None:
    """Return the last view of a thread; None where no `MemoryMiddleware` has stored one."""
    saver = AsyncLongthreadSaver(store, user_id=user_id)
    found = await saver.aget_tuple({"configurable": {"thread_id": thread_id, "checkpoint_ns": ""}})
    values = found.checkpoint["channel_values"] if found else {}
    kept = StoredView.from_json(values.get("memory_view"))
    if kept is None:
        return None
    family = family_of(kept.model)
    spots = as_answered(StateMessages().spots(await _messages(store, saver, thread_id, values, user_id=user_id)))
    summary = values.get("memory_summary") or {}
    segments = [each for each in kept.past(spots, "").segments if each.last > 0]
    async with store.reading() as tx:
        there = await log.find_entries(tx, thread_id, [spot.entry.id for spot in spots])
    seqs = {spot.entry.seq: there[spot.entry.id].seq for spot in spots if spot.entry.id in there}
    edge = max((each.last for each in segments if each.how == "condensed"), default=0)
    entries: list[ViewEntry] = []
    if text := summary.get("shown", ""):
        entries.append(ViewEntry(int(summary.get("mark", 0)), "user", "summary", None, 1, estimate(text, family), text))
    for segment in segments:
        for spot in spots[max(0, segment.first - 1) : segment.last]:
            item, seq = spot.item_for(family), seqs.get(spot.entry.seq, 0)
            part = show_part(segment, item)
            if part is None:
                entries.append(ViewEntry(seq, spot.entry.role, "left out", segment.why, None, 0, item.text))
                continue
            tier, told = (2 if spot.entry.seq <= edge else 3), item.text if part.text is None else part.text
            entries.append(ViewEntry(seq, spot.entry.role, part.how, None, tier, part.tokens, told))
    return LastView(thread_id, kept.model, kept.estimated, kept.reported, entries)


async def _messages(
    store: Driver, saver: AsyncLongthreadSaver, thread_id: str, values: Mapping[str, Any], *, user_id: str
) -> Sequence[BaseMessage]:
    """Return the messages of the thread's state, which a delta channel has on earlier checkpoints."""
    ns, channel = CONVERSATION
    if isinstance(values.get(channel), list):
        found: Sequence[BaseMessage] = values[channel]
        return found
    async with store.reading() as tx:
        thread = await checkpoints.lock(tx, thread_id, user_id=user_id)
        row = await checkpoints.find(tx, thread_id, ns, None) if thread is not None else None
        if thread is None or row is None:
            return ()
        return await delta_messages(tx, row, channel, saver.serde, thread.first_seq) or ()
