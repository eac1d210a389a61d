"""Checks a tool's code without running it."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from longthread.errors import ToolInvalid
from longthread.tools.arguments import Arguments

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
