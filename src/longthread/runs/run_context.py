"""The state that the parts of one run share, and how its messages are read: their notes, calls without a result."""

from __future__ import annotations

import contextlib
import json
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from longthread.context.view_size import ViewSize
from longthread.context.window import PreviousCall, Window
from longthread.errors import LeaseLost
from longthread.llm.json_protocol import instructions
from longthread.llm.model_facts import ContextWindows
from longthread.llm.reply_text import LiveText, ends_unopened
from longthread.memory.user_memories import as_line, format_memories
from longthread.messages.entries import draft_of
from longthread.messages.fields import storable
from longthread.messages.message import Message
from longthread.model.entry import Entry
from longthread.model.fold import Facts
from longthread.model.ids import new_id
from longthread.model.memory import Memory, Used
from longthread.model.run import Approval, How, Protocol, Run, Step
from longthread.runs.agents import Allowance
from longthread.runs.events import EventStream
from longthread.runs.rights import RunRights
from longthread.runs.worker import Hold
from longthread.settings import Settings
from longthread.store import log
from longthread.store.driver import Driver, Transaction
from longthread.store.runs import Lease, LeaseCheck
from longthread.tools.analysis.schema_text import SchemaText
from longthread.tools.tool import Tool
from longthread.view.tokens import ANY, estimate, tools_tokens

NO_QUERY = "no_query"


def is_malformed(message: Message) -> bool:
    """Return whether the message is a reply that could not be read."""
    return message.role == "assistant" and message.kind == "malformed"


def open_calls(messages: Sequence[Message]) -> list[dict[str, Any]]:
    """Return the calls without a result of the last assistant's message, if only results follow it."""
    answered: set[str | None] = set()
    for message in reversed(messages):
        if message.role == "tool":
            answered.add(message.tool_call_id)
        elif message.role == "assistant":
            return [dict(call) for call in message.tool_calls if call["id"] not in answered]
        else:
            return []
    return []


def pairs(messages: Sequence[Message]) -> Iterator[tuple[Message, dict[str, Any], Message]]:
    """Yield each tool call with the message that made it and its result, in the order of the results."""
    calls: dict[str, tuple[Message, dict[str, Any]]] = {}
    for message in messages:
        if message.role == "assistant":
            calls |= {call["id"] or "": (message, dict(call)) for call in message.tool_calls}
        elif message.role == "tool" and message.tool_call_id in calls:
            yield *calls[message.tool_call_id], message


def is_reminder(message: Message) -> bool:
    """Return whether a reply went back to the model because no query supported it."""
    error = message.note.get("observation", {}).get("error") or {} if is_malformed(message) else {}
    return error.get("type") == NO_QUERY


def malformed_in_a_row(messages: Sequence[Message]) -> int:
    count = 0
    for message in reversed(messages):
        if message.role == "assistant" and not is_reminder(message):
            if not is_malformed(message):
                break
            count += 1
    return count


Spoken = Literal["native", "json", "sql", "answer"]
"""The form of a model call: native tool calls, JSON in text, SQL in a fence, or the answer from the rows of that."""


@dataclass(slots=True)
class ModelState:
    """The model that was called last, and what its calls taught. The model call writes it.

    `tokens` is the size of its context window, and `output` the most tokens of a reply. `family` is that of its
    tokenizer, and `factor` corrects its estimates; `counted` are the most tokens that its provider counted in a call.
    `sizing` says in a thread's first run whether the window is small for the source, and `probing` finds how a model of
    one's own server speaks best: each is called once.
    """

    name: str
    tokens: int
    output: int
    protocol: Protocol
    family: str = ANY
    factor: float = 1.0
    counted: int = 0
    sizing: Callable[[], Awaitable[str]] | None = None
    probing: Callable[[], Awaitable[Protocol | None]] | None = None


@dataclass(slots=True)
class RunKnowledge:
    """What a view tells besides the run's messages. It is read when the run begins, and again where a call needs it.

    `summary`, `topics` and `memories` stand for messages that the view leaves out; `mark` is the last entry that the
    summary covers, and `digest` its data if no model wrote it. `known` are the facts of the source from earlier runs.
    `fitting` finds the memories, `teaching` the business `terms`, and `describing` reads the `schema` that the SQL
    protocol shows.
    """

    summary: str = ""
    digest: Mapping[str, Any] = field(default_factory=dict)
    topics: Sequence[str] = ()
    mark: int = 0
    memories: tuple[Memory, ...] = ()
    known: Facts | None = None
    terms: Sequence[str] = ()
    schema: SchemaText | None = None
    fitting: Callable[[], Awaitable[tuple[Memory, ...]]] | None = None
    teaching: Callable[[], Awaitable[Sequence[str]]] | None = None
    describing: Callable[[], Awaitable[None]] | None = None

    @property
    def recalled(self) -> str:
        lines = {memory.id: as_line(memory) for memory in self.memories}
        return format_memories(lines, list(lines))

    @property
    def uses(self) -> list[Used]:
        return [Used(memory.id, "given", as_line(memory)) for memory in self.memories]

    def drop_memories(self, ids: Sequence[str]) -> None:
        self.memories = tuple(memory for memory in self.memories if memory.id not in ids)


@dataclass(slots=True)
class ViewState:
    """The view of the current model call. `runs/views.py` writes it.

    `past` is the model call before, whose view the next one extends, and `viewed` the view of this call; the view of an
    answering is not extended. `digests` are the summary and the notes of the last view, and `budget` the tokens that
    its messages could have. If the window is too small for the prompt, it `is_cut`, and tools are described `in_short`.
    `size` is that of this call's view, and `sizes` are those of the run's calls that got a reply.
    """

    past: PreviousCall | None = None
    viewed: PreviousCall | None = None
    digests: tuple[str, Mapping[How, str]] = ("", {})
    budget: int = 0
    system_prompt: str = ""
    in_short: bool = False
    is_cut: bool = False
    size: ViewSize | None = None
    sizes: list[ViewSize] = field(default_factory=list)

    def note_size(self) -> None:
        """Note that the call got its reply with this view."""
        if self.size is not None:
            self.size.count()
            self.sizes.append(self.size)
            self.size = None


@dataclass(slots=True)
class ReplyState:
    """The current request and its reply. `runs/protocol.py` writes it, and the loop begins each.

    `spoken` is the form of the last call, and `sent` what it sent, as its protocol renders it. `offered` are the tools
    that it lists. With the SQL protocol the next call is either the `answering` or the writing of a statement.
    `prompts` are the ids of the prompts that this run has stored: a prompt of another run is deleted with that run.
    """

    message_id: str = field(default_factory=new_id)
    spoken: Spoken = "native"
    answering: bool = False
    offered: list[Tool] = field(default_factory=list)
    sent: Sequence[Message] = ()
    prompts: set[str] = field(default_factory=set)


@dataclass(slots=True)
class CallState:
    """The tool calls of the run. `runs/tool_calls.py` writes it.

    `queries` is the number of the thread's last query label, and `categories` are the kinds of tools that have run on
    the thread. `earlier` holds, by call id, the tool steps of this run in a process that died; `approvals` are the
    decisions about its calls, and `awaited` the calls that wait for one.
    """

    queries: int = 0
    categories: set[str] = field(default_factory=set)
    earlier: Mapping[str, Step] = field(default_factory=dict)
    approvals: Mapping[str, Approval] = field(default_factory=dict)
    awaited: dict[str, Approval] = field(default_factory=dict)


@dataclass(slots=True)
class RunContext:
    """One run in execution. What changes is parted by who writes it: `model`, `knowledge`, `view`, `reply`, `calls`.

    `settings` are those of its models, and `own_settings` the fields of the agent's config that override some of them.
    `window` holds its messages, and `windows` reads and learns the sizes of context windows. `prompt` makes the system
    prompt, up to a length (`runs/views.py`). `agent_name` is for people. The rows of a query are the answer where the
    run `states_rows`, and the user wants no more. `allowance` pays for the model calls of a run that an agent asked
    for. `missing` says why each tool that the agent lacks is missing. `source_notes` are the notes on its source, in a
    thread's first run on it. `rights` are those of who asked.
    """

    store: Driver
    hold: Hold
    stream: EventStream
    run: Run
    tools: Mapping[str, Tool]
    prompt: Callable[..., str]
    settings: Settings
    windows: ContextWindows
    window: Window
    model: ModelState
    knowledge: RunKnowledge
    view: ViewState
    calls: CallState
    rights: RunRights
    reply: ReplyState = field(default_factory=ReplyState)
    own_settings: Mapping[str, str] = field(default_factory=dict)
    states_rows: bool = False
    agent_name: str = ""
    allowance: Allowance | None = None
    missing: Sequence[str] = ()
    source_notes: Sequence[str] = ()
    _fixed: tuple[str, list[Tool], int] = ("", [], 0)
    _live: dict[str, LiveText] = field(default_factory=dict)

    @property
    def lease(self) -> Lease:
        return self.hold.lease

    @property
    def facts(self) -> Facts | None:
        if self.knowledge.known is None or self.model.protocol == "sql":  # whose prompt has the schema
            return None
        found = self.knowledge.known.copy()
        own = [spot for spot in self.window.own_spots if spot.exploring_observation is not None]
        for spot in own:
            found.learn(str(spot.message.name), spot.exploring_observation or {})
        return found

    @property
    def is_structured(self) -> bool:
        """Whether the text of the next reply is for Longthread, and not for the user: JSON, or a statement."""
        return self.model.protocol == "json" or (self.model.protocol == "sql" and not self.reply.answering)

    async def publish_text(self, text: str) -> None:
        """Publish the text of a reply as it comes, but no thinking, and nothing that may become a call."""
        if self.is_structured:
            return
        told, withdrawn = self._live_text().take(storable(text))
        with contextlib.suppress(LeaseLost):  # the next write raises it
            if withdrawn:
                await self.stream.withdraw_text(self.reply.message_id)
            if told:
                self.stream.publish_text(self.reply.message_id, told)

    async def end_text(self) -> None:
        """Publish what was held back of the current reply."""
        if self.is_structured or self.reply.message_id not in self._live:
            return
        if rest := self._live.pop(self.reply.message_id).rest():
            self.stream.publish_text(self.reply.message_id, rest)

    def _live_text(self) -> LiveText:
        """Return the text of the current reply. The model's last reply tells whether thinking begins without a tag."""
        if self.reply.message_id not in self._live:
            last = next((each for each in reversed(self.window.messages) if each.role == "assistant"), None)
            raw = str(last.note.get("raw", "")) if last is not None else ""
            self._live = {self.reply.message_id: LiveText(expects_thinking=ends_unopened(raw))}
        return self._live[self.reply.message_id]

    def choose_offered(self) -> None:
        """Choose the tools that the next request lists. They stay the same until it is stored."""
        self.reply.offered = [tool for tool in self.tools.values() if tool.is_offered]

    @property
    def fixed_tokens(self) -> int:
        """The tokens reserved for the prompt and the tools, native or in words."""
        if self._fixed[:2] != (self.view.system_prompt, self.reply.offered):
            words = 0 if self.model.protocol == "sql" else estimate(instructions(self.reply.offered), self.model.family)
            fixed = max(self.prompt_tokens, estimate(self.view.system_prompt, self.model.family) + words)
            self._fixed = self.view.system_prompt, self.reply.offered, fixed
        return self._fixed[2]

    @property
    def prompt_tokens(self) -> int:
        tools = 0
        if self.model.protocol != "sql":  # it offers none
            tools = tools_tokens(self._tools_json(), len(self.reply.offered), self.model.family)
        return estimate(self.view.system_prompt, self.model.family) + tools

    def _tools_json(self) -> str:
        tools = [[tool.name, tool.description, dict(tool.parameters)] for tool in self.reply.offered]
        return json.dumps(tools, ensure_ascii=False)

    def call_ids(self) -> set[str | None]:
        return {call for spot in self.window.spots for call in spot.item.calls}

    async def write(self, tx: Transaction, held: LeaseCheck, messages: Sequence[Message]) -> list[Entry]:
        """Add messages of the run to the log, in a transaction that has checked the lease. Call `note` after it."""
        drafts = [draft_of(message, run_id=self.run.id) for message in messages]
        return await log.append(tx, self.lease.thread_id, drafts, tip=held.tip, size=held.size, goes_on=True)

    def note(self, entries: Sequence[Entry], messages: Sequence[Message]) -> None:
        """Add messages to the window that are in the log now."""
        for entry, message in zip(entries, messages, strict=True):
            self.window.add(entry, message)


def elapsed_ms(clock: float) -> int:
    return round((time.monotonic() - clock) * 1000)
