"""Messages for the command line, reworded for a client: it has tools for most commands."""

from __future__ import annotations

import re

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
_COMMAND = re.compile(rf"(^|[.!?] )?`longthread ({'|'.join(_TOOLS)})\b[^`]*`")
_OPTION = re.compile(r"(?<![\w-])--(source|thread|agent)(?![\w-])")


def for_clients(message: str) -> str:
    """A message with tools and arguments in the place of commands and options.

    What only a person can do (`longthread approve`, a setting) stays.
    """
    return _OPTION.sub(r"`\1`", _COMMAND.sub(_tool, message))


def _tool(found: re.Match[str]) -> str:
    begins = found[1] is not None
    return f"{found[1] or ''}{'The' if begins else 'the'} tool `{_TOOLS[found[2]]}`"
