"""Document 002: agents, skills and tools, sessions with their messages, and memories."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any

from longthread.errors import StoreError
from longthread.model.entry import SENT_ID, Draft
from longthread.model.fold import CONTINUES, STATE, STEP
from longthread.store.driver import Row
from longthread.store.tables import IMPORTED
from longthread.store.transfer.foreign import (
    Conversation,
    ExtractedEntry,
    Foreign,
    ImportReport,
    decode_json,
    floats,
    has,
    moment,
    moment_or_none,
    rows,
    storable,
    values,
)
from longthread.store.transfer.messages import calls_of, drafts_of, payload_of

_CATALOG = ("tools", "skills", "agents")
"""Referenced tables first."""
_NEEDED: Mapping[str, tuple[str, ...]] = {
    "tools": ("id", "name", "type", "schema", "implementation"),
    "skills": ("id", "name", "tools"),
    "agents": ("id", "name", "system_prompt"),
}
_JSON: Mapping[str, Mapping[str, type]] = {
    "tools": {"schema": dict, "implementation": dict},
    "skills": {"trigger_keywords": list, "tools": list, "config": dict},
    "agents": {"config": dict, "skills": list, "sub_agents": list},
}
_MEANT_HERE = frozenset({"kind", "source", "fingerprint", "max_steps", CONTINUES, STATE, STEP, SENT_ID})
"""Metadata keys with a meaning in this store."""
_STATUS = frozenset({"active", "paused", "completed", "failed"})
_TYPES = frozenset({"episodic", "semantic", "procedural"})
_SECRET = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")
_AT_REST = 1536
"""Dimensions of document 002's vectors."""


class Sessions:
    """The tables of document 002, or those of the catalog or the memories only."""

    kind = "the agents, sessions and memories of document 002"
    noun = "sessions"
    tables = frozenset({*_CATALOG, "sessions", "messages", "memories"})

    def fits(self, foreign: Foreign) -> bool:
        return self._talks(foreign) or any(has(foreign, name, *_NEEDED[name]) for name in _CATALOG)

    def _talks(self, foreign: Foreign) -> bool:
        return has(foreign, "sessions", "id", "user_id") and has(foreign, "messages", "id", "session_id", "role")

    async def ids(self, foreign: Foreign) -> list[str]:
        return await values(foreign, "sessions", "id", order="created_at") if self._talks(foreign) else []

    async def conversation(self, foreign: Foreign, thread_id: str, report: ImportReport) -> Conversation | None:
        """Return a session with its messages on all branches."""
        try:
            [row, *_] = await rows(foreign, "sessions", id=thread_id)
            found = await rows(foreign, "messages", order="created_at", session_id=thread_id)
        except StoreError as error:
            report.left.append(f"session {thread_id}: {error.reason}")
            return None
        report.there["messages"] += len(found)
        created = moment(row.get("created_at"), moment_or_none(row.get("started_at")))
        conversation = Conversation(
            id=thread_id,
            user_id=storable(row["user_id"]),
            title=storable(row.get("title")),
            created_at=created,
            updated_at=max([created, *(moment(each.get("created_at"), created) for each in found)]),
            agent_id=str(row["agent_id"]) if row.get("agent_id") is not None else None,
            ended_at=moment_or_none(row["ended_at"]) if row.get("ended_at") else None,
            metadata=_object(row, "metadata", f"sessions.metadata of {thread_id}", report),
        )
        status = row.get("status") or "active"
        conversation.status = status if status in _STATUS else "active"
        if status not in _STATUS:
            report.left.append(f"sessions.status of {thread_id}: {status!r} is no status; it is active here")
        started = moment_or_none(row.get("started_at"))
        if started and started != created:
            conversation.metadata.setdefault("started_at", started)
            report.notes["sessions.started_at is kept in the session's metadata, where it is not created_at"] += 1
        _place(conversation, found, created, report)
        conversation.holds["messages"] = len(conversation.entries)
        return conversation

    async def yield_shared(self, foreign: Foreign, report: ImportReport) -> AsyncIterator[tuple[str, Row]]:
        """Yield tools, skills and agents, then memories, which may refer to a session."""
        for name in _CATALOG:
            if has(foreign, name, *_NEEDED[name]):
                for row in await rows(foreign, name, order="created_at"):
                    report.there[name] += 1
                    if (given := _definition(name, row, report)) is not None:
                        yield name, given
        if has(foreign, "memories", "id", "agent_id", "content"):
            for row in await rows(foreign, "memories", order="created_at"):
                report.there["memories"] += 1
                yield "memories", _memory(row, report)


def _object(row: Row, name: str, place: str, report: ImportReport) -> dict[str, Any]:
    try:
        value = decode_json(row.get(name))
    except ValueError as error:
        report.left.append(f"{place}: it is no JSON: {error}")
        return {}
    if value is None:
        return {}
    return storable(dict(value)) if isinstance(value, Mapping) else {name: storable(value)}


def _definition(table: str, row: Row, report: ImportReport) -> dict[str, Any] | None:
    """Return a definition for the catalog. Secrets remain names."""
    given: dict[str, Any] = {key: row.get(key) for key in ("id", "name", "description")}
    label = f"{table}.{{}} of {row['name']}"
    if table == "agents":
        given["system_prompt"] = row["system_prompt"]
    if table == "tools":
        given["type"] = row["type"]
    if table == "skills":
        given["is_builtin"] = int(bool(row.get("is_builtin")))
    if table != "skills":
        given["is_active"] = 1 if row.get("is_active") is None else int(row["is_active"])
    for column, kind in _JSON[table].items():
        try:
            value = decode_json(row.get(column))
        except ValueError as error:
            report.left.append(f"{label.format(column)}: it is no JSON: {error}")
            return None
        value = kind() if value is None else value
        if not isinstance(value, kind):
            report.left.append(f"{label.format(column)}: it is not {'an object' if kind is dict else 'a list'}")
            return None
        given[column] = value
        for secret in sorted(set(_SECRET.findall(str(value)))):
            report.notes[f"{table[:-1]} {row['name']} needs the secret {secret}: set LONGTHREAD_SECRET_{secret}"] += 1
    if (
        table == "tools"
        and row["type"] == "query"
        and isinstance(named := given["implementation"].get("database"), str)
    ):
        report.notes[
            f"tool {row['name']} asks the source {named}: define it, if it is not here, by `sources apply`"
        ] += 1
    created = moment(row.get("created_at"))
    given |= {"created_at": created, "updated_at": moment(row.get("updated_at"), created)}
    return {key: storable(value) for key, value in given.items()}


def _memory(row: Row, report: ImportReport) -> dict[str, Any]:
    kind = row.get("memory_type") or "episodic"
    if kind not in _TYPES:
        report.left.append(f"memories.memory_type of {row['id']}: {kind!r} is no type; it is episodic here")
    importance = row.get("importance")
    vector = floats(row.get("embedding"))
    place = f"memories.metadata of {row['id']}"
    given = {
        "id": str(row["id"]),
        "agent_id": str(row["agent_id"]),
        "session_id": str(row["session_id"]) if row.get("session_id") is not None else None,
        "content": storable(row["content"]),
        "memory_type": kind if kind in _TYPES else "episodic",
        "importance": 0.5 if importance is None else float(importance),
        "metadata": _object(row, "metadata", place, report),
        "expires_at": moment_or_none(row["expires_at"]) if row.get("expires_at") else None,
        "created_at": moment(row.get("created_at")),
    }
    if vector is None:
        return given
    report.there["vectors of memories"] += 1
    fits = len(vector) == 4 * _AT_REST
    return given | ({"embedding": vector} if fits else {"numbers": vector, "model": IMPORTED})


def _place(conversation: Conversation, found: Sequence[Row], created: str, report: ImportReport) -> None:
    """Place each message after its parent; without one, after the message before it."""
    known = {str(row["id"]): row for row in found}
    linear = _is_linear(found)
    before: dict[str, str | None] = {}
    last: str | None = None
    for row in found:
        id_, parent = str(row["id"]), row.get("parent_id")
        if parent is not None and str(parent) not in known:
            report.left.append(f"messages.parent_id of {id_}: session {conversation.id} has no message {parent}")
            parent = last
        before[id_] = str(parent) if parent is not None else last if linear else None
        last = id_
    places: dict[str, int] = {}
    for id_ in before:
        for each in reversed(_way_up(id_, before, places, report)):
            parent = before[each]
            at = places.get(parent) if parent is not None else None
            draft = _message(known[each], conversation.id, report)
            places[each] = len(conversation.entries)
            conversation.entries.append(ExtractedEntry(draft, at, moment(known[each].get("created_at"), created)))
    if last is not None:
        conversation.tip = places[last]


def _way_up(id_: str, before: Mapping[str, str | None], places: Mapping[str, int], report: ImportReport) -> list[str]:
    """Return a message and its ancestors that have no place yet."""
    way: list[str] = []
    at: str | None = id_
    while at is not None and at not in places and at not in way:
        way.append(at)
        at = before[at]
    if at is not None and at in way:
        report.left.append(f"messages.parent_id of {way[-1]}: the messages are in a circle; it begins a branch here")
    return way


def _is_linear(found: Sequence[Row]) -> bool:
    """Return whether a message without a parent follows the one before it: some programs name parents only at a branch.
    If every reply names its parent, such a message begins a branch."""
    parents = [row.get("parent_id") for row in found]
    replies = [row["role"] in ("assistant", "tool") and row.get("parent_id") is None for row in found[1:]]
    return any(replies) or not any(parent is not None for parent in parents)


def _message(row: Row, session_id: str, report: ImportReport) -> Draft:
    id_ = str(row["id"])
    place = f"of message {id_}, session {session_id}"
    given: dict[str, Any] = {
        "role": row["role"],
        "content": row.get("content"),
        "tool_call_id": row.get("tool_call_id"),
    }
    metadata = _object(row, "metadata", f"messages.metadata {place}", report)
    try:
        calls = decode_json(row.get("tool_calls"))
        calls_of(calls)
        given["tool_calls"] = calls
    except ValueError as error:
        report.left.append(f"messages.tool_calls {place}: {error}")
        metadata["tool_calls"] = storable(str(row["tool_calls"]))
    try:
        [draft] = drafts_of(given, id_)
    except ValueError as error:
        report.left.append(f"messages.role {place}: {error}; it is a system message here")
        [draft] = drafts_of({**given, "role": "system"}, id_)
    if clashes := _MEANT_HERE & metadata.keys():
        metadata = {f"imported_{key}" if key in clashes else key: value for key, value in metadata.items()}
        report.notes[f"keys of messages.metadata begin with `imported_` here: {', '.join(sorted(clashes))}"] += 1
    return Draft(
        id=id_,
        role=draft.role,
        text=draft.text,
        tool_calls=draft.tool_calls,
        tool_call_id=draft.tool_call_id,
        name=draft.name,
        payload=draft.payload or payload_of({}),
        tokens=_number(row.get("tokens_used")),
        latency_ms=_number(row.get("latency_ms")),
        metadata=metadata,
    )


def _number(value: Any) -> int | None:
    return int(value) if isinstance(value, int | float) else None
