"""Arguments of calls that are no JSON: they come back as LangGraph's own saver gives them, and break nothing."""

from __future__ import annotations

import dataclasses
import enum
import io
import json
import math
import uuid
from collections import OrderedDict
from collections.abc import AsyncIterator
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain.agents import create_agent
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage
from langgraph.checkpoint.base import empty_checkpoint
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.graph import START, MessagesState, StateGraph
from tests.analysts import OpenAnalyst

from longthread.builtin.memory_tools import recall_tool as recall_in
from longthread.context.window import item_of
from longthread.errors import MessageNotStorable
from longthread.langgraph import LongthreadSaver, MemoryMiddleware
from longthread.langgraph.memory.message_view import StateMessages
from longthread.langgraph.message_codec import draft_of, message_of
from longthread.memory.recall import Recaller
from longthread.messages.fields import as_json
from longthread.messages.langchain import from_langchain
from longthread.model.thread import Scope
from longthread.store import log
from longthread.store.driver import Driver
from longthread.store.open import open_store
from longthread.store.queries import Sql
from longthread.store.rows import dump
from longthread.store.transfer.archive import export_lines
from longthread.store.transfer.archive_reader import ImportTarget, import_threads
from longthread.store.transfer.copy import compare_stores, copy_store
from longthread.testing import ScriptedChatModel

pytestmark = pytest.mark.one_backend


class Colour(str, enum.Enum):  # noqa: UP042 -- those that are older than StrEnum
    RED = "red"


class Number(enum.IntEnum):
    ONE = 1


class Letter(enum.Enum):
    A = "a"


@dataclasses.dataclass
class Point:
    x: int = 1


class Pair(NamedTuple):
    a: int
    b: str


ARGS: dict[str, Any] = {
    "numbers as keys": {"scores": {1: "a", 2: "b"}},
    "two keys of one text": {"d": {1: "a", "1": "b", None: "c", "null": "d", (1, 2): "e", 1.5: "f"}},
    # Of numbers: the order of texts in a set is another in each process, and is what the stock saver gives back.
    "set of pairs": {"pairs": {(1, 2), (3, 4)}},
    "set": {"tags": {"x", "y"}, "more": frozenset([1])},
    "date": {"on": date(2026, 1, 1), "at": datetime(2026, 1, 1, tzinfo=UTC), "for": timedelta(1)},
    "id": {"id": uuid.UUID(int=5)},
    "bytes": {"b": b"\x01\x02\xff"},
    "decimal": {"d": Decimal("1.10")},
    "enum": {"e": Letter.A, "list": [{"c": Colour.RED}], "n": Number.ONE, Colour.RED: 1},
    "enum beside half of a pair": {"e": [Colour.RED, Number.ONE], "h": b"\x00"},
    "dataclass": {"p": Point()},
    "named tuple": {"p": Pair(1, "x"), "t": (1, (2, [3]))},
    "array": {"a": np.arange(3)},
    "no number": {"n": [math.nan, math.inf, -0.0]},
    "mapping": OrderedDict(b=OrderedDict(x=1), a=2),
    "plain": {"sql": "SELECT 1", "n": [1, 2.5, None, True, {"深": []}], "large": 2**63, "": {}},
}
CASES = pytest.mark.parametrize("args", ARGS.values(), ids=ARGS)


def called(args: Any, **more: Any) -> AIMessage:
    return AIMessage("", id="m", tool_calls=[{"name": "look", "args": args, "id": "c"}], **more)


def args_in(message: Any) -> Any:
    return message.tool_calls[0]["args"]


def exact(value: Any) -> Any:
    """What tells a value from every other, its class too."""
    if isinstance(value, dict):
        return type(value), [(exact(key), exact(item)) for key, item in value.items()]
    if isinstance(value, list | tuple):
        return type(value), list(map(exact, value))
    if isinstance(value, set | frozenset):
        return type(value), sorted(map(repr, map(exact, value)))
    return type(value), repr(value)


def stock(args: Any) -> Any:
    """The arguments as LangGraph's serializer gives them back."""
    serde = JsonPlusSerializer()
    return args_in(serde.loads_typed(serde.dumps_typed(called(args))))


ODD = st.recursive(
    st.one_of(
        st.none() | st.booleans() | st.integers(-(2**63), 2**64 - 1) | st.floats() | st.text(max_size=4),
        st.binary(max_size=3) | st.dates() | st.uuids() | st.timedeltas() | st.decimals(allow_nan=False),
        st.sampled_from([*Colour, *Number, *Letter]),
        st.frozensets(st.text(max_size=2), max_size=3) | st.sets(st.integers(0, 5), max_size=3),
    ),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.tuples(inner, inner),
        st.dictionaries(st.text(max_size=2) | st.integers(0, 3) | st.sampled_from(["0", "1", None]), inner, max_size=3),
    ),
    max_leaves=6,
)


@given(st.dictionaries(st.text(max_size=4), ODD, max_size=3))
def test_arguments_are_those_of_the_serializer_and_json_in_the_column(args: dict[str, Any]) -> None:
    draft = draft_of(called(args))
    assert exact(args_in(message_of(draft))) == exact(stock(args))
    told = draft.tool_calls[0].args
    assert json.loads(dump(told)) == told
    assert json.loads(json.dumps(told, allow_nan=False)) == told
    if exact(args) == exact(told):
        assert draft.payload is None, "plain arguments are stored once"


@given(st.dictionaries(st.text(max_size=4), ODD, max_size=3))
def test_what_else_a_message_holds_is_as_the_serializer_gives_it_back(value: dict[str, Any]) -> None:
    message = AIMessage([{"type": "text", "text": "x"} | value], id="m", additional_kwargs=value)
    serde = JsonPlusSerializer()
    expected = serde.loads_typed(serde.dumps_typed(message))
    again = message_of(draft_of(message))
    assert exact(again.additional_kwargs) == exact(expected.additional_kwargs)
    assert exact(again.content) == exact(expected.content)


@pytest.mark.parametrize("value", [Colour.RED, Number.ONE, [{"n": Number.ONE}]])
def test_a_member_of_an_enumeration_is_one_again_wherever_it_is(value: Any) -> None:
    for message in (
        HumanMessage("x", id="m", additional_kwargs={"v": value}),
        HumanMessage([{"type": "text", "text": "x", "v": value}], id="m"),
        AIMessage("x", id="m", response_metadata={"v": value}),
    ):
        again = message_of(draft_of(message))
        assert exact(again.model_dump()) == exact(message.model_dump())


@pytest.mark.parametrize(
    "args",
    [
        {"c": Colour.RED, "h": "\ud800"},
        {"n": Number.ONE, "large": 2**70, "k": {2**70: {"\udfff"}}},
        {"d": date(2026, 1, 1), "h": ["\x00", "\ud800"]},
        {"huge": 10**5000},
    ],
    ids=["half", "large", "nul", "huge"],
)
def test_what_the_serializer_would_lose_is_exact_too(args: dict[str, Any]) -> None:
    again = args_in(message_of(draft_of(called(args))))
    assert {key: (type(value), value) for key, value in again.items()} == {
        key: (type(value), value) for key, value in args.items()
    }


@pytest.mark.parametrize(
    ("value", "told"),
    [
        ({1: "a", "1": "b"}, {"1 (2)": "a", "1": "b"}),
        ({None: 1, True: 2, (1, "x"): 3, date(2026, 1, 2): 4}, {"null": 1, "true": 2, '[1, "x"]': 3, "2026-01-02": 4}),
        ({"b", "a", 3}, ["a", "b", 3]),
        ([date(2026, 1, 1), uuid.UUID(int=5), b"\x01"], ["2026-01-01", str(uuid.UUID(int=5)), "b'\\x01'"]),
        ([Colour.RED, Letter.A, Pair(1, "x"), math.nan, np.float64(0.5)], ["red", "a", [1, "x"], "nan", 0.5]),
        (MappingProxyType({"a": "x\x00\ud800"}), {"a": "x\ufffd\ufffd"}),
    ],
)
def test_what_a_column_says_of_a_value(value: Any, told: Any) -> None:
    assert exact(as_json(value)) == exact(told)


def test_a_note_of_ours_that_is_no_json_comes_back_too() -> None:
    note = {"kind": "question", "n": {1: date(2026, 1, 1)}}
    message = HumanMessage("x", id="m", additional_kwargs={"longthread": note})
    draft = draft_of(message)
    assert message_of(draft) == message
    assert draft.metadata == {"kind": "question", "n": {"1": "2026-01-01"}}
    assert json.loads(dump(draft.metadata)) == draft.metadata


def test_a_column_takes_mappings_for_objects_and_nothing_else() -> None:
    given = {"m": MappingProxyType({"a": 1}), "pairs": {("a", 1)}, "on": date(2026, 1, 1)}
    assert json.loads(dump(given)) == {"m": {"a": 1}, "pairs": "{('a', 1)}", "on": "2026-01-01"}


def graph_of(saver: Any, args: Any) -> Any:
    def look(state: MessagesState) -> Any:
        count = len(state["messages"])
        calls = [{"name": "look", "args": args, "id": f"c{count}"}]
        return {"messages": [AIMessage("", id=f"m{count}", tool_calls=calls)]}

    builder = StateGraph(MessagesState)
    builder.add_node("look", look)
    builder.add_edge(START, "look")
    return builder.compile(checkpointer=saver)


def on(thread_id: str = "t") -> Any:
    return {"configurable": {"thread_id": thread_id}}


def found_in(state: Any) -> list[Any]:
    return [exact(args_in(message)) for message in state.values["messages"] if message.type == "ai"]


@pytest.mark.sampled(4)
@CASES
def test_a_state_is_that_of_sqlite_saver_warm_and_cold(store_address: str, args: Any) -> None:
    with SqliteSaver.from_conn_string(":memory:") as saver:
        graph = graph_of(saver, args)
        for text in ("one", "two"):
            graph.invoke({"messages": [("user", text)]}, on())
        wanted = found_in(graph.get_state(on()))
    with (
        LongthreadSaver.from_conn_string(store_address) as one,
        LongthreadSaver.from_conn_string(store_address) as other,
    ):
        graphs = [graph_of(saver, args) for saver in (one, other)]
        for graph, text in zip(graphs, ("one", "two"), strict=True):  # two processes by turns
            graph.invoke({"messages": [("user", text)]}, on())
        assert [found_in(graph.get_state(on())) for graph in graphs] == [wanted, wanted]
    with LongthreadSaver.from_conn_string(store_address) as saver:
        assert found_in(graph_of(saver, args).get_state(on())) == wanted
        past = [each for each in graph_of(saver, args).get_state_history(on()) if not each.next]
        assert [len(each.values["messages"]) for each in past] == [4, 2]


@pytest.mark.parametrize("value", [1j, object(), open, (n for n in "a"), np.int64(5)])
def test_what_cannot_be_stored_is_refused_and_nothing_of_it_is_there(store_address: str, value: Any) -> None:
    config = {"configurable": {"thread_id": "t", "checkpoint_ns": ""}}
    checkpoint = empty_checkpoint()
    message = called({"v": [value]})
    checkpoint |= {"channel_values": {"messages": [HumanMessage("hi", id="h"), message]}}
    checkpoint |= {"channel_versions": {"messages": 1}}
    with LongthreadSaver.from_conn_string(store_address) as saver:
        with pytest.raises(MessageNotStorable, match="Message m holds .* or leave it out"):
            saver.put(config, checkpoint, {}, {"messages": 1})  # type: ignore[arg-type]
        assert saver.get_tuple(config) is None  # type: ignore[arg-type]
        checkpoint["channel_values"]["messages"][1] = called({"v": []})
        saver.put(config, checkpoint, {}, {"messages": 1})  # type: ignore[arg-type]
        found = saver.get_tuple(config)  # type: ignore[arg-type]
    assert found is not None
    assert args_in(found.checkpoint["channel_values"]["messages"][1]) == {"v": []}


def test_arguments_that_hold_themselves_are_refused() -> None:
    args: dict[str, Any] = {}
    args["args"] = args
    message = called({})
    message.tool_calls[0]["args"] = args
    with pytest.raises(MessageNotStorable):
        draft_of(message)


@pytest.fixture
async def talk(store: Driver) -> list[BaseMessage]:
    """A thread with a call of each kind."""
    said: list[BaseMessage] = []
    for number, args in enumerate(ARGS.values()):
        said.append(HumanMessage(f"question {number}", id=f"h{number}"))
        call = {"name": "look", "args": args, "id": f"c{number}"}
        said.append(AIMessage(f"answer {number}", id=f"a{number}", tool_calls=[call]))
    async with store.writing() as tx:
        await log.create_thread(tx, "t", user_id="u")
        await log.extend(tx, "t", list(map(draft_of, said)))
    return said


@pytest.fixture
async def other(other_address: str) -> AsyncIterator[Driver]:
    async with open_store(other_address) as opened:
        yield opened


async def branch(store: Driver) -> list[BaseMessage]:
    async with store.reading() as tx:
        thread = await log.find_thread(tx, "t", user_id="u")
        return [message_of(entry) for entry in await log.branch(tx, "t", thread.tip)]


async def test_the_log_says_it_once_and_what_sql_reads_is_json(store: Driver, talk: Any) -> None:
    again = await branch(store)
    assert [exact(args_in(message)) for message in again[1::2]] == [exact(stock(args)) for args in ARGS.values()]
    async with store.writing() as tx:
        before = await log.position(tx, "t")
        await log.extend(tx, "t", list(map(draft_of, talk)), parent=0)
        assert await log.position(tx, "t") == before, "what is there already is not written again"
        rows = await tx.fetch("select_entries_at", thread_id="t", seqs=json.dumps([2, 4, 6, 10]))
    told = [json.loads(row["tool_calls"])[0]["args"] for row in rows]
    assert told[0] == {"scores": {"1": "a", "2": "b"}}
    assert sorted(told[1]["d"].values()) == ["a", "b", "c", "d", "e", "f"], "none is lost"
    assert told[2] == {"pairs": [[1, 2], [3, 4]]}
    assert told[3] == {"on": "2026-01-01", "at": "2026-01-01 00:00:00+00:00", "for": "1 day, 0:00:00"}


async def test_the_documents_views_show_it(store: Driver, talk: Any) -> None:
    async with store.reading() as tx:
        said = await tx.fetch(Sql("SELECT id, tool_calls FROM messages"))
        [state] = await tx.fetch(Sql("SELECT authoritative_history FROM conversation_state"))
    calls = {row["id"]: row["tool_calls"] for row in said if row["tool_calls"]}
    read = {key: json.loads(value) if isinstance(value, str) else value for key, value in calls.items()}
    found = [json.loads(read[f"a{number}"][0]["function"]["arguments"]) for number in range(len(ARGS))]
    assert found == list(map(as_json, ARGS.values())), "each call is found"
    history = state["authoritative_history"]
    assert len(json.loads(history) if isinstance(history, str) else history) == len(talk)


@pytest.mark.sampled(2)
async def test_copy_export_and_import_lose_nothing(store: Driver, other: Driver, talk: Any) -> None:
    before = [exact(message.__dict__) for message in await branch(store)]

    def silent(done: int, total: int, what: str) -> None: ...

    async with store.reading() as tx:
        data = b"".join([line async for line in export_lines(tx, ["t"], silent)])
    assert all(json.loads(line) for line in data.splitlines())
    await import_threads(other, io.BytesIO(data), "x.jsonl", ImportTarget(user_id="u"), silent)
    assert [exact(message.__dict__) for message in await branch(other)] == before
    async with other.reading() as tx:
        assert b"".join([line async for line in export_lines(tx, ["t"], silent)]) == data
        assert not (await compare_stores(store, other, silent)).differing
    async with other.writing() as tx:
        await log.delete_thread(tx, "t", user_id="u")
    assert (await copy_store(store, other, silent)).refused == []
    assert [exact(message.__dict__) for message in await branch(other)] == before


async def test_recall_finds_arguments_by_their_text(store: Driver, talk: Any) -> None:
    tool = recall_in(Recaller(store), Scope("u", "t"), thread_id="t", agent_id=None, top_k=1, before=None)
    for query in ("2026-01-01", str(uuid.UUID(int=5))):
        observation = await tool.call({"query": query, "neighbours": 0})
        json.dumps(observation)
        wanted = "a4" if query.startswith("2026") else "a5"
        assert [each["entry"] for each in observation["data"]["found"]] == [wanted]


@CASES
def test_a_view_counts_and_names_them(args: Any) -> None:
    message = called(args)
    told = called(as_json(args))
    assert item_of(from_langchain(message)).tokens == item_of(from_langchain(told)).tokens > 0
    nameless = called(args)
    nameless.id = None
    messages = StateMessages()
    [spot], [unnamed], [again] = (
        messages.spots([message]),
        messages.spots([nameless]),
        StateMessages().spots([nameless]),
    )
    assert spot.item_for("any").tokens == item_of(from_langchain(told)).tokens
    assert unnamed.entry.id == again.entry.id


async def test_an_agent_with_memory_goes_on_with_them(store_address: str) -> None:
    def look(**given: Any) -> str:
        """Look."""
        return "seen"

    args = {"on": date(2026, 1, 1), "scores": {1: "a", (1, 2): "b"}, "tags": {"x"}}
    call = {"name": "look", "args": {"given": args}, "id": "c"}
    said = [HumanMessage("q", id="q"), AIMessage("a", id="a", tool_calls=[call])]
    for _ in range(2):
        async with LongthreadSaver.from_conn_string(store_address) as saver:
            model = ScriptedChatModel(lambda messages: f"I see {len(messages)}.")
            memory = MemoryMiddleware(saver, memory_context_window=4_000, memory_enable_summary=False)
            agent = create_agent(model, [look], checkpointer=saver, middleware=[memory])
            state = await agent.ainvoke({"messages": [*said, ("user", "and now?")]}, on())
            assert state["messages"][-1].text.startswith("I see")
            [kept] = [message for message in state["messages"] if message.id == "a"]
            assert args_in(kept)["given"]["on"] == date(2026, 1, 1)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("protocol", ["auto", "json"])
async def test_an_analyst_whose_model_gives_objects_of_python_goes_on(
    open_analyst: OpenAnalyst, shop: str, protocol: Any
) -> None:
    args = {"pattern": date(2026, 1, 1), "tags": {"x"}, 1: uuid.UUID(int=5)}
    odd = AIMessage("")
    odd.tool_calls = [{"name": "list_tables", "args": args, "id": "c1", "type": "tool_call"}]
    model = ScriptedChatModel([odd, '{"thought": "", "finish": "fine"}'])
    analyst = await open_analyst(model)
    handle = await analyst.ask("What is there?", source=shop, protocol=protocol, user_id=analyst.settings.user)
    assert (await handle.wait()).type == "finished"
    json.dumps(await analyst.threads.state(handle.thread_id, user_id=analyst.settings.user))
