"""`longthread login`: which servers are spoken to, where the key is kept, and to whom it goes."""

from __future__ import annotations

import json
import stat
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from tests.cli.remote.conftest import Command, MemoryKeyring, ServeProcess

from longthread.cli.remote.logins import Logins, ServerLogin, normalize_address
from longthread.errors import NotLoggedIn, ServerAddressRefused, ServerAnswerInvalid, ServerKeyRefused

pytestmark = pytest.mark.one_backend

KEY = "lt_abcdefgh_" + "s" * 43


class FakeServer:
    """Answers as a server in login mode that knows one key, or with what a test gives."""

    def __init__(self) -> None:
        self.seen: list[tuple[str, str | None]] = []
        self.answers: dict[str, tuple[int, dict[str, str], str]] = {}
        own = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                key = self.headers.get("Authorization")
                own.seen.append((self.path, key))
                status, headers, body = own.answers.get(self.path) or own.describe(self.path, key)
                self.send_response(status)
                for name, value in {"Content-Length": str(len(body.encode())), **headers}.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(body.encode())

            def log_message(self, *_: object) -> None:
                """Print nothing."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def describe(self, path: str, key: str | None) -> tuple[int, dict[str, str], str]:
        if path == "/api/info":
            return 200, {}, json.dumps({"auth": {"mode": "login", "user": None}})
        if key != f"Bearer {KEY}":
            return 401, {}, json.dumps({"code": "login_needed", "detail": "Log in."})
        return 200, {}, json.dumps({"id": "u1", "name": "ada", "role": "builder", "groups": ["data"]})

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()


@pytest.fixture
def fake() -> Iterator[FakeServer]:
    server = FakeServer()
    yield server
    server.close()


@pytest.mark.parametrize(
    ("given", "address"),
    [
        ("https://Team.example.com/", "https://team.example.com"),
        ("team.example.com", "https://team.example.com"),
        ("https://example.com:8443/longthread/", "https://example.com:8443/longthread"),
        ("http://localhost:8765", "http://localhost:8765"),
        ("http://127.0.0.2", "http://127.0.0.2"),
        ("http://[::1]:8765/", "http://[::1]:8765"),
    ],
)
def test_an_address_is_kept_without_what_is_no_part_of_it(given: str, address: str) -> None:
    assert normalize_address(given) == address


@pytest.mark.parametrize(
    "given",
    [
        "http://example.com",
        "http://10.0.0.7:8765",
        "http://localhost.example.com",
        "http://127.0.0.1.example.com",
        "https://",
        "ftp://example.com",
        "https://ada:secret@example.com",
        "https://example.com?x=1",
        "https://example.com:port",
        "",
    ],
)
def test_an_address_that_would_show_a_key_is_refused(given: str) -> None:
    with pytest.raises(ServerAddressRefused) as raised:
        normalize_address(given)
    assert "secret" not in str(raised.value)


def test_a_key_over_plain_http_is_allowed_only_where_it_is_said() -> None:
    assert normalize_address("http://10.0.0.7", insecure=True) == "http://10.0.0.7"


def test_a_server_without_a_login_needs_no_key(command: Command, serve: ServeProcess) -> None:
    url = serve()
    done = command("login", url)
    assert f"Logged in to {url} as default." in done.stdout
    assert json.loads(command("whoami", "--json").stdout) == {
        "server": url,
        "name": "default",
        "role": None,
        "groups": [],
    }
    assert "Logged out" in command("logout").stdout
    assert "not logged in" in command("whoami").stdout


def test_a_key_is_kept_in_a_file_of_its_owner(command: Command, fake: FakeServer) -> None:
    done = command("login", fake.url, "--key-stdin", text=f"{KEY}\n")
    path = Logins().path
    assert str(path) in done.stdout and KEY not in done.output
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert [each.name for each in path.parent.iterdir()] == [path.name]
    assert command("whoami").stdout.splitlines() == [
        f"server\t{fake.url}",
        "user\tada",
        "role\tbuilder",
        "groups\tdata",
    ]
    assert ("/api/me", f"Bearer {KEY}") in fake.seen
    assert fake.seen[0] == ("/api/info", None), "the key is sent when it is known that the server takes one"
    command("logout")
    assert KEY not in path.read_text("utf-8")


def test_a_key_is_kept_in_the_keyring_where_there_is_one(
    command: Command, fake: FakeServer, memory_keyring: MemoryKeyring
) -> None:
    assert "keyring" in command("login", fake.url, "--key-stdin", text=KEY).stdout
    assert memory_keyring.kept == {("longthread", fake.url): KEY}
    assert KEY not in Logins().path.read_text("utf-8")
    assert "ada" in command("whoami").stdout
    memory_keyring.kept.clear()
    assert "longthread login" in str(command("whoami", code=1).exception)
    command("login", fake.url, "--key-stdin", text=KEY)
    command("logout")
    assert memory_keyring.kept == {}


def test_a_wrong_key_is_not_kept(command: Command, fake: FakeServer) -> None:
    done = command("login", fake.url, "--key-stdin", text="lt_wrong", code=2)
    assert isinstance(done.exception, ServerKeyRefused)
    assert not Logins().path.exists()
    assert command("login", fake.url, "--key-stdin", text="a key\n", code=2).exception is not None
    assert command("login", fake.url, code=2).exception is not None, "there is no terminal to ask"


def test_a_key_of_the_environment_goes_only_to_the_server_that_is_named(
    command: Command, fake: FakeServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LONGTHREAD_KEY", KEY)
    assert "ada" in command("whoami", "--server", fake.url).stdout
    assert not Logins().path.exists()
    command("login", fake.url)
    other = "lt_another_" + "x" * 43
    monkeypatch.setenv("LONGTHREAD_KEY", other)
    command("whoami")
    assert other not in str(fake.seen)
    command("whoami", "--server", fake.url, code=2)
    assert other in str(fake.seen)
    monkeypatch.delenv("LONGTHREAD_KEY")
    with pytest.raises(NotLoggedIn):
        Logins().find("https://elsewhere.example.com", named=True)


def test_no_redirect_is_followed(command: Command, fake: FakeServer) -> None:
    command("login", fake.url, "--key-stdin", text=KEY)
    other = FakeServer()
    fake.answers["/api/info"] = (307, {"Location": f"{other.url}/api/info"}, "")
    done = command("whoami", code=1)
    assert isinstance(done.exception, ServerAnswerInvalid) and other.url in str(done.exception)
    assert other.seen == []
    other.close()


@pytest.mark.parametrize(
    ("status", "body"),
    [(200, "<html>"), (200, "[]"), (500, "{}"), (502, "Bad gateway"), (200, '{"auth": {"mode"')],
)
def test_what_is_no_server_of_longthread_is_said_so(command: Command, fake: FakeServer, status: int, body: str) -> None:
    fake.answers["/api/info"] = (status, {}, body)
    assert isinstance(command("login", fake.url, code=1).exception, ServerAnswerInvalid)
    assert not Logins().path.exists()


def test_a_server_that_is_down_is_said_so(command: Command) -> None:
    done = command("login", "http://127.0.0.1:9", code=1)
    assert "http://127.0.0.1:9 cannot be reached" in str(done.exception)


def test_a_file_of_logins_that_is_damaged_is_named(command: Command, tmp_path: Path) -> None:
    logins = Logins()
    logins.keep(ServerLogin("https://a.example.com", "ada", KEY))
    assert KEY not in repr(vars(logins))
    logins.path.write_text("{", encoding="utf-8")
    assert str(logins.path) in str(command("whoami", code=2).exception)
    assert tmp_path in logins.path.parents
