"""Topics of stretches: what is counted of them, and recall that is narrowed to them."""

from __future__ import annotations

from datetime import UTC, datetime

from tests.memory.conversations import MEMORY, SERVERS, SHOP
from tests.memory.talking import say
from tests.store.samples import all_of

from longthread.memory.recall import Question, Recaller
from longthread.memory.summary.pruning import PruningPolicy, prune_thread
from longthread.memory.summary.topics import STRETCH, ranges_of, stretches
from longthread.model.thread import Scope
from longthread.store import log, summaries
from longthread.store.driver import Driver
from longthread.store.maintenance.retention import _OF_ENTRIES
from longthread.store.summaries import Span
from longthread_testing.embedding import HashEmbedder

MINE = Scope("u", "t")
EARLY, LATE = "2026-05-01T10:00:00.000000+00:00", "2026-05-02T10:00:00.000000+00:00"


async def keep(store: Driver, *spans: Span, thread_id: str = "t") -> None:
    async with store.writing() as tx:
        await log.position(tx, thread_id)
        await summaries.add_topics(tx, thread_id, spans)


async def counted(store: Driver, thread_id: str = "t") -> list[tuple[str, int]]:
    async with store.reading() as tx:
        return await summaries.list_most_mentioned_topics(tx, thread_id, 20)


async def texts(store: Driver, question: Question, embedder: HashEmbedder | None = None) -> list[str]:
    recaller = Recaller(store, embedder)
    await recaller.prepare(question.scope)
    return [hit.entry.text for hit in (await recaller.find(question)).hits]


def test_stretches_are_of_nearly_equal_length() -> None:
    assert [len(part) for part in stretches(range(STRETCH * 2 + 1))] == [27, 27, 27]
    assert [len(part) for part in stretches(range(STRETCH))] == [STRETCH]
    assert list(stretches([])) == []


async def test_mentions_add_up_and_one_that_is_written_again_counts_once(store: Driver) -> None:
    await say(store, SERVERS)
    await keep(store, Span("nginx", 1, 4, 3, EARLY), Span("Redis", 1, 4, 2, EARLY))
    await keep(store, Span("nginx", 5, 8, 1, LATE))
    await keep(store, Span("nginx", 5, 8, 2, LATE))
    assert await counted(store) == [("nginx", 5), ("Redis", 2)]
    rows = {row["topic"]: row["last_seen_at"] for row in (await all_of(store))["memory_topics"]}
    assert {name: datetime.fromisoformat(seen).astimezone(UTC).day for name, seen in rows.items()} == {
        "nginx": 2,
        "Redis": 1,
    }
    async with store.writing() as tx:
        await log.position(tx, "t")
        await summaries.drop_topics(tx, "t")
    assert await counted(store) == []
    assert (await all_of(store))["memory_topic_spans"] == []


async def test_retention_takes_what_a_topic_was_found_in(store: Driver) -> None:
    await say(store, SERVERS)
    await keep(store, Span("gone", 1, 4, 3, EARLY), Span("both", 1, 4, 2, EARLY), Span("both", 5, 8, 5, LATE))
    async with store.writing() as tx:
        await log.position(tx, "t")
        for query in (*_OF_ENTRIES, "recount_topics"):
            await tx.run(query, thread_id="t", cut=5)
    assert await counted(store) == [("both", 5)]
    assert "gone" not in repr(await all_of(store))


async def test_a_deleted_thread_leaves_no_topic(store: Driver) -> None:
    await say(store, SERVERS)
    await keep(store, Span("canary-topic", 1, 4, 3, EARLY))
    async with store.writing() as tx:
        await log.delete_thread(tx, "t", user_id="u")
    assert "canary-topic" not in repr(await all_of(store, derived=True))


async def test_a_topic_narrows_what_is_found(store: Driver) -> None:
    await say(store, ["the limit is 5 now", "fine", "something else", "the limit is 7 now", "fine"])
    await keep(store, Span("Connection pool", 3, 5, 2, EARLY))
    for embedder in (None, HashEmbedder()):
        both = await texts(store, Question("the limit", MINE, k=9), embedder)
        assert {"the limit is 5 now", "the limit is 7 now"} <= set(both)
        found = await texts(store, Question("the limit", MINE, k=9, topic="connection  POOLS"), embedder)
        assert found[0] == "the limit is 7 now"
        assert "the limit is 5 now" not in found


async def test_a_topic_alone_is_looked_for_in_its_stretches(store: Driver) -> None:
    await say(store, ["nginx is fine", "what else?", "well, nginx was restarted", "good"])
    await keep(store, Span("nginx", 3, 4, 1, EARLY))
    assert (await texts(store, Question("", MINE, topic="nginx")))[0] == "well, nginx was restarted"
    assert "nginx is fine" not in await texts(store, Question("", MINE, topic="nginx"))


async def test_a_topic_that_no_stretch_is_about_is_looked_for_by_its_words(store: Driver) -> None:
    await say(store, ["nginx is fine", "what else?"])
    assert (await texts(store, Question("", MINE, k=1, topic="nginx"))) == ["nginx is fine"]
    assert (await texts(store, Question("fine", MINE, k=1, topic="nginx"))) == ["nginx is fine"]


async def test_topics_of_others_narrow_nothing(store: Driver) -> None:
    await say(store, ["one", "two"])
    await say(store, ["three", "four"], thread_id="t2")
    await say(store, ["five"], thread_id="theirs", user_id="v")
    for name in ("t", "t2", "theirs"):
        await keep(store, Span("nginx", 1, 1, 1, EARLY), thread_id=name)
    async with store.reading() as tx:
        assert await ranges_of(tx, MINE, "nginx") == {"t": [(1, 1)]}
        assert await ranges_of(tx, Scope("u"), "Nginx") == {"t": [(1, 1)], "t2": [(1, 1)]}
        assert await ranges_of(tx, Scope("u", "theirs"), "nginx") == {}
        assert await ranges_of(tx, Scope("u", agent_id="other"), "nginx") == {}


async def test_stretches_that_touch_are_one(store: Driver) -> None:
    await say(store, SERVERS)
    await keep(store, Span("nginx", 1, 3, 1, EARLY), Span("NGINX", 2, 5, 1, EARLY), Span("nginx", 7, 9, 1, EARLY))
    async with store.reading() as tx:
        assert await ranges_of(tx, MINE, "nginx") == {"t": [(1, 5), (7, 9)]}


async def test_time_and_topic_narrow_together_for_words_and_for_meaning(store: Driver) -> None:
    await say(store, ["old walrus", "x", "walrus in the middle", "y", "new walrus", "z"])
    async with store.reading() as tx:
        entries = await log.entries_at(tx, "t", [3, 5])
    middle, new = entries[3].created_at, entries[5].created_at
    await keep(store, Span("animals", 1, 3, 1, EARLY))
    for embedder in (None, HashEmbedder()):
        since = await texts(store, Question("walrus", MINE, k=9, since=middle), embedder)
        assert "old walrus" not in since
        assert {"walrus in the middle", "new walrus"} <= set(since)
        both = await texts(store, Question("walrus", MINE, k=9, since=middle, topic="animals"), embedder)
        assert both[0] == "walrus in the middle"
        assert not {"old walrus", "new walrus"} & set(both)
        until = await texts(store, Question("walrus", MINE, k=9, until=new), embedder)
        assert "new walrus" not in until


async def test_a_pass_says_which_stretch_is_about_what(store: Driver) -> None:
    said = [*SERVERS, *SHOP, *MEMORY]
    await say(store, [*said, "last question", "last answer"])
    policy = PruningPolicy(max_messages=4)
    await prune_thread(store, "t", policy)
    found = dict(await counted(store))
    assert {"connection pool", "churn rate", "数据库设计"} <= found.keys()
    async with store.reading() as tx:
        [(first, last)] = (await ranges_of(tx, MINE, "数据库设计"))["t"]
    assert first <= len(SERVERS) + len(SHOP) + 1
    assert last >= len(said) - 2
    assert (await texts(store, Question("缓存", MINE, k=1, topic="数据库设计")))[0] in MEMORY
