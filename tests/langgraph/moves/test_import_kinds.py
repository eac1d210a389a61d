"""Items, users, pickles and encrypted checkpoints of LangGraph's own savers and stores are taken over too."""

from __future__ import annotations

import asyncio
import json
import pickle
import sqlite3
import sys
import types
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, closing
from pathlib import Path
from typing import Any

import psycopg
import pytest
from langgraph.checkpoint.postgres import PostgresSaver
from langgraph.checkpoint.serde.base import CipherProtocol
from langgraph.checkpoint.serde.encrypted import EncryptedSerializer
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.store.postgres import PostgresStore
from langgraph.store.sqlite import SqliteStore
from psycopg.rows import dict_row
from tests.cli.conftest import Run, made_once, run  # noqa: F401  # fixtures
from tests.langgraph.moves.test_import import asked, on, texts
from tests.lending import database

from longthread.errors import ImportIncomplete, InvalidInput
from longthread.langgraph import LongthreadSaver, LongthreadStore, export_langgraph, import_langgraph
from longthread.langgraph.transfer.stock_savers import serializer

pytestmark = pytest.mark.one_backend


class Price:
    """Something that only a pickle can hold."""

    def __init__(self, cents: int) -> None:
        self.cents = cents

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Price) and other.cents == self.cents

    __hash__ = None  # type: ignore[assignment]


class State(MessagesState):
    price: Any


def talking(*, priced: bool = False) -> Any:
    def answer(state: State) -> dict[str, Any]:
        said = {"messages": [("ai", f"echo {state['messages'][-1].text}")]}
        return said | ({"price": Price(5)} if priced else {})

    builder = StateGraph(State)
    builder.add_node("answer", answer)
    builder.add_edge(START, "answer")
    return builder


class Turned(CipherProtocol):
    """Stands for AES: text is not readable, and another key is not this one."""

    def __init__(self, key: str = "turned") -> None:
        self.key = key

    def encrypt(self, plaintext: bytes) -> tuple[str, bytes]:
        return "aes", self.key.encode() + plaintext[::-1]

    def decrypt(self, ciphername: str, ciphertext: bytes) -> bytes:
        if not ciphertext.startswith(self.key.encode()):
            raise ValueError("MAC check failed")
        return ciphertext[len(self.key) :][::-1]


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.postgres)])
def source(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """The address of a new database for LangGraph's own savers."""
    if request.param == "sqlite":
        yield str(tmp_path / "stock.db")
    else:
        with database(request.getfixturevalue("postgres_server")) as url:
            yield url


def talk(source: str, *thread_ids: str, serde: Any = None, priced: bool = False, **configurable: Any) -> None:
    """One turn on each thread, with the database's own saver."""
    if source.startswith("postgres"):
        connection: Any = psycopg.connect(source, autocommit=True, row_factory=dict_row)
        saver: Any = PostgresSaver(connection, serde=serde)
    else:
        connection = sqlite3.connect(source, check_same_thread=False)
        saver = SqliteSaver(connection, serde=serde)
    with closing(connection):
        saver.setup()
        graph = talking(priced=priced).compile(checkpointer=saver)
        for thread_id in thread_ids:
            graph.invoke(asked(f"on {thread_id}"), {"configurable": {"thread_id": thread_id, **configurable}})


@asynccontextmanager
async def ours(address: str, **options: Any) -> AsyncIterator[LongthreadSaver]:
    async with LongthreadSaver.from_conn_string(address, **options) as saver:
        yield saver


async def state(saver: LongthreadSaver, thread_id: str) -> dict[str, Any]:
    return dict((await talking().compile(checkpointer=saver).aget_state(on(thread_id))).values)


def embed(given: list[str]) -> list[list[float]]:
    return [[float("面" in text), float("茶" in text), 0.1] for text in given]


@pytest.mark.sampled(2)
async def test_items_come_with_their_times_and_get_vectors(source: str, store_address: str) -> None:
    kind = PostgresStore if source.startswith("postgres") else SqliteStore
    with kind.from_conn_string(source) as theirs:
        theirs.setup()
        theirs.put(("users", "ada"), "food", {"text": "她喜欢面条", "tags": ["a"], "n": 1.5})
        theirs.put(("users", "ada"), "drink", {"text": "绿茶"}, ttl=90)
        created = theirs.get(("users", "ada"), "food").created_at
    async with ours(store_address) as saver:
        done = await import_langgraph(source, saver)
        assert (done.threads, done.items, done.items_already) == (0, 2, 0)
        assert (await import_langgraph(source, saver)).items_already == 2
        store = LongthreadStore.of(saver, index={"dims": 3, "embed": embed})
        found = await store.aget(("users", "ada"), "food")
        assert found is not None
        assert found.value == {"text": "她喜欢面条", "tags": ["a"], "n": 1.5}
        assert found.created_at.isoformat()[:19] == str(created).replace(" ", "T")[:19]
        best, *_ = await store.asearch(("users",), query="茶")
        assert best.key == "drink"
        assert best.score is not None
        assert best.score > 0.9
        async with saver.backing.store.reading() as tx:
            rows = await tx.fetch("select_item", user_id="default", namespace="users.ada", key="drink", alive_at="")
        assert rows[0]["ttl_minutes"] == 90
        assert rows[0]["expires_at"] > rows[0]["created_at"]


async def test_an_item_that_has_changed_here_since_stays(source: str, store_address: str) -> None:
    kind = PostgresStore if source.startswith("postgres") else SqliteStore
    with kind.from_conn_string(source) as theirs:
        theirs.setup()
        theirs.put(("n",), "k", {"v": 1})
    async with ours(store_address) as saver:
        await import_langgraph(source, saver)
        store = LongthreadStore.of(saver)
        await store.aput(("n",), "k", {"v": "here"})
        assert (await import_langgraph(source, saver)).items_already == 1
        found = await store.aget(("n",), "k")
        assert found is not None
        assert found.value == {"v": "here"}


async def test_a_damaged_item_is_named_and_the_others_come(tmp_path: Path, store_address: str) -> None:
    with SqliteStore.from_conn_string(str(tmp_path / "stock.db")) as theirs:
        theirs.setup()
        for key in "abc":
            theirs.put(("n",), key, {"v": key})
        theirs.conn.execute("UPDATE store SET value = '{' WHERE key = 'b'")
        theirs.conn.commit()
    async with ours(store_address) as saver:
        with pytest.raises(ImportIncomplete, match="item b in n cannot be read") as error:
            await import_langgraph(str(tmp_path / "stock.db"), saver)
        assert len(error.value.left) == 1
        assert {item.key for item in await LongthreadStore.of(saver).asearch(("n",))} == {"a", "c"}


@pytest.mark.sampled(2)
async def test_threads_become_those_of_the_users_whom_their_metadata_names(source: str, store_address: str) -> None:
    talk(source, "a1", "a2", user_id="ada")
    talk(source, "b1", langgraph_auth_user_id="bob", user_id="ada")
    talk(source, "none", user_id="")
    talk(source, "turn", user_id="ada")
    talk(source, "turn", user_id="bob")
    async with ours(store_address) as saver:
        done = await import_langgraph(source, saver)
        assert done.users == {"ada": 3, "bob": 1}
        assert done.notes == ("thread turn names the users ada, bob; it is ada's now",)
        assert texts(await state(saver.for_user("ada"), "a1")) == ["on a1", "echo on a1"]
        assert texts(await state(saver.for_user("bob"), "b1")) == ["on b1", "echo on b1"]
        assert texts(await state(saver, "none")) == ["on none", "echo on none"]
        assert await state(saver, "a1") == {}
        again = await import_langgraph(source, saver)
        assert again.already == done.checkpoints == again.checkpoints


async def test_the_key_of_the_user_may_be_named_or_none(source: str, store_address: str) -> None:
    talk(source, "t", customer=7, user_id="ada")
    async with ours(store_address) as saver:
        await import_langgraph(source, saver, user_keys=["customer"])
        assert texts(await state(saver.for_user("7"), "t")) == ["on t", "echo on t"]
        await saver.for_user("7").adelete_thread("t")
        assert (await import_langgraph(source, saver, user_keys=())).users == {}
        assert texts(await state(saver, "t")) == ["on t", "echo on t"]


PICKLES = JsonPlusSerializer(pickle_fallback=True)


@pytest.mark.sampled(2)
async def test_pickles_are_read_when_that_is_asked_for(source: str, store_address: str) -> None:
    talk(source, "plain")
    talk(source, "priced", serde=PICKLES, priced=True)
    async with ours(store_address, serde=PICKLES) as saver:
        with pytest.raises(ImportIncomplete, match="2 of 6 checkpoints are missing") as refused:
            await import_langgraph(source, saver)
        assert all("of thread priced" in each and "--allow-pickle" in each for each in refused.value.left)
        assert any("channel price: it is pickled" in each for each in refused.value.left)
        assert texts(await state(saver, "plain")) == ["on plain", "echo on plain"]
        done = await import_langgraph(source, saver, serde=PICKLES)
        assert (done.checkpoints, done.already) == (6, 4)
        assert (await state(saver, "priced"))["price"] == Price(5)
        history = [each async for each in talking().compile(checkpointer=saver).aget_state_history(on("priced"))]
        assert [len(each.values.get("messages", ())) for each in history] == [2, 1, 0]


async def test_what_the_savers_serializer_cannot_write_is_named(source: str, store_address: str) -> None:
    talk(source, "priced", serde=PICKLES, priced=True)
    async with ours(store_address) as saver:
        with pytest.raises(ImportIncomplete, match="channel price: the saver's serializer cannot write it"):
            await import_langgraph(source, saver, serde=PICKLES)


@pytest.mark.sampled(2)
async def test_checkpoints_that_were_left_out_come_when_they_can_be_read(source: str, store_address: str) -> None:
    """In the middle of a thread too, whose newest state stays the newest."""
    talk(source, "t")
    talk(source, "t", serde=PICKLES, priced=True)
    serde = PICKLES
    talk(source, "t", serde=serde)
    async with ours(store_address, serde=PICKLES) as saver:
        with pytest.raises(ImportIncomplete, match="pickled"):
            await import_langgraph(source, saver)
        left = len([each async for each in saver.alist(None)])
        assert 0 < left < 9
        assert (await import_langgraph(source, saver, serde=PICKLES)).checkpoints == 9
        found = await state(saver, "t")
        assert texts(found) == ["on t", "echo on t"] * 3
        assert found["price"] == Price(5)


@pytest.mark.sampled(2)
async def test_encrypted_checkpoints_are_read_with_their_serializer(source: str, store_address: str) -> None:
    serde = EncryptedSerializer(Turned())
    talk(source, "t", serde=serde)
    async with ours(store_address) as saver:
        with pytest.raises(ImportIncomplete, match="it is encrypted with aes. Give --aes"):
            await import_langgraph(source, saver)
        with pytest.raises(ImportIncomplete, match="it cannot be decrypted: MAC check failed"):
            await import_langgraph(source, saver, serde=EncryptedSerializer(Turned("other")))
        assert [each async for each in saver.alist(None)] == []
        assert (await import_langgraph(source, saver, serde=serde)).checkpoints == 3
        assert texts(await state(saver, "t")) == ["on t", "echo on t"]


async def test_what_was_encrypted_stays_so_in_a_store_with_the_same_serializer(source: str, tmp_path: Path) -> None:
    serde = EncryptedSerializer(Turned())
    talk(source, "t", serde=serde, note="classified")
    async with ours(str(tmp_path / "ours.db"), serde=serde) as saver:
        await import_langgraph(source, saver, serde=serde)
        assert texts(await state(saver, "t")) == ["on t", "echo on t"]
        history = [each async for each in saver.alist(None)]
        await export_langgraph(str(tmp_path / "back.db"), saver)
    files = [tmp_path / name for name in ("ours.db", "ours.db-wal", "back.db")]
    stored = b"".join(file.read_bytes() for file in files if file.exists())
    assert b"echo" not in stored
    with closing(sqlite3.connect(tmp_path / "back.db", check_same_thread=False)) as connection:
        back = list(SqliteSaver(connection, serde=serde).list(None))
    assert [each.metadata for each in back] == [each.metadata for each in history]
    assert back[0].checkpoint["channel_values"]["messages"] == history[0].checkpoint["channel_values"]["messages"]


def test_a_serializer_is_named_by_its_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "own_serde.py").write_text(
        "from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer\n"
        "one = JsonPlusSerializer()\n"
        "def make():\n    return one\n"
        "wrong = 7\n"
    )
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    assert serializer(at="own_serde:one") is serializer(at="own_serde:make")
    assert isinstance(serializer(at="langgraph.checkpoint.serde.jsonplus:JsonPlusSerializer"), JsonPlusSerializer)
    for wrong, why in {
        "own_serde": "names no serializer",
        "nowhere:serde": "cannot be imported",
        "own_serde:nothing": "cannot be imported",
        "own_serde:wrong": "is of type int",
    }.items():
        with pytest.raises(InvalidInput, match=why):
            serializer(at=wrong)
    with pytest.raises(InvalidInput, match="Give --serde alone"):
        serializer(at="own_serde:one", pickle=True)
    assert serializer() is None


def test_the_key_is_read_when_it_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "Crypto.Cipher", None)
    with pytest.raises(InvalidInput, match="pip install pycryptodome"):
        serializer(aes=True)
    monkeypatch.setitem(sys.modules, "Crypto", types.ModuleType("Crypto"))
    monkeypatch.setitem(sys.modules, "Crypto.Cipher", types.SimpleNamespace(AES=types.SimpleNamespace(MODE_EAX=9)))
    monkeypatch.delenv("LANGGRAPH_AES_KEY", raising=False)
    with pytest.raises(InvalidInput, match="LANGGRAPH_AES_KEY environment variable is not set"):
        serializer(aes=True)
    monkeypatch.setenv("LANGGRAPH_AES_KEY", "k" * 16)
    assert serializer() is None
    assert serializer(pickle=True) is not None
    found = serializer(aes=True)
    assert isinstance(found, EncryptedSerializer)
    assert not found.serde.pickle_fallback  # type: ignore[attr-defined]


@pytest.mark.one_backend
def test_the_command_names_what_it_left_and_takes_it_when_it_may(run: Run, tmp_path: Path) -> None:  # noqa: F811
    talk(str(tmp_path / "stock.db"), "plain", user_id="ada")
    talk(str(tmp_path / "stock.db"), "priced", serde=PICKLES, priced=True)
    with SqliteStore.from_conn_string(str(tmp_path / "stock.db")) as theirs:
        theirs.setup()
        theirs.put(("n",), "k", {"v": 1})
    look = run("import", "stock.db", "--dry-run", "--json", code=1)
    told = json.loads(look.stdout.splitlines()[0])
    assert told["there"] == {"LangGraph threads": 2, "checkpoints": 6, "items": 1}
    assert told["users"] == {"ada": 1}
    first = json.loads(run("import", "stock.db", "--json", "--database", "ours.db", code=1).stdout.splitlines()[0])
    assert first["here"] == {"LangGraph threads": 2, "checkpoints": 4, "items": 1}
    assert len(first["left"]) == 2
    second = run("import", "stock.db", "--json", "--database", "ours.db", "--allow-pickle")
    assert json.loads(second.stdout)["here"] == {"LangGraph threads": 2, "checkpoints": 6, "items": 1}
    with LongthreadSaver.from_conn_string(str(tmp_path / "ours.db"), serde=PICKLES) as saver:
        graph = talking().compile(checkpointer=saver)
        assert graph.get_state(on("priced")).values["price"] == Price(5)
        assert graph.get_state(on("plain")).values == {}
        hers = talking().compile(checkpointer=saver.for_user("ada"))
        assert texts(hers.get_state(on("plain")).values) == ["on plain", "echo on plain"]


def test_a_pickle_is_not_run_unasked(tmp_path: Path) -> None:
    """Of what cannot be read only the kind is looked at."""

    talk(str(tmp_path / "stock.db"), "t")

    class Runs:
        def __reduce__(self) -> Any:
            return (Path.touch, (tmp_path / "was run",))

    with closing(sqlite3.connect(tmp_path / "stock.db")) as connection:
        connection.execute("UPDATE checkpoints SET type = 'pickle', checkpoint = ?", [pickle.dumps(Runs())])
        connection.commit()

    async def take() -> None:
        async with ours(str(tmp_path / "ours.db")) as saver:
            with pytest.raises(ImportIncomplete, match="pickled"):
                await import_langgraph(str(tmp_path / "stock.db"), saver)

    asyncio.run(take())
    assert not (tmp_path / "was run").exists()
