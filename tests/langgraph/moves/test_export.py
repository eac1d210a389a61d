"""LangGraph's own savers and stores go on with exported threads and items."""

from __future__ import annotations

import json
import sqlite3
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, closing, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import psycopg
import pytest
from langchain_core.messages import AnyMessage, RemoveMessage
from langgraph.channels.delta import DeltaChannel
from langgraph.checkpoint.postgres import PostgresSaver
from langgraph.checkpoint.postgres.aio import AsyncPostgresSaver
from langgraph.checkpoint.serde.base import CipherProtocol
from langgraph.checkpoint.serde.encrypted import EncryptedSerializer
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.graph.message import _messages_delta_reducer
from langgraph.store.postgres import PostgresStore
from langgraph.store.sqlite import SqliteStore
from langgraph.types import Command
from tests.cli.conftest import Run, made_once, run  # noqa: F401  # fixtures
from tests.langgraph.moves.test_import import THREADS, application, asked, fill, on, texts, told
from typing_extensions import TypedDict

from longthread.errors import ExportIncomplete, ExtraMissing, NotAnExportTarget
from longthread.langgraph import LongthreadSaver, LongthreadStore, export_langgraph, import_langgraph
from longthread.langgraph.transfer.import_checkpoints import CheckpointProgress
from longthread.store import items
from longthread.store.items import ItemScope

pytestmark = pytest.mark.one_backend


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.postgres)])
def target(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The address of a new database for LangGraph's own savers."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path / 'stock.db'}"
    return str(request.getfixturevalue("postgres_url"))


@pytest.fixture
def file(tmp_path: Path) -> str:
    return str(tmp_path / "stock.db")


@contextmanager
def stock(address: str) -> Iterator[Any]:
    kind = PostgresSaver if address.startswith("postgres") else SqliteSaver
    with kind.from_conn_string(address.removeprefix("sqlite:///")) as saver:
        yield saver


@contextmanager
def stock_store(address: str) -> Iterator[Any]:
    kind = PostgresStore if address.startswith("postgres") else SqliteStore
    with kind.from_conn_string(address.removeprefix("sqlite:///")) as store:
        store.setup()
        yield store


@asynccontextmanager
async def ours(address: str, **options: Any) -> AsyncIterator[LongthreadSaver]:
    async with LongthreadSaver.from_conn_string(address, **options) as saver:
        yield saver


@pytest.mark.sampled(2)
async def test_the_stock_saver_goes_on_with_the_same_states(store_address: str, target: str) -> None:
    with LongthreadSaver.from_conn_string(store_address) as saver:
        fill(saver)
        before = told(application().compile(checkpointer=saver))
    async with ours(store_address) as saver:
        done = await export_langgraph(target, saver)
        found = [item async for item in saver.alist(None)]
    assert (done.threads, done.checkpoints, done.already, done.notes) == (len(THREADS), len(found), 0, ())
    assert done.writes == sum(len(item.pending_writes or []) for item in found)
    with stock(target) as theirs:
        graph = application().compile(checkpointer=theirs)
        assert told(graph) == before
        assert texts(graph.invoke(Command(resume="yes"), on("asks")))[-1] == "they say yes"
        assert texts(graph.invoke(asked("one more"), on("talk")))[-3:] == [
            f"looking {len(before['talk'][0].values['messages']) + 1}",
            "sunny",
            "done",
        ]
        fork = before["talk"][1][-2]
        assert texts(graph.invoke(None, fork.config))[0] == "hello"


@pytest.mark.sampled(2)
async def test_what_was_imported_goes_back_as_it_was(store_address: str, target: str, file: str) -> None:
    source = file.replace("stock", "source")
    with stock(source) as theirs:
        fill(theirs)
        before = list(theirs.list(None))
    async with ours(store_address) as saver:
        await import_langgraph(source, saver)
        await export_langgraph(target, saver)
    with stock(target) as theirs:
        assert list(theirs.list(None)) == before
    async with ours(file.replace("stock", "again")) as saver:
        assert (await import_langgraph(target.removeprefix("sqlite:///"), saver)).checkpoints == len(before)


class DeltaState(TypedDict):
    messages: Annotated[list[AnyMessage], DeltaChannel(_messages_delta_reducer, snapshot_frequency=5)]


@pytest.mark.sampled(2)
async def test_delta_channels_go_on(store_address: str, target: str) -> None:
    builder = StateGraph(DeltaState)
    builder.add_node("answer", lambda state: {"messages": [("ai", f"{len(state['messages'])} so far")]})
    builder.add_edge(START, "answer")
    async with ours(store_address) as saver:
        graph = builder.compile(checkpointer=saver)
        for n in range(7):
            await graph.ainvoke({"messages": [("user", f"说 {n}")]}, on("d"))
        state = (await graph.aget_state(on("d"))).values
        history = [each.values async for each in graph.aget_state_history(on("d"))]
        await export_langgraph(target, saver)
    with stock(target) as theirs:
        graph = builder.compile(checkpointer=theirs)
        assert graph.get_state(on("d")).values == state
        assert [each.values for each in graph.get_state_history(on("d"))] == history
        assert texts(graph.invoke({"messages": [("user", "more")]}, on("d")))[-1] == "15 so far"


def talking() -> Any:
    builder = StateGraph(MessagesState)
    builder.add_node("answer", lambda state: {"messages": [("ai", f"echo {state['messages'][-1].text}")]})
    builder.add_edge(START, "answer")
    return builder


async def test_a_thread_that_is_there_and_differs_stays_unless_it_is_to_be_replaced(
    store_address: str, target: str
) -> None:
    with stock(target) as theirs:
        theirs.setup()
        talking().compile(checkpointer=theirs).invoke(asked("theirs"), on("both"))
        there = list(theirs.list(None))
    async with ours(store_address) as saver:
        graph = talking().compile(checkpointer=saver)
        for thread_id in ("both", "mine"):
            await graph.ainvoke(asked("ours"), on(thread_id))
        with pytest.raises(ExportIncomplete, match=r"thread both is there already.*--replace") as refused:
            await export_langgraph(target, saver)
        assert len(refused.value.left) == 1
        with stock(target) as theirs:
            assert list(theirs.list(on("both"))) == there
            assert texts(talking().compile(checkpointer=theirs).get_state(on("mine")).values) == ["ours", "echo ours"]
        done = await export_langgraph(target, saver, replaces=True)
        assert (done.checkpoints, done.already) == (6, 3)
    with stock(target) as theirs:
        assert texts(talking().compile(checkpointer=theirs).get_state(on("both")).values) == ["ours", "echo ours"]
        assert len(list(theirs.list(on("both")))) == 3


async def test_a_thread_that_has_gone_on_there_stays(store_address: str, target: str) -> None:
    async with ours(store_address) as saver:
        graph = talking().compile(checkpointer=saver)
        await graph.ainvoke(asked("one"), on("t"))
        await export_langgraph(target, saver)
        with stock(target) as theirs:
            talking().compile(checkpointer=theirs).invoke(asked("there"), on("t"))
        with pytest.raises(ExportIncomplete, match="thread t is there already, and is not the beginning"):
            await export_langgraph(target, saver)
    with stock(target) as theirs:
        values = talking().compile(checkpointer=theirs).get_state(on("t")).values
        assert texts(values) == ["one", "echo one", "there", "echo there"]


async def test_a_second_export_adds_what_is_new(store_address: str, target: str) -> None:
    async with ours(store_address) as saver:
        graph = talking().compile(checkpointer=saver)
        await graph.ainvoke(asked("one"), on("t"))
        first = await export_langgraph(target, saver)
        await graph.ainvoke(asked("two"), on("t"))
        said: list[CheckpointProgress] = []
        second = await export_langgraph(target, saver, progress=said.append)
        assert (second.checkpoints, second.already) == (2 * first.checkpoints, first.checkpoints)
        assert [(each.done, each.total) for each in said] == [(n + 1, 6) for n in range(6)]
        third = await export_langgraph(target, saver)
        assert (third.checkpoints, third.already) == (6, 6)
        history = [each async for each in graph.aget_state_history(on("t"))]
    with stock(target) as theirs:
        assert list(talking().compile(checkpointer=theirs).get_state_history(on("t"))) == history


@pytest.mark.sampled(4)
@pytest.mark.parametrize("nth", [1, 5, 30])
async def test_an_export_that_was_broken_off_is_finished_by_the_next(
    nth: int, store_address: str, target: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    kind = AsyncPostgresSaver if target.startswith("postgres") else AsyncSqliteSaver
    calls, put = 0, kind.aput

    async def dying(self: Any, *args: Any) -> Any:
        nonlocal calls
        calls += 1
        if calls == nth:
            raise KeyboardInterrupt
        return await put(self, *args)

    with LongthreadSaver.from_conn_string(store_address) as saver:
        fill(saver)
        before = told(application().compile(checkpointer=saver))
    async with ours(store_address) as saver:
        with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
            patch.setattr(kind, "aput", dying)
            await export_langgraph(target, saver)
        assert (await export_langgraph(target, saver)).already == nth - 1
    with stock(target) as theirs:
        assert told(application().compile(checkpointer=theirs)) == before


async def stored_items(saver: LongthreadSaver, user_id: str) -> list[items.Item]:
    async with saver.backing.store.reading() as tx:
        return [replace(item, fields="") for item in await items.page(tx, ItemScope(user_id), None, limit=9)]


@pytest.mark.sampled(2)
async def test_items_go_with_their_times(store_address: str, target: str) -> None:
    async with ours(store_address) as saver:
        store = LongthreadStore.of(saver)
        await store.aput(("users", "ada"), "food", {"text": "面条", "rating": 5})
        await store.aput(("users", "ada"), "short", {"text": "gone soon"}, ttl=90)
        before = await stored_items(saver, "default")
        done = await export_langgraph(target, saver)
        assert (done.threads, done.items, done.items_already) == (0, 2, 0)
        assert (await export_langgraph(target, saver)).items_already == 2
    with stock_store(target) as theirs:
        assert theirs.get(("users", "ada"), "food").value == {"text": "面条", "rating": 5}
        assert [each.key for each in theirs.search(("users",), filter={"rating": {"$gt": 4}})] == ["food"]
        theirs.sweep_ttl()
        assert theirs.get(("users", "ada"), "short", refresh_ttl=False) is not None
    async with ours(store_address) as saver:
        hers = saver.for_user("ada")
        done = await import_langgraph(target.removeprefix("sqlite:///"), hers)
        assert (done.threads, done.items) == (0, 2)
        assert await stored_items(hers, "ada") == before
        assert (await LongthreadStore.of(hers).asearch(("users",), query="面条"))[0].key == "food"


async def test_an_expired_item_is_expired_there_too(tmp_path: Path, file: str) -> None:
    """SqliteStore compares times as texts."""
    async with ours(str(tmp_path / "ours.db")) as saver:
        await LongthreadStore.of(saver).aput(("n",), "k", {}, ttl=90)
        await export_langgraph(file, saver)
    with closing(sqlite3.connect(file)) as connection:
        asked = "SELECT count(*) FROM store WHERE expires_at < datetime('now', ?)"
        assert connection.execute(asked, ["+85 minutes"]).fetchone() == (0,)
        assert connection.execute(asked, ["+95 minutes"]).fetchone() == (1,)


async def test_an_item_that_is_there_with_another_value_stays_unless_it_is_to_be_replaced(
    store_address: str, target: str
) -> None:
    with stock_store(target) as theirs:
        theirs.put(("n",), "k", {"v": "theirs"})
    async with ours(store_address) as saver:
        await LongthreadStore.of(saver).aput(("n",), "k", {"v": "ours"})
        with pytest.raises(ExportIncomplete, match="item k in n is there already, with another value"):
            await export_langgraph(target, saver)
        with stock_store(target) as theirs:
            assert theirs.get(("n",), "k").value == {"v": "theirs"}
        await export_langgraph(target, saver, replaces=True)
    with stock_store(target) as theirs:
        assert theirs.get(("n",), "k").value == {"v": "ours"}


async def test_messages_that_no_checkpoint_has_are_told(store_address: str, file: str) -> None:
    async with ours(store_address) as saver:
        graph = talking().compile(checkpointer=saver)
        state = await graph.ainvoke(asked("forget me"), on("t"))
        await graph.aupdate_state(on("t"), {"messages": [RemoveMessage(state["messages"][0].id)]})
        assert (await export_langgraph(file, saver)).notes == ()
        await saver.aprune(["t"])
        done = await export_langgraph(file.replace("stock", "pruned"), saver)
        assert done.notes == ("thread t: 1 messages are in no checkpoint",)


class Turned(CipherProtocol):
    """Stands for AES: text is not readable."""

    def encrypt(self, plaintext: bytes) -> tuple[str, bytes]:
        return "turned", plaintext[::-1]

    def decrypt(self, ciphername: str, ciphertext: bytes) -> bytes:
        return ciphertext[::-1]


async def test_what_cannot_be_read_is_named_and_the_rest_is_there(store_address: str, file: str) -> None:
    serde = EncryptedSerializer(Turned())
    async with ours(store_address) as plain, ours(store_address, serde=serde) as sealed:
        await talking().compile(checkpointer=sealed).ainvoke(asked("sealed"), on("a"))
        await talking().compile(checkpointer=plain).ainvoke(asked("plain"), on("b"))
        with pytest.raises(
            ExportIncomplete, match="checkpoint .* of thread a: .*Open the store with that serializer"
        ) as error:
            await export_langgraph(file, plain)
        assert len(error.value.left) == 3
    with stock(file) as theirs:
        assert texts(talking().compile(checkpointer=theirs).get_state(on("b")).values) == ["plain", "echo plain"]
        assert list(theirs.list(on("a"))) == []


async def test_it_is_written_with_the_serializer_that_the_program_there_uses(store_address: str, file: str) -> None:
    serde = EncryptedSerializer(Turned())
    async with ours(store_address) as saver:
        await talking().compile(checkpointer=saver).ainvoke(asked("secret"), on("t"))
        await export_langgraph(file, saver, serde=serde)
    with closing(sqlite3.connect(file, check_same_thread=False)) as connection:
        assert {kind for (kind,) in connection.execute("SELECT type FROM checkpoints")} == {"msgpack+turned"}
        graph = talking().compile(checkpointer=SqliteSaver(connection, serde=serde))
        assert texts(graph.get_state(on("t")).values) == ["secret", "echo secret"]


async def test_a_database_that_is_none_for_it_is_refused(store_address: str, tmp_path: Path) -> None:
    (tmp_path / "text.db").write_text("Dear diary, " * 100)
    with closing(sqlite3.connect(tmp_path / "other.db")) as other:
        other.execute("CREATE TABLE checkpoints (id INTEGER)")
    refused = {
        store_address: "a Longthread store",
        "mysql://me:secret@localhost/db": "neither a SQLite file nor a postgresql:// address",
        str(tmp_path): "it is not a file",
        str(tmp_path / "text.db"): "it is not a SQLite database",
        str(tmp_path / "other.db"): "it has no tables `checkpoints` and `writes`",
        "sqlite:///": "it names no file",
    }
    async with ours(store_address) as saver:
        await talking().compile(checkpointer=saver).ainvoke(asked("hello"), on("t"))
        for address, why in refused.items():
            with pytest.raises(NotAnExportTarget, match=why) as error:
                await export_langgraph(address, saver)
            assert "secret" not in str(error.value)


async def test_a_missing_package_is_named(store_address: str, file: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "langgraph.checkpoint.sqlite.aio", None)
    async with ours(store_address) as saver:
        await talking().compile(checkpointer=saver).ainvoke(asked("hello"), on("t"))
        with pytest.raises(ExtraMissing, match="pip install .*'langgraph-checkpoint-sqlite<"):
            await export_langgraph(file, saver)
    assert not Path(file).exists()


@pytest.mark.one_backend
def test_the_command_writes_all_users_threads(run: Run, tmp_path: Path) -> None:  # noqa: F811
    with LongthreadSaver.from_conn_string(str(tmp_path / "ours.db")) as saver:
        for user in ("ada", "bob"):
            graph = talking().compile(checkpointer=saver.for_user(user))
            graph.invoke(asked(f"I am {user}"), on(user))
            LongthreadStore.of(saver.for_user(user)).put(("n",), "k", {"of": user})
    options = "--to", "sqlite:///stock.db", "--database", "ours.db"
    failed = run("export", "langgraph", *options, "--json", code=1)
    written = json.loads(failed.stdout.splitlines()[0])
    assert written["written"] == {"checkpoints": 6, "items": 2, "threads": 2}
    assert written["left"] == ["item k in n is there already, with another value."]
    assert "2 users" in written["notes"][-1]
    assert (
        "1 thread in only.db"
        in run("export", "langgraph", "--to", "only.db", "--database", "ours.db", "--user", "bob").stdout
    )
    with stock(str(tmp_path / "only.db")) as theirs:
        assert texts(talking().compile(checkpointer=theirs).get_state(on("bob")).values) == [
            "I am bob",
            "echo I am bob",
        ]


@pytest.mark.postgres
async def test_another_schemas_tables_are_not_touched(postgres_url: str, file: str) -> None:
    """A Longthread store and the stock tables may share a database, in schemas of their own."""
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        connection.execute("CREATE SCHEMA moved")
    address = (
        f"{postgres_url}&options=-csearch_path%3Dmoved"
        if "?" in postgres_url
        else (f"{postgres_url}?options=-csearch_path%3Dmoved")
    )
    async with ours(postgres_url) as saver:
        graph = talking().compile(checkpointer=saver)
        await graph.ainvoke(asked("hello"), on("t"))
        await export_langgraph(address, saver)
        state = (await graph.aget_state(on("t"))).values
    with stock(address) as theirs:
        assert talking().compile(checkpointer=theirs).get_state(on("t")).values == state
