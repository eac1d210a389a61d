"""Checkpoints: rows by number and by id, the writes of tasks, and large values apart."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest
from tests.contract.base import USER, Contract, OpenStore, thread_with

from longthread.errors import StoreConflict, StoreError, ThreadTaken
from longthread.store import checkpoints, log
from longthread.store.checkpoints import (
    CheckpointFilter,
    CheckpointRow,
    MetadataSearch,
    NewestCheckpoint,
    WriteRow,
)
from longthread.store.driver import Driver
from longthread.store.transfer import threads
from longthread.store.transfer.threads import ThreadCount


def row(n: int, *, thread_id: str = "t", ns: str = "", body: bytes = b"\x00body\xff") -> CheckpointRow:
    parent = f"id-{n - 1:03}" if n > 1 else None
    return CheckpointRow(thread_id, ns, n, f"id-{n:03}", parent, f'{{"step":{n},"注":"释"}}', body)


async def put(store: Driver, *rows: CheckpointRow, user_id: str = USER) -> None:
    """Store checkpoints, each in its own transaction, on threads that are created if new."""
    for each in rows:
        async with store.writing() as tx:
            await checkpoints.lock(tx, each.thread_id, user_id=user_id, create=True)
            await checkpoints.put(tx, each, None)


class CheckpointContract(Contract):
    """`store/checkpoints.py`, over which the saver for LangGraph works."""

    async def test_a_checkpoint_comes_back_byte_for_byte(self, store: Driver) -> None:
        big = row(2, body=bytes(range(256)) * 10_000)
        await put(store, row(1), big, row(1, ns="child:1|grandchild:2"))
        async with store.reading() as tx:
            assert await checkpoints.find(tx, "t", "", "id-001") == row(1)
            assert await checkpoints.find(tx, "t", "", "id-002") == big
            assert await checkpoints.find(tx, "t", "", None) == big
            assert await checkpoints.find(tx, "t", "", "none") is None
            assert await checkpoints.find(tx, "other", "", None) is None
            assert await checkpoints.namespaces(tx, "t") == ["", "child:1|grandchild:2"]

    async def test_bodies_are_rewritten_where_a_message_is_forgotten(self, store: Driver) -> None:
        await put(store, row(1), row(2))
        async with store.writing() as tx:
            await checkpoints.lock(tx, "t", user_id=USER)
            await checkpoints.put_blobs(tx, "t", "", 1, {"long": b"x"})
            await checkpoints.rewrite(tx, row(1), b"other", 3)
        async with store.reading() as tx:
            assert await checkpoints.find(tx, "t", "", "id-001") == replace(row(1), body=b"other", writes=3)
            assert await checkpoints.find(tx, "t", "", "id-002") == row(2)
            assert await checkpoints.blob_names(tx, "t", "") == [(1, "long")]

    async def test_a_place_tells_what_is_there(self, store: Driver) -> None:
        await put(store, row(1), row(2))
        async with store.writing() as tx:
            await checkpoints.put_writes(tx, "t", WriteRow("", "id-001", "task", "", 1, b""))
            ids = {"checkpoint_id": "id-001", "written_id": "id-001"}
            found = await checkpoints.place(tx, "t", "", user_id=USER, **ids)
            assert found is not None
            assert (found.head, found.there, found.tasks) == (NewestCheckpoint(2, "id-002", 0), 1, True)
            found = await checkpoints.place(tx, "t", "child", user_id=USER, checkpoint_id="id-009", written_id="id-002")
            assert found is not None
            assert (found.thread.id, found.head, found.there, found.tasks) == ("t", None, None, False)
            assert await checkpoints.place(tx, "t", "", user_id="other") is None
            assert await checkpoints.place(tx, "none", "", user_id=USER) is None

    async def test_each_incarnation_of_a_thread_can_be_told(self, store: Driver) -> None:
        marks = []
        for _ in range(3):
            async with store.writing() as tx:
                found = await checkpoints.lock(tx, "t", user_id=USER, create=True)
                assert found is not None
                marks.append(found.incarnation)
            async with store.reading() as tx:
                again = await checkpoints.lock(tx, "t", user_id=USER)
                assert again is not None
                assert again.incarnation == marks[-1]
            async with store.writing() as tx:
                await log.delete_thread(tx, "t", user_id=USER)
        assert len(set(marks)) == 3

    async def test_a_thread_that_is_renewed_is_told_from_what_it_was(self, store: Driver) -> None:
        async with store.writing() as tx:
            before = await checkpoints.lock(tx, "t", user_id=USER, create=True)
            assert before is not None
            renewed = [await checkpoints.renew(tx, before), await checkpoints.renew(tx, before)]
        async with store.reading() as tx:
            assert await checkpoints.lock(tx, "t", user_id=USER) == renewed[1]
        assert len({before.incarnation, *(thread.incarnation for thread in renewed)}) == 3
        assert {thread.birth_id for thread in renewed} == {before.birth_id} == {before.incarnation}

    async def test_the_same_checkpoint_is_stored_once(self, store: Driver) -> None:
        await put(store, row(1))
        with pytest.raises(StoreConflict):
            await put(store, row(1))
        async with store.reading() as tx:
            assert await checkpoints.before(tx, "t", "", None, limit=9) == [row(1)]

    async def test_of_many_that_store_the_next_one_at_once_one_does(self, open_store: OpenStore) -> None:
        async with open_store() as first, open_store() as second:
            await put(first, row(1))
            attempts = (put(each, row(2)) for each in [first, second] * 4)
            found = await asyncio.gather(*attempts, return_exceptions=True)
            assert [type(each) for each in found if each is not None] == [StoreConflict] * 7

    async def test_they_are_listed_newest_ids_first_page_by_page(self, store: Driver) -> None:
        rows = [row(n) for n in range(1, 8)]
        await put(store, *rows, row(1, ns="child"), row(3, thread_id="other"))
        async with store.reading() as tx:
            of_ns = await checkpoints.page(tx, CheckpointFilter(USER, "t", ""), None, limit=3)
            assert [each.n for each in of_ns] == [7, 6, 5]
            assert await checkpoints.page(tx, CheckpointFilter(USER, "t", ""), of_ns[-1], limit=99) == rows[3::-1]
            assert await checkpoints.page(tx, CheckpointFilter(USER, "t", "", "id-003"), None, limit=99) == rows[1::-1]
            everything = await checkpoints.page(tx, CheckpointFilter(USER), None, limit=99)
            assert len(everything) == 9
            assert [each.id for each in everything] == sorted((each.id for each in everything), reverse=True)
            assert await checkpoints.before(tx, "t", "", 4, limit=2) == [rows[2], rows[1]]

    async def test_they_are_found_by_what_their_metadata_contains(self, store: Driver) -> None:
        usual = replace(row(2), metadata='{"source":"loop","step":2,"parents":{}}')
        odd = replace(row(3), metadata='{"step":3,"text":"a\\u0000b","size":1e999}')
        await put(store, row(1), usual, odd, row(1, thread_id="u", ns="child:1"))
        await put(store, row(1, thread_id="his"), user_id="other")

        async def found(where: CheckpointFilter, search: MetadataSearch) -> list[tuple[str, str]]:
            async with store.reading() as tx:
                there = await checkpoints.with_metadata(tx, where, search)
            # A store may find more than what is meant: what it cannot look into.
            return [(each.thread_id, each.id) for each in there if each.id != odd.id]

        said = MetadataSearch(['{"注":"释"}'], "释", usual=False)
        assert await found(CheckpointFilter(USER), said) == [("u", "id-001"), ("t", "id-001")]
        assert await found(CheckpointFilter(USER, "t"), said) == [("t", "id-001")]
        assert await found(CheckpointFilter(USER, ns="child:1"), said) == [("u", "id-001")]
        assert await found(CheckpointFilter(USER, before="id-001"), said) == []
        assert await found(CheckpointFilter("other"), said) == [("his", "id-001")]
        assert await found(CheckpointFilter(USER), replace(said, usual=True, text="none of them")) == [("t", "id-002")]
        async with store.reading() as tx:
            there = await checkpoints.with_metadata(
                tx, CheckpointFilter(USER), MetadataSearch(['{"step":3}'], "", False)
            )
        assert odd.id in [each.id for each in there]

    async def test_an_export_finds_users_threads_and_the_ids_of_messages(self, store: Driver) -> None:
        await thread_with(store, "one", "two", thread_id="plain")
        await put(store, row(1), row(2), row(1, ns="child"))
        await put(store, row(1, thread_id="o"), user_id="owner")
        async with store.reading() as tx:
            assert await threads.list_checkpoint_users(tx) == sorted([USER, "owner"])
            assert await threads.count_checkpoints(tx, USER) == [ThreadCount("plain", 2, 0), ThreadCount("t", 0, 3)]
            assert await threads.count_checkpoints(tx, "owner") == [ThreadCount("o", 0, 1)]
            entries = await log.branch(tx, "plain", 2)
            assert sorted(await threads.sent_ids(tx, "plain")) == sorted(map(log.sent_id, entries))

    async def test_another_users_are_as_if_they_were_not_there(self, store: Driver) -> None:
        await put(store, row(1), user_id="owner")
        async with store.writing() as tx:
            assert await checkpoints.lock(tx, "t", user_id="other") is None
            with pytest.raises(ThreadTaken):
                await checkpoints.lock(tx, "t", user_id="other", create=True)
            for where in (
                CheckpointFilter("other"),
                CheckpointFilter("other", "t"),
                CheckpointFilter("other", "t", ""),
            ):
                assert await checkpoints.page(tx, where, None, limit=9) == []

    async def test_what_tasks_write_is_kept_by_task(self, store: Driver) -> None:
        await put(store, row(1))
        first = WriteRow("", "id-001", "task-a", "~path", 2, b"\x00one")
        async with store.writing() as tx:
            await checkpoints.put_writes(tx, "t", first)
            await checkpoints.put_writes(tx, "t", WriteRow("", "id-001", "task-b", "", 1, b""))
            await checkpoints.replace_writes(tx, "t", WriteRow("", "id-001", "task-a", "~path", 3, b"two"))
        async with store.reading() as tx:
            found = sorted(await checkpoints.writes(tx, "t", "", "id-001"), key=lambda each: each.task_id)
            assert await checkpoints.writes(tx, "t", "", "id-002") == []
        assert found == [
            WriteRow("", "id-001", "task-a", "~path", 3, b"two"),
            WriteRow("", "id-001", "task-b", "", 1, b""),
        ]

    async def test_what_has_been_taken_in_of_a_task_goes_and_the_rest_stays(self, store: Driver) -> None:
        await put(store, row(1), row(2))
        async with store.writing() as tx:
            for each, task in (("id-001", "a"), ("id-001", "b"), ("id-001", "c"), ("id-002", "a")):
                await checkpoints.put_writes(tx, "t", WriteRow("", each, task, "", 1, b""))
            await checkpoints.delete_tasks(tx, "t", "", "id-001", ["a", "c", "none"])
        async with store.reading() as tx:
            assert [each.task_id for each in await checkpoints.writes(tx, "t", "", "id-001")] == ["b"]
            assert [each.task_id for each in await checkpoints.writes(tx, "t", "", "id-002")] == ["a"]

    async def test_who_takes_the_number_of_one_that_is_gone_is_nobodys_parent(self, store: Driver) -> None:
        async with store.writing() as tx:
            await checkpoints.lock(tx, "t", user_id=USER, create=True)
            for n in (1, 2, 3):
                await checkpoints.put(tx, row(n), n - 1 or None)
        async with store.writing() as tx:
            await checkpoints.delete(tx, [row(1)])
            await checkpoints.tidy(tx, "t", "", set())
            await checkpoints.put(tx, replace(row(1), id="another"), None)
        async with store.reading() as tx:
            found = await checkpoints.before(tx, "t", "", None, limit=9)
        assert [(each.id, each.parent_id) for each in found] == [
            ("id-003", "id-002"),
            ("id-002", None),
            ("another", None),
        ]

    async def test_large_values_are_kept_apart_and_replaced(self, store: Driver) -> None:
        await put(store, row(1), row(2))
        async with store.writing() as tx:
            await checkpoints.put_blobs(tx, "t", "", 1, {"值": b"\x00" * 100_000, "b": b""})
            await checkpoints.put_blobs(tx, "t", "", 1, {"b": b"again"})
        async with store.reading() as tx:
            assert await checkpoints.blob(tx, "t", "", 1, "值") == b"\x00" * 100_000
            assert await checkpoints.blob(tx, "t", "", 1, "b") == b"again"
            assert await checkpoints.blob(tx, "t", "", 2, "b") is None

    async def test_rows_of_no_thread_are_refused(self, store: Driver) -> None:
        with pytest.raises(StoreError):
            async with store.writing() as tx:
                await checkpoints.put(tx, row(1, thread_id="none"), None)
        with pytest.raises(StoreError):
            async with store.writing() as tx:
                await checkpoints.put_writes(tx, "none", WriteRow("", "id-001", "task", "", 1, b""))
        with pytest.raises(StoreError):
            async with store.writing() as tx:
                await checkpoints.put_blobs(tx, "none", "", 1, {"a": b""})

    async def test_they_go_with_their_thread(self, store: Driver) -> None:
        await thread_with(store, "a")
        await put(store, row(1), row(1, thread_id="other"))
        async with store.writing() as tx:
            await checkpoints.put_writes(tx, "t", WriteRow("", "id-001", "task", "", 1, b""))
            await checkpoints.put_blobs(tx, "t", "", 1, {"a": b"x"})
        async with store.writing() as tx:
            await log.delete_thread(tx, "t", user_id=USER)
        await put(store, row(2))
        async with store.reading() as tx:
            assert await checkpoints.find(tx, "t", "", "id-001") is None
            assert await checkpoints.writes(tx, "t", "", "id-001") == []
            assert await checkpoints.blob(tx, "t", "", 1, "a") is None
            assert await checkpoints.find(tx, "other", "", None) == row(1, thread_id="other")
