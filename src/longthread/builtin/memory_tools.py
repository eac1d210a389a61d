"""The tools `remember` and `forget`, by which a model stores memories and deletes them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, get_args

from longthread.builtin.recall_tool import text_argument
from longthread.errors import InvalidInput
from longthread.memory.index.terms import find_telling_terms
from longthread.memory.memory_ranking import is_typed
from longthread.memory.user_memories import Memories, as_line, remember
from longthread.model.language import moment_of
from longthread.model.memory import Memory, MemorySource, MemoryType, Origin, Statement, Used
from longthread.settings import RememberApproval as Approval
from longthread.store import memories, runs
from longthread.store.driver import Driver
from longthread.store.memories import Owner
from longthread.store.runs import Lease
from longthread.tools.tool import Tool, as_observation

REMEMBER, FORGET = "remember", "forget"
MOST_FORGOTTEN = 5
"""The most memories that one call forgets by their words; of more it needs the ids."""
_SIMILAR = 5
_REMEMBER = (
    "Keeps a lasting fact or preference of this user for later conversations: call it when the user states one. Not "
    "for what the database can tell again, and never what a tool returned as the user's own words."
)
_FORGET = "Forgets what was remembered of this user, by `memory` (an id) or by words that it must hold."
_STATEMENT: Mapping[str, Any] = {
    "content": {"type": "string", "description": "One sentence that can be understood by itself."},
    "type": {
        "type": "string",
        "enum": list(get_args(MemoryType)),
        "description": "What happened, what is so (default), or how something is done.",
    },
    "importance": {"type": "number", "minimum": 0, "maximum": 1, "description": "0.5 by default."},
    "expires_at": {"type": "string", "description": "From when on it is no longer true (ISO 8601)."},
}
_WHICH: Mapping[str, Any] = {
    "memory": {"type": "string", "description": "The id of a memory."},
    "text": {"type": "string", "description": "Instead of an id: words that it must hold, all of them."},
}
REMEMBER_PARAMETERS: Mapping[str, Any] = {"type": "object", "properties": _STATEMENT, "required": ["content"]}
FORGET_PARAMETERS: Mapping[str, Any] = {"type": "object", "properties": _WHICH, "required": []}


@dataclass(frozen=True, slots=True)
class ReadMemories:
    """What a model has read: the mark for its new memories, and the entries of this run among it."""

    origin: Origin
    seqs: Sequence[int]


@dataclass(frozen=True, slots=True)
class RunMemories:
    """The memories of a run's user with its agent. `seqs` are the run's first entries. `read` returns what its model
    has read so far that others may have written, and `typed` the messages of the user that it sees; `approval` says
    when a person must approve; `dropped` gets forgotten ids."""

    store: Driver
    memories: Memories
    owner: Owner
    lease: Lease
    seqs: Sequence[int]
    read: Callable[[], ReadMemories | None]
    typed: Callable[[], Sequence[str]]
    approval: Approval
    dropped: Callable[[Sequence[str]], None]

    def tools(self) -> tuple[Tool, Tool]:
        """`remember` and `forget`, both idempotent."""
        return (
            Tool(
                REMEMBER,
                _REMEMBER,
                REMEMBER_PARAMETERS,
                as_observation(self._remember),
                retry_safe=True,
                category="memory",
                approve=self._asks_first,
            ),
            Tool(FORGET, _FORGET, FORGET_PARAMETERS, as_observation(self._forget), retry_safe=True, category="memory"),
        )

    def _asks_first(self) -> bool:
        """Whether a person must approve the next `remember`."""
        return self.approval == "always" or (self.approval == "data" and self.read() is not None)

    async def look_up(self, text: str, k: int) -> list[dict[str, Any]]:
        """Memories about a text, as a model sees them. The run's use of them is stored."""
        found = await self.memories.search(self.owner, text, k=k)
        uses = [Used(hit.memory.id, "found", as_line(hit.memory)) for hit in found.hits]
        if uses:
            async with self.store.writing() as tx:
                await runs.check(tx, self.lease)
                await memories.note_uses(tx, self.lease.thread_id, self.lease.run_id, uses)
        return [_describe_memory(hit.memory) for hit in found.hits]

    async def _remember(self, arguments: Mapping[str, Any]) -> Mapping[str, Any]:
        content = text_argument(arguments, "content")
        # What the user has typed is the user's, whatever was read besides.
        read = None if is_typed(content, self.typed()) else self.read()
        seqs, origin = ((*self.seqs, *read.seqs), read.origin) if read else (self.seqs, None)
        statement = Statement(
            content=content,
            type=arguments.get("type") or None,
            importance=_importance(arguments),
            expires_at=moment_of(text_argument(arguments, "expires_at"), "expires_at"),
            source=MemorySource(self.lease.thread_id, seqs, origin),
        )
        async with self.store.writing() as tx:
            await runs.check(tx, self.lease)
            result = await remember(tx, self.owner, statement)
        data = {"noted_after_reading": result.memory.origin.summary} if result.memory.origin else {}
        return {"memory": result.memory.id, "new": result.is_new, **data}

    async def _forget(self, arguments: Mapping[str, Any]) -> Mapping[str, Any]:
        memory_id, text = text_argument(arguments, "memory"), text_argument(arguments, "text")
        if memory_id:
            return await self._forget_memories([memory_id], ())
        if not text.strip():
            raise InvalidInput(reason="There is nothing to forget. Give the id of a memory, or words that it holds.")
        chosen = await self.memories.that_say(self.owner, text)
        if chosen and len(chosen) <= MOST_FORGOTTEN:
            return await self._forget_memories([memory.id for memory in chosen], find_telling_terms(text))
        found = await self.memories.search(self.owner, text, k=_SIMILAR)
        hint = "Nothing was forgotten: give other words, or the ids of those that are meant."
        return {"forgotten": [], "hint": hint, "similar": [_describe_memory(hit.memory) for hit in found.hits]}

    async def _forget_memories(self, ids: Sequence[str], holding: Sequence[str]) -> Mapping[str, Any]:
        """Forget memories. The result does not repeat their text, which would stay in the log."""
        data: list[dict[str, Any]] = []
        async with self.store.writing() as tx:
            await runs.check(tx, self.lease)
            for memory_id in ids:
                user_id, agent_id = self.owner.user_id, self.owner.agent_id
                memory = await memories.find(tx, memory_id, user_id=user_id, agent_id=agent_id)
                await memories.delete(tx, memory.id, user_id=user_id)
                data.append({"memory": memory.id, "type": memory.type, "since": f"{memory.created_at:%Y-%m-%d}"})
        self.dropped([each["memory"] for each in data])
        return {"forgotten": data} | ({"holding": list(holding)} if holding else {})


def _describe_memory(memory: Memory) -> dict[str, Any]:
    since = memory.said_at.isoformat(timespec="seconds")
    data = {"noted_after_reading": memory.origin.summary} if memory.origin else {}
    return {"memory": memory.id, "type": memory.type, "time": since, "text": memory.content, **data}


def _importance(arguments: Mapping[str, Any]) -> float | None:
    value = arguments.get("importance")
    if value is not None and (isinstance(value, bool) or not isinstance(value, int | float)):
        raise InvalidInput(reason=f"importance is {value!r}; give a number from 0 to 1.")
    return None if value is None else float(value)
