"""The room for the messages of a model call, and what is cut if there is none."""

from __future__ import annotations

from dataclasses import replace
from math import ceil
from typing import Any

from longthread.runs.run_context import RunContext
from longthread.tools.tool import Tool
from longthread.view.budget import LEAST, message_budget, too_small
from longthread.view.tokens import estimate

_SHORT = 80
"""Characters of a tool's description in a window that is too small for more."""
_LEAST_PROMPT = 128
"""Tokens of instructions in any window: fewer would be useless."""
_ROUNDED = 4
"""Tokens that rounding may take, where estimates are raised by a factor."""


def budget_of(context: RunContext) -> int:
    """Return the estimated tokens that the messages of the next call may have.

    The system prompt stays whole as long as they have room beside it. Then the descriptions of the tools are cut first,
    and the middle of the instructions next. Raises WindowTooSmall: even so there is no room.
    """
    if not context.system_prompt or _room(context) < LEAST:
        _make_room(context)
    return _room(context)


def _make_room(context: RunContext) -> None:
    context.system_prompt = context.prompt()
    if _room(context) < LEAST and not context.in_short:
        context.in_short = True
        context.tools = {name: _in_short(tool) for name, tool in context.tools.items()}
    if (room := _room(context)) < LEAST:
        most = max(_LEAST_PROMPT, estimate(context.system_prompt) + room - LEAST - _ROUNDED)
        context.system_prompt, context.cut = context.prompt(most=most), True
    if (room := _room(context)) < LEAST:
        fixed = int(context.fixed_tokens * context.factor)
        raise too_small(context.run.model, context.tokens, output=context.output, fixed=fixed)


def _room(context: RunContext) -> int:
    fixed, least = int(context.fixed_tokens * context.factor), ceil(LEAST * context.factor)
    budget = message_budget(context.tokens, output=context.output, fixed=fixed, least=least)
    return int(budget / context.factor)


def _in_short(tool: Tool) -> Tool:
    """Return the tool with the beginning of its description; parameters keep only their names and types."""
    about = tool.description if len(tool.description) <= _SHORT else f"{tool.description[: _SHORT - 1]}…"
    return replace(tool, description=about, parameters=_undescribed(tool.parameters))


def _undescribed(schema: Any) -> Any:
    if isinstance(schema, list):
        return [_undescribed(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    is_text = isinstance(schema.get("description"), str)  # else it is a parameter of that name
    return {key: _undescribed(value) for key, value in schema.items() if key != "description" or not is_text}
