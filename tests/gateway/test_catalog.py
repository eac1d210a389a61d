"""Upstreams and routes of the catalog: what is refused, what comes back, and where requests go."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Mapping
from dataclasses import replace
from typing import Any

import pytest
from tests.store.conftest import plain as plain

from longthread.errors import CatalogInvalid, DefinitionInUse
from longthread.gateway import upstream as catalog_routes
from longthread.gateway.dialects.anthropic import Anthropic
from longthread.gateway.dialects.dialect import Dialect
from longthread.gateway.http import Incoming
from longthread.gateway.service import ANTHROPIC, RESPONSES, Gateway, GatewayOptions
from longthread.gateway.upstream import CatalogRoutes, NoUpstream, Routes, Upstream, merge_routes
from longthread.model.catalog import RouteDefinition, UpstreamDefinition
from longthread.store.driver import Driver
from longthread.testing import ProviderEmulator
from longthread.tools.catalog.definitions import Catalog

pytestmark = pytest.mark.one_backend

OWN = Routes({
    "anthropic": Upstream("anthropic", "https://api.anthropic.com", ["anthropic"]),
    "openai": Upstream("openai", "https://api.openai.com", ["responses", "completions"]),
})  # fmt: skip


def upstream(name: str = "deepseek", **fields: Any) -> dict[str, Any]:
    given = {"base_url": "https://api.deepseek.com", "dialects": ["completions"], "api_key": "${DEEPSEEK}"}
    return {"kind": "upstream", "name": name, **given, **fields}


def route(name: str = "cheap", **fields: Any) -> dict[str, Any]:
    return {"kind": "route", "name": name, "models": "gpt-*-mini", "upstream": "deepseek", **fields}


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"dialects": ["openai"]}, r"dialects\[0\]: there is no dialect openai. There are: anthropic, completions"),
        ({"dialects": ["response"]}, r"Did you mean responses\?"),
        ({"dialects": "anthropic"}, r"dialects: it must be a list, and is anthropic"),
        ({"dialects": []}, r"dialects: it is empty. Give those that it speaks: anthropic, responses, completions"),
        ({"dialects": None}, r"dialects: it is missing"),
        ({"base_url": ""}, r"base_url: it is missing"),
        ({"base_url": "api.deepseek.com"}, r"base_url: it must be a URL that begins with http:// or https://"),
        ({"base_url": "ftp://api.deepseek.com"}, r"begins with http:// or https://, and is ftp://api.deepseek.com"),
        ({"base_url": "https://"}, r"base_url: it must be a URL"),
        ({"base_url": "https://a b.com"}, r"base_url: it must be a URL"),
        ({"base_url": "https://[::1"}, r"base_url: it is no URL"),
        ({"base_url": "https://a.com:99999"}, r"base_url: it is no URL"),
        ({"base_url": "https://me:pw@a.com"}, r"base_url: it holds a user name or a password"),
        ({"base_url": "https://a.com/v1?key=1"}, r"base_url: paths are put behind it"),
        ({"base_url": "https://${HOST}/v1"}, r"base_url: a secret's name stands in api_key alone"),
        ({"api_key": "sk-abcdef"}, r"api_key: it must be the name of a secret, as \$\{NAME\} alone"),
        ({"api_key": "Bearer ${DEEPSEEK}"}, r"api_key: .*LONGTHREAD_SECRET_NAME"),
        ({"api_key": "***"}, r"api_key: it must be the name"),
        ({"api_key": 7}, r"api_key: it must be a text"),
        ({"holds_state": "yes"}, r"holds_state: it must be true or false"),
        ({"url": "https://x"}, r"url: there is no such field. There are: api_key, base_url"),
    ],
)  # fmt: skip
def test_an_upstream_that_is_wrong_is_refused_by_its_field(given: Mapping[str, Any], said: str) -> None:
    with pytest.raises(CatalogInvalid, match=said) as raised:
        Catalog.check([upstream(**given)])
    assert "sk-abcdef" not in str(raised.value)
    assert "me:pw" not in str(raised.value)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"upstream": "deepsek"}, r"upstream: there is no upstream deepsek. Did you mean deepseek\?"),
        ({"upstream": None}, r"upstream: it is missing"),
        ({"models": None}, r"models: it is missing"),
        ({"models": ["a", "b"]}, r"models: it must be a text, and is a list"),
        ({"models": "gpt-* "}, r"models: it must have no blank at its ends"),
        ({"model": "deep\nseek"}, r"model: it must have no blank"),
        ({"priority": 1}, r"priority: there is no such field"),
    ],
)
def test_a_route_that_is_wrong_is_refused_by_its_field(given: Mapping[str, Any], said: str) -> None:
    with pytest.raises(CatalogInvalid, match=said):
        Catalog.check([route(**given), upstream()])


async def test_they_come_back_with_their_versions(store: Driver) -> None:
    catalog = Catalog(store, user="ada")
    given = [upstream(), route(model="deepseek-chat"), upstream("held", api_key=None, holds_state=True)]
    assert [each.action for each in await catalog.apply(given)] == ["created"] * 3
    assert [each.action for each in await catalog.apply(given)] == ["unchanged"] * 3
    names = await catalog.names()
    written = [
        names.write_definition(each.kind, each.name, each.body)
        for each in (await catalog.find("upstream", "deepseek"),)
    ]
    assert written == [{**upstream(), "description": None, "holds_state": False, "is_active": True}]
    await catalog.apply([upstream(base_url="https://elsewhere.example/v1")])
    history = await catalog.history("upstream", "deepseek")
    assert [(each.version, (each.body or {})["base_url"]) for each in history] == [
        (1, "https://api.deepseek.com"),
        (2, "https://elsewhere.example/v1"),
    ]
    there = await catalog.find("upstream", "deepseek")
    assert there.updated_at is not None
    assert there.created_at is not None
    assert there.updated_at > there.created_at


async def test_an_upstream_that_a_route_names_stays(store: Driver) -> None:
    catalog = Catalog(store)
    await catalog.apply([upstream(), route()])
    for force in (False, True):
        with pytest.raises(DefinitionInUse, match="A route needs its upstream"):
            await catalog.delete("upstream", "deepseek", force=force)
    found = await catalog.find("upstream", "deepseek")
    with pytest.raises(CatalogInvalid, match=r"route cheap, which is there, upstream: there is no upstream deepseek"):
        await catalog.apply([upstream("renamed", id=found.id)])
    await catalog.delete("route", "cheap")
    await catalog.delete("upstream", "deepseek")


async def test_a_key_that_another_program_wrote_is_used_and_not_shown(store: Driver, plain: Any) -> None:
    catalog = Catalog(store)
    await catalog.apply([upstream()])
    plain("UPDATE upstreams SET api_key = 'sk-written-out' WHERE name = 'deepseek'")
    names = await catalog.names()
    there = names.one("upstream", "deepseek")
    assert names.write_definition("upstream", "deepseek", there.body)["api_key"] == "***"
    await catalog.apply([upstream(description="new")])
    assert "sk-written-out" not in str(await catalog.history("upstream", "deepseek"))
    plain("UPDATE upstreams SET api_key = 'sk-written-out' WHERE name = 'deepseek'")
    found = await CatalogRoutes(store, OWN).find(["completions"], "any")
    assert found[0].api_key == "sk-written-out"
    assert "sk-written-out" not in repr(found)


def found_by(routes: Routes, *asked: tuple[str, str]) -> list[tuple[str, str] | str]:
    """Where requests go, or what they are refused with."""
    found: list[tuple[str, str] | str] = []
    for dialect, model in asked:
        try:
            upstream, name = routes.find([dialect], model)
            found.append((upstream.name, name))
        except NoUpstream as error:
            found.append(str(error))
    return found


def test_the_longest_pattern_counts_and_what_no_route_names_takes_the_rest() -> None:
    upstreams = [
        UpstreamDefinition("deepseek", "https://d", ("completions", "anthropic")),
        UpstreamDefinition("router", "https://r/v1", ("completions",)),
    ]
    routes = [
        RouteDefinition("a", "*", "deepseek", "deepseek-chat"),
        RouteDefinition("b", "gpt-5*", "router"),
        RouteDefinition("c", "gpt-5-mini", "deepseek"),
    ]
    every = merge_routes(upstreams, routes, OWN)
    assert found_by(every, ("completions", "gpt-5-mini"), ("completions", "gpt-5"), ("completions", "o9")) == [
        ("deepseek", "gpt-5-mini"),
        ("router", "gpt-5"),
        ("deepseek", "deepseek-chat"),
    ]
    some = merge_routes(upstreams, routes[2:], OWN)
    assert found_by(some, ("completions", "gpt-5"), ("anthropic", "claude")) == [
        ("router", "gpt-5"),
        ("anthropic", "claude"),
    ]
    own = merge_routes([UpstreamDefinition("openai", "https://mine", ("completions",))], [], OWN)
    nobody = "This gateway has no upstream that speaks responses for the model gpt-5."
    assert found_by(own, ("completions", "gpt-5"), ("responses", "gpt-5")) == [("openai", "gpt-5"), nobody]
    assert own.upstreams["openai"].base_url == "https://mine"


def test_a_route_that_cannot_serve_the_dialect_refuses_and_no_other_upstream_is_asked() -> None:
    upstreams = [
        UpstreamDefinition("deepseek", "https://d", ("completions",)),
        UpstreamDefinition("zhipu", "https://z", ("completions", "anthropic")),
    ]
    routes = [
        RouteDefinition("alias", "claude-*", "deepseek", "deepseek-chat"),
        RouteDefinition("all", "*", "zhipu"),
        RouteDefinition("gone", "gpt-*", "resting"),
    ]
    every = merge_routes(upstreams, routes, OWN)
    refused, resting, pair = found_by(every, ("anthropic", "claude-5"), ("responses", "gpt-5"), ("anthropic", "glm"))
    assert refused == (
        "The route alias sends the model claude-5 to the upstream deepseek, which speaks completions, and not "
        "anthropic. Use a client that speaks completions, or change the route."
    )
    assert "The route gone sends the model gpt-5 to the upstream resting, which is not active." in resting
    assert pair == ("zhipu", "glm")
    twin = merge_routes(upstreams, [*routes, RouteDefinition("twin", "claude-*", "zhipu", "glm-5")], OWN)
    assert found_by(twin, ("anthropic", "claude-5"), ("completions", "claude-5")) == [
        ("zhipu", "glm-5"),
        ("deepseek", "deepseek-chat"),
    ], "one pattern may have an upstream for each dialect"


@pytest.mark.parametrize(
    ("base", "dialect", "path", "url"),
    [
        ("https://api.example.com", "anthropic", "/v1/messages", "https://api.example.com/v1/messages"),
        ("https://api.example.com/", "completions", "/v1/chat/completions", "https://api.example.com/v1/chat/completions"),
        ("https://api.example.com/v1", "anthropic", "/v1/messages", "https://api.example.com/v1/messages"),
        ("https://api.deepseek.com/anthropic", "anthropic", "/v1/messages", "https://api.deepseek.com/anthropic/v1/messages"),
        ("https://openrouter.ai/api/v1", "completions", "/v1/chat/completions", "https://openrouter.ai/api/v1/chat/completions"),
        ("https://g.example/v1beta/openai/", "completions", "/v1/models", "https://g.example/v1beta/openai/models"),
    ],
)  # fmt: skip
def test_a_base_is_written_as_for_the_vendors_sdks(base: str, dialect: str, path: str, url: str) -> None:
    assert Upstream("u", base, [dialect]).url(dialect, path, b"") == url


def asked(model: str) -> Incoming:
    body = {"model": model, "max_tokens": 100, "messages": [{"role": "user", "content": "Hello"}]}
    headers = [(b"x-api-key", b"the-clients"), (b"anthropic-version", b"2023-06-01")]
    return Incoming("POST", "/v1/messages", headers, json.dumps(body).encode())


@pytest.mark.parametrize(
    ("dialect", "method", "path"),
    [
        (ANTHROPIC, "POST", "/v1/messages"),
        (ANTHROPIC, "POST", "/v1/messages/count_tokens"),
        (RESPONSES, "POST", "/v1/responses"),
        (ANTHROPIC, "GET", "/v1/models/claude-opus-5"),
    ],
)
async def test_a_request_that_its_route_cannot_serve_reaches_nobody(
    store: Driver, monkeypatch: pytest.MonkeyPatch, dialect: Dialect, method: str, path: str
) -> None:
    with ProviderEmulator(None) as general, ProviderEmulator(None) as routed:
        own = Upstream("own", general.anthropic_url, ["anthropic", "responses"])
        opened = Gateway(store, Routes({"own": own}), GatewayOptions("ada"))
        given = upstream("deepseek", base_url=routed.anthropic_url, api_key=None)
        await Catalog(store).apply([given, route("alias", models="claude-*")])
        request = replace(asked("claude-opus-5"), method=method, path=path)
        answer = await (opened.relay if method == "GET" else opened.reply)(dialect, request)
        await opened.close()
        assert (answer.status, general.requests, routed.requests) == (404, [], [])
        message = json.loads(answer.body)["error"]["message"]
        assert "route alias" in message
        assert f"speaks completions, and not {dialect.name}" in message


@pytest.fixture
async def gateway(store: Driver) -> AsyncIterator[Gateway]:
    nowhere = Upstream("anthropic", "http://127.0.0.1:9", ["anthropic"])
    opened = Gateway(store, Routes({"anthropic": nowhere}), GatewayOptions("ada"))
    yield opened
    await opened.close()


async def test_a_change_is_seen_without_a_restart(
    store: Driver, gateway: Gateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(catalog_routes, "FRESH_SECONDS", 0.0)
    monkeypatch.setenv("LONGTHREAD_SECRET_MINE", "the-gateways-own")
    assert (await gateway.reply(Anthropic(), asked("claude-opus-5"))).status == 502
    with ProviderEmulator(None) as emulator:
        catalog = Catalog(store)
        given = upstream("emulated", base_url=emulator.anthropic_url, dialects=["anthropic"], api_key="${MINE}")
        there = route(models="claude-*", upstream="emulated", model="claude-haiku-4-5")
        await catalog.apply([given, there])
        answer = await gateway.reply(Anthropic(), asked("claude-opus-5"))
        assert (answer.status, json.loads(answer.body)["model"]) == (200, "claude-haiku-4-5")
        [sent] = emulator.requests
        assert sent.headers["x-api-key"] == "the-gateways-own"
        assert sent.body["model"] == "claude-haiku-4-5"
        await catalog.apply([given | {"is_active": False}])
        answer = await gateway.reply(Anthropic(), asked("claude-opus-5"))
        assert (answer.status, json.loads(answer.body)["error"]["type"]) == (404, "not_found_error")
        assert "upstream emulated, which is not active" in answer.body.decode(), "another one would get the key"
        await catalog.apply([there | {"is_active": False}])
        assert (await gateway.reply(Anthropic(), asked("claude-opus-5"))).status == 502
        assert len(emulator.requests) == 1


async def test_an_upstream_with_a_key_of_its_own_gets_no_credential_of_the_client(
    store: Driver, gateway: Gateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(catalog_routes, "FRESH_SECONDS", 0.0)
    monkeypatch.setenv("LONGTHREAD_SECRET_MINE", "the-gateways-own")
    names = ["authorization", "x-api-key", "api-key", "x-goog-api-key", "cookie", "openai-organization"]
    with ProviderEmulator(None, loop=True) as emulator:
        given = upstream("emulated", base_url=emulator.anthropic_url, dialects=["anthropic"], api_key="${MINE}")
        await Catalog(store).apply([given])
        request = asked("claude-opus-5")
        headers = [(name.encode(), b"the-clients") for name in names] + list(request.headers)
        assert (await gateway.reply(Anthropic(), replace(request, headers=headers))).status == 200
        [sent] = emulator.requests
        assert "the-clients" not in sent.headers.values()


async def test_without_its_secret_an_upstream_is_not_asked(
    store: Driver, gateway: Gateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The client's own key would go to somebody else."""
    monkeypatch.setattr(catalog_routes, "FRESH_SECONDS", 0.0)
    with ProviderEmulator(None) as emulator:
        given = upstream("emulated", base_url=emulator.anthropic_url, dialects=["anthropic"], api_key="${MINE}")
        await Catalog(store).apply([given])
        answer = await gateway.reply(Anthropic(), asked("claude-opus-5"))
        assert (answer.status, emulator.requests) == (503, [])
        assert "LONGTHREAD_SECRET_MINE" in json.loads(answer.body)["error"]["message"]
        monkeypatch.setenv("LONGTHREAD_SECRET_MINE", "the-gateways-own")
        assert (await gateway.reply(Anthropic(), asked("claude-opus-5"))).status == 200
