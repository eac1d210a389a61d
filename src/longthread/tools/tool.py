"""A tool that a model may call, and its observation."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any

from longthread.errors import LongthreadError

Observation = dict[str, Any]
"""What a tool returned, JSON-safe: `{"ok": true, "data": …}` or `{"ok": false, "error": {"type", "message"}}`."""
Work = Callable[[Mapping[str, Any]], Awaitable[Mapping[str, Any]]]


@dataclass(frozen=True)
class Tool:
    """One tool.

    `parameters` is the JSON Schema of its arguments. `call` returns an observation, also for a LongthreadError. A
    `retry_safe` call that was in flight when a process died may be repeated. `approve`: a person must approve each
    call; a function decides for the next one. `answer`, if any, replaces `call` and also gets the call's id.
    `definition` is the id of its definition in the catalog, `category` a value of document 000's `tool_categories`.
    A tool that is not `offered`, always or now, is in no request; a call of it is answered all the same.
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
    offered: bool | Callable[[], bool] = True

    @property
    def needs_approval(self) -> bool:
        """Whether the next call needs approval."""
        return self.approve() if callable(self.approve) else self.approve

    @property
    def is_offered(self) -> bool:
        """Whether the next request lists it."""
        return self.offered() if callable(self.offered) else self.offered

    async def run(self, args: Mapping[str, Any], call_id: str) -> Observation:
        """Runs a model's call of this id."""
        return await (self.call(args) if self.answer is None else self.answer(args, call_id))


def succeeded(data: Mapping[str, Any]) -> Observation:
    """The observation of a successful call."""
    return {"ok": True, "data": dict(data)}


def as_observation(work: Work) -> Callable[[Mapping[str, Any]], Awaitable[Observation]]:
    """A tool's `call` from work that returns data or raises LongthreadError."""

    async def call(arguments: Mapping[str, Any]) -> Observation:
        try:
            return succeeded(await work(arguments))
        except LongthreadError as error:
            return failed(error)

    return call


def failed(error: LongthreadError) -> Observation:
    """The observation of a failed call: the error's code and message."""
    return {"ok": False, "error": {"type": error.code, "message": str(error)}}
