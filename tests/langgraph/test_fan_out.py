"""Many tasks of one step: what each costs does not depend on how many there are."""

from __future__ import annotations

import operator
from typing import Annotated, Any

from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.types import Send
from tests.langgraph.counting import Counting

from longthread.langgraph import LongthreadSaver
from longthread.store.open import open_store

CONFIG: Any = {"configurable": {"thread_id": "fan"}, "max_concurrency": 8}


class State(MessagesState):
    out: Annotated[list[int], operator.add]


def graph_of(count: int) -> Any:
    def work(task: dict[str, int]) -> dict[str, Any]:
        return {"out": [task["i"]], "messages": [("ai", f"done {task['i']}")]}

    builder = StateGraph(State)
    builder.add_node("work", work)
    builder.add_conditional_edges(START, lambda _: [Send("work", {"i": i}) for i in range(count)], ["work"])
    builder.add_edge("work", END)
    return builder


async def test_a_task_of_many_reads_what_it_wrote_itself(store_address: str) -> None:
    count = 150
    async with open_store(store_address) as store:
        counting = Counting(store)
        graph = graph_of(count).compile(checkpointer=LongthreadSaver(counting))
        result = await graph.ainvoke({"messages": [("user", "go")], "out": []}, CONFIG)
        assert sorted(result["out"]) == list(range(count))
        # The rows of all are read when the step is over, and not for each of its tasks.
        assert counting.rows["select_writes_of"] <= 2 * count
        assert counting.rows["select_writes_of_task"] == 0
        reopened = graph_of(count).compile(checkpointer=LongthreadSaver(store))
        state = await reopened.aget_state(CONFIG)
    assert sorted(state.values["out"]) == list(range(count))
    assert {message.text for message in state.values["messages"]} == {"go", *(f"done {i}" for i in range(count))}
