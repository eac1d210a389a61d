"""Commands of a process that has imported everything already: a start takes milliseconds, not seconds.

What runs is a process of its own, forked, with the arguments, environment, folder and standard streams that it was
given. Only that imports are slow is not tested so; whoever tests a program as it is installed starts it as usual.
"""

from __future__ import annotations

import array
import atexit
import gc
import importlib
import io
import json
import os
import pkgutil
import runpy
import select
import selectors
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import types
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

CLIENT = """#!{python} -IS
import array, json, os, signal, socket, sys
asked = json.dumps([[{first}] + sys.argv[1:], os.getcwd(), dict(os.environ)]).encode()
with socket.socket(socket.AF_UNIX) as there:
    there.connect({place!r})
    fds = array.array("i", [0, 1, 2])
    there.sendmsg([len(asked).to_bytes(8, "big")], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, fds)])
    there.sendall(asked)
    told = there.makefile()
    pid = int(told.readline())
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda number, _: os.kill(pid, number))
    sys.exit(int(told.readline() or 70))
"""


@contextmanager
def warm(folder: Path, **environment: str) -> Iterator[Path]:
    """A folder with the commands `longthread` and `python`, which a warm process carries out.

    `environment` is what there is besides while modules are imported: some read it then and never again. A command
    that is killed takes along what it started, and hands on SIGINT and SIGTERM; other signals go to that process
    itself.
    """
    place = folder / "warm"
    for name, first in (("longthread", '"longthread"'), ("python", '"python"')):
        command = folder / "bin" / name
        command.parent.mkdir(exist_ok=True)
        command.write_text(CLIENT.format(python=sys.executable, first=first, place=str(place)))
        command.chmod(0o755)
    command_line = [sys.executable, "-m", "tests.warm", str(place)]
    with subprocess.Popen(
        command_line, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=os.environ | {"PYTHONUTF8": "1"} | environment
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
        yield folder / "bin"
        process.communicate()  # it ends with its standard input


def main() -> None:
    """Import everything, then fork for each who asks; in the child, do what was asked."""
    _import_all()
    with socket.socket(socket.AF_UNIX) as listener, selectors.DefaultSelector() as waiting:
        listener.bind(sys.argv[1])
        listener.listen()
        waiting.register(listener, selectors.EVENT_READ)
        waiting.register(0, selectors.EVENT_READ)
        signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # whom nobody waits for is no zombie
        gc.freeze()  # a collection in a child would copy every page
        os.write(1, b"ready\n")
        asked = None
        while asked is None:
            ready = [key.fileobj for key, _ in waiting.select()]
            if 0 in ready:
                os._exit(0)
            there, _ = listener.accept()
            with there:
                if os.fork() == 0:
                    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
                    asked = _forked(there)
    os._exit(_code_of(*asked))


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


def _forked(there: socket.socket) -> tuple[list[str], str, dict[str, str], list[int]]:
    """What is asked, in another child; the first one waits for it and tells how it ended."""
    size, handed, _, _ = there.recvmsg(8, socket.CMSG_SPACE(12))
    fds = array.array("i", handed[0][2])
    asked = json.loads(there.makefile("rb").read(int.from_bytes(size, "big")))
    lives, held = os.pipe()  # read to its end when the process that holds the other end is dead
    pid = os.fork()
    if pid == 0:
        os.close(lives)
        return *asked, list(fds)
    for fd in [0, 1, 2, held, *fds]:
        os.close(fd)
    with suppress(BrokenPipeError):
        there.sendall(b"%d\n" % pid)
    ready, _, _ = select.select([lives, there], [], [])
    if lives not in ready:  # whoever asked was killed
        os.kill(pid, signal.SIGKILL)
    status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    with suppress(BrokenPipeError):
        there.sendall(b"%d\n" % (status if status >= 0 else 128 - status))
    os._exit(0)


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
        sys.argv = list(arguments)
        importlib.import_module("longthread.cli.start").main()
        return
    option, what, *more = rest
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


def _import_all() -> None:
    """All of Longthread, with what it and its tests' servers stand on."""
    longthread = importlib.import_module("longthread")
    for module in pkgutil.walk_packages(longthread.__path__, "longthread."):
        if not module.name.endswith("__main__"):
            importlib.import_module(module.name)
    importlib.import_module("langchain_openai")
    importlib.import_module("mcp.server.mcpserver")


if __name__ == "__main__":
    main()
