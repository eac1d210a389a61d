"""Code tools in the real sandboxes: what they compute, and that nothing they try leads out of them."""

from __future__ import annotations

import asyncio
import contextlib
import os
import resource
import signal
import socket
import sys
import time
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from longthread.errors import ToolInvalid
from longthread.tools.analysis.isolation.forkserver import ForkServer
from longthread.tools.confinement import lacking
from longthread.tools.tool import Observation
from longthread.tools.types.code import _MODULE, Interpreters, build, check

PARAMETERS: dict[str, Any] = {
    "type": "object",
    "properties": {"query": {"type": "string"}, "limit": {"type": "integer", "default": 10}},
    "required": ["query"],
}
PRINTED = {
    "type": "code",
    "runtime": "python",
    "code": "def execute(query, limit=10):\n    return search_results",
}
confined = pytest.mark.skipif(lacking() is not None, reason=f"CPython is confined on {lacking()}")


@dataclass(frozen=True)
class Definition:
    implementation: dict[str, Any]
    parameters: dict[str, Any] = field(default_factory=lambda: PARAMETERS)
    name: str = "compute"
    description: str = "Computes."


@pytest.fixture(params=["python", pytest.param("cpython", marks=confined)])
def runtime(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
async def own_interpreters() -> AsyncIterator[Interpreters]:
    """Interpreters whose processes start in this test."""
    async with Interpreters(cpython=True) as opened:
        yield opened


class _Shared(ForkServer):
    """Outlives the interpreters that fork from it: an interpreter with its imports takes longer than most tests."""

    def close(self) -> None:
        pass

    def end(self) -> None:
        super().close()


@pytest.fixture(scope="module")
def fork_server() -> Iterator[_Shared]:
    server = _Shared(_MODULE)
    yield server
    server.end()


@pytest.fixture
def interpreters(own_interpreters: Interpreters, fork_server: _Shared) -> Interpreters:
    """Interpreters whose runs are forked where those of earlier tests were."""
    runner: Any = own_interpreters.get_interpreter("cpython")
    runner._server = fork_server
    return own_interpreters


async def run(interpreters: Interpreters, runtime: str, code: str, *, query: str = "x", **more: Any) -> Observation:
    made = {"runtime": runtime, "code": code} | more
    return await build(Definition(made), interpreters).call({"query": query})


async def tried(interpreters: Interpreters, runtime: str, body: str, **more: Any) -> Observation:
    """Runs statements as the body of the function, and sees that the next call works."""
    code = "def execute(query, limit=10):\n" + "".join(f"    {line}\n" for line in body.splitlines())
    found = await run(interpreters, runtime, code, **more)
    again = await run(interpreters, runtime, "def execute(query, limit): return [query, limit]")
    assert again["ok"], again
    assert again["data"]["result"] == ["x", 10]
    return found


async def test_the_documents_tool_runs_as_it_is_printed(interpreters: Interpreters) -> None:
    check(PRINTED, PARAMETERS)
    found = await build(Definition(PRINTED), interpreters).call({"query": "x"})
    assert found["error"] == {
        "type": "code_failed",
        "message": "The tool's code failed: NameError: name 'search_results' is not defined (line 2).",
    }
    wrong = await build(Definition(PRINTED), interpreters).call({"query": 5})
    assert wrong["error"]["type"] == "arguments_invalid"


@pytest.mark.parametrize(
    ("code", "result"),
    [
        ("def execute(query, limit): return {'q': query * 2, 'n': limit + 1}", {"q": "王芳\n'王芳\n'", "n": 11}),
        ("import math, re, json\ndef execute(**all): return [math.pi > 3, sorted(all), (1, 2)]",
         [True, ["limit", "query"], [1, 2]]),
        ("def execute(query, limit): return None", None),
        ("def execute(query, limit): return float('nan')", None),
        ("def execute(query, limit): return '\\ud83d\\ude00'[:1].strip() and 'text'", "text"),
        ("from datetime import date\ndef execute(query, limit): return date(2026, 1, 2).isoformat()", "2026-01-02"),
        ("def helper(n): return n * 2\nN = 4\ndef execute(query, limit): return helper(N)", 8),
    ],
)  # fmt: skip
async def test_code_computes(interpreters: Interpreters, runtime: str, code: str, result: object) -> None:
    found = await run(interpreters, runtime, code, query="王芳\n'")
    assert found["ok"], found
    assert found["data"]["result"] == result


async def test_what_is_printed_is_told(interpreters: Interpreters, runtime: str) -> None:
    found = await tried(interpreters, runtime, "print('hello', query)\nreturn 1")
    assert (found["data"]["printed"], found["data"]["result"]) == ("hello x\n", 1)


async def test_nothing_of_a_call_is_there_in_the_next(interpreters: Interpreters, runtime: str) -> None:
    await run(interpreters, runtime, "import math\nSTATE = 5\ndef execute(query, limit): return STATE")
    found = await run(interpreters, runtime, "def execute(query, limit): return STATE")
    assert "STATE" in found["error"]["message"]


FILES = {
    "reads a file": "return open('/etc/passwd').read()",
    "reads our environment": "return open('/proc/self/environ').read()",
    "reads another process": "return open('/proc/1/cmdline').read()",
    "lists a folder": "import os\nreturn os.listdir('/')",
    "writes a file": "open('/tmp/longthread-was-here', 'w').write('x')",
    "makes a folder": "import os\nos.mkdir('/tmp/longthread-was-here')",
    "removes a file": "import os\nos.remove(query)",
    "makes a link": "import os\nos.symlink('/etc/passwd', '/tmp/longthread-was-here')",
    "reads by pathlib": "from pathlib import Path\nreturn Path('/etc/passwd').read_text()",
    "climbs": "return open('/usr/lib/../../etc/passwd').read()",
    "changes a mode": "import os\nos.chmod(query, 0o777)",
    "opens a device": "return open('/dev/mem', 'rb').read(1)",
    "cuts a file": "import os\nos.truncate(query, 0)",
}
REACHES = {
    "opens a socket": "import socket\nsocket.create_connection(('127.0.0.1', int(query)))",
    "opens a raw socket": "import socket\nsocket.socket(socket.AF_INET, socket.SOCK_RAW)",
    "opens a local socket": "import socket\nsocket.socket(socket.AF_UNIX).connect(query)",
    "asks for a name": "import socket\nreturn socket.gethostbyname('example.com')",
    "fetches": "import urllib.request\nreturn urllib.request.urlopen('http://127.0.0.1:1').read()",
    "forks": "import os\nreturn os.fork()",
    "starts a program": "import subprocess\nreturn subprocess.check_output(['id'])",
    "uses a shell": "import os\nif os.system('touch /tmp/longthread-was-here') != 0: raise OSError",
    "becomes a program": "import os\nos.execv('/bin/sh', ['sh', '-c', 'touch /tmp/longthread-was-here'])",
    "starts a thread": "import threading\nthreading.Thread(target=print).start()",
    # With signal 0, which asks whether one may: should it get through, nobody dies.
    "kills its parent": "import os\nos.kill(os.getppid(), 0)",
    "kills all": "import os\nos.kill(-1, 0)",
    "limits its parent": "import os, resource\nresource.prlimit(os.getppid(), resource.RLIMIT_CPU)",
    "traces": (
        "import ctypes\nlibc = ctypes.CDLL(None, use_errno=True)\n"
        "if libc.ptrace(16, 1, 0, 0) < 0: raise OSError(ctypes.get_errno())"
    ),
    "becomes somebody else": "import os\nos.setuid(12345)",
    "calls the system by number": (
        "import ctypes\nlibc = ctypes.CDLL(None, use_errno=True)\n"
        "if libc.syscall(41, 2, 1, 0) < 0: raise OSError(ctypes.get_errno())"
    ),
    "makes a ring": (
        "import ctypes\nlibc = ctypes.CDLL(None, use_errno=True)\n"
        "if libc.syscall(425, 1, 0) < 0: raise OSError(ctypes.get_errno())"
    ),
    "mounts": (
        "import ctypes\nlibc = ctypes.CDLL(None, use_errno=True)\n"
        "if libc.unshare(0x10000000) < 0: raise OSError(ctypes.get_errno())"
    ),
    "raises its limits": "import resource\nresource.setrlimit(resource.RLIMIT_AS, (-1, -1))",
}


@pytest.mark.parametrize("what", [*FILES, *REACHES])
async def test_nothing_outside_is_reached(interpreters: Interpreters, runtime: str, what: str, tmp_path: Path) -> None:
    own = tmp_path / "own.txt"
    own.write_text("mine")
    own.chmod(0o600)
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        listening.listen()
        listening.setblocking(False)
        port = listening.getsockname()[1]
        given = str(port) if what == "opens a socket" else str(own)
        found = await tried(interpreters, runtime, (FILES | REACHES)[what], query=given)
        with pytest.raises(BlockingIOError):
            listening.accept()
    assert not found["ok"], found
    assert found["error"]["type"] == "code_failed"
    assert own.read_text() == "mine"
    assert own.stat().st_mode & 0o777 == 0o600
    assert not Path("/tmp/longthread-was-here").exists()


async def test_the_environment_is_not_there(
    own_interpreters: Interpreters, runtime: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LONGTHREAD_SECRET_API_KEY", "sk-live-0123")
    found = await tried(own_interpreters, runtime, "import os\nreturn str(dict(os.environ)) + str(os.getenv('PATH'))")
    assert "sk-live" not in str(found)
    assert not found["ok"] or found["data"]["result"] == "{}None"
    for pid in _descendants(os.getpid()) if sys.platform == "linux" else []:
        with contextlib.suppress(OSError):  # it has ended meanwhile
            assert b"sk-live" not in Path(f"/proc/{pid}/environ").read_bytes()


def _parent(pid: int) -> int:
    try:
        return int(Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[1])
    except (OSError, IndexError):
        return 0


TOO_MUCH = {
    "loops": "while True: pass",
    "loops in one call": "return sum(1 for _ in range(10**12))",
    "sleeps": "import time\nwhile True: time.sleep(100)",
    "doubles a list": "x = [0] * 10\nwhile True: x = x + x",
    "makes a long text": "return 'x' * 10**10",
    "makes a large number": "return len(str(9**9**9))",
    "keeps all": "x = []\nwhile True: x.append('x' * 1000000)",
    "recurses": "def f(): return f()\nreturn f()",
    "recurses in a call": "def f(n): return sorted([n], key=f)\nreturn f(1)",
    "nests": "x = []\nfor _ in range(1000000): x = [x]\nreturn x",
    "nests a little": "x = []\nfor _ in range(100): x = [x]\nreturn x",
    "repeats by reference": "x = [1] * 1000\nx = [x] * 1000\nreturn [x] * 1000",
    "prints for ever": "while True: print('x' * 1000)",
    "searches for ever": "import re\nreturn bool(re.match('(a|a)*$', 'a' * 100 + 'b'))",
    "compiles what is nested": "return eval('(' * 100000 + ')' * 100000)",
    "compiles what is deep": "return eval('-' * 1000000 + '1')",
}


@pytest.mark.parametrize("what", TOO_MUCH)
async def test_what_takes_too_much_is_stopped(interpreters: Interpreters, runtime: str, what: str) -> None:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    started = time.monotonic()
    found = await tried(interpreters, runtime, TOO_MUCH[what], timeout_seconds=1)
    assert not found["ok"] or (what == "searches for ever" and found["data"]["result"] is False), found
    if not found["ok"]:
        assert found["error"]["type"] in {"code_stopped", "code_failed"}
    assert time.monotonic() - started < 30
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 200_000  # kilobytes: it was not made here


@pytest.mark.parametrize(
    "body",
    [
        "return {1, 2}",
        "return b'x'",
        "return execute",
        "class A: pass\nreturn A()",
        "return {(1, 2): 3}",
    ],
)
async def test_a_result_that_is_no_json_is_told(interpreters: Interpreters, runtime: str, body: str) -> None:
    found = await tried(interpreters, runtime, body)
    assert found["error"]["type"] == "code_failed"
    assert "TypeError" in found["error"]["message"]


async def test_a_long_result_is_cut(interpreters: Interpreters, runtime: str) -> None:
    found = await tried(interpreters, runtime, "return ['中' * 100] * 10000")
    assert len(found["data"]["result"]) == 64_000
    assert "64000 characters" in found["data"]["notes"][0]


async def test_a_long_message_is_cut(interpreters: Interpreters, runtime: str) -> None:
    found = await tried(interpreters, runtime, "raise ValueError('x' * 5000000)")
    assert len(found["error"]["message"]) < 2_000


@pytest.mark.parametrize("ending", ["raise SystemExit", "raise KeyboardInterrupt", "raise ValueError('it')", "1 / 0"])
async def test_exceptions_are_the_codes_own(interpreters: Interpreters, runtime: str, ending: str) -> None:
    found = await tried(interpreters, runtime, f"x = 1\n{ending}")
    assert found["error"]["type"] == "code_failed"


async def test_names_that_the_code_takes_are_its_own(interpreters: Interpreters, runtime: str) -> None:
    code = "json = len = str = None\ndef dumps(x): return 'mine'\ndef execute(query, limit): return [query]"
    assert (await run(interpreters, runtime, code))["data"]["result"] == ["x"]


async def test_sandboxes_of_many_calls_do_not_mix(interpreters: Interpreters, runtime: str) -> None:
    code = "def execute(query, limit): return query"
    found = await asyncio.gather(*(run(interpreters, runtime, code, query=str(n)) for n in range(20)))
    assert [one["data"]["result"] for one in found] == [str(n) for n in range(20)]


async def test_a_cancelled_call_ends_and_gives_its_place_to_the_next(interpreters: Interpreters, runtime: str) -> None:
    for _ in range(3):
        code = "def execute(query, limit):\n    while True: pass"
        task = asyncio.create_task(run(interpreters, runtime, code, timeout_seconds=50))
        await asyncio.sleep(0.3)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
    started = time.monotonic()
    assert (await run(interpreters, runtime, "def execute(query, limit): return 1"))["ok"]
    assert time.monotonic() - started < 20


def _descendants(pid: int) -> list[int]:
    numbers = [int(one.name) for one in Path("/proc").iterdir() if one.name.isdigit()]
    children = [one for one in numbers if _parent(one) == pid]
    return [*children, *(below for child in children for below in _descendants(child))]


@pytest.mark.skipif(sys.platform != "linux", reason="it looks for processes in /proc")
async def test_a_sandbox_that_dies_is_one_error(own_interpreters: Interpreters, runtime: str) -> None:
    before = set(_descendants(os.getpid()))
    assert (await run(own_interpreters, runtime, "def execute(query, limit): return 1"))["ok"]
    code = "def execute(query, limit):\n    while True: pass"
    task = asyncio.create_task(run(own_interpreters, runtime, code, timeout_seconds=50))
    await asyncio.sleep(0.5)
    for pid in set(_descendants(os.getpid())) - before:
        os.kill(pid, signal.SIGKILL)
    found = await task
    assert found["error"]["type"] == "code_stopped"
    assert (await run(own_interpreters, runtime, "def execute(query, limit): return 1"))["ok"]


def _gone(pids: set[int]) -> bool:
    until = time.monotonic() + 10
    while pids & set(_descendants(os.getpid())) and time.monotonic() < until:
        time.sleep(0.05)
    return not pids & set(_descendants(os.getpid()))


@pytest.mark.skipif(sys.platform != "linux", reason="it looks for processes in /proc")
async def test_nothing_is_left_behind(runtime: str) -> None:
    before = set(_descendants(os.getpid()))
    async with Interpreters(cpython=True) as opened:
        assert (await run(opened, runtime, "def execute(query, limit): return 1"))["ok"]
        started = set(_descendants(os.getpid())) - before
        assert started
    assert await asyncio.to_thread(_gone, started)


@confined
async def test_a_crash_of_cpython_is_one_error(interpreters: Interpreters) -> None:
    for body in (
        "import ctypes\nctypes.string_at(0)",
        "import os\nos._exit(0)",
        "import os\nos.abort()",
        "import sys\nsys.setrecursionlimit(10**9)\ndef f(): return f()\nreturn f()",
    ):
        found = await tried(interpreters, "cpython", body)
        assert not found["ok"], body


def test_a_schema_may_say_nothing_of_an_argument() -> None:
    made = {"runtime": "python", "code": "def execute(a): return a"}
    check(made, {"properties": {"a": True}, "required": ["a"]})
    with pytest.raises(ToolInvalid, match="needs `a`, which a call may leave out"):
        check(made, {"properties": {"a": True}})


@confined
async def test_a_forged_answer_is_only_an_answer(interpreters: Interpreters) -> None:
    writing = (
        "import os, struct\nfor fd in range(3, 64):\n    try: os.write(fd, {})\n    except OSError: pass\nos._exit(0)"
    )
    for forged, expected in (
        ("struct.pack('!I', 2**31) + b'x'", "code_stopped"),
        ("struct.pack('!I', 2) + b'[]'", "code_stopped"),
        ("struct.pack('!I', 4) + b'null'", "code_stopped"),
        ("struct.pack('!I', 100) + b'{'", "code_stopped"),
        ("struct.pack('!I', 12) + b'{\"result\":1}'", "code_stopped"),
        ("struct.pack('!I', 100000) + b'[' * 100000", "code_stopped"),
        ('struct.pack(\'!I\', 27) + b\'{"result":"x","printed":""}\'', "code_failed"),
    ):
        found = await tried(interpreters, "cpython", writing.format(forged))
        assert found["error"]["type"] == expected, (forged, found)
    endless = 'struct.pack(\'!I\', 31) + b\'{"result":"1e999","printed":""}\''
    assert (await tried(interpreters, "cpython", writing.format(endless)))["data"]["result"] is None


@confined
async def test_cpython_has_its_library(interpreters: Interpreters) -> None:
    body = "import statistics, decimal, zoneinfo, csv, hashlib\nreturn statistics.mean([1, 2])"
    assert (await tried(interpreters, "cpython", body))["data"]["result"] == 1.5
    body = "import numpy\nreturn float(numpy.arange(5).sum())"
    found = await tried(interpreters, "cpython", body, memory_mb=1_000, timeout_seconds=30)
    assert found["data"]["result"] == 10


async def test_cpython_is_for_whoever_runs_longthread_to_allow() -> None:
    async with Interpreters() as opened:
        found = await run(opened, "cpython", "def execute(query, limit): return 1")
    assert found["error"]["type"] == "code_unavailable"
    assert "LONGTHREAD_CODE_CPYTHON" in found["error"]["message"]


async def test_where_it_cannot_be_confined_cpython_is_refused(
    interpreters: Interpreters, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "platform", "darwin")
    found = await run(interpreters, "cpython", "def execute(query, limit): return 1")
    assert found["error"]["type"] == "code_unavailable"
    assert "Linux on x86-64" in found["error"]["message"]


@pytest.mark.parametrize(
    ("implementation", "said"),
    [
        ({}, "`code` is missing"),
        ({"code": "def execute(query, limit:"}, "is no Python"),
        ({"code": "x = 1"}, "does not define a function"),
        ({"code": "execute = 5"}, "does not define a function"),
        ({"code": "async def execute(query, limit): pass"}, "does not define a function"),
        ({"code": "def execute(limit): pass"}, "does not take `query`"),
        ({"code": "def execute(query, limit, more): pass"}, "needs `more`"),
        ({"code": "def execute(query, limit, *, more): pass"}, "needs `more`"),
        ({"code": "def execute(query, /, limit): pass"}, "by place alone"),
        ({"code": "def execute(query, limit): pass", "runtime": "node"}, "`runtime` is 'node'"),
        ({"code": "def execute(query, limit): pass", "memory_mb": 0}, "`memory_mb`"),
        ({"code": "def execute(query, limit): pass", "timeout_seconds": 1000}, "`timeout_seconds`"),
        ({"code": "def execute(query, limit): pass" + "#" * 100_000}, "more than 100000"),
        ({"code": "x = " + "(" * 5000 + ")" * 5000}, "is no Python"),
        ({"code": "def execute(query, limit): pass\0"}, "is no Python"),
    ],
)
def test_what_cannot_be_used_is_refused_when_it_is_applied(implementation: dict[str, Any], said: str) -> None:
    with pytest.raises(ToolInvalid) as caught:
        check(implementation, PARAMETERS)
    assert said in str(caught.value)
