"""The fork server of a process that was forked from one which has imported everything: it is forked too.

The program does the same. Only a new interpreter, with its imports, is saved, which takes 0.3 s of CPU for each process
that asks a source.
"""

from __future__ import annotations

import os
import signal
import socket
import tempfile
import time
from typing import Any, NoReturn

from longthread.tools.analysis.isolation import forkserver, worker
from longthread.tools.analysis.isolation.forkserver_main import ForkServerMain


class _Forked:
    """As much of a process as `ForkServer` asks for."""

    def __init__(self, pid: int) -> None:
        self.pid = pid

    def kill(self) -> None:
        os.kill(self.pid, signal.SIGKILL)

    def wait(self) -> None:
        os.waitpid(self.pid, 0)


def start_fork_server() -> None:
    """Start this process's fork server, while there is no other thread."""
    ours, theirs = socket.socketpair()
    folder = tempfile.mkdtemp(prefix="longthread-")
    pid = os.fork()
    if pid == 0:
        _serve(theirs.detach(), folder)
    theirs.close()
    ours.settimeout(forkserver._START_SECONDS)
    server: Any = forkserver.FORK_SERVER
    server._control, server._process, server._owner, server._folder = ours, _Forked(pid), os.getpid(), folder


def _serve(control: int, folder: str) -> NoReturn:
    """Be the fork server, with no more than a new interpreter would be given."""
    try:
        os.setsid()
        for name in os.environ.keys() - set(forkserver._ENVIRONMENT):
            del os.environ[name]
        time.tzset()
        nothing = os.open(os.devnull, os.O_RDWR)
        for standard in range(3):
            os.dup2(nothing, standard)
        os.closerange(3, control)
        os.closerange(control + 1, 1_000)
        ForkServerMain(control, folder, worker.serve, worker.load).run()
    finally:
        os._exit(0)
