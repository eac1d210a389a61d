"""Many tasks in one step, beside LangGraph's own savers of the same database.

    python benchmarks/fan_out.py [--tasks 2000] [--json] [--tiny]

A graph sends so many tasks in one step, each of which writes a number, or also a message; at most 16 run at once. Each
backend is measured with `invoke` and with `ainvoke`, the savers one after the other, then the other way round. A ratio
is the time of our run divided by the stock saver's. `state` is the time of `get_state` after it.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import operator
import statistics
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Annotated, Any, TypedDict

from databases import Database, Databases, databases
from langchain_core.messages import AnyMessage
from langgraph.checkpoint.postgres import PostgresSaver
from langgraph.checkpoint.postgres.aio import AsyncPostgresSaver
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver
from langgraph.graph import END, START, StateGraph, add_messages
from langgraph.types import Send

from longthread.langgraph import LongthreadSaver

STOCK: dict[tuple[str, bool], Any] = {
    ("sqlite", False): SqliteSaver,
    ("sqlite", True): AsyncSqliteSaver,
    ("postgres", False): PostgresSaver,
    ("postgres", True): AsyncPostgresSaver,
}
ROUNDS = 2


class State(TypedDict):
    out: Annotated[list[int], operator.add]
    messages: Annotated[list[AnyMessage], add_messages]


def graph_of(saver: Any, tasks: int, *, messages: bool) -> Any:
    def work(task: dict[str, int]) -> dict[str, Any]:
        told = {"messages": [("ai", f"done {task['i']}")]} if messages else {}
        return {"out": [task["i"]], **told}

    builder = StateGraph(State)
    builder.add_node("work", work)
    builder.add_conditional_edges(START, lambda _: [Send("work", {"i": i}) for i in range(tasks)], ["work"])
    builder.add_edge("work", END)
    return builder.compile(checkpointer=saver)


async def run(saver: Any, thread: str, tasks: int, *, messages: bool, awaits: bool) -> dict[str, float]:
    """Seconds of the run and of `get_state` after it."""
    graph = graph_of(saver, tasks, messages=messages)
    at: Any = {"configurable": {"thread_id": thread}, "max_concurrency": 16}
    started = time.perf_counter()
    if awaits:
        await graph.ainvoke({"out": []}, at)
        done = time.perf_counter()
        await graph.aget_state(at)
    else:
        await asyncio.to_thread(graph.invoke, {"out": []}, at)
        done = time.perf_counter()
        await asyncio.to_thread(graph.get_state, at)
    return {"run": done - started, "state": time.perf_counter() - done}


@asynccontextmanager
async def opened(kind: Any, database: Database, *, awaits: bool) -> AsyncIterator[Any]:
    opener = kind.from_conn_string(database.address)
    if awaits:
        async with opener as saver:
            await saver.setup()
            yield saver
    else:
        with opener as saver:
            saver.setup()
            yield saver


async def compared(found: Databases, backend: str, tasks: int, *, awaits: bool) -> list[dict[str, Any]]:
    name = "ainvoke" if awaits else "invoke"
    ours, stock = found.make(backend, f"ours_{name}"), found.make(backend, f"stock_{name}")
    rows: list[dict[str, Any]] = []
    async with (
        opened(LongthreadSaver, ours, awaits=awaits) as first,
        opened(STOCK[backend, awaits], stock, awaits=awaits) as second,
    ):
        for messages in (False, True):
            taken: dict[str, list[dict[str, float]]] = {"ours": [], "stock": []}
            for number in range(ROUNDS):
                racing = [("ours", first), ("stock", second)]
                for whose, saver in racing if number % 2 else racing[::-1]:
                    thread = f"{messages}-{number}"
                    taken[whose].append(await run(saver, thread, tasks, messages=messages, awaits=awaits))
            row: dict[str, Any] = {"backend": backend, "call": name, "tasks": tasks, "messages": messages}
            for what in ("run", "state"):
                medians = {whose: statistics.median(each[what] for each in times) for whose, times in taken.items()}
                row |= {f"{what}_{whose}_s": round(value, 3) for whose, value in medians.items()}
                row[f"{what}_ratio"] = float(f"{medians['ours'] / medians['stock']:.3g}")
            rows.append(row)
    return rows


async def main(arguments: argparse.Namespace) -> None:
    tasks = 20 if arguments.tiny else arguments.tasks
    with databases() as found:
        for backend in found.backends:
            for awaits in (False, True):
                for row in await compared(found, backend, tasks, awaits=awaits):
                    print(
                        json.dumps(row) if arguments.json else "  ".join(f"{k} {v}" for k, v in row.items()), flush=True
                    )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tasks", type=int, default=2000, help="how many tasks there are in the step")
    parser.add_argument("--json", action="store_true", help="JSON lines")
    parser.add_argument("--tiny", action="store_true", help="only to see that everything runs: its numbers say nothing")
    asyncio.run(main(parser.parse_args()))
