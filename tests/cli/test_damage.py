"""Commands on a store with a thread of which something is damaged, on both backends."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import Any

import pytest
from langchain_core.messages import AIMessage, HumanMessage
from langgraph.graph import START, MessagesState, StateGraph
from tests.store.turns import turns

from longthread.errors import StoreDamaged
from longthread.langgraph import LongthreadSaver
from longthread.store.open import open_store
from longthread.store.queries import Sql

Run = Callable[..., Any]


def answer(state: MessagesState) -> dict[str, Any]:
    return {"messages": [AIMessage(f"answer {len(state['messages'])}", additional_kwargs={"more": "x"})]}


@pytest.fixture(autouse=True)
def threads(store_address: str) -> None:
    """Threads of an application, some turns each."""
    graph = StateGraph(MessagesState)
    graph.add_node("answer", answer)
    graph.add_edge(START, "answer")
    with LongthreadSaver.from_conn_string(store_address) as saver:
        for thread_id in ("first", "harmed", "last one"):
            for number in range(3):
                given = {"messages": [HumanMessage(f"question {number}")]}
                graph.compile(checkpointer=saver).invoke(given, {"configurable": {"thread_id": thread_id}})


def change(address: str, statement: str, **values: Any) -> None:
    async def do() -> None:
        async with open_store(address) as store, store.writing() as tx:
            assert await tx.run(Sql(statement), **values) > 0

    asyncio.run(do())


def checkpoints(address: str) -> dict[str, int]:
    async def read() -> dict[str, int]:
        async with open_store(address) as store, store.reading() as tx:
            rows = await tx.fetch(Sql("SELECT thread_id, count(*) AS n FROM checkpoints GROUP BY thread_id"))
            return {row["thread_id"]: int(row["n"]) for row in rows}

    return asyncio.run(read())


def test_pruning_goes_on_and_tells_what_it_left(run: Run, store_address: str) -> None:
    before = checkpoints(store_address)
    change(store_address, "UPDATE checkpoints SET body = :v WHERE thread_id = 'harmed'", v=b"\x01\xff\xff")
    dry = run("db", "prune", code=5)
    assert "Would delete: 16 checkpoints" in dry.stdout
    assert "Not pruned, for it is damaged: thread harmed: checkpoint " in dry.stderr
    done = run("db", "prune", "--apply", "--yes", "--json", code=5)
    told = json.loads(done.stdout)
    assert (told["touched"], list(told["damaged"])) == (2, ["harmed"])
    assert "cannot be read" in told["damaged"]["harmed"]
    assert checkpoints(store_address) == {"first": 1, "harmed": before["harmed"], "last one": 1}
    again = run("db", "prune", "--apply", "--yes", code=5)
    assert "thread harmed: checkpoint " in again.stderr
    assert "threads export" in again.stderr
    run("threads", "delete", "harmed", "--yes")
    run("db", "prune", "--apply", "--yes")


def test_a_thread_with_damaged_checkpoints_is_shown_and_exported(run: Run, store_address: str) -> None:
    change(store_address, "UPDATE checkpoints SET body = :v WHERE thread_id = 'harmed'", v=b"\x01\xff\xff")
    assert "answer 5" in run("threads", "show", "harmed").stdout
    assert json.loads(run("state", "harmed").stdout)
    run("threads", "export", "harmed", "--to", "harmed.jsonl")
    told = run("view", "harmed", code=5).exception
    assert isinstance(told, StoreDamaged)
    assert "of thread harmed cannot be read" in str(told)


@pytest.mark.parametrize("command", [("threads", "show"), ("state",)])
@pytest.mark.parametrize(
    ("statement", "words"),
    [
        ("UPDATE entries SET tool_calls = '[{' WHERE thread_id = 'harmed' AND seq = 4", "thread_id harmed"),
        ("DELETE FROM entries WHERE thread_id = 'harmed' AND seq = 4", "entry 4 of thread harmed"),
    ],
)
def test_a_damaged_entry_is_one_line(
    run: Run, store_address: str, command: tuple[str, ...], statement: str, words: str
) -> None:
    change(store_address, statement)
    told = run(*command, "harmed", code=5).exception
    assert isinstance(told, StoreDamaged)
    assert words in str(told)
    run(*command, "first")


def test_what_a_damaged_run_did_is_one_line(run: Run, store_address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    async def made() -> None:
        async with open_store(store_address) as store:
            await turns(store, 2)

    asyncio.run(made())
    monkeypatch.setenv("LONGTHREAD_USER", "u")
    change(store_address, "UPDATE runs SET body = :v WHERE thread_id = 't'", v=b"\x02\xff\xff")
    for command in (("threads", "show"), ("view",)):
        told = run(*command, "t", code=5).exception
        assert isinstance(told, StoreDamaged)
        assert "did on thread t cannot be read" in str(told)
    run("db", "prune", "--apply", "--yes", "--runs-older-than", "0s")
