"""What a message said before it was replaced under its id is given to no model again: not by a summary that was made
before, nor a digest, recall, a title or a memory."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage
from langgraph.checkpoint.memory import InMemorySaver
from tests.memory.canary import CANARY
from tests.memory.test_memories import OWNER

from longthread.langgraph import LongthreadSaver, MemoryMiddleware, recall_tool
from longthread.memory.summary import pruning
from longthread.memory.summary.pruning import PruningPolicy, prune_thread
from longthread.memory.user_memories import Memories
from longthread.model.memory import MemorySource, Statement
from longthread.store import listing, log, summaries
from longthread.store.driver import Driver
from longthread.testing import ScriptedChatModel

pytestmark = pytest.mark.one_backend

AT: Any = {"configurable": {"thread_id": "t"}}
RAW = f"my address is {CANARY}, 请记住 {CANARY}"
GUARDED = "my address is [REDACTED]"


class Talk:
    """An agent with memory, whose model answers at length, quotes in summaries what it is given, and is watched."""

    def __init__(self, store: Driver | None, **options: Any) -> None:
        self.model = ScriptedChatModel(self.reply)
        self.saver: Any = LongthreadSaver(store) if store is not None else InMemorySaver()
        options = {"context_window": 2_400, "max_messages_per_thread": 8, "summary_threshold": 4} | options
        own = self.saver if store is not None else None
        tools = [recall_tool(own)] if own is not None else []
        memory = MemoryMiddleware(own, **options)
        self.agent = create_agent(self.model, tools, checkpointer=self.saver, middleware=[memory])
        self.begun = 0

    def reply(self, messages: list[BaseMessage]) -> Any:
        if str(messages[0].text).startswith("You name"):
            return "address"
        if str(messages[0].text).startswith(("You keep", "Shorten")):
            told = [word for word in ("REDACTED", CANARY) if word in str(messages[-1].text)]
            return f"The user gave an address: {' '.join(told)}"
        asked = str(messages[-1].text)
        if isinstance(messages[-1], HumanMessage) and asked.startswith("recall "):
            _, _, words = asked.partition(" ")
            args = {"query": words, "neighbours": 5, "k": 50, "other_branches": True}
            return {"action": "recall_memory", "args": args}
        return "a long answer " * 12

    async def ask(self, text: str, *, at: Any = AT, settles: bool = True) -> None:
        await self.agent.ainvoke({"messages": [("user", text)]}, at)
        if settles and isinstance(self.saver, LongthreadSaver):
            await self.saver.backing.home.settle()

    async def begin(self, turns: int) -> str:
        """Say the word, and then other things; return the id of the message."""
        await self.ask(RAW)
        first = (await self.state())[0]
        for n in range(turns):
            await self.ask(f"something else, number {n}: " + "words " * 20)
        return str(first.id)

    async def state(self) -> list[BaseMessage]:
        return list((await self.agent.aget_state(AT)).values["messages"])

    async def guard(self, message_id: str, *, at: Any = AT) -> Any:
        self.begun = len(self.model.calls)
        return await self.agent.aupdate_state(at, {"messages": [HumanMessage(GUARDED, id=message_id)]}, as_node="model")

    @property
    def told(self) -> list[str]:
        """All that the model was given since the guard."""
        return [str(each) for call in self.model.calls[self.begun :] for each in (*call.messages, call.tools)]


@pytest.mark.sampled(3)
@pytest.mark.parametrize("turns", [1, 2, 3, 5, 9])
@pytest.mark.parametrize("model", [True, False])
async def test_a_summary_made_before_is_made_again(store: Driver, turns: int, model: bool) -> None:
    talk = Talk(store, enable_summary=model)
    message_id = await talk.begin(turns)
    async with store.reading() as tx:
        before = await summaries.find(tx, "t")
    assert turns < 5 or (before is not None and CANARY in before.summary)
    assert turns < 9 or message_id not in [each.id for each in await talk.state()]
    await talk.guard(message_id)
    for n in range(4):
        await talk.ask(f"what then, {n}? " + "words " * 20, settles=n > 0)
    await talk.ask("recall address")
    assert len(talk.told) > 20
    assert not [each for each in talk.told if CANARY in each]
    async with store.reading() as tx:
        after = await summaries.find(tx, "t")
    assert after is not None
    assert "REDACTED" in after.summary
    if turns >= 5:  # the model is told of it again, as it is now
        assert any("REDACTED" in str(each) for each in talk.model.calls[-1].messages)


@pytest.mark.parametrize("turns", [9, 11])
@pytest.mark.parametrize("ours", [True, False])
async def test_a_digest_of_what_has_no_room_is_made_again(store: Driver, ours: bool, turns: int) -> None:
    talk = Talk(store if ours else None, max_messages_per_thread=200, summary_threshold=200)
    message_id = await talk.begin(turns)
    assert CANARY in str(talk.model.calls[-1].messages[0])  # the digest at the view's beginning
    await talk.guard(message_id)
    await talk.ask("what then?")
    await talk.ask("and then?")
    assert not [each for each in talk.told if CANARY in each]
    assert "REDACTED" in str(talk.model.calls[-1].messages[0])


async def test_a_fork_behind_the_guard_has_its_words(store: Driver) -> None:
    talk = Talk(store)
    message_id = await talk.begin(9)
    past = await talk.agent.aget_state(AT)
    assert CANARY in str(past.values["memory_summary"])
    guarded = await talk.guard(message_id)
    await talk.ask("one way")
    await talk.ask("another way", at=guarded)
    await talk.ask("and on")
    await talk.ask("recall address")
    assert not [each for each in talk.told if CANARY in each]


async def test_a_pass_that_read_the_message_before_is_not_used(store: Driver) -> None:
    talk = Talk(store, max_messages_per_thread=200, summary_threshold=200)
    message_id = await talk.begin(4)

    class Slow:
        name = "slow"
        topics_only = False

        async def write(self, instructions: str, text: str) -> str:
            if instructions.startswith("You keep"):
                await talk.guard(message_id)
            return f"They live at {CANARY}."[: len(text) // 2]

    policy = PruningPolicy(max_messages=4)
    kept = await prune_thread(store, "t", policy, summarizer=Slow())
    assert kept is None or CANARY not in kept.summary
    async with store.reading() as tx:
        stored = await summaries.find(tx, "t")
    assert stored is not None
    assert CANARY not in stored.summary
    # The digest was stored before the model was asked: it is taken back, and the next pass makes it again.
    again = await prune_thread(store, "t", policy)
    assert again is not None
    assert "REDACTED" in again.summary


async def test_a_first_pass_that_read_the_message_before_is_not_used(store: Driver) -> None:
    talk = Talk(store, max_messages_per_thread=200, summary_threshold=200)
    message_id = await talk.begin(4)

    make: Callable[..., Any] = pruning._make

    async def made(*given: Any) -> Any:
        found = await make(*given)
        await talk.guard(message_id)
        return found

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pruning, "_make", made)
        assert await prune_thread(store, "t", PruningPolicy(max_messages=4)) is None
    kept = await prune_thread(store, "t", PruningPolicy(max_messages=4))
    assert kept is not None
    assert "REDACTED" in kept.summary


async def test_a_prompt_that_is_refreshed_and_a_tag_leave_the_summary_as_it_is(store: Driver) -> None:
    talk = Talk(store)
    message_id = await talk.begin(9)
    state = await talk.state()
    await talk.agent.aupdate_state(AT, {"messages": [state[-1].model_copy(update={"name": "bot"})]}, as_node="model")
    async with store.reading() as tx:
        before = await summaries.find(tx, "t")
    raw = HumanMessage(RAW, id=message_id, additional_kwargs={"seen": True})
    await talk.agent.aupdate_state(AT, {"messages": [raw]}, as_node="model")
    async with store.reading() as tx:
        assert await summaries.find(tx, "t") == before


async def test_a_message_that_comes_back_with_other_words_is_one_entry_in_its_place(store: Driver) -> None:
    talk = Talk(store)
    message_id = await talk.begin(9)
    await talk.guard(message_id)
    async with store.reading() as tx:
        tip, size = await log.position(tx, "t")
        texts = [entry.text for entry in await log.branch(tx, "t", tip, limit=size)]
        found = await listing.search_threads(tx, CANARY, user_id="default")
        assert [hit.text for _, hit in await listing.search_threads(tx, "REDACTED", user_id="default")] == [GUARDED]
        thread = await log.find_thread(tx, "t", user_id="default")
    assert texts[0] == GUARDED
    assert not [text for text in texts if CANARY in text]
    assert found == []
    assert thread.title == GUARDED
    assert (await talk.state())[-1].text == GUARDED


async def test_memories_of_a_replaced_message_go_and_others_stay(store: Driver) -> None:
    talk = Talk(store)
    message_id = await talk.begin(1)
    owner, memories = replace(OWNER, user_id="default"), Memories(store)
    for words in (f"The user lives at {CANARY}", "The user has an address"):
        await memories.remember(owner, Statement(words, source=MemorySource("t", (1, 2))))
    await memories.remember(owner, Statement("The user counts", source=MemorySource("t", (2, 3))))
    await memories.remember(owner, Statement(f"{CANARY} is a street"))
    await talk.guard(message_id)
    assert {each.content for each in await memories.list_(owner)} == {"The user counts", f"{CANARY} is a street"}


async def test_an_answer_is_replaced_too(store: Driver) -> None:
    talk = Talk(store)
    await talk.ask("hello")
    said = AIMessage(RAW, id="answer")
    await talk.agent.aupdate_state(AT, {"messages": [said]}, as_node="model")
    for n in range(7):
        await talk.ask(f"something else, {n}")
    talk.begun = len(talk.model.calls)
    await talk.agent.aupdate_state(AT, {"messages": [AIMessage(GUARDED, id="answer")]}, as_node="model")
    for n in range(3):
        await talk.ask(f"on, {n}")
    await talk.ask("recall address")
    assert not [each for each in talk.told if CANARY in each]
