"""An account at a provider that users share, by the gateway's secret: nobody reaches what is stored there."""

from __future__ import annotations

from typing import Any

import httpx
import pytest
from tests.gateway.conftest import Start
from tests.gateway.doors.test_users import CHAT, MESSAGES, OWN, Callers, threads_of

from longthread.access import keys, users
from longthread.access.keys import NewKey
from longthread.gateway.shared_account import names_stored
from longthread.server.authentication import Authentication
from longthread.server.gateway_access import Door
from longthread.settings import Settings
from longthread.store import log
from longthread.store.driver import Driver
from longthread.testing import ProviderEmulator

pytestmark = pytest.mark.one_backend

ASKED = {"model": "m", "input": "Hello"}


@pytest.fixture
async def callers(store: Driver, start: Start, provider: ProviderEmulator) -> Callers:
    async with store.writing() as tx:
        ada, bob = await users.create_user(tx, "ada"), await users.create_user(tx, "bob")
        made = [(await keys.create_key(tx, user, NewKey("gw", ["gateway"])))[1] for user in (ada, bob)]
    about: dict[str, Any] = {"door": Door(has_users=True), "callers": Authentication(Settings.of(auth="login"), store)}
    url = await start(provider, **about, api_key=OWN, user="default", holds_state=True)
    return Callers(url, *made, ada.id, bob.id)


@pytest.mark.parametrize(
    "request_line",
    [
        "GET /v1/responses/resp_of_another",
        "DELETE /v1/responses/resp_of_another",
        "GET /v1/responses/resp_of_another/input_items",
        "POST /v1/responses/resp_of_another/cancel",
        "GET /v1/files",
        "DELETE /v1/files/file_1",
        "GET /v1/files/file_1/content",
        "GET /v1/conversations/conv_1/items",
        "POST /v1/conversations",
        "GET /v1/organization/users",
        "GET /v1/chat/completions",
        "GET /v1/chat/completions/c1",
        "GET /v1/messages/batches",
        "POST /v1/messages/batches",
        "DELETE /v1/models/ft-of-another",
        "POST /v1/fine_tuning/jobs",
        "POST /v1/threads",
        "GET /v1//files",
    ],
)
async def test_what_others_have_at_the_provider_is_not_reached(
    callers: Callers, provider: ProviderEmulator, request_line: str
) -> None:
    method, path = request_line.split()
    async with httpx.AsyncClient(trust_env=False, base_url=callers.url) as client:
        answer = await client.request(method, path, headers={"x-api-key": callers.ada})
    assert answer.status_code == 404, answer.text
    assert answer.json()["error"]["message"]
    assert provider.requests == []


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/v1/responses", {**ASKED, "previous_response_id": "resp_of_another"}),
        ("/v1/responses", {**ASKED, "previous_response_id": "resp_of_another", "store": False}),
        ("/v1/responses", {**ASKED, "input": [{"type": "item_reference", "id": "msg_of_another"}]}),
        ("/v1/responses/compact", {**ASKED, "previous_response_id": "resp_of_another"}),
        ("/v1/responses", {**ASKED, "tools": [{"type": "file_search", "vector_store_ids": ["vs_1"]}]}),
        ("/v1/responses", {**ASKED, "prompt": {"id": "pmpt_1"}}),
        ("/v1/messages", {**MESSAGES, "container": "container_1"}),
        ("/v1/embeddings", {**ASKED, "file_id": "file_1"}),
    ],
)
async def test_no_id_of_another_user_goes_up(
    callers: Callers, provider: ProviderEmulator, path: str, body: Any
) -> None:
    answer = await callers.ask(path, body, **{"x-api-key": callers.ada})
    assert answer.status_code in (400, 404), answer.text
    assert provider.requests == []


async def test_a_conversation_of_the_providers_is_never_named(callers: Callers, provider: ProviderEmulator) -> None:
    for text in ("Hello", "And?"):
        body = {"model": "m", "input": text, "conversation": "conv_of_another"}
        assert (await callers.ask("/v1/responses", body, **{"x-api-key": callers.ada})).status_code == 200
    assert len(provider.requests) == 2
    assert "conv_of_another" not in str([each.body for each in provider.requests])


async def test_ones_own_response_goes_on(callers: Callers) -> None:
    first = await callers.ask("/v1/responses", ASKED, **{"x-api-key": callers.ada})
    body = {**ASKED, "previous_response_id": first.json()["id"]}
    assert (await callers.ask("/v1/responses", body, **{"x-api-key": callers.ada})).status_code == 200
    assert (await callers.ask("/v1/responses", body, **{"x-api-key": callers.bob})).status_code == 400


async def test_what_stores_nothing_is_passed_on(callers: Callers, provider: ProviderEmulator) -> None:
    async with httpx.AsyncClient(trust_env=False, base_url=callers.url, headers={"x-api-key": callers.ada}) as client:
        await client.post("/v1/embeddings", json={"model": "m", "input": "hi"})
        sound = "/v1/audio/transcriptions"
        await client.post(sound, data={"model": "m"}, files={"file": b"sound"})
    assert [each.path for each in provider.requests] == ["/v1/embeddings", "/v1/audio/transcriptions"]


@pytest.mark.parametrize(
    ("body", "is_named"),
    [
        (b'{"messages": [{"content": [{"type": "file", "file": {"file_id": "f"}}]}]}', True),
        (rb'{"x": {"file\u005fid": "f"}}', True),
        (b'{"prompt": "Say hi"}', False),
        (b'{"tools": [{"container": {"type": "auto"}}]}', False),
        (b'{"tools": [{"container": {"type": "auto", "file_ids": ["f"]}}]}', True),
        (b'{"tools": [{"input_schema": {"properties": {"file_id": {"type": "string"}}}}]}', False),
        (b'{"content": [{"type": "tool_use", "input": {"file_id": "of a tool"}}]}', False),
    ],
)
def test_a_body_names_what_is_stored_or_not(body: bytes, is_named: bool) -> None:
    assert names_stored(body) is is_named


async def test_a_name_does_not_tell_whether_another_user_has_it(store: Driver, callers: Callers) -> None:
    async with store.writing() as tx:
        await log.create_thread(tx, "taken", user_id=callers.ada_id, title="Of the page")
    named = []
    for name in ("taken", "free"):
        answer = await callers.ask(**{"x-api-key": callers.bob, "x-conversation-id": name})
        named.append(answer.headers["x-conversation-id"].removeprefix(name))
    assert named[0] == named[1] != ""
    again = await callers.ask(**{"x-api-key": callers.bob, "x-conversation-id": "free"})
    assert again.headers["x-conversation-id"] == "free" + named[1]
    whole = await callers.ask(**{"x-api-key": callers.bob, "x-conversation-id": "free" + named[1]})
    assert whole.headers["x-conversation-id"] == "free" + named[1]
    own = await callers.ask(**{"x-api-key": callers.ada, "x-conversation-id": "taken"})
    assert own.headers["x-conversation-id"] == "taken"
    assert len(await threads_of(store, callers.bob_id)) == 2


@pytest.mark.parametrize("query", ["key={}", "a=b&key={}", "key=%6C{}"])
async def test_a_key_in_the_address_goes_nowhere(callers: Callers, provider: ProviderEmulator, query: str) -> None:
    key = callers.ada[1:] if "%6C" in query else callers.ada
    answer = await callers.ask(f"/v1/chat/completions?{query.format(key)}", CHAT, **{"x-api-key": callers.ada})
    assert answer.status_code == 400
    assert callers.ada not in answer.text
    assert provider.requests == []
