"""What a model call is sent: a view of the run's messages, and the prompt with it. Both can be reconstructed."""

from __future__ import annotations

import hashlib
import json
import zlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import chain, islice
from typing import Any

from longthread.context.window import (
    NOTES,
    FittedView,
    PreviousCall,
    ViewRequest,
    WindowMessage,
    as_answered,
    digest_messages,
    fit,
    note_messages,
    shown_of,
    spots_of,
)
from longthread.errors import EntryNotFound
from longthread.llm.sql_protocol import place_of_answered, render_answering, render_writing
from longthread.memory.index.indexer import RECALL_TOOL
from longthread.memory.relevant_memories import listed
from longthread.messages.message import Message
from longthread.model.entry import Entry
from longthread.model.manifest import TEXTS, How, Segment, segments_of
from longthread.model.run import Run, Step
from longthread.runs.protocol import as_text, without_malformed
from longthread.runs.run_context import RunContext, Spoken
from longthread.runs.view_budget import budget_of
from longthread.store import log, memories, runs
from longthread.store.decoding import Decoding
from longthread.store.driver import Transaction
from longthread.tools.tool import Observation, Tool
from longthread.view.budget import extra_budget
from longthread.view.compose import RECALLED, DigestMessage, ViewConfig
from longthread.view.items import units_of
from longthread.view.manifest import shown

_LOOKED_BACK = 8
"""Steps before a run's first to search for the call before it."""
_INSTRUCTION, _INSTRUCTIONS = 300, 3
"""Characters of a message that may be an instruction for answers, and how many of them an answering sees."""


def view_of(context: RunContext) -> FittedView:
    """Compose the next model call's view of the run's messages, with its manifest, and note it in the context.
    Raises WindowTooSmall: prompt and tools leave no room for messages."""
    settings, budget = context.settings, budget_of(context)
    config = ViewConfig(
        full_recent=settings.memory_full_recent_count,
        tool_max=settings.memory_condensed_tool_max,
        max_length=settings.message_compress_max_length,
    )
    _leave_room(context, int(budget * config.summary))
    wanted = ViewRequest(
        budget=budget,
        family=context.family,
        config=config,
        past=context.past,
        summary=context.summary,
        digest=context.digest,
        topics=context.topics if RECALL_TOOL in context.tools else (),
        recalled=context.recalled,
        mark=context.mark,
        facts=context.facts,
        terms=context.terms,
        extra=extra_budget(context.tokens, budget),
    )
    if context.answering:
        own = context.window.own_spots[place_of_answered(context.window.own) :]
        before = context.window.spots[: context.window.question]
        spots = [*_instructing(before), context.window.spots[context.window.question], *own]
        wanted = replace(wanted, past=None, summary="", digest={}, topics=(), facts=None, terms=())
        fitted = fit(spots, wanted)
    else:
        fitted = fit(context.window.spots, wanted)
    tokens = context.prompt_tokens + fitted.view.tokens
    offered = frozenset(tool.name for tool in context.offered if context.protocol != "sql")
    context.viewed = PreviousCall(fitted.segments, fitted.view.summary.text, tokens, tools=offered)
    if not context.answering:
        context.past = context.viewed
    context.digests = fitted.view.summary.text, fitted.notes
    context.budget = budget
    return fitted


def _instructing(spots: Sequence[WindowMessage]) -> list[WindowMessage]:
    """Return the newest messages of the user that no query answered: "amounts in thousands of euros" holds for the
    answers that follow."""
    found: list[WindowMessage] = []
    roles: set[str] = set()
    for spot in reversed(spots):
        if spot.entry.role != "user":
            roles.add(spot.entry.role)
            continue
        # Without any answer it is a question whose run failed.
        if roles == {"assistant"} and len(spot.entry.text) <= _INSTRUCTION:
            found.insert(0, spot)
        roles = set()
    return found[-_INSTRUCTIONS:]


def _leave_room(context: RunContext, most: int) -> None:
    """Drop the memories that have no room; the others are shown whole."""
    while context.memories and DigestMessage.of(f"{RECALLED}\n{context.recalled}", context.family).tokens > most:
        context.memories = context.memories[:-1]


async def past_of(tx: Transaction, run: Run | None) -> PreviousCall | None:
    """Return the last model call of a run, or of the thread before it: the next one extends its view, in any
    process."""
    if run is None:
        return None
    first = max(0, run.first_step - _LOOKED_BACK)
    steps = await runs.steps_of(tx, run)
    calls = [step for step in steps if segments_of(step.manifest)]
    if not calls:
        older = await runs.steps_between(tx, run.thread_id, first, run.first_step)
        calls = [step for step in older if segments_of(step.manifest)]
    if not calls:
        return None
    last, prompt = calls[-1], await Prompt.stored(tx, calls[-1])
    if prompt is not None and prompt.spoken == "answer" and len(calls) > 1:  # it saw its question alone
        last, prompt = calls[-2], await Prompt.stored(tx, calls[-2])
    return PreviousCall(
        segments=segments_of(last.manifest),
        summary=prompt.summary if prompt is not None else "",
        estimated=last.usage.get("estimated_tokens", 0),
        reported=last.usage.get("input_tokens", 0),
        model=run.model,
        tools=frozenset(tool.name for tool in prompt.tools) if prompt is not None else frozenset(),
    )


@dataclass(frozen=True)
class Prompt:
    """What goes with the messages of a model call: the instructions, the tools, and the protocol.

    `summary` stands before the messages and `notes` behind them, by their names in the manifest. Of the note that lists
    `memories` only the ids are stored: when memories are deleted, their text is too.
    """

    system: str
    tools: tuple[Tool, ...]
    spoken: Spoken
    summary: str = ""
    notes: Mapping[How, str] = field(default_factory=dict)
    memories: tuple[str, ...] = ()

    @classmethod
    def of(cls, context: RunContext) -> Prompt:
        ids = tuple(memory.id for memory in context.memories)
        tools = () if context.spoken in ("sql", "answer") else tuple(context.offered)
        return cls(context.system_prompt, tools, context.spoken, *context.digests, ids)

    @property
    def id(self) -> str:
        """A hash of the content; if there are digests, with a hash of these behind it."""
        return list(self.parts)[-1]

    @cached_property
    def parts(self) -> Mapping[str, bytes]:
        """What is stored, by id: the part that nearly all calls share, and the digests if any. The digests' id
        begins with the first id, so it names both."""
        tools = [[tool.name, tool.description, dict(tool.parameters)] for tool in self.tools]
        lasting = _json({"system": self.system, "tools": tools, "spoken": self.spoken})
        digests = {"summary": self.summary, **{how: self.notes.get(how, "") for how in NOTES}}
        digests |= {"recalled": ""} if self.memories else {}
        passing: dict[str, Any] = {name: text for name, text in digests.items() if text}
        passing |= {"memories": self.memories} if self.memories else {}
        found = {_hash(lasting): lasting}
        if passing:
            found[f"{_hash(lasting)}{runs.BETWEEN_PARTS}{_hash(_json(passing))}"] = _json(passing)
        return found

    async def save(self, tx: Transaction, context: RunContext) -> None:
        """Store it with the run's thread, once a run, and store which memories it shows."""
        for name, body in self.parts.items():
            if name not in context.prompts:
                await runs.save_prompt(tx, context.lease.thread_id, name, zlib.compress(body))
        if context.memories:
            await memories.note_uses(tx, context.lease.thread_id, context.run.id, context.uses)

    @classmethod
    async def stored(cls, tx: Transaction, step: Step) -> Prompt | None:
        """Return the prompt of a past model call, without the text of its memories; None if it is not stored. Raises
        RowDamaged."""
        if not step.prompt:
            return None
        bodies = []
        for name in dict.fromkeys([step.prompt.partition(runs.BETWEEN_PARTS)[0], step.prompt]):
            body = await runs.saved_prompt(tx, step.thread_id, name)
            if body is None:
                return None
            bodies.append(body)
        with Decoding(step.thread_id, "prompt", step.prompt):
            return cls.load(map(zlib.decompress, bodies))

    @classmethod
    def load(cls, parts: Iterable[bytes]) -> Prompt:
        """Return a prompt from its `parts`, without the text of its memories."""
        data: dict[str, Any] = {}
        for body in parts:
            data |= json.loads(body)
        tools = tuple(Tool(name, about, parameters, _not_called) for name, about, parameters in data["tools"])
        notes = {how: data[how] for how in NOTES if data.get(how)}
        return cls(
            data["system"], tools, data["spoken"], data.get("summary", ""), notes, tuple(data.get("memories", ()))
        )

    @classmethod
    async def of_step(cls, tx: Transaction, step: Step) -> Prompt | None:
        """Return the prompt of a past model call, with the text of its memories that still exist."""
        prompt = await cls.stored(tx, step)
        if prompt is None or not prompt.memories:
            return prompt
        uses = await memories.uses(tx, step.thread_id, step.run_id, user_id=None)
        text = listed({use.memory_id: use.shown for use in uses}, prompt.memories)
        return replace(prompt, notes={**prompt.notes, "recalled": f"{RECALLED}\n{text}"})


def _json(data: Mapping[str, Any]) -> bytes:
    return json.dumps(data, ensure_ascii=False, separators=(",", ":")).encode()


def _hash(body: bytes) -> str:
    return hashlib.sha256(body).hexdigest()[:16]


@dataclass(frozen=True, slots=True)
class Sent:
    """What a model call was sent: the messages, the system prompt first, and the tools that were offered."""

    messages: Sequence[Message]
    tools: Sequence[Tool]


async def sent(tx: Transaction, step: Step) -> Sent:
    """Reconstruct what a past model call was sent, from the entries, the manifest and the prompt. Raises
    EntryNotFound: some of it was deleted, or the step is not such a call."""
    prompt = await Prompt.of_step(tx, step)
    if prompt is None:
        raise EntryNotFound(thread=step.thread_id, entry=f"step {step.index}")
    middle = await _messages(tx, step)
    messages = without_malformed([*digest_messages(prompt.summary), *middle, *note_messages(prompt.notes)])
    if prompt.spoken == "native":
        return Sent([Message("system", prompt.system), *messages], prompt.tools)
    if prompt.spoken in ("sql", "answer"):
        shown = render_answering(messages) if prompt.spoken == "answer" else render_writing(messages)
        return Sent([Message("system", prompt.system), *shown], ())
    system, texts = as_text(prompt.system, messages, prompt.tools)
    return Sent([Message("system", system), *texts], ())


async def seen_between(
    tx: Transaction, thread_id: str, segments: Sequence[Segment], begins: int = 0
) -> list[Sequence[WindowMessage]]:
    """Return the messages of each segment as the view had them; none for a text. Entries before `begins` may be
    gone. Raises EntryNotFound: some of them were deleted."""
    found: list[Sequence[Entry]] = []
    for segment in segments:
        if segment.how in TEXTS:
            found.append(())
            continue
        entries = await log.entries_between(tx, thread_id, segment.first, segment.last)
        begin = max(begins, segment.first)
        if len(entries) <= segment.last - begin:
            raise EntryNotFound(thread=thread_id, entry=begin)
        found.append(entries)
    # A call may be in another segment than its result.
    spots = iter(as_answered(spots_of(chain.from_iterable(found))))
    return [list(islice(spots, len(entries))) for entries in found]


async def _messages(tx: Transaction, step: Step) -> list[Message]:
    parts, messages, segments = {}, {}, segments_of(step.manifest)
    for segment, spots in zip(segments, await seen_between(tx, step.thread_id, segments), strict=True):
        for spot in spots:
            part = shown(segment, spot.item)
            if part is not None:
                parts[spot.item.key], messages[spot.item.key] = part, spot.message
    # Results go right after their calls, wherever they are in the log.
    order = [item for unit in units_of([part.item for part in parts.values()]) for item in unit]
    return [shown_of(messages[item.key], parts[item.key]) for item in order]


async def _not_called(arguments: Any) -> Observation:
    raise RuntimeError("a tool of a past call is not called again")
