"""Recall finds messages by words, meaning, topic and time, for their user alone."""

from __future__ import annotations

import io
import json
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from tests.contract.base import USER, Contract, OpenStore, extend, rows_of

from longthread.errors import ThreadNotFound
from longthread.memory import nearest
from longthread.memory.index.indexer import drop_index, index_all, index_thread
from longthread.memory.index.shards import bind_user
from longthread.memory.index.vectors import embed_thread, model_of
from longthread.memory.keywords import EntryPlace
from longthread.memory.recall import Question, Recaller
from longthread.model.entry import Draft
from longthread.model.thread import Scope
from longthread.store import log, recall_index, vectors
from longthread.store.branches import find_versions, read_branches
from longthread.store.driver import Driver
from longthread.store.maintenance import deletions
from longthread.store.transfer.archive import export_lines
from longthread.store.transfer.archive_reader import ImportTarget, import_threads
from longthread_testing.embedding import HashEmbedder

FILLER = ["Good morning.", "How are you?", "Fine, thanks.", "The weather is mild.", "Let us go on."] * 4
HERE = Scope(USER, "t")
MINE = Scope(USER)
OTHERS = Scope("other")


def silent(done: int, total: int, what: str = "") -> None:
    """Ignore the progress."""


async def say(store: Driver, texts: Sequence[str], *, thread_id: str = "t", user_id: str = USER) -> None:
    """Add messages to a thread, in turns of a question and an answer."""
    async with store.writing() as tx:
        await log.create_thread(tx, thread_id, user_id=user_id)
        tip, size = await log.position(tx, thread_id)
        drafts = [
            Draft(f"{thread_id}-{n}", "user" if n % 2 else "assistant", text) for n, text in enumerate(texts, size + 1)
        ]
        await log.append(tx, thread_id, drafts, tip=tip, size=size)


async def found(store: Driver, text: str, scope: Scope = HERE, *, embedder: Any = None, **more: Any) -> list[str]:
    """Return the texts that answer a question, best first, and expect no warning."""
    recaller = Recaller(store, embedder)
    recalled = await recaller.find(Question(text, scope, **more))
    await recaller.settle()
    await recaller.close()
    assert list(recalled.warnings) == []
    return [hit.entry.text for hit in recalled.hits]


async def come_again(store: Driver, thread_id: str = "t") -> None:
    async with store.reading() as tx:
        data = b"".join([line async for line in export_lines(tx, [thread_id], silent)])
    async with store.writing() as tx:
        await log.delete_thread(tx, thread_id, user_id=USER)
    await import_threads(store, io.BytesIO(data), "x.jsonl", ImportTarget(USER), silent)


class RecallContract(Contract):
    """`longthread.store.recall_index`, `vectors` and `volumes`, through the `Recaller` that asks them."""

    async def test_what_was_said_is_found_in_one_thread_and_in_all_of_a_user(self, store: Driver) -> None:
        await say(store, [*FILLER, "The deploy key lives in /etc/keys.toml", *FILLER, "我们决定把服务器放在上海。"])
        await say(store, ["The deploy key is lost.", *FILLER], thread_id="second")
        await say(store, ["Another's deploy key."], thread_id="theirs", user_id="other")
        assert (await found(store, "where is the deploy key?"))[0] == "The deploy key lives in /etc/keys.toml"
        assert (await found(store, "上海"))[0] == "我们决定把服务器放在上海。"
        assert set(await found(store, "deploy key", MINE, k=2)) == {
            "The deploy key lives in /etc/keys.toml",
            "The deploy key is lost.",
        }
        assert await found(store, "deploy key", OTHERS) == ["Another's deploy key."]
        assert await found(store, "deploy key", Scope(USER, agent_id="another agent")) == []
        with pytest.raises(ThreadNotFound):
            await found(store, "deploy key", Scope("other", "t"))

    async def test_a_question_is_bounded_by_time_and_by_place(self, store: Driver) -> None:
        await say(store, ["the harbour", *FILLER, "the harbour again", *FILLER])
        now = datetime.now(UTC)
        late = await found(store, "harbour", k=2, since=now - timedelta(hours=1))
        assert sorted(late) == ["the harbour", "the harbour again"]
        assert await found(store, "harbour", since=now + timedelta(hours=1)) == []
        assert await found(store, "harbour", MINE, until=now - timedelta(hours=1)) == []
        assert await found(store, "harbour", k=1, before=EntryPlace("t", 5)) == ["the harbour"]
        [hit, *_] = (await Recaller(store).find(Question("harbour", HERE, k=1, neighbours=1))).hits
        assert {entry.seq for entry in hit.around} <= {hit.entry.seq - 1, hit.entry.seq, hit.entry.seq + 1}
        one = await Recaller(store).entry(Question("harbour", HERE), "t", "t-22")
        assert (one.entry.seq, one.active) == (22, True)

    async def test_what_grows_is_found_and_what_is_on_another_branch_says_so(self, store: Driver) -> None:
        await say(store, ["the harbour", "it is closed"])
        await index_thread(store, "t")
        for number in range(9):
            await say(store, [f"word{number}"] * 40)
            await index_thread(store, "t")
        await extend(store, Draft("edit", "user", "the quay"), parent=1)
        assert "it is closed" not in await found(store, "closed", HERE, neighbours=0)
        hits = (await Recaller(store).find(Question("closed", HERE, other_branches=True))).hits
        assert (hits[0].entry.text, hits[0].active) == ("it is closed", False)
        hits = (await Recaller(store).find(Question("quay", HERE))).hits
        assert (hits[0].entry.text, hits[0].active) == ("the quay", True)
        assert set(await found(store, "word8", k=40, other_branches=True)) == {"word8"}
        async with store.reading() as tx:
            extents = await recall_index.extents(tx, "t")
        assert [extent.first for extent in extents] == [1, *(extent.last + 1 for extent in extents[:-1])]
        assert extents[-1].last == 363
        await drop_index(store, "t")
        assert set(await found(store, "word8", k=40, other_branches=True)) == {"word8"}

    async def test_of_a_message_that_was_changed_the_present_version_is_shown(self, store: Driver) -> None:
        await say(store, ["the harbour", "it is closed"])
        async with store.reading() as tx:
            assert await read_branches(tx, "t") == ({}, False)
        await extend(store, Draft("t-2", "assistant", "it is open"), parent=1)
        [hit] = (await Recaller(store).find(Question("harbour", HERE))).hits
        assert [entry.text for entry in hit.around] == ["it is open"]
        assert await found(store, "closed", HERE, neighbours=0) == []
        async with store.reading() as tx:
            assert await read_branches(tx, "t") == ({3: 1}, True)
            assert await find_versions(tx, "t", ["t-1", "t-2"]) == {"t-2": [3]}

    async def test_what_a_large_payload_says_is_found(self, store: Driver) -> None:
        await say(store, FILLER)
        said = {"content": [], "invalid_tool_calls": [{"name": "zebra", "args": "[" * 100_000}]}
        await extend(store, Draft("big", "assistant", "", payload=json.dumps(said).encode()))
        async with store.reading() as tx:
            [text] = await recall_index.texts_at(tx, "t", [21])
            assert "zebra" in text.extra_text
            assert [text] == await recall_index.texts(tx, "t", 21, 99)
        [hit] = (await Recaller(store).find(Question("zebra", HERE, k=1))).hits
        assert hit.entry.id == "big"

    async def test_what_means_the_same_is_found_in_other_words(self, open_store: OpenStore) -> None:
        embedder = HashEmbedder(same={"feline": "cat", "automobile": "car"})
        async with open_store() as store:
            await say(store, [*FILLER, "my cat is grey", *FILLER])
            await say(store, ["the car is red", *FILLER], thread_id="second")
            await say(store, ["a car of others"], thread_id="theirs", user_id="other")
            model = await model_of(embedder)
            async with store.reading() as tx:
                assert await vectors.behind(tx, MINE, model) == ["second", "t"]
            assert (await index_all(store, embedder, silent))[0] == 3
            assert (await found(store, "feline", embedder=embedder))[0] == "my cat is grey"
            assert (await found(store, "automobile", MINE, embedder=embedder))[0] == "the car is red"
            assert "my cat is grey" not in await found(store, "feline", OTHERS, embedder=embedder)
            async with store.reading() as tx:
                assert await vectors.behind(tx, MINE, model) == []
                assert await vectors.behind(tx, OTHERS, "another") == ["theirs"]
                assert await vectors.missing_count(tx, "t", model, after=0) == 0
                assert await vectors.missing_count(tx, "t", "another", after=0) == 41
        async with open_store() as again:
            await say(again, ["The feline sleeps."])
            assert await embed_thread(again, embedder, "t") is not None
            assert (await found(again, "the cat sleeps", embedder=embedder))[0] == "The feline sleeps."

    async def test_vectors_of_another_model_go_and_those_that_come_again_are_signed(self, store: Driver) -> None:
        first, second = HashEmbedder(same={"feline": "cat"}), HashEmbedder(48, model="other", same={"tabby": "cat"})
        await say(store, ["my cat is grey", *FILLER])
        await embed_thread(store, first, "t")
        await come_again(store)
        assert (await found(store, "feline", embedder=first))[0] == "my cat is grey"
        assert (await found(store, "feline", MINE, embedder=first))[0] == "my cat is grey"
        await embed_thread(store, second, "t", silent)
        assert (await found(store, "tabby", embedder=second))[0] == "my cat is grey"
        rows = await rows_of(store)
        assert (rows["memory_vectors"], rows["recall_embedded"], rows["recall_signatures"]) == (21, 1, 1)
        await say(store, ["a second cat", *FILLER * 20])
        await embed_thread(store, second, "t", silent)
        assert set((await found(store, "tabby", MINE, embedder=second))[:2]) == {"my cat is grey", "a second cat"}
        await come_again(store)
        await embed_thread(store, second, "t")
        assert set((await found(store, "tabby", embedder=second))[:2]) == {"my cat is grey", "a second cat"}

    async def test_of_many_threads_the_nearest_entries_are_found(
        self, store: Driver, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        embedder = HashEmbedder(384, same={"feline": "cat"})
        for number in range(12):
            texts = [f"a word {number}", f"a cat {number}" if number % 5 == 0 else "a dog", "a bird"]
            await say(store, texts, thread_id=f"t{number}", user_id="other" if number == 5 else USER)
        await index_all(store, embedder, silent)
        expected = {"a cat 0", "a cat 10"}
        assert set(await found(store, "feline", MINE, embedder=embedder, k=2)) == expected
        monkeypatch.setattr(nearest, "MOST_COMPARED", 5)  # as if there were too many to compare
        assert set(await found(store, "feline", MINE, embedder=embedder, k=2)) == expected
        assert await found(store, "feline", OTHERS, embedder=embedder, k=1) == ["a cat 5"]

    async def test_the_same_is_found_when_threads_are_put_together(self, store: Driver) -> None:
        names = [f"t{number}" for number in range(6)]
        for number, name in enumerate(names):
            await say(store, [f"the harbour crane {number}", "an invoice", *FILLER[:number]], thread_id=name)
            await index_thread(store, name)
        await say(store, ["the harbour of others"], thread_id="theirs", user_id="other")
        await index_thread(store, "theirs")
        before = await found(store, "harbour crane", MINE, k=6)
        assert before == [f"the harbour crane {number}" for number in range(6)]
        async with store.reading() as tx:
            assert await recall_index.users_with_loose(tx) == ["other", USER]
        assert await bind_user(store, USER, least=2) == 6
        assert await found(store, "harbour crane", MINE, k=6) == before
        async with store.reading() as tx:
            assert await recall_index.loose_count(tx, USER, 9) == 0
            assert await recall_index.users_with_loose(tx) == ["other"]
        await say(store, ["a crane of late"], thread_id="t3")
        assert set(await found(store, "crane", MINE, k=7)) == {*before, "a crane of late"}
        await index_thread(store, "t3")
        assert await bind_user(store, USER, least=1) == 6
        async with store.writing() as tx:
            await log.delete_thread(tx, "t1", user_id=USER)
            assert await recall_index.loose_count(tx, USER, 99) == 5
        assert "the harbour crane 1" not in await found(store, "crane", MINE, k=20)
        async with store.writing() as tx:
            await deletions.begin(tx, "t2", user_id=USER, seconds=60)
        assert "the harbour crane 2" not in await found(store, "crane", MINE, k=20)
        assert await bind_user(store, USER, least=1) == 4
        async with store.writing() as tx:
            await deletions.undo(tx, "t2", user_id=USER)
        assert "the harbour crane 2" in await found(store, "crane", MINE, k=20)
        assert await found(store, "harbour", OTHERS) == ["the harbour of others"]
