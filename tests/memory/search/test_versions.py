"""Recall shows one version of a message: its present one. What was replaced under the same id is not shown."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest
from langchain_core.messages import AIMessage, HumanMessage, RemoveMessage
from langgraph.graph import END, START, MessagesState, StateGraph

from longthread.errors import EntryNotFound
from longthread.langgraph import LongthreadSaver
from longthread.memory.recall import Question, Recaller
from longthread.model.entry import Draft
from longthread.model.thread import Scope
from longthread.store import log
from longthread.store.branches import find_versions, read_branches
from longthread.store.driver import Driver
from longthread.store.open import open_store
from longthread.store.queries import Sql

SCOPE = Scope("default", "t")


@pytest.fixture
async def store(store_address: str) -> AsyncIterator[Driver]:
    async with open_store(store_address) as opened:
        yield opened


async def state(store: Driver, *messages: Any, graph: Any = None, config: Any = None) -> Any:
    """A graph whose state was updated with these messages."""
    if graph is None:
        builder = StateGraph(MessagesState)
        builder.add_node("answer", lambda state: {"messages": []})
        builder.add_edge(START, "answer")
        builder.add_edge("answer", END)
        graph = builder.compile(checkpointer=LongthreadSaver(store))
    config = config or {"configurable": {"thread_id": "t"}}
    await graph.aupdate_state(config, {"messages": list(messages)}, as_node="answer")
    return graph


async def found(store: Driver, words: str, **how: Any) -> list[tuple[str, bool, list[str]]]:
    recaller = Recaller(store)
    try:
        recalled = await recaller.find(Question(words, SCOPE, **how))
    finally:
        await recaller.close()
    return [(hit.entry.text, hit.active, [entry.text for entry in hit.around]) for hit in recalled.hits]


async def test_what_a_guard_replaced_is_found_no_more(store: Driver) -> None:
    first = HumanMessage("my address is ada@example.org, write me", id='odd "id" \\ 1')
    graph = await state(store, first, AIMessage("fine", id="a"))
    await state(store, HumanMessage("my address is [REDACTED], write me", id='odd "id" \\ 1'), graph=graph)
    await state(store, HumanMessage("something else", id="h2"), graph=graph)
    hits = [*await found(store, "ada example.org"), *await found(store, "address write", neighbours=3)]
    # Nor is it shown beside what is found, nor read by its own id.
    assert not any("ada@" in shown for text, _, around in hits for shown in (text, *around))
    assert ("my address is [REDACTED], write me", True, ["fine", "something else"]) in hits
    recaller = Recaller(store)
    with pytest.raises(EntryNotFound):
        await recaller.entry(Question("", SCOPE), "t", first.id or "")
    await recaller.close()


async def test_a_message_that_stands_on_two_branches_is_one_hit(store: Driver) -> None:
    question, answer = HumanMessage("where is the harbour", id="q"), AIMessage("the harbour is in Lisbon", id="a")
    graph = await state(store, question, answer)
    # What stands behind a changed message is written again, as the change's descendant.
    await state(store, HumanMessage("where is the harbour, please", id="q"), graph=graph)
    await state(store, HumanMessage("thanks", id="h2"), graph=graph)
    hits = await found(store, "harbour Lisbon", neighbours=1)
    said = [("the harbour is in Lisbon", True), ("where is the harbour, please", True)]
    assert [hit[:2] for hit in hits if "harbour" in hit[0]] == said
    [hit] = await found(store, "harbour Lisbon", neighbours=1, k=1)
    assert hit == (*said[0], ["where is the harbour, please", "thanks"])


async def test_an_older_state_that_is_gone_on_from_has_its_own_version(store: Driver) -> None:
    graph = await state(store, HumanMessage("the budget is 100", id="q"))
    config: Any = {"configurable": {"thread_id": "t"}}
    before = (await graph.aget_state(config)).config
    await state(store, HumanMessage("the budget is 200", id="q"), graph=graph)
    await state(store, AIMessage("noted", id="a"), graph=graph, config=before)
    hits = await found(store, "budget")
    assert hits[0] == ("the budget is 100", True, ["noted"])
    assert not any("200" in text for text, _, _ in hits)


@pytest.mark.parametrize("metadata", ['{"message_id":"q"', '{"step":{"message_id":"q"}}', '{"message_id":"q"}}', "[]"])
async def test_metadata_that_names_no_message_changes_nothing(store: Driver, metadata: str) -> None:
    graph = await state(store, HumanMessage("where is the harbour", id="q"))
    await state(store, AIMessage("something else", id="a"), graph=graph)
    assert await found(store, "harbour", neighbours=0) == [("where is the harbour", True, [])]
    async with store.writing() as tx:
        await tx.fetch(Sql("UPDATE entries SET metadata = :metadata WHERE seq = 2 RETURNING seq"), metadata=metadata)
    assert await found(store, "harbour", neighbours=0) == [("where is the harbour", True, [])]


async def test_a_message_that_was_removed_and_came_again_does_not_stand_beside_itself(store: Driver) -> None:
    graph = await state(store, HumanMessage("where is the harbour", id="q"), AIMessage("in the south", id="a"))
    await state(store, RemoveMessage(id="q"), graph=graph)
    await state(store, HumanMessage("where is the harbour", id="q"), graph=graph)
    assert await found(store, "harbour", neighbours=2) == [("where is the harbour", True, ["in the south"])]


@pytest.mark.postgres
@pytest.mark.parametrize("backend", ["postgres"], indirect=True)
async def test_recall_does_not_read_the_table_of_all_entries(store: Driver) -> None:
    """PostgreSQL believes of nearly all entries that they are versions or begin branches, when it has counted them."""
    async with store.writing() as tx:
        await log.create_thread(tx, "t", user_id="default")
        tip, size = await log.position(tx, "t")
        await log.append(tx, "t", [Draft(f"e{number}", "user", "a word") for number in range(1000)], tip=tip, size=size)
    async with store.maintaining() as tx:
        await tx.run(Sql("ANALYZE entries"))
    async with store.reading() as tx:
        assert await read_branches(tx, "t") == ({}, False)
        assert await find_versions(tx, "t", [f"e{number}" for number in range(15)]) == {}
        assert len(await log.entries_at(tx, "t", range(15, 30))) == 15
        [read] = await tx.fetch(Sql("SELECT seq_tup_read FROM pg_stat_xact_user_tables WHERE relname = 'entries'"))
    assert read["seq_tup_read"] == 0
