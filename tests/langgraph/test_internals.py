"""Each thing of LangGraph that is not in its documented interface, with what Longthread needs it for. A version of
LangGraph that moves or changes one fails here, by its name."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import HumanMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.config import get_config
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.types import Command, interrupt

import longthread.langgraph
from longthread.langgraph import internals

AT: Any = {"configurable": {"thread_id": "t"}}


class Noting(InMemorySaver):
    """Notes what it is given."""

    def __init__(self) -> None:
        super().__init__()
        self.tasks: list[str] = []
        self.paths: list[str] = []
        self.channels: list[str] = []
        self.given: list[str | None] = []

    def put(self, config: Any, *given: Any) -> Any:
        self.given.append(internals.given_to_run(config))
        return super().put(config, *given)

    def put_writes(self, config: Any, writes: Any, task_id: str, task_path: str = "") -> None:
        self.tasks.append(task_id)
        self.paths.append(task_path)
        self.channels += [channel for channel, _ in writes]
        self.given.append(internals.given_to_run(config))
        super().put_writes(config, writes, task_id, task_path)


def _ran(node: Any, saver: Any = None) -> Any:
    builder = StateGraph(MessagesState)
    builder.add_node("node", node)
    builder.add_edge(START, "node")
    graph = builder.compile(checkpointer=saver or InMemorySaver())
    graph.invoke({"messages": [HumanMessage("a", id="a")]}, AT)
    return graph


def test_checkpointer_is_where_a_run_finds_its_saver() -> None:
    found, saver = [], InMemorySaver()
    _ran(lambda _: found.append(get_config()["configurable"][internals.CHECKPOINTER]), saver)
    assert found == [saver]


def test_durability_is_where_a_run_that_was_given_one_has_it() -> None:
    found: list[Any] = []

    def node(_: Any) -> None:
        found.append(get_config()["configurable"].get(internals.DURABILITY))

    builder = StateGraph(MessagesState)
    builder.add_node("node", node)
    builder.add_edge(START, "node")
    graph = builder.compile(checkpointer=InMemorySaver())
    given: list[Any] = ["exit", "sync", None]
    for durability in given:
        graph.invoke({"messages": [HumanMessage("a", id="a")]}, AT, durability=durability)
    assert found == given


def test_interrupt_is_what_the_path_of_an_update_begins_with_and_the_channel_of_a_question() -> None:
    saver = Noting()
    graph = _ran(lambda _: {"messages": [interrupt("?")]}, saver)
    assert internals.INTERRUPT in saver.channels
    graph.update_state(AT, {"messages": [HumanMessage("b")]})
    assert saver.paths[-1].startswith(f"~{internals.INTERRUPT}")


def test_null_task_id_is_whose_writes_a_command_has() -> None:
    saver = Noting()
    graph = _ran(lambda _: {"messages": [interrupt("?")]}, saver)
    graph.invoke(Command(resume="yes"), AT)
    assert internals.NULL_TASK_ID in saver.tasks


def test_a_runs_metadata_names_the_thread_and_the_checkpoint_that_it_was_given() -> None:
    saver = Noting()
    graph = _ran(lambda _: {"messages": ["a"]}, saver)
    first = [each for each in graph.get_state_history(AT) if each.next][-1].config
    saver.given.clear()
    graph.invoke({"messages": ["b"]}, AT)
    assert set(saver.given) == {""}
    saver.given.clear()
    graph.invoke(None, first)
    graph.update_state(first, {"messages": ["c"]})
    assert set(saver.given) == {first["configurable"]["checkpoint_id"]}


def test_delta_snapshot_wraps_a_whole_value() -> None:
    assert internals.DeltaSnapshot([1]).value == [1]


def test_whole_values_is_known() -> None:
    assert internals.WHOLE_VALUES


SOURCES = sorted(Path(longthread.langgraph.__file__).parent.rglob("*.py"))


@pytest.mark.parametrize("source", SOURCES, ids=lambda each: each.name)
def test_nothing_else_is_imported_from_inside(source: Path) -> None:
    private = []
    for node in ast.walk(ast.parse(source.read_text("utf-8"))):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("langgraph"):
            parts = [*str(node.module).split("."), *(each.name for each in node.names)]
            private += [part for part in parts if part.startswith("_")]
    assert source.name == "internals.py" or private == []
    assert "__pregel" not in source.read_text("utf-8")
