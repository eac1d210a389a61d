"""Commands on a store with a thread of which something is damaged, on both backends."""

from __future__ import annotations

import asyncio
import json
import shutil
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import AIMessage, HumanMessage
from langgraph.graph import START, MessagesState, StateGraph
from tests.lending import database
from tests.store.turns import begin, turns
from typer.testing import CliRunner

from longthread.cli.app import app
from longthread.errors import LongthreadError, NotCopied, StoreDamaged
from longthread.langgraph import LongthreadSaver
from longthread.store.open import open_store
from longthread.store.queries import Sql
from longthread.tools.analysis.address import SourceUrl

pytestmark = pytest.mark.one_backend

Run = Callable[..., Any]
Fill = Callable[[str | None, bool], str]
THREADS = ("first", "harmed", "last one")


def answer(state: MessagesState) -> dict[str, Any]:
    return {"messages": [AIMessage(f"answer {len(state['messages'])}", additional_kwargs={"more": "x"})]}


def add_threads(address: str) -> None:
    """Threads of an application, some turns each."""
    graph = StateGraph(MessagesState)
    graph.add_node("answer", answer)
    graph.add_edge(START, "answer")
    with LongthreadSaver.from_conn_string(address) as saver:
        for thread_id in THREADS:
            for number in range(3):
                given = {"messages": [HumanMessage(f"question {number}")]}
                graph.compile(checkpointer=saver).invoke(given, {"configurable": {"thread_id": thread_id}})


def add_runs(address: str) -> None:
    """Runs of the threads."""

    async def add() -> None:
        async with open_store(address) as store:
            for thread_id in THREADS:
                await turns(store, 20, thread_id=thread_id, user_id="default")

    asyncio.run(add())


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Fill]:
    """Makes the store that tests get copies of, once: given a PostgreSQL server or None, and whether it has runs."""
    with ExitStack() as opened:

        @cache
        def made(server: str | None, has_runs: bool) -> str:
            new = str(tmp_path_factory.mktemp("filled") / "conversations.db")
            address = opened.enter_context(database(server)) if server else new
            add_threads(address)
            if has_runs:
                add_runs(address)
            return address

        yield made


@pytest.fixture
def store_address(backend: str, filled: Fill, tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[str]:
    """The address of a store with threads of an application and, for tests that use `with_runs`, their runs."""
    has_runs = "with_runs" in request.fixturenames
    if backend == "sqlite":
        yield shutil.copyfile(filled(None, has_runs), str(tmp_path / "conversations.db"))
    else:
        server = request.getfixturevalue("postgres_server")
        with database(server, SourceUrl.parse(filled(server, has_runs)).database) as url:
            yield url


@pytest.fixture
def with_runs() -> None:
    """Has `store_address` hold runs of the threads."""


def change(address: str, statement: str, **values: Any) -> None:
    async def do() -> None:
        async with open_store(address) as store, store.writing() as tx:
            assert await tx.run(Sql(statement), **values) > 0

    asyncio.run(do())


def checkpoints(address: str) -> dict[str, int]:
    async def read() -> dict[str, int]:
        async with open_store(address) as store, store.reading() as tx:
            rows = await tx.fetch(Sql("SELECT thread_id, count(*) AS n FROM checkpoints GROUP BY thread_id"))
            return {row["thread_id"]: int(row["n"]) for row in rows}

    return asyncio.run(read())


def test_pruning_goes_on_and_tells_what_it_left(run: Run, store_address: str) -> None:
    before = checkpoints(store_address)
    change(store_address, "UPDATE checkpoints SET body = :v WHERE thread_id = 'harmed'", v=b"\x01\xff\xff")
    dry = run("db", "prune", code=5)
    assert "Would delete: 16 checkpoints" in dry.stdout
    assert "Not pruned, for it is damaged: thread harmed: checkpoint " in dry.stderr
    done = run("db", "prune", "--apply", "--yes", "--json", code=5)
    told = json.loads(done.stdout)
    assert (told["touched"], list(told["damaged"])) == (2, ["harmed"])
    assert "cannot be read" in told["damaged"]["harmed"]
    assert checkpoints(store_address) == {"first": 1, "harmed": before["harmed"], "last one": 1}
    again = run("db", "prune", "--apply", "--yes", code=5)
    assert "thread harmed: checkpoint " in again.stderr
    assert "threads export" in again.stderr
    run("threads", "delete", "harmed", "--yes")
    run("db", "prune", "--apply", "--yes")


def test_a_thread_with_damaged_checkpoints_is_shown_and_exported(run: Run, store_address: str) -> None:
    change(store_address, "UPDATE checkpoints SET body = :v WHERE thread_id = 'harmed'", v=b"\x01\xff\xff")
    assert "answer 5" in run("threads", "show", "harmed").stdout
    assert json.loads(run("state", "harmed").stdout)
    run("threads", "export", "harmed", "--to", "harmed.jsonl")
    told = run("view", "harmed", code=5).exception
    assert isinstance(told, StoreDamaged)
    assert "of thread harmed cannot be read" in str(told)


@pytest.mark.parametrize("command", [("threads", "show"), ("state",)])
@pytest.mark.parametrize(
    ("statement", "words"),
    [
        ("UPDATE entries SET tool_calls = '[{' WHERE thread_id = 'harmed' AND seq = 4", "thread_id harmed"),
        ("DELETE FROM entries WHERE thread_id = 'harmed' AND seq = 4", "entry 4 of thread harmed"),
    ],
)
def test_a_damaged_entry_is_one_line(
    run: Run, store_address: str, command: tuple[str, ...], statement: str, words: str
) -> None:
    change(store_address, statement)
    told = run(*command, "harmed", code=5).exception
    assert isinstance(told, StoreDamaged)
    assert words in str(told)
    run(*command, "first")


def test_what_a_damaged_run_did_is_one_line(run: Run, store_address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    async def made() -> None:
        async with open_store(store_address) as store:
            await turns(store, 2)

    asyncio.run(made())
    monkeypatch.setenv("LONGTHREAD_USER", "u")
    change(store_address, "UPDATE runs SET body = :v WHERE thread_id = 't'", v=b"\x02\xff\xff")
    for command in (("threads", "show"), ("view",)):
        told = run(*command, "t", code=5).exception
        assert isinstance(told, StoreDamaged)
        assert "did on thread t cannot be read" in str(told)
    run("db", "prune", "--apply", "--yes", "--runs-older-than", "0s")


def test_a_thread_whose_tip_is_gone_is_damaged_for_whoever_reads_it(run: Run, store_address: str) -> None:
    change(store_address, "DELETE FROM entries WHERE thread_id = 'harmed' AND seq = 6")
    for command in (("threads", "show", "harmed"), ("state", "harmed")):
        told = run(*command, code=5).exception
        assert isinstance(told, StoreDamaged)
        assert "entry 6 of thread harmed cannot be read: it is gone" in str(told)
    assert "harmed" in run("threads", "list").stdout


TIME = "UPDATE threads SET created_at = 'zzz' WHERE id = 'harmed'"
DAMAGE = {
    "a time": TIME,
    "an entry's time": "UPDATE entries SET created_at = '?' WHERE thread_id = 'harmed' AND seq = 2",
    "an entry's metadata": "UPDATE entries SET metadata = '{' WHERE thread_id = 'harmed' AND seq = 2",
    "a list": "UPDATE threads SET tags = '[' WHERE id = 'harmed'",
    "the tip": "DELETE FROM entries WHERE thread_id = 'harmed' AND seq = (SELECT tip FROM threads WHERE id = 'harmed')",
    "an entry": "DELETE FROM entries WHERE thread_id = 'harmed' AND seq = 3",
    "a tip elsewhere": "UPDATE threads SET tip = 4096 WHERE id = 'harmed'",
}


def ids_of(path: str) -> list[str]:
    return [told["thread"] for line in Path(path).read_text().splitlines() if "thread" in (told := json.loads(line))]


@pytest.mark.sampled(2)
@pytest.mark.usefixtures("with_runs")
@pytest.mark.parametrize("statement", DAMAGE.values(), ids=DAMAGE)
def test_an_export_of_all_leaves_what_is_damaged_and_can_be_imported(
    run: Run, store_address: str, statement: str
) -> None:
    change(store_address, statement)
    done = run("threads", "export", "--all", "--to", "all.jsonl", code=5)
    assert "2 threads exported to all.jsonl." in done.stderr
    assert "Not exported, for it is damaged: thread harmed: " in done.stderr
    assert "longthread db copy" in done.stderr
    assert ids_of("all.jsonl") == ["first", "last one"]
    assert "2 threads imported" in run("threads", "import", "all.jsonl", "--database", "other.db").stdout
    run("threads", "export", "first", "last one", "--to", "two.jsonl")
    assert Path("two.jsonl").read_bytes() == Path("all.jsonl").read_bytes()
    run("db", "copy", store_address, "copy.db")
    assert len(run("threads", "export", "--all", "--database", "copy.db", code=5).stdout.splitlines()) == len(
        Path("all.jsonl").read_text().splitlines()
    )
    run("threads", "delete", "harmed", "--yes")
    run("threads", "export", "--all", "--to", "all.jsonl", "--force")


@pytest.mark.sampled(4)
@pytest.mark.usefixtures("with_runs")
@pytest.mark.parametrize("statement", DAMAGE.values())
def test_markdown_of_all_leaves_what_is_damaged(run: Run, store_address: str, statement: str) -> None:
    change(store_address, statement)
    done = run("threads", "export", "--all", "--to", "all.md", code=5)
    assert "2 threads exported to all.md." in done.stderr
    assert "thread harmed: " in done.stderr
    assert "answer 19" in Path("all.md").read_text()


def test_one_that_is_named_is_not_left_in_silence(run: Run, store_address: str) -> None:
    change(store_address, TIME)
    assert isinstance(run("threads", "export", "first", "harmed", code=5).exception, StoreDamaged)
    assert isinstance(run("threads", "export", "harmed", "--to", "x.md", code=5).exception, StoreDamaged)
    assert not Path("x.md").exists()


@pytest.mark.parametrize(
    ("column", "value", "words"),
    [
        ("created_at", "?", "created_at of entry 2 cannot be read: ValueError: Invalid isoformat string: '?'."),
        ("tool_calls", "[{", "tool_calls of entry 2 cannot be read: JSONDecodeError: "),
        ("parent_seq", 9, "entry 2 stands behind entry 9, which is not there."),
    ],
)
def test_one_that_is_named_is_written_as_it_is_and_told(
    run: Run, store_address: str, column: str, value: object, words: str
) -> None:
    change(store_address, f"UPDATE entries SET {column} = :v WHERE thread_id = 'harmed' AND seq = 2", v=value)
    done = run("threads", "export", "first", "harmed", "--to", "two.jsonl", code=5)
    assert "2 threads exported to two.jsonl." in done.stderr
    assert f"Not exported whole, for it is damaged: thread harmed: {words}" in done.stderr
    assert "thread first" not in done.stderr
    assert ids_of("two.jsonl") == ["first", "harmed"]
    refused = run("threads", "import", "two.jsonl", "--database", "other.db", code=2).exception
    assert words.rstrip(".") in str(refused)
    assert not Path("other.db").exists()


def test_a_list_names_what_is_damaged_and_lists_the_others(run: Run, store_address: str) -> None:
    change(store_address, TIME)
    for command in (("threads", "list"), ("threads", "list", "--json")):
        done = run(*command, code=5)
        assert [name in done.stdout for name in ("first", "harmed", "last one")] == [True, False, True]
        assert "Not listed, for it is damaged: thread harmed: " in done.stderr
        assert "zzz" in done.stderr
    run("threads", "show", "last one")


def test_a_search_names_what_is_damaged_and_lists_the_others(run: Run, store_address: str) -> None:
    change(store_address, TIME)
    done = run("threads", "search", "question 1", "--json", code=5)
    assert [each["id"] for each in map(json.loads, done.stdout.splitlines())] == ["last one", "first"]
    assert "Not listed, for it is damaged: thread harmed: " in done.stderr
    assert run("threads", "search", "no such text").stderr == ""


def test_a_list_is_full_whatever_was_passed_over(run: Run, store_address: str) -> None:
    change(store_address, "UPDATE threads SET created_at = 'zzz' WHERE id <> 'first'")
    done = run("threads", "list", "--limit", "1", "--json", code=5)
    assert [each["id"] for each in map(json.loads, done.stdout.splitlines())] == ["first"]
    assert all(f"thread {each}: " in done.stderr for each in ("harmed", "last one"))


def test_the_last_one_may_be_damaged(run: Run, store_address: str) -> None:
    change(store_address, "UPDATE threads SET tags = '[' WHERE id = 'last one'")
    told = run("threads", "show", "last", code=5).exception
    assert isinstance(told, StoreDamaged)
    assert "last one" in str(told)
    run("threads", "delete", "last", "--yes")
    assert "answer 5" in run("threads", "show", "last").stdout


SPOILED = [
    *DAMAGE.values(),
    "UPDATE entries SET tool_calls = '[{' WHERE thread_id = 'harmed'",
    "UPDATE entries SET metadata = '{' WHERE thread_id = 'harmed'",
    "UPDATE entries SET created_at = '?' WHERE thread_id = 'harmed'",
    "UPDATE runs SET status = 'running', owner = 'x', outcome = '{' WHERE thread_id = 'harmed' "
    "AND id = (SELECT max(id) FROM runs WHERE thread_id = 'harmed')",
    "UPDATE checkpoints SET metadata = '8x' WHERE thread_id = 'harmed'",
]


@pytest.mark.sampled(4)
@pytest.mark.usefixtures("with_runs")
@pytest.mark.parametrize("statement", SPOILED)
@pytest.mark.parametrize("command", [("threads", "delete"), ("forget", "--thread")])
def test_what_is_damaged_can_be_deleted(run: Run, store_address: str, statement: str, command: tuple[str, ...]) -> None:
    change(store_address, statement)
    run(*command, "harmed", "--yes")
    assert [each["id"] for each in map(json.loads, run("threads", "list", "--json").stdout.splitlines())] == [
        "last one",
        "first",
    ]


def test_a_deletion_says_how_many_entries_go(run: Run, store_address: str) -> None:
    change(store_address, "UPDATE threads SET tip = 4096 WHERE id = 'harmed'")
    asked = run("threads", "delete", "harmed", code=1)
    assert "with its 6 entries?" in asked.stderr


NUMBERS = [
    "UPDATE threads SET tip = 'x' WHERE id = 'harmed'",
    "UPDATE threads SET entry_count = 'x' WHERE id = 'harmed'",
    "UPDATE threads SET first_seq = 'x' WHERE id = 'harmed'",
    "UPDATE recall_segments SET form = 'x' WHERE thread_id = 'harmed'",
    "UPDATE recall_segments SET entries = 'x' WHERE thread_id = 'harmed'",
    "UPDATE recall_segments SET last_seq = 'x' WHERE thread_id = 'harmed'",
]


@pytest.mark.sampled(3)
@pytest.mark.parametrize("statement", NUMBERS)
def test_a_number_that_is_none_is_damage(run: Run, tmp_path: Path, store_address: str, statement: str) -> None:
    """SQLite keeps whatever another program writes into a column; PostgreSQL keeps numbers."""
    run("db", "index")
    run("db", "copy", store_address, "texts.db")
    run("db", "index", "--database", "texts.db")
    with closing(sqlite3.connect("texts.db")) as plain, plain:
        assert plain.execute(statement).rowcount > 0
    for command in (
        ("threads", "list"),
        ("threads", "show", "harmed"),
        ("state", "harmed"),
        ("view", "harmed"),
        ("recall", "question"),
        ("db", "index"),
        ("db", "prune"),
        ("threads", "export", "--all"),
        ("threads", "show", "first"),
        ("threads", "delete", "harmed", "--yes"),
    ):
        done = CliRunner().invoke(app, [*command, "--database", "texts.db"])
        assert done.exception is None or isinstance(done.exception, (LongthreadError, SystemExit)), command
        if isinstance(done.exception, StoreDamaged):
            assert "harmed" in str(done.exception), command
    assert done.exit_code == 0
    assert "harmed" not in run("threads", "list", "--database", "texts.db").stdout
    run("threads", "export", "--all", "--database", "texts.db")


def test_a_copy_leaves_what_the_other_database_does_not_take_and_copies_the_others(
    run: Run, store_address: str, postgres_url: str
) -> None:
    run("db", "copy", store_address, "from.db")
    with closing(sqlite3.connect("from.db")) as plain, plain:
        assert plain.execute("UPDATE threads SET tip = 'x' WHERE id = 'harmed'").rowcount == 1
    for written, same in ((2, 0), (0, 2)):
        told = run("db", "copy", "from.db", postgres_url, "--json", code=5)
        outcome = json.loads(told.stdout)
        assert (outcome["written"], outcome["same"], outcome["went_on"]) == (written, same, [])
        [refused] = outcome["refused"]
        assert (refused["what"], refused["is_damaged"]) == ("thread harmed", True)
        assert refused["reason"] == 'invalid input syntax for type bigint: "x"'
        assert isinstance(told.exception, NotCopied)
        assert "mend them in FROM" in str(told.exception)
    assert "Copy again" not in run("db", "copy", "from.db", postgres_url, code=5).stdout
    run("threads", "delete", "harmed", "--yes", "--database", "from.db")
    assert "Both stores have as many rows" in run("db", "copy", "from.db", postgres_url).stdout


def test_a_copy_leaves_what_cannot_be_read_and_copies_the_others(run: Run, store_address: str) -> None:
    run("db", "copy", store_address, "from.db")
    with closing(sqlite3.connect("from.db")) as plain, plain:
        changed = plain.execute(
            "UPDATE entries SET text = CAST(x'ff41' AS TEXT) WHERE thread_id = 'harmed' AND seq = 3"
        )
        assert changed.rowcount == 1
    told = run("db", "copy", "from.db", "to.db", "--json", code=5)
    outcome = json.loads(told.stdout)
    assert (outcome["written"], [each["what"] for each in outcome["refused"]]) == (2, ["thread harmed"])
    assert "UTF-8" in outcome["refused"][0]["reason"]


def test_a_buried_owner_stops_nothing(run: Run, store_address: str) -> None:
    async def begun() -> None:
        async with open_store(store_address) as store:
            await turns(store, 1, thread_id="begun", user_id="default")
            async with store.writing() as tx:
                await begin(tx, "begun", 1, owner="x")

    asyncio.run(begun())
    assert "running" in run("threads", "list").stdout
    assert "Left alone: 1 thread with a run under way." in run("db", "prune").stdout
    change(store_address, "DELETE FROM workers")
    assert "interrupted" in run("threads", "list").stdout
    assert "Left alone" not in run("db", "prune").stdout
