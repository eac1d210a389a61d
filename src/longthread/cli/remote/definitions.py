"""The catalog of a server: what its user may ask, and definitions as their authors wrote them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple
from urllib.parse import quote

from longthread.cli.remote.client import ServerAnswer, ServerClient
from longthread.errors import NotOnServer
from longthread.model.catalog import Kind


class DefinitionTable(NamedTuple):
    """Definitions as rows under their columns, and the same for programs."""

    columns: Sequence[str]
    rows: Sequence[tuple[str, ...]]
    items: Sequence[ServerAnswer]


async def list_definitions(client: ServerClient, kind: Kind, about: str) -> DefinitionTable:
    """What a server has of a kind; of sources and agents, what its user may ask. `about` is the field of a definition
    that is shown next to its description. Raises NotOnServer: a server does not list this kind."""
    rows: Sequence[tuple[str, ...]]
    if kind == "source":
        sources = (await client.get("/api/sources"))["sources"]
        rows = [
            (each["name"], each["origin"], each["address"] or ", ".join(each["files"]), each["description"] or "")
            for each in sources
        ]
        return DefinitionTable(("source", "origin", "address", "description"), rows, sources)
    if kind == "agent":
        agents = (await client.get("/api/agents"))["agents"]
        rows = [(each["name"], each["source"] or "", each["model"] or "", each["description"]) for each in agents]
        return DefinitionTable(("agent", "source", "model", "description"), rows, agents)
    if kind not in ("skill", "tool"):
        raise NotOnServer(command=f"{kind}s list", server=client.login.address)
    items = (await client.get(f"/api/catalog/{kind}s"))["items"]
    rows = [_make_row(each, about) for each in items]
    return DefinitionTable((kind, "version", about, "description"), rows, [_describe_item(each) for each in items])


async def find_definition(client: ServerClient, kind: Kind, name: str, version: int | None) -> ServerAnswer:
    """A definition for programs: what its author wrote, with its id, version and author; `definition` is what was
    written alone."""
    found = await client.get(f"/api/catalog/{kind}s/{quote(name, safe='')}", version=version)
    return _describe_item(found) | {"definition": found["definition"]}


def _make_row(item: ServerAnswer, about: str) -> tuple[str, ...]:
    written = item["definition"]
    told = written.get(about)
    if isinstance(told, list):
        told = ", ".join(str(each.get("tool")) if isinstance(each, dict) else str(each) for each in told)
    state = "built in" if item["is_builtin"] else f"v{item['version']}{'' if item['is_active'] else ', off'}"
    return item["name"], state, str(told or ""), " ".join((written.get("description") or "").split())


def _describe_item(item: ServerAnswer) -> ServerAnswer:
    told = ("id", "version", "by", "is_builtin", "updated_at")
    return {**(item["definition"] or {}), **{name: item[name] for name in told}}
