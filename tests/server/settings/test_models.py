"""The models that can be asked, and the keys of their providers."""

from __future__ import annotations

import asyncio
import contextlib
import json
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import MappingProxyType
from typing import Any

import httpx
import pytest
from pydantic import SecretStr

from longthread.errors import ProviderUnreachable
from longthread.llm import models as named
from longthread.llm import server_facts
from longthread.llm.connections import environment_key
from longthread.llm.failures import ProviderError
from longthread.llm.http import Endpoint
from longthread.llm.openai import bearer
from longthread.llm.providers import ROWS, address_of
from longthread.settings import Settings
from longthread.store import endpoints
from longthread.store.open import open_store
from longthread.testing import ProviderEmulator, Refused

pytestmark = pytest.mark.one_backend

KEY = "sk-ant-canary-4711"
OTHER = "sk-ant-another-0815"


@pytest.fixture(autouse=True)
def nobody_listens(monkeypatch: pytest.MonkeyPatch) -> None:
    """What happens to listen on this machine is not found."""
    monkeypatch.setattr("longthread.server.routes.models.local_servers", _none)
    for name in ("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "GOOGLE_API_KEY", "GEMINI_API_KEY"):
        monkeypatch.delenv(name, raising=False)


async def _none() -> list[Any]:
    return []


@contextmanager
def answers(answer: bytes, status: int = 200, headers: Mapping[str, str] = MappingProxyType({})) -> Iterator[str]:
    """The address of a server that answers each request so."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.rfile.read(int(self.headers.get("content-length", 0)))
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(answer)

        def do_POST(self) -> None:
            self.do_GET()

        def log_message(self, *args: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()


def test_a_key_is_checked_then_stored_sealed_and_told_to_nobody(serve: Any, tmp_path: Path, store_address: str) -> None:
    with ProviderEmulator(api_key=KEY, models=["claude-a", "text-embed"]) as emulator:
        running = serve([{"finish": "Yes."}], anthropic_base_url=emulator.anthropic_url)
        path = "/api/models/keys/anthropic"
        refused = running.client.put(path, json={"key": OTHER})
        assert (refused.status_code, refused.json()["code"]) == (409, "key_refused")
        assert OTHER not in refused.text
        assert about(running)["key"] is None
        missing = running.client.post(f"{path}/check")
        assert (missing.status_code, missing.json()["code"]) == (404, "key_not_found")
        stored = running.client.put(path, json={"key": KEY})
        url = emulator.anthropic_url
        assert stored.json() == {"provider": "anthropic", "url": url, "models": ["anthropic:claude-a"]}
        assert running.client.post(f"{path}/check").json() == stored.json()
        listed = running.client.get("/api/models")
        assert KEY not in listed.text
        assert about(running)["key"] == "stored"
        claude = {"name": "anthropic:claude-a", "origin": "provider", "provider": "anthropic", "protocol": None}
        assert claude in listed.json()["models"]
    secret = tmp_path / "data" / "secret.key"
    assert secret.stat().st_mode & 0o777 == 0o600
    kept = [file for file in (tmp_path / "data").iterdir() if file.is_file()]
    assert kept and all(KEY.encode() not in file.read_bytes() for file in kept)
    assert about(running)["problem"] == "unreachable"
    away = running.client.put(path, json={"key": OTHER})
    assert (away.status_code, away.json()["code"]) == (502, "provider_unreachable")
    assert running.client.put(path, json={"key": OTHER, "check": False}).json()["models"] is None
    assert running.client.delete(path).status_code == 204
    assert running.client.delete(path).status_code == 404
    assert about(running)["key"] is None


def about(running: Any, provider: str = "anthropic") -> dict[str, Any]:
    answer = running.client.get("/api/models")
    assert answer.status_code == 200
    [found] = [each for each in answer.json()["providers"] if each["provider"] == provider]
    return dict(found)


def test_runs_use_a_key_as_soon_as_it_is_stored_and_after_a_restart(serve: Any) -> None:
    with ProviderEmulator([{"finish": "Forty-one."}], loop=True) as emulator:
        options = {"anthropic_base_url": emulator.anthropic_url, "model": "anthropic:claude-a"}
        running = serve(None, **options)
        asked = running.client.post("/api/chat", json={"question": "How many?"})
        assert (asked.status_code, asked.json()["code"]) == (503, "model_unavailable")
        for number, key in enumerate((OTHER, KEY)):
            running.client.put("/api/models/keys/anthropic", json={"key": key, "check": False})
            running.answer("How many?")
            assert emulator.requests[-1].headers["x-api-key"] == key, number
        running.stop()
        again = serve(None, **options)
        again.answer("How many?")
        assert emulator.requests[-1].headers["x-api-key"] == KEY
        again.stop()
        other = serve(None, **options, secret_key="x" * 32)
        assert about(other)["problem"] == "unreadable"
        assert other.client.post("/api/chat", json={"question": "How many?"}).status_code == 503


def test_a_key_that_its_provider_quotes_is_told_to_nobody(serve: Any, tmp_path: Path, store_address: str) -> None:
    with ProviderEmulator([Refused(401, f"Incorrect API key provided: {KEY}")], loop=True) as emulator:
        running = serve(None, anthropic_base_url=emulator.anthropic_url, model="anthropic:claude-a")
        running.client.put("/api/models/keys/anthropic", json={"key": KEY, "check": False})
        asked = running.answer("How many?")
        export = running.client.get(f"/api/conversations/{asked['thread_id']}/export", params={"format": "jsonl"})
        events = running.client.get(asked["events"])
        history = running.history(asked["thread_id"])
    assert "Incorrect API key provided: ***." in history["runs"][0]["outcome"]["error"]["message"]
    assert not any(KEY in told for told in (json.dumps(history), export.text, events.text))
    if Path(store_address).is_file():
        files = [*Path(store_address).parent.glob("*.db*"), *(tmp_path / "data").rglob("*")]
        assert not any(KEY.encode() in each.read_bytes() for each in files if each.is_file())


def test_a_key_is_used_at_the_address_alone_that_it_was_entered_for(serve: Any) -> None:
    with ProviderEmulator(models=["claude-a"]) as one, ProviderEmulator(models=["claude-a"]) as other:
        running = serve([{"finish": "Yes."}], anthropic_base_url=one.anthropic_url)
        running.client.put("/api/models/keys/anthropic", json={"key": KEY})
        assert one.lookups[-1].headers["x-api-key"] == KEY
        running.stop()
        moved = serve(None, anthropic_base_url=other.anthropic_url, model="anthropic:claude-a")
        assert about(moved)["problem"] == "unreadable"
        assert moved.client.post("/api/chat", json={"question": "How many?"}).status_code == 503
        assert other.requests == [] and KEY not in repr([dict(each.headers) for each in other.lookups])
        moved.stop()
        assert about(serve([{"finish": "Yes."}], anthropic_base_url=one.anthropic_url))["key"] == "stored"


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, str]]:
    """Every host that is asked for a list, with the key that it is sent. None answers."""
    asked: list[tuple[str, str]] = []

    async def send(self: httpx.AsyncClient, request: httpx.Request, **_: Any) -> httpx.Response:
        key = next((request.headers[name] for name in HEADERS if name in request.headers), "")
        asked.append((request.url.host, key.removeprefix("Bearer ")))
        raise httpx.ConnectError("caught", request=request)

    monkeypatch.setattr(httpx.AsyncClient, "send", send)
    return asked


HEADERS = ("authorization", "x-api-key", "x-goog-api-key")
OWN = {"openai_api_key": "sk-openai", "anthropic_api_key": "sk-anthropic", "google_api_key": "sk-google"}
OPENAI = ("api.openai.com", "sk-openai")
VENDORS = [("api.anthropic.com", "sk-anthropic"), ("generativelanguage.googleapis.com", "sk-google")]


@pytest.mark.parametrize(
    ("given", "sent"),
    [
        (OWN, [*VENDORS, OPENAI]),
        (OWN | {"base_url": "http://127.0.0.1:9/v1"}, VENDORS),
        (OWN | {"base_url": "http://127.0.0.1:9/v1", "api_key": "sk-mine"}, VENDORS),
        (OWN | {"openai_base_url": "https://eu.example/v1"}, [*VENDORS, ("eu.example", "sk-openai")]),
        (OWN | {"anthropic_base_url": "https://a.example"}, [("a.example", "sk-anthropic"), *VENDORS[1:], OPENAI]),
        ({"api_key": "gsk", "model": "groq:llama"}, [("api.groq.com", "gsk")]),
        ({"api_key": "gsk", "base_url": "https://api.groq.com/openai/v1"}, [("api.groq.com", "gsk")]),
        ({"api_key": "k", "model": "vllm:m", "fallback_model": "openai:gpt-5"}, []),
        ({"memory_embedding_api_key": "k", "memory_embedding_base_url": "https://api.openai.com/v1"}, []),
    ],
)
async def test_providers_are_listed_with_the_keys_that_are_theirs(
    given: dict[str, str], sent: list[tuple[str, str]], asked: list[tuple[str, str]]
) -> None:
    settings = Settings.of(**given)
    for provider in (row.id for row in ROWS.values() if row.addresses):
        if (key := environment_key(provider, settings)) is not None:
            with pytest.raises(ProviderUnreachable):
                await server_facts.models_of(provider, key, address_of(provider, settings))
    assert sorted(asked) == sorted(sent)


async def test_a_list_that_never_ends_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each byte comes before one read is too late."""

    async def drip(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\n\r\n")
        with contextlib.suppress(ConnectionError), contextlib.closing(writer):
            while not writer.is_closing():
                writer.write(b" ")
                await writer.drain()
                await asyncio.sleep(0.01)
        given_up.set()

    given_up = asyncio.Event()
    monkeypatch.setattr(server_facts, "WHOLE_SECONDS", 0.2)
    async with await asyncio.start_server(drip, "127.0.0.1", 0) as dripping:
        url = f"http://127.0.0.1:{dripping.sockets[0].getsockname()[1]}/v1"
        async with asyncio.timeout(60):
            with pytest.raises(ProviderUnreachable, match="does not answer"):
                await server_facts.models_of("openai", SecretStr(KEY), url)
            await given_up.wait()


async def test_a_redirect_takes_no_key_to_another_server() -> None:
    with ProviderEmulator() as other:
        for status in (301, 302, 307, 308):
            with answers(b"", status, {"Location": f"{other.anthropic_url}/v1/models"}) as url:
                with pytest.raises(ProviderUnreachable):
                    await server_facts.models_of("anthropic", SecretStr(KEY), url)
                for endpoint in (Endpoint(f"{url}/v1", {"x-api-key": KEY}), Endpoint(url, bearer("m", KEY))):
                    with pytest.raises(ProviderError):
                        await endpoint.answer({})
                    with pytest.raises(ProviderError):
                        [event async for event in endpoint.events({})]
                    await endpoint.close()
        assert other.requests == [] and KEY not in repr([dict(each.headers) for each in other.lookups])


@pytest.mark.parametrize(
    "answer", [b"", b"[]", b"{}", b'{"data": 1}', b"\xff", b'{"data": [{"id": "' + b"x" * 200 + b'"}]}']
)
def test_a_list_that_is_none_is_told_or_empty(serve: Any, answer: bytes) -> None:
    with answers(answer) as url:
        running = serve([{"finish": "Yes."}], anthropic_base_url=url)
        checked = running.client.post("/api/models/keys/anthropic/check", json={"key": KEY})
        assert checked.status_code in {200, 502}, checked.text
        assert KEY not in checked.text


@pytest.mark.parametrize(
    ("method", "path", "body", "code"),
    [
        ("PUT", "keys/anthropic", {"key": ""}, "invalid_input"),
        ("PUT", "keys/anthropic", {"key": "a\0b"}, "invalid_input"),
        ("PUT", "keys/anthropic", {"key": "é" * 9}, "key_refused"),
        ("PUT", "keys/anthropic", {"key": f"{KEY}\n", "check": False}, "key_refused"),
        ("PUT", "keys/anthropic", {"key": "a\r\nb: c"}, "key_refused"),
        ("PUT", "keys/anthropic", {"key": 7}, "invalid_input"),
        ("PUT", "keys/anthropic", {"key": "x" * 501}, "invalid_input"),
        ("PUT", "keys/anthropic", {"key": KEY, "more": 1}, "invalid_input"),
        ("PUT", "keys/nobody", {"key": KEY}, "invalid_input"),
        ("POST", "keys/anthropic%2F/check", {"key": KEY}, "invalid_input"),
        ("DELETE", "keys/..%2F..", None, "invalid_input"),
    ],
)
def test_what_is_no_key_is_refused(serve: Any, method: str, path: str, body: Any, code: str) -> None:
    running = serve([{"finish": "Yes."}])
    answer = running.client.request(method, f"/api/models/{path}", json=body)
    assert answer.json()["code"] == code, answer.text


def test_servers_on_this_machine_are_found_and_asked(
    serve: Any, monkeypatch: pytest.MonkeyPatch, store_address: str
) -> None:
    with ProviderEmulator([{"finish": "Forty-one."}], loop=True, models=["qwen3:4b"]) as emulator:
        ports = {"lmstudio": int(emulator.anthropic_url.rsplit(":", 1)[1]), "vllm": 1}

        async def found() -> Any:
            return await server_facts.local_servers(ports)

        monkeypatch.setattr("longthread.server.routes.models.local_servers", found)
        monkeypatch.setattr(named, "LOCAL_SERVERS", ports)
        running = serve(None)
        listed = running.client.get("/api/models").json()
        assert listed["servers"] == [{"kind": "lmstudio", "url": emulator.base_url}]
        local = {"name": "lmstudio:qwen3:4b", "origin": "local", "provider": "lmstudio", "protocol": None}
        assert local in listed["models"]
        asked = running.answer("How many?", model="lmstudio:qwen3:4b")
        assert running.history(asked["thread_id"])["runs"][0]["model"] == "lmstudio:qwen3:4b"
        assert emulator.requests[-1].body["model"] == "qwen3:4b"

        async def probe() -> None:
            async with open_store(store_address) as store, store.writing() as tx:
                await endpoints.save_protocol(tx, "qwen3:4b", emulator.base_url, "sql")

        asyncio.run(probe())
        assert {**local, "protocol": "sql"} in running.client.get("/api/models").json()["models"]


def test_other_machines_change_no_keys(serve: Any) -> None:
    running = serve([{"finish": "Yes."}], model="demo", no_login=True)
    running.client.headers["X-Forwarded-For"] = "198.51.100.9"
    listed = running.client.get("/api/models").json()
    assert (listed["keys_allowed"], listed["models"]) == (
        False,
        [{"name": "demo", "origin": "demo", "provider": None, "protocol": None}],
    )
    for method, path in (("PUT", ""), ("POST", "/check"), ("DELETE", "")):
        body = {"json": {"key": KEY}} if method != "DELETE" else {}
        answer = running.client.request(method, f"/api/models/keys/openai{path}", **body)
        assert (answer.status_code, answer.json()["code"]) == (403, "settings_not_allowed")
