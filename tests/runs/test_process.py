"""Whether who executes a run may still be alive."""

from __future__ import annotations

import os
import socket
import subprocess
import sys

import pytest

from longthread.runs import process
from longthread.runs.process import here, may_be_alive, new_worker


def test_a_process_is_alive_as_long_as_it_is() -> None:
    assert may_be_alive(new_worker())
    dead = subprocess.Popen([sys.executable, "-c", ""])
    dead.wait()
    assert not may_be_alive(f"{here()}/{dead.pid}/x")


@pytest.mark.parametrize("other", ["another", f"{socket.gethostname()}:another-boot:1", socket.gethostname() + ":x"])
def test_of_a_pid_elsewhere_nothing_is_known(other: str) -> None:
    assert may_be_alive(f"{other}/{2**22 + 1}/x")


def test_containers_that_share_a_hosts_name_are_told_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    theirs = f"{socket.gethostname()}:{process._kernel()[0]}:4026599999" if process._kernel() else "elsewhere"
    assert may_be_alive(f"{theirs}/{2**22 + 1}/x")
    assert new_worker().startswith(f"{here()}/{os.getpid()}/")


@pytest.mark.parametrize("pid", ["0", "-1", "abc", "1e3", "٣", "", "9" * 20, "9" * 5000])
def test_a_name_that_no_process_here_has_made_is_told_by_its_lease(pid: str) -> None:
    assert may_be_alive(f"{here()}/{pid}/x")


@pytest.mark.parametrize("name", ["", "x", "/", "//", "host/x", "a/b/c/123/x", "\n/1/x"])
def test_whatever_an_owner_is_called_nothing_breaks(name: str) -> None:
    assert may_be_alive(name)
