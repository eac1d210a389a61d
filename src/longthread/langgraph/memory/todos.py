"""Pure: the to-do list in an agent's state, as deep agents have one, for a view that no longer shows it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from langchain_core.messages import AIMessage, AnyMessage, BaseMessage, HumanMessage

TODOS = "todos"
"""The key of LangChain's `TodoListMiddleware` in the state."""
WRITES = "write_todos"
"""The tool by which the model writes the list."""
LONGEST = 2000
"""So many characters of a list are told."""
_TOLD = "The to-do list as it stands, from earlier in this conversation:"


def todo_note(state: Mapping[str, Any]) -> HumanMessage | None:
    """Return the list as a message; None where there is none."""
    todos = state.get(TODOS)
    lines = [_line(each) for each in todos if isinstance(each, dict)] if isinstance(todos, list) else []
    if not lines:
        return None
    text = "\n".join(lines)
    text = text if len(text) <= LONGEST else f"{text[:LONGEST]}…"
    return HumanMessage(f"{_TOLD}\n{text}", additional_kwargs={"longthread": {"kind": "digest"}})


def _line(todo: Mapping[str, Any]) -> str:
    return f"- [{todo.get('status', 'pending')}] {todo.get('content', '')}"


def shows_todos(sent: Sequence[AnyMessage], messages: Sequence[BaseMessage]) -> bool:
    """Whether the newest call that wrote the list is sent as it is."""
    calls = (each for each in reversed(messages) if isinstance(each, AIMessage) and _writes(each))
    newest = next(calls, None)
    return newest is not None and any(each is newest for each in sent)


def _writes(message: AIMessage) -> bool:
    return any(call["name"] == WRITES for call in message.tool_calls)
