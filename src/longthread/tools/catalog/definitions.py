"""The catalog of a store: reads, applies and deletes definitions, and says which may come through the API."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from longthread.access import audit
from longthread.access.grants import EVERYTHING, GrantedRights, forget_item, own_item
from longthread.errors import (
    CatalogInvalid,
    DefinitionBuiltIn,
    DefinitionInUse,
    InvalidInput,
    SourceTaken,
    ToolInvalid,
    ToolOnCommandLine,
    VersionNotFound,
)
from longthread.model.catalog import (
    BUILTIN,
    Agent,
    Definition,
    Kind,
    Skill,
    SourceDefinition,
    ToolDefinition,
    Version,
    agent_of,
    same,
    skill_of,
    source_of,
    tool_of,
)
from longthread.settings import Settings
from longthread.store import catalog as catalog_store
from longthread.store.catalog import NOTHING, Belongings, StoredDefinition
from longthread.store.driver import Driver, Transaction
from longthread.store.maintenance.space import scrub
from longthread.store.open import open_store
from longthread.tools.analysis.address import is_offered, normalize_spec
from longthread.tools.catalog import address
from longthread.tools.catalog.documents import DefinitionDocument, read_data, read_paths
from longthread.tools.catalog.drafts import DefinitionDraft, draft_of
from longthread.tools.catalog.names import Names, address_of, may_be_name
from longthread.tools.catalog.plan import Change, KnownCatalog, plan_changes
from longthread.tools.catalog.role import version_of
from longthread.tools.catalog.teach import name_of, taught, untaught, with_semantics
from longthread.tools.skill_folder import export_files, write_skill
from longthread.tools.tool_type import Power, find_type, type_errors

_logger = logging.getLogger(__name__)
_OF_BUILDERS: frozenset[Kind] = frozenset({"agent", "skill", "tool"})
"""What builders make. The addresses of sources and of upstreams are an administrator's."""
_MEANING: Mapping[Power, str] = {
    "code": "runs code",
    "program": "starts a program",
    "secret": "sends a secret to a server",
    "private": "may ask addresses inside your network",
}


def power_of(body: Mapping[str, Any]) -> Power | None:
    """What a tool's definition can do that only the command line may define; None: nothing. A type that is not known,
    says nothing of itself in a form, or cannot tell what it does may run code."""
    tool_type, implementation = find_type(str(body.get("type"))), body.get("implementation")
    if tool_type is None or tool_type.about is None:
        return "code"
    try:
        with type_errors(str(body.get("type")), "tell what it does"):
            power = tool_type.power(implementation if isinstance(implementation, Mapping) else {})
            if power is not None and power not in _MEANING:
                raise ValueError(f"{power} is none of {', '.join(_MEANING)}")
            return power
    except ToolInvalid:
        _logger.warning("Tools of type %s are defined on the command line alone.", body.get("type"), exc_info=True)
        return "code"


def expect_definable(made: Definition, before: Definition | None) -> None:
    """Check a tool that is defined through the API. What `longthread apply` has defined may change in all but its
    implementation. Raises ToolOnCommandLine."""
    power = power_of(made.body)
    if power is None:
        return
    if before is None or not _same_implementation(made, before):
        raise ToolOnCommandLine(tool=made.name, power=_MEANING[power])


def _same_implementation(made: Definition, before: Definition) -> bool:
    ours, theirs = made.body, before.body
    # Other programs leave out the type that stands next to it.
    kinds = ({"type": each.get("type"), **(each.get("implementation") or {})} for each in (ours, theirs))
    return ours.get("type") == theirs.get("type") and same(*kinds)


@dataclass(frozen=True, slots=True)
class CatalogDeletion:
    """A deletion with the definitions that referred to it (`changed`), an agent's data, and notes on `problems`."""

    definition: Definition
    changed: Sequence[Definition] = ()
    belongings: Belongings = NOTHING
    problems: Sequence[str] = ()


class Catalog:
    """Agents, skills, tools, sources, upstreams and routes of one store, for any number of tasks. Versions record the
    `user`. What is changed must be within the `rights`, and who makes a definition may change it later."""

    def __init__(self, store: Driver, *, user: str | None = None, rights: GrantedRights = EVERYTHING) -> None:
        self._store = store
        self._user = user
        self._rights = rights

    @classmethod
    @asynccontextmanager
    async def open(cls, settings: Settings | None = None, *, creates: bool = True) -> AsyncIterator[Catalog]:
        """Opens the catalog of the settings' store. Without `creates` the store must exist."""
        settings = settings or Settings.load()
        async with open_store(settings.database, creates=creates, read_only=settings.read_only) as store:
            yield cls(store, user=settings.user)

    async def names(self) -> Names:
        """The present definitions, indexed."""
        async with self._store.reading() as tx:
            return Names(each.definition for each in await catalog_store.definitions(tx))

    async def definitions(self, kind: Kind | None = None) -> list[Definition]:
        """All definitions, or those of a kind, with the built-in ones."""
        found = (await self.names()).by_key.values()
        return [each for each in found if kind is None or each.kind == kind]

    async def find(self, kind: Kind, name: str) -> Definition:
        """A definition by its name or id. Raises DefinitionNotFound, DefinitionAmbiguous."""
        return (await self.names()).one(kind, name)

    async def agent(self, name: str) -> Agent:
        """An agent by its name or its id; raises as `find` does."""
        return agent_of(await self.find("agent", name))

    async def skill(self, name: str) -> Skill:
        """A skill by its name or its id; raises as `find` does."""
        return skill_of(await self.find("skill", name))

    async def tool(self, name: str) -> ToolDefinition:
        """A tool by its name or its id; raises as `find` does."""
        return tool_of(await self.find("tool", name))

    async def source(self, name: str) -> SourceDefinition:
        """A source by its name or its id; raises as `find` does."""
        return source_of(await self.find("source", name))

    async def history(self, kind: Kind, name: str) -> list[Version]:
        """All versions of a definition, the first first, even of a deleted one. A built-in one has only the present
        version. Raises DefinitionNotFound, DefinitionAmbiguous."""
        async with self._store.reading() as tx:
            stored = await catalog_store.definitions(tx)
            names = Names(each.definition for each in stored)
            if not names.find_definitions(kind, name):
                gone = [
                    each
                    for each in await catalog_store.list_deleted(tx)
                    if each.kind == kind and name in (each.name, each.id)
                ]
                if not gone:
                    names.one(kind, name)  # raises
                return await catalog_store.versions(tx, kind, gone[-1].id)
            definition = names.one(kind, name)
            found = await catalog_store.versions(tx, kind, definition.id)
        known = {each.version for each in found}
        return found if definition.version in known else [*found, version_of(definition)]

    async def version(self, kind: Kind, name: str, number: int) -> Version:
        """One version of a definition. Raises DefinitionNotFound, VersionNotFound."""
        found = await self.history(kind, name)
        for each in found:
            if each.version == number:
                return each
        there = f"There is version {found[0].version}." if len(found) == 1 else f"There are 1 to {found[-1].version}."
        raise VersionNotFound(kind=kind, name=name, version=number, versions=there)

    async def apply(
        self, items: Iterable[Mapping[str, Any] | DefinitionDocument], *, dry_run: bool = False
    ) -> list[Change]:
        """Applies definitions, in any order, all or none. Each replaces the whole one of its name (or `id`); an equal
        one makes no version. `dry_run` only returns the changes. Raises CatalogInvalid with every problem and its
        place."""
        return await self._apply(items, dry_run=dry_run)

    async def add_source(self, item: Mapping[str, Any]) -> None:
        """Applies a source under a name that none has. A builder may; the caller checks the address. Raises
        CatalogInvalid, SourceTaken."""
        await self._apply([item], is_new=True)

    async def define_over_http(self, item: Mapping[str, Any], *, dry_run: bool = False) -> Change:
        """Applies one definition for a caller of the API. Raises CatalogInvalid; ToolOnCommandLine: `apply` alone may
        define this."""
        [change] = await self._apply([item], dry_run=dry_run, over_http=True)
        return change

    async def _apply(
        self,
        items: Iterable[Mapping[str, Any] | DefinitionDocument],
        *,
        dry_run: bool = False,
        is_new: bool = False,
        over_http: bool = False,
    ) -> list[Change]:
        drafts = await asyncio.to_thread(_drafts, items)  # schemas take some milliseconds each
        async with self._store.reading() if dry_run else self._store.writing() as tx:
            if not dry_run:
                await catalog_store.lock(tx)
            there, deleted = await catalog_store.definitions(tx), await catalog_store.list_deleted(tx)
            known = KnownCatalog(there, deleted, self._may_use)
            changes = _changes(known, drafts)
            if taken := [each.name for each in changes if is_new and each.action != "created"]:
                raise SourceTaken(name=taken[0])
            if over_http:
                _expect_definable(known, changes)
            for change in changes:
                self._expect_right(change.action, change.definition, of_builders=is_new)
            if not dry_run:
                await self._write(tx, known, changes)
        return changes

    @staticmethod
    def check(items: Iterable[Mapping[str, Any] | DefinitionDocument]) -> list[Change]:
        """What `apply` would change in an empty catalog. Raises CatalogInvalid."""
        return _changes(
            KnownCatalog([StoredDefinition(each, recorded=True) for each in BUILTIN.values()]), _drafts(items)
        )

    async def apply_files(
        self, paths: Iterable[str | Path], *, stdin: str = "", kind: Kind | None = None, dry_run: bool = False
    ) -> list[Change]:
        """Applies the definitions of files, folders and, for `-`, of the text `stdin`. `kind` is the default and the
        only allowed kind."""
        return await self.apply(read_paths(paths, stdin, kind=kind), dry_run=dry_run)

    async def export_skills(self, names: Sequence[str], to: str | Path, *, force: bool = False) -> list[Path]:
        """Writes skills as folders of Agent Skills into `to`, which `apply_files` can read. Returns the folders.
        `force` replaces existing folders of skills.

        Raises DefinitionNotFound; InvalidInput: one cannot be written; those before it are.
        """
        known = await self.names()
        found = [known.one("skill", name) for name in names]
        for each in found:
            if each.is_builtin:
                raise InvalidInput(reason=f"The skill {each.name} is built in: there is nothing of it to export.")
        written = [known.write_definition("skill", each.name, each.body) for each in found]
        folders = [(str(each["name"]), export_files(each)) for each in written]
        return [await asyncio.to_thread(write_skill, name, files, Path(to), force=force) for name, files in folders]

    async def delete(self, kind: Kind, name: str, *, force: bool = False, dry_run: bool = False) -> CatalogDeletion:
        """Deletes a definition, but not its versions, which former runs refer to. `dry_run` only returns the deletion.

        `force` also removes references to it, and deletes an agent's threads and memories. Raises DefinitionNotFound,
        DefinitionBuiltIn; DefinitionInUse without `force`, or where a query tool needs it. Raises RoleMissing: some of
        the threads or memories are other users', which administrators alone delete.
        """
        async with self._store.reading() if dry_run else self._store.writing() as tx:
            if not dry_run:
                await catalog_store.lock(tx)
            stored = await catalog_store.definitions(tx)
            names = Names(each.definition for each in stored)
            wanted = names.one(kind, name)
            if not wanted.is_builtin:
                self._rights.expect_edit(kind, wanted.id, wanted.name)
            found = _deletable(names, kind, name, force=force, usable=self._may_use)
            if kind == "agent":
                found = replace(found, belongings=await catalog_store.belongings(tx, found.definition.id))
                if found.belongings != NOTHING and not force:
                    raise DefinitionInUse(
                        kind="agent",
                        name=found.definition.name,
                        users=describe_belongings(found.belongings),
                        remedy="To keep them, set is_active: false instead. --force deletes them too, for ever.",
                    )
                await self._expect_deletes_own(tx, found.definition.id)
            if not dry_run:
                await self._delete(tx, {(s.definition.kind, s.definition.id): s for s in stored}, found)
        if not dry_run and found.belongings != NOTHING:
            tables = ("threads", "entries", "runs", "steps", "events", "memories")
            found = replace(found, problems=await scrub(self._store, tables))
        return found

    async def address(self, name: str) -> str:
        """The address of an active source, with its secrets. Raises DefinitionNotFound, SecretUnusable."""
        return await address_of(self._store, name)

    async def teach(
        self, source: str, given: Mapping[str, Any], gone: Mapping[str, Sequence[str]] | None = None
    ) -> Change:
        """Adds and removes business terms and examples of a source, by its name or address; an unknown address is
        added.

        `given` has the `description`, `terms`, `examples` and `semantics` to add, `gone` the terms' names and the
        examples' questions to remove. Raises DefinitionNotFound, CatalogInvalid; InvalidInput: an item to be removed is
        missing.
        """
        gone = gone or {}
        async with self._store.writing() as tx:
            await catalog_store.lock(tx)
            known = KnownCatalog(await catalog_store.definitions(tx), await catalog_store.list_deleted(tx))
            there = _source_named(Names(each.definition for each in known.stored), source)
            body = untaught(there.body, terms=gone.get("terms", ()), examples=gone.get("examples", ()))
            body = taught(body, terms=given.get("terms", ()), examples=given.get("examples", ()))
            body = with_semantics(body, given["semantics"]) if "semantics" in given else body
            body |= {"description": given["description"]} if "description" in given else {}
            about = {"id": there.id} if there.id else {}
            changes = _changes(known, _drafts([{"kind": "source", "name": there.name, **about, **body}]))
            self._expect_right("changed" if there.id else "created", there)
            await self._write(tx, known, changes)
        return changes[0]

    async def expect_teachable(self, source: str) -> None:
        """Raise NotGranted, RoleMissing: the caller may not teach a source, by its name or address. Raises
        DefinitionNotFound."""
        there = _source_named(await self.names(), source)
        self._expect_right("changed" if there.id else "created", there)

    async def taught_source(self, source: str) -> Definition:
        """A source by its name or address. Raises DefinitionNotFound."""
        names = await self.names()
        found = _source_named(names, source)
        return found if found.id else names.one("source", source)

    async def _write(self, tx: Transaction, known: KnownCatalog, changes: Sequence[Change]) -> None:
        before = {(each.definition.kind, each.definition.id): each for each in known.stored}
        made = [change.definition for change in changes if change.action != "unchanged"]
        for change in changes:
            definition = change.definition
            await _record_known(tx, before.get((definition.kind, definition.id)))
        for definition in made:
            await catalog_store.put(tx, definition)
            await catalog_store.record(tx, replace(version_of(definition), by=self._user))
            await _note_change(tx, definition)
        maker = self._rights.principal
        for change in changes:
            if change.action == "created" and not self._rights.may_edit(change.kind, change.definition.id):
                await own_item(tx, change.kind, change.definition.id, maker.user)

    def _may_use(self, each: Definition) -> bool:
        return self._rights.may_use(each.kind, each.id, each.name)

    def _expect_right(self, action: str, definition: Definition, *, of_builders: bool = False) -> None:
        """Raise RoleMissing: the caller makes no definitions. Raise NotGranted: this one is another's."""
        if action == "created":
            is_theirs = of_builders or definition.kind in _OF_BUILDERS
            self._rights.principal.expect_role("builder" if is_theirs else "admin")
        elif action == "unchanged":
            self._rights.expect_use(definition.kind, definition.id, definition.name)
        else:
            self._rights.expect_edit(definition.kind, definition.id, definition.name)

    async def _expect_deletes_own(self, tx: Transaction, agent_id: str) -> None:
        principal = self._rights.principal
        if principal.via in ("local", "token") or principal.has_role("admin"):
            return
        if await catalog_store.others_belongings(tx, agent_id, user_id=principal.user) != NOTHING:
            principal.expect_role("admin")

    async def _delete(
        self, tx: Transaction, stored: Mapping[Any, catalog_store.StoredDefinition], found: CatalogDeletion
    ) -> None:
        for changed in found.changed:
            self._rights.expect_edit(changed.kind, changed.id, changed.name)
        await forget_item(tx, found.definition.kind, found.definition.id)
        for changed in found.changed:
            await _record_known(tx, stored[changed.kind, changed.id])
            await catalog_store.put(tx, changed)
            await catalog_store.record(tx, replace(version_of(changed), by=self._user))
            await _note_change(tx, changed)
        definition = found.definition
        await _record_known(tx, stored[definition.kind, definition.id])
        await catalog_store.delete(tx, definition.kind, definition.id)
        gone = replace(version_of(definition), version=definition.version + 1, body=None, by=self._user)
        await catalog_store.record(tx, gone)
        await audit.note(tx, "catalog.delete", definition.id, kind=definition.kind)


async def _note_change(tx: Transaction, definition: Definition) -> None:
    await audit.note(tx, "catalog.change", definition.id, kind=definition.kind, version=definition.version)


async def _record_known(tx: Transaction, stored: StoredDefinition | None) -> None:
    """Records a version that another program has written."""
    if stored is not None and not stored.recorded:
        await catalog_store.record(tx, version_of(stored.definition))


def _source_named(names: Names, spec: str) -> Definition:
    """The source of a name or address; a new one, without an id, for an unknown address."""
    spec = spec.strip()
    found = names.find_definitions("source", spec)
    if not found:
        there = [each for (kind, _), each in names.by_key.items() if kind == "source"]
        found = [each for each in there if address.is_of(str(each.body["address"]), normalize_spec(spec))]
    if found:
        return found[0]
    if may_be_name(spec) and not is_offered(spec) and not Path(spec).exists():
        return names.one("source", spec)  # raises
    name, taken = name_of(spec), set(names.names("source"))
    free = next(each for each in (name, *(f"{name}-{n}" for n in range(2, len(taken) + 3))) if each not in taken)
    return Definition("source", "", free, {"description": None, "address": spec, "is_active": True})


def _drafts(items: Iterable[Mapping[str, Any] | DefinitionDocument]) -> list[DefinitionDraft]:
    problems: list[str] = []
    documents = [
        each for item in items for each in ([item] if isinstance(item, DefinitionDocument) else read_data([item]))
    ]
    drafts = [draft_of(document, problems) for document in documents]
    if problems:
        raise CatalogInvalid(problems=problems)
    return drafts


def _changes(known: KnownCatalog, drafts: Sequence[DefinitionDraft]) -> list[Change]:
    problems: list[str] = []
    changes = plan_changes(known, drafts, problems)
    if problems:
        raise CatalogInvalid(problems=problems)
    return changes


def _expect_definable(known: KnownCatalog, changes: Iterable[Change]) -> None:
    before = {each.definition.id: each.definition for each in known.stored if each.definition.kind == "tool"}
    for each in changes:
        if each.definition.kind == "tool" and each.action != "unchanged":
            expect_definable(each.definition, before.get(each.definition.id))


_NEEDED = frozenset({("source", "tool"), ("upstream", "route")})
"""Kinds, and the kinds of definitions that do not work without them."""


def _deletable(
    names: Names, kind: Kind, name: str, *, force: bool, usable: Callable[[Definition], bool]
) -> CatalogDeletion:
    """The deletion, checked."""
    definition = names.one(kind, name)
    if definition.is_builtin:
        raise DefinitionBuiltIn(kind=kind, name=definition.name)
    users = names.users(definition)
    needing = next((each.kind for each in users if (kind, each.kind) in _NEEDED), None)
    if needing is not None:
        user = "query tool" if needing == "tool" else needing
        remedy = f"A {user} needs its {kind}: give it another, or delete it first."
        raise DefinitionInUse(kind=kind, name=definition.name, users=_list_users(users, usable), remedy=remedy)
    if users and not force:
        remedy = "Take it out there first; or delete it with --force, which takes it out of them."
        raise DefinitionInUse(kind=kind, name=definition.name, users=_list_users(users, usable), remedy=remedy)
    return CatalogDeletion(definition, [_without(each, definition) for each in users])


def _without(user: Definition, gone: Definition) -> Definition:
    """Removes the references to a deleted definition."""
    body = dict(user.body)
    if user.kind == "agent":
        body["skills"] = [each for each in body["skills"] if (gone.kind, gone.id) != ("skill", each)]
        body["sub_agents"] = [each for each in body["sub_agents"] if (gone.kind, gone.id) != ("agent", each)]
        if gone.kind == "source":
            body["config"] = {key: value for key, value in body["config"].items() if key != "source"}
    else:
        others = [each for each in body["tools"] if not isinstance(each, Mapping) or each.get("tool_id") != gone.id]
        body["tools"] = others
    return replace(user, body=body, version=user.version + 1, by=None)


def describe_belongings(belongings: Belongings) -> str:
    """An agent's data, for people."""
    threads = (belongings.threads, "conversation", "conversations")
    counted = (threads, (belongings.memories, "memory", "memories"))
    return " and ".join(f"{count:,} {one if count == 1 else many}" for count, one, many in counted if count)


def _list_users(users: Iterable[Definition], usable: Callable[[Definition], bool]) -> str:
    named = (f"the {each.kind} {each.name}" if usable(each) else f"another {each.kind}" for each in users)
    return ", ".join(dict.fromkeys(named))
