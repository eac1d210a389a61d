"""Runs a tool's code once, in a process that is confined irrevocably: files, system calls, resources.

Only for Linux on x86-64, where it was tested. Three layers; each stops most of what hostile code tries: Landlock (only
Python's own libraries, no network), seccomp (only harmless system calls), and resource limits. Capabilities are
dropped, so that root has no privilege.
"""

from __future__ import annotations

import ctypes
import io
import json
import math
import os
import platform
import resource
import signal
import socket
import struct
import sys
import sysconfig
import traceback
from pathlib import Path
from typing import Any

from longthread.tools.analysis.isolation import forkserver_main, memory
from longthread.tools.analysis.isolation.wire import WireMessage, receive

_LANDLOCK_CREATE, _LANDLOCK_ADD, _LANDLOCK_RESTRICT, _CAPSET = 444, 445, 446, 126
_PR_SET_DUMPABLE, _PR_SET_SECCOMP, _PR_SET_NO_NEW_PRIVS = 4, 22, 38
_READ = 0b1100
"""Landlock's rights to read a file and a folder."""
_FILE_RIGHTS = {1: 13, 2: 14, 3: 15, 4: 15, 5: 16}
"""The number of file rights by Landlock version."""
_ARCHITECTURE = 0xC000003E
_X32 = 0x40000000
_ALLOW, _ERRNO, _KILL = 0x7FFF0000, 0x00050000, 0x80000000
_EPERM = 1
_CALLS = {
    "read": 0, "write": 1, "open": 2, "close": 3, "stat": 4, "fstat": 5, "lstat": 6, "lseek": 8, "mmap": 9,
    "mprotect": 10, "munmap": 11, "brk": 12, "rt_sigaction": 13, "rt_sigprocmask": 14, "rt_sigreturn": 15,
    "pread64": 17, "readv": 19, "writev": 20, "access": 21, "sched_yield": 24, "mremap": 25, "madvise": 28, "dup": 32,
    "nanosleep": 35, "getpid": 39, "exit": 60, "uname": 63, "getcwd": 79, "readlink": 89, "gettimeofday": 96,
    "getrlimit": 97, "getrusage": 98, "sysinfo": 99, "times": 100, "getuid": 102, "getgid": 104, "geteuid": 107,
    "getegid": 108, "sigaltstack": 131, "gettid": 186, "time": 201, "futex": 202, "sched_getaffinity": 204,
    "getdents64": 217, "clock_gettime": 228, "clock_getres": 229, "clock_nanosleep": 230, "exit_group": 231,
    "openat": 257, "newfstatat": 262, "readlinkat": 267, "getrandom": 318, "membarrier": 324, "statx": 332,
    "rseq": 334,
}  # fmt: skip
"""The system calls that remain, of x86-64: computing, memory, time, and reading what Landlock lets be opened."""
_OPEN_FILES = 32
_OVERHEAD_MB = 64


def lacking() -> str | None:
    """What this system lacks to confine a process, or None."""
    if sys.platform != "linux" or platform.machine() not in ("x86_64", "AMD64") or sys.maxsize < 2**32:
        return "Linux on x86-64"
    return None if _landlock_version() >= 1 else "a Linux kernel with Landlock (5.13 or newer, not switched off)"


def confine(descriptor: int, *, seconds: float, megabytes: int) -> None:
    """Confines this process to computing and one descriptor. Raises OSError: it failed, and nothing may be run."""
    os.environ.clear()
    for name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
        os.putenv(name, "1")  # for libraries that would start threads, and end where they cannot
    os.chdir("/")
    os.closerange(3, descriptor)
    os.closerange(descriptor + 1, 65_536)
    memory.limit_memory(megabytes, overhead=_OVERHEAD_MB)
    libc = ctypes.CDLL(None, use_errno=True)
    _prctl(libc, _PR_SET_NO_NEW_PRIVS, 1)
    _prctl(libc, _PR_SET_DUMPABLE, 0)
    _restrict_files(libc)
    _drop_capabilities(libc)
    cpu = math.ceil(seconds) + 1
    for limit, most in (
        (resource.RLIMIT_CPU, cpu),
        (resource.RLIMIT_FSIZE, 0),
        (resource.RLIMIT_NOFILE, _OPEN_FILES),
        (resource.RLIMIT_MEMLOCK, 0),
    ):
        resource.setrlimit(limit, (most, most))
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    signal.setitimer(signal.ITIMER_REAL, seconds)  # the parent kills code that ignores it
    _restrict_calls(libc)


def _landlock_version() -> int:
    return int(ctypes.CDLL(None, use_errno=True).syscall(_LANDLOCK_CREATE, None, ctypes.c_size_t(0), 1))


def _restrict_files(libc: ctypes.CDLL) -> None:
    version = _landlock_version()
    rights = (1 << _FILE_RIGHTS.get(version, 16)) - 1
    network = 0b11 if version >= 4 else 0
    scoped = 0b11 if version >= 6 else 0
    ruleset = struct.pack("=QQQ", rights, network, scoped)
    size = 24 if version >= 6 else 16 if version >= 4 else 8
    descriptor = _check_result(libc.syscall(_LANDLOCK_CREATE, ruleset, ctypes.c_size_t(size), 0))
    for path in _readable():
        opened = os.open(path, os.O_PATH | os.O_CLOEXEC)
        rule = struct.pack("=Qi", _READ if path.is_dir() else 0b0100, opened)
        _check_result(libc.syscall(_LANDLOCK_ADD, descriptor, 1, rule, 0))
        os.close(opened)
    _check_result(libc.syscall(_LANDLOCK_RESTRICT, descriptor, 0))
    os.close(descriptor)


def _readable() -> list[Path]:
    """Python's own library, installed packages, and the system's libraries that they need."""
    named = sysconfig.get_paths()
    paths = {Path(named[name]) for name in ("stdlib", "platstdlib", "purelib", "platlib")}
    paths |= {Path(sysconfig.get_config_var("LIBDIR") or "/usr/lib"), Path("/lib"), Path("/lib64"), Path("/usr/lib")}
    paths |= {Path("/etc/ld.so.cache"), Path("/usr/share/zoneinfo")}
    return [path for path in sorted(paths) if path.exists()]


def _drop_capabilities(libc: ctypes.CDLL) -> None:
    header = struct.pack("=Ii", 0x20080522, 0)
    _check_result(libc.syscall(_CAPSET, header, bytes(24)))


def _restrict_calls(libc: ctypes.CDLL) -> None:
    """Must come last: the other steps need system calls that it forbids."""
    load, equal, at_least, answer = 0x20, 0x15, 0x35, 0x06
    program = [
        (load, 0, 0, 4),  # the architecture
        (equal, 1, 0, _ARCHITECTURE),
        (answer, 0, 0, _KILL),
        (load, 0, 0, 0),  # the number of the call
        (at_least, 0, 1, _X32),
        (answer, 0, 0, _KILL),
    ]
    for number in sorted(_CALLS.values()):
        program += [(equal, 0, 1, number), (answer, 0, 0, _ALLOW)]
    program.append((answer, 0, 0, _ERRNO | _EPERM))
    filters = ctypes.create_string_buffer(b"".join(struct.pack("=HBBI", *step) for step in program))
    argument = struct.pack("@HP", len(program), ctypes.addressof(filters))
    _prctl(libc, _PR_SET_SECCOMP, 2, argument)


def _prctl(libc: ctypes.CDLL, option: int, value: int, argument: bytes | None = None) -> None:
    _check_result(libc.prctl(option, ctypes.c_ulong(value), argument, 0, 0))


def _check_result(result: int) -> int:
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    return result


_LENGTH = struct.Struct("!I")  # as the frames of isolation/wire begin
_FILE = "<tool>"


def serve(to: socket.socket) -> None:
    """Runs a task, sends the answer, and ends the process."""
    task = receive(to)
    if task is None:
        return
    try:
        confine(to.fileno(), seconds=task["seconds"], megabytes=task["memory_mb"])
    except Exception as error:  # noqa: BLE001 - whatever kept it from being confined, nothing is run
        answer: WireMessage = {"unconfined": f"{type(error).__name__}: {error}"}
    else:
        answer = _answer(task)
    _write(to.fileno(), answer)
    os._exit(0)


def _answer(task: WireMessage) -> WireMessage:
    printed = _Printed(task["printed"])
    sys.stdout = sys.stderr = printed
    try:
        scope: dict[str, Any] = {"__name__": "tool", "__builtins__": __builtins__}
        exec(compile(task["code"], _FILE, "exec"), scope)
        result = json.dumps(scope["execute"](**task["arguments"]), ensure_ascii=False)
        return {"result": result[: task["characters"] + 1], "printed": printed.text()}
    except MemoryError:
        return {"stopped": f"it needs more than {task['memory_mb']} MB of memory"}
    except BaseException as error:  # noqa: BLE001 - also SystemExit and KeyboardInterrupt of the code
        return {"failed": _error_text(error)}


def _error_text(error: BaseException) -> str:
    lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == _FILE]
    if isinstance(error, SyntaxError):
        lines = [error.lineno]
    where = f" (line {lines[-1]})" if lines else ""
    try:
        text = str(error)
    except Exception:  # noqa: BLE001 - the code wrote the exception
        text = "(it cannot be said)"
    return f"{type(error).__name__}: {text[:1000]}{where}"


class _Printed(io.TextIOBase):
    """Captures the first characters that are printed."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._parts: list[str] = []

    def writable(self) -> bool:
        return True

    def write(self, text: str, /) -> int:
        if self._most > 0:
            self._parts.append(text[: self._most])
            self._most -= len(self._parts[-1])
        return len(text)

    def text(self) -> str:
        return "".join(self._parts)


def _write(descriptor: int, answer: WireMessage) -> None:
    """Writes a frame without socket calls, which are forbidden by now."""
    data = json.dumps(answer).encode("ascii")
    left = memoryview(_LENGTH.pack(len(data)) + data)
    while left:
        left = left[os.write(descriptor, left) :]


if __name__ == "__main__":
    forkserver_main.run(serve)
