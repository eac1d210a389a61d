"""The process that workers are forked from: it has loaded the drivers, and does nothing else.

    python -P -m longthread.tools.analysis.isolation.forkserver_main DESCRIPTOR

It ends when the process that started it does, and its workers with it.
"""

from __future__ import annotations

import contextlib
import ctypes
import gc
import os
import select
import signal
import socket
import sys
from collections.abc import Callable

from longthread.tools.analysis.isolation.wire import BORN, FORK, KILL, NEST

_PDEATHSIG = 1


class ForkServerMain:
    """Forks workers, kills them, and collects those that have ended. A worker does what `serve` says."""

    def __init__(self, control: socket.socket, serve: Callable[[socket.socket], None]) -> None:
        self._control = control
        self._serve = serve
        self._living: set[int] = set()
        self._woken, self._wake = os.pipe()
        os.set_blocking(self._wake, False)
        os.set_blocking(self._woken, False)
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.set_wakeup_fd(self._wake, warn_on_full_buffer=False)

    def run(self) -> None:
        """Until the other side is gone."""
        while True:
            ready, _, _ = select.select([self._control.fileno(), self._woken], [], [])
            self._collect()
            if self._control.fileno() in ready and not self._obey():
                break
        for pid in self._living:
            os.kill(pid, signal.SIGKILL)

    def _collect(self) -> None:
        with contextlib.suppress(BlockingIOError):
            os.read(self._woken, 4096)
        with contextlib.suppress(ChildProcessError):
            while (pid := os.waitpid(-1, os.WNOHANG)[0]) != 0:
                self._living.discard(pid)

    def _obey(self) -> bool:
        data, given, _, _ = socket.recv_fds(self._control, NEST.size, 1)
        if len(data) != NEST.size:
            return False
        order, pid = NEST.unpack(data)
        if order == FORK and given:
            self._fork(given[0])
        elif order == KILL and pid in self._living:  # not yet collected, so that nobody else has its number
            os.kill(pid, signal.SIGKILL)
        return True

    def _fork(self, descriptor: int) -> None:
        parent = os.getpid()
        pid = os.fork()
        if pid == 0:
            try:
                self._become(descriptor, parent)
            finally:
                os._exit(1)
        os.close(descriptor)
        self._living.add(pid)
        self._control.sendall(BORN.pack(pid))

    def _become(self, descriptor: int, parent: int) -> None:
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        self._control.close()
        os.close(self._woken)
        os.close(self._wake)
        if sys.platform == "linux":
            ctypes.CDLL(None).prctl(_PDEATHSIG, signal.SIGKILL)
            if os.getppid() != parent:
                return
        self._serve(socket.socket(fileno=descriptor))


def run(serve: Callable[[socket.socket], None]) -> None:
    """A nest's whole life: what is loaded by now is shared by its workers."""
    gc.collect()
    gc.freeze()
    ForkServerMain(socket.socket(fileno=int(sys.argv[1])), serve).run()


if __name__ == "__main__":
    from longthread.tools.analysis.isolation import worker  # with the drivers, which other nests do without

    run(worker.serve)
