"""The tools for a user's memories: search_memories, remember, forget."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, get_args

from longthread.memory.forget import forget_memory
from longthread.model.memory import ANALYST, Memory, MemoryType, Statement
from longthread.model.moment import moment_of
from longthread.runs.analyst import Analyst
from longthread.server.mcp.offer import (
    NUMBER,
    TEXT,
    TRUTH,
    OfferedTool,
    ReportProgress,
    ToolAnswer,
    each,
    schema,
    text,
    whole,
)
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
