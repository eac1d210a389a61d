"""The tool that finds what was said before: recall."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from longthread.builtin.recall import branch_note
from longthread.errors import InvalidInput
from longthread.memory.index.entry_text import content_of, excerpt
from longthread.memory.index.indexer import SAID_AT
from longthread.memory.index.terms import find_telling_terms
from longthread.memory.search.recall import Hit, Question
from longthread.model.entry import Entry
from longthread.model.moment import moment_of
from longthread.model.thread import Scope
from longthread.runs.analyst import Analyst
from longthread.server.mcp.offer import (
    NUMBER,
    TEXT,
    THREAD,
    TRUTH,
    WHOLE,
    OfferedTool,
    ReportProgress,
    ToolAnswer,
    each,
    schema,
    text,
    whole,
)
from longthread.store import log
from longthread.tools.catalog.definitions import Catalog

_CHARS = 1_200
"""Characters of a found message that are shown, around what was looked for."""
_AROUND_CHARS = 300
_MOST = 50
_ENTRY = {"seq": WHOLE, "entry": TEXT, "role": TEXT, "name": TEXT, "time": TEXT, "text": TEXT}
_HIT = {
    "thread": TEXT,
    "title": TEXT,
    **_ENTRY,
    "score": NUMBER,
    "active": TRUTH | {"description": "False: it stands on a branch that was edited or said anew."},
    "around": each(_ENTRY, "seq", "role", "text"),
}


class RecallTool:
    """What was said in a user's conversations."""

    def __init__(self, analyst: Analyst, user: str) -> None:
        self._analyst = analyst
        self._user = user

    def offer(self) -> OfferedTool:
        """`recall`."""
        own = self._analyst.settings.memory_recall_top_k
        parameters = {
            "query": text("What to look for, in words that were probably used.", maxLength=4_000),
            "topic": text("Instead, or as well: only what was said about this topic.", maxLength=400),
            "thread": THREAD | {"description": "Only in this conversation; by default in all of the user's."},
            "agent": text("Only in conversations with this agent of the catalog, by its name."),
            "since": text("Only messages from this date or time on (ISO 8601)."),
            "until": text("Only messages up to the end of this date, or before this time (ISO 8601)."),
            "top_k": whole("How many messages at most.", least=1, most=_MOST, default=min(own, _MOST)),
            "around": whole("Messages on either side of each.", least=0, most=5, default=0),
            "other_branches": TRUTH
            | {"description": "Also what an edit or a retry took the place of; such messages are not active."},
        }
        found = each(_HIT, "thread", "title", "seq", "entry", "role", "time", "text", "score", "active")
        return OfferedTool(
            "recall",
            "Recall what was said",
            "Finds messages of the user's earlier conversations by what they say, the best first: facts, decisions, "
            "names, numbers, results. It goes by words, and by meaning where an embedder is configured.",
            schema(parameters),
            schema({"found": found, "warnings": {"type": "array", "items": TEXT}}, "found", "warnings"),
            self._recall,
        )

    async def _recall(self, given: Mapping[str, Any], progress: ReportProgress) -> ToolAnswer:
        query, topic = given.get("query", ""), given.get("topic", "")
        if not (query.strip() or topic.strip()):
            raise InvalidInput(reason="There is nothing to look for. Give a query or a topic.")
        if given.get("thread") and given.get("agent"):
            raise InvalidInput(reason="Give thread or agent, not both.")
        agent = await Catalog(self._analyst.store).agent(given["agent"]) if given.get("agent") else None
        question = Question(
            text=query,
            topic=topic,
            scope=Scope(self._user, given.get("thread"), agent.id if agent else None),
            k=given["top_k"],
            since=moment_of(given.get("since"), "since"),
            until=moment_of(given.get("until"), "until", ends=True),
            neighbours=given["around"],
            other_branches=given.get("other_branches", False),
        )
        recalled = await self._analyst.recaller.find(question)
        titles: dict[str, str] = {}
        async with self._analyst.store.reading() as tx:
            for thread_id in dict.fromkeys(hit.entry.thread_id for hit in recalled.hits):
                titles[thread_id] = (await log.find_thread(tx, thread_id, user_id=self._user)).title or ""
        wanted = set(find_telling_terms(f"{query} {topic}"))
        found = [_hit(hit, titles, wanted) for hit in recalled.hits]
        parts = [_line(hit, query or topic) for hit in found] or ["Nothing was found."]
        return ToolAnswer(
            {"found": found, "warnings": list(recalled.warnings)}, "\n\n".join([*parts, *recalled.warnings])
        )


def _hit(hit: Hit, titles: Mapping[str, str], wanted: set[str]) -> dict[str, Any]:
    entry = hit.entry
    data = {"thread": entry.thread_id, "title": titles[entry.thread_id], **_entry(entry, wanted, _CHARS)}
    data |= {"score": round(hit.score, 3), "active": hit.active}
    around = [_entry(other, wanted, _AROUND_CHARS) for other in hit.around if content_of(other).strip()]
    return data | ({"around": around} if around else {})


def _entry(entry: Entry, wanted: set[str], size: int) -> dict[str, Any]:
    time = entry.metadata.get(SAID_AT) or entry.created_at.isoformat(timespec="seconds")
    data = {"seq": entry.seq, "entry": entry.id, "role": entry.role, "time": str(time)}
    data |= {"name": entry.name} if entry.name else {}
    return data | {"text": excerpt(content_of(entry), wanted, size)}


def _line(hit: Mapping[str, Any], asked: str) -> str:
    around = "".join(f"\n  message {each['seq']}, {each['role']}: {each['text']}" for each in hit.get("around", ()))
    head = f"{hit['time']} {hit['role']} in thread {hit['thread']} ({hit['title']}), message {hit['seq']}"
    head += "" if hit["active"] else f" (branch: {branch_note(asked)})"
    return f"{head}:\n{hit['text']}{around}"
