"""Who calls over a real socket of this machine: a program of the server's own user, or another's."""

from __future__ import annotations

import asyncio
import os
import socket
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from longthread.server import http as peers
from longthread.server.http import HttpServer, listen
from longthread.server.requests import is_owner

pytestmark = [
    pytest.mark.one_backend,
    pytest.mark.skipif(not sys.platform.startswith("linux"), reason="only Linux tells whose a socket is"),
]
NOBODY = 65534
ASKS = """
import os, socket, sys
host, port, user = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
if user:
    os.setuid(user)  # which may not read Python's own modules: none is loaded from here on
with socket.socket(socket.AF_INET6 if ':' in host else socket.AF_INET) as connection:
    connection.connect((host, port))
    for _ in range(2):
        connection.sendall(b"GET / HTTP/1.1\\r\\nHost: localhost\\r\\n\\r\\n")
        reply = b""
        while not reply.endswith((b"True", b"False")):
            reply += connection.recv(4096)
print(reply.decode().rpartition("\\n")[2])
"""


@pytest.fixture(params=["kernel", "tables"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """A container may have /proc alone."""
    if request.param == "tables":
        monkeypatch.setattr(peers, "_find_user", lambda peer, own: None)


@asynccontextmanager
async def served(host: str) -> AsyncIterator[int]:
    """Serve, on a port, whether a caller is the owner."""

    async def app(scope: Any, receive: Any, send: Any) -> None:
        body = str(is_owner(scope)).encode()
        head = [(b"content-length", str(len(body)).encode())]
        await send({"type": "http.response.start", "status": 200, "headers": head})
        await send({"type": "http.response.body", "body": body})

    with listen(host, 0) as listener:
        ready = asyncio.Event()
        server = HttpServer(app, listener, on_ready=lambda url: ready.set(), lifespan="off")
        task = asyncio.create_task(server._serve())  # without its signals
        await ready.wait()
        try:
            yield listener.getsockname()[1]
        finally:
            server.should_exit = True
            await task


async def asked(host: str, port: int, user: int) -> str:
    child = await asyncio.create_subprocess_exec(
        sys.executable, "-c", ASKS, host, str(port), str(user), stdout=asyncio.subprocess.PIPE
    )
    output, _ = await child.communicate()
    return output.decode().strip()


@pytest.mark.usefixtures("way")
@pytest.mark.parametrize("host", ["127.0.0.1", "::1"])
async def test_the_servers_own_user_is_the_owner(host: str) -> None:
    async with served(host) as port:
        assert await asked(host, port, 0) == "True"


@pytest.mark.usefixtures("way")
@pytest.mark.skipif(os.geteuid() != 0, reason="only root can be another user")
@pytest.mark.parametrize("host", ["127.0.0.1", "::1"])
async def test_another_users_program_is_not_the_owner(host: str) -> None:
    """So runs a proxy, which may add no header."""
    async with served(host) as port:
        assert await asked(host, port, NOBODY) == "False"


async def test_another_users_program_is_not_the_owner_by_the_servers_user(monkeypatch: pytest.MonkeyPatch) -> None:
    async with served("127.0.0.1") as port:
        monkeypatch.setattr(os, "geteuid", lambda: 4_000_000)
        assert await asked("127.0.0.1", port, 0) == "False"


@pytest.mark.usefixtures("way")
@pytest.mark.parametrize("host", ["127.0.0.1", "::1"])
def test_who_has_closed_the_connection_is_not_the_owner(host: str) -> None:
    """The system no longer tells whose it was: a proxy closes when its caller does."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.create_server((host, 0), family=family) as listener:
        own = listener.getsockname()[:2]
        calling = socket.create_connection(own)
        accepted, peer = listener.accept()
        with accepted:
            assert not peers.Peer(peer[:2], own).is_other_users
            calling.close()
            assert peers.Peer(peer[:2], own).is_other_users


def test_the_kernel_tells_the_user_of_a_socket() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        own = listener.getsockname()
        with socket.create_connection(own) as calling:
            assert peers._find_user(calling.getsockname(), own) == os.geteuid()
            assert peers._find_user(("127.0.0.1", 1), own) is None
        with socket.create_server(("127.0.0.1", 0)) as another:  # no end of a connection, though it has the port
            assert peers._find_user(another.getsockname(), own) is None


def test_without_the_systems_table_the_headers_decide(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(peers, "_TABLES", (tmp_path / "none",))
    assert not peers.Peer(("127.0.0.1", 5000), ("127.0.0.1", 8765)).is_other_users
