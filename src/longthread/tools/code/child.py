"""Runs a tool's code once, in a confined CPython process."""

from __future__ import annotations

import io
import json
import os
import socket
import struct
import sys
import traceback
from typing import Any

from longthread.tools.analysis.isolation.wire import WireMessage, receive
from longthread.tools.code.confinement import confine

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
