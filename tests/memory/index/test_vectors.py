"""Vectors of entries: how far a thread has them, what a pass with nothing to do reads, and texts that are refused."""

from __future__ import annotations

import io
from collections.abc import Sequence
from typing import Any

import pytest
from tests.langgraph.counting import Counting
from tests.memory.talking import say
from tests.store.samples import all_of

from longthread.memory.embedder import MOST_REFUSED, EmbedderFailed, Vectors
from longthread.memory.index import vectors
from longthread.memory.index.vectors import embed_thread
from longthread.memory.recall import Recaller
from longthread.model.entry import Draft, ToolCall
from longthread.model.thread import Scope
from longthread.store import log
from longthread.store.driver import Driver
from longthread.store.maintenance.retention import _OF_ENTRIES
from longthread.store.transfer.archive import export_lines
from longthread.store.transfer.archive_reader import ImportTarget, import_threads
from longthread_testing.embedding import HashEmbedder

pytestmark = pytest.mark.one_backend

MINE = Scope("u", "t")


class Picky(HashEmbedder):
    """An embedder that refuses texts with some word, and counts what it is asked. With `left`, it is gone after so many
    requests."""

    def __init__(self, word: str = "poison", *, error: Exception | None = None, left: int = 10**6, **more: Any) -> None:
        super().__init__(**more)
        self.word, self.left, self.asked = word, left, 0
        self.error = error or RuntimeError("400: input too long")

    async def documents(self, texts: Sequence[str]) -> Vectors:
        self.asked += 1
        if self.asked > self.left:
            raise ConnectionError("no route to host")
        if any(self.word in text for text in texts):
            raise self.error
        return await super().documents(texts)


async def work(store: Driver, turns: int) -> None:
    """Turns of an agent with tools: of four entries, one says nothing."""
    await say(store, [])
    drafts: list[Draft] = []
    async with store.writing() as tx:
        tip, size = await log.position(tx, "t")
        for n in range(size, size + turns):
            drafts += [
                Draft(f"{n}q", "user", f"question {n}"),
                Draft(f"{n}c", "assistant", "", tool_calls=(ToolCall(f"c{n}", "x", {}),)),
                Draft(f"{n}r", "tool", f"result {n}", tool_call_id=f"c{n}", name="x"),
                Draft(f"{n}a", "assistant", f"answer {n}"),
            ]
        await log.append(tx, "t", drafts, tip=tip, size=size)


async def kept(store: Driver) -> list[int]:
    return sorted(row["seq"] for row in (await all_of(store))["memory_vectors"])


async def marks(store: Driver) -> list[tuple[str, int, int]]:
    rows = (await all_of(store, derived=True))["recall_embedded"]
    return [(row["model"], row["last_seq"], row["refused"]) for row in rows]


async def come_again(store: Driver) -> None:
    """Export the thread, delete it, and import it."""
    async with store.reading() as tx:
        data = b"".join([line async for line in export_lines(tx, ["t"], lambda *_: None)])
    async with store.writing() as tx:
        await log.delete_thread(tx, "t", user_id="u")
    await import_threads(store, io.BytesIO(data), "x.jsonl", ImportTarget("u"), lambda *_: None)


async def test_a_pass_with_nothing_to_do_reads_one_row_however_long_the_thread_is(store: Driver) -> None:
    embedder = HashEmbedder()
    for turns in (3, 300):
        await work(store, turns)
        await embed_thread(store, embedder, "t")
        counting = Counting(store)
        assert (await embed_thread(counting, embedder, "t")).entries == 0
        assert (dict(counting.statements), dict(counting.rows), counting.writes) == (
            {"select_embedded": 1},
            {"select_embedded": 1},
            0,
        )
    assert len(await kept(store)) == 3 * 303


async def test_a_turn_reads_what_is_new_alone(store: Driver) -> None:
    embedder, rows = HashEmbedder(), []
    for turns in (3, 300):
        await work(store, turns)
        await embed_thread(store, embedder, "t")
        await work(store, 1)
        counting = Counting(store)
        assert (await embed_thread(counting, embedder, "t")).entries == 4
        assert "select_unsigned_blocks" not in counting.statements
        rows.append((dict(counting.statements), dict(counting.rows)))
    assert rows[0] == rows[1]


async def test_a_text_that_is_refused_costs_only_its_own_vector(store: Driver) -> None:
    await say(store, ["poison" if n in (5, 6, 70) else f"entry {n}" for n in range(150)])
    recaller, embedder = Recaller(store, Picky()), Picky()
    assert await recaller.prepare(MINE) == [
        "The embedder hash:words refused 3 entries: they are found by keywords alone."
    ]
    assert await kept(store) == [n for n in range(1, 151) if n not in (6, 7, 71)]
    assert await marks(store) == [("hash:words@64", 150, 3)]
    assert await Recaller(store, embedder).prepare(MINE) == []
    assert embedder.asked == 0


async def test_more_refused_in_a_row_than_an_embedder_may_when_others_were_taken(store: Driver) -> None:
    await say(store, ["one", *["poison"] * (MOST_REFUSED + 5), "two"])
    assert (await embed_thread(store, Picky(), "t")).refused == MOST_REFUSED + 5
    assert await kept(store) == [1, MOST_REFUSED + 7]


async def test_an_embedder_that_takes_nothing_is_not_asked_for_each_text(store: Driver) -> None:
    await say(store, [f"poison {n}" for n in range(60)])
    embedder = Picky()
    with pytest.raises(EmbedderFailed, match="input too long"):
        await embed_thread(store, embedder, "t")
    assert embedder.asked <= 2 * MOST_REFUSED + 1
    assert await marks(store) == []
    assert (await embed_thread(store, HashEmbedder(), "t")).entries == 60, "and none was passed over"
    assert len(await kept(store)) == 60


class _Limit(RuntimeError):
    status_code = 429


@pytest.mark.parametrize("error", [_Limit("slow down"), ConnectionError("gone"), TimeoutError()])
async def test_what_is_not_about_a_text_passes_none_over(store: Driver, error: Exception) -> None:
    await say(store, ["one", "two", "poison", "four"])
    with pytest.raises(EmbedderFailed) as failed:
        await embed_thread(store, Picky(error=error), "t")
    assert failed.value.cause is error
    assert (await kept(store), await marks(store)) == ([1, 2], [("hash:words@64", 2, 0)])
    await embed_thread(store, HashEmbedder(), "t")
    assert await kept(store) == [1, 2, 3, 4]


@pytest.mark.sampled(3)
@pytest.mark.parametrize("left", [1, 2, 4, 6, 8])
async def test_an_embedder_that_goes_in_the_middle_leaves_what_it_made_and_no_hole(store: Driver, left: int) -> None:
    texts = [f"entry {n}" for n in range(80)]
    texts[3] = "poison"
    await say(store, texts)
    with pytest.raises(EmbedderFailed):
        await embed_thread(store, Picky(left=left), "t")
    made = len(await kept(store))
    assert made < 64
    assert (await embed_thread(store, Picky(), "t")).entries == (80 - made if left < 6 else 80 - made - 1)
    assert await kept(store) == [n for n in range(1, 81) if n != 4]


async def test_a_crash_while_vectors_are_written_leaves_neither_them_nor_the_mark(
    store: Driver, monkeypatch: pytest.MonkeyPatch
) -> None:
    await work(store, 40)

    async def crash(*_: object) -> None:
        raise KeyError("crash")

    with monkeypatch.context() as patched:
        patched.setattr(vectors.vectors, "move_mark", crash)
        with pytest.raises(KeyError):
            await embed_thread(store, HashEmbedder(), "t")
    assert (await kept(store), await marks(store)) == ([], [])
    await embed_thread(store, HashEmbedder(), "t")
    assert len(await kept(store)) == 120


async def test_another_model_begins_anew_and_so_does_the_first_when_it_comes_back(store: Driver) -> None:
    await work(store, 40)
    one, other = HashEmbedder(), HashEmbedder(model="other")
    for embedder in (one, other, one):
        assert (await embed_thread(store, embedder, "t")).entries == 160
        assert await marks(store) == [(f"{embedder.name}@64", 160, 0)]
        assert len(await kept(store)) == 120


async def test_what_another_model_left_unfinished_goes(store: Driver) -> None:
    await work(store, 40)
    await embed_thread(store, HashEmbedder(), "t")
    with pytest.raises(EmbedderFailed):
        await embed_thread(store, Picky(left=1, model="other"), "t")
    assert len(await marks(store)) == 2
    assert (await embed_thread(store, HashEmbedder(), "t")).entries == 0
    assert await marks(store) == [("hash:words@64", 160, 0)]
    assert {row["model"] for row in (await all_of(store))["memory_vectors"]} == {"hash:words@64"}


async def test_a_thread_that_was_deleted_and_comes_again_begins_anew(store: Driver) -> None:
    await work(store, 40)
    await embed_thread(store, HashEmbedder(), "t")
    async with store.writing() as tx:
        await log.delete_thread(tx, "t", user_id="u")
    assert await marks(store) == []
    assert (await embed_thread(store, HashEmbedder(), "t")).entries == 0
    await work(store, 2)
    await embed_thread(store, HashEmbedder(), "t")
    assert len(await kept(store)) == 6


async def test_an_imported_thread_is_looked_through_once_and_signed(store: Driver) -> None:
    await work(store, 40)
    await embed_thread(store, HashEmbedder(), "t")
    before = await all_of(store, derived=True)
    await come_again(store)
    assert await marks(store) == []
    embedder = Picky()
    await embed_thread(store, embedder, "t")
    after = await all_of(store, derived=True)
    assert embedder.asked == 0, "its vectors came with it"
    for table in ("memory_vectors", "recall_signatures", "recall_embedded"):
        assert after[table] == before[table]


async def forget_before(store: Driver, seq: int) -> None:
    """Delete the entries of the thread before this one, as retention does."""
    async with store.writing() as tx:
        await log.position(tx, "t")
        for query in _OF_ENTRIES:
            await tx.run(query, thread_id="t", cut=seq)
        await tx.run("move_first_seq", thread_id="t", first_seq=seq)


async def test_what_retention_deletes_while_it_is_embedded_does_not_come_back(store: Driver) -> None:
    class Meanwhile(HashEmbedder):
        async def documents(self, texts: Sequence[str]) -> Vectors:
            made = await super().documents(texts)
            await forget_before(store, 8)
            return made

    await say(store, [f"canary {n}" if n < 7 else f"entry {n}" for n in range(12)])
    await embed_thread(store, Meanwhile(), "t")
    assert await kept(store) == [8, 9, 10, 11, 12]
    assert "canary" not in repr(await all_of(store, derived=True))


async def test_where_retention_ends_in_a_block_its_signatures_are_made_again(
    store: Driver,
) -> None:
    await say(store, [f"entry {n}" for n in range(1200)])
    embedder = HashEmbedder()
    await embed_thread(store, embedder, "t")
    await forget_before(store, 1000)
    assert [row["block"] for row in (await all_of(store, derived=True))["recall_signatures"]] == [1]
    counting = Counting(store)
    await embed_thread(counting, embedder, "t")
    assert counting.rows["select_unsigned_blocks"] == 1
    assert [row["block"] for row in (await all_of(store, derived=True))["recall_signatures"]] == [0, 1]
    counting.reset()
    await embed_thread(counting, embedder, "t")
    assert dict(counting.statements) == {"select_embedded": 1}
