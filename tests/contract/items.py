"""LangGraph's store of items: values by namespace and key, found by their fields, their words and their meaning."""

from __future__ import annotations

import asyncio
from typing import Any

from langchain_core.embeddings import Embeddings
from langgraph.store.base import GetOp, ListNamespacesOp, Op, PutOp, SearchItem, SearchOp
from tests.contract.base import Contract, OpenStore

from longthread.langgraph.item_store import LongthreadStore
from longthread.store import items as stored
from longthread.store.driver import Driver
from longthread_testing.embedding import HashEmbedder

DIMS = 32


class WordEmbeddings(Embeddings):
    """LangChain embeddings in which texts that share words are near."""

    def __init__(self, **same: str) -> None:
        self._own = HashEmbedder(DIMS, same=same)

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        return asyncio.run(self.aembed_documents(texts))

    def embed_query(self, text: str) -> list[float]:
        return self.embed_documents([text])[0]

    async def aembed_documents(self, texts: list[str]) -> list[list[float]]:
        return [[float(number) for number in vector] for vector in await self._own.documents(texts)]

    async def aembed_query(self, text: str) -> list[float]:
        return (await self.aembed_documents([text]))[0]


def keys(found: list[SearchItem]) -> list[str]:
    return [item.key for item in found]


class ItemContract(Contract):
    """`longthread.store.items`, through `LongthreadStore`."""

    async def test_an_item_comes_back_whole_until_it_is_replaced_or_deleted(self, open_store: OpenStore) -> None:
        value = {"text": "面条 \\ \"'", "n": [1, 2.5, None, True], "deep": {"空": ""}}
        async with open_store() as store:
            items = LongthreadStore(store)
            await items.aput(("users", "ada"), "食", value)
            await items.aput(("users", "ada"), "b", {"n": 1}, index=False)
        async with open_store() as store:
            items = LongthreadStore(store)
            found = await items.aget(("users", "ada"), "食")
            assert found is not None
            assert (found.value, found.namespace, found.key) == (value, ("users", "ada"), "食")
            assert await items.aget(("users",), "食") is await items.aget(("users", "ada"), "none") is None
            assert await LongthreadStore(store, user_id="other").aget(("users", "ada"), "食") is None
            async with store.reading() as tx:
                assert [await stored.number(tx, user) for user in ("default", "other")] == [2, 0]
            await items.aput(("users", "ada"), "食", {"n": 2})
            again = await items.aget(("users", "ada"), "食")
            assert again is not None
            assert (again.value, again.created_at) == ({"n": 2}, found.created_at)
            assert again.updated_at > found.updated_at
            await items.adelete(("users", "ada"), "食")
            assert keys(await items.asearch(())) == ["b"]

    async def test_they_are_listed_by_namespace_and_filtered_the_newest_first(self, store: Driver) -> None:
        items = LongthreadStore(store)
        for n in range(6):
            await items.aput(("a", "xy"[n % 2]), str(n), {"n": n})
        await items.aput(("ab",), "other", {"n": 9})
        assert keys(await items.asearch(("a",), limit=4)) == ["5", "4", "3", "2"]
        assert keys(await items.asearch(("a",), limit=4, offset=4)) == ["1", "0"]
        assert keys(await items.asearch((), filter={"n": {"$gte": 4}})) == ["other", "5", "4"]
        assert await items.alist_namespaces() == [("a", "x"), ("a", "y"), ("ab",)]
        assert await items.alist_namespaces(prefix=("a",), max_depth=1) == [("a",)]
        ops: list[Op] = [PutOp(("a", "x"), "0", None), GetOp(("a", "x"), "0"), SearchOp(("a", "y")), ListNamespacesOp()]
        before: Any
        found: Any
        _, before, found, _ = await items.abatch(ops)
        assert before.value == {"n": 0}, "what is read is read before what is written"
        assert keys(found) == ["5", "3", "1"]
        assert await items.aget(("a", "x"), "0") is None

    async def test_a_question_finds_by_words_and_by_meaning(self, store: Driver) -> None:
        plain = LongthreadStore(store)
        texts = {"food": "Ada likes noodles", "天气": "上海明天有大雨", "server": "host 10.1.2.3"}
        for key, text in texts.items():
            await plain.aput(("n", key), key, {"text": text})
        await plain.aput(("m",), "food", {"text": "noodles"})
        for question, key in {"noodles": "food", "大雨": "天气", "10.1.2.3": "server"}.items():
            found = await plain.asearch(("n",), query=question)
            assert (keys(found)[0], len(found)) == (key, 3)
        for measure in ("cosine", "l2", "inner_product"):
            index: Any = {
                "dims": DIMS,
                "embed": WordEmbeddings(pasta="noodles"),
                "distance_type": measure,
                "fields": ["text"],
            }
            found = await LongthreadStore(store, index=index).asearch(("n",), query="pasta")
            assert keys(found)[0] == "food"
            assert sorted([hit.score or 0 for hit in found], reverse=True) == [hit.score for hit in found]
        await LongthreadStore(store, index=index).aput(("n", "food"), "food", {"text": "rain"})
        assert {hit.score for hit in await plain.asearch(("n",), query="noodles")} == {None}

    async def test_items_expire_and_those_that_are_read_live_on(self, store: Driver) -> None:
        items = LongthreadStore(store, ttl={"refresh_on_read": True, "omit_expired": True})
        for key, minutes in (("passing", 0.001), ("read", 1.0)):
            await items.aput(("n",), key, {"text": key}, ttl=minutes)
        await items.aput(("n",), "lasting", {"text": "lasting"})
        until = await _expires(store, "read")
        while sorted(keys(await items.asearch(("n",), refresh_ttl=False))) != ["lasting", "read"]:  # noqa: ASYNC110 - time alone makes it so
            await asyncio.sleep(0.02)
        while await _expires(store, "read") == until:  # it is renewed once a part of its time is over
            assert await items.aget(("n",), "read") is not None
            await asyncio.sleep(0.05)
        assert await _expires(store, "read") > until
        assert await items.aget(("n",), "passing") is None
        assert await LongthreadStore(store, user_id="other").asweep_ttl() == 0
        assert await items.asweep_ttl() == 1
        assert await LongthreadStore(store).aget(("n",), "passing") is None


async def _expires(store: Driver, key: str) -> str:
    async with store.reading() as tx:
        found = await stored.find(tx, "default", ("n", key))
    assert found is not None and found.expires_at is not None
    return found.expires_at
