"""Tags, metadata and expiry: only their user reads them, and they are deleted with the thread."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest
from tests.contract.base import USER, Contract, extend, rows_of, thread_with
from tests.contract.recall import silent
from tests.contract.runs import dead

from longthread.errors import EntryNotFound, InvalidInput, ThreadNotFound
from longthread.langgraph.saver.retention import CheckpointKeeper
from longthread.langgraph.saver.saver import LongthreadSaver
from longthread.model.entry import Draft
from longthread.model.thread import Archived, Feedback, Thread
from longthread.store import attributes, listing, log
from longthread.store.driver import Driver, Transaction
from longthread.store.maintenance.deletions import prune
from longthread.store.maintenance.retention import Retention, RetentionPolicy

LATER = datetime(2040, 5, 8, 12, tzinfo=UTC)


async def noted(store: Driver, thread_id: str = "t") -> Thread:
    async with store.reading() as tx:
        return await log.find_thread(tx, thread_id, user_id=USER)


async def of_messages(store: Driver, thread_id: str = "t") -> dict[int, Mapping[str, Any]]:
    async with store.reading() as tx:
        return await attributes.message_metadata(tx, thread_id, first=1, last=99)


async def note(store: Driver) -> None:
    await thread_with(store, "a", "b")
    before = await noted(store)
    async with store.writing() as tx:
        await attributes.set_tags(tx, "t", ["航天", "weekly"], user_id=USER)
        await attributes.set_metadata(tx, "t", {"team": "数据", "n": 1}, user_id=USER)
        await attributes.set_message_metadata(tx, "t", "b", {"rating": 5}, user_id=USER)
        after = await attributes.set_expiry(tx, "t", LATER, user_id=USER)
    assert after.updated_at == before.updated_at


async def _ids(tx: Transaction, **among: Any) -> list[str]:
    return sorted(thread.id for thread in await listing.list_threads(tx, user_id=USER, **among))


class AttributeContract(Contract):
    """`longthread.store.attributes`."""

    async def test_a_status_holds_for_its_user_alone(self, store: Driver) -> None:
        for name in ("t", "other"):
            await thread_with(store, "a", thread_id=name)
        async with store.writing() as tx:
            with pytest.raises(ThreadNotFound):
                await attributes.set_status(tx, "t", "failed", user_id="other")
            await attributes.set_status(tx, "t", "completed", user_id=USER)
            assert await attributes.statuses(tx, ["t", "other", "none"]) == {"t": "completed", "other": "active"}

    async def test_archived_threads_are_listed_and_found_where_they_are_asked_for(self, store: Driver) -> None:
        await thread_with(store, "a", thread_id="shown")
        await thread_with(store, "a")
        async with store.writing() as tx:
            before = await log.find_thread(tx, "t", user_id=USER)
            with pytest.raises(ThreadNotFound):
                await attributes.set_archived(tx, "t", True, user_id="other")
            archived = await attributes.set_archived(tx, "t", True, user_id=USER)
            assert archived == await attributes.set_archived(tx, "t", True, user_id=USER), "since the first time"
            assert (before.archived_at, archived.updated_at) == (None, before.updated_at)
            assert archived.archived_at is not None
        expected: dict[Archived, list[str]] = {"exclude": ["shown"], "include": ["shown", "t"], "only": ["t"]}
        async with store.reading() as tx:
            for among, ids in expected.items():
                listed = await listing.list_threads(tx, user_id=USER, archived=among)
                found = await listing.search_threads(tx, "text", user_id=USER, archived=among)
                assert sorted(t.id for t in listed) == sorted(t.id for t, _ in found) == ids
            assert await listing.last_thread(tx, user_id=USER) == "t"
        async with store.writing() as tx:
            back = await attributes.set_archived(tx, "t", False, user_id=USER)
        assert back == before

    async def test_what_is_noted_is_read_and_is_no_activity(self, store: Driver) -> None:
        await note(store)
        found = await noted(store)
        assert (found.tags, found.metadata) == (("航天", "weekly"), {"team": "数据", "n": 1})
        assert found.expires_at == LATER
        assert await of_messages(store) == {2: {"rating": 5}}
        async with store.writing() as tx:
            again = await attributes.set_expiry(tx, "t", None, user_id=USER)
        assert (again.expires_at, again.updated_at) == (None, found.updated_at)
        with pytest.raises(InvalidInput, match="a year from 1 to 9999"):
            async with store.writing() as tx:
                late = datetime.max.replace(tzinfo=timezone(timedelta(hours=-1)))
                await attributes.set_expiry(tx, "t", late, user_id=USER)

    async def test_pinned_threads_and_those_with_a_tag_are_listed_alone(self, store: Driver) -> None:
        for name in ("plain", "t", "both"):
            await thread_with(store, "a", thread_id=name)
        async with store.writing() as tx:
            before = await log.find_thread(tx, "t", user_id=USER)
            await attributes.set_metadata(tx, "plain", {"about": '"longthread.pinned_at"'}, user_id=USER)
            await attributes.set_tags(tx, "both", ['a]b"c', "航天"], user_id=USER)
            await attributes.set_tags(tx, "plain", ["航天器"], user_id=USER)
            with pytest.raises(ThreadNotFound):
                await attributes.set_pinned(tx, "t", True, user_id="other")
            for name in ("t", "both"):
                pinned = await attributes.set_pinned(tx, name, True, user_id=USER)
                assert pinned == await attributes.set_pinned(tx, name, True, user_id=USER), "since the first time"
                assert pinned.pinned_at is not None and pinned.updated_at >= before.updated_at
            changed = await attributes.set_metadata(tx, "t", {"x": 1}, user_id=USER)
            assert (changed.metadata, changed.pinned_at is None) == ({"x": 1}, False), "a pin is no key of people's"
        async with store.reading() as tx:
            assert await _ids(tx, pinned=True) == ["both", "t"]
            assert await _ids(tx, tag="航天") == await _ids(tx, tag='a]b"c') == ["both"]
            assert await _ids(tx, tag="b") == await _ids(tx, tag="航") == []
            assert await listing.tags(tx, user_id=USER) == [('a]b"c', 1), ("航天", 1), ("航天器", 1)]
            assert await listing.tags(tx, user_id="other") == []
            found = await listing.search_threads(tx, "航天", user_id=USER)
            assert sorted((t.id, hit.entry) for t, hit in found) == [("both", None), ("plain", None)]
            found = await listing.search_threads(tx, "航天", user_id=USER, tag="航天器")
            assert [t.id for t, _ in found] == ["plain"]
        async with store.writing() as tx:
            await attributes.set_pinned(tx, "both", False, user_id=USER)
            await attributes.set_archived(tx, "both", True, user_id=USER)
            assert await _ids(tx, pinned=True) == ["t"]
            assert [tag for tag, _ in await listing.tags(tx, user_id=USER)] == ["航天器"]
            assert await _ids(tx, tag="航天") == []

    async def test_an_own_title_is_known_as_such(self, store: Driver) -> None:
        await note(store)
        async with store.writing() as tx:
            await log.rename_thread(tx, "t", "a person's", user_id=USER)
            thread = await log.find_thread(tx, "t", user_id=USER)
            given = await attributes.replace_own_title(tx, thread, "运载火箭")
        assert (given.title, given.titled) == ("运载火箭", "运载火箭")
        assert (given.metadata, given.updated_at) == (thread.metadata, thread.updated_at)
        async with store.writing() as tx:
            await log.rename_thread(tx, "t", "a person's", user_id=USER)
        renamed = await noted(store)
        assert (renamed.title, renamed.titled) == ("a person's", "运载火箭")

    async def test_opinions_of_answers_are_kept_changed_and_taken_back(self, store: Driver) -> None:
        await thread_with(store, "q", thread_id="other")
        for name in ("t", "later"):
            await thread_with(store, f"q {name}", thread_id=name)
            drafts = [Draft(f"{name} {n}", "assistant", f"answer {n}") for n in range(2)]
            await extend(store, *drafts, thread_id=name)
        up = Feedback("up", datetime(2026, 5, 8, tzinfo=UTC), "就是它 “yes”")
        down = Feedback("down", datetime(2026, 5, 9, tzinfo=UTC))
        async with store.writing() as tx:
            before = await log.find_thread(tx, "t", user_id=USER)
            for name, entry, given in (
                ("t", "t 0", down),
                ("t", "t 0", up),
                ("t", "t 1", down),
                ("later", "later 1", up),
            ):
                await attributes.set_feedback(tx, name, entry, given, user_id=USER)
            await attributes.set_message_metadata(tx, "t", "t 0", {"x": 1}, user_id=USER)
            another = {"app": {"longthread.feedback": 1}}
            await attributes.set_message_metadata(tx, "later", "later 0", another, user_id=USER)
            for wrong in (
                attributes.set_feedback(tx, "t", "q t", up, user_id=USER),
                attributes.set_feedback(tx, "t", "t 0", replace(up, text="x" * 2_001), user_id=USER),
            ):
                with pytest.raises(InvalidInput, match="answer"):
                    await wrong
        async with store.reading() as tx:
            assert await log.find_thread(tx, "t", user_id=USER) == before
            found = await listing.judged_answers(tx, user_id=USER, limit=9)
            assert [(e.id, f) for e, f in found] == [("later 1", up), ("t 1", down), ("t 0", up)]
            last, _ = found[0]
            after = (last.created_at.isoformat(timespec="microseconds"), last.id)
            assert await listing.judged_answers(tx, user_id=USER, limit=1, before=after) == found[1:2]
            assert await listing.judged_answers(tx, user_id=USER, limit=2) == found[:2], "nor are they too few"
            assert await listing.judged_answers(tx, user_id=USER, limit=9, thread_id="t") == found[1:]
            assert await listing.judged_answers(tx, user_id="other", limit=9) == []
        assert await of_messages(store) == {2: {"x": 1}}, "an opinion is no key of people's"
        async with store.writing() as tx:
            await attributes.set_feedback(tx, "t", "t 1", None, user_id=USER)
            with pytest.raises(ThreadNotFound):
                await attributes.set_feedback(tx, "t", "t 0", None, user_id="other")
            kept = await listing.judged_answers(tx, user_id=USER, limit=9, thread_id="t")
        assert [(e.id, f) for e, f in kept] == [("t 0", up)]

    async def test_longthreads_own_keys_are_not_set_as_metadata(self, store: Driver) -> None:
        await note(store)
        before = await noted(store), await of_messages(store)
        for set_ in (
            lambda tx: attributes.set_metadata(tx, "t", {"longthread.pinned_at": "x"}, user_id=USER),
            lambda tx: attributes.set_message_metadata(tx, "t", "b", {"longthread.feedback": None}, user_id=USER),
        ):
            with pytest.raises(InvalidInput, match="Choose another name"):
                async with store.writing() as tx:
                    await set_(tx)
        assert (await noted(store), await of_messages(store)) == before

    async def test_tags_are_added_and_taken_away_each_once(self, store: Driver) -> None:
        await note(store)
        async with store.writing() as tx:
            changed = await attributes.change_tags(
                tx, "t", add=[" new ", "weekly", "new"], remove=["航天", "no such"], user_id=USER
            )
            assert changed.tags == ("weekly", "new")
            for wrong in (" ", "x" * 101):
                with pytest.raises(InvalidInput, match="tag"):
                    await attributes.change_tags(tx, "t", add=[wrong], user_id=USER)
            with pytest.raises(InvalidInput, match="100"):
                await attributes.set_tags(tx, "t", map(str, range(101)), user_id=USER)
        assert (await noted(store)).tags == ("weekly", "new")

    async def test_metadata_is_changed_key_by_key(self, store: Driver) -> None:
        await note(store)
        values = {"n": None, "deep": {"a": [1, None, 2.5], "null": None}, 'k"ey.键': True}
        async with store.writing() as tx:
            changed = await attributes.set_metadata(tx, "t", values, user_id=USER)
            message = await attributes.set_message_metadata(tx, "t", "b", {**values, "rating": None}, user_id=USER)
            for wrong in ({"x": float("nan")}, {"x": object()}, {"x": "y" * 70_000}):
                with pytest.raises(InvalidInput, match="Metadata"):
                    await attributes.set_metadata(tx, "t", wrong, user_id=USER)
                with pytest.raises(InvalidInput, match="Metadata"):
                    await attributes.set_message_metadata(tx, "t", "a", wrong, user_id=USER)
        kept = {"deep": {"a": [1, None, 2.5], "null": None}, 'k"ey.键': True}
        assert changed.metadata == (await noted(store)).metadata == {"team": "数据", **kept}
        assert message == (await of_messages(store))[2] == kept

    async def test_only_its_user_notes_something_about_a_thread(self, store: Driver) -> None:
        await note(store)
        before = await noted(store), await of_messages(store)
        attempts: list[Callable[[Transaction], Awaitable[Any]]] = [
            lambda tx: attributes.set_tags(tx, "t", ["x"], user_id="other"),
            lambda tx: attributes.change_tags(tx, "t", add=["x"], user_id="other"),
            lambda tx: attributes.set_metadata(tx, "t", {"x": 1}, user_id="other"),
            lambda tx: attributes.set_message_metadata(tx, "t", "a", {"x": 1}, user_id="other"),
            lambda tx: attributes.set_expiry(tx, "t", LATER, user_id="other"),
            lambda tx: attributes.set_tags(tx, "none", ["x"], user_id=USER),
        ]
        for attempt in attempts:
            with pytest.raises(ThreadNotFound):
                async with store.writing() as tx:
                    await attempt(tx)
        with pytest.raises(EntryNotFound):
            async with store.writing() as tx:
                await attributes.set_message_metadata(tx, "t", "none", {"x": 1}, user_id=USER)
        assert (await noted(store), await of_messages(store)) == before

    async def test_a_copied_thread_has_what_was_noted(self, store: Driver) -> None:
        await note(store)
        await LongthreadSaver(store, user_id=USER).acopy_thread("t", "copy")
        copied, first = await noted(store, "copy"), await noted(store)
        assert (copied.tags, copied.metadata) == (first.tags, first.metadata)
        assert await of_messages(store, "copy") == await of_messages(store)

    async def test_what_was_noted_goes_with_what_it_was_noted_about(self, store: Driver) -> None:
        await note(store)
        async with store.writing() as tx:
            await attributes.set_message_metadata(tx, "t", "a", {"x": 1}, user_id=USER)
        policy = RetentionPolicy(entries_before=log.now(), window=1, checkpoints=None)
        await prune(store, Retention(policy, CheckpointKeeper(), dead), silent, apply=True)
        assert await of_messages(store) == {2: {"rating": 5}}
        async with store.writing() as tx:
            await attributes.set_expiry(tx, "t", datetime.now(UTC) - timedelta(seconds=1), user_id=USER)
        policy = RetentionPolicy(now=log.now(), checkpoints=None)
        assert (await prune(store, Retention(policy, CheckpointKeeper(), dead), silent, apply=True)).threads == 1
        assert await rows_of(store) == {}

    async def test_the_kinds_of_tools_that_ran_are_noted_each_once(self, store: Driver) -> None:
        await thread_with(store, "a")
        async with store.writing() as tx:
            await log.position(tx, "t")
            for category in ("memory", "database", "memory"):
                await log.add_tool_category(tx, "t", category)
        assert (await noted(store)).tool_categories == ("database", "memory")
