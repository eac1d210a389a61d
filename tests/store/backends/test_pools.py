"""The size of a store's pool, and pools of an application's own, with real connections."""

from __future__ import annotations

import asyncio
from typing import Any

import psycopg
import pytest
from langchain_core.messages import HumanMessage
from langgraph.graph import START, MessagesState, StateGraph
from psycopg.rows import dict_row, tuple_row
from psycopg_pool import AsyncConnectionPool, AsyncNullConnectionPool, ConnectionPool

from longthread.errors import InvalidInput, StoreUnavailable
from longthread.langgraph import LongthreadSaver, LongthreadStore
from longthread.store.open import open_store

pytestmark = pytest.mark.postgres


def _graph(saver: LongthreadSaver) -> Any:
    builder = StateGraph(MessagesState)
    builder.add_node("answer", lambda state: {"messages": [("ai", "Yes.")]})
    builder.add_edge(START, "answer")
    return builder.compile(checkpointer=saver)


def _at(thread_id: str) -> Any:
    return {"configurable": {"thread_id": thread_id}}


SAID = {"messages": [HumanMessage("Hello")]}
COUNT = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"


def _connections(url: str) -> int:
    with psycopg.connect(url) as connection:
        row = connection.execute(COUNT).fetchone()
    return int(row[0]) if row else 0


async def test_so_many_connections_and_no_more(postgres_url: str) -> None:
    async with LongthreadSaver.from_conn_string(postgres_url, pool_size=2) as saver:
        graph = _graph(saver)
        await asyncio.gather(*(graph.ainvoke(SAID, _at(f"t{n}")) for n in range(12)))
        assert 1 <= await asyncio.to_thread(_connections, postgres_url) <= 2
        assert len(await saver.threads.alist()) == 12


@pytest.mark.parametrize("size", [1, 0, -1, True, "4"])
async def test_another_size_is_refused(postgres_url: str, size: Any) -> None:
    with pytest.raises(InvalidInput, match="pool_size"):
        async with open_store(postgres_url, pool_size=size):
            pass


@pytest.mark.parametrize(
    "kwargs",
    [{}, {"autocommit": True, "prepare_threshold": 0, "row_factory": dict_row}, {"autocommit": False}],
    ids=["plain", "as langgraph wants it", "without autocommit"],
)
async def test_a_pool_of_one_s_own_stays_as_it_is(postgres_url: str, kwargs: Any) -> None:
    """The connections' settings, adapters and handlers are the application's, before and after; the pool stays open."""
    notices: list[str] = []

    async def configured(connection: Any) -> None:
        connection.add_notice_handler(lambda told: notices.append(told.message_primary))

    rows = kwargs.get("row_factory", tuple_row)
    async with AsyncConnectionPool(
        postgres_url, min_size=1, max_size=3, kwargs=kwargs, configure=configured, open=False
    ) as pool:
        async with LongthreadSaver.from_pool(pool, user_id="ada") as saver, LongthreadStore.from_pool(pool) as store:
            graph = _graph(saver)
            await asyncio.gather(*(graph.ainvoke(SAID, _at(f"t{n}")) for n in range(8)))
            await store.aput(("n",), "k", {"v": 1})
            assert len((await graph.aget_state(_at("t0"))).values["messages"]) == 2
            assert pool.get_stats()["pool_size"] <= 3
        for _ in range(3):
            async with pool.connection() as connection:
                assert connection.autocommit is kwargs.get("autocommit", False)
                assert connection.row_factory is rows
                cursor = await connection.execute("SELECT true AS t, now() AS n, '{\"a\": 1}'::jsonb AS j")
                row: Any = await cursor.fetchone()
                told = tuple(row.values()) if isinstance(row, dict) else row
                assert told[0] is True and told[1].year > 2000 and told[2] == {"a": 1}
                await connection.execute("DO $$ BEGIN RAISE NOTICE 'heard'; END $$")
        assert notices.count("heard") == 3
        assert len(notices) == 3
        async with LongthreadSaver.from_pool(pool, user_id="ada") as again:
            assert len(await again.threads.alist()) == 8


async def test_a_pool_that_holds_none_will_do(postgres_url: str) -> None:
    async with AsyncNullConnectionPool(postgres_url, open=False) as pool, LongthreadSaver.from_pool(pool) as saver:
        await _graph(saver).ainvoke(SAID, _at("t"))
        assert [each.id for each in await saver.threads.alist()] == ["t"]


async def test_connections_of_a_pool_are_given_back_when_work_fails_or_is_cancelled(postgres_url: str) -> None:
    async with AsyncConnectionPool(postgres_url, min_size=1, max_size=2, open=False) as pool:
        async with LongthreadSaver.from_pool(pool) as saver:
            for _ in range(5):
                task = asyncio.create_task(_graph(saver).ainvoke(SAID, _at("t")))
                await asyncio.sleep(0.01)
                task.cancel()
                await asyncio.gather(task, return_exceptions=True)
            await _graph(saver).ainvoke(SAID, _at("t"))
        async with pool.connection(timeout=5), pool.connection(timeout=5):
            pass


async def test_what_is_no_open_pool_is_refused(postgres_url: str) -> None:
    with ConnectionPool(postgres_url, min_size=1, open=True) as other:
        for given in (other, postgres_url, None):
            with pytest.raises(InvalidInput, match="AsyncConnectionPool"):
                async with LongthreadSaver.from_pool(given):
                    pass
    closed: Any = AsyncConnectionPool(postgres_url, open=False)
    with pytest.raises(StoreUnavailable, match="not open"):
        async with LongthreadSaver.from_pool(closed):
            pass
    small: Any = AsyncConnectionPool(postgres_url, min_size=1, max_size=1, open=False)
    with pytest.raises(InvalidInput, match="max_size=2"):
        async with LongthreadSaver.from_pool(small):
            pass
    async with AsyncConnectionPool(
        postgres_url, min_size=1, max_size=2, kwargs={"client_encoding": "latin1"}, open=False
    ) as latin:
        with pytest.raises(InvalidInput, match="client_encoding"):
            async with LongthreadSaver.from_pool(latin):
                pass
