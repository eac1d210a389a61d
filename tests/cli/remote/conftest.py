"""A server as a process of its own, and the command line of another machine."""

from __future__ import annotations

import os
import re
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import keyring
import keyring.backend
import keyring.backends.fail
import pytest
from typer.testing import CliRunner

from longthread.cli.app import app
from longthread.errors import LongthreadError

ServeProcess = Callable[..., str]
Command = Callable[..., Any]


@contextmanager
def running(warmed: Path, folder: Path, store: str, *args: str, **variables: str) -> Iterator[str]:
    """Run `longthread serve` and yield its address."""
    folder.mkdir()
    log = folder / "log.txt"
    environment = {
        "PATH": f"{warmed}:{os.environ['PATH']}",
        "HOME": str(folder),
        "LONGTHREAD_DATA_DIR": str(folder),
        "LONGTHREAD_DATABASE_URL": store,
        "LONGTHREAD_TITLES": "false",
        "PYTHONUTF8": "1",
    }
    command = [str(warmed / "longthread"), "serve", "--port", "0", *args]
    with (
        log.open("wb") as to,
        subprocess.Popen(command, cwd=folder, env=environment | variables, stdout=to, stderr=to) as process,
    ):
        try:
            while not (url := re.search(r"http://127\.0\.0\.1:\d+", log.read_text("utf-8"))):
                assert process.poll() is None, log.read_text("utf-8")
                time.sleep(0.02)
            yield url[0]
        finally:
            process.terminate()


@pytest.fixture
def serve(warmed: Path, tmp_path: Path, store_address: str) -> Iterator[ServeProcess]:
    """Starts servers on the store under test, with the demo unless other options are given."""
    with ExitStack() as stack:

        def start(*args: str, **variables: str) -> str:
            given = args or ("--source", "demo", "--model", "demo")
            folder = tmp_path / f"server{len(list(tmp_path.glob('server*')))}"
            return stack.enter_context(running(warmed, folder, store_address, *given, **variables))

        yield start


class MemoryKeyring(keyring.backend.KeyringBackend):
    """A keyring that keeps what it is given while it lives."""

    priority = 1.0  # type: ignore[assignment]  # the library reads a number

    def __init__(self) -> None:
        super().__init__()
        self.kept: dict[tuple[str, str], str] = {}

    def get_password(self, service: str, username: str) -> str | None:
        return self.kept.get((service, username))

    def set_password(self, service: str, username: str, password: str) -> None:
        self.kept[service, username] = password

    def delete_password(self, service: str, username: str) -> None:
        del self.kept[service, username]


@pytest.fixture(autouse=True)
def no_keyring() -> Iterator[None]:
    """No keyring of this machine is touched."""
    before = keyring.get_keyring()
    keyring.set_keyring(keyring.backends.fail.Keyring())
    yield
    keyring.set_keyring(before)


@pytest.fixture
def memory_keyring(no_keyring: None) -> MemoryKeyring:
    """A keyring that works."""
    made = MemoryKeyring()
    keyring.set_keyring(made)
    return made


@pytest.fixture
def command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Command:
    """Runs a command of a machine with an empty data folder, where no variable names a store; with `code` it must end
    with that exit code."""
    folder = tmp_path / "client"
    folder.mkdir()
    monkeypatch.chdir(folder)
    monkeypatch.setenv("LONGTHREAD_DATA_DIR", str(folder / "data"))
    for name in [name for name in os.environ if name.startswith(("LONGTHREAD_", "LLM_", "API_"))]:
        if name not in {"LONGTHREAD_DATA_DIR", "LONGTHREAD_LANG"}:
            monkeypatch.delenv(name)
    monkeypatch.delenv("DATABASE_URL", raising=False)

    def run(*args: str, code: int = 0, text: str | None = None) -> Any:
        result = CliRunner().invoke(app, args, input=text)
        ended = result.exception.exit_code if isinstance(result.exception, LongthreadError) else result.exit_code
        assert ended == code, f"{result.output}\n{result.exception!r}"
        return result

    return run
