"""Calls of one model share a connection, and one that the server has closed costs no failed call."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest
from starlette.requests import Request

from longthread.llm.anthropic import PATH as ANTHROPIC_PATH
from longthread.llm.anthropic import AnthropicModel
from longthread.llm.chat import ChatModel, reply_of
from longthread.llm.connections import ModelCache
from longthread.llm.failures import ConnectionBroken, RateLimited
from longthread.llm.http import Endpoint
from longthread.llm.openai import PATH, OpenAIModel
from longthread.messages.message import Message
from longthread.runs.analyst import Analyst
from longthread.settings import Settings
from longthread.testing import ProviderEmulator, Refused

QUESTION = [Message("user", "q")]


class CountingEmulator(ProviderEmulator):
    """Notes the port of each call's client: calls over one connection have the same."""

    def __init__(self, *args: Any, **how: Any) -> None:
        super().__init__(*args, **how)
        self.ports: list[int] = []

    async def _record(self, request: Request) -> Any:
        assert request.client is not None
        if request.method == "POST":
            self.ports.append(request.client.port)
        return await super()._record(request)


def openai(provider: ProviderEmulator) -> ChatModel:
    return OpenAIModel("m", Endpoint(provider.base_url + PATH))


def anthropic(provider: ProviderEmulator) -> ChatModel:
    return AnthropicModel("m", Endpoint(provider.anthropic_url + ANTHROPIC_PATH), 9)


@pytest.mark.parametrize("way", [openai, anthropic])
async def test_calls_of_a_model_share_a_connection(way: Callable[[ProviderEmulator], ChatModel]) -> None:
    async with CountingEmulator(["one", Refused(429), "two", "three"]) as provider:
        model = way(provider)
        assert (await reply_of(model, QUESTION)).text == "one"
        with pytest.raises(RateLimited):
            await reply_of(model, QUESTION)
        assert (await reply_of(model, QUESTION)).text == "two"
        assert len(provider.ports) == 3 and len({*provider.ports}) == 1
        await model.close()
        assert (await reply_of(model, QUESTION)).text == "three"  # over another one
        assert len({*provider.ports}) == 2


async def test_calls_at_once_have_a_connection_each() -> None:
    async with CountingEmulator(["said"] * 3) as provider:
        model = openai(provider)
        said = await asyncio.gather(*(reply_of(model, QUESTION) for _ in range(3)))
    assert [each.text for each in said] == ["said"] * 3


async def test_an_analyst_closes_its_models(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    closed: list[str] = []
    original = Endpoint.close

    async def close(self: Endpoint) -> None:
        closed.append(self.url)
        await original(self)

    monkeypatch.setattr(Endpoint, "close", close)
    async with CountingEmulator(["Hello."] * 2) as provider:
        given: dict[str, Any] = {"data_dir": tmp_path, "model": "m", "base_url": provider.base_url, "source": "demo"}
        async with Analyst.open(Settings.load(env_file=None, **given)) as analyst:
            for _ in range(2):
                handle = await analyst.ask("Hello?", user_id="u", protocol="native")
                assert (await handle.wait()).data["answer"] == "Hello."
            assert not closed
        assert closed == [provider.base_url + PATH]
        assert len({*provider.ports}) == 1


# A server that ends its connections as it likes.

WHOLE = json.dumps({"choices": [{"message": {"content": "said"}, "finish_reason": "stop"}]}).encode()
STREAM = b'data: {"choices": [{"delta": {"content": "said"}, "finish_reason": "stop"}]}\n\ndata: [DONE]\n\n'


@asynccontextmanager
async def server(answers: Callable[[int, int], str]) -> AsyncIterator[tuple[str, list[tuple[int, int]]]]:
    """`answers` says what becomes of the request number `n` of connection `c`: `keep`, `close` after it, or `drop`."""
    seen: list[tuple[int, int]] = []
    writers: list[asyncio.StreamWriter] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writers.append(writer)
        connection, number = len(writers), 0
        while True:
            try:
                head = await reader.readuntil(b"\r\n\r\n")
            except asyncio.IncompleteReadError:
                break
            length = int(head.lower().partition(b"content-length:")[2].split(b"\r\n")[0])
            await reader.readexactly(length)
            number += 1
            seen.append((connection, number))
            what = answers(connection, number)
            if what == "drop":
                break
            kind = b"text/event-stream" if what == "stream" else b"application/json"
            body = b"%x\r\n%b\r\n0\r\n\r\n" % (len(STREAM), STREAM) if what == "stream" else WHOLE
            framed = b"transfer-encoding: chunked" if what == "stream" else b"content-length: %d" % len(WHOLE)
            head = b"HTTP/1.1 200 OK\r\nset-cookie: session=of-one\r\ncontent-type: %b\r\n%b\r\n\r\n"
            writer.write(head % (kind, framed) + body)
            await writer.drain()
            if what == "close":
                break
        writer.close()

    async with await asyncio.start_server(serve, "127.0.0.1", 0) as listening:
        try:
            yield f"http://127.0.0.1:{listening.sockets[0].getsockname()[1]}", seen
        finally:
            for writer in writers:
                writer.close()


async def test_a_connection_that_was_closed_between_two_calls_is_replaced() -> None:
    async with server(lambda connection, number: "close") as (url, seen):
        model = OpenAIModel("m", Endpoint(url))
        for _ in range(3):
            assert (await reply_of(model, QUESTION)).text == "said"
    assert seen == [(1, 1), (2, 1), (3, 1)]


@pytest.mark.parametrize("kind", ["keep", "stream"])
async def test_a_call_that_the_server_may_have_got_is_sent_once(kind: str) -> None:
    """Whether to send it again is for the run to say: it counts attempts."""
    async with server(lambda connection, number: kind if number == 1 else "drop") as (url, seen):
        model = OpenAIModel("m", Endpoint(url))
        assert (await reply_of(model, QUESTION)).text == "said"
        with pytest.raises(ConnectionBroken):
            await reply_of(model, QUESTION)
        assert (await reply_of(model, QUESTION)).text == "said"  # over another connection
        await model.close()
    assert seen == [(1, 1), (1, 2), (2, 1)]


async def test_a_new_connection_that_is_closed_is_a_failed_call() -> None:
    async with server(lambda connection, number: "drop") as (url, seen):
        with pytest.raises(ConnectionBroken):
            await reply_of(OpenAIModel("m", Endpoint(url)), QUESTION)
    assert seen == [(1, 1)]


async def test_a_cookie_of_one_call_does_not_go_with_the_next() -> None:
    """The next call may be another user's."""
    async with server(lambda connection, number: "keep") as (url, _):
        endpoint = Endpoint(url)
        model = OpenAIModel("m", endpoint)
        await reply_of(model, QUESTION)
        assert not endpoint._client().cookies
        await model.close()


class Unclosable:
    """A model whose connections cannot be closed."""

    def __init__(self, closed: list[str]) -> None:
        self.closed = closed

    async def close(self) -> None:
        self.closed.append("tried")
        raise OSError("no")


async def test_one_model_that_does_not_close_leaves_none_of_the_others_open() -> None:
    closed: list[str] = []
    cache = ModelCache(Settings.load(env_file=None, model="a"), lambda *_: Unclosable(closed))
    for name in ("a", "b", "c"):
        cache.models(name, {})
    with pytest.raises(OSError, match="no"):
        await cache.close()
    assert closed == ["tried"] * 3


def test_a_model_can_be_asked_on_several_event_loops() -> None:
    with CountingEmulator(["one", "two"]) as provider:
        model = openai(provider)

        async def ask() -> str:
            said = await reply_of(model, QUESTION)
            await model.close()
            return said.text

        assert [asyncio.run(ask()), asyncio.run(ask())] == ["one", "two"]
