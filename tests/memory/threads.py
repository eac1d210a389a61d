"""Threads to prune: turns of a question, a call with its result, and an answer."""

from __future__ import annotations

import json
from collections.abc import Sequence

from longthread.memory.summary.topics import Topic
from longthread.model.entry import Draft, Entry, ToolCall
from longthread.store import log, summaries
from longthread.store.driver import Driver
from longthread.store.summaries import ThreadSummary


def turn(name: str, *, chinese: bool = False, calls: int = 1) -> list[Draft]:
    """The entries of a turn, whose ids and texts follow from its name."""
    asked = (
        f"第{name}季度的销售额是多少？预算是{name}00元。"
        if chinese
        else f"How about {name}? The limit is {name}00 euros."
    )
    drafts = [Draft(f"{name}-q", "user", asked, metadata={"kind": "question", "source": "s", "fingerprint": "f"})]
    for number in range(calls):
        # Models number their calls as they like: each turn's have the same ids.
        call = ToolCall(f"call_{number}", "run_sql", {"sql": f"SELECT '{name}', {number}"})
        result = {"ok": True, "data": {"query": f"q{number}", "sql": "SELECT", "columns": ["a"], "rows": [[name]]}}
        drafts.append(Draft(f"{name}-c{number}", "assistant", "", tool_calls=(call,)))
        drafts.append(Draft(f"{name}-r{number}", "tool", json.dumps(result), tool_call_id=call.id))
    return [*drafts, Draft(f"{name}-a", "assistant", f"It is {name}.", metadata={"kind": "answer"})]


async def write(store: Driver, thread_id: str, drafts: Sequence[Draft], *, parent: int | None = None) -> list[Entry]:
    """Add entries to a thread of `u`'s, which is made where there is none."""
    async with store.writing() as tx:
        await log.create_thread(tx, thread_id, user_id="u")
        return await log.extend(tx, thread_id, drafts, parent=parent)


async def talk(store: Driver, thread_id: str, turns: int, *, first: int = 1, chinese: bool = False) -> list[Entry]:
    """Add turns of four entries."""
    drafts = [draft for n in range(first, first + turns) for draft in turn(str(n), chinese=chinese)]
    return await write(store, thread_id, drafts)


async def kept_of(store: Driver, thread_id: str) -> ThreadSummary | None:
    """What is kept of a thread, with its digest."""
    async with store.reading() as tx:
        found = await summaries.find_thread(tx, thread_id)
    return found.kept if found else None


async def topics_of(store: Driver, thread_id: str) -> list[str]:
    """A thread's topics as they are listed."""
    async with store.reading() as tx:
        found = await summaries.find(tx, thread_id)
    return list(found.topics) if found else []


async def branch_of(store: Driver, thread_id: str) -> list[Entry]:
    """All entries of a thread's active branch."""
    async with store.reading() as tx:
        thread = await log.find_thread(tx, thread_id, user_id="u")
        return await log.branch(tx, thread_id, thread.tip, limit=10_000)


def counted(texts: Sequence[str], known: Sequence[str]) -> list[Topic]:
    """Topics that can be counted: questions and answers."""
    kinds = ["questions" if text[0] in "H第" else "answers" for text in texts if text[:1] in {"H", "第", "I"}]
    return [Topic(kind, kinds.count(kind)) for kind in dict.fromkeys(kinds)]
