"""The checkpointer: each message once in the log, edits as siblings, users apart, nothing left behind."""

from __future__ import annotations

import gc
import sqlite3
import weakref
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage
from langchain_core.runnables import RunnableConfig
from langgraph._internal._constants import INTERRUPT
from langgraph.checkpoint.base import empty_checkpoint
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.types import Command

from longthread.errors import StoreDamaged, ThreadNotFound, ThreadTaken
from longthread.langgraph.message_codec import message_of
from longthread.langgraph.saver import thread_cache
from longthread.langgraph.saver.async_saver import AsyncLongthreadSaver
from longthread.messages.fields import pack_body, unpack_body
from longthread.store import log
from longthread.store.driver import Driver
from longthread.store.open import open_store
from longthread.store.queries import Sql

Said = list[tuple[str, str]]


def human(message_id: str, text: str = "") -> HumanMessage:
    return HumanMessage(text or f"text of {message_id}", id=message_id)


def at(thread_id: str, ns: str = "") -> RunnableConfig:
    return {"configurable": {"thread_id": thread_id, "checkpoint_ns": ns}}


async def put(
    saver: AsyncLongthreadSaver, messages: Sequence[BaseMessage], *, thread_id: str = "t", ns: str = "", **channels: Any
) -> RunnableConfig:
    """Store a checkpoint as a graph does: every channel has a version, and all of them are new."""
    values = {**channels, "messages": list(messages)}
    versions: dict[str, str | int | float] = dict.fromkeys(values, saver.get_next_version(None, None))
    latest = await saver.aget_tuple(at(thread_id, ns))
    if latest is not None:
        before = latest.checkpoint["channel_versions"]
        versions = {name: saver.get_next_version(str(before.get(name, 0)), None) for name in values}
    checkpoint = {**empty_checkpoint(), "channel_values": values, "channel_versions": versions}
    return await saver.aput(at(thread_id, ns), checkpoint, {"source": "loop", "step": 1, "parents": {}}, versions)  # type: ignore[arg-type]


async def loaded(saver: AsyncLongthreadSaver, thread_id: str = "t", channel: str = "messages", ns: str = "") -> Any:
    found = await saver.aget_tuple(at(thread_id, ns))
    assert found is not None
    return found.checkpoint["channel_values"][channel]


async def on_branch(store: Driver, thread_id: str = "t", *, user_id: str = "default") -> Said:
    """What the branch that ends in the tip says."""
    async with store.reading() as tx:
        thread = await log.find_thread(tx, thread_id, user_id=user_id)
        entries = await log.branch(tx, thread_id, thread.tip)
    return said([message_of(entry) for entry in entries])


async def size(store: Driver, thread_id: str = "t") -> int:
    async with store.reading() as tx:
        return (await log.position(tx, thread_id))[1]


def said(messages: Sequence[BaseMessage]) -> Said:
    return [(message.id or "", str(message.text)) for message in messages]


def rows_in(path: Path, table: str) -> int:
    connection = sqlite3.connect(path)
    try:
        return int(connection.execute(f"SELECT count(*) FROM {table}").fetchone()[0])
    finally:
        connection.close()


class TestMessagesAreKept:
    async def test_the_same_message_is_kept_on_each_of_two_threads(self, store: Driver) -> None:
        saver, message = AsyncLongthreadSaver(store), human("m1")
        await put(saver, [message], thread_id="a")
        await put(saver, [human("x"), message], thread_id="b")
        assert await loaded(saver, "a") == [message]
        assert await loaded(saver, "b") == [human("x"), message]

    @pytest.mark.parametrize("through", ["saver", "log"])
    async def test_a_thread_is_begun_anew_after_it_was_deleted(self, store: Driver, through: str) -> None:
        saver, messages = AsyncLongthreadSaver(store), [human("m1"), human("m2")]
        await put(saver, messages)
        if through == "saver":
            await saver.adelete_thread("t")
        else:
            async with store.writing() as tx:
                await log.delete_thread(tx, "t", user_id="default")
        await put(saver, messages)
        assert await loaded(saver) == messages
        assert await size(store) == 2

    async def test_what_was_rolled_back_is_written_the_next_time(
        self, store: Driver, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        saver, message = AsyncLongthreadSaver(store), human("m1")

        async def fail(*_: Any) -> None:
            raise RuntimeError("disk full")

        with monkeypatch.context() as patch:
            patch.setattr("longthread.store.checkpoints.put", fail)
            with pytest.raises(RuntimeError, match="disk full"):
                await put(saver, [message])
        await put(saver, [message])
        assert await loaded(saver) == [message]

    async def test_a_message_changed_in_place_is_an_edit(self, store: Driver) -> None:
        saver, message = AsyncLongthreadSaver(store), human("m1")
        message.additional_kwargs["deep"] = {"n": 1}
        await put(saver, [message])
        message.additional_kwargs["deep"]["n"] = 2
        await put(saver, [message])
        [again] = await loaded(saver)
        assert again.additional_kwargs == {"deep": {"n": 2}}
        assert await size(store) == 2

    async def test_messages_that_are_loaded_and_put_again_write_nothing(self, store: Driver) -> None:
        messages = [human("m1"), AIMessage([{"type": "text", "text": "x"}], id="m2"), human("m3")]
        await put(AsyncLongthreadSaver(store), messages)
        await put(AsyncLongthreadSaver(store), await loaded(AsyncLongthreadSaver(store)))
        assert await size(store) == 3

    async def test_only_so_many_messages_are_remembered(self, store: Driver, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(thread_cache, "MESSAGES", 4)
        saver = AsyncLongthreadSaver(store)
        for n in range(5):
            await put(saver, [human("old"), human("m")], thread_id=f"t{n}")
            await put(saver, [human("m")], thread_id=f"t{n}")
        known = {f"t{n}": saver._cache.peek(f"t{n}").lists.items() for n in range(5)}
        sizes = {name: sum(len(kept) for _, kept in lists) for name, lists in known.items()}
        assert sizes == {"t0": 0, "t1": 0, "t2": 1, "t3": 1, "t4": 1}
        await saver.adelete_thread("t3")
        assert not saver._cache.peek("t3").lists
        for n in range(5):
            assert await loaded(saver, f"t{n}") == [human("m")] if n != 3 else await saver.aget_tuple(at("t3")) is None

    async def test_messages_that_are_known_are_not_looked_up(
        self, store: Driver, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        await put(AsyncLongthreadSaver(store), [human(f"m{n}") for n in range(3)])
        saver = AsyncLongthreadSaver(store)
        messages = await loaded(saver)
        asked: list[Any] = []

        async def find_entries(tx: Any, thread_id: str, ids: Any) -> dict[str, Any]:
            asked.extend(ids)
            return {}

        monkeypatch.setattr(log, "find_entries", find_entries)
        await put(saver, [*messages, human("new")])
        assert set(asked) <= {"new"}
        assert [key for key, _ in await on_branch(store)] == ["m0", "m1", "m2", "new"]


class TestEdits:
    async def test_a_graph_replaces_a_message_again_and_again(self, store: Driver) -> None:
        builder = StateGraph(MessagesState)
        builder.add_node("nothing", lambda state: {})
        builder.add_edge(START, "nothing")
        for text in ("one", "two", "three"):
            graph = builder.compile(checkpointer=AsyncLongthreadSaver(store))
            await graph.ainvoke({"messages": [human("m1", text)]}, at("t"))
            assert said((await graph.aget_state(at("t"))).values["messages"]) == [("m1", text)]
        assert await on_branch(store) == [("m1", "three")]
        assert await size(store) == 3

    @pytest.mark.parametrize("fresh", [False, True])
    async def test_the_same_edit_again_writes_nothing(self, store: Driver, fresh: bool) -> None:
        saver = AsyncLongthreadSaver(store)
        await put(saver, [human("m1"), human("m2")])
        for _ in range(3):
            saver = AsyncLongthreadSaver(store) if fresh else saver
            await put(saver, [human("m1"), human("m2", "edited")])
        assert await size(store) == 3
        assert said(await loaded(saver)) == await on_branch(store) == [("m1", "text of m1"), ("m2", "edited")]

    @pytest.mark.parametrize("fresh", [False, True])
    @pytest.mark.parametrize("edited", [0, 1, 2])
    async def test_the_branch_reads_like_the_edited_list_and_the_old_one_stays(
        self, store: Driver, edited: int, fresh: bool
    ) -> None:
        saver = AsyncLongthreadSaver(store)
        first: list[BaseMessage] = [human("m1"), human("m2"), human("m3")]
        old = await put(saver, first)
        second = [human(f"m{n + 1}", "edited") if n == edited else message for n, message in enumerate(first)]
        for _ in range(2):
            saver = AsyncLongthreadSaver(store) if fresh else saver
            await put(saver, second)
            assert await on_branch(store) == said(await loaded(saver)) == said(second)
        # The edit is one new entry, in the place of the first version; all others are shared.
        assert await size(store) == 3 + 1
        async with store.reading() as tx:
            assert said([message_of(e) for e in await log.branch(tx, "t", 3)]) == said(first)
        before = await saver.aget_tuple(old)
        assert before is not None
        assert before.checkpoint["channel_values"]["messages"] == first

    @pytest.mark.parametrize("fresh", [False, True])
    async def test_going_back_to_what_was_edited_finds_it(self, store: Driver, fresh: bool) -> None:
        saver = AsyncLongthreadSaver(store)
        first = [human("m1"), human("m2"), human("m3")]
        await put(saver, first)
        await put(saver, [human("m1", "edited"), *first[1:]])
        written = await size(store)
        saver = AsyncLongthreadSaver(store) if fresh else saver
        await put(saver, first)
        assert await on_branch(store) == said(first)
        assert await size(store) == written

    @pytest.mark.parametrize("fresh", [False, True])
    async def test_the_end_of_an_edited_list_stays_on_its_branch(self, store: Driver, fresh: bool) -> None:
        saver = AsyncLongthreadSaver(store)
        edited = [human("m1", "edited"), human("m2"), human("m3")]
        await put(saver, [human("m1"), human("m2"), human("m3")])
        await put(saver, edited)
        saver = AsyncLongthreadSaver(store) if fresh else saver
        await put(saver, edited[1:])
        assert said(await loaded(saver)) == said(edited[1:])
        assert await on_branch(store) == said(edited)

    async def test_the_first_message_of_a_window_is_edited_where_it_stands(self, store: Driver) -> None:
        messages = [human(f"m{n}") for n in range(5)]
        await put(AsyncLongthreadSaver(store), messages)
        window = [human("m3", "edited"), messages[4]]
        await put(AsyncLongthreadSaver(store), window)
        assert await on_branch(store) == said([*messages[:3], *window])

    async def test_a_lone_message_is_edited_where_it_stands(self, store: Driver) -> None:
        messages = [human(f"m{n}") for n in range(5)]
        await put(AsyncLongthreadSaver(store), messages)
        await put(AsyncLongthreadSaver(store), [human("m2", "edited")])
        assert await on_branch(store) == said([*messages[:2], human("m2", "edited")])

    async def test_an_edit_of_an_edited_branch_stays_on_it(self, store: Driver) -> None:
        first, again = human("m1", "edited"), human("m2", "edited too")
        await put(AsyncLongthreadSaver(store), [human("m1"), human("m2")])
        await put(AsyncLongthreadSaver(store), [first, human("m2")])
        await put(AsyncLongthreadSaver(store), [again])
        assert await on_branch(store) == said([first, again])

    async def test_messages_left_out_stay_on_the_branch_and_nothing_is_written(self, store: Driver) -> None:
        messages = [human(f"m{n}") for n in range(6)]
        await put(AsyncLongthreadSaver(store), messages)
        kept = [messages[0], *messages[4:]]
        await put(AsyncLongthreadSaver(store), kept)
        assert said(await loaded(AsyncLongthreadSaver(store))) == said(kept)
        assert await on_branch(store) == said(messages)
        assert await size(store) == 6

    async def test_a_shorter_list_moves_the_tip_back(self, store: Driver) -> None:
        saver, messages = AsyncLongthreadSaver(store), [human("m1"), human("m2"), human("m3")]
        await put(saver, messages)
        await put(saver, messages[:2])
        assert await on_branch(store) == said(messages[:2])
        await put(saver, [*messages[:2], human("other")])
        assert await on_branch(store) == said([*messages[:2], human("other")])


class TestOtherChannels:
    async def test_the_tip_is_the_conversations_alone(self, store: Driver) -> None:
        saver, messages = AsyncLongthreadSaver(store), [human("m1"), human("m2")]
        notes = [human("s1", "a note"), messages[0], human("s2")]
        for _ in range(2):
            await put(saver, messages, a_scratch=notes)
            assert await on_branch(store) == said(messages)
            assert said(await loaded(saver, channel="a_scratch")) == said(notes)
        await put(saver, [human("inner")], ns="child:1")
        assert await on_branch(store) == said(messages)
        assert await loaded(saver, ns="child:1") == [human("inner")]
        assert await size(store) == 5

    async def test_entries_shared_with_another_channel_have_their_messages_ids(self, store: Driver) -> None:
        saver, shared = AsyncLongthreadSaver(store), human("m2")
        await put(saver, [human("m1"), shared], a_scratch=[shared])
        async with store.reading() as tx:
            assert [entry.id for entry in await log.branch(tx, "t", 2)] == ["m1", "m2"]
        assert await size(store) == 2

    async def test_a_message_of_a_subgraph_joins_the_conversation(self, store: Driver) -> None:
        saver, inner = AsyncLongthreadSaver(store), [human("x1"), human("x2")]
        await put(saver, [human("m1")])
        await put(saver, inner, ns="child:1")
        await put(saver, [human("m1"), inner[1]])
        assert await on_branch(store) == said([human("m1"), inner[1]])
        assert await loaded(saver) == [human("m1"), inner[1]]


class TestUsers:
    async def test_another_users_thread_is_as_if_absent(self, store: Driver) -> None:
        mine, theirs = AsyncLongthreadSaver(store, user_id="u"), AsyncLongthreadSaver(store, user_id="v")
        config = await put(mine, [human("secret")])
        assert await theirs.aget_tuple(at("t")) is None
        assert await theirs.aget_tuple(config) is None
        assert [item async for item in theirs.alist(at("t"))] == []
        assert [item async for item in theirs.alist(None)] == []
        for _ in range(2):
            with pytest.raises(ThreadTaken):
                await theirs.aput_writes(config, [("messages", "forged")], "task")
        with pytest.raises(ThreadTaken, match="Give an id that is not in use"):
            await put(theirs, [human("forged")])
        await theirs.adelete_thread("t")
        found = await mine.aget_tuple(at("t"))
        assert found is not None
        assert found.checkpoint["channel_values"]["messages"] == [human("secret")]
        assert found.pending_writes == []

    async def test_a_listing_of_everything_holds_the_users_own(self, store: Driver) -> None:
        for user in ("u", "v"):
            await put(AsyncLongthreadSaver(store, user_id=user), [human("m")], thread_id=f"of {user}")
        items = [item async for item in AsyncLongthreadSaver(store, user_id="v").alist(None)]
        assert [item.config["configurable"]["thread_id"] for item in items] == ["of v"]

    async def test_a_thread_without_messages_has_its_owner_too(self, store: Driver) -> None:
        mine, theirs = AsyncLongthreadSaver(store, user_id="u"), AsyncLongthreadSaver(store, user_id="v")
        await put(mine, [], count=3)
        assert await loaded(mine, channel="count") == 3
        assert await theirs.aget_tuple(at("t")) is None
        with pytest.raises(ThreadTaken):
            await put(theirs, [], count=4)


class TestDeletion:
    async def test_a_late_write_leaves_nothing(self, tmp_path: Path) -> None:
        path = tmp_path / "c.db"
        async with open_store(path) as store:
            saver = AsyncLongthreadSaver(store)
            config = await put(saver, [human("m1")], count=1)
            await saver.aput_writes(config, [("count", 2)], "task")
            # A look into a namespace that has no checkpoint must not make the thread a new one.
            assert await saver.aget_tuple(at("t", "child")) is None
            async with store.writing() as tx:
                await log.delete_thread(tx, "t", user_id="default")
            with pytest.raises(ThreadNotFound):
                await saver.aput_writes(config, [("count", 3)], "task")
            for table in ("threads", "entries", "checkpoints", "checkpoint_blobs", "checkpoint_writes"):
                assert rows_in(path, table) == 0, table

    async def test_deleting_through_the_saver_leaves_nothing(self, tmp_path: Path) -> None:
        path = tmp_path / "c.db"
        async with open_store(path) as store:
            saver = AsyncLongthreadSaver(store)
            config = await put(saver, [human("m1", "canary-4711")], note="canary-4711")
            await saver.aput_writes(config, [("note", "canary-4711")], "task")
            await saver.adelete_thread("t")
            with pytest.raises(ThreadNotFound):
                await saver.aput_writes(config, [("note", "canary-4711")], "task")
        assert [file for file in tmp_path.iterdir() if b"canary-4711" in file.read_bytes()] == []

    async def test_a_graph_may_begin_with_a_command(self, store: Driver) -> None:
        builder = StateGraph(MessagesState)
        builder.add_node("nothing", lambda state: {})
        builder.add_edge(START, "nothing")
        graph = builder.compile(checkpointer=AsyncLongthreadSaver(store))
        await graph.ainvoke(Command(update={"messages": [human("m1")]}), at("t"), durability="sync")
        assert await on_branch(store) == [("m1", "text of m1")]


class TestMetadata:
    @pytest.mark.parametrize(
        ("metadata", "kept"),
        [
            ({"source": "loop", "step": 7, "parents": {}}, "7"),
            ({"source": "loop", "step": 0, "parents": {}}, "0"),
            ({"source": "loop", "step": -1, "parents": {}}, '{"source":"loop","step":-1,"parents":{}}'),
            ({"step": 7, "source": "loop", "parents": {}}, '{"step":7,"source":"loop","parents":{}}'),
            ({"source": "loop", "step": 7}, '{"source":"loop","step":7}'),
            ({"source": "loop", "step": "7", "parents": {}}, '{"source":"loop","step":"7","parents":{}}'),
            ({}, "{}"),
            ({"step": 2**70, "by": "Ana\n\x7fé"}, f'{{"step":{2**70},"by":"Ana\\n\x7fé"}}'),
            (
                {"step": 1, "share": 1e16, "scores": {"model": [0.5]}},
                '{"step":1,"share":1e+16,"scores":{"model":[0.5]}}',
            ),
        ],
    )
    async def test_what_nearly_all_say_is_kept_in_short(self, store: Driver, metadata: Any, kept: str) -> None:
        saver = AsyncLongthreadSaver(store)
        await saver.aput(at("t"), empty_checkpoint(), metadata, {})
        async with store.reading() as tx:
            [row] = await tx.fetch("select_newest_checkpoint", thread_id="t", ns="")
        assert row["metadata"] == kept
        [listed] = [found async for found in saver.alist(at("t"), filter=metadata)]
        found = await saver.aget_tuple(at("t"))
        assert found is not None
        assert list(found.metadata.items()) == list(listed.metadata.items()) == list(metadata.items())


async def test_messages_that_nobody_has_any_more_are_let_go(store: Driver) -> None:
    """What is remembered of a thread are the saver's own copies: it does not keep the caller's alive as well."""
    saver = AsyncLongthreadSaver(store)
    messages = [human(f"m{number}") for number in range(300)]
    first = weakref.ref(messages[0])
    await put(saver, messages)
    await put(saver, [*messages, human("more")])
    assert first() is messages[0]
    gc.collect()
    gc.disable()
    try:
        del messages
        assert first() is None
    finally:
        gc.enable()
    assert said(await loaded(saver))[-2:] == [("m299", "text of m299"), ("more", "text of more")]
    await put(saver, [*await loaded(saver), human("last")])
    assert await size(store) == 302


async def pending(saver: Any, where: RunnableConfig) -> Any:
    """What tasks have written, as it is read."""
    found = await saver.aget_tuple(where)
    assert found is not None
    return found.pending_writes


@pytest.mark.parametrize("where", ["in its checkpoint", "apart"])
async def test_of_what_a_task_says_twice_the_first_is_kept(store: Driver, where: str) -> None:
    found = []
    for saver in (InMemorySaver(), AsyncLongthreadSaver(store)):
        config = await saver.aput(at("t"), empty_checkpoint(), {}, {})
        ours: Any = (
            AsyncLongthreadSaver(store) if where == "apart" and isinstance(saver, AsyncLongthreadSaver) else saver
        )
        await ours.aput_writes(config, [("a", 1), (INTERRUPT, "one"), (INTERRUPT, "two")], "task")
        await ours.aput_writes(config, [("a", 2), ("b", 3), (INTERRUPT, "three"), ("c", 4)], "task")
        found.append([await pending(each, config) for each in (saver, ours)])
    found.append([await pending(AsyncLongthreadSaver(store), at("t"))] * 2)
    theirs, mine, cold = ([sorted(each) for each in states] for states in found)
    assert theirs == mine == cold
    assert ("task", "a", 1) in mine[0] and ("task", INTERRUPT, "three") in mine[0]


@pytest.mark.sampled(2)
@pytest.mark.parametrize("where", ["in its checkpoint", "apart"])
@pytest.mark.parametrize("size", [1, 3000])
async def test_a_checkpoint_that_is_put_again_keeps_what_was_written_to_it_and_later_ones_their_values(
    store: Driver, where: str, size: int
) -> None:
    def checkpoint(x: tuple[str, int], y: int = 0) -> Any:
        values = {"x": x[0] * size} | ({"y": y} if y else {})
        versions = {"x": x[1]} | ({"y": y} if y else {})
        return {**empty_checkpoint(), "channel_values": values, "channel_versions": versions}

    found = []
    for saver in (InMemorySaver(), AsyncLongthreadSaver(store)):
        ours: Any = (
            AsyncLongthreadSaver(store) if where == "apart" and isinstance(saver, AsyncLongthreadSaver) else saver
        )
        first = checkpoint(("a", 1))
        config = await saver.aput(at("t"), first, {}, {"x": 1})
        await ours.aput_writes(config, [("x", "written"), (INTERRUPT, "wait")], "task")
        later = await saver.aput(config, checkpoint(("a", 1), y=1), {}, {"y": 1})
        await ours.aput_writes(config, [("x", "said twice"), ("y", "later"), (INTERRUPT, "still")], "task")
        await saver.aput(at("t"), checkpoint(("b", 2)) | {"id": first["id"]}, {}, {"x": 2})
        await ours.aput_writes(config, [("x", "said again"), ("y", 1), ("z", "last")], "task")
        await ours.aput_writes(config, [("x", "another's")], "other task")
        last = await saver.aput(config, checkpoint(("b", 2), y=2), {}, {"y": 2})
        last = await saver.aput(last, checkpoint(("b", 2), y=3), {}, {"y": 3})
        readers: Any = (
            (saver, ours, AsyncLongthreadSaver(store)) if isinstance(saver, AsyncLongthreadSaver) else [saver] * 3
        )
        for reader in readers:
            tuples = [await reader.aget_tuple(each) for each in (config, later, last)]
            values = [each.checkpoint["channel_values"] for each in tuples]
            found.append((values, sorted(tuples[0].pending_writes)))
    assert found[:3] == found[3:]
    assert found[0][0][1]["x"] == "a" * size
    async with store.reading() as tx:
        for row in await tx.fetch(Sql("SELECT writes, body FROM checkpoints")):
            head, _ = unpack_body(bytes(row["body"]))
            assert row["writes"] == sum(len(items) for _, _, items in head.get("tasks", ()))


@pytest.mark.parametrize("size", [1, 3000])
async def test_the_newest_checkpoint_is_changed_where_it_stands(store: Driver, size: int) -> None:
    """Put under its own id, with its own config: the new values are there, for every reader."""
    saver = AsyncLongthreadSaver(store)
    written: Any = {**empty_checkpoint(), "channel_values": {"x": "card 4242" * size}, "channel_versions": {"x": 1}}
    config = await saver.aput(at("t"), written, {}, {"x": 1})
    changed = written | {"channel_values": {"x": "card ****" * size}, "channel_versions": {"x": 2}}
    await saver.aput(config, changed, {}, {"x": 2})
    for reader in saver, AsyncLongthreadSaver(store):
        found = await reader.aget_tuple(config)
        assert found is not None
        assert found.checkpoint["channel_values"] == {"x": "card ****" * size}


async def test_what_a_task_has_written_keeps_its_messages_id(store: Driver) -> None:
    saver = AsyncLongthreadSaver(store)
    before = await put(saver, [HumanMessage("q", id="q")])
    answer = AIMessage("an answer", id="as written")
    await saver.aput_writes(before, [("messages", [answer])], "task")
    answer.id = "given later"
    values = {"messages": [HumanMessage("q", id="q"), answer]}
    checkpoint: Any = {**empty_checkpoint(), "channel_values": values, "channel_versions": {"messages": 2}}
    await saver.aput(before, checkpoint, {"source": "loop", "step": 1, "parents": {}}, {"messages": 2})
    for each in (saver, AsyncLongthreadSaver(store)):
        [(_, _, [written])] = await pending(each, before)
        assert written.id == "as written"
        assert [message.id for message in await loaded(each)] == ["q", "given later"]


async def test_what_a_task_writes_late_is_not_for_a_thread_that_was_begun_anew(store: Driver) -> None:
    saver, other = AsyncLongthreadSaver(store), AsyncLongthreadSaver(store)
    before = await put(saver, [HumanMessage("q", id="q")])
    await other.adelete_thread("t")
    await put(other, [HumanMessage("another", id="q")])
    for task_id in ("task", "another"):
        with pytest.raises(ThreadNotFound):
            await saver.aput_writes(before, [("messages", [AIMessage("of the one before")])], task_id)
    async with store.reading() as tx:
        assert await tx.fetch(Sql("SELECT task_id FROM checkpoint_writes")) == []
    await put(saver, [HumanMessage("another", id="q"), AIMessage("gone on", id="a")])
    assert [message.text for message in await loaded(other)] == ["another", "gone on"]


async def test_a_list_with_fewer_items_than_places_is_told_as_damaged(store: Driver) -> None:
    first, second = HumanMessage("a", id="1"), HumanMessage("b", id="2")
    saver = AsyncLongthreadSaver(store)
    await put(saver, [first, second], other=[first, 1, second])
    await put(saver, [first, second], other=[first, 2, second])
    async with store.writing() as tx:
        [row] = await tx.fetch(Sql("SELECT n, body FROM checkpoints ORDER BY n DESC LIMIT 1"))
        head, parts = unpack_body(bytes(row["body"]))
        head["cells"]["other"][2][1][-1][0] += 1
        body = pack_body(head, [bytes(parts)])
        await tx.run(Sql("UPDATE checkpoints SET body = :body WHERE n = :n"), body=body, n=row["n"])
    with pytest.raises(StoreDamaged):
        await AsyncLongthreadSaver(store).aget_tuple(at("t"))


async def test_a_message_of_an_id_is_not_taken_for_one_that_has_more_fields(store: Driver) -> None:
    saver = AsyncLongthreadSaver(store)
    before = await put(saver, [])
    await saver.aput_writes(before, [("other", HumanMessage("q", id="q", mood="glad"))], "task")
    versions: Any = {"messages": 2}
    values = {"messages": [HumanMessage("q", id="q", mood="sad")]}
    checkpoint: Any = {**empty_checkpoint(), "channel_values": values, "channel_versions": versions}
    await saver.aput(before, checkpoint, {"source": "loop", "step": 1, "parents": {}}, versions)
    for each in (saver, AsyncLongthreadSaver(store)):
        [(_, _, message)] = await pending(each, before)
        assert message.mood == "glad"
        assert (await loaded(each))[0].mood == "sad"


async def test_what_a_run_is_called_with_is_in_the_metadata_of_its_checkpoints(store: Driver) -> None:
    called: RunnableConfig = {
        "configurable": {"thread_id": "t", "tenant": "a", "__hidden": "no"},
        "metadata": {"release": 7, "run_name": "nightly"},
    }
    found = []
    for saver in (InMemorySaver(), AsyncLongthreadSaver(store)):
        config: Any = {**called, "configurable": {**called["configurable"], "checkpoint_ns": ""}}
        await saver.aput(config, empty_checkpoint(), {"source": "input", "step": -1}, {})
        stored = await saver.aget_tuple(at("t"))
        assert stored is not None
        found.append(stored.metadata)
        listed = [each async for each in saver.alist(None, filter={"release": 7, "tenant": "a"})]
        assert len(listed) == 1
    assert found[1] == found[0]
