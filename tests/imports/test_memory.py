"""The seven tables of document 004 come along, with what else is in their database."""

from __future__ import annotations

import psycopg
import pytest
from langchain_core.messages import AIMessage, HumanMessage
from langgraph.checkpoint.postgres import PostgresSaver
from langgraph.graph import START, MessagesState, StateGraph
from tests.imports.conftest import Fetch, Take
from tests.imports.old import UUIDS, agents, memory

from longthread.langgraph import LongthreadSaver
from longthread.memory.recall import Question, Recaller
from longthread.model.thread import Scope
from longthread.store import log
from longthread.store.driver import Driver
from longthread.store.queries import Sql

pytestmark = [pytest.mark.postgres, pytest.mark.one_backend]
THREAD = "thread-a1b2c3"


def application() -> StateGraph[MessagesState]:
    builder = StateGraph(MessagesState)
    builder.add_node("answer", lambda state: {"messages": [AIMessage(f"answer {len(state['messages'])}")]})
    builder.add_edge(START, "answer")
    return builder


@pytest.fixture
def old(old_url: str) -> str:
    with PostgresSaver.from_conn_string(old_url) as saver:
        saver.setup()
        graph = application().compile(checkpointer=saver)
        graph.invoke({"messages": [HumanMessage("前端怎样中文化？")]}, {"configurable": {"thread_id": THREAD}})
    memory(old_url, THREAD)
    return old_url


async def test_everything_comes_and_is_counted(take: Take, fetch: Fetch, old: str) -> None:
    report = await take(old)
    assert (report.left, report.there) == ([], report.here)
    wanted = {
        "LangGraph threads": 1,
        "checkpoints": 3,
        "rows of thread_activity": 1,
        "rows of conversation_summaries": 1,
    }
    wanted |= {"rows of memory_vectors": 2, "rows of memory_topics": 2}
    assert report.here == wanted
    assert report.notes == {}
    before = await fetch("SELECT * FROM entries ORDER BY seq")
    again = await take(old)
    assert (again.left, again.here) == ([], report.here)
    assert again.already == {name: count for name, count in wanted.items() if name != "LangGraph threads"}
    assert await fetch("SELECT * FROM entries ORDER BY seq") == before


async def test_what_was_beside_the_checkpoints(take: Take, fetch: Fetch, old: str) -> None:
    await take(old)
    [row] = await fetch("SELECT label, CAST(last_active_at AS TEXT) AS at FROM thread_activity")
    assert row["label"] == "会话 1" and row["at"].startswith("2025-05-05")
    [row] = await fetch("SELECT summary, message_count FROM conversation_summaries")
    assert (row["summary"], row["message_count"]) == ("讨论了 PostgreSQL 表设计", 40)
    rows = await fetch("SELECT id, chunk, CAST(topics AS TEXT) AS topics, embedding FROM memory_vectors ORDER BY id")
    assert [row["id"] for row in rows] == [f"{THREAD}-c1", f"{THREAD}-c2"]
    assert "API认证" in rows[1]["topics"] and all(row["embedding"] is not None for row in rows)
    rows = await fetch("SELECT topic, mention_count FROM memory_topics ORDER BY mention_count")
    assert [(row["topic"], row["mention_count"]) for row in rows] == [("API认证", 1), ("数据库设计", 3)]


async def test_recall_finds_what_was_taken_out_of_the_checkpoints(take: Take, store: Driver, old: str) -> None:
    await take(old)
    recaller = Recaller(store)
    for asked, text in (("rotate keys", "rotate them monthly"), ("订单表", "用外键连接客户"), ("表设计", "讨论了")):
        found = await recaller.find(Question(asked, Scope("default", THREAD)))
        assert text in found.hits[0].entry.text
    of_topic = await recaller.find(Question("", Scope("default", THREAD), topic="API认证"))
    assert [hit.entry.text.partition("?")[0] for hit in of_topic.hits] == ["user: and the API keys"]


async def test_the_graph_goes_on(take: Take, store: Driver, old: str) -> None:
    await take(old)
    graph = application().compile(checkpointer=LongthreadSaver(store, user_id="default"))
    config = {"configurable": {"thread_id": THREAD}}
    state = await graph.ainvoke({"messages": [HumanMessage("and then?")]}, config)
    assert [message.text for message in state["messages"]] == ["前端怎样中文化？", "answer 1", "and then?", "answer 3"]


async def test_a_piece_that_stands_in_the_checkpoints_is_found_once(take: Take, fetch: Fetch, old: str) -> None:
    with psycopg.connect(old, autocommit=True) as db:
        db.execute("UPDATE memory_vectors SET chunk = 'user: 前端怎样中文化？\nai: answer 1' WHERE id LIKE '%c2'")
    await take(old)
    rows = await fetch("SELECT text FROM entries WHERE text LIKE '%中文化%'")
    assert [row["text"] for row in rows] == ["前端怎样中文化？"]


async def test_a_thread_without_checkpoints_comes_too(take: Take, fetch: Fetch, old: str) -> None:
    with psycopg.connect(old, autocommit=True) as db:
        db.execute("INSERT INTO thread_activity VALUES ('alone', '会话 2', NULL)")
    assert (await take(old)).left == []
    assert [row["title"] for row in await fetch("SELECT title FROM threads WHERE id = 'alone'")] == ["会话 2"]


async def test_vectors_of_another_length(take: Take, fetch: Fetch, old_url: str) -> None:
    memory(old_url, THREAD, vectors=8)
    report = await take(old_url)
    assert (report.left, report.there) == ([], report.here)
    assert all(row["embedding"] is not None for row in await fetch("SELECT embedding FROM memory_vectors"))


async def test_several_kinds_in_one_database(take: Take, fetch: Fetch, old: str) -> None:
    with psycopg.connect(old, autocommit=True) as db:
        db.execute("CREATE TABLE invoices (id INT); INSERT INTO invoices VALUES (1), (2)")
    agents(old)
    report = await take(old)
    assert (report.left, report.there) == ([], report.here)
    assert {row["id"] for row in await fetch("SELECT id FROM threads")} == {THREAD, UUIDS["session"]}
    assert list(report.notes)[-1] == "the table invoices (2 rows) is left: it is of none of these kinds"


async def test_what_the_store_refuses_is_named_and_the_rest_comes(take: Take, old: str, store: Driver) -> None:
    async with store.writing() as tx:
        await log.create_thread(tx, "other", user_id="default")
        taken = Sql("INSERT INTO memory_vectors (id, thread_id, chunk) VALUES (:id, 'other', 'x')")
        await tx.run(taken, id=f"{THREAD}-c1")
    with psycopg.connect(old, autocommit=True) as db:
        db.execute("INSERT INTO thread_activity VALUES ('alone', '会话 2', NULL)")
    report = await take(old)
    assert [text.partition(":")[0] for text in report.left] == [f"labels, summaries and topics of thread {THREAD}"]
    assert (report.here["rows of thread_activity"], report.here["checkpoints"]) == (1, 3)
