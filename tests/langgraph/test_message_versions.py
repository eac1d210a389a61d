"""A message that changes under its id is one new entry, which takes the place of its first one."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

import pytest
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, RemoveMessage, SystemMessage, ToolMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, MessagesState, StateGraph

from longthread.langgraph.saver.async_saver import AsyncLongthreadSaver
from longthread.langgraph.saver.load import list_of
from longthread.langgraph.saver.record import StoredCheckpoint, cell_of_blob
from longthread.langgraph.saver.retention import CheckpointKeeper
from longthread.memory.recall import Question, Recaller
from longthread.memory.summary.pruning import PruningPolicy, prune_thread
from longthread.model.entry import Entry
from longthread.model.thread import Scope
from longthread.store import checkpoints, log
from longthread.store.driver import Driver
from longthread.store.maintenance import deletions as pruning
from longthread.store.maintenance.retention import Retention, RetentionPolicy
from longthread.store.open import open_store
from longthread.store.queries import Sql
from longthread.store.transfer.copy import copy_store

pytestmark = pytest.mark.one_backend

AT: Any = {"configurable": {"thread_id": "t"}}


class Conversation:
    """The state of one thread, through a saver that may be opened anew, and through LangGraph's own in memory."""

    def __init__(self, store: Driver) -> None:
        self.store = store
        self.plain = graph_with(InMemorySaver())
        self.open_again()
        self.at = AT, AT

    def open_again(self) -> None:
        self.graph = graph_with(AsyncLongthreadSaver(self.store))

    async def add(self, *messages: BaseMessage) -> Any:
        """Update the state, which is then as LangGraph's saver has it, and the branch reads like it."""
        ours = await self.graph.aupdate_state(self.at[0], {"messages": list(messages)}, as_node="n")
        theirs = await self.plain.aupdate_state(self.at[1], {"messages": list(messages)}, as_node="n")
        self.at = ours, theirs
        expected = told((await self.plain.aget_state(theirs)).values["messages"])
        assert told((await self.graph.aget_state(ours)).values["messages"]) == expected
        on_branch = iter([(log.sent_id(entry), entry.text) for entry in await self.branch()])
        assert all(each in on_branch for each in [message[1:3] for message in expected])
        return self.at

    async def branch(self) -> list[Entry]:
        async with self.store.reading() as tx:
            tip, size = await log.position(tx, "t")
            found = await log.branch(tx, "t", tip, limit=size) if tip else []
        seqs = [entry.seq for entry in found]
        assert [entry.parent_seq for entry in found] == [0, *seqs][: len(seqs)]
        return found

    async def texts(self) -> list[str]:
        return [entry.text for entry in await self.branch()]

    async def size(self) -> int:
        async with self.store.reading() as tx:
            return (await log.position(tx, "t"))[1]

    async def runs(self) -> int:
        """How many ranges the newest checkpoint's list has."""
        async with self.store.reading() as tx:
            row = await checkpoints.find(tx, "t", "", None)
            assert row is not None
            cell = StoredCheckpoint.from_row(row, AsyncLongthreadSaver(self.store).serde).cells["messages"]
            if cell.stored_by is not None:
                body = await checkpoints.blob(tx, "t", "", cell.stored_by, "messages")
                assert body is not None
                cell = cell_of_blob(body, cell.stored_by)
        return len(list_of(cell) or ())


def graph_with(saver: Any) -> Any:
    builder = StateGraph(MessagesState)
    builder.add_node("n", lambda state: {"messages": []})
    builder.add_edge(START, "n")
    return builder.compile(checkpointer=saver)


def told(messages: Sequence[BaseMessage]) -> list[tuple[str, str, str, dict[str, Any]]]:
    return [(each.type, each.id or "", str(each.text), each.additional_kwargs) for each in messages]


def profile(day: Any) -> SystemMessage:
    return SystemMessage(f"You help Ada. Today is day {day}.", id="sys")


def turn(n: int, *, tools: bool = False) -> list[BaseMessage]:
    """The messages after a question."""
    if not tools:
        return [AIMessage(f"回答 {n}", id=f"a{n}")]
    call = {"name": "look", "args": {"n": n}, "id": f"c{n}", "type": "tool_call"}
    return [AIMessage("", id=f"k{n}", tool_calls=[call]), ToolMessage(f"found {n}", id=f"t{n}", tool_call_id=f"c{n}")]


@pytest.mark.parametrize("tools", [False, True])
@pytest.mark.parametrize("again", [False, True])
async def test_a_refreshed_first_message_costs_one_entry_a_turn(store: Driver, tools: bool, again: bool) -> None:
    talk = Conversation(store)
    await talk.add(profile(0))
    said = 1
    for n in range(1, 13):
        if again:
            talk.open_again()
        rest = turn(n, tools=tools and n % 3 == 0)
        await talk.add(HumanMessage(f"question {n}", id=f"h{n}"))
        await talk.add(profile(n))
        await talk.add(*rest)
        said += 1 + len(rest)
    assert await talk.size() == said + 12
    assert len(await talk.branch()) == said
    assert (await talk.texts())[0] == "You help Ada. Today is day 12."
    # One range of the message, one of all others: the versions between them are left out.
    assert await talk.runs() == 2


async def test_messages_that_are_tagged_are_written_once(store: Driver) -> None:
    talk = Conversation(store)
    for n in range(1, 9):
        await talk.add(HumanMessage(f"question {n}", id=f"h{n}"), *turn(n))
        state = (await talk.graph.aget_state(AT)).values["messages"]
        await talk.add(*(each.model_copy(update={"additional_kwargs": {"seen": True}}) for each in state))
    assert await talk.size() == 2 * 16
    assert len(await talk.branch()) == 16


async def test_two_messages_and_the_last_one_are_refreshed(store: Driver) -> None:
    talk = Conversation(store)
    await talk.add(profile(0), HumanMessage("hello", id="h1"), AIMessage("Ada likes tea", id="notes"))
    for n in range(2, 6):
        await talk.add(HumanMessage(f"question {n}", id=f"h{n}"))
        await talk.add(profile(n), AIMessage(f"Ada likes tea and {n}", id="notes"))
        await talk.add(AIMessage(f"answer {n}, first", id=f"a{n}"))
        await talk.add(AIMessage(f"answer {n}", id=f"a{n}"))
    last = ["question 5", "answer 5"]
    texts = await talk.texts()
    assert (texts[0], texts[2], texts[-2:]) == ("You help Ada. Today is day 5.", "Ada likes tea and 5", last)
    assert await talk.size() == 3 + 4 * 5


async def test_time_travel_shows_the_version_of_then_and_a_fork_the_one_it_began_with(store: Driver) -> None:
    talk = Conversation(store)
    before = await talk.add(profile("one"), HumanMessage("hello", id="h1"))
    after = await talk.add(profile("two"))
    await talk.add(AIMessage("hi", id="a1"), HumanMessage("more", id="h2"))
    size = await talk.size()
    for at, day in ((before, "one"), (after, "two")):
        talk.at = at
        await talk.add(AIMessage(f"fork of {day}", id=f"f-{day}"))
        assert await talk.texts() == [f"You help Ada. Today is day {day}.", "hello", f"fork of {day}"]
        talk.open_again()
    assert await talk.size() == size + 2


async def test_a_version_is_not_undone_when_its_message_leaves_the_state(store: Driver) -> None:
    """What a guard has replaced does not come back to the branch."""
    talk = Conversation(store)
    await talk.add(
        HumanMessage("I am ada@example.org", id="h1"), AIMessage("hi", id="a1"), HumanMessage("so?", id="h2")
    )
    await talk.add(HumanMessage("I am [REDACTED]", id="h1"))
    for change in ([RemoveMessage(id="h1")], [RemoveMessage(id="h2")], [AIMessage("well", id="a3")]):
        await talk.add(*change)
        talk.open_again()
        assert (await talk.texts())[0] == "I am [REDACTED]"
    assert (await talk.texts())[-2:] == ["so?", "well"]  # what was removed stays with what was changed behind it


async def test_recall_finds_the_present_version_alone_and_not_less_of_the_rest(store: Driver) -> None:
    talk = Conversation(store)
    await talk.add(profile(0))
    for n in range(1, 31):
        question = "where is the day of Ada" if n == 3 else f"question {n}"
        await talk.add(HumanMessage(question, id=f"h{n}"), profile(n), *turn(n))
    recaller = Recaller(store)
    hits = (await recaller.find(Question("help Ada today day", Scope("default", "t"), k=3))).hits
    await recaller.close()
    texts = [hit.entry.text for hit in hits]
    assert set(texts[:2]) == {"You help Ada. Today is day 30.", "where is the day of Ada"}
    [asked] = [hit for hit in hits if hit.entry.text.startswith("where")]
    assert [entry.text for entry in asked.around] == ["回答 2", "回答 3"]
    [first] = [hit for hit in hits if hit.entry.role == "system"]
    assert (first.entry.seq, first.active, [entry.text for entry in first.around]) == (1, True, ["question 1"])


async def test_a_summary_is_made_of_the_present_versions(store: Driver) -> None:
    talk = Conversation(store)
    for n in range(1, 9):
        await talk.add(HumanMessage(f"old question {n}", id=f"h{n}"), *turn(n))
    await talk.add(HumanMessage("the harbour of Lisbon", id="h1"))
    kept = await prune_thread(store, "t", PruningPolicy(max_messages=8))
    assert kept is not None
    assert "harbour of Lisbon" in kept.summary and "old question 1" not in kept.summary
    assert kept.message_count == 12
    again = await prune_thread(store, "t", PruningPolicy(max_messages=8))
    assert again == kept


async def test_copies_and_the_documents_views_have_the_versions(store: Driver, second: Driver, tmp_path: Any) -> None:
    talk = Conversation(store)
    await talk.add(profile("one"), HumanMessage("hello", id="h1"), AIMessage("hi", id="a1"))
    await talk.add(profile("two"))
    async with store.reading() as tx:
        [row] = await tx.fetch(Sql("SELECT authoritative_history AS history FROM conversation_state WHERE scid = 't'"))
        [thread] = await tx.fetch(Sql("SELECT state_data FROM conversations WHERE thread_id = 't'"))
    assert "day two" in str(row["history"]) and "day one" not in str(row["history"])
    assert "hello" in str(thread["state_data"])
    async with open_store(f"{tmp_path}/copy.db") as copy:
        await copy_store(store, copy, lambda *_: None)
        there = Conversation(copy)
        assert await there.texts() == ["You help Ada. Today is day two.", "hello", "hi"]
        state = (await there.graph.aget_state(AT)).values["messages"]
        assert [each.text for each in state] == await there.texts()
    await AsyncLongthreadSaver(second).acopy_thread("t", "u")
    async with store.reading() as tx:
        entries = await log.branch(tx, "u", (await log.position(tx, "u"))[0])
    assert [entry.text for entry in entries] == await talk.texts()


async def test_a_version_outlives_the_entry_whose_place_it_takes(store: Driver) -> None:
    talk = Conversation(store)
    await talk.add(profile(0))
    for n in range(1, 9):
        await talk.add(HumanMessage(f"question {n}", id=f"h{n}"), profile(n), *turn(n))
    removed = [RemoveMessage(id=f"{kind}{n}") for n in range(1, 5) for kind in "ha"]
    await talk.add(*removed)
    policy = RetentionPolicy(checkpoints=1, window=4, entries_before=log.now())
    await pruning.prune(store, Retention(policy, CheckpointKeeper(), lambda owner: True), lambda *_: None, apply=True)
    async with store.reading() as tx:
        assert (await log.find_thread(tx, "t", user_id="default")).first_seq > 1
    for _ in range(2):
        size = await talk.size()
        talk.open_again()
        new = [profile(f"new {size}"), HumanMessage("more", id=f"m{size}")]
        await talk.graph.aupdate_state(AT, {"messages": new}, as_node="n")
        assert await talk.size() == size + 2
    state = (await talk.graph.aget_state(AT)).values["messages"]
    assert [each.text for each in state[:2]] == [f"You help Ada. Today is day new {size}.", "question 5"]


@pytest.mark.parametrize("seed", range(8))
async def test_the_state_is_as_langgraphs_saver_has_it_whatever_changes(store: Driver, seed: int) -> None:
    chosen, talk, past = random.Random(seed), Conversation(store), list[Any]()
    await talk.add(profile("first"))
    for n in range(12):
        state = (await talk.plain.aget_state(talk.at[1])).values["messages"]
        some = chosen.choice(state)
        changed = type(some)(f"version {chosen.randrange(4)}", id=some.id)
        new = HumanMessage(f"message {n}", id=f"h{n}")
        tagged = [each.model_copy(update={"additional_kwargs": {"tag": n % 3}}) for each in state]
        removed = RemoveMessage(id=some.id)
        past.append(await talk.add(*chosen.choice([[new], [new, changed], [changed], tagged, [new, removed], [new]])))
        if chosen.random() < 0.3:
            talk.open_again()
        if chosen.random() < 0.2:
            talk.at = chosen.choice(past)
    for ours, theirs in past:
        expected = told((await talk.plain.aget_state(theirs)).values["messages"])
        assert told((await talk.graph.aget_state(ours)).values["messages"]) == expected


async def test_a_title_has_no_text_that_was_replaced(store: Driver) -> None:
    talk = Conversation(store)
    await talk.add(HumanMessage("我的邮箱是 ada@example.org", id="h1"))
    await talk.add(HumanMessage("我的邮箱是 [REDACTED]", id="h1"))
    await talk.add(AIMessage("好的", id="a1"))
    async with store.reading() as tx:
        thread = await log.find_thread(tx, "t", user_id="default")
    assert thread.title == "我的邮箱是 [REDACTED]"
