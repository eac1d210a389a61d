"""A gateway of a server with users: whose API key a request carries decides whose conversations it has."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import httpx
import pytest
from tests.gateway.conftest import Start
from tests.gateway.restoring.test_broken_off import RawProvider, stream

from longthread.access import keys, users
from longthread.access.keys import NewKey
from longthread.server.authentication import Authentication
from longthread.server.gateway_access import Door
from longthread.settings import Settings
from longthread.store import listing, log
from longthread.store.driver import Driver
from longthread.testing import ProviderEmulator

pytestmark = pytest.mark.one_backend

OWN = "the gateway's own key"
MESSAGES = {"model": "m", "max_tokens": 50, "messages": [{"role": "user", "content": "Hello"}]}
CHAT = {"model": "m", "messages": [{"role": "user", "content": "Hello"}]}


@dataclass
class Callers:
    """Two users and their keys, and the gateway's address."""

    url: str
    ada: str
    bob: str
    ada_id: str
    bob_id: str

    async def ask(self, path: str = "/v1/chat/completions", body: Any = None, **headers: str) -> httpx.Response:
        async with httpx.AsyncClient(trust_env=False) as client:
            sent = MESSAGES if path.endswith("messages") else CHAT
            return await client.post(self.url + path, json=body or sent, headers=headers)


@pytest.fixture
async def callers(store: Driver, start: Start, provider: ProviderEmulator) -> Callers:
    settings = Settings.of(auth="login")
    async with store.writing() as tx:
        ada, bob = await users.create_user(tx, "ada"), await users.create_user(tx, "bob")
        made = [(await keys.create_key(tx, user, NewKey("gw", ["gateway"])))[1] for user in (ada, bob)]
    door, authentication = Door(has_users=True), Authentication(settings, store)
    url = await start(provider, door=door, callers=authentication, api_key=OWN, user="default")
    return Callers(url, *made, ada.id, bob.id)


async def threads_of(store: Driver, user_id: str) -> list[str]:
    async with store.reading() as tx:
        return [each.id for each in await listing.list_threads(tx, user_id=user_id)]


@pytest.mark.parametrize("header", ["authorization", "x-api-key", "x-goog-api-key", "x-longthread-key"])
async def test_a_key_of_ours_never_goes_up(callers: Callers, provider: ProviderEmulator, header: str) -> None:
    value = f"Bearer {callers.ada}" if header == "authorization" else callers.ada
    assert (await callers.ask(**{header: value})).status_code == 200
    [request] = provider.requests
    assert callers.ada not in str(dict(request.headers))
    assert OWN in str(dict(request.headers))


async def test_who_asks_has_the_conversation(store: Driver, callers: Callers) -> None:
    for key in (callers.ada, callers.bob):
        assert (await callers.ask(**{"x-api-key": key})).status_code == 200
    ada, bob = await threads_of(store, callers.ada_id), await threads_of(store, callers.bob_id)
    assert len(ada) == len(bob) == 1
    assert not set(ada) & set(bob)
    assert await threads_of(store, "default") == []


@pytest.mark.parametrize("path", ["/v1/chat/completions", "/v1/responses", "/v1/messages"])
async def test_without_a_key_nothing_goes_up(callers: Callers, provider: ProviderEmulator, path: str) -> None:
    wrong = callers.ada[:-1] + ("A" if callers.ada[-1] != "A" else "B")
    for headers in ({}, {"x-api-key": "sk-of-a-provider"}, {"x-api-key": wrong}, {"authorization": f"Bearer {wrong}"}):
        answer = await callers.ask(path, {"model": "m", "input": "Hello"} if "responses" in path else None, **headers)
        assert answer.status_code == 401
        assert answer.headers["www-authenticate"] == "Bearer"
        assert answer.json()["error"]["message"]
    assert provider.requests == []


async def test_a_key_without_the_scope_is_refused(store: Driver, callers: Callers, provider: ProviderEmulator) -> None:
    async with store.writing() as tx:
        ada = await users.find_user(tx, callers.ada_id)
        _, other = await keys.create_key(tx, ada, NewKey("chat", ["chat", "read", "mcp"]))
    answer = await callers.ask("/v1/messages", **{"x-api-key": other})
    assert answer.status_code == 403
    assert "gateway" in answer.json()["error"]["message"]
    assert (await callers.ask(**{"x-api-key": other, "authorization": f"Bearer {callers.ada}"})).status_code == 400
    assert provider.requests == []


async def test_a_users_own_key_of_a_provider_goes_up_beside_ours(
    store: Driver, start: Start, callers: Callers, provider: ProviderEmulator
) -> None:
    authentication = Authentication(Settings.of(auth="login"), store)
    callers.url = await start(provider, door=Door(has_users=True), callers=authentication, user="default")
    headers = {"x-longthread-key": callers.ada, "authorization": "Bearer sk-of-ada"}
    assert (await callers.ask(**headers)).status_code == 200
    sent = dict(provider.requests[-1].headers)
    assert "sk-of-ada" in str(sent)
    assert callers.ada not in str(sent)


async def test_another_users_response_is_unknown(callers: Callers) -> None:
    answer = await callers.ask("/v1/responses", {"model": "m", "input": "Hello"}, **{"x-api-key": callers.ada})
    assert answer.status_code == 200
    path = f"/v1/responses/{answer.json()['id']}"
    async with httpx.AsyncClient(trust_env=False, base_url=callers.url) as client:
        assert (await client.get(path, headers={"x-api-key": callers.ada})).status_code == 200
        others = await client.get(path, headers={"x-api-key": callers.bob})
        unknown = await client.get("/v1/responses/resp_unknown", headers={"x-api-key": callers.bob})
    assert others.status_code == unknown.status_code == 404
    body = {"model": "m", "input": "And?", "previous_response_id": answer.json()["id"]}
    assert (await callers.ask("/v1/responses", body, **{"x-api-key": callers.bob})).status_code in (400, 404)


async def test_a_conversation_of_another_user_is_not_found_by_its_name(store: Driver, callers: Callers) -> None:
    async with store.writing() as tx:
        await log.create_thread(tx, "mine", user_id=callers.ada_id, title="Of the page")
    answer = await callers.ask(**{"x-api-key": callers.bob, "x-conversation-id": "mine"})
    assert answer.status_code == 200
    assert answer.headers["x-conversation-id"] != "mine" and "x-longthread-not-kept" not in answer.headers
    assert await threads_of(store, callers.ada_id) == ["mine"]
    assert await threads_of(store, callers.bob_id) == [answer.headers["x-conversation-id"]]


@pytest.mark.parametrize("ends", ["revoked key", "disabled user"])
@pytest.mark.parametrize("path", ["/v1/chat/completions", "/v1/messages"])
async def test_a_stream_is_broken_off_when_its_caller_ends(
    store: Driver, start: Start, monkeypatch: pytest.MonkeyPatch, path: str, ends: str
) -> None:
    monkeypatch.setattr("longthread.server.authentication.FRESH_SECONDS", 0.02)
    monkeypatch.setattr("longthread.server.authentication.WATCH_SECONDS", 0.02)
    async with store.writing() as tx:
        ada = await users.create_user(tx, "ada")
        key, secret = await keys.create_key(tx, ada, NewKey("gw", ["gateway"]))
    callers = Authentication(Settings.of(auth="login"), store)
    async with RawProvider(stream([b"event: one\ndata: {}\n\n"]), hang=True) as silent:
        url = await start(silent, door=Door(has_users=True), callers=callers, api_key=OWN)
        body = (MESSAGES if path.endswith("messages") else CHAT) | {"stream": True}
        async with (
            httpx.AsyncClient(trust_env=False, timeout=20) as client,
            client.stream("POST", url + path, json=body, headers={"x-api-key": secret}) as answer,
        ):
            pieces = answer.aiter_raw()
            assert await anext(pieces) == b"event: one\ndata: {}\n\n"
            async with store.writing() as tx:
                if ends == "revoked key":
                    await keys.revoke_key(tx, key.id, user_id=ada.id)
                else:
                    await users.update_user(tx, ada, status="disabled")
            with pytest.raises(httpx.RemoteProtocolError):  # an answer that ended would look whole
                await anext(pieces)
            again = await client.post(url + path, json=body, headers={"x-api-key": secret})
            assert again.status_code == 401
