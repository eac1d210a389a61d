"""The gateway in the server: the same endpoints, behind the same guards."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from longthread.server.app import Server, create_app
from longthread.server.http import HttpServer, listen
from longthread.settings import Settings
from longthread.store import listing
from longthread.store.driver import Driver
from longthread.testing import ProviderEmulator
from longthread.tools.catalog.definitions import Catalog

pytestmark = pytest.mark.one_backend

HEADERS = {"x-api-key": "k", "anthropic-version": "2023-06-01"}


def asked(text: str, **fields: Any) -> dict[str, Any]:
    messages = [{"role": "user", "content": text}]
    return {"model": "claude-haiku-4-5", "max_tokens": 100, "messages": messages, **fields}


@pytest.fixture
async def url(store: Driver, store_address: str, tmp_path: Path, provider: ProviderEmulator) -> AsyncIterator[str]:
    """The server's address; it asks the emulated provider for all models."""
    given = {"base_url": provider.anthropic_url, "dialects": ["anthropic"]}
    await Catalog(store).apply([{"kind": "upstream", "name": "emulated", **given}])
    settings = Settings.load(env_file=None, data_dir=tmp_path, database=store_address, user="ada", host="127.0.0.1")
    started: asyncio.Future[str] = asyncio.get_running_loop().create_future()
    server = Server(create_app(settings), listen("127.0.0.1", 0), on_ready=started.set_result)
    serving = asyncio.create_task(server.serve())
    yield await started
    server.should_exit = True
    await serving
    server.listener.close()


@pytest.fixture
async def client(url: str) -> AsyncIterator[httpx.AsyncClient]:
    async with httpx.AsyncClient(base_url=url, headers=HEADERS, trust_env=False, timeout=60) as opened:
        yield opened


async def test_it_answers_and_keeps_the_conversation_of_the_settings_user(
    store: Driver, client: httpx.AsyncClient
) -> None:
    answer = await client.post("/v1/messages", json=asked("你好 Hello"))
    assert (answer.status_code, answer.json()["type"]) == (200, "message")
    async with store.reading() as tx:
        [thread] = await listing.list_threads(tx, user_id="ada")
        assert (thread.id, thread.title) == (answer.headers["x-conversation-id"], "你好 Hello")
    listed = await client.get("/api/conversations")
    assert [each["id"] for each in listed.json()["conversations"]] == [thread.id]
    history = await client.get("/api/chat/history", params={"thread_id": thread.id})
    said = "".join(block["text"] for block in answer.json()["content"])
    assert [(each["role"], each["content"]) for each in history.json()["messages"]] == [
        ("user", "你好 Hello"),
        ("assistant", said),
    ]


async def test_a_body_may_be_larger_than_a_question_but_not_above_the_gateways_limit(
    client: httpx.AsyncClient,
) -> None:
    large = "x" * 3_000_000
    assert (await client.post("/v1/messages", json=asked(large))).status_code == 200
    assert (await client.post("/api/chat", json={"question": large})).status_code == 413
    body = json.dumps(asked("x" * (32 * 1024 * 1024))).encode()

    async def chunked() -> AsyncIterator[bytes]:
        yield body

    for content in (body, chunked()):
        answer = await client.post("/v1/messages", content=content)
        assert (answer.status_code, answer.json()["error"]["type"]) == (413, "request_too_large")


async def test_other_sites_and_rebound_names_are_refused(client: httpx.AsyncClient, provider: ProviderEmulator) -> None:
    for headers, status in (({"Origin": "http://evil.example"}, 403), ({"Host": "evil.example"}, 421)):
        answer = await client.post("/v1/messages", json=asked("Hello"), headers=headers)
        assert (answer.status_code, answer.json()["type"]) == (status, "error"), "in the vendor's shape"
    assert provider.requests == []


async def test_nothing_of_a_stream_is_held_back(store: Driver, client: httpx.AsyncClient) -> None:
    """The provider goes on when the client has read what there is."""
    read = asyncio.Event()

    async def provider(scope: Any, receive: Any, send: Any) -> None:
        headers = [(b"content-type", b"text/event-stream")]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": b"event: first\ndata: {}\n\n", "more_body": True})
        await read.wait()
        await send({"type": "http.response.body", "body": b"event: second\ndata: {}\n\n"})

    with listen("127.0.0.1", 0) as listener:
        server = HttpServer(provider, listener, lifespan="off")
        serving = asyncio.create_task(server.serve())
        given = {"base_url": server.url, "dialects": ["anthropic"]}
        await Catalog(store).apply([{"kind": "upstream", "name": "emulated", **given}])
        async with client.stream("POST", "/v1/messages", json=asked("Hello", stream=True)) as answer:
            pieces = answer.aiter_raw()
            assert await anext(pieces) == b"event: first\ndata: {}\n\n"
            read.set()
            assert b"".join([piece async for piece in pieces]) == b"event: second\ndata: {}\n\n"
        server.should_exit = True
        await serving
