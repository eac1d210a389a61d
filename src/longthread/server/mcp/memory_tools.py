"""The tools that remember: recall, search_memories, remember, forget."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, get_args

from longthread.builtin.memory_tools import branch_note
from longthread.errors import InvalidInput
from longthread.memory.forget import forget_memory
from longthread.memory.index.entry_text import content_of, excerpt
from longthread.memory.index.indexer import SAID_AT
from longthread.memory.index.terms import find_telling_terms
from longthread.memory.recall import Hit, Question
from longthread.model.catalog import Definition
from longthread.model.entry import Entry
from longthread.model.language import moment_of
from longthread.model.memory import ANALYST, Memory, MemoryType, Statement
from longthread.model.run import RunAsker
from longthread.model.thread import Scope
from longthread.runs.analyst import Analyst
from longthread.runs.rights import granted_names
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
from longthread.store.memories import Owner
from longthread.tools.catalog.definitions import Catalog

_MEMORY = {
    "memory": text("Its id."),
    "type": TEXT,
    "text": TEXT,
    "importance": NUMBER,
    "created_at": TEXT,
    "said_at": text("When its words were said last."),
    "expires_at": TEXT,
    "thread": text("The conversation that said it last."),
    "thread_deleted_at": text("When that conversation was deleted, if it was."),
    "noted_after_reading": text("What a model had read when it kept it: data may have said it, and not the user."),
}


class MemoryTools:
    """A user's memories: all are found; new ones are stored with the agent of this server."""

    def __init__(self, analyst: Analyst, user: str, *, agent: str | None = None) -> None:
        self._analyst = analyst
        self._user = user
        self._agent = agent

    def offers(self) -> tuple[OfferedTool, ...]:
        """The three tools."""
        found = each(_MEMORY, "memory", "type", "text", "importance", "created_at", "said_at")
        look = {
            "query": text("What they should say; without it, all, the most important first.", maxLength=4_000),
            "limit": whole("How many at most.", least=1, most=100, default=20),
        }
        keep = {
            "content": text("One sentence that can be understood by itself.", minLength=1, maxLength=2_000),
            "type": text(
                "What happened, what is so (default), or how something is done.", enum=list(get_args(MemoryType))
            ),
            "importance": {
                "type": "number",
                "minimum": 0,
                "maximum": 1,
                "description": "0.5 by default; from 0.9 on it is given to every run.",
            },
            "expires_at": text("From when on it is no longer true (ISO 8601)."),
        }
        return (
            OfferedTool(
                "search_memories",
                "Search memories",
                "What is remembered of the user beyond single conversations.",
                schema(look),
                schema({"memories": found, "warnings": {"type": "array", "items": TEXT}}, "memories", "warnings"),
                self._search,
            ),
            OfferedTool(
                "remember",
                "Remember",
                "Keeps something of the user for later conversations: a lasting fact, a preference, how something is "
                "to be done. What says the same as a memory that is there is that memory, said again.",
                schema(keep, "content"),
                schema({"memory": TEXT, "new": TRUTH}, "memory", "new"),
                self._remember,
                reads=False,
            ),
            OfferedTool(
                "forget",
                "Forget a memory",
                "Deletes one memory of the user, by its id. It cannot be undone.",
                schema({"memory": text("The id, as search_memories tells it.", minLength=1, maxLength=100)}, "memory"),
                schema({"forgotten": TEXT}, "forgotten"),
                self._forget,
                reads=False,
                destroys=True,
            ),
        )

    async def _search(self, given: Mapping[str, Any], progress: ReportProgress) -> ToolAnswer:
        owner, query = Owner(self._user), given.get("query", "")
        memories = self._analyst.memories
        warnings: list[str] = []
        if query.strip():
            hits = await memories.search(owner, query, k=given["limit"])
            found, warnings = [hit.memory for hit in hits.hits], list(hits.warnings)
        else:
            found = await memories.list_(owner, limit=given["limit"])
        listed = [_as_json(memory) for memory in found]
        lines = [f"{each['memory']}  ({each['type']}) {each['text']}" for each in listed] or ["Nothing was found."]
        return ToolAnswer({"memories": listed, "warnings": warnings}, "\n".join([*lines, *warnings]))

    async def _remember(self, given: Mapping[str, Any], progress: ReportProgress) -> ToolAnswer:
        agent = await Catalog(self._analyst.store).agent(self._agent) if self._agent else None
        statement = Statement(
            given["content"],
            given.get("type"),
            given.get("importance"),
            moment_of(given.get("expires_at"), "expires_at"),
        )
        result = await self._analyst.memories.remember(Owner(self._user, agent.id if agent else ANALYST), statement)
        self._analyst.memories.keep_up(self._user)
        text = "Remembered" if result.is_new else "Known already, and said again"
        return ToolAnswer({"memory": result.memory.id, "new": result.is_new}, f"{text}: {result.memory.id}")

    async def _forget(self, given: Mapping[str, Any], progress: ReportProgress) -> ToolAnswer:
        memory = given["memory"]
        await forget_memory(self._analyst.store, memory, user_id=self._user)
        return ToolAnswer({"forgotten": memory}, f"Forgotten: {memory}")


def _as_json(memory: Memory) -> dict[str, Any]:
    data: dict[str, Any] = {
        "memory": memory.id,
        "type": memory.type,
        "text": memory.content,
        "importance": memory.importance,
        "created_at": memory.created_at.isoformat(timespec="seconds"),
        "said_at": memory.said_at.isoformat(timespec="seconds"),
    }
    data |= {"expires_at": memory.expires_at.isoformat(timespec="seconds")} if memory.expires_at else {}
    data |= {"thread": memory.thread_id} if memory.thread_id else {}
    deleted = memory.source_deleted_at
    data |= {"thread_deleted_at": deleted.isoformat(timespec="seconds")} if deleted else {}
    return data | ({"noted_after_reading": memory.origin.summary} if memory.origin else {})


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

    def __init__(self, analyst: Analyst, user: str, *, asker: RunAsker | None = None) -> None:
        self._analyst = analyst
        self._user = user
        self._asker = asker

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
        agent = await self._find_agent(given["agent"]) if given.get("agent") else None
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

    async def _find_agent(self, name: str) -> Definition:
        rights = await self._analyst.runs.rights.of(self._asker, user_id=self._user)
        return (await granted_names(self._analyst.store, rights)).one("agent", name)


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
