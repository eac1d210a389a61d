"""nginx and a proxy that logs in, with the configuration that the guide shows: it sets the headers that it names."""

from __future__ import annotations

import os
import re
import shutil
import socket
import subprocess
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import httpx
import pytest
from tests.server.access.team import code_of
from tests.server.conftest import Running, Serve

pytestmark = pytest.mark.one_backend

GUIDE = Path(__file__).parents[3] / "docs/how-to/team.md"
SECRET = "the secret of the file"


class LoginProxy(BaseHTTPRequestHandler):
    """Knows who is logged in by a cookie, as oauth2-proxy does, and says so in its headers."""

    def log_message(self, *args: Any) -> None: ...

    def do_GET(self) -> None:
        name = (self.headers["Cookie"] or "").partition("login=")[2]
        self.send_response(202 if name else 401 if self.path == "/oauth2/auth" else 200)
        if name:
            self.send_header("X-Auth-Request-Preferred-Username", name)
            self.send_header("X-Auth-Request-Groups", "longthread-admins" if name == "ada" else "")
        content = b"" if name else b"the page to sign in"
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)


@pytest.fixture
def backend() -> str:
    return "sqlite"


@pytest.fixture
def login_proxy() -> Iterator[int]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), LoginProxy)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    yield server.server_port
    server.shutdown()
    server.server_close()
    thread.join()


@pytest.fixture
def running(serve: Serve) -> Running:
    shown = re.findall(r"^LONGTHREAD_AUTH_(\w+)=(.*)$", GUIDE.read_text("utf-8"), re.MULTILINE)
    names = {f"auth_{name.lower()}": value for name, value in shown}
    assert names.keys() == {"auth_header", "auth_groups_header", "auth_email_header", "auth_admin_groups"}
    return serve(["An answer."], auth="proxy", trusted_proxies="127.0.0.1", proxy_secret=SECRET, **names)


@pytest.fixture
def front(running: Running, login_proxy: int, tmp_path: Path) -> Iterator[str]:
    program = shutil.which("nginx", path=f"{os.environ.get('PATH')}:/usr/sbin")
    if program is None:
        message = "nginx is missing: apt-get install nginx"
        if os.environ.get("CI") == "true":
            pytest.fail(message)
        pytest.skip(message)
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    folder = tmp_path / "nginx"
    folder.mkdir()
    [shown] = re.findall(r"```nginx\n(.*?)```", GUIDE.read_text("utf-8"), re.DOTALL)
    assert f'"{SECRET}"' in shown
    shown = shown.replace("10.0.0.7:8765", running.url.removeprefix("http://"))
    shown = shown.replace("127.0.0.1:4180", f"127.0.0.1:{login_proxy}")
    kinds = ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    paths = "\n".join(f"{kind}_temp_path {folder}/{kind};" for kind in kinds)
    user = "user root;" if os.geteuid() == 0 else ""
    config = folder / "nginx.conf"
    config.write_text(
        f"{user} daemon off; worker_processes 1; pid {folder}/pid; error_log stderr notice;\nevents {{}}\n"
        f"http {{ access_log off; {paths}\nserver {{ listen 127.0.0.1:{port};\n{shown}}} }}\n"
    )
    with subprocess.Popen([program, "-c", str(config)], stderr=subprocess.PIPE, text=True) as nginx:
        assert nginx.stderr is not None
        next((line for line in nginx.stderr if "start worker process " in line), None)
        assert nginx.poll() is None
        threading.Thread(target=nginx.stderr.read, daemon=True).start()
        yield f"http://127.0.0.1:{port}"
        nginx.terminate()


def test_the_guides_nginx_says_who_the_user_is_and_hands_on_no_word_of_the_client(front: str) -> None:
    claimed = {"X-Auth-Request-Preferred-Username": "ada", "X-Auth-Request-Groups": "longthread-admins"}
    with httpx.Client(base_url=front, trust_env=False) as browser:
        assert "longthread" not in browser.get("/api/me", headers=claimed).text, (
            "who is not logged in is not let through"
        )
        ada, eve = {"Cookie": "login=ada"}, {"Cookie": "login=eve"}
        me = browser.get("/api/me", headers=ada).json()
        assert (me["name"], me["role"], me["groups"]) == ("ada", "admin", ["longthread-admins"])
        me = browser.get("/api/me", headers=eve | claimed).json()
        assert (me["name"], me["role"], me["groups"]) == ("eve", "member", [])
        asked = browser.post("/api/chat", headers=eve, json={"question": "Whose is this?"})
        assert asked.status_code == 202, asked.text
        answer = browser.get("/api/chat/history", headers=ada, params={"thread_id": asked.json()["thread_id"]})
        assert code_of(answer) == (404, "thread_not_found")
