"""The interpreters of this process, by runtime."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from longthread.errors import CodeUnavailable
from longthread.tools.code.cpython import Cpython
from longthread.tools.code.monty import Monty
from longthread.tools.code.program import Bounds

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

    def named(self, runtime: str) -> Interpreter:
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
