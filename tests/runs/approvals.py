"""An agent with a tool that a person decides about, and one that nobody need: both say what they were called with."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import pytest

from longthread import Catalog
from longthread.store.driver import Driver
from longthread.tools.tool import DefinedTool, Observation, Tool, make_success
from longthread.tools.tool_type import ToolParts, ToolType
from longthread.tools.types import query

Sent = list[tuple[str, dict[str, Any]]]
_PARAMETERS = {
    "type": "object",
    "properties": {"to": {"type": "string"}, "copies": {"type": "integer", "minimum": 1, "default": 1}},
    "required": ["to"],
}


def _tool(name: str, **implementation: Any) -> dict[str, Any]:
    schema = {"name": name, "description": f"Does {name}.", "parameters": _PARAMETERS}
    body = {"database": "shop", "sql_template": "SELECT 1", **implementation}
    return {"kind": "tool", "name": name, "type": "query", "schema": schema, "implementation": body}


TOOLS = (_tool("send_mail", approve=True), _tool("look_up"))
DEFINITIONS: tuple[dict[str, Any], ...] = (
    {"kind": "source", "name": "shop", "address": "demo"},
    *TOOLS,
    {"kind": "skill", "name": "mail", "tools": [{"tool": "send_mail", "required": True}, {"tool": "look_up"}]},
    {"kind": "agent", "name": "clerk", "system_prompt": "You are a clerk.", "skills": ["mail"]},
)


async def define(store: Driver) -> None:
    """The agent `clerk` with its tools `send_mail`, which is approved, and `look_up`, which need not be."""
    await Catalog(store).apply(DEFINITIONS)


def type_that_tells(made: Callable[[str, dict[str, Any]], None]) -> ToolType:
    """Query tools that tell what they are called with, in place of what they would do."""

    def build(definition: DefinedTool, _: ToolParts) -> Tool:
        async def call(given: Mapping[str, Any]) -> Observation:
            made(definition.name, dict(given))
            return make_success({"done": definition.name, **given})

        return Tool(definition.name, definition.description or "", definition.parameters, call)

    async def built(definition: DefinedTool, workshop: ToolParts) -> list[Tool]:
        return [build(definition, workshop)]

    return replace(query.TYPE, build=built)


@pytest.fixture
def sent(monkeypatch: pytest.MonkeyPatch) -> Sent:
    """The calls that were made."""
    calls: Sent = []
    monkeypatch.setattr(query, "TYPE", type_that_tells(lambda name, args: calls.append((name, args))))
    return calls
