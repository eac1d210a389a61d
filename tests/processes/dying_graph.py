"""A LangGraph application of its own: a model, two tools at once, the model again, on our saver."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from langchain.agents import create_agent
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage
from langchain_core.runnables import RunnableConfig
from langchain_core.tools import StructuredTool
from tests.orphans import orphans
from tests.processes.forks import Ended, Tell

from longthread.errors import LongthreadError
from longthread.langgraph.saver.async_saver import AsyncLongthreadSaver
from longthread.store.driver import Driver
from longthread.testing import ScriptedChatModel

ANSWER = "It is 3 in the east and 4 in the west."
_CALLS = [[("look", "east"), ("look", "west")], [("note", "both")]]


def _model(tell: Tell) -> ScriptedChatModel:
    def reply(messages: list[BaseMessage]) -> AIMessage:
        for problem in orphans(messages):
            tell({"problem": problem})
        results = sum(isinstance(message, ToolMessage) for message in messages)
        if results == 3:
            return AIMessage(ANSWER, id="answer")
        round_ = 0 if results == 0 else 1
        calls = [{"name": name, "args": {"at": at}, "id": f"call-{at}"} for name, at in _CALLS[round_]]
        return AIMessage("", tool_calls=calls, id=f"calls-{round_}")

    return ScriptedChatModel(reply)


class _TellingSaver(AsyncLongthreadSaver):
    """Tells which results and which checkpoints were acknowledged."""

    tell: Tell

    async def aput(self, config: RunnableConfig, *rest: Any, **more: Any) -> RunnableConfig:
        stored = await super().aput(config, *rest, **more)
        self.tell({"checkpoint": stored["configurable"]["checkpoint_id"]})
        return stored

    async def aput_writes(
        self, config: RunnableConfig, writes: Sequence[tuple[str, Any]], *rest: Any, **more: Any
    ) -> None:
        await super().aput_writes(config, writes, *rest, **more)
        for _, value in writes:
            for message in value if isinstance(value, list) else []:
                if isinstance(message, ToolMessage):
                    self.tell({"result": message.tool_call_id})


def _graph(store: Driver, tell: Tell) -> Any:
    saver = _TellingSaver(store)
    saver.tell = tell

    async def look(at: str) -> str:
        tell({"ran": f"call-{at}"})
        return f"something in the {at}"

    tools = [StructuredTool.from_function(coroutine=look, name=name, description=name) for name in ("look", "note")]
    return create_agent(_model(tell), tools=tools, checkpointer=saver)


def _at(thread_id: str) -> RunnableConfig:
    return {"configurable": {"thread_id": thread_id}}


async def begin(store: Driver, thread_id: str, plan: Any, tell: Tell) -> None:
    """Ask, and see the answer."""
    question = HumanMessage("What is there?", id="question")
    await _graph(store, tell).ainvoke({"messages": [question]}, _at(thread_id), durability="sync")
    tell({"acknowledged": ANSWER})


async def resume(store: Driver, thread_id: str, plan: Any, tell: Tell) -> None:
    """Go on where the checkpoints end; ask again where there is none."""
    graph = _graph(store, tell)
    state = await graph.aget_state(_at(thread_id))
    if not state.config["configurable"].get("checkpoint_id"):
        await begin(store, thread_id, plan, tell)
    elif state.tasks:  # `next` leaves out those whose writes are stored and not yet taken in
        await graph.ainvoke(None, _at(thread_id), durability="sync")


async def check(store: Driver, thread_id: str, plan: Any, tell: Tell) -> None:
    """The whole conversation, once, and a history of checkpoints that can all be read."""
    graph = _graph(store, tell)
    state = await graph.aget_state(_at(thread_id))
    messages = state.values.get("messages", [])
    said = [message.tool_call_id if isinstance(message, ToolMessage) else message.id for message in messages]
    wanted = ["question", "calls-0", "call-east", "call-west", "calls-1", "call-both", "answer"]
    if said != wanted or state.next:
        tell({"problem": f"the state holds {said}, next {state.next}"})
    history = [each async for each in graph.aget_state_history(_at(thread_id))]
    for older in history:
        there = older.values.get("messages", [])
        if [message.id for message in there] != [message.id for message in messages[: len(there)]]:
            tell({"problem": f"a checkpoint holds {[message.id for message in there]}"})


async def acknowledged(store: Driver, thread_id: str, dead: list[Ended], tell: Tell) -> None:
    """Every checkpoint that was acknowledged can be read, with its messages."""
    for process in dead:
        for checkpoint_id in process.told("checkpoint"):
            config: RunnableConfig = {
                "configurable": {"thread_id": thread_id, "checkpoint_ns": "", "checkpoint_id": checkpoint_id}
            }
            try:
                found = await AsyncLongthreadSaver(store).aget_tuple(config)
            except LongthreadError as error:
                tell({"problem": f"checkpoint {checkpoint_id} cannot be read: {error}"})
                continue
            if found is None:
                tell({"problem": f"checkpoint {checkpoint_id} is lost"})


def repeated(processes: list[Ended]) -> list[str]:
    """Calls that ran again though their results had been acknowledged."""
    finished: set[str] = set()
    problems = []
    for process in processes:
        problems += [f"a finished call ran again: {ran}" for ran in process.told("ran") if ran in finished]
        finished |= set(process.told("result"))
    return problems
