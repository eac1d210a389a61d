"""How the gateway asks a provider: what goes over the wire, through proxies and TLS, and what a lost connection is."""

from __future__ import annotations

import asyncio
import datetime
import ipaddress
import ssl
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from longthread.gateway import upstream
from longthread.gateway.http import Incoming
from longthread.gateway.upstream import Connections, Upstream, UpstreamResponse

OK = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok"
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


@pytest.mark.parametrize("url", ["http://127.0.0.1:1", "ftp://host", "http://", "http://[", "http://host:99999", "no"])
async def test_what_is_no_server_is_a_client_error(url: str) -> None:
    async with connected(url) as send:
        with pytest.raises(aiohttp.ClientError):
            await send()


async def test_the_environment_s_proxy_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    async with served(OK) as (wire, proxy), connected("http://provider.test") as send:
        monkeypatch.setenv("http_proxy", proxy.replace("//", "//me:secret@"))
        assert await (await send()).read() == b"ok"
    assert wire.requests[0].startswith(b"POST http://provider.test/v1/messages HTTP/1.1\r\n")
    assert b"Proxy-Authorization: Basic bWU6c2VjcmV0" in wire.requests[0]
    async with served(OK) as (wire, url), connected(url) as send:
        monkeypatch.setenv("no_proxy", "127.0.0.1")
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
