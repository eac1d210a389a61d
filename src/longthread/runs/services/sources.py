"""The data sources that threads ask."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager

from longthread.access.grants import EVERYTHING, GrantedRights
from longthread.access.projects import project_of
from longthread.errors import InvalidInput, NotGranted, SourceMissing, ThreadNotFound
from longthread.model.thread import Thread
from longthread.runs.agents import DelegationScope
from longthread.settings import Settings
from longthread.store import catalog, log
from longthread.store.driver import Driver
from longthread.tools.analysis.address import DEMO, normalize_spec, redact_spec, same_source
from longthread.tools.analysis.source import Source
from longthread.tools.catalog.address import fill_in_secrets, is_of
from longthread.tools.catalog.names import address_again, address_of, named_address
from longthread.tools.catalog.role import AgentRole
from longthread.tools.sources import Opener, RunSources


class Sources:
    """Opens the sources of threads and runs."""

    def __init__(self, store: Driver, settings: Settings) -> None:
        self._store = store
        self._settings = settings
        self._opener = Opener(settings)
        self._addresses: dict[str, str] = {}
        """Addresses with their passwords, as callers gave them."""

    @property
    def named_users(self) -> frozenset[str]:
        """The users whom policies name."""
        return self._opener.named_users

    async def open(
        self, spec: str | None, thread: Thread | str | None, *, user_id: str, rights: GrantedRights = EVERYTHING
    ) -> Source:
        """Open a source for a user: `spec`, else the thread's source, else the settings'. The caller closes it.

        Raises:
            NotGranted: the caller may not use it.
            SourceError: it cannot be opened.
            SourceMissing: nothing names a source.
            ThreadNotFound: there is no such thread, and nothing else names a source.
        """
        given = spec
        if spec is None and thread is not None:
            found = await self._find(thread, user_id) if isinstance(thread, str) else thread
            if found and found.source:
                return await self.open_again(found.source, user_id=user_id, rights=rights)
        spec = spec or self._settings.source
        if not spec:
            raise SourceMissing()
        await self.expect_granted(spec, rights)
        address = await named_address(self._store, spec)
        opened = await self._open(address, user_id, rights)
        # An address of the catalog is not cached: it may change.
        if given is not None and address == given.strip():
            self._addresses[opened.spec] = address
        return opened

    async def spec_of(self, role: AgentRole, spec: str, *, user_id: str, rights: GrantedRights = EVERYTHING) -> str:
        """Open a source that a user gives an agent, and return it as a thread stores it: without its password.

        Raises:
            InvalidInput: the agent asks no source of its own.
            NotGranted: the caller may not use the source.
            SourceError: it cannot be opened.
        """
        _expect_uses_sources(role)
        async with await self.open(spec, None, user_id=user_id, rights=rights) as source:
            return source.spec

    async def open_again(self, spec: str, *, user_id: str, rights: GrantedRights = EVERYTHING) -> Source:
        """Open a source that was opened before, by its `spec`, which is no name in the catalog: a plugin's source may
        have the same. The caller closes it. Raises NotGranted, SourceError."""
        await self.expect_granted(spec, rights)
        # Its address is not cached: it may come from the catalog, and may change.
        return await self._open(await self.with_password(spec), user_id, rights)

    async def fingerprint(self, spec: str, *, user_id: str, rights: GrantedRights = EVERYTHING) -> str:
        """Return the present fingerprint of a source that was opened before, by its `spec`. Raises NotGranted,
        SourceError."""
        async with await self.open_again(spec, user_id=user_id, rights=rights) as source:
            return await source.fingerprint()

    async def expect_granted(self, spec: str, rights: GrantedRights) -> None:
        """Raise NotGranted: a source, by a name of the catalog or an address, is none that the caller may use. One that
        does not exist raises the same: no error says which sources there are."""
        if rights.is_unbounded:
            return
        if not any(rights.may_use("source", item, name) for item, name in await self._items_of(spec)):
            raise NotGranted(use="use", kind="source", name=redact_spec(spec))

    async def item_of(self, spec: str, rights: GrantedRights) -> str:
        """Return as what a source is granted that the caller may use. Raises NotGranted, as `expect_granted` does."""
        for item, name in await self._items_of(spec):
            if rights.may_use("source", item, name):
                return item
        raise NotGranted(use="use", kind="source", name=redact_spec(spec))

    async def _items_of(self, spec: str) -> list[tuple[str, str]]:
        """Return as what a source may be granted: each item with its name."""
        spec, configured = spec.strip(), self._settings.source
        items = [(DEMO, DEMO)] if spec == DEMO else []
        if configured is not None and (spec == configured or same_source(spec, configured)):
            items.append((redact_spec(configured), redact_spec(configured)))
        async with self._store.reading() as tx:
            for each in await catalog.sources(tx):
                if spec in (each.name, each.id) or is_of(each.address, normalize_spec(spec)):
                    items.append((each.id, each.name))
                    if configured in (each.name, each.id):
                        items.append((redact_spec(configured), each.name))
        return items

    async def _open(self, address: str, user_id: str, rights: GrantedRights) -> Source:
        person = None if rights.principal.via in ("local", "token") else rights.principal
        # Without a login the settings' user asks, in a project too.
        user = self._settings.user if person is None and project_of(user_id) is not None else user_id
        return await self._opener.open(address, user, person)

    @asynccontextmanager
    async def for_run(
        self,
        role: AgentRole,
        spec: str | None,
        thread: Thread | str | None,
        user_id: str,
        scope: DelegationScope,
        rights: GrantedRights = EVERYTHING,
    ) -> AsyncIterator[RunSources]:
        """Yield the sources of a run. They are closed here if the block fails; otherwise the run closes them.

        Raises:
            NotGranted: the caller may not use the run's own source.
            InvalidInput: the agent has no tool for the source that was given.
            SourceError, SourceMissing, ThreadNotFound: as `open`.
        """
        own = await self._own(role, spec, thread, user_id, scope, rights)

        async def open_named(name: str) -> Source:
            await self.expect_granted(name, rights)
            return await self._open(await address_of(self._store, name), user_id, rights)

        async with AsyncExitStack() as stack:
            sources = RunSources(own, open_named)
            stack.push_async_callback(sources.close)
            yield sources
            stack.pop_all()

    async def _own(
        self,
        role: AgentRole,
        spec: str | None,
        thread: Thread | str | None,
        user_id: str,
        scope: DelegationScope,
        rights: GrantedRights,
    ) -> Source | None:
        """Return the given source, else the agent's, the calling agent's, the thread's or the settings'."""
        if spec is not None:
            _expect_uses_sources(role)
        elif _uses_sources(role):
            if role.source is not None:
                rights.expect_use("source", role.source.id, role.source.name)
                return await self._open(fill_in_secrets(role.source.address), user_id, rights)
            if scope.source is not None:
                return await self.open_again(scope.source, user_id=user_id, rights=rights)
        if role.asks_data or spec or (role.sub_agents and isinstance(thread, Thread) and thread.source):
            return await self.open(spec, thread, user_id=user_id, rights=rights)
        return None

    async def close(self) -> None:
        """End the query processes that wait for the next source."""
        await self._opener.close()

    async def _find(self, thread_id: str, user_id: str) -> Thread | None:
        try:
            async with self._store.reading() as tx:
                return await log.find_thread(tx, thread_id, user_id=user_id)
        except ThreadNotFound:
            if self._settings.source:
                return None
            raise

    async def with_password(self, spec: str) -> str:
        """Return a thread's source with the password that is given here, in the settings or in the catalog: no
        thread stores one."""
        configured = self._settings.source
        if configured is not None and same_source(spec, configured):
            return configured
        return self._addresses.get(spec) or await address_again(self._store, spec)


def _uses_sources(role: AgentRole) -> bool:
    return role.asks_data or bool(role.sub_agents)


def _expect_uses_sources(role: AgentRole) -> None:
    if not _uses_sources(role):
        raise InvalidInput(reason=f"The agent {role.agent.name} asks no source of its own. Leave --source out.")
