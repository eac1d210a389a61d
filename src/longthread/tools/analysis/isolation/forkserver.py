"""This process's side of the nest: it is started once, and gives a worker in milliseconds after that."""

from __future__ import annotations

import atexit
import os
import socket
import subprocess
import sys
import threading

from longthread.errors import WorkerFailed
from longthread.tools.analysis.isolation.wire import BORN, FORK, KILL, NEST, exactly

_KEPT = ("PATH", "HOME", "TMPDIR", "TZ", "LANG", "LC_ALL", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH")
"""What of the environment a worker gets: no key, no password."""
_PATIENCE = 30.0
"""Seconds in which a nest must have started."""


class ForkServer:
    """Starts a nest when the first worker is asked for, and another one when that is gone. `module` is the nest."""

    def __init__(self, module: str = f"{__package__}.forkserver_main") -> None:
        self._module = module
        self._lock = threading.Lock()
        self._nest: socket.socket | None = None
        self._process: subprocess.Popen[bytes] | None = None
        self._owner = 0

    def start(self) -> None:
        """Starts the nest without waiting for it, so that it is ready when a worker is asked for."""
        with self._lock:
            self._ready()

    def fork(self) -> tuple[socket.socket, int]:
        """A new worker: the socket that it is told by, and its process. Raises WorkerFailed."""
        with self._lock:
            for _ in range(2):  # the nest may have been killed since it was last asked
                ours, theirs = socket.socketpair()
                try:
                    with theirs:
                        nest = self._ready()
                        socket.send_fds(nest, [NEST.pack(FORK, 0)], [theirs.fileno()])
                    answer = exactly(nest, BORN.size)
                except OSError:
                    answer = None
                if answer is not None:
                    return ours, BORN.unpack(answer)[0]
                ours.close()
                self._drop()
        raise WorkerFailed(reason="it could not be started.")

    def kill(self, pid: int) -> None:
        """Ends a worker by force; does nothing when it has ended."""
        with self._lock:
            if self._nest is not None and self._owner == os.getpid():
                try:
                    self._nest.sendall(NEST.pack(KILL, pid))
                except OSError:
                    self._drop()  # and its workers have ended with it

    def close(self) -> None:
        """Ends the nest and all of its workers."""
        with self._lock:
            if self._owner == os.getpid():
                self._drop()

    def _ready(self) -> socket.socket:
        if self._nest is not None and self._owner != os.getpid():
            self._nest.close()  # the nest of the process that this one was forked from
            self._nest, self._process = None, None
        if self._nest is None:
            self._nest, self._process = _started(self._module)
            self._owner = os.getpid()
        return self._nest

    def _drop(self) -> None:
        if self._nest is not None:
            self._nest.close()
        if self._process is not None:
            self._process.kill()
            self._process.wait()
        self._nest, self._process = None, None


def _started(module: str) -> tuple[socket.socket, subprocess.Popen[bytes]]:
    ours, theirs = socket.socketpair()
    ours.settimeout(_PATIENCE)
    environment = {name: os.environ[name] for name in _KEPT if name in os.environ}
    environment["PYTHONPATH"] = os.pathsep.join(path for path in sys.path if path)
    with theirs:
        try:
            process = subprocess.Popen(
                [sys.executable, "-P", "-m", module, str(theirs.fileno())],
                pass_fds=[theirs.fileno()],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                start_new_session=True,  # Ctrl-C in a terminal is for this process
                env=environment,
            )
        except OSError:
            ours.close()
            raise
    return ours, process


NURSERY = ForkServer()
"""The one of this process."""
atexit.register(NURSERY.close)
