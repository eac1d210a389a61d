"""Workers that are killed at each of a turn's operations on the store, and one that goes on with all their turns.

    python killed_worker.py ADDRESS DURABILITY

It prints, for each turn, its answers, the texts of its thread, and whether the graph's `next` called it unfinished.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from collections.abc import Callable
from typing import Any

from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langchain_core.runnables import RunnableConfig
from langgraph.graph import END, START, MessagesState, StateGraph

from longthread.langgraph import LongthreadSaver

ADDRESS, DURABILITY = sys.argv[1], sys.argv[2]
OPERATIONS = ("aput", "aput_writes")
MOST = 40


def graph(saver: LongthreadSaver) -> Any:
    def model(state: MessagesState) -> dict[str, Any]:
        last = state["messages"][-1]
        if isinstance(last, ToolMessage):
            return {"messages": [AIMessage(f"answer to {state['messages'][-3].text}")]}
        return {"messages": [AIMessage("", tool_calls=[{"id": last.text, "name": "look", "args": {}}])]}

    def tool(state: MessagesState) -> dict[str, Any]:
        return {"messages": [ToolMessage("found", tool_call_id=state["messages"][-1].tool_calls[0]["id"])]}

    builder = StateGraph(MessagesState)
    builder.add_node("model", model)
    builder.add_node("tool", tool)
    builder.add_edge(START, "model")
    builder.add_conditional_edges(
        "model", lambda state: "tool" if state["messages"][-1].tool_calls else END, ["tool", END]
    )
    builder.add_edge("tool", "model")
    return builder.compile(checkpointer=saver)


def on(n: int) -> RunnableConfig:
    return {"configurable": {"thread_id": f"t{n}"}}


def asked(n: int) -> HumanMessage:
    return HumanMessage(f"question {n}", id=f"own-{n}")


def die_at(nth: int, *, after: bool) -> None:
    """Have this process killed before or after its nth operation."""
    calls = 0

    def dying(method: Callable[..., Any]) -> Callable[..., Any]:
        async def run(*args: Any, **options: Any) -> Any:
            nonlocal calls
            calls += 1
            own = calls
            if own == nth and not after:
                os.kill(os.getpid(), signal.SIGKILL)
            found = await method(*args, **options)
            if own == nth:
                os.kill(os.getpid(), signal.SIGKILL)
            return found

        return run

    for name in OPERATIONS:
        setattr(LongthreadSaver, name, dying(getattr(LongthreadSaver, name)))


async def begin(n: int) -> None:
    async with LongthreadSaver.from_conn_string(ADDRESS) as saver:
        await graph(saver).ainvoke({"messages": [("user", "earlier")]}, on(n))
        die_at(1 + n // 2, after=bool(n % 2))
        await graph(saver).ainvoke({"messages": [asked(n)]}, on(n), durability=DURABILITY)


async def answer(agent: Any, thread: RunnableConfig, message: HumanMessage) -> str:
    state = await agent.aget_state(thread)
    begun = any(each.id == message.id for each in state.values.get("messages", ()))
    await agent.ainvoke(None if begun else {"messages": [message]}, thread)
    return (await agent.aget_state(thread)).values["messages"][-1].text


async def go_on(count: int) -> list[dict[str, Any]]:
    found = []
    async with LongthreadSaver.from_conn_string(ADDRESS) as saver:
        agent = graph(saver)
        for n in range(count):
            unfinished = bool((await agent.aget_state(on(n))).next)
            said = await answer(agent, on(n), asked(n))
            again = await answer(agent, on(n), asked(n))
            messages = (await agent.aget_state(on(n))).values["messages"]
            texts = [message.text for message in messages[4:]]
            found.append({"answers": [said, again], "texts": texts, "next": unfinished})
    return found


def main() -> None:
    for n in range(MOST):
        if (child := os.fork()) == 0:
            asyncio.run(begin(n))
            os._exit(0)
        _, status = os.waitpid(child, 0)
        if os.WIFEXITED(status):
            break  # the turn has fewer operations
    else:
        raise SystemExit("a turn with more operations than expected")
    print(json.dumps(asyncio.run(go_on(n + 1))))


if __name__ == "__main__":
    main()
