"""The fork server: a process that loads the drivers, and ends together with the process that started it.

python -P -m longthread.tools.analysis.isolation.forkserver_main DESCRIPTOR FOLDER

FOLDER holds the files of its workers, and goes with it.
"""

from __future__ import annotations

import contextlib
import ctypes
import gc
import os
import select
import shutil
import signal
import socket
import sys
from collections.abc import Callable

from longthread.tools.analysis.isolation.wire import ANSWER, FORK, KILL, ORDER

_PDEATHSIG = 1


class ForkServerMain:
    """Forks workers, kills them, and reaps the ones that have ended. A worker runs `serve`; before it is forked, `load`
    is called with the number of its driver. `folder` holds the files of workers, and goes at the end."""

    def __init__(
        self, control: int, folder: str, serve: Callable[[socket.socket], None], load: Callable[[int], object]
    ) -> None:
        self._control = socket.socket(fileno=control)
        self._folder = folder
        self._serve = serve
        self._load = load
        self._workers: set[int] = set()
        self._woken, self._wake = os.pipe()
        os.set_blocking(self._wake, False)
        os.set_blocking(self._woken, False)
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.set_wakeup_fd(self._wake, warn_on_full_buffer=False)

    def run(self) -> None:
        """Serves until the other side closes the socket."""
        while True:
            ready, _, _ = select.select([self._control.fileno(), self._woken], [], [])
            self._collect()
            if self._control.fileno() in ready and not self._obey():
                break
        for pid in self._workers:
            os.kill(pid, signal.SIGKILL)
        shutil.rmtree(self._folder, ignore_errors=True)

    def _collect(self) -> None:
        with contextlib.suppress(BlockingIOError):
            os.read(self._woken, 4096)
        with contextlib.suppress(ChildProcessError):
            while (pid := os.waitpid(-1, os.WNOHANG)[0]) != 0:
                self._workers.discard(pid)

    def _obey(self) -> bool:
        data, given, _, _ = socket.recv_fds(self._control, ORDER.size, 1)
        if len(data) != ORDER.size:
            return False
        order, number = ORDER.unpack(data)
        if order == FORK and given:
            self._load(number)
            gc.freeze()
            self._fork(given[0])
        elif order == KILL and number in self._workers:  # not reaped yet, so the id is still its own
            os.kill(number, signal.SIGKILL)
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
        self._workers.add(pid)
        self._control.sendall(ANSWER.pack(pid))

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


def run(serve: Callable[[socket.socket], None], load: Callable[[int], object] = lambda _: None) -> None:
    """Runs a fork server. Workers share the memory of everything that is loaded before they are forked."""
    gc.collect()
    gc.freeze()
    descriptor, folder = sys.argv[1:]
    ForkServerMain(int(descriptor), folder, serve, load).run()


if __name__ == "__main__":
    from longthread.tools.analysis.isolation import worker  # here: other fork servers do not need it

    run(worker.serve, worker.load)
