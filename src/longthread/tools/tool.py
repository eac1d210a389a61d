"""A tool that a model may call: its observation, its definition, and its name as a model can write it."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from longthread.errors import LongthreadError, ToolInvalid

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


def make_success(data: Mapping[str, Any]) -> Observation:
    """The observation of a successful call."""
    return {"ok": True, "data": dict(data)}


def as_observation(work: Work) -> Callable[[Mapping[str, Any]], Awaitable[Observation]]:
    """A tool's `call` from work that returns data or raises LongthreadError."""

    async def call(arguments: Mapping[str, Any]) -> Observation:
        try:
            return make_success(await work(arguments))
        except LongthreadError as error:
            return make_failure(error)

    return call


def make_failure(error: LongthreadError) -> Observation:
    """The observation of a failed call: the error's code and message."""
    return {"ok": False, "error": {"type": error.code, "message": str(error)}}


@dataclass(frozen=True, slots=True)
class DefinedTool:
    """A definition of document 002, under the name by which a model calls the tool. `parameters` is a JSON Schema."""

    name: str
    description: str | None
    parameters: Mapping[str, Any]
    implementation: Mapping[str, Any]


class ImplementationFields:
    """Reads and checks the fields of an implementation. Raises ToolInvalid, which names the field."""

    def __init__(self, implementation: Mapping[str, Any], kind: str, known: Iterable[str]) -> None:
        self._fields = implementation
        allowed = {"type", "approve", *known}
        unknown = sorted(str(name) for name in implementation if name not in allowed)
        if unknown:
            raise ToolInvalid(
                problem=f"`{unknown[0]}` is no field of a tool of type {kind}: {', '.join(sorted(allowed))}."
            )
        if implementation.get("type", kind) != kind:
            raise ToolInvalid(problem=f"its `type` is not {kind}.")
        self.truth("approve")

    def text(self, name: str, what: str, default: str | None = None, longest: int = 10_000) -> str:
        """A text that is not empty."""
        value = self._fields.get(name, default)
        if not isinstance(value, str) or not value.strip():
            raise ToolInvalid(problem=f"`{name}` is missing: {what}.")
        if len(value) > longest:
            raise ToolInvalid(problem=f"`{name}` has more than {longest} characters.")
        return value

    def truth(self, name: str) -> bool:
        """True or false, by default false."""
        value = self._fields.get(name, False)
        if not isinstance(value, bool):
            raise ToolInvalid(problem=f"`{name}` is neither true nor false.")
        return value

    def whole(self, name: str, default: int, most: int) -> int:
        """A whole number from 1 to `most`."""
        value = self._fields.get(name, default)
        if type(value) is not int or not 1 <= value <= most:
            raise ToolInvalid(problem=f"`{name}` is not a whole number from 1 to {most}.")
        return value

    def seconds(self, name: str, default: float, most: float) -> float:
        """A time above 0."""
        value = self._fields.get(name, default)
        if not isinstance(value, int | float) or isinstance(value, bool) or not 0 < value <= most:
            raise ToolInvalid(problem=f"`{name}` is not a number of seconds above 0 and at most {most:g}.")
        return float(value)

    def texts(self, name: str) -> tuple[str, ...]:
        """A list of texts, by default none."""
        value = self._fields.get(name, [])
        if not isinstance(value, list | tuple) or not all(isinstance(one, str) and one.strip() for one in value):
            raise ToolInvalid(problem=f"`{name}` is not a list of texts.")
        return tuple(value)

    def texts_by_name(self, name: str) -> dict[str, str]:
        """An object of texts, by default empty."""
        value = self._fields.get(name, {})
        if not isinstance(value, Mapping) or not all(isinstance(one, str) for pair in value.items() for one in pair):
            raise ToolInvalid(problem=f"`{name}` is not an object of texts.")
        return dict(value)


_CHINESE = re.compile(r"[\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U000323af]+")


def spell_in_pinyin(name: str) -> str:
    """Converts Chinese in a name to pinyin: `研究员` is `yan_jiu_yuan`."""
    return _CHINESE.sub(_in_pinyin, name)


def _in_pinyin(found: re.Match[str]) -> str:
    from pypinyin import lazy_pinyin  # slow to load, and rarely needed

    before, behind = found.string[: found.start()][-1:], found.string[found.end() :][:1]
    pinyin = "_".join(lazy_pinyin(found[0]))
    return f"{'_' if before.isalnum() else ''}{pinyin}{'_' if behind.isalnum() else ''}"
