"""Which upstreams and routes a caller's requests may go to, and so whose secrets they may spend."""

from __future__ import annotations

import time
from collections.abc import Collection, Sequence
from fnmatch import fnmatchcase

from longthread.access.grants import GrantedRights, GrantItem, load_rights
from longthread.access.principal import Principal
from longthread.gateway.upstream import NoUpstream, Routes
from longthread.store.driver import Driver

READ_AGAIN_SECONDS = 10.0
"""How old the rights of a caller may be."""
_MOST = 10_000
"""So many callers are kept in memory."""


class CallerGrants:
    """The rights of the gateway's callers, which are read again when they are old. Safe to share between tasks."""

    def __init__(self, store: Driver, own_upstreams: Collection[str]) -> None:
        self._store = store
        self._defaults: frozenset[GrantItem] = frozenset(("upstream", name) for name in own_upstreams)
        self._known: dict[Principal, tuple[float, GrantedRights]] = {}

    async def of(self, principal: Principal) -> GrantedRights:
        """Return the rights of a caller. Raises StoreError."""
        read_at, rights = self._known.get(principal, (0.0, None))
        if rights is not None and time.monotonic() - read_at <= READ_AGAIN_SECONDS:
            return rights
        async with self._store.reading() as tx:
            rights = await load_rights(tx, principal, self._defaults)
        if len(self._known) >= _MOST:
            self._known.clear()
        self._known[principal] = time.monotonic(), rights
        return rights


def permit_routes(routes: Routes, rights: GrantedRights, dialects: Sequence[str], model: str) -> Routes:
    """Return what of the routes a caller may use for a model. A route needs a grant of its own or of its upstream.

    Raises NoUpstream: the routes for this model were not granted. It goes nowhere else: another vendor would get it.
    """
    if rights.is_unbounded:
        return routes
    granted = {name for name, each in routes.upstreams.items() if rights.may_use("upstream", each.item)}
    kept = [each for each in routes.routes if each.upstream in granted or rights.may_use("route", each.item)]
    fitting = [each for each in routes.routes if fnmatchcase(model, each.models)]
    if fitting and not any(each in kept for each in fitting if each.models == fitting[0].models):
        raise NoUpstream(f"This gateway has no upstream that speaks {dialects[0]} for the model {model}.")
    reached = granted | {each.upstream for each in kept}
    return Routes({name: each for name, each in routes.upstreams.items() if name in reached}, kept)


def expect_model(rights: GrantedRights, model: str, *names: str) -> None:
    """Raise NoUpstream: the caller's API key is for other models. `names` are others of the model."""
    if model and not rights.is_in_key("model", (model, *names)):
        raise NoUpstream(f"This API key is not for the model {model}.", 403)
