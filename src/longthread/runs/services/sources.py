"""The data sources that threads ask."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager

from longthread.errors import InvalidInput, SourceMissing, ThreadNotFound
from longthread.model.thread import Thread
from longthread.runs.agents import DelegationScope
from longthread.settings import Settings
from longthread.store import log
from longthread.store.driver import Driver
from longthread.tools.analysis.address import same_source
from longthread.tools.analysis.source import Source
from longthread.tools.catalog.address import fill_in_secrets
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

    async def open(self, spec: str | None, thread: Thread | str | None, *, user_id: str) -> Source:
        """Open a source for a user: `spec`, else the thread's source, else the settings'. The caller closes it.

        Raises:
            SourceError: it cannot be opened.
            SourceMissing: nothing names a source.
            ThreadNotFound: there is no such thread, and nothing else names a source.
        """
        given = spec
        if spec is None and thread is not None:
            found = await self._find(thread, user_id) if isinstance(thread, str) else thread
            if found and found.source:
                return await self.open_again(found.source, user_id=user_id)
        spec = spec or self._settings.source
        if not spec:
            raise SourceMissing()
        address = await named_address(self._store, spec)
        opened = await self._opener.open(address, user_id)
        # An address of the catalog is not cached: it may change.
        if given is not None and address == given.strip():
            self._addresses[opened.spec] = address
        return opened

    async def spec_of(self, role: AgentRole, spec: str, *, user_id: str) -> str:
        """Open a source that a user gives an agent, and return it as a thread stores it: without its password.

        Raises:
            InvalidInput: the agent asks no source of its own.
            SourceError: it cannot be opened.
        """
        _expect_uses_sources(role)
        async with await self.open(spec, None, user_id=user_id) as source:
            return source.spec

    async def open_again(self, spec: str, *, user_id: str) -> Source:
        """Open a source that was opened before, by its `spec`, which is no name in the catalog: a plugin's source may
        have the same. The caller closes it. Raises SourceError."""
        # Its address is not cached: it may come from the catalog, and may change.
        return await self._opener.open(await self.with_password(spec), user_id)

    async def fingerprint(self, spec: str, *, user_id: str) -> str:
        """Return the present fingerprint of a source that was opened before, by its `spec`. Raises SourceError."""
        async with await self.open_again(spec, user_id=user_id) as source:
            return await source.fingerprint()

    @asynccontextmanager
    async def for_run(
        self, role: AgentRole, spec: str | None, thread: Thread | str | None, user_id: str, scope: DelegationScope
    ) -> AsyncIterator[RunSources]:
        """Yield the sources of a run. They are closed here if the block fails; otherwise the run closes them.

        Raises:
            InvalidInput: the agent has no tool for the source that was given.
            SourceError, SourceMissing, ThreadNotFound: as `open`.
        """
        own = await self._own(role, spec, thread, user_id, scope)

        async def open_named(name: str) -> Source:
            return await self._opener.open(await address_of(self._store, name), user_id)

        async with AsyncExitStack() as stack:
            sources = RunSources(own, open_named)
            stack.push_async_callback(sources.close)
            yield sources
            stack.pop_all()

    async def _own(
        self, role: AgentRole, spec: str | None, thread: Thread | str | None, user_id: str, scope: DelegationScope
    ) -> Source | None:
        """Return the given source, else the agent's, the calling agent's, the thread's or the settings'."""
        if spec is not None:
            _expect_uses_sources(role)
        elif _uses_sources(role):
            if role.source is not None:
                return await self._opener.open(fill_in_secrets(role.source.address), user_id)
            if scope.source is not None:
                return await self._opener.open(await self.with_password(scope.source), user_id)
        if role.asks_data or spec or (role.sub_agents and isinstance(thread, Thread) and thread.source):
            return await self.open(spec, thread, user_id=user_id)
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
