"""A process of its own with messages of a class of its own: what it reads, as JSON.

    python -m tests.processes.strictly ADDRESS write|read|allowlists [--encrypted]

LangGraph reads LANGGRAPH_STRICT_MSGPACK when it is imported.
"""

from __future__ import annotations

import json
import sys
from enum import Enum
from typing import Annotated, Any

from langchain_core.messages import AnyMessage, BaseMessage, HumanMessage, ToolMessage
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.graph import START, StateGraph
from langgraph.graph.message import add_messages
from typing_extensions import TypedDict

from longthread.errors import LongthreadError
from longthread.langgraph import LongthreadSaver

AT: Any = {"configurable": {"thread_id": "t"}}


class Own(HumanMessage):
    """A message of the application's."""

    mood: str = "calm"


class Note(Enum):
    """An object of the application's in a message of LangChain's."""

    IN = "in"


class Narrow(TypedDict):
    messages: Annotated[list[AnyMessage], add_messages]
    other: Any


class WithNote(Narrow):
    note: Note


class Wide(WithNote):
    own: Own


def _say(_: Any) -> dict[str, Any]:
    result = ToolMessage("t", id="z", tool_call_id="c", artifact=Note.IN)
    return {"messages": [Own("hello", id="x", mood="glad"), result], "other": [Own("two", id="w")]}


def _note(_: Any) -> dict[str, Any]:
    return {"messages": [ToolMessage("t", id="z", tool_call_id="c", artifact=Note.IN)]}


def _graph(saver: Any, schema: Any, node: Any = _say) -> Any:
    builder = StateGraph(schema)
    builder.add_node("say", node)
    builder.add_edge(START, "say")
    return builder.compile(checkpointer=saver)


def _told(value: Any) -> Any:
    """What a value is, in words that can be compared."""
    if isinstance(value, list):
        return [_told(each) for each in value]
    if isinstance(value, BaseMessage):
        return [
            type(value).__name__,
            value.id,
            value.content,
            repr(getattr(value, "artifact", None)),
            value.__dict__.get("mood"),
        ]
    return repr(value)


def _read(graph: Any) -> Any:
    """The messages and the other value of the newest state; or the error."""
    try:
        values = graph.get_state(AT).values
    except LongthreadError as error:
        return [type(error).__name__, str(error)]
    return _told([values["messages"], values.get("other")])


def _allowlists(saver: Any) -> Any:
    """One saver, and graphs of which one allows less than the other, by turns."""
    wide, narrow = _graph(saver, WithNote, _note), _graph(saver, Narrow, lambda state: {"other": 1})
    wide.invoke({"messages": []}, AT)
    found = [_read(narrow), _read(wide)]
    narrow.invoke({"messages": [HumanMessage("more", id="m")]}, AT)
    return [*found, _read(narrow), _read(wide)]


def main(address: str, what: str) -> None:
    stock = not address.startswith("postgresql:") and address.endswith(".stock")
    with (SqliteSaver if stock else LongthreadSaver).from_conn_string(address) as saver:
        if what == "allowlists":
            found = _allowlists(saver)
        else:
            if what == "write":
                _graph(saver, Wide).invoke({"messages": []}, AT)
            found = {schema.__name__: _read(_graph(saver, schema)) for schema in (Wide, WithNote, Narrow)}
    json.dump(found, sys.stdout)


if __name__ == "__main__":
    main(*sys.argv[1:])
