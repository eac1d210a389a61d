"""The log: extension, idempotency, branches, isolation of users, deletion."""

from __future__ import annotations

import asyncio
import re
from datetime import datetime
from pathlib import Path
from typing import Any

import psycopg
import pytest

from longthread.errors import (
    NumberNotStorable,
    StoreError,
    StoreTooNew,
    StoreUnavailable,
    ThreadConflict,
    ThreadNotFound,
)
from longthread.model.entry import Draft, ToolCall
from longthread.store import checkpoints, listing, log, runs
from longthread.store.backends.sqlite import SqliteDriver
from longthread.store.backends.sqlite_connection import StoreConnection
from longthread.store.driver import Driver
from longthread.store.open import open_store
from longthread.store.queries import Sql, queries, translate_placeholders


def draft(name: str, text: str = "text", **more: object) -> Draft:
    return Draft(id=name, role="user", text=text, **more)  # type: ignore[arg-type]


async def thread_with(store: Driver, *names: str, thread_id: str = "t", user_id: str = "u") -> list[int]:
    async with store.writing() as tx:
        await log.create_thread(tx, thread_id, user_id=user_id)
        return [entry.seq for entry in await log.extend(tx, thread_id, [draft(name) for name in names])]


async def branch_ids(store: Driver, tip: int, *, limit: int = 200) -> list[str]:
    async with store.reading() as tx:
        return [entry.id for entry in await log.branch(tx, "t", tip, limit=limit)]


async def test_entries_come_back_as_they_were_written(store: Driver) -> None:
    full = Draft(
        id="a",
        role="assistant",
        text="数据 \u0001 '\"",
        tool_calls=(ToolCall("c1", "run_sql", {"sql": "SELECT 1", "深": [1, None, {"x": 2.5}]}),),
        name="n",
        payload=b"\x00\xff raw",
        tokens=3,
        latency_ms=7,
        run_id="r",
        metadata={"kind": "answer"},
    )
    async with store.writing() as tx:
        await log.create_thread(tx, "t", user_id="u")
        await log.extend(tx, "t", [full])
    async with store.reading() as tx:
        entry = await log.find_entry(tx, "t", "a")
    assert entry.says_the_same_as(full)
    assert (entry.tokens, entry.latency_ms, entry.run_id, entry.kind) == (3, 7, "r", "answer")
    assert (entry.seq, entry.parent_seq) == (1, 0)


@pytest.mark.parametrize("number", [2**63, -(2**63) - 1, float("nan")])
async def test_a_number_that_not_every_store_can_hold_is_refused(store: Driver, number: int) -> None:
    await thread_with(store, "a")
    with pytest.raises(NumberNotStorable, match="tokens"):
        async with store.writing() as tx:
            await log.extend(tx, "t", [draft("b", tokens=number)])
    for name, most in (("c", 2**63 - 1), ("d", -(2**63))):
        async with store.writing() as tx:
            [entry] = await log.extend(tx, "t", [draft(name, tokens=most)])
            assert (await log.find_entry(tx, "t", name)).tokens == entry.tokens == most


@pytest.mark.parametrize("at", [{}, {"parent": 1}, {"expect": 3}, {"expect": 1}])
async def test_extending_twice_writes_nothing_the_second_time(store: Driver, at: dict[str, int]) -> None:
    await thread_with(store, "first", "a", "b")
    async with store.writing() as tx:
        again = await log.extend(tx, "t", [draft("a"), draft("b")], **at)
    async with store.reading() as tx:
        assert await log.position(tx, "t") == (3, 3)
    assert [entry.seq for entry in again] == [2, 3]


async def test_an_edit_twice_is_one_sibling_that_tells_its_senders_id(store: Driver) -> None:
    await thread_with(store, "a", "b")
    for _ in range(2):
        async with store.writing() as tx:
            [edited, _] = await log.extend(tx, "t", [draft("b", "edited"), draft("c")], parent=1)
            assert await log.extend(tx, "t", [draft("b", "edited"), draft("c")]) == [edited, _]
            assert await log.position(tx, "t") == (4, 4)
    assert (edited.seq, log.sent_id(edited), edited.id == "b") == (3, "b", False)


async def test_a_turn_that_goes_on_is_noted_to_the_second(store: Driver, plain: Any) -> None:
    await thread_with(store, "a")

    async def active(**how: Any) -> datetime:
        async with store.writing() as tx:
            tip, size = await log.position(tx, "t")
            await log.append(tx, "t", [draft(f"{size}")], tip=tip, size=size, **how)
            assert await log.position(tx, "t") == (size + 1, size + 1)
            return (await log.find_thread(tx, "t", user_id="u")).updated_at

    for noted, way in (("2026-01-01", True), ("2999-01-01", False)):
        plain("UPDATE threads SET updated_at = ?", [f"{noted}T00:00:00.000000+00:00"])
        assert (str(await active(goes_on=True)) > f"{noted} 00:00:01") is way
    assert str(await active()) < "2999"


async def test_an_edit_at_the_root_is_found_when_what_it_edited_was_deleted(store: Driver) -> None:
    await thread_with(store, "a", "b")
    async with store.writing() as tx:
        written = await log.extend(tx, "t", [draft("a", "edited"), draft("c")], parent=0)
        await tx.run("prune_entries", thread_id="t", cut=3)
        await tx.run("move_first_seq", thread_id="t", first_seq=3)
    for work in (log.extend, log.add):
        async with store.writing() as tx:
            again = await work(tx, "t", [draft("a", "edited"), draft("c")], parent=0)
            assert [entry.id for entry in again] == [entry.id for entry in written]
            assert await log.position(tx, "t") == (4, 4)


async def test_the_same_edit_at_two_places_is_two_entries(store: Driver) -> None:
    await thread_with(store, "a", "b")
    async with store.writing() as tx:
        added = [await log.add(tx, "t", [draft("b", "edited")], parent=parent) for parent in (1, 2, 1)]
    assert [(entry.seq, entry.parent_seq) for [entry] in added] == [(3, 1), (4, 2), (3, 1)]


@pytest.mark.parametrize(
    "drafts", [[draft("b"), draft("a")], [draft("a")], [draft("x"), draft("b")], [draft("a", "other"), draft("b")]]
)
async def test_only_the_same_drafts_are_the_end_of_the_branch(store: Driver, drafts: list[Draft]) -> None:
    await thread_with(store, "a", "b")
    async with store.writing() as tx:
        added = await log.extend(tx, "t", drafts)
    assert [entry.seq for entry in added] == [seq + 3 for seq in range(len(drafts))]


async def test_what_was_written_before_is_no_excuse_for_another_tip(store: Driver) -> None:
    await thread_with(store, "first", "a", "b")
    with pytest.raises(ThreadConflict):
        async with store.writing() as tx:
            await log.extend(tx, "t", [draft("b")], expect=1)


async def test_adding_leaves_the_tip_and_setting_it_adds_nothing(store: Driver) -> None:
    await thread_with(store, "a", "b")
    async with store.writing() as tx:
        added = await log.add(tx, "t", [draft("c"), draft("d")], parent=1)
        assert [(entry.seq, entry.parent_seq) for entry in added] == [(3, 1), (4, 3)]
        assert await log.position(tx, "t") == (2, 4)
        await log.set_tip(tx, "t", 4)
        assert await log.position(tx, "t") == (4, 4)
        await log.set_tip(tx, "t", 0)
        assert await log.position(tx, "t") == (0, 4)
        with pytest.raises(ThreadNotFound):
            await log.set_tip(tx, "none", 0)


async def test_an_entry_descends_from_those_on_its_branch(store: Driver) -> None:
    await thread_with(store, "a", "b", "c")
    async with store.writing() as tx:
        await log.add(tx, "t", [draft("d"), draft("e")], parent=1)
        behind = {of: [n for n in range(6) if await log.descends(tx, "t", of, n)] for of in (3, 5)}
        assert behind == {3: [0, 1, 2, 3], 5: [0, 1, 4, 5]}
        assert not await log.descends(tx, "t", 99, 1)
        assert await log.descends(tx, "t", 5, 2, limit=1)


async def test_an_edit_makes_a_sibling_and_overwrites_nothing(store: Driver) -> None:
    await thread_with(store, "a", "b", "c")
    async with store.writing() as tx:
        edited = (await log.extend(tx, "t", [draft("b", "edited")], parent=1))[0]
    assert edited.seq == 4
    assert edited.parent_seq == 1
    assert edited.id != "b"
    assert await branch_ids(store, 3) == ["a", "b", "c"]
    assert await branch_ids(store, 4) == ["a", edited.id]
    async with store.reading() as tx:
        assert (await log.position(tx, "t"))[0] == 4
        assert (await log.find_entry(tx, "t", "b")).text == "text"


async def test_a_branch_is_read_from_its_end_across_the_gaps_of_others(store: Driver) -> None:
    await thread_with(store, "a", "b")
    async with store.writing() as tx:
        await log.extend(tx, "t", [draft(f"x{n}") for n in range(300)], parent=1)
        await log.extend(tx, "t", [draft("c"), draft("d")], parent=2)
    tip = 304
    assert await branch_ids(store, tip) == ["a", "b", "c", "d"]
    assert await branch_ids(store, tip, limit=3) == ["b", "c", "d"]
    assert len(await branch_ids(store, 302, limit=500)) == 301


async def test_of_two_writers_with_the_same_tip_one_wins(store: Driver) -> None:
    await thread_with(store, "a")

    async def write(name: str) -> bool:
        try:
            async with store.writing() as tx:
                await log.extend(tx, "t", [draft(name)], expect=1)
        except ThreadConflict:
            return False
        return True

    won = await asyncio.gather(write("b"), write("c"))
    assert sorted(won) == [False, True]
    async with store.reading() as tx:
        assert await log.position(tx, "t") == (2, 2)


async def test_a_transaction_that_fails_leaves_nothing(store: Driver) -> None:
    await thread_with(store, "a")
    with pytest.raises(RuntimeError, match="stop"):
        async with store.writing() as tx:
            await log.extend(tx, "t", [draft("b")])
            raise RuntimeError("stop")
    async with store.reading() as tx:
        assert await log.position(tx, "t") == (1, 1)


async def test_a_cancelled_writer_lets_the_next_one_in(store: Driver) -> None:
    await thread_with(store, "a")
    inside = asyncio.Event()

    async def hang() -> None:
        async with store.writing() as tx:
            await log.extend(tx, "t", [draft("lost")])
            inside.set()
            await asyncio.sleep(3600)

    task = asyncio.create_task(hang())
    await inside.wait()
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    async with store.writing() as tx:
        assert [e.seq for e in await log.extend(tx, "t", [draft("b")])] == [2]


async def test_a_user_never_sees_anothers_thread(store: Driver) -> None:
    await thread_with(store, "secret-of-u")
    async with store.writing() as tx:
        for attempt in (
            log.find_thread(tx, "t", user_id="v"),
            log.create_thread(tx, "t", user_id="v"),
            log.rename_thread(tx, "t", "mine", user_id="v"),
            log.delete_thread(tx, "t", user_id="v"),
        ):
            with pytest.raises(ThreadNotFound):
                await attempt
        assert await listing.list_threads(tx, user_id="v") == []
        assert await listing.search_threads(tx, "text", user_id="v") == []
        assert await listing.threads_that_begin(tx, "t", user_id="v") == []
    async with store.reading() as tx:
        assert (await log.find_thread(tx, "t", user_id="u")).title is None


async def test_search_finds_both_languages_and_takes_wildcards_as_text(store: Driver) -> None:
    async with store.writing() as tx:
        for thread_id, text in (("1", "运载火箭有哪些？"), ("2", "100% of Rockets"), ("3", "100 percent")):
            await log.create_thread(tx, thread_id, user_id="u", title="title")
            await log.extend(tx, thread_id, [draft("a", text)])

    async def found(text: str) -> list[str]:
        async with store.reading() as tx:
            return sorted(thread.id for thread, _ in await listing.search_threads(tx, text, user_id="u"))

    assert await found("火箭") == ["1"]
    assert await found("rockets") == ["2"]
    assert await found("100%") == ["2"]
    assert await found("TITLE") == ["1", "2", "3"]
    assert await found("%") == ["2"]


async def test_threads_are_listed_page_by_page_latest_first(store: Driver) -> None:
    for n in range(5):
        await thread_with(store, "a", thread_id=f"t{n}")
    seen: list[str] = []
    async with store.reading() as tx:
        page = await listing.list_threads(tx, user_id="u", limit=2)
        while page:
            seen += [thread.id for thread in page]
            last = (page[-1].updated_at.isoformat(timespec="microseconds"), page[-1].id)
            page = await listing.list_threads(tx, user_id="u", limit=2, before=last)
    assert seen == ["t4", "t3", "t2", "t1", "t0"]


async def test_deleting_a_thread_leaves_no_trace_in_the_file(tmp_path: Path) -> None:
    path = tmp_path / "c.db"
    canary = "canary-4711"
    async with open_store(path) as store:
        await thread_with(store, canary, thread_id="t")
        async with store.writing() as tx:
            plan = runs.NewRun("r", canary, canary, canary, "auto", 1)
            lease = await runs.begin(tx, "t", plan, owner="h/1/x", alive=lambda _: True)
            await runs.start_step(tx, lease, "tool", action=canary)
            await runs.save_fold(tx, "t", 1, {"x": canary})
            await checkpoints.put(tx, checkpoints.CheckpointRow("t", "", 1, "c", None, "{}", canary.encode()), None)
            await checkpoints.put_blobs(tx, "t", "", 1, {"m": canary.encode()})
            await checkpoints.put_writes(tx, "t", checkpoints.WriteRow("", "c", "task", "", 1, canary.encode()))
        async with store.writing() as tx:
            await log.delete_thread(tx, "t", user_id="u")
    files = [file for file in tmp_path.iterdir() if canary.encode() in file.read_bytes()]
    assert files == []


async def test_a_file_that_is_no_store_is_refused_with_the_fix(tmp_path: Path) -> None:
    text = tmp_path / "notes.db"
    text.write_text("just text, long enough to be looked at as a database header" * 5)
    with pytest.raises(StoreUnavailable, match="not a Longthread database.*--database"):
        async with open_store(text):
            pass
    with pytest.raises(StoreUnavailable):
        async with open_store(tmp_path):
            pass


async def test_a_store_of_a_newer_version_is_left_alone(tmp_path: Path) -> None:
    import sqlite3

    path = tmp_path / "c.db"
    connection = sqlite3.connect(path)
    connection.execute("PRAGMA user_version = 9999")
    connection.close()
    with pytest.raises(StoreTooNew, match="9999"):
        async with open_store(path):
            pass


async def test_a_commit_is_on_the_disk_and_readers_do_not_wait(tmp_path: Path) -> None:
    async with open_store(tmp_path / "c.db") as store:
        assert isinstance(store, SqliteDriver)
        wanted = {"synchronous": 2, "journal_mode": "wal", "foreign_keys": 1, "secure_delete": 1}
        assert {name: await _pragma(store._writer, name) for name in wanted} == wanted
        for reader in store._all[1:]:
            assert (await _pragma(reader, "journal_mode"), await _pragma(reader, "query_only")) == ("wal", 1)


async def _pragma(connection: StoreConnection, name: str) -> Any:
    return next(iter(await connection.execute(f"PRAGMA {name}")))[0]


async def test_checkpoint_rows_of_no_thread_are_refused(store: Driver) -> None:
    row = checkpoints.CheckpointRow("none", "", 1, "c", None, "{}", b"")
    write = checkpoints.WriteRow("", "c", "task", "", 1, b"")
    for attempt in (
        lambda tx: checkpoints.put(tx, row, None),
        lambda tx: checkpoints.put_blobs(tx, "none", "", 1, {"m": b""}),
        lambda tx: checkpoints.put_writes(tx, "none", write),
    ):
        with pytest.raises(StoreError, match=r"(?i)foreign key"):
            async with store.writing() as tx:
                await attempt(tx)


async def test_opening_again_finds_everything(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "er" / "c.db"
    async with open_store(path) as store:
        await thread_with(store, "a", "b")
    async with open_store(path) as store:
        assert await branch_ids(store, 2) == ["a", "b"]


async def test_every_query_is_valid_sql(store: Driver, backend: str, store_address: str) -> None:
    checked = 0
    if "create_backup" in queries(backend):  # a backup has two tables more
        async with store.writing() as tx:
            await tx.run("create_backup")
            await tx.run("create_backup_tables")
    for name, sql in queries(backend).items():
        # As it is sent, after its comments; types of parameters that cannot be told are errors, too.
        statement = re.sub(r"^(--[^\n]*\n|\s)*", "", sql).rstrip("; \n")
        if not re.match(r"SELECT|INSERT|UPDATE|DELETE|WITH", statement) or name.startswith("foreign_"):
            continue  # no statement with parameters, or one for another program's tables
        try:
            await _prepare(store, store_address, statement)
        except (StoreError, psycopg.Error) as error:
            pytest.fail(f"{name}: {error}")
        checked += 1
    assert checked > 50


async def _prepare(store: Driver, address: str, statement: str) -> None:
    if store.dialect == "sqlite":
        values = dict.fromkeys(re.findall(r"(?<!:):(\w+)", statement))
        async with store.reading() as tx:
            await tx.fetch(Sql(f"EXPLAIN {statement}"), **values)
        return
    names: dict[str, str] = {}
    numbered = re.sub(
        r"%\((\w+)\)s",
        lambda found: names.setdefault(found[1], f"${len(names) + 1}"),
        translate_placeholders(statement),
    )
    with psycopg.connect(address, autocommit=True) as connection:
        connection.execute(f"PREPARE it AS {numbered.replace('%%', '%')}".encode())


async def test_a_store_is_closed_whole_though_its_task_is_cancelled(tmp_path: Path) -> None:
    opened, closed = asyncio.Event(), asyncio.Event()

    async def hold() -> None:
        async with open_store(tmp_path / "c.db") as store:
            close = store.close

            async def slowly() -> None:
                await asyncio.sleep(0.05)
                await close()
                closed.set()

            store.close = slowly  # type: ignore[method-assign]
            opened.set()

    task = asyncio.create_task(hold())
    await opened.wait()
    await asyncio.sleep(0.01)
    for _ in range(2):
        task.cancel()
        await asyncio.sleep(0)
    with pytest.raises(asyncio.CancelledError):
        await task
    assert closed.is_set()


async def test_two_processes_worth_of_drivers_share_one_file(tmp_path: Path) -> None:
    path = tmp_path / "c.db"
    async with open_store(path) as first, open_store(path) as second:
        await thread_with(first, "a")

        async def write(store: Driver, name: str) -> None:
            async with store.writing() as tx:
                await log.extend(tx, "t", [draft(name)])

        await asyncio.gather(*(write(store, f"{n}{k}") for n in range(10) for k, store in enumerate((first, second))))
        async with second.reading() as tx:
            assert await log.position(tx, "t") == (21, 21)
