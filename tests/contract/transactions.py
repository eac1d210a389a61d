"""Transactions: whole or not at all, on every way out; a reading is a snapshot."""

from __future__ import annotations

import asyncio
from contextlib import nullcontext
from uuid import uuid4

import pytest
from tests.contract.base import USER, Contract, OpenStore, branch_ids, draft, extend, position, thread_with

from longthread.errors import LongthreadError, NotAsExpected, NotStorable, StoreError
from longthread.store import listing, log
from longthread.store.driver import Driver, QueryCall
from longthread.store.queries import Sql

NO_SUCH_TABLE = Sql("SELECT x FROM there_is_no_such_table")


class TransactionContract(Contract):
    """`Driver.writing` and `Driver.reading`."""

    @pytest.mark.parametrize("error", [RuntimeError(), KeyboardInterrupt(), StoreError(reason="broken")], ids=repr)
    async def test_a_transaction_that_raises_leaves_nothing(self, store: Driver, error: BaseException) -> None:
        await thread_with(store, "a")
        with pytest.raises(type(error)):
            async with store.writing() as tx:
                await log.extend(tx, "t", [draft("b")])
                await log.create_thread(tx, "new", user_id=USER)
                raise error
        assert await position(store) == (1, 1)
        async with store.reading() as tx:
            assert [thread.id for thread in await listing.list_threads(tx, user_id=USER)] == ["t"]

    async def test_a_transaction_that_is_cancelled_leaves_nothing_and_lets_the_next_one_in(self, store: Driver) -> None:
        await thread_with(store, "a")
        inside = asyncio.Event()

        async def hang() -> None:
            async with store.writing() as tx:
                await log.extend(tx, "t", [draft("lost")])
                inside.set()
                await asyncio.Event().wait()

        task = asyncio.create_task(hang())
        await inside.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert [entry.seq for entry in await extend(store, draft("b"))] == [2]
        assert await branch_ids(store) == ["a", "b"]

    async def test_a_write_that_is_cancelled_anywhere_is_there_whole_or_not_at_all(self, store: Driver) -> None:
        await thread_with(store)
        for turns in range(60):
            task = asyncio.create_task(extend(store, draft(f"a{turns}"), draft(f"b{turns}")))
            for _ in range(turns):
                await asyncio.sleep(0)
            task.cancel()
            [outcome] = await asyncio.gather(task, return_exceptions=True)
            assert isinstance(outcome, list | asyncio.CancelledError)
            ids = await branch_ids(store)
            # If cancelled during the commit, it may be stored: then all of it.
            assert len(ids) % 2 == 0
            assert ids[-2:] == [f"a{turns}", f"b{turns}"] or isinstance(outcome, asyncio.CancelledError)
        await extend(store, draft("still"))
        assert (await branch_ids(store))[-1] == "still"

    async def test_a_reading_that_is_cancelled_gives_its_place_back(self, store: Driver) -> None:
        await thread_with(store, "a")
        for turns in range(40):
            task = asyncio.create_task(branch_ids(store))
            for _ in range(turns):
                await asyncio.sleep(0)
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
        assert await branch_ids(store) == ["a"]

    async def test_a_reading_is_a_snapshot(self, store: Driver) -> None:
        await thread_with(store, "a")
        async with store.reading() as tx:
            assert await log.position(tx, "t") == (1, 1)
            await extend(store, draft("b"))
            await thread_with(store, "a", thread_id="new")
            assert await log.position(tx, "t") == (1, 1)
            assert [entry.id for entry in await log.entries_between(tx, "t", 1, 99)] == ["a"]
            assert [thread.id for thread in await listing.list_threads(tx, user_id=USER)] == ["t"]
        assert await position(store) == (2, 2)

    async def test_readers_see_only_what_was_committed_and_do_not_wait(self, store: Driver) -> None:
        await thread_with(store, "a")
        async with store.writing() as tx:
            await log.extend(tx, "t", [draft("b")])
            assert await log.position(tx, "t") == (2, 2)
            assert await position(store) == (1, 1)
        assert await position(store) == (2, 2)

    async def test_nothing_can_be_written_in_a_reading(self, store: Driver) -> None:
        await thread_with(store, "a")
        with pytest.raises(StoreError):
            async with store.reading() as tx:
                await log.set_tip(tx, "t", 0)
        assert await position(store) == (1, 1)
        assert [entry.seq for entry in await extend(store, draft("b"))] == [2]

    async def test_a_statement_that_is_refused_is_a_store_error_and_undoes_the_transaction(self, store: Driver) -> None:
        await thread_with(store, "a")
        with pytest.raises(StoreError):
            async with store.writing() as tx:
                await log.extend(tx, "t", [draft("b")])
                await tx.run("insert_entry", **_row(seq=1))
        with pytest.raises(StoreError):
            async with store.writing() as tx:
                await tx.run_all("insert_entry", [_row(seq=2), _row(seq=3), _row(seq=3)])
        with pytest.raises(StoreError):
            async with store.writing() as tx:
                await tx.run("insert_entry", **_row(thread_id="none"))
        assert await branch_ids(store) == ["a"]
        await extend(store, draft("c"))
        assert await branch_ids(store) == ["a", "c"]

    async def test_a_statement_for_later_is_seen_by_the_next_and_is_committed(self, store: Driver) -> None:
        await thread_with(store, "a")
        async with store.writing() as tx:
            said = {"text": "50 % 'of' \\ \u4e2d :name;", "payload": bytes(range(256))}
            await tx.later("insert_entry", **(_row(seq=5) | said))
            await tx.later("update_source", id="t", source="x;y")
            [row] = await tx.fetch("select_entries_range", thread_id="t", first=5, last=5)
            await tx.later("update_source", id="t", source="z" * 200_000)
            assert await tx.run("update_source", id="none", source="x") == 0
            await tx.later("update_title", id="t", user_id=USER, title="at the end")
        assert (row["text"], row["payload"]) == ("50 % 'of' \\ \u4e2d :name;", bytes(range(256)))
        async with store.reading() as tx:
            thread = await log.find_thread(tx, "t", user_id=USER)
        assert (thread.source, thread.title) == ("z" * 200_000, "at the end")

    async def test_a_statement_for_later_that_fails_undoes_the_transaction(self, store: Driver) -> None:
        await thread_with(store, "a")
        for query, row in (("insert_entry", _row(seq=1)), ("insert_entry", _row(thread_id="none"))):
            with pytest.raises(StoreError):
                async with store.writing() as tx:
                    await log.extend(tx, "t", [draft("b")])
                    await tx.later(query, **row)
        assert await branch_ids(store) == ["a"]

    async def test_what_is_expected_is_so_or_nothing_is_written(self, store: Driver) -> None:
        await thread_with(store, "a")
        row = {"thread_id": "t", "first": 1, "last": 1}
        async with store.writing() as tx:
            await tx.expect("select_entries_range", 1, **row)
            await tx.expect("select_entry", 0, thread_id="t", id="b :x % '")
            await tx.later("update_source", id="t", source="so")
        for query, rows, values in (
            ("select_entries_range", 0, row),
            ("select_entry", 1, {"thread_id": "t", "id": "none"}),
        ):
            with pytest.raises(NotAsExpected):
                async with store.writing() as tx:
                    await tx.expect(query, rows, **values)
                    await tx.later("update_source", id="t", source="not so")
            with pytest.raises(NotAsExpected):
                async with store.writing() as tx:
                    await log.extend(tx, "t", [draft("b")])
                    await tx.later("update_source", id="t", source="not so")
                    await tx.expect(query, rows, **values)
                    await tx.fetch("select_position", id="t")
            with pytest.raises(StoreError):
                async with store.writing() as tx:
                    with pytest.raises(NotAsExpected):
                        await tx.expect(query, rows, **values)
                        await tx.fetch("select_position", id="t")
                    await tx.later("update_source", id="t", source="not so")
        async with store.reading() as tx:
            assert (await log.find_thread(tx, "t", user_id=USER)).source == "so"
        assert await branch_ids(store) == ["a"]

    @pytest.mark.parametrize("fails", [True, False])
    async def test_what_is_expected_is_looked_at_where_it_is_asked(self, store: Driver, fails: bool) -> None:
        await thread_with(store, "a")
        with pytest.raises(NotAsExpected) if fails else nullcontext():
            async with store.writing() as tx:
                await tx.expect("select_entry", 0, thread_id="t", id="e5")
                await tx.later("insert_entry", **_row(seq=5))
                await tx.expect("select_entry", 1, thread_id="t", id="e5")
                await tx.expect("select_entry", 0, thread_id="t", id="e5" if fails else "e6")
        async with store.reading() as tx:
            assert len(await tx.fetch("select_entry", thread_id="t", id="e5")) == (not fails)

    async def test_an_expectation_alone_is_made_sure_of_at_the_end(self, store: Driver) -> None:
        await thread_with(store, "a")
        async with store.writing() as tx:
            await tx.expect("select_entry", 1, thread_id="t", id="a")
        with pytest.raises(NotAsExpected):
            async with store.writing() as tx:
                await tx.expect("select_entry", 1, thread_id="t", id="b")
        await extend(store, draft("b"))
        assert await branch_ids(store) == ["a", "b"]

    async def test_an_expectation_that_cannot_be_looked_at_is_another_error(self, store: Driver) -> None:
        await thread_with(store, "a")
        with pytest.raises(StoreError) as raised:
            async with store.writing() as tx:
                await log.extend(tx, "t", [draft("b")])
                await tx.expect(NO_SUCH_TABLE, 0)
        assert not isinstance(raised.value, NotAsExpected)
        async with store.writing() as tx:
            with pytest.raises(NotStorable):
                await tx.expect("select_entry", 1, thread_id="t", id="\0")
            await log.extend(tx, "t", [draft("c")])
        assert await branch_ids(store) == ["a", "c"]

    async def test_a_reading_may_expect_something_too(self, store: Driver) -> None:
        await thread_with(store, "a")
        async with store.reading() as tx:
            await tx.expect("select_entry", 1, thread_id="t", id="a")
            assert len(await tx.fetch("select_entry", thread_id="t", id="a")) == 1
        with pytest.raises(NotAsExpected):
            async with store.reading() as tx:
                await tx.expect("select_entry", 1, thread_id="t", id="b")
                await tx.fetch_all(("select_entry", {"thread_id": "t", "id": "a"}), last=True)
        assert await branch_ids(store) == ["a"]

    async def test_several_queries_are_answered_in_the_order_in_which_they_were_asked(self, store: Driver) -> None:
        await thread_with(store, "a", "b", "c ; -- 'x' % :id")
        asked = (
            ("select_entry", {"thread_id": "t", "id": "c ; -- 'x' % :id"}),
            ("select_entry", {"thread_id": "t", "id": "none"}),
            ("select_entries_range", {"thread_id": "t", "first": 1, "last": 2}),
            ("select_entry", {"thread_id": "t", "id": "c ; -- 'x' % :id"}),
            ("select_position", {"id": "t"}),
        )
        for extra in ((), (("select_entry", {"thread_id": "t", "id": "z" * 200_000}),)):
            for last in (False, True):
                async with store.reading() as tx:
                    found = await tx.fetch_all(*asked, *extra, last=last)
                assert [[row["seq"] for row in rows] for rows in found[:4]] == [[3], [], [1, 2], [3]]
                assert [dict(row) for row in found[4]] == [{"tip": 3, "entry_count": 3}]
                assert found[5:] == [[] for _ in extra]
        async with store.reading() as tx:
            one_by_one = [await tx.fetch(query, **values) for query, values in asked]
            assert await tx.fetch_all(*asked) == one_by_one
            assert await tx.fetch_all() == []
            assert await tx.fetch_all(last=True) == []

    async def test_what_was_told_ahead_is_found_as_if_it_had_not_been(self, store: Driver) -> None:
        await thread_with(store, "a", "b", "c")
        told: list[QueryCall] = [("select_entry", {"thread_id": "t", "id": name}) for name in ("a", "none", "c")]
        later: QueryCall = ("select_position", {"id": "t"})
        async with store.reading() as tx:
            await tx.ahead(*told)
            await tx.ahead(later)
            await tx.ahead()
            assert [row["seq"] for row in await tx.fetch("select_entry", thread_id="t", id="b")] == [2]
            for _ in range(2):
                found = [await tx.fetch(query, **values) for query, values in (later, *told)]
                assert [dict(row) for row in found[0]] == [{"tip": 3, "entry_count": 3}]
                assert [[row["seq"] for row in rows] for rows in found[1:]] == [[1], [], [3]]
            await tx.ahead(told[2])
            assert [[row["seq"] for row in rows] for rows in await tx.fetch_all(*told)] == [[1], [], [3]]
        async with store.writing() as tx:
            await tx.ahead(("select_entry", {"thread_id": "t", "id": "e5"}))
            await tx.later("insert_entry", **_row(seq=5))
            assert len(await tx.fetch("select_entry", thread_id="t", id="e5")) == 1

    async def test_what_was_told_ahead_fails_where_it_is_fetched_and_leaves_nothing_behind(self, store: Driver) -> None:
        await thread_with(store, "a")
        async with store.reading() as tx:
            await tx.ahead((NO_SUCH_TABLE, {}))
            with pytest.raises(StoreError):
                await tx.fetch(NO_SUCH_TABLE)
        with pytest.raises(KeyError):
            async with store.reading() as tx:
                await tx.ahead((NO_SUCH_TABLE, {}), ("select_position", {"id": "t"}))
                raise KeyError
        for _ in range(20):  # more than there are connections
            async with store.reading() as tx:
                await tx.ahead(("select_position", {"id": "t"}))
        assert await branch_ids(store) == ["a"]

    async def test_several_queries_see_what_was_written_for_later_and_the_transaction_goes_on(
        self, store: Driver
    ) -> None:
        await thread_with(store, "a")
        asked = [("select_entry", {"thread_id": "t", "id": name}) for name in ("e5", "a", "e6")]
        async with store.writing() as tx:
            await tx.later("insert_entry", **_row(seq=5))
            found = await tx.fetch_all(*asked, last=True)  # it also writes, and is not ended with them
            assert [len(rows) for rows in found] == [1, 1, 0]
            await tx.later("insert_entry", **_row(seq=6))
            assert [len(rows) for rows in await tx.fetch_all(*asked)] == [1, 1, 1]
        async with store.maintaining() as tx:
            assert [len(rows) for rows in await tx.fetch_all(*asked)] == [1, 1, 1]
        with pytest.raises(NotAsExpected):
            async with store.writing() as tx:
                await tx.later("update_source", id="t", source="not so")
                await tx.expect("select_entry", 1, thread_id="t", id="none")
                await tx.fetch_all(*asked)
        async with store.reading() as tx:
            assert (await log.find_thread(tx, "t", user_id=USER)).source is None

    @pytest.mark.parametrize("place", [0, 1, 2])
    async def test_several_queries_of_which_one_fails_undo_the_transaction(self, store: Driver, place: int) -> None:
        await thread_with(store, "a")
        asked: list[QueryCall] = [("select_entry", {"thread_id": "t", "id": "a"})] * 2
        asked.insert(place, (NO_SUCH_TABLE, {}))
        for caught in (nullcontext(), pytest.raises(StoreError)):
            with pytest.raises(StoreError):
                async with store.writing() as tx:
                    await log.extend(tx, "t", [draft("b")])
                    await tx.later("update_source", id="t", source="not so")
                    with caught:
                        await tx.fetch_all(*asked)
        with pytest.raises(StoreError):
            async with store.writing() as tx:
                with pytest.raises(StoreError):
                    await tx.fetch_all(*asked)
                await log.extend(tx, "t", [draft("c")])
        async with store.reading() as tx:
            with pytest.raises(StoreError):
                await tx.fetch_all(*asked, last=True)
            with pytest.raises(StoreError):
                await tx.fetch_all(asked[place - 1], last=True)
        async with store.reading() as tx:
            assert (await log.find_thread(tx, "t", user_id=USER)).source is None
        assert await branch_ids(store) == ["a"]

    async def test_a_value_among_several_that_cannot_be_stored_leaves_the_transaction(self, store: Driver) -> None:
        await thread_with(store, "a")
        asked = [("select_entry", {"thread_id": "t", "id": name}) for name in ("a", "\0", "a")]
        async with store.writing() as tx:
            await tx.later("update_source", id="t", source="so")
            with pytest.raises(NotStorable):
                await tx.fetch_all(*asked)
            assert len(await tx.fetch_all(asked[0], asked[2])) == 2
        async with store.reading() as tx:
            assert (await log.find_thread(tx, "t", user_id=USER)).source == "so"

    async def test_what_the_transaction_itself_has_written_is_expected(self, store: Driver) -> None:
        await thread_with(store, "a")
        async with store.writing() as tx:
            await tx.later("insert_entry", **_row(seq=5))
            await tx.expect("select_entry", 1, thread_id="t", id="e5")
            await tx.later("update_source", id="t", source="so")
        async with store.reading() as tx:
            assert (await log.find_thread(tx, "t", user_id=USER)).source == "so"

    async def test_a_transaction_whose_statement_failed_can_only_be_rolled_back(self, store: Driver) -> None:
        await thread_with(store, "a")
        with pytest.raises(StoreError):
            async with store.writing() as tx:
                await log.extend(tx, "t", [draft("b")])
                with pytest.raises(StoreError):
                    await tx.run("insert_entry", **_row(seq=1))
        with pytest.raises(StoreError):
            async with store.writing() as tx:
                with pytest.raises(StoreError):
                    await tx.run("insert_entry", **_row(seq=1))
                await log.extend(tx, "t", [draft("c")])
        with pytest.raises(StoreError):
            async with store.writing() as tx:
                with pytest.raises(StoreError):
                    await tx.run("insert_entry", **_row(thread_id="none"))
        assert await branch_ids(store) == ["a"]

    async def test_a_caught_error_of_ours_inside_leaves_the_rest_of_the_transaction(self, store: Driver) -> None:
        await thread_with(store, "a")
        async with store.writing() as tx:
            await log.extend(tx, "t", [draft("b")])
            with pytest.raises(LongthreadError):
                await log.extend(tx, "t", [draft("c")], expect=99)
            await log.extend(tx, "t", [draft("d")])
        assert await branch_ids(store) == ["a", "b", "d"]

    async def test_the_number_of_rows_that_a_statement_touched_is_told(self, store: Driver) -> None:
        await thread_with(store, "a")
        async with store.writing() as tx:
            assert await tx.run("update_source", id="t", source="x") == 1
            assert await tx.run("update_source", id="none", source="x") == 0
            await tx.run_all("insert_entry", [])
            await tx.run_all("insert_entry", (_row(seq=seq) for seq in (5, 6)))
            rows = await tx.fetch("select_entries_range", thread_id="t", first=2, last=9)
        assert [(row["seq"], row["id"], row["payload"], row["tokens"]) for row in rows] == [
            (5, "e5", b"\x00", None),
            (6, "e6", b"\x00", None),
        ]
        assert {type(row["payload"]) for row in rows} == {bytes}

    @pytest.mark.parametrize("given", [0.0, -0.0, 3.0, 0.1, -1 / 3, 5e-324, 2.0**53 + 2, -1.7976931348623157e308])
    async def test_a_number_comes_back_as_it_was_given(self, store: Driver, given: float) -> None:
        agent = str(uuid4())
        insert = Sql("INSERT INTO memories (agent_id, content, importance) VALUES (:agent, '', :x)")
        row = {"agent": agent, "x": given}
        async with store.writing() as tx:
            await tx.run(Sql("INSERT INTO agents (id, name, system_prompt) VALUES (:agent, '', '')"), agent=agent)
            await tx.run(insert, **row)
            await tx.later(insert, **row)
            await tx.run_all(insert, [row, row])
            rows = await tx.fetch(Sql("SELECT importance, :x AS given FROM memories"), x=given)
        assert [repr(value) for row in rows for value in row.values()] == [repr(given + 0.0)] * 8  # no zero is negative

    async def test_in_maintenance_each_statement_takes_effect_by_itself(self, store: Driver) -> None:
        await thread_with(store, "a")
        with pytest.raises(RuntimeError):
            async with store.maintaining() as tx:
                assert await tx.run("update_source", id="t", source="kept") == 1
                raise RuntimeError
        async with store.reading() as tx:
            assert (await log.find_thread(tx, "t", user_id=USER)).source == "kept"
        await extend(store, draft("b"))

    async def test_what_was_written_is_there_when_it_is_opened_again(self, open_store: OpenStore) -> None:
        async with open_store() as store:
            await thread_with(store, "a", "b")
        async with open_store() as store:
            assert store.found_version > 0
            assert await branch_ids(store) == ["a", "b"]

    async def test_two_drivers_on_the_same_data_see_what_the_other_committed(self, open_store: OpenStore) -> None:
        async with open_store() as first, open_store() as second:
            await thread_with(first, "a")
            await extend(second, draft("b"))
            await extend(first, draft("c"))
            assert await branch_ids(second) == await branch_ids(first) == ["a", "b", "c"]

    async def test_it_may_be_closed_twice_and_says_where_it_is(self, open_store: OpenStore) -> None:
        async with open_store() as store:
            assert store.where
            assert store.dialect
            await store.close()
            await store.close()


def _row(*, thread_id: str = "t", seq: int = 9) -> dict[str, object]:
    absent = ("tool_calls", "tool_call_id", "name", "tokens", "latency_ms", "run_id", "metadata", "replaces")
    return {
        "thread_id": thread_id,
        "seq": seq,
        "parent_seq": seq - 1,
        "id": f"e{seq}",
        "role": "user",
        "text": "text",
        "payload": b"\x00",
        "created_at": log.now(),
        **dict.fromkeys(absent),
    }
