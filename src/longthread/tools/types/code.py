"""Builds and calls code tools."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from typing import Any

from longthread.errors import CodeFailed, LongthreadError, ToolInvalid
from longthread.tools.arguments import Arguments
from longthread.tools.code.interpreters import LONGEST, RUNTIMES, Bounds, Interpreters, check_program
from longthread.tools.tool import DefinedTool, ImplementationFields, Observation, Tool, make_failure, make_success
from longthread.tools.tool_type import Bilingual, ToolParts, ToolType

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
