"""`forget_message`: one message goes for good, from every table and file, and the conversation goes on without it."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated, Any

import pytest
from langchain.agents import create_agent
from langchain.agents.middleware import HumanInTheLoopMiddleware
from langchain_core.messages import AIMessage, AnyMessage, BaseMessage, HumanMessage, RemoveMessage, ToolMessage
from langgraph.channels.delta import DeltaChannel
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from langgraph.func import task
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.graph.message import _messages_delta_reducer, add_messages
from langgraph.types import Command, Send, interrupt
from tests.contract.deletion import fill as fill_run
from tests.memory.canary import CANARY, in_files, marks, places
from tests.memory.test_memories import OWNER
from typing_extensions import TypedDict

from longthread.errors import EntryNotFound, InvalidInput, ThreadConflict, ThreadNotFound
from longthread.langgraph import LongthreadSaver, MemoryMiddleware, recall_tool
from longthread.memory.forget import forget_deleted
from longthread.memory.index.shards import bind_user
from longthread.memory.recall import Question, Recaller
from longthread.memory.summary.pruning import PruningPolicy, prune_thread
from longthread.memory.user_memories import Memories
from longthread.model.memory import MemorySource, Statement
from longthread.model.thread import Scope
from longthread.store import log, summaries
from longthread.store.driver import Driver
from longthread.store.open import open_store
from longthread.store.tables import read_tables
from longthread.store.transfer.copy import copy_store
from longthread.store.transfer.threads import read_rows
from longthread.testing import ScriptedChatModel
from longthread_evals.view_watch import orphans
from longthread_testing.embedding import HashEmbedder

pytestmark = pytest.mark.one_backend

AT: Any = {"configurable": {"thread_id": "t"}}
EMBEDDER = HashEmbedder(dims=16)


def look_up(what: str) -> str:
    """Look something up."""
    return f"found {what}"


class Talk:
    """An agent with memory and a tool; its model looks up what it is asked to, and quotes nothing."""

    def __init__(self, store: Driver, **options: Any) -> None:
        self.store = store
        self.saver = LongthreadSaver(store)
        self.model = ScriptedChatModel(self.reply)
        options = {"context_window": 4_000, "max_messages_per_thread": 12, "enable_summary": False} | options
        more = options.pop("middleware", [])
        memory = MemoryMiddleware(self.saver, **options)
        tools = [look_up, recall_tool(self.saver)]
        self.agent = create_agent(self.model, tools, checkpointer=self.saver, middleware=[memory, *more])

    def reply(self, messages: list[BaseMessage]) -> Any:
        asked = str(messages[-1].text)
        if isinstance(messages[-1], HumanMessage) and asked.startswith("look up "):
            words = asked.removeprefix("look up ").split(",")
            calls = [{"name": "look_up", "args": {"what": each}, "id": f"{each}-{len(messages)}"} for each in words]
            return AIMessage("I look it up", tool_calls=calls)
        return "a short answer"

    async def ask(self, *texts: str) -> None:
        for text in texts:
            await self.agent.ainvoke({"messages": [("user", text)]}, AT)
            await self.saver.backing.home.settle()

    async def state(self) -> list[BaseMessage]:
        return list((await self.agent.aget_state(AT)).values["messages"])

    async def ids(self, words: str = CANARY) -> list[str]:
        """The ids of the messages of the whole branch that say it."""
        async with self.store.reading() as tx:
            tip, size = await log.position(tx, "t")
            entries = await log.branch(tx, "t", tip, limit=size)
        return [log.sent_id(each) for each in entries if words in each.text or words in str(each.tool_calls)]

    async def checkpoints(self) -> list[Any]:
        return [each async for each in self.agent.aget_state_history(AT)]


async def vectors_of(store: Driver) -> list[bytes]:
    """The vectors of the messages that say the word, as they are in the files."""
    async with store.reading() as tx:
        table = (await read_tables(tx))["memory_vectors"]
        rows = [row async for row in read_rows(tx, table, "t")]
    return [row["embedding"] for row in rows if CANARY in row["chunk"]]


async def nowhere(store: Driver, address: str, wanted: list[bytes]) -> None:
    assert places(address, wanted) == set()
    assert await forget_deleted(store) == []
    assert in_files(address, wanted) == set()


@pytest.mark.parametrize("turns", [0, 9])
async def test_a_question_is_found_nowhere_and_the_conversation_goes_on(
    store: Driver, store_address: str, turns: int
) -> None:
    talk = Talk(store)
    await talk.ask("hello", f"my bird is {CANARY}", *(f"and then, {n}?" for n in range(turns)))
    recaller, memories, owner = Recaller(store, EMBEDDER), Memories(store), replace(OWNER, user_id="default")
    await recaller.prepare(Scope("default"))
    await bind_user(store, "default", least=1)
    await memories.remember(owner, Statement(f"It is {CANARY}", source=MemorySource("t", (3,))))
    await memories.remember(owner, Statement("It is a bird", source=MemorySource("t", (1,))))
    [message_id] = await talk.ids()
    wanted = marks(*await vectors_of(store))
    count = len(await talk.checkpoints())
    assert {"entries.text", "memory_vectors.chunk"} <= places(store_address, wanted)
    assert await talk.saver.aforget_message("t", message_id) == [message_id]
    assert places(store_address, wanted) == set()
    assert [each.content for each in await memories.list_(owner)] == ["It is a bird"]
    history = await talk.checkpoints()
    assert len(history) == count
    assert not [each for each in history if CANARY in str(each)]
    found = await recaller.find(Question(CANARY, Scope("default"), k=50, other_branches=True))
    assert CANARY not in str(found)
    assert (await recaller.find(Question("hello", Scope("default", "t"), k=1))).hits[0].entry.text == "hello"
    before = len(talk.model.calls)
    await talk.ask("go on", "look up Rome", *(f"more, {n}" for n in range(12)))
    assert not [each for call in talk.model.calls[before:] for each in call.messages if CANARY in str(each)]
    assert (await talk.state())[-1].text == "a short answer"
    await recaller.prepare(Scope("default"))
    await recaller.close()
    await nowhere(store, store_address, wanted)
    async with store.reading() as tx:
        tip, size = await log.position(tx, "t")
        texts = [each.text for each in await log.branch(tx, "t", tip, limit=size)]
    assert texts[:3] == ["hello", "a short answer", "a short answer"]


@pytest.mark.parametrize("which", ["call", "result"])
async def test_a_call_and_its_results_go_together(store: Driver, store_address: str, which: str) -> None:
    talk = Talk(store)
    await talk.ask("look up Lima", "please")
    await talk.agent.ainvoke({"messages": [HumanMessage(f"look up Rome,{CANARY}", id="q")]}, AT)
    call, *results = (await talk.state())[-4:-1]
    assert isinstance(call, AIMessage)
    other = [each for each in results if CANARY not in each.text]
    forgotten = str(call.id if which == "call" else other[0].id)
    gone = await talk.saver.aforget_message("t", forgotten)
    assert gone == sorted(str(each.id) for each in (call, *results))
    assert [each.type for each in await talk.state()] == ["human", "ai", "tool", "ai", "human", "ai", "human", "ai"]
    await talk.saver.aforget_message("t", "q")
    await nowhere(store, store_address, marks())
    await talk.ask("look up Paris")
    for request in talk.model.calls:
        assert orphans(request.messages) == 0


async def test_calls_that_share_an_id_are_told_apart(store: Driver) -> None:
    talk = Talk(store)
    call = {"name": "look_up", "args": {"what": "x"}, "id": "call_0", "type": "tool_call"}
    said: list[BaseMessage] = []
    for n in range(3):
        said += [HumanMessage(f"q{n}", id=f"q{n}"), AIMessage("", id=f"c{n}", tool_calls=[call])]
        said += [ToolMessage(f"r{n}", id=f"r{n}", tool_call_id="call_0"), AIMessage(f"a{n}", id=f"a{n}")]
    await talk.agent.aupdate_state(AT, {"messages": said}, as_node="model")
    assert await talk.saver.aforget_message("t", "r1") == ["c1", "r1"]
    assert [each.id for each in await talk.state()] == [each.id for each in said if each.id not in ("c1", "r1")]


@pytest.mark.parametrize("last", [True, False])
async def test_all_versions_go_on_every_branch(store: Driver, store_address: str, last: bool) -> None:
    talk = Talk(store)
    await talk.ask("hello")
    at = await talk.agent.aupdate_state(AT, {"messages": [HumanMessage(CANARY, id="x")]}, as_node="model")
    await talk.agent.aupdate_state(AT, {"messages": [HumanMessage(f"再说 {CANARY}", id="x")]}, as_node="model")
    await talk.ask("on")
    await talk.agent.aupdate_state(at, {"messages": [AIMessage("elsewhere", id="e")]}, as_node="model")
    if not last:
        await talk.ask("and on")
        await talk.agent.aupdate_state(AT, {"messages": [HumanMessage(f"third {CANARY}", id="x")]}, as_node="model")
    assert await talk.saver.aforget_message("t", "x") == ["x"]
    texts = [each.text for each in await talk.state()]
    assert texts == ["hello", "a short answer", "elsewhere", *([] if last else ["and on", "a short answer"])]
    assert any(
        each.values["messages"][-1:] and each.values["messages"][-1].text == "a short answer"
        for each in await talk.checkpoints()
    )
    await nowhere(store, store_address, marks())
    await talk.ask("goes on")
    async with store.reading() as tx:
        tip, size = await log.position(tx, "t")
        assert [each.text for each in await log.branch(tx, "t", tip, limit=size)][:3] == texts[:3]


async def test_the_last_and_the_first_and_the_only_message(store: Driver, store_address: str) -> None:
    talk = Talk(store)
    await talk.agent.aupdate_state(AT, {"messages": [HumanMessage(CANARY, id="a")]}, as_node="model")
    await talk.saver.aforget_message("t", "a")
    assert await talk.state() == []
    async with store.reading() as tx:
        thread = await log.find_thread(tx, "t", user_id="default")
    assert (thread.tip, thread.title) == (0, None)
    await talk.agent.aupdate_state(
        AT, {"messages": [HumanMessage("b", id="b"), AIMessage(CANARY, id="c")]}, as_node="model"
    )
    await talk.saver.aforget_message("t", "c")
    assert [each.id for each in await talk.state()] == ["b"]
    await talk.ask("more")
    assert [each.text for each in await talk.state()] == ["b", "more", "a short answer"]
    await nowhere(store, store_address, marks())


@pytest.mark.parametrize("model", [True, False])
async def test_a_summary_is_made_again_without_it(store: Driver, store_address: str, model: bool) -> None:
    talk = Talk(store)
    await talk.ask(f"remember {CANARY} for me", *(f"and then, {n}?" for n in range(9)))

    class Quoting:
        name = "quoting"
        topics_only = False

        async def write(self, instructions: str, text: str) -> str:
            return f"It is {CANARY}." if CANARY in text else "There was small talk."

    policy = PruningPolicy(max_messages=6)
    await prune_thread(store, "t", policy, summarizer=Quoting() if model else None)
    assert any(place.startswith("conversation_summaries") for place in places(store_address, marks()))
    [message_id] = await talk.ids()
    await talk.saver.aforget_message("t", message_id)
    assert places(store_address, marks()) == set()
    again = await prune_thread(store, "t", policy, summarizer=Quoting() if model else None)
    assert again is not None
    assert again.summary
    async with store.reading() as tx:
        assert (await summaries.find(tx, "t")) is not None
    await nowhere(store, store_address, marks())


async def test_a_summary_whose_last_message_goes_stays_where_it_was(store: Driver) -> None:
    talk = Talk(store)
    await talk.ask(*(f"and then, {n}?" for n in range(9)))
    kept = await prune_thread(store, "t", PruningPolicy(max_messages=6))
    assert kept is not None
    async with store.reading() as tx:
        last = (await log.entries_at(tx, "t", {kept.last_seq}))[kept.last_seq]
    await talk.saver.aforget_message("t", log.sent_id(last))
    again = await prune_thread(store, "t", PruningPolicy(max_messages=6))
    assert again is not None
    assert (again.last_seq, again.message_count) == (kept.last_seq - 1, kept.message_count - 1)


async def test_what_a_graph_keeps_of_it_goes_too(store: Driver, store_address: str) -> None:
    """Inputs, tasks, single messages and lists in other channels, and what tasks have written."""

    class State(MessagesState):
        last: Any
        notes: list[Any]

    async def one(state: Any) -> Any:
        said = state["messages"][-1]
        return {"last": {"said": said}, "notes": [("told", said)], "messages": [AIMessage("done", id="d")]}

    async def two(state: Any) -> Any:
        return {"messages": []} if interrupt("shall I say it aloud?") else {}

    builder = StateGraph(State)
    builder.add_node("one", one)
    builder.add_node("two", two)
    builder.add_node("part", lambda given: {"notes": ["part"]})
    builder.add_edge(START, "one")
    builder.add_conditional_edges("one", lambda state: [Send("part", {"said": state["messages"][0]}), "two"])
    graph: Any = builder.compile(checkpointer=LongthreadSaver(store))
    await graph.ainvoke({"messages": [{"role": "user", "content": CANARY}]}, AT)
    message_id = (await graph.aget_state(AT)).values["messages"][0].id
    assert {"checkpoints.body"} <= places(store_address, marks())
    await graph.checkpointer.aforget_message("t", message_id)
    await nowhere(store, store_address, marks())
    state = (await graph.aget_state(AT)).values
    assert ([each.id for each in state["messages"]], state["last"]) == (["d"], {"said": None})
    assert [each async for each in graph.aget_state_history(AT)]
    await graph.ainvoke({"messages": [("user", "go on")]}, AT)


async def test_a_call_that_waits_for_a_person(store: Driver, store_address: str) -> None:
    talk = Talk(store, middleware=[HumanInTheLoopMiddleware({"look_up": True})])
    await talk.ask("hello", f"look up {CANARY}")
    assert (await talk.agent.aget_state(AT)).interrupts
    question, call = await talk.ids()
    await talk.saver.aforget_message("t", question)
    with pytest.raises(InvalidInput, match="Let the run finish"):
        await talk.saver.aforget_message("t", call)
    assert (await talk.agent.aget_state(AT)).interrupts
    await talk.ask("go on")
    for message_id in await talk.ids():
        await talk.saver.aforget_message("t", message_id)
    await nowhere(store, store_address, marks())
    assert [each.text for each in await talk.state()] == ["hello", "a short answer", "go on", "a short answer"]


async def test_an_unfinished_step_goes_on_as_it_would(store: Driver) -> None:
    """Nothing of its questions, answers and results is lost, whatever they have in common with the message."""
    paid: list[int] = []

    @task
    async def pay(amount: int) -> str:
        paid.append(amount)
        return "yes"

    async def one(state: Any) -> Any:
        done = await pay(1)
        answers = [interrupt("report.txt"), interrupt({"question": "删除 report.txt 吗？"})]
        return {"messages": [AIMessage(f"{done} {answers}", id="done")]}

    builder = StateGraph(MessagesState)
    builder.add_node("one", one)
    builder.add_node("beside", lambda state: {"messages": AIMessage("beside", id="beside")})
    builder.add_edge(START, "one")
    builder.add_edge(START, "beside")
    graph: Any = builder.compile(checkpointer=LongthreadSaver(store))
    said = [HumanMessage(text, id=text) for text in ("yes", "report.txt", "pay 1")]
    await graph.ainvoke({"messages": said}, AT)
    await graph.ainvoke(Command(resume="yes"), AT)
    asked = (await graph.aget_state(AT)).interrupts
    for message_id in ("yes", "report.txt", "beside"):
        await graph.checkpointer.aforget_message("t", message_id)
    assert (await graph.aget_state(AT)).interrupts == asked
    state = await graph.ainvoke(Command(resume={asked[0].id: "no"}), AT)
    assert [each.text for each in state["messages"]] == ["pay 1", "yes ['yes', 'no']"]
    assert paid == [1]


@pytest.mark.parametrize("kind", ["question", "answer", "result", "task", "call"])
async def test_what_an_unfinished_step_goes_on_with_is_refused(store: Driver, store_address: str, kind: str) -> None:
    """Once the run has finished, it goes from the questions, answers and results too. These stay in their places."""
    question = AIMessage(CANARY, id="m") if kind == "question" else "sure?"

    @task
    async def echo(message: Any) -> Any:
        return message if kind == "result" else "echo"

    async def one(state: Any) -> Any:
        await echo(state["messages"][0])
        answers = [interrupt("?"), interrupt(question)]
        return {"messages": [AIMessage(f"{len(answers)} answers")]}

    given = {"call": {"name": "f", "args": {"x": CANARY}, "id": "c1"}, "task": {"messages": [("user", CANARY)]}}
    builder = StateGraph(MessagesState)
    builder.add_node("one", one)
    builder.add_node("two", lambda state: {})
    builder.add_conditional_edges(START, lambda state: ["one", Send("two", given.get(kind, {}))])
    graph: Any = builder.compile(checkpointer=LongthreadSaver(store))
    call = [given["call"]] if kind == "call" else []
    message = AIMessage(CANARY, id="m", tool_calls=call) if call or kind == "question" else HumanMessage(CANARY, id="m")
    await graph.ainvoke({"messages": [message, HumanMessage("go", id="go")]}, AT)
    await graph.ainvoke(Command(resume=CANARY if kind == "answer" else "yes"), AT)
    before = [each async for each in graph.aget_state_history(AT)]
    with pytest.raises(InvalidInput, match="Let the run finish"):
        await graph.checkpointer.aforget_message("t", "m")
    assert [each async for each in graph.aget_state_history(AT)] == before
    await graph.ainvoke(Command(resume="yes"), AT)
    writes = [[write[:2] for write in each.pending_writes] async for each in graph.checkpointer.alist(AT)]
    await graph.checkpointer.aforget_message("t", "m")
    assert places(store_address, marks()) == set()
    after = [[write[:2] for write in each.pending_writes] async for each in graph.checkpointer.alist(AT)]
    gone = [(one, other) for one, other in zip(writes, after, strict=True) if one != other]
    assert len(gone) == (kind == "call")  # instead of the task it says that nothing was written
    assert [each.text for each in (await graph.aget_state(AT)).values["messages"]] == ["go", "2 answers"]


async def test_inputs_of_channels_of_any_name(store: Driver, store_address: str) -> None:
    class State(TypedDict):
        chat: Annotated[list[AnyMessage], add_messages]

    long = f"{CANARY} " * 50
    image = {"type": "image_url", "image_url": {"url": f"https://example.org/{CANARY}"}}
    file = {"type": "file", "file": {"file_data": CANARY}}
    inputs: list[Any] = [long, [("user", CANARY)], [("user", long)], [{"role": "user", "content": [image]}]]
    inputs += [[{"role": "user", "content": [{"type": "text", "text": "看图"}, file]}], ("user", long)]
    builder = StateGraph(State)
    builder.add_node("part", lambda state: {"chat": [AIMessage("part")]})
    builder.add_conditional_edges(START, lambda state: [Send("part", {"chat": given})])
    graph: Any = builder.compile(checkpointer=LongthreadSaver(store))
    for given in inputs:
        await graph.ainvoke({"chat": given}, AT)
        await graph.ainvoke({"chat": [("user", "next")]}, AT)
        first = next(each for each in (await graph.aget_state(AT)).values["chat"] if CANARY in str(each.content))
        await graph.checkpointer.aforget_message("t", first.id)
        assert places(store_address, marks()) == set()


async def test_an_input_with_the_same_words_and_another_image_stays(store: Driver) -> None:
    def shows(name: str) -> dict[str, Any]:
        image = {"type": "image_url", "image_url": {"url": f"https://example.org/{name}.png"}}
        return {"role": "user", "content": [{"type": "text", "text": "what is it?"}, image]}

    builder = StateGraph(MessagesState)
    builder.add_node("answer", lambda state: {"messages": [AIMessage("a bird")]})
    builder.add_edge(START, "answer")
    graph: Any = builder.compile(checkpointer=LongthreadSaver(store))
    for name in ("one", "two", "three"):
        await graph.ainvoke({"messages": [shows(name)]}, AT)
    first = (await graph.aget_state(AT)).values["messages"][0]
    await graph.checkpointer.aforget_message("t", first.id)
    raw = [each.checkpoint["channel_values"].get("__start__") async for each in graph.checkpointer.alist(AT)]
    assert [each["messages"][0] for each in raw if each and each["messages"]] == [shows("three"), shows("two")]


async def test_delta_channels(store: Driver, store_address: str) -> None:
    class State(TypedDict):
        messages: Annotated[list[AnyMessage], DeltaChannel(_messages_delta_reducer, snapshot_frequency=4)]

    builder = StateGraph(State)
    builder.add_node("answer", lambda state: {"messages": [AIMessage(f"answer {len(state['messages'])}")]})
    builder.add_edge(START, "answer")
    graph: Any = builder.compile(checkpointer=LongthreadSaver(store))
    for text in ("one", f"my {CANARY}", "three", "four", "five"):
        await graph.ainvoke({"messages": [("user", text)]}, AT)
    before = (await graph.aget_state(AT)).values["messages"]
    gone = next(each for each in before if CANARY in each.text)
    await graph.checkpointer.aforget_message("t", gone.id)
    await nowhere(store, store_address, marks())
    after = (await graph.aget_state(AT)).values["messages"]
    assert [each.id for each in after] == [each.id for each in before if each.id != gone.id]
    assert not [each async for each in graph.aget_state_history(AT) if CANARY in str(each)]
    await graph.ainvoke({"messages": [("user", "six")]}, AT)
    assert len((await graph.aget_state(AT)).values["messages"]) == len(after) + 2


async def test_what_is_not_there_or_is_anothers(store: Driver) -> None:
    talk = Talk(store)
    await talk.ask("hello")
    with pytest.raises(EntryNotFound, match="nothing"):
        await talk.saver.aforget_message("t", "nothing")
    none: Any = None
    for message_id in (none, ""):
        with pytest.raises(InvalidInput, match="id"):
            await talk.saver.aforget_message("t", message_id)
    [message_id] = await talk.ids("hello")
    for saver, thread_id in ((talk.saver.for_user("ada"), "t"), (talk.saver, "none")):
        with pytest.raises(ThreadNotFound):
            await saver.aforget_message(thread_id, message_id)
    assert len(await talk.state()) == 2
    await fill_run(store, "run", word="word")
    with pytest.raises(InvalidInput, match="whole thread"):
        await talk.saver.for_user("u").aforget_message("run", "word")

    class OwnSerializer(JsonPlusSerializer):
        """Whatever it does: what it packs is not read by the log."""

    with pytest.raises(InvalidInput, match="serializer"):
        await LongthreadSaver(store, serde=OwnSerializer()).aforget_message("t", message_id)
    assert await talk.saver.aforget_message("t", message_id) == [message_id]
    with pytest.raises(EntryNotFound):
        await talk.saver.aforget_message("t", message_id)


async def test_an_unknown_message_is_an_error_and_the_summary_stays(store: Driver) -> None:
    talk = Talk(store, enable_summary=True, max_messages_per_thread=6, summary_threshold=2)
    await talk.ask(*(f"note {number}" for number in range(12)))
    before = (await talk.agent.aget_state(AT)).values["memory_summary"]
    assert before["summary"]
    with pytest.raises(EntryNotFound, match="nothing"):
        await talk.saver.aforget_message("t", "nothing")
    assert (await talk.agent.aget_state(AT)).values["memory_summary"] == before


@pytest.mark.parametrize("same", [True, False])
async def test_a_run_under_way_does_not_bring_it_back(store: Driver, store_address: str, same: bool) -> None:
    saver = LongthreadSaver(store)
    forgetting = saver if same else LongthreadSaver(store)

    async def answer(state: Any) -> Any:
        if state["messages"][-1].text == "wait":
            await forgetting.aforget_message("t", "x")
        return {"messages": [AIMessage("answered")]}

    builder = StateGraph(MessagesState)
    builder.add_node("answer", answer)
    builder.add_edge(START, "answer")
    graph: Any = builder.compile(checkpointer=saver)
    await graph.ainvoke({"messages": [HumanMessage(CANARY, id="x")]}, AT)
    with pytest.raises(ThreadConflict):
        await graph.ainvoke({"messages": [("user", "wait")]}, AT)
    assert places(store_address, marks()) == set()
    await graph.ainvoke({"messages": [("user", "again")]}, AT)
    assert [each.text for each in (await graph.aget_state(AT)).values["messages"]][-2:] == ["again", "answered"]
    await nowhere(store, store_address, marks())


async def test_a_removed_message_and_a_copy_of_the_store(store: Driver, store_address: str, other_address: str) -> None:
    talk = Talk(store)
    await talk.ask("hello", f"secret {CANARY}", "bye")
    [message_id] = await talk.ids()
    await talk.agent.aupdate_state(AT, {"messages": [RemoveMessage(id=message_id)]}, as_node="model")
    await talk.saver.aforget_message("t", message_id)
    await nowhere(store, store_address, marks())
    async with open_store(other_address) as other:
        await copy_store(store, other, lambda *_: None)
        copied = Talk(other)
        assert await copied.state() == await talk.state()
        await copied.ask("on")


def test_in_a_synchronous_program(store_address: str) -> None:
    with LongthreadSaver.from_conn_string(store_address) as saver:
        builder = StateGraph(MessagesState)
        builder.add_node("answer", lambda state: {"messages": [AIMessage("answered")]})
        builder.add_edge(START, "answer")
        graph: Any = builder.compile(checkpointer=saver)
        for n in range(90):
            graph.invoke({"messages": [HumanMessage(CANARY if n == 40 else f"number {n}", id=f"m{n}")]}, AT)
        assert saver.forget_message("t", "m40") == ["m40"]
        assert places(store_address, marks()) == set()
        state = graph.invoke({"messages": [("user", "on")]}, AT)
        assert len(state["messages"]) == 2 * 91 - 1
        with pytest.raises(EntryNotFound):
            saver.for_user("default").forget_message("t", "m40")
