"""The built-in tools of a run beside those of its source, and when its requests offer them."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial

from longthread.builtin.chart import chart_tool
from longthread.builtin.memories import FORGET, REMEMBER, ReadMemories, RunMemories
from longthread.builtin.offers import ON_DEMAND, asked_for
from longthread.builtin.recall import PageRoom, recall_tool
from longthread.context.window import WindowMessage
from longthread.errors import LongthreadError
from longthread.memory.memories import Memories
from longthread.memory.relevant_memories import fitting
from longthread.memory.search.keywords import EntryPlace
from longthread.model.builtin import LOAD_SKILL, RECALL_TOOL
from longthread.model.fold import PARSE_ERROR
from longthread.model.manifest import NO_ROOM
from longthread.model.memory import Memory, Origin
from longthread.runs.run_context import RunContext
from longthread.runs.services.shared import RunServices
from longthread.runs.start import StartedRun
from longthread.store.index.recall import Scope
from longthread.store.memories import Owner
from longthread.tools.tool import Tool

_logger = logging.getLogger(__name__)

_OWN_WORDS = frozenset({REMEMBER, FORGET, LOAD_SKILL, PARSE_ERROR})
"""Tools whose results nobody else has written."""
_OF_SCHEMA = frozenset({"list_tables", "describe_table"})


def read_by(context: RunContext) -> ReadMemories | None:
    """Return what the model has read in this conversation that others may have written: tool results. None if
    nothing."""
    spots = [spot for spot in context.window.spots if spot.entry.role == "tool"]
    results = [spot for spot in reversed(spots) if spot.message.name not in _OWN_WORDS]
    names = dict.fromkeys(_named(spot) for spot in results)
    if context.summary:  # of messages that are no longer in the window
        names["the summary of the conversation"] = None
    own = {spot.entry.seq for spot in context.window.own_spots}
    seqs = tuple(spot.entry.seq for spot in reversed(results) if spot.entry.seq in own)
    return ReadMemories(Origin(context.run.source, tuple(names)), seqs) if names else None


def _named(spot: WindowMessage) -> str:
    """Name a result as people see it: `run_sql q1`."""
    query = spot.query.label if spot.query is not None else ""
    return f"{spot.message.name} {query}".strip()


def own_tools(services: RunServices, begun: StartedRun, context: RunContext, owner: Owner) -> Sequence[Tool]:
    thread_id, asked = begun.run.thread_id, begun.window.spots[begun.window.question].entry.seq
    remembering = RunMemories(
        store=services.store,
        memories=services.memories,
        owner=owner,
        lease=begun.hold.lease,
        seqs=(asked,),
        read=lambda: read_by(context),
        typed=lambda: [spot.message.text for spot in context.window.spots if spot.entry.role == "user"],
        approval=services.settings.remember_approval,
        dropped=context.drop_memories,
    )
    recall = recall_tool(
        services.recaller,
        Scope(owner.user_id, thread_id),
        thread_id=thread_id,
        agent_id=owner.agent_id,
        top_k=services.settings.memory_recall_top_k,
        before=EntryPlace(thread_id, asked),
        look_up=remembering.look_up,
        room=lambda: PageRoom(context.budget, context.family),
    )
    return (chart_tool(services.store, begun.thread, begun.window), recall, *remembering.tools())


def offered_when_needed(tools: Sequence[Tool], context: RunContext) -> list[Tool]:
    """Return the tools of the analyst: those of `own_tools` are offered where the conversation needs them, or the call
    before had them, and those that tell of the schema where the prompt does not show all of it."""
    needed = asked_for(spot.entry for spot in context.window.spots)
    if context.past is not None:  # also what was asked for before the window
        needed |= context.past.tools

    def needs(tool: Tool) -> bool | Callable[[], bool]:
        if tool.name in _OF_SCHEMA:
            return lambda: not tells_whole_schema(context)
        if tool.name not in ON_DEMAND or tool.name in needed:
            return True
        return partial(has_more_than_shown, context) if tool.name == RECALL_TOOL else False

    return [replace(tool, offered=needs(tool)) for tool in tools]


def tells_whole_schema(context: RunContext) -> bool:
    return context.schema is not None and context.schema.is_whole and not context.cut


def has_more_than_shown(context: RunContext) -> bool:
    """Return whether the conversation has messages that the view before left out, or a summary of them."""
    left_out = context.past.segments if context.past is not None else ()
    return (
        bool(context.summary or context.topics)
        or context.window.spots[0].entry.parent_seq > 0
        or any(each.how == "left out" and each.why in NO_ROOM for each in left_out)
    )


async def fitting_memories(memories: Memories, owner: Owner, question: str) -> tuple[Memory, ...]:
    """Return the memories that fit a question. If they cannot be read, the run goes on without them."""
    try:
        return tuple(await fitting(memories, owner, question))
    except LongthreadError as error:
        _logger.warning("A run has no memories: %s", error)
        return ()
