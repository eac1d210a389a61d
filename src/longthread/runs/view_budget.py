"""The room for the messages of a model call, and what is cut if there is none."""

from __future__ import annotations

from dataclasses import replace
from math import ceil
from typing import TYPE_CHECKING, Any

from longthread.llm.providers import window_setting
from longthread.runs.run_context import RunContext
from longthread.tools.tool import Tool
from longthread.view.budget import LEAST, SAFETY, USUAL_LEAST, free_tokens, least_of, reply_reserve, too_small
from longthread.view.tokens import estimate

if TYPE_CHECKING:
    from longthread.tools.analysis.source import Source  # which needs sqlglot

_TABLES, _USUAL_REPLY, _COMMON = 3, 512, 8_192
"""Tables that a question needs, at most the widest ones; tokens of a usual reply; a window that models mostly have."""
_SHORT = 80
"""Characters of a tool's description in a window that is too small for more."""
_LEAST_PROMPT = 128
"""Tokens of instructions in any window: fewer would be useless."""
_ROUNDED = 4
"""Tokens that rounding may take, where estimates are raised by a factor."""


def budget_of(context: RunContext) -> int:
    """Return the estimated tokens that the messages of the next call may have.

    In a small window the descriptions of the tools are cut first. The system prompt stays whole as long as messages
    have room beside it; then its middle is cut. Raises WindowTooSmall: even so there is no room.
    """
    if not context.system_prompt or _room(context) < LEAST:
        _make_room(context)
    return _room(context)


async def small_window_note(context: RunContext, source: Source) -> str:
    """Say that the window is small for a source, and what to set; empty if it is not. Called before a run's first view.
    Raises SourceError."""
    tables = (await source.schema()).tables.values()
    sizes = sorted(estimate("\n".join(f"{each.name} {each.type}" for each in table.columns)) for table in tables)
    fixed = estimate(context.prompt(), context.family) + context.prompt_tokens
    fixed -= estimate(context.schema.text, context.family) if context.schema is not None else 0
    needed = int((fixed + USUAL_LEAST + _USUAL_REPLY + sum(sizes[-_TABLES:])) * context.factor / (1 - SAFETY))
    if needed <= context.tokens:
        return ""
    enough = max(_COMMON, 1 << (needed - 1).bit_length())
    advice = [f"set MEMORY_CONTEXT_WINDOW={enough}"] if context.settings.memory_context_window else []
    server = context.windows.server_of(context.run.model)
    advice.append(f"raise {window_setting(server)}" if server else "use a model that has them (Ollama: `num_ctx`)")
    return (
        f"The context window of {context.run.model}, {context.tokens:,} tokens, is small for this source: columns and "
        f"rows may be left out. Give it {enough:,}: {', and '.join(advice)}."
    )


def _make_room(context: RunContext) -> None:
    context.system_prompt = context.prompt()
    if _room(context) < least_of(context.tokens) and not context.in_short:
        context.in_short = True
        context.tools = {name: _in_short(tool) for name, tool in context.tools.items()}
        context.choose_offered()
    if _room(context) < LEAST:
        context.cut = True
        context.choose_offered()
        room = _room(context)
        most = max(_LEAST_PROMPT, estimate(context.system_prompt) + room - LEAST - _ROUNDED)
        context.system_prompt = context.prompt(most=most)
    if (room := _room(context)) < LEAST:
        fixed = int(context.fixed_tokens * context.factor)
        raise too_small(context.run.model, context.tokens, output=context.output, fixed=fixed)


def _room(context: RunContext) -> int:
    fixed = int(context.fixed_tokens * context.factor)
    return int((free_tokens(context.tokens) - fixed - reply_tokens(context)) / context.factor)


def reply_tokens(context: RunContext) -> int:
    """Return the tokens that the reply may have, as the provider counts them."""
    fixed, least = int(context.fixed_tokens * context.factor), ceil(least_of(context.tokens) * context.factor)
    return reply_reserve(context.tokens, output=context.output, fixed=fixed, least=least)


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
