"""PostgreSQL without pgvector: everything works that stores no vectors, and the first vector asks for it."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import psycopg
import pytest
from langchain_core.messages import HumanMessage
from langgraph.graph import START, MessagesState, StateGraph

from longthread.errors import StoreError
from longthread.langgraph import LongthreadSaver, LongthreadStore
from longthread.memory.user_memories import Memories, remember
from longthread.model.memory import ANALYST, Statement
from longthread.store import log, memories
from longthread.store.driver import Driver
from longthread.store.memories import Owner
from longthread.store.open import open_store
from longthread.store.queries import Sql
from longthread.store.transfer.copy import copy_store
from longthread.store.vectors import require_vectors
from longthread.tools.analysis.address import SourceUrl

pytestmark = pytest.mark.postgres
OWNER = Owner("default", ANALYST)


def _embed(texts: Sequence[str]) -> list[list[float]]:
    return [[byte / 255 + 0.01 for byte in hashlib.sha256(text.encode()).digest()[:4]] for text in texts]


INDEX: Any = {"dims": 4, "embed": _embed, "fields": ["text"]}


@pytest.fixture
def hidden(postgres_url: str) -> str:
    """A database whose server has no pgvector, as far as it can be seen."""
    with psycopg.connect(postgres_url) as server:
        server.execute("CREATE VIEW pg_available_extensions AS SELECT 'plpgsql'::name AS name")
    return f"{postgres_url}{'&' if '?' in postgres_url else '?'}options=-csearch_path%3Dpublic,pg_catalog"


def _install(url: str) -> None:
    with psycopg.connect(url) as server:
        server.execute("DROP VIEW public.pg_available_extensions")


@pytest.fixture
def poor(postgres_url: str) -> Iterator[str]:
    """A database in which the store's role owns a schema, and may create no extension."""
    name = str(SourceUrl.parse(postgres_url).database)
    role = name.replace("longthread", "poor")
    with psycopg.connect(postgres_url, autocommit=True) as server:
        server.execute(f"CREATE ROLE {role} LOGIN; REVOKE ALL ON DATABASE {name} FROM PUBLIC".encode())
        server.execute(f"GRANT CONNECT ON DATABASE {name} TO {role}; CREATE SCHEMA own AUTHORIZATION {role}".encode())
    url = replace(SourceUrl.parse(postgres_url), username=role).text()
    yield f"{url}{'&' if '?' in url else '?'}options=-csearch_path%3Down,public"
    with psycopg.connect(postgres_url, autocommit=True) as server:
        server.execute(f"DROP OWNED BY {role} CASCADE; DROP ROLE {role}".encode())


async def _use(saver: LongthreadSaver) -> None:
    """Do what needs no vectors: a graph, recall, items, memories, deletion."""
    builder = StateGraph(MessagesState)
    builder.add_node("answer", lambda state: {"messages": [("ai", "Yes.")]})
    builder.add_edge(START, "answer")
    graph: Any = builder.compile(checkpointer=saver)
    for name in ("t", "gone"):
        await graph.ainvoke({"messages": [HumanMessage("Rockets 火箭")]}, {"configurable": {"thread_id": name}})
    assert {hit.thread.id for hit in await saver.threads.asearch("火箭")} == {"t", "gone"}
    await saver.adelete_thread("gone")
    await saver.threads.aprune(checkpoints=1)
    items = LongthreadStore.of(saver)
    await items.aput(("n",), "k", {"text": "noodles"})
    assert [each.key for each in await items.asearch(("n",), query="noodles")][:1] == ["k"]
    known = Memories(saver.backing.store)
    await known.remember(OWNER, Statement("She likes noodles"))
    assert len((await known.search(OWNER, "noodles")).hits) == 1


async def _vectors(store: Driver) -> list[str]:
    sql = Sql(
        "SELECT data_type AS kind, udt_name AS name FROM information_schema.columns "
        "WHERE table_schema = current_schema() AND column_name = 'embedding' AND table_name = 'memory_vectors'"
    )
    async with store.reading() as tx:
        return [row["name"] for row in await tx.fetch(sql)]


async def test_a_server_without_it_does_until_an_embedder_is_configured(hidden: str, postgres_url: str) -> None:
    async with LongthreadSaver.from_conn_string(hidden) as saver:
        await _use(saver)
        assert await _vectors(saver.backing.store) == ["bytea"]
        searched = LongthreadStore.of(saver, index=INDEX)
        for call in (searched.aput(("n",), "x", {"text": "tea"}), searched.asearch(("n",), query="tea")):
            with pytest.raises(
                StoreError, match=r"lacks pgvector.*postgresql-\d+-pgvector.*without one, nothing needs"
            ):
                await call
    async with LongthreadSaver.from_conn_string(hidden) as again:  # nothing is migrated, and nothing lost
        assert [each.id for each in await again.threads.alist()] == ["t"]
    _install(postgres_url)
    async with LongthreadSaver.from_conn_string(hidden) as saver:
        items = LongthreadStore.of(saver, index=INDEX)
        await items.aput(("n",), "x", {"text": "tea"})
        found = await items.asearch(("n",), query="tea", limit=1)
        assert found[0].key == "x" and found[0].score == pytest.approx(1.0)
        assert await _vectors(saver.backing.store) == ["vector"]
        await _use(saver)
        async with saver.backing.store.reading() as tx:
            [row] = await tx.fetch(Sql("SELECT count(*) AS n FROM pg_indexes WHERE indexdef LIKE '%hnsw%'"))
        assert row["n"] == 6


async def test_a_role_that_may_not_create_it_does_too(poor: str, postgres_url: str) -> None:
    async with LongthreadSaver.from_conn_string(poor) as saver:
        await _use(saver)
        with pytest.raises(StoreError, match="may not add pgvector.*CREATE EXTENSION vector"):
            await require_vectors(saver.backing.store)
        with psycopg.connect(postgres_url, autocommit=True) as server:
            server.execute("CREATE EXTENSION vector")
            server.execute("GRANT USAGE ON SCHEMA public TO PUBLIC")
        await require_vectors(saver.backing.store)
        await require_vectors(saver.backing.store)
        assert await _vectors(saver.backing.store) == ["vector"]


async def test_vectors_that_were_copied_there_are_those_of_before(
    hidden: str, postgres_url: str, tmp_path: Any
) -> None:
    """They are bytes until pgvector is there, and become vectors without a loss."""
    numpy = pytest.importorskip("numpy")
    numbers = numpy.array([0.0, -0.0, 1.0, -1.5, 3.4e38, -1.2e-38, 1e-45, 0.1, 2**-24], dtype="<f4")
    async with open_store(tmp_path / "other.db") as source, open_store(hidden) as target:
        async with source.writing() as tx:
            await log.create_thread(tx, "t", user_id="default")
            stored = (await remember(tx, OWNER, Statement("She likes noodles"))).memory
            await memories.put_vectors(tx, "m", [(stored.id, stored.content, numbers)])
        await copy_store(source, target, lambda *_: None)
        _install(postgres_url)
        await require_vectors(target)
        async with target.reading() as tx:
            [row] = await tx.fetch(Sql("SELECT CAST(numbers AS TEXT) AS told, model FROM memories"))
        told = numpy.array(row["told"].strip("[]").split(","), dtype="<f4")
        assert told.tobytes() == numbers.tobytes() or (told == numbers).all()
        assert row["model"] == "m"
