"""Commands of a process that has imported everything already: a start takes milliseconds, not seconds.

What runs is a process of its own, forked, with the arguments, environment, folder and standard streams that it was
given. Only that imports are slow is not tested so; whoever tests a program as it is installed starts it as usual.
"""

from __future__ import annotations

import array
import ast
import atexit
import fcntl
import gc
import importlib
import io
import os
import pkgutil
import runpy
import selectors
import signal
import socket
import sys
import tempfile
import threading
import types
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.forked_server import start_fork_server

CLIENT = """#!{python} -IS
# What these modules are made of: to import them takes longer than all else here.
import _signal, _socket, array, os, sys
asked = repr([[{first}] + sys.argv[1:], os.getcwd(), dict(os.environ)]).encode("utf-8", "backslashreplace")
there = _socket.socket(_socket.AF_UNIX)
there.connect({place!r})
fds = array.array("i", [0, 1, 2])
there.sendmsg([len(asked).to_bytes(8, "big")], [(_socket.SOL_SOCKET, _socket.SCM_RIGHTS, fds)])
there.sendall(asked)
told = os.fdopen(os.dup(there.fileno()))
pid = int(told.readline())
for number in (_signal.SIGINT, _signal.SIGTERM):
    _signal.signal(number, lambda number, _: os.kill(pid, number))
sys.exit(int(told.readline() or 70))
"""
READY = b"ready\n"


@contextmanager
def warm(folder: Path, *modules: str, **environment: str) -> Iterator[Path]:
    """A folder with the commands `longthread` and `python`, which a warm process carries out.

    Other processes may share the folder: the first starts the warm process, which ends with the last. It imports
    `modules`, or else all of Longthread. `environment` is what there is besides while modules are imported: some read
    it then and never again. A command that is killed takes along what it started, and hands on SIGINT and SIGTERM;
    other signals go to that process itself.
    """
    place = folder / "warm"
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        needs = _needing(place)
        if needs is None:
            _write_commands(folder / "bin", place)
            needs = _started(place, modules, os.environ | {"PYTHONUTF8": "1"} | environment)
    with needs:
        yield folder / "bin"


def _write_commands(folder: Path, place: Path) -> None:
    folder.mkdir(exist_ok=True)
    for name in ("longthread", "python"):
        command = folder / name
        command.write_text(CLIENT.format(python=sys.executable, first=f'"{name}"', place=str(place)))
        command.chmod(0o755)


def _needing(place: Path) -> socket.socket | None:
    """A connection that keeps the warm process at work; None if there is no such process."""
    there = socket.socket(socket.AF_UNIX)
    try:
        there.connect(str(place))
        there.sendall(bytes(8))
        if there.recv(len(READY)) == READY:
            return there
    except OSError:
        pass  # it never was, or has ended
    there.close()
    return None


def _started(place: Path, modules: Sequence[str], environment: Mapping[str, str]) -> socket.socket:
    """Start the warm process, with a connection that keeps it at work as its standard input."""
    place.unlink(missing_ok=True)
    ours, theirs = socket.socketpair()
    with theirs:
        command = [sys.executable, "-m", "tests.warm", str(place), *modules]
        # Whoever starts it may end before it does, and does not wait for it.
        os.posix_spawn(command[0], command, environment, file_actions=[(os.POSIX_SPAWN_DUP2, theirs.fileno(), 0)])
    assert ours.recv(len(READY)) == READY
    return ours


@dataclass(frozen=True)
class _Command:
    """A process that was asked for, and who waits for its end."""

    pid: int
    there: socket.socket

    def ended(self, status: int) -> None:
        """Tell how it ended."""
        with self.there, suppress(BrokenPipeError):
            self.there.sendall(b"%d\n" % (status if status >= 0 else 128 - status))


def main() -> None:
    """Import everything, then fork for each who asks; in the child, do what was asked."""
    place, *modules = sys.argv[1:]
    _import_all(modules)
    commands: dict[int, _Command] = {}
    needed = {socket.socket(fileno=0)}
    with socket.socket(socket.AF_UNIX) as listener, selectors.DefaultSelector() as waiting:
        listener.bind(place)
        listener.listen()
        woken, wakes = os.pipe()
        os.set_blocking(wakes, False)
        signal.signal(signal.SIGCHLD, lambda number, frame: None)
        signal.set_wakeup_fd(wakes)  # a child has ended
        for readable in (listener, woken, *needed):
            waiting.register(readable, selectors.EVENT_READ)
        gc.freeze()  # a collection in a child would copy every page
        for each in needed:
            each.sendall(READY)
        asked = None
        while asked is None:
            for key, _ in waiting.select():
                there: Any = key.fileobj
                if there is listener:
                    asked = _forked(listener, commands, needed, waiting)
                    if asked is not None:
                        break
                elif there == woken:
                    os.read(woken, 4096)
                    _reap(commands, waiting)
                elif there in needed:
                    waiting.unregister(there)
                    needed.remove(there)
                    there.close()
                    if not needed:
                        os._exit(0)
                else:  # whoever asked was killed
                    waiting.unregister(there)
                    os.kill(key.data, signal.SIGKILL)
    os._exit(_code_of(*asked))


def _reap(commands: dict[int, _Command], waiting: selectors.BaseSelector) -> None:
    """Tell how those ended that did."""
    for pid in list(commands):
        ended, status = os.waitpid(pid, os.WNOHANG)
        if ended:
            command = commands.pop(pid)
            with suppress(KeyError):  # nobody waits any more
                waiting.unregister(command.there)
            command.ended(os.waitstatus_to_exitcode(status))


def _code_of(*asked: Any) -> int:
    """Do what is asked, and end as an interpreter does, except that nothing that was imported is taken down."""
    code: Any = 0
    try:
        _do(*asked)
    except SystemExit as end:
        code = end.code or 0
    except BaseException:  # noqa: BLE001 - an interpreter tells of every one
        sys.excepthook(*sys.exc_info())
        code = 1
    for thread in threading.enumerate():
        if thread is not threading.current_thread() and not thread.daemon:
            thread.join()
    atexit._run_exitfuncs()
    if not isinstance(code, int):
        print(code, file=sys.stderr)
        code = 1
    for stream in (sys.stdout, sys.stderr):
        with suppress(BrokenPipeError):
            stream.flush()
    return code


def _forked(
    listener: socket.socket, commands: dict[int, _Command], needed: set[socket.socket], waiting: selectors.BaseSelector
) -> tuple[list[str], str, dict[str, str], list[int]] | None:
    """What is asked, in a child; None in this process, and for who asks nothing but needs it later."""
    there, _ = listener.accept()
    size, handed, _, _ = there.recvmsg(8, socket.CMSG_SPACE(12))
    if not handed:
        needed.add(there)
        waiting.register(there, selectors.EVENT_READ)
        with suppress(BrokenPipeError):
            there.sendall(READY)
        return None
    fds = array.array("i", handed[0][2])
    with there.makefile("rb") as question:
        asked = ast.literal_eval(question.read(int.from_bytes(size, "big")).decode("utf-8"))
    pid = os.fork()
    if pid == 0:
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        for each in (there, *needed, *(command.there for command in commands.values())):
            each.close()
        return *asked, list(fds)
    for fd in fds:
        os.close(fd)
    commands[pid] = _Command(pid, there)
    waiting.register(there, selectors.EVENT_READ, pid)
    with suppress(BrokenPipeError):
        there.sendall(b"%d\n" % pid)
    return None


def _do(arguments: Sequence[str], folder: str, environment: Mapping[str, str], fds: Sequence[int]) -> None:
    """Be the process that was asked for."""
    for number, fd in enumerate(fds):
        os.dup2(fd, number)
        os.close(fd)
    os.environ.clear()
    os.environ.update(environment)
    os.chdir(folder)
    tempfile.tempdir = None
    sys.stdin, sys.stdout, sys.stderr = (_opened(number) for number in range(3))
    main_module: Any = types.ModuleType("__main__")
    sys.modules["__main__"] = main_module
    name, *rest = arguments
    if name == "longthread":
        start_fork_server()
        sys.argv = list(arguments)
        importlib.import_module("longthread.cli.start").main()
        return
    option, *more = rest
    if not option.startswith("-"):  # a file
        sys.argv, sys.path[0] = rest, str(Path(option).parent)
        runpy.run_path(option, run_name="__main__")
        return
    what, *more = more
    sys.argv = [option, *more]
    if option == "-m":
        runpy.run_module(what, run_name="__main__", alter_sys=True)
    else:
        assert option == "-c"
        sys.path[0] = ""
        exec(compile(what, "<string>", "exec"), main_module.__dict__)


def _opened(number: int) -> io.TextIOWrapper:
    plain: Any = os.fdopen(number, "wb" if number else "rb", closefd=False)
    return io.TextIOWrapper(plain, encoding="utf-8", line_buffering=number == 2)


def _import_all(modules: Sequence[str]) -> None:
    """These modules, or all of Longthread, with what it and its tests' servers stand on."""
    for name in modules:
        importlib.import_module(name)
    if modules:
        return
    for package in map(importlib.import_module, ("longthread", "longthread_demo")):
        for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            if not module.name.endswith("__main__"):
                importlib.import_module(module.name)
    importlib.import_module("langchain_openai")
    importlib.import_module("mcp.server.mcpserver")


if __name__ == "__main__":
    main()
