"""Threads on their way from store to store: copied, exported, imported."""

from __future__ import annotations

import base64
import hashlib
import io
import json
import random
from collections.abc import AsyncIterator, Iterator, Sequence
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.contract.history import run_id, seen, turns
from tests.contract.queue import order, queued
from tests.contract.runs import alive, begun, taken_over
from tests.examples import examples
from tests.store.samples import TEXTS, all_of, drafts, fill

from longthread.errors import ArchiveInvalid, EntryNotFound, InvalidInput
from longthread.model.entry import Draft
from longthread.model.ids import new_id
from longthread.store import log, memories
from longthread.store.driver import Driver
from longthread.store.leases import find_running
from longthread.store.open import open_store
from longthread.store.queries import Sql
from longthread.store.tables import read_tables
from longthread.store.transfer.archive import export_lines
from longthread.store.transfer.archive_reader import ImportTarget, import_threads
from longthread.store.transfer.copy import compare_stores, copy_store
from longthread.store.transfer.threads import TransferOutcome, thread_ids

YOURS = ImportTarget(user_id="u")

SHARED = {
    *("agents", "skills", "tools", "memories", "memory_sources", "memory_uses"),
    *("items", "item_terms", "item_vectors"),
    *("boards", "board_cards"),
    *("sources", "upstreams", "routes", "catalog_versions", "context_windows", "model_protocols"),
    *("access_users", "access_identities", "access_groups", "access_members", "access_keys", "access_grants"),
    *("access_spending", "access_audit", "access_uploads", "access_projects", "access_project_members"),
}
"""Tables whose rows belong to no thread."""


def silent(done: int, total: int, what: str) -> None:
    """Progress that nobody looks at."""


@pytest.fixture
async def other(other_address: str) -> AsyncIterator[Driver]:
    """Another empty store."""
    async with open_store(other_address) as opened:
        yield opened


async def exported(store: Driver, *names: str, user_id: str | None = None) -> bytes:
    async with store.reading() as tx:
        wanted = names or await thread_ids(tx, user_id=user_id)
        return b"".join([line async for line in export_lines(tx, wanted, silent)])


async def imported(store: Driver, data: bytes, into: ImportTarget = YOURS) -> TransferOutcome:
    return await import_threads(store, io.BytesIO(data), "x.jsonl", into, silent)


def lines(data: bytes) -> list[dict[str, Any]]:
    return [json.loads(line) for line in data.split(b"\n")[:-1]]


async def test_both_backends_have_the_same_tables(store: Driver, other: Driver) -> None:
    async with store.reading() as here, other.reading() as there:
        ours, theirs = await read_tables(here), await read_tables(there)
    assert ours.shape == theirs.shape
    assert {"threads", "entries", "runs", "steps", "events", "checkpoints"} <= {table.name for table in ours.of_threads}
    assert {table.name for table in ours.shared_tables} == SHARED


async def test_every_table_of_the_database_is_told(store: Driver, plain: Any) -> None:
    sql = {
        "sqlite": "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%'",
        "postgres": "SELECT tablename FROM pg_tables WHERE schemaname = current_schema()"
        " AND tablename <> 'longthread_migrations'",
    }
    plain("CREATE TABLE later (thread_id TEXT REFERENCES threads (id) ON DELETE CASCADE, n BIGINT, PRIMARY KEY (n))")
    async with store.reading() as tx:
        tables = await read_tables(tx)
    assert sorted(table.name for table in tables.all) == sorted(name for (name,) in plain(sql[store.dialect]))
    assert tables["later"].thread == "thread_id"


@pytest.mark.sampled(2)
async def test_a_copy_is_whole_and_the_second_one_writes_nothing(store: Driver, other: Driver) -> None:
    for thread_id in ("a", "b", "B"):
        await fill(store, thread_id, user_id=thread_id)
    first = await copy_store(store, other, silent)
    assert (first.written, first.same, first.refused) == (3, 0, [])
    assert await all_of(store) == await all_of(other)
    assert all((await all_of(other)).values()), "every table has rows"
    again = await copy_store(store, other, silent)
    assert (again.written, again.same, again.rows, again.refused) == (0, 3, 0, [])
    compared = await compare_stores(store, other, silent)
    assert (compared.source, compared.target, compared.differing) == (3, 3, ())


@pytest.mark.sampled(2)
async def test_a_thread_without_a_name_goes_along(store: Driver, other: Driver) -> None:
    for thread_id in ("", "a"):
        await fill(store, thread_id)
    async with store.reading() as tx:
        assert await thread_ids(tx, limit=1) == [""]
        assert await thread_ids(tx, after="") == ["a"]
    data = await exported(store)
    copied = await copy_store(store, other, silent)
    assert (copied.written, await all_of(other)) == (2, await all_of(store))
    async with other.writing() as tx:
        await log.delete_thread(tx, "", user_id="u")
    assert (await compare_stores(store, other, silent)).missing == 1
    assert (await imported(other, data)).written == 1
    assert await exported(other) == data
    assert (await compare_stores(store, other, silent)).missing == 0


@pytest.mark.sampled(2)
async def test_what_refers_to_a_run_finds_it_or_is_told_that_it_was_pruned(store: Driver, other: Driver) -> None:
    await turns(store, 40)
    await copy_store(store, other, silent)
    before = await seen(other), await exported(other)
    async with other.writing() as tx:
        [used] = await tx.fetch(Sql("SELECT DISTINCT memory_id FROM memory_uses"))
        await memories.delete(tx, used["memory_id"], user_id="u")
    assert (await copy_store(store, other, silent)).refused == []
    assert (await seen(other), await exported(other)) == before
    async with other.writing() as tx:
        await memories.delete(tx, used["memory_id"], user_id="u")
        await tx.run("prune_runs", thread_id="t", first_run=run_id(6))
    refused = [str(each) for each in (await copy_store(store, other, silent)).refused]
    assert refused[0].startswith("thread t (runs: 34 there")
    assert refused[1:] == [f"memory_uses t {run_id(5)} {used['memory_id']} (its run is not there)"]


@pytest.mark.sampled(2)
async def test_rows_whose_thread_began_after_the_list_was_read_stop_no_copy(
    store: Driver, other: Driver, monkeypatch: pytest.MonkeyPatch
) -> None:
    for thread_id in ("a", "b"):
        await fill(store, thread_id)  # what is shared refers to the first one

    async def listed_before(*_: Any) -> AsyncIterator[str]:
        yield "b"

    with monkeypatch.context() as patch:
        patch.setattr("longthread.store.transfer.copy.each_thread", listed_before)
        refused = [str(each) for each in (await copy_store(store, other, silent)).refused]
    assert sorted(each.split()[0] for each in refused) == ["memories", "memory_sources", "memory_uses"]
    here, there = await all_of(store), await all_of(other)
    assert there["board_cards"] == [{**row, "asked_in": None} for row in here["board_cards"]] != []
    again = await copy_store(store, other, silent)
    assert [each.reason for each in again.refused] == ["another asked_in"]
    assert (await all_of(other))["memory_uses"] == here["memory_uses"], "the rest comes with its thread"


@pytest.mark.sampled(2)
async def test_a_copy_never_overwrites(store: Driver, other: Driver) -> None:
    for thread_id in ("a", "b", "c"):
        await fill(store, thread_id)
    await copy_store(store, other, silent)
    async with other.writing() as tx:
        await log.rename_thread(tx, "b", "another title", user_id="u")
        await log.delete_thread(tx, "c", user_id="u")
        await tx.run("update_source", id="a", source="source")
    async with store.writing() as tx:
        await log.extend(tx, "a", [Draft("new", "user", "new")])
    before = await all_of(other)
    outcome = await copy_store(store, other, silent)
    assert [str(refusal) for refusal in outcome.refused][:2] == [
        "thread a (entries: 12 there, 13 here)",
        "thread b (threads: another title)",
    ]
    assert (outcome.written, outcome.same) == (1, 0)
    after = await all_of(other)
    assert [row for row in after["entries"] if row["thread_id"] != "c"] == before["entries"]
    assert (await compare_stores(store, other, silent)).differing == ("a",)


@pytest.mark.sampled(2)
async def test_an_export_comes_back_the_same_over_either_backend(store: Driver, other: Driver) -> None:
    for thread_id in ("a", "线", "z'\""):
        await fill(store, thread_id)
    data = await exported(store)
    assert (await imported(other, data)).written == 3
    assert await exported(other) == data
    held = (await all_of(store), await all_of(other))
    # Each store has the built-in agent and skills of its own.
    assert {name for name, rows in held[1].items() if not rows} == {*SHARED} - {"agents", "skills"}
    for name, rows in held[1].items():
        assert name in ("agents", "skills") or rows in ([], held[0][name]), name
    again = await imported(store, await exported(other))
    assert (again.written, again.same, again.rows, again.refused) == (0, 3, 0, [])


@pytest.mark.sampled(2)
async def test_a_run_is_executed_where_it_was_begun_and_nowhere_else(store: Driver, other: Driver) -> None:
    await begun(store, owner="somewhere/1/x")
    data = await exported(store)
    assert "owner" not in of(lines(data), "runs")[-1]

    def owned(found: list[dict[str, Any]]) -> None:
        of(found, "runs")[-1]["owner"] = "somewhere/1/x"

    assert (await imported(other, rewritten(data, owned))).written == 1
    assert await exported(other) == data
    assert (await imported(other, data)).same == 1
    assert (await imported(store, rewritten(data, owned))).same == 1
    async with other.writing() as tx:
        assert await find_running(tx, "t", alive=alive) is None
        await log.delete_thread(tx, "t", user_id="u")
    assert (await copy_store(store, other, silent)).written == 1
    async with store.reading() as here, other.writing() as there:
        assert await find_running(here, "t", alive=alive) == "r1"
        assert await find_running(there, "t", alive=alive) is None
    assert (await taken_over(other, alive=alive)).owner == "second"
    assert (await copy_store(store, other, silent)).same == 1


@pytest.mark.sampled(2)
async def test_a_question_that_waits_stays_where_it_was_asked(store: Driver, other: Driver) -> None:
    await queued(store, "q", user_id="u")
    data = await exported(store)
    assert "queued_questions" not in lines(data)[1]["rows"]

    def with_a_question(found: list[dict[str, Any]]) -> None:
        found[1]["rows"]["queued_questions"] = 1
        found.insert(-1, {"table": "queued_questions", "row": {"id": "q", "place": 1}})

    with pytest.raises(ArchiveInvalid, match="has no queued_questions"):
        await imported(other, rewritten(data, with_a_question))
    outcome = await copy_store(store, other, silent)
    assert (outcome.written, outcome.questions_left) == (1, 1)
    assert await order(other) == []
    assert (await copy_store(store, other, silent)).same == 1


@pytest.mark.sampled(2)
async def test_a_thread_where_a_question_waits_is_not_replaced(store: Driver, other: Driver) -> None:
    await fill(store, "t")
    assert (await copy_store(store, other, silent)).written == 1
    await queued(other, "q", user_id="u")
    async with store.writing() as tx:
        await log.extend(tx, "t", [Draft(id=new_id(), role="user", text="More")])
    outcome = await copy_store(store, other, silent, update=True)
    assert [each.reason for each in outcome.refused] == ["a question waits there"]
    assert await order(other) == [(1, "q")]


async def test_an_export_is_lines_that_can_be_read(store: Driver) -> None:
    await fill(store, "a")
    head, thread, *rows, end = lines(await exported(store))
    assert (head["longthread_export"], head["threads"]) == (1, 1)
    assert (thread["thread"], thread["rows"]["entries"]) == ("a", len(TEXTS) + 1)
    entries = [line["row"] for line in rows if line["table"] == "entries"]
    assert [entry["text"] for entry in entries[:3]] == TEXTS[:3]
    assert entries[1]["metadata"] == {"kind": "text"}
    assert base64.b64decode(entries[1]["payload"]["base64"]) == b"text\0\xff"
    assert end["lines"] == len(rows) + 2


async def test_a_thread_that_differs_is_refused_and_the_others_come(store: Driver) -> None:
    for thread_id in ("a", "b"):
        await fill(store, thread_id)
    data = await exported(store)
    async with store.writing() as tx:
        await log.delete_thread(tx, "a", user_id="u")
        await log.extend(tx, "b", [Draft("new", "user", "new")])
    before = await exported(store, "b")
    outcome = await imported(store, data)
    assert (outcome.written, outcome.same) == (1, 0)
    assert [str(refusal) for refusal in outcome.refused] == ["thread b (entries: 13 there, 12 here)"]
    assert await exported(store, "b") == before


async def test_an_import_under_another_id_is_the_same_thread(store: Driver) -> None:
    await fill(store, "a")
    data = await exported(store, "a")
    into = ImportTarget("u", thread_id="copy")
    assert (await imported(store, data, into)).written == 1
    assert (await imported(store, data, into)).same == 1
    first, second = lines(data), lines(await exported(store, "copy"))
    assert second[1] == first[1] | {"thread": "copy"}
    prefixed = [row | {"id": f"copy/{row['id']}"} for row in of(first, "memory_vectors")]
    assert of(second, "memory_vectors") == prefixed
    assert of(second, "entries") == of(first, "entries")
    assert len(first) == len(second)


def of(found: Sequence[dict[str, Any]], table: str) -> list[dict[str, Any]]:
    return [line["row"] for line in found if line.get("table") == table]


async def test_threads_of_others_come_only_when_it_is_said_whose_they_become(store: Driver) -> None:
    await fill(store, "a", user_id="alice")
    data = await exported(store)
    with pytest.raises(InvalidInput, match="--user bob makes them yours"):
        await imported(store, data, ImportTarget("bob"))
    with pytest.raises(InvalidInput, match="--as"):
        await imported(store, (await two_threads(store)), ImportTarget("u", thread_id="x"))
    taken = await imported(store, data, ImportTarget("bob", takes_over=True))
    assert [str(refusal) for refusal in taken.refused] == ["thread a (its id is taken by another user)"]
    assert (await imported(store, data, ImportTarget("bob", takes_over=True, thread_id="b"))).written == 1
    async with store.reading() as tx:
        assert (await log.find_thread(tx, "b", user_id="bob")).title == "title"
        assert (await log.find_thread(tx, "a", user_id="alice")).title == "title"


async def two_threads(store: Driver) -> bytes:
    for thread_id in ("one", "two"):
        await fill(store, thread_id)
    return await exported(store, "one", "two")


async def test_a_file_that_was_cut_off_anywhere_is_refused(store: Driver) -> None:
    await fill(store, "a")
    data = await exported(store)
    async with store.writing() as tx:
        await log.delete_thread(tx, "a", user_id="u")
    ends = [match + 1 for match in range(len(data)) if data[match : match + 1] == b"\n"]
    for end in [1, *ends[:-1], *(end + 7 for end in ends[:-1]), len(data) - 1]:
        with pytest.raises(ArchiveInvalid, match=r"not complete"):
            await imported(store, data[:end])
    async with store.reading() as tx:
        assert await thread_ids(tx) == []
    assert (await imported(store, data)).written == 1


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda data: b"", "line 1: this is not an export of threads"),
        (lambda data: b'[{"title":"x"}]', "line 1: this is not an export of threads"),
        (lambda data: b'[{"title":"x"}]\n', "line 1: this is not an export of threads"),
        (lambda data: b"\xff\xfe{\0", "line 1: this is not an export of threads"),
        (lambda data: data.replace(b"\n", b"\r\n"), "line 1: another program has changed its line ends"),
        (lambda data: b"\xef\xbb\xbf" + data, "line 1: the file begins with a byte order mark"),
    ],
)
async def test_a_file_of_another_program_is_told_from_one_that_was_cut_off(
    store: Driver, change: Any, says: str
) -> None:
    await fill(store, "a")
    with pytest.raises(ArchiveInvalid, match=says):
        await imported(store, change(await exported(store)))


@pytest.mark.sampled(2)
async def test_a_file_that_was_changed_is_refused(store: Driver) -> None:
    await fill(store, "a")
    data = await exported(store)
    chosen = random.Random(4)
    for _ in range(200):
        place = chosen.randrange(len(data))
        with pytest.raises(ArchiveInvalid, match="line"):
            await imported(store, data[:place] + bytes([data[place] ^ 1]) + data[place + 1 :])
    with pytest.raises(ArchiveInvalid, match="behind the end"):
        await imported(store, data + b"x")


def rewritten(data: bytes, change: Any) -> bytes:
    """The export after `change` has had its lines, with a checksum that fits."""
    *found, end = lines(data)
    change(found)
    text = [json.dumps(line, ensure_ascii=False).encode() + b"\n" for line in found]
    end |= {"lines": len(text), "sha256": hashlib.sha256(b"".join(text)).hexdigest()}
    return b"".join(text) + json.dumps(end).encode() + b"\n"


def changes() -> Iterator[tuple[str, Any, str]]:
    def row(found: list[dict[str, Any]], table: str, number: int = 0) -> dict[str, Any]:
        return of(found, table)[number]

    yield "version", lambda f: f[0].update(longthread_export=2), "line 1: a newer Longthread"
    yield "schema", lambda f: f[0].update(schema=999), "line 1: a newer Longthread"
    yield "older", lambda f: f[0].update(schema=48), "line 1: it has schema version 48, .*commit 9a783799"
    yield "no export", lambda f: f[0].pop("longthread_export"), "not an export"
    yield "no thread", lambda f: f.pop(1), "a thread must begin here"
    yield "table", lambda f: f[1]["rows"].update(pets=1), "no pets"
    yield "column", lambda f: row(f, "entries").update(mood="good"), "no mood"
    yield "kind", lambda f: row(f, "entries").update(seq="1"), "seq must be a whole number"
    yield "text", lambda f: row(f, "entries").update(text=None), "needs a value for text"
    yield "nul", lambda f: row(f, "entries").update(text="\0"), "NUL"
    yield "missing", lambda f: row(f, "entries").pop("created_at"), "needs a value for created_at"
    yield "key", lambda f: row(f, "entries").pop("seq"), "needs a value for seq"
    yield "bytes", lambda f: row(f, "entries", 1).update(payload={"base64": "?"}), "not in base64"
    yield "parent", lambda f: row(f, "entries", 1).update(parent_seq=9), "stands behind entry 9"
    yield "seq", lambda f: row(f, "entries", 11).update(seq=99), "cannot have an entry 99"
    yield "twice", lambda f: row(f, "entries", 1).update(id="m0"), "two entries have the id m0"
    yield "role", lambda f: row(f, "entries").update(role="robot"), "the role robot"
    yield "order", lambda f: row(f, "entries", 1).update(seq=1), "another order"
    yield "tip", lambda f: row(f, "threads").update(tip=13), "ends in entry 13"
    yield "row", lambda f: f.pop(14), "line 15: a row of entries is missing"


@pytest.mark.sampled(3)
@pytest.mark.parametrize(("change", "says"), [pytest.param(c, s, id=name) for name, c, s in changes()])
async def test_what_is_wrong_is_told_with_its_line_before_anything_is_written(
    store: Driver, change: Any, says: str
) -> None:
    await fill(store, "a")
    data = rewritten(await exported(store), change)
    async with store.writing() as tx:
        await log.delete_thread(tx, "a", user_id="u")
    with pytest.raises(ArchiveInvalid, match=says) as caught:
        await imported(store, data)
    assert "line " in str(caught.value)
    async with store.reading() as tx:
        assert await thread_ids(tx) == []


async def test_an_export_without_a_column_gets_its_default(store: Driver) -> None:
    await fill(store, "a")

    data = rewritten(await exported(store), lambda found: of(found, "threads")[0].pop("status"))
    assert (await imported(store, data)).same == 1
    assert (await imported(store, data, ImportTarget("u", thread_id="b"))).written == 1
    assert of(lines(await exported(store, "b")), "threads")[0]["status"] == "active"


async def test_an_export_in_another_order_of_keys_is_the_same(store: Driver) -> None:
    await fill(store, "a")
    data = rewritten(
        await exported(store), lambda found: of(found, "entries")[0].update(text=of(found, "entries")[0].pop("text"))
    )
    assert (await imported(store, data)).same == 1


Steps = st.lists(
    st.tuples(
        st.integers(0, 30),
        st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=20),
        st.binary(max_size=20),
    ),
    min_size=1,
    max_size=25,
)


@pytest.mark.sampled(2)
@settings(max_examples=examples(20), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(steps=Steps)
async def test_a_tree_of_any_shape_survives(store: Driver, other: Driver, steps: Any) -> None:
    thread_id = new_id()
    async with store.writing() as tx:
        await log.create_thread(tx, thread_id, user_id="u")
        for number, (parent, text, payload) in enumerate(steps):
            await log.extend(
                tx, thread_id, [Draft(f"m{number}", "user", text, payload=payload)], parent=min(parent, number)
            )
    data = await exported(store, thread_id)
    await imported(other, data)
    assert await exported(other, thread_id) == data
    await copy_store(other, store, silent)
    assert await exported(store, thread_id) == data
    async with store.reading() as here, other.reading() as there:
        thread = await log.find_thread(here, thread_id, user_id="u")
        assert await log.branch(here, thread_id, thread.tip) == await log.branch(there, thread_id, thread.tip)


@pytest.mark.sampled(2)
async def test_nothing_of_a_large_thread_but_a_page_is_held_at_a_time(
    store: Driver, other: Driver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("longthread.store.transfer.threads.PAGE_BYTES", 20_000)
    monkeypatch.setattr("longthread.store.transfer.threads.PAGE_BYTES", 20_000)
    async with store.writing() as tx:
        await log.create_thread(tx, "a", user_id="u")
        await log.extend(tx, "a", [Draft(f"m{number}", "user", "x" * 2000) for number in range(300)])
    sizes: list[int] = []
    transaction = type(await tx_of(store))
    fetch = transaction.fetch

    async def watched(self: Any, query: str, **values: Any) -> Any:
        rows = await fetch(self, query, **values)
        if isinstance(query, Sql):
            sizes.append(len(rows))
        return rows

    monkeypatch.setattr(transaction, "fetch", watched)
    data = await exported(store, "a")
    await imported(other, data)
    await copy_store(store, other, silent)
    assert len(data) > 600_000
    assert max(sizes) <= 64
    assert sum(size > 0 for size in sizes) > 30


async def tx_of(store: Driver) -> Any:
    async with store.reading() as tx:
        return tx


async def test_a_thread_that_is_not_there_is_exported_as_nothing_that_could_be_imported(store: Driver) -> None:
    with pytest.raises(ArchiveInvalid, match="the thread itself is missing"):
        await imported(store, await exported(store, "nobody"))
    with pytest.raises(EntryNotFound):
        async with store.reading() as tx:
            await log.find_entry(tx, "nobody", drafts(["x"])[0].id)
