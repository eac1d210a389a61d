"""Starts the fork server once. It then forks a worker within milliseconds."""

from __future__ import annotations

import atexit
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

from longthread.errors import WorkerFailed
from longthread.tools.analysis.isolation.wire import ANSWER, FORK, KILL, ORDER, exactly

_ENVIRONMENT = ("PATH", "HOME", "TMPDIR", "TZ", "LANG", "LC_ALL", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH")
"""The only environment variables that a worker inherits: no key, no password."""
_START_SECONDS = 30.0


class ForkServer:
    """Starts a fork server with the first worker, and another one when that has ended. `module` is its program."""

    def __init__(self, module: str = f"{__package__}.forkserver_main") -> None:
        self._module = module
        self._lock = threading.Lock()
        self._control: socket.socket | None = None
        self._process: subprocess.Popen[bytes] | None = None
        self._owner = 0
        self._folder = ""

    def start(self) -> None:
        """Starts the fork server without waiting for it, so that the first worker comes sooner."""
        with self._lock:
            self._ready()

    def fork(self, driver: int = 0) -> tuple[socket.socket, int]:
        """A socket to a new worker, and its process id. Raises WorkerFailed.

        The fork server first loads the driver of that number, so that its workers share it.
        """
        with self._lock:
            for _ in range(2):  # the fork server may have been killed
                ours, theirs = socket.socketpair()
                try:
                    with theirs:
                        control = self._ready()
                        socket.send_fds(control, [ORDER.pack(FORK, driver)], [theirs.fileno()])
                    answer = exactly(control, ANSWER.size)
                except OSError:
                    answer = None
                if answer is not None:
                    return ours, ANSWER.unpack(answer)[0]
                ours.close()
                self._drop()
        raise WorkerFailed(reason="it could not be started.")

    def scratch(self) -> str:
        """Makes a folder for the files of a worker. If this process is killed, the fork server removes it."""
        with self._lock:
            self._ready()
            if not Path(self._folder).is_dir():  # something has cleaned up: the fork server knows no other
                self._folder = tempfile.mkdtemp(prefix="longthread-")
            return tempfile.mkdtemp(prefix="worker-", dir=self._folder)

    def kill(self, pid: int) -> None:
        """Kills a worker, if it still runs."""
        with self._lock:
            if self._control is not None and self._owner == os.getpid():
                try:
                    self._control.sendall(ORDER.pack(KILL, pid))
                except OSError:
                    self._drop()  # its workers have ended with it

    def close(self) -> None:
        """Ends the fork server and its workers."""
        with self._lock:
            if self._owner == os.getpid():
                self._drop()
                shutil.rmtree(self._folder, ignore_errors=True)
                self._owner = 0

    def _ready(self) -> socket.socket:
        if self._control is not None and self._owner != os.getpid():
            self._control.close()  # it belongs to the parent process
            self._control, self._process = None, None
        if self._control is None:
            if self._owner != os.getpid():
                self._folder, self._owner = tempfile.mkdtemp(prefix="longthread-"), os.getpid()
            self._control, self._process = _start(self._module, self._folder)
        return self._control

    def _drop(self) -> None:
        if self._process is not None:
            self._process.kill()  # before the socket is closed: else it would remove the folder, which is used again
            self._process.wait()
        if self._control is not None:
            self._control.close()
        self._control, self._process = None, None


def _start(module: str, folder: str) -> tuple[socket.socket, subprocess.Popen[bytes]]:
    ours, theirs = socket.socketpair()
    ours.settimeout(_START_SECONDS)
    environment = {name: os.environ[name] for name in _ENVIRONMENT if name in os.environ}
    environment["PYTHONPATH"] = os.pathsep.join(path for path in sys.path if path)
    with theirs:
        try:
            process = subprocess.Popen(
                [sys.executable, "-P", "-m", module, str(theirs.fileno()), folder],
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


FORK_SERVER = ForkServer()
"""The fork server of this process."""
atexit.register(FORK_SERVER.close)
