"""Two servers behind nginx over one PostgreSQL, with the configuration that the guide shows."""

from __future__ import annotations

import os
import re
import shutil
import socket
import subprocess
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest

from longthread.cli.commands.doctor import server_findings

GUIDE = Path(__file__).parents[2] / "docs/how-to/servers.md"
SCRIPT = [{"thought": "Look.", "action": "list_tables"}, {"finish": "There are two."}]


@dataclass
class Balanced:
    """nginx in front of two servers. Requests go to them in turn."""

    servers: list[Any]
    client: httpx.Client

    def through(self, server: Any) -> httpx.Client:
        """The client, when its next request goes to a server."""
        last = self.client.get("/health").headers["x-served-by"]
        if server.url.endswith(last):
            self.client.get("/health")
        return self.client


@pytest.fixture
def backend() -> str:
    return "postgres"


@pytest.fixture
def balanced(serve: Any, tmp_path: Path) -> Iterator[Balanced]:
    program = shutil.which("nginx", path=f"{os.environ.get('PATH')}:/usr/sbin")
    if program is None:
        message = "nginx is missing: apt-get install nginx"
        if os.environ.get("CI") == "true":
            pytest.fail(message)
        pytest.skip(message)
    servers = [serve(SCRIPT, no_login=True), serve(SCRIPT, no_login=True)]
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    config = _config(tmp_path / "nginx", servers, port)
    with subprocess.Popen([program, "-c", str(config)], stderr=subprocess.PIPE, text=True) as nginx:
        assert nginx.stderr is not None
        next((line for line in nginx.stderr if "start worker process " in line), None)
        assert nginx.poll() is None
        threading.Thread(target=nginx.stderr.read, daemon=True).start()
        with httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=30, trust_env=False) as client:
            yield Balanced(servers, client)
        nginx.terminate()


def _config(folder: Path, servers: list[Any], port: int) -> Path:
    """The guide's configuration with the ports of this test."""
    folder.mkdir()
    [shown] = re.findall(r"```nginx\n(.*?)```", GUIDE.read_text("utf-8"), re.DOTALL)
    for known, own in [("8765", servers[0].url), ("8766", servers[1].url), ("8080", f":{port}")]:
        assert f"127.0.0.1:{known};" in shown
        shown = shown.replace(f"127.0.0.1:{known};", f"127.0.0.1:{own.rpartition(':')[2]};")
    kinds = ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    paths = "\n".join(f"{kind}_temp_path {folder}/{kind};" for kind in kinds)
    user = "user root;" if os.geteuid() == 0 else ""
    config = folder / "nginx.conf"
    config.write_text(
        f"""{user} daemon off; worker_processes 1; pid {folder}/pid; error_log stderr notice;
events {{}}
http {{ access_log off; {paths}
{shown}}}
"""
    )
    return config


@pytest.mark.postgres
def test_a_run_is_asked_for_through_one_server_and_watched_through_the_other(balanced: Balanced) -> None:
    one, other = balanced.servers
    asked = balanced.through(one).post("/api/chat", json={"question": "How many?"}).json()
    answer = balanced.through(other).get(asked["events"])
    assert other.url.endswith(answer.headers["x-served-by"])
    assert "There are two." in answer.text and '"RUN_FINISHED"' in answer.text
    history = balanced.through(one).get("/api/chat/history", params={"thread_id": asked["thread_id"]}).json()
    assert history["run"]["status"] == "finished"


@pytest.mark.postgres
def test_events_arrive_one_by_one_while_the_run_goes_on(balanced: Balanced) -> None:
    one, other = balanced.servers
    one.model.shut.set()
    asked = balanced.through(one).post("/api/chat", json={"question": "How many?"}).json()
    with balanced.through(other).stream("GET", asked["events"]) as stream:
        lines = stream.iter_lines()
        assert next(line for line in lines if "RUN_STARTED" in line)
        one.model.shut.clear()
        assert next(line for line in lines if "RUN_FINISHED" in line)


@pytest.mark.postgres
def test_a_run_is_stopped_through_the_other_server(balanced: Balanced) -> None:
    one, other = balanced.servers
    one.model.shut.set()
    asked = balanced.through(one).post("/api/chat", json={"question": "How many?"}).json()
    stopped = balanced.through(other).post(f"/api/conversations/{asked['thread_id']}/stop")
    assert stopped.is_success, stopped.text
    events = balanced.through(other).get(asked["events"]).text
    assert '"cancelled"' in events and "There are two." not in events


@pytest.mark.postgres
def test_a_conversation_is_deleted_through_the_other_server_while_it_runs(balanced: Balanced) -> None:
    one, other = balanced.servers
    one.model.shut.set()
    asked = balanced.through(one).post("/api/chat", json={"question": "How many?"}).json()
    path = f"/api/conversations/{asked['thread_id']}"
    assert balanced.through(other).delete(path).status_code == 204
    one.model.shut.clear()
    gone = balanced.through(one).get("/api/chat/history", params={"thread_id": asked["thread_id"]})
    assert gone.status_code == 404
    while "longthread_live_runs 0\n" not in one.client.get("/metrics").text:
        pass


@pytest.mark.postgres
def test_who_comes_through_the_proxy_is_not_the_owner(balanced: Balanced) -> None:
    client = balanced.client
    assert client.get("/api/info").json()["sources"] == ["demo"]
    added = client.post("/api/sources", json={"address": "/etc/hosts.csv"})
    assert (added.status_code, added.json()["code"]) == (403, "settings_not_allowed")
    key = client.put("/api/models/keys/groq", json={"key": "gsk_x", "check": False})
    assert (key.status_code, key.json()["code"]) == (403, "settings_not_allowed")
    assert client.get("/health", headers={"Host": "203.0.113.7:8080"}).status_code == 421
    assert balanced.servers[0].client.get("/api/info").json()["sources"] == "any"


@pytest.mark.postgres
async def test_the_doctor_finds_nothing_wrong_through_the_proxy(balanced: Balanced) -> None:
    for server in balanced.servers:
        server.ready()
    found = [finding async for finding in server_findings(str(balanced.client.base_url))]
    assert all(good for good, _, _ in found), found
