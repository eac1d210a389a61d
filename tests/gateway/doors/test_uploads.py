"""Bodies that are passed on as they come, and compressed ones that are read."""

from __future__ import annotations

import asyncio
import gzip
import json
import tracemalloc
import zlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx
import pytest
from backports import zstd
from tests.gateway.conftest import USER, Start

from longthread.gateway.http import Incoming, decode_request
from longthread.gateway.service import BODY_LIMIT, Gateway, GatewayOptions
from longthread.gateway.upstream import Routes, Upstream
from longthread.server.gateway import GatewayRouter
from longthread.server.gateway_access import Door
from longthread.server.http import HttpServer, listen
from longthread.store.driver import Driver
from longthread.testing import ProviderEmulator

pytestmark = pytest.mark.one_backend

FORM = {"content-type": "multipart/form-data; boundary=b"}
PIECE = b"x" * 2**16


@asynccontextmanager
async def running(app: Any) -> AsyncIterator[str]:
    with listen("127.0.0.1", 0) as listener:
        server = HttpServer(app, listener, lifespan="off")
        serving = asyncio.create_task(server.serve())
        yield server.url
        server.should_exit = True
        await serving


class Provider:
    """Counts what it gets, and answers with the size."""

    def __init__(self) -> None:
        self.got = 0
        self.first = asyncio.Event()
        self.gone = asyncio.Event()
        self.headers: dict[bytes, bytes] = {}

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        self.headers = dict(scope["headers"])
        more = True
        while more:
            message = await receive()
            if message["type"] == "http.disconnect":
                self.gone.set()
                return
            self.got += len(message["body"])
            self.first.set()
            more = message.get("more_body", False)
        body = json.dumps({"size": self.got}).encode()
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-type", b"application/json")]})
        await send({"type": "http.response.body", "body": body})


@asynccontextmanager
async def gateway(store: Driver) -> AsyncIterator[tuple[Provider, str]]:
    provider = Provider()
    async with running(provider) as address:
        upstream = Upstream("one", address, ["anthropic", "responses", "completions"])
        opened = Gateway(store, Routes({"one": upstream}), GatewayOptions(USER))
        async with running(GatewayRouter(opened, Door())) as url:
            yield provider, url
        await opened.close()


@pytest.mark.parametrize(
    "path", ["/v1/files", "/v1/uploads/u/parts", "/v1/audio/transcriptions", "/v1/messages/batches"]
)
@pytest.mark.parametrize("declared", [True, False])
async def test_a_large_body_is_passed_on_and_not_held(store: Driver, path: str, declared: bool) -> None:
    count = 2 * BODY_LIMIT // len(PIECE)

    async def pieces() -> AsyncIterator[bytes]:
        for _ in range(count):
            yield PIECE

    headers = FORM | ({"content-length": str(count * len(PIECE))} if declared else {})
    async with gateway(store) as (provider, url), httpx.AsyncClient(trust_env=False, timeout=60) as client:
        tracemalloc.start()
        answer = await client.post(url + path, content=pieces(), headers=headers)
        _, most = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert (answer.status_code, answer.json()) == (200, {"size": count * len(PIECE)})
        assert (b"content-length" in provider.headers) is declared, "its form stays"
    assert most < BODY_LIMIT // 2


async def test_it_goes_up_while_it_comes(store: Driver) -> None:
    async with gateway(store) as (provider, url), httpx.AsyncClient(trust_env=False, timeout=60) as client:

        async def pieces() -> AsyncIterator[bytes]:
            yield b"first"
            await provider.first.wait()
            yield b"second"

        answer = await client.post(f"{url}/v1/files", content=pieces(), headers=FORM)
        assert answer.json() == {"size": 11}


@pytest.mark.parametrize(("header", "limit"), [("x-a: b", b"513 MB"), ("anthropic-version: 2023-06-01", b"501 MB")])
async def test_what_says_that_it_is_too_large_is_not_read(store: Driver, header: str, limit: bytes) -> None:
    async with gateway(store) as (provider, url):
        reader, writer = await connected(url, f"{header}\r\ncontent-length: {600 * 2**20}")
        assert (await reader.readline()).split()[1] == b"413"
        await reader.readuntil(limit)
        writer.close()
        assert provider.headers == {}


async def connected(url: str, headers: str) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """A connection on which a file's head is sent."""
    host, port = url.removeprefix("http://").split(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    writer.write(f"POST /v1/files HTTP/1.1\r\nhost: h\r\ncontent-type: audio/mpeg\r\n{headers}\r\n\r\n".encode())
    return reader, writer


async def test_what_turns_out_too_large_is_broken_off(store: Driver, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("longthread.server.gateway.upload_limit", lambda *_: 3 * len(PIECE))
    async with gateway(store) as (provider, url), httpx.AsyncClient(trust_env=False, timeout=60) as client:

        async def pieces() -> AsyncIterator[bytes]:
            for _ in range(4):
                yield PIECE

        answer = await client.post(f"{url}/v1/files", content=pieces(), headers=FORM)
        assert answer.status_code == 413
        await provider.gone.wait()


async def test_a_client_that_leaves_ends_the_upload(store: Driver) -> None:
    async with gateway(store) as (provider, url):
        _, writer = await connected(url, "content-length: 100")
        writer.write(b"half")
        await provider.first.wait()
        writer.close()
        await provider.gone.wait()


def packed(form: str, body: bytes) -> bytes:
    if form == "zstd":
        return zstd.compress(body[:7]) + zstd.compress(body[7:])  # two frames
    return gzip.compress(body) if form == "gzip" else zlib.compress(body)


@pytest.mark.parametrize("form", ["gzip", "deflate", "zstd"])
async def test_a_compressed_body_is_read_within_bounds(start: Start, provider: ProviderEmulator, form: str) -> None:
    url = await start(provider)
    said = {"model": "claude-haiku-4-5", "max_tokens": 9, "messages": [{"role": "user", "content": "你好"}]}
    async with httpx.AsyncClient(trust_env=False) as client:
        sent = packed(form, json.dumps(said).encode())
        answer = await client.post(f"{url}/v1/messages", content=sent, headers={"content-encoding": form})
        assert "x-longthread-not-kept" not in answer.headers
        assert "x-conversation-id" in answer.headers or answer.status_code == 400, "the emulator reads none"
        assert provider.requests[-1].raw == sent
        bomb = packed(form, bytes(BODY_LIMIT + 1))
        answer = await client.post(f"{url}/v1/messages", content=bomb, headers={"content-encoding": form})
        assert answer.status_code == 413


def test_damaged_zstd_and_huge_windows_are_not_read() -> None:
    whole = zstd.compress(b"hello" * 1000)
    options = {zstd.CompressionParameter.window_log: 27, zstd.CompressionParameter.content_size_flag: 0}
    wide = zstd.ZstdCompressor(options=options)
    far = wide.compress(b"hello", mode=wide.FLUSH_BLOCK) + wide.flush()
    for body in (whole[:-3], b"\x00" + whole, b"no zstd", whole + b"tail", far):
        incoming = Incoming("POST", "/v1/responses", [(b"content-encoding", b"zstd")], body)
        assert decode_request(incoming, BODY_LIMIT) is incoming
    assert (
        decode_request(Incoming("POST", "/", [(b"content-encoding", b"ZSTD ")], whole), BODY_LIMIT).body
        == b"hello" * 1000
    )
