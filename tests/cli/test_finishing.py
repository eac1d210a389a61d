"""The end of a command: a summary that is being written is finished, and a signal leaves it to the next process."""

from __future__ import annotations

import asyncio
import os
import signal
from types import SimpleNamespace
from typing import Any

import pytest

from longthread.cli import terminal
from longthread.cli.terminal import Terminal, finish_summary

pytestmark = pytest.mark.one_backend


class Passes:
    """A pass that ends when it may."""

    def __init__(self) -> None:
        self.may, self.is_busy = asyncio.Event(), True

    async def settle(self) -> None:
        await self.may.wait()
        self.is_busy = False


def analyst_with(passes: Passes) -> Any:
    return SimpleNamespace(pruner=passes)


async def test_a_summary_is_finished_and_that_is_said(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(terminal, "_QUIET_SECONDS", 0)
    passes = Passes()
    work = asyncio.ensure_future(finish_summary(analyst_with(passes), Terminal()))
    for _ in range(20):
        await asyncio.sleep(0)
    assert not work.done()
    passes.may.set()
    await work
    assert not passes.is_busy
    assert "Writing the summary of the conversation. Ctrl-C leaves it" in " ".join(capsys.readouterr().err.split())
    await finish_summary(analyst_with(passes), Terminal())
    assert capsys.readouterr().err == ""


async def test_a_signal_leaves_it(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(terminal, "_QUIET_SECONDS", 0)
    passes = Passes()
    work = asyncio.ensure_future(finish_summary(analyst_with(passes), Terminal(as_json=True)))
    await asyncio.sleep(0)
    os.kill(os.getpid(), signal.SIGINT)
    await work
    assert passes.is_busy
    captured = capsys.readouterr()
    assert captured.out == captured.err == "", "a program that reads the lines is told nothing else"
