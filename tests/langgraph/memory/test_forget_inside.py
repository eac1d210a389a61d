"""`forget_message` and what a graph stores whole: a message inside an object of the application's goes too."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any, NamedTuple

import pytest
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage
from langchain_core.prompt_values import ChatPromptValue
from langgraph.func import task
from langgraph.graph import START, StateGraph
from langgraph.graph.message import add_messages
from langgraph.types import Command, Send, interrupt
from pydantic import BaseModel
from tests.langgraph.serializers.test_sealed import sealing
from tests.memory.canary import CANARY, marks, places
from typing_extensions import TypedDict

from longthread.errors import InvalidInput
from longthread.langgraph import LongthreadSaver
from longthread.store.driver import Driver

pytestmark = pytest.mark.one_backend

AT: Any = {"configurable": {"thread_id": "t"}}


@dataclass(frozen=True)
class Note:
    about: Any
    number: int = 1


class Report(BaseModel):
    said: list[AnyMessage]
    other: Any = None


class Pair(NamedTuple):
    one: Any
    other: str


class State(TypedDict, total=False):
    messages: Annotated[list[AnyMessage], add_messages]
    kept: Any


def said() -> HumanMessage:
    return HumanMessage(f"It is {CANARY}", id="said")


def other() -> AIMessage:
    return AIMessage("Noted", id="other")


HOLDERS: dict[str, tuple[Callable[[], Any], Any]] = {
    "dataclass": (lambda: Note(said(), 7), Note(None, 7)),
    "list in a dataclass": (lambda: Note([said(), other()]), Note([other()])),
    "deeper": (lambda: {"notes": [Note({"first": Note([said(), 1])})]}, {"notes": [Note({"first": Note([1])})]}),
    "model": (lambda: Report(said=[said(), other()]), Report(said=[other()])),
    "what a model does not name": (lambda: Report(said=[], other=[said()]), Report(said=[], other=[])),
    "named tuple": (lambda: Pair(said(), "x"), Pair(None, "x")),
    "deque": (lambda: deque([said(), other()], 5), deque([other()], 5)),
    "keys that are no text": (lambda: {(1, 2): [said()], True: said()}, {(1, 2): [], True: None}),
    "prompt": (lambda: ChatPromptValue(messages=[said()]), ChatPromptValue(messages=[])),
    "task": (lambda: Send("end", Note([said()])), Send("end", Note([]))),
    "without it": (lambda: Note([other()], 3), Note([other()], 3)),
}  # fmt: skip


@pytest.mark.sampled(2)
@pytest.mark.parametrize("kind", HOLDERS)
async def test_a_message_inside_an_object(store: Driver, store_address: str, kind: str) -> None:
    make, left = HOLDERS[kind]
    builder = StateGraph(State)
    builder.add_node("note", lambda state: {"kept": make()})
    builder.add_node("end", lambda state: {"messages": [other()]})
    builder.add_edge(START, "note")
    builder.add_edge("note", "end")
    graph = builder.compile(checkpointer=LongthreadSaver(store))
    await graph.ainvoke({"messages": [said()]}, AT)
    wanted = marks()
    assert places(store_address, wanted)
    assert await LongthreadSaver(store).aforget_message("t", "said") == ["said"]
    assert (await graph.aget_state(AT)).values == {"messages": [other()], "kept": left}
    assert places(store_address, wanted) == set()


async def test_a_task_with_it_inside_an_object(store: Driver, store_address: str) -> None:
    fails = True

    def end(note: Note) -> Any:
        if fails:
            raise RuntimeError("not now")
        return {"messages": [other()]}

    builder = StateGraph(State)
    builder.add_node("start", lambda state: {})
    builder.add_node("end", end)
    builder.add_edge(START, "start")
    builder.add_conditional_edges("start", lambda state: [Send("end", Note([said()]))], ["end"])
    saver = LongthreadSaver(store)
    graph = builder.compile(checkpointer=saver)
    with pytest.raises(RuntimeError):
        await graph.ainvoke({"messages": [said()]}, AT)
    with pytest.raises(InvalidInput, match="not finished"):
        await saver.aforget_message("t", "said")
    fails = False
    await graph.ainvoke(None, AT)
    assert await saver.aforget_message("t", "said") == ["said"]
    assert places(store_address, marks()) == set()


async def test_a_question_and_a_result_that_are_objects(store: Driver, store_address: str) -> None:
    @task
    async def report() -> Report:
        return Report(said=[], other=f"They said: It is {CANARY}")

    async def ask(state: State) -> Any:
        found = await report()
        interrupt(Note(said(), 1))
        return {"messages": [AIMessage(f"{len(found.said)} said", id="end")]}

    builder = StateGraph(State)
    builder.add_node("ask", ask)
    builder.add_edge(START, "ask")
    saver = LongthreadSaver(store)
    graph = builder.compile(checkpointer=saver)
    await graph.ainvoke({"messages": [said()]}, AT)
    with pytest.raises(InvalidInput, match="not finished"):
        await saver.aforget_message("t", "said")
    await graph.ainvoke(Command(resume="yes"), AT)
    assert await saver.aforget_message("t", "said") == ["said"]
    assert [message.id for message in (await graph.aget_state(AT)).values["messages"]] == ["end"]
    assert places(store_address, marks()) == set()


async def test_what_an_own_serializer_packs_whole(store: Driver) -> None:
    saver = LongthreadSaver(store, serde=sealing(), index_text=True)
    builder = StateGraph(State)
    builder.add_node("note", lambda state: {"kept": {"first": said(), "note": Note(said())}})
    builder.add_edge(START, "note")
    graph = builder.compile(checkpointer=saver)
    await graph.ainvoke({"messages": [said()]}, AT)
    assert await saver.aforget_message("t", "said") == ["said"]
    assert not [each async for each in graph.aget_state_history(AT) if CANARY in str(each)]
