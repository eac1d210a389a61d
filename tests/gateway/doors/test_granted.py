"""Whose requests go to an upstream, with its secret: those of users to whom it or its route was granted."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest
from tests.gateway.conftest import Start
from tests.gateway.doors.test_users import CHAT, Callers

from longthread import Catalog
from longthread.access import keys, users
from longthread.access.grants import GrantedRights, GrantItem, GrantKind, add_grant, remove_grant
from longthread.access.keys import NewKey
from longthread.access.principal import Principal
from longthread.gateway import granted
from longthread.gateway.granted import permit_routes
from longthread.gateway.upstream import NoUpstream, Route, Routes, Upstream
from longthread.runs.rights import default_items
from longthread.server.authentication import Authentication
from longthread.server.gateway import own_routes
from longthread.server.gateway_access import Door
from longthread.settings import Settings
from longthread.store.driver import Driver
from longthread.testing import ProviderEmulator

pytestmark = pytest.mark.one_backend

OURS, SECRET = "the gateway's own key", "the company's secret"
DIALECTS = ["completions", "responses"]


@pytest.fixture
async def items(store: Driver, provider: ProviderEmulator, monkeypatch: pytest.MonkeyPatch) -> dict[GrantKind, str]:
    """The ids of an upstream with a secret, and of a route to it."""
    monkeypatch.setenv("LONGTHREAD_SECRET_COMPANY", SECRET)
    monkeypatch.setattr(granted, "READ_AGAIN_SECONDS", 0.0)
    about = {"base_url": provider.anthropic_url, "dialects": DIALECTS, "api_key": "${COMPANY}"}
    upstream = {"kind": "upstream", "name": "company", **about}
    route = {"kind": "route", "name": "ours", "models": "company-*", "upstream": "company"}
    made = await Catalog(store).apply([upstream, route])
    return {each.kind: each.definition.id for each in made}  # type: ignore[misc]


@pytest.fixture
async def callers(store: Driver, start: Start, provider: ProviderEmulator, items: dict[GrantKind, str]) -> Callers:
    async with store.writing() as tx:
        ada, bob = await users.create_user(tx, "ada"), await users.create_user(tx, "bob", role="admin")
        made = [(await keys.create_key(tx, user, NewKey("gw", ["gateway"])))[1] for user in (ada, bob)]
    authentication = Authentication(Settings.of(auth="login"), store)
    url = await start(provider, door=Door(has_users=True), callers=authentication, api_key=OURS, user="default")
    return Callers(url, *made, ada.id, bob.id)


async def ask(callers: Callers, key: str, model: str = "company-x") -> int:
    return (await callers.ask(body=CHAT | {"model": model}, **{"x-api-key": key})).status_code


@pytest.mark.parametrize("kind", ["upstream", "route"])
async def test_a_secret_is_spent_for_whom_it_was_granted(
    store: Driver, callers: Callers, provider: ProviderEmulator, items: dict[GrantKind, str], kind: GrantKind
) -> None:
    assert await ask(callers, callers.ada) == 404
    assert provider.requests == []
    async with store.writing() as tx:
        await add_grant(tx, kind, items[kind], "user", callers.ada_id, "use", by="root")
    assert await ask(callers, callers.ada) == 200
    assert SECRET in str(dict(provider.requests[-1].headers))
    async with store.writing() as tx:
        await remove_grant(tx, kind, items[kind], "user", callers.ada_id, defaults=(), by="root")
    assert await ask(callers, callers.ada) == 404
    assert len(provider.requests) == 1


async def test_the_gateways_own_upstreams_are_everyones_until_that_is_taken_back(
    store: Driver, callers: Callers, provider: ProviderEmulator
) -> None:
    assert await ask(callers, callers.ada, "m") == 200
    assert OURS in str(dict(provider.requests[-1].headers))
    async with store.writing() as tx:
        for name in ("emulated",):
            about = {"defaults": {("upstream", name)}, "by": "root"}
            assert await remove_grant(tx, "upstream", name, "everyone", "", **about)  # type: ignore[arg-type]
    assert await ask(callers, callers.ada, "m") == 404
    assert await ask(callers, callers.bob, "m") == 200, "an administrator may all"


async def test_an_administrator_needs_no_grant(callers: Callers) -> None:
    assert await ask(callers, callers.bob) == 200


async def test_a_key_goes_no_further_than_its_models(store: Driver, callers: Callers) -> None:
    async with store.writing() as tx:
        bob = await users.find_user(tx, callers.bob_id)
        _, key = await keys.create_key(tx, bob, NewKey("one", ["gateway"], models=["company-y"]))
        _, named = await keys.create_key(tx, bob, NewKey("all", ["gateway"], models=["company:*"]))
    assert [await ask(callers, key, model) for model in ("company-x", "company-y")] == [403, 200]
    assert await ask(callers, named, "company-x") == 200


A, B = Upstream("a", "https://a", ["completions"], id="id-a"), Upstream("b", "https://b", ["completions"], id="id-b")
ROUTES = Routes({"a": A, "b": B}, [Route("gpt-5", "a", name="r", id="id-r"), Route("gpt-*", "b", name="s", id="id-s")])


@pytest.mark.parametrize(
    ("items", "model", "found"),
    [
        ([], "gpt-5", None),
        ([("upstream", "id-a")], "gpt-5", "a"),
        ([("upstream", "a")], "gpt-5", None),
        ([("route", "id-r")], "gpt-5", "a"),
        ([("route", "id-r")], "gpt-4", None),
        ([("upstream", "id-b"), ("route", "id-s")], "gpt-5", None),
        ([("upstream", "id-b")], "gpt-4", "b"),
        ([("route", "id-r")], "other", None),
        ([("upstream", "id-a"), ("upstream", "id-b")], "other", None),
    ],
)
def test_a_model_goes_where_its_route_leads_or_nowhere(
    items: Sequence[GrantItem], model: str, found: str | None
) -> None:
    rights = GrantedRights(Principal("u", "ada", "member", "key"), dict.fromkeys(items, "use"))
    try:
        upstream = permit_routes(ROUTES, rights, ["completions"], model).find(["completions"], model)[0].name
    except NoUpstream:
        upstream = None
    assert upstream == found


def test_without_routes_the_first_upstream_that_was_granted_is_asked() -> None:
    rights = GrantedRights(Principal("u", "ada", "member", "key"), {("upstream", "id-b"): "use"})
    permitted = permit_routes(replace(ROUTES, routes=()), rights, ["completions"], "m")
    assert permitted.find(["completions"], "m") == (B, "m")


def test_the_gateways_own_upstreams_are_among_what_everyone_may_use() -> None:
    assert {("upstream", name) for name in own_routes().upstreams} <= default_items(Settings.of())
