"""The view of the last model call of a LangGraph thread, as `MemoryMiddleware` stores it in the state."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from langchain_core.messages import BaseMessage

from longthread.context.window import as_answered
from longthread.langgraph.memory.message_view import StateMessages
from longthread.langgraph.memory.message_view import StoredView as Kept
from longthread.langgraph.saver.async_saver import AsyncLongthreadSaver
from longthread.langgraph.saver.delta import delta_messages
from longthread.langgraph.saver.thread_cache import CONVERSATION
from longthread.store import checkpoints, log
from longthread.store.driver import Driver
from longthread.view.manifest import ViewEntry, shown
from longthread.view.tokens import estimate, family_of


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
    kept = Kept.from_json(values.get("memory_view"))
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
            part = shown(segment, item)
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
