"""Memories: what says the same is one, and what is asked is found, by words and by meaning, in any language."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
import pytest
from tests.memory.talking import say
from tests.store.conftest import Plain

from longthread.errors import InvalidInput, MemoryNotFound, ThreadNotFound, TooManyMemories
from longthread.memory import user_memories as module
from longthread.memory.embedder import Asker
from longthread.memory.forget import forget_memory, forget_thread
from longthread.memory.index.ranking import Bag, score_bags
from longthread.memory.index.terms import find_telling_terms, weigh_terms
from longthread.memory.user_memories import Memories, fitting, said_of
from longthread.model.memory import ANALYST, MemorySource, Statement
from longthread.store.driver import Driver
from longthread.store.memories import Owner
from longthread_testing.embedding import HashEmbedder

pytestmark = pytest.mark.one_backend

OWNER = Owner("u", ANALYST)
FACTS = [
    "The user prefers metric units.",
    "Ann's sister moved to Lyon in May.",
    "我们把预算定为三万元。",
    "Deploys are done with make ship.",
    "The staging server is 10.1.2.3.",
]


async def told(store: Driver, *texts: str, asker: Asker | None = None, **how: Any) -> Memories:
    """Memories that say these texts."""
    memories = Memories(store, asker)
    for text in texts:
        await memories.remember(OWNER, Statement(text, **how))
    return memories


async def found(memories: Memories, text: str, owner: Owner = OWNER, **how: Any) -> list[str]:
    """What a search finds, the best first."""
    return [hit.memory.content for hit in (await memories.search(owner, text, **how)).hits]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("The user prefers metric units.", "the user prefers  metric\nunits"),
        ("我们把预算定为三万元。", "我们把预算定为三万元"),
        ("编号是ＡＢ－１２，密码是ｘ｡", "编号是AB-12,密码是x"),
        ("ｶﾞｽ代は五千円", "ガス代は五千円"),
        ("Caf\u00e9 Zwei is closed", "Cafe\u0301 Zwei is closed"),
    ],
)
def test_what_says_the_same(one: str, other: str) -> None:
    assert said_of(one) == said_of(other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("The staging server is 10.1.2.3.", "The staging server is 10.1.2.4."),
        ("Ann likes Bob", "Bob likes Ann"),
        ("use C", "use C++"),
        ("x = 5", "x != 5"),
        ("It is 1.5 m", "It is 15 m"),
        ("He may come", "He may not come"),
        ("三万元", "三十万元"),
        ("Logs are in /srv/Data", "Logs are in /srv/data"),
        ("/Srv is full", "/srv is full"),
        ("option A", "an option"),
        ("Password is Abc", "Password is ABC"),
        ("Abc", "abc"),
        ("ABC is the code", "abc is the code"),
        ("McDonald called", "mcDonald called"),
        ("Take 10² of them", "Take 102 of them"),
        ("Ann moved to the US", "Ann moved to us"),
        ("Ann has a new group", "Ann has a news group"),
        ("Greet with résumé", "Greet with resume"),
        ("The PIN is 12!", "The PIN is 12"),
        ("Is Ann away?", "Is Ann away."),
        ("Search in .", "Search in"),
        ("The folder is ..", "The folder is ."),
        ('Say "no"', "Say no"),
        ("The client is Polish", "The client is polish"),
    ],
)
def test_what_does_not_say_the_same(one: str, other: str) -> None:
    assert said_of(one) != said_of(other)


async def test_said_again_a_memory_has_the_newest_words(store: Driver) -> None:
    memories = await told(store, FACTS[0])
    soon = datetime.now(UTC) + timedelta(days=1)
    again = await memories.remember(OWNER, Statement("the user prefers metric units", "procedural", 0.8, soon))
    [memory] = await memories.list_(OWNER)
    assert not again.is_new
    assert (memory.content, memory.type, memory.importance) == ("the user prefers metric units", "procedural", 0.8)
    assert memory.expires_at == again.memory.expires_at == soon
    assert memory.created_at < soon


async def test_what_was_remembered_by_another_rule_is_said_again_and_not_twice(store: Driver, plain: Plain) -> None:
    memories = await told(store, "option A", FACTS[0])
    plain("UPDATE memories SET said = 'ab' || substr(said, 3, 30)")
    again = await memories.remember(OWNER, Statement("option  A", importance=0.9))
    assert not again.is_new
    assert (await memories.remember(OWNER, Statement("an option"))).is_new
    assert {memory.content for memory in await memories.list_(OWNER)} == {"option  A", "an option", FACTS[0]}
    assert plain("SELECT count(*) FROM memories WHERE said LIKE '2:%'") == [(3,)]


async def test_of_two_rows_that_say_the_same_one_is_said_again(store: Driver, plain: Plain) -> None:
    memories = await told(store, "one kite", "two kites")
    plain("UPDATE memories SET said = id, content = 'two kites' WHERE content = 'one kite'")
    assert not (await memories.remember(OWNER, Statement("two kites"))).is_new
    assert [memory.content for memory in await memories.list_(OWNER)] == ["two kites", "two kites"]


async def test_what_is_left_of_a_memory_is_told_apart_by_its_words(store: Driver, plain: Plain) -> None:
    memories = Memories(store)
    for thread_id in ("s", "t"):
        await say(store, ["hello"], thread_id=thread_id)
        await memories.remember(OWNER, Statement("option A", source=MemorySource(thread_id, (1,))))
    # As an earlier version did, which took the two for one.
    plain("UPDATE memory_sources SET content = 'an option' WHERE session_id = 's'")
    await forget_thread(store, "t", user_id="u")
    assert [memory.content for memory in await memories.list_(OWNER)] == ["an option"]
    assert (await memories.remember(OWNER, Statement("option A"))).is_new
    assert not (await memories.remember(OWNER, Statement("an option"))).is_new


async def test_what_is_asked_is_found_by_its_words(store: Driver) -> None:
    memories = await told(store, *FACTS)
    assert (await found(memories, "which units does the user prefer?"))[0] == FACTS[0]
    assert await found(memories, "预算是多少？") == [FACTS[2]]
    assert await found(memories, "where is 10.1.2.3") == [FACTS[4]]
    assert await found(memories, "how to deploy", k=1) == [FACTS[3]]
    assert await found(memories, "nothing of this") == []
    assert await found(memories, "") == []


async def test_of_equals_the_newest_comes_first_and_in_a_list_the_most_important(store: Driver) -> None:
    memories = Memories(store)
    for text, importance in (("red kite", 0.2), ("blue kite", 0.9), ("gray kite", 0.5)):
        await memories.remember(OWNER, Statement(text, importance=importance))
    assert await found(memories, "kite") == ["gray kite", "blue kite", "red kite"]
    assert [memory.content for memory in await memories.list_(OWNER)] == ["blue kite", "gray kite", "red kite"]


async def test_meaning_finds_what_words_do_not(store: Driver) -> None:
    asker = Asker(HashEmbedder(same={"wohnt": "live", "Schwester": "sister"}))
    memories = await told(store, *FACTS, "Her sister lives in Nice", asker=asker)
    assert await found(memories, "Schwester wohnt") == []
    assert await memories.embed("u") == []
    assert (await found(memories, "Schwester wohnt"))[0] == "Her sister lives in Nice"
    assert await found(Memories(store, Asker(HashEmbedder(model="other"))), "Schwester wohnt") == []


class Broken(HashEmbedder):
    async def query(self, text: str) -> Any:
        raise OSError("no route to host")

    async def documents(self, texts: Any) -> Any:
        raise OSError("no route to host")


async def test_an_embedder_that_fails_is_done_without(store: Driver) -> None:
    memories = await told(store, *FACTS, asker=Asker(HashEmbedder()))
    await memories.embed("u")
    broken = Memories(store, Asker(Broken()))
    result = await broken.search(OWNER, "metric units")
    assert result.hits[0].memory.content == FACTS[0]
    assert "does not work" in result.warnings[0]
    await told(store, "new", asker=Asker(Broken(model="x")))
    assert "did not work, and is not asked again" in (await broken.embed("u"))[0]
    assert "no route to host" in (await Memories(store, Asker(Broken())).embed("u"))[0]


async def test_a_vector_of_document_002s_size_is_in_its_column_too(store: Driver, plain: Plain) -> None:
    memories = await told(store, FACTS[0], asker=Asker(HashEmbedder(1536)))
    await memories.embed("u")
    assert plain("SELECT count(*) FROM memories WHERE embedding IS NOT NULL AND numbers IS NOT NULL") == [(1,)]
    again = Memories(store, Asker(HashEmbedder(3, model="small")))
    await again.embed("u")
    assert plain("SELECT count(*) FROM memories WHERE embedding IS NULL AND numbers IS NOT NULL") == [(1,)]


async def test_rows_written_by_others_are_found_and_are_their_sessions_users(store: Driver, plain: Plain) -> None:
    memories = await told(store, FACTS[0])
    await say(store, ["hello"], user_id="v")
    insert = "INSERT INTO memories (agent_id, session_id, content) VALUES (?, ?, ?)"
    plain(insert, [ANALYST, "t", "a kite of v's"])
    plain(insert, [ANALYST, None, "a kite of nobody's"])
    assert await found(memories, "kite", Owner("v")) == ["a kite of v's"]
    assert await found(memories, "kite", Owner("default")) == ["a kite of nobody's"]
    assert await found(memories, "kite") == []
    plain("UPDATE memories SET content = 'a changed kite' WHERE user_id = 'u'")
    assert await found(memories, "kite") == ["a changed kite"]
    assert await found(memories, "metric") == []


async def test_what_has_expired_may_be_said_anew(store: Driver) -> None:
    memories = Memories(store)
    soon = datetime.now(UTC) + timedelta(seconds=0.05)
    first = await memories.remember(OWNER, Statement("passing", expires_at=soon))
    await asyncio.sleep(0.1)
    assert await found(memories, "passing") == []
    again = await memories.remember(OWNER, Statement("passing"))
    assert again.is_new
    assert again.memory.id != first.memory.id
    with pytest.raises(InvalidInput, match="is over"):
        await memories.remember(OWNER, Statement("gone", expires_at=soon))


async def test_what_is_looked_after_in_the_background(store: Driver) -> None:
    memories = await told(store, FACTS[0], asker=Asker(HashEmbedder()))
    await memories.remember(OWNER, Statement("passing", expires_at=datetime.now(UTC) + timedelta(seconds=0.05)))
    await asyncio.sleep(0.1)
    memories.keep_up("u")
    memories.keep_up("u")
    await memories.settle()
    assert await memories.expire() == 0
    assert (await memories.search(OWNER, "metric")).hits[0].cosine > 0
    await memories.close()


@pytest.mark.parametrize(
    ("statement", "says"),
    [
        (Statement(" ?! "), "nothing to remember"),
        (Statement("x" * 2001), "at most 2,000"),
        (Statement("x", "working"), "none of episodic"),  # type: ignore[arg-type]
        (Statement("x", importance=1.1), "from 0 to 1"),
        (Statement("x", importance=float("nan")), "from 0 to 1"),
    ],
)
async def test_what_cannot_be_remembered_says_why(store: Driver, statement: Statement, says: str) -> None:
    with pytest.raises(InvalidInput, match=says):
        await Memories(store).remember(OWNER, statement)


@pytest.mark.parametrize("agent_id", ["a1", "", None, ANALYST.upper(), f"{{{ANALYST}}}", ANALYST.replace("-", "")])
async def test_a_memory_is_of_an_agent_that_has_a_uuid(store: Driver, agent_id: str | None) -> None:
    with pytest.raises(InvalidInput, match=f"give its UUID in small letters, such as {ANALYST}"):
        await Memories(store).remember(Owner("u", agent_id), Statement("x"))
    assert await Memories(store).list_(Owner("u")) == []


async def test_there_are_only_so_many(store: Driver, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST", 2)
    memories = await told(store, "one", "two", "one")
    with pytest.raises(TooManyMemories, match="2 memories"):
        await memories.remember(OWNER, Statement("three"))


async def test_what_has_expired_takes_nobodys_room(store: Driver, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST", 2)
    memories = await told(store, "one")
    await memories.remember(OWNER, Statement("passing", expires_at=datetime.now(UTC) + timedelta(seconds=0.05)))
    await asyncio.sleep(0.1)
    assert (await memories.remember(OWNER, Statement("three"))).is_new
    with pytest.raises(TooManyMemories, match="2 memories"):
        await memories.remember(OWNER, Statement("four"))


async def test_a_thread_that_is_not_the_users_is_no_source(store: Driver) -> None:
    await say(store, ["hello"], user_id="v")
    for thread_id in ("t", "none"):
        with pytest.raises(ThreadNotFound):
            await Memories(store).remember(OWNER, Statement("x", source=MemorySource(thread_id, (1,))))
    assert await Memories(store).list_(OWNER) == []


async def test_no_way_leads_to_another_users_memories(store: Driver) -> None:
    memories = await told(store, *FACTS, asker=Asker(HashEmbedder()))
    await memories.embed("u")
    [memory, *_] = await memories.list_(OWNER)
    other = Owner("v", ANALYST)
    assert await memories.list_(other) == []
    assert await found(memories, FACTS[0], other) == []
    assert await memories.that_say(other, "metric") == []
    assert await fitting(memories, other, FACTS[0]) == []
    with pytest.raises(MemoryNotFound):
        await forget_memory(store, memory.id, user_id="v")
    assert len(await memories.list_(OWNER)) == len(FACTS)


async def test_memories_with_another_agent_are_apart(store: Driver, plain: Plain) -> None:
    memories = await told(store, "a kite")
    other = Owner("u", "0192f0c1-5a0e-7cc3-98c4-dc0c0c07398f")
    await memories.remember(other, Statement("a kite"))
    assert len(await memories.list_(Owner("u"))) == 2
    assert len(await memories.list_(other)) == 1


async def test_only_what_fits_is_given(store: Driver) -> None:
    memories = await told(store, *FACTS)
    given = [memory.content for memory in await fitting(memories, OWNER, "What is the budget of the user's units?")]
    assert given == [FACTS[0]]
    assert await fitting(memories, OWNER, "How many of the rockets are there?") == []
    await memories.remember(OWNER, Statement("Answer in German.", "procedural", 0.95))
    assert [each.content for each in await fitting(memories, OWNER, "How many rockets?")] == ["Answer in German."]
    await memories.remember(OWNER, Statement("metric " * 280))
    assert sum(len(each.content) for each in await fitting(memories, OWNER, "metric units")) < 3000


@pytest.mark.parametrize(
    "question",
    [
        *("Show all orders.", "What does every customer like?", "When is shipping?"),
        *(
            "显示所有的订单",
            "发货是什么时候？",
            "列出全部订单",
            "給我看看訂單",
            "查询每个订单",
            "發貨的是誰？",
            "订单在哪里？",
        ),
    ],
)
async def test_words_that_every_question_has_make_no_memory_fit(store: Driver, question: str) -> None:
    said = ["Show totals in euros, all of them.", "Every audit is when Ann says.", "他希望显示合计，所有的都用欧元。"]
    memories = await told(store, *said, "审计什么时候做由她决定。", "全部结果给谁、是誰在哪里列出每个，看看，給我。")
    assert await fitting(memories, OWNER, question) == []


async def test_words_of_one_character_are_found(store: Driver) -> None:
    memories = await told(store, "用户的猫叫小白", "用户喜欢喝茶", "用户住在上海")
    assert await found(memories, "给猫买点东西") == ["用户的猫叫小白"]
    assert await found(memories, "茶") == ["用户喜欢喝茶"]


def test_terms_that_say_nothing_do_not_count() -> None:
    assert find_telling_terms("What is the staging server?") == ["stag", "server"]
    assert find_telling_terms("who are you") != []
    bags = {str(n): Bag.of(text) for n, text in enumerate(FACTS)}
    again = {name: Bag.read(bag.pack(), bag.words) for name, bag in bags.items()}
    assert score_bags(again, weigh_terms("staging server")) == score_bags(bags, weigh_terms("staging server"))
    assert score_bags({}, {"x": 1.0}) == {}
    assert np.all(np.diff(bags["0"].hashes.astype(object)) > 0)
