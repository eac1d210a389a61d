"""The state that the parts of one run share."""

from __future__ import annotations

import contextlib
import json
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from longthread.context.window import PreviousCall, Window
from longthread.errors import LeaseLost
from longthread.llm.json_protocol import instructions
from longthread.llm.model_facts import ContextWindows
from longthread.llm.reply_text import LiveText, ends_unopened
from longthread.memory.relevant_memories import as_line, listed
from longthread.messages.entries import draft_of
from longthread.messages.fields import storable
from longthread.messages.message import Message
from longthread.model.approval import Approval
from longthread.model.entry import Entry
from longthread.model.fold import Facts
from longthread.model.ids import new_id
from longthread.model.manifest import How
from longthread.model.memory import Memory, Used
from longthread.model.run import Protocol, Run, Step
from longthread.runs.assignment import Allowance
from longthread.runs.run_messages import note_of
from longthread.runs.streams.events import EventStream
from longthread.runs.workers.worker import Hold
from longthread.settings import Settings
from longthread.store import log
from longthread.store.driver import Driver, Transaction
from longthread.store.runs import Lease, LeaseCheck
from longthread.tools.analysis.schema_prompt.ddl_text import SchemaText
from longthread.tools.tool import Tool
from longthread.view.tokens import ANY, estimate, tools_tokens

Spoken = Literal["native", "json", "sql", "answer"]
"""The form of a model call: native tool calls, JSON in text, SQL in a fence, or the answer from the rows of that."""


@dataclass(slots=True)
class RunContext:
    """One run in execution.

    `settings` are those of its models, and `own_settings` the fields of the agent's config that override some of them;
    `model` is the one that was asked last.

    `window` holds its messages. `tokens` is the size of the model's context window, which `windows` reads and learns;
    `output` is the most tokens of a reply. `earlier` holds, by call id, the tool steps of this run in a process that
    died; `approvals` the decisions about its calls, `asked` the calls that it now waits for. `queries` is the number of
    the thread's last query label. `spoken` is the protocol of the last model call. `prompts` are the ids of the prompts
    that this run has stored: others may be deleted with the runs that named them. `categories` are the kinds of tools
    that have run on the thread.

    `family` is that of the model's tokenizer, and `factor` corrects its estimates; `counted` are the most tokens that
    its provider counted in a call. `past` is the model call before, whose view the next one extends, and `viewed` the
    view of this call: an answering's is not extended. `summary`, `topics` and `memories` stand in a view for what is
    not in it; `mark` is the last entry that the summary covers, `digest` its data if no model wrote it, and `fitting`
    finds the memories. `known` are the facts of the source from before the run; `teaching` finds its business `terms`,
    and `describing` reads the `schema` for the SQL protocol, where the next call is either the `answering` or the
    writing; the rows are the answer where the run `states_rows`, and the user wants no more; `sizing` says in a
    thread's first run whether the window is small for the source, and `probing` finds how a model of one's own server
    speaks best. `digests` are the summary and the notes of the last view, and `budget` the tokens that its messages
    could have. `allowance` pays for the model calls of a run that an agent asked for. `missing` says why each tool that
    the agent lacks is missing. `prompt` makes the `system_prompt`, up to a length (`runs/views.py`). If the window is
    too small for it, it is `cut`, and tools are described `in_short`. `source_notes` are the notes on its source, in a
    thread's first run on it.
    """

    store: Driver
    hold: Hold
    stream: EventStream
    run: Run
    tools: Mapping[str, Tool]
    prompt: Callable[..., str]
    settings: Settings
    tokens: int
    output: int
    windows: ContextWindows
    window: Window
    protocol: Protocol
    own_settings: Mapping[str, str] = field(default_factory=dict)
    model: str = ""
    queries: int = 0
    earlier: Mapping[str, Step] = field(default_factory=dict)
    approvals: Mapping[str, Approval] = field(default_factory=dict)
    asked: dict[str, Approval] = field(default_factory=dict)
    prompts: set[str] = field(default_factory=set)
    categories: set[str] = field(default_factory=set)
    message_id: str = field(default_factory=new_id)
    spoken: Spoken = "native"
    family: str = ANY
    factor: float = 1.0
    counted: int = 0
    past: PreviousCall | None = None
    viewed: PreviousCall | None = None
    summary: str = ""
    digest: Mapping[str, Any] = field(default_factory=dict)
    topics: Sequence[str] = ()
    memories: tuple[Memory, ...] = ()
    fitting: Callable[[], Awaitable[tuple[Memory, ...]]] | None = None
    teaching: Callable[[], Awaitable[Sequence[str]]] | None = None
    describing: Callable[[], Awaitable[None]] | None = None
    sizing: Callable[[], Awaitable[str]] | None = None
    probing: Callable[[], Awaitable[Protocol | None]] | None = None
    mark: int = 0
    digests: tuple[str, Mapping[How, str]] = ("", {})
    known: Facts | None = None
    terms: Sequence[str] = ()
    schema: SchemaText | None = None
    answering: bool = False
    states_rows: bool = False
    budget: int = 0
    allowance: Allowance | None = None
    missing: Sequence[str] = ()
    source_notes: Sequence[str] = ()
    system_prompt: str = ""
    in_short: bool = False
    cut: bool = False
    offered: list[Tool] = field(default_factory=list)
    sent: Sequence[Message] = ()
    """What the last request sent, as its protocol renders it."""
    _told: tuple[str, list[Tool], int] = ("", [], 0)
    _live: dict[str, LiveText] = field(default_factory=dict)

    @property
    def lease(self) -> Lease:
        return self.hold.lease

    @property
    def recalled(self) -> str:
        lines = {memory.id: as_line(memory) for memory in self.memories}
        return listed(lines, list(lines))

    @property
    def facts(self) -> Facts | None:
        if self.known is None or self.protocol == "sql":  # whose prompt has the schema
            return None
        found, own = (
            self.known.copy(),
            [spot for spot in self.window.own_spots if spot.exploring_observation is not None],
        )
        for spot in own:
            found.learn(str(spot.message.name), spot.exploring_observation or {})
        return found

    def drop_memories(self, ids: Sequence[str]) -> None:
        self.memories = tuple(memory for memory in self.memories if memory.id not in ids)

    @property
    def uses(self) -> list[Used]:
        return [Used(memory.id, "given", as_line(memory)) for memory in self.memories]

    @property
    def is_structured(self) -> bool:
        """Whether the text of the next reply is for Longthread, and not for the user: JSON, or a statement."""
        return self.protocol == "json" or (self.protocol == "sql" and not self.answering)

    async def publish_text(self, text: str) -> None:
        """Publish the text of a reply as it comes, but no thinking, and nothing that may become a call."""
        if self.is_structured:
            return
        told, withdrawn = self._live_text().take(storable(text))
        with contextlib.suppress(LeaseLost):  # the next write raises it
            if withdrawn:
                await self.stream.withdraw_text(self.message_id)
            if told:
                self.stream.publish_text(self.message_id, told)

    async def end_text(self) -> None:
        """Publish what was held back of the current reply."""
        if self.is_structured or self.message_id not in self._live:
            return
        if rest := self._live.pop(self.message_id).rest():
            self.stream.publish_text(self.message_id, rest)

    def _live_text(self) -> LiveText:
        """Return the text of the current reply. The model's last reply tells whether thinking begins without a tag."""
        if self.message_id not in self._live:
            last = next((each for each in reversed(self.window.messages) if each.role == "assistant"), None)
            raw = str(note_of(last).get("raw", "")) if last is not None else ""
            self._live = {self.message_id: LiveText(expects_thinking=ends_unopened(raw))}
        return self._live[self.message_id]

    def choose_offered(self) -> None:
        """Choose the tools that the next request lists. They stay the same until it is stored."""
        self.offered = [tool for tool in self.tools.values() if tool.is_offered]

    @property
    def fixed_tokens(self) -> int:
        """The tokens reserved for the prompt and the tools, native or in words."""
        if self._told[:2] != (self.system_prompt, self.offered):
            words = 0 if self.protocol == "sql" else estimate(instructions(self.offered), self.family)
            fixed = max(self.prompt_tokens, estimate(self.system_prompt, self.family) + words)
            self._told = self.system_prompt, self.offered, fixed
        return self._told[2]

    @property
    def prompt_tokens(self) -> int:
        tools = 0
        if self.protocol != "sql":  # it offers none
            tools = tools_tokens(self._tools_json(), len(self.offered), self.family)
        return estimate(self.system_prompt, self.family) + tools

    def _tools_json(self) -> str:
        tools = [[tool.name, tool.description, dict(tool.parameters)] for tool in self.offered]
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
