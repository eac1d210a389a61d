"""Two servers behind Caddy over one PostgreSQL, as `deploy/compose.yaml` runs them, without containers."""

from __future__ import annotations

import os
import shutil
import socket
import ssl
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest

CADDYFILE = Path(__file__).parents[3] / "deploy/Caddyfile"
SCRIPT = [{"thought": "Look.", "action": "list_tables"}, {"finish": "There are two."}]


@dataclass
class Proxied:
    """Caddy, with TLS of its own, in front of two servers. A new connection goes to the server that has fewer."""

    servers: list[Any]
    client: httpx.Client
    gateway: str


@pytest.fixture
def backend() -> str:
    return "postgres"


@pytest.fixture
def proxied(serve: Any, tmp_path: Path) -> Iterator[Proxied]:
    program = shutil.which("caddy")
    if program is None:
        message = "caddy is missing: apt-get install caddy"
        if os.environ.get("CI") == "true":
            pytest.fail(message)
        pytest.skip(message)
    servers = [serve(SCRIPT, no_login=True), serve(SCRIPT, no_login=True)]
    addresses = [each.url.rpartition("/")[2] for each in servers]
    config, (port, gateway) = _config(tmp_path)
    told = {"LONGTHREAD_SERVERS": " ".join(addresses), "LONGTHREAD_GATEWAY": addresses[0]}
    folders = {name: str(tmp_path / "caddy") for name in ("XDG_DATA_HOME", "XDG_CONFIG_HOME", "HOME")}
    command = [program, "run", "--config", config, "--adapter", "caddyfile"]
    with (tmp_path / "caddy.log").open("w") as log:
        caddy = subprocess.Popen(command, stdout=log, stderr=log, env=os.environ | told | folders)
    try:
        trusted = _wait_for_root(tmp_path, port)
        with httpx.Client(base_url=f"https://localhost:{port}", timeout=30, trust_env=False, verify=trusted) as client:
            yield Proxied(servers, client, f"https://localhost:{gateway}")
    finally:
        caddy.terminate()
        caddy.wait(30)


def _config(folder: Path) -> tuple[Path, list[int]]:
    """The file of `deploy/` with free ports."""
    text, ports = CADDYFILE.read_text("utf-8"), []
    for known in (8443, 8444):
        with socket.create_server(("127.0.0.1", 0)) as free:
            ports.append(free.getsockname()[1])
        assert text.count(f"}}:{known} {{") == 1
        text = text.replace(f"}}:{known} {{", f"}}:{ports[-1]} {{")
    config = folder / "Caddyfile"
    config.write_text(text, "utf-8")
    return config, ports


def _wait_for_root(folder: Path, port: int) -> ssl.SSLContext:
    """Wait until Caddy answers, and return the authority that it has made."""
    root, until = folder / "caddy/caddy/pki/authorities/local/root.crt", time.monotonic() + 60
    while True:
        try:
            trusted = ssl.create_default_context(cafile=str(root))
            if httpx.get(f"https://localhost:{port}/ready", verify=trusted, trust_env=False).status_code == 200:
                return trusted
        except (OSError, httpx.TransportError):
            pass
        assert time.monotonic() < until, (folder / "caddy.log").read_text()
        time.sleep(0.1)


@pytest.mark.postgres
def test_events_arrive_one_by_one_over_tls(proxied: Proxied) -> None:
    for server in proxied.servers:
        server.model.shut.set()
    asked = proxied.client.post("/api/chat", json={"question": "How many?"}).json()
    with proxied.client.stream("GET", asked["events"]) as stream:
        lines = stream.iter_lines()
        assert next(line for line in lines if "RUN_STARTED" in line)
        for server in proxied.servers:
            server.model.shut.clear()
        assert next(line for line in lines if "RUN_FINISHED" in line)


@pytest.mark.postgres
def test_a_server_that_is_gone_is_not_asked_any_more(proxied: Proxied) -> None:
    asked = proxied.client.post("/api/chat", json={"question": "How many?"}).json()
    assert "RUN_FINISHED" in proxied.client.get(asked["events"]).text
    proxied.servers[0].stop()
    for _ in range(6):
        found = proxied.client.get("/api/chat/history", params={"thread_id": asked["thread_id"]})
        assert found.json()["run"]["status"] == "finished"


@pytest.mark.postgres
def test_who_comes_through_the_proxy_is_not_the_owner(proxied: Proxied) -> None:
    added = proxied.client.post("/api/sources", json={"address": "/etc/hosts.csv"})
    assert (added.status_code, added.json()["code"]) == (403, "settings_not_allowed")


@pytest.mark.postgres
def test_the_gateway_has_a_port_of_its_own(proxied: Proxied) -> None:
    assert proxied.client.get(f"{proxied.gateway}/ready").json() == {"status": "ready"}
