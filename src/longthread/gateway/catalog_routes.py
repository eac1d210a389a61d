"""Where requests go, as the catalog says now."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Sequence

from longthread.errors import LongthreadError, StoreError
from longthread.gateway.upstream import Route, Routes, Upstream
from longthread.model.catalog import RouteDefinition, UpstreamDefinition
from longthread.store import catalog
from longthread.store.driver import Driver
from longthread.tools.secrets import read_secrets

FRESH_SECONDS = 2.0
"""For how long the catalog is not read again. An idle gateway does not read it."""
_log = logging.getLogger(__name__)


class CatalogRoutes:
    """The catalog's upstreams and routes, and behind them those that every gateway has.

    Safe to share between tasks.
    """

    def __init__(self, store: Driver, own: Routes) -> None:
        self._store = store
        self._own = own
        self._routes = own
        self._definitions: tuple[list[UpstreamDefinition], list[RouteDefinition]] | None = None
        self._read_at = 0.0
        self._first = asyncio.Lock()

    async def find(self, dialects: Sequence[str], model: str) -> tuple[Upstream, str]:
        """Return the upstream for a model that speaks one of these dialects, and by which name it is asked.

        Raises NoUpstream. Raises StoreError: the catalog could never be read, so nobody knows where a request and its
        key may go.
        """
        if self._definitions is None:
            async with self._first:
                if self._definitions is None:
                    await self._read()
        elif time.monotonic() - self._read_at >= FRESH_SECONDS:
            await self._read()
        return self._routes.find(dialects, model)

    async def _read(self) -> None:
        self._read_at = time.monotonic()
        try:
            async with self._store.reading() as tx:
                found = (await catalog.upstreams(tx), await catalog.routes(tx))
        except StoreError as error:
            if self._definitions is None:
                raise
            _log.error("The catalog cannot be read, so upstreams and routes stay as they were: %s", error)
            return
        if found != self._definitions or any(each.problem for each in self._routes.upstreams.values()):
            self._routes = merged(*found, self._own)
        self._definitions = found


def merged(upstreams: Sequence[UpstreamDefinition], routes: Sequence[RouteDefinition], own: Routes) -> Routes:
    """Return the catalog's upstreams and routes before the gateway's own. One of the same name stands in its place.

    Of several patterns that fit a model, the longest counts.
    """
    there = {each.name: _upstream(each) for each in upstreams}
    every = there | {name: each for name, each in own.upstreams.items() if name not in there}
    found = [Route(route.models, route.upstream, route.model, route.name) for route in sorted(routes, key=_rank)]
    return Routes(every, [*found, *own.routes])


def _rank(route: RouteDefinition) -> tuple[bool, int, str]:
    """Return what orders routes: names before patterns, long patterns before short ones."""
    plain = [character for character in route.models if character not in "*?"]
    return len(plain) < len(route.models), -len(plain), route.name


def _upstream(found: UpstreamDefinition) -> Upstream:
    key, problem = found.api_key, ""
    if key is not None and key.startswith("${"):
        try:
            key = read_secrets([key[2:-1]]).filled(key)
        except LongthreadError as error:
            key, problem = None, str(error)
    return Upstream(found.name, found.base_url, found.dialects, key, found.holds_state, problem)
