"""Replies that break off: the log has the request, the text so far and the usage, and the conversation goes on."""

from __future__ import annotations

import asyncio
import gzip
import json
from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest
from tests.gateway.conftest import USER, Start

from longthread.store import gateway as calls
from longthread.store import log
from longthread.store.driver import Driver
from longthread.store.queries import Sql

pytestmark = pytest.mark.sampled(2)

Items = list[dict[str, Any]]
QUESTION = {"role": "user", "content": "数到三"}
HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: %s\r\n%s\r\n"


def sse(*events: dict[str, Any]) -> bytes:
    return b"".join(b"data: " + json.dumps(each).encode() + b"\n\n" for each in events)


def anthropic(text: str) -> list[bytes]:
    """A stream that has said a text, and has begun a call."""
    usage = {"input_tokens": 7, "output_tokens": 1}
    message = {"id": "msg_1", "type": "message", "role": "assistant", "content": [], "usage": usage}
    call = {"type": "tool_use", "id": "toolu_1", "name": "f", "input": {}}
    return [
        sse({"type": "message_start", "message": message}),
        sse({"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}}),
        sse({"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": text}}),
        sse({"type": "content_block_stop", "index": 0}),
        sse({"type": "content_block_start", "index": 1, "content_block": call}),
        sse({"type": "content_block_delta", "index": 1, "delta": {"type": "input_json_delta", "partial_json": '{"a'}}),
    ]


def completions(text: str) -> list[bytes]:
    usage = {"prompt_tokens": 7, "completion_tokens": 1}
    call = {"index": 0, "id": "call_1", "type": "function", "function": {"name": "f", "arguments": '{"a'}}
    return [
        sse({"id": "c", "choices": [{"index": 0, "delta": {"role": "assistant", "content": text}}], "usage": usage}),
        sse({"id": "c", "choices": [{"index": 0, "delta": {"tool_calls": [call]}}]}),
    ]


def responses(text: str) -> list[bytes]:
    message = {"id": "msg_1", "type": "message", "role": "assistant", "content": []}
    where = {"item_id": "msg_1", "output_index": 1, "content_index": 0}
    reasoning = {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "enc"}
    usage = {"input_tokens": 7, "output_tokens": 1}
    return [
        sse({"type": "response.created", "response": {"id": "resp_1", "status": "in_progress", "usage": usage}}),
        sse({"type": "response.output_item.done", "output_index": 0, "item": reasoning}),
        sse({"type": "response.output_item.added", "output_index": 1, "item": message}),
        sse({"type": "response.output_text.delta", "delta": text[:1], **where}),
        sse({"type": "response.output_text.delta", "delta": text[1:], **where}),
    ]


DIALECTS = {
    "anthropic": ("/v1/messages", "messages", anthropic),
    "completions": ("/v1/chat/completions", "messages", completions),
    "responses": ("/v1/responses", "input", responses),
}
ERRORS = {
    "anthropic": {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}},
    "completions": {"error": {"message": "Overloaded", "code": 503}},
    "responses": {"type": "error", "code": "server_error", "message": "Overloaded"},
}


class RawProvider:
    """A provider that writes bytes. `script` has the pieces of each answer; at its end the connection is cut, or, with
    `hang`, stays silent."""

    def __init__(self, *script: list[bytes], hang: bool = False, idle_cut: bool = False) -> None:
        self.requests: list[dict[str, Any]] = []
        self.connections = 0
        self.said = asyncio.Event()
        self._script, self._hang, self._idle_cut = list(script), hang, idle_cut
        self._writers: list[asyncio.StreamWriter] = []

    async def __aenter__(self) -> RawProvider:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.anthropic_url = f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}"
        return self

    async def __aexit__(self, *error: object) -> None:
        self._server.close()
        for writer in self._writers:
            writer.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        self._writers.append(writer)
        answered = 0
        while head := await _head(reader):
            body = await reader.readexactly(int(head["content-length"]))
            self.requests.append(json.loads(body))
            if self._idle_cut and answered:
                writer.transport.abort()  # as this request came, it closed the idle connection
                return
            answered += 1
            for piece in self._script.pop(0) if len(self._script) > 1 else self._script[0]:
                writer.write(piece)
                await writer.drain()
            self.said.set()
            if self._hang:
                await reader.read()
            if not self._idle_cut:
                break
        writer.close()


async def _head(reader: asyncio.StreamReader) -> dict[str, str]:
    try:
        lines = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
    except (asyncio.IncompleteReadError, ConnectionError):
        return {}
    pairs = (line.partition(":") for line in lines[1:] if line)
    return {name.lower(): value.strip() for name, _, value in pairs}


def stream(pieces: list[bytes]) -> list[bytes]:
    """A chunked answer that does not end."""
    chunks = [b"%x\r\n%s\r\n" % (len(piece), piece) for piece in pieces]
    return [HEAD % (b"text/event-stream", b"transfer-encoding: chunked\r\n"), *chunks]


def whole(value: Any, *more: bytes) -> list[bytes]:
    body = value if isinstance(value, bytes) else json.dumps(value).encode()
    lines = b"".join(line + b"\r\n" for line in (b"content-length: %d" % len(body), *more))
    return [HEAD % (b"application/json", lines) + body]


OK: dict[str, Any] = {"role": "assistant", "content": "ok"}
MESSAGE = {"type": "message", "id": "m", "role": "assistant", "content": [{"type": "output_text", "text": "ok"}]}
ENDED = {
    "anthropic": whole({"id": "m", "role": "assistant", "content": [{"type": "text", "text": "ok"}]}),
    "completions": whole({"id": "c", "choices": [{"message": OK}]}),
    "responses": whole({"id": "resp_2", "status": "completed", "output": [MESSAGE]}),
}


@pytest.fixture
async def client() -> AsyncIterator[httpx.AsyncClient]:
    async with httpx.AsyncClient(trust_env=False, timeout=30) as opened:
        yield opened


def asked(name: str, items: list[dict[str, Any]], **more: Any) -> tuple[str, dict[str, Any]]:
    path, field, _ = DIALECTS[name]
    return path, {"model": "m-1", "max_tokens": 99, field: items} | more


async def broken(
    client: httpx.AsyncClient, url: str, name: str, items: list[dict[str, Any]], until: bytes = b""
) -> str:
    """Ask for a stream, and leave once `until` has come; or read it until it breaks off. Return the thread's id."""
    path, body = asked(name, items, stream=True)
    got, thread_id = b"", ""
    try:
        async with client.stream("POST", url + path, json=body) as answer:
            thread_id = answer.headers["x-conversation-id"]
            async for piece in answer.aiter_raw():
                got += piece
                if until and until in got:
                    break
    except httpx.RemoteProtocolError:
        assert not until
    return thread_id


async def kept(store: Driver, thread_id: str, count: int) -> list[calls.GatewayCall]:
    """Wait until a thread has so many calls: a client that leaves does not wait for it."""
    for _ in range(500):
        async with store.reading() as tx:
            found = await calls.calls_until(tx, thread_id, 99)
        if len(found) >= count:
            return list(found.values())
        await asyncio.sleep(0.01)
    raise AssertionError(f"{len(found)} calls of {count}")


@pytest.mark.parametrize("name", DIALECTS)
@pytest.mark.parametrize("way", ["cut", "error", "left"])
async def test_the_text_so_far_is_in_the_log(
    store: Driver, start: Start, client: httpx.AsyncClient, name: str, way: str
) -> None:
    pieces = DIALECTS[name][2]("一二")
    if way == "error":
        pieces = [*pieces, sse(ERRORS[name])]
    async with RawProvider(stream(pieces), ENDED[name], hang=way == "left") as provider:
        url = await start(provider)
        last = pieces[-1].split(b"\n")[0] if way == "left" else b""
        thread_id = await broken(client, url, name, [QUESTION], last)
        [call] = await kept(store, thread_id, 1)
        async with store.reading() as tx:
            thread = await log.find_thread(tx, thread_id, user_id=USER)
            entries = await log.branch(tx, thread_id, thread.tip)
    assert [(entry.role, entry.text) for entry in entries] == [("user", "数到三"), ("assistant", "一二")]
    why = "client" if way == "left" else "provider"
    assert [entry.metadata.get("broken_off") for entry in entries] == [None, why]
    assert [list(entry.tool_calls) for entry in entries] == [[], []], "half a call is none"
    assert call.broken == why
    assert sorted(call.usage.values()) == [1, 7]
    assert call.response_id is None


@pytest.mark.parametrize("name", DIALECTS)
@pytest.mark.parametrize("partial", [None, "一二", "一", "一二 (interrupted)"])
async def test_the_next_turn_goes_on_in_the_same_thread(
    store: Driver, start: Start, client: httpx.AsyncClient, name: str, partial: str | None
) -> None:
    """With the text that the client has, which may be less or more than ours, or without."""
    said = [{"role": "assistant", "content": partial}] if partial else []
    after = [QUESTION, *said, {"role": "user", "content": "go on"}]
    async with RawProvider(stream(DIALECTS[name][2]("一二")), ENDED[name]) as provider:
        url = await start(provider)
        thread_id = await broken(client, url, name, [QUESTION])
        path, body = asked(name, after)
        answer = await client.post(url + path, json=body)
        assert answer.headers["x-conversation-id"] == thread_id
        assert [call.is_answered for call in await kept(store, thread_id, 2)] == [False, True]
        sent = provider.requests[-1][DIALECTS[name][1]]
        assert sent == after, "nothing of a broken-off reply is put in"


async def test_who_asks_something_else_is_in_another_thread(start: Start, client: httpx.AsyncClient) -> None:
    """Another reply, other tools, another question, and a greeting that was answered meanwhile."""
    async with RawProvider(stream(completions("一二")), ENDED["completions"]) as provider:
        url = await start(provider)
        thread_id = await broken(client, url, "completions", [QUESTION])
        tool = {"type": "function", "function": {"name": "f"}}
        others: list[tuple[list[dict[str, Any]], dict[str, Any]]] = [
            ([QUESTION, {"role": "assistant", "content": "四"}, QUESTION], {}),
            ([QUESTION], {"tools": [tool]}),
            ([{"role": "user", "content": "数到四"}], {}),
        ]
        for items, more in others:
            path, body = asked("completions", items, **more)
            answer = await client.post(url + path, json=body)
            assert answer.headers["x-conversation-id"] != thread_id
        path, body = asked("completions", [QUESTION])
        first, second = [await client.post(url + path, json=body) for _ in range(2)]
        assert first.headers["x-conversation-id"] == thread_id
        assert second.headers["x-conversation-id"] != thread_id


@pytest.mark.parametrize("name", DIALECTS)
async def test_a_conversation_from_elsewhere_is_stored_once(
    store: Driver, start: Start, client: httpx.AsyncClient, name: str
) -> None:
    history = [{"role": ("user", "assistant")[n % 2], "content": f"{n} " * 50} for n in range(20)]
    items = [*history, QUESTION]
    async with RawProvider(stream(DIALECTS[name][2]("一二")), stream([]), hang=False) as provider:
        url = await start(provider)
        threads = {await broken(client, url, name, items) for _ in range(4)}
        path, body = asked(name, items, stream=True)
        provider._hang = True
        provider.said.clear()
        leaving = asyncio.create_task(client.post(url + path, json=body))
        await provider.said.wait()
        leaving.cancel()
        [thread_id] = threads
        await kept(store, thread_id, 5)
        async with store.reading() as tx:
            rows = await tx.fetch(Sql("SELECT role FROM entries"))
        assert len(rows) == len(items) + 1


async def test_a_client_that_leaves_before_the_answer_has_its_request_kept(
    store: Driver, start: Start, client: httpx.AsyncClient
) -> None:
    async with RawProvider([], hang=True) as provider:
        url = await start(provider)
        path, body = asked("completions", [QUESTION])
        leaving = asyncio.create_task(client.post(url + path, json=body, headers={"x-conversation-id": "mine"}))
        await provider.said.wait()
        leaving.cancel()
        [call] = await kept(store, "mine", 1)
        assert (call.broken, call.reply_seq) == ("client", None)


@pytest.mark.parametrize("size", [10, 400_000])
async def test_an_idle_connection_that_the_provider_closes_costs_a_retry(
    start: Start, client: httpx.AsyncClient, size: int
) -> None:
    async with RawProvider(ENDED["completions"], idle_cut=True) as provider:
        url = await start(provider)
        for number in range(3):
            path, body = asked("completions", [{"role": "user", "content": f"{number}" * size}])
            assert (await client.post(url + path, json=body)).status_code == 200
        assert len(provider.requests) == 4, "the second one twice, and then on a fresh connection"


async def test_a_fresh_connection_that_breaks_is_an_error(start: Start, client: httpx.AsyncClient) -> None:
    async with RawProvider([]) as provider:
        path, body = asked("completions", [QUESTION])
        answer = await client.post(await start(provider) + path, json=body)
        assert answer.status_code == 502
        assert len(provider.requests) == 1, "nobody knows whether it was answered"


@pytest.mark.parametrize("is_packed", [True, False])
async def test_a_reply_is_bounded(start: Start, client: httpx.AsyncClient, is_packed: bool) -> None:
    bomb = b'{"x":"' + b" " * 3_000_000 + b'"}'
    packed = [b"content-encoding: gzip"] if is_packed else []
    async with RawProvider(whole(gzip.compress(bomb) if is_packed else bomb, *packed)) as provider:
        url = await start(provider, reply_limit=1 << 20)
        path, body = asked("completions", [QUESTION])
        answer = await client.post(url + path, json=body, headers={"accept-encoding": "gzip"})
    assert answer.status_code == 502
    assert "more than 1 MB" in answer.json()["error"]["message"]
    assert "LLM_MAX_REPLY_MB" in answer.json()["error"]["message"]


async def test_a_stream_is_bounded(store: Driver, start: Start, client: httpx.AsyncClient) -> None:
    said = completions("一二")[:1]
    async with RawProvider(stream([*said, *([b": " + b"x" * 65_536 + b"\n\n"] * 40)]), hang=True) as provider:
        url = await start(provider, reply_limit=1 << 20)
        thread_id = await broken(client, url, "completions", [QUESTION])
        [call] = await kept(store, thread_id, 1)
    assert call.broken == "limit"
