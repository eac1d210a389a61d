"""Recall on both backends: what is found, by whom, and what is left when it is deleted."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Sequence
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from tests.memory.talking import say
from tests.store.conftest import Plain
from tests.store.samples import all_of

from longthread.errors import ThreadNotFound
from longthread.memory import recall as recalling
from longthread.memory.embedder import Vectors
from longthread.memory.index import indexer, vectors
from longthread.memory.index.indexer import drop_index, index_thread
from longthread.memory.index.terms import TERMS_FORM as TERMS
from longthread.memory.keywords import EntryPlace
from longthread.memory.nearest import MEANING, fuse
from longthread.memory.recall import Hit, Question, Recaller
from longthread.model.catalog import RECALL_TOOL
from longthread.model.entry import Draft, ToolCall
from longthread.model.thread import Scope
from longthread.store import log, recall_index
from longthread.store.driver import Driver
from longthread.store.maintenance.retention import _OF_ENTRIES
from longthread.store.open import open_store
from longthread_testing.embedding import HashEmbedder

pytestmark = pytest.mark.one_backend

FILLER = ["Good morning.", "How are you?", "Fine, thanks.", "The weather is mild.", "Let us go on."] * 8
MINE = Scope("u", "t")


async def found(store: Driver, text: str, scope: Scope = MINE, **more: object) -> list[str]:
    recalled = await Recaller(store).find(Question(text, scope, **more))  # type: ignore[arg-type]
    assert recalled.warnings == []
    return [hit.entry.text for hit in recalled.hits]


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("said", "asked"),
    [
        ("The deploy key lives in /etc/longthread/keys.toml", "where is the deploy key?"),
        ("The invoice number is INV-20931", "inv-20931"),
        ("我们决定把服务器放在上海。", "上海"),
        ("下周三和王丽娜吃饭", "什么时候跟王丽娜吃饭？"),
        ("来週は大阪に行きます", "大阪"),
        ("我养了一只猫，叫小白。", "我的猫叫什么名字？"),
        ("药每天吃两次", "药怎么吃"),
        ("那本书在老张那里。", "书"),
        ("Wir treffen uns in München", "munchen"),
    ],
)
async def test_what_was_said_is_found(store: Driver, said: str, asked: str) -> None:
    await say(store, [*FILLER, said, *FILLER])
    assert (await found(store, asked))[0] == said


@pytest.mark.parametrize(
    ("said", "asked"),
    [
        (
            "The harbour opened late that year, after long works on the quay and its two cranes.",
            "who of us the harbour",
        ),
        ("港口那年很晚才开放。", "什么时候港口可以"),
    ],
)
async def test_words_of_every_question_rank_nothing_beside_one_that_tells(store: Driver, said: str, asked: str) -> None:
    empty = ["Who of us?", "Who is it of?", "Of whom? Of us.", "什么时候？", "可以，什么时候都可以。"]
    await say(store, [*FILLER, *empty, *FILLER, *FILLER, said, *FILLER, *empty])
    texts = await found(store, asked, k=30)
    assert texts[0] == said
    assert not set(texts[:5]).intersection(empty)
    # Where nothing else is asked, they are what is looked for.
    assert set(await found(store, "who of us", k=3)) <= set(empty)


async def test_threads_that_nobody_speaks_in_get_vectors_of_a_new_embedder(store: Driver) -> None:
    for thread_id, user_id in (("t", "u"), ("quiet", "u"), ("theirs", "v")):
        await say(store, ["the automobile is red", thread_id], thread_id=thread_id, user_id=user_id)
        await index_thread(store, thread_id)
    for model in ("old", "new"):
        embedder = HashEmbedder(model=model, same={"car": "automobile"})
        recaller = Recaller(store, embedder)
        await recaller.prepare(MINE)
        everywhere = Question("car", Scope("u"))
        assert {hit.entry.thread_id for hit in (await recaller.find(everywhere)).hits} == {"t"}
        await recaller.settle()
        assert {hit.entry.thread_id for hit in (await recaller.find(everywhere)).hits} == {"t", "quiet"}
        await recaller.settle()
        rows = (await all_of(store))["memory_vectors"]
        assert {(row["thread_id"], row["model"]) for row in rows} == {(t, f"hash:{model}@64") for t in ("t", "quiet")}


async def test_an_embedder_that_fails_at_quiet_threads_is_tried_again(store: Driver) -> None:
    class Down(HashEmbedder):
        down = True

        async def documents(self, texts: Sequence[str]) -> Vectors:
            if self.down:
                raise ConnectionError("down")
            return await super().documents(texts)

    embedder = Down(same={"car": "automobile"})
    await say(store, ["the automobile is red"])
    recaller = Recaller(store, embedder)
    everywhere = Question("car", Scope("u"))
    for down, count in ((True, 0), (False, 0), (False, 1)):
        embedder.down = down
        assert len((await recaller.find(everywhere)).hits) == count
        await recaller.settle()
        recaller.asker.making.note_success()


async def test_what_was_said_last_is_found_at_once(store: Driver) -> None:
    await say(store, FILLER)
    await index_thread(store, "t")
    await say(store, ["The password hint is marmalade."])
    assert (await found(store, "marmalade"))[0] == "The password hint is marmalade."


async def test_calls_of_tools_and_long_results_are_found_and_those_of_recall_are_not(store: Driver) -> None:
    long = "x " * 20_000 + "needle-77 " + "y " * 20_000
    calls = (ToolCall("1", "run_sql", {"sql": "SELECT * FROM customers"}),)
    again = (ToolCall("2", RECALL_TOOL, {"query": "needle-77 customers"}),)
    drafts = [
        Draft("a", "assistant", "", tool_calls=calls),
        Draft("b", "tool", long, tool_call_id="1"),
        Draft("c", "assistant", "", tool_calls=again),
        Draft("d", "tool", "needle-77 customers", tool_call_id="2", name=RECALL_TOOL),
    ]
    await say(store, FILLER)
    async with store.writing() as tx:
        await log.extend(tx, "t", drafts)
    assert (await found(store, "needle-77"))[0] == long
    recalled = await Recaller(store).find(Question("customers", MINE, k=50))
    assert recalled.hits[0].entry.id == "a"
    assert not {"c", "d"} & {hit.entry.id for hit in recalled.hits}


RULE = "From now on refunds above 4711 need Quetzalcoatl."


async def test_a_system_message_is_found_like_any_other(store: Driver) -> None:
    await say(store, FILLER)
    async with store.writing() as tx:
        await log.extend(tx, "t", [Draft("rule", "system", RULE), Draft("q", "user", "Anything new?")])
    [hit] = (await Recaller(store).find(Question("who allows refunds", MINE, k=1))).hits
    assert (hit.entry.role, hit.entry.text) == ("system", RULE)
    [hit] = (await Recaller(store).find(Question("anything new", MINE, k=1))).hits
    assert [entry.id for entry in hit.around] == ["rule"]
    recaller = Recaller(store, HashEmbedder(same={"Erstattung": "refunds"}))
    await recaller.prepare(MINE)
    assert (await recaller.find(Question("Erstattung", MINE, k=1))).hits[0].entry.text == RULE
    await recaller.close()


async def test_an_empty_thread_and_an_empty_question_find_nothing(store: Driver) -> None:
    await say(store, [])
    assert await found(store, "anything") == []
    await say(store, ["something"])
    assert await found(store, "…") == []
    assert await found(store, "") == []


async def test_scopes_and_users(store: Driver) -> None:
    await say(store, ["the zebra is mine"], thread_id="t")
    await say(store, ["another zebra of mine"], thread_id="t2")
    await say(store, ["a zebra of somebody else"], thread_id="theirs", user_id="v")
    assert await found(store, "zebra") == ["the zebra is mine"]
    assert set(await found(store, "zebra", Scope("u"))) == {"the zebra is mine", "another zebra of mine"}
    assert await found(store, "zebra", Scope("v")) == ["a zebra of somebody else"]
    assert await found(store, "zebra", Scope("nobody")) == []
    assert await found(store, "zebra", Scope("u", agent_id="an agent")) == []
    with pytest.raises(ThreadNotFound):
        await found(store, "zebra", Scope("v", "t"))


async def test_an_agents_threads(store: Driver, plain: object) -> None:
    await say(store, ["the zebra is mine"], thread_id="t")
    await say(store, ["another zebra of mine"], thread_id="t2")
    plain("UPDATE threads SET agent_id = 'a' WHERE id = 't2'")  # type: ignore[operator]
    assert await found(store, "zebra", Scope("u", agent_id="a")) == ["another zebra of mine"]


@pytest.mark.parametrize("scope", [MINE, Scope("u")])
async def test_hits_of_other_branches_are_asked_for_and_say_so(store: Driver, scope: Scope) -> None:
    await say(store, ["one", "the walrus was here", "three"])
    await say(store, ["a walrus on the new branch"], parent=1)
    assert await found(store, "walrus", scope) == ["a walrus on the new branch"]
    recalled = await Recaller(store).find(Question("walrus", scope, other_branches=True))
    of = {hit.entry.text: hit.active for hit in recalled.hits}
    assert of["the walrus was here"] is False
    assert of["a walrus on the new branch"] is True


async def test_times_and_what_came_before(store: Driver) -> None:
    await say(store, ["early walrus", *FILLER])
    between = datetime.now(UTC) + timedelta(microseconds=1)
    await asyncio.sleep(0.001)
    await say(store, ["late walrus"])
    assert await found(store, "walrus", until=between, k=1) == ["early walrus"]
    assert await found(store, "walrus", since=between) == ["late walrus"]
    assert "late walrus" not in await found(store, "walrus", before=EntryPlace("t", len(FILLER) + 2), k=100)
    assert await found(store, "walrus", since=between, before=EntryPlace("t", 2)) == []


async def test_neighbours_are_those_on_the_same_branch(store: Driver) -> None:
    await say(store, ["one", "two", "the old question", "the old answer"])
    await say(store, ["the walrus question", "the walrus answer"], parent=2)
    recaller = Recaller(store)
    around = {}
    for words in ("old question", "old answer", "walrus question", "walrus answer", "two"):
        hit = (await recaller.find(Question(words, MINE, neighbours=2, k=1, other_branches=True))).hits[0]
        around[hit.entry.text] = [entry.text for entry in hit.around]
    assert around == {
        "the old question": ["one", "two", "the old answer"],
        "the old answer": ["two", "the old question"],
        "the walrus question": ["one", "two", "the walrus answer"],
        "the walrus answer": ["two", "the walrus question"],
        "two": ["one", "the walrus question", "the walrus answer"],
    }


TALK = ["a", "b", "c", "the walrus sleeps", "the walrus eats a walrus", "d", "e", "f"]


@pytest.mark.parametrize(
    ("neighbours", "around"),
    [
        (0, [[], []]),
        (1, [["c", "d"], ["b", "e"]]),
        (2, [["b", "c", "d", "e"], ["a", "f"]]),
        (9, [["a", "b", "c", "d", "e", "f"], []]),
    ],
)
async def test_what_is_shown_once_gives_its_place_to_the_next_one(
    store: Driver, neighbours: int, around: list[list[str]]
) -> None:
    await say(store, TALK)
    hits = (await Recaller(store).find(Question("walrus eats", MINE, k=2, neighbours=neighbours))).hits
    assert [hit.entry.text for hit in hits] == ["the walrus eats a walrus", "the walrus sleeps"]
    assert [[entry.text for entry in hit.around] for hit in hits] == around


async def test_threads_of_a_user_have_their_own_neighbours(store: Driver) -> None:
    for thread_id in ("x", "y"):
        await say(
            store, [f"{word} {thread_id}" for word in ("a", "a walrus", "another walrus", "b")], thread_id=thread_id
        )
    hits = (await Recaller(store).find(Question("walrus", Scope("u"), k=4))).hits
    shown = {(hit.entry.text, *(entry.text for entry in hit.around)) for hit in hits}
    assert shown == {
        (f"{word} walrus {thread_id}", *beside)
        for thread_id in ("x", "y")
        for word, beside in (("a", (f"a {thread_id}", f"b {thread_id}")), ("another", ()))
    }


async def test_no_more_stands_around_a_hit_than_there_is(store: Driver) -> None:
    await say(store, ["one", "two", "the old question", "the old answer"])
    await say(store, ["the walrus question"], parent=2)
    await say(store, ["the end"], parent=4)
    recaller, around = Recaller(store), {}
    for words in ("walrus question", "old answer"):
        question = Question(words, MINE, neighbours=10**9, k=1, other_branches=True)
        [hit] = (await asyncio.wait_for(recaller.find(question), 10)).hits
        again = await recaller.entry(question, "t", hit.entry.id)
        assert again.around == hit.around
        around[hit.entry.text] = [entry.text for entry in hit.around]
    assert around == {
        "the walrus question": ["one", "two"],
        "the old answer": ["one", "two", "the old question", "the end"],
    }


async def test_what_the_model_sees_anyway_does_not_stand_around_a_hit(store: Driver) -> None:
    await say(store, ["one", "the walrus", "which walrus?", "this one"])
    asked = Question("walrus", MINE, k=1, neighbours=2, before=EntryPlace("t", 3))
    [hit] = (await Recaller(store).find(asked)).hits
    assert (hit.entry.text, [entry.text for entry in hit.around]) == ("the walrus", ["one"])


async def test_a_question_does_not_wait_long_for_what_is_not_indexed(
    store: Driver, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("a", "b"):
        await say(store, [f"the walrus of {name}"], thread_id=name)
    waiting, real = asyncio.Event(), indexer.index_thread

    async def slow(store_: Driver, thread_id: str) -> int:
        if thread_id == "b":
            await waiting.wait()
        return await real(store_, thread_id)

    monkeypatch.setattr(indexer, "index_thread", slow)
    monkeypatch.setattr(recalling, "CATCH_UP_SECONDS", 1.0)
    recaller = Recaller(store)
    recalled = await recaller.find(Question("walrus", Scope("u")))
    assert [hit.entry.text for hit in recalled.hits] == ["the walrus of a"]
    assert "goes on in the background" in recalled.warnings[0]
    waiting.set()
    await recaller.settle()
    recalled = await recaller.find(Question("walrus", Scope("u")))
    assert (len(recalled.hits), recalled.warnings) == (2, [])


async def test_neighbours_come_with_a_hit(store: Driver) -> None:
    await say(store, [f"line {number}" for number in range(9)] + ["the walrus"] + ["after"])
    hit = (await Recaller(store).find(Question("walrus", MINE, neighbours=2, k=1))).hits[0]
    assert [entry.text for entry in hit.around] == ["line 7", "line 8", "after"]


async def test_the_index_made_in_many_steps_finds_what_one_made_at_once_does(
    store: Driver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(indexer, "FULL", 64)
    texts = [f"entry {number} about {'abcdefghij'[number % 10] * 3} and {number // 7}" for number in range(150)]
    for at in range(0, len(texts), 3):
        await say(store, texts[at : at + 3])
        await index_thread(store, "t")
    async with store.reading() as tx:
        extents = await recall_index.extents(tx, "t")
    assert len(extents) < 25
    assert [extent.first for extent in extents] == [1, *(extent.last + 1 for extent in extents[:-1])]
    questions = ["ccc", "entry 42", "about 7 and jjj", "nothing of it"]
    in_steps = [await found(store, question, k=20) for question in questions]
    await drop_index(store, "t")
    assert [await found(store, question, k=20) for question in questions] == in_steps


async def test_two_who_index_at_once(store: Driver) -> None:
    await say(store, FILLER)
    await asyncio.gather(*(index_thread(store, "t") for _ in range(4)))
    async with store.reading() as tx:
        [extent] = await recall_index.extents(tx, "t")
    assert (extent.first, extent.last) == (1, len(FILLER))


@pytest.mark.parametrize("form", [0, TERMS, 100 + TERMS, indexer.INDEX_FORM - 1])
async def test_an_index_of_another_form_is_made_anew(store: Driver, plain: Plain, form: int) -> None:
    await say(store, ["the walrus"])
    await index_thread(store, "t")
    plain("UPDATE recall_segments SET form = ?", [form])
    plain("DELETE FROM recall_postings")
    assert await found(store, "walrus") == ["the walrus"]
    async with store.reading() as tx:
        assert [extent.form for extent in await recall_index.extents(tx, "t")] == [indexer.INDEX_FORM]


async def test_what_is_deleted_leaves_nothing_to_be_found(store: Driver) -> None:
    canary = "canary-4711"
    await say(store, [*FILLER, canary, *FILLER])
    await say(store, ["kept"], thread_id="other")
    recaller = Recaller(store, HashEmbedder())
    await recaller.prepare(Scope("u"))
    assert canary in repr(await all_of(store, derived=True))
    async with store.writing() as tx:
        await log.delete_thread(tx, "t", user_id="u")
    await recaller.prepare(Scope("u"))
    left = await all_of(store, derived=True)
    assert canary not in repr(left)
    of_threads = ("recall_segments", "recall_postings", "memory_vectors", "recall_signatures")
    assert {row["thread_id"] for name in of_threads for row in left[name]} == {"other"}
    assert await found(store, canary, Scope("u")) == []


async def test_a_canary_is_not_in_the_file(tmp_path: Path) -> None:
    path = tmp_path / "c.db"
    async with open_store(path) as store:
        await say(store, [*FILLER, "canary4711", *FILLER])
        await Recaller(store, HashEmbedder()).prepare(Scope("u"))
        async with store.writing() as tx:
            await log.delete_thread(tx, "t", user_id="u")
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    assert [file for file in tmp_path.iterdir() if b"canary4711" in file.read_bytes()] == []


async def test_what_retention_deletes_is_found_no_more_and_the_rest_still_is(store: Driver) -> None:
    await say(store, ["old walrus", *FILLER, "young walrus"])
    recaller = Recaller(store, HashEmbedder())
    await recaller.prepare(MINE)
    async with store.writing() as tx:
        await log.position(tx, "t")
        for query in _OF_ENTRIES:
            await tx.run(query, thread_id="t", cut=10)
        await tx.run("move_first_seq", thread_id="t", first_seq=10)
    assert "old walrus" not in repr(await all_of(store, derived=True))
    assert (await found(store, "walrus"))[0] == "young walrus"
    assert "old walrus" not in await found(store, "walrus", k=100)


class Broken(HashEmbedder):
    """An embedder whose server is gone."""

    async def documents(self, texts: Sequence[str]) -> vectors.Vectors:
        raise ConnectionError("no route to host")

    async def query(self, text: str) -> vectors.Vectors:
        raise ConnectionError("no route to host")


async def test_an_embedder_that_fails_is_done_without(store: Driver) -> None:
    await say(store, [*FILLER, "the walrus"])
    recaller = Recaller(store, Broken())
    [warning] = await recaller.prepare(MINE)
    assert "no route to host" in warning
    for _ in range(2):
        recalled = await recaller.find(Question("walrus", MINE))
        assert recalled.hits[0].entry.text == "the walrus"
        assert "keywords alone" in recalled.warnings[0]


async def test_meaning_finds_what_no_word_does(store: Driver) -> None:
    await say(store, [*FILLER, "the automobile", *FILLER])
    embedder = HashEmbedder(same={"car": "automobile"})
    recaller = Recaller(store, embedder)
    assert await found(store, "car") == []
    await recaller.prepare(MINE)
    recalled = await recaller.find(Question("car", MINE, k=1))
    assert (recalled.hits[0].entry.text, recalled.warnings) == ("the automobile", [])


def test_what_all_texts_have_in_common_for_an_embedder_does_not_count() -> None:
    words = [(EntryPlace("t", n), 10.0 - n) for n in range(1, 9)]
    near = [(EntryPlace("t", 200 - n), 0.8 - n / 300) for n in range(180)]
    biased = [(place, (value + 9) / 10) for place, value in near]
    plain = fuse(words, near)
    assert [place for place, _ in fuse(words, biased)][:20] == [place for place, _ in plain][:20]
    counts = dict(fuse([], biased))
    assert counts == pytest.approx(dict(fuse([], near)))
    assert counts[near[90][0]] < counts[near[45][0]] < counts[near[0][0]]


def test_among_texts_that_are_all_alike_the_nearest_counts_much_more_than_the_others() -> None:
    named, meant = EntryPlace("t", 500), EntryPlace("t", 700)
    near = [(meant, 0.95), *((EntryPlace("t", n), 0.9) for n in range(1, 200)), (named, 0.9)]
    words = [(named, 10.0), (meant, 9.0)]
    assert [place for place, _ in fuse(words, near)][:2] == [meant, named]
    assert dict(fuse([], near))[named] == 0


def test_what_is_near_counts_for_the_entry_beside_it_too_if_that_was_found() -> None:
    near = [(EntryPlace("t", 50), 0.9), *((EntryPlace("t", 2 * n), 0.1) for n in range(100, 150))]
    words = [(EntryPlace("t", n), 2.0) for n in (10, 51, 90)]
    assert [place.seq for place, _ in fuse(words, near)][:4] == [51, 10, 90, 50]


def test_what_keywords_find_is_found_with_an_embedder_too() -> None:
    words = [(EntryPlace("t", 1), 2.0), (EntryPlace("t", 5), 1.0)]
    assert [place for place, _ in fuse(words, [])] == [place for place, _ in words]
    near = [(EntryPlace("t", 9), 0.9), (EntryPlace("t", 1), 0.8)]
    assert {place for place, _ in fuse(words, near)} == {EntryPlace("t", n) for n in (1, 5, 9)}


def test_neither_the_scale_of_the_scores_nor_that_of_the_cosines_decides_the_order() -> None:
    words = [(EntryPlace("t", n), 20.0 / n) for n in range(1, 60)]
    near = [(EntryPlace("t", 7 * n % 61), 0.9 - n / 100) for n in range(1, 60)]
    order = [place for place, _ in fuse(words, near)]
    larger = [(place, 7 * value) for place, value in words]
    closer = [(place, value / 4 + 0.7) for place, value in near]
    assert [place for place, _ in fuse(larger, closer)][:40] == order[:40]


def test_of_one_entry_alone_the_meaning_counts_in_full() -> None:
    assert fuse([], [(EntryPlace("t", 1), 0.9)]) == [(EntryPlace("t", 1), pytest.approx(MEANING))]
    assert fuse([], [(EntryPlace("t", 1), -0.1)]) == []


async def test_vectors_of_another_model_are_replaced(store: Driver) -> None:
    await say(store, [*FILLER, "the automobile"])
    await Recaller(store, HashEmbedder(dims=8)).prepare(MINE)
    told: list[tuple[int, int]] = []
    other = HashEmbedder(dims=24, model="other", same={"car": "automobile"})
    await Recaller(store, other).prepare(MINE, lambda done, total: told.append((done, total)))
    assert told[-1] == (len(FILLER) + 1, len(FILLER) + 1)
    rows = (await all_of(store))["memory_vectors"]
    assert {(row["model"], len(row["embedding"])) for row in rows} == {("hash:other@24", 4 * 24)}
    assert len(rows) == len(FILLER) + 1
    hits: Sequence[Hit] = (await Recaller(store, other).find(Question("car", MINE, k=1))).hits
    assert hits[0].entry.text == "the automobile"


async def test_what_is_kept_up_in_the_background_is_there_afterwards(store: Driver) -> None:
    await say(store, FILLER)
    recaller = Recaller(store, HashEmbedder())
    recaller.keep_up(MINE)
    recaller.keep_up(MINE)
    await recaller.settle()
    assert len((await all_of(store))["memory_vectors"]) == len(FILLER)


async def test_what_is_stopped_in_the_background_is_made_up_for_later(store: Driver) -> None:
    await say(store, [*FILLER, "the walrus"])
    recaller = Recaller(store, HashEmbedder())
    recaller.keep_up(MINE)
    await recaller.close()
    assert (await found(store, "walrus"))[0] == "the walrus"
