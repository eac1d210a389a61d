"""Near vectors: found through their signs, the same as by comparing all of them, whatever becomes of the blocks."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.memory.talking import say
from tests.store.samples import all_of

from longthread.memory import nearest
from longthread.memory.embedder import unit
from longthread.memory.index.indexer import index_thread
from longthread.memory.index.postings import INDEX_FORM
from longthread.memory.index.signature_index import Ranges
from longthread.memory.index.vectors import embed_thread, model_of
from longthread.memory.nearest import Nearest, Sought
from longthread.memory.recall import Question, Recaller
from longthread.model.entry import Draft
from longthread.model.thread import Scope
from longthread.store import log, recall_index, vectors
from longthread.store.driver import Driver
from longthread.store.signatures import Signatures
from longthread.store.vectors import Vector
from longthread_testing.embedding import HashEmbedder

pytestmark = pytest.mark.one_backend

MODEL = "made:up@256"
MINE = Scope("u", "t")


def near(center: np.ndarray, spread: float, seed: int) -> np.ndarray:
    return unit(center + spread * np.random.default_rng(seed).standard_normal(len(center)).astype(np.float32))


def made(count: int, dims: int = 256, seed: int = 1) -> np.ndarray:
    """Vectors in clusters, as those of texts are."""
    numbers = np.random.default_rng(seed)
    centers = numbers.standard_normal((40, dims))
    return unit((centers[numbers.integers(0, 40, count)] + 0.6 * numbers.standard_normal((count, dims))).astype("f4"))


async def keep(store: Driver, given: np.ndarray, thread_id: str = "t", user_id: str = "u", first: int = 1) -> None:
    """Keep vectors for entries from `first` on."""
    async with store.writing() as tx:
        await log.create_thread(tx, thread_id, user_id=user_id)
        tip, size = await log.position(tx, thread_id)
        drafts = [Draft(f"{thread_id}-{n}", "user", f"entry {n}") for n in range(size + 1, first + len(given))]
        await log.append(tx, thread_id, drafts, tip=tip, size=size)
        rows = [
            Vector(f"{thread_id}-{first + n}", first + n, "", v.astype("<f4").tobytes()) for n, v in enumerate(given)
        ]
        await vectors.write(tx, thread_id, MODEL, rows)


async def find(
    store: Driver,
    asked: np.ndarray,
    count: int = 10,
    scope: Scope = MINE,
    using: Nearest | None = None,
    ranges: Ranges | None = None,
) -> list[tuple[str, int]]:
    async with store.reading() as tx:
        threads = await recall_index.threads_in(tx, scope, form=INDEX_FORM)
        sought = Sought(scope, MODEL, asked, count, ranges)
        found = await (await (using or Nearest()).begin(tx, sought, threads))()
    assert [value for *_, value in found] == sorted((value for *_, value in found), reverse=True)
    return [(thread_id, seq) for thread_id, seq, _ in found]


def compared(given: np.ndarray, asked: np.ndarray, count: int = 10) -> list[tuple[str, int]]:
    values = [round(float(value), 5) for value in given @ asked]
    return [("t", n + 1) for n in sorted(range(len(given)), key=lambda n: (-values[n], n))[:count]]


async def test_few_are_compared_one_by_one(store: Driver) -> None:
    given = made(150)
    await keep(store, given)
    for seed in range(5):
        asked = near(given[seed * 7], 0.04, seed)
        assert await find(store, asked) == compared(given, asked)


async def test_of_many_nearly_all_that_are_nearest_are_found(store: Driver, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nearest, "LONG_LIST", 600)
    given = made(3000)
    await keep(store, given)
    there = 0
    for seed in range(20):
        asked = near(given[seed * 50], 0.04, seed)
        found = await find(store, asked)
        assert len(found) == 10
        there += len(set(found) & set(compared(given, asked)))
    assert there >= 0.95 * 200


@given(st.integers(1, 40_000), st.integers(1, 4000), st.integers(0, 3), st.sampled_from(["any", "alike", "in turns"]))
def test_about_as_many_as_are_wanted_are_the_nearest(count: int, most: int, seed: int, kind: str) -> None:
    values = np.random.default_rng(seed).random(count, dtype=np.float32)
    if kind == "alike":
        values = np.round(values, 1)
    elif kind == "in turns":  # every few are far away, or near: some of all say little
        values[:: seed + 2] += np.float32(seed % 2 * 2 - 1)
    best = nearest._nearest(values, min(most, count))
    assert min(most, count) / 2 <= len(best) <= 2 * most
    if kind != "alike":  # of which those that are as near as the last are cut off
        assert values[best].min() > np.delete(values, best).max(initial=-9)


@pytest.mark.parametrize("period", [1, 2, 3, 4, 5, 6, 7, 8, 12, 13])
@pytest.mark.parametrize("count", [37_000, 70_000, 100_000, 250_000])
def test_as_many_are_chosen_whoever_speaks_in_turn(count: int, period: int) -> None:
    values = np.random.default_rng(period).random(count, dtype=np.float32)
    for turn in range(period):
        alternating = values.copy()
        alternating[turn::period] += 1  # one speaker's are nearer than all others
        assert 0.8 * 4096 <= len(nearest._nearest(alternating, 4096)) <= 1.2 * 4096


@pytest.mark.parametrize("difference", [-9, 9])
def test_where_some_tell_nothing_of_the_others_all_are_compared(difference: int) -> None:
    values = np.random.default_rng(1).random(100_000, dtype=np.float32)
    values[nearest._some(100_000, 100_000 // (4 * 4096))] += np.float32(difference)
    assert len(nearest._nearest(values, 4096)) == 4096


def one_signed(count: int, dims: int = 256) -> np.ndarray:
    return unit(np.abs(made(count, dims)))


def biased(count: int, dims: int = 256) -> np.ndarray:
    """Any two of these are alike, with a cosine of 0.9 and more."""
    same = np.random.default_rng(9).standard_normal(dims).astype("f4")
    return unit(made(count, dims) + 3 * same / np.linalg.norm(same))


def noisy(count: int, dims: int = 256) -> np.ndarray:
    return unit(np.random.default_rng(2).standard_normal((count, dims)).astype("f4"))


@pytest.mark.sampled(2)
@pytest.mark.parametrize("embedded", [made, one_signed, biased, noisy])
async def test_whatever_an_embedders_numbers_are_like(
    store: Driver, monkeypatch: pytest.MonkeyPatch, embedded: Callable[..., np.ndarray]
) -> None:
    monkeypatch.setattr(nearest, "LONG_LIST", 400)
    monkeypatch.setattr(nearest, "MORE", 40)
    given = embedded(1800, 100)
    for first in range(0, 1800, 300):  # the mean is taken of a part of what a block comes to hold
        await keep(store, given[first : first + 300], first=first + 1)
    there = 0
    for seed in range(20):
        asked = near(given[seed * 90], 0.01, seed)
        there += len(set(await find(store, asked)) & set(compared(given, asked)))
    assert there >= 0.95 * 200


async def test_threads_of_one_user_are_weighed_alike(store: Driver, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nearest, "LONG_LIST", 300)
    monkeypatch.setattr(nearest, "MORE", 40)
    given = biased(1500)
    for n in range(15):
        await keep(store, given[100 * n : 100 * n + 100], thread_id=f"t{n:02}")
    there = 0
    for seed in range(10):
        asked = near(given[seed * 150], 0.01, seed)
        best = {(f"t{(seq - 1) // 100:02}", (seq - 1) % 100 + 1) for _, seq in compared(given, asked)}
        there += len(set(await find(store, asked, scope=Scope("u"))) & best)
    assert there >= 0.95 * 100


async def test_signatures_of_another_version_are_not_read(store: Driver, plain: object) -> None:
    given = made(150)
    await keep(store, given)
    plain("UPDATE recall_signatures SET stamp = 'abc', data = 'x'")  # type: ignore[operator]
    assert await find(store, given[7]) == compared(given, given[7])
    await keep(store, made(1, seed=3), first=151)
    async with store.reading() as tx:
        [head] = await vectors.heads(tx, MINE, MODEL)
        assert len((await vectors.signatures(tx, MINE, MODEL, 0))[head].seqs) == 151


async def test_the_same_question_reads_no_signatures_twice_and_new_ones_are_seen(
    store: Driver, monkeypatch: pytest.MonkeyPatch
) -> None:
    given, using = made(2100), Nearest()
    await keep(store, given[:2060])
    read: list[int] = []
    real = vectors.signatures

    async def counted(*asked: object) -> dict[vectors.BlockHead, vectors.Signatures]:
        found = await real(*asked)  # type: ignore[arg-type]
        read.append(len(found))
        return found

    monkeypatch.setattr(vectors, "signatures", counted)
    assert (await find(store, given[5], using=using))[0] == ("t", 6)
    assert (await find(store, given[6], using=using))[0] == ("t", 7)
    assert read == [3]
    await keep(store, given[2060:], first=2061)
    assert (await find(store, given[2090], using=using))[0] == ("t", 2091)
    assert read == [3, 1], "only the block that has grown is read"


async def test_a_guess_holds_only_as_long_as_nothing_has_changed(store: Driver) -> None:
    given, using = made(1000), Nearest()
    asked = near(given[950], 0.01, 1)
    sought = Sought(MINE, MODEL, asked, 3)
    assert using.guess(sought) is None
    await keep(store, given[:900])
    assert await find(store, asked, 3, using=using) == compared(given[:900], asked, 3)
    guess = using.guess(sought)
    assert guess is not None
    for first, best in ((900, compared(given[:900], asked, 3)), (1000, compared(given, asked, 3))):
        if first > 900:
            await keep(store, given[900:], first=901)
        async with store.reading() as tx:
            threads = await recall_index.threads_in(tx, MINE, form=INDEX_FORM)
            found = await (await using.begin(tx, sought, threads, guess))()
        assert [(thread_id, seq) for thread_id, seq, _ in found] == best
    async with store.writing() as tx:
        await log.delete_thread(tx, "t", user_id="u")
    async with store.reading() as tx:
        assert await (await using.begin(tx, sought, [], using.guess(sought)))() == []
    known = using._kept.get((MINE, MODEL))
    assert known is not None
    assert known.signatures.heads == []


async def test_scopes_and_users(store: Driver) -> None:
    given, same = made(30), Nearest()
    await keep(store, given[:10])
    await keep(store, given[10:20], thread_id="mine too")
    await keep(store, given[20:], thread_id="theirs", user_id="v")
    for using in (Nearest(), same, same):
        assert (await find(store, given[15], scope=Scope("u"), using=using))[0] == ("mine too", 6)
        assert {thread for thread, _ in await find(store, given[15], 100, using=using)} == {"t"}
        assert {thread for thread, _ in await find(store, given[25], 100, Scope("u"), using)} == {"t", "mine too"}
        assert await find(store, given[25], 100, Scope("u", "theirs"), using) == []


async def test_only_what_is_in_ranges(store: Driver) -> None:
    given = made(2100)
    await keep(store, given)
    found = await find(store, given[50], 500, ranges={"t": [(40, 49), (1020, 1030), (2099, 2200)], "other": [(1, 9)]})
    assert {seq for _, seq in found} == {*range(40, 50), *range(1020, 1031), 2099, 2100}
    assert await find(store, given[50], ranges={}) == []


async def test_blocks_without_signatures_are_compared_and_made_up_for(store: Driver, plain: object) -> None:
    texts = [f"the walrus number {n}" for n in range(40)]
    await say(store, texts)
    embedder = HashEmbedder()
    await embed_thread(store, embedder, "t")
    before = await all_of(store, derived=True)
    for table in ("recall_signatures", "recall_embedded"):  # As after an import.
        plain(f"DELETE FROM {table}")  # type: ignore[operator]
    model, asked = await model_of(embedder), unit(await embedder.query("number 7"))
    async with store.reading() as tx:
        threads = await recall_index.threads_in(tx, MINE, form=INDEX_FORM)
        found, narrowed = [
            await (await Nearest().begin(tx, Sought(MINE, model, asked, 3, ranges), threads))()
            for ranges in (None, {"t": [(20, 30)]})
        ]
    assert found[0][1] == 8
    assert {seq for _, seq, _ in narrowed} < set(range(20, 31))
    await embed_thread(store, embedder, "t")
    assert (await all_of(store, derived=True))["recall_signatures"] == before["recall_signatures"]


async def test_a_question_that_finds_vectors_without_signatures_has_them_made(store: Driver, plain: object) -> None:
    await say(store, [f"the walrus number {n}" for n in range(40)])
    await say(store, ["another walrus"], thread_id="other")
    recaller = Recaller(store, HashEmbedder())
    await recaller.prepare(Scope("u"))
    before = (await all_of(store, derived=True))["recall_signatures"]
    plain("DELETE FROM recall_signatures")  # type: ignore[operator]
    first = await recaller.find(Question("number 7", Scope("u"), k=3))
    await recaller.settle()
    assert (await all_of(store, derived=True))["recall_signatures"] == before
    assert (await recaller.find(Question("number 7", Scope("u"), k=3))).hits == first.hits


async def test_retention_takes_the_signatures_too(store: Driver) -> None:
    texts = [f"the walrus number {n}" for n in range(30)]
    await say(store, texts)
    embedder = HashEmbedder()
    await index_thread(store, "t")
    await embed_thread(store, embedder, "t")
    async with store.writing() as tx:
        await log.position(tx, "t")
        for query in ("prune_entries", "prune_vectors", "prune_signatures"):
            await tx.run(query, thread_id="t", cut=20)
        await tx.run("move_first_seq", thread_id="t", first_seq=20)
    assert (await all_of(store, derived=True))["recall_signatures"] == []
    await say(store, ["one more walrus"])
    await embed_thread(store, embedder, "t")
    [row] = (await all_of(store, derived=True))["recall_signatures"]
    assert Signatures.unpack(row["data"], 0).seqs.tolist() == list(range(20, 32))


async def test_what_is_kept_in_memory_is_bounded(store: Driver) -> None:
    given, using = made(300), Nearest(most_kept=20_000)
    for n in range(3):
        await keep(store, given[100 * n : 100 * n + 100], thread_id=f"t{n}")
    for n in (0, 1, 2, 0, 1, 2):
        found = await find(store, given[100 * n + 5], scope=Scope("u", f"t{n}"), using=using)
        assert found[0] == (f"t{n}", 6)
        assert 0 < using._kept.size <= 20_000


@pytest.mark.parametrize("dims", [384, 100])
async def test_of_very_many_the_databases_own_index_is_asked(
    store: Driver, dims: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    fillers = [f"nothing much, {n}" for n in range(12)]
    await say(store, [*fillers, "the automobile", *fillers])
    await say(store, ["their automobile"], thread_id="theirs", user_id="v")
    recaller = Recaller(store, HashEmbedder(dims, same={"car": "automobile"}))
    await recaller.prepare(MINE)
    await recaller.prepare(Scope("v"))
    compared = (await recaller.find(Question("car", MINE, k=3))).hits
    monkeypatch.setattr(nearest, "MOST_COMPARED", -1)
    for scope in (MINE, Scope("u")):
        indexed = (await recaller.find(Question("car", scope, k=3))).hits
        assert indexed[0].entry.text == "the automobile"
        assert indexed[0].score == compared[0].score
        assert "their automobile" not in [hit.entry.text for hit in indexed]
