"""`MemoryMiddleware` in a real `create_agent`, on both backends: views fit, nothing is orphaned, the state stays short,
and LangGraph's own (time travel, forks, interrupts, streams, subgraphs) works as without it."""

from __future__ import annotations

import asyncio
import json
import logging
import random
import re
import threading
from collections.abc import Awaitable, Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain.agents.middleware import AgentMiddleware, HumanInTheLoopMiddleware, ModelRequest, ModelResponse
from langchain.agents.structured_output import ToolStrategy
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, RemoveMessage, SystemMessage, ToolMessage
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.types import Command, Durability
from pydantic import BaseModel, PrivateAttr

from longthread.context.window import item_of
from longthread.errors import InvalidInput, WindowTooSmall
from longthread.langgraph import LongthreadSaver, MemoryMiddleware, recall_tool
from longthread.langgraph.memory.long_term import ModelWriter
from longthread.langgraph.memory.message_view import fixed_tokens, reply_tokens
from longthread.memory.summary.pruning import prune_thread
from longthread.messages.langchain import from_langchain
from longthread.settings import Settings
from longthread.store import log, summaries
from longthread.testing import ProviderEmulator, ScriptedChatModel
from longthread.view.tokens import estimate, message_budget
from longthread_evals.view_watch import ViewWatch, orphans

pytestmark = pytest.mark.one_backend

Reply = Callable[[list[BaseMessage]], Any]
WINDOW = 6_000
WHO = ("user", "ai")
SETTINGS = Settings.load(env_file=None, database="none.db")
SUMMARIES = ("You keep the memory", "Shorten the following", "You name the topics")


def on(thread_id: str = "t") -> RunnableConfig:
    return {"configurable": {"thread_id": thread_id}}


def asked(text: str) -> dict[str, Any]:
    return {"messages": [("user", text)]}


@dataclass
class Spy(AgentMiddleware[Any, Any, Any]):
    """Stands between the memory and the model, and measures each view."""

    window: int = WINDOW
    watch: ViewWatch = field(default_factory=ViewWatch)
    views: list[list[BaseMessage]] = field(default_factory=list)
    over: list[tuple[int, int]] = field(default_factory=list)
    tools = ()

    def see(self, request: ModelRequest[Any]) -> None:
        fixed, reply = fixed_tokens(request, "any"), reply_tokens(request, SETTINGS)
        budget = message_budget(self.window, output=reply, fixed=fixed)
        tokens = sum(item_of(from_langchain(message)).tokens for message in request.messages)
        self.over += [(tokens, budget)] if tokens > budget else []
        self.views.append(list(request.messages))
        system = [request.system_message] if request.system_message else []
        self.watch.saw([*system, *request.messages])

    def wrap_model_call(self, request: ModelRequest[Any], handler: Callable[..., ModelResponse[Any]]) -> Any:
        self.see(request)
        return handler(request)

    async def awrap_model_call(self, request: ModelRequest[Any], handler: Callable[..., Awaitable[Any]]) -> Any:
        self.see(request)
        return await handler(request)


class Settling(AgentMiddleware[Any, Any, Any]):
    """Waits, before each model call, for what goes on in the background: when it comes then depends on nothing."""

    def __init__(self, saver: LongthreadSaver) -> None:
        super().__init__()
        self.saver = saver

    async def abefore_model(self, state: Any, runtime: Any) -> None:
        await settle(self.saver)


def table(rows: int) -> str:
    """A table's rows."""
    return json.dumps([{"id": n, "name": f"row {n}", "note": "很长的说明 and more"} for n in range(rows)])


def picture(name: str) -> list[dict[str, Any]]:
    """A picture."""
    return [{"type": "text", "text": name * 500}, {"type": "image", "base64": "aGk=", "mime_type": "image/png"}]


class Talker:
    """The model's side of a long conversation: calls, several at once, thinking, in the style of a provider."""

    def __init__(self, style: str, seed: int = 0) -> None:
        self.chance = random.Random(seed)
        self.style = style
        self.calls = 0
        self.summaries = 0
        self.watch: ViewWatch | None = None

    def __call__(self, messages: list[BaseMessage]) -> Any:
        if str(messages[0].text).startswith(SUMMARIES):
            self.summaries += 1
            return f"What was said, part {self.summaries}."
        if isinstance(messages[-1], ToolMessage) or self.chance.random() < 0.5:
            return self.said([])
        names = ["table"] * self.chance.choice((1, 1, 3)) + ["picture"] * (self.chance.random() < 0.3)
        return self.said(names)

    def said(self, names: Sequence[str]) -> AIMessage:
        calls = []
        for name in names:
            self.calls += 1
            args: dict[str, Any] = (
                {"rows": self.chance.choice((1, 10, 30, 30, 200))} if name == "table" else {"name": "cat"}
            )
            calls.append({"name": name, "args": args, "id": f"call_{self.calls}", "type": "tool_call"})
        text = "说明 " * self.chance.randint(1, 80)
        if self.style == "openai":
            made = AIMessage(text, tool_calls=calls, additional_kwargs={"reasoning_content": "hm " * 40})
        else:
            thought = {"type": "thinking", "thinking": "let me see " * 30, "signature": f"sig{self.chance.random()}"}
            used = [{"type": "tool_use", "id": c["id"], "name": c["name"], "input": c["args"]} for c in calls]
            made = AIMessage([thought, {"type": "text", "text": text}, *used], tool_calls=calls)
        return self.watch.note_reply(made) if self.watch else made


def agent_of(saver: Any, reply: Any, *tools: Any, spy: Spy | None = None, **given: Any) -> Any:
    more = {name: given.pop(name) for name in ("system_prompt", "response_format", "name", "extra") if name in given}
    settings = {"memory_context_window": spy.window if spy else WINDOW, **given}
    memory = MemoryMiddleware(saver if isinstance(saver, LongthreadSaver) else None, **settings)
    middleware = [memory, *([spy] if spy else []), *more.pop("extra", [])]
    model = reply if isinstance(reply, ScriptedChatModel) else ScriptedChatModel(reply)
    return create_agent(model, list(tools), checkpointer=saver, middleware=middleware, **more)


async def settle(saver: LongthreadSaver) -> None:
    await saver.backing.home.settle()


def said(text: str) -> Reply:
    """A model that says one thing, and writes summaries."""
    return lambda messages: "A summary." if str(messages[0].text).startswith(SUMMARIES) else text


@pytest.mark.sampled(2)
@pytest.mark.parametrize("style", ["anthropic", "openai"])
async def test_a_long_conversation_never_has_a_view_that_does_not_fit_or_is_not_whole(
    store_address: str, style: str
) -> None:
    talker, spy = Talker(style), Spy(window=16_000)
    talker.watch = spy.watch
    async with LongthreadSaver.from_conn_string(store_address) as saver:
        settings = {
            "memory_max_messages_per_thread": 30,
            "system_prompt": "Be brief. " * 20,
            "extra": [Settling(saver)],
        }
        agent = agent_of(saver, talker, table, picture, spy=spy, **settings)
        for n in range(24):
            state = await agent.ainvoke(asked(f"Question {n}: " + "payments " * (n % 40)), on())
            assert len(state["messages"]) <= 30 + 8  # the turn that makes it too long ends first
    assert spy.over == []
    assert spy.watch.orphans == 0
    assert spy.watch.changed_thinking == 0
    assert any(block["type"] == "thinking" for v in spy.views for m in v for block in _blocks(m)) or style == "openai"
    assert spy.watch.kept / spy.watch.before > 0.65, "the prompt's beginning changes too often"
    assert talker.summaries > 1


def _blocks(message: BaseMessage) -> list[dict[str, Any]]:
    return [block for block in message.content if isinstance(block, dict)] if isinstance(message.content, list) else []


async def test_a_thread_of_a_thousand_messages_has_a_short_state_and_a_whole_log(store_address: str) -> None:
    spy = Spy(window=16_000)
    async with LongthreadSaver.from_conn_string(store_address) as saver:
        tool = recall_tool(saver)
        agent = agent_of(saver, said("Noted. " * 10), tool, spy=spy, memory_enable_summary=False)
        for n in range(20):
            told = [(who, f"Fact {n}.{k}: the port of service {k} is {5000 + n}.") for k in range(24) for who in WHO]
            state = await agent.ainvoke({"messages": [*told, ("user", f"Question {n}")]}, on())
            assert len(state["messages"]) <= 200 + 50  # what this turn has added
            await settle(saver)
        state = await agent.ainvoke(asked("And now?"), on())
        assert 100 < len(state["messages"]) <= 200
        async with saver.backing.store.reading() as tx:
            kept = await log.find_thread(tx, "t", user_id="default")
            assert len(await log.branch(tx, "t", kept.tip, limit=5000)) == 1002
            summary = await summaries.find(tx, "t")
        assert summary is not None and summary.message_count > 700 and summary.topics
        assert any("[Conversation Summary]" in str(view[0].text) for view in spy.views)
        assert any("[Recallable Topics]" in str(view[0].text) for view in spy.views)
        # Without the tool that they are named for, topics say nothing that a model could do.
        bare = agent_of(saver, said("Noted."), spy=(alone := Spy(window=8_000)), memory_enable_summary=False)
        await bare.ainvoke(asked("And then?"), on())
        assert any("[Conversation Summary]" in str(view[0].text) for view in alone.views)
        assert not any("recall_memory" in str(message.text) for view in alone.views for message in view)
    assert spy.over == [] and spy.watch.orphans == 0


async def test_a_view_goes_on_from_the_one_before_in_another_process(store_address: str) -> None:
    prompts: list[list[Any]] = []

    def reply(messages: list[BaseMessage]) -> str:
        prompts.append([(message.type, message.content) for message in messages])
        return "word " * 80

    for n in range(14):
        async with LongthreadSaver.from_conn_string(store_address) as saver:
            agent = agent_of(saver, reply, memory_context_window=2_500, memory_summary_threshold=1000)
            await agent.ainvoke(asked(f"Question {n} " + "more " * 80), on())
    grown = sum(after[: len(before)] == before for before, after in pairwise(prompts))
    assert 10 <= grown < 13  # and it was planned anew at least once
    assert max(map(len, prompts)) < 27


async def test_instructions_that_a_conversation_begins_with_are_always_shown_first_and_stay(store_address: str) -> None:
    first = SystemMessage("Answer in rhymes. " * 20, id="instructions")
    spy = Spy(window=4_000)
    async with LongthreadSaver.from_conn_string(store_address) as saver:
        agent = agent_of(saver, said("Noted. " * 30), spy=spy, memory_max_messages_per_thread=12)
        await agent.ainvoke({"messages": [first, ("user", "Hello")]}, on())
        for n in range(20):
            state = await agent.ainvoke(asked(f"Question {n}. " * 30), on())
            await settle(saver)
        kept = state["messages"]
    assert [each.content for each in kept if each.type == "system"] == [first.content] == [kept[0].content]
    assert len(kept) <= 16
    for view in spy.views:
        assert [n for n, each in enumerate(view) if each.type == "system"] == [0]
        assert view[0].content == first.content
        assert view[-1].type == "human"
    assert "[Conversation Summary]" in str(spy.views[-1][1].text)
    assert "A summary." in str(spy.views[-1][1].text)
    assert spy.over == []


@pytest.mark.parametrize("given", [[], [SystemMessage("Greet the user.", id="instructions")]])
async def test_a_model_that_begins_the_conversation(store_address: str, given: list[BaseMessage]) -> None:
    model = ScriptedChatModel(lambda messages: "Hello. How can I help?")
    async with LongthreadSaver.from_conn_string(store_address) as saver:
        memory = MemoryMiddleware(saver, context_window=WINDOW)
        agent = create_agent(model, [], system_prompt="Be kind.", checkpointer=saver, middleware=[memory])
        await agent.ainvoke({"messages": given}, on())
        state = await agent.ainvoke(asked("Where were we?"), on())
        assert [each.type for each in state["messages"]] == [*(each.type for each in given), "ai", "human", "ai"]


async def test_what_had_no_room_is_summarised_and_leaves_the_state_too(store_address: str) -> None:
    spy = Spy(window=2_500)
    async with LongthreadSaver.from_conn_string(store_address) as saver:
        agent = agent_of(saver, said("word " * 100), spy=spy, memory_summary_threshold=6)
        for n in range(20):
            await agent.ainvoke(asked(f"Question {n} " + "more " * 100), on())
            await settle(saver)
        state = await agent.aget_state(on())
        assert len(state.values["messages"]) < 30
        assert state.values["memory_summary"]["mark"] > 0
    # Shown when the view is planned anew: until then it goes on as it was.
    assert any("A summary." in str(view[0].text) for view in spy.views)
    assert spy.over == []


async def test_no_view_forgets_what_a_plan_has_no_room_for(store_address: str) -> None:
    spy = Spy(window=6_000)
    async with LongthreadSaver.from_conn_string(store_address) as saver:
        given = {"memory_summary_threshold": 12, "memory_enable_summary": False}
        agent = agent_of(saver, said("Noted. " * 30), spy=spy, **given)
        for n in range(24):
            await agent.ainvoke(asked(f"The port of service {n} is {50_000 + n}. " + "more " * 150), on())
            text = "\n".join(str(message.text) for message in spy.views[-1])
            assert [k for k in range(n + 1) if f"{50_000 + k}" not in text] == []
            await settle(saver)
        summary = (await agent.aget_state(on())).values["memory_summary"]
    assert summary["mark"] > 0
    assert summary["digest"]["items"]["told"]
    assert spy.over == []


async def test_a_model_that_fails_to_summarise_is_in_nobodys_way(
    store_address: str, caplog: pytest.LogCaptureFixture
) -> None:
    def reply(messages: list[BaseMessage]) -> Any:
        return ConnectionError("no model") if str(messages[0].text).startswith(SUMMARIES) else "Yes."

    async with LongthreadSaver.from_conn_string(store_address) as saver:
        agent = agent_of(saver, reply, memory_max_messages_per_thread=20)
        for n in range(13):
            state = await agent.ainvoke(asked(f"Is the staging server 10.0.0.{n}?"), on())
            await settle(saver)
        assert len(state["messages"]) <= 22
        summary = (await agent.aget_state(on())).values["memory_summary"]["summary"]
    assert "10.0.0.1" in summary  # the digest, which needs no model
    assert "no model" in caplog.text


async def test_a_summarizer_of_its_own_writes_the_summary(store_address: str) -> None:
    writer = ScriptedChatModel(lambda messages: "Written by another.")
    async with LongthreadSaver.from_conn_string(store_address) as saver:
        agent = agent_of(saver, said("Yes."), memory_max_messages_per_thread=20, summarizer=writer)
        for n in range(13):
            await agent.ainvoke(asked(f"Question {n}"), on())
            await settle(saver)
        assert "Written by another." in (await agent.aget_state(on())).values["memory_summary"]["summary"]


def test_it_works_without_await_and_the_loop_is_nobodys(store_address: str) -> None:
    spy = Spy()
    with LongthreadSaver.from_conn_string(store_address) as saver:
        agent = agent_of(saver, said("Yes."), spy=spy, memory_max_messages_per_thread=20)
        for n in range(13):
            agent.invoke(asked(f"Question {n}"), on())
            saver.backing.home.call("settle", saver.backing.home.settle)
        assert len(agent.get_state(on()).values["messages"]) <= 22
        assert "A summary." in agent.get_state(on()).values["memory_summary"]["summary"]

        async def elsewhere() -> Any:
            for n in range(12):
                state = await agent.ainvoke(asked(f"Question {n}"), on())
                await asyncio.to_thread(saver.backing.home.call, "settle", saver.backing.home.settle)
            return state

        # The model is asked for a summary on the loop on which it answers.
        assert len(asyncio.run(elsewhere())["messages"]) <= 44
    assert spy.over == []


def test_a_loop_for_each_turn_has_its_summaries_from_the_model_too(store_address: str) -> None:
    with LongthreadSaver.from_conn_string(store_address) as saver:
        for n in range(9):
            agent = agent_of(saver, said("Noted."), memory_max_messages_per_thread=10)
            asyncio.run(agent.ainvoke(asked(f"note {n}"), on()))
            saver.backing.home.call("settle", saver.backing.home.settle)

        async def kept() -> summaries.ThreadSummary | None:
            async with saver.backing.store.reading() as tx:
                return await summaries.find(tx, "t")

        found = saver.backing.home.call("look", kept)
    assert found is not None
    assert found.model == "scripted"


async def test_a_loop_that_ends_while_the_model_is_asked_leaves_it_to_a_thread() -> None:
    begun, there = threading.Event(), threading.Event()

    class Slow(ScriptedChatModel):
        async def ainvoke(self, *asked: Any, **more: Any) -> AIMessage:
            begun.set()
            await asyncio.sleep(3600)
            raise AssertionError

    async def turn() -> None:
        loops.append(asyncio.get_running_loop())
        there.set()
        await asyncio.to_thread(begun.wait)

    loops: list[asyncio.AbstractEventLoop] = []
    running = asyncio.create_task(asyncio.to_thread(asyncio.run, turn()))
    await asyncio.to_thread(there.wait)
    assert await ModelWriter(Slow(["the summary"]), loops[0]).write("Sum up.", "a text") == "the summary"
    await running


@contextmanager
def another_loop(*, ending: bool) -> Iterator[asyncio.AbstractEventLoop]:
    """A loop that runs on a thread; one that is `ending` refuses threads, as at the end of `asyncio.run`."""
    ready, loops, done = threading.Event(), list[asyncio.AbstractEventLoop](), asyncio.Event()

    async def turn() -> None:
        loops.append(loop := asyncio.get_running_loop())
        if ending:
            await loop.shutdown_default_executor()
        ready.set()
        await done.wait()

    thread = threading.Thread(target=asyncio.run, args=(turn(),))
    thread.start()
    ready.wait()
    try:
        yield loops[0]
    finally:
        loops[0].call_soon_threadsafe(done.set)
        thread.join()


class Broken(ScriptedChatModel):
    """A model that cannot be asked on a loop."""

    _asked: list[str] = PrivateAttr(default_factory=list)

    async def ainvoke(self, *given: Any, **more: Any) -> AIMessage:
        self._asked.append("on the loop")
        raise RuntimeError("the provider does not answer")


async def test_a_loop_that_is_ending_leaves_the_model_to_a_thread() -> None:
    with another_loop(ending=True) as loop:
        for model in ScriptedChatModel(["the summary"]), Broken(["the summary"]):
            assert await ModelWriter(model, loop).write("Sum up.", "a text") == "the summary"


async def test_a_model_that_fails_by_itself_is_asked_once() -> None:
    model = Broken(["never asked"])
    with another_loop(ending=False) as loop, pytest.raises(RuntimeError, match="does not answer"):
        await ModelWriter(model, loop).write("Sum up.", "a text")
    assert model._asked == ["on the loop"]


class Gated(ScriptedChatModel):
    """A model that writes no summary before its gate is open."""

    _gate: threading.Event = PrivateAttr(default_factory=threading.Event)

    def open(self) -> None:
        self._gate.set()

    async def ainvoke(self, *given: Any, **more: Any) -> AIMessage:
        await asyncio.to_thread(self._gate.wait, 60)
        return await super().ainvoke(*given, **more)

    def invoke(self, *given: Any, **more: Any) -> AIMessage:
        self._gate.wait(60)
        return super().invoke(*given, **more)


class Passes:
    """The passes that shorten a state, held until they are let go."""

    def __init__(self) -> None:
        self._gate = threading.Event()

    def let_go(self) -> None:
        self._gate.set()

    async def prune(self, *given: Any, **more: Any) -> Any:
        await asyncio.to_thread(self._gate.wait, 60)
        return await prune_thread(*given, **more)


@pytest.fixture
def passes(monkeypatch: pytest.MonkeyPatch) -> Passes:
    held = Passes()
    monkeypatch.setattr("longthread.memory.pruner.prune_thread", held.prune)
    return held


async def test_a_turn_waits_for_the_pass_when_the_state_is_twice_as_long_as_it_may_be(
    store_address: str, passes: Passes
) -> None:
    writer, spy = ScriptedChatModel(lambda messages: "A summary."), Spy()
    async with LongthreadSaver.from_conn_string(store_address) as saver:
        agent = agent_of(saver, said("Yes."), spy=spy, summarizer=writer, memory_max_messages_per_thread=10)
        for n in range(11):
            state = await agent.ainvoke(asked(f"Question {n}"), on())
        assert len(state["messages"]) == 22  # nothing is summarised yet, and nobody has waited
        turn = asyncio.create_task(agent.ainvoke(asked("One more"), on()))
        done, _ = await asyncio.wait({turn}, timeout=0.5)
        assert not done, "the turn goes on without the pass behind the turns before it"
        passes.let_go()
        assert len((await turn)["messages"]) <= 20
        for n in range(40):
            state = await agent.ainvoke(asked(f"Another {n}"), on())
            assert len(state["messages"]) <= 22
    assert spy.over == [] and spy.watch.orphans == 0


def test_a_turn_without_await_waits_for_the_pass_too(store_address: str, passes: Passes) -> None:
    with LongthreadSaver.from_conn_string(store_address) as saver, ThreadPoolExecutor() as pool:
        agent = agent_of(saver, said("Yes."), memory_max_messages_per_thread=10)
        for n in range(11):
            agent.invoke(asked(f"Question {n}"), on())
        turn = pool.submit(agent.invoke, asked("One more"), on())
        try:
            with pytest.raises(TimeoutError):
                turn.result(timeout=0.5)
        finally:
            passes.let_go()
        assert len(turn.result()["messages"]) <= 20


async def test_a_digest_stands_for_what_a_model_is_still_writing(store_address: str) -> None:
    writer = Gated(lambda messages: "A summary.")
    async with LongthreadSaver.from_conn_string(store_address) as saver:
        agent = agent_of(saver, said("Yes."), summarizer=writer, memory_max_messages_per_thread=10)
        for n in range(6):
            await agent.ainvoke(asked(f"Question {n}"), on())
        async with asyncio.timeout(60):
            while not await is_summarised(saver):  # noqa: ASYNC110 - another task writes it
                await asyncio.sleep(0.01)
        state = await agent.ainvoke(asked("Question 6"), on())
        assert len(state["messages"]) < 14
        assert "Question 0" in state_summary(await agent.aget_state(on()))
        writer.open()
        await settle(saver)
        await agent.ainvoke(asked("One more"), on())
        assert "A summary." in state_summary(await agent.aget_state(on()))


async def is_summarised(saver: LongthreadSaver) -> bool:
    async with saver.backing.store.reading() as tx:
        return await summaries.find(tx, "t") is not None


@pytest.mark.sampled(2)
@pytest.mark.parametrize("patience", [0.05, 0])
async def test_nobody_waits_longer_than_its_patience(
    store_address: str, caplog: pytest.LogCaptureFixture, patience: float, passes: Passes
) -> None:
    async with LongthreadSaver.from_conn_string(store_address) as saver:
        agent = agent_of(saver, said("Yes."), patience=patience, memory_max_messages_per_thread=10)
        for n in range(13):
            state = await agent.ainvoke(asked(f"Question {n}"), on())
        assert state["messages"][-1].text == "Yes."
        assert len(state["messages"]) == 26
        assert caplog.text.count("waiting for that, at most 0.05 s, did not help") == (2 if patience else 0)
        passes.let_go()
        await settle(saver)
        assert len((await agent.ainvoke(asked("And now?"), on()))["messages"]) < 26


async def test_a_state_that_is_too_long_when_it_is_opened_is_shortened_in_its_first_turn(store_address: str) -> None:
    async with LongthreadSaver.from_conn_string(store_address) as saver:
        agent = agent_of(saver, said("Yes."), memory_max_messages_per_thread=1_000, memory_summary_threshold=1_000)
        told = [(who, f"Fact {n}") for n in range(25) for who in WHO]
        await agent.ainvoke({"messages": [*told, ("user", "All right?")]}, on())
    spy = Spy()
    async with LongthreadSaver.from_conn_string(store_address) as saver:
        agent = agent_of(saver, said("Yes."), spy=spy, memory_max_messages_per_thread=20)
        state = await agent.ainvoke(asked("And now?"), on())
        assert len(state["messages"]) <= 22
        assert "A summary." in state_summary(await agent.aget_state(on()))
    assert spy.over == [] and spy.watch.orphans == 0


def state_summary(state: Any) -> str:
    """The summary that a state has."""
    return str(state.values["memory_summary"]["summary"])


async def test_time_travel_and_forks_have_the_view_of_their_state(store_address: str) -> None:
    spy = Spy()
    async with LongthreadSaver.from_conn_string(store_address) as saver:
        agent = agent_of(saver, said("Yes."), spy=spy, memory_max_messages_per_thread=20)
        for n in range(14):
            await agent.ainvoke(asked(f"Question {n}"), on())
            await settle(saver)
        ends = [s async for s in agent.aget_state_history(on()) if not s.next]
        early = next(s for s in ends if len(s.values["messages"]) == 10)
        forked = await agent.ainvoke(asked("Another question"), early.config)
        assert [m.text for m in forked["messages"][8:]] == ["Question 4", "Yes.", "Another question", "Yes."]
        shown = spy.views[-1]
        assert [m.text for m in shown] == [m.text for m in forked["messages"][:-1]]  # no summary of another branch
        await settle(saver)
        again = await agent.ainvoke(asked("And one more"), on())
        assert [m.text for m in again["messages"][-4:]] == ["Another question", "Yes.", "And one more", "Yes."]
        assert not any("Question 12" in str(m.text) for m in spy.views[-1])
        # Back to where it had been summarised.
        late = next(s for s in ends if s.values["messages"][0].text != "Question 0")
        await agent.ainvoke(asked("Late"), late.config)
        assert [m.text for m in spy.views[-1][-1:]] == ["Late"]
    assert spy.over == [] and spy.watch.orphans == 0


async def test_a_fork_of_a_state_that_was_cut_short_gets_its_summary_back(store_address: str) -> None:
    spy = Spy(window=2_500)
    async with LongthreadSaver.from_conn_string(store_address) as saver:
        agent = agent_of(saver, said("word " * 100), spy=spy, memory_summary_threshold=6, memory_enable_summary=False)
        for n in range(40):
            await agent.ainvoke(asked(f"Question {n} " + "more " * 100), on())
            await settle(saver)
        ends = [s async for s in agent.aget_state_history(on()) if not s.next]
        marks = sorted({s.values["memory_summary"]["mark"] for s in ends} - {0})
        # What it begins with was summarised, what it ends with is older than what the thread's summary tells of now.
        past = next(s for s in reversed(ends) if s.values["memory_summary"]["mark"] == marks[0])
        assert not past.values["messages"][0].text.startswith("Question 0") and len(marks) > 1
        await agent.ainvoke(asked("Fork"), past.config)
        forked = await agent.aget_state(on())
        assert forked.values["memory_summary"]["mark"] == marks[0]  # its own, not that of the other branch, nor none
        await settle(saver)
        await agent.ainvoke(asked("And on"), on())
        await settle(saver)
        async with saver.backing.store.reading() as tx:
            kept = await summaries.find(tx, "t")
        assert kept is not None and kept.first_seq == 1 and "Question 0" in kept.summary
        assert kept.last_seq >= marks[0]
    assert spy.over == [] and spy.watch.orphans == 0


async def test_what_had_no_room_is_summarised_where_turns_end_with_a_structured_reply(store_address: str) -> None:
    class Answer(BaseModel):
        text: str

    calls = iter(range(1000))

    def reply(messages: list[BaseMessage]) -> AIMessage:
        args = {"text": "word " * 100}
        return AIMessage(
            "", tool_calls=[{"name": "Answer", "args": args, "id": f"c{next(calls)}", "type": "tool_call"}]
        )

    spy = Spy(window=2_500)
    async with LongthreadSaver.from_conn_string(store_address) as saver:
        given = {"memory_summary_threshold": 6, "memory_enable_summary": False}
        agent = agent_of(saver, reply, spy=spy, response_format=ToolStrategy(Answer), **given)
        for n in range(15):
            await agent.ainvoke(asked(f"Question {n} " + "more " * 100), on())
            await settle(saver)
        state = await agent.aget_state(on())
        assert state.values["memory_summary"]["mark"] > 0 and len(state.values["messages"]) < 30
    assert spy.over == [] and spy.watch.orphans == 0


async def test_threads_at_once_do_not_disturb_each_other(store_address: str) -> None:
    spy = Spy()
    async with LongthreadSaver.from_conn_string(store_address) as saver:
        agent = agent_of(saver, said("Yes."), spy=spy, memory_max_messages_per_thread=20)

        async def talk(thread: str) -> list[str]:
            for n in range(11):
                await agent.ainvoke(asked(f"{thread} {n}"), on(thread))
            await settle(saver)
            state = await agent.ainvoke(asked(f"{thread} last"), on(thread))
            return [message.text for message in state["messages"] if message.type == "human"]

        for thread, texts in zip("abcd", await asyncio.gather(*map(talk, "abcd")), strict=True):
            assert {text[0] for text in texts} == {thread}
    assert all(len({str(m.text)[0] for m in view if str(m.text)[1:2] == " "} - {"A"}) <= 1 for view in spy.views)


async def test_interrupts_and_their_answers_go_through(store_address: str) -> None:
    calls = {"action": "table", "args": {"rows": 200}}
    async with LongthreadSaver.from_conn_string(store_address) as saver:
        human = HumanInTheLoopMiddleware(interrupt_on={"table": True})
        spy = Spy()
        agent = agent_of(saver, [calls, "Done."], table, spy=spy, extra=[human])
        stopped = await agent.ainvoke(asked("Show the table"), on())
        assert stopped["__interrupt__"]
        state = await agent.ainvoke(Command(resume={"decisions": [{"type": "approve"}]}), on())
    assert [message.type for message in state["messages"]] == ["human", "ai", "tool", "ai"]
    assert orphans(spy.views[-1]) == 0 and spy.over == []


async def test_a_call_that_was_never_answered_does_not_break_the_thread(store_address: str) -> None:
    async with LongthreadSaver.from_conn_string(store_address) as saver:
        spy = Spy()
        agent = agent_of(saver, said("Yes."), spy=spy)
        broken = AIMessage("", tool_calls=[{"name": "table", "args": {}, "id": "lost", "type": "tool_call"}])
        await agent.aupdate_state(on(), {"messages": [HumanMessage("One"), broken]}, as_node="model")
        await agent.ainvoke(asked("Two"), on())
    assert [m.text for m in spy.views[-1]] == ["One", "Two"]
    assert spy.watch.orphans == 0


async def test_structured_replies_artifacts_and_pictures(store_address: str) -> None:
    class Answer(BaseModel):
        port: int

    def lookup(name: str) -> Any:
        """Looks a port up."""
        return ToolMessage("5433 " * 400, tool_call_id="call_x", artifact={"rows": [1, 2, 3]})

    replies = [
        AIMessage("", tool_calls=[{"name": "lookup", "args": {"name": "db"}, "id": "call_x", "type": "tool_call"}]),
        AIMessage("", tool_calls=[{"name": "Answer", "args": {"port": 5433}, "id": "call_y", "type": "tool_call"}]),
    ]
    async with LongthreadSaver.from_conn_string(store_address) as saver:
        spy = Spy()
        agent = agent_of(saver, ScriptedChatModel(replies * 3), lookup, spy=spy, response_format=ToolStrategy(Answer))
        for _ in range(3):
            given = [{"type": "text", "text": "Which port?"}, {"type": "image", "url": "https://example.org/a.png"}]
            state = await agent.ainvoke({"messages": [HumanMessage(given)]}, on())
            assert state["structured_response"] == Answer(port=5433)
    assert [m.artifact for m in state["messages"] if m.name == "lookup" or getattr(m, "artifact", None)] == [
        {"rows": [1, 2, 3]}
    ] * 3
    assert spy.over == [] and spy.watch.orphans == 0


async def test_a_stream_has_the_models_words_and_none_of_the_summarys(store_address: str) -> None:
    async with LongthreadSaver.from_conn_string(store_address) as saver:
        agent = agent_of(saver, said("Streamed."), memory_max_messages_per_thread=20)
        told: list[str] = []
        for n in range(13):
            async for chunk, _ in agent.astream(asked(f"Question {n}"), on(), stream_mode="messages"):
                told.append(str(chunk.text))
            await settle(saver)
        assert "A summary." in (await agent.aget_state(on())).values["memory_summary"]["summary"]
    assert "Streamed." in "".join(told) and "summary" not in "".join(told)


async def test_an_agent_inside_a_graph_has_views_and_the_graph_its_messages(store_address: str) -> None:
    spy = Spy(window=2_500)
    async with LongthreadSaver.from_conn_string(store_address) as saver:
        inner = agent_of(None, said("word " * 100), spy=spy)
        builder = StateGraph(MessagesState)
        builder.add_node("agent", inner)
        builder.add_edge(START, "agent")
        graph = builder.compile(checkpointer=saver)
        for n in range(12):
            state = await graph.ainvoke(asked(f"Question {n} " + "more " * 100), on())
    assert len(state["messages"]) == 24
    assert spy.over == [] and len(spy.views[-1]) < 20


async def test_messages_without_ids_or_with_one_id_twice_are_shown(store_address: str) -> None:
    class Adds(AgentMiddleware[Any, Any, Any]):
        async def awrap_model_call(self, request: ModelRequest[Any], handler: Any) -> Any:
            more = [
                SystemMessage("Today is Monday."),
                HumanMessage("twice", id="same"),
                HumanMessage("twice", id="same"),
            ]
            return await handler(
                request.override(messages=[*more, SystemMessage("Today is Monday."), *request.messages])
            )

    async with LongthreadSaver.from_conn_string(store_address) as saver:
        spy = Spy()
        memory = MemoryMiddleware(saver, memory_context_window=WINDOW)
        agent = create_agent(ScriptedChatModel(said("Yes.")), checkpointer=saver, middleware=[Adds(), memory, spy])
        for _ in range(3):
            await agent.ainvoke(asked("Hello"), on())
    texts = [message.text for message in spy.views[-1]]
    assert texts[:4] == ["Today is Monday.", "twice", "twice", "Today is Monday."]
    assert texts[4:] == ["Hello", "Yes.", "Hello", "Yes.", "Hello"]


async def test_messages_that_the_application_removes_are_gone_from_the_view(store_address: str) -> None:
    async with LongthreadSaver.from_conn_string(store_address) as saver:
        spy = Spy()
        agent = agent_of(saver, said("Yes."), spy=spy)
        for n in range(4):
            await agent.ainvoke(asked(f"Question {n}"), on())
        messages = (await agent.aget_state(on())).values["messages"]
        gone = [RemoveMessage(id=messages[n].id) for n in (2, 3)]
        await agent.ainvoke({"messages": [*gone, HumanMessage("Last")]}, on())
    assert [message.text for message in spy.views[-1]][::2] == ["Question 0", "Question 2", "Question 3", "Last"]


async def test_reported_usage_corrects_the_estimates_also_in_another_process(store_address: str) -> None:
    counts: list[int] = []

    def reply(messages: list[BaseMessage]) -> AIMessage:
        tokens = 2 * sum(item_of(from_langchain(message)).tokens for message in messages)
        counts.append(tokens)
        usage = {"input_tokens": tokens, "output_tokens": 1, "total_tokens": tokens + 1}
        return AIMessage("word " * 150, usage_metadata=usage)  # type: ignore[arg-type]

    for _ in range(2):
        async with LongthreadSaver.from_conn_string(store_address) as saver:
            agent = agent_of(saver, reply, memory_summary_threshold=1000)
            for n in range(12):
                await agent.ainvoke(asked(f"Question {n} " + "more " * 150), on())
    assert max(counts[10:]) <= WINDOW


async def test_a_window_that_is_too_small_is_told(store_address: str) -> None:
    async with LongthreadSaver.from_conn_string(store_address) as saver:
        agent = agent_of(saver, said("Yes."), memory_context_window=300, system_prompt="word " * 300)
        with pytest.raises(WindowTooSmall, match="300 tokens"):
            await agent.ainvoke(asked("Hello"), on())


async def test_without_our_saver_there_is_the_view_alone_and_that_is_said_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    spy = Spy(window=2_500)
    agent = agent_of(InMemorySaver(), said("word " * 100), spy=spy, memory_max_messages_per_thread=20)
    with caplog.at_level(logging.WARNING, "longthread"):
        for n in range(12):
            state = await agent.ainvoke(asked(f"Question {n} " + "more " * 100), on())
    assert len(state["messages"]) == 24 and len(spy.views[-1]) < 20
    assert spy.over == [] and spy.watch.orphans == 0
    assert "Asked before" in str(spy.views[-1][0].text)  # the digest of what has no room, which nobody keeps
    assert caplog.text.count("nothing is summarised or recalled") == 1
    alone = agent_of(None, said("Yes."), spy=Spy())
    assert len((await alone.ainvoke(asked("Hello")))["messages"]) == 2


async def test_with_a_saver_that_is_not_the_agents_that_is_said_once_and_nobody_waits(
    store_address: str, caplog: pytest.LogCaptureFixture
) -> None:
    async with LongthreadSaver.from_conn_string(store_address) as saver:
        memory = MemoryMiddleware(saver, memory_context_window=WINDOW, memory_max_messages_per_thread=4, patience=600)
        other = InMemorySaver()
        agent = create_agent(ScriptedChatModel(said("Yes.")), checkpointer=other, middleware=[memory])
        with caplog.at_level(logging.WARNING, "longthread"):
            for n in range(8):
                state = await agent.ainvoke(asked(f"Question {n}"), on())
                await settle(saver)
    assert len(state["messages"]) == 16
    assert [record.getMessage() for record in caplog.records if "checkpointer=saver" in record.getMessage()]
    assert len(caplog.records) == 1


async def test_a_store_that_cannot_be_read_is_not_in_the_way_of_an_answer(
    store_address: str, caplog: pytest.LogCaptureFixture
) -> None:
    async with LongthreadSaver.from_conn_string(store_address) as closed:
        memory = MemoryMiddleware(closed, memory_context_window=WINDOW)
    agent = create_agent(ScriptedChatModel(said("Yes.")), checkpointer=InMemorySaver(), middleware=[memory])
    assert (await agent.ainvoke(asked("Hello"), on()))["messages"][-1].text == "Yes."
    assert "could not be read" in caplog.text


async def test_the_saver_of_the_agent_is_found(store_address: str) -> None:
    async with LongthreadSaver.from_conn_string(store_address) as saver:
        memory = MemoryMiddleware(memory_max_messages_per_thread=20, memory_enable_summary=False)
        agent = create_agent(ScriptedChatModel(said("Yes.")), checkpointer=saver, middleware=[memory])
        for n in range(13):
            state = await agent.ainvoke(asked(f"Question {n}"), on())
            await settle(saver)
        assert len(state["messages"]) <= 22


def test_a_setting_that_is_none_is_told() -> None:
    with pytest.raises(InvalidInput, match="memory_context_window"):
        MemoryMiddleware(memory_context_window=-1)


@pytest.mark.parametrize("given", ["wrong.db", 5, LongthreadSaver.from_conn_string("x.db")], ids=["text", "5", "shut"])
def test_what_is_no_saver_is_told(given: Any) -> None:
    for make in (MemoryMiddleware, recall_tool):
        with pytest.raises(
            InvalidInput, match=r"needs an open LongthreadSaver.* with LongthreadSaver.from_conn_string"
        ):
            make(given)


def test_options_have_no_prefix_and_the_environment_is_not_read(monkeypatch: Any) -> None:
    monkeypatch.setenv("MEMORY_CONTEXT_WINDOW", "no number")
    monkeypatch.setenv("MEMORY_RECALL_TOP_K", "0")
    for given in ({"context_window": 5_000}, {"memory_context_window": 5_000}):
        assert MemoryMiddleware(**given)._settings.memory_context_window == 5_000
    assert MemoryMiddleware()._settings.memory_context_window == 0
    recall_tool(recall_top_k=3)
    known = Settings.of(memory_context_window=7_000, memory_summary_threshold=9)
    both = MemoryMiddleware(settings=known, context_window=8_000)._settings
    assert (both.memory_context_window, both.memory_summary_threshold) == (8_000, 9)
    with pytest.raises(TypeError, match=r"MemoryMiddleware has no argument 'window'.* context_window"):
        MemoryMiddleware(window=3)  # type: ignore[call-arg]


def test_arguments_of_other_types_are_told() -> None:
    for wrong in ("x", None, -1, float("nan"), float("inf"), True):
        with pytest.raises(InvalidInput, match="number of seconds"):
            MemoryMiddleware(patience=wrong)  # type: ignore[arg-type]
    with pytest.raises(InvalidInput, match="Give a chat model"):
        MemoryMiddleware(summarizer="openai:gpt")  # type: ignore[arg-type]


async def test_scopes_of_another_type_are_told(store_address: str) -> None:
    async with LongthreadSaver.from_conn_string(store_address) as saver:
        for wrong in (None, 5, "thread", ("agent",)):
            with pytest.raises(InvalidInput, match="scopes"):
                recall_tool(saver, scopes=wrong)  # type: ignore[arg-type]


def of_the_environment() -> Settings:
    return Settings.load(env_file=None, database="none.db")


class TestDocumentedVariables:
    """Document 004's environment variables, as they take effect where a program gives `Settings.load()`."""

    async def played(
        self, address: str, turns: int = 12, window: int = 4_000, reply: Any = None, tools: Any = ()
    ) -> tuple[Spy, Any]:
        """A conversation with what the environment says."""
        spy = Spy(window=window)
        async with LongthreadSaver.from_conn_string(address) as saver:
            model = ScriptedChatModel(reply or said("word " * 100))
            agent = create_agent(
                model,
                list(tools),
                checkpointer=saver,
                middleware=[MemoryMiddleware(saver, settings=of_the_environment()), spy],
            )
            for n in range(turns):
                await agent.ainvoke(asked(f"Question {n} " + "more " * 100), on())
                await settle(saver)
            state = await agent.aget_state(on())
        assert spy.over == []
        return spy, state.values

    async def test_context_window(self, store_address: str, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("MEMORY_CONTEXT_WINDOW", "2500")
        spy, _ = await self.played(store_address, window=2_500)
        assert max(map(len, spy.views)) < 20

    async def test_context_window_of_the_model(self, store_address: str, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("MEMORY_CONTEXT_WINDOW", "0")
        model = ScriptedChatModel(said("word " * 100), profile={"max_input_tokens": 2_500})
        async with LongthreadSaver.from_conn_string(store_address) as saver:
            spy = Spy(window=2_500)
            agent = create_agent(
                model, checkpointer=saver, middleware=[MemoryMiddleware(saver, settings=of_the_environment()), spy]
            )
            for n in range(12):
                await agent.ainvoke(asked(f"Question {n} " + "more " * 100), on())
        assert spy.over == [] and max(map(len, spy.views)) < 20

    @pytest.mark.sampled(2)
    @pytest.mark.parametrize("name", ["MEMORY_FULL_RECENT_COUNT", "MESSAGE_COMPRESS_RECENT_WINDOW"])
    async def test_full_recent_count(self, store_address: str, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
        def reply(messages: list[BaseMessage]) -> Any:
            return {"action": "table", "args": {"rows": 5}} if messages[-1].type == "human" else {"finish": "ok " * 30}

        whole = []
        for count in ("2", "12"):
            monkeypatch.setenv(name, count)
            monkeypatch.setenv("MEMORY_CONTEXT_WINDOW", "4000")
            thread = f"t{count}"
            spy = Spy(window=4_000)
            async with LongthreadSaver.from_conn_string(store_address) as saver:
                middleware = [MemoryMiddleware(saver, settings=of_the_environment()), spy]
                agent = create_agent(ScriptedChatModel(reply), [table], checkpointer=saver, middleware=middleware)
                for n in range(12):
                    await agent.ainvoke(asked(f"Question {n}"), on(thread))
            replanned = [view for view in spy.views if any("truncated" in str(m.text) for m in view)]
            whole.append(min(sum(m.type == "tool" and "truncated" not in str(m.text) for m in v) for v in replanned))
        assert whole[0] < whole[1]

    async def test_condensed_tool_max(self, store_address: str, monkeypatch: pytest.MonkeyPatch) -> None:
        def reply(messages: list[BaseMessage]) -> Any:
            return {"action": "table", "args": {"rows": 9}} if messages[-1].type == "human" else {"finish": "ok"}

        monkeypatch.setenv("MEMORY_CONDENSED_TOOL_MAX", "77")
        monkeypatch.setenv("MEMORY_CONTEXT_WINDOW", "4000")
        spy, _ = await self.played(store_address, turns=14, reply=reply, tools=[table])
        cut = [str(m.text) for view in spy.views for m in view if str(m.text).endswith("... (truncated)")]
        assert cut and all(60 < len(text.removesuffix("... (truncated)")) <= 77 for text in cut)

    async def test_max_messages(self, store_address: str, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("MEMORY_MAX_MESSAGES_PER_THREAD", "16")
        _, state = await self.played(store_address)
        assert len(state["messages"]) <= 18

    async def test_enable_summary(self, store_address: str, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("MEMORY_MAX_MESSAGES_PER_THREAD", "16")
        monkeypatch.setenv("MEMORY_ENABLE_SUMMARY", "false")
        _, state = await self.played(store_address)
        assert state["memory_summary"]["summary"] and "A summary." not in state["memory_summary"]["summary"]

    async def test_summary_threshold(self, store_address: str, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("MEMORY_CONTEXT_WINDOW", "2500")
        monkeypatch.setenv("MEMORY_SUMMARY_THRESHOLD", "6")
        _, state = await self.played(store_address, turns=18, window=2_500)
        assert len(state["messages"]) < 30
        monkeypatch.setenv("MEMORY_SUMMARY_THRESHOLD", "1000")
        async with LongthreadSaver.from_conn_string(store_address) as saver:
            await saver.adelete_thread("t")
        _, state = await self.played(store_address, turns=18, window=2_500)
        assert len(state["messages"]) == 36

    async def test_max_summary_tokens(self, store_address: str, monkeypatch: pytest.MonkeyPatch) -> None:
        def reply(messages: list[BaseMessage]) -> Any:
            return "数据 " * 90 if str(messages[0].text).startswith(SUMMARIES) else "Yes."

        monkeypatch.setenv("MEMORY_MAX_MESSAGES_PER_THREAD", "16")
        monkeypatch.setenv("MEMORY_MAX_SUMMARY_TOKENS", "120")
        _, state = await self.played(store_address, turns=20, reply=reply)
        assert 0 < estimate(state["memory_summary"]["summary"]) <= 120

    async def test_recall_top_k(self, store_address: str, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("MEMORY_RECALL_TOP_K", "2")
        found = await self.recalled(store_address)
        assert len(found["found"]) == 2

    async def test_embedding_model(self, store_address: str, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("MEMORY_EMBEDDING_MODEL", "local:/nowhere")
        found = await self.recalled(store_address)
        assert found["found"] and "local:/nowhere does not work" in found["warnings"][0]

    @pytest.mark.sampled(2)
    @pytest.mark.parametrize("own", [True, False])
    async def test_embedding_endpoint_and_key(
        self, store_address: str, monkeypatch: pytest.MonkeyPatch, own: bool
    ) -> None:
        def embed(texts: list[str]) -> list[list[float]]:
            return [[1.0, 0.0]] * len(texts)

        monkeypatch.setenv("API_KEY", "key-of-all")
        with ProviderEmulator(embed=embed) as common, ProviderEmulator(embed=embed) as other:
            monkeypatch.setenv("API_BASE_URL", common.base_url)
            if own:
                monkeypatch.setenv("MEMORY_EMBEDDING_BASE_URL", other.base_url)
                monkeypatch.setenv("MEMORY_EMBEDDING_API_KEY", "key-of-embedder")
            else:
                monkeypatch.setenv("MEMORY_EMBEDDING_MODEL", "embedding-3")
            found = await self.recalled(store_address)
        assert found["found"] and "warnings" not in found
        [first, *_] = (other if own else common).requests
        assert (common if own else other).requests == []
        assert first.body["model"] == "embedding-3"
        assert first.headers["authorization"] == f"Bearer {'key-of-embedder' if own else 'key-of-all'}"

    async def test_database_url(self, store_address: str, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("DATABASE_URL", "mysql://of-the-application/db")
        assert (await self.recalled(store_address))["found"]

    async def recalled(self, address: str) -> dict[str, Any]:
        """What the model's call of recall_memory gave."""
        asks = {"action": "recall_memory", "args": {"query": "payments port"}}
        replies = ["Noted."] * 4 + [asks, {"finish": "5433"}]
        async with LongthreadSaver.from_conn_string(address) as saver:
            middleware = [MemoryMiddleware(saver, settings=of_the_environment())]
            agent = create_agent(
                ScriptedChatModel(replies),
                [recall_tool(saver, settings=of_the_environment())],
                checkpointer=saver,
                middleware=middleware,
            )
            for n in range(4):
                await agent.ainvoke(asked(f"The port of payments {n} is 543{n}"), on())
            state = await agent.ainvoke(asked("Which port has payments?"), on())
            await settle(saver)
        [result] = [message for message in state["messages"] if message.type == "tool"]
        observation = json.loads(str(result.text))
        assert observation["ok"], observation
        data: dict[str, Any] = observation["data"]
        assert all("Which port" not in hit["text"] for hit in data["found"])  # what it answers is not found again
        return data


async def test_a_page_of_a_long_message_is_shown_whole_in_a_small_window(store_address: str) -> None:
    long = "".join(f"{n:05d} 行 \r\n\t{n * n}\n" for n in range(1_500))
    calls: list[dict[str, Any]] = []
    spy = Spy(window=8_000)

    def reply(messages: list[BaseMessage]) -> Any:
        if calls:
            return AIMessage(
                "", tool_calls=[{"name": "recall_memory", "args": calls.pop(), "id": f"c{len(spy.views)}"}]
            )
        return "Noted."

    async with LongthreadSaver.from_conn_string(store_address) as saver:
        agent = agent_of(
            saver, reply, recall_tool(saver, settings=of_the_environment()), spy=spy, memory_enable_summary=False
        )
        await agent.ainvoke({"messages": [HumanMessage(long, id="long")]}, on())
        read, offset, pages = "", 0, 0
        while offset is not None:
            calls.append({"entry_id": "long", "offset": offset})
            state = await agent.ainvoke(asked("Go on"), on())
            result = state["messages"][-2]
            assert [each.content for each in spy.views[-1] if each.id == result.id] == [result.content]
            [page] = json.loads(str(result.text))["data"]["found"]
            read, pages = read + page["text"], pages + 1
            further = re.search(r"offset (\d+) gives", page.get("more", ""))
            offset = int(further[1]) if further else None
        assert read == long and 3 < pages < 30
        await settle(saver)
    assert spy.over == []


@pytest.mark.parametrize("durability", ["sync", "async", "exit"])
async def test_recall_in_a_threads_first_turn_finds_nothing_and_is_no_error(
    store_address: str, durability: Durability
) -> None:
    replies = [{"action": "recall_memory", "args": {"query": "payments port"}}, {"finish": "I do not know."}]
    async with LongthreadSaver.from_conn_string(store_address) as saver:
        agent = create_agent(
            ScriptedChatModel(replies), [recall_tool(saver, settings=of_the_environment())], checkpointer=saver
        )
        state = await agent.ainvoke(asked("Which port has payments?"), on("new"), durability=durability)
    [result] = [json.loads(str(message.text)) for message in state["messages"] if message.type == "tool"]
    assert (result["ok"], result["data"]["found"]) == (True, [])
    assert state["messages"][-1].text == "I do not know."


class TestWhatRecallMaySearch:
    """All threads of a saver without user_id belong to one user: what one person said is not told to another."""

    async def test_other_threads_are_not_offered_nor_searched(self, store_address: str) -> None:
        async with LongthreadSaver.from_conn_string(store_address) as saver:
            tool = recall_tool(saver)
            assert "scope" not in tool.args
            for scope in ("user", "agent"):
                assert (await self.found(saver, tool, scope=scope))["error"]["type"] == "invalid_input"
            assert (await self.found(saver, tool))["data"]["found"] == []
            elsewhere = {"query": "", "entry_id": "ann-1/ann-said"}
            assert (await self.found(saver, tool, **elsewhere))["error"]["type"] == "thread_not_found"

    async def test_the_users_threads_are_where_the_program_says_so(self, store_address: str) -> None:
        async with LongthreadSaver.from_conn_string(store_address) as saver:
            tool = recall_tool(saver, scopes=("thread", "user"))
            assert tool.args["scope"]["enum"] == ["thread", "user"]
            assert (await self.found(saver, tool))["data"]["found"] == []
            assert "123456" in json.dumps(await self.found(saver, tool, scope="user"))
            assert (await self.found(saver, tool, scope="agent"))["error"]["type"] == "invalid_input"

    async def test_savers_of_different_users_find_nothing_of_one_another(self, store_address: str) -> None:
        async with LongthreadSaver.from_conn_string(store_address, user_id="ann") as saver:
            bobs = LongthreadSaver(saver.backing.store, user_id="bob")
            tool = recall_tool(bobs, scopes=("thread", "user"))
            assert (await self.found(saver, tool, bobs, scope="user"))["data"]["found"] == []

    @pytest.mark.parametrize("scopes", ["thread", (), ("user",), ("thread", "agent"), ("thread", "world")])
    async def test_no_other_scopes_can_be_had(self, store_address: str, scopes: Any) -> None:
        async with LongthreadSaver.from_conn_string(store_address) as saver:
            with pytest.raises(InvalidInput, match="scopes"):
                recall_tool(saver, scopes=scopes)

    async def found(
        self, anns: LongthreadSaver, tool: Any, bobs: LongthreadSaver | None = None, **given: Any
    ) -> dict[str, Any]:
        """What Bob's model is told when it calls the tool like this, after Ann has spoken in a thread of hers."""
        secret = HumanMessage("my secret salary is 123456", id="ann-said")
        asks = {"action": "recall_memory", "args": {"query": "secret salary", **given}}
        await agent_of(anns, said("Noted.")).ainvoke({"messages": [secret]}, on("ann-1"))
        bob = f"bob-{json.dumps(given)}"
        await agent_of(bobs or anns, said("Hello.")).ainvoke(asked("hello"), on(bob))
        await settle(anns)
        agent = create_agent(ScriptedChatModel([asks, {"finish": "ok"}]), [tool], checkpointer=bobs or anns)
        state = await agent.ainvoke(asked("what do you know?"), on(bob))
        [result] = [message for message in state["messages"] if message.type == "tool"]
        observation: dict[str, Any] = json.loads(str(result.text))
        return observation
