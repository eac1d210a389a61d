"""A serializer of the application's own writes everything of a conversation, and nothing of it stands in plain."""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import pytest
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from langchain.agents import create_agent
from langchain_core.messages import AIMessage, HumanMessage, RemoveMessage, SystemMessage, ToolMessage
from langgraph.channels.delta import DeltaChannel
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.serde.encrypted import EncryptedSerializer
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.types import Command, Send, interrupt
from tests.memory.canary import CANARY, in_files, marks, places
from tests.script import call
from typing_extensions import TypedDict

from longthread.errors import SerializerNeeded, SerializerNotUsable
from longthread.langgraph import LongthreadSaver, MemoryMiddleware, import_langgraph, recall_tool
from longthread.store.driver import Driver
from longthread.store.open import open_store
from longthread.store.queries import Sql
from longthread.testing import ScriptedChatModel

pytestmark = pytest.mark.one_backend

AT: Any = {"configurable": {"thread_id": "t"}}
WHERE = {**AT, "metadata": {"said": CANARY, "run_id": "r1"}}


class Cipher:
    """AES in a mode that makes something else of the same text each time."""

    def __init__(self, key: bytes = b"k" * 32) -> None:
        self._aes = AESGCM(key)

    def encrypt(self, plaintext: bytes) -> tuple[str, bytes]:
        nonce = os.urandom(12)
        return "gcm", nonce + self._aes.encrypt(nonce, plaintext, None)

    def decrypt(self, ciphername: str, ciphertext: bytes) -> bytes:
        return self._aes.decrypt(ciphertext[:12], ciphertext[12:], None)


def sealing(key: bytes = b"k" * 32) -> EncryptedSerializer:
    return EncryptedSerializer(Cipher(key))


def _together(values: list[str] | None, writes: list[list[Any]]) -> list[Any]:
    return [*(values or []), *(one for each in writes for one in each)]


class State(MessagesState):
    notes: dict[str, Any]
    log: Annotated[list[Any], DeltaChannel(_together)]


def _work(state: State) -> dict[str, Any]:
    words = f"answer {CANARY}"
    calls = [{"name": "look", "args": {"for": CANARY}, "id": f"c{len(state['messages'])}"}]
    said = AIMessage(words, tool_calls=calls, additional_kwargs={"thought": CANARY})
    result = ToolMessage([{"type": "text", "text": CANARY}], tool_call_id=calls[0]["id"], name=CANARY)
    return {
        "messages": [said, result],
        "notes": {CANARY: HumanMessage(CANARY), "long": CANARY * 100},
        "log": [HumanMessage(f"logged {CANARY}")],
    }


def graph_of(saver: Any) -> Any:
    def ask(state: State) -> dict[str, Any]:
        return {"messages": [("user", interrupt({"question": CANARY}))]}

    def each(given: Any) -> dict[str, Any]:
        return {"log": [given["said"], (CANARY, given["message"])]}

    def fan(state: State) -> list[Send]:
        return [Send("each", {"said": f"{CANARY} {n}", "message": state["messages"][0]}) for n in range(2)]

    builder = StateGraph(State)
    builder.add_node("work", _work)
    builder.add_node("each", each)
    builder.add_node("ask", ask)
    builder.add_edge(START, "work")
    builder.add_conditional_edges("work", fan, ["each"])
    builder.add_edge("each", "ask")
    return builder.compile(checkpointer=saver)


def question(text: str) -> dict[str, Any]:
    return {"messages": [SystemMessage(f"{text}: {CANARY}", id="sys"), HumanMessage(f"{text} {CANARY}", id=text)]}


async def conversation(graph: Any) -> list[Any]:
    """Turns with an interrupt, an edit in place, a removal and forks; return what stood there at each moment."""
    for text in ("one", "two"):
        await graph.ainvoke(question(text), WHERE)
        await graph.ainvoke(Command(resume=f"yes {CANARY}"), WHERE)
    await graph.aupdate_state(AT, {"messages": [RemoveMessage(id="one")]}, "ask")
    past = [state async for state in graph.aget_state_history(AT)]
    old = next(state for state in past if state.next == ("ask",))
    await graph.ainvoke(Command(resume=f"other {CANARY}"), old.config)
    await graph.aupdate_state(old.config, {"messages": [HumanMessage(f"edited {CANARY}", id="two")]}, "ask")
    return [state async for state in graph.aget_state_history(AT)]


def told(states: Sequence[Any]) -> list[Any]:
    def plain(value: Any) -> Any:
        if isinstance(value, list | tuple):
            return [plain(each) for each in value]
        if isinstance(value, dict):
            return {key: plain(each) for key, each in value.items()}
        fields = getattr(value, "model_dump", None)
        return {**fields(), "id": None} if fields is not None else value

    return [
        (plain(state.values), state.next, state.metadata.get("said"), [task.interrupts for task in state.tasks] != [])
        for state in states
    ]


async def test_nothing_of_a_conversation_stands_in_plain_and_all_of_it_comes_back(
    store_address: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING)
    async with LongthreadSaver.from_conn_string(store_address, serde=sealing()) as saver:
        states = told(await conversation(graph_of(saver)))
        assert in_files(store_address, marks()) == set()
        again = LongthreadSaver(saver._store, serde=sealing())
        assert told([state async for state in graph_of(again).aget_state_history(AT)]) == states
        listed = [item async for item in again.alist(AT, filter={"said": CANARY})]
        assert listed
    assert places(store_address, marks()) == set()
    assert in_files(store_address, marks()) == set()
    assert states == told(await conversation(graph_of(InMemorySaver())))
    async with LongthreadSaver.from_conn_string(store_address, serde=sealing()) as saver:
        graph = graph_of(saver)
        newest = told([await graph.aget_state(AT)])
        await saver.acopy_thread("t", "copy")
        await LongthreadSaver(saver._store).aprune(["t"])  # needs no key
        assert told([await graph.aget_state(AT)]) == newest
        assert told([await graph.aget_state({"configurable": {"thread_id": "copy"}})]) == newest
        await saver.adelete_for_runs(["r1"])
        await saver.adelete_thread("copy")
        await graph.ainvoke(question("three"), AT)
    assert places(store_address, marks()) == set()


async def test_what_is_stored_is_not_stored_again_by_a_process_that_remembers_nothing(store: Driver) -> None:
    messages = [HumanMessage(f"m{n}", id=f"m{n}", additional_kwargs={"n": n}) for n in range(20)]

    async def size() -> int:
        async with store.reading() as tx:
            [row] = await tx.fetch(Sql("SELECT count(*) AS n FROM entries"))
            return int(row["n"])

    builder = StateGraph(MessagesState)
    builder.add_node("work", lambda state: {"messages": state["messages"]})
    builder.add_edge(START, "work")
    for _ in range(3):
        graph: Any = builder.compile(checkpointer=LongthreadSaver(store, serde=sealing()))
        await graph.ainvoke({"messages": messages}, AT)
    assert await size() == 20
    changed = [message.model_copy(update={"content": "changed"}) for message in messages[:2]]
    for saver in (LongthreadSaver(store, serde=sealing()), LongthreadSaver(store, serde=sealing())):
        graph = builder.compile(checkpointer=saver)
        await graph.ainvoke({"messages": changed}, AT)
        assert [m.text for m in (await graph.aget_state(AT)).values["messages"]][:3] == ["changed", "changed", "m2"]
    assert await size() == 22


@pytest.mark.parametrize("serde", [None, sealing(b"x" * 32)], ids=["none", "another key"])
async def test_without_the_key_an_error_names_it(store: Driver, serde: Any) -> None:
    writer = graph_of(LongthreadSaver(store, serde=sealing()))
    await writer.ainvoke(question("one"), WHERE)
    reader = LongthreadSaver(store, serde=serde)
    for reading in (graph_of(reader).aget_state(AT), graph_of(reader).ainvoke(question("two"), AT)):
        with pytest.raises(SerializerNeeded, match=r"kind msgpack\+gcm.*serde=EncryptedSerializer"):
            await reading
    with pytest.raises(SerializerNeeded):
        _ = [item async for item in reader.alist(AT)]
    await graph_of(LongthreadSaver(store, serde=sealing())).ainvoke(Command(resume="yes"), AT)


async def test_a_thread_that_was_begun_in_plain_goes_on_sealed(store: Driver, store_address: str) -> None:
    builder = StateGraph(MessagesState)
    builder.add_node("work", lambda state: {"messages": [("ai", f"re: {state['messages'][-1].text}")]})
    builder.add_edge(START, "work")
    for serde, text in ((None, "plain"), (sealing(), CANARY)):
        graph: Any = builder.compile(checkpointer=LongthreadSaver(store, serde=serde))
        await graph.ainvoke({"messages": [("user", text)]}, AT)
    found = [message.text for message in (await graph.aget_state(AT)).values["messages"]]
    assert found == ["plain", "re: plain", CANARY, f"re: {CANARY}"]
    assert places(store_address, marks()) == set()


def agent_of(saver: Any) -> Any:
    def reply(messages: list[Any]) -> Any:
        if messages[-1].text.startswith("find"):
            return call("recall_memory", query=CANARY)
        return f"noted {CANARY}"

    memory = MemoryMiddleware(patience=0, max_messages_per_thread=4, summary_threshold=2)
    return create_agent(ScriptedChatModel(reply), [recall_tool()], middleware=[memory], checkpointer=saver)


async def recalled(agent: Any, turns: int = 8) -> dict[str, Any]:
    for number in range(turns):
        await agent.ainvoke({"messages": [("user", f"{CANARY} {number}")]}, AT)
    state = await agent.ainvoke({"messages": [("user", "find it")]}, AT)
    results = [message for message in state["messages"] if isinstance(message, ToolMessage)]
    found: dict[str, Any] = json.loads(results[-1].text)["data"]
    return found


async def test_memory_says_that_it_has_no_words(store_address: str, caplog: pytest.LogCaptureFixture) -> None:
    async with LongthreadSaver.from_conn_string(store_address, serde=sealing()) as saver:
        found = await recalled(agent_of(saver))
    assert found["found"] == [] and "index_text=True" in found["warnings"][-1]
    assert [each.message for each in caplog.records if "index_text=True" in each.message] != []
    assert places(store_address, marks()) == set()


async def test_an_index_that_is_allowed_finds_words(store_address: str) -> None:
    async with LongthreadSaver.from_conn_string(store_address, serde=sealing(), index_text=True) as saver:
        found = await recalled(agent_of(saver.for_user("ada")))
    assert found["found"] and all(CANARY in each["text"] for each in found["found"])
    assert "warnings" not in found or "index_text" not in str(found["warnings"])
    assert {"entries.text", "threads.title"} <= places(store_address, marks())
    assert not {each for each in places(store_address, marks()) if each.startswith("checkpoint")}
    assert "entries.payload" not in places(store_address, marks())


class Marking(JsonPlusSerializer):
    """Changes how one kind of value is written, and notes what it is given."""

    def __init__(self) -> None:
        super().__init__()
        self.kinds: set[str] = set()

    def dumps_typed(self, obj: Any) -> tuple[str, bytes]:
        self.kinds.add(type(obj).__name__)
        if isinstance(obj, complex):
            return "complex", repr(obj).encode()
        return super().dumps_typed(obj)

    def loads_typed(self, data: tuple[str, bytes]) -> Any:
        return complex(data[1].decode()) if data[0] == "complex" else super().loads_typed(data)


class _Number(MessagesState):
    number: Any


async def test_a_serializer_that_changes_some_types_writes_messages_too(store: Driver) -> None:
    serde = Marking()
    builder = StateGraph(_Number)
    builder.add_node("work", lambda _: {"number": 1 + 2j})
    builder.add_edge(START, "work")
    for saver in (LongthreadSaver(store, serde=serde), LongthreadSaver(store, serde=Marking())):
        graph: Any = builder.compile(checkpointer=saver)
        await graph.ainvoke({"messages": [HumanMessage("hello", id="a")]}, AT)
        values = (await graph.aget_state(AT)).values
        assert values == {"messages": [HumanMessage("hello", id="a")], "number": 1 + 2j}
    assert {"HumanMessage", "complex"} <= serde.kinds


class Held:
    """What only pickle writes."""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Held)

    __hash__ = object.__hash__


async def test_a_fallback_to_pickle_holds_for_messages(store: Driver) -> None:
    builder = StateGraph(MessagesState)
    builder.add_node(
        "work", lambda _: {"messages": [AIMessage("found 航天", id="b", additional_kwargs={"it": Held()})]}
    )
    builder.add_edge(START, "work")
    for _ in range(2):
        saver = LongthreadSaver(store, serde=JsonPlusSerializer(pickle_fallback=True))
        graph: Any = builder.compile(checkpointer=saver)
        await graph.ainvoke({"messages": [HumanMessage("hello", id="a")]}, AT)
        assert (await graph.aget_state(AT)).values["messages"][1].additional_kwargs == {"it": Held()}
    async with store.reading() as tx:
        texts = [row["text"] for row in await tx.fetch(Sql("SELECT text FROM entries ORDER BY seq"))]
    assert texts == ["hello", "found 航天"]


class _Json:
    """A serializer that knows no messages."""

    def dumps_typed(self, obj: Any) -> tuple[str, bytes]:
        return "json", json.dumps(obj).encode()

    def loads_typed(self, data: tuple[str, bytes]) -> Any:
        return json.loads(data[1])


class _Lossy(JsonPlusSerializer):
    def loads_typed(self, data: tuple[str, bytes]) -> Any:
        return str(super().loads_typed(data))


@pytest.mark.parametrize("serde", [_Json(), _Lossy()], ids=["raises", "loses"])
async def test_a_serializer_that_cannot_hold_messages_is_refused_at_once(store: Driver, serde: Any) -> None:
    with pytest.raises(SerializerNotUsable, match=type(serde).__name__):
        LongthreadSaver(store, serde=serde)
    saver = LongthreadSaver(store)
    with pytest.raises(SerializerNotUsable):
        saver.serde = serde


async def test_an_import_is_sealed_too(store: Driver, store_address: str, tmp_path: Path) -> None:
    source = str(tmp_path / "stock.db")
    async with AsyncSqliteSaver.from_conn_string(source) as stock:
        states = told(await conversation(graph_of(stock)))
    async with open_store(store_address) as opened:
        saver = LongthreadSaver(opened, serde=sealing())
        await import_langgraph(source, saver)
        assert told([state async for state in graph_of(saver).aget_state_history(AT)]) == states
    assert places(store_address, marks()) == set()


class _Only(TypedDict):
    log: Annotated[list[Any], DeltaChannel(_together)]


async def test_what_an_update_writes_again_is_no_rival(store: Driver) -> None:
    saver = LongthreadSaver(store, serde=sealing())
    builder: Any = StateGraph(_Only)
    builder.add_node("work", lambda _: {"log": [HumanMessage(CANARY, id="m")]})
    builder.add_edge(START, "work")
    graph = builder.compile(checkpointer=saver)
    await graph.ainvoke({"log": []}, AT)
    found = await saver.aget_tuple(AT)
    assert found is not None
    for _ in range(2):
        await saver.aput_writes(found.config, [("log", [HumanMessage("again", id="n")])], "task")
