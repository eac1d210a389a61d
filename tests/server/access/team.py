"""A server whose users log in, over a real socket."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import httpx
from tests.server.conftest import Running

PASSWORD, OTHER = "correct horse battery", "another long password"


class Team:
    """A server whose users log in, its first administrator's client, and clients of others."""

    def __init__(self, running: Running) -> None:
        self.running = running
        self.clients: list[httpx.Client] = []
        self.admin = self.visitor()
        token = self.setup_token = running.server._app.state.setup_token
        body = {"token": token, "password": PASSWORD, "name": "Ada"}
        answer = self.admin.post("/api/links", json=body)
        assert answer.status_code == 200, answer.text
        self.ada: dict[str, Any] = answer.json()["user"]

    def visitor(self) -> httpx.Client:
        """Return a client that has not logged in."""
        client = httpx.Client(base_url=self.running.url, timeout=30, trust_env=False)
        self.clients.append(client)
        return client

    def invite(self, name: str, **about: Any) -> str:
        """Add a user, and return the token of the invitation."""
        answer = self.admin.post("/api/admin/users", json={"name": name, **about})
        assert answer.status_code == 201, answer.text
        return str(answer.json()["link"]["path"].partition("#")[2])

    def join(self, name: str, **about: Any) -> httpx.Client:
        """Add a user, and return a client that has logged in."""
        client = self.visitor()
        answer = client.post("/api/links", json={"token": self.invite(name, **about), "password": PASSWORD})
        assert answer.status_code == 200, answer.text
        return client

    def close(self) -> None:
        for client in self.clients:
            client.close()


@contextmanager
def team_of(running: Running) -> Iterator[Team]:
    """Make the first administrator of a server, and close all clients at the end."""
    team = Team(running)
    try:
        yield team
    finally:
        team.close()


def code_of(answer: httpx.Response) -> tuple[int, str]:
    return answer.status_code, answer.json()["code"]
