"""Threads of LangGraph's own savers are taken over as they are."""

from __future__ import annotations

import hashlib
import operator
import pickle
import shutil
import sqlite3
import sys
import types
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, make_dataclass, replace
from enum import Enum
from pathlib import Path
from typing import Annotated, Any
from uuid import UUID

import psycopg
import pytest
from langchain_core.messages import ToolMessage
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.checkpoint.postgres import PostgresSaver
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.types import Command, Send, interrupt
from tests.lending import database

from longthread.errors import ExtraMissing, ImportIncomplete, NotACheckpointDatabase
from longthread.langgraph import LongthreadSaver
from longthread.langgraph.transfer.import_checkpoints import CheckpointProgress, Imported, import_langgraph
from longthread.tools.analysis.address import SourceUrl

pytestmark = pytest.mark.one_backend

THREADS = ("talk", "asks", "fans", "对话")


@dataclass
class Basket:
    """What a state may hold besides messages."""

    items: list[str]


class State(MessagesState):
    count: Annotated[int, operator.add]
    parts: Annotated[list[str], operator.add]
    basket: Basket


def application() -> StateGraph[State]:
    """Messages, tools, an object, parallel tasks, and a subgraph that asks back."""

    def answer(state: State) -> dict[str, Any]:
        said = len(state["messages"])
        call = {"id": f"c{said}", "name": "look", "args": {"at": "天气"}}
        found = ToolMessage("sunny", tool_call_id=f"c{said}", artifact={"raw": b"\x00\x01"})
        return {
            "messages": [{"role": "ai", "content": f"looking {said}", "tool_calls": [call]}, found],
            "count": 1,
            "basket": Basket([f"item {said}"]),
        }

    def onward(state: State) -> str | list[Send]:
        last = state["messages"][0].text
        return [Send("part", {"name": n}) for n in "cab"] if last == "fan out" else "confirm"

    def ask(state: State) -> dict[str, Any]:
        wanted = state["messages"][0].text == "ask me"
        return {"messages": [("ai", f"they say {interrupt('sure?')}" if wanted else "done")], "count": 1}

    inner = StateGraph(State)
    inner.add_node("ask", ask)
    inner.add_edge(START, "ask")
    outer = StateGraph(State)
    outer.add_node("answer", answer)
    outer.add_node("part", lambda given: {"parts": [given["name"]]})
    outer.add_node("confirm", inner.compile())
    outer.add_edge(START, "answer")
    outer.add_conditional_edges("answer", onward, ["part", "confirm"])
    outer.add_edge("part", "confirm")
    return outer


def on(thread_id: str) -> RunnableConfig:
    return {"configurable": {"thread_id": thread_id}}


def asked(text: str) -> dict[str, Any]:
    return {"messages": [("user", text)]}


def told(graph: Any) -> dict[str, Any]:
    """All that a graph tells of its threads."""
    return {
        thread_id: (graph.get_state(on(thread_id), subgraphs=True), list(graph.get_state_history(on(thread_id))))
        for thread_id in THREADS
    }


def texts(values: dict[str, Any]) -> list[str]:
    return [message.text for message in values["messages"]]


@dataclass
class Source:
    """A stock saver's database with threads in it."""

    address: str
    told: dict[str, Any]
    checkpoints: int
    writes: int

    @contextmanager
    def saver(self) -> Iterator[BaseCheckpointSaver[str]]:
        kind = PostgresSaver if "://" in self.address else SqliteSaver
        with kind.from_conn_string(self.address) as saver:
            yield saver


def fill(saver: Any) -> None:
    """Turns, an edit of the past, a fork, an interrupt, parallel tasks."""
    saver.setup()
    graph = application().compile(checkpointer=saver)
    for text in ("hello", "again", "and again"):
        graph.invoke(asked(text), on("talk"))
    past = list(graph.get_state_history(on("talk")))
    graph.invoke(None, past[-2].config)
    graph.update_state(past[4].config, {"messages": [("user", "edited")], "count": 10})
    graph.invoke(asked("on the fork"), on("talk"))
    assert "__interrupt__" in graph.invoke(asked("ask me"), on("asks"))
    graph.invoke(asked("fan out"), on("fans"))
    graph.invoke(asked("你好"), on("对话"), durability="exit")


def filled(address: str) -> Source:
    """The database at an address, with threads of a stock saver's."""
    source = Source(address, {}, 0, 0)
    with source.saver() as saver:
        fill(saver)
        source.told = told(application().compile(checkpointer=saver))
        found = list(saver.list(None))
        source.checkpoints, source.writes = len(found), sum(len(item.pending_writes or []) for item in found)
    return source


@pytest.fixture(scope="module")
def stock(tmp_path_factory: pytest.TempPathFactory) -> Source:
    """A file that is copied for each test."""
    return filled(str(tmp_path_factory.mktemp("stock") / "stock.db"))


@pytest.fixture(scope="module")
def stock_database(postgres_server: str) -> Iterator[Source]:
    """A PostgreSQL database that is copied for each test."""
    with database(postgres_server) as url:
        yield filled(url)


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.postgres)])
def source(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Source]:
    if request.param == "sqlite":
        found: Source = request.getfixturevalue("stock")
        yield replace(found, address=shutil.copyfile(found.address, str(tmp_path / "stock.db")))
    else:
        found = request.getfixturevalue("stock_database")
        template = str(SourceUrl.parse(found.address).database)
        with database(request.getfixturevalue("postgres_server"), template) as url:
            yield replace(found, address=url)


@pytest.fixture
async def saver(store_address: str) -> Any:
    async with LongthreadSaver.from_conn_string(store_address) as opened:
        yield opened


@pytest.fixture
async def local(tmp_path: Path, sqlite_template: str) -> Any:
    """For what has nothing to do with the backend."""
    async with LongthreadSaver.from_conn_string(shutil.copyfile(sqlite_template, str(tmp_path / "ours.db"))) as opened:
        yield opened


@pytest.fixture
def stock_file(stock: Source, tmp_path: Path) -> Path:
    return Path(shutil.copyfile(stock.address, tmp_path / "stock.db"))


async def everything(saver: LongthreadSaver) -> list[Any]:
    return [item async for item in saver.alist(None)]


@pytest.mark.sampled(2)
async def test_states_histories_and_writes_are_equal(source: Source, store_address: str) -> None:
    async with LongthreadSaver.from_conn_string(store_address) as saver:
        done = await import_langgraph(source.address, saver)
        assert done == Imported(len(THREADS), source.checkpoints, source.writes, already=0)
        assert len(await everything(saver)) == source.checkpoints
    with LongthreadSaver.from_conn_string(store_address) as saver:
        assert told(application().compile(checkpointer=saver)) == source.told


@pytest.mark.sampled(2)
async def test_writes_keep_the_order_of_their_tasks(source: Source, saver: LongthreadSaver) -> None:
    await import_langgraph(source.address, saver)
    with source.saver() as stock:
        for theirs in stock.list(None):
            ours = await saver.aget_tuple(theirs.config)
            assert ours is not None
            assert ours.pending_writes == theirs.pending_writes
            assert ours.parent_config == theirs.parent_config
            assert ours.metadata == theirs.metadata
            assert ours.checkpoint == theirs.checkpoint


@pytest.mark.sampled(2)
async def test_a_graph_goes_on_where_it_was(source: Source, saver: LongthreadSaver) -> None:
    await import_langgraph(source.address, saver)
    ours = application().compile(checkpointer=saver)
    resumed = await ours.ainvoke(Command(resume="yes"), on("asks"))
    talked = await ours.ainvoke(asked("one more"), on("talk"))
    with source.saver() as stock:
        theirs = application().compile(checkpointer=stock)
        assert texts(resumed) == texts(theirs.invoke(Command(resume="yes"), on("asks")))
        assert texts(resumed)[-1] == "they say yes"
        assert texts(talked) == texts(theirs.invoke(asked("one more"), on("talk")))
    fork = source.told["talk"][1][-2]
    again = await ours.ainvoke(None, fork.config)
    assert texts(again)[0] == "hello"
    assert texts(talked) != texts(again)


@pytest.mark.sampled(2)
async def test_a_second_import_changes_nothing(source: Source, saver: LongthreadSaver) -> None:
    first = await import_langgraph(source.address, saver)
    before = await everything(saver)
    second = await import_langgraph(source.address, saver)
    assert second == Imported(first.threads, first.checkpoints, first.writes, already=first.checkpoints)
    assert await everything(saver) == before


@pytest.mark.sampled(2)
async def test_what_was_said_since_stays_the_last_word(source: Source, saver: LongthreadSaver) -> None:
    await import_langgraph(source.address, saver)
    graph = application().compile(checkpointer=saver)
    talked = await graph.ainvoke(asked("here now"), on("talk"))
    await import_langgraph(source.address, saver)
    assert (await graph.aget_state(on("talk"))).values == talked


async def test_a_thread_that_has_gone_on_here_is_not_mixed_with_what_is_missing(
    stock_file: Path, local: LongthreadSaver, monkeypatch: pytest.MonkeyPatch
) -> None:
    put = LongthreadSaver.aput

    async def dying(self: LongthreadSaver, config: RunnableConfig, checkpoint: Any, *rest: Any) -> RunnableConfig:
        if len(await everything(local)) == 4:
            raise KeyboardInterrupt
        return await put(self, config, checkpoint, *rest)

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(LongthreadSaver, "aput", dying)
        await import_langgraph(str(stock_file), local)
    graph = application().compile(checkpointer=local)
    said = await graph.ainvoke(asked("here now"), on("talk"))
    with pytest.raises(ImportIncomplete, match="thread talk has gone on here"):
        await import_langgraph(str(stock_file), local)
    assert (await graph.aget_state(on("talk"))).values == said
    assert (await graph.aget_state(on("asks"))).next == ("confirm",)


@pytest.mark.sampled(2)
async def test_a_pruned_thread_does_not_go_back(source: Source, saver: LongthreadSaver) -> None:
    await import_langgraph(source.address, saver)
    await saver.aprune(["talk"])
    with pytest.raises(ImportIncomplete, match="the thread was pruned here"):
        await import_langgraph(source.address, saver)
    graph = application().compile(checkpointer=saver)
    assert (await graph.aget_state(on("talk"))).values == source.told["talk"][0].values


@pytest.mark.sampled(4)
@pytest.mark.parametrize("nth", [1, 4, 9, 20])
async def test_an_import_that_was_broken_off_is_finished_by_the_next(
    nth: int, source: Source, saver: LongthreadSaver, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between a checkpoint's writes and the checkpoint, too."""
    calls = 0
    put = LongthreadSaver.aput

    async def dying(self: LongthreadSaver, *args: Any) -> RunnableConfig:
        nonlocal calls
        calls += 1
        if calls == nth:
            raise KeyboardInterrupt
        return await put(self, *args)

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(LongthreadSaver, "aput", dying)
        await import_langgraph(source.address, saver)
    done = await import_langgraph(source.address, saver)
    assert done == Imported(len(THREADS), source.checkpoints, source.writes, already=nth - 1)
    graph = application().compile(checkpointer=saver)
    for thread_id in THREADS:
        assert [s async for s in graph.aget_state_history(on(thread_id))] == source.told[thread_id][1]


async def test_progress_is_told(source: Source, local: LongthreadSaver) -> None:
    said: list[CheckpointProgress] = []
    done = await import_langgraph(source.address, local, progress=said.append)
    assert [p.done for p in said] == list(range(1, done.checkpoints + 1))
    assert {p.total for p in said} == {done.checkpoints}
    assert list(dict.fromkeys(p.thread_id for p in said)) == list(THREADS)


async def test_the_source_is_not_touched(stock_file: Path, local: LongthreadSaver) -> None:
    before = hashlib.sha256(stock_file.read_bytes()).hexdigest()
    await import_langgraph(str(stock_file), local)
    assert hashlib.sha256(stock_file.read_bytes()).hexdigest() == before


async def test_objects_of_unknown_classes_are_kept(tmp_path: Path, local: LongthreadSaver) -> None:
    """The command has none of the application's modules."""
    module = types.ModuleType("an_application")
    named = {"__module__": "an_application"}
    module.Note = make_dataclass("Note", ["text"], namespace=named)  # type: ignore[attr-defined]
    module.Mood = Enum("Mood", ["GOOD", "BAD"], module="an_application")  # type: ignore[attr-defined]

    def answer(state: State) -> dict[str, Any]:
        mood = ToolMessage("x", tool_call_id="c", id="m", artifact={"mood": module.Mood.GOOD, "id": UUID(int=1)})
        return {"basket": module.Note("kept"), "messages": [mood]}

    builder = StateGraph(State)
    builder.add_node("answer", answer)
    builder.add_edge(START, "answer")
    sys.modules["an_application"] = module
    try:
        with SqliteSaver.from_conn_string(str(tmp_path / "stock.db")) as stock:
            graph = builder.compile(checkpointer=stock)
            graph.invoke(asked("hello"), on("a"))
            expected = list(graph.get_state_history(on("a")))
        del sys.modules["an_application"]
        await import_langgraph(str(tmp_path / "stock.db"), local)
        sys.modules["an_application"] = module
        graph = builder.compile(checkpointer=local)
        assert [s async for s in graph.aget_state_history(on("a"))] == expected
        assert expected[0].values["basket"] == module.Note("kept")
        assert expected[0].values["messages"][-1].artifact["mood"] is module.Mood.GOOD
    finally:
        sys.modules.pop("an_application", None)


async def test_a_file_from_before_tasks_had_paths(stock_file: Path, local: LongthreadSaver) -> None:
    connection = sqlite3.connect(stock_file)
    connection.executescript("PRAGMA journal_mode=DELETE; ALTER TABLE writes DROP COLUMN task_path;")
    connection.close()
    done = await import_langgraph(str(stock_file), local)
    assert done.threads == len(THREADS)
    resumed = await application().compile(checkpointer=local).ainvoke(Command(resume="yes"), on("asks"))
    assert texts(resumed)[-1] == "they say yes"


async def test_what_cannot_be_read_is_told_and_the_rest_is_there(stock_file: Path, local: LongthreadSaver) -> None:
    connection = sqlite3.connect(stock_file)
    [[total]] = connection.execute("SELECT count(*) FROM checkpoints")
    connection.execute(
        "UPDATE checkpoints SET type = 'pickle', checkpoint = ? WHERE thread_id = 'fans'", [pickle.dumps({})]
    )
    [[pickled]] = connection.execute("SELECT count(*) FROM checkpoints WHERE thread_id = 'fans'")
    connection.commit()
    connection.close()
    with pytest.raises(ImportIncomplete, match=f"{pickled} of {total} checkpoints.*thread fans.*pickle"):
        await import_langgraph(str(stock_file), local)
    assert len(await everything(local)) == total - pickled


@pytest.mark.parametrize("damage", [b"\x00\xff", b"\x80", b"", b"\x81\xa1v\x04", b"\xc0"])
async def test_a_damaged_checkpoint_is_told_and_the_threads_behind_it_come(
    stock_file: Path, local: LongthreadSaver, damage: bytes
) -> None:
    connection = sqlite3.connect(stock_file)
    [[total]] = connection.execute("SELECT count(*) FROM checkpoints")
    [[last]] = connection.execute("SELECT max(checkpoint_id) FROM checkpoints WHERE thread_id = 'talk'")
    connection.execute("UPDATE checkpoints SET checkpoint = ? WHERE checkpoint_id = ?", [damage, last])
    connection.commit()
    connection.close()
    with pytest.raises(ImportIncomplete, match=rf"1 of {total} checkpoints.*{last} of thread talk cannot be read"):
        await import_langgraph(str(stock_file), local)
    assert len(await everything(local)) == total - 1


@pytest.mark.parametrize("metadata", [b"[]", b"7", b"{", b"\xff"])
async def test_damaged_metadata_is_told_too(stock_file: Path, local: LongthreadSaver, metadata: bytes) -> None:
    connection = sqlite3.connect(stock_file)
    [[total]] = connection.execute("SELECT count(*) FROM checkpoints")
    [[last]] = connection.execute("SELECT max(checkpoint_id) FROM checkpoints WHERE thread_id = 'talk'")
    connection.execute("UPDATE checkpoints SET metadata = ? WHERE checkpoint_id = ?", [metadata, last])
    connection.commit()
    connection.close()
    with pytest.raises(ImportIncomplete, match=rf"1 of {total} checkpoints.*{last} of thread talk cannot be read"):
        await import_langgraph(str(stock_file), local)
    assert len(await everything(local)) == total - 1


async def test_another_users_thread_is_left_alone(stock_file: Path, store_address: str) -> None:
    async with LongthreadSaver.from_conn_string(store_address, user_id="ada") as hers:
        graph = application().compile(checkpointer=hers)
        said = await graph.ainvoke(asked("mine"), on("talk"))
        async with LongthreadSaver.from_conn_string(store_address, user_id="bob") as his:
            with pytest.raises(ImportIncomplete, match="thread talk is here already, and is another user's"):
                await import_langgraph(str(stock_file), his)
            assert {item.config["configurable"]["thread_id"] for item in await everything(his)} == {*THREADS} - {"talk"}
        assert (await graph.aget_state(on("talk"))).values == said


def none_there(tmp_path: Path) -> str:
    return str(tmp_path / "no.db")


def a_folder(tmp_path: Path) -> str:
    return str(tmp_path)


def text_in_a_file(tmp_path: Path) -> str:
    (tmp_path / "text.db").write_text("Dear diary, " * 100)
    return str(tmp_path / "text.db")


def a_database_of_another(tmp_path: Path) -> str:
    connection = sqlite3.connect(tmp_path / "shop.db")
    connection.execute("CREATE TABLE customers (id INTEGER)")
    connection.close()
    return str(tmp_path / "shop.db")


def an_older_saver(tmp_path: Path) -> str:
    connection = sqlite3.connect(tmp_path / "old.db")
    connection.execute("CREATE TABLE checkpoints (thread_id TEXT, thread_ts TEXT, parent_ts TEXT, checkpoint BLOB)")
    connection.execute("CREATE TABLE writes (thread_id TEXT, thread_ts TEXT, idx INTEGER)")
    connection.close()
    return str(tmp_path / "old.db")


def an_empty_saver(tmp_path: Path) -> str:
    with SqliteSaver.from_conn_string(str(tmp_path / "empty.db")) as stock:
        stock.setup()
    return str(tmp_path / "empty.db")


def a_store_of_ours(tmp_path: Path) -> str:
    with LongthreadSaver.from_conn_string(str(tmp_path / "longthread.db")):
        return str(tmp_path / "longthread.db")


def another_kind_of_server(tmp_path: Path) -> str:
    return "mysql://me:secret@localhost/db"


def no_server(tmp_path: Path) -> str:
    return "postgresql://me:secret@127.0.0.1:1/db"


@pytest.mark.parametrize(
    ("place", "why"),
    [
        (none_there, "there is no such file"),
        (a_folder, "it is not a file"),
        (text_in_a_file, "it is not a SQLite database"),
        (a_database_of_another, "it has no tables `checkpoints` and `writes`"),
        (an_older_saver, "has no column `checkpoint_id`"),
        (an_empty_saver, "it holds no checkpoints"),
        (a_store_of_ours, "it is a Longthread store"),
        (another_kind_of_server, "neither a file nor a postgresql:// address"),
        (no_server, "postgresql://me@127.0.0.1:1/db cannot be imported: .*refused"),
    ],
)
async def test_a_database_that_is_none_is_refused(place: Any, why: str, tmp_path: Path, local: LongthreadSaver) -> None:
    with pytest.raises(NotACheckpointDatabase, match=why) as refused:
        await import_langgraph(place(tmp_path), local)
    assert "secret" not in str(refused.value)
    assert await everything(local) == []


@pytest.mark.postgres
async def test_a_server_without_checkpoints_is_refused(postgres_url: str, local: LongthreadSaver) -> None:
    with pytest.raises(NotACheckpointDatabase, match="it has no tables `checkpoints` and `checkpoint_writes`"):
        await import_langgraph(postgres_url, local)
    with (
        LongthreadSaver.from_conn_string(postgres_url),
        pytest.raises(NotACheckpointDatabase, match="Longthread store"),
    ):
        await import_langgraph(postgres_url, local)


@pytest.mark.postgres
async def test_a_server_is_only_read(postgres_url: str, local: LongthreadSaver) -> None:
    with PostgresSaver.from_conn_string(postgres_url) as stock:
        fill(stock)
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        database = connection.info.dbname
        connection.execute(f"ALTER DATABASE {database} SET default_transaction_read_only = on".encode())
        assert (await import_langgraph(postgres_url, local)).threads == len(THREADS)


@pytest.mark.parametrize(("kind", "name"), [("sqlite", "langgraph-checkpoint-sqlite")])
async def test_a_missing_package_is_named(
    kind: str, name: str, stock_file: Path, local: LongthreadSaver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, f"langgraph.checkpoint.{kind}.aio", None)
    with pytest.raises(ExtraMissing, match=rf"{name}.*pip install .*'{name}<"):
        await import_langgraph(str(stock_file), local)
