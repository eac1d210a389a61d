"""Compose what a model call is sent: the room for messages, a view of them, and the prompt with it."""

from __future__ import annotations

import hashlib
import json
import zlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from math import ceil
from typing import TYPE_CHECKING, Any

from longthread.context.view_size import ViewSize
from longthread.context.window import (
    NOTES,
    FittedView,
    PreviousCall,
    ViewRequest,
    WindowMessage,
    fit,
)
from longthread.llm.providers import window_setting
from longthread.llm.sql_protocol import place_of_answered, write_message
from longthread.memory.user_memories import format_memories
from longthread.model.catalog import RECALL_TOOL
from longthread.model.run import How, Run, Step, segments_of
from longthread.runs.run_context import RunContext, Spoken
from longthread.store import memories, runs
from longthread.store.driver import Transaction
from longthread.store.rows import Decoding
from longthread.tools.tool import Observation, Tool
from longthread.view.compose import RECALLED, DigestMessage, ViewConfig
from longthread.view.tokens import (
    LEAST,
    SAFETY,
    USUAL_LEAST,
    estimate,
    extra_budget,
    free_tokens,
    least_of,
    reply_reserve,
    too_small,
)

if TYPE_CHECKING:
    from longthread.tools.analysis.source import Source  # which needs sqlglot


_LOOKED_BACK = 8
"""Steps before a run's first to search for the call before it."""
_INSTRUCTION, _INSTRUCTIONS = 300, 3
"""Characters of a message that may be an instruction for answers, and how many of them an answering sees."""
_TABLES, _USUAL_REPLY, _COMMON = 3, 512, 8_192
"""Tables that a question needs, at most the widest ones; tokens of a usual reply; a window that models mostly have."""
_SHORT = 80
"""Characters of a tool's description in a window that is too small for more."""
_LEAST_PROMPT = 128
"""Tokens of instructions in any window: fewer would be useless."""
_ROUNDED = 4
"""Tokens that rounding may take, where estimates are raised by a factor."""


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
        family=context.model.family,
        write=write_message if context.model.protocol == "sql" else None,
        config=config,
        past=context.view.past,
        summary=context.knowledge.summary,
        digest=context.knowledge.digest,
        topics=context.knowledge.topics if RECALL_TOOL in context.tools else (),
        recalled=context.knowledge.recalled,
        mark=context.knowledge.mark,
        facts=context.facts,
        terms=context.knowledge.terms,
        extra=extra_budget(context.model.tokens, budget),
    )
    spots = context.window.spots
    if context.reply.answering:
        own = context.window.own_spots[place_of_answered(context.window.own) :]
        before = spots[: context.window.question]
        spots = [*find_instructions(before), spots[context.window.question], *own]
        wanted = replace(wanted, write=None, past=None, summary="", digest={}, topics=(), facts=None, terms=())
    fitted = fit(spots, wanted)
    tokens = context.prompt_tokens + fitted.view.tokens
    offered = frozenset(tool.name for tool in context.reply.offered if context.model.protocol != "sql")
    context.view.viewed = PreviousCall(fitted.segments, fitted.view.summary.text, tokens, tools=offered)
    if not context.reply.answering:
        context.view.past = context.view.viewed
    context.view.digests = fitted.view.summary.text, fitted.notes
    context.view.budget = budget
    context.view.size = ViewSize.of(fitted, spots, wanted)
    return fitted


def find_instructions(spots: Sequence[WindowMessage]) -> list[WindowMessage]:
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
    while (
        context.knowledge.memories
        and DigestMessage.of(f"{RECALLED}\n{context.knowledge.recalled}", context.model.family).tokens > most
    ):
        context.knowledge.memories = context.knowledge.memories[:-1]


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
    last, prompt = calls[-1], await Prompt.load_stored(tx, calls[-1])
    if prompt is not None and prompt.spoken == "answer" and len(calls) > 1:  # it saw its question alone
        last, prompt = calls[-2], await Prompt.load_stored(tx, calls[-2])
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

    `summary` stands before the messages and `notes` after them, by their names in the manifest. Of the note that lists
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
        ids = tuple(memory.id for memory in context.knowledge.memories)
        tools = () if context.reply.spoken in ("sql", "answer") else tuple(context.reply.offered)
        return cls(context.view.system_prompt, tools, context.reply.spoken, *context.view.digests, ids)

    @property
    def id(self) -> str:
        """A hash of the content; if there are digests, followed by a hash of these."""
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
            if name not in context.reply.prompts:
                await runs.save_prompt(tx, context.lease.thread_id, name, zlib.compress(body))
        if context.knowledge.memories:
            await memories.note_uses(tx, context.lease.thread_id, context.run.id, context.knowledge.uses)

    @classmethod
    async def load_stored(cls, tx: Transaction, step: Step) -> Prompt | None:
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
        prompt = await cls.load_stored(tx, step)
        if prompt is None or not prompt.memories:
            return prompt
        uses = await memories.uses(tx, step.thread_id, step.run_id, user_id=None)
        text = format_memories({use.memory_id: use.shown for use in uses}, prompt.memories)
        return replace(prompt, notes={**prompt.notes, "recalled": f"{RECALLED}\n{text}"})


def _json(data: Mapping[str, Any]) -> bytes:
    return json.dumps(data, ensure_ascii=False, separators=(",", ":")).encode()


def _hash(body: bytes) -> str:
    return hashlib.sha256(body).hexdigest()[:16]


async def _not_called(arguments: Any) -> Observation:
    raise RuntimeError("a tool of a past call is not called again")


def budget_of(context: RunContext) -> int:
    """Return the estimated tokens that the messages of the next call may have.

    In a small window the descriptions of the tools are cut first. The system prompt stays whole as long as messages
    have room next to it; then its middle is cut. Raises WindowTooSmall: even so there is no room.
    """
    if not context.view.system_prompt or _room(context) < LEAST:
        _make_room(context)
    return _room(context)


async def small_window_note(context: RunContext, source: Source) -> str:
    """Say that the window is small for a source, and what to set; empty if it is not. Called before a run's first view.
    Raises SourceError."""
    tables = (await source.schema()).tables.values()
    sizes = sorted(estimate("\n".join(f"{each.name} {each.type}" for each in table.columns)) for table in tables)
    fixed = estimate(context.prompt(), context.model.family) + context.prompt_tokens
    fixed -= (
        estimate(context.knowledge.schema.text, context.model.family) if context.knowledge.schema is not None else 0
    )
    needed = int((fixed + USUAL_LEAST + _USUAL_REPLY + sum(sizes[-_TABLES:])) * context.model.factor / (1 - SAFETY))
    if needed <= context.model.tokens:
        return ""
    enough = max(_COMMON, 1 << (needed - 1).bit_length())
    advice = [f"set MEMORY_CONTEXT_WINDOW={enough}"] if context.settings.memory_context_window else []
    server = context.windows.server_of(context.run.model)
    advice.append(f"raise {window_setting(server)}" if server else "use a model that has them (Ollama: `num_ctx`)")
    return (
        f"The context window of {context.run.model}, {context.model.tokens:,} tokens, is small for this source: "
        f"columns and rows may be left out. Give it {enough:,}: {', and '.join(advice)}."
    )


def _make_room(context: RunContext) -> None:
    context.view.system_prompt = context.prompt()
    if _room(context) < least_of(context.model.tokens) and not context.view.in_short:
        context.view.in_short = True
        context.tools = {name: _in_short(tool) for name, tool in context.tools.items()}
        context.choose_offered()
    if _room(context) < LEAST:
        context.view.is_cut = True
        context.choose_offered()
        room = _room(context)
        most = max(_LEAST_PROMPT, estimate(context.view.system_prompt) + room - LEAST - _ROUNDED)
        context.view.system_prompt = context.prompt(most=most)
    if (room := _room(context)) < LEAST:
        fixed = int(context.fixed_tokens * context.model.factor)
        raise too_small(context.run.model, context.model.tokens, output=context.model.output, fixed=fixed)


def _room(context: RunContext) -> int:
    fixed = int(context.fixed_tokens * context.model.factor)
    return int((free_tokens(context.model.tokens) - fixed - reply_tokens(context)) / context.model.factor)


def reply_tokens(context: RunContext) -> int:
    """Return the tokens that the reply may have, as the provider counts them."""
    fixed, least = (
        int(context.fixed_tokens * context.model.factor),
        ceil(least_of(context.model.tokens) * context.model.factor),
    )
    return reply_reserve(context.model.tokens, output=context.model.output, fixed=fixed, least=least)


def _in_short(tool: Tool) -> Tool:
    """Return the tool with the beginning of its description; parameters keep only their names and types."""
    about = tool.description if len(tool.description) <= _SHORT else f"{tool.description[: _SHORT - 1]}…"
    return replace(tool, description=about, parameters=_drop_descriptions(tool.parameters))


def _drop_descriptions(schema: Any) -> Any:
    if isinstance(schema, list):
        return [_drop_descriptions(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    is_text = isinstance(schema.get("description"), str)  # else it is a parameter of that name
    return {key: _drop_descriptions(value) for key, value in schema.items() if key != "description" or not is_text}
