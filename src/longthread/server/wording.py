"""Messages for the command line, reworded for who reads them elsewhere: clients of MCP have tools, those of HTTP have
routes."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

_TOOLS = {
    r"resume": "resume",
    r"ask": "ask",
    r"chat": "ask",
    r"recall": "recall",
    r"view": "view",
    r"threads list": "list_threads",
    r"threads show": "read_thread",
    r"memories list": "search_memories",
    r"memories add": "remember",
}
"""The tool of a command."""
_ROUTES = {
    r"resume": "POST /api/conversations/{}/resume",
    r"approve": "POST /api/conversations/{}/approvals",
    r"reject": "POST /api/conversations/{}/approvals",
    r"ask": "POST /api/chat",
    r"chat": "POST /api/chat",
    r"threads list": "GET /api/conversations",
    r"threads show": "GET /api/conversations/{}",
    r"memories list": "GET /api/memories",
    r"tools list": "GET /api/tools",
    r"sources teach": "GET /api/sources/{}/terms",
}
"""The route of a command; its first argument goes into the path."""
_TOOL = re.compile(rf"(^|[.!?] )?`longthread ({'|'.join(_TOOLS)})\b[^`]*`")
_ROUTE = re.compile(rf"`longthread ({'|'.join(_ROUTES)})\b(?: ([^`\s-][^`\s]*))?[^`]*`")
_OPTION = re.compile(r"(?<![\w-])--(source|thread|agent)(?![\w-])")
_FIELD = re.compile(r"`?(?<![\w-])--(source|thread|agent|model|protocol|force)(?![\w-])(?: ([\w:.…-]+)`)?")


def for_clients(message: str) -> str:
    """A message with tools and arguments in the place of commands and options.

    What only a person can do (`longthread approve`, a setting) stays.
    """
    return _OPTION.sub(r"`\1`", _TOOL.sub(_tool, message))


def for_http(message: str) -> str:
    """A message with routes and fields in the place of commands and options.

    What only who runs the server can do (`longthread db upgrade`, a setting) stays.
    """
    return _FIELD.sub(_field, _ROUTE.sub(_route, message))


def error_for_http(outcome: Mapping[str, Any]) -> dict[str, Any]:
    """A run's outcome, with the message of its error for HTTP."""
    error = outcome.get("error")
    if not isinstance(error, Mapping) or not isinstance(error.get("message"), str):
        return dict(outcome)
    return {**outcome, "error": {**error, "message": for_http(error["message"])}}


def _tool(found: re.Match[str]) -> str:
    begins = found[1] is not None
    return f"{found[1] or ''}{'The' if begins else 'the'} tool `{_TOOLS[found[2]]}`"


def _route(found: re.Match[str]) -> str:
    return f"`{_ROUTES[found[1]].format(found[2] or '{thread_id}')}`"


def _field(found: re.Match[str]) -> str:
    return f"`{found[1]}` {found[2]}" if found[2] else f"`{found[1]}`"
