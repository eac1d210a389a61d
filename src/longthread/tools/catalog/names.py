"""An index of definitions by name, id and reference, and where the sources among them are."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property
from typing import Any

from longthread.errors import DefinitionAmbiguous, DefinitionNotFound
from longthread.model.catalog import BY_NAME, Body, Definition, Kind, references, source_of
from longthread.store import catalog as catalog_store
from longthread.store.driver import Driver
from longthread.tools.analysis.address import DEMO, is_bare, is_url
from longthread.tools.catalog import address
from longthread.tools.catalog.fields import near, without_key

DefinitionKey = tuple[Kind, str]
"""A kind and an id."""


class Names:
    """The definitions of a catalog at one moment."""

    def __init__(self, definitions: Iterable[Definition]) -> None:
        self.by_key: dict[DefinitionKey, Definition] = {(each.kind, each.id): each for each in definitions}
        self._by_name: dict[DefinitionKey, list[Definition]] = {}
        for each in self.by_key.values():
            self._by_name.setdefault((each.kind, each.name), []).append(each)

    def find_definitions(self, kind: Kind, name: str) -> list[Definition]:
        """The definitions of a name or id. Other programs may use a name twice."""
        found = self._by_name.get((kind, name), [])
        by_id = self.by_key.get((kind, name.lower()))
        return found or ([by_id] if by_id else [])

    def one(self, kind: Kind, name: str) -> Definition:
        """The definition of a name or id. Raises DefinitionNotFound, DefinitionAmbiguous."""
        found = self.find_definitions(kind, name)
        if not found:
            raise DefinitionNotFound(kind=kind, name=name, nearest=near(name, self.names(kind)).strip())
        if len(found) > 1:
            raise DefinitionAmbiguous(kind=kind, name=name, ids=", ".join(each.id for each in found))
        return found[0]

    def names(self, kind: Kind) -> list[str]:
        """All names of a kind."""
        return sorted({each.name for each in self.by_key.values() if each.kind == kind})

    def target(self, kind: Kind, name_or_id: str) -> Definition | None:
        """The definition that a reference (an id, or a name of one of `BY_NAME`) means."""
        if kind in BY_NAME:
            found = self._by_name.get((kind, name_or_id), [])
            return found[0] if found else None
        return self.by_key.get((kind, name_or_id.lower()))

    def targets(self, definition: Definition) -> Iterator[Definition]:
        """The existing definitions that one refers to."""
        for kind, name_or_id in references(definition.kind, definition.body):
            found = self.target(kind, name_or_id)
            if found is not None:
                yield found

    def users(self, definition: Definition) -> list[Definition]:
        """The definitions that refer to one, by kind and name."""
        return self._users.get((definition.kind, definition.id), [])

    @cached_property
    def _users(self) -> dict[DefinitionKey, list[Definition]]:
        found: dict[DefinitionKey, list[Definition]] = {}
        for each in sorted(self.by_key.values(), key=lambda each: (each.kind, each.name)):
            for kind, id_ in {(target.kind, target.id) for target in self.targets(each)}:
                found.setdefault((kind, id_), []).append(each)
        return found

    def write_definition(self, kind: Kind, name: str, body: Body) -> dict[str, Any]:
        """A definition as a person writes it: with names in place of ids, without secrets."""
        data: dict[str, Any] = {"kind": kind, "name": name}
        body = without_key(body) if kind == "upstream" else body
        for field, value in body.items():
            data[field] = self._write_field(kind, field, value)
        return data

    def _write_field(self, kind: Kind, field: str, value: Any) -> Any:
        if kind == "agent" and field in _LISTS and isinstance(value, list | tuple):
            return [self._name(_LISTS[field], str(each)) for each in value]
        if kind == "skill" and field == "tools" and isinstance(value, list | tuple):
            return [self._tool(each) for each in value]
        if kind == "source" and field == "address":
            return address.public(str(value))
        return value

    def _tool(self, item: Any) -> Any:
        """A skill's tool, as a name where that is all."""
        if not isinstance(item, Mapping) or not isinstance(item.get("tool_id"), str):
            return item
        name = self._name("tool", item["tool_id"])
        more = {key: value for key, value in item.items() if key != "tool_id" and value}
        return {"tool": name, **more} if more else name

    def _name(self, kind: Kind, id_: str) -> str:
        found = self.by_key.get((kind, id_.lower()))
        return found.name if found else id_


_LISTS: Mapping[str, Kind] = {"skills": "skill", "sub_agents": "agent"}


_OFF = "It is switched off: is_active is false."


def may_be_name(spec: str) -> bool:
    """Whether a text may be a name in the catalog: it is no path, no URL and not `demo`."""
    return is_bare(spec) and spec != DEMO


async def address_of(store: Driver, name: str) -> str:
    """The address of the source of a name or an id.

    Raises:
        DefinitionNotFound: there is none, or it is switched off.
        SecretUnusable: one of its secrets is not set.
    """
    async with store.reading() as tx:
        stored = await catalog_store.some(tx, "source", names=[name], ids=[name.lower()])
    found = source_of(Names(each.definition for each in stored).one("source", name))
    if not found.is_active:
        raise DefinitionNotFound(kind="source", name=name, nearest=_OFF)
    return address.fill_in_secrets(found.address)


async def named_address(store: Driver, spec: str) -> str:
    """Return the address of the source that `spec` names in the catalog, with its secrets; `spec` where it names none.
    A plugin's source of the same name comes after it. Write `./NAME` for a file of the same name.

    Raises:
        SecretUnusable: one of its secrets is not set.
    """
    spec = spec.strip()
    if not may_be_name(spec):
        return spec
    async with store.reading() as tx:
        found = [each.definition for each in await catalog_store.some(tx, "source", names=[spec])]
    return address.fill_in_secrets(source_of(found[0]).address) if found and found[0].is_active else spec


async def address_again(store: Driver, spec: str) -> str:
    """The address that a conversation keeps without its secrets, as the catalog's source that has it now fills it in;
    `spec` where none has.

    Raises:
        DefinitionNotFound: the source is switched off.
        SecretUnusable: one of its secrets is not set.
    """
    if not is_url(spec):
        return spec
    async with store.reading() as tx:
        sources = await catalog_store.sources(tx)
    found = [each for each in sources if address.withheld(each.address, spec)]
    if not found:
        return spec
    chosen = next((each for each in found if each.is_active), found[0])
    if not chosen.is_active:
        raise DefinitionNotFound(kind="source", name=chosen.name, nearest=_OFF)
    return address.fill_in_secrets(chosen.address)
