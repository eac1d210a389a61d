"""`longthread db` and the export and import of threads, on both backends."""

from __future__ import annotations

import asyncio
import io
import json
import operator
import os
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, TypedDict

import psycopg
import pytest
from langchain_core.messages import AIMessage, HumanMessage
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.graph import START, MessagesState, StateGraph
from tests.store.next_version import NEXT, become_next, set_version
from tests.store.samples import fill
from tests.store.turns import at, begin, turns
from typer.testing import CliRunner

from longthread.cli.app import app
from longthread.errors import StoreReadOnly, ThreadNotFound
from longthread.langgraph.saver.async_saver import AsyncLongthreadSaver
from longthread.model.entry import Draft
from longthread.runs.worker import new_worker
from longthread.store import log, runs
from longthread.store.driver import Driver
from longthread.store.open import open_store
from longthread.store.queries import Sql
from longthread.store.runs import NewRun
from longthread.store.schema import SCHEMA_VERSION
from longthread.store.transfer import threads

pytestmark = pytest.mark.one_backend

Run = Callable[..., Any]


@pytest.fixture
def run(run: Run, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Runs a command as the user whose threads these are."""
    monkeypatch.setenv("LONGTHREAD_USER", "u")
    return run


def in_store(address: str, work: Callable[[Driver], Any]) -> Any:
    """Does something with a store, in a loop of its own."""

    async def do() -> Any:
        async with open_store(address) as store:
            return await work(store)

    return asyncio.run(do())


def said(result: Any) -> str:
    return " ".join(str(result.exception).split())


def test_upgrade_says_from_which_version_to_which(run: Run, tmp_path: Path, store_address: str) -> None:
    in_store(store_address, lambda store: fill(store, "t"))
    assert "nothing to do" in run("db", "upgrade").stdout
    assert "made, version" in run("db", "upgrade", "--database", "new.db").stdout
    connection = sqlite3.connect(tmp_path / "new.db")
    tables = [row[0] for row in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
    assert "entries" in tables


def test_status_tells_what_the_store_holds(run: Run, store_address: str) -> None:
    in_store(store_address, lambda store: turns(store, 3))
    told = json.loads(run("db", "status", "--json").stdout)
    assert (told["threads"], told["entries"], told["runs"], told["live"]) == (1, 12, 3, 0)
    assert told["tables"]["entries"]["rows"] == 12
    assert told["tables"]["entries"]["bytes"] > 4096
    assert told["bytes"] > told["tables"]["entries"]["bytes"]
    text = run("db", "status").stdout
    assert "1 thread, 12 entries, " in text
    assert told["server"] in text


def test_a_page_that_cannot_be_measured_is_damage_and_no_full_disk(
    tmp_path: Path,
) -> None:
    address = str(tmp_path / "conversations.db")
    in_store(address, lambda store: turns(store, 40))
    told = set()
    for start in range(16_384, 90_000, 2_048):
        harmed = tmp_path / "harmed.db"
        body = bytearray((tmp_path / "conversations.db").read_bytes())
        body[start : start + 12_000] = bytes(255 - byte for byte in body[start : start + 12_000])
        harmed.write_bytes(body)
        result = CliRunner().invoke(app, ["db", "status", "--database", str(harmed)])
        told.add(getattr(result.exception, "code", ""))
    assert "store_damaged" in told
    assert "store_full" not in told


def test_status_leaves_an_older_schema_as_it_is(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    run("db", "upgrade")
    become_next(monkeypatch)
    told = json.loads(run("db", "status", "--json").stdout)
    assert (told["schema"], told["latest"], told["threads"], told["live"]) == (SCHEMA_VERSION, NEXT, 0, 0)
    text = " ".join(run("db", "status").stdout.split())
    assert f"schema version {SCHEMA_VERSION} (`longthread db upgrade` brings it to {NEXT})" in text
    assert f"version {SCHEMA_VERSION} → {NEXT}" in run("db", "upgrade").stdout


@pytest.mark.parametrize("command", ["status", "upgrade", "prune"])
def test_a_store_from_before_the_first_release_names_the_commit(run: Run, command: str, store_address: str) -> None:
    set_version(store_address, 48)
    assert "Longthread's commit 9a783799" in said(run("db", command, code=5))


def test_status_makes_no_store_of_an_empty_database(run: Run, postgres_url: str) -> None:
    assert "there is none yet" in said(run("db", "status", "--database", postgres_url, code=5))
    with psycopg.connect(postgres_url) as connection:
        assert connection.execute("SELECT count(*) FROM pg_tables WHERE schemaname = 'public'").fetchone() == (0,)


def test_status_shows_no_password(run: Run, postgres_url: str) -> None:
    secret = postgres_url.replace("postgres:@", "postgres:geheim@")
    run("db", "upgrade", "--database", postgres_url)
    for command in (("status",), ("status", "--json"), ("upgrade",), ("prune",)):
        result = run("db", *command, "--database", secret)
        assert "geheim" not in result.output


@pytest.mark.parametrize("command", [("status",), ("prune",), ("copy", "other.db")])
def test_a_store_that_is_not_there_is_not_made(run: Run, tmp_path: Path, command: tuple[str, ...]) -> None:
    name, *to = command
    args = ("db", name, "none.db", *to) if to else ("db", name, "--database", "none.db")
    assert "there is none yet" in said(run(*args, code=5))
    assert not (tmp_path / "none.db").exists()
    assert not (tmp_path / "other.db").exists()


@pytest.mark.parametrize("command", [("status",), ("prune",), ("copy", "other.db")])
def test_an_empty_file_or_folder_is_no_store_and_stays_so(run: Run, tmp_path: Path, command: tuple[str, ...]) -> None:
    (tmp_path / "empty.db").touch()
    (tmp_path / "folder").mkdir()
    name, *to = command
    places = (("empty.db", "longthread db upgrade"), ("embedded:folder", "none yet"), ("folder", "it is a folder"))
    for place, why in places:
        assert why in said(run("db", name, *((place, *to) if to else ("--database", place)), code=5))
    assert (tmp_path / "empty.db").read_bytes() == b""
    assert not list((tmp_path / "folder").iterdir())
    assert not (tmp_path / "other.db").exists()


@pytest.mark.sampled(2)
def test_a_store_is_copied(run: Run, store_address: str, other_address: str) -> None:
    in_store(store_address, lambda store: fill(store, "t"))
    assert "1 thread copied" in run("db", "copy", store_address, other_address).stdout
    again = json.loads(run("db", "copy", store_address, other_address, "--json").stdout)
    assert (again["written"], again["same"], again["refused"], again["went_on"]) == (0, 1, [], [])


@pytest.mark.sampled(2)
def test_the_read_only_setting_is_for_both_stores_of_a_copy_and_the_option_for_the_first(
    run: Run, store_address: str, other_address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    in_store(store_address, lambda store: turns(store, 2))
    in_store(other_address, lambda store: turns(store, 1, thread_id="other"))
    monkeypatch.setenv("LONGTHREAD_READ_ONLY", "1")
    for option in ((), ("--read-only",), ("--update",)):
        refused = run("db", "copy", store_address, other_address, *option, code=5)
        assert isinstance(refused.exception, StoreReadOnly)
    with pytest.raises(ThreadNotFound):
        in_store(other_address, lambda store: ids(store, "t"))
    monkeypatch.delenv("LONGTHREAD_READ_ONLY")
    assert "1 thread copied" in run("db", "copy", store_address, other_address, "--read-only").stdout
    assert in_store(other_address, lambda store: ids(store, "t")) == in_store(
        store_address, lambda store: ids(store, "t")
    )


def test_a_store_is_not_copied_to_itself_by_another_name(run: Run, tmp_path: Path, store_address: str) -> None:
    in_store(store_address, lambda store: fill(store, "t"))
    others = [store_address]
    if "://" in store_address:
        others += [f"{store_address}{'&' if '?' in store_address else '?'}application_name=another"]
        others += [store_address.replace("postgresql://", "postgres://")]
    else:
        (tmp_path / "link.db").symlink_to(store_address)
        (tmp_path / "linked.db").hardlink_to(store_address)
        others += [os.path.relpath(store_address, tmp_path), "link.db", "linked.db", f"sqlite:///{store_address}"]
    for other in others:
        for places in ((store_address, other), (other, store_address)):
            told = said(run("db", "copy", *places, code=2))
            assert "cannot be copied to itself. Name another file or database as TO." in told
    assert {path.name for path in tmp_path.iterdir()} <= {"conversations.db", "link.db", "linked.db"}


@pytest.mark.sampled(2)
def test_a_thread_without_a_name_is_one(run: Run, tmp_path: Path, store_address: str, other_address: str) -> None:
    async def two(store: Driver) -> None:
        await fill(store, "")
        await turns(store, 1, thread_id="t")

    in_store(store_address, two)
    told = json.loads(run("db", "copy", store_address, other_address, "--json").stdout)
    assert (told["written"], told["threads"]) == (2, {"from": 2, "to": 2})
    assert "2 threads exported" in run("threads", "export", "--all", "--to", "all.jsonl").stderr
    assert "Would delete: 2 whole threads" in run("db", "prune", "--threads-idle", "0s").stdout
    assert "2 threads indexed" in run("db", "index").stdout


def test_the_thread_without_a_name_is_exported_by_its_name(run: Run, store_address: str) -> None:
    assert "is empty" in said(run("threads", "export", "", code=2))

    async def two(store: Driver) -> None:
        await turns(store, 1, thread_id="")
        await turns(store, 1, thread_id="t")

    in_store(store_address, two)
    assert "1 thread exported" in run("threads", "export", "", "--to", "one.jsonl").stderr
    run("threads", "delete", "", "--yes")
    assert "1 thread imported" in run("threads", "import", "one.jsonl").stdout
    assert len(run("threads", "show", "", "--json").stdout.splitlines()) == 4


def test_an_export_makes_no_store(run: Run, tmp_path: Path) -> None:
    for command in (("--all",), ("last",)):
        assert "there is none yet" in said(run("threads", "export", *command, "--database", "none.db", code=5))
    assert not (tmp_path / "none.db").exists()


@pytest.mark.sampled(2)
def test_a_copy_does_not_say_that_all_is_there_when_a_thread_is_not(
    run: Run, store_address: str, other_address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def two(store: Driver) -> None:
        await turns(store, 1, thread_id="a")
        await turns(store, 1, thread_id="b")

    ids_of = threads.thread_ids
    monkeypatch.setattr(threads, "thread_ids", lambda tx, after="a", **more: ids_of(tx, after=after, **more))
    in_store(store_address, two)
    said = run("db", "copy", store_address, other_address).stdout
    assert "FROM has 2 threads, and TO 1. Copy again." in said
    assert "as many rows" not in said


@pytest.mark.sampled(2)
def test_a_copy_that_would_overwrite_is_refused_and_an_update_is_not(
    run: Run, store_address: str, other_address: str
) -> None:
    async def two(store: Driver) -> None:
        await fill(store, "a")
        await fill(store, "b")

    in_store(store_address, two)
    run("db", "copy", store_address, other_address)
    in_store(store_address, lambda store: extend(store, "a", "more"))
    in_store(store_address, lambda store: extend(store, "b", "more"))
    in_store(other_address, lambda store: extend(store, "b", "elsewhere"))
    refused = said(run("db", "copy", store_address, other_address, code=5))
    assert "thread a (entries: 12 there, 13 here), thread b" in refused
    assert "Copy again with --update" in refused
    result = run("db", "copy", store_address, other_address, "--update", code=5)
    assert "1 brought up to date" in result.stdout
    assert "thread b" in said(result)
    assert "Delete it there" in said(result)
    assert "--update" not in said(result)
    assert "thread a" not in said(result)
    assert in_store(other_address, lambda store: ids(store, "a"))[-1] == "more"
    assert in_store(other_address, lambda store: ids(store, "b"))[-1] == "elsewhere"


class Counted(TypedDict):
    """A state without messages: of its threads there are checkpoints alone."""

    n: Annotated[int, operator.add]


async def count_on(store: Driver, thread_id: str, times: int) -> int:
    """Go on with such a thread; what it has come to."""
    builder = StateGraph(Counted)
    builder.add_node("one", lambda _: {"n": 1})
    builder.add_edge(START, "one")
    saver = AsyncLongthreadSaver(store)
    graph, config = builder.compile(checkpointer=saver), {"configurable": {"thread_id": thread_id}}
    for _ in range(times):
        await graph.ainvoke({"n": 10}, config)  # type: ignore[arg-type, call-overload]
    return int((await graph.aget_state(config)).values["n"])  # type: ignore[arg-type]


@pytest.mark.sampled(2)
def test_an_update_leaves_a_thread_that_went_on_there_without_a_message(
    run: Run, store_address: str, other_address: str
) -> None:
    for name in ("here", "there", "both", "pruned"):
        in_store(store_address, lambda store, name=name: count_on(store, name, 2))
    run("db", "copy", store_address, other_address)
    for address, name in (
        (store_address, "here"),
        (other_address, "there"),
        (store_address, "both"),
        (other_address, "both"),
    ):
        in_store(address, lambda store, name=name: count_on(store, name, 3))

    async def prune(store: Driver) -> None:
        await AsyncLongthreadSaver(store).aprune(["pruned"])

    in_store(store_address, prune)
    result = run("db", "copy", store_address, other_address, "--update", code=5)
    assert "1 brought up to date" in result.stdout
    assert "thread there (checkpoints 7: only there)" in said(result)
    assert "thread both (checkpoints 7: another id)" in said(result)
    assert "thread pruned (checkpoints 1: only there)" in said(result)
    assert {
        name: in_store(other_address, lambda store, name=name: count_on(store, name, 0))
        for name in ("here", "there", "both")
    } == {"here": 55, "there": 55, "both": 55}


@pytest.mark.sampled(2)
def test_an_update_leaves_a_thread_with_a_run_that_is_only_there(
    run: Run, store_address: str, other_address: str
) -> None:
    in_store(store_address, lambda store: turns(store, 2, thread_id="t"))
    run("db", "copy", store_address, other_address)
    in_store(other_address, begin_and_leave)
    assert "(runs left: only there)" in said(run("db", "copy", store_address, other_address, "--update", code=5))


async def begin_and_leave(store: Driver) -> None:
    async with store.writing() as tx:
        plan = NewRun("left", "a question without an entry", None, "model", "auto", 5)
        await runs.begin(tx, "t", plan, owner="owner", alive=lambda _: True)


async def extend(store: Driver, thread_id: str, name: str) -> None:
    async with store.writing() as tx:
        await log.extend(tx, thread_id, [Draft(name, "user", name)])


async def ids(store: Driver, thread_id: str) -> list[str]:
    async with store.reading() as tx:
        tip, _ = await log.position(tx, thread_id)
        return [entry.id for entry in await log.branch(tx, thread_id, tip)]


def test_pruning_says_first_and_then_does(run: Run, store_address: str) -> None:
    async def expired(store: Driver) -> None:
        await turns(store, 2, thread_id="kept")
        await turns(store, 100, thread_id="old")
        async with store.writing() as tx:
            await tx.run(Sql("UPDATE threads SET expires_at = :at WHERE id = 'old'"), at=at(0))

    in_store(store_address, expired)
    dry = run("db", "prune").stdout
    assert "Would delete: 1 whole thread, 400 entries, 100 runs" in dry
    assert "--apply" in dry
    assert json.loads(run("db", "prune", "--json").stdout)["rows"]["entries"] == 400
    assert "Would delete: nothing" in run("db", "prune", "--keep-expired").stdout
    before = json.loads(run("db", "status", "--json").stdout)
    assert before["entries"] == 408
    done = json.loads(run("db", "prune", "--apply", "--yes", "--json").stdout)
    assert (done["threads"], done["applied"]) == (1, True)
    after = json.loads(run("db", "status", "--json").stdout)
    assert after["entries"] == 8
    assert after["tables"]["entries"]["bytes"] < before["tables"]["entries"]["bytes"]
    assert after["bytes"] < before["bytes"]


def test_pruning_leaves_a_run_under_way_alone(run: Run, store_address: str) -> None:
    async def asked(store: Driver) -> None:
        await turns(store, 1)
        async with store.writing() as tx:
            await begin(tx, "t", 1, owner=new_worker())

    in_store(store_address, asked)
    told = run("db", "prune", "--apply", "--yes", "--threads-idle", "0s").stdout
    assert "Left alone: 1 thread with a run under way" in told
    assert json.loads(run("db", "status", "--json").stdout)["live"] == 1


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("--threads-idle", "soon"),
        ("--entries-older-than", "5"),
        ("--runs-older-than", "-1d"),
        ("--keep-checkpoints", "0"),
    ],
)
def test_a_wrong_option_names_what_is_allowed(run: Run, store_address: str, option: str, value: str) -> None:
    in_store(store_address, lambda store: fill(store, "t"))
    assert f"{option} is '{value}'; allowed is" in said(run("db", "prune", option, value, code=2))


@pytest.mark.sampled(2)
def test_threads_go_out_and_come_back(run: Run, tmp_path: Path, store_address: str, other_address: str) -> None:
    async def three(store: Driver) -> None:
        for name in ("alpha", "beta"):
            await fill(store, name)
        await fill(store, "gamma", user_id="somebody else")

    in_store(store_address, three)
    run("threads", "export", "--all", "--to", "all.jsonl")
    data = (tmp_path / "all.jsonl").read_bytes()
    assert json.loads(data.partition(b"\n")[0])["threads"] == 2
    assert run("threads", "export", "alpha", "beta", "alpha").stdout_bytes == data
    assert "2 threads imported" in run("threads", "import", "all.jsonl", "--database", other_address).stdout
    assert run("threads", "export", "--all", "--database", other_address).stdout_bytes == data
    assert "0 threads imported, 2 there already" in run("threads", "import", "-", text=data).stdout
    assert "no thread gamma" in said(run("threads", "export", "gamma", code=2))
    assert "give --all" in said(run("threads", "export", code=2))
    assert list(tmp_path.glob(".*part")) == []


def test_an_import_says_what_it_refuses(run: Run, tmp_path: Path, store_address: str) -> None:
    in_store(store_address, lambda store: fill(store, "t"))
    run("threads", "export", "t", "-o", "t.jsonl")
    in_store(store_address, lambda store: extend(store, "t", "more"))
    refused = said(run("threads", "import", "t.jsonl", code=2))
    assert "thread t (entries: 13 there, 12 here)" in refused
    assert "--as NEW_ID" in refused
    assert "1 thread imported" in run("threads", "import", "t.jsonl", "--as", "t2").stdout
    assert "1 thread imported" in run("threads", "import", "t.jsonl", "--user", "v", "--as", "t3").stdout
    whole = (tmp_path / "t.jsonl").read_bytes()
    (tmp_path / "cut.jsonl").write_bytes(whole[:-200])
    assert "cut.jsonl cannot be imported: line " in said(run("threads", "import", "cut.jsonl", code=2))
    (tmp_path / "other.txt").write_text("hello\n")
    assert "line 1: this is not an export" in said(run("threads", "import", "other.txt", code=2))
    assert "name of the file to import is empty" in said(run("threads", "import", "", code=2))
    assert "--as gives is empty" in said(run("threads", "import", "t.jsonl", "--as", "", code=2))
    wrong = said(run("threads", "import", "mysql://u:geheim@h/d", code=2))
    assert "mysql://… cannot be imported: it is neither a file nor" in wrong
    assert "geheim" not in wrong
    assert "none.jsonl cannot be read" in said(run("threads", "import", "none.jsonl", code=2))


def test_an_import_of_something_else_makes_no_store(run: Run, tmp_path: Path) -> None:
    (tmp_path / "text.db").write_text("hello\n")
    with sqlite3.connect(tmp_path / "shop.db") as shop:
        shop.execute("CREATE TABLE customers (id INTEGER)")
    for source, why in (("text.db", "not an export"), ("shop.db", "the tables customers, and none of them is known")):
        assert why in said(run("threads", "import", source, "--database", "new.db", code=2))
    assert not (tmp_path / "new.db").exists()


def test_an_export_that_fails_leaves_the_file_that_was_there(
    run: Run, tmp_path: Path, store_address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    in_store(store_address, lambda store: fill(store, "t"))
    (tmp_path / "t.jsonl").write_text("before")

    class Full(io.BytesIO):
        def write(self, data: Any) -> int:
            raise OSError(28, "No space left on device")

    opened = Path.open

    def open_(path: Path, mode: str = "r", *args: Any, **named: Any) -> Any:
        return Full() if mode == "wb" else opened(path, mode, *args, **named)

    monkeypatch.setattr(Path, "open", open_)
    assert "No space left on device" in said(run("threads", "export", "t", "-o", "t.jsonl", "--force", code=2))
    monkeypatch.undo()
    assert (tmp_path / "t.jsonl").read_text() == "before"


def test_an_export_replaces_a_file_only_when_told_to(run: Run, tmp_path: Path, store_address: str) -> None:
    in_store(store_address, lambda store: fill(store, "t"))
    (tmp_path / "notes.txt").write_text("mine")
    (tmp_path / "link.txt").symlink_to("notes.txt")
    for name in ("notes.txt", "link.txt"):
        assert f"{name} is there already. Give another file, or --force" in said(
            run("threads", "export", "t", "--to", name, code=2)
        )
    assert "is a folder" in said(run("threads", "export", "t", "--to", ".", "--force", code=2))
    assert (tmp_path / "notes.txt").read_text() == "mine"
    run("threads", "export", "t", "--to", "link.txt", "--force")
    assert (tmp_path / "link.txt").is_symlink()
    assert "longthread_export" in (tmp_path / "notes.txt").read_text()


def test_an_export_never_overwrites_a_database(run: Run, tmp_path: Path) -> None:
    in_store("big.db", lambda store: fill(store, "t"))
    in_store("other.db", lambda store: fill(store, "o"))
    (tmp_path / "link").symlink_to("big.db")
    (tmp_path / "linked").hardlink_to("big.db")
    before = in_store("big.db", lambda store: ids(store, "t"))
    own = ("big.db", "link", "linked", "big.db-wal", "big.db-shm")
    for name, why in (*((name, "belongs to the store") for name in own), ("other.db", "is a SQLite database")):
        for args in ((), ("--force",)):
            told = run("threads", "export", "t", "--to", name, "--database", "big.db", *args, code=2)
            assert f"{name} {why}" in said(told)
    assert in_store("big.db", lambda store: ids(store, "t")) == before
    assert not (tmp_path / "big.db-wal").exists()
    assert in_store("other.db", lambda store: ids(store, "o"))


def test_an_export_into_a_pipe_is_written_there(run: Run, tmp_path: Path, store_address: str) -> None:
    in_store(store_address, lambda store: fill(store, "t"))
    run("threads", "export", "t", "--to", os.devnull)
    assert not Path(os.devnull).is_file()
    assert not list(Path(os.devnull).parent.glob(".null.*"))
    assert "not both" in said(run("threads", "export", "t", "--all", code=2))


def test_a_store_of_ours_is_copied_and_not_imported(run: Run, tmp_path: Path, store_address: str) -> None:
    in_store(str(tmp_path / "other.db"), lambda store: fill(store, "t"))
    assert "longthread db copy other.db TO" in said(run("threads", "import", "other.db", code=2))


def test_a_conversation_goes_on_after_its_beginning_was_pruned(
    run: Run, store_address: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MEMORY_MAX_MESSAGES_PER_THREAD", "6")
    connection = sqlite3.connect(tmp_path / "shop.sqlite")
    connection.executescript(
        "CREATE TABLE customers (id INTEGER, country TEXT); INSERT INTO customers VALUES (1, 'UK')"
    )
    connection.close()
    for _ in range(4):
        run("ask", "How many customers are there?", "--source", "shop.sqlite", "--thread", "t")

    async def age(store: Driver) -> None:
        async with store.writing() as tx:
            await tx.run(Sql("UPDATE entries SET created_at = :at"), at=at(0))
            await tx.run(Sql("UPDATE runs SET started_at = :at, ended_at = :at"), at=at(0))

    in_store(store_address, age)
    before = shown(run, "t")
    told = json.loads(run("db", "prune", "--entries-older-than", "1d", "--apply", "--yes", "--json").stdout)
    left = shown(run, "t")
    assert told["rows"]["entries"] == len(before) - len(left) > 0
    assert (left[0]["role"], left[0]["parent_seq"]) == ("user", 0)
    assert [line | {"parent_seq": 0} for line in left] == [line | {"parent_seq": 0} for line in before[-len(left) :]]
    messages = json.loads(run("state", "t").stdout)["messages"]
    run("ask", "How many customers are there?", "--thread", "t")
    again = json.loads(run("state", "t").stdout)["messages"]
    assert again[:-2] == messages
    assert again[-1]["content"].count("**1**") == 1
    assert json.loads(run("threads", "search", "customers", "--json").stdout)["id"] == "t"
    run("threads", "export", "t", "-o", "t.jsonl")
    run("threads", "import", "t.jsonl", "--as", "t2")
    assert [line | {"thread_id": "t"} for line in shown(run, "t2")] == shown(run, "t")


def test_a_langgraph_database_comes_in(run: Run, tmp_path: Path, store_address: str) -> None:
    graph = StateGraph(MessagesState)
    graph.add_node("node", lambda state: {"messages": [AIMessage("an answer")]})
    graph.add_edge(START, "node")
    with SqliteSaver.from_conn_string(str(tmp_path / "graph.db")) as saver:
        for thread in ("a", "b"):
            told: Any = {"configurable": {"thread_id": thread}}
            graph.compile(checkpointer=saver).invoke({"messages": [HumanMessage("a question")]}, told)
    told = run("import", "graph.db").stdout
    assert "2 LangGraph threads there, 2 here" in told
    assert "6 checkpoints there, 6 here\n" in told
    assert "6 checkpoints there, 6 here (6 already)" in run("threads", "import", "graph.db").stdout
    assert [line["text"] for line in shown(run, "a")] == ["a question", "an answer"]
    assert "--as is for" in said(run("threads", "import", "graph.db", "--as", "c", code=2))


def shown(run: Run, thread: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in run("threads", "show", thread, "--json").stdout.splitlines()]


STOPPING = """
import os, signal
from longthread.cli.start import main
from longthread.store.transfer import copy

copy_thread = copy._Copying.copy_thread

async def stopped(self, thread_id):
    await copy_thread(self, thread_id)
    if thread_id == "b":
        os.kill(os.getpid(), signal.SIGINT)

copy._Copying.copy_thread = stopped
main()
"""


def test_ctrl_c_breaks_a_copy_off_and_the_next_one_goes_on(run: Run, tmp_path: Path, store_address: str) -> None:
    async def four(store: Driver) -> None:
        for name in "abcd":
            await fill(store, name)

    in_store(store_address, four)
    stopped = subprocess.run(
        [sys.executable, "-c", STOPPING, "db", "copy", store_address, str(tmp_path / "other.db")],
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert stopped.returncode == 130
    assert stopped.stderr == "Stopped. What was done is kept; give the command again to go on.\n"
    assert (
        "2 threads copied, 0 brought up to date, 2 there already" in run("db", "copy", store_address, "other.db").stdout
    )
