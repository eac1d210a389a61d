"""Memories of a server, in the form in which the commands show those of a store."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

from longthread.cli.remote.client import ServerAnswer, ServerClient
from longthread.cli.remote.thread_calls import moment_or_none, read_moment
from longthread.errors import InvalidInput, MemoryNotFound
from longthread.model.memory import Memory, MemoryChanges, MemoryType, Origin, Statement

_PLACE = "/api/memories"
_MOST = 500
"""Memories of one answer."""


async def list_memories(
    client: ServerClient, *, kind: MemoryType | None = None, limit: int, text: str | None = None
) -> tuple[list[Memory], list[str]]:
    """The memories, or the ones that say a text, and what a person should know about how they were found."""
    found = await client.get(_PLACE, q=text, type=kind, limit=min(limit, _MOST))
    return [_read_memory(each) for each in found["memories"]], found["warnings"]


async def add_memory(client: ServerClient, said: Statement) -> tuple[Memory, bool]:
    """Remember something. Returns the memory, and whether it is a new one."""
    until = said.expires_at.isoformat() if said.expires_at else None
    given = {"type": said.type, "importance": said.importance, "expires_at": until}
    body = {"content": said.content, **{name: value for name, value in given.items() if value is not None}}
    memory = _read_memory(await client.send("POST", _PLACE, body))
    return memory, memory.said_at == memory.created_at


async def edit_memory(client: ServerClient, given: str, changes: MemoryChanges) -> None:
    """Change a memory."""
    until = changes.expires_at.isoformat() if changes.expires_at else None
    wanted = {"content": changes.content, "type": changes.type, "importance": changes.importance, "expires_at": until}
    never = changes.never_expires
    body = {name: value for name, value in wanted.items() if value is not None or (name == "expires_at" and never)}
    await client.send("PATCH", _path_of((await find_memory(client, given))[0].id), body)


async def find_memory(client: ServerClient, given: str) -> tuple[Memory, list[ServerAnswer]]:
    """The memory that a person means by its id or the beginning of it, and the messages that it comes from.

    Raises:
        MemoryNotFound: there is none.
        InvalidInput: several begin like that.
    """
    try:
        view = await client.get(_path_of(given)) if given.strip() else None
    except MemoryNotFound:
        view = None
    if view is None:
        listed = (await client.get(_PLACE, limit=_MOST))["memories"] if given.strip() else []
        found = [each for each in listed if each["id"].startswith(given)]
        if len(found) > 1:
            raise InvalidInput(reason=f"Several memories begin with {given}. Give more of the id.")
        if not found:
            raise MemoryNotFound(memory=given)
        view = found[0]
    sources = [{"thread": each["thread_id"], "entries": each["entries"]} for each in view["sources"]]
    return _read_memory(view), sources


async def forget_memory(client: ServerClient, memory_id: str) -> None:
    """Forget a memory."""
    await client.send("DELETE", _path_of(memory_id))


def _path_of(memory_id: str) -> str:
    return f"{_PLACE}/{quote(memory_id, safe='')}"


def _read_memory(view: Mapping[str, Any]) -> Memory:
    results, _, source = (view["read"] or "").partition(" of ")
    return Memory(
        id=view["id"],
        user_id="",
        agent_id=view["agent"],
        content=view["content"],
        type=view["type"],
        importance=view["importance"],
        created_at=read_moment(view["created_at"]),
        said_at=read_moment(view["said_at"]),
        expires_at=moment_or_none(view["expires_at"]),
        thread_id=view["thread_id"],
        origin=Origin(source or None, results.split(", ")) if results else None,
        source_deleted_at=moment_or_none(view["source_deleted_at"]),
    )
