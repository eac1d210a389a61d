"""HTTP on both sides of the gateway: how providers are asked, and how their streams go down."""

from __future__ import annotations

import asyncio
import datetime
import gzip
import ipaddress
import json
import re
import ssl
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, suppress
from itertools import pairwise
from pathlib import Path
from typing import Any

import aiohttp
import httpx
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from hypothesis import given
from hypothesis import strategies as st
from tests.gateway.conftest import USER

from longthread.gateway import upstream
from longthread.gateway.dialects.dialect import Dialect
from longthread.gateway.dialects.stream import FinalEvent
from longthread.gateway.http import Incoming, Outgoing
from longthread.gateway.service import ANTHROPIC, COMPLETIONS, RESPONSES, Gateway, GatewayOptions
from longthread.gateway.upstream import Connections, Routes, Upstream, UpstreamResponse
from longthread.server import gateway
from longthread.server.gateway import GatewayRouter
from longthread.server.gateway_access import Door
from longthread.server.http import HttpServer, listen
from longthread.store import gateway as calls
from longthread.store import listing, log
from longthread.store.driver import Driver

pytestmark = pytest.mark.one_backend

OK = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok"
FINAL = b"event: message_stop"
PING = b'event: ping\ndata: {"type": "ping"}\n\n'
EVENTS = (b"event: one\ndata: {}", b"data: \xe4\xbd\xa0 message_stop", b": ping", b"data: a\ndata: b")
Write = Callable[[bytes], Awaitable[None]]
Work = Callable[[Write, asyncio.Event], Awaitable[None]]
PROXIES = ("http_proxy", "https_proxy", "all_proxy", "no_proxy", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY")


@pytest.fixture(autouse=True)
def direct(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """No proxy, and the certificates of the test alone."""
    for name in PROXIES:
        monkeypatch.delenv(name, raising=False)
    upstream._certificates.cache_clear()
    yield
    upstream._certificates.cache_clear()


class Wire:
    """A server that writes down what it gets and answers each request with the next of these bytes. An empty answer
    closes the connection, and so does one that says so."""

    def __init__(self, answers: Sequence[bytes]) -> None:
        self.requests: list[bytes] = []
        self.connections = 0
        self._answers = iter(answers)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        try:
            while head := await reader.readuntil(b"\r\n\r\n"):
                sizes = [line[15:] for line in head.split(b"\r\n") if line.lower().startswith(b"content-length:")]
                self.requests.append(head + await reader.readexactly(int(sizes[0]) if sizes else 0))
                answer = next(self._answers)
                writer.write(answer)
                if not answer or b"connection: close" in answer:
                    break
        except asyncio.IncompleteReadError:
            pass
        writer.close()


@asynccontextmanager
async def served(*answers: bytes, tls: ssl.SSLContext | None = None) -> AsyncIterator[tuple[Wire, str]]:
    wire = Wire(answers)
    server = await asyncio.start_server(wire.serve, "127.0.0.1", 0, ssl=tls, limit=2**25)
    port = server.sockets[0].getsockname()[1]
    async with server:
        yield wire, f"http{'s' if tls else ''}://127.0.0.1:{port}"


@asynccontextmanager
async def connected(url: str) -> AsyncIterator[Callable[..., Any]]:
    """`await send(body, headers=…, path=…)`: a provider's answer."""
    connections = Connections()

    async def send(body: bytes = b"{}", path: str = "/v1/messages", **given: Any) -> UpstreamResponse:
        asked = Incoming(given.pop("method", "POST"), path, given.pop("headers", []), body, **given)
        return await connections.send(Upstream("one", url, ["anthropic"]), "anthropic", asked, body)

    try:
        yield send
    finally:
        await connections.close()


async def test_headers_and_address_go_up_as_they_came() -> None:
    headers = [(b"x-b", b"1"), (b"x-a", b"two,  spaced"), (b"x-b", b"2"), (b"x-name", "你好".encode())]
    async with served(OK, OK, OK) as (wire, url), connected(url) as send:
        await (await send(headers=headers, query=b"beta=true&q=a%2Fb+c")).read()
        await (await send(path="/v1/models/a b/ü", method="GET", body=b"")).read()
    head, _, body = wire.requests[0].partition(b"\r\n\r\n")
    first, *rest = head.split(b"\r\n")
    assert first == b"POST /v1/messages?beta=true&q=a%2Fb+c HTTP/1.1"
    assert body == b"{}"
    own = (b"host:", b"content-length:")
    assert [line for line in rest if not line.lower().startswith(own)] == [a + b": " + b for a, b in headers]
    assert wire.requests[1].startswith(b"GET /v1/models/a%20b/%C3%BC HTTP/1.1\r\nHost: ")
    assert wire.connections == 1


async def test_an_answer_comes_as_it_was_sent() -> None:
    raw = b"HTTP/1.1 200 OK\r\nX-B: 1\r\nx-a:  \xe4\xbd\xa0\xff\r\nX-B: 2\r\nContent-Encoding: gzip\r\n"
    async with (
        served(raw + b"Set-Cookie: a=1\r\nContent-Length: 3\r\n\r\nabc", OK) as (wire, url),
        connected(url) as send,
    ):
        answer = await send()
        assert await answer.read() == b"abc"  # no gzip, and not decoded either
        await (await send()).read()
    expected = [(b"x-b", b"1"), (b"x-a", b"\xe4\xbd\xa0\xff"), (b"x-b", b"2"), (b"content-encoding", b"gzip")]
    assert answer.headers == [*expected, (b"set-cookie", b"a=1"), (b"content-length", b"3")]
    assert b"cookie" not in wire.requests[1].lower()


@pytest.mark.parametrize("size", [0, 1, 300_000, 2_000_000])
async def test_bodies_of_any_size_go_up_whole(size: int) -> None:
    body = bytes(number % 251 for number in range(size))
    async with served(OK) as (wire, url), connected(url) as send:
        await (await send(body)).read()
    head, _, sent = wire.requests[0].partition(b"\r\n\r\n")
    assert sent == body
    assert f"content-length: {size}".encode() in head.lower()
    assert b"transfer-encoding" not in head.lower()


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        (b"HTTP/1.1 200 OK\r\nconnection: close\r\n\r\nup to the end", b"up to the end"),
        (b"HTTP/1.1 103 Early Hints\r\nlink: x\r\n\r\n" + OK, b"ok"),
        (b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\nab\r\n3\r\ncde\r\n0\r\n\r\n", b"abcde"),
        (b"HTTP/1.1 302 Found\r\nlocation: /elsewhere\r\ncontent-length: 0\r\n\r\n", b""),
        (b"HTTP/1.1 200 OK\r\nx-long: " + 60_000 * b"x" + b"\r\ncontent-length: 2\r\n\r\nok", b"ok"),
    ],
    ids=["to the end", "hints", "chunks", "redirect", "long header"],
)
async def test_answers_of_all_forms_are_read(raw: bytes, expected: bytes) -> None:
    async with served(raw) as (wire, url), connected(url) as send:
        assert await (await send()).read() == expected
    assert len(wire.requests) == 1


@pytest.mark.parametrize(
    "raw",
    [
        b"",
        b"no HTTP\r\n\r\nconnection: close",
        b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\nconnection: close\r\n\r\nhalf",
        b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\nconnection: close\r\n\r\n9\r\nhalf",
    ],
    ids=["nothing", "no HTTP", "half a body", "half a chunk"],
)
async def test_a_lost_connection_is_no_answer(raw: bytes) -> None:
    async with served(raw, OK) as (wire, url), connected(url) as send:
        with pytest.raises(aiohttp.ClientError):
            await (await send()).read()
        assert len(wire.requests) == 1  # what may have been answered is not asked again
        assert await (await send()).read() == b"ok"


@pytest.mark.parametrize(
    "url",
    ["http://127.0.0.1:1", "ftp://host", "http://", "http://[", "http://host:99999", "no", f"http://{'a' * 70}.test"],
)
async def test_what_is_no_server_is_a_client_error(url: str) -> None:
    async with connected(url) as send:
        with pytest.raises(aiohttp.ClientError):
            await send()


async def test_a_missing_file_of_certificates_is_a_client_error(monkeypatch: pytest.MonkeyPatch) -> None:
    upstream._certificates.cache_clear()
    monkeypatch.setenv("SSL_CERT_FILE", "/no/such/file.pem")
    async with connected("https://127.0.0.1:1") as send:
        with pytest.raises(aiohttp.ClientError, match="No such file"):
            await send()


async def test_the_environment_s_proxy_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    async with served(OK) as (wire, proxy), connected("http://provider.test") as send:
        monkeypatch.setenv("http_proxy", proxy.removeprefix("http://").join(["me:secret@", ""]))
        assert await (await send()).read() == b"ok"
    assert wire.requests[0].startswith(b"POST http://provider.test/v1/messages HTTP/1.1\r\n")
    assert b"Proxy-Authorization: Basic bWU6c2VjcmV0" in wire.requests[0]
    async with served(OK) as (wire, url), connected(url) as send:
        monkeypatch.setenv("no_proxy", url.removeprefix("http://"))
        assert await (await send()).read() == b"ok"
    assert wire.requests[0].startswith(b"POST /v1/messages ")
    monkeypatch.setenv("https_proxy", "socks5://127.0.0.1:1")
    async with connected("https://provider.test") as send:
        with pytest.raises(aiohttp.InvalidURL, match="no HTTP proxy"):
            await send()


async def test_tls_is_checked_and_goes_through_a_proxy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tls, trusted = certificate(tmp_path)
    async with served(OK, OK, tls=tls) as (wire, url):
        async with connected(url) as send:
            with pytest.raises(aiohttp.ClientError, match="certificate"):
                await send()
        upstream._certificates.cache_clear()
        monkeypatch.setenv("SSL_CERT_FILE", str(trusted))
        async with connected(url) as send:
            assert await (await send()).read() == b"ok"
        tunnels: list[bytes] = []
        proxy = await asyncio.start_server(tunnel(tunnels), "127.0.0.1", 0)
        monkeypatch.setenv("https_proxy", f"http://127.0.0.1:{proxy.sockets[0].getsockname()[1]}")
        async with proxy, connected(url) as send:
            assert await (await send()).read() == b"ok"
    assert tunnels[0].startswith(f"CONNECT {url.removeprefix('https://')} HTTP/1.1".encode())
    assert len(wire.requests) == 2


def tunnel(asked: list[bytes]) -> Callable[[asyncio.StreamReader, asyncio.StreamWriter], Any]:
    """A proxy that opens one tunnel for each connection."""

    async def pipe(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while data := await reader.read(65_536):
            writer.write(data)
        writer.close()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        asked.append(await reader.readuntil(b"\r\n\r\n"))
        host, port = asked[-1].split()[1].decode().split(":")
        up_reader, up_writer = await asyncio.open_connection(host, int(port))
        writer.write(b"HTTP/1.1 200 Connected\r\n\r\n")
        await asyncio.gather(pipe(reader, up_writer), pipe(up_reader, writer))

    return serve


def certificate(folder: Path) -> tuple[ssl.SSLContext, Path]:
    """A server's context for 127.0.0.1, and the file of the certificate that signs it: its own."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "provider")])
    now = datetime.datetime.now(datetime.UTC)
    address = x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))])
    builder = x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
    builder = builder.not_valid_before(now - datetime.timedelta(days=1)).not_valid_after(
        now + datetime.timedelta(days=1)
    )
    made = builder.add_extension(address, critical=False).sign(key, hashes.SHA256())
    public, private = folder / "public.pem", folder / "private.pem"
    public.write_bytes(made.public_bytes(serialization.Encoding.PEM))
    raw = serialization.PrivateFormat.PKCS8
    private.write_bytes(key.private_bytes(serialization.Encoding.PEM, raw, serialization.NoEncryption()))
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(public, private)
    return context, public


@asynccontextmanager
async def running(app: Any) -> AsyncIterator[str]:
    with listen("127.0.0.1", 0) as listener:
        server = HttpServer(app, listener, lifespan="off")
        serving = asyncio.create_task(server.serve())
        yield server.url
        server.should_exit = True
        await serving


@asynccontextmanager
async def gateway_before(store: Driver, work: Work) -> AsyncIterator[str]:
    """A gateway before a provider that streams as `work` says. It gets a function that writes, and an event that is set
    when the connection is closed."""

    async def provider(scope: Any, receive: Any, send: Any) -> None:
        closed = asyncio.Event()

        async def watch() -> None:
            while (await receive())["type"] != "http.disconnect":
                pass
            closed.set()

        async def write(data: bytes) -> None:
            await send({"type": "http.response.body", "body": data, "more_body": True})

        headers = [(b"content-type", b"text/event-stream")]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        watching = asyncio.create_task(watch())
        await work(write, closed)
        watching.cancel()
        await send({"type": "http.response.body", "body": b""})

    async with running(provider) as url, before(store, url) as own:
        yield own


@asynccontextmanager
async def before(store: Driver, provider: str) -> AsyncIterator[str]:
    """A gateway before a provider."""
    upstream = Upstream("one", provider, ["anthropic", "responses", "completions"])
    gateway = Gateway(store, Routes({"one": upstream}), GatewayOptions(USER))
    async with running(GatewayRouter(gateway, Door())) as own:
        yield own
    await gateway.close()


@asynccontextmanager
async def asked(url: str) -> AsyncIterator[AsyncIterator[bytes]]:
    body = {"model": "claude-x", "stream": True, "messages": [{"role": "user", "content": "hello"}]}
    async with (
        httpx.AsyncClient(timeout=30) as client,
        client.stream("POST", f"{url}/v1/messages", json=body) as answer,
    ):
        yield answer.aiter_raw()


async def test_a_silence_is_filled_until_the_stream_goes_on(store: Driver, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gateway, "PING_SECONDS", 0.02)
    heard = asyncio.Event()

    async def work(write: Write, closed: asyncio.Event) -> None:
        await write(b"event: one\ndata: {}\n\n")
        await heard.wait()
        await write(b"event: two\ndata: {}\n\n")

    async with gateway_before(store, work) as url, asked(url) as pieces:
        said = b""
        async for piece in pieces:
            said += piece
            if said.count(PING) == 2:
                heard.set()
    assert said.startswith(b"event: one\ndata: {}\n\n" + PING)
    assert said.replace(PING, b"") == b"event: one\ndata: {}\n\nevent: two\ndata: {}\n\n"


async def expect_left(store: Driver) -> None:
    """Wait until the log has the request of a client that has left."""
    while True:
        async with store.reading() as tx:
            threads = await listing.list_threads(tx, user_id=USER)
            found = [await calls.find_call(tx, each.id, 1) for each in threads]
        if found:
            assert [(each.broken, each.reply_seq) for each in found if each] == [("client", None)]
            return
        await asyncio.sleep(0.01)


async def test_a_client_that_leaves_in_a_silence_stops_the_provider(store: Driver) -> None:
    left = asyncio.Event()

    async def work(write: Write, closed: asyncio.Event) -> None:
        await write(b"event: one\ndata: {}\n\n")
        await closed.wait()
        left.set()

    async with gateway_before(store, work) as url:
        async with asked(url) as pieces:
            assert await anext(pieces) == b"event: one\ndata: {}\n\n"
        await asyncio.wait_for(left.wait(), 30)
        await expect_left(store)


async def test_a_client_that_leaves_before_the_last_event_has_its_reply_kept(store: Driver) -> None:
    """If the provider has said that the reply ends: some clients read no further."""
    left = asyncio.Event()

    async def work(write: Write, closed: asyncio.Event) -> None:
        await write(sse({"choices": [{"index": 0, "delta": {"content": "noon"}}]}))
        await write(sse({"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}))
        await closed.wait()
        left.set()

    said = {"model": "m", "stream": True, "messages": [{"role": "user", "content": "when?"}]}
    async with gateway_before(store, work) as url, httpx.AsyncClient(timeout=30) as client:
        async with client.stream("POST", f"{url}/v1/chat/completions", json=said) as answer:
            thread_id, came = answer.headers["x-conversation-id"], b""
            async for piece in answer.aiter_raw():
                came += piece
                if b"finish_reason" in came:
                    break
        await asyncio.wait_for(left.wait(), 30)
    async with store.reading() as tx:
        assert [entry.text for entry in await log.entries_between(tx, thread_id, 1, 9)] == ["when?", "noon"]


@pytest.mark.parametrize("streams", [False, True])
async def test_only_a_stream_is_broken_by_a_silence(
    store: Driver, monkeypatch: pytest.MonkeyPatch, streams: bool
) -> None:
    """A client that does not stream knows for itself how long it waits."""
    monkeypatch.setattr(upstream, "_TIMEOUT", aiohttp.ClientTimeout(total=None, sock_read=0.1))
    gone = asyncio.Event()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        with suppress(TimeoutError):
            await asyncio.wait_for(reader.read(), 30 if streams else 0.5)  # up to the end of the connection
            gone.set()
        writer.write(OK)
        writer.close()

    body = {"model": "claude-x", "stream": streams, "messages": [{"role": "user", "content": "hello"}]}
    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    provider = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    async with server, before(store, provider) as url, httpx.AsyncClient(timeout=30) as client:
        answer = await client.post(f"{url}/v1/messages", json=body)
    assert (answer.status_code, gone.is_set()) == ((504, True) if streams else (200, False))


@pytest.mark.parametrize(
    ("method", "path", "streams"),
    [("POST", "/v1/messages", False), ("POST", "/v1/messages", True), ("GET", "/v1/models", False)],
)
async def test_a_client_that_leaves_before_the_answer_stops_the_provider(
    store: Driver, method: str, path: str, streams: bool
) -> None:
    began, left = asyncio.Event(), asyncio.Event()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        began.set()
        await reader.read()  # up to the end
        left.set()
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    body = {"model": "claude-x", "stream": streams, "messages": [{"role": "user", "content": "hello"}]}
    async with server, before(store, f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}") as url:
        async with httpx.AsyncClient(timeout=30) as client:
            asking = asyncio.create_task(client.request(method, url + path, json=body))
            await began.wait()
            asking.cancel()
            await asyncio.wait([asking])
        await asyncio.wait_for(left.wait(), 30)
        if method == "POST":
            await expect_left(store)
    async with store.reading() as tx:
        assert len(await listing.list_threads(tx, user_id=USER)) == (method == "POST")


def sse(*events: dict[str, Any]) -> bytes:
    named = (f"event: {each['type']}\n" if "type" in each else "" for each in events)
    return b"".join(f"{name}data: {json.dumps(each)}\n\n".encode() for name, each in zip(named, events, strict=True))


WHOLE = {
    "messages": sse(
        {"type": "message_start", "message": {"id": "m", "role": "assistant", "content": []}},
        {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": "noon"}},
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": {"stop_reason": "end_turn"}},
        {"type": "message_stop"},
    ),
    "chat/completions": sse({"choices": [{"index": 0, "delta": {"content": "noon"}, "finish_reason": "stop"}]})
    + b"data: [DONE]\n\n",
    "responses": sse(
        {
            "type": "response.completed",
            "response": {
                "id": "resp_1",
                "status": "completed",
                "output": [
                    {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "noon"}]}
                ],
            },
        }
    ),
}


@pytest.mark.parametrize("end", ["no last chunk", "too short", "open", "packed", "unnamed", "as text"])
@pytest.mark.parametrize("path", WHOLE)
async def test_a_stream_is_whole_with_its_final_event(store: Driver, path: str, end: str) -> None:
    """However its connection ends, and whenever."""
    stream = WHOLE[path]
    sent = gzip.compress(stream) if end == "packed" else stream
    chunk = b"transfer-encoding: chunked\r\n\r\n%x\r\n%s\r\n" % (len(sent), sent)
    kinds = {"unnamed": b"", "as text": b"content-type: text/plain\r\n"}
    rest = {
        **dict.fromkeys(kinds, b"connection: close\r\n" + chunk),
        "no last chunk": b"connection: close\r\n" + chunk,
        "too short": b"connection: close\r\ncontent-length: 99999\r\n\r\n" + sent,
        "open": chunk,
        "packed": b"connection: close\r\ncontent-encoding: gzip\r\n" + chunk,
    }
    said: dict[str, Any] = {"model": "m", "stream": True, ("input" if path == "responses" else "messages"): []}
    said["input" if path == "responses" else "messages"].append({"role": "user", "content": "when?"})
    answer = b"HTTP/1.1 200 OK\r\n" + kinds.get(end, b"content-type: Text/Event-Stream\r\n") + rest[end]
    async with (
        served(answer) as (_, provider),
        before(store, provider) as url,
        httpx.AsyncClient(timeout=30) as client,
        client.stream("POST", f"{url}/v1/{path}", json=said) as found,
    ):
        came = b""
        async for piece in found.aiter_bytes():
            came += piece
            if end == "open" and came == stream:
                break
        assert came == stream
        async with store.reading() as tx:
            entries = await log.entries_between(tx, found.headers["x-conversation-id"], 1, 9)
        assert [entry.text for entry in entries] == ["when?", "noon"]


async def test_one_cancelled_by_the_server_stays_cancelled(store: Driver, monkeypatch: pytest.MonkeyPatch) -> None:
    """A client that leaves is no error; a server that ends all its tasks is told that they are cancelled."""
    began = asyncio.Event()

    async def stream() -> AsyncGenerator[bytes]:
        began.set()
        await asyncio.Event().wait()
        yield b""

    comes = iter([{"type": "http.request"}])

    async def receive() -> dict[str, Any]:
        return next(comes, None) or await asyncio.get_running_loop().create_future()

    async def send(message: Any) -> None:
        pass

    async def answer(*_: Any) -> Any:
        return Outgoing(200, [], stream=stream())

    monkeypatch.setattr(GatewayRouter, "_answer", answer)
    app = GatewayRouter(Gateway(store, Routes({}), GatewayOptions(USER)), Door())
    scope = {"method": "GET", "path": "/v1/models", "headers": [], "query_string": b""}
    sending = asyncio.create_task(app(scope, receive, send))
    await began.wait()
    sending.cancel()
    with pytest.raises(asyncio.CancelledError):
        await sending


@pytest.mark.parametrize(
    ("dialect", "text"),
    [
        (ANTHROPIC, {"delta": {"text": "message_stop"}, "type": "content_block_delta"}),
        (RESPONSES, {"delta": "event: response.completed", "type": "response.output_text.delta"}),
        (COMPLETIONS, {"choices": [{"delta": {"content": "data: [DONE]"}}]}),
    ],
)
def test_an_event_that_tells_of_the_final_one_is_another(dialect: Dialect, text: dict[str, Any]) -> None:
    hold = FinalEvent(dialect.final, is_encoded=False)
    for event in (sse(text), b"data: " + json.dumps(text).encode() + b"\n\n", b"data: message_stop [DONE]\n\n"):
        assert hold(event, event) == event
    path = {"anthropic": "messages", "completions": "chat/completions"}.get(dialect.name, dialect.name)
    unnamed = re.sub(rb"event: .*\n", b"", WHOLE[path])  # some name no events
    assert b"".join((hold(unnamed, unnamed), hold.end())) == unnamed
    assert hold.is_held


@given(
    st.lists(st.sampled_from(EVENTS), max_size=5),
    st.sampled_from([b"\n", b"\r\n", b"\r"]),
    st.booleans(),
    st.lists(st.integers(0, 200), max_size=6),
)
def test_whole_events_pass_and_the_final_one_waits(
    events: Sequence[bytes], line: bytes, ends: bool, cuts: Sequence[int]
) -> None:
    end = line + line
    before = b"".join(each.replace(b"\n", line) + end for each in events)
    final = FINAL + line + b"data: {}" + end if ends else b""
    data = before + final
    places = sorted({min(cut, len(data)) for cut in cuts} | {0, len(data)})
    hold = FinalEvent(["message_stop"], is_encoded=False)
    passed = b""
    for start, stop in pairwise(places):
        passed += hold(data[start:stop], data[start:stop])
        # It has all whole events so far. A line may still end with a newline behind the carriage return.
        whole = before[:stop].rfind(end) + len(end) if end in before[:stop] else 0
        assert passed == before[:whole] or (line == b"\r" and before.startswith(passed))
    assert passed + hold.end() == data
    assert FINAL not in passed
