"""Builds and calls code tools, in the interpreter of their runtime, and checks a program before it runs.

Monty, the default, has no files, environment, sockets or processes. It runs in processes of its own, which are
replaced when they crash or hang. Arguments and result are JSON text, which the code's side encodes: a list that has
one list a million times would become huge here.

The runtime `cpython` is full Python in a confined Linux process. A setting must allow it.
"""

from __future__ import annotations

import ast
import asyncio
import json
import secrets
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from longthread.errors import CodeFailed, CodeStopped, CodeUnavailable, ExtraMissing, LongthreadError, ToolInvalid
from longthread.tools.analysis.isolation.forkserver import ForkServer
from longthread.tools.analysis.isolation.wire import TooLarge, WireMessage, receive, send
from longthread.tools.arguments import Arguments
from longthread.tools.confinement import lacking
from longthread.tools.tool import DefinedTool, ImplementationFields, Observation, Tool, make_failure, make_success
from longthread.tools.tool_type import Bilingual, ToolParts, ToolType

FUNCTION = "execute"
LONGEST = 100_000
"""Characters of a tool's code."""


@dataclass(frozen=True)
class Bounds:
    """The limits of one run."""

    seconds: float
    memory_mb: int
    characters: int = 64_000
    """Characters of its result as JSON."""
    printed: int = 64_000
    """Bytes of its output."""


def check_program(code: str, arguments: Arguments) -> None:
    """Raises ToolInvalid: a syntax error, no function `execute`, or one with other parameters."""
    try:
        tree = ast.parse(code)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        where = f" (line {error.lineno})" if isinstance(error, SyntaxError) else ""
        raise ToolInvalid(problem=f"its `code` is no Python: {str(error)[:200]}{where}.") from error
    found = [node for node in tree.body if getattr(node, "name", None) == FUNCTION]
    if not found or not isinstance(found[-1], ast.FunctionDef):
        raise ToolInvalid(problem=f"its `code` does not define a function: def {FUNCTION}(…).")
    _check_signature(found[-1].args, arguments)


def _check_signature(signature: ast.arguments, arguments: Arguments) -> None:
    if signature.posonlyargs:
        raise ToolInvalid(problem=f"{FUNCTION} has arguments that are given by place alone (before the /). Drop the /.")
    given: Mapping[str, Any] = arguments.properties
    taken = [one.arg for one in (*signature.args, *signature.kwonlyargs)]
    needed = {one.arg for one in signature.args[: len(signature.args) - len(signature.defaults)]}
    needed |= {
        one.arg for one, default in zip(signature.kwonlyargs, signature.kw_defaults, strict=True) if default is None
    }
    for name in given:
        if name not in taken and signature.kwarg is None:
            raise ToolInvalid(problem=f"{FUNCTION} does not take `{name}`, which the schema has. Add it, or **more.")
    for name in taken:
        about = given.get(name)
        sure = name in arguments.required or (isinstance(about, Mapping) and "default" in about)
        if name in needed and not sure:
            problem = f"{FUNCTION} needs `{name}`, which a call may leave out. Require it in the schema, or default it."
            raise ToolInvalid(problem=problem)


_START = 5.0
"""Seconds for the start of the process, on top of the code's own limit."""
_MODULE = "longthread.tools.confinement"
_MESSAGE_CHARS = 1_000


class Cpython:
    """Forks one process for each run, and runs at most `processes` at once. `close` ends them."""

    def __init__(self, processes: int = 2) -> None:
        self._places = asyncio.Semaphore(processes)
        self._server = ForkServer(_MODULE)

    async def run(self, code: str, arguments: Mapping[str, Any], bounds: Bounds) -> tuple[str, str]:
        """Return the result as JSON text, cut after `bounds.characters`, and what was printed.

        Raises CodeFailed; CodeStopped: beyond its bounds, or its process died; CodeUnavailable: no confinement here.
        """
        reason = lacking()
        if reason is not None:
            raise CodeUnavailable(reason=f"the runtime cpython needs {reason}. Use `runtime: python`.")
        task = {
            "code": code,
            "arguments": dict(arguments),
            "seconds": bounds.seconds,
            "memory_mb": bounds.memory_mb,
            "characters": bounds.characters,
            "printed": bounds.printed,
        }
        async with self._places:
            started = time.monotonic()
            answer = await self._ask_server(task, bounds)
        if answer is None and time.monotonic() - started >= bounds.seconds:
            raise CodeStopped(reason=f"it takes longer than {bounds.seconds:g} s.")
        return _read(answer, bounds)

    async def close(self) -> None:
        """Ends the processes and their fork server."""
        await asyncio.to_thread(self._server.close)

    async def _ask_server(self, task: WireMessage, bounds: Bounds) -> WireMessage | None:
        # Six bytes write a character, in the worst case, and the frame has a few fields.
        run = _Run(self._server, task, 6 * (bounds.characters + bounds.printed) + 10_000)
        work = asyncio.ensure_future(asyncio.to_thread(run.run))
        work.add_done_callback(lambda done: done.cancelled() or done.exception())  # no warning where no task awaits it
        try:
            async with asyncio.timeout(bounds.seconds + _START):
                return await asyncio.shield(work)
        except TimeoutError:
            raise CodeStopped(reason=f"it takes longer than {bounds.seconds:g} s.") from None
        finally:
            if not work.done():
                await asyncio.shield(asyncio.to_thread(run.stop))
                await asyncio.wait({work})


class _Run:
    """One process, run by a thread. Another thread may stop it."""

    def __init__(self, server: ForkServer, task: WireMessage, most: int) -> None:
        self._server = server
        self._task = task
        self._most = most
        self._lock = threading.Lock()
        self._pid = 0
        self._stopped = False

    def run(self) -> WireMessage | None:
        """The answer of the process; None if it has ended or its answer is invalid. Raises WorkerFailed."""
        to, pid = self._server.fork()
        with to:
            with self._lock:
                self._pid = pid
                stopped = self._stopped
            try:
                if stopped:
                    return None
                send(to, self._task)
                return receive(to, self._most)
            except (OSError, TooLarge, ValueError, RecursionError):
                return None
            finally:
                self._server.kill(pid)

    def stop(self) -> None:
        """Kills the process, or cancels it before it starts."""
        with self._lock:
            self._stopped = True
            pid = self._pid
        if pid:
            self._server.kill(pid)


def _read(answer: WireMessage | None, bounds: Bounds) -> tuple[str, str]:
    """Validates an answer. The tool's code may have written it."""
    if isinstance(answer, dict):
        result, printed = answer.get("result"), answer.get("printed")
        if isinstance(result, str) and isinstance(printed, str):
            return result[: bounds.characters + 1], printed[: bounds.printed]
        if isinstance(answer.get("failed"), str):
            raise CodeFailed(reason=f"{answer['failed'][:_MESSAGE_CHARS]}.")
        if isinstance(answer.get("stopped"), str):
            raise CodeStopped(reason=f"{answer['stopped'][:_MESSAGE_CHARS]}.")
        if isinstance(answer.get("unconfined"), str):
            raise CodeUnavailable(reason=f"it could not be confined ({answer['unconfined'][:_MESSAGE_CHARS]}).")
    most = f"{bounds.seconds:g} s or {bounds.memory_mb} MB"
    raise CodeStopped(reason=f"its process ended: it may need more than {most}, or have crashed in {FUNCTION}.")


_WAIT = 30.0
"""Seconds to wait for one of the processes."""
_PROCESS_SECONDS = 90.0
_DEPTH = 400


class Monty:
    """A lazily started pool of processes. `close` ends it."""

    def __init__(self, processes: int = 2) -> None:
        self._processes = processes
        self._lock = asyncio.Lock()
        self._pool: Any = None

    async def run(self, code: str, arguments: Mapping[str, Any], bounds: Bounds) -> tuple[str, str]:
        """Return the result as JSON text, cut after `bounds.characters`, and what was printed.

        Raises CodeFailed; CodeStopped: beyond its bounds, or its process died; ExtraMissing.
        """
        monty = _monty()
        pool = await self._start_pool(monty)
        printed = monty.CollectString(max_bytes=bounds.printed)
        mark = f"_{secrets.token_hex(8)}"
        given = {f"{mark}a": json.dumps(dict(arguments))}
        try:
            async with pool.checkout(**_limits(bounds)) as session:
                out = await session.feed_run(_program(code, mark, bounds), inputs=given, print_callback=printed)
        except monty.MontyCrashedError as error:
            raise CodeStopped(reason=f"its process ended, after at most {bounds.seconds:g} s.") from error
        except monty.MontyError as error:
            raise _failure(error, bounds) from error
        except TimeoutError as error:
            raise CodeStopped(reason=f"no process for it was free within {_WAIT:g} s.") from error
        if not isinstance(out, str):
            raise CodeFailed(reason=f"{FUNCTION} returned nothing that can be read.")
        return out, printed.output

    async def close(self) -> None:
        """Ends the processes. A later run starts new ones."""
        async with self._lock:
            pool, self._pool = self._pool, None
        if pool is not None:
            await pool.__aexit__(None, None, None)

    async def _start_pool(self, monty: Any) -> Any:
        async with self._lock:
            if self._pool is None:
                pool = monty.AsyncMonty(
                    min_processes=1,
                    max_processes=self._processes,
                    checkout_timeout=_WAIT,
                    request_timeout=_PROCESS_SECONDS,
                )
                self._pool = await pool.__aenter__()
            return self._pool


def _monty() -> Any:
    try:
        import pydantic_monty
    except ImportError as error:
        raise ExtraMissing(what="A tool of type code", package="pydantic-monty", extra="code") from error
    return pydantic_monty


def _limits(bounds: Bounds) -> dict[str, Any]:
    limits = {
        "max_feed_duration_secs": bounds.seconds,
        "max_memory": bounds.memory_mb * 1_000_000,
        "max_recursion_depth": _DEPTH,
        "max_suspensions": 20,
        "max_total_sleep_secs": 0.001,
    }
    # No sleep: it would call back into this process.
    return {"limits": limits, "os_policy": {"sleep": "zero"}, "assert_message_annotations": False}


def _program(code: str, mark: str, bounds: Bounds) -> str:
    """The tool's code and its call, with names that the code cannot know."""
    return (
        f"{code}\nimport json as {mark}j\n"
        f"{mark}j.dumps({FUNCTION}(**{mark}j.loads({mark}a)), ensure_ascii=False)[:{bounds.characters + 1}]\n"
    )


def _failure(error: Any, bounds: Bounds) -> CodeFailed | CodeStopped:
    inner = error.exception()
    text = str(error)[:_MESSAGE_CHARS]
    if isinstance(inner, TimeoutError) and "limit exceeded" in text:
        return CodeStopped(reason=f"it takes longer than {bounds.seconds:g} s.")
    if isinstance(inner, MemoryError):
        kilobytes = bounds.printed // 1000
        return CodeStopped(reason=f"it needs more than {bounds.memory_mb} MB of memory, or prints over {kilobytes} kB.")
    frames = error.traceback() if hasattr(error, "traceback") else []
    where = f" (line {frames[-1].line})" if frames else ""
    return CodeFailed(reason=f"{text}{where}.")


RUNTIMES = ("python", "cpython")
"""`python` is Monty; `cpython` is full Python in a confined process, if a setting allows it."""


class Interpreter(Protocol):
    """Runs code."""

    async def run(self, code: str, arguments: Mapping[str, Any], bounds: Bounds) -> tuple[str, str]: ...
    async def close(self) -> None: ...


class Interpreters:
    """Keeps interpreter processes ready; one per process, as `async with`. `cpython`: LONGTHREAD_CODE_CPYTHON."""

    def __init__(self, *, cpython: bool = False) -> None:
        self._all: dict[str, Interpreter] = {"python": Monty()}
        if cpython:
            self._all["cpython"] = Cpython()

    async def __aenter__(self) -> Interpreters:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    def get_interpreter(self, runtime: str) -> Interpreter:
        """Raises CodeUnavailable: this runtime is not allowed."""
        found = self._all.get(runtime)
        if found is None:
            reason = (
                f"the runtime {runtime} is switched off. Whoever runs Longthread can set LONGTHREAD_CODE_CPYTHON=true."
            )
            raise CodeUnavailable(reason=reason)
        return found

    async def close(self) -> None:
        """Ends their processes."""
        for one in self._all.values():
            await one.close()


_SECONDS, _MOST_SECONDS = 5.0, 60.0
_MEMORY = {"python": 64, "cpython": 256}
_MOST_MEMORY = 2_048
_DEEPEST = 50
"""Levels of a result."""
_PRINTED = 4_000
"""Characters of output in an observation."""


def check(implementation: Mapping[str, Any], parameters: Mapping[str, Any]) -> None:
    """Checks an implementation without running it. Raises ToolInvalid."""
    _Code(implementation, Arguments(parameters))


def build(definition: DefinedTool, interpreters: Interpreters) -> Tool:
    """Builds the tool. Raises ToolInvalid."""
    arguments = Arguments(definition.parameters, tool=definition.name)
    code = _Code(definition.implementation, arguments)

    async def call(given: Mapping[str, Any]) -> Observation:
        started = time.monotonic()
        try:
            checked = arguments.validate(given)
            interpreter = interpreters.get_interpreter(code.runtime)
            text, printed = await interpreter.run(code.text, checked, code.bounds)
            data = _build_observation(text, printed, code.bounds)
        except LongthreadError as error:
            return make_failure(error)
        return make_success(data | {"elapsed_ms": round((time.monotonic() - started) * 1000)})

    # Code has no side effects, so it may run again.
    return Tool(definition.name, definition.description or "", definition.parameters, call, retry_safe=True)


class _Code:
    """A parsed implementation. Raises ToolInvalid."""

    def __init__(self, implementation: Mapping[str, Any], arguments: Arguments) -> None:
        fields = ImplementationFields(implementation, "code", ("runtime", "code", "timeout_seconds", "memory_mb"))
        self.runtime = fields.text("runtime", "python or cpython", default="python")
        if self.runtime not in RUNTIMES:
            raise ToolInvalid(problem=f"`runtime` is {self.runtime[:40]!r}: {' or '.join(RUNTIMES)}.")
        self.text = fields.text("code", "a text with def execute(…)", longest=LONGEST)
        seconds = fields.seconds("timeout_seconds", _SECONDS, _MOST_SECONDS)
        self.bounds = Bounds(seconds, fields.whole("memory_mb", _MEMORY[self.runtime], _MOST_MEMORY))
        check_program(self.text, arguments)


def _build_observation(text: str, printed: str, bounds: Bounds) -> dict[str, Any]:
    # A lone surrogate cannot be stored.
    text = text.encode("utf-8", "replace").decode("utf-8")
    data: dict[str, Any] = {}
    if len(text) > bounds.characters:
        data["result"] = text[: bounds.characters]
        data["notes"] = [f"The result is longer than {bounds.characters} characters; this is how its JSON begins."]
    else:
        data["result"] = _parse_result(text)
    if printed:
        clean = printed.encode("utf-8", "replace").decode("utf-8")
        data["printed"] = clean if len(clean) <= _PRINTED else f"{clean[:_PRINTED]}… ({len(clean)} characters)"
    return data


def _parse_result(text: str) -> Any:
    """Parses the result; NaN and Infinity become null."""
    try:
        value = json.loads(text, parse_constant=lambda _: None)
        written = json.dumps(value, ensure_ascii=False).encode("utf-8", "replace").decode()
        if _is_deeper(value, _DEEPEST):
            raise CodeFailed(reason=f"its result is nested more than {_DEEPEST} levels deep.")
        return json.loads(written, parse_constant=lambda _: None)  # such as 1e999
    except (ValueError, RecursionError) as error:
        raise CodeFailed(reason="its result is no JSON, or is nested too deeply.") from error


def _is_deeper(value: Any, most: int) -> bool:
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return any(most == 0 or _is_deeper(one, most - 1) for one in inner)


async def _build(definition: DefinedTool, parts: ToolParts) -> list[Tool]:
    return [build(definition, parts.interpreters)]


TYPE = ToolType(Bilingual("Code", "代码"), check, _build, power=lambda _: "code")
