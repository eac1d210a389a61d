"""A tool: something a model may ask to be done, and the observation it gets back."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any

from longthread.errors import LongthreadError

Observation = dict[str, Any]
"""What a tool returned, JSON-safe: `{"ok": true, "data": …}` or `{"ok": false, "error": {"type", "message"}}`."""


@dataclass(frozen=True)
class Tool:
    """One tool.

    `parameters` is the JSON Schema of its arguments. `call` returns an observation and raises nothing but
    cancellation and defects; a `LongthreadError` inside it becomes an observation. `retry_safe` says that a call that
    was in flight when a process died may simply be made again; `approve` that a person decides about each call before
    it is made, or is what tells that of the next call. `answer`, where there is one, is called in the place of `call`,
    and told the call's id too. `definition` is the id of the one in the catalog that makes it. `category` is what
    document 000's `tool_categories` call its kind.
    """

    name: str
    description: str
    parameters: Mapping[str, Any]
    call: Callable[[Mapping[str, Any]], Awaitable[Observation]]
    retry_safe: bool = False
    approve: bool | Callable[[], bool] = False
    answer: Callable[[Mapping[str, Any], str], Awaitable[Observation]] | None = None
    definition: str | None = None
    category: str = ""

    @property
    def needs_approval(self) -> bool:
        """Whether a person decides about a call that is to be made now."""
        return self.approve() if callable(self.approve) else self.approve

    async def run(self, args: Mapping[str, Any], call_id: str) -> Observation:
        """Make a call that a model has made under this id."""
        return await (self.call(args) if self.answer is None else self.answer(args, call_id))


def succeeded(data: Mapping[str, Any]) -> Observation:
    """The observation of a call that worked."""
    return {"ok": True, "data": dict(data)}


def failed(error: LongthreadError) -> Observation:
    """The observation of a call that did not: the error's code and its message, which says what to do."""
    return {"ok": False, "error": {"type": error.code, "message": str(error)}}
