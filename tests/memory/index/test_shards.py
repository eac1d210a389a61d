"""What is asked of all of a user's threads: the same is found whether their index is put together or not."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from tests.memory.talking import say
from tests.store.conftest import Plain
from tests.store.samples import all_of

from longthread.memory.index import shards
from longthread.memory.index.indexer import index_all, index_thread
from longthread.memory.index.postings import INDEX_FORM
from longthread.memory.index.shards import SearchArea, ShardIndex, bind_user
from longthread.memory.keywords import EntryPlace
from longthread.memory.recall import Question, Recaller
from longthread.model.thread import Scope
from longthread.store import log, recall_index
from longthread.store.driver import Driver, Transaction
from longthread.store.maintenance.retention import _OF_ENTRIES
from longthread.store.queries import Sql

pytestmark = pytest.mark.one_backend

WORDS = ["harbour", "crane", "quay", "invoice", "valve", "港口", "起重机", "发票", "good", "morning"]
MINE = Scope("u")
QUESTIONS = ["the harbour crane and its invoice", "港口起重机 good morning", "nothing of it"]
TABLES = ("recall_volumes", "recall_volume_postings", "recall_bound", "recall_loose")


class Apart(ShardIndex):
    """Reads each thread by its own index."""

    async def area(self, tx: Transaction, scope: Scope, apart: str | None = None) -> SearchArea:
        return SearchArea(scope, await recall_index.threads_in(tx, scope, form=INDEX_FORM))


async def asked(recaller: Recaller, questions: Sequence[Question]) -> list[list[tuple[str, int, float]]]:
    found = [(await recaller.find(question)).hits for question in questions]
    return [[(hit.entry.thread_id, hit.entry.seq, hit.score) for hit in hits] for hits in found]


async def expect_the_same(store: Driver, questions: Sequence[Question]) -> list[list[tuple[str, int, float]]]:
    """What is found, which is the same as if every thread were read."""
    recaller, apart = Recaller(store), Recaller(store)
    apart._library = Apart()
    found = await asked(recaller, questions)
    assert found == await asked(apart, questions)
    await recaller.settle()
    await apart.settle()
    return found


def everything(**more: object) -> list[Question]:
    return [Question(text, MINE, k=40, **more) for text in QUESTIONS]  # type: ignore[arg-type]


async def threads(store: Driver, count: int, chance: random.Random, *, user_id: str = "u") -> list[str]:
    names = [f"{user_id}{number:02}" for number in range(count)]
    for name in names:
        await say(store, texts(chance), thread_id=name, user_id=user_id)
        await index_thread(store, name)
    return names


def texts(chance: random.Random) -> list[str]:
    return [" ".join(chance.choices(WORDS, k=chance.randint(1, 5))) for _ in range(chance.randint(1, 6))]


async def rows(store: Driver) -> dict[str, int]:
    there = await all_of(store, derived=True)
    return {name: len(there[name]) for name in TABLES}


async def test_the_same_is_found_whatever_happens_to_threads(store: Driver) -> None:
    chance = random.Random(1)
    names = await threads(store, 8, chance)
    await threads(store, 2, chance, user_id="v")
    await expect_the_same(store, everything())
    assert await bind_user(store, "u", least=2) == 8
    assert await rows(store) | {"recall_volume_postings": 1} == dict(zip(TABLES, (1, 1, 8, 2), strict=True))
    assert any(await expect_the_same(store, everything()))

    await say(store, texts(chance), thread_id=names[3])  # it goes on, and is not even indexed
    await expect_the_same(store, everything())
    await expect_the_same(store, everything(before=EntryPlace(names[5], 2)))
    assert (await rows(store))["recall_loose"] == 3

    async with store.writing() as tx:
        await log.delete_thread(tx, names[0], user_id="u")
    assert await rows(store) == dict(zip(TABLES, (0, 0, 0, 9), strict=True))
    await expect_the_same(store, everything())
    assert await bind_user(store, "u", least=2) == 7

    async with store.writing() as tx:  # retention takes the beginning of another
        await log.position(tx, names[7])
        for query in _OF_ENTRIES:
            await tx.run(query, thread_id=names[7], cut=2)
        await tx.run("move_first_seq", thread_id=names[7], first_seq=2)
    assert (await rows(store))["recall_volumes"] == 0
    found = await expect_the_same(store, everything())
    assert (names[7], 1) not in {hit[:2] for hits in found for hit in hits}


async def test_time_agents_and_threads_narrow_it(store: Driver) -> None:
    names = await threads(store, 6, random.Random(2))
    agents = ["0192f0c1-5a0e-7cc3-98c4-dc0c0c07398f", "0192f0c1-5a0e-7cc3-98c4-dc0c0c07398e"]
    async with store.writing() as tx:
        for number, name in enumerate(names[:4]):
            await tx.run(Sql("UPDATE threads SET agent_id = :agent WHERE id = :id"), agent=agents[number % 2], id=name)
    assert await bind_user(store, "u", least=2) == 6
    of_agent = [replace(question, scope=Scope("u", agent_id=agents[0])) for question in everything()]
    found = await expect_the_same(store, of_agent)
    assert {hit[0] for hits in found for hit in hits} == set(names[0:4:2])
    own = [replace(question, scope=Scope("u", names[1])) for question in everything()]
    assert {hit[0] for hits in await expect_the_same(store, own) for hit in hits} == {names[1]}
    later = datetime.now(UTC) + timedelta(hours=1)
    assert not any(await expect_the_same(store, everything(since=later)))
    assert any(await expect_the_same(store, everything(until=later)))
    assert any(await expect_the_same(store, [replace(question, topic="valve") for question in everything()]))


async def test_many_threads_are_put_together_behind_a_question_and_by_the_pass_over_all(
    store: Driver, monkeypatch: object
) -> None:
    monkeypatch.setattr(shards, "LEAST", 5)  # type: ignore[attr-defined]
    await threads(store, 4, random.Random(3))
    recaller = Recaller(store)
    await recaller.find(Question("harbour", MINE))
    await recaller.settle()
    assert (await rows(store))["recall_volumes"] == 0  # they are few
    for index in (False, True):
        for number in range(shards.LEAST):
            await say(store, ["the harbour"], thread_id=f"{index} {number}")
        if index:
            await index_all(store, None, lambda done, total, what: None)
        else:
            await recaller.find(Question("harbour", MINE))
            await recaller.settle()
        assert (await rows(store))["recall_loose"] == 0
    assert (await rows(store))["recall_volumes"] == 1  # what was small became one with the rest
    await expect_the_same(store, everything())


async def test_long_threads_stay_on_their_own_and_volumes_end(store: Driver, monkeypatch: object) -> None:
    monkeypatch.setattr(shards, "LONG", 10)  # type: ignore[attr-defined]
    monkeypatch.setattr(shards, "FULL", 16)  # type: ignore[attr-defined]
    await threads(store, 9, random.Random(4))
    await say(store, ["the harbour"] * 11, thread_id="long")
    await index_thread(store, "long")
    assert await bind_user(store, "u", least=2) == 9
    there = await rows(store)
    assert there["recall_volumes"] > 1
    assert there["recall_loose"] == 1
    await expect_the_same(store, everything())
    await say(store, ["another quay"], thread_id="u03")
    await index_thread(store, "u03")
    assert await bind_user(store, "u", least=1) >= 1  # only what it was in is made anew
    await expect_the_same(store, everything())


async def test_several_who_put_together_at_once_do_it_once(store: Driver) -> None:
    await threads(store, 5, random.Random(6))
    done = await asyncio.gather(*(bind_user(store, "u", least=2) for _ in range(4)))
    assert sum(done) >= 5
    await bind_user(store, "u", least=1)
    assert (await rows(store))["recall_bound"] == 5
    await expect_the_same(store, everything())


async def test_volumes_of_another_version_are_dropped(store: Driver, plain: Plain) -> None:
    await threads(store, 3, random.Random(7))
    assert await bind_user(store, "u", least=2) == 3
    plain("UPDATE recall_volumes SET form = 0")
    await expect_the_same(store, everything())
    assert await rows(store) == dict(zip(TABLES, (0, 0, 0, 3), strict=True))
