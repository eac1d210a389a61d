"""`LongthreadStore`: LangGraph's store of items over ours, on both backends, side by side with LangGraph's own."""

from __future__ import annotations

import asyncio
import random
import sqlite3
from collections.abc import AsyncIterator, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, closing
from pathlib import Path
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain.tools import ToolRuntime
from langchain_core.embeddings import Embeddings
from langgraph.store.base import (
    BaseStore,
    GetOp,
    InvalidNamespaceError,
    ListNamespacesOp,
    MatchCondition,
    Op,
    PutOp,
    SearchOp,
)
from langgraph.store.memory import InMemoryStore

from longthread.errors import CalledOnItsLoop, InvalidInput, ItemNotStorable, SaverClosed, StoreError
from longthread.langgraph import LongthreadSaver, LongthreadStore, item_batch
from longthread.store.driver import Driver, Transaction
from longthread.store.items import ItemScope, page
from longthread.store.open import open_store
from longthread.store.transfer.copy import copy_store
from longthread.testing import ScriptedChatModel
from longthread.testing.failpoints import DriverWrapper
from longthread_testing.embedding import HashEmbedder

pytestmark = pytest.mark.one_backend

DIMS = 32
WORDS = ("noodles", "rockets", "上海", "天气", "rain", "Ada", "payments", "10.1.2.3")


class Words(Embeddings):
    """An embedder as LangChain has them; it can be made to fail."""

    def __init__(self, model: str = "words") -> None:
        self.model = model
        self.fails = False
        self.calls = 0
        self._own = HashEmbedder(DIMS)

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        return asyncio.run(self.aembed_documents(texts))

    def embed_query(self, text: str) -> list[float]:
        return self.embed_documents([text])[0]

    async def aembed_documents(self, texts: list[str]) -> list[list[float]]:
        self.calls += 1
        if self.fails:
            raise ConnectionError("no embedder there")
        return (await self._own.documents(texts)).astype(float).tolist()

    async def aembed_query(self, text: str) -> list[float]:
        return (await self.aembed_documents([text]))[0]


def index(embed: Any, **more: Any) -> Any:
    return {"dims": DIMS, "embed": embed, **more}


@pytest.fixture
async def items(store: Driver) -> AsyncIterator[LongthreadStore]:
    yield LongthreadStore(store)


def some_ops(chance: random.Random) -> list[Op]:
    """A batch of what may be asked, so that some of it finds something."""

    def namespace() -> tuple[str, ...]:
        return tuple(chance.choice(("a", "b", "ab", "a_", "A")) for _ in range(chance.randint(1, 3)))

    def one() -> Op:
        kind = chance.random()
        if kind < 0.5:
            value = {"text": " ".join(chance.choices(WORDS, k=4)), "n": chance.randint(0, 9), "deep": {"on": True}}
            given = None if chance.random() < 0.15 else value
            return PutOp(namespace(), chance.choice("xyz"), given, index=chance.choice((None, None, False, ["text"])))
        if kind < 0.65:
            return GetOp(namespace(), chance.choice("xyz"))
        if kind < 0.85:
            asked = chance.choice((None, {"n": {"$gte": 4, "$ne": 7}}, {"n": 3}, {"deep": {"on": True}}))
            prefix = () if chance.random() < 0.3 else namespace()[:1]
            return SearchOp(prefix, asked, limit=chance.choice((2, 500)), offset=chance.choice((0, 0, 1)))
        path = tuple(chance.choice(("a", "b", "*")) for _ in range(chance.randint(1, 2)))
        conditions = (MatchCondition(chance.choice(("prefix", "suffix")), path),)
        depth = chance.choice((None, 1, 2))
        return ListNamespacesOp(chance.choice((None, conditions)), depth, limit=20, offset=chance.choice((0, 1)))

    # LangGraph's own makes a namespace of each that is read.
    return sorted((one() for _ in range(chance.randint(1, 6))), key=lambda op: not isinstance(op, ListNamespacesOp))


def plain(found: Any) -> Any:
    """A result without times and scores."""
    if isinstance(found, list):
        return [plain(each) for each in found]
    return (found.namespace, found.key, found.value) if hasattr(found, "value") else found


def unordered(op: Op, found: Any) -> Any:
    """LangGraph's stores agree on no order of what is found without a question."""
    return sorted(plain(found)) if isinstance(op, SearchOp) else plain(found)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("seed", range(6))
async def test_it_does_what_langgraphs_own_does_whatever_is_asked(items: LongthreadStore, seed: int) -> None:
    chance, other = random.Random(seed), InMemoryStore()
    for _ in range(60):
        ops = some_ops(chance)
        for namespace in [name for name, held in other._data.items() if not held]:
            del other._data[namespace]
        pairs = zip(ops, await items.abatch(ops), await other.abatch(ops), strict=True)
        for op, found, expected in pairs:
            if isinstance(op, SearchOp) and (op.limit < 10 or op.offset):
                assert len(found) == len(expected)  # which of them, is a matter of the order
            else:
                assert unordered(op, found) == unordered(op, expected), op


@pytest.mark.parametrize("measured", ["cosine", "l2", "inner_product"])
async def test_searches_by_meaning_find_the_same_with_the_same_scores(store: Driver, measured: str) -> None:
    ours = LongthreadStore(store, index=index(Words(), distance_type=measured))
    other = InMemoryStore(index=index(Words()))
    chance = random.Random(7)
    for n in range(40):
        value = {"text": " ".join(chance.choices(WORDS, k=3)) + f" {n}"}
        for each in (ours, other):
            await each.aput(("notes", str(n % 3)), str(n), value)
    for question in ("rain in 上海", "payments for Ada", "noodles"):
        for prefix in ((), ("notes",), ("notes", "1")):
            found = await ours.asearch(prefix, query=question, limit=5)
            if measured != "cosine":
                assert [hit.score for hit in found] == sorted([hit.score for hit in found], reverse=True)
                continue
            expected = await other.asearch(prefix, query=question, limit=5)
            assert [hit.score for hit in found] == pytest.approx([hit.score for hit in expected], abs=1e-5)
            assert {hit.key for hit in found if hit.score > expected[-1].score + 1e-4} <= {h.key for h in expected}


async def test_fields_say_what_has_vectors_and_the_nearest_of_several_counts(store: Driver) -> None:
    ours = LongthreadStore(store, index=index(Words(), fields=["title", "parts[*].text"]))
    await ours.aput(("d",), "one", {"title": "rockets", "parts": [{"text": "noodles"}, {"text": "rain"}], "x": "Ada"})
    await ours.aput(("d",), "two", {"title": "payments", "parts": [], "x": "rain"})
    await ours.aput(("d",), "none", {"title": "rain"}, index=False)
    await ours.aput(("d",), "own", {"title": "rain", "x": "rockets"}, index=["x"])
    [first, *_, last] = await ours.asearch(("d",), query="rain")
    assert (first.key, first.score) == ("one", pytest.approx(1.0, abs=1e-5))
    assert (last.key, last.score) == ("none", None)
    [own] = await ours.asearch(("d",), query="rockets", limit=1, filter={"title": {"$ne": "rockets"}})
    assert (own.key, own.score) == ("own", pytest.approx(1.0, abs=1e-5))


async def test_without_an_embedder_a_question_is_answered_by_its_words(items: LongthreadStore) -> None:
    await items.aput(("n", "a"), "food", {"text": "Ada likes noodles with tofu", "tags": ["dinner"]})
    await items.aput(("n", "b"), "天气", {"text": "上海明天有大雨，请带伞"})
    await items.aput(("n", "b"), "server", {"host": {"address": "10.1.2.3"}, "port": 5432})
    await items.aput(("other",), "food", {"text": "noodles"})
    asked = {
        "who likes noodles?": "food",
        "上海的天气怎么样": "天气",
        "10.1.2.3": "server",
        "dinner": "food",
        "大雨": "天气",
        "伞在哪": "天气",
    }
    for question, key in asked.items():
        [best, *_] = found = await items.asearch(("n",), query=question)
        assert best.key == key and best.score is not None and best.score > 0
        assert len(found) == 3 and {hit.key for hit in found} == {"food", "天气", "server"}
    assert [hit.key for hit in await items.asearch(("n",), query="noodles", limit=1, offset=1)] != ["food"]
    await items.adelete(("n", "a"), "food")
    assert all(hit.score is None for hit in await items.asearch(("n",), query="noodles"))


async def test_an_embedder_that_fails_is_done_without_and_made_up_for(
    store: Driver, caplog: pytest.LogCaptureFixture
) -> None:
    embed = Words()
    broken = LongthreadStore(store, index=index(embed, fields=["text"]))
    embed.fails = True
    await broken.aput(("n",), "food", {"text": "noodles"})
    await broken.aput(("n",), "sky", {"text": "rain"})
    assert "no embedder there" in caplog.text
    assert [hit.key for hit in await broken.asearch(("n",), query="noodles", limit=1)] == ["food"]
    assert embed.calls == 2  # once more, to learn whether it is the text; then it rests for a while
    embed.fails = False
    mended = LongthreadStore(store, index=index(embed, fields=["text"]))
    found = await mended.asearch(("n",), query="rain")
    assert [(hit.key, hit.score is None) for hit in found] == [("sky", False), ("food", False)]
    assert found[0].score == pytest.approx(1.0, abs=1e-5)


async def test_a_text_that_an_embedder_does_not_take_costs_only_its_own_vector(
    store: Driver, caplog: pytest.LogCaptureFixture
) -> None:
    class Picky(Words):
        async def aembed_documents(self, texts: list[str]) -> list[list[float]]:
            if any(len(text) > 100 for text in texts):
                raise ValueError("maximum context length")
            return await super().aembed_documents(texts)

    items = LongthreadStore(store, index=index(Picky(), fields=["text"]))
    await items.aput(("n",), "sky", {"text": "rain"})
    await items.abatch([PutOp(("n",), "long", {"text": "noodles " * 50}), PutOp(("n",), "food", {"text": "noodles"})])
    assert "maximum context length" in caplog.text
    found = await items.asearch(("n",), query="rain")
    assert found[0].key == "sky" and found[0].score == pytest.approx(1.0, abs=1e-5)
    assert {hit.key: hit.score is not None for hit in found}["food"]
    assert await items.asearch(("n",), query="noodles " * 50)  # a question that is too long, too
    again = LongthreadStore(store, index=index(Picky(), fields=["text"]))
    assert (await again.asearch(("n",), query="rain"))[0].score == pytest.approx(1.0, abs=1e-5)


@pytest.mark.parametrize("number", [float("nan"), float("inf"), None])
async def test_an_embedder_that_gives_no_numbers_is_done_without(store: Driver, number: Any) -> None:
    async def embed(texts: Sequence[str]) -> Any:
        return [[number] * DIMS for _ in texts]

    broken = LongthreadStore(store, index=index(embed, fields=["text"]))
    await broken.aput(("n",), "food", {"text": "noodles"})
    assert [hit.key for hit in await broken.asearch(("n",), query="noodles")] == ["food"]
    mended = LongthreadStore(store, index=index(Words(), fields=["text"]))
    assert [hit.score for hit in await mended.asearch(("n",), query="noodles")] == pytest.approx([1.0], abs=1e-5)


async def test_vectors_of_another_index_are_made_anew(store: Driver) -> None:
    await LongthreadStore(store, index=index(Words("one"))).aput(("n",), "food", {"text": "noodles"})
    embed = Words("two")
    other = LongthreadStore(store, index=index(embed, fields=["text"]))
    assert [hit.score for hit in await other.asearch(("n",), query="noodles")] == pytest.approx([1.0], abs=1e-5)
    before = embed.calls
    await other.asearch(("n",), query="noodles")
    assert embed.calls == before + 1  # the question alone


async def test_an_index_that_cannot_be_is_told(store: Driver) -> None:
    with pytest.raises(InvalidInput, match="dims"):
        LongthreadStore(store, index={"embed": Words()})
    with pytest.raises(InvalidInput, match="hamming"):
        LongthreadStore(store, index=index(Words(), distance_type="hamming"))
    wrong = LongthreadStore(store, index={"dims": DIMS + 1, "embed": Words()})
    with pytest.raises(InvalidInput, match=f"dims={DIMS + 1}"):
        await wrong.aput(("n",), "food", {"text": "noodles"})


@pytest.mark.parametrize(
    ("config", "told"),
    [
        (index("foo:bar"), "'foo:bar' cannot be used.*Give an Embeddings object"),
        (index(5), "of type int.*Give an Embeddings object"),
        ({"dims": 0, "embed": "foo:bar"}, "dims"),
        ({"dims": 16_001, "embed": Words()}, "1 to 16,000"),
        (index(Words(), fields=5), "fields"),
        ("foo:bar", "index of a LongthreadStore is of type str"),
    ],
)
async def test_an_index_of_the_wrong_kind_says_what_to_give(store: Driver, config: Any, told: str) -> None:
    with pytest.raises(InvalidInput, match=told):
        LongthreadStore(store, index=config)


async def test_times_that_cannot_be_are_refused(items: LongthreadStore, store: Driver) -> None:
    for wrong in (-1, float("nan"), float("inf"), 1e12, "10", True):
        with pytest.raises(InvalidInput, match="number of minutes"):
            await items.aput(("n",), "k", {"v": 1}, ttl=wrong)  # type: ignore[arg-type]  # what is tested
        with pytest.raises(InvalidInput, match="number of minutes"):
            LongthreadStore(store, ttl={"default_ttl": wrong})  # type: ignore[typeddict-item]
    with pytest.raises(InvalidInput, match="number of minutes"):
        items.start_ttl_sweeper(-1)
    with pytest.raises(InvalidInput, match="ttl of a LongthreadStore"):
        LongthreadStore(store, ttl=5)  # type: ignore[arg-type]
    with pytest.raises(InvalidInput, match="LongthreadStore.of needs"):
        LongthreadStore.of("x.db")  # type: ignore[arg-type]
    await items.aput(("n",), "k", {"v": 1}, ttl=60)
    assert await items.aget(("n",), "k") is not None


async def test_numbers_and_namespaces_that_cannot_be_are_refused(items: LongthreadStore) -> None:
    await items.aput(("a", "b"), "k", {"v": 1})
    for asked in ({"limit": -1}, {"offset": -1}, {"limit": "5"}, {"limit": True}, {"limit": 2.5}):
        with pytest.raises(InvalidInput, match="whole number from 0"):
            await items.asearch(("a",), **asked)  # type: ignore[arg-type]
        with pytest.raises(InvalidInput, match="whole number from 0"):
            await items.alist_namespaces(**asked)  # type: ignore[arg-type]
    with pytest.raises(InvalidInput, match="max_depth"):
        await items.alist_namespaces(max_depth=-1)
    wrong: Any
    for wrong in ("ab", {"ab"}, b"ab", 5):
        with pytest.raises(InvalidNamespaceError, match="Give a tuple of texts"):
            await items.aput(wrong, "k", {"v": 2})
        for read in (items.aget(wrong, "k"), items.asearch(wrong), items.adelete(wrong, "k")):
            with pytest.raises(InvalidNamespaceError, match="Give a tuple of texts"):
                await read
        for plainly in (items.get, items.delete):
            with pytest.raises(InvalidNamespaceError, match="Give a tuple of texts"):
                plainly(wrong, "k")
        with pytest.raises(InvalidNamespaceError, match="Give a tuple of texts"):
            items.search(wrong)
    with pytest.raises(InvalidNamespaceError, match="comma"):
        await items.alist_namespaces(prefix="a")  # type: ignore[arg-type]
    with pytest.raises(InvalidNamespaceError):
        await items.aput(("a", 5), "k", {"v": 2})  # type: ignore[arg-type]
    assert [hit.value for hit in await items.asearch(())] == [{"v": 1}]
    assert await items.asearch((), limit=0) == []


async def test_what_has_expired_is_swept_and_what_is_read_lives_on(store: Driver) -> None:
    keeps = LongthreadStore(store, ttl={"default_ttl": 1.0, "refresh_on_read": False})
    await keeps.aput(("n",), "short", {"v": 1}, ttl=0.0001)
    await keeps.aput(("n",), "long", {"v": 2})
    await keeps.aput(("n",), "ever", {"v": 3}, ttl=None)
    await asyncio.sleep(0.02)
    assert {hit.key for hit in await keeps.asearch(("n",))} == {"short", "long", "ever"}
    omits = LongthreadStore(store, ttl={"omit_expired": True})
    assert await omits.aget(("n",), "short") is None
    assert {hit.key for hit in await omits.asearch(("n",), query="1 2 3", limit=2)} == {"long", "ever"}
    assert await omits.aget(("n",), "long") is not None
    assert await keeps.asweep_ttl() == 1
    assert await keeps.aget(("n",), "short") is None
    assert await keeps.asweep_ttl() == 0


async def test_reading_renews_a_time_to_live_unless_told_not_to(store: Driver, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(item_batch, "_MOVES", 0.0)
    items = LongthreadStore(store, ttl={"omit_expired": True})
    await items.aput(("n",), "read", {"v": 1}, ttl=10)
    await items.aput(("n",), "seen", {"v": 1}, ttl=10)
    await items.aput(("n",), "left", {"v": 1}, ttl=10)
    before = {row.key: row.expires_at for row in await kept(store)}
    await items.aget(("n",), "read")
    await items.asearch(("n",), limit=1, filter={"v": 1}, refresh_ttl=False)
    await items.aget(("n",), "left", refresh_ttl=False)
    after = {row.key: row.expires_at for row in await kept(store)}
    assert after["read"] > before["read"]
    assert (after["seen"], after["left"]) == (before["seen"], before["left"])


async def kept(store: Driver) -> list[Any]:
    async with store.reading() as tx:
        return await page(tx, ItemScope("default"), None, limit=100)


async def test_the_sweeper_sweeps_in_the_background_until_it_is_stopped(store_address: str) -> None:
    async with LongthreadStore.from_conn_string(store_address, ttl={"sweep_interval_minutes": 5}) as items:
        await items.aput(("n",), "gone", {"v": 1}, ttl=0.0001)
        await items.start_ttl_sweeper(0.0005)
        async with asyncio.timeout(30):
            while await items.aget(("n",), "gone", refresh_ttl=False) is not None:  # noqa: ASYNC110 - a database's row
                await asyncio.sleep(0.02)
        await items.stop_ttl_sweeper()


async def test_nobody_sees_anothers_items(store: Driver) -> None:
    ada, bob = LongthreadStore(store, user_id="ada"), LongthreadStore(store, user_id="bob")
    await ada.aput(("n",), "k", {"text": "noodles"})
    assert await bob.aget(("n",), "k") is None
    assert await bob.asearch((), query="noodles") == []
    assert await bob.alist_namespaces() == []
    await bob.aput(("n",), "k", {"text": "rockets"})
    await bob.adelete(("n",), "k")
    item = await ada.aget(("n",), "k")
    assert item is not None and item.value == {"text": "noodles"}


async def test_values_come_back_as_they_were_whatever_they_hold(items: LongthreadStore) -> None:
    value = {"nul": "a\x00b", "half": "\ud800", "emoji": "🧵", "deep": [{"x": [1, 2.5, None, True]}], "ключ": "值"}
    await items.aput(("n", "上海", "with space"), "k/%_", value)
    found = await items.aget(("n", "上海", "with space"), "k/%_")
    assert found is not None and found.value == value
    assert [hit.value for hit in await items.asearch(("n", "上海"))] == [value]
    found.value["emoji"] = "changed"
    again = await items.aget(("n", "上海", "with space"), "k/%_")
    assert again is not None and again.value == value and again.created_at == found.created_at
    await items.aput(("n", "上海", "with space"), "k/%_", {"x": 1})
    last = await items.aget(("n", "上海", "with space"), "k/%_")
    assert last is not None and last.created_at == found.created_at and last.updated_at > found.updated_at


@pytest.mark.parametrize("value", ["noodles", "", 0, [], ["a"], [("a", 1)], 1.5, b"x"], ids=repr)
async def test_a_value_that_is_no_dict_is_refused_with_what_to_do(items: LongthreadStore, value: Any) -> None:
    await items.aput(("n",), "k", {"v": 1})
    with pytest.raises(InvalidInput, match=rf"'k' is of type {type(value).__name__}.*such as {{\"value\": …}}"):
        await items.aput(("n",), "k", value)
    found = await items.aget(("n",), "k")
    assert found is not None and found.value == {"v": 1}
    await items.aput(("n",), "empty", {})
    empty = await items.aget(("n",), "empty")
    assert empty is not None and empty.value == {}


@pytest.mark.parametrize("made", [LongthreadSaver, LongthreadStore])
async def test_what_is_no_open_store_is_refused_at_once(made: Any, tmp_path: Path) -> None:
    with closing(sqlite3.connect(":memory:")) as connection:
        for given in ("a.db", tmp_path / "a.db", connection, None):
            kind, opens = type(given).__name__, f"{made.__name__}.from_conn_string"
            with pytest.raises(InvalidInput, match=rf"of type {kind}\..*{opens}"):
                made(given)
    with pytest.raises(InvalidInput, match="None is none"):
        async with made.from_conn_string(None):
            pass
    with pytest.raises(InvalidInput, match="a file in a temporary folder"):
        async with made.from_conn_string(":memory:"):
            pass


async def test_what_cannot_be_is_refused(items: LongthreadStore) -> None:
    with pytest.raises(ItemNotStorable, match=r"Item 'k' holds a value that is no JSON: .* set .*Give text"):
        await items.aput(("n",), "k", {"v": {1, 2}})
    assert await items.aget(("n",), "k") is None
    with pytest.raises(InvalidNamespaceError):
        await items.abatch([PutOp(("a.b",), "k", {"v": 1})])
    with pytest.raises(ValueError, match=r"\$like"):
        await items.aput(("n",), "k", {"v": 1})
        await items.asearch(("n",), filter={"v": {"$like": 1}})
    with pytest.raises(StoreError):
        await items.aput(("n",), "a\x00b", {"v": 1})
    assert [hit.key for hit in await items.asearch(())] == ["k"]


@pytest.mark.parametrize(
    ("wanted", "found"),
    [
        ({"n": {"$gt": 9}}, {"b"}),
        ({"n": {"$lte": "9"}}, {"a"}),
        ({"day": {"$gte": "2026-02-01"}}, {"b"}),
        ({"day": {"$gt": 3}}, set()),
        ({"missing": {"$lt": 3}}, set()),
        ({"missing": None}, {"a", "b"}),
        ({"tags": ["x", "y"]}, {"a"}),
        ({"deep": {"on": True}}, {"a"}),
        ({"deep.on": True}, {"a"}),
        ({"n": {"$ne": 9}, "deep": None}, {"b"}),
        ({"big": {"$gt": 2**53}}, {"a", "b"}),
        ({"big": {"$lte": 2**53 + 1}}, {"b"}),
    ],
)
async def test_filters(items: LongthreadStore, wanted: dict[str, Any], found: set[str]) -> None:
    await items.aput(
        ("n",), "a", {"n": 9, "day": "2026-01-31", "tags": ["x", "y"], "deep": {"on": True}, "big": 10**400}
    )
    await items.aput(("n",), "b", {"n": 10, "day": "2026-02-28", "tags": ["x"], "big": 2**53 + 1})
    assert {hit.key for hit in await items.asearch(("n",), filter=wanted)} == found


async def test_what_a_filter_lets_through_is_found_behind_many_others(items: LongthreadStore) -> None:
    await items.abatch([PutOp(("n",), f"{n:04}", {"text": "noodles", "n": n}) for n in range(600)])
    assert [hit.key for hit in await items.asearch(("n",), filter={"n": 3})] == ["0003"]
    assert [hit.key for hit in await items.asearch(("n",), query="noodles", filter={"n": 599})] == ["0599"]
    pages = [await items.asearch(("n",), limit=100, offset=at) for at in range(0, 700, 100)]
    assert sorted(hit.key for page in pages for hit in page) == [f"{n:04}" for n in range(600)]


def test_it_works_without_await_from_any_thread(store_address: str) -> None:
    with LongthreadStore.from_conn_string(store_address) as items:
        items.setup()
        items.put(("n",), "k", {"v": 1})
        assert items.search(("n",))[0].value == {"v": 1}
        assert items.list_namespaces() == [("n",)]

        async def elsewhere() -> Any:
            return await items.aget(("n",), "k")

        assert asyncio.run(elsewhere()).value == {"v": 1}
        items.delete(("n",), "k")
        assert items.get(("n",), "k") is None and items.sweep_ttl() == 0
    with pytest.raises(SaverClosed):
        items.get(("n",), "k")


async def test_a_call_without_await_on_its_loop_is_told(items: LongthreadStore) -> None:
    with pytest.raises(CalledOnItsLoop, match="abatch"):
        items.get(("n",), "k")


async def test_many_at_once_lose_nothing(store_address: str) -> None:
    async with LongthreadStore.from_conn_string(store_address, index=index(Words())) as items:

        async def one(n: int) -> None:
            await items.abatch([PutOp(("n",), key, {"text": f"{key} {n}"}) for key in ("a", "b", f"own{n}")])

        await asyncio.gather(*(one(n) for n in range(16)))
        found = await items.asearch(("n",), limit=100)
        assert {hit.key for hit in found} == {"a", "b", *(f"own{n}" for n in range(16))}
        [a] = [hit for hit in found if hit.key == "a"]
        [same] = await items.asearch(("n",), query=str(a.value["text"]), filter={"text": a.value["text"]}, limit=1)
        assert same.score is not None


async def test_a_copy_of_the_store_has_the_items_and_what_they_are_found_by(
    store_address: str, other_address: str
) -> None:
    async with open_store(store_address) as here, open_store(other_address) as there:
        embed = Words()
        given = index(embed, fields=["text"])
        await LongthreadStore(here, index=given).aput(("n",), "food", {"text": "noodles"}, ttl=5)
        await copy_store(here, there, lambda *_: None)
        calls = embed.calls
        copied = LongthreadStore(there, index=given)
        assert [hit.score for hit in await copied.asearch((), query="noodles")] == pytest.approx([1.0], abs=1e-5)
        assert embed.calls == calls + 1
        assert [hit.key for hit in await LongthreadStore(there).asearch((), query="noodle")] == ["food"]


async def test_an_agent_uses_it_beside_its_saver(store_address: str) -> None:
    async def remember(text: str, runtime: ToolRuntime) -> str:
        """Keep something."""
        assert runtime.store is not None
        await runtime.store.aput(("facts",), "one", {"text": text})
        return "kept"

    model = ScriptedChatModel([{"action": "remember", "args": {"text": "The port is 5433"}}, {"finish": "Done."}])
    async with LongthreadSaver.from_conn_string(store_address) as saver:
        items: BaseStore = LongthreadStore.of(saver)
        agent = create_agent(model, [remember], checkpointer=saver, store=items)
        await agent.ainvoke({"messages": [("user", "Remember the port")]}, {"configurable": {"thread_id": "t"}})
    async with LongthreadStore.from_conn_string(store_address) as again:
        assert [hit.value for hit in await again.asearch((), query="port")] == [{"text": "The port is 5433"}]


def test_the_file_of_a_store_can_be_named_as_with_the_saver(tmp_path: Path) -> None:
    path = str(tmp_path / "c.db")
    with LongthreadSaver.from_conn_string(path) as saver:
        LongthreadStore.of(saver).put(("n",), "k", {"v": 1})
    with LongthreadStore.from_conn_string(path) as items:
        assert items.get(("n",), "k") is not None


class Counting(DriverWrapper):
    """Counts how many transactions are asked for and not over at once."""

    now = most = 0

    @asynccontextmanager
    async def _counted(self, transaction: AbstractAsyncContextManager[Transaction]) -> AsyncIterator[Transaction]:
        self.now += 1
        self.most = max(self.most, self.now)
        try:
            async with transaction as tx:
                yield tx
        finally:
            self.now -= 1

    def reading(self) -> AbstractAsyncContextManager[Transaction]:
        return self._counted(self.driver.reading())

    def writing(self) -> AbstractAsyncContextManager[Transaction]:
        return self._counted(self.driver.writing())


async def test_any_number_of_calls_may_be_made_at_once(store: Driver) -> None:
    """Whoever waits for a connection for 30 seconds is refused one, so not all calls may wait for one at once."""
    counting = Counting(store)
    items = LongthreadStore(counting)
    await asyncio.gather(*(items.aput(("all",), f"{n}", {"n": n}) for n in range(1500)))
    assert 1 <= counting.most <= item_batch.AT_ONCE
    found = await items.asearch(("all",), limit=2000)
    assert {item.value["n"] for item in found} == set(range(1500))


async def test_who_waits_for_an_embedder_keeps_nobody_from_reading(store: Driver) -> None:
    class Slow(Words):
        waits = asyncio.Event()

        async def aembed_documents(self, texts: list[str]) -> list[list[float]]:
            await self.waits.wait()
            return await super().aembed_documents(texts)

    slow = Slow()
    items = LongthreadStore(store, index=index(slow))
    await items.aput(("a",), "there", {"text": "x"}, index=False)
    puts = [asyncio.create_task(items.aput(("a",), f"{n}", {"text": "y"})) for n in range(2 * item_batch.AT_ONCE)]
    await asyncio.sleep(0)
    found = await asyncio.wait_for(items.aget(("a",), "there"), 30)
    assert found is not None and not any(put.done() for put in puts)
    slow.waits.set()
    await asyncio.gather(*puts)
    assert len(await items.asearch(("a",), limit=200)) == 2 * item_batch.AT_ONCE + 1
