"""Builds and calls query tools."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping
from typing import Any

from longthread.errors import LongthreadError, SqlRefused, ToolInvalid
from longthread.tools.analysis.dialects.dialect import list_sources
from longthread.tools.analysis.guard import Guard
from longthread.tools.analysis.source import Source
from longthread.tools.arguments import Arguments, add_tool_name
from longthread.tools.query import Template, compile_template
from longthread.tools.tool import DefinedTool, ImplementationFields, Observation, Tool, make_failure, make_success
from longthread.tools.tool_type import Bilingual, FormField, SourcesByName, ToolParts, ToolType

_MOST_ROWS = 10_000
_LONGEST = 10_000
"""Characters of a template without its values."""


def check(implementation: Mapping[str, Any], parameters: Mapping[str, Any], *, dialect: str | None = None) -> None:
    """Checks an implementation in the dialect of its source, or in any. Raises ToolInvalid."""
    _Query(implementation).compile_template(Arguments(parameters), dialect)


def build(definition: DefinedTool, sources: SourcesByName) -> Tool:
    """Builds the tool. Raises ToolInvalid."""
    query = _Query(definition.implementation)
    arguments = Arguments(definition.parameters, tool=definition.name)
    query.compile_template(arguments, None)
    templates: dict[str, Template] = {}

    async def call(given: Mapping[str, Any]) -> Observation:
        try:
            checked = arguments.validate(given)
            source = await sources(query.database)
            if source.dialect not in templates:
                templates[source.dialect] = query.compile_template(arguments, source.dialect)
            return make_success(await _answer(source, templates[source.dialect], checked, query.rows))
        except LongthreadError as error:
            return make_failure(add_tool_name(error, definition.name))

    return Tool(definition.name, definition.description or "", definition.parameters, call, retry_safe=True)


async def _answer(source: Source, template: Template, arguments: Mapping[str, Any], rows: int) -> dict[str, Any]:
    statement = template.statement(arguments)
    schema = await source.schema()
    # The guard sees the values, as some decide how much is built; what runs has them bound.
    sql, run = await asyncio.to_thread(source.prepare, statement.shown, schema, statement.run)
    limits = source.limits
    keep = min(limits.rows, rows)
    started = time.monotonic()
    result = await source.work(
        lambda connection: connection.fetch(
            run, limits, keep=keep, cell=limits.cell_characters, parameters=statement.values
        )
    )
    return {
        "sql": sql,
        **result.build_observation(limits, keep),
        "elapsed_ms": round((time.monotonic() - started) * 1000),
    }


class _Query:
    """A parsed implementation. Raises ToolInvalid."""

    def __init__(self, implementation: Mapping[str, Any]) -> None:
        fields = ImplementationFields(implementation, "query", ("database", "sql_template", "max_rows"))
        self.database = fields.text("database", "the name of a source")
        self.sql = fields.text("sql_template", "one SELECT", longest=_LONGEST)
        self.rows = fields.whole("max_rows", _MOST_ROWS, _MOST_ROWS)

    def compile_template(self, arguments: Arguments, dialect: str | None) -> Template:
        """The template for a dialect, or for the first that parses it."""
        first: ToolInvalid | None = None
        for one in (dialect,) if dialect else list_sources():
            try:
                template = compile_template(self.sql, arguments.properties, one)
                # Unknown functions are checked once there is a source.
                Guard(one).judge(template.example, functions=template.functions)
                return template
            except SqlRefused as error:
                first = first or ToolInvalid(problem=f"its `sql_template` would not be run: {error}")
            except ToolInvalid as error:
                first = first or error
        raise first or ToolInvalid(problem="it has no dialect.")


async def _build(definition: DefinedTool, parts: ToolParts) -> list[Tool]:
    return [build(definition, parts.sources)]


TYPE = ToolType(
    Bilingual("Query", "查询"),
    check,
    _build,
    about=Bilingual("an SQL template on a source", "在数据源上执行 SQL 模板"),
    fields=(
        FormField(
            "database",
            "source",
            Bilingual("Source", "数据源"),
            hint=Bilingual(
                "The database that it queries, whichever one a question names.",
                "它查询的数据库，与提问时指定的数据源无关。",
            ),
            none=Bilingual("Choose a source", "选择数据源"),
        ),
        FormField(
            "sql_template",
            "sql",
            Bilingual("SQL", "SQL"),
            hint=Bilingual(
                "One SELECT. Write {{name}} where an argument stands: it is bound, never pasted in.",
                "一条 SELECT。参数的位置写 {{name}}：值会被绑定，不会拼进 SQL。",
            ),
        ),
    ),
    more=Bilingual("Such as max_rows.", "例如 max_rows。"),
    category="database",
)
