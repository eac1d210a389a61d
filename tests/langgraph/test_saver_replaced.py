"""A checkpoint that another saver has put again, or taken back and put again, is not what one remembers of it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import HumanMessage
from langgraph.checkpoint.base import empty_checkpoint
from langgraph.checkpoint.memory import InMemorySaver

from longthread.langgraph.saver.async_saver import AsyncLongthreadSaver
from longthread.langgraph.saver.retention import CheckpointKeeper
from longthread.store import checkpoints, recall_index
from longthread.store.driver import Driver
from longthread.store.maintenance import deletions as pruning
from longthread.store.maintenance.retention import Retention, RetentionPolicy
from longthread.store.open import open_store
from longthread.store.summaries import find_thread
from longthread.store.transfer.copy import copy_store
from longthread.store.vectors import find_mark

AT: Any = {"configurable": {"thread_id": "t", "checkpoint_ns": ""}}
IDS = [f"1f000000-0000-6000-8000-{number:012}" for number in range(9)]
MESSAGES = [HumanMessage("one", id="1"), HumanMessage("two", id="2")]
Replacing = Callable[[Any], Awaitable[None]]
Pruning = Callable[[Driver], Awaitable[None]]


def under(number: int) -> Any:
    return {"configurable": {**AT["configurable"], "checkpoint_id": IDS[number]}}


async def put(saver: Any, number: int, version: int, config: Any = AT, new: bool = True, **values: Any) -> None:
    versions: Any = dict.fromkeys(values, version)
    checkpoint: Any = empty_checkpoint() | {"id": IDS[number]}
    checkpoint |= {"channel_values": values, "channel_versions": versions}
    await saver.aput(config, checkpoint, {"run_id": "r"}, versions if new else {})


async def nothing(saver: Any) -> None:
    """It is put again where it is."""


async def prune(saver: Any) -> None:
    await saver.aprune(["t"], strategy="delete")


async def take_back(saver: Any) -> None:
    await saver.adelete_for_runs(["r"])


async def prune_all_but_the_newest(store: Driver) -> None:
    await AsyncLongthreadSaver(store).aprune(["t"])


async def retain_the_newest(store: Driver) -> None:
    """As `longthread db prune --apply` does."""
    await pruning.prune(store, Retention(RetentionPolicy(), CheckpointKeeper(), lambda owner: True), silent, apply=True)


def silent(done: int, total: int, what: str) -> None:
    """Tells nobody."""


async def seen(saver: Any) -> Any:
    found = [each async for each in saver.alist(AT)]
    return [
        (each.checkpoint["channel_values"], each.checkpoint["channel_versions"], sorted(each.pending_writes))
        for each in found
    ]


@pytest.mark.sampled(4)
@pytest.mark.parametrize("replacing", [nothing, prune, take_back])
@pytest.mark.parametrize("size", [1, 2000])
@pytest.mark.parametrize("looks", [True, False])
async def test_writes_and_children_are_of_what_is_there(
    store: Driver, second: Driver, replacing: Replacing, size: int, looks: bool
) -> None:
    mine, theirs = AsyncLongthreadSaver(store), AsyncLongthreadSaver(second)
    plain = InMemorySaver()
    await put(mine, 1, 1, x="one" * size, messages=MESSAGES)
    await replacing(theirs)
    for saver in (theirs, plain):
        await put(saver, 1, 2, x="two" * size, y=5, messages=MESSAGES[1:])
    if looks:
        await mine.aget_tuple(AT)
    for saver in (mine, plain):
        await saver.aput_writes(under(1), [("z", 1)], "task")
        await put(saver, 2, 2, under(1), new=False, x="two" * size, y=5, messages=MESSAGES[1:])
        await saver.aput_writes(under(2), [("z", 2)], "task")
    expected = await seen(plain)
    assert await seen(mine) == expected
    assert await seen(theirs) == expected
    assert await seen(AsyncLongthreadSaver(second)) == expected


@pytest.mark.parametrize("replacing", [nothing, prune, take_back])
async def test_a_child_has_no_value_of_before_even_at_the_same_version(
    store: Driver, second: Driver, replacing: Replacing
) -> None:
    mine, theirs = AsyncLongthreadSaver(store), AsyncLongthreadSaver(second)
    await put(mine, 1, 1, x="one")
    await replacing(theirs)
    await put(theirs, 1, 1, x="two")
    await put(mine, 2, 1, under(1), new=False, x="two")
    assert [values for values, *_ in await seen(theirs)] == [{"x": "two"}] * 2


async def test_what_was_not_the_newest_any_more_and_is_put_again_is_not_what_it_was(
    store: Driver, second: Driver
) -> None:
    mine, theirs = AsyncLongthreadSaver(store), AsyncLongthreadSaver(second)
    await put(mine, 1, 1, x="one")
    await put(theirs, 2, 2, x="other")
    await theirs.aprune(["t"])
    await put(theirs, 1, 1, x="two")
    await mine.aput_writes(under(1), [("z", 1)], "task")
    await put(mine, 3, 1, under(1), new=False, x="two")
    found = {each.config["configurable"]["checkpoint_id"]: each async for each in theirs.alist(AT)}
    assert {id_: each.checkpoint["channel_values"]["x"] for id_, each in found.items()} == {
        IDS[1]: "two",
        IDS[2]: "other",
        IDS[3]: "two",
    }
    assert found[IDS[1]].pending_writes == [("task", "z", 1)]


@pytest.mark.sampled(4)
@pytest.mark.parametrize(("before", "after"), [(1, 1), (2000, 1), (1, 2000)])
@pytest.mark.parametrize("looks", [True, False])
@pytest.mark.parametrize("pruned", [prune_all_but_the_newest, retain_the_newest])
async def test_a_subgraph_that_was_pruned_and_is_put_again_is_not_what_it_was(
    store: Driver, second: Driver, before: int, after: int, looks: bool, pruned: Pruning
) -> None:
    """All of its namespace goes with the root's checkpoint that it was called from, and its numbers begin anew."""
    sub = {"configurable": {**AT["configurable"], "checkpoint_ns": "sub:1"}}
    mine, theirs = AsyncLongthreadSaver(store), AsyncLongthreadSaver(second)
    await put(mine, 0, 1, a=1)
    called: Any = empty_checkpoint() | {"id": IDS[1], "channel_values": {"x": "one" * before}}
    called |= {"channel_versions": {"x": 1}}
    await mine.aput(sub, called, {"parents": {"": IDS[0]}}, {"x": 1})  # type: ignore[typeddict-item]
    await put(theirs, 2, 2, under(0), a=2)
    await pruned(second)
    assert await theirs.aget_tuple(sub) is None
    again = called | {"channel_values": {"x": "two" * after}}
    await theirs.aput(sub, again, {"parents": {"": IDS[2]}}, {"x": 1})  # type: ignore[typeddict-item]
    if looks:
        await mine.aget_tuple(sub)
    here: Any = {"configurable": {**sub["configurable"], "checkpoint_id": IDS[1]}}
    await mine.aput_writes(here, [("z", 1)], "task")
    await mine.aput(here, again | {"id": IDS[3]}, {"parents": {"": IDS[2]}}, {})  # type: ignore[typeddict-item]
    found = [(each.checkpoint["channel_values"], each.pending_writes) async for each in theirs.alist(sub)]
    assert found == [({"x": "two" * after}, []), ({"x": "two" * after}, [("task", "z", 1)])]


async def test_what_a_copy_brought_up_to_date_is_not_what_it_was(store: Driver, second: Driver, tmp_path: Path) -> None:
    mine = AsyncLongthreadSaver(store)
    await put(mine, 1, 1, x="one")
    async with open_store(tmp_path / "copy.db") as copy:
        await copy_store(store, copy, silent)
        await put(AsyncLongthreadSaver(copy), 1, 2, x="two", y=5)
        assert (await copy_store(copy, second, silent, update=True)).updated == 1
    await mine.aput_writes(under(1), [("z", 1)], "task")
    expected = [({"x": "two", "y": 5}, {"x": 2, "y": 2}, [("task", "z", 1)])]
    assert await seen(mine) == await seen(AsyncLongthreadSaver(second)) == expected


async def test_what_is_indexed_of_a_thread_stays_as_it_is_when_checkpoints_are_replaced(store: Driver) -> None:
    async with store.writing() as tx:
        thread = await checkpoints.lock(tx, "t", user_id="default", create=True)
        assert thread is not None
        before = await recall_index.birth_id(tx, "t"), await find_thread(tx, "t"), await find_mark(tx, "t", "model")
        await checkpoints.renew(tx, thread)
        after = await recall_index.birth_id(tx, "t"), await find_thread(tx, "t"), await find_mark(tx, "t", "model")
    assert before == after
    assert None not in before


async def test_who_puts_a_checkpoint_again_goes_on_knowing_the_thread(store: Driver) -> None:
    saver = AsyncLongthreadSaver(store)
    await put(saver, 1, 1, x="one", messages=MESSAGES)
    held = (await saver.aget_tuple(AT) or pytest.fail()).checkpoint["channel_values"]["messages"]
    await put(saver, 1, 2, x="two", messages=held)
    async with store.reading() as tx:
        thread = await checkpoints.lock(tx, "t", user_id="default")
    known = saver._cache.peek("t")
    assert thread is not None
    assert (known.thread, known.incarnation) == (thread, thread.incarnation)
    assert len(known.lists) == 1
    await saver.aput_writes(under(1), [("z", 1)], "task")
    assert [(values["x"], writes) for values, _, writes in await seen(saver)] == [("two", [("task", "z", 1)])]


@pytest.mark.parametrize("size", [1, 2000])
@pytest.mark.parametrize("remembers", [True, False])
async def test_a_checkpoint_that_is_put_again_may_go_on_from_itself(
    store: Driver, second: Driver, size: int, remembers: bool
) -> None:
    mine, theirs = AsyncLongthreadSaver(store), AsyncLongthreadSaver(second)
    await put(mine, 1, 1, x="one" * size)
    await put(mine if remembers else theirs, 1, 1, under(1), new=False, x="one" * size)
    assert [values for values, *_ in await seen(theirs)] == [{"x": "one" * size}]
    await put(mine, 2, 1, under(1), new=False, x="one" * size)
    assert [values for values, *_ in await seen(theirs)] == [{"x": "one" * size}] * 2


@pytest.mark.parametrize("changes", [True, False])
@pytest.mark.parametrize("remembers", [True, False])
async def test_a_checkpoint_that_is_put_again_may_go_on_from_a_later_one_that_goes(
    store: Driver, second: Driver, changes: bool, remembers: bool
) -> None:
    """The number of the later one, which had stored its value apart, is given out again."""
    mine, theirs = AsyncLongthreadSaver(store), AsyncLongthreadSaver(second)
    await put(mine, 1, 1, x="one")
    await put(mine, 2, 2, under(1), x="two" * 2000)
    await put(mine if remembers else theirs, 1, 2, under(2), new=False, x="two" * 2000)
    async with second.writing() as tx:
        gone = await checkpoints.find(tx, "t", "", IDS[2])
        assert gone is not None
        await checkpoints.delete(tx, [gone])
        await checkpoints.tidy(tx, "t", "", set())
    last = "new" * 2000 if changes else "two" * 2000
    await put(mine, 3, 2 + changes, under(1), new=changes, x=last)
    expected = [{"x": last}, {"x": "two" * 2000}]
    assert [values for values, *_ in await seen(theirs)] == expected
    assert [values for values, *_ in await seen(mine)] == expected


@pytest.mark.parametrize("pruned", [prune_all_but_the_newest, retain_the_newest])
async def test_messages_are_still_known_when_subgraphs_are_pruned(
    store: Driver, second: Driver, pruned: Pruning
) -> None:
    sub = {"configurable": {**AT["configurable"], "checkpoint_ns": "sub:1"}}
    mine = AsyncLongthreadSaver(store)
    await put(mine, 0, 1, messages=MESSAGES)
    called: Any = empty_checkpoint() | {"id": IDS[1]}
    await mine.aput(sub, called, {"parents": {"": IDS[0]}}, {})  # type: ignore[typeddict-item]
    await put(mine, 2, 2, under(0), messages=MESSAGES)
    before = mine._cache.peek("t")
    assert await mine.aget_tuple(sub) is not None
    await pruned(second)
    assert await mine.aget_tuple(sub) is None
    after = mine._cache.peek("t")
    assert {ns for ns, _ in before.newest.items()} == {"", "sub:1"}
    assert not after.newest
    assert after.lists.peek(("", "messages")) is before.lists.peek(("", "messages")) is not None
    await put(mine, 3, 3, under(2), messages=[*MESSAGES, HumanMessage("three", id="3")])
    assert [len(values["messages"]) for values, *_ in await seen(AsyncLongthreadSaver(second))] == [3, 2]


@pytest.mark.parametrize("has", [True, False])
async def test_all_is_looked_at_anew_only_where_something_is_gone(store: Driver, has: bool) -> None:
    saver = AsyncLongthreadSaver(store)
    async with store.writing() as tx:
        before = await checkpoints.lock(tx, "t", user_id="default", create=True)
    if has:
        await put(saver, 1, 1, x="one")
    await prune(saver)
    async with store.reading() as tx:
        after = await checkpoints.lock(tx, "t", user_id="default")
    assert before is not None and after is not None
    assert (after.incarnation == before.incarnation) is not has
