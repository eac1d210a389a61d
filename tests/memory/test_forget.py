"""What is forgotten is found nowhere: in no table, no index, no vector, no summary, no file; and it does not come back.

Other users' data stays as it is."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

import pytest
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langgraph.checkpoint.base import empty_checkpoint
from tests.contract.deletion import fill as fill_run
from tests.contract.runs import begun
from tests.memory.canary import CANARY, in_files, marks, places
from tests.memory.talking import say
from tests.memory.test_memories import OWNER
from tests.memory.threads import talk
from tests.store.conftest import Plain
from tests.store.samples import fill

from longthread.errors import MemoryNotFound, ThreadNotFound
from longthread.langgraph.saver.async_saver import AsyncLongthreadSaver
from longthread.memory.embedder import Asker
from longthread.memory.forget import (
    delete_thread,
    forget_memory,
    forget_thread,
    forget_user,
    look_at_thread,
    look_at_user,
)
from longthread.memory.index.indexer import index_thread
from longthread.memory.index.shards import bind_user
from longthread.memory.index.vectors import embed_thread
from longthread.memory.summary.pruning import PruningPolicy, prune_thread
from longthread.memory.summary.topics import Topic
from longthread.memory.user_memories import Memories
from longthread.model.catalog import Definition, Version
from longthread.model.entry import Draft
from longthread.model.ids import new_id
from longthread.model.memory import MemorySource, Statement, Used
from longthread.store import catalog, log, memories, runs
from longthread.store.driver import Driver
from longthread.store.memories import Owner
from longthread.store.queries import Sql
from longthread.store.runs import NewRun
from longthread.store.tables import read_tables
from longthread.store.transfer.threads import read_rows
from longthread_testing.embedding import HashEmbedder

pytestmark = pytest.mark.one_backend

EMBEDDER = HashEmbedder()
KEPT = "behalten"


async def plant(store: Driver, thread_id: str, word: str, *, user_id: str = "u") -> None:
    """Put a word wherever a conversation, and what is derived from it, keeps something."""
    saver = AsyncLongthreadSaver(store, user_id=user_id)
    said = [HumanMessage(f"My bird is {word}.", id="1", additional_kwargs={"x": word})]
    said += [
        AIMessage(f"Looking {word} up.", id="2", tool_calls=[{"id": "c", "name": "find", "args": {"what": word}}]),
        ToolMessage(f"{word} was found", id="3", tool_call_id="c", name="find"),
        AIMessage(f"It is {word}.", id="4"),
    ]
    values = {"messages": said, "note": word, "long": f"{word} " * 5000}
    checkpoint = empty_checkpoint() | {"channel_values": values, "channel_versions": dict.fromkeys(values, 1)}
    config: Any = {"configurable": {"thread_id": thread_id, "checkpoint_ns": ""}}
    at = await saver.aput(config, checkpoint, {"source": "input", "step": 1, "parents": {}}, dict.fromkeys(values, 1))  # type: ignore[arg-type]
    await saver.aput_writes(at, [("note", word), ("messages", [HumanMessage(word, id="5")])], word)
    async with store.writing() as tx:
        await log.rename_thread(tx, thread_id, word, user_id=user_id)
    await index_thread(store, thread_id)
    await embed_thread(store, EMBEDDER, thread_id)
    all_ = Memories(store, Asker(EMBEDDER))
    await all_.remember(
        Owner(user_id, OWNER.agent_id), Statement(f"The bird is {word}.", source=MemorySource(thread_id, (1,)))
    )
    await all_.embed(user_id)


async def summarise(store: Driver, thread_id: str, word: str) -> None:
    """Give a thread a summary and topics that hold a word."""
    async with store.writing() as tx:
        entries = [Draft(f"{word}-{n}", "user" if n % 2 else "assistant", f"{word} {n}") for n in range(1, 31)]
        await log.extend(tx, thread_id, entries)
    await prune_thread(store, thread_id, PruningPolicy(max_messages=10), extract=lambda *_: [Topic(word, 2)])


async def add_runs(store: Driver, thread_id: str, word: str, *, user_id: str = "u") -> None:
    """Let a thread's runs tell a word."""
    async with store.writing() as tx:
        await log.create_thread(tx, thread_id, user_id=user_id)
        for number in range(20):
            plan = NewRun(f"{number:02}", word, word, "model", "auto", 5)
            lease = await runs.begin(tx, thread_id, plan, owner="owner", alive=lambda _: True)
            await runs.start_step(tx, lease, "tool", action=word, args={word: word}, call_id=word)
            await runs.end(tx, lease, "failed", {word: word})


async def vectors(store: Driver, thread_id: str) -> list[bytes]:
    """The vectors of a thread's entries, as they are in the files."""
    async with store.reading() as tx:
        table = (await read_tables(tx))["memory_vectors"]
        rows = [row async for row in read_rows(tx, table, thread_id)]
    return [row["embedding"] for row in rows]


async def plant_everywhere(store: Driver) -> list[bytes]:
    """Put the word wherever a user's data can be; the bytes by which it is known."""
    await plant(store, "t", CANARY)
    await summarise(store, "t", CANARY)
    await index_thread(store, "t")
    await bind_user(store, "u", least=1)
    await fill_run(store, "t2", word=CANARY)
    await add_runs(store, "t3", CANARY)
    await Memories(store).remember(OWNER, Statement(f"By hand: {CANARY}"))
    return marks(*await vectors(store, "t"))


async def others(store: Driver) -> dict[str, list[Any]]:
    """All rows of the user `kept`'s threads, with their memories."""
    found: dict[str, list[Any]] = {}
    async with store.reading() as tx:
        for table in (each for each in (await read_tables(tx)).all if each.name != "workers"):
            for thread_id in ("theirs", "sample"):
                rows = [row async for row in read_rows(tx, table, thread_id)]
                rows = [row for row in rows if row.get("session_id", "theirs") in ("theirs", "sample")]
                found[f"{table.name} {thread_id}"] = rows
    return found


async def test_a_forgotten_user_is_found_nowhere(store: Driver, store_address: str) -> None:
    await fill(store, "sample", user_id="kept")
    await plant(store, "theirs", KEPT, user_id="kept")
    before = await others(store)
    wanted = await plant_everywhere(store)
    planted = places(store_address, wanted)
    assert {
        *(
            "threads.title",
            "entries.text",
            "entries.tool_calls",
            "conversation_summaries.summary",
            "memory_topics.topic",
        ),
        *(
            "memory_vectors.chunk",
            "recall_postings.data",
            "recall_volume_postings.data",
            "memories.content",
            "memories.terms",
            "memory_sources.content",
        ),
        *("steps.observation", "checkpoint_blobs.body", "checkpoints.body", "runs.body"),
    } <= planted
    assert in_files(store_address, wanted)
    seen = await look_at_user(store, "u")
    gone = await forget_user(store, "u", anew=True)
    assert gone.problems == []
    assert (gone.threads, gone.rows["entries"]) == (seen.threads, seen.rows["entries"])
    assert seen.threads == 3
    for _ in range(2):
        assert places(store_address, wanted) == set()
        assert in_files(store_address, wanted) == set()
        await pass_over(store)
    assert await others(store) == before
    assert places(store_address, [KEPT.encode()])


async def test_a_forgotten_user_is_in_no_table_there_is(store: Driver, store_address: str) -> None:
    await fill(store, "sample", user_id="kept")
    await fill(store, f"sample {CANARY}")
    async with store.reading() as tx:
        names = {table.name for table in (await read_tables(tx)).all if table.thread}
    names.remove("gateway_nodes")  # it holds numbers alone, that of the thread too
    assert {place.partition(".")[0] for place in places(store_address, marks())} == names
    await forget_user(store, "u")
    assert places(store_address, marks()) == set()


async def pass_over(store: Driver) -> None:
    """What goes on in the background, for all threads that there are."""
    for thread_id in ("t", "theirs"):
        await index_thread(store, thread_id)
        await embed_thread(store, EMBEDDER, thread_id)
    for user_id in ("u", "kept"):
        await Memories(store, Asker(EMBEDDER)).embed(user_id)
    await Memories(store).expire("u")


async def test_a_forgotten_thread_is_found_nowhere(store: Driver, store_address: str) -> None:
    await plant(store, "theirs", KEPT, user_id="kept")
    before = await others(store)
    await say(store, ["hello"], thread_id="mine")
    await Memories(store).remember(OWNER, Statement("Mine stays.", source=MemorySource("mine", (1,))))
    await plant(store, "t", CANARY)
    await fill_run(store, "t2", word=CANARY)
    await summarise(store, "t", CANARY)
    await index_thread(store, "t")
    await bind_user(store, "u", least=1)
    wanted = marks(*await vectors(store, "t"))
    assert (await look_at_thread(store, "t", user_id="u")).rows["entries"] > 4
    for thread_id in ("t", "t2"):
        assert (await forget_thread(store, thread_id, user_id="u", anew=True)).problems == []
    assert places(store_address, wanted) == set()
    assert in_files(store_address, wanted) == set()
    await pass_over(store)
    assert places(store_address, wanted) == set()
    assert await others(store) == before
    assert [memory.content for memory in await Memories(store).list_(OWNER)] == ["Mine stays."]


async def test_the_saver_forgets_a_thread_too(store: Driver, store_address: str) -> None:
    await plant(store, "t", CANARY)
    wanted = marks(*await vectors(store, "t"))
    saver = AsyncLongthreadSaver(store, user_id="u")
    config: Any = {"configurable": {"thread_id": "t"}}
    assert CANARY in str(await saver.aget_tuple(config))
    await saver.adelete_thread("t", with_memories=True)
    assert places(store_address, wanted) == set()
    assert await saver.aget_tuple(config) is None
    if store.dialect == "sqlite":
        assert in_files(store_address, wanted) == set()


async def test_of_a_deleted_thread_only_what_was_remembered_is_left(store: Driver, store_address: str) -> None:
    await plant(store, "t", CANARY)
    told = await forget_thread(store, "t", user_id="u", with_memories=False, anew=True)
    assert (told.kept, told.problems) == (1, [])
    wanted = marks()
    assert places(store_address, wanted) == {"memories.content", "memories.terms"}
    [memory] = await Memories(store).list_(Owner("u"))
    assert CANARY in memory.content
    await forget_memory(store, memory.id, user_id="u", anew=True)
    assert places(store_address, wanted) == in_files(store_address, wanted) == set()


async def test_a_forgotten_memory_is_found_nowhere(store: Driver, store_address: str) -> None:
    await say(store, ["hello"])
    lease = await begun(store, "r", thread_id="t")
    all_ = Memories(store, Asker(EMBEDDER))
    mine = (await all_.remember(OWNER, Statement(f"The bird is {CANARY}."))).memory
    await all_.embed("u")
    await all_.remember(OWNER, Statement("This stays."))
    async with store.writing() as tx:
        await memories.note_uses(tx, "t", lease.run_id, [Used(mine.id, "given", f"- {CANARY}")])
    [row] = await numbers(store)
    wanted = [*marks(row), mine.id.encode()]
    assert {"memories.content", "memories.terms", "memory_uses.shown"} <= places(store_address, wanted)
    for stranger in ("v", ""):
        with pytest.raises(MemoryNotFound):
            await forget_memory(store, mine.id, user_id=stranger)
    assert (await forget_memory(store, mine.id, user_id="u", anew=True)).problems == []
    assert places(store_address, wanted) == set()
    assert in_files(store_address, wanted) == set()
    await pass_over(store)
    assert places(store_address, wanted) == set()
    assert [memory.content for memory in await all_.list_(OWNER)] == ["This stays."]


async def numbers(store: Driver) -> list[bytes]:
    async with store.reading() as tx:
        rows = [row async for row in read_rows(tx, (await read_tables(tx))["memories"])]
    return [row["numbers"] for row in rows if row["numbers"]]


class Meanwhile(HashEmbedder):
    """While it makes vectors, something else happens."""

    def __init__(self, happens: Any) -> None:
        super().__init__()
        self._happens = happens

    async def documents(self, texts: Sequence[str]) -> Any:
        await self._happens()
        return await super().documents(texts)


async def again(store: Driver) -> None:
    """Forget the thread `t`, and begin another of the same id, as long as it was."""
    await delete_thread(store, "t", user_id="u")
    await say(store, [f"new {number}" for number in range(40)])


async def test_a_late_pass_brings_nothing_back(store: Driver, store_address: str, monkeypatch: Any) -> None:
    async def begin() -> None:
        await say(store, [f"{CANARY} {number}" for number in range(40)])

    async def forget() -> None:
        await again(store)

    wanted = marks()
    await begin()
    await embed_thread(store, Meanwhile(forget), "t")
    assert places(store_address, wanted) == set()
    await delete_thread(store, "t", user_id="u")
    await begin()
    await prune_thread(store, "t", PruningPolicy(max_messages=10), prepare=forget)
    assert places(store_address, wanted) == set()
    await delete_thread(store, "t", user_id="u")
    await begin()
    passing = asyncio.create_task(index_while(store, forget, monkeypatch))
    await passing
    assert places(store_address, wanted) == set()
    all_ = Memories(store)
    mine = (await all_.remember(OWNER, Statement(CANARY))).memory

    async def forget_mine() -> None:
        await forget_memory(store, mine.id, user_id="u")

    await Memories(store, Asker(Meanwhile(forget_mine))).embed("u")
    assert places(store_address, wanted) == set()


async def index_while(store: Driver, happens: Any, monkeypatch: Any) -> None:
    """Index a thread, and have something happen between what it reads and what it writes."""
    from longthread.memory.index import indexer

    build, first = indexer._segment, [True]

    async def segment(*args: Any) -> Any:
        made = await build(*args)
        if first:
            first.clear()
            await happens()
        return made

    monkeypatch.setattr(indexer, "_segment", segment)
    await index_thread(store, "t")


async def test_nobody_forgets_what_is_another_users(store: Driver, plain: Plain) -> None:
    await talk(store, "t", 2)
    for work in (forget_thread, delete_thread, look_at_thread):
        with pytest.raises(ThreadNotFound):
            await work(store, "t", user_id="v")
    gone = await forget_user(store, "v")
    assert (gone.threads, dict(gone.rows)) == (0, {})
    assert plain("SELECT count(*) FROM entries") == [(8,)]


async def test_a_user_whose_run_goes_on_is_forgotten(store: Driver) -> None:
    await say(store, ["hello"])
    await begun(store, "r", thread_id="t")
    await say(store, ["hello"], thread_id="a")
    assert (await look_at_user(store, "u")).threads == 2
    assert (await forget_user(store, "u")).threads == 2
    json.dumps((await look_at_user(store, "u")).rows)


async def test_the_catalog_stays_and_says_no_more_who_made_it(store: Driver) -> None:
    at = datetime(2026, 5, 1, tzinfo=UTC)
    body = {"description": None, "address": "demo", "is_active": True}
    async with store.writing() as tx:
        await catalog.put(tx, Definition("source", new_id(), "shop", body))
        [made] = [each.definition for each in await catalog.definitions(tx) if not each.definition.is_builtin]
        await catalog.record(tx, Version("source", made.id, 1, "shop", body, at, "u"))
    gone = await forget_user(store, "u")
    assert gone.rows.total() == 0
    async with store.reading() as tx:
        [kept] = await catalog.versions(tx, "source", made.id)
    assert (kept.body, kept.by) == (body, None)


@pytest.mark.parametrize("alone", [False, True])
async def test_the_planners_samples_hold_no_text_of_who_was_forgotten(
    store: Driver, store_address: str, alone: bool
) -> None:
    for user_id, text in (("gone", CANARY), *(() if alone else (("kept", "kept"),))):
        for n in range(12):
            await plant(store, f"{user_id}-{n}", text, user_id=user_id)
            await summarise(store, f"{user_id}-{n}", text)
    async with store.maintaining() as tx:
        await tx.run(Sql("ANALYZE"))
    await forget_user(store, "gone", anew=True)
    assert places(store_address, marks()) == set()
    assert in_files(store_address, marks()) == set()


async def test_a_forgotten_thread_takes_what_agents_asked_each_other_in_it(store: Driver, store_address: str) -> None:
    await plant(store, "theirs", KEPT, user_id="kept")
    before = await others(store)
    async with store.writing() as tx:
        await log.create_thread(tx, "top", user_id="u")
        for thread_id, parent in (("t", "top"), ("t2", "t")):
            await log.create_thread(tx, thread_id, user_id="u", parent=parent)
    for thread_id in ("t", "t2"):
        await plant(store, thread_id, CANARY)
        await summarise(store, thread_id, CANARY)
    wanted = marks(*await vectors(store, "t"), *await vectors(store, "t2"))
    assert len(places(store_address, wanted)) > 9
    gone = await forget_thread(store, "top", user_id="u", anew=True)
    assert (gone.threads, gone.problems) == (3, [])
    for _ in range(2):
        assert places(store_address, wanted) == set()
        assert in_files(store_address, wanted) == set()
        await pass_over(store)
    assert await others(store) == before
