"""The catalog's tables, one for each kind (document 002), and the versions of all definitions."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from longthread.model.catalog import (
    BUILTIN,
    Definition,
    Kind,
    RouteDefinition,
    SourceDefinition,
    UpstreamDefinition,
    Version,
    same,
    source_of,
)
from longthread.store.driver import Row, Transaction, one
from longthread.store.log import now
from longthread.store.rows import decoder, dump

_JSON = {
    "agent": ("config", "skills", "sub_agents"),
    "skill": ("trigger_keywords", "tools", "config"),
    "tool": ("schema", "implementation"),
    "source": ("terms", "examples", "semantics"),
    "upstream": ("dialects",),
    "route": (),
}
"""JSON columns."""
_EMPTY: Mapping[str, Any] = {"config": {}, "skills": [], "sub_agents": [], "trigger_keywords": [], "tools": []} | {
    "terms": [],
    "examples": [],
    "semantics": {},
    "dialects": [],
}
"""The meaning of NULL in a column."""
_FLAGS = ("is_active", "holds_state")
_LATER: Mapping[Kind, Mapping[str, Any]] = {"source": {"terms": [], "examples": [], "semantics": {}}}
"""Fields that a definition omits when empty."""


@dataclass(frozen=True, slots=True)
class StoredDefinition:
    """A stored definition. If another program changed it, `recorded` is False until its next use or change."""

    definition: Definition
    recorded: bool


@dataclass(frozen=True, slots=True)
class Belongings:
    """Counts of what is deleted with an agent."""

    threads: int
    memories: int


NOTHING = Belongings(0, 0)


async def lock(tx: Transaction) -> None:
    """Lock the catalog until the transaction ends. Lock first, then read what you decide by."""
    await tx.fetch("lock_catalog")


async def definitions(tx: Transaction) -> list[StoredDefinition]:
    """Return all definitions by kind and name, built-in ones included."""
    found = [_decode_definition(row) for row in await tx.fetch("select_definitions", kind=None, ids="[]", names="[]")]
    mine = [each for each in found if (each.definition.kind, each.definition.id) not in BUILTIN]
    every = [*mine, *(StoredDefinition(each, recorded=True) for each in BUILTIN.values())]
    return sorted(every, key=lambda each: (each.definition.kind, each.definition.name, each.definition.id))


async def some(
    tx: Transaction, kind: Kind, *, ids: Iterable[str] = (), names: Iterable[str] = ()
) -> list[StoredDefinition]:
    """Return a kind's definitions with one of these ids or names, by name, built-in ones included."""
    ids, names = set(ids), set(names)
    asked = {"kind": kind, "ids": dump(sorted(ids)), "names": dump(sorted(names))}
    found = [_decode_definition(row) for row in await tx.fetch("select_definitions", **asked)] if ids or names else []
    mine = [each for each in found if (kind, each.definition.id) not in BUILTIN]
    ours = [each for each in BUILTIN.values() if each.kind == kind and (each.id in ids or each.name in names)]
    every = [*mine, *(StoredDefinition(each, recorded=True) for each in ours)]
    return sorted(every, key=lambda each: (each.definition.name, each.definition.id))


async def sources(tx: Transaction) -> list[SourceDefinition]:
    """Return all sources by name."""
    found = await some(tx, "source", ids=[str(row["id"]) for row in await tx.fetch("select_source_ids")])
    return [source_of(each.definition) for each in found]


async def upstreams(tx: Transaction) -> list[UpstreamDefinition]:
    """Return the active upstreams by name."""
    return [_upstream(row) for row in await tx.fetch("select_upstreams")]


async def routes(tx: Transaction) -> list[RouteDefinition]:
    """Return the active routes by name."""
    return [RouteDefinition(**row) for row in await tx.fetch("select_routes")]


async def put(tx: Transaction, definition: Definition) -> None:
    """Insert or replace a definition by id. `record` stores its version."""
    columns = _columns(definition.kind, definition.body)
    await tx.run(f"put_{definition.kind}", id=definition.id, name=definition.name, now=now(), **columns)


async def delete(tx: Transaction, kind: Kind, id_: str) -> None:
    """Delete a definition; an agent's conversations and memories go with it. `record` stores the deletion."""
    await tx.run(f"delete_{kind}", id=id_)


async def record(tx: Transaction, version: Version) -> None:
    """Store a definition's new version."""
    await tx.run(
        "insert_version",
        kind=version.kind,
        id=version.id,
        version=version.version,
        name=version.name,
        body=None if version.body is None else dump(version.body),
        at=version.at.astimezone(UTC).isoformat(timespec="microseconds"),
        by=version.by,
    )


async def versions(tx: Transaction, kind: Kind, id_: str) -> list[Version]:
    """Return a definition's versions, oldest first; built-in ones have none."""
    return [_version(row) for row in await tx.fetch("select_versions", kind=kind, id=id_)]


async def version(tx: Transaction, kind: Kind, id_: str, number: int) -> Version | None:
    """Return one version, also of a deleted definition."""
    row = await one(tx, "select_version", kind=kind, id=id_, version=number)
    return _version(row) if row else None


async def name_then(tx: Transaction, kind: Kind, id_: str, number: int) -> str:
    """Return a definition's name in a version; its id if unknown."""
    if (kind, id_) in BUILTIN:
        return BUILTIN[kind, id_].name
    found = await version(tx, kind, id_, number)
    return found.name if found else id_


async def list_deleted(tx: Transaction) -> list[Version]:
    """Return the last versions of deleted definitions, without bodies, the latest deletion last."""
    return [_version(row) for row in await tx.fetch("select_deleted")]


async def belongings(tx: Transaction, agent_id: str) -> Belongings:
    """Count what would be deleted with an agent."""
    [row] = await tx.fetch("count_belongings", id=agent_id)
    return Belongings(int(row["threads"]), int(row["memories"]))


async def others_belongings(tx: Transaction, agent_id: str, *, user_id: str) -> Belongings:
    """Count what would be deleted with an agent, and is not of the user."""
    [row] = await tx.fetch("count_others_belongings", id=agent_id, user_id=user_id)
    return Belongings(int(row["threads"]), int(row["memories"]))


async def forget_maker(tx: Transaction, user_id: str) -> int:
    """Remove a user's name from the versions they made, and return how many. The bodies stay."""
    return await tx.run("forget_maker", user_id=user_id)


def _columns(kind: Kind, body: Mapping[str, Any]) -> dict[str, Any]:
    body = {**_LATER.get(kind, {}), **body}
    columns = {name: dump(value) if name in _JSON[kind] else value for name, value in body.items()}
    return columns | {name: int(columns[name]) for name in _FLAGS if name in columns}


@decoder
def _decode_definition(row: Row) -> StoredDefinition:
    body: dict[str, Any] = json.loads(row["body"])
    body = {name: _EMPTY[name] if value is None and name in _EMPTY else value for name, value in body.items()}
    body = {name: value for name, value in body.items() if value or name not in _LATER.get(row["kind"], {})}
    body |= {name: bool(body[name]) for name in _FLAGS if name in body}
    said: Any = json.loads(row["said"]) if row["said"] else None
    number = int(row["version"] or 0)
    recorded = row["said_name"] == row["name"] and same(said, body)
    found = Definition(
        kind=row["kind"],
        id=str(row["id"]),
        name=row["name"],
        # As text: PostgreSQL's jsonb does not preserve the order of keys.
        body=said if recorded else body,
        version=number if recorded else number + 1,
        by=row["made_by"] if recorded else None,
        created_at=_moment(row["created_at"]),
        updated_at=_moment(row["updated_at"]),
    )
    return StoredDefinition(found, recorded)


@decoder
def _upstream(row: Row) -> UpstreamDefinition:
    spoken: Any = json.loads(row["dialects"] or "[]")
    dialects = [str(each) for each in spoken] if isinstance(spoken, list) else []
    return UpstreamDefinition(
        row["name"], row["base_url"], tuple(dialects), row["api_key"], bool(row["holds_state"]), row["id"]
    )


@decoder
def _version(row: Row) -> Version:
    return Version(
        kind=row["kind"],
        id=row["item_id"],
        version=int(row["version"]),
        name=row["name"],
        body=json.loads(row["body"]) if row["body"] is not None else None,
        at=datetime.fromisoformat(row["made_at"]),
        by=row["made_by"],
    )


def _moment(text: str | None) -> datetime | None:
    if text is None:
        return None
    moment = datetime.fromisoformat(text)
    return moment.astimezone(UTC) if moment.tzinfo else moment.replace(tzinfo=UTC)
