"""What a client may take of the HTTP server: raw sockets, and a server whose times are short."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest

from longthread.server.http import HttpLimits, HttpServer, listen
from longthread.settings import Settings

LONG, SHORT = 3600.0, 0.2
GET = b"GET / HTTP/1.1\r\nHost: x\r\n"
POST = b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\n"
ANSWERED = b"HTTP/1.1 200"

Open = Callable[[], Awaitable[tuple[asyncio.StreamReader, asyncio.StreamWriter]]]


async def app(scope: Any, receive: Any, send: Any) -> None:
    """Reads the body, then answers; a stream is silent for longer than any limit before it ends."""
    while (event := await receive())["type"] == "http.request" and event["more_body"]:
        pass
    if event["type"] == "http.disconnect":
        return
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-type", b"text/event-stream")]})
    if scope["path"] == "/stream":
        await send({"type": "http.response.body", "body": b"data: 1\n\n", "more_body": True})
        await asyncio.sleep(3 * SHORT)
    await send({"type": "http.response.body", "body": b"data: end\n\n"})


@asynccontextmanager
async def served(limits: HttpLimits) -> AsyncIterator[Open]:
    with listen("127.0.0.1", 0) as listener:
        server = HttpServer(app, listener, limits=limits, lifespan="off")
        port, ready = listener.getsockname()[1], asyncio.Event()
        server._on_ready = lambda url: ready.set()
        task = asyncio.create_task(server._serve())  # without its signals
        await ready.wait()
        writers: list[asyncio.StreamWriter] = []

        async def connect() -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writers.append(writer)
            return reader, writer

        try:
            yield connect
        finally:
            for writer in writers:
                writer.close()
            server.should_exit = True
            await task


def limits(**some: Any) -> HttpLimits:
    values = {"head_seconds": LONG, "body_seconds": LONG, "idle_seconds": LONG} | some
    return HttpLimits(**values)


async def sent(limits: HttpLimits, *pieces: bytes) -> bytes:
    """All that a server answers to these pieces, until it closes the connection."""
    async with served(limits) as connect:
        reader, writer = await connect()
        for piece in pieces:
            writer.write(piece)
            await asyncio.sleep(0.02)
        async with asyncio.timeout(60):
            return await reader.read()


LINES = b"".join(b"X-%d: y\r\n" % n for n in range(200))


@pytest.mark.parametrize(
    "pieces",
    [
        pytest.param([GET + LINES + b"\r\n"], id="lines"),
        pytest.param([GET + b"X: " + b"y" * 70_000 + b"\r\n\r\n"], id="one long line"),
        pytest.param([GET + b"X: ", *[b"y" * 30_000] * 3], id="a line without an end"),
        pytest.param([b"GET /" + b"y" * 70_000 + b" HTTP/1.1\r\nHost: x\r\n\r\n"], id="a long path"),
        pytest.param([GET, *[LINES[:900]] * 3, b"\r\n"], id="lines, piece by piece"),
        pytest.param(
            [b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n0\r\nX: ", *[b"y" * 30_000] * 3],
            id="behind a body",
        ),
        pytest.param(
            [b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n1;", *[b"y" * 30_000] * 3], id="in a chunk"
        ),
    ],
)
async def test_headers_are_bound_by_bytes_and_lines(pieces: list[bytes]) -> None:
    answer = await sent(limits(), *pieces)
    assert answer.startswith(b"HTTP/1.1 431 ")
    assert b"100 headers, of 64 KB in all" in answer


async def test_what_is_within_the_limits_passes() -> None:
    few = b"".join(b"X-%d: %s\r\n" % (n, b"y" * 600) for n in range(98))
    async with served(limits()) as connect:
        for _ in range(2):
            reader, writer = await connect()
            for _ in range(3):  # one after another on a connection
                writer.write(GET + few + b"\r\n")
                assert (await reader.readuntil(b"0\r\n\r\n")).startswith(ANSWERED)
            writer.write(POST)
            writer.write(b"0123456789")
            assert (await reader.readuntil(b"0\r\n\r\n")).startswith(ANSWERED)
            writer.write(b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1000000\r\n\r\n" + b"z" * 1_000_000)
            assert (await reader.readuntil(b"0\r\n\r\n")).startswith(ANSWERED)


@pytest.mark.parametrize("first", [b"", b"GET / HT", GET, b"\r\n"], ids=["nothing", "half", "no end", "an empty line"])
async def test_slow_headers_end_the_connection(first: bytes) -> None:
    answer = await sent(limits(head_seconds=SHORT), first)
    assert answer == b"" if not first else answer.startswith(b"HTTP/1.1 408 ")


async def test_slow_headers_of_a_later_request_end_it_too() -> None:
    async with served(limits(head_seconds=SHORT)) as connect:
        reader, writer = await connect()
        writer.write(GET + b"\r\n")
        assert (await reader.readuntil(b"0\r\n\r\n")).startswith(ANSWERED)
        writer.write(GET)
        assert (await reader.read()).startswith(b"HTTP/1.1 408 ")


async def test_a_silent_body_ends_the_request_and_one_that_goes_on_does_not() -> None:
    assert (await sent(limits(body_seconds=SHORT), POST, b"01")).startswith(b"HTTP/1.1 408 ")
    async with served(limits(body_seconds=4 * SHORT)) as connect:
        reader, writer = await connect()
        writer.write(POST)
        for n in range(10):  # in all it takes longer
            await asyncio.sleep(SHORT / 2)
            writer.write(b"%d" % n)
        assert (await reader.readuntil(b"0\r\n\r\n")).startswith(ANSWERED)


async def test_an_idle_connection_is_closed() -> None:
    async with served(limits(idle_seconds=SHORT)) as connect:
        reader, writer = await connect()
        writer.write(GET + b"\r\n")
        assert (await reader.read()).startswith(ANSWERED)


async def test_a_stream_may_be_silent() -> None:
    short = limits(head_seconds=SHORT, body_seconds=SHORT, idle_seconds=SHORT)
    answer = await sent(short, b"GET /stream HTTP/1.1\r\nHost: x\r\n\r\n")
    assert b"data: 1" in answer
    assert b"data: end" in answer


async def test_one_address_has_so_many_connections_and_may_close_some() -> None:
    async with served(limits(connections=3)) as connect:
        opened = [await connect() for _ in range(3)]
        for reader, writer in opened:
            writer.write(GET + b"\r\n")
            assert (await reader.readuntil(b"0\r\n\r\n")).startswith(ANSWERED)
        reader, _ = await connect()
        refused = await reader.read()
        assert refused.startswith(b"HTTP/1.1 503 ")
        assert b"3 connections from your address" in refused
        opened[0][1].close()
        await opened[0][1].wait_closed()
        while True:  # until the server has seen it
            reader, writer = await connect()
            writer.write(GET + b"\r\n")
            if (await reader.readline()).startswith(ANSWERED):
                break


def test_each_limit_has_a_setting() -> None:
    names = ("header_kb", "header_lines", "header_timeout", "body_timeout", "idle_timeout", "connections")
    given = dict(zip((f"http_{name}" for name in names), (8, 20, 1.0, 2.0, 3.0, 4), strict=True))
    assert HttpLimits.of(Settings.of(**given)) == HttpLimits(8192, 20, 1.0, 2.0, 3.0, 4)
