"""The agent turn that everything here is measured with, and the graph that makes it."""

from __future__ import annotations

import json
import random
import uuid
from typing import Annotated, Any, TypedDict

from langchain_core.messages import AIMessage, AnyMessage, BaseMessage, HumanMessage, ToolMessage
from langgraph.channels.delta import DeltaChannel
from langgraph.graph import END, START, StateGraph
from langgraph.graph.message import _messages_delta_reducer, add_messages

_SYLLABLES = "ba ce di fo gu ha ke li mo nu pa re si to vu wa xe yi zo chi sha tru ple gra sto nde lor mir ten"
WORDS = ["".join(random.Random(n).choices(_SYLLABLES.split(), k=2 + n % 3)) for n in range(2000)]
"""A vocabulary as large as that of real conversations: PostgreSQL compresses what repeats itself."""


class State(TypedDict):
    """A graph that keeps everything in its state."""

    messages: Annotated[list[AnyMessage], add_messages]


class DeltaState(TypedDict):
    """The same with LangGraph's beta delta channel at its default: a snapshot every 100 updates (25 turns)."""

    messages: Annotated[list[AnyMessage], DeltaChannel(_messages_delta_reducer)]


def turn_messages(number: int) -> list[BaseMessage]:
    """The four messages of a turn, about 3 KB of JSON: a question, a call, its result, an answer. No two are alike."""
    rng = random.Random(number)
    call = f"call_{uuid.UUID(int=rng.getrandbits(128)).hex}"
    usage = {"input_tokens": 1200 + number % 100, "output_tokens": 60, "total_tokens": 1260 + number % 100}
    rows = [[_words(rng, 2), f"2026-{rng.randint(1, 12):02}-{rng.randint(1, 28):02}", rng.random()] for _ in range(24)]
    result = json.dumps({"ok": True, "query": f"q{number}", "columns": ["name", "day", "share"], "rows": rows})
    sql = f"SELECT name, day, share FROM {_words(rng, 1)} WHERE id > {number} ORDER BY share"
    return [
        HumanMessage(f"Question {number}: {_words(rng, 12)}?", id=_id(rng)),
        AIMessage(
            "", id=_id(rng), tool_calls=[{"name": "run_sql", "args": {"sql": sql}, "id": call}], usage_metadata=usage
        ),
        ToolMessage(result, id=_id(rng), tool_call_id=call, name="run_sql"),
        AIMessage(f"Answer {number}: {_words(rng, 60)}.", id=_id(rng), usage_metadata=usage),
    ]


def raw_json(messages: list[BaseMessage]) -> int:
    """Bytes of the messages as plain JSON: what a conversation weighs before anything is made of it."""
    return sum(len(json.dumps(message.model_dump()).encode()) for message in messages)


def _words(rng: random.Random, count: int) -> str:
    return " ".join(rng.choices(WORDS, k=count))


def _id(rng: random.Random) -> str:
    return str(uuid.UUID(int=rng.getrandbits(128), version=4))


class Script:
    """The turn that the graph makes next."""

    def __init__(self) -> None:
        self.messages: list[BaseMessage] = []
        self.question: list[BaseMessage] = []

    def write(self, number: int) -> None:
        """The next turn is turn `number`."""
        self.question, self.messages = turn_messages(number)[:1], turn_messages(number)[1:]

    def next(self, state: Any) -> dict[str, list[BaseMessage]]:
        """A node: the next message of the turn."""
        return {"messages": [self.messages.pop(0)]}


def build(state: type, script: Script) -> Any:
    """START → model → tools → model → END: five checkpoints and four times writes a turn, as an agent with one call."""
    graph = StateGraph(state)
    graph.add_node("model", script.next)
    graph.add_node("tools", script.next)
    graph.add_edge(START, "model")
    graph.add_edge("tools", "model")
    graph.add_conditional_edges("model", _route, ["tools", END])
    return graph


def _route(state: Any) -> str:
    return "tools" if state["messages"][-1].tool_calls else END
