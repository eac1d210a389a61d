"""Who may use the gateway, and whose key goes up."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
from tests.gateway.conftest import Start

from longthread.errors import ServerError
from longthread.gateway.service import GatewayOptions
from longthread.server.app import Server, create_app
from longthread.server.gateway import run
from longthread.server.gateway_access import Door, read_origins, read_tokens
from longthread.server.http import listen
from longthread.server.requests import own_names
from longthread.settings import Settings
from longthread.store.driver import Driver
from longthread.testing import ProviderEmulator
from longthread.tools.catalog.definitions import Catalog

pytestmark = pytest.mark.one_backend

TOKEN, ADAS = "one-token-of-a-gateway", "another-token-for-ada"
OWN = "the-gateways-own-key"
TOKENS = {TOKEN: "", ADAS: "ada"}
PAGE = "http://localhost:3000"
DOOR = Door(own_names("127.0.0.1"), TOKENS)
FORWARDED = ("Forwarded", "X-Forwarded-For", "X-Forwarded-Host", "X-Real-IP", "Via")
ENDPOINTS: Mapping[str, dict[str, Any]] = {
    "/v1/messages": {"max_tokens": 9, "messages": [{"role": "user", "content": "hi"}]},
    "/v1/responses": {"input": "hi"},
    "/v1/chat/completions": {"messages": [{"role": "user", "content": "hi"}]},
    "/v1/embeddings": {"input": "hi"},
}
KINDS = {"/v1/messages": "authentication_error"}


async def ask(url: str, path: str = "/v1/messages", **headers: str) -> httpx.Response:
    async with httpx.AsyncClient(trust_env=False) as client:
        names = {name.replace("_", "-"): value for name, value in headers.items()}
        return await client.post(url + path, json={"model": "claude-haiku-4-5", **ENDPOINTS[path]}, headers=names)


@pytest.mark.parametrize("path", ENDPOINTS)
async def test_without_the_token_nobody_spends_a_key(provider: ProviderEmulator, start: Start, path: str) -> None:
    url = await start(provider, door=DOOR, api_key=OWN)
    near = [TOKEN[:-1], TOKEN + "x", TOKEN.upper(), "x", "ключ"]
    for headers in ({}, *({"authorization": f"Bearer {each}".encode()} for each in near), {"api-key": "sk-1"}):
        async with httpx.AsyncClient(trust_env=False) as client:
            answer = await client.post(url + path, json={"model": "m", **ENDPOINTS[path]}, headers=headers)
        error = answer.json()["error"]
        assert (answer.status_code, error["type"]) == (401, KINDS.get(path, "invalid_request_error"))
        assert "X-Longthread-Token" in error["message"]
        assert error.get("code", "invalid_api_key") == "invalid_api_key"
    assert provider.requests == []


@pytest.mark.parametrize("token", [TOKEN, ADAS])
@pytest.mark.parametrize("name", ["authorization", "x-api-key", "api-key", "x-goog-api-key", "x-longthread-token"])
async def test_with_the_token_the_upstreams_own_key_goes_up(
    provider: ProviderEmulator, start: Start, name: str, token: str
) -> None:
    url = await start(provider, door=DOOR, api_key=OWN)
    answer = await ask(url, **{name: f"Bearer {token}" if name == "authorization" else token})
    assert answer.status_code == 200
    [sent] = provider.requests
    assert sent.headers["x-api-key"] == OWN
    assert token not in repr(sorted(sent.headers.items()))


async def test_the_token_never_goes_up_and_ones_own_key_does(provider: ProviderEmulator, start: Start) -> None:
    url = await start(provider, door=DOOR)
    await ask(url, authorization=f"Bearer {TOKEN}", x_api_key=TOKEN)
    await ask(url, x_longthread_token=TOKEN, authorization="Bearer mine")
    await ask(url, authorization=f"bearer {TOKEN}", x_api_key="mine")
    first, second, third = [dict(each.headers) for each in provider.requests]
    assert not {"authorization", "x-api-key"} & first.keys()
    assert (second["authorization"], second.get("x-api-key")) == ("Bearer mine", None)
    assert (third.get("authorization"), third["x-api-key"]) == (None, "mine")
    assert TOKEN not in repr([first, second, third])


async def test_a_name_that_a_proxy_gave_is_no_danger_with_the_token(provider: ProviderEmulator, start: Start) -> None:
    url = await start(provider, door=DOOR)
    headers = {"host": "llm.example.com", "x_forwarded_for": "192.0.2.7"}
    assert (await ask(url, **headers, authorization=f"Bearer {TOKEN}")).status_code == 200
    assert (await ask(url, **headers)).status_code == 421


@pytest.mark.parametrize("header", FORWARDED)
async def test_whoever_is_behind_a_proxy_is_no_program_of_this_machine(
    provider: ProviderEmulator, start: Start, header: str
) -> None:
    url = await start(provider, door=Door(own_names("127.0.0.1")), api_key=OWN)
    answer = await ask(url, **{header: "192.0.2.7"})
    assert answer.status_code == 401
    assert "LONGTHREAD_GATEWAY_TOKEN" in answer.json()["error"]["message"]
    assert (await ask(url)).status_code == 200, "a program of this machine needs none"
    assert len(provider.requests) == 1


@asynccontextmanager
async def server(settings: Settings) -> AsyncIterator[str]:
    started: asyncio.Future[str] = asyncio.get_running_loop().create_future()
    served = Server(create_app(settings), listen("127.0.0.1", 0), on_ready=started.set_result)
    serving = asyncio.create_task(served.serve())
    yield await started
    served.should_exit = True
    await serving
    served.listener.close()


@pytest.mark.parametrize("host", ["127.0.0.1", "0.0.0.0"])
@pytest.mark.parametrize("token", [None, TOKEN])
async def test_the_server_spends_its_keys_for_no_stranger(
    store: Driver,
    store_address: str,
    tmp_path: Path,
    provider: ProviderEmulator,
    monkeypatch: pytest.MonkeyPatch,
    host: str,
    token: str | None,
) -> None:
    monkeypatch.setenv("LONGTHREAD_SECRET_MINE", OWN)
    given = {"base_url": provider.anthropic_url, "dialects": ["anthropic"], "api_key": "${MINE}"}
    await Catalog(store).apply([{"kind": "upstream", "name": "emulated", **given}])
    chosen = {"data_dir": tmp_path, "database": store_address, "host": host, "gateway_token": token}
    async with server(Settings.load(env_file=None, **chosen)) as url:
        strangers = [await ask(url, X_Forwarded_For="192.0.2.7"), await ask(url, host="192.0.2.7")]
        assert [each.status_code for each in strangers] == [401, 401]
        assert provider.requests == []
        known = {"authorization": f"Bearer {token}"} if token else {}
        assert (await ask(url, **known)).status_code == 200
        assert (await ask(url)).status_code == (401 if token else 200)
    assert {each.headers["x-api-key"] for each in provider.requests} == {OWN}


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.7", "gateway.example"])
def test_beyond_this_machine_it_does_not_start_without_a_token(tmp_path: Path, host: str) -> None:
    settings = Settings.load(env_file=None, data_dir=tmp_path, host=host, port=0)
    with pytest.raises(ServerError, match="LONGTHREAD_GATEWAY_TOKEN is not set"):
        run(settings, GatewayOptions("ada"))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("text", ["brief", "ada:brief", f"{TOKEN}, brief", "with blanks in the middle", f"a b:{TOKEN}"])
async def test_a_token_that_is_none_is_told_and_not_shown(tmp_path: Path, text: str) -> None:
    settings = Settings.load(env_file=None, data_dir=tmp_path, port=0, gateway_token=text)
    for begin in (lambda: run(settings, GatewayOptions("ada")), lambda: create_app(settings)):
        with pytest.raises(ServerError, match="LONGTHREAD_GATEWAY_TOKEN is short or odd") as raised:
            begin()
        assert text not in str(raised.value)


def test_tokens_and_origins_are_lists() -> None:
    assert read_tokens(f" {TOKEN} , ada:{ADAS},") == TOKENS
    with pytest.raises(ServerError, match="one token twice"):
        read_tokens(f"{TOKEN},ada:{TOKEN}")
    assert read_origins(" http://LOCALHOST:3000/, https://[::1]:8 ,app://obsidian.md") == {
        "http://localhost:3000",
        "https://[::1]:8",
        "app://obsidian.md",
    }
    for text in ("*", "null", "localhost:3000", "http://localhost/path", "http://*.example"):
        with pytest.raises(ServerError, match="is no origin of a web page"):
            read_origins(text)


async def test_pages_of_a_chosen_origin_are_answered_and_no_others(provider: ProviderEmulator, start: Start) -> None:
    url = await start(provider, door=Door(own_names("127.0.0.1"), {}, {PAGE}))
    asks = {"access-control-request-method": "POST", "access-control-request-headers": "x-api-key, content-type"}
    async with httpx.AsyncClient(trust_env=False) as client:
        allowed = await client.options(f"{url}/v1/messages", headers={"origin": PAGE, **asks})
        others = [
            await client.options(f"{url}/v1/messages", headers={"origin": origin, **asks})
            for origin in ("http://localhost:3001", "https://localhost:3000", "null", "http://evil.example")
        ]
    assert (allowed.status_code, allowed.headers["access-control-allow-origin"]) == (204, PAGE)
    assert allowed.headers["access-control-allow-headers"] == asks["access-control-request-headers"]
    assert "POST" in allowed.headers["access-control-allow-methods"]
    assert [each.status_code for each in others] == [403] * 4
    assert not any("access-control-allow-origin" in each.headers for each in others)
    answer = await ask(url, origin=PAGE, sec_fetch_site="cross-site", cookie="session=of-the-page", x_api_key="k")
    assert (answer.status_code, answer.headers["access-control-allow-origin"]) == (200, PAGE)
    assert "Origin" in answer.headers["vary"]
    [sent] = provider.requests
    assert not {"origin", "cookie", "sec-fetch-site"} & {name.lower() for name in sent.headers}
    assert (await ask(url, origin="http://localhost:3001")).status_code == 403
    refused = await ask(url, origin=PAGE, x_forwarded_for="192.0.2.7")
    assert (refused.status_code, refused.headers["access-control-allow-origin"]) == (401, PAGE)


async def test_a_page_needs_the_token_too(provider: ProviderEmulator, start: Start) -> None:
    url = await start(provider, door=Door(own_names("127.0.0.1"), TOKENS, {PAGE}))
    assert (await ask(url, origin=PAGE)).status_code == 401
    assert (await ask(url, origin=PAGE, x_api_key=TOKEN)).status_code == 200
    assert (await ask(url, origin="http://evil.example", x_api_key=TOKEN)).status_code == 403


async def test_who_watches_the_process_needs_no_token(provider: ProviderEmulator, start: Start) -> None:
    url = await start(provider, door=DOOR)
    async with httpx.AsyncClient(trust_env=False) as client:
        for path in ("/ready", "/health"):
            assert (await client.get(url + path)).json() == {"status": "ready"}


def admitted(door: Door, **headers: str) -> str | int:
    """The credential of a request, or the status of its refusal."""
    from longthread.gateway.http import Incoming, Outgoing
    from longthread.gateway.service import ANTHROPIC

    named = [(name.replace("_", "-").encode(), value.encode()) for name, value in headers.items()]
    scope = {"client": ("127.0.0.1", 1), "headers": [(b"host", b"127.0.0.1"), *named], "http_version": "1.1"}
    found = door.admit(ANTHROPIC, Incoming("POST", "/v1/messages", scope["headers"]), scope)
    return found.status if isinstance(found, Outgoing) else found.credential


@pytest.mark.parametrize("door", [DOOR, Door(own_names("127.0.0.1"))])
def test_what_tells_callers_apart(door: Door) -> None:
    token = {"x_longthread_token": TOKEN} if door is DOOR else {}
    same = [{"authorization": "Bearer k"}, {"x_api_key": "k"}, {"authorization": "bearer k", "x_api_key": "k"}]
    assert len({admitted(door, **token, **each) for each in same}) == 1, "one key, however it is sent"
    others = [{"x_api_key": "k"}, {"x_api_key": "k2"}, {"x_api_key": "k", "authorization": "Bearer k2"}, {}]
    assert len({admitted(door, **token, **each) for each in others}) == 4
    if door is DOOR:
        named: Callable[..., str | int] = lambda **given: admitted(door, x_longthread_token=ADAS, **given)  # noqa: E731
        assert named() == named(x_api_key="k") == named(authorization="Bearer new"), "a name outlives its keys"
        assert json.dumps(named()) != json.dumps(admitted(door, x_longthread_token=TOKEN))
