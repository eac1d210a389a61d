"""The rights of who asked: what a run may use when it begins or is claimed, and while it works.

A right that is taken back, a user who is disabled and a key that is revoked take effect within seconds: each step of a
run reads the rights again if they are old. Without a login there is no asker, and nothing is read.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from typing import Any

from longthread.access.grants import (
    EVERYTHING,
    Grant,
    GrantedRights,
    GrantItem,
    GrantKind,
    load_rights,
    load_rights_of,
)
from longthread.access.principal import Principal
from longthread.access.projects import join_rights, project_of
from longthread.errors import LongthreadError, NotGranted, StoreError
from longthread.llm.connections import ProviderKeys
from longthread.llm.models import DEMO as DEMO_MODEL
from longthread.llm.providers import OWN
from longthread.model.catalog import BUILTIN, DATA_TOOLS, LOAD_SKILL, Kind, tool_id
from longthread.model.run import RunAsker
from longthread.settings import Settings
from longthread.store import catalog
from longthread.store.driver import Driver
from longthread.tools.analysis.address import DEMO, redact_spec
from longthread.tools.catalog.names import Names
from longthread.tools.catalog.role import AgentRole
from longthread.tools.tool import Observation, Tool, make_failure

READ_AGAIN_SECONDS = 10.0
"""How old the rights of a run may be."""
_LOOK_SECONDS = 2.5
"""How often a run looks whether its rights are too old, while a model replies or a tool works."""
_logger = logging.getLogger(__name__)
OWN_UPSTREAMS = ("anthropic", "openai")
"""The gateway's upstreams that need no definition."""


def default_items(settings: Settings) -> frozenset[GrantItem]:
    """Return what everyone may use unless an administrator takes it back: all that is built in, the demo, the
    configured source and models, and the gateway's own upstreams."""
    builtin: list[GrantItem] = [(kind, id_) for kind, id_ in BUILTIN if kind in ("agent", "skill", "tool")]
    sources = [DEMO, *([redact_spec(settings.source)] if settings.source else [])]
    models = [DEMO_MODEL, *filter(None, (settings.model, settings.fallback_model))]
    return frozenset(
        [
            *builtin,
            *(("source", each) for each in sources),
            *(("model", each) for each in models),
            *(("upstream", each) for each in OWN_UPSTREAMS),
        ]
    )


def asker_of(principal: Principal) -> RunAsker | None:
    """Return who asks, as a run stores it; None without a login."""
    if principal.via in ("local", "token"):
        return None
    return RunAsker(principal.user, principal.key.id if principal.key is not None else None)


def payer_of(user_id: str, asker: RunAsker | None, settings: Settings) -> str:
    """Return the user whose keys of providers a run uses: who asks, also in a project."""
    if asker is not None:
        return asker.user
    return settings.user if project_of(user_id) is not None else user_id


class AskerRights:
    """Reads the rights of askers, as they are now."""

    def __init__(self, store: Driver, settings: Settings, keys: ProviderKeys) -> None:
        self._store = store
        self._keys = keys
        self._has_login = settings.auth != "local"
        self.defaults = default_items(settings)

    async def of(self, asker: RunAsker | None, *, user_id: str) -> GrantedRights:
        """Return the rights of an asker in the conversations of a user, who may be a project's. Raises AccessEnded."""
        if asker is None:
            return EVERYTHING
        async with self._store.reading() as tx:
            rights = await load_rights_of(tx, asker, self.defaults)
            return await join_rights(tx, rights, user_id, self.defaults)

    async def of_user(self, user_id: str) -> GrantedRights:
        """Return the rights of a user for whom the server works by itself, as by a schedule. Raises AccessEnded."""
        return await self.of(RunAsker(user_id) if self._has_login else None, user_id=user_id)

    async def of_caller(self, principal: Principal, *, user_id: str) -> GrantedRights:
        """Return the rights of the caller of a request in the conversations of a user, who may be a project's: with
        one query for the caller's own, with none where the caller may all. Raises AccessEnded."""
        if principal.via in ("local", "token") or principal.has_role("admin"):
            return GrantedRights(principal)
        async with self._store.reading() as tx:
            rights = await load_rights(tx, principal, self.defaults)
            return await join_rights(tx, rights, user_id, self.defaults)

    async def expect_model(self, rights: GrantedRights, name: str, *, user_id: str) -> None:
        """Raise NotGranted: the model was not granted, and is none of a provider that the user has connected."""
        if rights.may_use("model", name):
            return
        if rights.principal.key is None or rights.principal.key.models is None:
            provider, _, model = name.partition(":")
            server = f"{OWN}:{model.partition('/')[0]}" if provider == OWN else provider
            if server in await self._keys.of(user_id):
                return
        raise NotGranted(use="use", kind="model", name=name)


async def granted_names(store: Driver, rights: GrantedRights) -> Names:
    """Return the definitions that a caller may use, indexed: no error of theirs names another one."""
    async with store.reading() as tx:
        found = [each.definition for each in await catalog.definitions(tx)]
    return Names(each for each in found if rights.may_use(each.kind, each.id, each.name))


def find_item(names: Names, kind: GrantKind, name: str, defaults: Collection[GrantItem]) -> str:
    """Return as what something is granted that a person has named. Raises DefinitionNotFound, DefinitionAmbiguous."""
    if kind == "model" or (kind, name) in defaults:
        return name
    return names.one(kind, name).id


def name_item(names: Names, grant: Grant) -> str:
    """Return the name of what is granted, for people."""
    if grant.kind == "model" or (found := names.by_key.get((grant.kind, grant.item))) is None:
        return grant.item
    return found.name


@dataclass(frozen=True, slots=True)
class NarrowRole:
    """A role without the parts that the asker may not use. `lost` says so of each tool."""

    role: AgentRole
    lost: Sequence[str] = ()


def narrow_role(role: AgentRole, rights: GrantedRights) -> NarrowRole:
    """Return a role with the skills, tools and agents that its asker may use. Raises NotGranted: a skill needs a tool
    that the asker may not use."""
    if rights.is_unbounded:
        return NarrowRole(role)
    skills = [each for each in role.skills if rights.may_use("skill", each.id, each.name)]
    there = {item.tool_id for skill in skills for item in skill.tools}
    functions, lost = [], list[str]()
    for each in role.functions:
        tool = each.tool
        if tool.id in there and rights.may_use("tool", tool.id, tool.name):
            functions.append(each)
        elif each.required and tool.id in there:
            raise NotGranted(use="use", kind="tool", name=tool.name)
        else:
            lost.append(f"The user has no right to use the tool {tool.name}.")
    sub_agents = tuple(each for each in role.sub_agents if rights.may_use("agent", each.id, each.name))
    narrowed = replace(role, skills=tuple(skills), functions=tuple(functions), sub_agents=sub_agents)
    return NarrowRole(narrowed, lost)


@dataclass(slots=True)
class RunRights:
    """The rights of a run while it works.

    `user_id` is whose the thread is, and `payer` whose keys of providers it uses. `expect_source` raises what the
    asker's right to a source lacks. `source` is that of the run, and `databases` are the names of the sources of its
    tools, by the tools' ids.
    """

    reader: AskerRights
    asker: RunAsker | None
    present: GrantedRights
    role: AgentRole
    model: str
    user_id: str
    payer: str
    expect_source: Callable[[str, GrantedRights], Awaitable[None]]
    source: str | None = None
    read_at: float = 0.0

    async def now(self) -> GrantedRights:
        """Return the rights, not older than ten seconds. Raises AccessEnded."""
        if self.asker is not None and time.monotonic() - self.read_at > READ_AGAIN_SECONDS:
            self.present = await self.reader.of(self.asker, user_id=self.user_id)
            self.read_at = time.monotonic()
        return self.present

    async def expect(self) -> None:
        """Raise AccessEnded, or NotGranted: the agent or the model was taken back, and the run cannot go on."""
        if self.asker is None:
            return
        rights = await self.now()
        if rights.is_unbounded:
            return
        rights.expect_use("agent", self.role.agent.id, self.role.agent.name)
        await self.reader.expect_model(rights, self.model, user_id=self.payer)

    @asynccontextmanager
    async def keep_watch(self) -> AsyncIterator[None]:
        """Break the block off when who asked may not go on, also in a long reply. Raises what `expect` raises."""
        if self.asker is None:
            yield
            return
        working, watch = asyncio.current_task(), asyncio.create_task(self._wait_for_end())
        assert working is not None

        def leave(_: object) -> None:
            working.cancel()

        watch.add_done_callback(leave)
        try:
            yield
        except asyncio.CancelledError:
            # The run may be stopped as well.
            if not watch.done() or working.uncancel():
                raise
            watch.result()
        finally:
            watch.remove_done_callback(leave)
            watch.cancel()

    async def _wait_for_end(self) -> None:
        while True:
            await asyncio.sleep(_LOOK_SECONDS)
            try:
                await self.expect()
            except StoreError as error:
                _logger.warning("The rights of a run cannot be read: %s", error)

    async def refusal(self, tool: Tool, args: Mapping[str, Any]) -> Observation | None:
        """Return what the model reads where the asker has no right to a call any more; else None."""
        if self.asker is None:
            return None
        rights = await self.now()
        if rights.is_unbounded:
            return None
        try:
            await self._expect_call(rights, tool, args)
        except LongthreadError as error:
            return make_failure(error)
        return None

    async def _expect_call(self, rights: GrantedRights, tool: Tool, args: Mapping[str, Any]) -> None:
        if tool.name == LOAD_SKILL:
            for skill in self.role.skills:
                if skill.name == args.get("name"):
                    rights.expect_use("skill", skill.id, skill.name)
            return
        id_ = tool.definition or tool_id(tool.name)
        kind: Kind = "tool"
        if tool.definition is not None or (kind, id_) in BUILTIN:
            rights.expect_use("tool", id_, tool.name)
            having = [each for each in self.role.skills if any(item.tool_id == id_ for item in each.tools)]
            if having and not any(rights.may_use("skill", each.id, each.name) for each in having):
                raise NotGranted(use="use", kind="skill", name=having[0].name)
        if tool.definition is None and tool.name in DATA_TOOLS and self.source is not None:
            await self.expect_source(self.source, rights)
        for each in self.role.functions:
            if each.tool.id == tool.definition and "database" in each.tool.implementation:
                await self.expect_source(str(each.tool.implementation["database"]), rights)
