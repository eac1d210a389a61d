"""Who may come in over HTTP."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import httpx
import pytest
from mcp.shared.exceptions import MCPError
from tests.server.mcp.clients import called, listening, over_http
from tests.server.mcp.conftest import Open

from longthread.errors import ServerError
from longthread.server.mcp.serve import ClientRights, run_http
from longthread.settings import Settings

TOKEN = "a-token-of-this-test"
PING: dict[str, Any] = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {
        "protocolVersion": "2025-06-18",
        "capabilities": {},
        "clientInfo": {"name": "test", "version": "1"},
    },
}
ACCEPT = {"Accept": "application/json, text/event-stream"}

pytestmark = pytest.mark.parametrize("backend", ["sqlite"], indirect=True)


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({}, 200),
        ({"Host": "localhost:1"}, 200),
        ({"Host": "evil.example"}, 421),
        ({"Host": "127.0.0.1.evil.example"}, 421),
        ({"Origin": "http://evil.example"}, 403),
        ({"Origin": "null"}, 403),
        ({"Sec-Fetch-Site": "cross-site"}, 403),
    ],
)
async def test_pages_of_others_are_kept_out(open_analyst: Open, headers: dict[str, str], status: int) -> None:
    async with listening(await open_analyst()) as (url, _), httpx.AsyncClient(trust_env=False, verify=False) as client:
        answer = await client.post(url, json=PING, headers=ACCEPT | headers)
        assert answer.status_code == status, answer.text
        if status != 200:
            assert (await client.get(url, headers=ACCEPT | headers)).status_code == status
        own = {"Origin": url.removesuffix("/mcp")}
        assert (await client.post(url, json=PING, headers=ACCEPT | own)).status_code == 200


async def test_a_token_is_asked_of_everybody(open_analyst: Open) -> None:
    analyst = await open_analyst(mcp_token=TOKEN)
    async with listening(analyst) as (url, _):
        async with httpx.AsyncClient(trust_env=False, verify=False) as client:
            for wrong in ({}, {"Authorization": f"Bearer {TOKEN}x"}, {"Authorization": TOKEN}, {"X-Api-Key": "é"}):
                raw = {name.encode(): value.encode() for name, value in wrong.items()}
                answer = await client.post(url, json=PING, headers={b"Accept": ACCEPT["Accept"].encode()} | raw)
                assert (answer.status_code, answer.headers["WWW-Authenticate"]) == (401, "Bearer")
                assert TOKEN not in answer.text
            assert (await client.post(url, json=PING, headers=ACCEPT | {"X-Api-Key": TOKEN})).status_code == 200
        async with over_http(url, Authorization=f"Bearer {TOKEN}") as opened:
            assert await called(opened, "list_threads") == {"threads": []}
        with pytest.raises((MCPError, ExceptionGroup)):
            async with over_http(url):
                raise AssertionError("it was let in")


async def test_without_a_token_only_the_owner_is_served(open_analyst: Open) -> None:
    forwarded = [{"X-Forwarded-For": "127.0.0.1"}, {"Forwarded": "for=_x"}, {"Via": "1.1 x"}, {"X-Real-IP": "::1"}]
    async with httpx.AsyncClient(trust_env=False, verify=False) as client:
        async with listening(await open_analyst()) as (url, _):
            for headers in [*forwarded, {"Host": "203.0.113.7"}]:
                answer = await client.post(url, json=PING, headers=ACCEPT | headers)
                assert (answer.status_code, answer.json()["code"]) == (403, "not_local")
                assert "LONGTHREAD_MCP_TOKEN" in answer.json()["detail"]
            assert (await client.post(url, json=PING, headers=ACCEPT)).status_code == 200
        async with listening(await open_analyst(mcp_token=TOKEN)) as (url, _):
            for headers in forwarded:
                answer = await client.post(url, json=PING, headers=ACCEPT | headers | {"X-Api-Key": TOKEN})
                assert answer.status_code == 200


async def test_what_is_too_large_or_no_message_is_refused(open_analyst: Open) -> None:
    analyst = await open_analyst(max_question=1_000)
    async with listening(analyst) as (url, _), httpx.AsyncClient(trust_env=False, verify=False) as client:
        assert (await client.post(url, content=b"x" * 100_000, headers=ACCEPT)).status_code == 413
        for content in (b"{", b"[]", b"\xff\xfe", b'{"jsonrpc": "2.0"}'):
            headers = ACCEPT | {"Content-Type": "application/json"}
            assert 400 <= (await client.post(url, content=content, headers=headers)).status_code < 500
        assert (await client.get(url.replace("/mcp", "/elsewhere"))).status_code == 404


def test_nobody_else_s_machine_is_served_without_a_token(backend: str, tmp_path: Path) -> None:
    settings = Settings.load(env_file=None, data_dir=tmp_path, host="0.0.0.0", port=0)
    with pytest.raises(ServerError, match="LONGTHREAD_MCP_TOKEN is not set"):
        run_http(settings, ClientRights())
    settings = Settings.load(env_file=None, data_dir=tmp_path, host="0.0.0.0", port=0, mcp_token="secret")
    with pytest.raises(ServerError, match="16 characters"):
        run_http(settings, ClientRights())
