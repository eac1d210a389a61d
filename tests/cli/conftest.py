"""The commands, in this process."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from typer import testing

from longthread.cli.app import app
from longthread.errors import LongthreadError

Run = Callable[..., Any]


@pytest.fixture(scope="session", autouse=True)
def made_once() -> Iterator[None]:
    """What Typer makes of the command line is made once, as in a process, and not for each command: it takes longer
    than most of them."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(testing, "_get_command", cache(testing._get_command))
        yield


@pytest.fixture
def run(tmp_path: Path, store_address: str, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Runs a command on the store under test; with `code` it must end with that exit code."""
    monkeypatch.setenv("LONGTHREAD_DATA_DIR", str(tmp_path / "data"))
    monkeypatch.setenv("LONGTHREAD_DATABASE_URL", store_address)
    for name in ("LONGTHREAD_MODEL", "LONGTHREAD_SOURCE", "LONGTHREAD_DATABASE", "LLM_BASE_URL", "API_BASE_URL"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.chdir(tmp_path)

    def run_(*args: str, code: int = 0, text: str | bytes | None = None) -> Any:
        result = testing.CliRunner().invoke(app, args, input=text)
        ended = result.exception.exit_code if isinstance(result.exception, LongthreadError) else result.exit_code
        assert ended == code, f"{result.output}\n{result.exception!r}"
        return result

    return run_
