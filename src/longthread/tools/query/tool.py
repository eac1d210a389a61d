"""Query tools, from their definition to what they answer."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Protocol

from longthread.errors import LongthreadError, SqlRefused, ToolInvalid
from longthread.tools.analysis.guard import Guard
from longthread.tools.analysis.source import Source
from longthread.tools.analysis.statement import prepared
from longthread.tools.arguments import Arguments
from longthread.tools.query.template import Template, compiled
from longthread.tools.tool import Observation, Tool, failed, succeeded

DIALECTS = ("postgresql", "sqlite", "duckdb")
"""The dialects of sources, the one first that a template's author has most likely in mind."""
_KNOWN = frozenset({"type", "database", "sql_template", "max_rows", "approve"})
_LONGEST = 10_000
"""Characters of a template: with its values it may have twice as many."""

Sources = Callable[[str], Awaitable[Source]]
"""Opens a source by its name; whoever gives this closes it. Raises SourceError."""


class Definition(Protocol):
    """What is read of a tool's definition."""

    @property
    def name(self) -> str: ...
    @property
    def description(self) -> str: ...
    @property
    def parameters(self) -> Mapping[str, Any]: ...
    @property
    def implementation(self) -> Mapping[str, Any]: ...


def check(implementation: Mapping[str, Any], parameters: Mapping[str, Any], *, dialect: str | None = None) -> None:
    """Whether such a query tool can be used, in the dialect of its source or, where that is not known, in any.

    Raises:
        ToolInvalid: it names the field and what to write instead.
    """
    _Fields(implementation).compiled(Arguments(parameters), dialect)


def build(definition: Definition, sources: Sources) -> Tool:
    """The tool. Raises ToolInvalid."""
    fields = _Fields(definition.implementation, definition.name)
    arguments = Arguments(definition.parameters, tool=definition.name)
    fields.compiled(arguments, None)
    templates: dict[str, Template] = {}

    async def call(given: Mapping[str, Any]) -> Observation:
        try:
            checked = arguments.checked(given)
            source = await sources(fields.database)
            if source.dialect not in templates:
                templates[source.dialect] = fields.compiled(arguments, source.dialect)
            return succeeded(await _answer(source, templates[source.dialect], checked, fields.rows))
        except LongthreadError as error:
            return failed(error)

    return Tool(definition.name, definition.description, definition.parameters, call, retry_safe=True)


async def _answer(source: Source, template: Template, arguments: Mapping[str, Any], rows: int | None) -> dict[str, Any]:
    values = template.values(arguments)
    schema = await source.schema()
    # What is judged says the values, since some of them say how much is built; what runs has them bound.
    sql, run = await asyncio.to_thread(prepared, template.said(values), source, schema, template.run)
    limits = source.limits
    keep = min(limits.rows, rows or limits.rows)
    started = time.monotonic()
    result = await source.work(
        lambda connection: connection.fetch(run, limits, keep=keep, cell=limits.cell_characters, parameters=values)
    )
    return {"sql": sql, **result.observed(limits, keep), "elapsed_ms": round((time.monotonic() - started) * 1000)}


class _Fields:
    """The fields of an implementation. Raises ToolInvalid."""

    def __init__(self, implementation: Mapping[str, Any], tool: str = "") -> None:
        self._tool = tool
        unknown = sorted(str(name) for name in implementation if name not in _KNOWN)
        if unknown:
            raise self._invalid(f"`{unknown[0]}` is no field of a query tool: {', '.join(sorted(_KNOWN))}.")
        if implementation.get("type", "query") != "query":
            raise self._invalid("its `type` is not query.")
        self.database = self._text(implementation, "database", "the name of a source")
        self.sql = self._text(implementation, "sql_template", "one SELECT")
        if len(self.sql) > _LONGEST:
            raise self._invalid(f"its `sql_template` has more than {_LONGEST} characters.")
        self.rows: int | None = implementation.get("max_rows")
        if self.rows is not None and (type(self.rows) is not int or self.rows < 1):
            raise self._invalid("`max_rows` is not a whole number from 1 on.")

    def compiled(self, arguments: Arguments, dialect: str | None) -> Template:
        """The template for a dialect, or for the first in which it can be read."""
        first: ToolInvalid | None = None
        for one in (dialect,) if dialect else DIALECTS:
            try:
                template = compiled(self.sql, arguments.properties, one)
                Guard(one).judge(template.run)
                return template
            except SqlRefused as error:
                first = first or self._invalid(f"its `sql_template` would not be run: {error}")
            except ToolInvalid as error:
                first = first or self._invalid(error.details["problem"])
        raise first or self._invalid("it has no dialect.")

    def _text(self, implementation: Mapping[str, Any], name: str, what: str) -> str:
        value = implementation.get(name)
        if not isinstance(value, str) or not value.strip():
            raise self._invalid(f"`{name}` is missing: {what}.")
        return value

    def _invalid(self, problem: str) -> ToolInvalid:
        return ToolInvalid(tool=self._tool, problem=problem)
