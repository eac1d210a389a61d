"""What the owner may do and others may not: each operation, by who calls it and how."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import cache
from pathlib import Path
from string import Formatter
from typing import Any

import httpx
import pytest
from fastapi import FastAPI
from fastapi.routing import APIRoute
from starlette.types import Scope

from longthread.server.access_table import ACCESS
from longthread.server.app import create_app
from longthread.server.requests import is_owner
from longthread.server.state import KNOWN_ONLY, OWNER_ONLY
from longthread.settings import Settings
from longthread.testing import ScriptedChatModel

pytestmark = pytest.mark.one_backend

OWNER, NAMES, TELLS, OPEN = "the owner alone", "others name less", "others are told less", "all"
KNOWN = "the owner, and users who log in"
OPERATIONS = {
    ("GET", "/health"): OPEN,
    ("GET", "/ready"): OPEN,
    ("GET", "/health/stream"): OPEN,
    ("GET", "/metrics"): OPEN,
    ("GET", "/api/info"): TELLS,
    ("GET", "/api/agents"): OPEN,
    ("GET", "/api/conversations"): OPEN,
    ("POST", "/api/conversations"): NAMES,
    ("PATCH", "/api/conversations/{thread_id}"): OPEN,
    ("DELETE", "/api/conversations/{thread_id}"): OPEN,
    ("POST", "/api/conversations/{thread_id}/messages"): OPEN,
    ("PATCH", "/api/conversations/{thread_id}/messages/{message_id}"): OPEN,
    ("GET", "/api/tags"): OPEN,
    ("PUT", "/api/conversations/{thread_id}/messages/{message_id}/feedback"): OPEN,
    ("DELETE", "/api/conversations/{thread_id}/messages/{message_id}/feedback"): OPEN,
    ("GET", "/api/feedback"): OPEN,
    ("GET", "/api/feedback/export"): OPEN,
    ("POST", "/api/conversations/{thread_id}/restore"): OPEN,
    ("POST", "/api/conversations/{thread_id}/stop"): OPEN,
    ("GET", "/api/chat/history"): OPEN,
    ("GET", "/api/state"): OPEN,
    ("POST", "/api/chat"): NAMES,
    ("POST", "/api/conversations/{thread_id}/resume"): NAMES,
    ("GET", "/api/conversations/{thread_id}/runs/{run_id}/events"): OPEN,
    ("GET", "/api/conversations/{thread_id}/steps/{index}"): OPEN,
    ("GET", "/api/conversations/{thread_id}/steps/{index}/chart"): OPEN,
    ("GET", "/api/conversations/{thread_id}/queue"): OPEN,
    ("GET", "/api/conversations/{thread_id}/queue/{question_id}"): OPEN,
    ("DELETE", "/api/conversations/{thread_id}/queue/{question_id}"): OPEN,
    ("GET", "/api/conversations/{thread_id}/queue/{question_id}/events"): OPEN,
    ("POST", "/api/conversations/{thread_id}/messages/{message_id}/edit"): NAMES,
    ("POST", "/api/conversations/{thread_id}/messages/{message_id}/again"): NAMES,
    ("POST", "/api/conversations/{thread_id}/steps/{index}/edit"): OPEN,
    ("POST", "/api/conversations/{thread_id}/steps/{index}/try"): OPEN,
    ("PUT", "/api/conversations/{thread_id}/branch"): OPEN,
    ("GET", "/api/conversations/{thread_id}/calls"): OPEN,
    ("GET", "/api/conversations/{thread_id}/calls/{index}"): OPEN,
    ("GET", "/api/conversations/{thread_id}/steps/{index}/result"): OPEN,
    ("GET", "/api/conversations/{thread_id}/steps/{index}/result/file"): OPEN,
    ("GET", "/api/conversations/{thread_id}/export"): OPEN,
    ("GET", "/api/conversations/{thread_id}/usage"): OPEN,
    ("GET", "/api/models"): TELLS,
    ("PUT", "/api/models/keys/{provider}"): KNOWN,
    ("DELETE", "/api/models/keys/{provider}"): OWNER,
    ("POST", "/api/models/keys/{provider}/check"): KNOWN,
    ("POST", "/api/models/check"): OWNER,
    ("GET", "/api/recall"): OPEN,
    ("GET", "/api/memories"): OPEN,
    ("POST", "/api/memories"): OPEN,
    ("GET", "/api/memories/{memory_id}"): OPEN,
    ("PATCH", "/api/memories/{memory_id}"): OPEN,
    ("DELETE", "/api/memories/{memory_id}"): OPEN,
    ("GET", "/api/conversations/{thread_id}/memory"): OPEN,
    ("POST", "/api/uploads"): KNOWN,
    ("DELETE", "/api/uploads/{upload_id}"): KNOWN,
    ("GET", "/api/sources"): TELLS,
    ("POST", "/api/sources"): KNOWN,
    ("POST", "/api/sources/{name}/files"): OWNER,
    ("GET", "/api/sources/{name}/preview"): NAMES,
    ("DELETE", "/api/sources/{name}"): OWNER,
    ("GET", "/api/sources/{name}/terms"): OWNER,
    ("PATCH", "/api/sources/{name}/terms"): OWNER,
    ("POST", "/api/conversations/{thread_id}/shares"): OPEN,
    ("GET", "/api/conversations/{thread_id}/shares"): OPEN,
    ("DELETE", "/api/conversations/{thread_id}/shares/{share_id}"): OPEN,
    ("GET", "/api/shared/{token}"): OPEN,
    ("GET", "/api/projects"): OPEN,
    ("POST", "/api/projects"): OPEN,
    ("GET", "/api/projects/{project_id}"): OPEN,
    ("PATCH", "/api/projects/{project_id}"): OPEN,
    ("DELETE", "/api/projects/{project_id}"): OPEN,
    ("PUT", "/api/projects/{project_id}/members/{user_id}"): OPEN,
    ("DELETE", "/api/projects/{project_id}/members/{user_id}"): OPEN,
    ("POST", "/api/conversations/{thread_id}/project"): OPEN,
    ("GET", "/api/boards"): OPEN,
    ("POST", "/api/boards"): OPEN,
    ("GET", "/api/boards/{board_id}"): OPEN,
    ("PATCH", "/api/boards/{board_id}"): OPEN,
    ("DELETE", "/api/boards/{board_id}"): OPEN,
    ("POST", "/api/boards/{board_id}/cards"): OPEN,
    ("POST", "/api/boards/{board_id}/cards/{card_id}/refresh"): OPEN,
    ("PATCH", "/api/boards/{board_id}/cards/{card_id}"): OPEN,
    ("DELETE", "/api/boards/{board_id}/cards/{card_id}"): OPEN,
    ("GET", "/api/boards/{board_id}/cards/{card_id}/file"): OPEN,
    ("POST", "/api/boards/{board_id}/shares"): OPEN,
    ("GET", "/api/boards/{board_id}/shares"): OPEN,
    ("DELETE", "/api/boards/{board_id}/shares/{share_id}"): OPEN,
    ("GET", "/api/shared/boards/{token}"): OPEN,
    ("GET", "/api/catalog/{kind}"): OWNER,
    ("GET", "/api/catalog/{kind}/{name}"): OWNER,
    ("PUT", "/api/catalog/{kind}/{name}"): OWNER,
    ("PATCH", "/api/catalog/{kind}/{name}"): OWNER,
    ("DELETE", "/api/catalog/{kind}/{name}"): OWNER,
    ("GET", "/api/catalog/{kind}/{name}/versions"): OWNER,
    ("POST", "/api/catalog/tools/{name}/run"): OWNER,
    ("GET", "/api/conversations/{thread_id}/approvals"): OPEN,
    ("POST", "/api/conversations/{thread_id}/approvals"): OPEN,
    ("GET", "/api/events"): OPEN,
    ("POST", "/ag-ui/{agent}"): NAMES,
}
"""Every operation, with what its caller decides. What a user owns, a later login will tell apart."""
OF_USERS = ("/api/me/", "/api/login", "/api/logout", "/api/links", "/api/admin", "/api/oidc")
"""Operations of servers whose users log in. `ACCESS` says who may use them."""
VALUES = {"kind": "tools", "name": "x", "provider": "openai", "upload_id": "x", "agent": "analyst"}
VALUES |= {"thread_id": "t", "message_id": "m"}
ASKS = {"threadId": "t", "runId": "r", "messages": [{"id": "m", "role": "user", "content": "Is it?"}]}
ASKS |= {"tools": [], "context": [], "state": {}}

Peer = tuple[str, int] | None
LOCAL: Peer = ("127.0.0.1", 5000)
HERE = {"Host": "127.0.0.1:8765"}
OTHERS: dict[str, tuple[Peer, dict[str, str]]] = {
    "another machine": (("203.0.113.9", 5000), {"Host": "localhost:8765"}),
    "another machine by IPv6": (("2001:db8::9", 5000), {"Host": "localhost"}),
    "another machine, mapped": (("::ffff:203.0.113.9", 5000), HERE),
    "a Unix socket": (None, HERE),
    "a proxy opened by its address": (LOCAL, {"Host": "203.0.113.7:8080"}),
    "a proxy under the machine's name": (LOCAL, {"Host": "data.example"}),
    "a proxy that says HTTP/1.0": (LOCAL, HERE | {"http-version": "1.0"}),
    "another machine that claims to be near": (("203.0.113.9", 1), HERE | {"X-Forwarded-For": "127.0.0.1"}),
    **{
        f"a proxy's {name}": (LOCAL, HERE | {name: value})
        for name, value in {
            "Forwarded": "for=198.51.100.9",
            "Via": "1.1 proxy",
            "X-Real-IP": "127.0.0.1",
            "X-Forwarded-For": "127.0.0.1",
            "X-FORWARDED-PROTO": "https",
            "X-Forwarded-Host": "",
            "X-Forwarded-Port": "443",
            "X-Forwarded-Prefix": "/",
            "CF-Connecting-IP": "198.51.100.9",
            "X_Forwarded_For": "198.51.100.9",
            "X-Original-Forwarded-For": "198.51.100.9",
            "X-Original-URL": "/",
            "X-ProxyUser-Forwarded": "1",
            "Client-IP": "198.51.100.9",
            "Fastly-Client-IP": "198.51.100.9",
            "X-Envoy-External-Address": "198.51.100.9",
            "CDN-Loop": "cloudflare",
            "CF-Ray": "1",
            "Tailscale-User-Login": "a@b",
            "Remote-User": "a",
            "X-Remote-User": "a",
            "X-Amzn-Trace-Id": "Root=1",
            "X-Auth-Request-Email": "a@b",
        }.items()
    },
}
OWNERS: dict[str, tuple[Peer, dict[str, str]]] = {
    "by its address": (LOCAL, HERE),
    "by name": (LOCAL, {"Host": "localhost:8765"}),
    "a program's own headers": (LOCAL, HERE | {"X-Request-Id": "1", "X-Api-Key": "1", "Traceparent": "1"}),
    "by IPv6": (("::1", 5000), {"Host": "[::1]:8765"}),
    "by IPv4 on a socket for both": (("::ffff:127.0.0.1", 5000), HERE),
}


class Client(httpx.AsyncClient):
    """Calls an application from a peer of its choice."""

    def __init__(self, app: FastAPI, peer: Peer, headers: dict[str, str]) -> None:
        headers = dict(headers)
        version = headers.pop("http-version", "1.1")

        async def speaking(scope: Scope, receive: Any, send: Any) -> None:
            await app({**scope, "http_version": version, "client": peer}, receive, send)

        super().__init__(transport=httpx.ASGITransport(speaking), base_url="http://127.0.0.1:8765", headers=headers)


@asynccontextmanager
async def served(tmp_path: Path, store_address: str, host: str, *, no_login: bool = True) -> AsyncIterator[FastAPI]:
    settings = Settings.load(
        env_file=None,
        data_dir=tmp_path / "data",
        database=store_address,
        source="demo",
        model="demo",
        host=host if host != "data.example" else "127.0.0.1",
        no_login=no_login,
    )
    app = create_app(settings.model_copy(update={"host": host}), models=lambda *_: ScriptedChatModel([{"finish": "x"}]))
    async with app.router.lifespan_context(app):
        yield app


@cache
def operations() -> dict[tuple[str, str], bool]:
    """Every operation, and whether it is the owner's alone."""
    app = create_app(Settings.load(env_file=None))
    routes = [each for each in app.routes if isinstance(each, APIRoute) and each.include_in_schema]
    return {
        (method, each.path): not {OWNER_ONLY, KNOWN_ONLY}.isdisjoint(each.dependencies)
        for each in routes
        for method in each.methods
        if each.path != "/api/me" and not each.path.startswith(OF_USERS)
    }


def test_every_operation_says_whose_it_is() -> None:
    alone = {key: says == OWNER for key, says in OPERATIONS.items()}
    assert operations() == alone, "add the route to OPERATIONS, and OWNER_ONLY to the route if it is the owner's"


@pytest.mark.parametrize("host", ["127.0.0.1", "data.example"])
async def test_others_get_less_wherever_the_server_listens(tmp_path: Path, store_address: str, host: str) -> None:
    async with served(tmp_path, store_address, host) as app:
        for who, (peer, headers) in OTHERS.items():
            async with Client(app, peer, headers) as client:
                if headers["Host"] == "data.example" and host != "data.example":
                    assert (await client.get("/health")).status_code == 421
                    continue
                for (method, path), says in OPERATIONS.items():
                    for body, code in REFUSED.get((method, path), [({}, "settings_not_allowed")]):
                        if says in (OWNER, KNOWN, NAMES):
                            answer = await client.request(method, path.format(**VALUES), json=body)
                            assert (answer.status_code, answer.json()["code"]) == (403, code), (who, method, path)
                await _expect_told(client, owner=False)


@pytest.mark.parametrize("host", ["127.0.0.1", "0.0.0.0"])
async def test_the_owner_gets_all_wherever_the_server_listens(tmp_path: Path, store_address: str, host: str) -> None:
    async with served(tmp_path, store_address, host) as app:
        for who, (peer, headers) in OWNERS.items():
            async with Client(app, peer, headers) as client:
                for (method, path), says in OPERATIONS.items():
                    for body, _ in REFUSED.get((method, path), [({}, "")]):
                        if says in (OWNER, KNOWN, NAMES):
                            answer = await client.request(method, path.format(**VALUES), json=body)
                            assert answer.status_code not in (403, 421), (who, method, path)
                await _expect_told(client, owner=True)


async def test_without_a_login_only_the_owner_is_answered(tmp_path: Path, store_address: str) -> None:
    async with served(tmp_path, store_address, "127.0.0.1", no_login=False) as app:
        for who, (peer, headers) in OTHERS.items():
            async with Client(app, peer, headers) as client:
                if headers["Host"] == "data.example":
                    continue
                for operation, rule in ACCESS.items():
                    method, path = operation.split()
                    if rule.who in ("user", "visitor"):
                        values = {name: "x" for _, name, _, _ in Formatter().parse(path) if name}
                        answer = await client.request(method, path.format(**values), json={})
                        assert (answer.status_code, answer.json()["code"]) == (403, "not_local"), (who, operation)


def _asks(**named: str) -> dict[str, Any]:
    return {"question": "Is it?", **named}


FILE, MODEL = {"source": "/etc/passwd.csv"}, {"model": "vllm:any"}
REFUSED: dict[tuple[str, str], list[tuple[dict[str, Any], str]]] = {
    ("POST", "/api/chat"): [(_asks(**FILE), "source_not_allowed"), (_asks(**MODEL), "model_not_allowed")],
    ("POST", "/api/conversations"): [(FILE, "source_not_allowed")],
    ("POST", "/api/conversations/{thread_id}/resume"): [(FILE, "source_not_allowed"), (MODEL, "model_not_allowed")],
    ("POST", "/api/conversations/{thread_id}/messages/{message_id}/edit"): [
        (_asks(**FILE), "source_not_allowed"),
        (_asks(**MODEL), "model_not_allowed"),
    ],
    ("POST", "/api/conversations/{thread_id}/messages/{message_id}/again"): [
        (FILE, "source_not_allowed"),
        (MODEL, "model_not_allowed"),
    ],
    ("POST", "/ag-ui/{agent}"): [
        ({**ASKS, "forwardedProps": FILE}, "source_not_allowed"),
        ({**ASKS, "forwardedProps": MODEL}, "model_not_allowed"),
    ],
}
"""What others may not name, and how that is refused."""


async def _expect_told(client: Client, *, owner: bool) -> None:
    info, models = (await client.get("/api/info")).json(), (await client.get("/api/models")).json()
    sources = (await client.get("/api/sources")).json()
    assert (info["database"] is not None, models["keys_allowed"], sources["changeable"]) == (owner, owner, owner)
    assert info["sources"] == ("any" if owner else ["demo"])


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Host": "203.0.113.7"}, 200),
        ({"Host": "203.0.113.7", "X-Forwarded-For": "198.51.100.9"}, 421),
        ({"Host": "[2001:db8::7]:80", "Via": "1.1 x"}, 421),
        ({"Host": "127.0.0.1:8080", "X-Forwarded-For": "198.51.100.9"}, 200),
        ({"Host": "localhost", "X-Forwarded-For": "198.51.100.9"}, 200),
        ({"Host": "10.0.0.1", "X-Forwarded-For": "198.51.100.9"}, 200),
    ],
)
async def test_a_proxys_address_is_no_name_of_the_server(
    tmp_path: Path, store_address: str, headers: dict[str, str], status: int
) -> None:
    async with served(tmp_path, store_address, "10.0.0.1") as app, Client(app, LOCAL, headers) as client:
        assert (await client.get("/health")).status_code == status


def test_two_hosts_are_not_the_owners() -> None:
    hosts = [(b"host", b"localhost"), (b"host", b"evil.example")]
    assert not is_owner({"type": "http", "client": LOCAL, "headers": hosts})
    assert is_owner({"type": "http", "client": LOCAL, "headers": hosts[:1]})
    assert not is_owner({"type": "http", "client": LOCAL, "headers": []})
